//! OLIA: coupled growth that moves window to the best paths.
//!
//! ```text
//! w_r += b MSS [ (w_r / rtt_r^2) / sum(w_p / rtt_p)^2 + alpha_r / w_r ]      per b bytes acknowledged
//! l_r  = bytes between the last two losses of r, or since the last one: whichever is more
//! B    = paths with the greatest l^2 / rtt;  M = paths with the greatest window;  n = all paths
//! alpha_r = 1 / (n |B \ M|)   if r is in B \ M
//!         = -1 / (n |M|)      if r is in M, and B \ M is not empty
//!         = 0                 otherwise
//! ```
//!
//! The first part is the coupling, the second moves window from paths with large windows to better ones with
//! small windows.
//!
//! Source: Khalili, Gast, Popovic, Le Boudec, "MPTCP is not Pareto-optimal: performance issues and a possible
//! solution", CoNEXT 2012; draft-khalili-mptcp-congestion-control-05 §3.
//! Parameters: see [`OliaParameters::read`].

use super::super::newreno::{Growth, half};
use super::super::{
    Acked, Congestion, CongestionWindow, Profile, WindowContext, WindowController, WindowParameters,
};
use super::{Credit, Subflow, slow_start};
use crate::congestion::SchemeDoc;
use crate::doc::Series;
use crate::parameters::Parameters;

pub const DOC: SchemeDoc = SchemeDoc {
    name: "olia",
    title: "OLIA: couples subflows, and moves window from large subflows to better ones",
    text: "A coupled increase like LIA's, plus a term that moves window from the paths with the largest windows to \
           those that carry more data between losses than all others, if these are other paths. For multipath TCP \
           only.",
    source: "Khalili et al., CoNEXT 2012; draft-khalili-mptcp-congestion-control-05",
    equations: "w_r += b MSS [(w_r / rtt_r^2) / sum(w_p / rtt_p)^2 + alpha_r / w_r] per b bytes acknowledged\n\
                alpha_r = 1 / (n |B \\ M|) in B \\ M, -1 / (n |M|) in M if B \\ M is not empty, else 0",
    validation: "Sets and increments by hand; one subflow grows like Reno.",
    series: &[
        Series::new("alpha", "", "Alpha of the subflow, by which window moves between paths."),
        Series::new(
            "between_losses_bytes",
            "bytes",
            "Bytes between the last two losses, or since the last one: the larger number.",
        ),
    ],
    ..SchemeDoc::NONE
};

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OliaParameters {
    pub growth: Growth,
}

impl WindowParameters for OliaParameters {
    type State = Olia;
    const DOC: SchemeDoc = DOC;
    const COUPLES: bool = true;

    fn read(p: &mut Parameters, profile: Profile) -> OliaParameters {
        OliaParameters { growth: Growth::read(p, profile) }
    }

    fn start(&self, _flow: &WindowContext) -> Olia {
        Olia { growth: self.growth, shared: None, alpha: 0.0, since: 0, before: 0, credit: Credit::default() }
    }
}

/// State of one subflow.
pub struct Olia {
    growth: Growth,
    /// (w_r / rtt_r^2) / sum(w_p / rtt_p)^2 per byte; none: 1 / w_r, as for a single subflow.
    shared: Option<f64>,
    alpha: f64,
    /// Bytes acknowledged since the last loss, and between the two before.
    since: u64,
    before: u64,
    credit: Credit,
}

/// alpha of one subflow.
fn alpha(subflows: &[Subflow], own: usize) -> f64 {
    let quality = |s: &Subflow| s.between_losses as f64 * s.between_losses as f64 / s.rtt();
    let best = subflows.iter().map(quality).fold(0.0, f64::max);
    let largest = subflows.iter().map(|s| s.window).max().unwrap_or(0);
    let in_best = |s: &Subflow| quality(s) >= best;
    let in_largest = |s: &Subflow| s.window == largest;
    let better = subflows.iter().filter(|s| in_best(s) && !in_largest(s)).count();
    let large = subflows.iter().filter(|s| in_largest(s)).count();
    let n = subflows.len() as f64;
    let own = &subflows[own];
    match (in_best(own), in_largest(own)) {
        _ if better == 0 => 0.0,
        (true, false) => 1.0 / (n * better as f64),
        (_, true) => -1.0 / (n * large as f64),
        _ => 0.0,
    }
}

impl WindowController for Olia {
    fn couple(&mut self, subflows: &[Subflow], own: usize) {
        let Some(this) = subflows.get(own) else { return };
        let rates: f64 = subflows.iter().map(Subflow::rate).sum();
        self.shared = Some(this.rate() / this.rtt() / (rates * rates));
        self.alpha = alpha(subflows, own);
    }

    fn between_losses(&self) -> u64 {
        self.since.max(self.before)
    }

    fn on_feedback(&mut self, ack: &Acked, _window: &mut CongestionWindow) {
        self.since += ack.bytes;
    }

    fn on_ack(&mut self, ack: &Acked, window: &mut CongestionWindow) {
        if slow_start(self.growth, ack, window) || !ack.window_limited {
            return;
        }
        let (own, bytes) = (window.cwnd.max(1) as f64, ack.bytes as f64 * window.mss as f64);
        let each = self.shared.unwrap_or(1.0 / own) + self.alpha / own;
        self.credit.add(bytes * each, window);
    }

    fn on_congestion(&mut self, congestion: &Congestion, window: &CongestionWindow) -> u64 {
        (self.before, self.since) = (self.since, 0);
        half(congestion.in_flight, window.mss)
    }

    fn internals(&self, out: &mut Vec<(&'static str, f64)>) {
        out.extend([("alpha", self.alpha), ("between_losses_bytes", self.between_losses() as f64)]);
    }
}

#[cfg(test)]
mod tests;
