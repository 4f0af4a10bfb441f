//! Test vectors of everything that an encoder computes, as JSON, and the tables of the C twin: for those who write another one.
//!
//! Numbers are hexadecimal strings, since JSON's own are not exact beyond 2^53. [`functions`] has one case a line, arguments first
//! and the result last; [`paths`] has whole plans and the digest after every hop of some packets.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::code::{Code, Layer, Selection, reservoir_acts};
use crate::counting::Counter;
use crate::encoder::{Blocks, Encoder, Set, Slot, Task};
use crate::fixed::{Arithmetic, LOGARITHMS, POWERS, exp2, log2, multiply_high};
use crate::hash::{Key, Word, mix};
use crate::loops::LoopDetection;
use crate::utilisation::{Law, Tabled, Tables, scaled_integer};
use crate::value::{Approximation, Rounding};

const ROUNDINGS: [(Rounding, &str); 3] =
    [(Rounding::Nearest, "nearest"), (Rounding::Value, "value"), (Rounding::Logarithm, "logarithm")];

fn hex(number: u64) -> Value {
    Value::String(format!("{number:#x}"))
}

/// Numbers to try: the ends of the range, powers of two, then any.
fn numbers(count: u64) -> impl Iterator<Item = u64> {
    let edges = [0, 1, 2, 3, 255, 256, 65_535, 1 << 31, 1 << 32, u64::MAX >> 1, u64::MAX - 1, u64::MAX];
    edges.into_iter().chain((1..).map(|n| mix(n) >> (mix(n ^ 0x5555) % 64))).take(count as usize)
}

/// Arguments and results of the hashes, codes, arithmetic, values, counters and loop detection; one function after the other.
pub fn functions() -> String {
    let mut text = String::from("{\n");
    let mut add = |name: &str, arguments: &str, cases: Vec<Vec<u64>>| {
        let separator = if text.len() > 2 { ",\n" } else { "" };
        let (arguments, result) = arguments.split_once('|').unwrap_or((arguments, "the function's value"));
        let names: Vec<&str> = arguments.split(' ').collect();
        let cases: Vec<String> = cases
            .iter()
            .map(|case| format!("    {}", Value::Array(case.iter().map(|&n| hex(n)).collect())))
            .collect();
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "{separator}  \"{name}\": {{\"arguments\": {}, \"result\": \"{result}\", \"cases\": [\n{}\n  ]}}",
            json!(names),
            cases.join(",\n")
        );
    };
    hashes(&mut add);
    codes(&mut add);
    arithmetic(&mut add);
    values(&mut add);
    tables(&mut add);
    loads(&mut add);
    text.push_str("\n}\n");
    text
}

type Add<'a> = &'a mut dyn FnMut(&str, &str, Vec<Vec<u64>>);

fn hashes(add: Add) {
    let word = |n: u64| Key::new(n, 1).word(n);
    add("mix", "x", numbers(20).map(|x| vec![x, mix(x)]).collect());
    add("key", "seed purpose", numbers(14).zip(0..).map(|(x, n)| vec![x, n, Key::new(x, n).0]).collect());
    add("word", "key packet", numbers(14).map(|x| vec![mix(x), x, Key(mix(x)).word(x).0]).collect());
    add("share", "word", (1..6).map(|n| vec![word(n).0, word(n).share().into()]).collect());
    add("hop", "word hop", (1..=255).step_by(23).map(|n| hashed(n, word(n).hop(n as u32))).collect());
    add("bits", "word n", (0..12).map(|n| vec![word(n).0, n, word(n).bits(n as u32)]).collect());
    add("coin", "word hop", (1..=255).step_by(23).map(|n| hashed(n, word(n).coin(n as u32))).collect());
    let value = |(v, bits): (u64, u32)| vec![word(v).0, v, bits.into(), word(v).value(v, bits)];
    add(
        "value",
        "word value bits",
        numbers(20).zip([1, 4, 8, 16, 33, 64].into_iter().cycle()).map(value).collect(),
    );
    let fragment = |n: u64| vec![word(n).0, n, word(n).fragment(n as u32).into()];
    add("fragment", "word count", (1..=64).step_by(7).map(fragment).collect());
}

