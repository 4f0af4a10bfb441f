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
    let mut reader = Guarded { reader: Panics, path: "flows.parquet".into(), broken: false };
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
