use super::*;
use crate::hash::mix;
use proptest::prelude::*;

const UNIT: f64 = 4_294_967_296.0;

fn samples() -> impl Iterator<Item = u64> {
    (1..200_000).map(|n| (mix(n) >> (n % 64)).max(1))
}

#[test]
fn logarithms_of_powers_of_two_are_exact() {
    (0..64).for_each(|n| assert_eq!(log2(1 << n), n << 32));
    assert_eq!(log2(0), 0);
    assert_eq!((exp2(0), exp2(1 << 31) >> 12), (1 << 32, 1_482_910));
    assert!(exp2(u32::MAX) <= 1 << 33);
}

#[test]
fn logarithms_and_powers_are_within_their_bounds() {
    for v in samples() {
        let error = log2(v) as f64 / UNIT - libm::log2(v as f64);
        assert!(error.abs() <= 2f64.powi(-28), "log2({v}): {error:e}");
        let x = (v >> 32) as u32 ^ v as u32;
        let error = exp2(x) as f64 / UNIT - libm::exp2(f64::from(x) / UNIT);
        assert!(error.abs() <= 2f64.powi(-30), "exp2({x}): {error:e}");
    }
}

#[test]
fn logarithms_never_fall_around_every_end_of_an_interval() {
    for exponent in [9, 20, 32, 33, 40, 63] {
        for interval in 0..=256u64 {
            let centre = ((256 + interval) << (exponent - 9)) << u64::from(interval < 256);
            let near = (centre - 3)..centre.saturating_add(3);
            near.for_each(|v| assert!(log2(v) <= log2(v.saturating_add(1)), "{v}"));
        }
    }
    for x in (0..256u32).map(|interval| interval << 24).flat_map(|x| x.wrapping_sub(3)..x.saturating_add(3)) {
        assert!(exp2(x) <= exp2(x + 1));
    }
}

#[test]
fn tables_of_every_size_keep_the_bounds_of_the_appendix() {
    for bits in 1..=16 {
        let tables = Arithmetic::new(bits, 32).unwrap();
        let unit = 2f64.powi(-(bits as i32));
        for (a, b) in samples().zip(samples().skip(7)).step_by(17) {
            let error = libm::log2(a as f64) - tables.log2(a) as f64 / UNIT;
            assert!((-1e-8..=1.443 * unit + 1e-8).contains(&error), "q {bits}, log2({a}): {error}");
            let (a, b) = (a >> 32 | 1 << 12, b >> 32 | 1 << 12);
            let product = tables.product(a, b) as f64 / (a as f64 * b as f64) - 1.0;
            assert!(product.abs() <= 2.4 * unit + 1e-6, "q {bits}, {a} * {b}: {product}");
            let b = (b >> 16) + 1;
            let quotient = tables.quotient(a << 30, b) as f64 / ((a << 30) as f64 / b as f64) - 1.0;
            assert!(quotient.abs() <= 2.4 * unit + 1e-5, "q {bits}, {a} / {b}: {quotient}");
        }
    }
}

#[test]
fn rounding_at_random_keeps_the_number_on_average() {
    let tables = Arithmetic::PAPER;
    for v in [513u64, 1_000_003, 0xffff_ffff, 1 << 40 | 12_345] {
        let draws = 200_000;
        let mean = (0..draws)
            .map(|n| libm::exp2(tables.log2_rounded(v, (mix(n) >> 32) as u32) as f64 / UNIT))
            .sum::<f64>()
            / draws as f64;
        let gap = v as f64 * 2f64.powi(-8);
        assert!(
            (mean - v as f64).abs() <= 3.0 * gap / 2.0 / (draws as f64).sqrt() + v as f64 * 1e-7,
            "{v}: {mean}"
        );
    }
}

proptest! {
    #[test]
    fn no_number_panics(a: u64, b: u64, x: i64, coin: u32, bits in 1u32..=16, entry in 1u32..=32) {
        let tables = Arithmetic::new(bits, entry).unwrap();
        let _ = (tables.product(a, b), tables.quotient(a, b), tables.exp2(x), tables.log2_rounded(a, coin));
        prop_assert!(log2(a.min(b)) <= log2(a.max(b)));
        prop_assert!(tables.exp2(x.min(x / 2)) <= tables.exp2(x.max(x / 2)));
    }
}
