//! TIMELY: the gradient of the round-trip time determines the rate.
//!
//! Once per RTT, with `diff` the moving average of the change of the rtt:
//!
//! ```text
//! diff = (1 - a) diff + a (rtt - rtt before)          gradient = diff / minRTT
//! rtt < T_low                  increase
//! rtt > T_high                 rate = rate (1 - beta (1 - T_high / rtt))
//! else gradient <= 0           increase
//! else                         rate = rate max(0, 1 - beta gradient)
//! increase: + R_AI, after five in a row + R_HAI
//! ```
//!
//! Source: Mittal et al., "TIMELY: RTT-based Congestion Control for the Datacenter", SIGCOMM 2015, Alg. 1; as
//! in the HPCC authors' simulator.
//! Differs from the source: hyperactive increase has a step of its own (by default five times R_AI, which is
//! the same). The rtt is in whole ns, from the start of transmission of the packet.
//! Parameters: see [`TimelyParameters::read`].

use super::rates::{LeastRate, RateRange, in_proportion, positive_time, times, window};
use super::{
    Ack, CongestionController, Control, ControllerParameters, FlowContext, Needs, SchemeDoc, Window,
};
use crate::doc::Series;
use crate::parameters::Parameters;
use crate::units::{Rate, Time};

pub const DOC: SchemeDoc = SchemeDoc {
    name: "timely",
    title: "TIMELY: rate from the gradient of the round-trip time",
    text: "The sender measures the RTT of packets by timestamps and evaluates its change once per RTT. If \
           the RTT falls or is low, the rate grows; if it rises, the rate is cut in proportion to the \
           gradient; above T_high, in proportion to the excess. Switches need no support.",
    source: "Mittal et al., TIMELY: RTT-based Congestion Control for the Datacenter, SIGCOMM 2015, Alg. 1; the HPCC authors' simulator",
    equations: "diff = (1 - a) diff + a (rtt - rtt before); gradient = diff / minRTT\n\
                rtt < T_low or gradient <= 0: rate + R_AI (R_HAI after five in a row)\n\
                rtt > T_high: rate (1 - beta (1 - T_high / rtt))\n\
                else rate max(0, 1 - beta gradient)",
    validation: "Completion times equal those of the HPCC authors' simulator to the nanosecond, with and without a window, on \
                 a 16-to-1 incast, four flows that join a bottleneck, web search on a 32-host pod, and the incast with PFC \
                 acting (tests/reference.rs). The branch above T_high is checked by hand.",
    series: &[Series::new("rtt_diff_ns", "ns", "Moving average of the change of the round-trip time.")],
    ..SchemeDoc::NONE
};

/// Increases in a row after which the step becomes R_HAI (TIMELY: hyperactive increase).
const INCREASES_BEFORE_HYPER: u32 = 5;
/// Published steps are per 10 Gb/s of line rate.
const STEP_PER: Rate = Rate::from_gbps(10);

/// Parameters of TIMELY.
#[derive(Debug, Clone, PartialEq)]
pub struct TimelyParameters {
    /// Weight of the newest change of the rtt.
    pub alpha: f64,
    /// Depth of a cut.
    pub beta: f64,
    /// Below this RTT the rate always grows.
    pub t_low: Time,
    /// Above this RTT the rate is always cut.
    pub t_high: Time,
    /// Scale of the gradient.
    pub min_rtt: Time,
    /// Increase; none: in proportion to the line rate.
    pub rai: Option<Rate>,
    /// Increase after five in a row; none: in proportion to the line rate.
    pub rhai: Option<Rate>,
    pub min_rate: LeastRate,
    pub window: Window,
}

impl ControllerParameters for TimelyParameters {
    type State = Timely;
    const DOC: SchemeDoc = DOC;
    /// Measured: `fat320-hpcc` with this one (benches/).
    const NS_PER_HOP: f64 = 54.0;

    fn read(p: &mut Parameters) -> TimelyParameters {
        let us = Time::from_us;
        let alpha = p.number("alpha", 0.875, (0.0, 1.0), "Weight of the newest change of the RTT.");
        let beta = p.number("beta", 0.8, (0.0, 1.0), "Depth of a cut (published runs: 0.8).");
        let t_low = p.time("t_low", us(50), "Below this RTT the rate always grows.");
        let mut t_high = p.time("t_high", us(500), "Above this RTT the rate is always cut.");
        if t_high < t_low {
            p.complain("t_high", format!("expected at least t_low ({t_low}), found {t_high}"));
            t_high = t_low;
        }
        TimelyParameters {
            alpha,
            beta,
            t_low,
            t_high,
            min_rtt: positive_time(p, "min_rtt", us(20), "Change of the RTT that counts as gradient 1."),
            rai: p.rate_or_auto("rai", "Increase; auto: 10 Mb/s per 10 Gb/s of line rate."),
            rhai: p.rate_or_auto(
                "rhai",
                "Increase after five in a row; auto: 50 Mb/s per 10 Gb/s of line rate.",
            ),
            min_rate: LeastRate::of_hpcc(p),
            window: window(p, false),
        }
    }

