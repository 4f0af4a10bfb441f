//! The findings as JSON: one object a row.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::Malformed;
use crate::collector::Collector;
use crate::flows::{Change, FlowState, FlowTable, Point};
use crate::histogram::{ERROR, Histogram};
use crate::intake::{Counts, HopKey, HopState, Intake, UNKNOWN_NODE};
use crate::ip::FlowKey;
use crate::pint::{self, Decoding};
use crate::sequence::Sequence;

impl Collector {
    /// What happened to the input: counts, refusals by reason, digests by carrier, memory.
    pub fn summary(&self) -> Value {
        summary(self.intake(), std::slice::from_ref(self.table()))
    }

    /// A row for each flow at each point of observation.
    pub fn path_rows(&self) -> Vec<Value> {
        path_rows(std::slice::from_ref(self.table()))
    }

    /// A row for each hop.
    pub fn hop_rows(&self) -> Vec<Value> {
        hop_rows(self.hops())
    }

    /// A row for each change of a path, in the order of arrival.
    pub fn event_rows(&self) -> Vec<Value> {
        self.changes().iter().map(|change| event_row(self.table(), change)).collect()
    }

    /// A row for each node and hardware unit that reports.
    pub fn source_rows(&self) -> Vec<Value> {
        source_rows(self.sources())
    }
}

/// All findings of an intake and its shards: the same for any number of these.
pub fn found(intake: &Intake, tables: &[FlowTable], mut decodings: Vec<Decoding>) -> Value {
    let mut summary = summary(intake, tables);
    pint::add_to(&mut summary, &decodings, intake.digests());
    let of_table = |table| FlowTable::changes(table).iter().map(move |change| (table, change));
    let mut changes: Vec<(&FlowTable, &Change)> = tables.iter().flat_map(of_table).collect();
    // Changes of one flow at one time stay in the order of arrival.
    changes.sort_by_key(|(_, change)| (change.time_ns, change.flow, change.point));
    let mut of_pint: Vec<_> = decodings.iter_mut().flat_map(Decoding::take_events).collect();
    of_pint.sort_by_key(|(order, _)| *order);
    let changed = changes.into_iter().map(|(table, change)| event_row(table, change));
    json!({
        "events": changed.chain(of_pint.into_iter().map(|(_, event)| event)).collect::<Vec<_>>(),
        "pint": pint::rows(&decodings),
        "summary": summary,
        "paths": path_rows(tables),
        "hops": hop_rows(intake.hops()),
        "sources": source_rows(intake.sources()),
    })
}

/// What happened to the input of an intake and its tables of flows.
pub fn summary(intake: &Intake, tables: &[FlowTable]) -> Value {
    let counts = tables.iter().fold(intake.counts(), |counts, table| counts.with(&table.counts()));
    let digests: Map<_, _> =
        intake.digests().iter().map(|(carrier, count)| (format!("{carrier:?}"), json!(count))).collect();
    let total = |of: fn(&Sequence) -> u64| intake.sources().values().map(of).sum::<u64>();
    json!({
        "counts": counts_value(&counts),
        "adds_up": counts.adds_up(),
        "malformed": malformed_value(intake.malformed()),
        "malformed_in_reports": malformed_value(intake.malformed_in_reports()),
        "digests_by_carrier": digests,
        "lost_groups": total(|sequence| sequence.lost),
        "late_groups": total(|sequence| sequence.late),
        "repeated_groups": total(|sequence| sequence.repeated),
        "restarts": total(|sequence| sequence.restarts),
        "flows": tables.iter().map(FlowTable::len).sum::<usize>(),
        "hops": intake.hops().len(),
        "events": tables.iter().map(|table| table.changes().len()).sum::<usize>(),
        "memory_bytes": intake.bytes() + tables.iter().map(FlowTable::bytes).sum::<usize>(),
        "quantile_error": ERROR,
        "largest_evicted": tables.iter().flat_map(heavy_rows).collect::<Value>(),
    })
}

/// The largest flows that were evicted, at most 20 of each table.
fn heavy_rows(table: &FlowTable) -> Vec<Value> {
    let row = |(flow, point, packets, excess): (FlowKey, Point, u64, u64)| {
        let mut row = flow_row(&flow, point);
        row["packets_at_most"] = json!(packets);
        row["packets_at_least"] = json!(packets - excess);
        row
    };
    table.heavy().into_iter().take(20).map(row).collect()
}

