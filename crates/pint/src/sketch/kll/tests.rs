use super::*;
use crate::sketch::Damaged;
use proptest::prelude::*;

/// A stream of different numbers in an order without pattern: 0 to n - 1, shuffled.
fn shuffled(n: u32, seed: u64) -> Vec<u32> {
    let mut stream: Vec<u32> = (0..n).collect();
    for last in (1..n).rev() {
        let other = (u128::from(mix(seed ^ mix(u64::from(last)))) * u128::from(last + 1)) >> 64;
        stream.swap(last as usize, other as usize);
    }
    stream
}

fn sketch(k: u32, seed: u64, stream: &[u32]) -> Kll<u32> {
    let mut sketch = Kll::new(k, seed);
    stream.iter().for_each(|&item| sketch.update(item));
    sketch
}

/// Error of the rank of the value whose rank is `share`, of a sketch of 0 to n - 1.
fn error(sketch: &Kll<u32>, n: u32, share: f64) -> f64 {
    let value = (share * f64::from(n)) as u32;
    sketch.rank(value) - f64::from(value + 1) / f64::from(n)
}

#[test]
fn up_to_k_items_are_kept_and_their_quantiles_are_exact() {
    let mut small = sketch(10, 1, &[5, 1, 9, 3, 7, 2, 8, 4, 6, 10]);
    assert!(small.is_exact());
    let view = small.sorted().unwrap();
    let found = [0.0, 0.1, 0.11, 0.5, 0.9, 0.91, 1.0].map(|share| view.quantile(share));
    assert_eq!(found, [1, 1, 2, 5, 9, 10, 10]);
    assert_eq!((view.rank(0), view.rank(1), view.rank(5), view.rank(99)), (0.0, 0.1, 0.5, 1.0));
    assert_eq!(view.interval(0.5, 0.95), Interval { value: 5, low: Some(2), high: Some(9) });
    small.update(11);
    assert!(!small.is_exact() && small.range() == Some((1, 11)) && small.len() == 11);
    assert_eq!(Kll::<u32>::new(10, 1).quantile(0.5), None);
}

#[test]
fn one_compaction_keeps_every_second_item_and_all_the_weight() {
    // k = 8: the ninth item is one too many. Of 0..=8 the first stays, of the other eight every second rises.
    let sketch = sketch(8, 3, &[8, 7, 6, 5, 4, 3, 2, 1, 0]);
    assert_eq!(sketch.lengths, [1, 4]);
    assert!(sketch.items == [1, 3, 5, 7, 0] || sketch.items == [2, 4, 6, 8, 0], "{:?}", sketch.items);
    assert_eq!(sketch.rank(8), 1.0);
}

#[test]
fn room_is_three_k_however_long_the_stream() {
    // k = 8: 8 + 6 + 4 + 3 + 2.
    assert_eq!((room(8), level_limit(8)), (23, 5));
    for k in [8, 20, 100, 200, 1_000, MAX_K] {
        assert!(room(k) <= 3 * k as usize + 40, "{k}: {}", room(k));
        assert_eq!(k_for_room(room(k)), Some(k));
    }
    assert_eq!((k_for_room(22), k_for_room(23)), (None, Some(8)));
    let mut long = Kll::new(8, 1);
    (0..1_000_000u32).for_each(|item| {
        long.update(item);
        assert!(long.retained() <= 24);
    });
    assert!(long.floor > 0 && long.bytes() < 600, "{}", long.bytes());
}

#[test]
fn the_rank_error_is_as_published_in_99_of_100_sketches() {
    let n = 30_000;
    for k in [20, 100, 200] {
        let sketches = 400;
        let (mut outside, mut asked, mut mean) = (0, 0, 0.0);
        for seed in 0..sketches {
            let sketch = sketch(k, seed, &shuffled(n, seed));
            for share in [0.1, 0.5, 0.9, 0.99] {
                let error = error(&sketch, n, share);
                outside += u32::from(error.abs() > rank_error(k));
                asked += 1;
                mean += error;
            }
        }
        // 1 % of 1 600, and three standard deviations of that.
        assert!(outside <= 16 + 12, "k {k}: {outside} of {asked} outside {}", rank_error(k));
        assert!((mean / f64::from(asked)).abs() < rank_error(k) / 20.0, "k {k}: biased by {mean}");
    }
}

