//! telemetry.parquet: the digests that sinks took off packets, one packet a row; what `weftline pint decode` reads.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    DictionaryArray, Float64Array, Int32Array, RecordBatch, StringArray, UInt32Array, UInt64Array,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use weftline_sim::measure::{DigestRecord, NO_NODE};

use crate::names::Names;

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

/// Rows of digests. The sink is the host that the packet came to.
pub(crate) fn batch(names: &Names, digests: &[DigestRecord]) -> RecordBatch {
    let numbers =
        |of: fn(&DigestRecord) -> u32| Arc::new(UInt32Array::from_iter_values(digests.iter().map(of)));
    let hosts = |of: fn(&DigestRecord) -> u32| {
        Arc::new(UInt32Array::from_iter_values(digests.iter().map(|digest| names.host(of(digest)))))
    };
    let wide = |of: fn(&DigestRecord) -> u64| Arc::new(UInt64Array::from_iter_values(digests.iter().map(of)));
    RecordBatch::try_new(
        schema(),
        vec![
            Arc::new(Float64Array::from_iter_values(digests.iter().map(|digest| digest.time.as_ns()))),
            numbers(|digest| digest.flow),
            numbers(|digest| digest.subflow),
            hosts(|digest| digest.src),
            hosts(|digest| digest.dst),
            wide(|digest| digest.packet),
            wide(|digest| digest.digest),
            numbers(|digest| digest.hops),
            numbers(|digest| digest.plan_version),
            hosts(|digest| digest.dst),
            numbers(|digest| digest.looped.into()),
            Arc::new(paths(names, digests)),
        ],
    )
    .expect("columns are made in the order and of the types of the schema, each from all digests")
}

/// The switches of each path, `leaf0 spine1 leaf3`; null where the packet had no room to note them all.
fn paths(names: &Names, digests: &[DigestRecord]) -> DictionaryArray<Int32Type> {
    let mut places: BTreeMap<[u32; 6], i32> = BTreeMap::new();
    let mut texts = Vec::new();
    let keys: Int32Array = digests
        .iter()
        .map(|digest| {
            if digest.path[0] == NO_NODE {
                return None;
            }
            Some(*places.entry(digest.path).or_insert_with(|| {
                let nodes = digest.path.iter().take_while(|node| **node != NO_NODE);
                let known = nodes.map(|node| names.nodes.get(*node as usize).map_or("?", String::as_str));
                texts.push(known.collect::<Vec<_>>().join(" "));
                texts.len() as i32 - 1
            }))
        })
        .collect();
    // Every key is the place of a text.
    DictionaryArray::new(keys, Arc::new(StringArray::from(texts)))
}
