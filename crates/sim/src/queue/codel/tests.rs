use super::super::managed::tests::{Port, config as managed};
use super::*;
use crate::packet::{Packet, flag};
use crate::units::Rate;

fn codel(fixed_point: bool, ecn: bool) -> CodelConfig {
    let (target, interval) = (Time::from_ms(5), Time::from_ms(100));
    CodelConfig { target, interval, minimum: Some(1500), fixed_point, ecn }
}

fn port(config: CodelConfig) -> Port<CodelQueue> {
    Port::new(managed(config, 100_000), Rate(100_000_000))
}

/// A queue that was filled at once and is served a packet a millisecond: when packets were dropped, in microseconds.
fn drop_times(port: &mut Port<CodelQueue>, served: u64) -> Vec<u64> {
    (0..5000).for_each(|name| assert_eq!(port.offer(Time::ZERO, 0, name, 1500), [0u64; 0]));
    let dropped = |ms| vec![ms * 1000; port.serve(Time::from_ms(ms)).1.len()];
    (0..served).flat_map(dropped).collect()
}

#[test]
fn drops_come_an_interval_after_the_target_is_passed_and_then_by_the_inverse_root() {
    // Above target from 5 ms on, first drop 100 ms later; then 100, 70.7, 57.7, 50, 44.7, 40.8, 37.8 ms later each, at
    // the next departure.
    let exact = [105.0, 205.0, 275.71, 333.45, 383.45, 428.17, 468.99, 506.79];
    let expected: Vec<u64> = exact.iter().map(|ms: &f64| ms.ceil() as u64 * 1000).collect();
    assert_eq!(drop_times(&mut port(codel(false, false)), 520), expected);
}

#[test]
fn in_fixed_point_the_first_steps_are_shorter_and_the_rest_alike() {
    // One Newton step from 1 gives 1/2 for 1/sqrt(2), then 0.5625 and 0.4878: 50, 56.3 and 48.8 ms where the law has 70.7,
    // 57.7 and 50.
    let exact = drop_times(&mut port(codel(false, false)), 2000);
    let fixed = drop_times(&mut port(codel(true, false)), 2000);
    assert_eq!(fixed[..5], [105_000, 205_000, 255_000, 312_000, 361_000]);
    assert!(exact.len() > 90 && exact.len().abs_diff(fixed.len()) <= 4, "{} {}", exact.len(), fixed.len());
}

#[test]
fn newtons_step_follows_the_inverse_root() {
    let mut state = Codel { count: 1, inverse: u16::MAX, ..Codel::default() };
    for count in 2..200 {
        state.count = count;
        state.improve();
        let exact = 65_536.0 / f64::from(count).sqrt();
        let off = (f64::from(state.inverse) - exact).abs() / exact;
        assert!(off < if count == 2 { 0.3 } else { 0.03 }, "{count}: {} {exact}", state.inverse);
    }
}

#[test]
fn a_queue_below_the_target_is_left_alone_and_the_last_packet_is_never_dropped() {
    let mut queue = port(codel(false, false));
    for ms in 0..500 {
        assert_eq!(queue.offer(Time::from_ms(ms), 0, ms, 1500), [0u64; 0]);
        assert!(queue.serve(Time::from_ms(ms + 4)).1.is_empty());
    }
    // One packet at a time waits for very long.
    for second in 1..20 {
        queue.offer(Time::from_ms(1000 * second), 0, second, 1500);
        assert!(queue.serve(Time::from_ms(1000 * second + 999)).1.is_empty());
    }
}

#[test]
fn senders_that_react_are_marked_and_the_others_dropped() {
    let mut queue = port(codel(false, true));
    for name in 0..1000 {
        // Every second one cannot be marked.
        let flags = if name % 2 == 0 { 0 } else { flag::NOT_CAPABLE };
        queue
            .offer_packet(Time::ZERO, Packet { seq: name, size: 1500, class: 1, flags, ..Packet::default() });
    }
    let (mut marked, mut dropped) = (Vec::new(), Vec::new());
    for ms in 0..400 {
        let (packet, dropped_now) = queue.serve(Time::from_ms(ms));
        marked.extend(packet.filter(Packet::marked).map(|packet| packet.seq));
        dropped.extend(dropped_now);
    }
    // Of the five that are due by then (105, 205, 276, 334, 384 ms) those with an odd name are dropped; what leaves
    // after them has the next name.
    assert_eq!(marked.len() + dropped.len(), 5, "{marked:?} {dropped:?}");
    assert!(marked.iter().all(|name| name % 2 == 0) && dropped.iter().all(|name| name % 2 == 1));
    assert_eq!(queue.take_marks(), marked.len() as u64);
}

#[test]
fn a_queue_that_keeps_one_largest_packet_is_left_alone() {
    // Two full frames wait whenever one leaves, always for more than the target.
    let dropped = |minimum: Option<u32>| -> usize {
        let mut queue = port(CodelConfig { minimum, ..codel(false, false) });
        queue.offer(Time::ZERO, 0, 0, 1514);
        let mut step = |n: u64| {
            queue.offer(Time::from_ms(10 * n), 0, n + 1, 1514);
            queue.serve(Time::from_ms(10 * n + 9)).1.len()
        };
        (0..200).map(&mut step).sum()
    };
    // What is dropped leaves one frame at a time.
    assert_eq!([None, Some(1515), Some(1500)].map(dropped), [0, 0, 1]);
}
