//! BIC: after a loss the window returns to its previous value by binary search, and then probes beyond it.
//!
//! ```text
//! below Wmax   distance d = (Wmax - W) / B;  W += min(d, Smax) per round trip, slowly (over `smooth` round trips) near Wmax
//! above Wmax   first slowly, then by (W - Wmax) / (B - 1), then by Smax per round trip
//! loss         Wmax = W, or W (1 + beta) / 2 if W < the Wmax before (fast convergence);  ssthresh = beta W
//! low window   Reno below 14 segments
//! ```
//!
//! Source: Xu, Harfoush, Rhee, "Binary Increase Congestion Control (BIC) for Fast Long-Distance Networks",
//! INFOCOM 2004, with the constants and counts of Linux and ns-3: beta = 0.8, B = 4, Smax = 16, smooth part
//! 5, low window 14. Fast convergence: its §III, the middle of the search between the windows after and
//! before the cut; the same in Linux' tcp_bic.c; in ns-3.35 the window after the cut.
//! Differs from the source: growth in whole segments, one per `count` acknowledged (Linux, ns-3). In ns-3.35
//! an acknowledgement in slow start adds a segment even if it acknowledges less than one, and its other
//! segments count towards the next one if it reaches the threshold.
//! Parameters: see [`BicParameters::read`].

use super::newreno::{Growth, half};
use super::{
    Acked, Change, Congestion, CongestionWindow, Profile, State, WindowContext, WindowController,
    WindowParameters, to_outlast,
};
use crate::congestion::SchemeDoc;
use crate::doc::Series;
use crate::parameters::Parameters;

pub const DOC: SchemeDoc = SchemeDoc {
    name: "bic",
    title: "BIC: returns to the window of the last loss by binary search",
    text: "After a loss the window is cut to 0.8. Every round trip closes half of the distance (a quarter \
           in implementations) to the window at the loss; beyond it the window grows faster and faster. \
           Linux' default before Cubic.",
    source: "Xu, Harfoush, Rhee, BIC, INFOCOM 2004; constants of Linux and ns-3",
    equations: "W += min((Wmax - W) / B, Smax) per round trip below Wmax\n\
                Wmax = W or W (1 + beta) / 2, ssthresh = beta W at a loss",
    validation: "Hand-computed counts and windows through named situations (congestion/window); growth by binary search over a path \
                 (tests/laws/windows.rs).",
    series: &[Series::new(
        "w_max_segments",
        "segments",
        "Window to return to: that of the last loss, or less by fast convergence; 0: none.",
    )],
    ..SchemeDoc::NONE
};

/// End of the search after a loss below the last Wmax.
const CONVERGENCES: &[(&str, &str)] = &[
    (
        "middle",
        "the mean of the windows before and after the cut: (1 + beta) / 2 of the window (Xu et al., INFOCOM \
         2004, §III; Linux)",
    ),
    ("threshold", "the window after the cut: beta of the window (ns-3.35)"),
];

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BicParameters {
    pub beta: f64,
    pub fast_convergence: bool,
    /// With fast convergence: Wmax as a share of the window at the loss.
    pub converged: f64,
    /// Maximum growth in segments per round trip.
    pub max_increment: u64,
    pub low_window: u64,
    pub smooth: u64,
    /// Divisor of the distance that is closed per round trip.
    pub search: u64,
    /// Before the first loss: maximum number of acknowledged segments per added segment.
    pub clamp: u64,
    pub growth: Growth,
    /// A segment is added only when more than `count` were acknowledged, and the count restarts at 0
    /// (ns-3.35).
    pub strict: bool,
    /// The threshold is a whole number of segments (Linux).
    pub whole_threshold: bool,
    /// A timeout resets Wmax (Linux).
    pub forgets: bool,
}

impl WindowParameters for BicParameters {
    type State = Bic;
    const DOC: SchemeDoc = DOC;

    fn queue_at_marks(&self) -> f64 {
        to_outlast(self.beta)
    }

