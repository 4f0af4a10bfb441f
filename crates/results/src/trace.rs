//! Traces in Parquet files: src, dst, size_bytes, start_ns and, if there, group, deadline_ns, after, compute_ns.
//!
//! Columns are found by name, in any order, as integers or floating point of any width. `after` lists row numbers, counted
//! from 0: as a list of integers or as text such as "3;7". The flows of an earlier run (flows.parquet) can be
//! replayed, with all of their columns or some: rows with a flow_id are put in the order of their start, and
//! where this is the same, of these numbers. Hosts may be given by name.

use std::path::Path;

use arrow_array::{Array, RecordBatch};
use weftline_sim::workload::trace::TraceRow;
use weftline_sim::workload::trace::columns::{self, Column, Field};

use crate::parquet_read::{self, Cell, cell};
use crate::{ResultsError, flow_table};

/// All rows of the trace at `path`, and what deserves a second look. Only their types are checked here; what they say is checked against the topology by
/// [`weftline_sim::workload::trace::Trace::from_rows`].
pub fn read(path: &Path) -> Result<(Vec<TraceRow>, Vec<String>), ResultsError> {
    let present = parquet_read::columns(path)?;
    let file = path.display();
    let (columns, note) = columns::read(present.iter().map(String::as_str))
        .map_err(|why| ResultsError::input(format!("{file}: {why}")))?;
    let columns: Vec<Column> =
        columns.into_iter().flatten().filter(|column| column.field != Field::Id).collect();
    // The other columns of an earlier run's flows are weftline's own.
    let note = note.filter(|_| !of_a_run(&present)).map(|note| format!("{file}: {note}"));
    let wanted: Vec<&str> = columns.iter().map(|column| column.name).collect();
    let batches = parquet_read::batches(path, &wanted)?;
    let mut rows = Vec::with_capacity(batches.iter().map(RecordBatch::num_rows).sum());
    for batch in &batches {
        for row in 0..batch.num_rows() {
            rows.push(
                Row { batch, columns: &columns, row }
                    .read()
                    .map_err(|why| ResultsError::input(format!("{file}: row {}: {why}", rows.len())))?,
            );
        }
    }
    if present.iter().any(|name| name == "flow_id") {
        let ids = parquet_read::numbers(&parquet_read::batches(path, &["flow_id"])?, 0);
        if ids.is_none() && of_a_run(&present) {
            return Err(ResultsError::input(format!("{file}: flow_id: expected numbers")));
        }
        for (row, id) in rows.iter_mut().zip(ids.into_iter().flatten()) {
            row.id = (id >= 0.0 && id.fract() == 0.0).then_some(id as u64);
        }
        TraceRow::put_in_order(&mut rows, |row| row);
    }
    Ok((rows, note.into_iter().collect()))
}

/// Whether these are the columns of flows.parquet.
fn of_a_run(present: &[String]) -> bool {
    flow_table::schema().fields().iter().all(|field| present.contains(field.name()))
}

/// One row of a batch. Errors say "column: what was expected".
struct Row<'a> {
    batch: &'a RecordBatch,
    columns: &'a [Column],
    row: usize,
}

