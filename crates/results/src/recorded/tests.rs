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
    let mut table = TableFile::create(&path, Arc::new(Schema::new(batch.schema().fields().clone()))).unwrap();
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
