use super::*;
use crate::congestion::window::FlowPath;
use crate::parameters::Nothing;

const MSS: u64 = 4_000;

fn started(released: bool, packets: u64, hops: u32) -> (Swift, CongestionWindow) {
    let mut parameters = SwiftParameters::read(&mut Parameters::new(&mut Nothing::default()), Profile::Rfc);
    parameters.released = Some(released);
    let path = FlowPath { hops, base_rtt: None };
    let flow = WindowContext { initial: packets * MSS, mss: MSS, packet: MSS, random: 0, path };
    let mut window =
        CongestionWindow { cwnd: flow.initial, ssthresh: 0, pacing: None, paced: false, mss: MSS };
    let mut law = parameters.start(&flow);
    law.on_start(Time::ZERO, None, &mut window);
    (law, window)
}

#[test]
fn the_target_scales_with_the_window_and_with_hops() {
    // By hand: alpha = 100 us / (1 / sqrt(0.1) - 0.1) = 32.6554 us; with 15 packets 32.6554 / 3.873 - 3.26554 = 5.166 us.
    let (law, _) = started(true, 15, 2);
    assert!((law.target().as_us() - 25.166).abs() < 1e-3, "{}", law.target());
    let (law, _) = started(false, 15, 2);
    assert!((law.target().as_us() - 25.166 - 2.0 * 3.053).abs() < 1e-3, "{}", law.target());
    assert_eq!(started(true, 100, 0).0.target(), Time::from_us(20));
    // Below one packet the released code divides by zero: all of the range.
    let mut law = started(true, 1, 0).0;
    law.fabric.window = 3_999.0;
    assert_eq!(law.target(), Time::from_us(120));
}

#[test]
fn the_target_of_the_own_path_follows_a_change_of_routes() {
    let (given, _) = started(false, 100, 3);
    let network = Time::from_us(8);
    let mut parameters = SwiftParameters { base_target: None, per_hop: None, range: None, ..given.p };
    parameters.settle(network);
    let path = |hops, us| FlowPath { hops, base_rtt: Some(Time::from_us(us)) };
    let flow = WindowContext { initial: 100 * MSS, mss: MSS, packet: MSS, random: 0, path: path(3, 8) };
    let mut law = parameters.start(&flow);
    // An allowance of 8 us / 32 for each switch, before and after.
    assert_eq!(law.target(), Time::from_ns(8_000 + 3 * 250));
    law.on_path(&path(5, 12));
    assert_eq!(law.target(), Time::from_ns(12_000 + 5 * 250));
    // With a base of its own only the switches change.
    let mut law = given;
    law.on_path(&path(5, 12));
    assert_eq!(law.target(), Time::from_ns(20_000 + 5 * 3_053));
}

#[test]
fn below_the_target_a_packet_per_round_trip_is_added_and_above_it_the_excess_is_cut_once() {
    let (mut law, _) = started(false, 10, 0);
    law.take(Time::from_us(10), Time::ZERO, MSS, Time::from_us(10));
    assert!((law.fabric.window - 40_400.0).abs() < 1e-6);
    // Twice the target: a cut of 0.8 / 2, and no other one within a round trip.
    let target = law.target();
    let delay = Time(target.0 * 2);
    law.take(delay, Time::ZERO, MSS, Time::from_us(100));
    assert!((law.fabric.window - 40_400.0 * 0.6).abs() < 1.0, "{}", law.fabric.window);
    let after = law.fabric.window;
    law.take(delay, Time::ZERO, MSS, Time::from_us(101));
    assert_eq!(law.fabric.window, after);
}

#[test]
fn below_one_packet_the_window_is_a_pace() {
    let (mut law, mut window) = started(false, 1, 0);
    law.srtt = Time::from_us(50);
    law.fabric.window = 1_000.0;
    law.apply(&mut window);
    // A quarter of a packet per 50 us.
    assert_eq!(window.cwnd, MSS);
    assert_eq!(window.pacing, Some(Rate(160_000_000)));
    law.fabric.window = 4_000.0;
    law.apply(&mut window);
    assert_eq!(window.pacing, None);
}

#[test]
fn losses_cut_once_a_round_trip_and_five_timeouts_leave_the_smallest_window() {
    let (mut law, window) = started(false, 16, 0);
    law.srtt = Time::from_us(20);
    let event = |us, by, in_flight| Congestion { now: Time::from_us(us), in_flight, by };
    law.on_congestion(&event(100, Signal::Loss, MSS), &window);
    law.on_congestion(&event(110, Signal::Loss, MSS), &window);
    assert_eq!(law.fabric.window, 32_000.0);
    // A mark is not Swift's, and a timeout while nothing is in flight tells nothing.
    law.on_congestion(&event(200, Signal::Mark, MSS), &window);
    law.on_congestion(&event(200, Signal::Timeout, 0), &window);
    assert_eq!(law.fabric.window, 32_000.0);
    for i in 1..=5 {
        law.on_congestion(&event(1_000 * i, Signal::Timeout, MSS), &window);
    }
    assert_eq!(law.fabric.window, 40.0);
}

#[test]
fn hosts_have_a_window_of_their_own_from_the_first_time_that_they_take() {
    let (mut law, mut window) = started(false, 10, 0);
    let us = Time::from_us;
    law.take(us(10), Time::ZERO, MSS, us(10));
    assert!(law.hosts.is_none());
    // 10 us of a round trip of 220 us are the fabric's, below its target: both windows begin with what there was before.
    law.take(us(220), us(210), MSS, us(1_000));
    let hosts = law.hosts.expect("a second window");
    // 40 400 bytes, of which 0.8 * 110 / 210 are cut; the fabric's grows by 4 000^2 / 40 400.
    assert!((hosts.limit.window - 40_400.0 * (1.0 - 0.8 * 110.0 / 210.0)).abs() < 0.01, "{hosts:?}");
    assert!((law.fabric.window - 40_400.0 - 16e6 / 40_400.0).abs() < 1e-6);
    assert_eq!((law.window(), law.fabric.last_decrease), (hosts.limit.window, Time::ZERO));
    law.apply(&mut window);
    assert_eq!(window.cwnd, 5 * MSS);
    // The mean: 210 + (50 - 210) / 8 = 190 us, within a round trip of the last decrease; below its target it grows.
    law.take(us(60), us(50), MSS, us(1_001));
    assert!((law.hosts.unwrap().delay - 190e6).abs() < 1.0 && law.window() == hosts.limit.window);
    for n in 0..20 {
        law.take(us(60), us(50), MSS, us(1_002 + n));
    }
    assert!(law.window() > hosts.limit.window && law.fabric.window > law.window());
    // A loss cuts both.
    let (fabric, own) = (law.fabric.window, law.window());
    law.on_congestion(&Congestion { now: us(9_000), in_flight: MSS, by: Signal::Loss }, &window);
    assert_eq!((law.fabric.window, law.window()), (fabric / 2.0, own / 2.0));
    // The released code has one window for the whole round trip.
    let (mut law, _) = started(true, 10, 0);
    law.take(us(220), us(210), MSS, us(1_000));
    assert!(law.hosts.is_none() && law.fabric.window < 40_000.0);
}
