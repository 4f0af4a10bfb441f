//! What a collector knows at one time, for those who export it.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::admission::Source;
use super::reader::InputCounts;
use crate::Malformed;
use crate::intake::{Counts, HopKey, HopState};
use crate::sequence::Sequence;

/// The state at the end of an interval.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// Intervals since the beginning, over restarts.
    pub interval: u64,
    pub started_ns: u64,
    /// When this process began: what checkpoints lack counts from there on.
    pub process_ns: u64,
    pub time_ns: u64,
    pub counts: Counts,
    pub malformed: BTreeMap<Malformed, u64>,
    pub hops: BTreeMap<HopKey, HopState>,
    /// Of this interval alone.
    pub recent: BTreeMap<HopKey, HopState>,
    pub inputs: Vec<InputCounts>,
    pub sources: Vec<(Option<IpAddr>, Source)>,
    pub not_allowed: u64,
    pub reporters: BTreeMap<(u32, u8), Sequence>,
    pub flows: usize,
    /// Records of PINT's flows.
    pub pint_flows: usize,
    pub memory_bytes: usize,
    /// Events by kind.
    pub events: BTreeMap<String, u64>,
    pub exporters: BTreeMap<&'static str, ExporterCounts>,
}

/// How an exporter fares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExporterCounts {
    pub sent: u64,
    pub failed: u64,
    /// Snapshots that it was too slow for.
    pub skipped: u64,
}

