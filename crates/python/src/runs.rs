//! A run: GIL released, progress and signals ten times a second, results into its folder.

use std::path::{Path, PathBuf};
use std::time::Instant;

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Map, Value, json};
use weftline_results::capture::CapturePlan;
use weftline_results::{About, FolderClaim, Names, Resources, RunFolder, Stopwatch, memory_bytes};
use weftline_sim::config::Config;
use weftline_sim::machine::{self, Memory};
use weftline_sim::measure::{Ending, Outcome, Progress};
use weftline_sim::scenario::{self, MAX_THREADS, Scenario};
use weftline_sim::units::Bytes;
use weftline_sim::{Execution, Simulation};

use crate::controllers::Failure;
use crate::errors::{failed, input, of_results, whole};
use crate::interrupts::watched;

/// What a run may use.
pub struct Limits {
    threads: usize,
    pub memory: Option<Bytes>,
}

impl Limits {
    /// As the caller gave them; where it gave none, those of the scenario.
    pub fn of(
        threads: Option<Bound<'_, PyAny>>,
        memory: Option<Bound<'_, PyAny>>,
        scenario: &Scenario,
    ) -> PyResult<Limits> {
        let threads = threads.map(|number| threads_of(&number)).transpose()?;
        let memory = memory.map(memory_limit).transpose()?;
        Ok(Limits { threads: threads.unwrap_or(scenario.threads), memory: memory.unwrap_or(scenario.memory) })
    }
}

/// The number of threads; 0: choose automatically.
fn threads_of(value: &Bound<'_, PyAny>) -> PyResult<usize> {
    let expected = format!("a whole number from 0 to {MAX_THREADS} (0: choose automatically)");
    match whole::<u16>(value, "threads", &expected)? {
        number if usize::from(number) <= MAX_THREADS => Ok(usize::from(number)),
        number => Err(input(format!("threads: expected {expected}, found {number}"))),
    }
}

/// `memory=` as the caller gave it.
fn memory_limit(value: Bound<'_, PyAny>) -> PyResult<Option<Bytes>> {
    let expected = "memory: expected \"none\" or a size with its unit such as \"8GB\"";
    let text: String = value.extract().map_err(|_| input(format!("{expected}, found {value}")))?;
    scenario::memory_limit(&text).map_err(|message| input(format!("memory: {message}")))
}

/// What the caller states about the program and the files; nothing without it.
pub fn provenance_of(text: Option<&str>) -> PyResult<Map<String, Value>> {
    let Some(text) = text else { return Ok(Map::new()) };
    serde_json::from_str(text).map_err(|error| input(format!("provenance: expected a JSON object: {error}")))
}

/// Where the results go.
pub struct Place {
    pub out: PathBuf,
    /// Whether they may take the place of others.
    pub force: bool,
    /// Whether to wait until the disk has them.
    pub sync: bool,
    /// The claim on the folder, if the caller has it already.
    pub claim: Option<FolderClaim>,
}

/// Builds, runs and ends the folder, whatever happens.
pub fn simulate(
    scenario: &Scenario,
    provenance: Map<String, Value>,
    limits: &Limits,
    place: Place,
    foreseen: Vec<String>,
    progress: Option<Py<PyAny>>,
    failure: &Failure,
) -> PyResult<String> {
    // Before anything is computed: another run may write there.
    let claim = place.claim.map_or_else(|| FolderClaim::take(&place.out), Ok).map_err(of_results)?;
    // An earlier run of the same scenario may have failed.
    failure.reset();
    let mut watch = Watch::new(progress, failure, limits.memory);
    let out = &place.out;
    let mut warnings = scenario.warnings.clone();
    warnings.extend(foreseen);
    if limits.memory.is_none() {
        machine::memory().map_or(Ok(()), |memory| scenario.fits(memory.total)).map_err(input)?;
    }
    let config = scenario.config().map_err(input)?;
    let about = About {
        name: scenario.name.clone(),
        seed: scenario.seed,
        scenario: scenario.resolved().to_string(),
        warnings,
        memory_limit: limits.memory.map(|limit| limit.0),
        provenance,
    };
    let capture = CapturePlan::of(&config);
    let mut folder =
        RunFolder::create_in(claim, place.force, about, Names::of(&config)).map_err(of_results)?;
    if !place.sync {
        folder.unsynced();
    }
    if let Some(plan) = &capture {
        folder.capture(plan).map_err(of_results)?;
    }
    let (network, built) = match build(config, limits.threads, &watch) {
        Ok(Ok(built)) => built,
        Ok(Err(ending)) => {
            return ended(folder, &Outcome::nothing(ending), &Resources::default(), out);
        }
        Err(error) => return Err(end_unbuilt(folder, error)),
    };
    if let Some(ending) = watch.beyond_limit() {
        return ended(folder, &Outcome::nothing(ending), &built, out);
    }
    if let Some(why) = &network.plan().why_fewer {
        folder.warn(format!("threads: {why}"));
    }
    let stopwatch = Stopwatch::start(network.plan().threads);
    let result = network.run_balanced(&mut folder, &mut |progress| watch.goes_on(progress));
    let cost = built.and(stopwatch.read());
    let broken = watch.failure.take();
    let mut outcome = match (result, broken) {
        (_, Some(text)) => return Err(failed(folder.fail(&text, &cost))),
        (Err(error), None) => return Err(failed(folder.fail(&error.to_string(), &cost))),
        (Ok((outcome, balance)), None) => {
            // Of a shorter run it makes no difference.
            let slow = balance.warning().filter(|_| cost.wall_seconds > 1.0);
            slow.into_iter().for_each(|warning| folder.warn(warning));
            folder.worked(balance);
            failure.warnings().into_iter().for_each(|warning| folder.warn(warning));
            outcome
        }
    };
    outcome.ending = watch.ending.unwrap_or(outcome.ending);
    let summary = ended(folder, &outcome, &cost, out)?;
    watch.stopped.take().map_or(Ok(summary), Err)
}

