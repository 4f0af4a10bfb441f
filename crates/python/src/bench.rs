//! `weftline bench`: the standard workloads, run without tables, their cost measured.
//!
//! A packet-hop is one packet sent on one link, acknowledgements and pause frames included. Set-up is not counted. Where
//! the kernel counts instructions for this process they are given, else null.

use std::path::Path;

use pyo3::prelude::*;
use serde_json::json;
use weftline_results::Stopwatch;
use weftline_sim::measure::{FlowRecord, Progress, Sample, Sink};
use weftline_sim::scenario::{Hooks, Scenario};
use weftline_sim::simulation::{Execution, Simulation};

use crate::errors::{failed, input};
use crate::instructions::Instructions;

/// Name and scenario of every workload.
const WORKLOADS: &[(&str, &str)] = &[
    ("fat320-hpcc", include_str!("../../../benches/fat320-hpcc.toml")),
    ("fat320-dctcp", include_str!("../../../benches/fat320-dctcp.toml")),
    ("p8", include_str!("../../../benches/p8.toml")),
    ("p16", include_str!("../../../benches/p16.toml")),
    ("i64", include_str!("../../../benches/i64.toml")),
    ("w8-0.5", include_str!("../../../benches/w8-0.5.toml")),
    ("pod", include_str!("../../../benches/pod.toml")),
];

/// Takes records and keeps none.
struct Nowhere;

impl Sink for Nowhere {
    fn flows(&mut self, _batch: &[FlowRecord]) -> std::io::Result<()> {
        Ok(())
    }
    fn samples(&mut self, _batch: &[Sample]) -> std::io::Result<()> {
        Ok(())
    }
}

/// One measured run.
struct Measured {
    cpu_seconds: f64,
    wall_seconds: f64,
    peak_memory_bytes: Option<u64>,
    instructions: Option<u64>,
    packet_hops: u64,
    events: u64,
    flows: u64,
    fingerprint: u64,
}

/// Runs the workload `name` `repeats` times; the run with the median CPU time, as JSON.
#[pyfunction]
pub fn bench(py: Python<'_>, name: &str, repeats: u32) -> PyResult<String> {
    let Some((_, text)) = WORKLOADS.iter().find(|(known, _)| *known == name) else {
        let known = WORKLOADS.iter().map(|(known, _)| *known);
        return Err(input(weftline_sim::parameters::unknown("workload", name, known)));
    };
    let mut runs = Vec::new();
    for _ in 0..repeats.max(1) {
        runs.push(py.detach(|| measure(name, text))?);
        py.check_signals()?;
    }
    runs.sort_by(|a, b| a.cpu_seconds.total_cmp(&b.cpu_seconds));
    let (least, most) = (runs[0].cpu_seconds, runs[runs.len() - 1].cpu_seconds);
    let median = &runs[runs.len() / 2];
    let hops = median.packet_hops as f64;
    Ok(json!({
        "repeats": runs.len(),
        "packet_hops": median.packet_hops,
        "events": median.events,
        "flows": median.flows,
        "cpu_seconds": median.cpu_seconds,
        "cpu_seconds_least": least,
        "cpu_seconds_most": most,
        "wall_seconds": median.wall_seconds,
        "packet_hops_per_cpu_second": hops / median.cpu_seconds,
        "instructions_per_hop": median.instructions.map(|count| count as f64 / hops),
        "peak_memory_bytes": median.peak_memory_bytes,
        "fingerprint": format!("{:016x}", median.fingerprint),
    })
    .to_string())
}

fn measure(name: &str, text: &str) -> PyResult<Measured> {
    let scenario = Scenario::load(text, name, Path::new("."), &[], None, Hooks::default()).map_err(input)?;
    let simulation =
        Simulation::new(scenario.config().map_err(input)?, Execution::default()).map_err(failed)?;
    let counter = Instructions::start();
    let stopwatch = Stopwatch::start(1);
    let mut stopped = Ok(());
    let mut goes_on = |_: &Progress| {
        stopped = Python::attach(|py| py.check_signals());
        stopped.is_ok()
    };
    let outcome = simulation.run(&mut Nowhere, &mut goes_on).map_err(failed)?;
    let cost = stopwatch.read();
    stopped?;
    Ok(Measured {
        cpu_seconds: cost.cpu_seconds,
        wall_seconds: cost.wall_seconds,
        peak_memory_bytes: cost.peak_memory_bytes,
        instructions: counter.and_then(|counter| counter.read()),
        packet_hops: outcome.packet_hops,
        events: outcome.events,
        flows: outcome.flows_done,
        fingerprint: outcome.fingerprint,
    })
}