fn hashed(n: u64, result: u32) -> Vec<u64> {
    vec![Key::new(n, 1).word(n).0, n, result.into()]
}

fn codes(add: Add) {
    let words = || (1..=40u64).map(|n| Word(mix(n)));
    let mut layers = Vec::new();
    for (tau, count) in [(0.5, 1), (0.4, 3), (0.0, 6), (1.0, 0)] {
        let all: Vec<Selection> = (1..=count).map(Selection::Threshold).collect();
        // At most six layers, and some where tau is below 1.
        let Some(code) = Code::new(tau, &all) else { continue };
        for word in words().chain([Word(0), Word(u64::MAX)]) {
            let layer = match code.layer(word) {
                Layer::Xor(Selection::Threshold(number)) => number,
                _ => 0,
            };
            layers.push(vec![word.0, baseline(&code), count, layer]);
        }
    }
    add("layer", "word baseline layers|0 for Baseline, else the layer", layers);
    let mut acts = Vec::new();
    for selection in
        [Selection::threshold(0.1), Selection::words(0.1), Selection::words(0.5), Selection::words(1.0)]
    {
        let (kind, bits, number) = raw(selection);
        for (word, hop) in words().zip([1u32, 2, 59, 64, 65, 128, 200, 255].into_iter().cycle()) {
            acts.push(vec![word.0, kind, bits, number, hop.into(), selection.acts(word, hop).into()]);
        }
    }
    add("acts", "word kind bits number hop", acts);
    let reservoir = |(word, hop): (Word, u32)| vec![word.0, hop.into(), reservoir_acts(word, hop).into()];
    add(
        "reservoir_acts",
        "word hop",
        words().zip([1, 2, 3, 5, 59, 255].into_iter().cycle()).map(reservoir).collect(),
    );
}

/// In units of 2^-32.
fn baseline(code: &Code) -> u64 {
    (code.tau() * 4_294_967_296.0) as u64
}

/// Kind (0 threshold, 1 words), bits and number of a selection.
fn raw(selection: Selection) -> (u64, u64, u64) {
    match selection {
        Selection::Threshold(threshold) => (0, 0, threshold),
        Selection::Words { numerator, bits } => (1, bits.into(), numerator.into()),
    }
}

fn arithmetic(add: Add) {
    add("log2", "v", numbers(60).map(|v| vec![v, log2(v)]).collect());
    add("exp2", "x", numbers(60).map(|x| vec![x as u32 as u64, exp2(x as u32)]).collect());
    let pairs = numbers(30).zip(numbers(60).skip(11));
    add("multiply_high", "a b", pairs.map(|(a, b)| vec![a, b, multiply_high(a, b)]).collect());
}

