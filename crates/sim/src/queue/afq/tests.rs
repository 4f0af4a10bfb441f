use super::super::managed::tests::{Port, config as managed};
use super::*;
use crate::units::{Rate, Time};

fn afq(rounds: u32, round_bytes: u32) -> Port<Afq> {
    let config = AfqConfig { rounds, round_bytes, sketch_rows: 2, sketch_slots: 16_384 };
    Port::new(managed(config, 100_000), Rate(100_000_000))
}

#[test]
fn a_flow_spreads_over_rounds_and_is_dropped_beyond_the_last() {
    let mut port = afq(4, 3000);
    // Two packets of 1500 a round, four rounds; the second one ends where the next round begins, and so do later ones.
    let dropped: Vec<u64> = (0..10).flat_map(|name| port.offer(Time::ZERO, 0, name, 1500)).collect();
    assert_eq!(dropped, [7, 8, 9]);
    // Another flow's first packets belong to the first round.
    assert!(port.offer(Time::ZERO, 1, 100, 1500).is_empty());
    let order: Vec<u64> = (0..4).map(|_| port.serve(Time::ZERO).0.unwrap().seq).collect();
    assert_eq!(order, [0, 100, 1, 2]);
    // A round has ended: there is room for two more of flow 0.
    let dropped: Vec<u64> = (10..13).flat_map(|name| port.offer(Time::ZERO, 0, name, 1500)).collect();
    assert_eq!(dropped, [12]);
}

#[test]
fn backlogged_flows_are_never_apart_by_more_than_two_rounds() {
    let mut port = afq(64, 3000);
    let (mut bytes, mut name) = ([0i64; 3], 0);
    for _ in 0..20_000 {
        for (flow, size) in [(0u32, 1500), (1, 300), (2, 700)] {
            name += 1;
            port.offer(Time::ZERO, flow, name, size);
        }
        let packet = port.serve(Time::ZERO).0.unwrap();
        bytes[packet.flow as usize] += i64::from(packet.size);
        let apart = bytes.iter().max().unwrap() - bytes.iter().min().unwrap();
        // All of a round, and what lies over its end, before the others have theirs.
        assert!(apart <= 3000 + 2 * 1500, "{bytes:?}");
    }
}

/// Three rounds of 3000 B by hand. Packets of flow 0 end at 1500, 3000, 4500, ...: rounds 0, 1, 1, 2, 2, and the sixth packet is beyond
/// the last. Those of flow 1, of 2000 B, end at 2000, 4000, 6000, 8000: rounds 0, 1, 2, 2. A round is sent whole before the next, each
/// queue in the order in which packets came.
#[test]
fn bids_fall_into_rounds_as_worked_out_by_hand() {
    let mut port = afq(3, 3000);
    let mut dropped = Vec::new();
    for name in 0..7 {
        dropped.extend(port.offer(Time::ZERO, 0, name, 1500));
    }
    for name in 10..14 {
        dropped.extend(port.offer(Time::ZERO, 1, name, 2000));
    }
    let counted = port.counted();
    assert_eq!((dropped, counted.get("horizon"), counted.get("buffer")), (vec![5, 6], Some(2), Some(0)));
    let order: Vec<u64> = std::iter::from_fn(|| port.serve(Time::ZERO).0).map(|p| p.seq).collect();
    assert_eq!(order, [0, 10, 1, 2, 11, 3, 4, 12, 13]);
}

/// A bid is where the packet ends (NSDI 2018, Figure 3): 9000 B that came first wait for the round of their last byte, after
/// what other flows may have sent by then.
#[test]
fn a_large_packet_waits_for_the_round_in_which_it_ends() {
    let mut port = afq(8, 3000);
    port.offer(Time::ZERO, 0, 0, 9000);
    (10..16).for_each(|name| assert!(port.offer(Time::ZERO, 1, name, 1500).is_empty()));
    let order: Vec<u64> = std::iter::from_fn(|| port.serve(Time::ZERO).0).map(|p| p.seq).collect();
    assert_eq!(order, [10, 11, 12, 13, 14, 0, 15]);
}

/// With one counter for all, flows are charged for each other: the sketch never counts too little (count-min), so they get less
/// room, not more.
#[test]
fn flows_that_share_every_counter_are_charged_for_each_other() {
    let config = AfqConfig { rounds: 4, round_bytes: 1500, sketch_rows: 2, sketch_slots: 1 };
    let mut port = Port::new(managed(config, 100_000), Rate(100_000_000));
    let dropped: Vec<u64> =
        (0..6).flat_map(|name| port.offer(Time::ZERO, name as u32 % 2, name, 1500)).collect();
    assert_eq!(dropped, [3, 4, 5]);
}

#[test]
fn a_flow_that_was_silent_begins_in_the_present_round() {
    let mut port = afq(8, 1500);
    for name in 0..100 {
        port.offer(Time::ZERO, 0, name, 1500);
        port.serve(Time::ZERO);
    }
    (0..4).for_each(|name| assert!(port.offer(Time::ZERO, 0, 200 + name, 1500).is_empty()));
    port.offer(Time::ZERO, 1, 300, 1500);
    let order: Vec<u64> = (0..3).map(|_| port.serve(Time::ZERO).0.unwrap().seq).collect();
    assert_eq!(order, [200, 300, 201]);
}

/// What a flow has sent so far does not shut it out of a port that has nothing to send.
#[test]
fn an_empty_port_takes_every_packet() {
    let mut port = afq(1, 1500);
    for name in 0..20 {
        assert!(port.offer(Time::ZERO, 0, name, 1500).is_empty());
        assert_eq!(port.offer(Time::ZERO, 0, 100 + name, 1500), [100 + name], "one round is full");
        assert_eq!(port.serve(Time::ZERO).0.unwrap().seq, name);
    }
    // The link goes down with all later rounds in use, and its queues are lost.
    let mut port = afq(32, 1500);
    (0..31).for_each(|name| assert!(port.offer(Time::ZERO, 0, name, 1500).is_empty()));
    port.lose_all();
    assert!(port.offer(Time::ZERO, 0, 32, 1500).is_empty());
    assert_eq!(port.serve(Time::ZERO).0.unwrap().seq, 32);
}
