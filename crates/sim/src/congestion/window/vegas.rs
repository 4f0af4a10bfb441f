//! Vegas: keeps a few packets of its own in the queue, by the difference between expected and actual rate.
//!
//! ```text
//! once per round trip, with at least three samples:
//! diff = cwnd - cwnd base / RTT             segments in queues; base: least RTT ever, RTT: least of the round
//! slow start   doubles every round;  diff > gamma: cwnd = min(cwnd, cwnd base / RTT + 1), and slow start ends
//! avoidance    cwnd + 1 if diff < alpha,  cwnd - 1 if diff > beta
//! ```
//!
//! Source: Brakmo and Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global Internet", IEEE JSAC
//! 13(8), 1995, as implemented in Linux and ns-3: no pacing, no loss detection of its own; slow start in
//! every round.
//! Validated by: growth per round trip and the packets in a queue (tests/laws/windows.rs), also from above
//! (tests/tcp.rs).
//! Differs from the source: ns-3.35 counts diff in whole segments, rounded up (`whole_segments`). alpha = 2,
//! beta = 4 segments as in Linux (the paper's are buffers of 1 to 3). The reaction to a loss is a parameter:
//! half of the window as in Linux (`loss = "half"`), or almost none as in ns-3.35 (`loss = "threshold"`).
//! Parameters: see [`VegasParameters::read`].

use super::newreno::{Growth, Reno, half};
use super::{
    Acked, Change, Congestion, CongestionWindow, Profile, Signal, State, WindowContext, WindowController,
    WindowParameters,
};
use crate::congestion::SchemeDoc;
use crate::doc::Series;
use crate::parameters::Parameters;
use crate::units::Time;

pub const DOC: SchemeDoc = SchemeDoc {
    name: "vegas",
    title: "Vegas: keeps two to four packets of its own in the queue",
    text: "Once per round trip the sender compares its window with the bandwidth-delay product at the \
           minimum round-trip time: the difference waits in queues. If it is below alpha segments the \
           window grows by one, above beta it shrinks by one. With other Vegas flows there is no loss; with \
           flows that fill queues it starves.",
    source: "Brakmo and Peterson, TCP Vegas, IEEE JSAC 13(8), 1995; constants and form of Linux and ns-3",
    equations: "diff = cwnd (1 - base / RTT)\n\
                cwnd + 1 if diff < alpha, - 1 if diff > beta, once per round trip",
    validation: "Windows through named situations; alone on a link it holds 2 to 4 packets of queue (tests/tcp.rs).",
    series: &[
        Series::new("base_rtt_ns", "ns", "Minimum round-trip time that the flow has seen; 0: none yet."),
        Series::new("queued_segments", "segments", "diff: segments that wait in queues by its estimate."),
    ],
    ..SchemeDoc::NONE
};

/// The window after a loss.
const LOSSES: &[(&str, &str)] = &[
    ("half", "half of the bytes in flight, as NewReno (Linux)"),
    ("threshold", "the threshold, at most one segment below the window (ns-3.35)"),
];

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VegasParameters {
    pub alpha: u64,
    pub beta: u64,
    pub gamma: u64,
    pub halves: bool,
    /// A decision does not reduce the window below this number of segments.
    pub min: u64,
    /// diff is counted in whole segments, rounded up (ns-3.35).
    pub whole_segments: bool,
    pub growth: Growth,
}

impl WindowParameters for VegasParameters {
    type State = Vegas;
    const FOLLOWS_DELAY: bool = true;
    const DOC: SchemeDoc = DOC;

    /// Its queue is a few segments long, whatever the path: it meets no mark.
    fn queue_at_marks(&self) -> f64 {
        0.0
    }

    fn read(p: &mut Parameters, profile: Profile) -> VegasParameters {
        let alpha = p.integer(
            "alpha",
            2,
            (1, 1 << 20),
            "with fewer segments in queues the window grows by one (Linux: 2)",
        ) as u64;
        let beta = p.integer(
            "beta",
            4,
            (1, 1 << 20),
            "with more segments in queues the window shrinks by one (Linux: 4)",
        ) as u64;
        let help = "with more segments in queues slow start ends (Linux: 1)";
        let gamma = p.integer("gamma", 1, (0, 1 << 20), help) as u64;
        if beta < alpha {
            p.complain("beta", format!("expected at least alpha ({alpha}), found {beta}"));
        }
        let loss = p.choice("loss", profile.pick("half", "threshold"), LOSSES, "the window after a loss");
        let help = "minimum window in segments (Linux: 2; ns3-3.35: 1)";
        let min = p.integer("least_window", profile.pick(2, 1), (1, 1 << 20), help) as u64;
        let help = "the number of segments in queues is rounded up to whole segments (ns3-3.35: true)";
        let whole_segments = p.flag("whole_segments", profile.pick(false, true), help);
        VegasParameters {
            alpha,
            beta,
            gamma,
            halves: loss == "half",
            min,
            whole_segments,
            growth: Growth::read(p, profile),
        }
    }

