//! HPCC-PINT: HPCC with one number per packet, the load of the busiest port on the path.
//!
//! The switches compute the loads of their ports ([`crate::telemetry::pint`]) and raise an 8-bit code in the
//! packet to theirs; the ACK returns the maximum. The sender decodes it and reacts as HPCC does:
//!
//! ```text
//! c     = U / eta
//! R     = R_ref / c + R_AI    if c >= 1 or stage >= maxStage       (stage = 0)
//! R     = R_ref + R_AI        otherwise                            (stage + 1)
//! R_ref = R, once per RTT;    W = W0 R / line rate
//! ```
//!
//! Source: Ben Basat et al., "PINT", SIGCOMM 2020, §4.3, §6.1; Li et al., "HPCC", SIGCOMM 2019, Alg. 1; the
//! authors' simulator (mode 10), in which the sender uses a random share p of the feedback.
//! Differs from the source: nothing under the law `code`. Under the law `paper` the plan determines which
//! packets carry the load, and p selects among these.
//! Parameters: see [`HpccPintParameters::read`].

use super::hpcc::{Law, Reference, SERIES, derived, published, rai, step};
use super::rates::{LeastRate, RateRange, window};
use super::{
    Ack, CongestionController, Control, ControllerParameters, FlowContext, Needs, SchemeDoc, Window,
};
use crate::parameters::Parameters;
use crate::units::{Rate, Time};

pub const DOC: SchemeDoc = SchemeDoc {
    name: "hpcc-pint",
    title: "HPCC on one byte: the load of the busiest port, by PINT",
    text: "Switches keep the load of every port as a moving average over one base RTT, and packets carry the largest on their \
           path as a code of 8 bits instead of INT's 42 bytes. The sender scales its rate so that this load becomes eta, relative \
           to a reference that changes once per RTT. A share p of the feedback suffices.",
    source: "Ben Basat et al., PINT: Probabilistic In-band Network Telemetry, SIGCOMM 2020, §4.3, §6.1; the authors' simulator",
    equations: "U (at each port) <- U (T - tau) / T + q tau / (B T^2) + bytes / (B T)\n\
                c = max U / eta\n\
                R = R_ref / c + R_AI if c >= 1 or stage >= max_stage, else R_ref + R_AI\n\
                R_ref = R once per RTT; W = W0 R / line rate",
    validation: "Against the authors' simulator under the law code: lone flows to the nanosecond where no random number enters, mean \
                 completion times on an incast and a dumbbell, slowdowns of web search on a 32-host pod within the spread of 200 \
                 seeds (tests/reference.rs, tests/distributions.rs).",
    series: SERIES,
    ..SchemeDoc::NONE
};

/// Parameters of HPCC-PINT.
#[derive(Debug, Clone, PartialEq)]
pub struct HpccPintParameters {
    /// Target load, as a share of capacity.
    pub eta: f64,
    /// Additive steps before a multiplicative one.
    pub max_stage: u32,
    /// Additive increase per update; none: in proportion to the line rate.
    pub rai: Option<Rate>,
    pub min_rate: LeastRate,
    /// React to every used ACK instead of once per RTT.
    pub fast_reaction: bool,
    /// Share of the feedback that is used.
    pub p: f64,
    pub window: Window,
}

impl ControllerParameters for HpccPintParameters {
    type State = HpccPint;
    const DOC: SchemeDoc = DOC;

    fn read(p: &mut Parameters) -> HpccPintParameters {
        HpccPintParameters {
            eta: p.number("eta", 0.95, (0.01, 10.0), "Target load (PINT paper §6.1: 0.95)."),
            max_stage: p.integer(
                "max_stage",
                0,
                (0, 1_000_000),
                "Additive steps before a multiplicative one (PINT paper §6.1: 0).",
            ) as u32,
            rai: rai(p),
            min_rate: LeastRate::of_hpcc(p),
            fast_reaction: p.flag(
                "fast_reaction",
                true,
                "React to every ACK, relative to the reference of the RTT (FAST_REACT).",
            ),
            p: p.number(
                "p",
                1.0,
                (1.0 / 65_536.0, 1.0),
                "Share of the feedback that is used, drawn at the sender (pint_prob; published: 1, 1/16, 1/256).",
            ),
            window: window(p, true),
        }
    }

    fn needs(&self) -> Needs {
        Needs { load: Some(self.eta), ..Needs::window(self.window) }
    }

    fn derived(&self, line_rate: Rate) -> Vec<(&'static str, Rate)> {
        derived(self.rai, self.min_rate, line_rate)
    }

    fn published(&self, line_rate: Rate) -> Vec<(&'static str, Rate, Rate)> {
        published(self.rai, self.min_rate, line_rate)
    }

    fn start(&self, flow: &FlowContext, _int_hops: usize) -> HpccPint {
        let law = Law {
            eta: self.eta,
            max_stage: self.max_stage,
            rai: step(self.rai, flow.line_rate).0,
            range: RateRange::new(self.min_rate.at(flow.line_rate), flow.line_rate),
        };
        HpccPint {
            law,
            reference: Reference { u: 1.0, rate: law.range.max, stage: 0 },
            last_update_seq: 0,
            used: (self.p * 65_536.0) as u32,
            fast_reaction: self.fast_reaction,
        }
    }
}

/// State of one flow.
pub struct HpccPint {
    law: Law,
    reference: Reference,
    /// An ACK beyond this byte causes a full update; 0 until the first used ACK. Set to the next byte to
    /// send.
    last_update_seq: u64,
    /// Feedback is used if its 16-bit coin is below this.
    used: u32,
    fast_reaction: bool,
}

impl CongestionController for HpccPint {
    fn on_ack(&mut self, ack: &Ack, control: &mut Control) {
        let Some(path) = &ack.load else { return };
        if path.coin >> 16 >= self.used {
            return;
        }
        let full = ack.acknowledged > self.last_update_seq;
        if !full && !self.fast_reaction {
            return;
        }
        if self.last_update_seq == 0 {
            self.last_update_seq = ack.next_byte;
            return;
        }
        // The switches have averaged the load already.
        self.reference.u = path.load;
        let (rate, stage) = self.law.answer(&self.reference);
        control.rate = Rate(rate);
        control.repace = true;
        if full {
            self.reference.rate = rate;
            self.reference.stage = stage;
            self.last_update_seq = self.last_update_seq.max(ack.next_byte);
        }
    }

    fn internals(&self, _now: Time, out: &mut Vec<(&'static str, f64)>) {
        out.push(("u", self.reference.u));
        out.push(("r_ref_bps", self.reference.rate as f64));
    }
}

#[cfg(test)]
mod tests;
