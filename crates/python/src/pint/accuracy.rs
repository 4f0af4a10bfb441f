//! Plans tried: packets through encoders and collector.

use pint::accuracy::{packet_trials, path_trials, quantile_trials, random_path};
use pint::query::{Aggregation, Blocks, Family, SHARES};
use pint::recorded::Flow;
use pyo3::prelude::*;
use serde_json::{Value as Json, json};

use super::Plan;
use super::decode::{Knowledge, paths};
use crate::errors::input;
use crate::interrupts::interruptible;

/// Packets of a flow for which quantiles are tried.
const PACKETS: [u64; 2] = [1_000, 10_000];

/// Tries every query of the plan on paths of these lengths; JSON by query.
#[pyfunction]
pub fn pint_accuracy(
    py: Python<'_>,
    plan: &Plan,
    hops: Vec<u32>,
    trials: u32,
    seed: u64,
) -> PyResult<String> {
    let plan = plan.plan.clone();
    let most = plan.queries().hops.maximal;
    if let Some(wrong) = hops.iter().find(|&&hops| hops == 0 || hops > most) {
        return Err(input(format!("hops: expected 1 to {most} (the plan's longest path), found {wrong}")));
    }
    py.detach(|| {
        interruptible(move || {
            let queries = plan.queries().queries.len();
            let told: PyResult<Vec<Json>> =
                (0..queries).map(|query| tried(&plan, query, &hops, trials, seed)).collect();
            Ok(json!({ "version": format!("{:08x}", plan.version()), "seed": seed, "queries": told? })
                .to_string())
        })
    })
}

fn tried(plan: &pint::plan::Plan, query: usize, hops: &[u32], trials: u32, seed: u64) -> PyResult<Json> {
    let asked = &plan.queries().queries[query];
    let mut lengths = Vec::new();
    for &hops in hops {
        lengths.push(match &asked.aggregation {
            Aggregation::Path(path) => {
                // Fragments need no list: ids are then of any value that fits.
                let (ids, mut knowledge) = match path.blocks {
                    Blocks::Hashes => (u64::from(path.ids), Knowledge::numbered(u64::from(path.ids))),
                    Blocks::Fragments { value_bits } => (1u64 << value_bits.min(32), Knowledge::default()),
                };
                let paths = paths(plan, &mut knowledge)?;
                let route = |draws: &mut pint::accuracy::Draws| (Flow { id: 1, ..Flow::default() }, random_path(draws, hops, ids));
                let found = path_trials(plan, &paths, query, trials, seed, route).map_err(input)?;
                json!({
                    "hops": hops, "trials": trials, "mean_packets": found.mean, "median_packets": found.median,
                    "p99_packets": found.p99, "given_up": found.unfinished, "wrong": found.wrong,
                })
            }
            Aggregation::Quantiles { .. } => {
                let paths = pint::collector::NoPaths;
                let mut sizes = Vec::new();
                for packets in PACKETS {
                    let flows = (trials / 10).clamp(1, 100);
                    let found = quantile_trials(plan, &paths, query, (flows, packets, hops), seed).map_err(input)?;
                    let told = found.iter().map(|found| {
                        json!({
                            "quantile": found.quantile, "samples_per_hop": found.samples, "mean_relative_error": found.mean_error,
                            "mean_rank_error": found.mean_rank_error, "bars_held": found.held,
                        })
                    });
                    sizes.push(json!({ "packets": packets, "flows": flows, "quantiles": told.collect::<Vec<_>>() }));
                }
                json!({ "hops": hops, "sizes": sizes })
            }
            _ if asked.aggregation.family() == Family::PerPacket => {
                // Ten times as many that serve the query as there are trials.
                let served = f64::from(plan.served(query)) / f64::from(SHARES);
                let packets = (f64::from(trials) * 10.0 / served.max(1e-3)) as u64;
                let found = packet_trials(plan, &pint::collector::NoPaths, query, packets, hops, seed).map_err(input)?;
                json!({
                    "hops": hops, "packets": found.map(|found| found.packets), "bias": found.map(|found| found.bias),
                    "mean_relative_error": found.map(|found| found.mean_error),
                })
            }
            _ => json!({ "hops": hops }),
        });
    }
    Ok(json!({ "name": asked.name, "aggregation": asked.aggregation.name(), "lengths": lengths }))
}
