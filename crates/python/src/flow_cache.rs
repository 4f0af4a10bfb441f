//! Trials of Cebinae's flow cache, without a network.

use crate::errors::input;
use crate::interrupts::interruptible;
use pyo3::prelude::*;
use serde_json::json;
use weftline_sim::queue::{CacheKind, CacheTrial};
use weftline_sim::units::Time;

/// What a flow cache misses on a synthetic heavy-tailed trace, means over trials, as JSON: `{"false_negatives",
/// "false_positives", "flows", "packets"}`.
#[pyfunction]
#[pyo3(signature = (kind, stages, slots, window_ns, slack, trials, seed))]
#[allow(clippy::too_many_arguments)] // the call that the Python side makes, argument by argument
pub fn flow_cache(
    py: Python<'_>,
    kind: &str,
    stages: u32,
    slots: u32,
    window_ns: u64,
    slack: f64,
    trials: u32,
    seed: u64,
) -> PyResult<String> {
    let kind = match kind {
        "first-come" => CacheKind::FirstCome,
        "overwrite" => CacheKind::Overwrite,
        "exact" => CacheKind::Exact,
        _ => return Err(input(format!("unknown cache \"{kind}\": known: first-come, overwrite, exact"))),
    };
    let (stages, slots) = (stages.clamp(1, 16), slots.clamp(1, 1 << 24));
    let trial = CacheTrial { kind, stages, slots, window: Time::from_ns(window_ns), slack };
    let work = move || {
        let found = trial.run(trials, seed);
        Ok(json!({
            "false_negatives": found.false_negatives,
            "false_positives": found.false_positives,
            "flows": found.flows,
            "packets": found.packets,
        })
        .to_string())
    };
    py.detach(|| interruptible(work))
}
