use super::*;
use crate::scratch::Scratch;

#[test]
fn what_is_not_parquet_is_named() {
    let dir = Scratch::new();
    for (name, bytes) in [("empty", &b""[..]), ("text", b"src,dst\n1,2\n"), ("cut", b"PAR1abcdefgh")] {
        let path = dir.join(name);
        std::fs::write(&path, bytes).unwrap();
        let error = columns(&path).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("not a complete Parquet file"), "{error}");
    }
    let error = columns(dir.path()).unwrap_err().to_string();
    assert!(error.contains("folder"), "{error}");
    assert!(columns(&dir.join("absent")).is_err());
}

#[test]
fn a_decoder_that_panics_ends_its_stream_with_an_error() {
    struct Panics;
    impl Iterator for Panics {
        type Item = Result<RecordBatch, ArrowError>;
        fn next(&mut self) -> Option<Self::Item> {
            panic!("damaged bytes")
        }
    }
    impl RecordBatchReader for Panics {
        fn schema(&self) -> SchemaRef {
            SchemaRef::new(arrow_schema::Schema::empty())
        }
    }
    let mut reader = Guarded { reader: Panics, path: "flows.parquet".into(), broken: false, written: None };
    let error = reader.next().unwrap().unwrap_err().to_string();
    assert!(error.contains("flows.parquet: the Parquet file is damaged"), "{error}");
    assert!(reader.next().is_none());
}

#[test]
fn a_schema_that_announces_more_than_there_is_is_refused() {
    let dir = Scratch::new();
    let path = dir.join("announces.parquet");
    // version 1; a schema of one element, "s", with 2^30 children.
    let metadata = [0x15, 2, 0x19, 0x1c, 0x48, 1, b's', 0x15, 0x80, 0x80, 0x80, 0x80, 0x08, 0, 0];
    let mut bytes = b"PAR1".to_vec();
    bytes.extend(metadata);
    bytes.extend((metadata.len() as u32).to_le_bytes());
    bytes.extend(b"PAR1");
    std::fs::write(&path, bytes).unwrap();
    let error = columns(&path).unwrap_err().to_string();
    assert!(error.contains("its footer is invalid"), "{error}");
}

#[test]
fn a_value_that_every_row_has_may_not_be_missing() {
    use arrow_schema::{Field, Schema};
    let schema = |nullable| {
        let field = |name: &str| Field::new(name, DataType::UInt32, nullable);
        SchemaRef::new(Schema::new(vec![field("flow_id"), field("other")]))
    };
    let column = |missing: bool| UInt32Array::from(vec![Some(1), (!missing).then_some(2)]);
    let first = |missing: [bool; 2], written: Option<SchemaRef>| {
        let columns = missing.map(|missing| std::sync::Arc::new(column(missing)) as arrow_array::ArrayRef);
        let batch = RecordBatch::try_new(schema(true), columns.to_vec()).unwrap();
        let reader = RecordBatchIterator::new([Ok(batch)], schema(true));
        let mut reader = Guarded { reader, path: "flows.parquet".into(), broken: false, written };
        reader.next().unwrap().map_err(|error| error.to_string())
    };
    let flows = || Some(SchemaRef::new(schema(false).project(&[0]).unwrap()));
    let error = first([true, false], flows()).unwrap_err();
    assert!(error.contains("flows.parquet: column \"flow_id\" has rows without a value"), "{error}");
    assert!(first([false, true], flows()).is_ok(), "a column that runs do not write");
    assert!(first([false, false], flows()).is_ok() && first([true, true], None).is_ok());
    assert!(first([true, true], Some(schema(true))).is_ok(), "columns that may lack values");
}
