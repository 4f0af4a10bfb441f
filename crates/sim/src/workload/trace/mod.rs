//! Replay: flows from a CSV or Parquet file, from a flow file of the HPCC authors' simulator, or from a connection matrix of htsim.
//!
//! Columns: src, dst, size_bytes, start_ns; optionally group, deadline_ns, after, compute_ns. Hosts are given
//! by the topology's ids or names; times are relative to the start of the workload, in the unit of the
//! column's name (ns, us, ms or s). `after` lists rows (counted from 0) that must end before this flow
//! starts; it then starts after compute_ns, but not before start_ns. Rows are sorted by start; those with
//! numbers (flow_id) may be in any order.

pub mod columns;
mod csv;
mod hpcc;
mod htsim;

pub use htsim::{MatrixFacts, matrix_facts};

use super::WorkloadParameters;
use super::spec::{LAST_START, Window, WorkloadContext, WorkloadError};
use super::{FlowSource, FlowSpec, WITHOUT_END, sizes};
use crate::doc::SchemeDoc;
use crate::files;
use crate::parameters::Parameters;
use crate::topology::HostId;
use crate::units::Time;
use std::path::Path;
use std::sync::Arc;

/// Maximum size of a text file of flows in bytes: about a hundred million flows.
const MAX_BYTES: u64 = 4 << 30;

/// The hosts that a trace may name.
#[derive(Clone, Copy)]
pub struct HostOf<'a> {
    pub by_id: &'a dyn Fn(u32) -> Option<HostId>,
    /// The error says which name is nearest.
    pub by_name: &'a dyn Fn(&str) -> Result<HostId, String>,
}

/// Flows in the order of their start times.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trace {
    rows: Vec<Row>,
    /// (row, row for which it waits), in the order of the rows.
    waits: Vec<(u32, u32)>,
    groups: Vec<String>,
    /// What deserves a second look.
    pub warnings: Vec<String>,
}

/// A checked row.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Row {
    src: HostId,
    dst: HostId,
    size: u64,
    start: Time,
    deadline: Option<Time>,
    compute: Time,
    /// Index into `groups`.
    group: Option<u16>,
    waits_for: u16,
}

/// A row as read, not checked. Times are in picoseconds.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TraceRow {
    pub src: i64,
    pub dst: i64,
    /// In place of the number.
    pub src_name: Option<String>,
    pub dst_name: Option<String>,
    pub size_bytes: i64,
    pub start_ps: i64,
    pub group: Option<String>,
    pub deadline_ps: Option<i64>,
    /// Rows that must end first, counted from 0.
    pub after: Vec<i64>,
    pub compute_ps: i64,
    /// The number of the flow, where the file numbers its flows.
    pub id: Option<u64>,
}

impl TraceRow {
    /// Puts rows with numbers in the order of their starts, and those that start together in that of their
    /// numbers: the table of an earlier run has them in the order in which they ended, and their order
    /// decides which paths they take. Nothing moves where a row has no number, or waits for others by their
    /// places.
    pub fn put_in_order<T>(rows: &mut [T], row: impl Fn(&T) -> &TraceRow) {
        if rows.iter().map(&row).all(|row| row.id.is_some() && row.after.is_empty()) {
            rows.sort_by_key(|item| (row(item).start_ps, row(item).id));
        }
    }

    /// Converts a column's time, in units of `10^exponent` picoseconds; none if invalid or beyond 46 days.
    pub fn picoseconds(value: f64, exponent: u32) -> Option<i64> {
        let ps = (value * 10_f64.powi(exponent as i32)).round();
        (ps.abs() <= LAST_START.0 as f64).then_some(ps as i64)
    }
}

/// An error in a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceError {
    pub file: String,
    /// Line number from 1, in text files.
    pub line: Option<usize>,
    /// Row number from 0, as in `after`.
    pub row: Option<usize>,
    pub message: String,
}

impl std::fmt::Display for TraceError {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if let Some(row) = self.row {
            write!(f, ": row {row}")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for TraceError {}

impl TraceError {
    fn new(file: &str, line: Option<usize>, row: Option<usize>, message: impl Into<String>) -> TraceError {
        TraceError { file: file.to_string(), line, row, message: message.into() }
    }
}

impl Trace {
    /// Checks rows from another reader, such as Parquet.
    pub fn from_rows(
        rows: impl IntoIterator<Item = TraceRow>,
        file: &str,
        host: HostOf,
    ) -> Result<Trace, TraceError> {
        let mut trace = Trace::default();
        for (number, row) in rows.into_iter().enumerate() {
            trace.push(row, host).map_err(|m| TraceError::new(file, None, Some(number), m))?;
        }
        trace.not_empty(file)
    }

