//! Workloads of `weftline bench` without a network: what switches and collectors do with packets.
//!
//! What is counted takes the place of packet-hops: hops encoded, digests taken in by a collector (the flow's look-up
//! included), or packets with telemetry.

use std::hint::black_box;
use std::time::Instant;

use pint::collector::{Collector, Event, FlowReport, Limits, Sink};
use pint::graph::Graph;
use pint::hash::mix;
use pint::path::{Knowledge, PathDecoder};
use pint::plan::{Plan, read};
use pint::recorded::{Address, Flow, Recorded};
use serde_json::{Value, json};
use weftline_collect::workload::{self, Carried};
use weftline_results::{Stopwatch, peak_memory_bytes};

/// A workload without a network.
pub struct Workload {
    pub name: &'static str,
    pub description: &'static str,
    /// The text in the column of packet-hops.
    counts: &'static str,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    Encode,
    /// Paths of `hops` switches out of `ids`, `turns` digests of each of 1 000 flows.
    Decode {
        hops: u32,
        ids: u64,
        turns: u64,
    },
    /// Packets from memory, through the parsers alone or through the whole collector.
    Telemetry {
        carried: Carried,
        whole: bool,
    },
}

pub const WORKLOADS: &[Workload] = &[
    Workload {
        name: "pint-encode",
        description: "PINT's encoder: one hop of path tracing, hop latency and load on 16 bits, as a switch runs it.",
        counts: "hops encoded",
        kind: Kind::Encode,
    },
    Workload {
        name: "pint-decode-5",
        description: "PINT's collector: paths of 5 hops out of 80 switches, 100 digests of each of 1 000 flows in turns.",
        counts: "digests",
        kind: Kind::Decode { hops: 5, ids: 80, turns: 100 },
    },
    Workload {
        name: "pint-decode-59",
        description: "PINT's collector: paths of 59 hops out of 753 switches, 200 digests of each of 1 000 flows in turns.",
        counts: "digests",
        kind: Kind::Decode { hops: 59, ids: 753, turns: 200 },
    },
    Workload {
        name: "collect-parse-reports",
        description: "INT reports parsed, every value, from memory.",
        counts: "packets",
        kind: Kind::Telemetry { carried: Carried::Reports, whole: false },
    },
    Workload {
        name: "collect-parse-ioam",
        description: "IOAM traces of five nodes parsed, every value, from memory.",
        counts: "packets",
        kind: Kind::Telemetry { carried: Carried::Traces, whole: false },
    },
    Workload {
        name: "collect-reports",
        description: "INT reports through the whole collector, from memory.",
        counts: "packets",
        kind: Kind::Telemetry { carried: Carried::Reports, whole: true },
    },
    Workload {
        name: "collect-ioam",
        description: "IOAM traces of five nodes through the whole collector, from memory.",
        counts: "packets",
        kind: Kind::Telemetry { carried: Carried::Traces, whole: true },
    },
];

const FLOWS: u64 = 1_000;
/// Path and latency on 15 of 16 packets, path and load on the sixteenth.
const THREE_QUERIES: &str = r#"
bits = 16
hops = { expected = 5, maximal = 64 }
[[query]]
name = "path"
value = "switch-id"
aggregation = "path"
code = "paper-evaluation"
bits = 8
copies = 2
[[query]]
name = "latency"
value = "hop-latency"
aggregation = "quantiles"
quantiles = [0.5, 0.99]
approximation = { epsilon = 0.025 }
bits = 8
frequency = "15/16"
[[query]]
name = "load"
value = "utilisation"
aggregation = "max"
approximation = { base = 1.05, rounding = "value" }
bits = 8
frequency = "1/16"
"#;

/// Runs a workload once; what it was and what it cost, as JSON.
pub fn run(workload: &Workload) -> Result<String, String> {
    let before = peak_memory_bytes();
    let began = Instant::now();
    let (count, fingerprint, setup_seconds, stopwatch) = match workload.kind {
        Kind::Encode => encode(began)?,
        Kind::Decode { hops, ids, turns } => decode(began, hops, ids, turns)?,
        Kind::Telemetry { carried, whole } => telemetry(began, carried, whole),
    };
    let cost = stopwatch.read();
    let found = json!({
        "threads": 1,
        "packet_hops": count,
        "events": count,
        "flows": FLOWS,
        "fingerprint": format!("{fingerprint:016x}"),
        "setup_seconds": setup_seconds,
        "cpu_seconds": cost.cpu_seconds,
        "wall_seconds": cost.wall_seconds,
        "peak_memory_bytes": cost.peak_memory_bytes,
        "memory_before_bytes": before,
        "instructions_per_hop": Value::Null,
        "note": format!("{} counts {}", workload.name, workload.counts),
    });
    Ok(found.to_string())
}

