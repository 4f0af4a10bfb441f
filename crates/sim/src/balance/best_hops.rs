//! The k best next hops to each destination, ranked by the utilisation of the paths behind them.
//!
//! A probe says how busy the path to a destination through a port is. With k = 1 the table is that of HULA, event for event;
//! with more it keeps the k least busy ports that were heard of, best first. What was not heard of for the time of failure is
//! forgotten.
//!
//! A kernel: whole numbers, no clock; times are in any unit that is the same throughout.
//!
//! Source: Katta et al., "HULA", SOSR 2016; Benet et al., "MP-HULA: multipath transport aware load balancing using programmable
//! data planes", NetCompute 2018 (talk: tables of the 1st to k-th best next hop).

/// One ranked hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    pub port: u32,
    /// In 1/256.
    pub utilisation: u8,
    /// When it was heard of last.
    pub heard: u64,
}

const NOTHING: Hop = Hop { port: u32::MAX, utilisation: 0, heard: 0 };

/// How a table takes in what probes say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HopRules {
    /// A hop that was not heard of for longer is forgotten.
    pub expiry: u64,
    /// What a probe says of a hop in the table replaces what it said before, be it better or worse. Without this, as in the
    /// published P4 listing, a hop that gets worse keeps its old value until it expires.
    pub refresh: bool,
    /// A hop passes the one above only if it is better by more than this.
    pub hysteresis: u8,
}

/// By destination, `k` ranks each.
#[derive(Debug, Clone)]
pub struct BestHops {
    k: usize,
    rules: HopRules,
    hops: Vec<Hop>,
    used: Vec<u8>,
}

impl BestHops {
    /// For so many destinations. `k` is 1 to 16.
    pub fn new(destinations: usize, k: usize, rules: HopRules) -> BestHops {
        let k = k.clamp(1, 16);
        BestHops { k, rules, hops: vec![NOTHING; destinations * k], used: vec![0; destinations] }
    }

    /// Nothing was ever heard of a destination.
    pub fn is_new(&self, destination: u32) -> bool {
        self.hops[destination as usize * self.k].port == NOTHING.port
    }

    /// A probe of a destination came by a port: the path through it is that busy. The best hop after it.
    pub fn hear(&mut self, destination: u32, port: u32, utilisation: u8, now: u64) -> Hop {
        self.forget(destination, now);
        let (at, k) = (destination as usize, self.k);
        let used = usize::from(self.used[at]);
        let hops = &mut self.hops[at * k..][..k];
        let hop = Hop { port, utilisation, heard: now };
        match hops[..used].iter().position(|known| known.port == port) {
            Some(rank) if self.rules.refresh || utilisation < hops[rank].utilisation => hops[rank] = hop,
            Some(_) => {}
            None if used < k => {
                hops[used] = hop;
                self.used[at] += 1;
            }
            None if utilisation < hops[k - 1].utilisation => hops[k - 1] = hop,
            None => {}
        }
        let used = usize::from(self.used[at]);
        rank(&mut hops[..used], self.rules.hysteresis);
        hops[0]
    }

    /// Forgets the hops to a destination that have expired, in their order.
    fn forget(&mut self, destination: u32, now: u64) {
        let at = destination as usize;
        let hops = &mut self.hops[at * self.k..][..usize::from(self.used[at])];
        let mut kept = 0;
        for place in 0..hops.len() {
            if now - hops[place].heard <= self.rules.expiry {
                hops[kept] = hops[place];
                kept += 1;
            }
        }
        self.used[at] = kept as u8;
    }

    /// The hops to a destination that are alive at a time, best first.
    pub fn live(&self, destination: u32, now: u64) -> impl Iterator<Item = Hop> + Clone + '_ {
        let at = destination as usize;
        let hops = &self.hops[at * self.k..][..usize::from(self.used[at])];
        hops.iter().copied().filter(move |hop| now - hop.heard <= self.rules.expiry)
    }
}

