//! What schemes count, for summary.json, and as data for metrics and help.

use super::metrics;
use crate::congestion::{self, SchemeDoc};
use crate::counters::{Counter, CounterGroup, Fold, Metric};
use crate::measure::{LossCounters, WAITS};
use crate::{balance, external, queue, telemetry, transport};
use serde_json::{Value, json};

/// The groups of counters of all schemes, those of other crates included, each once.
pub fn counters() -> Vec<&'static CounterGroup> {
    let queues = queue::counters();
    let rooms = queues.iter();
    let rooms_of_docs = [balance::DOCS, transport::DOCS, telemetry::DOCS].into_iter().flatten();
    let schemes = rooms_of_docs.chain(added()).flat_map(|doc| doc.counters);
    let mut all: Vec<&CounterGroup> = Vec::new();
    for group in rooms.chain(&[&WAITS]).chain(schemes) {
        if !all.contains(group) {
            all.push(group);
        }
    }
    all
}

/// The schemes of other crates.
fn added() -> impl Iterator<Item = &'static SchemeDoc> {
    external::package().into_iter().flat_map(|package| &package.schemes).map(|(_, doc)| doc)
}

/// What transports and controllers show of flows over time; a controller of both kinds of transport twice.
fn flow_series() -> Vec<Value> {
    let rooms = [transport::DOCS, congestion::DOCS, congestion::window::DOCS].into_iter().flatten();
    let of_scheme = |doc: &'static SchemeDoc| doc.series.iter().map(move |series| (doc, series));
    rooms
        .chain(added())
        .flat_map(of_scheme)
        .map(|(doc, series)| json!({ "scheme": doc.name, "name": series.name, "unit": series.unit, "text": series.text }))
        .collect()
}

/// Everything that is counted in addition to packets and bytes of ports: `losses`, the counters of data packets, and `groups`, those of schemes,
/// each with its `table` of summary.json (empty: totals), `counters`, `gauges` and `series`; `metrics`, the table of all metrics; and `flows`, what
/// schemes show of flows over time: `scheme`, `name`, `unit` and `text`.
pub fn declarations() -> Value {
    let group = |group: &&CounterGroup| {
        json!({
            "table": group.table,
            "text": group.text,
            "counters": group.counters.iter().map(counter).collect::<Vec<_>>(),
            "gauges": group.gauges.iter().map(counter).collect::<Vec<_>>(),
            "series": group.metrics.iter().filter(|m| !m.series.0.is_empty()).map(series).collect::<Vec<_>>(),
        })
    };
    let all = counters();
    json!({
        "losses": LossCounters::ALL.iter().map(counter).collect::<Vec<_>>(),
        "groups": all.iter().map(group).collect::<Vec<_>>(),
        "metrics": metrics::all(&all),
        "flows": flow_series(),
    })
}

fn counter(counter: &Counter) -> Value {
    json!({
        "key": counter.key,
        "unit": counter.unit,
        "title": counter.title,
        "text": counter.text,
        "fold": fold(counter),
    })
}

pub(super) fn fold(counter: &Counter) -> &'static str {
    match counter.fold {
        Fold::Sum => "sum",
        Fold::Max | Fold::MaxOfAll => "max",
    }
}

/// What is shown of it over time, and the name of the metric over a whole run.
fn series(metric: &Metric) -> Value {
    json!({ "name": metric.series.0, "text": metric.series.1, "metric": metric.name })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn keys_metrics_and_series_have_a_name_each_and_metrics_are_about_counters_of_their_group() {
        let (mut keys, mut metrics, mut series) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for group in counters() {
            let own: Vec<&str> = group.counters.iter().map(|counter| counter.key).collect();
            assert!(own.iter().all(|key| keys.insert((group.table, *key))), "{own:?}");
            for metric in group.metrics {
                assert!(own.contains(&metric.part) && metrics.insert(metric.name), "{metric:?}");
                assert!(metric.series.0.is_empty() || series.insert(metric.series.0), "{metric:?}");
            }
            assert!(group.gauges.iter().all(|gauge| series.insert(gauge.key)), "{:?}", group.gauges);
        }
    }
}
