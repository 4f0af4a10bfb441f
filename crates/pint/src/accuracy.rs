//! How accurate a plan is, by trying it: packets through encoders and collector, with values whose truth is known.
//!
//! Packets of one flow at a time take a path; every hop runs the plan's encoder, the collector takes the digests. Paths are
//! tried until they are known, values are drawn independently from a lognormal law per hop and what the collector says is
//! compared with the truth. Seeded: the same call gives the same numbers.
//!
//! Source: the experiments of Ben Basat et al., "PINT", SIGCOMM 2020, §6.2 and §6.3, with independent samples (the paper's are consecutive
//! packets of a flow, whose values hang together).

use crate::collector::{Collector, Event, EventKind, Findings, FlowReport, Limits, Paths, Sink};
use crate::encoder::Refused;
use crate::hash::{GOLDEN, mix};
use crate::plan::Plan;
use crate::query::{Aggregation, Value};
use crate::recorded::{Flow, Recorded};

/// Packets after which a path is given up.
pub const MAX_PACKETS: u64 = 1_000_000;
/// Sigma of the law of values, as in [`crate::plan::predict::LOGNORMAL_SIGMA`].
pub const SIGMA: f64 = crate::plan::predict::LOGNORMAL_SIGMA;

/// Packets until paths were known.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PathTrials {
    pub trials: u32,
    pub mean: f64,
    pub median: u64,
    /// 99th percentile; of few trials about the largest.
    pub p99: u64,
    /// Trials that were given up after [`MAX_PACKETS`], counted with these.
    pub unfinished: u32,
    /// Paths that were decoded and were not the truth.
    pub wrong: u32,
}

impl PathTrials {
    /// Of the packets of each trial.
    pub(crate) fn of(mut counts: Vec<u64>) -> PathTrials {
        counts.sort_unstable();
        let Some(last) = counts.len().checked_sub(1) else { return PathTrials::default() };
        let at = |share: f64| counts[((counts.len() as f64 * share) as usize).min(last)];
        PathTrials {
            trials: counts.len() as u32,
            mean: counts.iter().map(|&count| count as f64).sum::<f64>() / counts.len() as f64,
            median: at(0.5),
            p99: at(0.99),
            ..PathTrials::default()
        }
    }
}

/// What a hop's values are off by.
#[derive(Debug, Clone, PartialEq)]
pub struct QuantileTrials {
    pub quantile: f64,
    /// Samples a hop, on average.
    pub samples: f64,
    /// Share of the hops and flows where the truth is beyond the largest code: they are not in the numbers below.
    pub beyond: f64,
    /// Mean of |estimate / truth - 1| over hops and flows.
    pub mean_error: f64,
    /// Mean of |rank of the estimate under the law - quantile|.
    pub mean_rank_error: f64,
    /// Share of the 95 % error bars that held the truth.
    pub held: f64,
}

/// What one number per packet is off by.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PacketTrials {
    pub packets: u64,
    /// Packets with the largest code, which may stand for any larger number: they are in none of the numbers here.
    pub at_ceiling: u64,
    /// Mean of estimate / truth - 1.
    pub bias: f64,
    /// Mean of |estimate / truth - 1|.
    pub mean_error: f64,
}

/// What a query for loops reports.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LoopTrials {
    /// Packets that serve the query: this number with a loop, and this number without.
    pub packets: u64,
    /// Share of the packets without a loop that were reported.
    pub false_reports: f64,
    /// Share of the packets in a loop that were reported within the plan's longest path.
    pub detected: f64,
    /// The hop that reported them, on average; 0 if none did.
    pub mean_hop: f64,
}

/// Keeps what one flow's trial needs.
#[derive(Default)]
struct Ear {
    query: usize,
    path: Option<Vec<u64>>,
}

impl Sink for Ear {
    fn event(&mut self, event: Event) {
        if let (true, EventKind::PathDecoded { path, .. }) = (event.query == Some(self.query), event.kind) {
            self.path = Some(path);
        }
    }

    fn ended(&mut self, _: FlowReport) {}

    fn wants_reports(&self) -> bool {
        false
    }
}

/// Random numbers: splitmix64.
#[derive(Debug, Clone)]
pub struct Draws(u64);

