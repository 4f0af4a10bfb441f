//! Reading Parquet: our own tables whole or as a stream, and whatever a user's tool has written.
//!
//! A table of a run is read only if it is what the run wrote (`file_digests`). A damaged file is an error,
//! never a panic, also where the decoder itself would panic.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Once;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    AnyDictionaryArray, Array, BooleanArray, Float32Array, Float64Array, Int8Array, Int16Array, Int32Array,
    Int64Array, LargeStringArray, RecordBatch, RecordBatchIterator, RecordBatchReader, StringArray,
    StringViewArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array, cast::AsArray,
};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::{ResultsError, file_digests, footer};

const ROWS_PER_BATCH: usize = 65_536;

fn open(path: &Path) -> Result<ParquetRecordBatchReaderBuilder<File>, ResultsError> {
    let error = |why: String| ResultsError::input(format!("{}: {why}", path.display()));
    file_digests::check_file(path)?;
    let mut file = File::open(path).map_err(|e| error(e.to_string()))?;
    if file.metadata().is_ok_and(|m| !m.is_file()) {
        return Err(error("is a folder or a device, expected a Parquet file".into()));
    }
    if !footer::is_sound(&mut file).map_err(|e| error(e.to_string()))? {
        return Err(error("the Parquet file is damaged: its footer is invalid".into()));
    }
    ParquetRecordBatchReaderBuilder::try_new(file)
        .map_err(|e| error(format!("not a complete Parquet file ({e})")))
}

thread_local! {
    /// A decoder is at work on this thread.
    static DECODING: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Runs a decoder; its panics on damaged bytes become none, without a message.
fn unpanicked<T>(decode: impl FnOnce() -> T) -> Option<T> {
    static SILENCER: Once = Once::new();
    SILENCER.call_once(|| {
        let tell = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !DECODING.get() {
                tell(panic);
            }
        }));
    });
    let outer = DECODING.replace(true);
    let result = catch_unwind(AssertUnwindSafe(decode)).ok();
    DECODING.set(outer);
    result
}

/// Runs a decoder; its panics on damaged bytes become errors.
fn guarded<T>(path: &Path, decode: impl FnOnce() -> Result<T, ResultsError>) -> Result<T, ResultsError> {
    unpanicked(decode).unwrap_or_else(|| {
        Err(ResultsError::input(format!("{}: the Parquet file is damaged", path.display())))
    })
}

/// A reader whose decoder's panics become errors. After one there is nothing more to read.
struct Guarded<R> {
    reader: R,
    path: PathBuf,
    broken: bool,
    /// What a run writes: its columns that no row lacks. Columns of other names are passed on as they are.
    written: Option<SchemaRef>,
}

impl<R: RecordBatchReader> Iterator for Guarded<R> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.broken {
            return None;
        }
        let read = unpanicked(|| self.reader.next());
        self.broken = read.is_none();
        let damaged =
            || ArrowError::ParquetError(format!("{}: the Parquet file is damaged", self.path.display()));
        let read = read.unwrap_or_else(|| Some(Err(damaged())));
        let lacking = match (&read, &self.written) {
            (Some(Ok(batch)), Some(written)) => lacking(batch, written),
            _ => return read,
        };
        self.broken |= lacking.is_some();
        let Some(name) = lacking else { return read };
        let why = format!(
            "{}: column \"{name}\" has rows without a value, which no run writes",
            self.path.display()
        );
        Some(Err(ArrowError::ParquetError(why)))
    }
}

/// The first column that lacks values though every row has one as it is written.
fn lacking<'w>(batch: &RecordBatch, written: &'w SchemaRef) -> Option<&'w str> {
    let whole = written.fields().iter().filter(|field| !field.is_nullable());
    let has_gaps = |name: &str| batch.column_by_name(name).is_some_and(|column| column.null_count() > 0);
    whole.map(|field| field.name().as_str()).find(|name| has_gaps(name))
}

impl<R: RecordBatchReader> RecordBatchReader for Guarded<R> {
    fn schema(&self) -> SchemaRef {
        self.reader.schema()
    }
}

