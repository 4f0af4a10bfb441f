//! Encoders by hand-worked paths, and by laws.

use super::step::{Hop, Operation, Thresholds, choose};
use super::*;
use crate::code::{Code, Layer, Selection, reservoir_acts, survivor};
use crate::counting::Counter;
use crate::hash::Word;
use crate::loops::LoopDetection;
use crate::value::{Approximation, Rounding};
use proptest::prelude::*;

const SELECTOR: Key = Key::new(7, 0);

fn slot(query: u32, offset: u32, bits: u32, copies: u32) -> Slot {
    Slot { query, offset, bits, copies, key: Key::new(7, u64::from(query) + 1) }
}

fn log8() -> Approximation {
    Approximation::from_base(1.05, 8, Rounding::Value).unwrap()
}

fn along(encoder: &Encoder, packet: u64, path: &[[u64; 8]]) -> u64 {
    (1..).zip(path).fold(u64::MAX, |digest, (hop, values)| encoder.encode(digest, packet, hop, values))
}

/// Values of queries 0 to 7 at five hops.
const PATH: [[u64; 8]; 5] = [
    [11, 900, 40, 500, 3, 1, 9, 11],
    [12, 100, 70, 400, 0, 2, 2, 12],
    [13, 5_000, 10, 800, 9, 1, 9, 13],
    [14, 30, 20, 300, 1, 4, 1, 14],
    [15, 1, 60, 900, 2, 1, 9, 15],
];

#[test]
fn each_aggregation_leaves_what_it_says() {
    let exact = |bits| Approximation::exact(bits).unwrap();
    let counter = Counter::new(1 << 32, 16).unwrap();
    let tasks = [
        Task::Path { code: Code::new(1.0, &[]).unwrap(), blocks: Blocks::Fragments { count: 1 } },
        Task::Sample(log8()),
        Task::Maximum(exact(8)),
        Task::Minimum(exact(10)),
        Task::Sum(counter),
        Task::Product(Approximation::from_base(2.0, 4, Rounding::Nearest).unwrap()),
        Task::Count { threshold: 5 },
        Task::Loop(LoopDetection::new(9, 0).unwrap()),
    ];
    let slots = [
        slot(0, 0, 5, 1),
        slot(1, 5, 8, 1),
        slot(2, 13, 8, 1),
        slot(3, 21, 10, 1),
        slot(4, 31, 16, 1),
        slot(5, 47, 4, 1),
        slot(6, 51, 2, 1),
        slot(7, 53, 9, 1),
    ];
    let encoder = Encoder::new(SELECTOR, &tasks, &[Set { until: 65_536, slots: &slots }]).unwrap();
    let mut sums = 0.0;
    for packet in 0..2_000 {
        let digest = along(&encoder, packet, &PATH);
        let fields = encoder.fields(packet);
        let read: Vec<u64> = fields.iter().map(|field| field.read(digest)).collect();
        let hop = |n: usize| survivor(fields[n].key.word(packet), 5);
        assert_eq!(read[0], 10 + u64::from(hop(0)));
        let sampled = PATH[hop(1) as usize - 1][1];
        assert!((log8().decode(read[1]) / sampled as f64).ln().abs() <= 0.049);
        assert_eq!((read[2], read[3], read[5], read[6]), (70, 300, 3, 3));
        sums += counter.decode(read[4]);
        assert_eq!(digest >> 62, 0);
    }
    // Single sums are rounded at random; their mean is the truth.
    assert!((sums / 2_000.0 - 15.0).abs() <= 3.0 * counter.deviation(15.0, 5) / 2_000f64.sqrt());
}

#[test]
fn copies_hash_apart_and_xor_layers_hold_the_blocks_of_who_acted() {
    let selection = Selection::words(0.5);
    let code = Code::new(0.0, &[selection]).unwrap();
    let tasks = [Task::Path { code, blocks: Blocks::Hashed }];
    let slots = [slot(0, 0, 8, 2)];
    let encoder = Encoder::new(SELECTOR, &tasks, &[Set { until: 65_536, slots: &slots }]).unwrap();
    for packet in 0..1_000 {
        let digest = along(&encoder, packet, &PATH);
        for field in encoder.fields(packet) {
            let word = field.key.word(packet);
            let acted = (1..).zip(&PATH).filter(|&(hop, _)| selection.acts(word, hop));
            let expected = acted.fold(0, |sum, (_, values)| sum ^ word.value(values[0], 8));
            assert_eq!(field.read(digest), expected);
        }
    }
    let [first, second] = encoder.fields(1) else { panic!("two copies") };
    assert_ne!(first.key, second.key);
}

