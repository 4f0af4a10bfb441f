//! PLB: a flow whose path stays congested takes another one.
//!
//! ```text
//! a round     a window of data; congested, if none of its round-trip times is below a threshold (delay), or at least a share of
//!             the bytes acknowledged in it come with a mark (marks)
//! a change    after `rounds` congested rounds in a row, or `idle_rounds` if nothing is in flight then; after a timeout
//! a pause     no change by congestion for `pause` to twice that after a timeout
//! ```
//!
//! A change gives the flow another hash, so that balancers that choose by hash choose again.
//!
//! Source: Qureshi et al., "PLB: Congestion Signals are Simple and Effective for Network Load Balancing",
//! SIGCOMM 2022, §3, and Linux 6.2 (tcp_plb: a share of 0.5, 12 rounds, 3 idle ones, a pause of 60 s to 120 s
//! after a timeout, which itself changes the path); for delays and 5 to 7 rounds, drawn again for every
//! change, without a pause, the Swift sender of Broadcom/csg-htsim at 841d9e7, whose rounds are smoothed
//! round-trip times.
//!
//! Differs from the source: with delays, too, an idle flow changes more readily.

use crate::doc::Series;
use crate::engine::random::{RandomStream, mix64};
use crate::parameters::{Names, Parameters};
use crate::units::Time;

const SIGNALS: Names = &[
    ("none", "flows keep their paths"),
    ("delay", "a round is congested if none of its round-trip times is below `plb_delay`"),
    ("marks", "a round is congested if at least `plb_share` of what is acknowledged in it comes with a mark"),
];

/// What it shows of a flow over time.
pub const SERIES: [Series; 2] = [
    Series::new("path_changes", "", "How often PLB has changed the path of the flow."),
    Series::new("congested_rounds", "", "PLB's congested rounds in a row."),
];

/// With delays, rounds beyond `rounds` that are drawn at random.
const SPREAD: u64 = 3;
/// Linux's pause after a timeout.
const PAUSE: Time = Time::from_ms(60_000);
/// Linux's rounds of an idle flow, and the share of marks of the paper and of Linux.
const IDLE_ROUNDS: i64 = 3;
const SHARE: f64 = 0.5;
/// The signals by which keys have an effect.
const DELAY: &[&str] = &["delay"];
const MARKS: &[&str] = &["marks"];
const ANY: &[&str] = &["delay", "marks"];
/// Rounds of csg-htsim.
pub const ROUNDS_OF_DELAY: i64 = 5;
/// Rounds of Linux.
pub const ROUNDS_OF_MARKS: i64 = 12;

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
    /// 0: an idle flow is like others.
    idle_rounds: u32,
    pause: Time,
}

impl PlbParameters {
    /// Reads the keys; none: flows keep their paths. `usual`: the transport's default of rounds.
    pub fn read(p: &mut Parameters, usual: i64) -> Option<PlbParameters> {
        let help = "PLB: flows change their paths when these stay congested, and after timeouts";
        let chosen = p.choice("plb", "none", SIGNALS, help);
        let help = "with plb: congested rounds in a row before a change; with plb = \"delay\" up to two more are drawn (csg-htsim: 5; \
                    Linux: 12)";
        let rounds = p.integer("plb_rounds", usual, (1, 1 << 20), help) as u32;
        let help = "with plb: congested rounds in a row before a change where nothing is in flight (Linux: 3); 0: plb_rounds";
        let idle_rounds = p.integer("plb_idle_rounds", IDLE_ROUNDS, (0, 1 << 20), help) as u32;
        let help = "with plb: after a timeout the path is not changed for a random time from this one to twice this one, except by further timeouts; \
                    auto: 60 s with marks (Linux), 0s with delays (csg-htsim)";
        let pause = p.time_or_auto("plb_pause", help);
        let help = "with plb = \"delay\": round-trip time of a path that is not congested; auto: twice the base RTT (csg-htsim: 20 us)";
        let delay = p.time_or_auto("plb_delay", help);
        let help =
            "with plb = \"marks\": share of a congested round that comes with marks (paper, Linux: 0.5)";
        let share = p.number("plb_share", SHARE, (1e-6, 1.0), help);
        // No error, since a sweep may go over `plb`; a transport of a workload may inherit the value.
        for (key, given, needed) in [
            ("plb_rounds", rounds != usual as u32, ANY),
            ("plb_idle_rounds", idle_rounds != IDLE_ROUNDS as u32, ANY),
            ("plb_pause", pause.is_some(), ANY),
            ("plb_delay", delay.is_some(), DELAY),
            ("plb_share", share != SHARE, MARKS),
        ] {
            if given && p.is_own(key) && !needed.contains(&chosen) {
                let needed = needed.join("\" or \"");
                p.warn(format!("transport.{key} has no effect here: set plb = \"{needed}\""));
            }
        }
        let (signal, auto) = match chosen {
            "delay" => (Signal::Delay(delay), Time::ZERO),
            "marks" => (Signal::Marks(share), PAUSE),
            _ => return None,
        };
        Some(PlbParameters { signal, rounds, idle_rounds, pause: pause.unwrap_or(auto) })
    }