    /// Number of flows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The flows, as if the trace were the only workload: group and transport 0.
    pub fn flows(&self) -> impl Iterator<Item = FlowSpec> + '_ {
        self.rows.iter().map(Row::flow)
    }

    fn not_empty(self, file: &str) -> Result<Trace, TraceError> {
        if self.rows.is_empty() {
            return Err(TraceError::new(file, None, None, "the file contains no flows"));
        }
        Ok(self)
    }

    /// Adds a row; the error says which column is wrong and why.
    fn push(&mut self, row: TraceRow, host: HostOf) -> Result<(), String> {
        let src = host_of("src", row.src, row.src_name.as_deref(), host)?;
        let dst = host_of("dst", row.dst, row.dst_name.as_deref(), host)?;
        if src == dst {
            let shown = row.src_name.unwrap_or_else(|| row.src.to_string());
            return Err(format!("src and dst are both host {shown}: a flow needs two hosts"));
        }
        if row.size_bytes <= 0 {
            return Err(format!("size_bytes: expected a size of at least 1, found {}", row.size_bytes));
        }
        // A run's table of flows has this size for those that send until its end.
        let has_end = row.size_bytes as u64 != WITHOUT_END.0;
        if has_end && row.size_bytes as u64 > sizes::MAX_BYTES {
            return Err(format!("size_bytes: {} is above the limit of 1 TB", row.size_bytes));
        }
        let start = time("start", row.start_ps)?;
        if let Some(before) = self.rows.last().map(|before| before.start).filter(|&before| start < before) {
            return Err(format!("start {start} comes after {before}: rows must be sorted by their start"));
        }
        let deadline = row.deadline_ps.map(|ps| time("deadline", ps)).transpose()?;
        if deadline.is_some_and(|deadline| deadline < start) {
            return Err("the deadline is before the start".into());
        }
        let compute = time("compute", row.compute_ps)?;
        if compute > Time::ZERO && row.after.is_empty() {
            return Err("compute without after: there is no flow after which to compute".into());
        }
        let name = row.group.as_deref().map(str::trim).filter(|name| !name.is_empty());
        let group = name.map(|name| self.group(name)).transpose()?;
        let waits_for = self.wait(&row.after, src)?;
        self.rows.push(Row {
            src,
            dst,
            size: row.size_bytes as u64,
            start,
            deadline,
            compute,
            group,
            waits_for,
        });
        Ok(())
    }

    fn group(&mut self, name: &str) -> Result<u16, String> {
        if name.contains(char::is_control) {
            return Err(format!("group: {name:?} is not a valid name: it must fit in one line"));
        }
        let index = match self.groups.iter().position(|known| *known == name) {
            Some(index) => index,
            None => {
                self.groups.push(name.to_string());
                self.groups.len() - 1
            }
        };
        let limit = 1000;
        if index >= limit {
            return Err(format!("group: more than {limit} groups"));
        }
        Ok(index as u16)
    }

    /// Records the flows for which the next row waits: earlier rows that end at its source, or were sent by
    /// it.
    fn wait(&mut self, after: &[i64], src: HostId) -> Result<u16, String> {
        let next = self.rows.len();
        let mut earlier: Vec<u32> = Vec::with_capacity(after.len());
        for &row in after {
            let Some(first) = usize::try_from(row).ok().and_then(|row| self.rows.get(row)) else {
                return Err(format!("after: row {row} is not one of the rows before this one"));
            };
            if src != first.src && src != first.dst {
                return Err(format!(
                    "after: row {row} neither starts nor ends at the source of this flow, which has no \
                     information about its end"
                ));
            }
            earlier.push(row as u32);
        }
        earlier.sort_unstable();
        earlier.dedup();
        self.waits.extend(earlier.iter().map(|&earlier| (next as u32, earlier)));
        u16::try_from(earlier.len()).map_err(|_| format!("after: more than {} rows", u16::MAX))
    }

