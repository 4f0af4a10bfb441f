//! What a digest costs the collector's decoder of paths: 2 x 8 bits, the packets of 1 000 flows in turns.
//!
//! *Until decoded* counts the digests of a flow up to the one that made its path known; *known* those that
//! come after. *Collected* are both, as rows that the collector checks and finds the flow of: of each flow as
//! many digests as make a path known on average, and ten; *collected, known* are the same rows again.

use divan::{Bencher, black_box, counter::ItemsCount};
use pint::code::{Code, Selection};
use pint::collector::{Collector, Event, FlowReport, Limits, Paths, Sink, Step};
use pint::encoder::{Blocks, Encoder, Set, Slot, Task};
use pint::graph::Graph;
use pint::hash::{Key, mix};
use pint::path::{Knowledge, PathDecoder, PathState};
use pint::plan::{self, Plan};
use pint::recorded::{Address, Flow, Recorded};

const FLOWS: u64 = 1_000;

fn main() {
    divan::main();
}

/// Paths over what is known, and their digests.
struct Flows {
    encoder: Encoder,
    decoder: PathDecoder,
    paths: Vec<Vec<u64>>,
}

impl Flows {
    /// `path` draws a path by number; p is that of the one XOR layer that half of the packets are in.
    fn new(p: f64, knowledge: Knowledge, path: impl Fn(u64) -> Vec<u64>) -> Flows {
        let code = Code::new(0.5, &[Selection::threshold(p)]).unwrap();
        let tasks = [Task::Path { code, blocks: Blocks::Hashed }];
        let slots = [Slot { query: 0, offset: 0, bits: 8, copies: 2, key: Key::new(1, 1) }];
        let sets = [Set { until: 1 << 16, slots: &slots }];
        let encoder = Encoder::new(Key::new(1, 0), &tasks, &sets).unwrap();
        let decoder = PathDecoder::of_tasks(&tasks, knowledge).unwrap();
        Flows { encoder, decoder, paths: (0..FLOWS).map(path).collect() }
    }

    /// 5 hops over 80 ids: the switches of a fat tree of K = 8 without its links.
    fn of_80_ids() -> Flows {
        Flows::new(0.2, ids(80), |flow| random_path(flow, 5, 80))
    }

    fn of_753_ids() -> Flows {
        Flows::new(0.2, ids(753), |flow| random_path(flow, 5, 753))
    }

    /// 5 hops of a fat tree of K = 8.
    fn of_a_fat_tree() -> Flows {
        let knowledge = Knowledge { graph: fat_tree(), neighbours: true, ..Knowledge::default() };
        Flows::new(0.2, knowledge, fat_tree_path)
    }

    /// 59 hops over 753 ids.
    fn of_59_hops() -> Flows {
        Flows::new(0.1, ids(753), |flow| random_path(flow, 59, 753))
    }

    fn start(&self) -> Vec<PathState> {
        let flow = Flow::default();
        self.paths.iter().map(|path| self.decoder.start(0, &flow, path.len() as u32)).collect()
    }

    fn digest(&self, packet: u64, flow: usize) -> u64 {
        (1..)
            .zip(&self.paths[flow])
            .fold(0, |digest, (hop, &id)| self.encoder.encode(digest, packet, hop, &[id]))
    }

    fn take(&self, state: &mut PathState, packet: u64, digest: u64) -> Step {
        self.decoder.take(0, state, packet, digest, self.encoder.fields_of(0))
    }

    /// (flow, packet, digest) of all flows in turns, each until its path is known.
    fn until_decoded(&self) -> Vec<(usize, u64, u64)> {
        let mut states = self.start();
        let mut open: Vec<usize> = (0..states.len()).collect();
        let mut rows = Vec::new();
        for turn in 0u64.. {
            open.retain(|&flow| {
                let packet = mix(turn << 32 ^ flow as u64);
                let digest = self.digest(packet, flow);
                rows.push((flow, packet, digest));
                self.take(&mut states[flow], packet, digest) == Step::On
            });
            if open.is_empty() {
                break;
            }
        }
        rows
    }