    /// Flows change their paths by marks.
    pub fn needs_marks(&self) -> bool {
        matches!(self.signal, Signal::Marks(_))
    }

    /// What follows from the base RTT of the network.
    pub fn settle(&mut self, base_rtt: Time) {
        if let Signal::Delay(delay) = &mut self.signal {
            delay.get_or_insert(Time(2 * base_rtt.0));
        }
    }

    /// The state of a flow; `seed` makes its draws its own.
    pub fn start(&self, seed: u64) -> Plb {
        let mut plb = Plb {
            parameters: *self,
            random: RandomStream::new(seed, "plb"),
            limit: 0,
            congested: 0,
            round_ends: 0,
            counted: 0,
            marked: 0,
            shortest: Time::MAX,
            paused: Time::ZERO,
            changes: 0,
        };
        plb.draw();
        plb
    }
}

/// What an acknowledgement says to PLB.
#[derive(Debug, Clone, Copy, Default)]
pub struct Feedback {
    pub now: Time,
    /// None: it gives no sample.
    pub rtt: Option<Time>,
    pub marked: bool,
    /// How much it counts among those of its round.
    pub weight: u64,
    /// Everything below has arrived.
    pub acknowledged: u64,
    /// The next byte to send.
    pub next: u64,
}

/// PLB of one flow.
pub struct Plb {
    parameters: PlbParameters,
    random: RandomStream,
    /// Congested rounds in a row before the next change.
    limit: u64,
    /// Congested rounds in a row so far.
    congested: u64,
    /// The round ends when everything below is acknowledged.
    round_ends: u64,
    counted: u64,
    marked: u64,
    shortest: Time,
    /// Until then only timeouts change the path.
    paused: Time,
    changes: u64,
}

impl Plb {
    fn draw(&mut self) {
        let more = match self.parameters.signal {
            Signal::Delay(_) => self.random.next_u64() % SPREAD,
            Signal::Marks(_) => 0,
        };
        self.limit = u64::from(self.parameters.rounds) + more;
        self.congested = 0;
    }

    /// An acknowledgement. The flow's new hash, if it takes another path now.
    pub fn on_ack(&mut self, ack: &Feedback, hash: u32) -> Option<u32> {
        self.counted += ack.weight;
        self.marked += if ack.marked { ack.weight } else { 0 };
        self.shortest = self.shortest.min(ack.rtt.unwrap_or(Time::MAX));
        if ack.acknowledged < self.round_ends {
            return None;
        }
        let is_congested = match self.parameters.signal {
            Signal::Delay(threshold) => self.shortest >= threshold.unwrap_or(Time::ZERO),
            Signal::Marks(share) => self.marked > 0 && self.marked as f64 >= share * self.counted as f64,
        };
        self.congested = if is_congested { self.congested + 1 } else { 0 };
        self.round_ends = ack.next;
        (self.counted, self.marked, self.shortest) = (0, 0, Time::MAX);
        let idle = u64::from(self.parameters.idle_rounds);
        let rests = idle > 0 && ack.acknowledged >= ack.next && self.congested >= idle;
        (ack.now >= self.paused && (rests || self.congested >= self.limit)).then(|| self.change(hash))
    }

    /// A retransmission timeout has expired: the flow's new hash.
    pub fn on_timeout(&mut self, now: Time, hash: u32) -> u32 {
        let pause = self.parameters.pause.0;
        if pause > 0 {
            let more = self.random.next_u64() % pause;
            self.paused = now.saturating_add(Time(pause)).saturating_add(Time(more));
        }
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
mod tests;
