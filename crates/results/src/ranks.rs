//! ranks.parquet: one row per rank and step of a job graph, in the order of (job, step, rank): when the rank
//! joined the step and when it had its result. Of a collective operation, `late_ns` is how much later than
//! the first of its ranks it ended. Of a whole job, `unsent_ns` and `unjoined_ns` are the parts of its
//! exposed time in which it waited for other ranks.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{Float64Array, RecordBatch, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use weftline_sim::measure::{RankRecord, StepRecord};
use weftline_sim::units::Time;

use crate::ResultsError;
use crate::flow_table::text;
use crate::jobs::operations;
use crate::names::{Labels, Names};
use crate::table_file::TableFile;

pub const FILE: &str = "ranks.parquet";
/// Rows that are made into columns together.
const AT_ONCE: usize = 65_536;

/// Columns of the table.
pub fn schema() -> SchemaRef {
    let field = |name: &str, kind: DataType| Field::new(name, kind, false);
    let may_miss = |name: &str, kind: DataType| Field::new(name, kind, true);
    Arc::new(Schema::new(vec![
        field("job", text()),
        field("workload", DataType::UInt32),
        field("step", DataType::UInt32),
        field("operation", text()),
        field("rank", DataType::UInt32),
        field("host", DataType::UInt32),
        field("bytes_sent", DataType::UInt64),
        field("start_ns", DataType::Float64),
        may_miss("finish_ns", DataType::Float64),
        field("exposed_ns", DataType::Float64),
        may_miss("late_ns", DataType::Float64),
        may_miss("unsent_ns", DataType::Float64),
        may_miss("unjoined_ns", DataType::Float64),
    ]))
}

/// Writes the table of a run with job graphs.
pub(crate) fn write(
    dir: &Path,
    names: &Names,
    steps: &[StepRecord],
    ranks: &[RankRecord],
) -> Result<(), ResultsError> {
    let mut table = TableFile::create(&dir.join(FILE), schema())?;
    // Both are in the order of their steps.
    let rows: Vec<(&RankRecord, usize)> = ranks
        .iter()
        .filter_map(|rank| Some((rank, steps.binary_search_by_key(&rank.number, |step| step.number).ok()?)))
        .collect();
    let mut first = vec![None::<Time>; steps.len()];
    for &(rank, step) in &rows {
        first[step] = first[step].into_iter().chain(rank.end).min();
    }
    for some in rows.chunks(AT_ONCE) {
        table.write(&batch(names, steps, &first, some))?;
    }
    table.close()
}

fn batch(
    names: &Names,
    steps: &[StepRecord],
    first: &[Option<Time>],
    rows: &[(&RankRecord, usize)],
) -> RecordBatch {
    let number = |value: &dyn Fn(&RankRecord, &StepRecord) -> u32| {
        Arc::new(UInt32Array::from_iter_values(rows.iter().map(|(rank, step)| value(rank, &steps[*step]))))
    };
    let of_whole = |value: &dyn Fn(&RankRecord) -> Time| {
        let values = rows.iter().map(|(rank, step)| steps[*step].whole.then(|| value(rank).as_ns()));
        Arc::new(values.collect::<Float64Array>())
    };
    let groups = Labels::new(names.groups.iter().map(String::as_str));
    let (labels, places) = operations(steps);
    let ends = rows.iter().map(|(rank, _)| rank.end.map(Time::as_ns));
    let late = rows.iter().map(|(rank, step)| Some((rank.end?.saturating_sub(first[*step]?)).as_ns()));
    RecordBatch::try_new(
        schema(),
        vec![
            Arc::new(groups.column(rows.iter().map(|(_, step)| steps[*step].group))),
            number(&|_, step| u32::from(step.source)),
            number(&|_, step| step.step),
            Arc::new(labels.column(rows.iter().map(|(_, step)| places[*step]))),
            number(&|rank, _| rank.rank),
            number(&|rank, _| names.host(rank.host)),
            Arc::new(UInt64Array::from_iter_values(rows.iter().map(|(rank, _)| rank.bytes))),
            Arc::new(Float64Array::from_iter_values(rows.iter().map(|(rank, _)| rank.start.as_ns()))),
            Arc::new(ends.collect::<Float64Array>()),
            Arc::new(Float64Array::from_iter_values(rows.iter().map(|(rank, _)| rank.exposed.as_ns()))),
            Arc::new(late.collect::<Float64Array>()),
            of_whole(&|rank| rank.unsent),
            of_whole(&|rank| rank.unjoined),
        ],
    )
    .expect("columns are made in the order and of the types of the schema, each from all rows")
}