/// A metric with its points, as Prometheus and OTLP both have it.
pub struct Metric {
    pub name: &'static str,
    pub help: &'static str,
    pub unit: &'static str,
    pub kind: Kind,
    pub points: Vec<(Vec<(&'static str, String)>, f64)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Counter,
    /// Not in checkpoints: it begins again with the process.
    ProcessCounter,
    Gauge,
}

/// Hops with series of their own; the others are counted.
const MAX_SERIES_HOPS: usize = 1_000;
const SECOND_NS: f64 = 1e9;

impl Snapshot {
    /// All metrics; labels are bounded: addresses of exporters (1 000), nodes (1 000), reasons, inputs.
    pub fn metrics(&self) -> Vec<Metric> {
        use Kind::{Counter, Gauge, ProcessCounter};
        let mut metrics: Vec<Metric> = Vec::new();
        let mut add = |name, help, unit, kind, points: Vec<(Vec<(&'static str, String)>, f64)>| {
            metrics.push(Metric { name, help, unit, kind, points });
        };
        let one = |value: u64| vec![(Vec::new(), value as f64)];
        let counts = &self.counts;
        add("weftline_packets_total", "Packets and datagrams read.", "", Counter, one(counts.packets));
        let outcome = |name: &str, value: u64| (vec![("outcome", name.to_owned())], value as f64);
        let outcomes = vec![
            outcome("telemetry", counts.with_telemetry),
            outcome("without", counts.without_telemetry),
            outcome("malformed", counts.malformed_packets),
            outcome("unreadable", counts.unreadable),
            outcome("not_ip", counts.not_ip),
            outcome("other_link", counts.other_links),
            outcome("unwelcome", counts.unwelcome),
        ];
        add("weftline_outcomes_total", "Packets by what they were; adds up to all.", "", Counter, outcomes);
        let kind = |name: &str, value: u64| (vec![("kind", name.to_owned())], value as f64);
        let kinds = vec![
            kind("int_md", counts.int_md),
            kind("int_mx", counts.int_mx),
            kind("ioam_trace", counts.ioam_traces),
            kind("ioam_direct_export", counts.ioam_direct_exports),
            kind("ioam_edge_to_edge", counts.ioam_edge_to_edge),
            kind("hpcc", counts.hpcc),
            kind("pint", counts.pint_digests),
            kind("report", counts.reports),
        ];
        add("weftline_reports_total", "Pieces of telemetry by kind.", "", Counter, kinds);
        let by_source = |of: fn(&Source) -> u64| -> Vec<_> {
            let label = |ip: &Option<IpAddr>| ip.map_or("other".into(), |ip| ip.to_string());
            self.sources.iter().map(|(ip, source)| (vec![("source", label(ip))], of(source) as f64)).collect()
        };
        add(
            "weftline_datagrams_total",
            "Datagrams by exporter.",
            "",
            ProcessCounter,
            by_source(|s| s.datagrams),
        );
        add(
            "weftline_muted_total",
            "Datagrams of muted exporters.",
            "",
            ProcessCounter,
            by_source(|s| s.muted),
        );
        let not_allowed = one(self.not_allowed);
        add(
            "weftline_not_allowed_total",
            "Datagrams outside of the allow-list.",
            "",
            ProcessCounter,
            not_allowed,
        );
        let of_nodes = |of: fn(&Sequence) -> u64| -> Vec<_> {
            let label = |&(node, unit): &(u32, u8)| vec![("source", format!("{node}/{unit}"))];
            self.reporters.iter().map(|(key, sequence)| (label(key), of(sequence) as f64)).collect()
        };
        add("weftline_lost", "Report datagrams that are missing now.", "", Gauge, of_nodes(|s| s.lost));
        let missing = of_nodes(Sequence::missing);
        add("weftline_missing_total", "Report datagrams that left a gap.", "", Counter, missing);
        let recovered = of_nodes(Sequence::recovered);
        add("weftline_recovered_total", "Of the missing ones, those that came late.", "", Counter, recovered);
        let late = of_nodes(Sequence::settled_late);
        add("weftline_late_total", "Report datagrams that were late.", "", Counter, late);
        add("weftline_repeated_total", "Report datagrams repeated.", "", Counter, of_nodes(|s| s.repeated));
        let reasons = self
            .malformed
            .iter()
            .map(|(reason, &count)| (vec![("reason", reason.to_string())], count as f64));
        add("weftline_malformed_total", "What was refused, by reason.", "", Counter, reasons.collect());
        let of_inputs = |of: fn(&InputCounts) -> u64| -> Vec<_> {
            self.inputs.iter().map(|input| (vec![("where", input.name.clone())], of(input) as f64)).collect()
        };
        add("weftline_received_total", "Taken from an input.", "", ProcessCounter, of_inputs(|i| i.received));
        let dropped = of_inputs(|i| i.dropped);
        add(
            "weftline_kernel_dropped_total",
            "Dropped by the kernel before an input.",
            "",
            ProcessCounter,
            dropped,
        );
        add("weftline_shed_total", "Findings that shards were too slow for.", "", Counter, one(counts.shed));
        add("weftline_flows", "Flows that are kept.", "", Gauge, one(self.flows as u64));
        add("weftline_pint_flows", "Records of PINT's flows.", "", Gauge, one(self.pint_flows as u64));
        add("weftline_flows_evicted_total", "Flows evicted.", "", Counter, one(counts.flows_evicted));
        add(
            "weftline_flows_refused_total",
            "Packets of refused flows.",
            "",
            Counter,
            one(counts.flows_refused),
        );
        add("weftline_memory_bytes", "Memory of all tables.", "By", Gauge, one(self.memory_bytes as u64));
        let events =
            self.events.iter().map(|(kind, &count)| (vec![("kind", kind.to_string())], count as f64));
        add("weftline_events_total", "Events by kind.", "", Counter, events.collect());
        let of_exporters = |of: fn(&ExporterCounts) -> u64| -> Vec<_> {
            let row = |(name, counts): (&&str, &ExporterCounts)| {
                (vec![("exporter", (*name).to_owned())], of(counts) as f64)
            };
            self.exporters.iter().map(row).collect()
        };
        let failed = of_exporters(|e| e.failed);
        add("weftline_export_failed_total", "Exports that failed.", "", ProcessCounter, failed);
        let skipped = of_exporters(|e| e.skipped);
        add(
            "weftline_export_skipped_total",
            "Snapshots that an exporter was too slow for.",
            "",
            ProcessCounter,
            skipped,
        );
        self.hop_metrics(&mut metrics);
        metrics
    }

    fn hop_metrics(&self, metrics: &mut Vec<Metric>) {
        let (mut latency, mut queue) = (Vec::new(), Vec::new());
        for (key, state) in self.recent.iter().take(MAX_SERIES_HOPS) {
            for (points, values, unit) in
                [(&mut latency, &state.latency, SECOND_NS), (&mut queue, &state.queue, 1.0)]
            {
                for (name, rank) in [("p50", 0.5), ("p99", 0.99), ("max", 1.0)] {
                    let Some(value) = values.quantile(rank) else { continue };
                    let labels = vec![("node", node(*key)), ("level", name.to_owned())];
                    points.push((labels, value as f64 / unit));
                }
            }
        }
        let gauge = |name, help, unit, points| Metric { name, help, unit, kind: Kind::Gauge, points };
        let help = "Latency of a hop in the last interval, which is taken to be in nanoseconds.";
        metrics.push(gauge("weftline_hop_latency_seconds", help, "s", latency));
        let help = "Queue of a hop in the last interval, in the unit of the device (bytes).";
        metrics.push(gauge("weftline_hop_queue_bytes", help, "By", queue));
        let counter = |name, help, unit, points| Metric { name, help, unit, kind: Kind::Counter, points };
        // Hops of which it is not known have no point.
        let of = |of: fn(&HopState) -> Option<f64>| -> Vec<_> {
            let point = |(&key, state): (&HopKey, _)| Some((vec![("node", node(key))], of(state)?));
            self.hops.iter().take(MAX_SERIES_HOPS).filter_map(point).collect()
        };
        let samples = of(|hop| Some(hop.latency.count.max(hop.queue.count) as f64));
        metrics.push(counter("weftline_hop_samples_total", "Measurements of a hop.", "", samples));
        let latencies = of(|hop| (hop.latency.count > 0).then_some(hop.latency.count as f64));
        let help = "Measurements of a hop that have a latency.";
        metrics.push(counter("weftline_hop_latency_samples_total", help, "", latencies));
        let sums = of(|hop| (hop.latency.count > 0).then_some(hop.latency.sum as f64 / SECOND_NS));
        let help = "Sum of the latencies of a hop, which are taken to be in nanoseconds.";
        metrics.push(counter("weftline_hop_latency_seconds_total", help, "s", sums));
        let drops = of(|hop| Some(hop.drops as f64));
        metrics.push(counter("weftline_hop_drops_total", "Drops that reports tell of.", "", drops));
        let beyond = self.hops.len().saturating_sub(MAX_SERIES_HOPS) as f64;
        let help = "Hops beyond the limit of series.";
        metrics.push(gauge("weftline_hops_without_series", help, "", vec![(Vec::new(), beyond)]));
    }
}

/// The label of a hop.
pub fn node(key: HopKey) -> String {
    match key {
        HopKey::Node(crate::intake::UNKNOWN_NODE) => "unknown".into(),
        HopKey::Node(node) => node.to_string(),
        HopKey::Position(position) => format!("hop {position}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(metrics: &[Metric], name: &str, label: &str) -> Option<f64> {
        let metric = metrics.iter().find(|metric| metric.name == name)?;
        metric.points.iter().find(|(labels, _)| labels[0].1 == label).map(|&(_, value)| value)
    }

    #[test]
    fn the_mean_latency_is_that_of_the_reports_that_have_one() {
        let (mut queues, mut mixed) = (HopState::default(), HopState::default());
        for n in 0..200 {
            queues.queue.add(100);
            mixed.queue.add(100);
            if n % 2 == 0 {
                mixed.latency.add(1_000);
            }
        }
        let hops = BTreeMap::from([(HopKey::Node(7), queues), (HopKey::Node(8), mixed)]);
        let metrics = Snapshot { hops, ..Snapshot::default() }.metrics();
        let [sum, latencies, all] = ["latency_seconds", "latency_samples", "samples"]
            .map(|name| ["7", "8"].map(|node| point(&metrics, &format!("weftline_hop_{name}_total"), node)));
        assert_eq!((sum[0], latencies[0], all[0]), (None, None, Some(200.0)));
        assert_eq!((sum[1], latencies[1], all[1]), (Some(1e-4), Some(100.0), Some(200.0)));
    }

    #[test]
    fn what_no_checkpoint_has_begins_with_the_process() {
        let snapshot = Snapshot { started_ns: 5, process_ns: 9, not_allowed: 1, ..Snapshot::default() };
        let request = crate::live::otlp::request(&snapshot);
        let metrics = request["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap();
        let start = |name: &str| {
            let metric = metrics.iter().find(|metric| metric["name"] == name).unwrap();
            metric["sum"]["dataPoints"][0]["startTimeUnixNano"].clone()
        };
        assert_eq!((start("weftline_packets"), start("weftline_not_allowed")), ("5".into(), "9".into()));
    }

    #[test]
    fn counters_of_lost_datagrams_never_fall() {
        // A gap, the late ones that fill it, then an exporter that begins again.
        let numbers = (0..100).chain(150..160).chain(110..150).chain(160..200).chain(0..30);
        let mut sequence = Sequence::default();
        let (mut before, mut lost) = ([0.0; 3], Vec::new());
        for number in numbers {
            sequence.take(number, 0);
            let reporters = BTreeMap::from([((9, 0), sequence)]);
            let metrics = Snapshot { reporters, ..Snapshot::default() }.metrics();
            let of = |name: &str| point(&metrics, &format!("weftline_{name}"), "9/0").unwrap();
            let now = ["missing_total", "recovered_total", "late_total"].map(of);
            assert!(
                now.iter().zip(&before).all(|(now, before)| now >= before),
                "{number}: {before:?}, {now:?}"
            );
            lost.push(of("lost"));
            before = now;
        }
        assert_eq!((lost[109], lost[149], before), (50.0, 10.0, [50.0, 40.0, 40.0]));
    }
}