    fn read(p: &mut Parameters, profile: Profile) -> BicParameters {
        let whole =
            |p: &mut Parameters, key, default, help| p.integer(key, default, (1, 1 << 20), help) as u64;
        let beta =
            p.number("beta", 0.8, (0.01, 0.99), "factor on the window after a loss (Linux, ns-3: 0.8)");
        let help = "after a loss below the last Wmax, Wmax is set below W, as given by converges_to, so \
                    that other flows can grow";
        let fast_convergence = p.flag("fast_convergence", true, help);
        let help = "with fast_convergence: Wmax after a loss below the last one";
        let converged =
            match p.choice("converges_to", profile.pick("middle", "threshold"), CONVERGENCES, help) {
                "threshold" => beta,
                _ => (1.0 + beta) / 2.0,
            };
        let help = "maximum growth of the window per round trip, in segments (16)";
        let max_increment = whole(p, "max_increment", 16, help);
        let low_window =
            whole(p, "low_window", 14, "window in segments below which it grows like Reno's (14)");
        let smooth = whole(p, "smooth_part", 5, "round trips for the last segment before Wmax (5)");
        let search =
            whole(p, "binary_search", 4, "divisor of the distance to Wmax that is closed per round trip (4)");
        let clamp = whole(
            p,
            "clamp",
            20,
            "before the first loss, the maximum number of acknowledged segments per \
                                   added segment (20)",
        );
        let help = "a segment is added when more than the count were acknowledged, and the count restarts \
                    at 0 (ns3-3.35: true)";
        let strict = p.flag("strict_count", profile.pick(false, true), help);
        let help = "the threshold is rounded down to whole segments, and is half of the window below \
                    low_window; false: it is in bytes, and half of the bytes in flight (ns3-3.35: false)";
        let whole_threshold = p.flag("whole_threshold", profile.pick(true, false), help);
        let help = "a timeout resets Wmax and the counts (Linux; ns3-3.35: false)";
        let forgets = p.flag("forgets", profile.pick(true, false), help);
        let growth = Growth::read(p, profile);
        BicParameters {
            beta,
            fast_convergence,
            converged,
            max_increment,
            low_window,
            smooth,
            search: search.max(2),
            clamp,
            growth,
            strict,
            whole_threshold,
            forgets,
        }
    }

    fn start(&self, _flow: &WindowContext) -> Bic {
        Bic { p: *self, w_max: 0, counted: 0, grown: 0.0 }
    }
}

/// State of one flow.
pub struct Bic {
    p: BicParameters,
    /// Window at the last loss, in segments; 0: there was none.
    w_max: u64,
    /// With `strict`: segments acknowledged since the window grew.
    counted: u32,
    /// Otherwise the fraction of a segment by which the window has yet to grow.
    grown: f64,
}

impl Bic {
    /// Segments to be acknowledged per added segment.
    fn count(&self, window: u64) -> u64 {
        let BicParameters { max_increment, low_window, smooth, search, clamp, .. } = self.p;
        let count = if window < low_window {
            window
        } else if window < self.w_max {
            let distance = (self.w_max - window) / search;
            match distance {
                far if far > max_increment => window / max_increment,
                0 | 1 => window * smooth / search,
                near => window / near,
            }
        } else if window < self.w_max + search {
            window * smooth / search
        } else if window < self.w_max + max_increment * (search - 1) {
            window * (search - 1) / (window - self.w_max)
        } else {
            window / max_increment
        };
        let count = if self.w_max == 0 { count.min(clamp) } else { count };
        count.max(1)
    }
}

impl WindowController for Bic {
    fn on_ack(&mut self, ack: &Acked, window: &mut CongestionWindow) {
        if !ack.window_limited {
            return;
        }
        let mut segments = ack.segments as u32;
        if window.in_slow_start() {
            if !self.p.strict {
                return self.p.growth.slow_start(ack, window);
            }
            window.cwnd += window.mss;
            // In 32 bits: zero minus one is a large number.
            segments = segments.wrapping_sub(1);
            if window.in_slow_start() {
                return;
            }
        }
        if segments == 0 {
            return;
        }
        let count = self.count(window.segments()) as u32;
        if self.p.strict {
            self.counted = self.counted.wrapping_add(segments);
            if self.counted > count {
                window.cwnd += window.mss;
                self.counted = 0;
            }
            return;
        }
        // Bytes acknowledged while a segment cost more count less.
        self.grown += f64::from(segments) / f64::from(count);
        if self.grown >= 1.0 {
            window.cwnd += window.mss;
            self.grown -= 1.0;
        }
    }

    fn on_congestion(&mut self, congestion: &Congestion, window: &CongestionWindow) -> u64 {
        let segments = window.segments();
        let kept = (segments as f64 * self.p.beta) as u64;
        let converges = segments < self.w_max && self.p.fast_convergence;
        self.w_max = if converges { (segments as f64 * self.p.converged) as u64 } else { segments };
        // Below the low window half, as in Reno.
        let low = segments < self.p.low_window;
        if self.p.whole_threshold {
            let threshold = if low { segments / 2 } else { kept };
            return threshold.max(2) * window.mss;
        }
        match low {
            true => half(congestion.in_flight, window.mss),
            false => ((segments as f64 * self.p.beta).max(2.0) * window.mss as f64) as u64,
        }
    }

    fn on_state(&mut self, change: &Change, _window: &mut CongestionWindow) {
        if change.to == State::Loss && self.p.forgets {
            self.w_max = 0;
            self.grown = 0.0;
        }
    }

    fn internals(&self, out: &mut Vec<(&'static str, f64)>) {
        out.push(("w_max_segments", self.w_max as f64));
    }
}

#[cfg(test)]
mod tests;
