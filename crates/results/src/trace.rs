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
mod tests {
    use super::*;
    use crate::scratch::Scratch;
    use crate::table_file::TableFile;
    use arrow_array::{
        ArrayRef, Float32Array, Float64Array, Int16Array, Int64Array, StringArray, UInt64Array,
    };
    use arrow_schema::Schema;
    use proptest::prelude::*;
    use std::path::PathBuf;
    use std::sync::Arc;

    fn save(dir: &Scratch, columns: Vec<(&str, ArrayRef)>) -> PathBuf {
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let path = dir.join("trace.parquet");
        let schema = Arc::new(Schema::new(batch.schema().fields().clone()));
        let mut table = TableFile::create(&path, schema).unwrap();
        table.write(&batch).unwrap();
        table.close().unwrap();
        path
    }

    fn four(src: Vec<i64>, dst: Vec<i16>, size: Vec<u64>, start: Vec<f64>) -> Vec<(&'static str, ArrayRef)> {
        vec![
            ("start_ns", Arc::new(Float64Array::from(start)) as ArrayRef),
            ("src", Arc::new(Int64Array::from(src))),
            ("dst", Arc::new(Int16Array::from(dst))),
            ("size_bytes", Arc::new(UInt64Array::from(size))),
        ]
    }

    #[test]
    fn numbers_of_any_width_and_columns_in_any_order_are_read() {
        let dir = Scratch::new();
        let mut columns = four(vec![0, 3], vec![1, 2], vec![1000, 1], vec![0.0, 12.5]);
        columns.push(("group", Arc::new(StringArray::from(vec![Some("a"), None]))));
        columns.push(("after", Arc::new(StringArray::from(vec!["", "0"]))));
        columns.push(("compute_ns", Arc::new(Float32Array::from(vec![0.0, 2.0]))));
        let rows = read(&save(&dir, columns)).unwrap();
        let first =
            TraceRow { src: 0, dst: 1, size_bytes: 1000, group: Some("a".into()), ..TraceRow::default() };
        let second = TraceRow {
            src: 3,
            dst: 2,
            size_bytes: 1,
            start_ps: 12_500,
            after: vec![0],
            compute_ps: 2000,
            ..TraceRow::default()
        };
        assert_eq!(rows, [first, second]);
    }

    #[test]
    fn errors_name_file_row_column_and_what_was_expected() {
        let dir = Scratch::new();
        let error = |columns| read(&save(&dir, columns)).unwrap_err().to_string();
        for start in [f64::NAN, 1e300, f64::NEG_INFINITY] {
            let text = error(four(vec![0, 0], vec![1, 1], vec![5, 5], vec![0.0, start]));
            let expected = "trace.parquet: row 1: start_ns: expected nanoseconds, at most 46 days, found ";
            assert!(text.contains(expected), "{text}");
        }
        let text = error(four(vec![0], vec![1], vec![u64::MAX], vec![0.0]));
        assert!(
            text.ends_with("row 0: size_bytes: expected a whole number, found 18446744073709551615"),
            "{text}"
        );
        let mut columns = four(vec![0], vec![1], vec![5], vec![0.0]);
        columns.push(("after", Arc::new(StringArray::from(vec!["3,4"]))));
        let text = error(columns);
        assert!(text.contains("row 0: after: expected numbers of rows such as \"3;7\""), "{text}");
        let text = error(four(vec![0], vec![1], vec![5], vec![0.0]).into_iter().skip(1).collect());
        assert!(text.contains("has no column \"start_ns\""), "{text}");
        let mut columns = four(vec![0], vec![1], vec![5], vec![0.0]);
        columns.push(("dealine_ns", Arc::new(Int64Array::from(vec![1]))));
        let text = error(columns);
        assert!(text.contains("dealine_ns") && text.contains("\"deadline_ns\""), "{text}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_damaged_file_is_an_error_and_never_a_panic(at in 0.0f64..1.0, byte: u8, cut in 0.3f64..1.3) {
            let dir = Scratch::new();
            let path = save(&dir, four(vec![0; 50], vec![1; 50], vec![5; 50], vec![0.0; 50]));
            let mut bytes = std::fs::read(&path).unwrap();
            let place = (at * bytes.len() as f64) as usize;
            bytes[place] = byte;
            bytes.truncate((cut * bytes.len() as f64) as usize);
            std::fs::write(&path, &bytes).unwrap();
            let _ = read(&path);
        }
    }
}