pub(crate) fn counts_value(counts: &Counts) -> Value {
    counts
        .all()
        .into_iter()
        .map(|(name, count)| (name.to_owned(), json!(count)))
        .collect::<Map<_, _>>()
        .into()
}

fn malformed_value(malformed: &BTreeMap<Malformed, u64>) -> Value {
    malformed.iter().map(|(reason, count)| (reason.to_string(), json!(count))).collect::<Map<_, _>>().into()
}

/// A row for each flow at each point of observation, in the order of their keys.
pub fn path_rows(tables: &[FlowTable]) -> Vec<Value> {
    let each = |table| FlowTable::flows(table).into_iter().map(move |row| (table, row));
    let mut flows: Vec<(&FlowTable, _)> = tables.iter().flat_map(each).collect();
    flows.sort_unstable_by_key(|(_, (key, _))| *key);
    flows.into_iter().map(|(table, ((flow, point), state))| path_row(table, &flow, point, &state)).collect()
}

pub(crate) fn path_row(table: &FlowTable, flow: &FlowKey, point: Point, state: &FlowState) -> Value {
    let mut row = flow_row(flow, point);
    row["path"] = path_value(table.path(state.path));
    row["packets"] = json!(state.packets);
    row["first_ns"] = json!(state.first_ns);
    row["last_ns"] = json!(state.last_ns);
    row["changes"] = json!(state.changes);
    row
}

/// A row for each hop.
pub fn hop_rows(hops: &BTreeMap<HopKey, HopState>) -> Vec<Value> {
    let row = |(key, hop): (&HopKey, &HopState)| {
        let (node, position) = match *key {
            HopKey::Node(UNKNOWN_NODE) => (None, None),
            HopKey::Node(node) => (Some(node), None),
            HopKey::Position(position) => (None, Some(position)),
        };
        let mut row = json!({"node": node, "position": position, "drops": hop.drops});
        put(&mut row, "latency", &hop.latency);
        put(&mut row, "queue", &hop.queue);
        row["queue_minima"] = json!(hop.queue_minima);
        row["latency_minima"] = json!(hop.latency_minima);
        row
    };
    hops.iter().map(row).collect()
}

/// A row for a change of a path.
pub fn event_row(table: &FlowTable, change: &Change) -> Value {
    let mut row = flow_row(&change.flow, change.point);
    row["time_ns"] = json!(change.time_ns);
    row["kind"] = json!("path changed");
    row["before"] = path_value(table.path(change.before));
    row["after"] = path_value(table.path(change.after));
    row
}

/// A row for each node and hardware unit that reports.
pub fn source_rows(sources: &BTreeMap<(u32, u8), Sequence>) -> Vec<Value> {
    let row = |(&(node, hardware), sequence): (&(u32, u8), &Sequence)| {
        json!({
            "node": node, "hardware": hardware, "received": sequence.received, "lost": sequence.lost,
            "late": sequence.late, "repeated": sequence.repeated, "restarts": sequence.restarts,
        })
    };
    sources.iter().map(row).collect()
}

fn path_value(nodes: &[u64]) -> Value {
    nodes.iter().map(|&node| if node == UNKNOWN_NODE { Value::Null } else { json!(node) }).collect()
}

pub(crate) fn flow_row(flow: &FlowKey, point: Point) -> Value {
    let (interface, reporter, point) = match point {
        Point::Interface(interface) => (Some(interface), None, None),
        Point::Capture { point, interface } => (Some(interface), None, Some(point)),
        Point::Node(node) => (None, Some(node), None),
    };
    json!({
        "src": flow.source, "dst": flow.destination, "src_port": flow.source_port, "dst_port": flow.destination_port,
        "protocol": flow.protocol, "vni": flow.vni, "namespace": flow.namespace, "interface": interface, "reporter": reporter, "point": point,
    })
}

fn put(row: &mut Value, name: &str, values: &Histogram) {
    row[format!("{name}_samples")] = json!(values.count);
    row[format!("{name}_mean")] = json!(values.mean());
    row[format!("{name}_p50")] = json!(values.quantile(0.5));
    row[format!("{name}_p99")] = json!(values.quantile(0.99));
    row[format!("{name}_max")] = json!((values.count > 0).then_some(values.max));
}
