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
    assert_eq!(table.record_probe(0, 2, 205, 1).port, 2);
    assert_eq!(table.record_probe(0, 3, 154, 2).port, 3);
    assert_eq!(table.record_probe(0, 4, 128, 3), Hop { port: 4, utilisation: 128, received: 3 });
    assert_eq!(ports(&table, 3), [(4, 128), (3, 154), (2, 205)]);
    // A fourth that is better than the worst takes its place; one that is not changes nothing.
    table.record_probe(0, 5, 140, 4);
    assert_eq!(ports(&table, 4), [(4, 128), (5, 140), (3, 154)]);
    table.record_probe(0, 6, 154, 5);
    assert_eq!(ports(&table, 5), [(4, 128), (5, 140), (3, 154)]);
    // Bad news of the best lets it fall; what is not heard of again expires.
    table.record_probe(0, 4, 200, 60);
    assert_eq!(ports(&table, 60), [(5, 140), (3, 154), (4, 200)]);
    assert_eq!(ports(&table, 103), [(5, 140), (4, 200)]);
    assert_eq!(ports(&table, 161), []);
    assert_eq!(table.record_probe(0, 9, 255, 200).port, 9, "whoever is heard of next takes the place");
}

#[test]
fn within_the_hysteresis_ranks_stay() {
    let mut table = BestHops::new(1, 2, HopRules { hysteresis: 10, ..RULES });
    table.record_probe(0, 1, 100, 0);
    table.record_probe(0, 2, 90, 0);
    assert_eq!(ports(&table, 0), [(1, 100), (2, 90)]);
    table.record_probe(0, 2, 89, 0);
    assert_eq!(ports(&table, 0), [(2, 89), (1, 100)]);
    // A hop that is new to a full table needs it as well.
    table.record_probe(0, 3, 90, 0);
    assert_eq!(ports(&table, 0), [(2, 89), (1, 100)]);
    table.record_probe(0, 3, 89, 0);
    assert_eq!(ports(&table, 0), [(2, 89), (3, 89)]);
}

#[test]
fn with_one_rank_another_hop_needs_the_hysteresis_until_the_best_expires() {
    let mut table = BestHops::new(1, 1, HopRules { hysteresis: 10, ..RULES });
    assert_eq!(table.record_probe(0, 1, 100, 0).port, 1);
    assert_eq!(table.record_probe(0, 2, 90, 1).port, 1);
    assert_eq!(table.record_probe(0, 1, 101, 2).utilisation, 101, "the best hop itself needs none");
    assert_eq!(table.record_probe(0, 2, 90, 3).port, 2);
    let mut table = BestHops::new(1, 1, HopRules { hysteresis: 255, ..RULES });
    table.record_probe(0, 1, 255, 0);
    assert_eq!(table.record_probe(0, 2, 0, 100).port, 1);
    assert_eq!(table.record_probe(0, 2, 0, 101).port, 2, "the first hop has expired");
}

/// HULA as it is written down (spec of its reference rule): one hop a destination.
struct Hula {
    best: Option<(u32, u8, u64)>,
    rules: HopRules,
}

impl Hula {
    fn record_probe(&mut self, port: u32, utilisation: u8, now: u64) {
        match self.best {
            None => self.best = Some((port, utilisation, now)),
            Some((_, _, received)) if now - received > self.rules.expiry => {
                self.best = Some((port, utilisation, now))
            }
            Some((best, _, _)) if best == port && self.rules.refresh => {
                self.best = Some((port, utilisation, now))
            }
            Some((best, min, _)) => {
                let needed = if best == port { 0 } else { self.rules.hysteresis };
                if u16::from(utilisation) + u16::from(needed) < u16::from(min) {
                    self.best = Some((port, utilisation, now));
                }
            }
        }
    }
}

#[test]
fn with_one_rank_it_is_hula_event_for_event() {
    for (refresh, hysteresis) in [(true, 0), (false, 0), (true, 20), (false, 20)] {
        let rules = HopRules { refresh, hysteresis, ..RULES };
        let mut table = BestHops::new(1, 1, rules);
        let mut hula = Hula { best: None, rules };
        let mut random = RandomStream::new(5, "probes");
        let mut now = 0;
        for event in 0..50_000 {
            now += random.below(40) * random.below(2) + random.below(100) / 99 * 150;
            let (port, utilisation) = (random.below(4) as u32, random.below(256) as u8);
            table.record_probe(0, port, utilisation, now);
            hula.record_probe(port, utilisation, now);
            let best = table.live(0, now).next().map(|hop| (hop.port, hop.utilisation, hop.received));
            assert_eq!(best, hula.best, "event {event}");
        }
    }
}
