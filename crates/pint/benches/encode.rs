//! What one hop of one packet costs a switch: the paper's three queries under their plan, each task alone, and a port's load.

use divan::{Bencher, black_box, counter::ItemsCount};
use pint::code::{Code, Selection};
use pint::encoder::{Blocks, Encoder, Set, Slot, Task};
use pint::hash::Key;
use pint::utilisation::{Exact, Law, Tabled, Tables};
use pint::value::{Approximation, Rounding};

const PACKETS: u64 = 1_024;
const HOPS: u32 = 5;

fn main() {
    divan::main();
}

fn slot(query: u32, offset: u32, bits: u32, copies: u32) -> Slot {
    Slot { query, offset, bits, copies, key: Key::new(1, u64::from(query) + 1) }
}

fn path(selection: Selection) -> Task {
    Task::Path { code: Code::new(0.5, &[selection]).unwrap(), blocks: Blocks::Hashed }
}

fn values(rounding: Rounding) -> Approximation {
    Approximation::from_base(1.05, 8, rounding).unwrap()
}

/// Every packet at every hop of its path; the counter counts hops.
fn run(bencher: Bencher, encoder: Encoder) {
    let mut first = 0;
    bencher.counter(ItemsCount::new(PACKETS * u64::from(HOPS))).bench_local(|| {
        first += PACKETS;
        (first..first + PACKETS).fold(0, |sum, packet| {
            let values = [packet & 0x3ff, packet % 5_000, packet % 600];
            let mut digest = 0;
            for hop in 1..HOPS + 1 {
                // What one hop computes of packet and values is not kept for the next one.
                digest = encoder.encode(digest, black_box(packet), hop, black_box(&values));
            }
            sum ^ digest
        })
    });
}

/// The paper's plan: path on all packets in 2x8 bits, latency on 15/16 of them, load on 1/16. The load is rounded at random; the
/// latency to the nearest code, as the paper's formula does, or at random too.
#[divan::bench(args = ["latency to the nearest", "latency at random"])]
fn three_queries(bencher: Bencher, latency: &str) {
    let random = latency == "latency at random";
    let latency = values(if random { Rounding::Logarithm } else { Rounding::Nearest });
    let tasks =
        [path(Selection::threshold(0.2)), Task::Sample(latency), Task::Maximum(values(Rounding::Value))];
    let latency = [slot(0, 0, 8, 2), slot(1, 16, 8, 1)];
    let load = [slot(0, 0, 8, 2), slot(2, 16, 8, 1)];
    let sets = [Set { until: 61_440, slots: &latency }, Set { until: 65_536, slots: &load }];
    run(bencher, Encoder::new(Key::new(1, 0), &tasks, &sets).unwrap());
}

/// All three on every packet, 2x8 + 8 + 8 bits, both values rounded at random.
#[divan::bench]
fn three_queries_on_every_packet(bencher: Bencher) {
    let tasks = [
        path(Selection::threshold(0.2)),
        Task::Sample(values(Rounding::Logarithm)),
        Task::Maximum(values(Rounding::Value)),
    ];
    let slots = [slot(0, 0, 8, 2), slot(1, 16, 8, 1), slot(2, 24, 8, 1)];
    run(bencher, Encoder::new(Key::new(1, 0), &tasks, &[Set { until: 65_536, slots: &slots }]).unwrap());
}

#[divan::bench(args = ["path threshold", "path words", "sample", "maximum", "count"])]
fn one_task(bencher: Bencher, task: &str) {
    let task = match task {
        "path threshold" => path(Selection::threshold(0.2)),
        "path words" => path(Selection::words(0.25)),
        "sample" => Task::Sample(values(Rounding::Logarithm)),
        "maximum" => Task::Maximum(values(Rounding::Value)),
        _ => Task::Count { threshold: 500 },
    };
    let slots = [slot(0, 0, 8, 1)];
    run(bencher, Encoder::new(Key::new(1, 0), &[task], &[Set { until: 65_536, slots: &slots }]).unwrap());
}

#[divan::bench]
fn load_exact(bencher: Bencher) {
    let mut port = Exact::new(Law::Paper, 100_000_000_000, 12_240_000);
    let mut now = 0;
    bencher.counter(ItemsCount::new(PACKETS)).bench_local(|| {
        (0..PACKETS).fold(0.0, |sum, n| {
            now += 84_000 + n;
            sum + port.update(now, n * 7, 1_050)
        })
    });
}

#[divan::bench]
fn load_tabled(bencher: Bencher) {
    let mut port = Tabled::new(Law::Paper, Tables::PAPER, 100_000_000_000, 12_240_000);
    let (mut now, key) = (0, Key::new(1, 1));
    bencher.counter(ItemsCount::new(PACKETS)).bench_local(|| {
        (0..PACKETS).fold(0, |sum, n| {
            now += 84_000 + n;
            sum ^ port.update(now, n * 7, 1_050, key.word(now))
        })
    });
}
