//! telemetry.parquet: the digests that sinks took off packets, one packet a row; what `weftline pint decode` reads.

use std::sync::Arc;

use arrow_array::{Float64Array, RecordBatch, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use weftline_sim::measure::DigestRecord;

use crate::names::Names;

pub const FILE: &str = "telemetry.parquet";

/// Columns of the table.
pub fn schema() -> SchemaRef {
    let column = |name: &str, kind| Field::new(name, kind, false);
    Arc::new(Schema::new(vec![
        column("time_ns", DataType::Float64),
        column("flow_id", DataType::UInt32),
        column("src", DataType::UInt32),
        column("dst", DataType::UInt32),
        column("packet_id", DataType::UInt64),
        column("digest", DataType::UInt64),
        column("hops", DataType::UInt32),
        column("plan_version", DataType::UInt32),
        column("sink", DataType::UInt32),
        column("loop", DataType::UInt32),
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
            hosts(|digest| digest.src),
            hosts(|digest| digest.dst),
            wide(|digest| digest.packet),
            wide(|digest| digest.digest),
            numbers(|digest| digest.hops),
            numbers(|digest| digest.plan_version),
            hosts(|digest| digest.dst),
            numbers(|digest| digest.looped.into()),
        ],
    )
    .expect("columns are made in the order and of the types of the schema, each from all digests")
}
