//! HPCC: congestion control from per-hop telemetry.
//!
//! Every ACK carries, for each hop, the queue length, the bytes sent and a timestamp. From two of them the
//! sender computes the load of the busiest hop and steers it to eta, relative to a reference rate that
//! changes once per RTT:
//!
//! ```text
//! u_i   = txRate_i / C_i + min(q_i, q_i before) / (C_i T)          txRate_i = bytes_i / tau_i
//! U     = max u_i,  tau = that hop's, at most T
//! u     = (u (T - tau) + U tau) / T
//! c     = u / eta
//! R     = R_ref / c + R_AI    if c >= 1 or stage >= maxStage       (stage = 0)
//! R     = R_ref + R_AI        otherwise                            (stage + 1)
//! R_ref = R, once per RTT;    W = W0 R / line rate
//! ```
//!
//! Source: Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, Alg. 1, Eq. 2, §5.1;
//! arithmetic as in the authors' simulator, where the rate is the variable and the window follows.
//! Differs from the source: maxStage is 0 (the authors' results page calls the paper's 5 a typo); a changed
//! path id or number of hops discards the stored records (as in the paper; its released code has no path id),
//! and so does a pause in which the counters of INT may have wrapped ([`IntLayout::comparable`]);
//! a hop whose two records have the same time is ignored (in the authors' code a division by zero).
//! Parameters: see [`HpccParameters::read`].

use super::rates::{
    LeastRate, RateRange, SmallStep, in_proportion, is_large_step, positive_rate_or_auto, window,
};
use super::{
    Ack, CongestionController, Control, ControllerParameters, FlowContext, Needs, SchemeDoc, Window,
};
use crate::compat::Rules;
use crate::doc::Series;
use crate::parameters::Parameters;
use crate::telemetry::int::{IntLayout, IntRecord, IntView};
use crate::units::{Rate, Time};

pub const SERIES: &[Series] = &[
    Series::new("u", "", "Estimate of the load of the busiest hop."),
    Series::new("r_ref_bps", "bit/s", "Reference rate, updated once per round trip."),
];

pub const DOC: SchemeDoc = SchemeDoc {
    name: "hpcc",
    title: "HPCC: rate and window from per-hop telemetry (INT)",
    text: "Every packet collects the queue length, bytes sent and time of each hop, and the ACK returns \
           them. The sender computes the load of the busiest hop, in-flight bytes over bandwidth-delay \
           product, and scales its rate so that the load becomes eta. It reacts to every ACK, but relative \
           to a reference that changes once per RTT, so that no congestion is counted twice.",
    source: "Li et al., HPCC: High Precision Congestion Control, SIGCOMM 2019, Alg. 1; the authors' simulator and results page",
    equations: "u_i = txRate_i / C_i + min(q_i, q_i before) / (C_i T)\n\
                U = max u_i; u = (u (T - tau) + U tau) / T; c = u / eta\n\
                R = R_ref / c + R_AI if c >= 1 or stage >= max_stage, else R_ref + R_AI\n\
                R_ref = R once per RTT; W = W0 R / line rate",
    validation: "Completion times equal those of the authors' simulator to the nanosecond on lone flows, a 16-to-1 incast, \
                 four flows that join a bottleneck, web search on a 32-host pod, and the incast with PFC acting \
                 (tests/reference.rs). Per-hop rates (multi_rate) and sample_feedback are checked by hand only: no published \
                 run uses them.",
    series: SERIES,
    ..SchemeDoc::NONE
};

/// Parameters of HPCC.
#[derive(Debug, Clone, PartialEq)]
pub struct HpccParameters {
    /// Target load, as a share of capacity.
    pub eta: f64,
    /// Additive steps before a multiplicative one (maxStage of Alg. 1).
    pub max_stage: u32,
    /// Additive increase per update; none: in proportion to the line rate.
    pub rai: Option<Rate>,
    pub min_rate: LeastRate,
    /// Which acknowledgements change the rate, and which the reference.
    pub reaction: Reaction,
    /// Separate u, reference and stage for each hop; the minimum rate counts.
    pub multi_rate: bool,
    /// Between full updates, ignore hops with an empty queue.
    pub sample_feedback: bool,
    pub window: Window,
    /// [`Rules::skips_idle`].
    pub skips_idle: bool,
}

/// The additive increase of the published runs, whose hosts have 100 Gb/s.
const RAI: Rate = Rate::from_mbps(50);
const RAI_PER: Rate = Rate::from_gbps(100);

/// Of a full packet, what the step must add in a base RTT at least so that flows come near to equal shares, and
/// what lets them be equal (measured: docs/schemes/hpcc.md, Limits).
const MIN_STEP: f64 = 0.01;
const FAIR_STEP: f64 = 0.07;

