//! BALIA: coupled growth with a balance between fairness to TCP and responsiveness.
//!
//! ```text
//! x_r  = w_r / rtt_r,   a_r = max(x) / x_r
//! w_r += b MSS [x_r / (rtt_r sum(x)^2)] [(1 + a_r) / 2] [(4 + a_r) / 5]      per b bytes acknowledged
//! w_r -= w_r / 2 min(a_r, 1.5)                                               at a loss
//! ```
//!
//! Source: Peng, Walid, Hwang, Low, "Multipath TCP: analysis, design, and implementation", IEEE/ACM
//! Transactions on Networking 24(1), 2016; draft-walid-mptcp-congestion-control-04 §3.
//! Parameters: see [`BaliaParameters::read`].

use super::super::newreno::Growth;
use super::super::{
    Acked, Congestion, CongestionWindow, Profile, WindowContext, WindowController, WindowParameters,
};
use super::{Credit, Subflow, slow_start};
use crate::congestion::SchemeDoc;
use crate::doc::Series;
use crate::parameters::Parameters;

pub const DOC: SchemeDoc = SchemeDoc {
    name: "balia",
    title: "BALIA: couples subflows, with a balance between fairness and responsiveness",
    text: "The coupled increase and the cut are larger for subflows that are slower than the connection's \
           fastest one. For multipath TCP only.",
    source: "Peng, Walid, Hwang, Low, ToN 2016; draft-walid-mptcp-congestion-control-04",
    equations: "w_r += b MSS x_r / (rtt_r sum(x)^2) (1 + a_r) / 2 (4 + a_r) / 5, a_r = max(x) / x_r\n\
                w_r -= w_r / 2 min(a_r, 1.5) at a loss",
    validation: "Increments and cuts by hand; one subflow grows and is cut like Reno.",
    series: &[Series::new("a", "", "Rate of the connection's fastest subflow over that of this one.")],
    ..SchemeDoc::NONE
};

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BaliaParameters {
    pub growth: Growth,
}

impl WindowParameters for BaliaParameters {
    type State = Balia;
    const DOC: SchemeDoc = DOC;
    const COUPLES: bool = true;

    fn read(p: &mut Parameters, profile: Profile) -> BaliaParameters {
        BaliaParameters { growth: Growth::read(p, profile) }
    }

    fn start(&self, _flow: &WindowContext) -> Balia {
        Balia { growth: self.growth, shared: None, a: 1.0, credit: Credit::default() }
    }
}

/// State of one subflow.
pub struct Balia {
    growth: Growth,
    /// x_r / (rtt_r sum(x)^2) per byte; none: 1 / w_r, as for a single subflow.
    shared: Option<f64>,
    /// The fastest subflow's rate over that of this one.
    a: f64,
    credit: Credit,
}

impl WindowController for Balia {
    fn couple(&mut self, subflows: &[Subflow], own: usize) {
        let Some(this) = subflows.get(own) else { return };
        let rates: f64 = subflows.iter().map(Subflow::rate).sum();
        let fastest = subflows.iter().map(Subflow::rate).fold(0.0, f64::max);
        self.shared = Some(this.rate() / (this.rtt() * rates * rates));
        self.a = fastest / this.rate();
    }

    fn on_ack(&mut self, ack: &Acked, window: &mut CongestionWindow) {
        if slow_start(self.growth, ack, window) || !ack.window_limited {
            return;
        }
        let (own, bytes) = (window.cwnd.max(1) as f64, ack.bytes as f64 * window.mss as f64);
        let each = self.shared.unwrap_or(1.0 / own) * (1.0 + self.a) / 2.0 * (4.0 + self.a) / 5.0;
        self.credit.add(bytes * each, window);
    }

    fn on_congestion(&mut self, congestion: &Congestion, window: &CongestionWindow) -> u64 {
        let left = congestion.in_flight as f64 * (1.0 - self.a.min(1.5) / 2.0);
        (left as u64).max(2 * window.mss)
    }

    fn internals(&self, out: &mut Vec<(&'static str, f64)>) {
        out.push(("a", self.a));
    }
}

#[cfg(test)]
mod tests;
