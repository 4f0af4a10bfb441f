//! Plans tried: packets through encoders and collector.

use std::collections::BTreeSet;
use std::path::PathBuf;

use pint::accuracy::{
    Draws, PathTrials, loop_trials, packet_trials, path_trials, quantile_trials, random_path,
};
use pint::comparators::{self, Scheme};
use pint::graph::Graph;
use pint::path::DecoderKind;
use pint::query::{Aggregation, Blocks, Family, PathQuery, SHARES, Value};
use pint::recorded::{Address, Flow};
use pint::routes::Routes;
use pyo3::prelude::*;
use serde_json::{Value as Json, json};

use super::Plan;
use super::decode::{Knowledge, paths};
use super::ground::Ground;
use crate::errors::input;
use crate::interrupts::interruptible;

/// Packets of a flow for which quantiles are tried.
const PACKETS: [u64; 2] = [1_000, 10_000];

/// Tries every query of the plan on paths of these lengths; JSON by query. With a topology, paths are
/// shortest paths of it and the decoder knows it: with `ids_only` its switches alone, else also who is whose
/// neighbour; with `ends` the first and the last switch too. `decoder` is the name of a [`DecoderKind`].
#[pyfunction]
#[pyo3(signature = (plan, hops, trials, seed, topology=None, ids_only=false, ends=false, shortest=false, decoder=None))]
#[allow(clippy::too_many_arguments)] // the call that the Python side makes, argument by argument
pub fn pint_accuracy(
    py: Python<'_>,
    plan: &Plan,
    hops: Vec<u32>,
    trials: u32,
    seed: u64,
    topology: Option<PathBuf>,
    ids_only: bool,
    ends: bool,
    shortest: bool,
    decoder: Option<&str>,
) -> PyResult<String> {
    let plan = plan.plan.clone();
    let decoder = DecoderKind::chosen(decoder, topology.is_some() && !ids_only).map_err(input)?;
    let max = plan.queries().hops.maximal;
    if let Some(wrong) = hops.iter().find(|&&hops| hops == 0 || hops > max) {
        return Err(input(format!("hops: expected 1 to {max} (the plan's longest path), found {wrong}")));
    }
    py.detach(|| {
        interruptible(move || {
            let mut knowledge = Knowledge::read(topology.as_deref(), ids_only, ends, shortest)?;
            knowledge.differ &= decoder == DecoderKind::Collector;
            let knowledge = topology.is_some().then_some(knowledge);
            let mut tries = Tries { plan: &plan, knowledge, decoder, trials, seed };
            let queries = plan.queries().queries.len();
            let reported: PyResult<Vec<Json>> = (0..queries).map(|query| tries.query(query, &hops)).collect();
            let warnings = tries.knowledge.map_or(Vec::new(), |knowledge| knowledge.ground.warnings);
            let version = format!("{:08x}", plan.version());
            Ok(json!({ "version": version, "seed": seed, "queries": reported?, "warnings": warnings })
                .to_string())
        })
    })
}

/// Packets until a path is known by what PINT is compared with: `ppm`, `ams2` or `ams2-as-drawn`, with `m`
/// hashes of a hop; JSON.
#[pyfunction]
pub fn pint_compared(
    py: Python<'_>,
    scheme: &str,
    m: u32,
    hops: u32,
    trials: u32,
    seed: u64,
) -> PyResult<String> {
    let Some(scheme) = Scheme::named(scheme, m) else {
        return Err(input(format!("scheme: expected ppm, ams2 or ams2-as-drawn, found {scheme}")));
    };
    if !(1..=255).contains(&hops) {
        return Err(input(format!("hops: expected 1 to 255, found {hops}")));
    }
    py.detach(|| {
        interruptible(move || Ok(of_path(hops, &comparators::trials(scheme, hops, trials, seed)).to_string()))
    })
}

fn of_path(hops: u32, found: &PathTrials) -> Json {
    json!({
        "hops": hops, "trials": found.trials, "mean_packets": found.mean, "median_packets": found.median,
        "p99_packets": found.p99, "given_up": found.unfinished, "wrong": found.wrong,
    })
}

/// What a plan is tried with.
struct Tries<'p> {
    plan: &'p pint::plan::Plan,
    /// Of a topology, if one is given.
    knowledge: Option<Knowledge>,
    decoder: DecoderKind,
    trials: u32,
    seed: u64,
}

