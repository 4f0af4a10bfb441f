//! A run's folder during the run: tables grow in it, and its end, whatever it is, becomes summary.json.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};
use weftline_sim::measure::{Balance, DigestRecord, FlowRecord, Frames, Outcome, Sample, Sink};

use crate::capture::{self, CaptureFile, CapturePlan};
use crate::durable::{self, write_whole};
use crate::flow_table::{self, FlowRows};
use crate::names::Names;
use crate::resources::Resources;
use crate::series::{self, SeriesRows};
use crate::table_file::TableFile;
use crate::{ResultsError, digests, file_digests, findings, jobs, queues, ranks, summary};

mod claim;
pub use claim::{FolderClaim, LOCK_FILE};

pub const SCENARIO_FILE: &str = "scenario.toml";
pub const SUMMARY_FILE: &str = "summary.json";
/// The files of a run except digests.json, which lists these.
pub const WRITTEN_FILES: &[&str] = &[
    SCENARIO_FILE,
    SUMMARY_FILE,
    flow_table::FILE,
    series::FILE,
    queues::FILE,
    jobs::FILE,
    ranks::FILE,
    digests::FILE,
    capture::FILE,
];
/// What is there too, of a run or a report.
const OTHER_FILES: &[&str] = &["report.html", RESERVE_FILE];
/// Room kept on the disk until the run ends, so that a full one still takes the last flows and the summary.
const RESERVE_FILE: &str = "reserve.part";
const RESERVE_BYTES: usize = 1 << 20;
/// Rows gathered before they become columns.
const ROWS_PER_BATCH: usize = 4096;

/// Which run it is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct About {
    pub name: String,
    pub seed: u64,
    /// The resolved scenario: rerunning it gives the same bits.
    pub scenario: String,
    /// What deserves a look before the result is trusted.
    pub warnings: Vec<String>,
    /// Most bytes that the process may hold, if there is a limit.
    pub memory_limit: Option<u64>,
    /// What else the run was made of: digests of the program and of the files that the scenario names.
    pub provenance: Map<String, Value>,
}

/// The folder of a run in progress. Ends with [`RunFolder::finish`] or [`RunFolder::fail`]; if neither is called its
/// tables stay readable, without summary.
pub struct RunFolder {
    dir: PathBuf,
    about: About,
    balance: Option<Balance>,
    names: Arc<Names>,
    flow_rows: FlowRows,
    flows: TableFile,
    waiting_flows: Vec<FlowRecord>,
    series_rows: SeriesRows,
    /// Made when the first sample comes.
    series: Option<TableFile>,
    waiting_samples: Vec<Sample>,
    /// Made when the first digest comes.
    digests: Option<TableFile>,
    waiting_digests: Vec<DigestRecord>,
    capture: Option<CaptureFile>,
    reserve: Option<Reserve>,
    /// Whether the run ends only when the disk has its files.
    sync: bool,
    /// No other run writes into the folder meanwhile; the last field, since it is given back last.
    _claim: FolderClaim,
}

/// A file that takes up room until this is dropped.
struct Reserve(PathBuf);

impl Reserve {
    fn take(path: PathBuf) -> Result<Reserve, ResultsError> {
        let taken = fs::write(&path, vec![0; RESERVE_BYTES]);
        // What was written before the disk was full goes with it.
        let reserve = Reserve(path);
        match taken {
            Ok(()) => Ok(reserve),
            Err(error) => {
                let name = reserve.0.display();
                Err(ResultsError::failed(format!("{name}: no room for the results of a run: {error}")))
            }
        }
    }
}

impl Drop for Reserve {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

impl RunFolder {
    /// Makes `dir` and its parents, claims it and writes scenario.toml into it: see [`RunFolder::create_in`].
    pub fn create(
        dir: &Path,
        overwrite: bool,
        about: About,
        names: Names,
    ) -> Result<RunFolder, ResultsError> {
        RunFolder::create_in(FolderClaim::take(dir)?, overwrite, about, names)
    }

