//! flows.parquet: one row a flow, in the order in which flows ended; those that did not end come last, with nulls.
//!
//! Times are nanoseconds since the start of the run, floating point with the picoseconds kept. `src` and `dst` are
//! host ids as the user writes them. Slowdown is fct / ideal; with the HPCC authors' ideal time it is raised to 1 where it is less, as
//! in their analysis.

use std::sync::Arc;

use arrow_array::{BooleanArray, Float64Array, RecordBatch, UInt32Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use weftline_sim::measure::FlowRecord;
use weftline_sim::units::Time;

use crate::names::{Labels, Names};

pub const FILE: &str = "flows.parquet";

/// A column of strings, each distinct one stored once.
pub(crate) fn text() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

/// Columns of the table.
pub fn schema() -> SchemaRef {
    let field = |name: &str, kind: DataType| Field::new(name, kind, false);
    let may_miss = |name: &str, kind: DataType| Field::new(name, kind, true);
    Arc::new(Schema::new(vec![
        field("flow_id", DataType::UInt32),
        field("src", DataType::UInt32),
        field("dst", DataType::UInt32),
        field("size_bytes", DataType::UInt64),
        field("start_ns", DataType::Float64),
        may_miss("finish_ns", DataType::Float64),
        may_miss("fct_ns", DataType::Float64),
        field("ideal_fct_ns", DataType::Float64),
        may_miss("slowdown", DataType::Float64),
        field("packets_sent", DataType::UInt64),
        field("packets_retransmitted", DataType::UInt64),
        field("timeouts", DataType::UInt32),
        field("group", text()),
        field("transport", text()),
        field("controller", text()),
        may_miss("deadline_ns", DataType::Float64),
        may_miss("met_deadline", DataType::Boolean),
    ]))
}

/// Time that the flow took; none while it is unfinished.
fn fct(record: &FlowRecord) -> Option<Time> {
    record.finish.map(|finish| finish.saturating_sub(record.start))
}

/// fct / ideal, at least 1 if it is `raised`; none for an unfinished flow.
pub fn slowdown(record: &FlowRecord, raised: bool) -> Option<f64> {
    fct(record)
        .filter(|_| record.ideal > Time::ZERO)
        .map(|fct| fct.0 as f64 / record.ideal.0 as f64)
        .map(|slowdown| if raised { slowdown.max(1.0) } else { slowdown })
}

/// Turns records into rows.
pub(crate) struct FlowRows {
    schema: SchemaRef,
    names: Arc<Names>,
    groups: Labels,
    transports: Labels,
    controllers: Labels,
}

impl FlowRows {
    pub fn new(names: Arc<Names>) -> FlowRows {
        FlowRows {
            schema: schema(),
            groups: Labels::new(names.groups.iter().map(String::as_str)),
            transports: Labels::new(names.transports.iter().map(|t| t.0.as_str())),
            controllers: Labels::new(names.transports.iter().map(|t| t.1.as_str())),
            names,
        }
    }

    pub fn batch(&self, records: &[FlowRecord]) -> RecordBatch {
        let ns = |time: &dyn Fn(&FlowRecord) -> Option<Time>| {
            Arc::new(records.iter().map(|r| time(r).map(Time::as_ns)).collect::<Float64Array>())
        };
        let whole = |value: &dyn Fn(&FlowRecord) -> u64| {
            Arc::new(UInt64Array::from_iter_values(records.iter().map(value)))
        };
        let id = |value: &dyn Fn(&FlowRecord) -> u32| {
            Arc::new(UInt32Array::from_iter_values(records.iter().map(value)))
        };
        RecordBatch::try_new(
            self.schema.clone(),
            vec![
                id(&|r| r.flow),
                id(&|r| self.names.host(r.src)),
                id(&|r| self.names.host(r.dst)),
                whole(&|r| r.size),
                ns(&|r| Some(r.start)),
                ns(&|r| r.finish),
                ns(&fct),
                ns(&|r| Some(r.ideal)),
                Arc::new(
                    records
                        .iter()
                        .map(|r| slowdown(r, self.names.raises_slowdowns))
                        .collect::<Float64Array>(),
                ),
                whole(&|r| r.packets_sent),
                whole(&|r| r.packets_retransmitted),
                id(&|r| r.timeouts),
                Arc::new(self.groups.column(records.iter().map(|r| r.group))),
                Arc::new(self.transports.column(records.iter().map(|r| r.transport))),
                Arc::new(self.controllers.column(records.iter().map(|r| r.transport))),
                ns(&|r| r.deadline),
                Arc::new(records.iter().map(FlowRecord::met_deadline).collect::<BooleanArray>()),
            ],
        )
        .expect("columns are made in the order and of the types of the schema, each from all records")
    }
}
