//! queues.parquet: how often each measured port held how many bytes. Rows: port, queue_bytes (lower edge of a bin of
//! [`QueueHistogram::BIN_BYTES`]), samples; bins without samples are left out.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{RecordBatch, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use serde_json::{Value, json};
use weftline_sim::measure::QueueHistogram;

use crate::flow_table::text;
use crate::folder::SUMMARY_FILE;
use crate::names::{Labels, Names};
use crate::{ResultsError, file_digests, parquet_read};

pub const FILE: &str = "queues.parquet";

/// Columns of the table.
pub fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("port", text(), false),
        Field::new("queue_bytes", DataType::UInt64, false),
        Field::new("samples", DataType::UInt64, false),
    ]))
}

/// The rows of one port.
pub(crate) fn batch(names: &Names, (node, port): (u32, u32), histogram: &QueueHistogram) -> RecordBatch {
    let filled = || histogram.bins.iter().enumerate().filter(|(_, samples)| **samples > 0);
    let label = Labels::new(std::iter::once(names.port(node, port).as_str()));
    RecordBatch::try_new(
        schema(),
        vec![
            Arc::new(label.column(filled().map(|_| 0))),
            Arc::new(UInt64Array::from_iter_values(
                filled().map(|(bin, _)| bin as u64 * QueueHistogram::BIN_BYTES),
            )),
            Arc::new(UInt64Array::from_iter_values(filled().map(|(_, samples)| *samples))),
        ],
    )
    .expect("columns are made in the order and of the types of the schema, each from all filled bins")
}

/// All ports' samples together.
pub fn merged<'h>(histograms: impl Iterator<Item = &'h QueueHistogram>) -> QueueHistogram {
    let mut all = QueueHistogram::default();
    histograms.for_each(|histogram| all.merge(histogram));
    all
}

/// The merged histogram of the run folder `dir`; empty where the run recorded none. Its maximum is that of summary.json, of folders
/// of earlier builds, or without that file, the lower edge of the last bin.
pub fn read(dir: &Path) -> Result<QueueHistogram, ResultsError> {
    let path = dir.join(FILE);
    let mut all = QueueHistogram::default();
    if !path.exists() {
        file_digests::check_file(&path)?;
        return Ok(all);
    }
    let batches = parquet_read::batches(&path, &["queue_bytes", "samples"])?;
    let foreign = || ResultsError::input(format!("{}: not a table of queue histograms", path.display()));
    let bytes = parquet_read::numbers(&batches, 0).ok_or_else(foreign)?;
    let samples = parquet_read::numbers(&batches, 1).ok_or_else(foreign)?;
    // Larger than any buffer; keeps a damaged file from asking for all memory.
    const MAX_BYTES: f64 = 1e10;
    for (bytes, samples) in bytes.into_iter().zip(samples) {
        if !(0.0..MAX_BYTES).contains(&bytes) {
            return Err(foreign());
        }
        let bin = bytes as usize / QueueHistogram::BIN_BYTES as usize;
        if all.bins.len() <= bin {
            all.bins.resize(bin + 1, 0);
        }
        all.bins[bin] += samples as u64;
    }
    let lower_edge = all.percentile(1.0);
    let in_last_bin = |max: &u64| max / QueueHistogram::BIN_BYTES * QueueHistogram::BIN_BYTES == lower_edge;
    all.max = max_of_summary(dir)?.filter(in_last_bin).unwrap_or(lower_edge);
    Ok(all)
}

/// The maximum that summary.json has.
fn max_of_summary(dir: &Path) -> Result<Option<u64>, ResultsError> {
    let path = dir.join(SUMMARY_FILE);
    file_digests::check_file(&path)?;
    let summary: Option<Value> = fs::read(path).ok().and_then(|text| serde_json::from_slice(&text).ok());
    Ok(summary.and_then(|summary| summary["queues"]["max"].as_u64()))
}

/// Percentiles in bytes (lower edges of bins: a queue is up to [`QueueHistogram::BIN_BYTES`] longer) and the maximum, over all samples of all ports, idle moments included; null
/// without samples.
pub fn percentiles(histogram: &QueueHistogram) -> Value {
    let any = histogram.bins.iter().any(|&n| n > 0);
    let at = |p: f64| any.then(|| histogram.percentile(p));
    json!({
        "samples": histogram.bins.iter().sum::<u64>(),
        "p50": at(0.5), "p95": at(0.95), "p99": at(0.99), "p999": at(0.999), "max": any.then_some(histogram.max),
    })
}

/// (bytes, share of samples that are shorter), one point for every bin that has samples, at its upper edge.
pub fn cdf(histogram: &QueueHistogram) -> Vec<(u64, f64)> {
    let total: u64 = histogram.bins.iter().sum();
    let mut seen = 0;
    let mut points = Vec::new();
    for (bin, &samples) in histogram.bins.iter().enumerate().filter(|(_, samples)| **samples > 0) {
        seen += samples;
        points.push(((bin as u64 + 1) * QueueHistogram::BIN_BYTES, seen as f64 / total as f64));
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cdf_steps_where_there_are_samples() {
        let histogram = QueueHistogram { bins: vec![6, 0, 3, 0, 1], max: 4632 };
        assert_eq!(cdf(&histogram), [(1000, 0.6), (3000, 0.9), (5000, 1.0)]);
        let p = percentiles(&histogram);
        assert_eq!(
            (&p["p50"], &p["p95"], &p["max"], &p["samples"]),
            (&json!(0), &json!(4000), &json!(4632), &json!(10))
        );
        assert_eq!(percentiles(&QueueHistogram::default())["p99"], Value::Null);
    }
}
