//! telemetry.parquet: the digests that sinks took off packets, one packet a row; what `weftline pint decode` reads.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::basic::{Compression, Encoding};
use parquet::file::properties::{EnabledStatistics, WriterPropertiesBuilder};
use parquet::schema::types::ColumnPath;
use weftline_sim::measure::DigestRecord;

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

/// The table in the folder of a run, without rows.
pub(crate) fn table(folder: &Path) -> Result<TableFile, ResultsError> {
    TableFile::create_with(&folder.join(FILE), schema(), properties())
}

/// Most numbers are new or stay as they are for long: a dictionary costs more than it saves, and so do statistics, which nobody asks for.
/// What a snappy match cannot find is packed by its differences.
fn properties() -> WriterPropertiesBuilder {
    let all = properties_of_tables()
        .set_dictionary_enabled(false)
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
            narrow(digests, |digest| names.host(digest.src)),
            destinations.clone(),
            wide(digests, |digest| digest.packet),
            wide(digests, |digest| digest.digest),
            narrow(digests, |digest| digest.hops),
            narrow(digests, |digest| digest.plan_version),
            destinations,
            narrow(digests, |digest| digest.looped.into()),
        ],
    )
    .expect("columns are made in the order and of the types of the schema, each from all digests")
}

fn narrow(digests: &[DigestRecord], of: impl Fn(&DigestRecord) -> u32) -> ArrayRef {
    Arc::new(UInt32Array::from_iter_values(digests.iter().map(of)))
}

fn wide(digests: &[DigestRecord], of: impl Fn(&DigestRecord) -> u64) -> ArrayRef {
    Arc::new(UInt64Array::from_iter_values(digests.iter().map(of)))
}