#[test]
fn sets_have_their_shares_and_the_rest_carries_nothing() {
    let tasks = [Task::Maximum(log8()), Task::Sample(log8())];
    let (latency, load) = ([slot(1, 8, 8, 1)], [slot(0, 8, 8, 1)]);
    let sets = [Set { until: 32_768, slots: &latency }, Set { until: 36_864, slots: &load }];
    let encoder = Encoder::new(SELECTOR, &tasks, &sets).unwrap();
    let mut counts = [0f64; 3];
    for packet in 0..100_000 {
        counts[encoder.set(packet).unwrap_or(2)] += 1e-5;
        if encoder.set(packet).is_none() {
            assert_eq!(along(&encoder, packet, &PATH), 0);
        }
    }
    for (count, share) in counts.iter().zip([0.5, 0.0625, 0.4375]) {
        assert!((count - share).abs() < 0.008, "{count}, {share}");
    }
    assert!(encoder.fields_of(2).is_empty() && encoder.fields_of(99).is_empty());
}

#[test]
fn plans_that_cannot_be_are_refused() {
    let tasks = [Task::Maximum(log8())];
    let refused =
        |slots: &[Slot]| Encoder::new(SELECTOR, &tasks, &[Set { until: 65_536, slots }]).unwrap_err();
    assert_eq!(refused(&[slot(1, 0, 8, 1)]), Refused::UnknownQuery { set: 0 });
    assert_eq!(refused(&[slot(0, 60, 8, 1)]), Refused::Width { set: 0 });
    assert_eq!(refused(&[slot(0, u32::MAX, 8, 1)]), Refused::Width { set: 0 });
    assert_eq!(refused(&[slot(0, 0, 7, 1)]), Refused::Mismatch { set: 0, query: 0 });
    assert_eq!(refused(&[slot(0, 0, 8, 1), slot(0, 7, 8, 1)]), Refused::Overlap { set: 0 });
    let sets = [Set { until: 9, slots: &[] }, Set { until: 8, slots: &[] }];
    assert_eq!(Encoder::new(SELECTOR, &tasks, &sets).unwrap_err(), Refused::Shares { set: 1 });
    assert!(Refused::Overlap { set: 3 }.to_string().contains("set 3"));
}

