//! telemetry.parquet: the digests that sinks took off packets, one packet a row; what `weftline pint decode` reads.

use std::path::Path;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Float64Array, Int32Array, RecordBatch, StringArray, UInt32Array, UInt64Array,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::basic::{Compression, Encoding};
use parquet::file::properties::{EnabledStatistics, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;
use rustc_hash::FxHashMap;
use weftline_sim::measure::{DigestRecord, NO_NODE};

use crate::ResultsError;
use crate::names::Names;
use crate::table_file::{TableFile, properties as properties_of_tables};

pub const FILE: &str = "telemetry.parquet";

/// Columns of the table.
pub fn schema() -> SchemaRef {
    let column = |name: &str, kind| Field::new(name, kind, false);
    Arc::new(Schema::new(vec![
        column("time_ns", DataType::Float64),
        column("flow_id", DataType::UInt32),
        column("src_port", DataType::UInt32),
        column("src", DataType::UInt32),
        column("dst", DataType::UInt32),
        column("packet_id", DataType::UInt64),
        column("digest", DataType::UInt64),
        column("hops", DataType::UInt32),
        column("plan_version", DataType::UInt32),
        column("sink", DataType::UInt32),
        column("loop", DataType::UInt32),
        Field::new("path", DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)), true),
    ]))
}

/// The table in the folder of a run, without rows.
pub(crate) fn table(folder: &Path) -> Result<TableFile, ResultsError> {
    TableFile::create_with(&folder.join(FILE), schema(), properties())
}

/// Most numbers are new or stay as they are for long: a dictionary costs more than it saves, except for paths; and so do statistics, which
/// are not used.
/// What a snappy match cannot find is packed by its differences.
fn properties() -> WriterPropertiesBuilder {
    let all = properties_of_tables()
        .set_dictionary_enabled(false)
        .set_column_dictionary_enabled(ColumnPath::from("path"), true)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_compression(Compression::SNAPPY);
    ["packet_id", "digest"].into_iter().fold(all, |all, column| {
        let column = ColumnPath::from(column);
        all.set_column_encoding(column.clone(), Encoding::DELTA_BINARY_PACKED)
            .set_column_compression(column, Compression::UNCOMPRESSED)
    })
}

/// Rows of digests. The sink is the host that the packet came to.
pub(crate) fn batch(names: &Names, digests: &[DigestRecord]) -> RecordBatch {
    let destinations = narrow(digests, |digest| names.host(digest.dst));
    RecordBatch::try_new(
        schema(),
        vec![
            Arc::new(Float64Array::from_iter_values(digests.iter().map(|digest| digest.time.as_ns()))),
            narrow(digests, |digest| digest.flow),
            narrow(digests, |digest| digest.subflow),
            narrow(digests, |digest| names.host(digest.src)),
            destinations.clone(),
            wide(digests, |digest| digest.packet),
            wide(digests, |digest| digest.digest),
            narrow(digests, |digest| digest.hops),
            narrow(digests, |digest| digest.plan_version),
            destinations,
            narrow(digests, |digest| digest.looped.into()),
            Arc::new(paths(names, digests)),
        ],
    )
    .expect("columns are made in the order and of the types of the schema, each from all digests")
}

/// The switches of each path, `leaf0 spine1 leaf3`; null where they were not requested or the packet had no room to note them all.
fn paths(names: &Names, digests: &[DigestRecord]) -> DictionaryArray<Int32Type> {
    let mut places: FxHashMap<[u32; 6], i32> = FxHashMap::default();
    let mut texts = Vec::new();
    let keys: Int32Array = digests
        .iter()
        .map(|digest| {
            let path = digest.path.as_deref().filter(|path| path[0] != NO_NODE)?;
            Some(*places.entry(*path).or_insert_with(|| {
                let nodes = path.iter().take_while(|node| **node != NO_NODE);
                let known = nodes.map(|node| names.nodes.get(*node as usize).map_or("?", String::as_str));
                texts.push(known.collect::<Vec<_>>().join(" "));
                texts.len() as i32 - 1
            }))
        })
        .collect();
    // Every key is the place of a text.
    DictionaryArray::new(keys, Arc::new(StringArray::from(texts)))
}

fn narrow(digests: &[DigestRecord], of: impl Fn(&DigestRecord) -> u32) -> ArrayRef {
    Arc::new(UInt32Array::from_iter_values(digests.iter().map(of)))
}

fn wide(digests: &[DigestRecord], of: impl Fn(&DigestRecord) -> u64) -> ArrayRef {
    Arc::new(UInt64Array::from_iter_values(digests.iter().map(of)))
}
