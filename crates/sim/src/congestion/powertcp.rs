//! PowerTCP: the window follows power, the arrival rate times what waits and travels.
//!
//! From the INT of an acknowledgement and of the one before, for each hop of rate C:
//!
//! ```text
//! A     = arrival rate = q' + mu                   mu = rate of transmission, q' = growth of the queue
//! U     = A (q + C T) / (C C T)                    power over that of a full link without queue; the largest hop
//! u     = (u (T - dt) + U dt) / T                  dt = that hop's time between the two records, at most T
//! R     = gamma (R_ref / u + additive) + (1 - gamma) R
//! R_ref = R, once per RTT;    W = R T
//! ```
//!
//! Source: Addanki, Michel, Schmid, "PowerTCP: Pushing the Performance Limits of Datacenter Networks", NSDI 2022,
//! Alg. 1; the released code, inet-tub/ns3-datacenter at 6ddb4a4.
//! Differs from the source: `law = "paper"` steers a rate, and the window follows it, as in the released code; the
//! additive part is that code's 150 Mb/s for each flow, because the paper leaves the number of expected flows open;
//! records of another path, and those after a pause in which the counters of INT may have wrapped, are only
//! stored. `law = "released"` repeats what the code does beyond the paper:
//! R_ref / (u / 0.95), A at least C / 2, the old rate R_ref in both terms, whole bit/s, and a first acknowledgement
//! that is compared with records of zeros (its memory is never set; runs to compare with had it cleared).
//! Parameters: see [`PowerTcpParameters::read`].

use super::rates::{
    LeastRate, RateRange, SmallStep, in_proportion, is_large_step, positive_rate_or_auto, times, window,
};
use super::{
    Ack, CongestionController, Control, ControllerParameters, FlowContext, Needs, SchemeDoc, Window,
};
use crate::compat::Rules;
use crate::doc::Series;
use crate::parameters::{Names, Parameters};
use crate::telemetry::int::{IntLayout, IntRecord, IntView};
use crate::units::{Rate, Time};

const MEANING: &str =
    "Moving average of power over a base RTT, relative to that of a full link without a queue.";
pub const POWER: Series = Series::new("power", "", MEANING);
pub const REFERENCE: Series =
    Series::new("r_ref_bps", "bit/s", "Reference rate, updated once per round trip.");

pub const DOC: SchemeDoc = SchemeDoc {
    name: "powertcp",
    title: "PowerTCP: rate and window from power, arrival rate times queue and bandwidth-delay product (INT)",
    text: "Every packet collects the queue length, bytes sent and time of each hop, and the ACK returns them. The sender \
           computes the power of the busiest hop, the rate at which bytes come times the bytes that wait and travel, \
           and divides its rate by it. Power grows both with a queue and with its growth, so a queue that builds up is \
           answered before it is long.",
    source: "Addanki, Michel, Schmid, PowerTCP: Pushing the Performance Limits of Datacenter Networks, NSDI 2022, Alg. 1; \
             the released code, inet-tub/ns3-datacenter at 6ddb4a4",
    equations: "A = q' + mu; U = A (q + C T) / (C C T), the largest hop\n\
                u = (u (T - dt) + U dt) / T\n\
                R = gamma (R_ref / u + additive) + (1 - gamma) R\n\
                R_ref = R once per RTT; W = R T",
    validation: "With like = \"powertcp-ns3\", completion times equal those of the authors' simulator with its unset memory \
                 cleared to the nanosecond, on lone flows, a 16-to-1 incast, four flows that join a bottleneck and web \
                 search on a 32-host pod (tests/rivals.rs). Each step of both laws is checked by hand.",
    series: &[POWER, REFERENCE],
    ..SchemeDoc::NONE
};

/// Which law a controller of this family follows.
pub(super) const LAWS: Names =
    &[("paper", "as published"), ("released", "as in the authors' released simulator")];

/// Reads the law; none: the rules of the run decide.
pub(super) fn law(p: &mut Parameters) -> Option<bool> {
    let help = "Which law; auto: paper, or released where [compat] like repeats the authors' simulator.";
    p.choice_or_auto("law", LAWS, help).map(|chosen| chosen == "released")
}

/// The additive part of the released code, and the line rate that it is kept at by `auto`: that of the runs
/// which the code is compared on.
pub(super) const ADDITIVE: Rate = Rate::from_mbps(150);
pub(super) const ADDITIVE_PER: Rate = Rate::from_gbps(100);

/// Of a full packet, what the part must add in a base RTT at least so that flows come near to equal shares, and
/// what lets them be equal (measured: docs/schemes/powertcp.md, Limits).
const MIN_STEP: f64 = 0.04;
const FAIR_STEP: f64 = 0.07;

/// Reads the additive part; none for `auto`.
pub(super) fn additive(p: &mut Parameters) -> Option<Rate> {
    let help = "Additive part of a flow (released code: 150 Mb/s; the paper: line rate over the number of expected flows); \
                auto: 150 Mb/s per 100 Gb/s of line rate.";
    positive_rate_or_auto(p, "additive", ADDITIVE, help)
}