/// Sorts by utilisation; what is equal, or better by the hysteresis at most, keeps its order.
fn rank(hops: &mut [Hop], hysteresis: u8) {
    for from in 1..hops.len() {
        let mut at = from;
        while at > 0
            && u16::from(hops[at].utilisation) + u16::from(hysteresis) < u16::from(hops[at - 1].utilisation)
        {
            hops.swap(at, at - 1);
            at -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::random::RandomStream;

    const RULES: HopRules = HopRules { expiry: 100, refresh: true, hysteresis: 0 };

    fn ports(table: &BestHops, now: u64) -> Vec<(u32, u8)> {
        table.live(0, now).map(|hop| (hop.port, hop.utilisation)).collect()
    }

    #[test]
    fn the_three_best_of_the_talk_are_ranked_and_the_best_is_what_is_passed_on() {
        let mut table = BestHops::new(1, 3, RULES);
        // ToR 10 through S2 at 80 %, S3 at 60 %, S4 at 50 %.
        assert_eq!(table.hear(0, 2, 205, 1).port, 2);
        assert_eq!(table.hear(0, 3, 154, 2).port, 3);
        assert_eq!(table.hear(0, 4, 128, 3), Hop { port: 4, utilisation: 128, heard: 3 });
        assert_eq!(ports(&table, 3), [(4, 128), (3, 154), (2, 205)]);
        // A fourth that is better than the worst takes its place; one that is not changes nothing.
        table.hear(0, 5, 140, 4);
        assert_eq!(ports(&table, 4), [(4, 128), (5, 140), (3, 154)]);
        table.hear(0, 6, 154, 5);
        assert_eq!(ports(&table, 5), [(4, 128), (5, 140), (3, 154)]);
        // Bad news of the best lets it fall; what is not heard of again expires.
        table.hear(0, 4, 200, 60);
        assert_eq!(ports(&table, 60), [(5, 140), (3, 154), (4, 200)]);
        assert_eq!(ports(&table, 103), [(5, 140), (4, 200)]);
        assert_eq!(ports(&table, 161), []);
        assert_eq!(table.hear(0, 9, 255, 200).port, 9, "whoever is heard of next takes the place");
    }

    #[test]
    fn within_the_hysteresis_ranks_stay() {
        let mut table = BestHops::new(1, 2, HopRules { hysteresis: 10, ..RULES });
        table.hear(0, 1, 100, 0);
        table.hear(0, 2, 90, 0);
        assert_eq!(ports(&table, 0), [(1, 100), (2, 90)]);
        table.hear(0, 2, 89, 0);
        assert_eq!(ports(&table, 0), [(2, 89), (1, 100)]);
    }

    /// HULA as it is written down (spec of its reference rule): one hop a destination.
    struct Hula {
        best: Option<(u32, u8, u64)>,
        rules: HopRules,
    }

    impl Hula {
        fn hear(&mut self, port: u32, utilisation: u8, now: u64) {
            match self.best {
                None => self.best = Some((port, utilisation, now)),
                Some((_, _, heard)) if now - heard > self.rules.expiry => {
                    self.best = Some((port, utilisation, now))
                }
                Some((best, _, _)) if best == port && self.rules.refresh => {
                    self.best = Some((port, utilisation, now))
                }
                Some((_, least, _)) if utilisation < least => self.best = Some((port, utilisation, now)),
                Some(_) => {}
            }
        }
    }

    #[test]
    fn with_one_rank_it_is_hula_event_for_event() {
        for refresh in [true, false] {
            let rules = HopRules { refresh, ..RULES };
            let mut table = BestHops::new(1, 1, rules);
            let mut hula = Hula { best: None, rules };
            let mut random = RandomStream::new(5, "probes");
            let mut now = 0;
            for event in 0..50_000 {
                now += random.below(40) * random.below(2) + random.below(100) / 99 * 150;
                let (port, utilisation) = (random.below(4) as u32, random.below(256) as u8);
                table.hear(0, port, utilisation, now);
                hula.hear(port, utilisation, now);
                let best = table.live(0, now).next().map(|hop| (hop.port, hop.utilisation, hop.heard));
                assert_eq!(best, hula.best, "event {event}");
            }
        }
    }
}