/// Work done, a hash of what came out, seconds of set-up, and what has measured since.
type Done = (u64, u64, f64, Stopwatch);

fn plan(text: &str) -> Result<Plan, String> {
    let queries = read(text, "queries").map_err(|error| error.to_string())?;
    Plan::new(queries).map_err(|error| error.to_string())
}

fn encode(began: Instant) -> Result<Done, String> {
    const PACKETS: u64 = 4_000_000;
    let encoder = plan(THREE_QUERIES)?.encoder().map_err(|error| error.to_string())?;
    let setup = began.elapsed().as_secs_f64();
    let stopwatch = Stopwatch::start(1);
    let sum = (0..PACKETS).fold(0u64, |sum, packet| {
        let values = [packet & 0x3ff, packet % 5_000, packet % 600];
        let mut digest = 0;
        for hop in 1..6 {
            // What one hop computes of packet and values is not kept for the next one.
            digest = encoder.encode(digest, black_box(packet), hop, black_box(&values));
        }
        sum.rotate_left(1) ^ digest
    });
    Ok((5 * PACKETS, sum, setup, stopwatch))
}

fn telemetry(began: Instant, carried: Carried, whole: bool) -> Done {
    const PACKETS: u64 = 20_000_000;
    let frames = workload::frames(carried);
    let setup = began.elapsed().as_secs_f64();
    let stopwatch = Stopwatch::start(1);
    let found = if whole { workload::collect(&frames, PACKETS) } else { workload::parse(&frames, PACKETS) };
    (PACKETS, found, setup, stopwatch)
}

fn decode(began: Instant, hops: u32, ids: u64, turns: u64) -> Result<Done, String> {
    let text = format!(
        "bits = 16\nhops = {{ expected = {hops}, maximal = 64 }}\n[[query]]\nname = \"path\"\nvalue = \"switch-id\"\n\
         aggregation = \"path\"\nbits = 8\ncopies = 2\ncode = \"paper-evaluation\"\n"
    );
    let plan = plan(&text)?;
    let rows = rows(&plan, hops, ids, turns)?;
    let graph = Graph::of_ids((0..ids).collect()).map_err(|error| error.to_string())?;
    let knowledge = Knowledge { graph, ..Knowledge::default() };
    let decoder = PathDecoder::new(&plan, knowledge).map_err(|error| error.to_string())?;
    let mut collector =
        Collector::new(&plan, Limits::default(), &decoder).map_err(|error| error.to_string())?;
    let setup = began.elapsed().as_secs_f64();
    let stopwatch = Stopwatch::start(1);
    let mut decoded = Decoded(0);
    for row in &rows {
        collector.take(row, &mut decoded).map_err(|error| error.to_string())?;
    }
    Ok((rows.len() as u64, decoded.0, setup, stopwatch))
}

/// Digests of random paths, flows in turns.
fn rows(plan: &Plan, hops: u32, ids: u64, turns: u64) -> Result<Vec<Recorded>, String> {
    let encoder = plan.encoder().map_err(|error| error.to_string())?;
    let path = |flow: u64| {
        let mut path: Vec<u64> = Vec::new();
        let draws = (0u64..).map(|n| mix(flow << 20 ^ n) % ids);
        draws
            .take_while(|id| {
                if !path.contains(id) {
                    path.push(*id);
                }
                path.len() < hops as usize
            })
            .for_each(drop);
        path
    };
    let paths: Vec<Vec<u64>> = (0..FLOWS).map(path).collect();
    let row = |n: u64| {
        let (id, packet) = (n % FLOWS, mix(n ^ 1 << 61));
        let path = (1..).zip(&paths[id as usize]);
        let digest = path.fold(0, |digest, (hop, &id)| encoder.encode(digest, packet, hop, &[id]));
        let (source, destination) = (Address::Number(id / 10), Address::Number(id));
        let flow = Flow { source, destination, source_port: id as u16, ..Flow::default() };
        let plan_version = plan.version();
        Recorded { time_ns: n, flow, packet, digest, hops, plan_version, ..Recorded::default() }
    };
    Ok((0..turns * FLOWS).map(row).collect())
}

/// Counts what the collector tells.
struct Decoded(u64);

impl Sink for Decoded {
    fn event(&mut self, _: Event) {
        self.0 += 1;
    }

    fn ended(&mut self, _: FlowReport) {}

    fn wants_reports(&self) -> bool {
        false
    }
}