    fn start(&self, _flow: &WindowContext) -> Vegas {
        Vegas {
            p: *self,
            reno: Reno::new(self.growth),
            base: Time::MAX,
            min: Time::MAX,
            samples: 0,
            round_end: 0,
            active: true,
            diff: 0.0,
        }
    }
}

/// State of one flow.
pub struct Vegas {
    p: VegasParameters,
    reno: Reno,
    /// The minimum RTT ever.
    base: Time,
    /// The minimum RTT of the round.
    min: Time,
    samples: u32,
    /// The round ends when this byte is acknowledged.
    round_end: u64,
    /// Active in the state open; otherwise the window grows as in NewReno.
    active: bool,
    /// Segments in queues, as last computed.
    diff: f64,
}

/// With fewer samples in a round, all may be delayed acknowledgements.
const FEWEST_SAMPLES: u32 = 3;

impl Vegas {
    /// The threshold after a reduction: one segment below the window, or the old threshold if that is lower.
    fn lowered(window: &CongestionWindow) -> u64 {
        window.ssthresh.min(window.cwnd.saturating_sub(window.mss)).max(2 * window.mss)
    }

    /// The decision of a round.
    fn decide(&mut self, ack: &Acked, window: &mut CongestionWindow) {
        let segments = window.segments();
        let exact = segments as f64 * (self.base.as_seconds() / self.min.as_seconds());
        let fits = exact as u64;
        let waiting = segments as f64 - if self.p.whole_segments { fits as f64 } else { exact };
        self.diff = waiting.max(0.0);
        if window.in_slow_start() {
            if self.diff > self.p.gamma as f64 {
                window.cwnd = segments.min(fits + 1).max(self.p.min) * window.mss;
                window.ssthresh = Vegas::lowered(window);
            } else {
                self.reno.slow_start(ack, window);
            }
        } else if self.diff > self.p.beta as f64 {
            window.cwnd = (segments - 1).max(self.p.min) * window.mss;
            window.ssthresh = Vegas::lowered(window);
        } else if self.diff < self.p.alpha as f64 {
            window.cwnd = (segments + 1) * window.mss;
        }
        window.ssthresh = window.ssthresh.max(window.cwnd * 3 / 4);
    }
}

impl WindowController for Vegas {
    #[inline]
    fn on_feedback(&mut self, ack: &Acked, _window: &mut CongestionWindow) {
        let Some(rtt) = ack.rtt.filter(|rtt| *rtt > Time::ZERO) else { return };
        self.base = self.base.min(rtt);
        self.min = self.min.min(rtt);
        self.samples += 1;
    }

    fn on_ack(&mut self, ack: &Acked, window: &mut CongestionWindow) {
        if !self.active {
            if ack.window_limited {
                self.reno.grow(ack, window);
            }
            return;
        }
        if ack.acknowledged < self.round_end {
            if window.in_slow_start() && ack.window_limited {
                self.reno.slow_start(ack, window);
            }
            return;
        }
        self.round_end = ack.cursor;
        if ack.window_limited {
            match self.samples < FEWEST_SAMPLES {
                true => self.reno.grow(ack, window),
                false => self.decide(ack, window),
            }
        }
        self.samples = 0;
        self.min = Time::MAX;
    }

    fn on_congestion(&mut self, congestion: &Congestion, window: &CongestionWindow) -> u64 {
        match self.p.halves || congestion.by == Signal::Mark {
            true => half(congestion.in_flight, window.mss),
            false => Vegas::lowered(window),
        }
    }

    fn on_state(&mut self, change: &Change, _window: &mut CongestionWindow) {
        self.active = change.to == State::Open;
        if self.active {
            self.round_end = change.cursor;
            self.samples = 0;
            self.min = Time::MAX;
        }
    }

    fn internals(&self, out: &mut Vec<(&'static str, f64)>) {
        let base = if self.base == Time::MAX { 0.0 } else { self.base.as_ns() };
        out.push(("base_rtt_ns", base));
        out.push(("queued_segments", self.diff));
    }
}
