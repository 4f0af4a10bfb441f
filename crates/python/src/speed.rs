//! How fast this machine is, compared with that of the constants of the estimate: a small run is timed.

use std::path::Path;
use std::sync::OnceLock;

use serde_json::Value;
use weftline_results::Stopwatch;
use weftline_sim::scenario::{Hooks, Scenario};
use weftline_sim::{Execution, Simulation};

use crate::bench::Nowhere;

/// A standard workload, and what makes it small: about a hundred thousand packet-hops.
const PROBE: &str = include_str!("../../../benches/p8.toml");
const SMALL: (&str, &str) = ("workload.0.size", "100KB");
/// CPU time of a packet-hop of that workload on the machine of docs/performance.md.
const NS_PER_HOP: f64 = 30.4;
/// The median counts: the first run fills the caches, and others may be disturbed.
const RUNS: usize = 5;

/// How many times as long a run takes here. Measured once in a process, in some tens of milliseconds; 1 if that
/// fails.
fn slowness() -> f64 {
    static FOUND: OnceLock<f64> = OnceLock::new();
    *FOUND.get_or_init(|| {
        let mut found: Vec<f64> = (0..RUNS).filter_map(|_| ns_per_hop()).collect();
        found.sort_by(f64::total_cmp);
        found.get(found.len() / 2).map_or(1.0, |ns| ns / NS_PER_HOP)
    })
}

fn ns_per_hop() -> Option<f64> {
    let set = [(SMALL.0.to_owned(), SMALL.1.to_owned())];
    let scenario = Scenario::load(PROBE, "p8", Path::new("."), &set, None, Hooks::default()).ok()?;
    let simulation = Simulation::new(scenario.config().ok()?, Execution::default()).ok()?;
    let stopwatch = Stopwatch::start(1);
    let outcome = simulation.run(&mut Nowhere, &mut |_| true).ok()?;
    Some(1e9 * stopwatch.read().cpu_seconds / outcome.packet_hops as f64)
}

/// Makes the seconds of an `estimate`, as the engine states it, those of this machine, and states the factor.
pub fn of_this_machine(estimate: &mut Value) {
    let factor = slowness();
    for path in ["/seconds", "/seconds_on_threads", "/if_stalled/seconds"] {
        if let Some(seconds) = estimate.pointer_mut(path)
            && let Some(known) = seconds.as_f64()
        {
            *seconds = (known * factor).into();
        }
    }
    estimate["machine_factor"] = factor.into();
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn all_seconds_of_an_estimate_have_the_factor_that_it_states() {
        let mut estimate = json!({
            "seconds": 2.0, "seconds_on_threads": 1.0, "if_stalled": { "seconds": 4.0, "end_ns": 7 }, "end_ns": 5,
        });
        of_this_machine(&mut estimate);
        let factor = estimate["machine_factor"].as_f64().unwrap();
        assert!(factor > 0.0);
        assert_eq!(estimate["seconds"], 2.0 * factor);
        assert_eq!(estimate["seconds_on_threads"], factor);
        assert_eq!(estimate["if_stalled"], json!({ "seconds": 4.0 * factor, "end_ns": 7 }));
        assert_eq!(estimate["end_ns"], 5);
        let mut ends = json!({ "seconds": 2.0, "seconds_on_threads": 1.0, "if_stalled": null });
        of_this_machine(&mut ends);
        assert_eq!((&ends["seconds"], &ends["if_stalled"]), (&json!(2.0 * factor), &Value::Null));
    }
}
