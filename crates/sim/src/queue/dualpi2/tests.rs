use super::super::managed::tests::{Port, config as managed, defaults};
use super::*;
use crate::packet::{Packet, flag};
use crate::units::Rate;

fn alone() -> Dualpi2 {
    defaults::<Dualpi2Config>().start(Limit::NONE, &PortPlace::TEST)
}

#[test]
fn the_controller_and_the_coupling_follow_the_equations() {
    let mut pi = alone();
    // 0.15 * (35 - 15) ms + 3 * 35 ms = 0.003 + 0.105.
    pi.update(0.035);
    assert!((pi.base - 0.108).abs() < 1e-12);
    assert!((pi.classic_probability() - 0.108 * 0.108).abs() < 1e-12);
    assert!((pi.coupled_probability() - 0.216).abs() < 1e-12);
    // The square: p_C = (p_CL / k)^2, whatever the base.
    for step in 1..10 {
        pi.update(0.035 + 0.01 * f64::from(step % 3));
        let expected = (pi.coupled_probability() / 2.0).powi(2);
        assert!((pi.classic_probability() - expected).abs() < 1e-12);
    }
    // At the target nothing changes.
    pi.update(0.015);
    let before = pi.base;
    pi.update(0.015);
    assert_eq!(pi.base, before);
}

/// RFC 9332, Appendix A.1: Tupdate = min(target, RTT_max / 3), alpha = 0.1 Tupdate / RTT_max^2, beta = 0.3 / RTT_max for a target
/// of 15 ms and round trips of at most 100 ms.
#[test]
fn the_default_gains_are_those_of_the_formulas() {
    let (target, longest) = (0.015f64, 0.1f64);
    let update = target.min(longest / 3.0);
    let defaults: Dualpi2Config = defaults();
    assert_eq!(defaults.update.as_seconds(), update);
    assert!((defaults.alpha - 0.1 * update / (longest * longest)).abs() < 1e-12);
    assert!((defaults.beta - 0.3 / longest).abs() < 1e-12);
}

/// p' := p' + alpha (C - target) + beta (C - C before), by hand over four updates with C = 20, 40, 30, 0 ms:
/// 0.15 * 0.005 + 3 * 0.020 = 0.06075; + 0.15 * 0.025 + 3 * 0.020 = 0.1245; + 0.15 * 0.015 - 3 * 0.010 = 0.09675;
/// + 0.15 * -0.015 - 3 * 0.030 = 0.0045.
#[test]
fn the_base_probability_follows_four_updates_by_hand_and_never_leaves_its_range() {
    let mut pi = alone();
    for (waited, expected) in [(0.020, 0.06075), (0.040, 0.1245), (0.030, 0.09675), (0.0, 0.0045)] {
        pi.update(waited);
        assert!((pi.base - expected).abs() < 1e-12, "{waited}: {}", pi.base);
    }
    pi.update(0.0);
    assert!((pi.base - 0.00225).abs() < 1e-12);
    (0..10).for_each(|_| pi.update(0.0));
    assert_eq!(pi.base, 0.0);
    (0..10).for_each(|_| pi.update(1000.0));
    assert_eq!((pi.base, pi.classic_probability(), pi.coupled_probability()), (1.0, 1.0, 1.0));
}

/// Overload begins where k p' reaches 1, that is p_C = 1 / k^2 = 1/4: from there low-latency packets are dropped with p_C too, and
/// classic ones are dropped though they could be marked (RFC 9332, Appendix A.2).
#[test]
fn at_overload_both_queues_drop_and_below_it_only_mark() {
    let served = |base: f64, class: u8| {
        let config = Dualpi2Config { alpha: 0.0, beta: 0.0, l4s_class: 2, ..defaults() };
        let mut port = Port::new(managed(config, 100_000), Rate(100_000_000));
        port.discipline().base = base;
        (0..1000).for_each(|name| {
            port.offer_packet(Time::ZERO, Packet { seq: name, size: 1500, class, ..Packet::default() });
        });
        let (mut dropped, mut marked) = (0, 0);
        loop {
            let (packet, lost) = port.serve(Time::ZERO);
            dropped += lost.len();
            let Some(packet) = packet else { return (dropped, marked) };
            marked += usize::from(packet.flags & flag::MARKED != 0);
        }
    };
    // p' = 3/8: p_C = 9/64, p_CL = 3/4. A count that is added up has to exceed one: ceil(n p) - 1 signals.
    assert_eq!(served(0.375, 1), (0, 140));
    assert_eq!(served(0.375, 2), (0, 749));
    // p' = 1/2: p_C = 1/4, p_CL = 1. The low-latency queue adds both to one count: 1/4, 2/4, 3/4 and 1 let a packet live, marked,
    // then one in four is dropped.
    assert_eq!(served(0.5, 1), (249, 0));
    assert_eq!(served(0.5, 2), (249, 751));
}

