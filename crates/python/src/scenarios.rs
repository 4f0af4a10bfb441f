//! Scenarios: loaded, checked, resolved, run, described.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Value, json};
use weftline_results::trace;
use weftline_sim::config::Config;
use weftline_sim::congestion::ExternalController;
use weftline_sim::describe;
use weftline_sim::scenario::{self, Hooks};
use weftline_sim::topology::{NodeKind, Topology};
use weftline_sim::units::Bytes;
use weftline_sim::{Execution, Plan};

use crate::controllers::Failure;
use crate::errors::{input, whole};
use crate::file_digests::FolderClaim;
use crate::interrupts::interruptible;
use crate::runs::{self, Limits, Place};
use crate::speed;
use crate::why::{Asked, Step, why};

/// A scenario that has been read and found valid. Controllers in Python are classes by name.
#[pyclass(frozen, module = "weftline._native")]
pub struct Scenario {
    loaded: Arc<scenario::Scenario>,
    /// What its controllers in Python raised.
    failure: Arc<Failure>,
    /// What deserves a look before a run with some limit of memory; finding it takes a while.
    foreseen: Mutex<Option<Foreseen>>,
}

/// A limit of memory, and the warnings of a run with it.
type Foreseen = (Option<Bytes>, Vec<String>);

impl Scenario {
    /// What a run is built from.
    pub fn config(&self) -> PyResult<Config> {
        self.loaded.config().map_err(input)
    }

    /// The warnings of a run with a limit of memory. Ctrl-C ends it.
    fn foreseen_with(&self, py: Python<'_>, memory: Option<Bytes>) -> PyResult<Vec<String>> {
        let known = || self.foreseen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, found)) = known().as_ref().filter(|(limit, _)| *limit == memory) {
            return Ok(found.clone());
        }
        let found = self.derive(py, move |scenario| Ok(runs::foreseen(scenario, memory)))?;
        *known() = Some((memory, found.clone()));
        Ok(found)
    }

    /// What `derive` makes of it. Ctrl-C ends it.
    fn derive<T: Send + 'static>(
        &self,
        py: Python<'_>,
        derive: impl FnOnce(&scenario::Scenario) -> PyResult<T> + Send + 'static,
    ) -> PyResult<T> {
        let loaded = self.loaded.clone();
        py.detach(|| interruptible(move || derive(&loaded)))
    }
}

#[pymethods]
impl Scenario {
    /// Reads a scenario. `file` is its name in messages, `base_dir` where its relative paths start, `sets` the pairs of
    /// path and value of `--set`.
    #[new]
    #[pyo3(signature = (text, file, base_dir, sets=Vec::new(), seed=None, controllers=None))]
    fn new(
        py: Python<'_>,
        text: String,
        file: String,
        base_dir: PathBuf,
        sets: Vec<(String, String)>,
        seed: Option<Bound<'_, PyAny>>,
        controllers: Option<Bound<'_, PyDict>>,
    ) -> PyResult<Scenario> {
        let seed = seed.map(|seed| whole(&seed, "seed", "a whole number from 0 to 2^63 - 1")).transpose()?;
        let (controllers, failure) = crate::controllers::external(controllers)?;
        let loaded = py.detach(|| load(text, file, base_dir, sets, seed, controllers))?;
        Ok(Scenario { loaded: Arc::new(loaded), failure, foreseen: Mutex::new(None) })
    }

    /// The scenario with every value in force, as TOML.
    #[getter]
    fn resolved(&self) -> &str {
        self.loaded.resolved()
    }

    /// Everything that follows from it, as JSON; the estimated seconds are those of this machine.
    fn check(&self, py: Python<'_>) -> PyResult<String> {
        self.derive(py, |scenario| {
            let execution = Execution { threads: scenario.threads, ..Execution::default() };
            let plan = Plan::of(&scenario.config().map_err(input)?, execution);
            let mut facts = scenario.check_on(plan.threads);
            if let (Some(warnings), Some(why)) = (facts["warnings"].as_array_mut(), plan.why_fewer) {
                warnings.push(format!("run.threads: {why}").into());
            }
            speed::of_this_machine(&mut facts["estimate"]);
            Ok(facts.to_string())
        })
    }

