use super::*;

const US: u64 = 1_000_000;

/// 1500 B every so many ns for 8 ms, many times tau; the estimator and the time of the last departure.
fn steady(law: &EstimatorLaw, every_ns: u64) -> (LinkEstimator, u64) {
    let mut link = LinkEstimator::default();
    let mut now = 0;
    while now < 8000 * US {
        now += every_ns * 1000;
        link.add(law, 1500, now);
    }
    (link, now)
}

#[test]
fn by_hand_half_is_forgotten_after_half_of_tau() {
    let law = EstimatorLaw::exact(400 * US);
    let mut link = LinkEstimator::default();
    link.add(&law, 1000, 0);
    link.add(&law, 500, 200 * US);
    // 500 + 1000 / 2, of which after another 100 us three quarters are left.
    assert_eq!((link.bytes(&law, 200 * US), link.bytes(&law, 300 * US)), (1000, 750));
    // Reading changes nothing; beyond tau nothing is left, and never less than nothing.
    assert_eq!(link.bytes(&law, 599 * US), 2);
    assert_eq!((link.bytes(&law, 600 * US), link.bytes(&law, 9_000 * US)), (0, 0));
    link.add(&law, 700, 9_000 * US);
    assert_eq!(link.bytes(&law, 9_000 * US), 700);
}

#[test]
fn the_fixed_point_is_rate_times_tau_within_a_packet() {
    for law in [EstimatorLaw::exact(400 * US), EstimatorLaw::shifting(400 * US)] {
        for every_ns in [120, 400, 1200, 5000] {
            let (link, now) = steady(&law, every_ns);
            let expected = 1500 * law.tau() / (every_ns * 1000);
            let found = link.bytes(&law, now);
            assert!(
                found.abs_diff(expected) <= 1500 + expected / 300,
                "{law:?} {every_ns}: {found} {expected}"
            );
        }
    }
}

#[test]
fn the_same_load_reads_alike_on_links_of_any_rate_and_a_full_link_reads_full() {
    let law = EstimatorLaw::exact(400 * US);
    // 1500 B take 1200 ns at 10 Gb/s and 300 ns at 40: every 2400 ns and every 600 ns is half.
    for (every_ns, gbps) in [(2400, 10), (600, 40)] {
        let (link, now) = steady(&law, every_ns);
        let read = link.utilisation(&law, now, gbps * 1_000_000_000);
        assert!((127..=131).contains(&read), "{read} at {gbps} Gb/s");
    }
    let (link, now) = steady(&law, 1200);
    assert_eq!(link.utilisation(&law, now, 10_000_000_000), 255);
    assert_eq!(
        link.utilisation(&law, now + 400 * US, 10_000_000_000),
        0,
        "an idle link does not keep its value"
    );
}

#[test]
fn the_hardware_form_takes_the_nearest_power_of_two() {
    // 400 us are 390 625 ticks: 2^18 is 262 144, 2^19 is 524 288, which is nearer in ratio.
    assert_eq!(EstimatorLaw::shifting(400 * US).tau(), 1 << 29);
    assert_eq!(EstimatorLaw::shifting(1 << 28).tau(), 1 << 28);
}