    fn needs(&self) -> Needs {
        Needs { delay: true, timestamp: true, ack_priority: true, ..Needs::window(self.window) }
    }

    fn derived(&self, line_rate: Rate) -> Vec<(&'static str, Rate)> {
        self.min_rate.derived(line_rate).into_iter().collect()
    }

    fn published(&self, line_rate: Rate) -> Vec<(&'static str, Rate, Rate)> {
        self.min_rate.published(line_rate).into_iter().collect()
    }

    fn unfit(&self, base_rtt: Time) -> Option<String> {
        let (low, high) = (self.t_low, self.t_high);
        if base_rtt < low {
            return None;
        }
        let (key, bound, then) = match base_rtt < high {
            true => ("t_low", low, "the rate never grows without a look at the gradient"),
            false => ("t_high", high, "the rate is cut down to min_rate on an idle path, too"),
        };
        Some(format!(
            "transport.controller.{key} = {bound}: a round trip of the longest idle path takes {base_rtt}, so that there {then}; set \
             t_low and t_high above it (the authors', 50us and 500us, are for round trips of some 20us)"
        ))
    }

    fn start(&self, flow: &FlowContext, _int_hops: usize) -> Timely {
        let step = |given: Option<Rate>, mbps| {
            given
                .map_or_else(|| in_proportion(Rate::from_mbps(mbps), STEP_PER, flow.line_rate), |rate| rate.0)
        };
        let range = RateRange::new(self.min_rate.at(flow.line_rate), flow.line_rate);
        Timely {
            alpha: self.alpha,
            beta: self.beta,
            t_low_ns: self.t_low.ns(),
            t_high_ns: self.t_high.ns(),
            min_rtt_ns: self.min_rtt.as_ns(),
            rai: step(self.rai, 10),
            rhai: step(self.rhai, 50),
            range,
            rate: range.max,
            rtt_diff_ns: 0.0,
            last_rtt_ns: 0,
            last_update_seq: 0,
            increases: 0,
        }
    }
}

/// State of one flow.
pub struct Timely {
    alpha: f64,
    beta: f64,
    t_low_ns: u64,
    t_high_ns: u64,
    min_rtt_ns: f64,
    rai: u64,
    rhai: u64,
    range: RateRange,
    /// Rate of the last update, in bit/s.
    rate: u64,
    /// Moving average of the change of the rtt; changes once per RTT.
    rtt_diff_ns: f64,
    last_rtt_ns: u64,
    /// An ACK beyond this byte causes an update; 0 until the first ACK.
    last_update_seq: u64,
    /// Increases in a row.
    increases: u32,
}

impl CongestionController for Timely {
    fn on_ack(&mut self, ack: &Ack, control: &mut Control) {
        if ack.acknowledged <= self.last_update_seq {
            return;
        }
        let rtt_ns = ack.rtt.ns();
        if self.last_update_seq != 0 {
            self.update(rtt_ns);
            control.rate = Rate(self.rate);
        }
        self.last_update_seq = self.last_update_seq.max(ack.next_byte);
        self.last_rtt_ns = rtt_ns;
    }

    fn internals(&self, _now: Time, out: &mut Vec<(&'static str, f64)>) {
        out.push(("rtt_diff_ns", self.rtt_diff_ns));
    }
}

impl Timely {
    fn update(&mut self, rtt_ns: u64) {
        let change = rtt_ns as i64 - self.last_rtt_ns as i64;
        self.rtt_diff_ns = (1.0 - self.alpha) * self.rtt_diff_ns + self.alpha * change as f64;
        match self.cut(rtt_ns, self.rtt_diff_ns / self.min_rtt_ns) {
            None => self.increase(),
            Some(factor) => {
                self.rate = self.range.clamp(times(self.rate, factor));
                self.increases = 0;
            }
        }
    }

    /// The factor of the cut; none: the rate grows (Alg. 1).
    fn cut(&self, rtt_ns: u64, gradient: f64) -> Option<f64> {
        if rtt_ns < self.t_low_ns {
            None
        } else if rtt_ns > self.t_high_ns {
            Some(1.0 - self.beta * (1.0 - self.t_high_ns as f64 / rtt_ns as f64))
        } else if gradient <= 0.0 {
            None
        } else {
            Some((1.0 - self.beta * gradient).max(0.0))
        }
    }

    fn increase(&mut self) {
        let step = if self.increases < INCREASES_BEFORE_HYPER { self.rai } else { self.rhai };
        self.rate = self.rate.saturating_add(step).min(self.range.max);
        self.increases = self.increases.saturating_add(1);
    }
}

#[cfg(test)]
mod tests;