/// Names of the columns.
pub fn columns(path: &Path) -> Result<Vec<String>, ResultsError> {
    guarded(path, || Ok(open(path)?.schema().fields().iter().map(|f| f.name().clone()).collect()))
}

/// The rows of these columns, in this order of columns; all of them must be there.
pub fn batches(path: &Path, wanted: &[&str]) -> Result<Vec<RecordBatch>, ResultsError> {
    let mut all = Vec::new();
    each(path, wanted, &mut |batch| {
        all.push(batch);
        Ok(())
    })?;
    Ok(all)
}

/// The same, a batch at a time; an error of `take` ends it.
pub fn each(
    path: &Path,
    wanted: &[&str],
    take: &mut dyn FnMut(RecordBatch) -> Result<(), ResultsError>,
) -> Result<(), ResultsError> {
    let error = |why: String| ResultsError::input(format!("{}: {why}", path.display()));
    guarded(path, || {
        let builder = open(path)?;
        let mut roots = Vec::new();
        for name in wanted {
            let found = builder.schema().fields().iter().position(|f| f.name() == name);
            roots.push(found.ok_or_else(|| error(format!("has no column \"{name}\"")))?);
        }
        let mask = ProjectionMask::roots(builder.parquet_schema(), roots.iter().copied());
        let reader = builder.with_projection(mask).with_batch_size(ROWS_PER_BATCH).build();
        // The reader yields columns in the order of the file: find each by its rank among the wanted ones.
        let order: Vec<usize> = roots.iter().map(|r| roots.iter().filter(|o| *o < r).count()).collect();
        for batch in reader.map_err(|e| error(undecoded(&e.to_string())))? {
            let batch = batch.map_err(|e| error(undecoded(&e.to_string())))?;
            take(batch.project(&order).map_err(|e| error(e.to_string()))?)?;
        }
        Ok(())
    })
}

/// What an error of the decoder states: a compression that is not compiled in is named with those that are.
fn undecoded(why: &str) -> String {
    match why.split_once("Disabled feature at compile time: ") {
        Some((_, name)) => format!("its compression {name} is not read, expected none, snappy, gzip or zstd"),
        None => why.to_string(),
    }
}

/// Reads a file to its end and forgets what is in it.
pub fn decode(path: &Path) -> Result<(), ResultsError> {
    let columns = columns(path)?;
    each(path, &columns.iter().map(String::as_str).collect::<Vec<_>>(), &mut |_| Ok(()))
}

/// The whole table as an Arrow stream, read row group by row group as its consumer asks for it. Values that
/// are missing where a run has `written` one in every row are an error: results of an early version have no
/// digests that would show it.
pub fn stream(path: &Path, written: Option<SchemaRef>) -> Result<FFI_ArrowArrayStream, ResultsError> {
    let reader = guarded(path, || {
        open(path)?
            .with_batch_size(ROWS_PER_BATCH)
            .build()
            .map_err(|e| ResultsError::input(format!("{}: {e}", path.display())))
    })?;
    Ok(FFI_ArrowArrayStream::new(Box::new(Guarded {
        reader,
        path: path.to_path_buf(),
        broken: false,
        written,
    })))
}

/// A stream of no rows.
pub fn empty_stream(schema: SchemaRef) -> FFI_ArrowArrayStream {
    let none: Box<dyn RecordBatchReader + Send> =
        Box::new(RecordBatchIterator::new(std::iter::empty(), schema));
    FFI_ArrowArrayStream::new(none)
}

/// One value of a column of any type that a table of flows may have.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    Null,
    Whole(i128),
    Real(f64),
    Text(String),
    /// A list of whole numbers.
    List(Vec<i128>),
}

