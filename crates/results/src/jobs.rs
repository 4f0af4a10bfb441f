//! jobs.parquet: one row per step of a job, in the order of (job, step): a collective operation, all that ranks
//! do in a step of a training job, or the event of an incast. Steps that had not ended when the run did have nulls.
//!
//! The *time* of an operation is from the start of its first flow, or from the end of the operation before it if that is
//! later, to the delivery of its last flow. Bandwidths are those of the operation by itself, from its own start, with the data
//! of every rank: algorithm bandwidth = data / (finish - start); bus bandwidth = algorithm bandwidth times 2 (n - 1) / n for an
//! all-reduce among n ranks, 1 for a broadcast or a reduce, (n - 1) / n for all others. Where operations overlap, as gathers do,
//! whose ranks do not wait for each other, data over what the second one adds would exceed the rate of the links.
//!
//! Source: nccl-tests, doc/PERFORMANCE.md.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{BooleanArray, Float64Array, RecordBatch, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use serde_json::{Map, Value, json};
use weftline_sim::measure::StepRecord;
use weftline_sim::units::Time;

use crate::flow_table::text;
use crate::names::{Labels, Names};
use crate::parquet_read::{self, Cell, cell};
use crate::table_file::TableFile;
use crate::{ResultsError, file_digests};

pub const FILE: &str = "jobs.parquet";

/// Columns of the table.
pub fn schema() -> SchemaRef {
    let field = |name: &str, kind: DataType| Field::new(name, kind, false);
    let may_miss = |name: &str, kind: DataType| Field::new(name, kind, true);
    Arc::new(Schema::new(vec![
        field("job", text()),
        field("workload", DataType::UInt32),
        field("step", DataType::UInt32),
        field("operation", text()),
        field("whole", DataType::Boolean),
        field("part", DataType::Boolean),
        field("inside", DataType::Boolean),
        field("ranks", DataType::UInt32),
        field("bytes", DataType::UInt64),
        field("start_ns", DataType::Float64),
        may_miss("finish_ns", DataType::Float64),
        may_miss("time_ns", DataType::Float64),
        may_miss("ideal_ns", DataType::Float64),
        may_miss("finish_to_finish_ns", DataType::Float64),
        may_miss("algbw_bps", DataType::Float64),
        may_miss("busbw_bps", DataType::Float64),
        may_miss("last_flow", DataType::UInt32),
        may_miss("last_host", DataType::UInt32),
        may_miss("exposed_ns", DataType::Float64),
        may_miss("straggler_ns", DataType::Float64),
    ]))
}

/// Data of every rank over the time from the step's own start, in bit/s; none of a whole job, whose ranks have no data in common.
fn algorithm_bandwidth(step: &StepRecord) -> Option<f64> {
    step.shape.bytes?;
    let time = step.finish.map(|finish| finish - step.start).filter(|&time| time > Time::ZERO)?;
    Some(step.bytes as f64 * 8.0 / time.as_seconds())
}

fn bus_bandwidth(step: &StepRecord) -> Option<f64> {
    let (above, below) = step.shape.bus?;
    algorithm_bandwidth(step).map(|bandwidth| bandwidth * above as f64 / below as f64)
}

/// Writes the table of a run that had steps.
pub(crate) fn write(dir: &Path, names: &Names, steps: &[StepRecord]) -> Result<(), ResultsError> {
    let mut table = TableFile::create(&dir.join(FILE), schema())?;
    table.write(&batch(names, steps))?;
    table.close()
}

/// The names of operations, and of each step the place of its own among them.
pub(crate) fn operations(steps: &[StepRecord]) -> (Labels, Vec<u16>) {
    let mut known: Vec<&'static str> = Vec::new();
    let place = |step: &StepRecord| {
        let name = step.shape.operation;
        let at = known.iter().position(|&one| one == name).unwrap_or(known.len());
        if at == known.len() {
            known.push(name);
        }
        at as u16
    };
    let places = steps.iter().map(place).collect();
    (Labels::new(known.into_iter()), places)
}