fn values(add: Add) {
    let (mut additive, mut multiplicative, mut counters, mut loops) = (vec![], vec![], vec![], vec![]);
    for (n, v) in numbers(80).enumerate() {
        let coin = (mix(v ^ 77) >> 32) as u32;
        let rounding = n % 3;
        let (width, bits) = ([2u64, 10, 1_000, 1 << 33][n % 4], [4u32, 8, 13, 32][n / 2 % 4]);
        if let Some(approximation) = Approximation::additive(width, bits, ROUNDINGS[rounding % 2].0) {
            let code = approximation.encode(v, coin);
            additive.push(vec![width, bits.into(), rounding as u64 % 2, v, coin.into(), code]);
        }
        let rate = [1 << 18, 1 << 20, 14_896_804, 145_600_000, 1 << 32][n % 5];
        if let Some(approximation) = Approximation::multiplicative(rate, bits, ROUNDINGS[rounding].0) {
            let code = approximation.encode(v, coin);
            multiplicative.push(vec![rate, bits.into(), rounding as u64, v, coin.into(), code]);
        }
        if let Some(counter) = Counter::new(rate.max(1 << 20), bits.min(16)) {
            let code = mix(v) % (1 << bits.min(9));
            let next = counter.add(code, v, coin);
            counters.push(vec![counter.rate(), counter.bits().into(), code, v, coin.into(), next]);
        }
        let (field, word, hop) = (mix(v) & 0xffff, Word(mix(n as u64)), n as u32 % 9 + 1);
        for tolerance in [0, 1, 3] {
            let Some(detection) = LoopDetection::new(16, tolerance) else { continue };
            // Half of the cases come back to a hop.
            let field = if n % 2 == 0 { word.value(v, detection.hash_bits()) } else { field };
            let (next, looped) = detection.step(field, word, hop, v);
            loops.push(vec![
                16,
                tolerance.into(),
                field,
                word.0,
                hop.into(),
                v,
                2 * next + u64::from(looped),
            ]);
        }
    }
    add("additive", "width bits rounding v coin", additive);
    add("multiplicative", "rate bits rounding v coin", multiplicative);
    add("counter", "rate bits code v coin", counters);
    add("loop", "bits tolerance field word hop value|twice the field, plus 1 if reported", loops);
}

/// What a pipeline of tables computes ([`crate::fixed::Arithmetic`]).
fn tables(add: Add) {
    let sizes = [(8, 24), (15, 15), (1, 1), (16, 32), (4, 9)];
    let (mut logs, mut rounded, mut powers) = (vec![], vec![], vec![]);
    for (n, v) in numbers(60).enumerate() {
        let (bits, entry) = sizes[n % sizes.len()];
        let Some(arithmetic) = Arithmetic::new(bits, entry) else { continue };
        let (q, entry) = (u64::from(bits), u64::from(entry));
        let coin = if n % 7 == 0 { u32::MAX } else { (mix(v ^ 77) >> 32) as u32 };
        logs.push(vec![q, entry, v, arithmetic.log2(v) as u64]);
        rounded.push(vec![q, entry, v, coin.into(), arithmetic.log2_rounded(v, coin) as u64]);
        // Logarithms up to 2^64 and beyond, some below zero; then any number.
        let x = if n % 3 == 0 { v as i64 } else { (v % (68 << 32)) as i64 - (2 << 32) };
        powers.push(vec![q, x as u64, arithmetic.exp2(x)]);
    }
    add("table_log2", "table_bits entry_bits v", logs);
    add("table_log2_rounded", "table_bits entry_bits v coin", rounded);
    add("table_exp2", "table_bits x", powers);
}

/// The load of a port by tables ([`Tabled`]): a port's registers, a packet, the load after it.
fn loads(add: Add) {
    let arithmetics =
        [Tables::PAPER, Tables::AUTHORS, Tables { random: false, queue_shift: 4, ..Tables::PAPER }];
    let mut cases = Vec::new();
    for n in 0..90u64 {
        let draw = |purpose: u64| mix(n << 8 | purpose);
        let tables = arithmetics[(n % 3) as usize];
        let law = if n / 3 % 2 == 0 { Law::Code } else { Law::Paper };
        let rate = [10_000_000_000, 100_000_000_000, 123_456_789, 1 << 62][(n / 6 % 4) as usize];
        let horizon = [12_240, 5_000, 1, 1_000_003][(n / 2 % 4) as usize];
        let (load, last) = (draw(1) >> (20 + draw(2) % 44), draw(3) >> 30);
        // Often within one horizon, sometimes beyond it, sometimes back in time.
        let now = if n % 11 == 0 { draw(4) >> 30 } else { last + draw(5) % (2 * horizon) };
        let (before, bytes, passes) = (draw(6) % 1_500, draw(7) % 1_500, u64::from(n % 5 == 4));
        let (queue, word) = (draw(8) >> (40 + draw(9) % 24), draw(10));
        let port = Tabled::new(law, tables, rate, horizon * 1_000);
        let mut port = port.resumed(load, last, before as u32);
        if passes == 1 {
            port.pass(now * 1_000, queue, bytes as u32, Word(word));
        } else {
            port.update(now * 1_000, queue, bytes as u32, Word(word));
        }
        let (q, entry) = (tables.arithmetic.table_bits(), tables.arithmetic.entry_bits());
        let tables = [q, entry, tables.load_bits, tables.queue_shift, tables.random.into()].map(u64::from);
        let port_and_packet = [
            u64::from(law == Law::Paper),
            rate,
            horizon,
            load,
            last,
            before,
            passes,
            now,
            queue,
            bytes,
            word,
        ];
        cases.push([&tables[..], &port_and_packet, &[port.load()]].concat());
    }
    add(
        "load",
        "table_bits entry_bits load_bits queue_shift random paper_law bits_per_second horizon_ns load last_ns last_bytes passes now_ns \
         queue_bytes packet_bytes word|the load after the packet, 2^-20",
        cases,
    );
    add("scaled_load", "load", numbers(30).map(|load| vec![load, scaled_integer(load)]).collect());
}