    /// Writes scenario.toml into a folder that was claimed. One that holds anything is refused, unless `overwrite`: then what an
    /// earlier run left in it is removed, and nothing else. The run ends only when the disk has its files, unless
    /// [`RunFolder::unsynced`] or WEFTLINE_SYNC says otherwise.
    pub fn create_in(
        claim: FolderClaim,
        overwrite: bool,
        about: About,
        names: Names,
    ) -> Result<RunFolder, ResultsError> {
        let dir = claim.dir();
        prepare(dir, overwrite)?;
        write_whole(&dir.join(SCENARIO_FILE), about.scenario.as_bytes(), false)?;
        let names = Arc::new(names);
        Ok(RunFolder {
            flows: TableFile::create(&dir.join(flow_table::FILE), flow_table::schema())?,
            dir: dir.to_path_buf(),
            about,
            balance: None,
            flow_rows: FlowRows::new(names.clone()),
            waiting_flows: Vec::with_capacity(ROWS_PER_BATCH),
            series_rows: SeriesRows::new(names.clone()),
            names,
            series: None,
            waiting_samples: Vec::new(),
            digests: None,
            waiting_digests: Vec::new(),
            capture: None,
            reserve: Some(Reserve::take(dir.join(RESERVE_FILE))?),
            sync: durable::by_default(),
            _claim: claim,
        })
    }

    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// Lets the run end before the disk has its files: who moves them elsewhere syncs them there.
    pub fn unsynced(&mut self) {
        self.sync = false;
    }

    /// Adds a warning to what the summary will say.
    pub fn warn(&mut self, warning: String) {
        self.about.warnings.push(warning);
    }

    /// Makes the file for packets.
    pub fn capture(&mut self, plan: &CapturePlan) -> Result<(), ResultsError> {
        self.capture = Some(CaptureFile::create(&self.dir.join(capture::FILE), plan)?);
        Ok(())
    }

    /// Notes how the work was spread over threads, for the summary.
    pub fn worked(&mut self, balance: Balance) {
        self.balance = Some(balance);
    }

    /// Ends the folder of a run that came to an end, also an early one (see [`Ending`](weftline_sim::measure::Ending)); returns what
    /// summary.json holds. Where a table cannot be written to its end the summary says that the run failed.
    pub fn finish(mut self, outcome: &Outcome, cost: &Resources) -> Result<Value, ResultsError> {
        let written = self.close().and_then(|()| self.write_queues(outcome));
        let written = written.and_then(|()| match &outcome.steps[..] {
            [] => Ok(()),
            steps => jobs::write(&self.dir, &self.names, steps),
        });
        let written = written.and_then(|()| match &outcome.ranks[..] {
            [] => Ok(()),
            all => ranks::write(&self.dir, &self.names, &outcome.steps, all),
        });
        self.about.warnings.extend(self.capture.as_ref().and_then(CaptureFile::warning));
        let written = written.and_then(|()| {
            let findings = findings::of(outcome, &self.names, &self.dir)?;
            self.about.warnings.extend(findings);
            let mut summary = summary::of(&self.about, &self.names, outcome, cost, &self.dir)?;
            if let (Value::Object(summary), Some(balance)) = (&mut summary, &self.balance) {
                summary.extend(summary::of_balance(balance));
            }
            if let Some(capture) = &self.capture {
                summary["capture"] = capture.summary();
            }
            self.end(summary)
        });
        written.inspect_err(|error| {
            let _ = self.end(summary::of_failure(&self.about, &error.to_string(), cost));
        })
    }

    /// Ends the folder of a run that failed; what was recorded before is written as far as it can be. Returns `reason`, with
    /// what is readable.
    pub fn fail(mut self, reason: &str, cost: &Resources) -> String {
        let closed = self.close();
        let mut text = reason.to_string();
        if let Err(error) = closed {
            // The failure to write may be the reason itself.
            let error = error.to_string();
            if !text.contains(&error) {
                text = format!("{text}\n{error}");
            }
        }
        if let Err(error) = self.end(summary::of_failure(&self.about, &text, cost)) {
            text = format!("{text}\n{error}");
        }
        let rows = self.flows.rows();
        format!("{text}\n{}: {rows} flows recorded until then are readable", self.dir.display())
    }

    fn flush_flows(&mut self) -> Result<(), ResultsError> {
        if self.waiting_flows.is_empty() {
            return Ok(());
        }
        let batch = self.flow_rows.batch(&self.waiting_flows);
        self.waiting_flows.clear();
        self.flows.write(&batch)
    }

    fn flush_samples(&mut self) -> Result<(), ResultsError> {
        if self.waiting_samples.is_empty() {
            return Ok(());
        }
        let batch = self.series_rows.batch(&self.waiting_samples);
        self.waiting_samples.clear();
        let table = match self.series.take() {
            Some(table) => table,
            None => TableFile::create(&self.dir.join(series::FILE), series::schema())?,
        };
        self.series.insert(table).write(&batch)
    }

