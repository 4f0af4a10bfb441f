//! Traces in Parquet files: src, dst, size_bytes, start_ns and, if there, group, deadline_ns, after, compute_ns.
//!
//! Columns are found by name, in any order, as integers or floating point of any width. `after` lists row numbers, counted
//! from 0: as a list of integers or as text such as "3;7". The flows of an earlier run (flows.parquet) can be
//! replayed: its other columns are passed over, and its rows are put in the order of their start.

use std::path::Path;

use arrow_array::{Array, RecordBatch};
use weftline_sim::parameters;
use weftline_sim::workload::trace::TraceRow;

use crate::parquet_read::{self, Cell, cell};
use crate::{ResultsError, flow_table};

const REQUIRED: [&str; 4] = ["src", "dst", "size_bytes", "start_ns"];
const OPTIONAL: [&str; 4] = ["group", "deadline_ns", "after", "compute_ns"];

/// All rows of the trace at `path`. Only their types are checked here; what they say is checked against the topology by
/// [`weftline_sim::workload::trace::Trace::from_rows`].
pub fn read(path: &Path) -> Result<Vec<TraceRow>, ResultsError> {
    let present = parquet_read::columns(path)?;
    let known = || REQUIRED.iter().chain(&OPTIONAL).copied();
    for name in present.iter().filter(|_| !of_a_run(&present)) {
        if !known().any(|k| k == name) {
            let why = parameters::unknown("column", name, known().collect::<Vec<_>>().into_iter());
            return Err(ResultsError::input(format!("{}: {why}", path.display())));
        }
    }
    if let Some(missing) = REQUIRED.iter().find(|name| !present.iter().any(|p| p == *name)) {
        return Err(ResultsError::input(format!(
            "{}: has no column \"{missing}\": a trace needs {}",
            path.display(),
            REQUIRED.join(", ")
        )));
    }
    let wanted: Vec<&str> = known().filter(|name| present.iter().any(|p| p == name)).collect();
    let batches = parquet_read::batches(path, &wanted)?;
    let mut rows = Vec::with_capacity(batches.iter().map(RecordBatch::num_rows).sum());
    for batch in &batches {
        for row in 0..batch.num_rows() {
            rows.push(Row { batch, wanted: &wanted, row }.read().map_err(|why| {
                ResultsError::input(format!("{}: row {}: {why}", path.display(), rows.len()))
            })?);
        }
    }
    // An earlier run's flows stand in the order in which they ended.
    if of_a_run(&present) {
        rows.sort_by_key(|row| row.start_ps);
    }
    Ok(rows)
}

/// Whether these are the columns of flows.parquet.
fn of_a_run(present: &[String]) -> bool {
    flow_table::schema().fields().iter().all(|field| present.contains(field.name()))
}

/// One row of a batch. Errors say "column: what was expected".
struct Row<'a> {
    batch: &'a RecordBatch,
    wanted: &'a [&'a str],
    row: usize,
}

impl Row<'_> {
    fn read(&self) -> Result<TraceRow, String> {
        let needed =
            |name| self.whole(name)?.ok_or_else(|| format!("{name}: is null, expected a whole number"));
        Ok(TraceRow {
            src: needed("src")?,
            dst: needed("dst")?,
            size_bytes: needed("size_bytes")?,
            start_ps: self.time("start_ns")?.ok_or("start_ns: is null, expected nanoseconds")?,
            group: self.text("group")?,
            deadline_ps: self.time("deadline_ns")?,
            after: self.after()?,
            compute_ps: self.time("compute_ns")?.unwrap_or(0),
        })
    }

    fn cell(&self, name: &str) -> Result<Cell, String> {
        let Some(column) = self.wanted.iter().position(|w| *w == name) else { return Ok(Cell::Null) };
        let array = self.batch.column(column);
        cell(array.as_ref(), self.row).ok_or_else(|| {
            format!("{name}: expected numbers or text, found a column of type {}", array.data_type())
        })
    }

    fn whole(&self, name: &str) -> Result<Option<i64>, String> {
        let found = self.cell(name)?;
        let value = match found {
            Cell::Null => return Ok(None),
            Cell::Whole(value) => i64::try_from(value).ok(),
            // Beyond 2^53 every double is a whole number; up to 1e18 it fits.
            Cell::Real(value) if value.fract() == 0.0 && value.abs() < 1e18 => Some(value as i64),
            _ => None,
        };
        match value {
            Some(value) => Ok(Some(value)),
            None => Err(format!("{name}: expected a whole number, found {}", shown(&found))),
        }
    }

    /// Nanoseconds as picoseconds.
    fn time(&self, name: &str) -> Result<Option<i64>, String> {
        let found = self.cell(name)?;
        let picoseconds = match found {
            Cell::Null => return Ok(None),
            Cell::Whole(ns) => i64::try_from(ns).ok().and_then(|ns| ns.checked_mul(1000)),
            Cell::Real(ns) => TraceRow::picoseconds(ns),
            _ => None,
        };
        match picoseconds {
            Some(ps) => Ok(Some(ps)),
            None => Err(format!("{name}: expected nanoseconds, at most 46 days, found {}", shown(&found))),
        }
    }

    fn text(&self, name: &str) -> Result<Option<String>, String> {
        match self.cell(name)? {
            Cell::Null => Ok(None),
            Cell::Text(text) if text.is_empty() => Ok(None),
            Cell::Text(text) => Ok(Some(text)),
            Cell::Whole(number) => Ok(Some(number.to_string())),
            other => Err(format!("{name}: expected a name, found {}", shown(&other))),
        }
    }

    fn after(&self) -> Result<Vec<i64>, String> {
        let found = self.cell("after")?;
        let rows: Option<Vec<i64>> = match &found {
            Cell::Null => Some(Vec::new()),
            Cell::Whole(row) => i64::try_from(*row).ok().map(|row| vec![row]),
            Cell::List(rows) => rows.iter().map(|row| i64::try_from(*row).ok()).collect(),
            Cell::Text(text) if text.trim().is_empty() => Some(Vec::new()),
            Cell::Text(text) => text.split(';').map(|row| row.trim().parse().ok()).collect(),
            Cell::Real(_) => None,
        };
        rows.ok_or_else(|| {
            format!(
                "after: expected numbers of rows such as \"3;7\", counted from 0, found {}",
                shown(&found)
            )
        })
    }
}

fn shown(cell: &Cell) -> String {
    match cell {
        Cell::Null => "null".into(),
        Cell::Whole(value) => value.to_string(),
        Cell::Real(value) => value.to_string(),
        Cell::Text(text) => format!("\"{text}\""),
        Cell::List(values) => format!("{values:?}"),
    }
}

#[cfg(test)]
mod tests;
