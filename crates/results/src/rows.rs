//! A table whose rows are JSON objects, as a Parquet file.
//!
//! The type of a column follows from its values: whole numbers that are not negative, numbers, texts, true and
//! false, or lists of whole numbers (of which single ones may be missing). Anything else is written as its
//! JSON text. A column whose values are all missing holds texts.

use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Float64Builder, ListBuilder, StringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{Field, Schema};
use serde_json::Value;

use crate::ResultsError;
use crate::table_file::TableFile;

/// The types, the later holding the values of fewer columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Missing,
    Whole,
    Number,
    Bool,
    List,
    Text,
}

/// Writes the rows; the columns are the keys of the first row, in their order.
pub fn write(path: &Path, rows: &[Value]) -> Result<(), ResultsError> {
    let names: Vec<&String> =
        rows.first().and_then(Value::as_object).into_iter().flatten().map(|(k, _)| k).collect();
    if names.is_empty() {
        return Err(ResultsError::failed(format!("{}: a table without rows has no columns", path.display())));
    }
    let columns: Vec<ArrayRef> = names
        .iter()
        .map(|name| column(&rows.iter().map(|row| &row[name.as_str()]).collect::<Vec<_>>()))
        .collect();
    let fields: Vec<Field> = names
        .iter()
        .zip(&columns)
        .map(|(name, column)| Field::new(*name, column.data_type().clone(), true))
        .collect();
    let schema = Arc::new(Schema::new(fields));
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns)
        .map_err(|error| ResultsError::failed(format!("{}: {error}", path.display())))?;
    let mut table = TableFile::create(path, schema)?;
    table.write(&batch)?;
    table.close()
}

fn kind_of(value: &Value) -> Kind {
    match value {
        Value::Null => Kind::Missing,
        Value::Bool(_) => Kind::Bool,
        Value::Number(number) if number.is_u64() => Kind::Whole,
        Value::Number(_) => Kind::Number,
        Value::Array(values) if values.iter().all(|value| value.is_null() || value.is_u64()) => Kind::List,
        _ => Kind::Text,
    }
}

fn joined(a: Kind, b: Kind) -> Kind {
    match (a, b) {
        (Kind::Missing, other) | (other, Kind::Missing) => other,
        (Kind::Whole, Kind::Number) | (Kind::Number, Kind::Whole) => Kind::Number,
        (a, b) if a == b => a,
        _ => Kind::Text,
    }
}

fn column(values: &[&Value]) -> ArrayRef {
    match values.iter().map(|value| kind_of(value)).fold(Kind::Missing, joined) {
        Kind::Whole => {
            let mut builder = UInt64Builder::new();
            values.iter().for_each(|value| builder.append_option(value.as_u64()));
            Arc::new(builder.finish())
        }
        Kind::Number => {
            let mut builder = Float64Builder::new();
            values.iter().for_each(|value| builder.append_option(value.as_f64()));
            Arc::new(builder.finish())
        }
        Kind::Bool => {
            let mut builder = BooleanBuilder::new();
            values.iter().for_each(|value| builder.append_option(value.as_bool()));
            Arc::new(builder.finish())
        }
        Kind::List => {
            let mut builder = ListBuilder::new(UInt64Builder::new());
            for value in values {
                let list = value.as_array();
                list.into_iter().flatten().for_each(|value| builder.values().append_option(value.as_u64()));
                builder.append(list.is_some());
            }
            Arc::new(builder.finish())
        }
        Kind::Missing | Kind::Text => {
            let mut builder = StringBuilder::new();
            for value in values {
                builder.append_option(match value {
                    Value::Null => None,
                    Value::String(text) => Some(text.clone()),
                    other => Some(other.to_string()),
                });
            }
            Arc::new(builder.finish())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_schema::DataType;
    use serde_json::json;

    #[test]
    fn the_type_of_a_column_follows_from_its_values() {
        let path = std::env::temp_dir().join(format!("weftline-rows-{}.parquet", std::process::id()));
        let rows = [
            json!({"a": 1, "b": 1, "c": "x", "d": true, "e": [1, null, 3], "f": {"g": 1}, "h": null}),
            json!({"a": null, "b": 0.5, "c": null, "d": null, "e": [], "f": 1, "h": null}),
        ];
        write(&path, &rows).unwrap();
        let batches = crate::parquet_read::batches(&path, &["a", "b", "c", "d", "e", "f", "h"]).unwrap();
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 2);
        let schema = batches[0].schema();
        let kinds: Vec<_> = schema.fields().iter().map(|field| field.data_type().clone()).collect();
        use DataType::{Boolean, Float64, UInt64, Utf8};
        assert_eq!(kinds[..4], [UInt64, Float64, Utf8, Boolean]);
        assert!(matches!(&kinds[4], DataType::List(inner) if *inner.data_type() == UInt64));
        assert_eq!(kinds[5..], [Utf8, Utf8]);
        std::fs::remove_file(path).unwrap();
        assert!(write(Path::new("none.parquet"), &[]).is_err());
    }
}