    /// Its flows as a source of a run.
    pub(super) fn source(self, cx: &WorkloadContext, window: Window) -> Box<dyn FlowSource> {
        self.warnings.iter().for_each(|warning| (cx.warn)(warning.clone()));
        let groups = self.groups.iter().map(|name| (cx.group_named)(name)).collect();
        let start_in_run = |row: &Row| window.start.saturating_add(row.start);
        let count = self.rows.partition_point(|row| start_in_run(row) < window.end);
        let trace = Arc::new(self);
        Box::new(Replay { trace, groups, count, next: 0, start: window.start, flow: cx.flow() })
    }
}

impl Row {
    fn flow(&self) -> FlowSpec {
        let Row { src, dst, size, start, deadline, compute, waits_for, .. } = *self;
        FlowSpec { src, dst, size, start, deadline, compute, waits_for, ..FlowSpec::default() }
    }
}

/// The column's host; the error names the nearest known id below.
fn host_of(column: &str, id: i64, name: Option<&str>, host: HostOf) -> Result<HostId, String> {
    if let Some(name) = name {
        return (host.by_name)(name).map_err(|message| format!("{column}: {message}"));
    }
    let host = host.by_id;
    let label = u32::try_from(id).map_err(|_| format!("{column}: {id} is not a valid host id"))?;
    host(label).ok_or_else(|| {
        let nearest = (0..label).rev().take(100_000).find(|&label| host(label).is_some());
        match nearest {
            Some(nearest) => {
                format!("{column}: unknown host {label} (the nearest below it is {nearest})")
            }
            None => format!("{column}: unknown host {label}"),
        }
    })
}

fn time(column: &str, ps: i64) -> Result<Time, String> {
    match u64::try_from(ps) {
        Ok(ps) if ps < LAST_START.0 => Ok(Time(ps)),
        Ok(_) => Err(format!("{column}: is later than {LAST_START}")),
        Err(_) => Err(format!("{column}: is negative")),
    }
}

#[derive(Clone)]
struct Replay {
    trace: Arc<Trace>,
    /// Index in the run of each of the trace's groups.
    groups: Vec<u16>,
    /// Number of rows to be replayed.
    count: usize,
    next: usize,
    /// Added to all times.
    start: Time,
    flow: FlowSpec,
}

impl FlowSource for Replay {
    fn next(&mut self) -> Option<FlowSpec> {
        let row = self.trace.rows[..self.count].get(self.next)?;
        self.next += 1;
        Some(FlowSpec {
            start: self.start.saturating_add(row.start),
            deadline: row.deadline.map(|deadline| self.start.saturating_add(deadline)),
            group: row.group.map_or(self.flow.group, |group| self.groups[group as usize]),
            transport: self.flow.transport,
            ..row.flow()
        })
    }

    fn clone_box(&self) -> Box<dyn FlowSource> {
        Box::new(self.clone())
    }

    fn memory_bytes(&self) -> u64 {
        let (rows, waits) = (self.trace.rows.len(), self.trace.waits.len());
        (rows * size_of::<Row>() + waits * size_of::<(u32, u32)>()) as u64
    }

    fn dependencies(&self) -> Vec<(u32, u32)> {
        let replayed = self.trace.waits.iter().filter(|wait| (wait.0 as usize) < self.count);
        let mut pairs: Vec<_> = replayed.map(|&(later, earlier)| (earlier, later)).collect();
        pairs.sort_unstable();
        pairs
    }
}

const FORMATS: &[(&str, &str)] = &[
    ("auto", "by the file's extension: .csv, .tsv, .parquet, .txt (hpcc), .cm (htsim)"),
    ("csv", "CSV with a header; tabs may separate the fields"),
    ("parquet", "Parquet with the same columns"),
    ("hpcc", "the flow file of the HPCC authors' simulator"),
    ("htsim", "htsim's connection matrix, with triggers"),
];

const START_UNITS: &[(&str, &str)] = &[
    ("us", "microseconds, as htsim's programs for UEC and RoCE read them"),
    ("ps", "picoseconds, as htsim's generators of connection matrices write them"),
];

/// Keys of a replay.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceSpec {
    pub file: Option<String>,
    pub format: &'static str,
    /// Of flows that htsim's triggers start at another host than the one that knows.
    pub trigger_delay: Time,
    /// Of starts in a connection matrix.
    pub start_unit: &'static str,
}

