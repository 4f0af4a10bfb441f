//! Quantiles of recorded values, asked again under other widths, sketches and numbers of samples.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pint::recorded::{Flow, Recorded};
use pint::replay::{Estimate, Stream, Streams, errors};
use pyo3::prelude::*;
use serde_json::{Value as Json, json};
use weftline_results::ResultsError;

use super::Plan;
use crate::errors::{input, of_results};
use crate::interrupts::interruptible;

/// Samples of a hop, bits of a value (0: exact), epsilon, room of the sketch in samples (0: all are kept), whether samples are independent.
type Way = (usize, u32, f64, usize, bool);

/// Streams of the hops of a run's flows that have at least `min_digests` samples by query 0 of the plan, then for every quantile and method the mean relative
/// error over `trials` estimates; JSON. Streams whose true quantile is below `smallest` are left out.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // the call that the Python side makes, argument by argument
pub fn pint_replay(
    py: Python<'_>,
    plan: &Plan,
    digests: PathBuf,
    min_digests: usize,
    quantiles: Vec<f64>,
    ways: Vec<Way>,
    smallest: f64,
    trials: u32,
    seed: u64,
) -> PyResult<String> {
    let plan = plan.plan.clone();
    py.detach(|| {
        interruptible(move || {
            let ways: Vec<Estimate> = ways.into_iter().map(estimate).collect::<PyResult<_>>()?;
            let streams = streams(&plan, &digests, min_digests)?;
            let reported = quantiles.iter().map(|&quantile| {
                let truths: Vec<f64> =
                    streams.iter().filter_map(|stream| stream.quantile(quantile)).collect();
                let used: Vec<f64> = truths.iter().copied().filter(|&truth| truth >= smallest).collect();
                let errors = ways.iter().map(|way| {
                    let found = errors(&streams, quantile, way, smallest, trials, seed)?;
                    Some(json!({ "mean_relative_error": found.mean, "median_relative_error": found.median }))
                });
                json!({
                    "quantile": quantile,
                    "streams": used.len(),
                    "left_out": truths.len() - used.len(),
                    "truth_median": median(used),
                    "errors": errors.collect::<Vec<_>>(),
                })
            });
            Ok(json!({ "streams": streams.len(), "quantiles": reported.collect::<Vec<Json>>() }).to_string())
        })
    })
}

fn estimate((samples, bits, epsilon, room, independent): Way) -> PyResult<Estimate> {
    let values = match bits {
        0 => None,
        _ => Some(Estimate::approximation(bits, epsilon).ok_or_else(|| {
            input(format!(
                "expected 1 to 32 bits and an epsilon from 0.000086 to 3, found {bits} and {epsilon}"
            ))
        })?),
    };
    if room > 0 && pint::sketch::kll::k_for_room(room).is_none() {
        return Err(input(format!("a sketch with room for {room} samples is too small")));
    }
    Ok(Estimate { samples, values, room: (room > 0).then_some(room), independent })
}

/// Two readings: flows too short are not worth the memory.
fn streams(plan: &pint::plan::Plan, digests: &Path, min_digests: usize) -> PyResult<Vec<Stream>> {
    let mut counts: BTreeMap<Flow, usize> = BTreeMap::new();
    each(digests, |row| *counts.entry(row.flow).or_default() += 1)?;
    let found = Streams::new(plan, 0).map_err(input)?;
    let mut found = found.ok_or_else(|| input("the plan's first query does not sample values of hops"))?;
    let version = plan.version();
    let mut other = false;
    each(digests, |row| {
        other |= row.plan_version != version;
        if counts.get(&row.flow).is_some_and(|&count| count >= min_digests) {
            found.take(row);
        }
    })?;
    if other {
        return Err(input(format!("{}: digests of another plan than {version:08x}", digests.display())));
    }
    Ok(found.finish(min_digests))
}

fn each(path: &Path, mut take: impl FnMut(&Recorded)) -> PyResult<()> {
    let read = weftline_results::recorded::each(path, &mut |row| {
        take(&row);
        Ok::<(), ResultsError>(())
    });
    read.map_err(of_results)
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
