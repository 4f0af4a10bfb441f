//! Cubic: after a loss the window returns to its previous value as a cubic function of time, and continues
//! from there.
//!
//! ```text
//! W(t)    = C (t - K)^3 + Wmax              segments; t since the epoch began, s
//! K       = cbrt((Wmax - W0) / C)           W0: window when the epoch began
//! cwnd   += MSS (W(t + RTT) - cwnd) / cwnd  per acknowledged segment; at the most one segment for two
//! Reno    W_est += alpha acked / cwnd,      alpha = 3 (1 - beta) / (1 + beta); the window is at least W_est
//! loss    Wmax = W, or W (1 + beta) / 2 if W < the Wmax before (fast convergence);  ssthresh = beta W
//! ```
//!
//! States: an epoch begins with the first growth after a loss, and ends with the next loss, or with a slow
//! start after idle time. Time in which the sender does not use its window is not part of it: the start of
//! the epoch is moved by that time (§5.8).
//!
//! Source: Xu, Ha, Rhee, Goel, Eggert, RFC 9438 §4, §5.8; HyStart as in hystart.rs. C = 0.4, beta = 0.7
//! (§4.6, §5.1).
//! Differs from the source: growth in whole segments, one per `count` acknowledged, as in Linux and ns-3. The
//! implementation of ns-3.35 (keys below) has no Reno-friendly region and uses whole segments.
//! Validated by: mean windows under random loss against a Monte Carlo computation of the law
//! (tests/laws/windows.rs).
//! Parameters: see [`CubicParameters::read`].

use super::hystart::{Hystart, HystartParameters};
use super::newreno::Growth;
use super::{
    Acked, Change, Congestion, CongestionWindow, Profile, State, WindowContext, WindowController,
    WindowParameters, to_outlast,
};
use crate::congestion::SchemeDoc;
use crate::doc::Series;
use crate::parameters::Parameters;
use crate::units::Time;

pub const DOC: SchemeDoc = SchemeDoc {
    name: "cubic",
    title: "Cubic: the window is a cubic function of time around the window of the last loss",
    text: "After a loss the window is cut to 0.7 and grows as a cubic function: fast, then slowly around \
           the window of the loss, then faster again. Growth depends on time, not on the round-trip time. \
           HyStart ends slow start before the queue overflows. The default of Linux, Windows and macOS.",
    source: "RFC 9438 (Xu, Ha, Rhee, Goel, Eggert); HyStart: Ha and Rhee, Computer Networks 55(9), 2011",
    equations: "W(t) = C (t - K)^3 + Wmax, K = cbrt((Wmax - W0) / C)\n\
                W_est += 3 (1 - beta) / (1 + beta) acked / cwnd\n\
                ssthresh = beta W, Wmax = W or W (1 + beta) / 2 at a loss",
    validation: "Windows through named situations; the cubic and K against the formula (tests/tcp.rs); mean windows under random \
                 loss against the law's, within 5 % (tests/laws/windows.rs); per-flow goodput of the Cebinae authors' runs under \
                 profile ns3-3.35 (docs/schemes/tcp.md).",
    series: &[
        Series::new(
            "w_max_segments",
            "segments",
            "Window to return to: that of the last loss, or less by fast convergence; 0: none.",
        ),
        Series::new("k_seconds", "s", "K: time from the start of the epoch to its flat part."),
    ],
    ..SchemeDoc::NONE
};

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CubicParameters {
    pub c: f64,
    pub beta: f64,
    pub fast_convergence: bool,
    pub reno_friendly: bool,
    /// The cubic's distance from Wmax is rounded down to whole segments.
    pub whole_segments: bool,
    /// Samples are ignored for this time after the start of an epoch.
    pub settle: Time,
    /// Without a window of a loss to return to: maximum number of acknowledged segments per added segment; 0: no such rule.
    pub clamp: u64,
    /// Growth in slow start.
    pub growth: Growth,
    pub hystart: HystartParameters,
}

impl WindowParameters for CubicParameters {
    type State = Cubic;
    const DOC: SchemeDoc = DOC;

    fn queue_at_marks(&self) -> f64 {
        to_outlast(self.beta)
    }

    /// RFC 9438 §5.1, and Reno's where the law keeps up with it.
    fn window_at_loss(&self, loss: f64, round_trip: Time) -> Option<f64> {
        let steepness = self.c * (3.0 + self.beta) / (4.0 * (1.0 - self.beta));
        let cubic = (steepness * (round_trip.as_seconds() / loss).powi(3)).sqrt().sqrt();
        Some(if self.reno_friendly { cubic.max((1.5 / loss).sqrt()) } else { cubic })
    }