/// Of each step the time since the last finish before its own, among the steps of its job: events of an incast may finish in
/// another order than they start. None for the first one that finished, and for parts of a whole job, which do not follow each other.
fn finish_to_finish(steps: &[StepRecord]) -> Vec<Option<Time>> {
    let finish =
        |at: usize| steps[at].finish.filter(|_| !steps[at].part).map(|time| (steps[at].source, time));
    let mut order: Vec<usize> = (0..steps.len()).filter(|&at| finish(at).is_some()).collect();
    order.sort_by_key(|&at| finish(at));
    let mut gaps = vec![None; steps.len()];
    for pair in order.windows(2).filter(|pair| steps[pair[0]].source == steps[pair[1]].source) {
        gaps[pair[1]] = finish(pair[1]).zip(finish(pair[0])).map(|((_, last), (_, before))| last - before);
    }
    gaps
}

fn batch(names: &Names, steps: &[StepRecord]) -> RecordBatch {
    let ns = |value: &dyn Fn(&StepRecord) -> Option<Time>| {
        Arc::new(steps.iter().map(|step| value(step).map(Time::as_ns)).collect::<Float64Array>())
    };
    let number = |value: &dyn Fn(&StepRecord) -> Option<u32>| {
        Arc::new(steps.iter().map(value).collect::<UInt32Array>())
    };
    let real = |value: &dyn Fn(&StepRecord) -> Option<f64>| {
        Arc::new(steps.iter().map(value).collect::<Float64Array>())
    };
    let flag = |value: &dyn Fn(&StepRecord) -> bool| {
        Arc::new(steps.iter().map(|step| Some(value(step))).collect::<BooleanArray>())
    };
    let groups = Labels::new(names.groups.iter().map(String::as_str));
    let (labels, places) = operations(steps);
    let gaps = finish_to_finish(steps);
    RecordBatch::try_new(
        schema(),
        vec![
            Arc::new(groups.column(steps.iter().map(|step| step.group))),
            number(&|step| Some(u32::from(step.source))),
            number(&|step| Some(step.step)),
            Arc::new(labels.column(places.iter().copied())),
            flag(&|step| step.whole),
            flag(&|step| step.part),
            flag(&|step| step.shape.inside),
            number(&|step| Some(step.shape.ranks)),
            Arc::new(UInt64Array::from_iter_values(steps.iter().map(|step| step.bytes))),
            ns(&|step| Some(step.start)),
            ns(&|step| step.finish),
            ns(&StepRecord::time),
            ns(&|step| step.ideal),
            Arc::new(gaps.iter().map(|gap| gap.map(Time::as_ns)).collect::<Float64Array>()),
            real(&algorithm_bandwidth),
            real(&bus_bandwidth),
            number(&|step| step.last.filter(|_| step.last_recorded).map(|(flow, _)| flow)),
            number(&|step| step.last.map(|(_, host)| names.host(host))),
            ns(&|step| step.exposed),
            ns(&|step| step.straggler),
        ],
    )
    .expect("columns are made in the order and of the types of the schema, each from all steps")
}

/// The rows of a run's folder as a JSON list of objects; empty for a run without jobs.
pub fn read(dir: &Path) -> Result<Value, ResultsError> {
    let path = dir.join(FILE);
    if !path.exists() {
        file_digests::check_file(&path)?;
        return Ok(json!([]));
    }
    let schema = schema();
    // Folders of earlier builds have fewer columns.
    let there = parquet_read::columns(&path)?;
    let columns: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let columns: Vec<&str> = columns.into_iter().filter(|name| there.iter().any(|one| one == name)).collect();
    let mut rows = Vec::new();
    parquet_read::each(&path, &columns, &mut |batch| {
        for row in 0..batch.num_rows() {
            let mut found = Map::new();
            for (name, array) in columns.iter().zip(batch.columns()) {
                let value = match cell(array.as_ref(), row) {
                    Some(Cell::Whole(number)) => json!(number as u64),
                    Some(Cell::Real(number)) => json!(number),
                    Some(Cell::Text(text)) => json!(text),
                    _ => Value::Null,
                };
                found.insert((*name).to_string(), value);
            }
            rows.push(Value::Object(found));
        }
        Ok(())
    })?;
    Ok(Value::Array(rows))
}

#[cfg(test)]
mod tests;