    /// What a run is expected to cost, by its first `max_flows` flows: the `estimate` of `check`, sooner.
    fn look(&self, py: Python<'_>, max_flows: u64) -> PyResult<String> {
        self.derive(py, move |scenario| {
            let mut estimate = scenario.look(max_flows);
            speed::of_this_machine(&mut estimate);
            Ok(estimate.to_string())
        })
    }

    /// What a run with this limit of memory will probably come to that deserves a look before it starts.
    #[pyo3(signature = (memory=None))]
    fn foreseen(&self, py: Python<'_>, memory: Option<Bound<'_, PyAny>>) -> PyResult<Vec<String>> {
        self.foreseen_with(py, Limits::of(None, memory, &self.loaded)?.memory)
    }

    /// Its network as JSON: `nodes`, each with `name`, `kind` and `tier` (0 for hosts); `links`, each with the places of
    /// its ends in `nodes`, the names of their ports, `rate_bps` and `delay_ns`.
    fn network(&self, py: Python<'_>) -> PyResult<String> {
        self.derive(py, |scenario| Ok(network_of(&scenario.config().map_err(input)?.topology).to_string()))
    }

    /// Runs it into the folder `out` and returns the summary as JSON.
    ///
    /// Ctrl-C, or an exception from `progress`, ends the run; it is raised again once the folder is complete and says that
    /// the run was interrupted. `memory` ("8GB", "none") takes the place of the scenario's limit; a run that goes beyond
    /// it ends with the status "memory-limit". `provenance` is JSON: what the summary states about the program and about
    /// the files that the run was made of. Without `sync` it does not wait until the disk has the results. `claim` is that of
    /// the folder, if the caller has it already.
    #[pyo3(signature = (out, *, force=false, threads=None, progress=None, memory=None, provenance=None, sync=true, claim=None))]
    #[allow(clippy::too_many_arguments)] // the call that the Python side makes, argument by argument
    fn run(
        &self,
        py: Python<'_>,
        out: PathBuf,
        force: bool,
        threads: Option<Bound<'_, PyAny>>,
        progress: Option<Py<PyAny>>,
        memory: Option<Bound<'_, PyAny>>,
        provenance: Option<&str>,
        sync: bool,
        claim: Option<PyRef<'_, FolderClaim>>,
    ) -> PyResult<String> {
        let claim = claim.and_then(|claim| claim.take());
        let place = Place { out, force, sync, claim };
        let limits = Limits::of(threads, memory, &self.loaded)?;
        let provenance = runs::provenance_of(provenance)?;
        let foreseen = self.foreseen_with(py, limits.memory)?;
        py.detach(|| {
            runs::simulate(&self.loaded, provenance, &limits, place, foreseen, progress, &self.failure)
        })
    }

    /// Runs it twice, the second time with some flows traced, and returns where their completion times went, as JSON: of
    /// one `flow`, of the flows that decided when a step of the job `group` ended (`step`: its number, negative
    /// for the slowest; `workload`: which of several jobs of one group), else of the `slowest` by slowdown, in a
    /// `group` if that is named. `fingerprint` is that of the stored run. A `link` that the network does not
    /// have is an error.
    #[pyo3(signature = (fingerprint, *, flow=None, step=None, slowest=5, group=None, workload=None, link=None, intervals=false))]
    #[allow(clippy::too_many_arguments)] // the call that the Python side makes, argument by argument
    fn why(
        &self,
        py: Python<'_>,
        fingerprint: &str,
        flow: Option<u32>,
        step: Option<i64>,
        slowest: usize,
        group: Option<String>,
        workload: Option<usize>,
        link: Option<String>,
        intervals: bool,
    ) -> PyResult<String> {
        let step = step.map(|step| u32::try_from(step).map_or(Step::Slowest, Step::Number));
        let asked = Asked { flow, slowest, group, workload, link, step, intervals };
        py.detach(|| why(&self.loaded, fingerprint, &asked))
    }
}

/// A scenario of the engine. Ctrl-C ends the reading.
pub fn load(
    text: String,
    file: String,
    base_dir: PathBuf,
    sets: Vec<(String, String)>,
    seed: Option<u64>,
    controllers: Vec<ExternalController>,
) -> PyResult<scenario::Scenario> {
    interruptible(move || {
        let read_parquet = |path: &Path| trace::read(path).map_err(|e| e.to_string());
        let hooks = Hooks { read_parquet: Some(&read_parquet), controllers: &controllers };
        scenario::Scenario::load(&text, &file, &base_dir, &sets, seed, hooks).map_err(input)
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