    /// Ten turns after those.
    fn known(&self) -> (Vec<PathState>, Vec<(usize, u64, u64)>) {
        let mut states = self.start();
        for (flow, packet, digest) in self.until_decoded() {
            self.take(&mut states[flow], packet, digest);
        }
        let rows = (0..10 * FLOWS).map(|n| {
            let (flow, packet) = ((n % FLOWS) as usize, mix(n ^ 1 << 60));
            (flow, packet, self.digest(packet, flow))
        });
        let rows = rows.collect();
        (states, rows)
    }

    fn all(&self, states: &mut [PathState], rows: &[(usize, u64, u64)]) {
        for &(flow, packet, digest) in rows {
            black_box(self.take(&mut states[flow], packet, digest));
        }
    }
}

/// Rows of 1 000 flows in turns under a plan with one query of 2 x 8 bits.
struct Rows {
    plan: Plan,
    knowledge: Knowledge,
    rows: Vec<Recorded>,
}

/// Ignores all events.
struct Silent;

impl Sink for Silent {
    fn event(&mut self, _: Event) {}

    fn ended(&mut self, _: FlowReport) {}

    fn wants_reports(&self) -> bool {
        false
    }
}

impl Rows {
    fn new(knowledge: Knowledge, hops: u32, turns: u64, path: impl Fn(u64) -> Vec<u64>) -> Rows {
        let text = format!(
            "bits = 16\nhops = {{ expected = {hops}, maximal = 64 }}\n[[query]]\nname = \"path\"\nvalue = \"switch-id\"\n\
             aggregation = \"path\"\nbits = 16\ncopies = 2\ncode = \"paper-evaluation\"\n"
        );
        let plan = Plan::new(plan::read(&text, "queries.toml").unwrap()).unwrap();
        let encoder = plan.encoder().unwrap();
        let paths: Vec<Vec<u64>> = (0..FLOWS).map(path).collect();
        let row = |n: u64| {
            let (id, packet) = (n % FLOWS, mix(n ^ 1 << 61));
            let path = &paths[id as usize];
            let digest =
                (1..).zip(path).fold(0, |digest, (hop, &id)| encoder.encode(digest, packet, hop, &[id]));
            let (source, destination) = (Address::Number(id / 10), Address::Number(id));
            let flow = Flow {
                source,
                destination,
                source_port: id as u16,
                destination_port: 80,
                protocol: 6,
                ..Flow::default()
            };
            let plan_version = plan.version();
            Recorded { time_ns: n, flow, packet, digest, hops, plan_version, ..Recorded::default() }
        };
        let rows = (0..turns * FLOWS).map(row).collect();
        Rows { plan, knowledge, rows }
    }
}

fn ids(count: u64) -> Knowledge {
    Knowledge { graph: Graph::of_ids((0..count).collect()).unwrap(), ..Knowledge::default() }
}

/// Distinct ids out of `count`.
fn random_path(flow: u64, hops: usize, count: u64) -> Vec<u64> {
    let mut path = Vec::new();
    let draws = (0u64..).map(|n| mix(flow << 20 ^ n) % count);
    for id in draws {
        if path.len() == hops {
            break;
        }
        if !path.contains(&id) {
            path.push(id);
        }
    }
    path
}

/// 16 core switches, then by pod 4 of aggregation and 4 of edge.
fn fat_tree() -> Graph {
    let switch = |pod: u64, n: u64| 16 + 8 * pod + n;
    let links = (0..8u64).flat_map(|pod| {
        (0..16u64).flat_map(move |n| [(switch(pod, n / 4), n), (switch(pod, n / 4), switch(pod, 4 + n % 4))])
    });
    Graph::new((0..80).collect(), &links.collect::<Vec<_>>()).unwrap().0
}