    fn flush_digests(&mut self) -> Result<(), ResultsError> {
        if self.waiting_digests.is_empty() {
            return Ok(());
        }
        let batch = digests::batch(&self.names, &self.waiting_digests);
        self.waiting_digests.clear();
        let table = match self.digests.take() {
            Some(table) => table,
            None => digests::table(&self.dir)?,
        };
        self.digests.insert(table).write(&batch)
    }

    /// Everything to the disk; the first failure is returned after all was tried.
    fn close(&mut self) -> Result<(), ResultsError> {
        self.reserve = None;
        let flows = self.flush_flows().and_then(|()| self.flows.close());
        let samples = self.flush_samples();
        let series = self.series.as_mut().map_or(Ok(()), TableFile::close);
        let last = self.flush_digests();
        let digests = self.digests.as_mut().map_or(Ok(()), TableFile::close);
        let capture = self.capture.as_mut().map_or(Ok(()), CaptureFile::close);
        flows.and(samples).and(series).and(last).and(digests).and(capture)
    }

    fn write_queues(&self, outcome: &Outcome) -> Result<(), ResultsError> {
        if outcome.queues.is_empty() {
            return Ok(());
        }
        let mut table = TableFile::create(&self.dir.join(queues::FILE), queues::schema())?;
        for (node, port, histogram) in &outcome.queues {
            table.write(&queues::batch(&self.names, (*node, *port), histogram))?;
        }
        table.close()
    }

    /// Writes the summary and then digests.json; what has no digests.json does not say that it has. Returns the summary.
    fn end(&self, mut summary: Value) -> Result<Value, ResultsError> {
        summary[file_digests::SUMMARY_KEY] = file_digests::KIND.into();
        self.write_summary(&summary)?;
        if let Err(error) = file_digests::write(&self.dir, self.sync) {
            summary[file_digests::SUMMARY_KEY].take();
            let _ = self.write_summary(&summary);
            return Err(error);
        }
        Ok(summary)
    }

    fn write_summary(&self, summary: &Value) -> Result<(), ResultsError> {
        write_whole(&self.dir.join(SUMMARY_FILE), format!("{summary:#}\n").as_bytes(), false)
    }
}

impl Sink for RunFolder {
    fn flows(&mut self, mut rows: &[FlowRecord]) -> std::io::Result<()> {
        while fill(&mut self.waiting_flows, &mut rows) {
            self.flush_flows()?;
        }
        Ok(())
    }

    fn samples(&mut self, mut rows: &[Sample]) -> std::io::Result<()> {
        while fill(&mut self.waiting_samples, &mut rows) {
            self.flush_samples()?;
        }
        Ok(())
    }

    fn digests(&mut self, mut rows: &[DigestRecord]) -> std::io::Result<()> {
        while fill(&mut self.waiting_digests, &mut rows) {
            self.flush_digests()?;
        }
        Ok(())
    }

    fn frames(&mut self, batch: &Frames) -> std::io::Result<bool> {
        match &mut self.capture {
            Some(capture) => Ok(capture.append(batch)?),
            None => Ok(false),
        }
    }
}

/// Moves rows to those that wait, up to a whole batch; returns whether it is one. Pages of a file follow its batches: with batches of
/// one length its bytes do not show in which portions rows came, which differ by the number of threads.
fn fill<T: Clone>(waiting: &mut Vec<T>, rows: &mut &[T]) -> bool {
    let (fitting, rest) = rows.split_at(rows.len().min(ROWS_PER_BATCH - waiting.len()));
    waiting.extend_from_slice(fitting);
    *rows = rest;
    waiting.len() == ROWS_PER_BATCH
}

/// Empties a claimed folder of an earlier run.
fn prepare(dir: &Path, overwrite: bool) -> Result<(), ResultsError> {
    let name = dir.display();
    let entries = fs::read_dir(dir).map_err(|e| ResultsError::input(format!("{name}: {e}")))?;
    if entries.flatten().all(|entry| entry.file_name() == LOCK_FILE) {
        return Ok(());
    }
    if !overwrite {
        return Err(ResultsError::input(format!(
            "{name} exists and is not empty: choose another folder with --out, or overwrite it with --force \
             (in Python: out=, force=True)"
        )));
    }
    // First what vouches for the others: a process that is killed in between leaves files that nothing vouches for.
    for file in [file_digests::FILE, SUMMARY_FILE].iter().chain(WRITTEN_FILES).chain(OTHER_FILES) {
        match fs::remove_file(dir.join(file)) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(ResultsError::input(format!("{}: {e}", dir.join(file).display())));
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
