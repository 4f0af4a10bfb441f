use super::*;
use crate::hash::mix;
use proptest::prelude::*;

fn sketch(room: usize, stream: &[u64]) -> SpaceSaving {
    let mut sketch = SpaceSaving::new(room);
    stream.iter().for_each(|&value| sketch.update(value));
    sketch
}

fn counter(value: u64, count: u64, excess: u64) -> Counter {
    Counter { value, count, excess }
}

#[test]
fn a_newcomer_takes_over_the_smallest_counter() {
    // 1 1 1 2 2 3 with two counters: 3 takes over from 2, whose count was 2.
    let mut sketch = sketch(2, &[1, 1, 1, 2, 2, 3]);
    assert_eq!(sketch.counters(), [counter(1, 3, 0), counter(3, 3, 2)]);
    assert_eq!((sketch.missed(), sketch.len()), (3, 6));
    // Equal counts: the smaller value goes.
    sketch.update(7);
    assert_eq!(sketch.counters(), [counter(7, 4, 3), counter(3, 3, 2)]);
    assert_eq!(sketch.frequent(0.5), [counter(7, 4, 3)]);
    assert_eq!((sketch.counter(3), sketch.counter(1)), (Some(counter(3, 3, 2)), None));
}

#[test]
fn few_values_are_counted_exactly() {
    let sketch = sketch(10, &[4, 4, 9, 4]);
    assert_eq!(sketch.counters(), [counter(4, 3, 0), counter(9, 1, 0)]);
    assert_eq!(sketch.missed(), 0);
}

/// Geometric shares: value v has about 2^-v of the stream.
fn skewed(n: u64, seed: u64) -> Vec<u64> {
    (0..n)
        .map(|i| u64::from(mix(seed ^ mix(i)).trailing_zeros()) * 31 + (i % 3) * u64::from(i % 50 == 0))
        .collect()
}

fn holds(sketch: &SpaceSaving, stream: &[u64]) {
    let n = stream.len() as u64;
    let max = n / sketch.room() as u64;
    let truth = |value| stream.iter().filter(|&&other| other == value).count() as u64;
    for counter in sketch.counters() {
        let truth = truth(counter.value);
        assert!(counter.count - counter.excess <= truth && truth <= counter.count, "{counter:?}: {truth}");
        assert!(counter.excess <= max, "{counter:?} of {n}");
    }
    for &value in stream {
        assert!(sketch.counter(value).is_some() || truth(value) <= sketch.missed().min(max));
    }
}

#[test]
fn damaged_bytes_are_refused() {
    let bytes = sketch(8, &skewed(500, 1)).to_bytes();
    assert!((0..bytes.len()).all(|end| SpaceSaving::from_bytes(&bytes[..end]).is_err()));
    for place in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[place] ^= 0x10;
        assert!(SpaceSaving::from_bytes(&changed).is_err(), "byte {place}");
    }
    assert_eq!(SpaceSaving::from_bytes(&bytes), Ok(sketch(8, &skewed(500, 1))));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn counts_stay_within_their_bounds(room in 1usize..12, stream in prop::collection::vec(0u64..20, 0..300)) {
        holds(&sketch(room, &stream), &stream);
    }

    #[test]
    fn merged_counts_stay_within_their_bounds(
        room in 1usize..12,
        parts in prop::collection::vec(prop::collection::vec(0u64..20, 0..150), 1..5),
    ) {
        let mut merged = SpaceSaving::new(room);
        parts.iter().for_each(|part| merged.merge(&sketch(room, part)));
        holds(&merged, &parts.concat());
        let mut longer = merged.clone();
        longer.update(77);
        holds(&longer, &[parts.concat(), vec![77]].concat());
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = SpaceSaving::from_bytes(&[&b"wSpS\x01"[..], &bytes].concat());
    }
}
