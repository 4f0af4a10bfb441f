//! What schemes count, for summary.json, and as data for metrics and help.

use crate::counters::{Counter, CounterGroup, Fold, Metric};
use crate::measure::LossCounters;
use crate::{balance, external, queue, telemetry, transport};
use serde_json::{Value, json};

/// The groups of counters of all schemes, by room.
pub fn counters() -> Vec<&'static CounterGroup> {
    let rooms = [queue::COUNTERS, balance::COUNTERS, transport::COUNTERS, telemetry::COUNTERS];
    let added =
        external::package().into_iter().flat_map(|package| &package.schemes).map(|(_, doc)| doc.counters);
    rooms.into_iter().chain(added).flatten().copied().collect()
}

/// Everything that is counted beside packets and bytes of ports: `losses`, the counters of data packets, and `groups`, those of schemes,
/// each with its `table` of summary.json (empty: totals), `counters`, `gauges` and `metrics`.
pub fn declarations() -> Value {
    let group = |group: &&CounterGroup| {
        json!({
            "table": group.table,
            "text": group.text,
            "counters": group.counters.iter().map(counter).collect::<Vec<_>>(),
            "gauges": group.gauges.iter().map(counter).collect::<Vec<_>>(),
            "metrics": group.metrics.iter().map(|m| metric(m, group)).collect::<Vec<_>>(),
        })
    };
    json!({
        "losses": LossCounters::ALL.iter().map(counter).collect::<Vec<_>>(),
        "groups": counters().iter().map(group).collect::<Vec<_>>(),
    })
}

fn counter(counter: &Counter) -> Value {
    let fold = match counter.fold {
        Fold::Sum => "sum",
        Fold::Max | Fold::MaxOfAll => "max",
    };
    json!({
        "key": counter.key,
        "unit": counter.unit,
        "title": counter.title,
        "text": counter.text,
        "fold": fold,
    })
}

/// With what its counter says where it says nothing itself.
fn metric(metric: &Metric, group: &CounterGroup) -> Value {
    let part = group.counters.iter().find(|counter| counter.key == metric.part);
    let or = |own: &'static str, counter: fn(&Counter) -> &'static str| match own {
        "" => part.map_or("", counter),
        own => own,
    };
    json!({
        "name": metric.name,
        "title": or(metric.title, |counter| counter.title),
        "axis": metric.axis,
        "text": or(metric.text, |counter| counter.text),
        "part": metric.part,
        "over": metric.over,
        "series": metric.series.0,
        "series_text": metric.series.1,
    })
}
