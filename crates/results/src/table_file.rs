//! A Parquet file that grows and is complete after every row group.
//!
//! Rows are encoded in memory. A full row group is written over the old footer, followed by a new footer. When the
//! disk refuses, the file is cut back to the row groups it had and gets its old footer again, for which there
//! is room because it was there before.
//!
//! A footer describes every row group, so that writing one after each takes time with the square of their number. In a
//! long file some groups wait in memory and share a footer: at most a 32nd of those in the file, and [`WAITING_BYTES`].
//!
//! ```text
//! PAR1 | row group 0 | row group 1 | footer           committed = end of row group 1
//! PAR1 | row group 0 | row group 1 | row group 2 | footer'
//! ```

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use parquet::arrow::{ARROW_SCHEMA_META_KEY, ArrowSchemaConverter, ArrowWriter, encode_arrow_schema};
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::Result as ParquetResult;
use parquet::file::metadata::{FileMetaData, KeyValue, ParquetMetaData, ParquetMetaDataWriter};
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterPropertiesBuilder};
use parquet::schema::types::SchemaDescPtr;

use crate::ResultsError;

/// Rows in a row group, and so the maximum number of rows that a killed process loses from a short table; from a long one,
/// about a 32nd of its rows.
pub const ROWS_PER_GROUP: usize = 65_536;

/// A footer is written when the groups that wait for one are more than this share of those in the file.
const GROUPS_PER_WAITING: usize = 32;
/// Bytes of the row groups that wait for a footer.
const WAITING_BYTES: usize = 8_000_000;

/// Where a table's bytes go; a file, or in tests something that fills up.
pub trait Store: Write + Seek {
    fn truncate(&mut self, length: u64) -> io::Result<()>;
}

impl Store for File {
    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }
}

/// A growing table.
pub struct TableFile<S: Store = File> {
    /// Named in errors.
    path: String,
    store: S,
    encoder: ArrowWriter<Vec<u8>>,
    schema: SchemaDescPtr,
    key_values: Vec<KeyValue>,
    /// Complete row groups that are not in the store, and their number.
    waiting: Vec<u8>,
    waiting_groups: usize,
    /// Bytes of the store that hold complete row groups.
    committed: u64,
    /// Rows in them.
    rows: u64,
    /// The footer that the store ends with.
    footer: Vec<u8>,
    /// Set by the first failure; nothing is written after it.
    failed: Option<ResultsError>,
}

impl TableFile<File> {
    /// Creates (or empties) the file at `path`; it is readable, with no rows, from the start.
    pub fn create(path: &Path, schema: SchemaRef) -> Result<TableFile, ResultsError> {
        TableFile::create_with(path, schema, properties())
    }

    /// The same, its columns written otherwise than [`properties`] says.
    pub(crate) fn create_with(
        path: &Path,
        schema: SchemaRef,
        properties: WriterPropertiesBuilder,
    ) -> Result<TableFile, ResultsError> {
        let name = path.display().to_string();
        let file = File::create(path).map_err(|e| ResultsError::failed(format!("{name}: {e}")))?;
        TableFile::with(name, file, schema, properties)
    }
}

impl<S: Store> TableFile<S> {
    /// A table on an empty store; `path` is its name in errors.
    pub fn on(path: String, store: S, schema: SchemaRef) -> Result<TableFile<S>, ResultsError> {
        TableFile::with(path, store, schema, properties())
    }

    fn with(
        path: String,
        store: S,
        schema: SchemaRef,
        properties: WriterPropertiesBuilder,
    ) -> Result<TableFile<S>, ResultsError> {
        let failed = |e: parquet::errors::ParquetError| ResultsError::failed(format!("{path}: {e}"));
        let encoder =
            ArrowWriter::try_new(Vec::new(), schema.clone(), Some(properties.build())).map_err(failed)?;
        let descriptor = Arc::new(ArrowSchemaConverter::new().convert(&schema).map_err(failed)?);
        let key_values = vec![KeyValue::new(ARROW_SCHEMA_META_KEY.to_string(), encode_arrow_schema(&schema))];
        let mut table = TableFile {
            path,
            store,
            encoder,
            schema: descriptor,
            key_values,
            waiting: Vec::new(),
            waiting_groups: 0,
            committed: 0,
            rows: 0,
            footer: Vec::new(),
            failed: None,
        };
        table.commit()?;
        Ok(table)
    }