/// A task beside its description.
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

/// The tables that the C twin needs, as a header file.
pub fn c_tables() -> String {
    let mut text = String::from(
        "/* Tables of weftline_pint.h, written by the Rust crate (vectors.rs): do not edit. */\n#ifndef WEFTLINE_PINT_TABLES_H\n\
         #define WEFTLINE_PINT_TABLES_H\n\n#include <stdint.h>\n",
    );
    let reservoir: Vec<u64> = (0..256u64).map(|hop| (1u64 << 32).checked_div(hop).unwrap_or(0)).collect();
    let bends = |bends: &[u32]| bends.iter().map(|&bend| bend.into()).collect::<Vec<u64>>();
    let tables = [
        ("uint64_t PINT_RESERVOIR", "floor(2^32 / hop)", reservoir),
        ("uint64_t PINT_LOG_ENDS", "log2(1 + i/256), 2^-32", LOGARITHMS.ends.to_vec()),
        ("uint32_t PINT_LOG_BENDS", "4 times the middle above the chord, 2^-40", bends(&LOGARITHMS.bends)),
        ("uint64_t PINT_POWER_ENDS", "2^(i/256) - 1, 2^-32", POWERS.ends.to_vec()),
        ("uint32_t PINT_POWER_BENDS", "4 times the middle below the chord, 2^-40", bends(&POWERS.bends)),
    ];
    for (name, comment, numbers) in tables {
        let _ = write!(text, "\n/* {comment}. */\nstatic const {name}[{}] = {{", numbers.len());
        for (place, number) in numbers.iter().enumerate() {
            let _ = write!(text, "{}{number:#x},", if place % 8 == 0 { "\n\t" } else { " " });
        }
        text.push_str("\n};\n");
    }
    text.push_str("\n#endif\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// The file under the crate's folder holds this text; with WEFTLINE_ACCEPT=1 it is written.
    fn stored(file: &str, text: &str) {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        if std::env::var_os("WEFTLINE_ACCEPT").is_some() {
            std::fs::write(&file, text).unwrap();
        }
        let found = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(found == text, "{} differs; WEFTLINE_ACCEPT=1 writes it anew", file.display());
    }

    #[test]
    fn the_stored_vectors_and_tables_are_those_of_this_crate() {
        serde_json::from_str::<Value>(&functions()).unwrap();
        stored("vectors/functions.json", &functions());
        stored("c/weftline_pint_tables.h", &c_tables());
    }

    #[test]
    fn the_stored_paths_are_those_of_this_crate() {
        let text = paths();
        let plans = serde_json::from_str::<Value>(&text).unwrap();
        assert_eq!(plans["plans"].as_array().unwrap().len(), 2);
        assert!(text.contains("\"looped\":true"));
        stored("vectors/paths.json", &text);
    }
}
