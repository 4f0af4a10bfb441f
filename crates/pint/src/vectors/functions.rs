//! Arguments and results of single functions.

use super::{ROUNDINGS, baseline, hex, raw};
use crate::code::{Code, Layer, Selection, reservoir_acts};
use crate::counting::Counter;
use crate::fixed::{Arithmetic, exp2, log2, multiply_high};
use crate::hash::{Key, Word, mix};
use crate::loops::LoopDetection;
use crate::utilisation::{Law, Tabled, Tables, scaled_integer};
use crate::value::Approximation;
use serde_json::{Value, json};
use std::fmt::Write;

/// Numbers to try: the ends of the range, powers of two, then any.
fn numbers(count: u64) -> impl Iterator<Item = u64> {
    let edges = [0, 1, 2, 3, 255, 256, 65_535, 1 << 31, 1 << 32, u64::MAX >> 1, u64::MAX - 1, u64::MAX];
    edges.into_iter().chain((1..).map(|n| mix(n) >> (mix(n ^ 0x5555) % 64))).take(count as usize)
}

/// Arguments and results of the hashes, codes, arithmetic, values, counters and loop detection; one function
/// after the other.
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