impl Draws {
    pub fn new(seed: u64) -> Draws {
        Draws(mix(seed))
    }

    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }

    /// Below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.word()) * u128::from(bound)) >> 64) as u64
    }

    /// Within (0, 1).
    fn unit(&mut self) -> f64 {
        ((self.word() >> 12) as f64 + 0.5) / 4_503_599_627_370_496.0
    }

    /// Standard normal (Box and Muller, 1958).
    fn normal(&mut self) -> f64 {
        let (u, v) = (self.unit(), self.unit());
        libm::sqrt(-2.0 * libm::log(u)) * libm::cos(2.0 * std::f64::consts::PI * v)
    }
}

/// `hops` different ids below `ids`; fewer ids than hops: some come again.
pub fn random_path(draws: &mut Draws, hops: u32, ids: u64) -> Vec<u64> {
    let mut path: Vec<u64> = Vec::with_capacity(hops as usize);
    while path.len() < hops as usize {
        let id = draws.below(ids.max(1));
        if !path.contains(&id) || path.len() as u64 >= ids {
            path.push(id);
        }
    }
    path
}

/// One flow while it passes through the plan.
struct Trial<'p, D: Paths> {
    plan: &'p Plan,
    encoder: crate::encoder::Encoder,
    collector: Collector<D>,
    version: u32,
    flow: Flow,
}

