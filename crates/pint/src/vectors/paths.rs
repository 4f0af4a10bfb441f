//! Whole plans, and the digests of packets after every hop.

use super::{ROUNDINGS, baseline, hex, raw};
use crate::code::{Code, Selection};
use crate::counting::Counter;
use crate::encoder::{Blocks, Encoder, Set, Slot, Task};
use crate::hash::{Key, mix};
use crate::loops::LoopDetection;
use crate::value::{Approximation, Rounding};
use serde_json::{Value, json};

/// A task with its description.
type Described = (Task, Value);
/// Cumulative shares and slots.
type Sets = Vec<(u32, Vec<Slot>)>;

fn path(code: Option<Code>, blocks: Blocks) -> Option<Described> {
    let code = code?;
    let layers: Vec<Value> = code
        .layers()
        .iter()
        .map(|&layer| raw(layer))
        .map(|(kind, bits, n)| json!([kind, bits, hex(n)]))
        .collect();
    let fragments = if let Blocks::Fragments { count } = blocks { count } else { 0 };
    let described =
        json!({"kind": "path", "fragments": fragments, "baseline": hex(baseline(&code)), "layers": layers});
    Some((Task::Path { code, blocks }, described))
}

fn geometric(
    kind: &str,
    task: fn(Approximation) -> Task,
    rate: u64,
    bits: u32,
    rounding: usize,
) -> Option<Described> {
    let (rule, name) = ROUNDINGS[rounding];
    let approximation = Approximation::multiplicative(rate, bits, rule)?;
    Some((
        task(approximation),
        json!({"kind": kind, "scale": "multiplicative", "rate": rate, "bits": bits, "rounding": name}),
    ))
}

/// Codes per octave of base 1.05, in units of 2^-20.
const BASE_1_05: u64 = 14_896_804;

/// The paper's plan: path on all packets, latency on 15/16, load on the rest; 8 bits each.
fn paper_plan() -> Option<(Vec<Described>, Sets)> {
    let code = Code::new(0.5, &[Selection::threshold(0.2)]);
    let tasks = vec![
        path(code, Blocks::Hashed)?,
        geometric("sample", Task::Sample, BASE_1_05, 8, 2)?,
        geometric("maximum", Task::Maximum, BASE_1_05, 8, 1)?,
    ];
    let sets = vec![
        (61_440, vec![slot(0, 0, 4, 2), slot(1, 8, 8, 1)]),
        (65_536, vec![slot(0, 0, 4, 2), slot(2, 8, 8, 1)]),
    ];
    Some((tasks, sets))
}

/// One of every other task, on 15/16 of the packets.
fn every_task() -> Option<(Vec<Described>, Sets)> {
    let code = Code::new(0.4, &[Selection::words(0.1), Selection::words(0.3)]);
    let exact = Approximation::exact(6)?;
    let additive = Approximation::additive(1_000, 8, Rounding::Value)?;
    let counter = Counter::new(BASE_1_05, 9)?;
    let tasks = vec![
        path(code, Blocks::Fragments { count: 3 })?,
        (
            Task::Minimum(exact),
            json!({"kind": "minimum", "scale": "exact", "bits": 6, "rounding": "nearest"}),
        ),
        (
            Task::Maximum(additive),
            json!({"kind": "maximum", "scale": "additive", "width": 1_000, "bits": 8, "rounding": "value"}),
        ),
        (Task::Sum(counter), json!({"kind": "sum", "rate": BASE_1_05, "bits": 9})),
        geometric("product", Task::Product, 1 << 20, 6, 1)?,
        (Task::Count { threshold: 30 }, json!({"kind": "count", "threshold": 30})),
        (Task::Loop(LoopDetection::new(12, 1)?), json!({"kind": "loop", "tolerance": 1, "bits": 12})),
    ];
    let slots = vec![
        slot(0, 0, 4, 1),
        slot(1, 4, 6, 1),
        slot(2, 10, 8, 1),
        slot(3, 18, 9, 1),
        slot(4, 27, 6, 1),
        slot(5, 33, 2, 1),
        slot(6, 35, 12, 1),
    ];
    Some((tasks, vec![(61_440, slots)]))
}

fn slot(query: u32, offset: u32, bits: u32, copies: u32) -> Slot {
    Slot { query, offset, bits, copies, key: Key::new(2_020, u64::from(query) + 1) }
}

/// Plans, and the digests of packets on paths of some hops under them.
pub fn paths() -> String {
    let plans = [("paper", paper_plan()), ("every task", every_task())];
    let texts: Vec<String> = plans
        .into_iter()
        .filter_map(|(name, plan)| plan.map(|(tasks, sets)| plan_text(name, &tasks, &sets)))
        .collect();
    format!("{{\"plans\": [\n{}\n]}}\n", texts.join(",\n"))
}

fn plan_text(name: &str, described: &[Described], sets: &[(u32, Vec<Slot>)]) -> String {
    let tasks: Vec<Task> = described.iter().map(|(task, _)| *task).collect();
    let borrowed: Vec<Set> = sets.iter().map(|(until, slots)| Set { until: *until, slots }).collect();
    let selector = Key::new(2_020, 0);
    let Ok(encoder) = Encoder::new(selector, &tasks, &borrowed) else { return String::new() };
    let mut lines = vec![format!("  \"name\": \"{name}\", \"selector\": {}", hex(selector.0))];
    let all: Vec<String> = described.iter().map(|(_, text)| format!("    {text}")).collect();
    lines.push(format!("  \"tasks\": [\n{}\n  ]", all.join(",\n")));
    let all: Vec<String> =
        (0..sets.len()).map(|set| format!("    {}", set_text(&encoder, set, sets[set].0))).collect();
    lines.push(format!("  \"sets\": [\n{}\n  ]", all.join(",\n")));
    let all: Vec<String> = (0..40).map(|packet| format!("    {}", packet_text(&encoder, packet))).collect();
    lines.push(format!("  \"packets\": [\n{}\n  ]", all.join(",\n")));
    format!("{{\n{}\n}}", lines.join(",\n"))
}

fn set_text(encoder: &Encoder, set: usize, until: u32) -> Value {
    let fields = encoder.fields_of(set).iter();
    let fields: Vec<Value> = fields
        .map(|field| json!({"query": field.query, "offset": field.offset, "bits": field.bits, "key": hex(field.key.0)}))
        .collect();
    json!({"until": until, "fields": fields})
}

fn packet_text(encoder: &Encoder, n: u64) -> Value {
    let packet = if n < 4 { n } else { mix(n) };
    let queries = encoder.tasks().len() as u64;
    let mut digest = u64::MAX;
    let mut hops = Vec::new();
    for hop in 1..=(n % 12 + 1) as u32 {
        // Every fourth packet goes in circles of three.
        let place = if n % 4 == 3 { u64::from(hop) % 3 } else { u64::from(hop) };
        let values: Vec<u64> =
            (0..queries).map(|query| mix(place * 16 + query) >> (44 + 3 * query)).collect();
        let (next, looped) = encoder.encode_and_report(digest, packet, hop, &values);
        digest = next;
        let values: Vec<Value> = values.into_iter().map(hex).collect();
        hops.push(json!({"values": values, "digest": hex(digest), "looped": looped}));
    }
    json!({"packet": hex(packet), "hops": hops})
}