impl Tries<'_> {
    fn query(&mut self, query: usize, hops: &[u32]) -> PyResult<Json> {
        let asked = &self.plan.queries().queries[query];
        let lengths: PyResult<Vec<Json>> = hops
            .iter()
            .map(|&hops| match &asked.aggregation {
                Aggregation::Path(path) => {
                    let mut found = of_path(hops, &self.path(query, path, hops)?);
                    // Links do not constrain ports.
                    let decoder =
                        if asked.value == Value::SwitchId { self.decoder } else { DecoderKind::Peeling };
                    found["decoder"] = json!(decoder.name());
                    Ok(found)
                }
                Aggregation::Quantiles { .. } => self.quantiles(query, hops),
                Aggregation::Loops { .. } => self.loops(query, hops),
                _ if asked.aggregation.family() == Family::PerPacket => self.packets(query, hops),
                _ => Ok(json!({ "hops": hops })),
            })
            .collect();
        Ok(json!({ "name": asked.name, "aggregation": asked.aggregation.name(), "lengths": lengths? }))
    }

    fn path(&mut self, query: usize, path: &PathQuery, hops: u32) -> PyResult<PathTrials> {
        let (plan, decoder, trials, seed) = (self.plan, self.decoder, self.trials, self.seed);
        if plan.queries().queries[query].value != Value::SwitchId {
            let known = self.knowledge.as_ref().map_or(path.ids, |knowledge| knowledge.ground.ports);
            let ports = match path.blocks {
                Blocks::Hashes => known,
                Blocks::Fragments { value_bits } => u32::MAX >> (32 - value_bits.min(32)),
            };
            let knowledge = &mut Knowledge::of_ports(if path.blocks == Blocks::Hashes { ports } else { 0 });
            let paths = paths(plan, knowledge)?;
            // Numbers of ports repeat along a path.
            let route = |draws: &mut Draws| {
                let path = (0..hops).map(|_| draws.below(u64::from(ports.max(1)))).collect();
                (Flow { id: Some(1), ..Flow::default() }, path)
            };
            return path_trials(plan, &paths, query, trials, seed, route).map_err(input);
        }
        let Some(knowledge) = &mut self.knowledge else {
            // Fragments need no list: ids are then of any value that fits.
            let (ids, mut knowledge) = match path.blocks {
                Blocks::Hashes => {
                    let ids = u64::from(path.ids);
                    decoder.check_ids(ids, hops).map_err(input)?;
                    let differ = decoder == DecoderKind::Collector;
                    (ids, Knowledge { differ, ..Knowledge::numbered(ids) })
                }
                Blocks::Fragments { value_bits } => (1u64 << value_bits.min(32), Knowledge::default()),
            };
            let paths = paths(plan, &mut knowledge)?;
            let route =
                |draws: &mut Draws| (Flow { id: Some(1), ..Flow::default() }, random_path(draws, hops, ids));
            return path_trials(plan, &paths, query, trials, seed, route).map_err(input);
        };
        let ground = &mut knowledge.ground;
        let (graph, _) = Graph::new(ground.ids.clone(), &ground.edges).map_err(input)?;
        let attached: BTreeSet<u64> = ground.attached.values().copied().collect();
        let may_end = |index: u32| attached.contains(&graph.ids()[index as usize]);
        let routes = Routes::new(&graph, hops, may_end).map_err(input)?;
        // A flow's addresses are here the ids of its first and its last switch.
        let knowledge = &mut Knowledge {
            ground: Ground {
                attached: ground.ids.iter().map(|&id| (id, id)).collect(),
                ids: ground.ids.clone(),
                edges: ground.edges.clone(),
                ..Ground::default()
            },
            ..*knowledge
        };
        let paths = paths(plan, knowledge)?;
        let route = |draws: &mut Draws| {
            let path = routes.draw(draws);
            let end = |id: Option<&u64>| id.map_or(Address::default(), |&id| Address::Number(id));
            (
                Flow {
                    id: Some(1),
                    source: end(path.first()),
                    destination: end(path.last()),
                    ..Flow::default()
                },
                path,
            )
        };
        path_trials(plan, &paths, query, trials, seed, route).map_err(input)
    }

    fn quantiles(&self, query: usize, hops: u32) -> PyResult<Json> {
        let paths = pint::collector::NoPaths;
        let mut sizes = Vec::new();
        for packets in PACKETS {
            let flows = (self.trials / 10).clamp(1, 100);
            let found = quantile_trials(self.plan, &paths, query, (flows, packets, hops), self.seed);
            let reported = found.map_err(input)?.into_iter().map(|found| {
                let compared = |number: f64| (found.beyond < 1.0).then_some(number);
                json!({
                    "quantile": found.quantile, "samples_per_hop": found.samples, "beyond_codes": found.beyond,
                    "mean_relative_error": compared(found.mean_error),
                    "mean_rank_error": compared(found.mean_rank_error), "bars_held": compared(found.held),
                })
            });
            sizes.push(
                json!({ "packets": packets, "flows": flows, "quantiles": reported.collect::<Vec<_>>() }),
            );
        }
        Ok(json!({ "hops": hops, "sizes": sizes }))
    }

    fn loops(&self, query: usize, hops: u32) -> PyResult<Json> {
        let packets = u64::from(self.trials) * 10;
        let found = loop_trials(self.plan, query, packets, hops, self.seed).map_err(input)?;
        let Some(found) = found else { return Ok(json!({ "hops": hops })) };
        Ok(json!({
            "hops": hops, "packets": found.packets, "false_reports": found.false_reports, "detected": found.detected,
            "mean_hop": found.mean_hop, "longest": self.plan.queries().hops.maximal,
        }))
    }

    fn packets(&self, query: usize, hops: u32) -> PyResult<Json> {
        // Ten times as many that serve the query as there are trials.
        let served = f64::from(self.plan.served(query)) / f64::from(SHARES);
        let packets = (f64::from(self.trials) * 10.0 / served.max(1e-3)) as u64;
        let paths = pint::collector::NoPaths;
        let found = packet_trials(self.plan, &paths, query, packets, hops, self.seed).map_err(input)?;
        let compared = found.filter(|found| found.packets > 0);
        Ok(json!({
            "hops": hops, "packets": found.map(|found| found.packets),
            "at_ceiling": found.map(|found| found.at_ceiling), "bias": compared.map(|found| found.bias),
            "mean_relative_error": compared.map(|found| found.mean_error),
        }))
    }
}
