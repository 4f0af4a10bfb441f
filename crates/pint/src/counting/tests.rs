use super::*;
use crate::hash::Key;
use crate::value::Approximation;

#[test]
fn zero_and_one_are_exact_and_nothing_changes_nothing() {
    let counter = Counter::from_epsilon(0.1, 5, 8).unwrap();
    for coin in [0, 1 << 31, u32::MAX - 10_000] {
        assert_eq!(counter.add(0, 0, coin), 0);
        assert_eq!(counter.add(0, 1, coin), 1);
        assert_eq!(counter.add(77, 0, coin), 77);
        assert_eq!(counter.add(255, u64::MAX, coin), 255);
    }
    assert_eq!(counter.decode(0), 0.0);
    assert_eq!((0..9).fold(250, |code, _| counter.add(code, u64::MAX, 0)), 255);
    assert!((counter.decode(1) - 1.0).abs() < 1e-6);
}

#[test]
fn the_mean_of_sums_and_products_is_the_truth_and_the_deviation_within_its_bound() {
    let draws = 1_000_000u64;
    let values = [3u64, 1_000, 0, 40, 250];
    let counter = Counter::from_epsilon(0.05, 5, 9).unwrap();
    let factors = Approximation::from_base(1.05, 10, Rounding::Value).unwrap();
    let (mut sums, mut sum_squares, mut products, mut product_squares) = (0.0, 0.0, 0.0, 0.0);
    for packet in 0..draws {
        let word = Key::new(2, 9).word(packet);
        let (mut sum, mut product) = (0, 0);
        for (hop, &v) in (1..).zip(&values) {
            sum = counter.add(sum, v, word.coin(hop));
            product += factors.encode(v.max(1), word.coin(hop));
        }
        let (sum, product) = (counter.decode(sum) - 1_293.0, factors.decode(product) / 3e7 - 1.0);
        sums += sum;
        sum_squares += sum * sum;
        products += product;
        product_squares += product * product;
    }
    let n = draws as f64;
    let deviation = (sum_squares / n).sqrt();
    assert!((sums / n).abs() <= 3.0 * deviation / n.sqrt(), "{} of {deviation}", sums / n);
    assert!(deviation <= counter.deviation(1_293.0, 5));
    let deviation = (product_squares / n).sqrt();
    assert!((products / n).abs() <= 3.0 * deviation / n.sqrt(), "{} of {deviation}", products / n);
    assert!(deviation <= ((1.0f64 + 0.05 * 0.05 / (4.0 * 1.05)).powi(5) - 1.0).sqrt());
}

#[test]
fn small_sums_deviate_by_more_than_epsilon_and_by_no_more_than_half_the_root_of_the_hops_on_top() {
    let counter = Counter::from_epsilon(0.05, 12, 12).unwrap();
    let sum = |packet: u64| {
        let word = Key::new(2, 9).word(packet);
        counter.decode((1..=12).fold(0, |code, hop| counter.add(code, 2, word.coin(hop))))
    };
    let squares: f64 = (0..20_000).map(|packet| (sum(packet) / 24.0 - 1.0).powi(2)).sum();
    let deviation = (squares / 20_000.0).sqrt();
    assert!(deviation > 0.05 && deviation <= 0.05 + 12f64.sqrt() / 2.0 / 24.0, "{deviation}");
}

#[test]
fn sums_beyond_a_counter_are_at_its_ceiling() {
    // The last code; and where a sum no longer fits 64 bits, for coarse counters with bits to spare: 2^36 and
    // 1.44 times 2^37.
    for (counter, ceiling, largest) in [
        (Counter::from_epsilon(0.1, 5, 8).unwrap(), 255, 3.43e10),
        (Counter::new(1 << 20, 16).unwrap(), 36, 6.87e10),
        (Counter::new(3 << 19, 16).unwrap(), 54, 1.17e11),
    ] {
        assert_eq!(counter.ceiling(), ceiling);
        assert!((counter.largest() / largest - 1.0).abs() < 0.02, "{}", counter.largest());
        for packet in 0..1_000 {
            let word = Key::new(2, 9).word(packet);
            let code = (1..=255).fold(0, |code, hop| counter.add(code, u64::MAX, word.coin(hop)));
            assert!(code >= ceiling, "{code} of {ceiling}");
            assert!(counter.add(0, 1_000_000, word.coin(1)) < ceiling);
        }
    }
}

proptest::proptest! {
    #[test]
    fn counters_never_fall_and_never_panic(code: u64, v: u64, coin: u32, rate in (1u64 << 20)..=(1 << 32), bits in 1u32..=16) {
        let counter = Counter::new(rate, bits).unwrap();
        let limit = u64::MAX >> (64 - bits);
        assert!((code.min(limit)..=limit).contains(&counter.add(code, v, coin)));
    }
}