/// Ends the folder of a run that came to an end; its summary as JSON.
fn ended(folder: RunFolder, outcome: &Outcome, cost: &Resources, out: &Path) -> PyResult<String> {
    let mut summary = folder.finish(outcome, cost).map_err(of_results)?;
    summary["out"] = json!(out.display().to_string());
    Ok(summary.to_string())
}

/// What to say before a run: it will probably need more memory or time than there is, or its limit is not enforced.
pub fn foreseen(scenario: &Scenario, limit: Option<Bytes>) -> Vec<String> {
    let held = memory_bytes();
    let mut found = scenario.foreseen(limit, held.unwrap_or(0));
    if limit.is_some() && held.is_none() {
        let text =
            "run.memory: this system does not report the memory of a process; the limit is not enforced";
        found.push(text.to_string());
    }
    found
}

/// Builds the network of a run and its flows, and returns what that cost. Ctrl-C ends it; so does a limit of memory, which is
/// returned.
fn build(
    config: Config,
    threads: usize,
    watch: &Watch<'_>,
) -> PyResult<Result<(Simulation, Resources), Ending>> {
    let build = move || {
        let stopwatch = Stopwatch::start(1);
        let execution = Execution { threads, ..Execution::default() };
        let network = Simulation::new(config, execution).map_err(failed)?;
        Ok((network, stopwatch.read()))
    };
    watched(build, || watch.beyond_limit())
}

/// Ends the folder of a run that never began; returns what is to be raised.
fn end_unbuilt(folder: RunFolder, error: PyErr) -> PyErr {
    let cost = Resources::default();
    if Python::attach(|py| is_interrupt(py, &error)) {
        // A second error, that the folder cannot be written, would hide the first.
        let _ = folder.finish(&Outcome::nothing(Ending::Interrupted), &cost);
        return error;
    }
    let reason = Python::attach(|py| error.value(py).to_string());
    failed(folder.fail(&reason, &cost))
}

/// The part of the machine's memory that a run leaves free: one in this number.
const SPARE: u64 = 32;

/// Supervises a run.
struct Watch<'a> {
    progress: Option<Py<PyAny>>,
    failure: &'a Failure,
    started: Instant,
    /// Most bytes that the process may hold.
    limit: Option<Bytes>,
    /// Bytes that it held before. A table that is full is copied into one of twice its size, and all that was added since may be
    /// one table. An allocation that fails ends the program, so twice as much of a limited address space must be left.
    held_before: u64,
    /// Why the run was stopped: KeyboardInterrupt, or what `progress` raised.
    stopped: Option<PyErr>,
    /// Or this: it went beyond a limit.
    ending: Option<Ending>,
}

impl<'a> Watch<'a> {
    fn new(progress: Option<Py<PyAny>>, failure: &'a Failure, limit: Option<Bytes>) -> Watch<'a> {
        let held_before = memory_bytes().unwrap_or(0);
        Watch { progress, failure, started: Instant::now(), limit, held_before, stopped: None, ending: None }
    }

    /// How the run is to end because the process holds more memory than it may, or than there is; none while it
    /// does not.
    fn beyond_limit(&self) -> Option<Ending> {
        let held = Bytes(memory_bytes()?);
        if let Some(limit) = self.limit.filter(|&limit| held > limit) {
            return Some(Ending::MemoryLimit { held, limit });
        }
        let left = machine::address_space().map(|space| space.left);
        if let Some(left) = left.filter(|left| left.0 < 2 * held.0.saturating_sub(self.held_before)) {
            return Some(Ending::AddressSpaceFull { held, left });
        }
        let Memory { total, left } = machine::memory()?;
        // What is left is for the tables that the end of a run sorts. Where others fill the machine, this run is
        // not the one to end.
        let is_full = left.0 < total.0 / SPARE && held > left;
        is_full.then_some(Ending::MachineFull { held, left })
    }

    /// Whether the run is to continue; called about ten times a second.
    fn goes_on(&mut self, progress: &Progress) -> bool {
        if self.failure.happened() {
            self.stopped = self.failure.take_interrupt();
            return false;
        }
        self.ending = self.beyond_limit();
        if self.ending.is_some() {
            return false;
        }
        let called = Python::attach(|py| {
            py.check_signals()?;
            match &self.progress {
                Some(callback) => callback.call1(py, (self.as_dict(py, progress)?,)).map(drop),
                None => Ok(()),
            }
        });
        self.stopped = called.err();
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
