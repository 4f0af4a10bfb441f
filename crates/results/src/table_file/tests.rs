use super::*;
use crate::parquet_read;
use crate::scratch::Scratch;
use arrow_array::{Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema};

/// A file on a disk with room for this number of bytes.
struct SmallDisk {
    file: File,
    room: u64,
}
impl Write for SmallDisk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let at = self.file.stream_position()?;
        let fits = self.room.saturating_sub(at).min(bytes.len() as u64) as usize;
        if fits == 0 && !bytes.is_empty() {
            return Err(io::Error::from(io::ErrorKind::StorageFull));
        }
        self.file.write(&bytes[..fits])
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
impl Seek for SmallDisk {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}
impl Store for SmallDisk {
    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }
}

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("n", DataType::UInt64, false)]))
}

/// Numbers that do not compress away.
fn numbers(range: std::ops::Range<u64>) -> RecordBatch {
    let mixed = range.map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29));
    RecordBatch::try_new(schema(), vec![Arc::new(UInt64Array::from_iter_values(mixed))]).unwrap()
}

fn read(path: &Path) -> Vec<u64> {
    let batches = parquet_read::batches(path, &["n"]).unwrap();
    let columns = batches.iter().map(|b| b.column(0).as_any().downcast_ref::<UInt64Array>().unwrap());
    columns.flat_map(|c| c.values().to_vec()).collect()
}

fn all_of(batch: &RecordBatch) -> Vec<u64> {
    batch.column(0).as_any().downcast_ref::<UInt64Array>().unwrap().values().to_vec()
}

#[test]
fn rows_come_back_over_several_row_groups() {
    let dir = Scratch::new();
    let path = dir.join("n.parquet");
    let mut table = TableFile::create(&path, schema()).unwrap();
    assert!(read(&path).is_empty());
    let everything = numbers(0..150_000);
    for from in (0..150_000).step_by(30_000) {
        table.write(&everything.slice(from, 30_000)).unwrap();
    }
    assert_eq!(table.rows(), 2 * ROWS_PER_GROUP as u64);
    assert_eq!(read(&path).len(), 2 * ROWS_PER_GROUP, "readable before it is closed");
    table.close().unwrap();
    assert_eq!(read(&path), all_of(&everything));
}

#[test]
fn row_groups_of_a_long_table_share_footers() {
    let dir = Scratch::new();
    let path = dir.join("n.parquet");
    let mut table = TableFile::create(&path, schema()).unwrap();
    let same = vec![7; ROWS_PER_GROUP];
    let group = RecordBatch::try_new(schema(), vec![Arc::new(UInt64Array::from(same))]).unwrap();
    let mut missing = Vec::new();
    for groups in 1..=36 {
        table.write(&group).unwrap();
        missing.push(groups - table.rows() as usize / ROWS_PER_GROUP);
    }
    assert_eq!(missing[..32], [0; 32], "each group at once while there are few");
    assert_eq!(missing[32..], [1, 0, 1, 0]);
    table.write(&group.slice(0, 5)).unwrap();
    table.close().unwrap();
    assert_eq!(read(&path).len(), 36 * ROWS_PER_GROUP + 5);
}

#[test]
fn a_full_disk_leaves_the_row_groups_that_fitted() {
    let dir = Scratch::new();
    let path = dir.join("n.parquet");
    // Two row groups of incompressible numbers and part of the third.
    let room = (2.5 * 8.0 * ROWS_PER_GROUP as f64) as u64;
    let store = SmallDisk { file: File::create(&path).unwrap(), room };
    let mut table = TableFile::on("n.parquet".into(), store, schema()).unwrap();
    let everything = numbers(0..300_000);
    let error = table.write(&everything).unwrap_err().to_string();
    assert!(error.starts_with("n.parquet: ") && error.contains("first 131072 rows"), "{error}");
    assert_eq!(table.write(&everything).unwrap_err().to_string(), error);
    assert_eq!(table.close().unwrap_err().to_string(), error);
    assert_eq!(read(&path), all_of(&everything)[..2 * ROWS_PER_GROUP]);
}
