//! `weftline bench`: one of the standard workloads, or any scenario, run once without tables, its cost measured.
//!
//! A packet-hop is one packet sent on one link, acknowledgements and pause frames included. Set-up is measured apart.
//! Where the kernel counts instructions for this process they are given, else null. Peak memory is that of the process,
//! so the caller starts one for each run; what the process had taken before it built anything is given too.

use std::path::PathBuf;
use std::time::Instant;

use pyo3::prelude::*;
use serde_json::json;
use weftline_results::{Stopwatch, peak_memory_bytes};
use weftline_sim::measure::{FlowRecord, Progress, Sample, Sink};
use weftline_sim::scenario::Scenario;
use weftline_sim::{Execution, Simulation};

use crate::errors::{failed, input};
use crate::instructions::Instructions;
use crate::pint;
use crate::pint::bench::WORKLOADS as PINT_WORKLOADS;
use crate::scenarios;

/// Every workload. A file opens with one line of comment, which describes it, and the scenario's `name`.
const WORKLOADS: &[&str] = &[
    include_str!("../../../benches/fat320-hpcc.toml"),
    include_str!("../../../benches/fat320-hpcc-pint.toml"),
    include_str!("../../../benches/fat320-dctcp.toml"),
    include_str!("../../../benches/imc10-phost.toml"),
    include_str!("../../../benches/imc10-pfabric.toml"),
    include_str!("../../../benches/p8.toml"),
    include_str!("../../../benches/p16.toml"),
    include_str!("../../../benches/i64.toml"),
    include_str!("../../../benches/w8-0.5.toml"),
    include_str!("../../../benches/pod.toml"),
    include_str!("../../../benches/k32.toml"),
    include_str!("../../../benches/pods-ecmp.toml"),
    include_str!("../../../benches/pods-hula.toml"),
    include_str!("../../../benches/pods-mphula-mptcp.toml"),
    include_str!("../../../benches/row11-fifo.toml"),
    include_str!("../../../benches/row11-fq.toml"),
    include_str!("../../../benches/row11-cebinae.toml"),
    include_str!("../../../benches/leafspine-hpcc.toml"),
    include_str!("../../../benches/leafspine-powertcp.toml"),
    include_str!("../../../benches/leafspine-swift.toml"),
    include_str!("../../../benches/leafspine-ndp.toml"),
    include_str!("../../../benches/leafspine-homa.toml"),
];

/// The name that a workload gives itself.
fn name_of(text: &str) -> &str {
    let quoted = text.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
    quoted.unwrap_or_default()
}

/// The comment that a workload opens with.
fn description_of(text: &str) -> &str {
    text.lines().next().unwrap_or_default().trim_start_matches("# ")
}

/// Name and description of every workload, as JSON.
#[pyfunction]
pub fn workloads() -> String {
    let runs = WORKLOADS.iter().map(|text| (name_of(text), description_of(text)));
    let alone = PINT_WORKLOADS.iter().map(|workload| (workload.name, workload.description));
    let each = runs.chain(alone).map(|(name, description)| json!({"name": name, "description": description}));
    serde_json::Value::Array(each.collect()).to_string()
}

/// Takes records and keeps none.
pub struct Nowhere;

impl Sink for Nowhere {
    fn flows(&mut self, _batch: &[FlowRecord]) -> std::io::Result<()> {
        Ok(())
    }
    fn samples(&mut self, _batch: &[Sample]) -> std::io::Result<()> {
        Ok(())
    }
}

/// Runs the workload `name` once, values replaced by `sets` as `--set` has them; what it was and what it cost, as JSON.
/// `threads` is the requested number, the JSON has the number used.
#[pyfunction]
#[pyo3(signature = (name, threads=1, sets=Vec::new()))]
pub fn bench(py: Python<'_>, name: &str, threads: u16, sets: Vec<(String, String)>) -> PyResult<String> {
    if let Some(workload) = PINT_WORKLOADS.iter().find(|workload| workload.name == name) {
        if let Some((path, _)) = sets.first() {
            return Err(input(format!("--set {path}: {name} has no scenario")));
        }
        return py.detach(|| pint::bench::run(workload)).map_err(failed);
    }
    let Some(text) = WORKLOADS.iter().find(|text| name_of(text) == name) else {
        let runs = WORKLOADS.iter().map(|text| name_of(text));
        let known = runs.chain(PINT_WORKLOADS.iter().map(|workload| workload.name));
        return Err(input(weftline_sim::parameters::unknown("workload", name, known)));
    };
    bench_scenario(py, (*text).to_owned(), name.to_owned(), PathBuf::from("."), sets, threads)
}

/// The same with a scenario: its text, its name in messages, where its relative paths start.
#[pyfunction]
#[pyo3(signature = (text, file, base_dir, sets=Vec::new(), threads=1))]
pub fn bench_scenario(
    py: Python<'_>,
    text: String,
    file: String,
    base_dir: PathBuf,
    sets: Vec<(String, String)>,
    threads: u16,
) -> PyResult<String> {
    let before = peak_memory_bytes();
    py.detach(|| {
        let began = Instant::now();
        let scenario = scenarios::load(text, file, base_dir, sets, None, Vec::new())?;
        measure(&scenario, threads, began, before)
    })
}

/// Builds and runs. Set-up began at `began`, when the process had taken at most `before` bytes.
fn measure(scenario: &Scenario, asked: u16, began: Instant, before: Option<u64>) -> PyResult<String> {
    let execution = Execution { threads: usize::from(asked), ..Execution::default() };
    let simulation = Simulation::new(scenario.config().map_err(input)?, execution).map_err(failed)?;
    let setup_seconds = began.elapsed().as_secs_f64();
    let threads = simulation.plan().threads;
    let why_fewer = simulation.plan().why_fewer.clone();
    let counter = Instructions::start();
    let stopwatch = Stopwatch::start(threads);
    let mut stopped = Ok(());
    let mut goes_on = |_: &Progress| {
        stopped = Python::attach(|py| py.check_signals());
        stopped.is_ok()
    };
    let outcome = simulation.run(&mut Nowhere, &mut goes_on).map_err(failed)?;
    let cost = stopwatch.read();
    stopped?;
    let instructions = counter.and_then(|counter| counter.read());
    let mut found = json!({
        "threads": threads,
        "packet_hops": outcome.packet_hops,
        "events": outcome.events,
        "flows": outcome.flows_done,
        "fingerprint": format!("{:016x}", outcome.fingerprint),
        "setup_seconds": setup_seconds,
        "cpu_seconds": cost.cpu_seconds,
        "wall_seconds": cost.wall_seconds,
        "peak_memory_bytes": cost.peak_memory_bytes,
        "memory_before_bytes": before,
        "instructions_per_hop": instructions.map(|count| count as f64 / outcome.packet_hops as f64),
    });
    if let Some(why) = why_fewer {
        found["note"] = why.into();
    }
    Ok(found.to_string())
}
