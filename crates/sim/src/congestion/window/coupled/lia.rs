//! LIA: subflows that together take at most what one TCP would take on the best of their paths.
//!
//! ```text
//! alpha = sum(w) max(w_i / rtt_i^2) / sum(w_i / rtt_i)^2
//! w_i  += min(alpha b MSS / sum(w), b MSS / w_i)      per b bytes acknowledged, in congestion avoidance
//! ```
//!
//! For n equal subflows alpha is 1 / n. Slow start, the cut at a loss and timeouts are Reno's, for each
//! subflow separately.
//!
//! Source: Raiciu, Handley, Wischik, RFC 6356 §3; Wischik et al., "Design, implementation and evaluation of
//! congestion control for multipath TCP", NSDI 2011.
//! Differs from the source: alpha is computed with every acknowledgement (RFC 6356 §4.1 allows once per
//! window).
//! Parameters: see [`LiaParameters::read`].

use super::super::newreno::{Growth, half};
use super::super::{
    Acked, Congestion, CongestionWindow, Profile, WindowContext, WindowController, WindowParameters,
};
use super::{Credit, Subflow, slow_start};
use crate::congestion::SchemeDoc;
use crate::doc::Series;
use crate::parameters::Parameters;

pub const DOC: SchemeDoc = SchemeDoc {
    name: "lia",
    title: "LIA: couples the subflows of a multipath connection, fair to one TCP on the best path",
    text: "Each subflow grows by its share of the growth of one TCP on the best path of the connection: \
           never faster than a TCP alone on its own path, and more slowly if other paths are less \
           congested. Losses halve the window of their subflow. For multipath TCP only.",
    source: "RFC 6356 (Raiciu, Handley, Wischik); Wischik et al., NSDI 2011",
    equations: "alpha = sum(w) max(w_i / rtt_i^2) / sum(w_i / rtt_i)^2\n\
                w_i += min(alpha b MSS / sum(w), b MSS / w_i) per b bytes acknowledged",
    validation: "alpha and growth by hand; n like subflows grow like one Reno; at a shared bottleneck no more than one Reno's share \
                 (tests/mptcp.rs).",
    series: &[Series::new(
        "alpha",
        "",
        "Alpha of the connection, as of the last acknowledgement of the subflow.",
    )],
    ..SchemeDoc::NONE
};

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LiaParameters {
    pub growth: Growth,
}

impl WindowParameters for LiaParameters {
    type State = Lia;
    const DOC: SchemeDoc = DOC;
    const COUPLES: bool = true;

    fn read(p: &mut Parameters, profile: Profile) -> LiaParameters {
        LiaParameters { growth: Growth::read(p, profile) }
    }

    fn start(&self, _flow: &WindowContext) -> Lia {
        Lia { growth: self.growth, alpha: 1.0, total: 0.0, credit: Credit::default() }
    }
}

/// State of one subflow.
pub struct Lia {
    growth: Growth,
    /// Of the connection, as of this subflow's last acknowledgement.
    alpha: f64,
    /// Bytes of all windows; 0: of this one alone.
    total: f64,
    credit: Credit,
}

/// RFC 6356 Eq. 2.
fn alpha(subflows: &[Subflow]) -> f64 {
    let total: f64 = subflows.iter().map(Subflow::window).sum();
    let best = subflows.iter().map(|s| s.rate() / s.rtt()).fold(0.0, f64::max);
    let rates: f64 = subflows.iter().map(Subflow::rate).sum();
    total * best / (rates * rates)
}

impl WindowController for Lia {
    fn couple(&mut self, subflows: &[Subflow], _own: usize) {
        self.alpha = alpha(subflows);
        self.total = subflows.iter().map(Subflow::window).sum();
    }

    fn on_ack(&mut self, ack: &Acked, window: &mut CongestionWindow) {
        if slow_start(self.growth, ack, window) || !ack.window_limited {
            return;
        }
        let (own, bytes) = (window.cwnd.max(1) as f64, ack.bytes as f64 * window.mss as f64);
        let coupled = self.alpha * bytes / self.total.max(own);
        self.credit.add(coupled.min(bytes / own), window);
    }

    fn on_congestion(&mut self, congestion: &Congestion, window: &CongestionWindow) -> u64 {
        half(congestion.in_flight, window.mss)
    }

    fn internals(&self, out: &mut Vec<(&'static str, f64)>) {
        out.push(("alpha", self.alpha));
    }
}

#[cfg(test)]
mod tests;