    fn read(p: &mut Parameters, profile: Profile) -> CubicParameters {
        let help = "C: how steep the cubic is, in segments per s^3 (RFC 9438: 0.4)";
        let c = p.number("c", 0.4, (1e-6, 1e6), help);
        let help = "factor on the window after a loss (RFC 9438: 0.7)";
        let beta = p.number("beta", 0.7, (0.01, 0.99), help);
        let help = "after a loss below the last Wmax, Wmax = W (1 + beta) / 2, so that other flows can grow (RFC \
             9438 §4.7)";
        let fast_convergence = p.flag("fast_convergence", true, help);
        let help = "the window is at least what Reno's would be (RFC 9438 §4.3; ns3-3.35: false)";
        let reno_friendly = p.flag("reno_friendly", profile.pick(true, false), help);
        let help = "the distance from Wmax is rounded down to whole segments (ns3-3.35: true)";
        let whole_segments = p.flag("whole_segments", profile.pick(false, true), help);
        let help = "time after the start of an epoch in which RTTs are ignored (ns3-3.35: 10 ms)";
        let settle = p.time("settle", Time::from_ms(profile.pick(0, 10)), help);
        let help = "until the first loss, and from a timeout to the next loss, the maximum number of acknowledged segments per \
                    added segment (Linux, ns-3.35: 20)";
        let clamp = p.integer("clamp", 20, (0, 1 << 20), help) as u64;
        let help =
            "segments that one acknowledgement may add in slow start (RFC 3465: 2; ns3-3.35: no limit)";
        let limit = p.integer("slow_start_limit", profile.pick(2, 1 << 20), (1, 1 << 20), help) as u64;
        CubicParameters {
            c,
            beta,
            fast_convergence,
            reno_friendly,
            whole_segments,
            settle,
            clamp,
            growth: Growth { by_bytes: true, limit },
            hystart: HystartParameters::read(p, profile),
        }
    }

    fn start(&self, _flow: &WindowContext) -> Cubic {
        Cubic {
            p: *self,
            hystart: Hystart::new(self.hystart),
            epoch: None,
            counted_until: Time::ZERO,
            w_max: 0.0,
            k: 0.0,
            origin: 0.0,
            w_est: 0.0,
            min_rtt: None,
            counted: 0.0,
            ssthresh_prior: 0,
        }
    }
}

/// State of one flow.
pub struct Cubic {
    p: CubicParameters,
    hystart: Hystart,
    /// Start of the epoch; none between a loss and the first growth after it.
    epoch: Option<Time>,
    /// Last time at which the sender used its window, or for which the epoch has been moved.
    counted_until: Time,
    /// Window at the last loss, in segments; 0: there was none.
    w_max: f64,
    /// Time in s at which the cubic is flat.
    k: f64,
    /// Window at which it is flat, in segments.
    origin: f64,
    /// Reno's window, in segments.
    w_est: f64,
    min_rtt: Option<Time>,
    /// With whole segments: segments acknowledged since the window grew. Otherwise the fraction of a segment
    /// by which it has yet to grow.
    counted: f64,
    ssthresh_prior: u64,
}

impl Cubic {
    /// The sender did not use its window between the last counted time and `now` (RFC 9438 §5.8).
    fn pass_over(&mut self, now: Time) {
        let unused = now.saturating_sub(self.counted_until);
        self.epoch = self.epoch.map(|epoch| epoch + unused);
        self.counted_until = now;
    }

    fn begin_epoch(&mut self, now: Time, segments: f64) {
        self.epoch = Some(now);
        self.w_est = segments;
        if self.w_max <= segments {
            (self.k, self.origin) = (0.0, segments);
        } else {
            self.k = ((self.w_max - segments) / self.p.c).powf(1.0 / 3.0);
            self.origin = self.w_max;
        }
    }

    /// The cubic at a time since the start of the epoch, in segments.
    fn target(&self, seconds: f64) -> f64 {
        let ahead = seconds - self.k;
        let distance = self.p.c * ahead.abs().powf(3.0);
        self.origin + if self.p.whole_segments { distance.trunc() } else { distance }.copysign(ahead)
    }