/// The additive part at a NIC of this rate.
pub(super) fn step(given: Option<Rate>, line_rate: Rate) -> Rate {
    given.unwrap_or_else(|| Rate(in_proportion(ADDITIVE, ADDITIVE_PER, line_rate)))
}

/// What `auto` stands for at a NIC of this rate.
pub(super) fn derived(
    additive: Option<Rate>,
    min_rate: LeastRate,
    line_rate: Rate,
) -> Vec<(&'static str, Rate)> {
    let step = additive.is_none().then(|| ("additive_bps", step(additive, line_rate)));
    step.into_iter().chain(min_rate.derived(line_rate)).collect()
}

/// Reads the minimum rate of the published runs.
pub(super) fn min_rate(p: &mut Parameters) -> LeastRate {
    let help = "minimum rate of a flow (published runs, at 25 Gb/s: 100 Mb/s); auto: 100 Mb/s per 25 Gb/s of line rate";
    LeastRate::read(p, Rate::from_mbps(100), Rate::from_gbps(25), help)
}

/// Parameters of PowerTCP.
#[derive(Debug, Clone, PartialEq)]
pub struct PowerTcpParameters {
    /// Weight of the newest rate.
    pub gamma: f64,
    /// Additive increase per update; none: in proportion to the line rate.
    pub additive: Option<Rate>,
    pub min_rate: LeastRate,
    pub window: Window,
    /// The law is that of the released code; none: as the rules of the run say.
    pub released: Option<bool>,
}

impl ControllerParameters for PowerTcpParameters {
    type State = PowerTcp;
    const DOC: SchemeDoc = DOC;

    fn read(p: &mut Parameters) -> PowerTcpParameters {
        PowerTcpParameters {
            gamma: p.number("gamma", 0.9, (0.01, 1.0), "Weight of the newest rate (published: 0.9)."),
            additive: additive(p),
            min_rate: min_rate(p),
            window: window(p, true),
            released: law(p),
        }
    }

    fn follow(&mut self, rules: &Rules) {
        self.released = self.released.or(Some(rules.released_laws));
    }

    fn needs(&self) -> Needs {
        Needs { int: true, fine_int: true, ..Needs::window(self.window) }
    }

    fn derived(&self, line_rate: Rate) -> Vec<(&'static str, Rate)> {
        derived(self.additive, self.min_rate, line_rate)
    }

    fn published(&self, line_rate: Rate) -> Vec<(&'static str, Rate, Rate)> {
        // The power from INT falls below 1 on a fast link that is not full, and the rate rises by it.
        let auto = step(None, line_rate);
        let far = self.additive == Some(ADDITIVE) && is_large_step(ADDITIVE, auto);
        let additive = far.then_some(("additive", ADDITIVE, auto));
        additive.into_iter().chain(self.min_rate.published(line_rate)).collect()
    }

    fn unfit_at(&self, line_rate: Rate, packet: u64, base_rtt: Time) -> Option<String> {
        let step = step(self.additive, line_rate);
        let small = SmallStep::below(MIN_STEP, FAIR_STEP, step, packet, base_rtt)?;
        Some(small.unfair("additive", step, packet, base_rtt))
    }

    fn start(&self, flow: &FlowContext, int_hops: usize) -> PowerTcp {
        let released = self.released.unwrap_or(false);
        let range = RateRange::new(self.min_rate.at(flow.line_rate), flow.line_rate);
        PowerTcp {
            step: Step {
                gamma: self.gamma,
                additive: step(self.additive, flow.line_rate).0,
                range,
                released,
            },
            target: if released { RELEASED_TARGET } else { 1.0 },
            min_arrival: if released { RELEASED_MIN_ARRIVAL } else { 0.0 },
            base_rtt_ns: flow.base_rtt.ns().max(1),
            layout: flow.int_layout,
            u: 1.0,
            reference: range.max,
            last_update_seq: 0,
            path_id: 0,
            kept: 0,
            kept_at: Time::ZERO,
            records: vec![IntRecord::default(); int_hops.min(u8::MAX as usize)].into(),
        }
    }
}

/// Target power of the released code (its U_TARGET).
const RELEASED_TARGET: f64 = 0.95;
/// Arrivals that the released code counts at least, as a share of the hop's rate.
const RELEASED_MIN_ARRIVAL: f64 = 0.5;

/// How a rate follows from power.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub gamma: f64,
    /// In bit/s.
    pub additive: u64,
    pub range: RateRange,
    pub released: bool,
}

impl Step {
    /// The rate after one of power `u`, from the reference of this round trip and the present rate.
    pub fn rate(&self, u: f64, reference: u64, present: u64) -> u64 {
        // Power 0 gives infinity, which ends at the line rate.
        let quotient = ((reference as f64 / u) as u64).min(u64::MAX / 4);
        // The released code keeps a share of the reference.
        let old = if self.released { reference } else { present };
        let new = times(quotient.saturating_add(self.additive), self.gamma);
        self.range.clamp(new.saturating_add(times(old, self.kept())))
    }

