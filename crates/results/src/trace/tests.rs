use super::*;
use crate::scratch::Scratch;
use crate::table_file::TableFile;
use arrow_array::{ArrayRef, Float32Array, Float64Array, Int16Array, Int64Array, StringArray, UInt64Array};
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
    let (rows, _) = read(&save(&dir, columns)).unwrap();
    let first = TraceRow { src: 0, dst: 1, size_bytes: 1000, group: Some("a".into()), ..TraceRow::default() };
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
fn a_row_to_wait_for_may_be_a_number_of_floating_point() {
    let dir = Scratch::new();
    let mut columns = four(vec![0, 3, 1], vec![1, 2, 0], vec![1, 1, 1], vec![0.0, 1.0, 2.0]);
    columns.push(("after", Arc::new(Float64Array::from(vec![None, Some(0.0), Some(f64::NAN)]))));
    let (rows, _) = read(&save(&dir, columns)).unwrap();
    assert_eq!(rows.iter().map(|row| row.after.clone()).collect::<Vec<_>>(), [vec![], vec![0], vec![]]);
    let mut columns = four(vec![0], vec![1], vec![1], vec![0.0]);
    columns.push(("after", Arc::new(Float64Array::from(vec![0.5]))));
    let text = read(&save(&dir, columns)).unwrap_err().to_string();
    assert!(text.contains("row 0: after: expected numbers of rows such as \"3;7\""), "{text}");
}

#[test]
fn a_table_compressed_by_gzip_is_read() {
    let dir = Scratch::new();
    let path = dir.join("trace.parquet");
    let columns = four(vec![0], vec![1], vec![5], vec![0.0]);
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let gzip = parquet::basic::Compression::GZIP(Default::default());
    let properties = parquet::file::properties::WriterProperties::builder().set_compression(gzip).build();
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    assert_eq!(read(&path).unwrap().0[0].size_bytes, 5);
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
    assert!(text.contains("column start_ns is missing"), "{text}");
    let mut columns = four(vec![0], vec![1], vec![5], vec![0.0]);
    columns.push(("dealine_ns", Arc::new(Int64Array::from(vec![1]))));
    let text = error(columns);
    assert!(text.contains("dealine_ns") && text.contains("\"deadline_ns\""), "{text}");
}

#[test]
fn units_names_and_other_columns_are_read_as_in_csv() {
    let dir = Scratch::new();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("start_us", Arc::new(Float64Array::from(vec![1.5]))),
        ("src", Arc::new(StringArray::from(vec!["gpu-5"]))),
        ("dst", Arc::new(StringArray::from(vec!["7"]))),
        ("size_bytes", Arc::new(Int64Array::from(vec![9]))),
        ("color", Arc::new(StringArray::from(vec!["red"]))),
    ];
    let (rows, warnings) = read(&save(&dir, columns)).unwrap();
    assert_eq!((rows[0].src_name.as_deref(), rows[0].dst, rows[0].start_ps), (Some("gpu-5"), 7, 1_500_000));
    assert!(warnings[0].contains("column \"color\" is passed over"), "{warnings:?}");
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

#[test]
fn rows_with_numbers_stand_by_start_and_number_also_without_the_other_columns_of_a_run() {
    let dir = Scratch::new();
    let sizes = |ids: ArrayRef| {
        let mut columns = four(vec![0; 3], vec![1; 3], vec![7, 8, 9], vec![5.0, 0.0, 0.0]);
        columns.push(("flow_id", ids));
        let (rows, _) = read(&save(&dir, columns)).unwrap();
        rows.iter().map(|row| row.size_bytes).collect::<Vec<_>>()
    };
    assert_eq!(sizes(Arc::new(Int64Array::from(vec![2, 12, 3]))), [9, 8, 7]);
    assert_eq!(sizes(Arc::new(Float64Array::from(vec![2.0, 1.0, 3.0]))), [8, 9, 7]);
    // Without a number of each row, and with names, the order is that of the file.
    assert_eq!(sizes(Arc::new(Int64Array::from(vec![Some(2), None, Some(1)]))), [7, 8, 9]);
    assert_eq!(sizes(Arc::new(StringArray::from(vec!["c", "b", "a"]))), [7, 8, 9]);
}