    /// Segments to be acknowledged per added segment.
    fn count(&mut self, ack: &Acked, window: &CongestionWindow) -> f64 {
        let segments = match self.p.whole_segments {
            true => window.segments() as f64,
            false => window.cwnd as f64 / window.mss as f64,
        };
        if self.epoch.is_none() {
            self.begin_epoch(ack.now, segments);
        }
        let since = ack.now - self.epoch.unwrap_or(ack.now);
        let ahead = self.min_rtt.unwrap_or(Time::ZERO);
        let target = self.target((since + ahead).as_seconds());
        let count = match target > segments {
            true => segments / (target - segments),
            false => 100.0 * segments,
        };
        let count = if self.p.whole_segments { count.trunc() } else { count };
        let clamped = self.w_max == 0.0 && self.p.clamp > 0;
        let count = if clamped { count.min(self.p.clamp as f64) } else { count };
        let friendly = if self.p.reno_friendly { self.reno(ack, window, segments) } else { f64::INFINITY };
        // RFC 9438 §4.2: at most half of the window per round trip.
        count.min(friendly).max(2.0)
    }

    /// Whether the window grows after `segments` acknowledged, with one added segment per `count`.
    fn grows(&mut self, segments: u64, count: f64) -> bool {
        // Segments acknowledged while an added one cost more count less: a fraction of a segment is stored,
        // not a number of segments.
        let (gained, price) = match self.p.whole_segments {
            true => (segments as f64, count),
            false => (segments as f64 / count, 1.0),
        };
        self.counted += gained;
        let grows = self.counted >= price;
        self.counted -= if grows { price } else { 0.0 };
        grows
    }

    /// The same for Reno's window, if that is larger (RFC 9438 §4.3).
    fn reno(&mut self, ack: &Acked, window: &CongestionWindow, segments: f64) -> f64 {
        // Once it has the window of the last loss, Reno's grows by one segment per round trip as usual.
        let alpha = match self.w_est * window.mss as f64 >= self.ssthresh_prior as f64 {
            true => 1.0,
            false => 3.0 * (1.0 - self.p.beta) / (1.0 + self.p.beta),
        };
        self.w_est += alpha * ack.bytes as f64 / window.cwnd as f64;
        match self.w_est > segments {
            true if self.p.whole_segments => (segments / (self.w_est - segments)).trunc(),
            true => segments / (self.w_est - segments),
            false => f64::INFINITY,
        }
    }
}

impl WindowController for Cubic {
    fn on_feedback(&mut self, ack: &Acked, window: &mut CongestionWindow) {
        let Some(rtt) = ack.rtt else { return };
        if self.epoch.is_some_and(|epoch| ack.now - epoch < self.p.settle) {
            return;
        }
        let min = self.min_rtt.map_or(rtt, |min| min.min(rtt));
        self.min_rtt = Some(min);
        self.hystart.on_rtt(ack, rtt, min, window);
    }

    fn on_ack(&mut self, ack: &Acked, window: &mut CongestionWindow) {
        if !ack.window_limited {
            return self.pass_over(ack.now);
        }
        self.counted_until = ack.now;
        if window.in_slow_start() {
            self.epoch = None;
            self.hystart.on_slow_start(ack);
            return self.p.growth.slow_start(ack, window);
        }
        if ack.segments == 0 {
            return;
        }
        let count = self.count(ack, window);
        if self.grows(ack.segments, count) {
            window.cwnd += window.mss;
        }
    }

    fn on_resume(&mut self, now: Time) {
        self.pass_over(now);
    }

    fn on_congestion(&mut self, _congestion: &Congestion, window: &CongestionWindow) -> u64 {
        let segments = match self.p.whole_segments {
            true => window.segments() as f64,
            false => window.cwnd as f64 / window.mss as f64,
        };
        let converges = self.p.fast_convergence && segments < self.w_max;
        let w_max = if converges { segments * (1.0 + self.p.beta) / 2.0 } else { segments };
        self.w_max = if self.p.whole_segments { w_max.trunc() } else { w_max };
        self.ssthresh_prior = window.cwnd;
        self.epoch = None;
        let kept = segments * self.p.beta;
        let kept = if self.p.whole_segments { kept.trunc() } else { kept };
        (kept.max(2.0) * window.mss as f64) as u64
    }

    fn on_state(&mut self, change: &Change, _window: &mut CongestionWindow) {
        if change.to == State::Loss {
            (self.w_max, self.k, self.origin) = (0.0, 0.0, 0.0);
            self.min_rtt = None;
            self.hystart.reset(change.now, change.next);
        }
    }

    fn internals(&self, out: &mut Vec<(&'static str, f64)>) {
        out.push(("w_max_segments", self.w_max));
        out.push(("k_seconds", self.k));
    }
}

#[cfg(test)]
mod tests;
