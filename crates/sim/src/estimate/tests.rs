//! Tests of what estimates add up.

use super::*;

#[test]
fn what_does_not_fit_the_caches_costs_more_and_never_less() {
    assert_eq!((cache_factor(0.0), cache_factor(2e6), cache_factor(44e6)), (1.0, 1.0, 1.6));
    assert_eq!(cache_factor(1e12), 1.9);
    let factors: Vec<f64> = (0..60).map(|i| cache_factor(1e6 * 1.1f64.powi(i))).collect();
    assert!(factors.is_sorted(), "{factors:?}");
}

#[test]
fn sizes_are_reported_with_two_digits() {
    assert_eq!([8_765_432_100, 99, 0].map(two_digits), [8_700_000_000, 99, 0]);
}
