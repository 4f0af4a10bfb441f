//! The text format of Prometheus, version 0.0.4.

use std::fmt::Write;

use super::snapshot::{Kind, Snapshot};

pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// All metrics of a snapshot. Metrics without a point are left out.
pub fn text(snapshot: &Snapshot) -> String {
    let mut text = String::new();
    for metric in snapshot.metrics().iter().filter(|metric| !metric.points.is_empty()) {
        let kind = match metric.kind {
            Kind::Counter | Kind::ProcessCounter => "counter",
            Kind::Gauge => "gauge",
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "# HELP {0} {1}\n# TYPE {0} {kind}", metric.name, metric.help);
        for (labels, value) in &metric.points {
            let labels: Vec<String> =
                labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
            let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
            let _ = writeln!(text, "{}{labels} {value}", metric.name);
        }
    }
    text
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