    /// Rows that the file holds now, not counting those of the unfinished row group.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Adds the rows of `batch`; whole row groups go to the store, some of them together.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), ResultsError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let mut from = 0;
        while from < batch.num_rows() {
            let room = ROWS_PER_GROUP - self.encoder.in_progress_rows();
            let count = room.min(batch.num_rows() - from);
            if let Err(error) = self.encoder.write(&batch.slice(from, count)) {
                return Err(self.fail(&error.to_string()));
            }
            from += count;
            if count == room {
                self.end_group()?;
            }
        }
        Ok(())
    }

    /// Writes what is still in memory. The file is complete after it, and on failure too, with fewer rows.
    pub fn close(&mut self) -> Result<(), ResultsError> {
        match &self.failed {
            Some(error) => Err(error.clone()),
            None if self.encoder.in_progress_rows() > 0 || self.waiting_groups > 0 => self.commit(),
            None => Ok(()),
        }
    }

    /// A row group is full: encodes it, and writes it to the store unless it can wait for others.
    fn end_group(&mut self) -> Result<(), ResultsError> {
        if let Err(error) = self.encode_group() {
            return Err(self.fail(&error.to_string()));
        }
        self.waiting_groups += 1;
        let stored = self.encoder.flushed_row_groups().len() - self.waiting_groups;
        let waits = self.waiting_groups * GROUPS_PER_WAITING <= stored && self.waiting.len() < WAITING_BYTES;
        if waits { Ok(()) } else { self.commit() }
    }

    /// Moves all row groups, also the unfinished one, and a new footer to the store.
    fn commit(&mut self) -> Result<(), ResultsError> {
        let (rows, footer) = match self.encode_group().and_then(|()| self.encode_footer()) {
            Ok(encoded) => encoded,
            Err(error) => return Err(self.fail(&error.to_string())),
        };
        self.waiting_groups = 0;
        let groups = std::mem::take(&mut self.waiting);
        if let Err(error) = self.put(self.committed, &[&groups, &footer]) {
            let _ = self.restore();
            return Err(self.fail(&error.to_string()));
        }
        self.committed += groups.len() as u64;
        self.rows = rows;
        self.footer = footer;
        Ok(())
    }

    /// Adds the bytes of the unfinished row group, if it has rows, to those that wait.
    fn encode_group(&mut self) -> ParquetResult<()> {
        self.encoder.flush()?;
        self.encoder.sync()?;
        // The encoder counts the bytes that it has written itself; taking them away does not move its offsets.
        self.waiting.append(self.encoder.inner_mut());
        Ok(())
    }

    /// Rows of all row groups, and the footer for them.
    fn encode_footer(&mut self) -> ParquetResult<(u64, Vec<u8>)> {
        let groups = self.encoder.flushed_row_groups().to_vec();
        let rows = groups.iter().map(|g| g.num_rows()).sum::<i64>();
        let created_by = Some(format!("weftline {}", env!("CARGO_PKG_VERSION")));
        let about =
            FileMetaData::new(2, rows, created_by, Some(self.key_values.clone()), self.schema.clone(), None);
        let mut footer = Vec::new();
        ParquetMetaDataWriter::new(&mut footer, &ParquetMetaData::new(about, groups)).finish()?;
        Ok((rows as u64, footer))
    }

    fn put(&mut self, at: u64, parts: &[&[u8]]) -> io::Result<()> {
        self.store.seek(SeekFrom::Start(at))?;
        let mut end = at;
        for part in parts {
            self.store.write_all(part)?;
            end += part.len() as u64;
        }
        self.store.truncate(end)?;
        self.store.flush()
    }

    /// Back to the last complete state, after a row group that did not fit.
    fn restore(&mut self) -> io::Result<()> {
        self.store.truncate(self.committed)?;
        let footer = std::mem::take(&mut self.footer);
        let done = self.put(self.committed, &[&footer]);
        self.footer = footer;
        done
    }

    fn fail(&mut self, why: &str) -> ResultsError {
        let error =
            ResultsError::failed(format!("{}: {why}; its first {} rows are readable", self.path, self.rows));
        self.failed = Some(error.clone());
        error
    }
}

/// How a table is written: compressed, with dictionaries where they save space.
pub(crate) fn properties() -> WriterPropertiesBuilder {
    WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_max_row_group_row_count(Some(ROWS_PER_GROUP * 2))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        // Page indexes lie between row groups and footer; here row groups are followed by more row groups.
        .set_offset_index_disabled(true)
}

#[cfg(test)]
mod tests;