#[test]
fn sorted_streams_and_long_streams_through_the_sampler_are_no_worse() {
    let n = 300_000;
    let ascending: Vec<u32> = (0..n).collect();
    let mut outside = 0;
    for seed in 0..50 {
        let sketch = sketch(20, seed, &ascending);
        assert!(sketch.floor > 0);
        outside +=
            [0.1, 0.5, 0.9].iter().filter(|&&share| error(&sketch, n, share).abs() > rank_error(20)).count();
    }
    assert!(outside <= 1 + 4, "{outside} of 150");
}

#[test]
fn merged_sketches_are_as_good_as_one() {
    let n = 40_000;
    let mut outside = 0;
    for seed in 0..100 {
        let stream = shuffled(n, seed);
        // Parts of very different lengths, so that the samplers stand at different heights.
        let (long, rest) = stream.split_at(30_000);
        let (middle, short) = rest.split_at(9_950);
        let mut merged = sketch(30, seed, short);
        for part in [long, middle] {
            merged.merge(&sketch(30, seed ^ 77, part)).unwrap();
        }
        assert!(merged.len() == u64::from(n) && merged.range() == Some((0, n - 1)));
        assert!(merged.retained() <= room(30) + 1);
        outside += [0.05, 0.5, 0.95]
            .iter()
            .filter(|&&share| error(&merged, n, share).abs() > rank_error(30))
            .count();
    }
    assert!(outside <= 3 + 6, "{outside} of 300");
}

#[test]
fn merging_takes_the_smaller_k_and_small_sketches_stay_exact() {
    let mut one = sketch(100, 1, &[1, 2, 3]);
    one.merge(&sketch(50, 2, &[4, 5])).unwrap();
    assert!(one.is_exact() && one.k() == 50 && one.quantile(0.5) == Some(3));
    one.merge(&Kll::new(8, 1)).unwrap();
    assert_eq!((one.k(), one.len()), (8, 5));
    let mut endless = one.clone();
    endless.length = MAX_LENGTH;
    assert_eq!(one.merge(&endless), Err(TooLong));
}

#[test]
fn error_bars_hold_the_true_quantile_as_often_as_they_say() {
    let (mut held, mut asked) = (0, 0);
    for seed in 0..400u64 {
        for (n, k) in [(60u64, 100), (2_000, 50)] {
            let mut sketch = Kll::<u32>::new(k, seed);
            // Independent samples of the uniform distribution on 32 bits.
            (0..n).for_each(|i| sketch.update((mix(mix(seed).wrapping_add(i)) >> 32) as u32));
            let view = sketch.sorted().unwrap();
            for share in [0.2, 0.5, 0.9] {
                let truth = (share * 4_294_967_296.0) as u32;
                let bars = view.interval(share, 0.95);
                held += u32::from(
                    bars.low.is_none_or(|low| low <= truth) && bars.high.is_none_or(|high| truth <= high),
                );
                asked += 1;
            }
        }
    }
    let share = f64::from(held) / f64::from(asked);
    assert!((0.94..=1.0).contains(&share), "{share}");
}

#[test]
fn floating_point_numbers_keep_their_order() {
    let numbers = [f64::NEG_INFINITY, -3.5, -1e-300, 0.0, 2.0, 1e300, f64::INFINITY];
    let keys = numbers.map(Real::from);
    assert!(keys.is_sorted());
    assert_eq!(keys.map(f64::from), numbers);
}

#[test]
fn damaged_bytes_are_refused() {
    let bytes = sketch(20, 5, &shuffled(5_000, 1)).to_bytes();
    for end in 0..bytes.len() {
        assert!(Kll::<u32>::from_bytes(&bytes[..end]).is_err());
    }
    for place in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[place] ^= 1 << (place % 8);
        assert!(Kll::<u32>::from_bytes(&changed).is_err(), "byte {place}");
    }
    assert_eq!(Kll::<u64>::from_bytes(&bytes), Err(Damaged::Contradiction("its items have another width")));
    let mut newer = bytes;
    newer[4] = 2;
    assert_eq!(Kll::<u32>::from_bytes(&newer), Err(Damaged::Version(2)));
}