/// The value in row `row` of `array`; none where its type is none of [`Cell`]'s.
pub fn cell(array: &dyn Array, row: usize) -> Option<Cell> {
    if array.is_null(row) || matches!(array.data_type(), DataType::Null) {
        return Some(Cell::Null);
    }
    macro_rules! whole {
        ($kind:ty) => {
            Cell::Whole(i128::from(array.as_any().downcast_ref::<$kind>()?.value(row)))
        };
    }
    Some(match array.data_type() {
        DataType::Int8 => whole!(Int8Array),
        DataType::Int16 => whole!(Int16Array),
        DataType::Int32 => whole!(Int32Array),
        DataType::Int64 => whole!(Int64Array),
        DataType::UInt8 => whole!(UInt8Array),
        DataType::UInt16 => whole!(UInt16Array),
        DataType::UInt32 => whole!(UInt32Array),
        DataType::UInt64 => whole!(UInt64Array),
        DataType::Float32 => Cell::Real(f64::from(array.as_any().downcast_ref::<Float32Array>()?.value(row))),
        DataType::Float64 => Cell::Real(array.as_any().downcast_ref::<Float64Array>()?.value(row)),
        DataType::Utf8 => Cell::Text(array.as_any().downcast_ref::<StringArray>()?.value(row).into()),
        DataType::LargeUtf8 => {
            Cell::Text(array.as_any().downcast_ref::<LargeStringArray>()?.value(row).into())
        }
        DataType::Utf8View => Cell::Text(array.as_any().downcast_ref::<StringViewArray>()?.value(row).into()),
        DataType::Boolean => Cell::Whole(array.as_any().downcast_ref::<BooleanArray>()?.value(row).into()),
        DataType::Dictionary(..) => {
            let dictionary: &dyn AnyDictionaryArray = array.as_any_dictionary_opt()?;
            let Cell::Whole(key) = cell(dictionary.keys(), row)? else { return Some(Cell::Null) };
            cell(dictionary.values().as_ref(), usize::try_from(key).ok()?)?
        }
        DataType::List(_) => list(array.as_list_opt::<i32>()?.value(row).as_ref())?,
        DataType::LargeList(_) => list(array.as_list_opt::<i64>()?.value(row).as_ref())?,
        _ => return None,
    })
}

fn list(values: &dyn Array) -> Option<Cell> {
    let whole = |row| match cell(values, row)? {
        Cell::Whole(value) => Some(value),
        _ => None,
    };
    (0..values.len()).map(whole).collect::<Option<Vec<i128>>>().map(Cell::List)
}

/// All values of a column of numbers, in order; a null is NaN. None where it is not a column of numbers.
pub fn numbers(batches: &[RecordBatch], column: usize) -> Option<Vec<f64>> {
    let mut all = Vec::new();
    for batch in batches {
        let array = batch.column(column);
        if let Some(reals) = array.as_any().downcast_ref::<Float64Array>() {
            all.extend(reals.iter().map(|v| v.unwrap_or(f64::NAN)));
            continue;
        }
        for row in 0..array.len() {
            all.push(match cell(array.as_ref(), row)? {
                Cell::Null => f64::NAN,
                Cell::Whole(value) => value as f64,
                Cell::Real(value) => value,
                _ => return None,
            });
        }
    }
    Some(all)
}

/// All values of a column of strings as indices into the distinct ones, which are in order of appearance.
pub fn strings(batches: &[RecordBatch], column: usize) -> Option<(Vec<String>, Vec<u32>)> {
    let mut distinct: Vec<String> = Vec::new();
    let mut place = std::collections::HashMap::new();
    let mut all = Vec::new();
    let mut index = |text: String| -> u32 {
        *place.entry(text).or_insert_with_key(|text| {
            distinct.push(text.clone());
            distinct.len() as u32 - 1
        })
    };
    for batch in batches {
        let array = batch.column(column);
        if let Some(dictionary) = array.as_any_dictionary_opt() {
            // Each distinct string once; then only keys.
            let values = dictionary.values();
            let texts = (0..values.len()).map(|row| match cell(values.as_ref(), row)? {
                Cell::Text(text) => Some(index(text)),
                _ => None,
            });
            let texts: Vec<Option<u32>> = texts.collect();
            for row in 0..array.len() {
                let Cell::Whole(key) = cell(dictionary.keys(), row)? else { return None };
                all.push(*texts.get(usize::try_from(key).ok()?)?.as_ref()?);
            }
            continue;
        }
        for row in 0..array.len() {
            let Cell::Text(text) = cell(array.as_ref(), row)? else { return None };
            all.push(index(text));
        }
    }
    Some((distinct, all))
}

#[cfg(test)]
mod tests;
