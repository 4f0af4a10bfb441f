//! NewReno: one segment more per round trip, half the window at a loss.
//!
//! ```text
//! slow start  cwnd += min(acked, L MSS)            while cwnd < ssthresh        (RFC 5681 §3.1, RFC 3465)
//! avoidance   cwnd += MSS per cwnd bytes acked                                  (RFC 5681 Eq. 3 by bytes, RFC 3465 §2.1)
//! congestion  ssthresh = max(flight / 2, 2 MSS)                                 (RFC 5681 Eq. 4)
//! ```
//!
//! Source: Allman, Paxson, Blanton, RFC 5681; Allman, RFC 3465 (byte counting); recovery is the transport's
//! (RFC 6582, RFC 6675, RFC 6937).
//! Differs from the source with `count = "acks"`: every acknowledgement adds one segment in slow start and
//! MSS^2 / cwnd bytes after it, whatever it acknowledges (RFC 5681 Eq. 2, 3 verbatim; ns-3.35).
//! Parameters: see [`NewRenoParameters::read`].

use super::{
    Acked, Congestion, CongestionWindow, Profile, WindowContext, WindowController, WindowParameters,
};
use crate::congestion::SchemeDoc;
use crate::parameters::Parameters;

pub const DOC: SchemeDoc = SchemeDoc {
    name: "newreno",
    title: "NewReno: one segment more per round trip, half the window at a loss",
    text: "TCP's standard law: slow start up to a threshold, then one segment more per round trip, and half \
           the window when a packet was lost. After a timeout it restarts with one segment.",
    source: "RFC 5681 (Allman, Paxson, Blanton), RFC 3465, RFC 6582",
    equations: "cwnd += min(acked, L MSS) in slow start\n\
                cwnd += MSS per cwnd bytes acknowledged otherwise\n\
                ssthresh = max(flight / 2, 2 MSS) at a loss",
    validation: "Hand-computed windows through slow start, one loss, many losses and limits of the application; Mathis' law \
                 within 10 % under random loss (tests/tcp.rs).",
    ..SchemeDoc::NONE
};

/// The growth per acknowledgement.
pub const COUNTS: &[(&str, &str)] = &[
    ("bytes", "the acknowledged bytes (RFC 3465)"),
    ("acks", "one segment in slow start, MSS^2 / cwnd bytes after it (RFC 5681; ns-3.35)"),
];

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NewRenoParameters {
    pub growth: Growth,
}

/// How Reno's window grows; other laws use it, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Growth {
    pub by_bytes: bool,
    /// L of RFC 3465: segments that one acknowledgement may add in slow start.
    pub limit: u64,
}

impl Growth {
    pub fn read(p: &mut Parameters, profile: Profile) -> Growth {
        let help = "growth of the window per acknowledgement";
        let count = p.choice("count", profile.pick("bytes", "acks"), COUNTS, help);
        let help =
            "with count = \"bytes\": segments that one acknowledgement may add in slow start (RFC 3465: 2)";
        let limit = p.integer("slow_start_limit", 2, (1, 1 << 20), help) as u64;
        Growth { by_bytes: count == "bytes", limit }
    }

    /// Slow start: the window after an acknowledgement, which may exceed the threshold.
    pub fn slow_start(self, ack: &Acked, window: &mut CongestionWindow) {
        window.cwnd += match self.by_bytes {
            true => ack.bytes.min(self.limit * window.mss),
            false if ack.segments > 0 => window.mss,
            false => 0,
        };
    }
}

/// Reno's growth, with the bytes acknowledged towards the next segment.
#[derive(Debug, Clone, Copy)]
pub struct Reno {
    growth: Growth,
    /// Bytes acknowledged in avoidance since the window grew last.
    counted: u64,
}

impl Reno {
    pub fn new(growth: Growth) -> Reno {
        Reno { growth, counted: 0 }
    }

    pub fn grow(&mut self, ack: &Acked, window: &mut CongestionWindow) {
        if !window.in_slow_start() {
            return self.avoid(ack, window);
        }
        self.growth.slow_start(ack, window);
        // With `acks`, further segments of an acknowledgement that reaches the threshold count in avoidance.
        if !self.growth.by_bytes && ack.segments > 1 && !window.in_slow_start() {
            self.avoid(ack, window);
        }
    }

    /// Congestion avoidance.
    pub fn avoid(&mut self, ack: &Acked, window: &mut CongestionWindow) {
        if !self.growth.by_bytes {
            if ack.segments > 0 {
                window.cwnd += (window.mss * window.mss / window.cwnd.max(1)).max(1);
            }
            return;
        }
        self.counted += ack.bytes;
        if self.counted >= window.cwnd {
            self.counted -= window.cwnd;
            window.cwnd += window.mss;
        }
    }

    pub fn slow_start(&mut self, ack: &Acked, window: &mut CongestionWindow) {
        self.growth.slow_start(ack, window);
    }
}

/// RFC 5681 Eq. 4.
pub fn half(in_flight: u64, mss: u64) -> u64 {
    (in_flight / 2).max(2 * mss)
}

impl WindowParameters for NewRenoParameters {
    type State = NewReno;
    const DOC: SchemeDoc = DOC;

    fn read(p: &mut Parameters, profile: Profile) -> NewRenoParameters {
        NewRenoParameters { growth: Growth::read(p, profile) }
    }

    fn start(&self, _flow: &WindowContext) -> NewReno {
        NewReno { reno: Reno::new(self.growth) }
    }
}

/// State of one flow.
pub struct NewReno {
    reno: Reno,
}

impl WindowController for NewReno {
    #[inline]
    fn on_ack(&mut self, ack: &Acked, window: &mut CongestionWindow) {
        if ack.window_limited {
            self.reno.grow(ack, window);
        }
    }

    fn on_congestion(&mut self, congestion: &Congestion, window: &CongestionWindow) -> u64 {
        half(congestion.in_flight, window.mss)
    }
}