/// Reads the additive increase; none for `auto`.
pub(super) fn rai(p: &mut Parameters) -> Option<Rate> {
    let help = "Additive increase per update (published runs: 50 Mb/s, about 80 B per RTT); auto: 50 Mb/s per 100 Gb/s of line rate.";
    positive_rate_or_auto(p, "rai", RAI, help)
}

/// The additive increase at a NIC of this rate.
pub(super) fn step(given: Option<Rate>, line_rate: Rate) -> Rate {
    given.unwrap_or_else(|| Rate(in_proportion(RAI, RAI_PER, line_rate)))
}

/// What `auto` stands for at a NIC of this rate.
pub(super) fn derived(rai: Option<Rate>, min_rate: LeastRate, line_rate: Rate) -> Vec<(&'static str, Rate)> {
    let step = rai.is_none().then(|| ("rai_bps", step(rai, line_rate)));
    step.into_iter().chain(min_rate.derived(line_rate)).collect()
}

/// The published constants, where they are those and do not suit a NIC of this rate, and what `auto` stands for there. The
/// published step suits slower NICs such as the 25 Gb/s of the authors' testbed, too.
pub(super) fn published(
    rai: Option<Rate>,
    min_rate: LeastRate,
    line_rate: Rate,
) -> Vec<(&'static str, Rate, Rate)> {
    let auto = step(None, line_rate);
    let far = rai == Some(RAI) && (line_rate > RAI_PER || is_large_step(RAI, auto));
    let step = far.then_some(("rai", RAI, auto));
    step.into_iter().chain(min_rate.published(line_rate)).collect()
}

/// When a sender reacts (§3.2 and §5.4 of the paper).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaction {
    /// To every acknowledgement, relative to a reference that changes once a round trip.
    Both,
    /// Once a round trip.
    EachRoundTrip,
    /// To every acknowledgement, each of which becomes the reference of the next.
    EachAck,
}

const REACTIONS: &[(&str, &str)] = &[
    ("both", "to every ACK, relative to a reference that changes once per RTT"),
    ("per-rtt", "once per RTT"),
    ("per-ack", "to every ACK, relative to the rate that the ACK before it set (Fig 13 of the paper)"),
];

fn reaction(p: &mut Parameters) -> Reaction {
    let help = "React to every ACK, relative to the reference of the RTT (FAST_REACT).";
    let fast = p.flag("fast_reaction", true, help);
    let help = "When the rate changes; auto: both, or per-rtt with fast_reaction = false.";
    match p.choice_or_auto("reaction", REACTIONS, help) {
        None if fast => Reaction::Both,
        Some("both") if fast => Reaction::Both,
        Some("per-ack") if fast => Reaction::EachAck,
        None | Some("per-rtt") => Reaction::EachRoundTrip,
        Some(given) => {
            p.complain(
                "reaction",
                format!("\"{given}\" contradicts fast_reaction = false: leave one of them out"),
            );
            Reaction::Both
        }
    }
}

impl ControllerParameters for HpccParameters {
    type State = Hpcc;
    const DOC: SchemeDoc = DOC;
    /// Measured: `pod` and `fat320-hpcc` (benches/).
    const NS_PER_HOP: f64 = 66.0;

    fn read(p: &mut Parameters) -> HpccParameters {
        HpccParameters {
            eta: p.number(
                "eta",
                0.95,
                (0.01, 10.0),
                "Target load (HPCC paper §5.1: 0.95; results page 0.99).",
            ),
            max_stage: p.integer(
                "max_stage",
                0,
                (0, 1_000_000),
                "Additive steps before a multiplicative one (0 in all published simulations; the paper prints 5).",
            ) as u32,
            rai: rai(p),
            min_rate: LeastRate::of_hpcc(p),
            reaction: reaction(p),
            multi_rate: p.flag("multi_rate", false, "One reference rate per hop; the minimum counts (MULTI_RATE)."),
            sample_feedback: p.flag(
                "sample_feedback",
                false,
                "Ignore hops with an empty queue between full updates (SAMPLE_FEEDBACK).",
            ),
            window: window(p, true),
            skips_idle: false,
        }
    }

    fn follow(&mut self, rules: &Rules) {
        self.skips_idle = rules.skips_idle;
    }

    fn needs(&self) -> Needs {
        Needs { int: true, ..Needs::window(self.window) }
    }

    fn derived(&self, line_rate: Rate) -> Vec<(&'static str, Rate)> {
        derived(self.rai, self.min_rate, line_rate)
    }

    fn published(&self, line_rate: Rate) -> Vec<(&'static str, Rate, Rate)> {
        published(self.rai, self.min_rate, line_rate)
    }

