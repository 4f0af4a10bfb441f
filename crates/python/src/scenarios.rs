//! Scenarios: loaded, checked, resolved, described.

use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Value, json};
use weftline_results::trace;
use weftline_sim::congestion::ExternalController;
use weftline_sim::describe;
use weftline_sim::scenario::{Hooks, Scenario};
use weftline_sim::topology::{NodeKind, Topology};
use weftline_sim::{Execution, Plan};

use crate::errors::{input, whole};
use crate::interrupts::interruptible;

/// What every function that takes a scenario is given.
pub struct Source {
    pub text: String,
    /// Its name in messages.
    pub file: String,
    /// Where its relative paths start.
    pub base_dir: PathBuf,
    /// (path, value) as `--set` has them.
    pub sets: Vec<(String, String)>,
    pub seed: Option<u64>,
}

impl Source {
    /// The scenario, and what `derive` makes of it. Ctrl-C ends it.
    pub fn load<T: Send + 'static>(
        self,
        controllers: Vec<ExternalController>,
        derive: impl FnOnce(Scenario) -> PyResult<T> + Send + 'static,
    ) -> PyResult<T> {
        interruptible(move || {
            let read_parquet = |path: &Path| trace::read(path).map_err(|e| e.to_string());
            let hooks = Hooks { read_parquet: Some(&read_parquet), controllers: &controllers };
            let loaded = Scenario::load(&self.text, &self.file, &self.base_dir, &self.sets, self.seed, hooks);
            derive(loaded.map_err(input)?)
        })
    }
}

/// A seed as Python has it: none, or a whole number that may not fit.
pub fn seed(value: Option<Bound<'_, PyAny>>) -> PyResult<Option<u64>> {
    value.map(|value| whole(&value, "seed", "a whole number from 0 to 2^64 - 1")).transpose()
}

/// Everything that follows from a scenario, as JSON.
#[pyfunction]
#[pyo3(signature = (text, file, base_dir, sets, seed, controllers=None))]
pub fn check(
    py: Python<'_>,
    text: String,
    file: String,
    base_dir: PathBuf,
    sets: Vec<(String, String)>,
    seed: Option<Bound<'_, PyAny>>,
    controllers: Option<Bound<'_, PyDict>>,
) -> PyResult<String> {
    let source = Source { text, file, base_dir, sets, seed: self::seed(seed)? };
    let (external, _) = crate::controllers::external(controllers)?;
    py.detach(|| {
        source.load(external, |scenario| {
            let execution = Execution { threads: scenario.threads, ..Execution::default() };
            let plan = Plan::of(&scenario.config().map_err(input)?, execution);
            let mut facts = scenario.check_on(plan.threads);
            if let (Some(warnings), Some(why)) = (facts["warnings"].as_array_mut(), plan.why_fewer) {
                warnings.push(format!("run.threads: {why}").into());
            }
            Ok(facts.to_string())
        })
    })
}

/// What a run is expected to cost, by its first `max_flows` flows: the `estimate` of [`check`], sooner.
#[pyfunction]
#[pyo3(signature = (text, file, base_dir, sets, seed, max_flows, controllers=None))]
#[allow(clippy::too_many_arguments)] // the call that the Python side makes, argument by argument
pub fn look(
    py: Python<'_>,
    text: String,
    file: String,
    base_dir: PathBuf,
    sets: Vec<(String, String)>,
    seed: Option<Bound<'_, PyAny>>,
    max_flows: u64,
    controllers: Option<Bound<'_, PyDict>>,
) -> PyResult<String> {
    let source = Source { text, file, base_dir, sets, seed: self::seed(seed)? };
    let (external, _) = crate::controllers::external(controllers)?;
    py.detach(|| source.load(external, move |scenario| Ok(scenario.look(max_flows).to_string())))
}

/// The scenario with every value in force, as TOML.
#[pyfunction]
#[pyo3(signature = (text, file, base_dir, sets, seed, controllers=None))]
pub fn resolve(
    py: Python<'_>,
    text: String,
    file: String,
    base_dir: PathBuf,
    sets: Vec<(String, String)>,
    seed: Option<Bound<'_, PyAny>>,
    controllers: Option<Bound<'_, PyDict>>,
) -> PyResult<String> {
    let source = Source { text, file, base_dir, sets, seed: self::seed(seed)? };
    let (external, _) = crate::controllers::external(controllers)?;
    py.detach(|| source.load(external, |scenario| Ok(scenario.resolved().to_string())))
}

/// The network of a scenario as JSON: `nodes`, each with `name`, `kind` and `tier` (0 for hosts); `links`, each with the
/// places of its ends in `nodes`, the names of their ports, `rate_bps` and `delay_ns`.
#[pyfunction]
#[pyo3(signature = (text, file, base_dir, sets, seed, controllers=None))]
pub fn network(
    py: Python<'_>,
    text: String,
    file: String,
    base_dir: PathBuf,
    sets: Vec<(String, String)>,
    seed: Option<Bound<'_, PyAny>>,
    controllers: Option<Bound<'_, PyDict>>,
) -> PyResult<String> {
    let source = Source { text, file, base_dir, sets, seed: self::seed(seed)? };
    let (external, _) = crate::controllers::external(controllers)?;
    py.detach(|| {
        source.load(external, |scenario| {
            Ok(network_of(&scenario.config().map_err(input)?.topology).to_string())
        })
    })
}

fn network_of(topology: &Topology) -> Value {
    let nodes = topology.nodes.iter().map(|node| {
        let kind = if node.kind == NodeKind::Host { "host" } else { "switch" };
        json!({ "name": node.name, "kind": kind, "tier": node.tier })
    });
    let mut used = vec![0; topology.nodes.len()];
    let mut port = |node: u32| {
        let next = &mut used[node as usize];
        *next += 1;
        topology.port_name(node, *next - 1)
    };
    let links = topology.links.iter().map(|link| {
        json!({
            "a": link.a,
            "b": link.b,
            "a_port": port(link.a),
            "b_port": port(link.b),
            "rate_bps": link.rate.0,
            "delay_ns": link.delay.as_ns(),
        })
    });
    json!({ "nodes": nodes.collect::<Vec<_>>(), "links": links.collect::<Vec<_>>() })
}

/// The JSON Schema of the scenario file.
#[pyfunction]
pub fn schema() -> String {
    format!("{:#}", describe::schema())
}

/// What a scenario can name, by kind, each with one line of help, as JSON.
#[pyfunction]
pub fn names() -> String {
    describe::names().to_string()
}

/// What a scheme, key or metric is, as JSON.
#[pyfunction]
pub fn explain(name: &str) -> PyResult<String> {
    describe::explain(name).map(|entry| entry.to_string()).map_err(input)
}
