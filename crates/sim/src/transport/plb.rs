//! PLB: a flow whose path stays congested takes another one.
//!
//! A round is a window of data. With `delay` a round is congested if none of its round-trip times is below a threshold; with
//! `marks`, if at least a share of its acknowledgements bring a mark. After `rounds` to `rounds` + 2 congested rounds in a row
//! (drawn again for every change), and after a retransmission timeout, the flow gets another hash, so that balancers that
//! choose by hash choose again.
//!
//! Source: Qureshi et al., "PLB: Congestion Signals are Simple and Effective for Network Load Balancing", SIGCOMM 2022, §3 (marks, a
//! share of 0.5); for delays and 5 to 7 rounds, the Swift sender of Broadcom/csg-htsim at 841d9e7, whose rounds are smoothed
//! round-trip times.
//! Differs from the source: an idle flow does not change more readily, and no path is kept after a timeout for a minute.

use crate::engine::random::{RandomStream, mix64};
use crate::parameters::{Names, Parameters};
use crate::units::Time;

const SIGNALS: Names = &[
    ("none", "flows keep their paths"),
    ("delay", "a round is congested if none of its round-trip times is below `plb_delay`"),
    ("marks", "a round is congested if at least `plb_share` of its acknowledgements bring a mark"),
];

/// Rounds beyond `rounds` that are drawn at random.
const SPREAD: u64 = 3;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Signal {
    /// None: twice the base RTT.
    Delay(Option<Time>),
    Marks(f64),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlbParameters {
    signal: Signal,
    rounds: u32,
}

impl PlbParameters {
    /// Reads the keys; none: flows keep their paths.
    pub fn read(p: &mut Parameters) -> Option<PlbParameters> {
        let help = "PLB: flows change their paths when these stay congested, and after timeouts";
        let chosen = p.choice("plb", "none", SIGNALS, help);
        let help =
            "with plb: congested rounds in a row before a change; up to two more are drawn (csg-htsim: 5)";
        let rounds = p.integer("plb_rounds", 5, (1, 1 << 20), help) as u32;
        let help = "with plb = \"delay\": round-trip time of a path that is not congested; auto: twice the base RTT (csg-htsim: 20 us)";
        let delay = p.time_or_auto("plb_delay", help);
        let help = "with plb = \"marks\": share of marked acknowledgements of a congested round (paper: 0.5)";
        let share = p.number("plb_share", 0.5, (1e-6, 1.0), help);
        let signal = match chosen {
            "delay" => Signal::Delay(delay),
            "marks" => Signal::Marks(share),
            _ => return None,
        };
        Some(PlbParameters { signal, rounds })
    }

    /// The state of a flow whose base RTT is this; `seed` makes its draws its own.
    pub fn start(&self, base_rtt: Time, seed: u64) -> Plb {
        let signal = match self.signal {
            Signal::Delay(delay) => Signal::Delay(Some(delay.unwrap_or(Time(2 * base_rtt.0)))),
            marks => marks,
        };
        let mut plb = Plb {
            signal,
            rounds: self.rounds,
            random: RandomStream::new(seed, "plb"),
            limit: 0,
            congested: 0,
            round_ends: 0,
            acks: 0,
            marked: 0,
            shortest: Time::MAX,
            changes: 0,
        };
        plb.draw();
        plb
    }
}

/// PLB of one flow.
pub struct Plb {
    signal: Signal,
    rounds: u32,
    random: RandomStream,
    /// Congested rounds in a row before the next change.
    limit: u64,
    /// Congested rounds in a row so far.
    congested: u64,
    /// The round ends when everything below is acknowledged.
    round_ends: u64,
    acks: u64,
    marked: u64,
    shortest: Time,
    changes: u64,
}

impl Plb {
    fn draw(&mut self) {
        self.limit = u64::from(self.rounds) + self.random.next_u64() % SPREAD;
        self.congested = 0;
    }

    /// An acknowledgement of everything below `acknowledged`, when `next` is the next byte to send. The flow's new hash, if it
    /// takes another path now.
    pub fn on_ack(
        &mut self,
        rtt: Time,
        marked: bool,
        acknowledged: u64,
        next: u64,
        hash: u32,
    ) -> Option<u32> {
        self.acks += 1;
        self.marked += u64::from(marked);
        self.shortest = self.shortest.min(rtt);
        if acknowledged < self.round_ends {
            return None;
        }
        let is_congested = match self.signal {
            Signal::Delay(threshold) => self.shortest >= threshold.unwrap_or(Time::ZERO),
            Signal::Marks(share) => self.marked as f64 >= share * self.acks as f64,
        };
        self.congested = if is_congested { self.congested + 1 } else { 0 };
        self.round_ends = next;
        (self.acks, self.marked, self.shortest) = (0, 0, Time::MAX);
        (self.congested >= self.limit).then(|| self.change(hash))
    }

    /// A retransmission timeout has expired: the flow's new hash.
    pub fn on_timeout(&mut self, hash: u32) -> u32 {
        self.change(hash)
    }

    fn change(&mut self, hash: u32) -> u32 {
        self.draw();
        self.changes += 1;
        mix64(u64::from(hash) ^ self.random.next_u64()) as u32
    }

    /// Internals of the flow.
    pub fn internals(&self, out: &mut Vec<(&'static str, f64)>) {
        out.push(("path_changes", self.changes as f64));
        out.push(("congested_rounds", self.congested as f64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Time = Time::from_us(10);

    fn plb(signal: Signal, rounds: u32) -> Plb {
        PlbParameters { signal, rounds }.start(BASE, 1)
    }

    /// Rounds of one acknowledgement with this round-trip time and mark until the path changes.
    fn rounds_until_a_change(plb: &mut Plb, rtt: Time, marked: bool) -> Option<u64> {
        (1..100).find(|round| plb.on_ack(rtt, marked, 1000 * round, 1000 * round + 1000, 7).is_some())
    }

    #[test]
    fn delays_of_twice_the_base_change_the_path_after_five_to_seven_rounds() {
        let mut seen = [0; 8];
        for seed in 0..60 {
            let mut plb = PlbParameters { signal: Signal::Delay(None), rounds: 5 }.start(BASE, seed);
            let after = rounds_until_a_change(&mut plb, Time::from_us(20), false).expect("a change");
            seen[after as usize] += 1;
        }
        assert!(seen[5] > 5 && seen[6] > 5 && seen[7] > 5 && seen.iter().sum::<i32>() == 60, "{seen:?}");
        let mut below = plb(Signal::Delay(None), 5);
        assert_eq!(rounds_until_a_change(&mut below, Time(Time::from_us(20).0 - 1), false), None);
    }

    #[test]
    fn one_short_round_trip_begins_the_count_again() {
        let mut plb = plb(Signal::Delay(Some(BASE)), 5);
        for round in 1..100 {
            let rtt = if round % 5 == 0 { Time(BASE.0 - 1) } else { BASE };
            assert_eq!(plb.on_ack(rtt, false, 1000 * round, 1000 * round + 1000, 7), None);
        }
    }

    #[test]
    fn half_of_the_marks_make_a_congested_round() {
        for (marks, changes) in [(1, false), (2, true), (4, true)] {
            let mut plb = plb(Signal::Marks(0.5), 1);
            // Windows of four packets.
            let changed = (0..40_u64).any(|packet| {
                let acknowledged = (packet + 1) * 1000;
                plb.on_ack(BASE, packet % 4 < marks, acknowledged, acknowledged + 4000, 7).is_some()
            });
            assert_eq!(changed, changes, "{marks} of four");
        }
    }

    #[test]
    fn a_timeout_changes_the_path_at_once_and_every_hash_is_new() {
        let mut plb = plb(Signal::Marks(0.5), 5);
        let (first, second) = (plb.on_timeout(7), plb.on_timeout(7));
        assert!(first != 7 && second != 7 && first != second);
    }
}
