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
        let reported = |why: String| format!("column {}: {why}", column.name());
        let found = cell(array.as_ref(), place).ok_or_else(|| {
            reported(format!("expected numbers or text, found a column of type {}", array.data_type()))
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
        set.map_err(reported)?;
    }
    Ok(row)
}

#[cfg(test)]
mod tests;
