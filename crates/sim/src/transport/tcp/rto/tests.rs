//! Tests of `rto`.

use super::*;

fn config() -> (RttConfig, RtoConfig) {
    let rtt = RttConfig { clock: Time::ZERO, smoothed: false, handshake: true, karn: false };
    let rto = RtoConfig {
        initial: Time::from_ms(1000),
        syn: Time::from_ms(1000),
        min: Time::from_ms(1),
        max: Time::from_ms(60_000),
        granularity: Time::from_ms(1),
        min_bounds_variance: false,
    };
    (rtt, rto)
}

#[test]
fn the_timeout_follows_rfc_6298() {
    let (rtt, rto) = config();
    let mut estimator = RttEstimator::new(&rto);
    assert_eq!((estimator.rto(), estimator.smoothed()), (Time::from_ms(1000), None));
    estimator.take(Time::from_ms(80), &rtt, &rto);
    // 80 + 4 * 40.
    assert_eq!((estimator.rto(), estimator.smoothed()), (Time::from_ms(240), Some(Time::from_ms(80))));
    estimator.take(Time::from_ms(160), &rtt, &rto);
    // RTTVAR = (3 * 40 + 80) / 4 = 50, SRTT = (7 * 80 + 160) / 8 = 90.
    assert_eq!((estimator.rto(), estimator.smoothed()), (Time::from_ms(290), Some(Time::from_ms(90))));
    estimator.back_off(&rto);
    assert_eq!(estimator.rto(), Time::from_ms(580));
    (0..20).for_each(|_| estimator.back_off(&rto));
    assert_eq!(estimator.rto(), Time::from_ms(60_000));
    assert_eq!(estimator.min_rtt(), Time::from_ms(80));
}

#[test]
fn the_minimum_bounds_the_timeout_or_only_its_variance() {
    let (rtt, rto) = config();
    let with = |min_bounds_variance| RtoConfig { min: Time::from_ms(200), min_bounds_variance, ..rto };
    let timeout = |rto: &RtoConfig| {
        let mut estimator = RttEstimator::new(rto);
        estimator.take(Time::from_ms(20), &rtt, rto);
        estimator.rto()
    };
    assert_eq!(timeout(&with(false)), Time::from_ms(200));
    assert_eq!(timeout(&with(true)), Time::from_ms(220));
}

#[test]
fn with_a_coarse_clock_means_are_whole_nanoseconds() {
    let (rtt, rto) = config();
    let rtt = RttConfig { clock: Time::from_ms(1), ..rtt };
    let mut estimator = RttEstimator::new(&rto);
    [20, 21, 20, 20].into_iter().for_each(|ms| estimator.take(Time::from_ms(ms), &rtt, &rto));
    // 20.125, 20.109375, then 20.095703125 ms.
    assert_eq!(estimator.smoothed(), Some(Time::from_ns(20_095_703)));
}

#[test]
fn a_coarse_clock_counts_its_ticks() {
    let clock = Time::from_ms(1);
    let sample = |sent, now| RttEstimator::sample(Time::from_us(sent), Time::from_us(now), clock);
    assert_eq!(sample(1_900, 3_100), Time::from_ms(2));
    assert_eq!(sample(1_100, 2_900), Time::from_ms(1));
    assert_eq!(sample(1_100, 1_900), Time::from_us(1));
    assert_eq!(RttEstimator::sample(Time(5), Time(9), Time::ZERO), Time(4));
}