proptest! {
    #[test]
    fn what_is_written_is_read(k in 8u32..60, seed: u64, stream in prop::collection::vec(0u32..1_000, 0..3_000)) {
        let original = sketch(k, seed, &stream);
        let mut read = Kll::<u32>::from_bytes(&original.to_bytes()).unwrap();
        prop_assert_eq!(&read, &original);
        // And continues as the original would.
        let mut original = original;
        for item in 0..200 {
            original.update(item);
            read.update(item);
        }
        prop_assert_eq!(&read, &original);
        let levels: u64 = original.lengths.iter().enumerate().map(|(l, &n)| u64::from(n) << (original.floor + l as u32)).sum();
        prop_assert_eq!(levels + original.sample.map_or(0, |sample| sample.weight), original.len());
    }

    #[test]
    fn arbitrary_bytes_never_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = Kll::<u16>::from_bytes(&bytes);
        // Past the checksum too.
        bytes.splice(0..0, *b"wKLL\x01\x02");
        let sum = crate::sketch::bytes::checksum(&bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
        if let Ok(mut read) = Kll::<u16>::from_bytes(&bytes) {
            (0..100).for_each(|item| read.update(item));
            let copy = read.clone();
            let _ = (read.quantile(0.3), read.merge(&copy));
        }
    }
}

#[test]
fn the_bound_of_the_rank_error_is_four_and_a_half_standard_deviations_and_errors_are_smaller_at_the_tail() {
    for (k, n) in [(50, 10_000), (200, 3_333), (200, 33_333)] {
        let mut squares = [0.0; 3];
        for seed in 0..300 {
            let sketch = sketch(k, seed, &shuffled(n, seed));
            for (square, share) in squares.iter_mut().zip([0.1, 0.5, 0.99]) {
                *square += error(&sketch, n, share).powi(2) / 300.0;
            }
        }
        for (square, share) in squares.into_iter().zip([0.1, 0.5, 0.99]) {
            let expected = rank_error(k) / RANK_DEVIATIONS * tail_share(k, share);
            let ratio = square.sqrt() / expected;
            assert!((ratio - 1.0).abs() < 0.25, "{k} {n} {share}: {ratio}");
        }
    }
}

#[test]
fn the_99th_percentile_has_an_upper_bar_once_the_samples_are_enough_for_the_sketch() {
    let upper = |k, n| sketch(k, 1, &shuffled(n, 1)).sorted().unwrap().interval(0.99, 0.95).high.is_some();
    // Exact order statistics up to k, then the sketch's error comes on top.
    assert_eq!([368, 367].map(|n| upper(1_000, n)), [true, false]);
    assert_eq!([1_000, 1_100, 300_000].map(|n| upper(200, n)), [false, true, true]);
    // A sketch that is too small has none for any number of samples.
    assert_eq!([147, 148].map(|k| upper(k, 300_000)), [false, true]);
}

#[test]
fn error_bars_of_sketches_of_any_size_hold_the_true_quantile() {
    for k in [8, 20, 50, 200, 800] {
        for n in [1_000u32, 20_000] {
            let mut held = [0; 3];
            for seed in 0..400 {
                // The stream is a sample of the numbers below 2^32, evenly.
                let mut random = mix(seed ^ u64::from(n) << 32);
                let mut sketch = Kll::<u32>::new(k, seed);
                for _ in 0..n {
                    random = mix(random.wrapping_add(0x9e37_79b9_7f4a_7c15));
                    sketch.update((random >> 32) as u32);
                }
                let view = sketch.sorted().unwrap();
                for (held, share) in held.iter_mut().zip([0.1, 0.5, 0.99]) {
                    let truth = (share * 4_294_967_296.0) as u32;
                    let bars = view.interval(share, 0.95);
                    let holds =
                        bars.low.is_none_or(|low| low <= truth) && bars.high.is_none_or(|high| truth <= high);
                    *held += u32::from(holds);
                }
            }
            // 380 of 400, less 3.6 standard deviations.
            assert!(held.into_iter().all(|held| held >= 364), "{k} {n}: {held:?}");
        }
    }
}
