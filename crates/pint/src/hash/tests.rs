use super::*;

#[test]
fn the_mixer_is_splitmix64() {
    // First outputs of splitmix64 seeded with 1234567, as published with the generator.
    let outputs: Vec<u64> = (1..=3).map(|n| mix(1_234_567u64.wrapping_add(GOLDEN.wrapping_mul(n)))).collect();
    assert_eq!(outputs, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
}

#[test]
fn fragments_are_drawn_evenly() {
    let mut counts = [0u32; 5];
    (0..50_000).for_each(|packet| counts[Key::new(3, 1).word(packet).fragment(5) as usize] += 1);
    assert!(counts.iter().all(|count| count.abs_diff(10_000) < 450), "{counts:?}");
    assert_eq!(Word(9).fragment(1), 0);
}

/// What is drawn for one packet, each as its upper 32 bits.
fn drawn(packet: u64) -> Vec<u32> {
    let [selector, first, second] = [0, 1, 2].map(|purpose| Key::new(7, purpose).word(packet));
    let mut all = vec![u32::from(selector.share()) << 16, first.layer(), second.layer()];
    all.extend((1..=4).chain([17, 200]).map(|hop| first.hop(hop)));
    all.extend([second.hop(1), second.hop(2), first.coin(1), first.coin(2), selector.hop(1)]);
    all.extend([0, 1, 2, 3, 511, 512, 1 << 20, 1 << 40].map(|v| first.value(v, 32) as u32));
    all.extend([1, 2].map(|v| second.value(v, 32) as u32));
    all
}

#[test]
fn what_is_drawn_for_one_packet_is_independent_in_pairs() {
    // Chi square of 64 cells has 63 degrees of freedom: mean 63, deviation 11.2; 171 pairs and three kinds of ids.
    const PACKETS: u64 = 100_000;
    for ids in [|n: u64| n, |n: u64| n << 32 ^ 1_000, |n: u64| ((n / 100) << 32) ^ ((n % 100) * 1_000)] {
        let all: Vec<Vec<u32>> = (0..PACKETS).map(|n| drawn(ids(n))).collect();
        for a in 0..all[0].len() {
            for b in 0..a {
                let mut cells = [0f64; 64];
                all.iter().for_each(|draws| cells[(draws[a] >> 29 << 3 | draws[b] >> 29) as usize] += 1.0);
                let expected = PACKETS as f64 / 64.0;
                let chi: f64 = cells.iter().map(|n| (n - expected) * (n - expected) / expected).sum();
                assert!(chi < 63.0 + 5.5 * 11.2, "{a} and {b}: {chi}");
            }
        }
    }
}

#[test]
fn the_sum_of_three_draws_is_even_half_the_time() {
    const PACKETS: u64 = 100_000;
    let all: Vec<Vec<u32>> = (0..PACKETS).map(|n| drawn((n << 32) ^ (n * 1_000))).collect();
    let draws = all[0].len();
    for (a, b, c) in (0..draws).flat_map(|a| (0..a).flat_map(move |b| (0..b).map(move |c| (a, b, c)))) {
        let odd = all.iter().filter(|draws| (draws[a] ^ draws[b] ^ draws[c]) >> 31 == 1).count();
        // 5.5 deviations.
        assert!((odd as f64 - 50_000.0).abs() < 5.5 * 158.1, "{a}, {b} and {c}: {odd}");
    }
}

#[test]
fn two_values_share_a_hash_as_often_as_its_bits_say() {
    for (a, b) in [(0, 1), (1, 2), (3, 1 << 33), (7, 7 + (1 << 63)), (100, 356), (2 << 56 | 5, 3 << 56 | 5)] {
        for bits in [1, 4, 8] {
            let same = (0..1_000_000u64).filter(|&packet| {
                let word = Key::new(3, 1).word(packet);
                word.value(a, bits) == word.value(b, bits)
            });
            let (n, p) = (same.count() as f64, (-(f64::from(bits))).exp2());
            assert!((n - 1e6 * p).abs() < 5.0 * (1e6 * p * (1.0 - p)).sqrt(), "{a}, {b}, {bits} bits: {n}");
        }
    }
}

#[test]
fn hashes_of_other_hops_packets_and_keys_differ() {
    let word = Key::new(1, 1).word(7);
    assert_ne!(word.hop(1), word.hop(2));
    assert_ne!(word.hop(1), word.coin(1));
    assert_ne!(word, Key::new(1, 2).word(7));
    assert_ne!(word, Key::new(1, 1).word(8));
    assert_ne!(word.value(3, 64), word.value(4, 64));
    assert_eq!(word.value(3, 8), word.value(3, 64) >> 56);
}