fn fat_tree_path(flow: u64) -> Vec<u64> {
    let draw = |n: u64, below: u64| mix(flow << 20 ^ n) % below;
    let from = draw(1, 8);
    let to = (from + 1 + draw(2, 7)) % 8;
    let (a, c) = (draw(3, 4), draw(4, 4));
    let switch = |pod: u64, n: u64| 16 + 8 * pod + n;
    vec![switch(from, 4 + draw(5, 4)), switch(from, a), 4 * a + c, switch(to, a), switch(to, 4 + draw(6, 4))]
}

/// A named way to make one.
type Named<T> = (&'static str, fn() -> T);

const SETTINGS: [Named<Flows>; 4] = [
    ("5 hops, 80 ids", Flows::of_80_ids),
    ("5 hops, fat tree", Flows::of_a_fat_tree),
    ("5 hops, 753 ids", Flows::of_753_ids),
    ("59 hops, 753 ids", Flows::of_59_hops),
];

fn named(name: &str) -> Flows {
    SETTINGS.iter().find(|(known, _)| *known == name).unwrap().1()
}

#[divan::bench(args = SETTINGS.map(|(name, _)| name), sample_count = 30)]
fn until_decoded(bencher: Bencher, name: &str) {
    let flows = named(name);
    let rows = flows.until_decoded();
    bencher
        .counter(ItemsCount::new(rows.len()))
        .with_inputs(|| flows.start())
        .bench_local_refs(|states| flows.all(states, &rows));
}

#[divan::bench(args = SETTINGS.map(|(name, _)| name), sample_count = 30)]
fn known(bencher: Bencher, name: &str) {
    let flows = named(name);
    let (mut states, rows) = flows.known();
    bencher.counter(ItemsCount::new(rows.len())).bench_local(|| flows.all(&mut states, &rows));
}

/// A named way to make rows, by a multiple of the packets until paths are known.
type NamedRows = (&'static str, fn(u64) -> Rows);

const COLLECTED: [NamedRows; 3] = [
    ("5 hops, 80 ids", |times| Rows::new(ids(80), 5, 17 * times, |flow| random_path(flow, 5, 80))),
    ("5 hops, 753 ids", |times| Rows::new(ids(753), 5, 20 * times, |flow| random_path(flow, 5, 753))),
    ("59 hops, 753 ids", |times| Rows::new(ids(753), 59, 92 * times, |flow| random_path(flow, 59, 753))),
];

#[divan::bench(args = COLLECTED.map(|(name, _)| name), sample_count = 30)]
fn collected(bencher: Bencher, name: &str) {
    let rows = COLLECTED.iter().find(|(known, _)| *known == name).unwrap().1(1);
    let decoder = PathDecoder::new(&rows.plan, rows.knowledge).unwrap();
    bencher
        .counter(ItemsCount::new(rows.rows.len()))
        .with_inputs(|| Collector::new(&rows.plan, Limits::default(), &decoder).unwrap())
        .bench_local_refs(|collector| {
            for row in &rows.rows {
                let _ = black_box(collector.take(row, &mut Silent));
            }
        });
}

#[divan::bench(args = COLLECTED.map(|(name, _)| name), sample_count = 30)]
fn collected_known(bencher: Bencher, name: &str) {
    // Paths that are confirmed take repeated packets as others.
    let rows = COLLECTED.iter().find(|(known, _)| *known == name).unwrap().1(4);
    let decoder = PathDecoder::new(&rows.plan, rows.knowledge).unwrap();
    let mut collector = Collector::new(&rows.plan, Limits::default(), &decoder).unwrap();
    let mut all = |rows: &[Recorded]| {
        for row in rows {
            let _ = black_box(collector.take(row, &mut Silent));
        }
    };
    all(&rows.rows);
    let some = &rows.rows[..rows.rows.len() / 4];
    bencher.counter(ItemsCount::new(some.len())).bench_local(|| all(some));
}