    /// Share of the old rate: one minus gamma, without the last bits that the subtraction leaves (1 - 0.9 < 0.1).
    fn kept(&self) -> f64 {
        ((1.0 - self.gamma) * 1e12).round() / 1e12
    }
}

/// Moving average of power over T, after `dt` with power `now`.
#[inline]
pub(super) fn average(u: f64, now: f64, dt: u64, t: u64) -> f64 {
    let dt = dt.min(t);
    (u * (t - dt) as f64 + now * dt as f64) / t as f64
}

/// State of one flow.
pub struct PowerTcp {
    step: Step,
    /// Power at which the rate stays.
    target: f64,
    /// Lowest arrival rate, as a share of the hop's rate.
    min_arrival: f64,
    /// T in whole ns.
    base_rtt_ns: u64,
    layout: IntLayout,
    /// Moving average of power over one base RTT, relative to that of a full link without queue.
    u: f64,
    /// The rate of one round trip ago, in bit/s.
    reference: u64,
    /// An ACK beyond this byte begins a round trip.
    last_update_seq: u64,
    /// Path of the stored records.
    path_id: u16,
    /// Number of `records` of the current path; 0 until the first ACK.
    kept: u8,
    /// When `records` came.
    kept_at: Time,
    /// The last record of each hop.
    records: Box<[IntRecord]>,
}

impl CongestionController for PowerTcp {
    fn on_ack(&mut self, ack: &Ack, control: &mut Control) {
        let Some(int) = &ack.telemetry else { return };
        let records = self.readable(int);
        if records.is_empty() {
            return;
        }
        let full = ack.acknowledged > self.last_update_seq;
        let recent = ack.now - self.kept_at <= self.layout.comparable;
        let comparable = recent && int.path_id == self.path_id && records.len() == usize::from(self.kept);
        // The released code compares the first records with zeros.
        let first_of_zeros = self.step.released && self.kept == 0;
        let busiest = (comparable || first_of_zeros).then(|| self.busiest(records)).flatten();
        self.keep(records, int.path_id, ack.now);
        if let Some((power, dt)) = busiest {
            self.u = average(self.u, power, dt, self.base_rtt_ns);
            let rate = self.step.rate(self.u / self.target, self.reference, control.rate.0);
            control.rate = Rate(rate);
            control.repace = true;
            if full {
                self.reference = rate;
            }
        }
        if full {
            self.last_update_seq = self.last_update_seq.max(ack.next_byte);
        }
    }

    fn internals(&self, _now: Time, out: &mut Vec<(&'static str, f64)>) {
        out.push(("power", self.u));
        out.push(("r_ref_bps", self.reference as f64));
    }
}

impl PowerTcp {
    /// Returns the records, or none if more hops wrote than fit: they have overwritten each other.
    fn readable<'a>(&self, int: &IntView<'a>) -> &'a [IntRecord] {
        let hops = int.hops as usize;
        if hops > self.records.len() { &[] } else { int.records.get(..hops).unwrap_or_default() }
    }

    fn keep(&mut self, records: &[IntRecord], path_id: u16, now: Time) {
        self.records[..records.len()].copy_from_slice(records);
        self.kept = records.len() as u8;
        self.kept_at = now;
        self.path_id = path_id;
    }

    /// The largest power of the path's hops, and the time between that hop's records in ns; none if no time has
    /// passed at any hop.
    fn busiest(&self, records: &[IntRecord]) -> Option<(f64, u64)> {
        let mut busiest: Option<(f64, u64)> = None;
        for (new, old) in records.iter().zip(&self.records) {
            let Some((power, dt)) = self.power(new, old) else { continue };
            if busiest.is_none_or(|(highest, _)| power > highest) {
                busiest = Some((power, dt));
            }
        }
        busiest
    }

    /// Power of a hop between two records, relative to that of a full link without queue, and the time between
    /// them in ns.
    #[inline]
    fn power(&self, new: &IntRecord, old: &IntRecord) -> Option<(f64, u64)> {
        let tau_ns = new.ns_since(old, self.layout);
        if tau_ns == 0 || new.rate_kbps == 0 {
            return None;
        }
        let capacity = (u64::from(new.rate_kbps) * 1_000) as f64;
        let arrived = (new.arrived_since(old, self.layout) * 8) as f64 / (tau_ns as f64 * 1e-9);
        let arrival = arrived.max(self.min_arrival * capacity);
        let product = capacity * (self.base_rtt_ns as f64 * 1e-9);
        let queue = (new.queue_bytes(self.layout) * 8) as f64;
        Some((arrival * (queue + product) / (capacity * product), tau_ns))
    }
}

#[cfg(test)]
mod tests;
