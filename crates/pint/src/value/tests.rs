use super::*;
use crate::hash::Key;
use proptest::prelude::*;

#[test]
fn values_of_32_bits_at_epsilon_0_0025_need_13_bits() {
    assert_eq!(bits_for(u64::from(u32::MAX), 0.0025), Some(13));
    assert_eq!(bits_for(512 * 512, 0.025), Some(8));
    assert_eq!((bits_for(1, 0.1), bits_for(9, 0.0), bits_for(9, -1.0)), (Some(1), None, None));
    assert_eq!((bits_for_delta(1_000, 5), bits_for_delta(7, 0)), (7, 3));
}

#[test]
fn the_nearest_code_is_that_of_the_formula_for_all_values_of_16_bits() {
    for (epsilon, bits) in [(0.025, 8), (0.022, 8), (0.42, 4), (0.0025, 13)] {
        let values = Approximation::from_epsilon(epsilon, bits, Rounding::Nearest).unwrap();
        let base = 2.0 * libm::log2(1.0 + epsilon);
        for v in 1..=65_535u64 {
            let real = libm::log2(v as f64) / base;
            let expected = (real.round() as u64).min(values.limit());
            let code = values.encode(v, 0);
            assert!(code == expected || (real.fract() - 0.5).abs() < 1e-3, "{v}: {code}, {expected}");
            let off = values.decode(code) / v as f64;
            let within = off.max(1.0 / off) <= 1.0 + epsilon + 1e-4;
            assert!(within || values.saturates(v) || code == values.limit(), "{v}: {off}");
        }
    }
}

#[test]
fn codes_never_fall_and_zero_counts_as_one() {
    for values in [
        Approximation::from_epsilon(0.0025, 13, Rounding::Nearest).unwrap(),
        Approximation::additive(10, 12, Rounding::Nearest).unwrap(),
        Approximation::exact(9).unwrap(),
    ] {
        let codes: Vec<u64> = (0..200_000).map(|v| values.encode(v, 0)).collect();
        assert!(codes.windows(2).all(|pair| pair[0] <= pair[1]));
        assert_eq!(codes[0], 0);
        assert!(values.encode(u64::MAX, u32::MAX) <= values.limit());
    }
}

#[test]
fn additive_codes_are_exact_for_every_width() {
    let values = Approximation::additive(10, 8, Rounding::Nearest).unwrap();
    let codes = [0, 4, 5, 14, 15, 2_549, 1 << 60].map(|v| values.encode(v, 0));
    assert_eq!(codes, [0, 0, 1, 1, 2, 255, 255]);
    assert!(values.saturates(1 << 60) && !values.saturates(2_550));
    assert_eq!(values.decode(7), 70.0);
}

#[test]
fn rounding_in_the_value_domain_keeps_the_mean_and_in_the_log_domain_the_mean_logarithm() {
    let draws = 1_000_000u32;
    let cases = [
        (Approximation::from_base(1.05, 8, Rounding::Value), 300),
        (Approximation::from_base(1.01, 12, Rounding::Value), 777),
        (Approximation::from_base(16.0, 4, Rounding::Value), 1_000_001),
        (Approximation::additive(1_000, 8, Rounding::Value), 1_234),
        (Approximation::from_epsilon(0.42, 4, Rounding::Logarithm), 1_000),
        (Approximation::from_epsilon(0.0025, 13, Rounding::Logarithm), 40_000),
    ];
    for (values, v) in cases {
        let values = values.unwrap();
        let log = values.rounding() == Rounding::Logarithm;
        let seen = |x: f64| if log { libm::log2(x) } else { x };
        let (mut sum, mut squares) = (0.0, 0.0);
        for packet in 0..u64::from(draws) {
            let coin = Key::new(5, 1).word(packet).coin(3);
            let error = seen(values.decode(values.encode(v, coin))) - seen(v as f64);
            sum += error;
            squares += error * error;
        }
        let (mean, n) = (sum / f64::from(draws), f64::from(draws));
        let deviation = (squares / n - mean * mean).max(0.0).sqrt();
        assert!(mean.abs() <= 3.0 * deviation / n.sqrt(), "{values:?}: {mean} of {deviation}");
    }
}

proptest! {
    #[test]
    fn random_rounding_takes_one_of_the_two_codes_around(v: u64, coin: u32, rate in (1u64 << 18)..=(1 << 32)) {
        for rounding in [Rounding::Value, Rounding::Logarithm] {
            let values = Approximation::multiplicative(rate, 32, rounding).unwrap();
            let (low, high) = (values.encode(v, u32::MAX), values.encode(v, 0));
            prop_assert!(high - low <= 1);
            prop_assert!((low..=high).contains(&values.encode(v, coin)));
        }
    }

    #[test]
    fn additive_division_is_exact(v: u64, width in 2u64..) {
        let values = Approximation::additive(width, 32, Rounding::Value).unwrap();
        // The largest coin rounds up only a rest that is all but a width.
        let code = values.unbounded(v, u32::MAX);
        prop_assert!(code == v / width || (code == v / width + 1 && v % width > width - width / (1 << 31) - 2));
    }
}