impl Row<'_> {
    fn read(&self) -> Result<TraceRow, String> {
        let (src, src_name) = self.end(Field::Src)?;
        let (dst, dst_name) = self.end(Field::Dst)?;
        let size = self.whole(Field::Size)?;
        let start = self.time(Field::Start)?;
        Ok(TraceRow {
            src,
            dst,
            src_name,
            dst_name,
            size_bytes: size.ok_or("size_bytes: is null, expected a whole number")?,
            start_ps: start
                .ok_or_else(|| format!("{}: is null, expected a time", self.name(Field::Start)))?,
            group: self.text(Field::Group)?,
            deadline_ps: self.time(Field::Deadline)?,
            after: self.after()?,
            compute_ps: self.time(Field::Compute)?.unwrap_or(0),
            id: None,
        })
    }

    /// A host by its number or its name.
    fn end(&self, field: Field) -> Result<(i64, Option<String>), String> {
        match self.cell(field)? {
            Cell::Text(name) => match name.trim().parse() {
                Ok(id) => Ok((id, None)),
                Err(_) => Ok((0, Some(name.trim().to_string()))),
            },
            _ => match self.whole(field)? {
                Some(id) => Ok((id, None)),
                None => Err(format!("{}: is null, expected a host's number or name", field.name())),
            },
        }
    }

    fn column(&self, field: Field) -> Option<(usize, &Column)> {
        self.columns.iter().enumerate().find(|(_, column)| column.field == field)
    }

    /// Name of the field's column.
    fn name(&self, field: Field) -> &'static str {
        self.column(field).map_or(field.name(), |(_, column)| column.name)
    }

    fn cell(&self, field: Field) -> Result<Cell, String> {
        let Some((at, column)) = self.column(field) else { return Ok(Cell::Null) };
        let array = self.batch.column(at);
        cell(array.as_ref(), self.row).ok_or_else(|| {
            format!("{}: expected numbers or text, found a column of type {}", column.name, array.data_type())
        })
    }

    fn whole(&self, field: Field) -> Result<Option<i64>, String> {
        let found = self.cell(field)?;
        let value = match found {
            Cell::Null => return Ok(None),
            Cell::Whole(value) => i64::try_from(value).ok(),
            // Beyond 2^53 every double is a whole number; up to 1e18 it fits.
            Cell::Real(value) if value.fract() == 0.0 && value.abs() < 1e18 => Some(value as i64),
            _ => None,
        };
        match value {
            Some(value) => Ok(Some(value)),
            None => Err(format!("{}: expected a whole number, found {}", self.name(field), shown(&found))),
        }
    }

    /// A time as picoseconds.
    fn time(&self, field: Field) -> Result<Option<i64>, String> {
        let found = self.cell(field)?;
        let Some((_, &Column { name, unit, exponent, .. })) = self.column(field) else { return Ok(None) };
        let picoseconds = match found {
            Cell::Null => return Ok(None),
            Cell::Whole(value) => {
                i64::try_from(value).ok().and_then(|value| value.checked_mul(10_i64.pow(exponent)))
            }
            Cell::Real(value) => TraceRow::picoseconds(value, exponent),
            _ => None,
        };
        match picoseconds {
            Some(ps) => Ok(Some(ps)),
            None => Err(format!("{name}: expected {unit}, at most 46 days, found {}", shown(&found))),
        }
    }

    fn text(&self, field: Field) -> Result<Option<String>, String> {
        match self.cell(field)? {
            Cell::Null => Ok(None),
            Cell::Text(text) if text.is_empty() => Ok(None),
            Cell::Text(text) => Ok(Some(text)),
            Cell::Whole(number) => Ok(Some(number.to_string())),
            other => Err(format!("{}: expected a name, found {}", self.name(field), shown(&other))),
        }
    }

    fn after(&self) -> Result<Vec<i64>, String> {
        let found = self.cell(Field::After)?;
        let rows: Option<Vec<i64>> = match &found {
            Cell::Null => Some(Vec::new()),
            Cell::Whole(row) => i64::try_from(*row).ok().map(|row| vec![row]),
            Cell::List(rows) => rows.iter().map(|row| i64::try_from(*row).ok()).collect(),
            Cell::Text(text) if text.trim().is_empty() => Some(Vec::new()),
            Cell::Text(text) => text.split(';').map(|row| row.trim().parse().ok()).collect(),
            // A column of whole numbers in which some are missing is one of floating point in pandas.
            Cell::Real(row) if row.is_nan() => Some(Vec::new()),
            Cell::Real(row) => (row.fract() == 0.0 && row.abs() < 1e15).then(|| vec![*row as i64]),
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