#[test]
fn signals_are_spread_evenly() {
    let mut sum = 0.0;
    let signals: Vec<usize> = (0..40).filter(|_| recurs(&mut sum, 0.125)).collect();
    assert_eq!(signals.len(), 4);
    assert!(signals.windows(2).all(|pair| pair[1] - pair[0] == 8), "{signals:?}");
}

#[test]
fn the_ramp_begins_and_ends_where_it_should_and_spares_packets_before_the_last_one() {
    let mut pi = alone();
    // RFC 9332, Appendix A, lines 5a to 5d: the packet has been dequeued, and lq.len() > Th_len = 1.
    for (later, expected) in [(0, 0.0), (1, 0.0), (2, 1.0)] {
        pi.low.packets = later;
        assert_eq!(pi.ramp(Time::from_ms(5)), expected, "{later}");
    }
    let at = |us| pi.ramp(Time::from_us(us));
    assert_eq!((at(799), at(800), at(1000), at(1200), at(5000)), (0.0, 0.0, 0.5, 1.0, 1.0));
}

#[test]
fn updates_that_were_missed_are_made_up_for() {
    let mut port = Port::new(managed(defaults::<Dualpi2Config>(), 100_000), Rate(100_000_000));
    let classic =
        |name| Packet { seq: name, size: 1500, class: 1, flags: flag::NOT_CAPABLE, ..Packet::default() };
    (0..3000).for_each(|name| assert!(port.offer_packet(Time::ZERO, classic(name)).is_empty()));
    // After four updates of a head that has waited 15, 30, 45, 60 ms: 0.045 + (0.00225 + 0.045) + (0.0045 + 0.045) + ...
    let (_, dropped) = port.serve(Time::from_ms(60));
    assert!(dropped.is_empty());
    let expected: f64 = (0..4).map(|n| 0.15 * 0.015 * f64::from(n) + 3.0 * 0.015).sum();
    assert!((expected - 0.1935).abs() < 1e-9);
    // p_C = 0.0374: until the next update one in 26.7 is dropped of those that come up, 801 / (1 - p_C) of them.
    let dropped: usize = (0..800).map(|_| port.serve(Time::from_ms(61)).1.len()).sum();
    let probability = expected * expected;
    assert_eq!(dropped, (801.0 / (1.0 - probability) * probability) as usize);
}

/// As classic packets in the test before: the base is 0.1935 after four updates, and 11 * 0.045 + 55 * 0.00225 after eleven.
#[test]
fn low_latency_packets_alone_that_wait_for_long_are_dropped_in_the_end() {
    let mut port = Port::new(managed(defaults::<Dualpi2Config>(), 100_000), Rate(100_000_000));
    let low = |name| Packet { seq: name, size: 1500, class: 1, ..Packet::default() };
    (0..3000).for_each(|name| assert!(port.offer_packet(Time::ZERO, low(name)).is_empty()));
    let (_, dropped) = port.serve(Time::from_ms(60));
    assert!(dropped.is_empty());
    assert!((port.discipline().base - 0.1935).abs() < 1e-9);
    let dropped: usize = (0..100).map(|_| port.serve(Time::from_ms(165)).1.len()).sum();
    assert!((port.discipline().base - 0.61875).abs() < 1e-9);
    assert!(dropped > 30, "{dropped}");
}

#[test]
fn low_latency_packets_go_first_unless_classic_ones_have_waited_much_longer() {
    let mut port = Port::new(managed(defaults::<Dualpi2Config>(), 1000), Rate(100_000_000));
    let packet = |name, flags| Packet { seq: name, size: 1500, class: 1, flags, ..Packet::default() };
    port.offer_packet(Time::ZERO, packet(0, flag::NOT_CAPABLE));
    port.offer_packet(Time::from_ms(30), packet(1, 0));
    port.offer_packet(Time::from_ms(31), packet(2, 0));
    let order: Vec<u64> = (0..3).map(|_| port.serve(Time::from_ms(31)).0.unwrap().seq).collect();
    assert_eq!(order, [1, 0, 2]);
}