impl<'p, D: Paths> Trial<'p, D> {
    fn new(plan: &'p Plan, paths: D, flow: Flow) -> Result<Trial<'p, D>, Refused> {
        let limits = Limits { bytes: 1 << 30, ..Limits::default() };
        let collector = Collector::new(plan, limits, paths)?;
        Ok(Trial { plan, encoder: plan.encoder()?, collector, version: plan.version(), flow })
    }

    /// Sends a packet; `value(hop, query)` is what the hop (from 1) has for a query. Returns the digest.
    fn send(
        &mut self,
        packet: u64,
        hops: u32,
        ear: &mut Ear,
        mut value: impl FnMut(u32, usize) -> u64,
    ) -> u64 {
        let mut values = [0; crate::encoder::MAX_QUERIES];
        let mut digest = 0;
        for hop in 1..=hops {
            for (query, place) in values.iter_mut().enumerate().take(self.plan.queries().queries.len()) {
                *place = value(hop, query);
            }
            digest = self.encoder.encode(digest, packet, hop, &values);
        }
        let row = Recorded {
            flow: self.flow,
            packet,
            digest,
            hops,
            plan_version: self.version,
            ..Recorded::default()
        };
        // The plan's own digests are never refused.
        let _ = self.collector.take(&row, ear);
        digest
    }
}

/// Sends flows of random packets over the paths that `route` draws, until `query`'s path is known.
/// Error: the plan is not one that switches can run.
pub fn path_trials<D: Paths>(
    plan: &Plan,
    paths: &D,
    query: usize,
    trials: u32,
    seed: u64,
    mut route: impl FnMut(&mut Draws) -> (Flow, Vec<u64>),
) -> Result<PathTrials, Refused> {
    let mut draws = Draws::new(seed);
    let mut found = PathTrials::default();
    let mut counts = Vec::with_capacity(trials as usize);
    for _ in 0..trials {
        let (flow, path) = route(&mut draws);
        let mut trial = Trial::new(plan, paths, flow)?;
        // What is known of the network may leave one path from the start: then no packet is needed, and none tells of it.
        let begun = paths.start(query, &flow.under(plan.queries().queries[query].flow), path.len() as u32);
        let mut ear = Ear { query, path: paths.findings(query, &begun).path() };
        let mut packets = 0;
        while ear.path.is_none() && packets < MAX_PACKETS {
            packets += 1;
            trial.send(draws.word(), path.len() as u32, &mut ear, |hop, _| path[hop as usize - 1]);
        }
        found.unfinished += u32::from(ear.path.is_none());
        found.wrong += u32::from(ear.path.is_some_and(|decoded| decoded != path));
        counts.push(packets);
    }
    Ok(PathTrials { unfinished: found.unfinished, wrong: found.wrong, ..PathTrials::of(counts) })
}

/// The median of a value's law at a hop: hops differ, as they do in a network.
fn median(value: Value, hop: u32) -> f64 {
    let scale = match value {
        Value::SwitchId | Value::IngressPort | Value::EgressPort => 20.0,
        Value::HopLatency => 1_000.0,
        Value::Utilisation => 100.0,
        Value::QueueBytes | Value::Timestamp | Value::PortBytes => 20_000.0,
    };
    scale * libm::exp2(f64::from(hop % 4) / 2.0)
}

fn drawn(draws: &mut Draws, value: Value, hop: u32) -> u64 {
    libm::round(median(value, hop) * libm::exp(SIGMA * draws.normal())) as u64
}

/// Sends `flows` flows of `packets` packets over `hops` hops and compares the quantiles that the collector tells with those of
/// the law. Empty for queries without quantiles. Error: the plan is not one that switches can run.
pub fn quantile_trials<D: Paths>(
    plan: &Plan,
    paths: &D,
    query: usize,
    (flows, packets, hops): (u32, u64, u32),
    seed: u64,
) -> Result<Vec<QuantileTrials>, Refused> {
    let Aggregation::Quantiles { quantiles, .. } = &plan.queries().queries[query].aggregation else {
        return Ok(Vec::new());
    };
    let mut draws = Draws::new(seed);
    let none = |&quantile: &f64| QuantileTrials {
        quantile,
        samples: 0.0,
        beyond: 0.0,
        mean_error: 0.0,
        mean_rank_error: 0.0,
        held: 0.0,
    };
    let mut found: Vec<QuantileTrials> = quantiles.iter().map(none).collect();
    let mut hops_reported = 0.0;
    for flow in 0..flows {
        let flow = Flow { id: Some(u64::from(flow) + 1), ..Flow::default() };
        let (mut trial, path) = (Trial::new(plan, paths, flow)?, random_path(&mut draws, hops, 1 << 20));
        let mut ear = Ear { query, path: None };
        for _ in 0..packets {
            let packet = draws.word();
            trial.send(packet, hops, &mut ear, |hop, query| match plan.queries().queries[query].value {
                Value::SwitchId => path[hop as usize - 1],
                value => drawn(&mut draws, value, hop),
            });
        }
        let report = trial.collector.report(&flow, query);
        for (hop, reported) in report.iter().flat_map(|report| hop_quantiles(report, query)) {
            if reported.values.len() < found.len() {
                continue;
            }
            hops_reported += 1.0;
            let median = median(plan.queries().queries[query].value, hop);
            for (sum, interval) in found.iter_mut().zip(&reported.values) {
                let truth = median * libm::exp(SIGMA * crate::sketch::kll::normal_quantile(sum.quantile));
                let rank = 0.5
                    * libm::erfc(
                        -libm::log(interval.value.get().max(1e-9) / median)
                            / SIGMA
                            / std::f64::consts::SQRT_2,
                    );
                sum.samples += reported.samples as f64;
                if truth > reported.ceiling.get() {
                    sum.beyond += 1.0;
                    continue;
                }
                sum.mean_error += (interval.value.get() / truth - 1.0).abs();
                sum.mean_rank_error += (rank - sum.quantile).abs();
                let inside = interval.low.is_none_or(|low| low.get() <= truth)
                    && interval.high.is_none_or(|high| truth <= high.get());
                sum.held += f64::from(u8::from(inside));
            }
        }
    }
    for sum in &mut found {
        let compared = f64::max(hops_reported - sum.beyond, 1.0);
        for part in [&mut sum.mean_error, &mut sum.mean_rank_error, &mut sum.held] {
            *part /= compared;
        }
        for part in [&mut sum.samples, &mut sum.beyond] {
            *part /= f64::max(hops_reported, 1.0);
        }
    }
    Ok(found)
}

/// Sends `packets` packets over `hops` different switches, and as many that circle over these switches until the plan's longest path.
/// None for queries that do not look for loops. Error: the plan is not one that switches can run.
pub fn loop_trials(
    plan: &Plan,
    query: usize,
    packets: u64,
    hops: u32,
    seed: u64,
) -> Result<Option<LoopTrials>, Refused> {
    if !matches!(plan.queries().queries[query].aggregation, Aggregation::Loops { .. })
        || plan.served(query) == 0
    {
        return Ok(None);
    }
    let encoder = plan.encoder()?;
    let mut draws = Draws::new(seed);
    let mut found = LoopTrials { packets, ..LoopTrials::default() };
    for _ in 0..packets {
        let path = random_path(&mut draws, hops, 1 << 20);
        let packet = loop {
            let packet = draws.word();
            if encoder.fields(packet).iter().any(|field| usize::from(field.query) == query) {
                break packet;
            }
        };
        // Only this query has a value: another one for loops reports nothing.
        let reports = |last: u32| {
            let mut digest = 0;
            (1..=last).find(|&hop| {
                let seen = |other: usize| (other == query).then(|| path[(hop - 1) as usize % path.len()]);
                let looped;
                (digest, looped) = encoder.encode_from(digest, packet, hop, seen);
                looped
            })
        };
        found.false_reports += f64::from(u8::from(reports(hops).is_some()));
        if let Some(hop) = reports(plan.queries().hops.maximal).filter(|&hop| hop > hops) {
            found.detected += 1.0;
            found.mean_hop += f64::from(hop);
        }
    }
    found.mean_hop /= found.detected.max(1.0);
    found.false_reports /= packets.max(1) as f64;
    found.detected /= packets.max(1) as f64;
    Ok(Some(found))
}

/// The hops (from 1) of a report's quantiles.
fn hop_quantiles(report: &FlowReport, query: usize) -> Vec<(u32, crate::collector::HopQuantiles)> {
    let of_query = report.results.iter().filter(|(found, _)| *found == query);
    let hops = of_query.filter_map(|(_, findings)| match findings {
        Findings::Quantiles(hops) => Some(hops.clone()),
        _ => None,
    });
    hops.flat_map(|hops| (1..).zip(hops)).collect()
}

/// Sends `packets` packets over `hops` hops, each a flow of its own values, and compares what each digest says with the truth. None for queries
/// that are not one number per packet. Error: the plan is not one that switches can run.
pub fn packet_trials<D: Paths>(
    plan: &Plan,
    paths: &D,
    query: usize,
    packets: u64,
    hops: u32,
    seed: u64,
) -> Result<Option<PacketTrials>, Refused> {
    let asked = &plan.queries().queries[query];
    let mut draws = Draws::new(seed);
    let mut found = PacketTrials::default();
    for _ in 0..packets {
        // A flow of one packet: its summary is the packet's number.
        let flow = Flow { id: Some(1), ..Flow::default() };
        let mut trial = Trial::new(plan, paths, flow)?;
        let mut seen = Vec::with_capacity(hops as usize);
        let packet = draws.word();
        trial.send(packet, hops, &mut Ear { query, path: None }, |hop, other| {
            let value = drawn(&mut draws, plan.queries().queries[other].value, hop);
            if other == query {
                seen.push(value as f64);
            }
            value
        });
        let truth = match &asked.aggregation {
            Aggregation::Max(_) => seen.iter().copied().fold(0.0, f64::max),
            Aggregation::Min(_) => seen.iter().copied().fold(f64::MAX, f64::min),
            Aggregation::Sum(_) => seen.iter().sum(),
            Aggregation::Product(_) => seen.iter().map(|value| value.max(1.0)).product(),
            Aggregation::CountAbove { threshold } => {
                seen.iter().filter(|&&value| value > *threshold as f64).count() as f64
            }
            _ => return Ok(None),
        };
        let report = trial.collector.report(&flow, query);
        let reported = report.iter().flat_map(|report| &report.results).find(|(found, _)| *found == query);
        if let Some((_, Findings::Packets(summary))) = reported {
            if summary.at_ceiling > 0 {
                found.at_ceiling += 1;
            } else if summary.packets > 0 && truth > 0.0 {
                let error = summary.last.get() / truth - 1.0;
                found.packets += 1;
                found.bias += error;
                found.mean_error += error.abs();
            }
        }
    }
    let count = f64::max(found.packets as f64, 1.0);
    (found.bias, found.mean_error) = (found.bias / count, found.mean_error / count);
    Ok(Some(found))
}