impl WorkloadParameters for TraceSpec {
    const DOC: SchemeDoc = SchemeDoc {
        name: "trace",
        title: "flows replayed from a CSV or Parquet file, or from a file of the HPCC simulator or htsim",
        source: "weftline's definition; htsim's connection matrices",
        validation: "Dependencies, deadlines and groups are read back from CSV and Parquet \
                     (workload/trace/tests.rs); the readers are fuzzed.",
        ..SchemeDoc::NONE
    };
    const LISTS_FLOWS: bool = true;

    fn read(p: &mut Parameters) -> TraceSpec {
        let help = "File of flows, with the columns src, dst, size_bytes, start_ns (and group, deadline_ns, \
                    after, compute_ns); times also as start_us, start_ms, start_s.";
        let file = p.text("file", None, help);
        if file.is_none() {
            p.complain("file", "a trace needs a file, such as \"flows.csv\"".into());
        }
        let delay_help = "Of a connection matrix: how long a flow that a trigger starts at the receiver of the flow before waits; \
                          htsim starts it when the sender has the acknowledgement.";
        TraceSpec {
            file,
            format: p.choice("format", "auto", FORMATS, "Format of the file."),
            trigger_delay: p.time("trigger_delay", Time::ZERO, delay_help),
            start_unit: p.choice(
                "start_unit",
                "us",
                START_UNITS,
                "Of a connection matrix: the unit of its starts.",
            ),
        }
    }

    fn source(&self, cx: &WorkloadContext, window: Window) -> Result<Box<dyn FlowSource>, WorkloadError> {
        let fail = |message: String| WorkloadError::new("file", message);
        let Some(name) = &self.file else { return Err(fail("a trace needs a file".into())) };
        let path = cx.base_dir.join(name);
        let file = path.display().to_string();
        let host = HostOf { by_id: &|label| cx.host(label).ok(), by_name: cx.host_named };
        let trace = match self.format_of(&path) {
            Some("parquet") => {
                let Some(read) = cx.read_parquet else {
                    return Err(fail(format!("{file}: this build does not read Parquet: convert it to CSV")));
                };
                let (rows, warnings) = read(&path).map_err(fail)?;
                Trace::from_rows(rows, &file, host).map(|trace| Trace { warnings, ..trace })
            }
            Some(format) => {
                let bytes =
                    files::read(&path, MAX_BYTES).map_err(|message| fail(format!("{file}: {message}")))?;
                match format {
                    "hpcc" => Trace::from_hpcc(&bytes, &file, host),
                    "htsim" => {
                        let unit = if self.start_unit == "ps" { Time(1) } else { Time::from_us(1) };
                        Trace::from_htsim(&bytes, &file, host, self.trigger_delay, unit)
                    }
                    _ => Trace::from_csv(&bytes, &file, host),
                }
            }
            None => {
                return Err(fail(format!(
                    "{file}: unknown format: expected .csv, .tsv, .parquet, .txt or .cm, or a `format`"
                )));
            }
        };
        Ok(trace.map_err(|e| fail(e.to_string()))?.source(cx, window))
    }
}

impl TraceSpec {
    fn format_of(&self, path: &Path) -> Option<&'static str> {
        if self.format != "auto" {
            return Some(self.format);
        }
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "csv" | "tsv" => Some("csv"),
            "parquet" | "pq" => Some("parquet"),
            "txt" => Some("hpcc"),
            "cm" => Some("htsim"),
            _ => None,
        }
    }
}

/// Decodes a text file of flows. The error has the line.
fn as_text<'b>(bytes: &'b [u8], file: &str) -> Result<&'b str, TraceError> {
    let fail = |line, message: &str| Err(TraceError::new(file, line, None, message));
    if bytes.starts_with(b"PAR1") {
        return fail(None, "this is a Parquet file: name it .parquet, or set format = \"parquet\"");
    }
    if bytes.starts_with(&[0x1f, 0x8b]) {
        return fail(None, "the file is compressed with gzip: decompress it first");
    }
    let line_at = |at: usize| Some(1 + bytes[..at].iter().filter(|&&b| b == b'\n').count());
    if let Some(at) = bytes.iter().position(|&b| b == 0) {
        return fail(line_at(at), "not text (it contains a zero byte): expected lines of flows");
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.trim_start_matches('\u{feff}')),
        Err(error) => fail(line_at(error.valid_up_to()), "not text (not UTF-8): expected lines of flows"),
    }
}

#[cfg(test)]
mod tests;
