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
    pub received: u64,
}

const NOTHING: Hop = Hop { port: u32::MAX, utilisation: 0, received: 0 };

/// How a table takes in what probes say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HopRules {
    /// A hop that was not heard of for longer is forgotten.
    pub expiry: u64,
    /// What a probe says of a hop in the table replaces what it said before, be it better or worse. Without this, as in the
    /// published P4 listing, a hop that gets worse keeps its old value until it expires.
    pub refresh: bool,
    /// A hop passes the one above, and takes the place of the last one in a full table, only if it is better by
    /// more than this.
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

    /// No probe of a destination ever came.
    pub fn is_new(&self, destination: u32) -> bool {
        self.first(destination).is_none()
    }

    /// The hop that was ranked first when a probe of the destination last came; none: none ever came.
    pub fn first(&self, destination: u32) -> Option<Hop> {
        Some(self.hops[destination as usize * self.k]).filter(|hop| hop.port != NOTHING.port)
    }

    /// The hops to a destination that were known when a probe of it last came, best first.
    pub fn known(&self, destination: u32) -> &[Hop] {
        let at = destination as usize;
        &self.hops[at * self.k..][..usize::from(self.used[at])]
    }

    /// A probe of a destination came by a port: the path through it is that busy. The best hop after it.
    pub fn record_probe(&mut self, destination: u32, port: u32, utilisation: u8, now: u64) -> Hop {
        self.forget(destination, now);
        let (at, k) = (destination as usize, self.k);
        let used = usize::from(self.used[at]);
        let hops = &mut self.hops[at * k..][..k];
        let hop = Hop { port, utilisation, received: now };
        match hops[..used].iter().position(|known| known.port == port) {
            Some(rank) if self.rules.refresh || utilisation < hops[rank].utilisation => hops[rank] = hop,
            Some(_) => {}
            None if used < k => {
                hops[used] = hop;
                self.used[at] += 1;
            }
            None if overtakes(hop, hops[k - 1], self.rules.hysteresis) => hops[k - 1] = hop,
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
            if now - hops[place].received <= self.rules.expiry {
                hops[kept] = hops[place];
                kept += 1;
            }
        }
        self.used[at] = kept as u8;
    }

    /// The hops to a destination that are alive at a time, best first.
    pub fn live(&self, destination: u32, now: u64) -> impl Iterator<Item = Hop> + Clone + '_ {
        let hops = self.known(destination).iter().copied();
        hops.filter(move |hop| now - hop.received <= self.rules.expiry)
    }
}

/// Whether a hop is better than another by more than the hysteresis.
fn overtakes(hop: Hop, other: Hop, hysteresis: u8) -> bool {
    u16::from(hop.utilisation) + u16::from(hysteresis) < u16::from(other.utilisation)
}

/// Sorts by utilisation; what is equal, or better by the hysteresis at most, keeps its order.
fn rank(hops: &mut [Hop], hysteresis: u8) {
    for from in 1..hops.len() {
        let mut at = from;
        while at > 0 && overtakes(hops[at], hops[at - 1], hysteresis) {
            hops.swap(at, at - 1);
            at -= 1;
        }
    }
}

#[cfg(test)]
mod tests;
