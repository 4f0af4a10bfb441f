//! A run: GIL released, progress and signals ten times a second, results into its folder.

use std::path::PathBuf;
use std::time::Instant;

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::json;
use weftline_results::{About, Names, Resources, RunFolder, Stopwatch};
use weftline_sim::config::Config;
use weftline_sim::measure::{Ending, Outcome, Progress};
use weftline_sim::scenario::{MOST_THREADS, Scenario};
use weftline_sim::simulation::{Execution, Simulation};

use crate::controllers::{self, Failure};
use crate::errors::{failed, input, of_results, whole};
use crate::interrupts::interruptible;
use crate::scenarios::{self, Source};

/// Runs a scenario into the folder `out` and returns its summary as JSON.
///
/// Ctrl-C, or an exception from `progress`, ends the run; it is raised again once the folder is complete and says that
/// the run was interrupted.
#[pyfunction]
#[pyo3(signature = (text, file, base_dir, sets, seed, out, force, threads, progress=None, controllers=None))]
#[allow(clippy::too_many_arguments)] // the call that the Python side makes, argument by argument
pub fn run(
    py: Python<'_>,
    text: String,
    file: String,
    base_dir: PathBuf,
    sets: Vec<(String, String)>,
    seed: Option<Bound<'_, PyAny>>,
    out: PathBuf,
    force: bool,
    threads: Option<Bound<'_, PyAny>>,
    progress: Option<Py<PyAny>>,
    controllers: Option<Bound<'_, PyDict>>,
) -> PyResult<String> {
    let source = Source { text, file, base_dir, sets, seed: scenarios::seed(seed)? };
    let threads = threads.map(|number| threads_of(&number)).transpose()?;
    let (external, failure) = controllers::external(controllers)?;
    py.detach(|| {
        let scenario = source.load(external, Ok)?;
        let mut watch = Watch::new(progress, &failure);
        simulate(&scenario, threads.unwrap_or(scenario.threads), out, force, &mut watch)
    })
}

/// How many threads were asked for; 0: as many as pay.
fn threads_of(value: &Bound<'_, PyAny>) -> PyResult<usize> {
    let expected = format!("a whole number from 0 to {MOST_THREADS}, 0 for as many as pay");
    match whole::<u16>(value, "threads", &expected)? {
        number if usize::from(number) <= MOST_THREADS => Ok(usize::from(number)),
        number => Err(input(format!("threads: expected {expected}, found {number}"))),
    }
}

/// Builds, runs and ends the folder, whatever happens.
fn simulate(
    scenario: &Scenario,
    threads: usize,
    out: PathBuf,
    force: bool,
    watch: &mut Watch,
) -> PyResult<String> {
    let config = scenario.config().map_err(input)?;
    let about = About {
        name: scenario.name.clone(),
        seed: scenario.seed,
        scenario: scenario.resolved().to_string(),
        warnings: scenario.warnings.clone(),
    };
    let mut folder = RunFolder::create(&out, force, about, Names::of(&config)).map_err(of_results)?;
    let (network, built) = match build(config, threads) {
        Ok(built) => built,
        Err(error) => return Err(end_unbuilt(folder, error)),
    };
    if let Some(why) = &network.plan().why_fewer {
        folder.warn(format!("threads: {why}"));
    }
    let stopwatch = Stopwatch::start(network.plan().threads);
    let result = network.run_balanced(&mut folder, &mut |progress| watch.goes_on(progress));
    let cost = built.and(stopwatch.read());
    let broken = watch.failure.take();
    let outcome = match (result, broken) {
        (_, Some(text)) => return Err(failed(folder.fail(&text, &cost))),
        (Err(error), None) => return Err(failed(folder.fail(&error.to_string(), &cost))),
        (Ok((outcome, balance)), None) => {
            folder.worked(balance);
            outcome
        }
    };
    let mut summary = folder.finish(&outcome, &cost).map_err(of_results)?;
    if let Some(error) = watch.stopped.take() {
        return Err(error);
    }
    summary["out"] = json!(out.display().to_string());
    Ok(summary.to_string())
}

/// Builds the network of a run, and says what that cost. Ctrl-C ends it.
fn build(config: Config, threads: usize) -> PyResult<(Simulation, Resources)> {
    interruptible(move || {
        let stopwatch = Stopwatch::start(1);
        let execution = Execution { threads, regions: None };
        let network = Simulation::new(config, execution).map_err(failed)?;
        Ok((network, stopwatch.read()))
    })
}

/// Ends the folder of a run that never began; returns what is to be raised.
fn end_unbuilt(folder: RunFolder, error: PyErr) -> PyErr {
    let cost = Resources::default();
    if Python::attach(|py| is_interrupt(py, &error)) {
        // That the folder cannot be written either is not what the user wants to hear now.
        let _ = folder.finish(&Outcome::nothing(Ending::Interrupted), &cost);
        return error;
    }
    let reason = Python::attach(|py| error.value(py).to_string());
    failed(folder.fail(&reason, &cost))
}

/// Looks after a run while it goes on.
struct Watch<'a> {
    progress: Option<Py<PyAny>>,
    failure: &'a Failure,
    started: Instant,
    /// Why the run was stopped: KeyboardInterrupt, or what `progress` raised.
    stopped: Option<PyErr>,
}

impl<'a> Watch<'a> {
    fn new(progress: Option<Py<PyAny>>, failure: &'a Failure) -> Watch<'a> {
        Watch { progress, failure, started: Instant::now(), stopped: None }
    }

    /// Whether the run is to go on; asked about ten times a second.
    fn goes_on(&mut self, progress: &Progress) -> bool {
        if self.failure.happened() {
            self.stopped = self.failure.take_interrupt();
            return false;
        }
        let told = Python::attach(|py| {
            py.check_signals()?;
            match &self.progress {
                Some(callback) => callback.call1(py, (self.as_dict(py, progress)?,)).map(drop),
                None => Ok(()),
            }
        });
        self.stopped = told.err();
        self.stopped.is_none()
    }

    fn as_dict<'py>(&self, py: Python<'py>, progress: &Progress) -> PyResult<Bound<'py, PyDict>> {
        let seconds = self.started.elapsed().as_secs_f64();
        let dict = PyDict::new(py);
        dict.set_item("now_ns", progress.now.as_ns())?;
        dict.set_item("until_ns", progress.until.map(|until| until.as_ns()))?;
        dict.set_item("flows_done", progress.flows_done)?;
        dict.set_item("flows", progress.flows)?;
        dict.set_item("packet_hops", progress.packet_hops)?;
        dict.set_item("hops_per_second", progress.packet_hops as f64 / seconds.max(1e-9))?;
        dict.set_item("seconds", seconds)?;
        Ok(dict)
    }
}

/// Whether `error` is Ctrl-C.
pub fn is_interrupt(py: Python<'_>, error: &PyErr) -> bool {
    error.is_instance_of::<PyKeyboardInterrupt>(py)
}