    fn unfit_at(&self, line_rate: Rate, packet: u64, base_rtt: Time) -> Option<String> {
        let step = step(self.rai, line_rate);
        let small = SmallStep::below(MIN_STEP, FAIR_STEP, step, packet, base_rtt)?;
        Some(small.unfair("rai", step, packet, base_rtt))
    }

    fn start(&self, flow: &FlowContext, int_hops: usize) -> Hpcc {
        let law = Law {
            eta: self.eta,
            max_stage: self.max_stage,
            rai: step(self.rai, flow.line_rate).0,
            range: RateRange::new(self.min_rate.at(flow.line_rate), flow.line_rate),
        };
        let reference = Reference { u: 1.0, rate: law.range.max, stage: 0 };
        let hops = int_hops.min(u8::MAX as usize);
        Hpcc {
            law,
            base_rtt_ns: flow.base_rtt.ns().max(1),
            window_bytes: flow.window_bytes.max(1) as f64,
            layout: flow.int_layout,
            reference,
            last_update_seq: 0,
            path_id: 0,
            kept: 0,
            kept_at: Time::ZERO,
            reaction: self.reaction,
            sample_feedback: self.sample_feedback,
            skips_idle: self.skips_idle,
            records: vec![IntRecord::default(); hops].into(),
            per_hop: if self.multi_rate { vec![reference; hops].into() } else { [].into() },
        }
    }
}

/// Constants of every update.
#[derive(Debug, Clone, Copy)]
pub(super) struct Law {
    pub eta: f64,
    pub max_stage: u32,
    pub rai: u64,
    pub range: RateRange,
}

/// A load and the corresponding rate: of the path, or of one hop.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reference {
    /// Moving average of the load over one base RTT; changed by every evaluated ACK.
    pub u: f64,
    /// R_ref (the paper's W^c), in bit/s; changes once per RTT.
    pub rate: u64,
    /// Additive steps since the last multiplicative one; changes once per RTT.
    pub stage: u32,
}

impl Law {
    /// New rate and stage (Alg. 1, ComputeWind).
    pub fn answer(&self, reference: &Reference) -> (u64, u32) {
        let c = reference.u / self.eta;
        let (rate, stage) = if c >= 1.0 || reference.stage >= self.max_stage {
            // u = 0 gives infinity, which ends at the line rate.
            (((reference.rate as f64 / c) as u64).saturating_add(self.rai), 0)
        } else {
            (reference.rate.saturating_add(self.rai), reference.stage + 1)
        };
        (self.range.clamp(rate), stage)
    }
}

/// State of one flow.
pub struct Hpcc {
    law: Law,
    /// T in whole ns.
    base_rtt_ns: u64,
    /// W0.
    window_bytes: f64,
    layout: IntLayout,
    reference: Reference,
    /// An ACK beyond this byte causes a full update; 0 until the first ACK. Set to the next byte to send.
    last_update_seq: u64,
    /// Path of the stored records.
    path_id: u16,
    /// Number of `records` of the current path; 0 until the first ACK.
    kept: u8,
    /// The oldest of `records` came no earlier than then; changes with them.
    kept_at: Time,
    reaction: Reaction,
    sample_feedback: bool,
    skips_idle: bool,
    /// The last record of each hop.
    records: Box<[IntRecord]>,
    /// With one rate per hop; otherwise empty.
    per_hop: Box<[Reference]>,
}

impl CongestionController for Hpcc {
    fn on_ack(&mut self, ack: &Ack, control: &mut Control) {
        let Some(int) = &ack.telemetry else { return };
        let full = self.reaction == Reaction::EachAck || ack.acknowledged > self.last_update_seq;
        if !full && self.reaction == Reaction::EachRoundTrip {
            return;
        }
        let records = self.readable(int);
        if self.last_update_seq == 0 {
            self.last_update_seq = ack.next_byte;
            self.keep(records, int.path_id, ack.now);
            return;
        }
        if self.is_kept_path(records, int.path_id) && ack.now - self.kept_at <= self.layout.comparable {
            // Between full updates some records may stay.
            if full || !self.sample_feedback {
                self.kept_at = ack.now;
            }
            if let Some(rate) = self.update(records, full) {
                control.rate = Rate(rate);
                control.repace = true;
            }
        } else if !records.is_empty() {
            self.keep(records, int.path_id, ack.now);
        }
        if full {
            self.last_update_seq = self.last_update_seq.max(ack.next_byte);
        }
    }

