use super::super::managed::tests::{Port, config as managed, defaults};
use super::*;
use crate::packet::{Packet, flag};

fn config(weight: f64) -> RedConfig {
    let (min_th, max_th, mean_packet) = (Bytes(10_000), Bytes(30_000), Bytes(1000));
    RedConfig { min_th, max_th, weight, mean_packet, ecn: false, ..defaults() }
}

fn red(config: RedConfig) -> Red {
    config.start(Limit::NONE, &PortPlace { rate: Rate(8_000_000), ..PortPlace::TEST })
}

#[test]
fn the_average_follows_the_queue_and_decays_over_idle_time() {
    let mut red = red(config(0.25));
    red.idle_since = None;
    red.average_over(1000, Time::ZERO);
    red.average_over(1000, Time::ZERO);
    assert_eq!(red.average, 437.5);
    // Three packets of 1000 B could have passed at 8 Mbps in 3.9 ms.
    red.idle_since = Some(Time::ZERO);
    red.average_over(0, Time::from_us(3_900));
    assert!((red.average - 437.5 * 0.75f64.powi(4)).abs() < 1e-9, "{}", red.average);
}

#[test]
fn the_time_in_which_the_last_packet_is_sent_is_not_idle_time() {
    // Three packets of 1 ms come every 3 ms: the link is never idle. They find 0, 0 and 1000 B waiting.
    let own = RedConfig { min_th: Bytes(100_000), max_th: Bytes(200_000), ..config(0.25) };
    let mut port = Port::new(managed(own, 1000), Rate(8_000_000));
    for turn in 0..100 {
        let at = Time::from_ms(3 * turn);
        port.offer(at, 0, 0, 1000);
        port.serve(at);
        port.offer(at, 0, 1, 1000);
        port.offer(at, 0, 2, 1000);
        port.serve(at + Time::from_ms(1));
        port.serve(at + Time::from_ms(2));
    }
    // a = 250 + (3/4)^3 a after the third one.
    assert!((port.discipline().average - 16_000.0 / 37.0).abs() < 1e-9, "{}", port.discipline().average);
    // The link is idle from 300 ms on: at 303.5 ms three packets could have passed.
    port.offer(Time::from_us(303_500), 0, 3, 1000);
    let decayed = 16_000.0 / 37.0 * 0.75f64.powi(4);
    assert!((port.discipline().average - decayed).abs() < 1e-9, "{}", port.discipline().average);
}

#[test]
fn the_probability_has_the_published_shape() {
    let mut red = red(config(1.0));
    let mut at = |average| {
        red.average = average;
        red.base_probability()
    };
    assert_eq!([10_000.0, 20_000.0].map(&mut at), [Some(0.0), Some(0.05)]);
    assert!((at(30_000.0).unwrap() - 0.1).abs() < 1e-12);
    assert!((at(45_000.0).unwrap() - 0.55).abs() < 1e-12);
    assert_eq!(at(60_000.0), None);
}

#[test]
fn gaps_between_signals_are_uniform_up_to_the_inverse_of_the_probability() {
    let mut red = red(config(1.0));
    red.average = 20_000.0;
    let (mut gap, mut gaps) = (0usize, vec![0u32; 22]);
    for _ in 0..42_000 {
        gap += 1;
        if red.fate() == Fate::Signal {
            gaps[gap] += 1;
            gap = 0;
        }
    }
    // pb = 0.05, counted from the signal itself: gaps of 1 to 20 packets (Floyd and Jacobson, §7: uniform).
    let total: u32 = gaps.iter().sum();
    assert_eq!(gaps[0] + gaps[21], 0, "{gaps:?}");
    assert!(gaps[1..20].iter().all(|&n| n.abs_diff(total / 20) < total / 60), "{gaps:?}");
}

#[test]
fn senders_that_react_are_marked_until_the_upper_end_is_reached() {
    let certain = RedConfig { probability: 1.0, ecn: true, ..config(1.0) };
    let mut port = Port::new(managed(certain, 1000), Rate(8_000_000));
    let mut offer = |name, flags| {
        let packet = Packet { seq: name, size: 1000, class: 1, flags, ..Packet::default() };
        port.offer_packet(Time::ZERO, packet).len()
    };
    // Between min and max with p = 1: some are signalled; those that cannot be marked are dropped.
    let dropped: usize = (0..30).map(|name| offer(name, 0)).sum();
    assert_eq!(dropped, 0);
    assert!((0..30).map(|name| offer(100 + name, flag::NOT_CAPABLE)).sum::<usize>() > 20);
    // Up to 2 max all are marked, above all are dropped.
    let dropped: usize = (0..60).map(|name| offer(200 + name, 0)).sum();
    assert!((29..=31).contains(&dropped), "{dropped}");
    assert!(port.take_marks() > 20);
}
