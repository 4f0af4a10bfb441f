//! Recorded digests in Parquet files: the columns of [`pint::recorded`], as integers, floating point or text.

use std::path::Path;

use arrow_array::{Array, RecordBatch};
use pint::recorded::{Column, Recorded};

use crate::ResultsError;
use crate::parquet_read::{self, Cell, cell};

/// Hands the rows of the file at `path` to `take`, a batch of them in memory at a time; an error of `take` ends it. Other columns are
/// passed over.
pub fn each(
    path: &Path,
    take: &mut dyn FnMut(Recorded) -> Result<(), ResultsError>,
) -> Result<(), ResultsError> {
    let names = parquet_read::columns(path)?;
    let columns = Column::of_header(&names).map_err(|(column, message)| {
        ResultsError::input(format!("{}: column {}: {message}", path.display(), column.name()))
    })?;
    let columns: Vec<Column> = columns.into_iter().flatten().collect();
    let wanted: Vec<&str> = columns.iter().map(|column| column.name()).collect();
    let mut number = 0u64;
    parquet_read::each(path, &wanted, &mut |batch| {
        for place in 0..batch.num_rows() {
            let row = row(&batch, &columns, place)
                .map_err(|why| ResultsError::input(format!("{}: row {number}: {why}", path.display())))?;
            number += 1;
            take(row)?;
        }
        Ok(())
    })
}

/// One row of a batch whose columns are these. Errors say "column name: what was expected".
fn row(batch: &RecordBatch, columns: &[Column], place: usize) -> Result<Recorded, String> {
    let mut row = Recorded::default();
    for (array, &column) in batch.columns().iter().zip(columns) {
        let told = |why: String| format!("column {}: {why}", column.name());
        let found = cell(array.as_ref(), place).ok_or_else(|| {
            told(format!("expected numbers or text, found a column of type {}", array.data_type()))
        })?;
        let set = match found {
            Cell::Null => column.set(&mut row, ""),
            // Digests and ids are unsigned, where a tool knows signed 64 bits only they come as such.
            Cell::Whole(number) => match (u64::try_from(number), i64::try_from(number)) {
                (Ok(number), _) => column.set_whole(&mut row, number),
                (_, Ok(number)) if matches!(column, Column::Packet | Column::Digest) => {
                    column.set_whole(&mut row, number as u64)
                }
                _ => column.set(&mut row, &number.to_string()),
            },
            // Below 2^53 a double holds every whole number.
            Cell::Real(number)
                if (0.0..9_007_199_254_740_992.0).contains(&number)
                    && (number.fract() == 0.0 || column == Column::Time) =>
            {
                column.set_whole(&mut row, number as u64)
            }
            Cell::Real(number) => Err(format!("expected a whole number below 2^53, found {number}")),
            Cell::Text(text) => column.set(&mut row, text.trim()),
            Cell::List(_) => Err("expected a number or text, found a list".to_string()),
        };
        set.map_err(told)?;
    }
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;
    use crate::table_file::TableFile;
    use arrow_array::{ArrayRef, Float64Array, Int64Array, StringArray, UInt32Array, UInt64Array};
    use arrow_schema::Schema;
    use pint::recorded::{Address, Flow};
    use std::path::PathBuf;
    use std::sync::Arc;

    fn save(dir: &Scratch, columns: Vec<(&str, ArrayRef)>) -> PathBuf {
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let path = dir.join("digests.parquet");
        let mut table =
            TableFile::create(&path, Arc::new(Schema::new(batch.schema().fields().clone()))).unwrap();
        table.write(&batch).unwrap();
        table.close().unwrap();
        path
    }

    fn read(path: &Path) -> Result<Vec<Recorded>, String> {
        let mut rows = Vec::new();
        let read = each(path, &mut |row| {
            rows.push(row);
            Ok(())
        });
        read.map(|()| rows).map_err(|error| error.to_string())
    }

    fn columns(hops: Vec<i64>) -> Vec<(&'static str, ArrayRef)> {
        vec![
            ("hops", Arc::new(Int64Array::from(hops)) as ArrayRef),
            ("digest", Arc::new(Int64Array::from(vec![-1, 5]))),
            ("packet_id", Arc::new(UInt64Array::from(vec![u64::MAX, 6]))),
            ("plan_version", Arc::new(UInt32Array::from(vec![1, 2]))),
            ("time_ns", Arc::new(Float64Array::from(vec![12.75, 0.0]))),
            ("src", Arc::new(StringArray::from(vec![Some("10.0.0.1"), None]))),
            ("colour", Arc::new(StringArray::from(vec!["red", "blue"]))),
        ]
    }

    #[test]
    fn columns_of_any_width_in_any_order_are_read() {
        let dir = Scratch::new();
        let rows = read(&save(&dir, columns(vec![3, 4]))).unwrap();
        let flow = Flow { source: Address::Ip("10.0.0.1".parse().unwrap()), ..Flow::default() };
        let first = Recorded {
            hops: 3,
            digest: u64::MAX,
            packet: u64::MAX,
            plan_version: 1,
            time_ns: 12,
            flow,
            ..Recorded::default()
        };
        let second = Recorded { hops: 4, digest: 5, packet: 6, plan_version: 2, ..Recorded::default() };
        assert_eq!(rows, [first, second]);
    }

    #[test]
    fn errors_name_file_row_column_and_what_was_expected() {
        let dir = Scratch::new();
        let text = read(&save(&dir, columns(vec![3, -4]))).unwrap_err();
        assert!(
            text.ends_with("digests.parquet: row 1: column hops: expected a number of hops, found \"-4\""),
            "{text}"
        );
        let text = read(&save(&dir, columns(vec![3, 4])[1..].to_vec())).unwrap_err();
        assert!(text.contains("digests.parquet: column hops: the header does not have it"), "{text}");
        let path = save(&dir, columns(vec![3, 4]));
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        assert!(read(&path).is_err());
    }
}