proptest! {
    #[test]
    fn thresholds_step_as_the_code_says(tau in 0f64..=1.0, word: u64, hop in 1u32..=255, now: u64, value: u64, count in 1usize..=6) {
        let layers: Vec<Selection> = (0..count).map(|n| Selection::threshold(0.1 * (n + 1) as f64)).collect();
        let code = Code::new(tau, &layers).unwrap();
        let task = Task::Path { code, blocks: Blocks::Hashed };
        let thresholds = Thresholds::of(&task).unwrap();
        let encoder = Encoder::new(SELECTOR, &[task], &[Set { until: 65_536, slots: &[slot(0, 3, 61, 1)] }]).unwrap();
        let field = encoder.fields_of(0)[0];
        // Also where one layer ends and the next one starts.
        for place in thresholds.starts[..count].iter().flat_map(|&start| [start.wrapping_sub(1), start]).chain([word >> 32]) {
            let wanted = place << 32 | word & 0xffff_ffff;
            let packet = Mixed::new(word);
            let field = Field { key: Key::giving(packet, wanted), ..field };
            let word = field.key.word_of(packet);
            prop_assert_eq!(word, Word(wanted));
            let block = word.value(value, 61);
            let after = |now: u64| match code.layer(word) {
                Layer::Baseline => choose(reservoir_acts(word, hop), block, now),
                Layer::Xor(selection) => choose(selection.acts(word, hop), now ^ block, now),
            };
            prop_assert_eq!(thresholds.step(Hop::new(hop), word, block, now), after(now));
            if let Operation::Hybrid { start, until } = Operation::of(&task) {
                let change = Hop::new(hop).hybrid(start, until, &field, packet, spread(value), now);
                prop_assert_eq!(field.read(now ^ change), after(now >> 3));
                prop_assert_eq!(change & 7, 0);
            } else {
                prop_assert!(count > 1 || thresholds.starts[0] >= 1 << 32);
            }
        }
    }

    #[test]
    fn a_set_of_any_queries_in_any_order_holds_what_each_task_says(
        packet: u64, path: Vec<[u64; 5]>, order in Just(vec![0u32, 1, 2, 3, 4]).prop_shuffle(), copies in 1u32..=3, length in 1usize..=5,
    ) {
        let code = |tau| Code::new(tau, &[Selection::threshold(0.3)]).unwrap();
        let grid = |rounding| Approximation::from_base(1.05, 8, rounding).unwrap();
        let tasks = [
            Task::Path { code: code(0.5), blocks: Blocks::Hashed },
            Task::Sample(grid(Rounding::Logarithm)),
            Task::Maximum(log8()),
            Task::Sample(grid(Rounding::Nearest)),
            Task::Path { code: code(0.2), blocks: Blocks::Hashed },
        ];
        let slots: Vec<Slot> = (0..).zip(&order[..length])
            .map(|(place, &query)| slot(query, 12 * place, if copies == 1 { 8 } else { 4 }, copies))
            .map(|slot| if [1, 2, 3].contains(&slot.query) { Slot { bits: 8, copies: 1, ..slot } } else { slot })
            .collect();
        let encoder = Encoder::new(SELECTOR, &tasks, &[Set { until: 65_536, slots: &slots }]).unwrap();
        let fields = encoder.fields_of(0);
        prop_assert_eq!(fields.len(), slots.iter().map(|slot| slot.copies as usize).sum::<usize>());
        let (mut digest, mut expected) = (0, vec![0; fields.len()]);
        for (hop, values) in (1..).zip(&path) {
            digest = encoder.encode(digest, packet, hop, values);
            for (field, now) in fields.iter().zip(&mut expected) {
                let (query, word) = (usize::from(field.query), field.key.word(packet));
                let value = values[query];
                *now = match &tasks[query] {
                    Task::Path { code, blocks } => {
                        let block = block(*blocks, u32::from(field.bits), word, value);
                        match code.layer(word) {
                            Layer::Baseline => choose(reservoir_acts(word, hop), block, *now),
                            Layer::Xor(selection) => choose(selection.acts(word, hop), *now ^ block, *now),
                        }
                    }
                    Task::Sample(values) if reservoir_acts(word, hop) => values.encode(value, word.coin(hop)),
                    Task::Maximum(values) => values.encode(value, word.coin(hop)).max(*now),
                    _ => *now,
                };
            }
        }
        let read: Vec<u64> = fields.iter().map(|field| field.read(digest)).collect();
        prop_assert_eq!(read, expected);
    }

    #[test]
    fn several_hops_at_once_are_hop_after_hop(packet: u64, path: Vec<[u64; 5]>, parts in 1usize..6, missing in 0usize..6) {
        let code = |layers: &[Selection]| Code::new(0.5, layers).unwrap();
        let layer = Selection::threshold(0.3);
        let tasks = [
            Task::Path { code: code(&[layer]), blocks: Blocks::Hashed },
            Task::Path { code: code(&[layer, Selection::words(0.3)]), blocks: Blocks::Hashed },
            Task::Sample(Approximation::from_base(1.05, 8, Rounding::Logarithm).unwrap()),
            Task::Maximum(log8()),
            Task::Loop(LoopDetection::new(9, 0).unwrap()),
        ];
        let slots = [slot(0, 0, 4, 2), slot(1, 8, 8, 2), slot(2, 24, 8, 1), slot(3, 32, 8, 1), slot(4, 40, 9, 1)];
        let encoder = Encoder::new(SELECTOR, &tasks, &[Set { until: 65_536, slots: &slots }]).unwrap();
        let path = &path;
        let seen = |hop: usize| move |query: usize| Some(path[hop][query] % 600).filter(|_| query != missing);
        let mut one_by_one = (0, false);
        for hop in 0..path.len() {
            let (next, report) = encoder.encode_set(0, one_by_one.0, packet, hop as u32 + 1, seen(hop));
            one_by_one = (next, one_by_one.1 | report);
        }
        let mut at_once = (0, false);
        for from in (0..path.len()).step_by(parts) {
            let hops = parts.min(path.len() - from) as u32;
            let at = |n: u32| seen(from + n as usize);
            let (next, report) = encoder.encode_along(0, at_once.0, packet, from as u32 + 1, hops, at);
            at_once = (next, at_once.1 | report);
        }
        prop_assert_eq!(at_once, one_by_one);
    }

    #[test]
    fn no_digest_packet_or_value_panics(digest: u64, packet: u64, hop: u32, value: u64, bits in 1u32..=64, count in 1u32..=64) {
        let code = Code::new(0.5, &[Selection::words(0.1), Selection::threshold(0.3)]).unwrap();
        let tasks = [
            Task::Path { code, blocks: Blocks::Fragments { count } },
            Task::Path { code, blocks: Blocks::Hashed },
            Task::Count { threshold: 3 },
            Task::Maximum(Approximation::exact(bits).unwrap()),
        ];
        for query in 0..4 {
            let slots = [slot(query, 64 - bits, bits, 1)];
            let encoder = Encoder::new(SELECTOR, &tasks, &[Set { until: 65_536, slots: &slots }]).unwrap();
            encoder.encode(digest, packet, hop, &[value; 4]);
            encoder.encode(digest, packet, hop, &[]);
        }
    }
}