    fn internals(&self, _now: Time, out: &mut Vec<(&'static str, f64)>) {
        let hops = self.per_hop.get(..usize::from(self.kept)).unwrap_or_default();
        let shown = hops.iter().min_by_key(|hop| hop.rate).unwrap_or(&self.reference);
        out.push(("u", shown.u));
        out.push(("r_ref_bps", shown.rate as f64));
    }
}

impl Hpcc {
    /// Returns the records, or none if more hops wrote than fit: they have overwritten each other.
    fn readable<'a>(&self, int: &IntView<'a>) -> &'a [IntRecord] {
        let hops = int.hops as usize;
        if hops > self.records.len() { &[] } else { int.records.get(..hops).unwrap_or_default() }
    }

    /// Differences are valid only between records of one path (HPCC Fig 7, path id).
    fn is_kept_path(&self, records: &[IntRecord], path_id: u16) -> bool {
        path_id == self.path_id && records.len() == usize::from(self.kept)
    }

    fn keep(&mut self, records: &[IntRecord], path_id: u16, now: Time) {
        self.records[..records.len()].copy_from_slice(records);
        self.kept = records.len() as u8;
        self.kept_at = now;
        self.path_id = path_id;
    }

    /// Evaluates the records. Returns the new rate, if any hop was evaluated (Alg. 1, MeasureInflight and
    /// ComputeWind).
    fn update(&mut self, records: &[IntRecord], full: bool) -> Option<u64> {
        if self.per_hop.is_empty() {
            self.update_path(records, full)
        } else {
            self.update_hops(records, full)
        }
    }

    /// One reference for the path: the busiest hop counts.
    fn update_path(&mut self, records: &[IntRecord], full: bool) -> Option<u64> {
        let mut busiest = 0.0;
        let (mut interval_ns, mut idle_ns) = (0, 0);
        let mut judged = false;
        for (hop, record) in records.iter().enumerate() {
            if self.sample_feedback && !full && record.queue == 0 {
                continue;
            }
            judged = true;
            let old = &self.records[hop];
            let (load, tau_ns) = self.load(record, old);
            if load > busiest {
                busiest = load;
                interval_ns = tau_ns;
            }
            idle_ns = tau_ns;
            self.records[hop] = *record;
        }
        if !judged {
            return None;
        }
        if interval_ns == 0 && !self.skips_idle {
            interval_ns = idle_ns;
        }
        self.reference.u = self.average(self.reference.u, busiest, interval_ns);
        let (rate, stage) = self.law.answer(&self.reference);
        if full {
            self.reference.rate = rate;
            self.reference.stage = stage;
        }
        Some(rate)
    }

    /// One reference per hop: the minimum rate counts.
    fn update_hops(&mut self, records: &[IntRecord], full: bool) -> Option<u64> {
        let mut min = None;
        for (hop, record) in records.iter().enumerate() {
            if self.sample_feedback && !full && record.queue == 0 {
                continue;
            }
            let (load, tau_ns) = self.load(record, &self.records[hop]);
            self.records[hop] = *record;
            let u = self.average(self.per_hop[hop].u, load, tau_ns);
            let reference = &mut self.per_hop[hop];
            reference.u = u;
            let (rate, stage) = self.law.answer(reference);
            if full {
                reference.rate = rate;
                reference.stage = stage;
            }
            min = Some(min.map_or(rate, |l: u64| l.min(rate)));
        }
        min
    }

    /// Load of a hop between two records (Eq. 2), and the time between them in ns. The order of the
    /// operations is that of the authors' simulator and determines the last bit.
    #[inline]
    fn load(&self, new: &IntRecord, old: &IntRecord) -> (f64, u64) {
        let tau_ns = new.ns_since(old, self.layout);
        let capacity = (u64::from(new.rate_kbps) * 1_000) as f64;
        if tau_ns == 0 || new.rate_kbps == 0 {
            return (0.0, 0);
        }
        let duration = float(tau_ns) * 1e-9;
        let tx_rate = float(new.bytes_since(old, self.layout) * 8) / duration;
        let queue = new.queue_bytes(self.layout).min(old.queue_bytes(self.layout));
        if queue == 0 {
            // The queue adds nothing; saves two divisions.
            return (tx_rate / capacity, tau_ns);
        }
        let line_rate = self.law.range.max as f64;
        (tx_rate / capacity + float(queue) * line_rate / capacity / self.window_bytes, tau_ns)
    }

    /// Moving average of the load over T.
    #[inline]
    fn average(&self, u: f64, load: f64, tau_ns: u64) -> f64 {
        let t = self.base_rtt_ns;
        let dt = tau_ns.min(t);
        (u * float(t - dt) + load * float(dt)) / float(t)
    }
}

/// A number of bits, bytes or nanoseconds, far below 2^63: the processor converts it by one instruction.
#[inline(always)]
fn float(number: u64) -> f64 {
    number as i64 as f64
}

#[cfg(test)]
mod tests;
