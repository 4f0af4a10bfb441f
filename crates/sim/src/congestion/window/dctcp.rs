//! DCTCP as a window: the share of marked bytes sets the size of the cut.
//!
//! ```text
//! M     = bytes acknowledged with a mark / bytes acknowledged, per window of data
//! alpha = (1 - g) alpha + g M
//! cwnd  = cwnd (1 - alpha / 2)     with a mark, once per window of data; growth and losses as NewReno
//! ```
//!
//! Source: Bensley, Thaler, Balasubramanian, Eggert, Judd, RFC 8257 §3.3 (alpha), §3.4 (cut), §4.2 (g = 1/16;
//! alpha begins at 1); Alizadeh et al., "Data Center TCP", SIGCOMM 2010. Receivers echo every mark (`ecn =
//! "exact"`, RFC 8257 §3.2).
//! Parameters: see [`DctcpParameters::read`].

use super::newreno::{Growth, Reno, half};
use super::{
    Acked, Congestion, CongestionWindow, Profile, Signal, WindowContext, WindowController, WindowParameters,
};
use crate::congestion::SchemeDoc;
use crate::doc::Series;
use crate::parameters::Parameters;

pub const DOC: SchemeDoc = SchemeDoc {
    name: "dctcp",
    title: "DCTCP: cuts the window in proportion to the share of ECN marks",
    text: "Switches mark above one queue threshold, receivers echo every mark, and the sender keeps a moving average alpha of the \
           share of marked bytes. Once per window with a mark it cuts its window by alpha / 2; otherwise it grows, and meets \
           losses, like NewReno.",
    source: "RFC 8257 (Bensley, Thaler, Balasubramanian, Eggert, Judd); Alizadeh et al., SIGCOMM 2010",
    equations: "alpha = (1 - g) alpha + g M per window\n\
                cwnd = cwnd (1 - alpha / 2) with a mark, once per window",
    validation: "Hand-computed alpha and cuts; alone on a link with a step of marking (tests/tcp.rs).",
    series: &[Series::new(
        "alpha",
        "",
        "Moving average of the share of bytes that came with a mark, under TCP.",
    )],
    ..SchemeDoc::NONE
};

/// RFC 8257 §4.1: the threshold is above a seventh of the bandwidth-delay product.
pub const QUEUE_AT_MARKS: f64 = 1.0 / 7.0;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DctcpParameters {
    pub g: f64,
    pub initial_alpha: f64,
    pub growth: Growth,
}

impl WindowParameters for DctcpParameters {
    type State = Dctcp;
    const DOC: SchemeDoc = DOC;
    const NEEDS_MARKS: bool = true;

    fn queue_at_marks(&self) -> f64 {
        QUEUE_AT_MARKS
    }

    fn read(p: &mut Parameters, profile: Profile) -> DctcpParameters {
        let g = p.number("g", 1.0 / 16.0, (0.0, 1.0), "weight of a new share in alpha (RFC 8257: 1/16)");
        let help = "alpha before the first window (RFC 8257: 1)";
        let initial_alpha = p.number("initial_alpha", 1.0, (0.0, 1.0), help);
        DctcpParameters { g, initial_alpha, growth: Growth::read(p, profile) }
    }

    fn start(&self, _flow: &WindowContext) -> Dctcp {
        Dctcp {
            g: self.g,
            alpha: self.initial_alpha,
            reno: Reno::new(self.growth),
            acknowledged: 0,
            marked: 0,
            window_end: 0,
        }
    }
}

/// State of one flow.
pub struct Dctcp {
    g: f64,
    /// Moving average of the share of marked bytes; changes once per window of data.
    alpha: f64,
    reno: Reno,
    /// Bytes acknowledged in this window of data, and those of them with a mark.
    acknowledged: u64,
    marked: u64,
    /// The window of data ends when this byte is acknowledged.
    window_end: u64,
}

impl WindowController for Dctcp {
    fn on_feedback(&mut self, ack: &Acked, _window: &mut CongestionWindow) {
        self.acknowledged += ack.bytes;
        self.marked += if ack.marked { ack.bytes } else { 0 };
        if ack.acknowledged <= self.window_end {
            return;
        }
        self.window_end = ack.next;
        let share = self.marked as f64 / self.acknowledged.max(1) as f64;
        self.alpha = (1.0 - self.g) * self.alpha + self.g * share;
        (self.acknowledged, self.marked) = (0, 0);
    }

    fn on_ack(&mut self, ack: &Acked, window: &mut CongestionWindow) {
        if ack.window_limited {
            self.reno.grow(ack, window);
        }
    }

    fn on_congestion(&mut self, congestion: &Congestion, window: &CongestionWindow) -> u64 {
        if congestion.by == Signal::Mark {
            let cut = (window.cwnd as f64 * (1.0 - self.alpha / 2.0)) as u64;
            return cut.max(2 * window.mss);
        }
        half(congestion.in_flight, window.mss)
    }

    fn internals(&self, out: &mut Vec<(&'static str, f64)>) {
        out.push(("alpha", self.alpha));
    }
}

#[cfg(test)]
mod tests;
