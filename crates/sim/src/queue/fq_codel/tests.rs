use super::super::managed::tests::{Port, config as managed, defaults};
use super::*;
use crate::units::{Rate, Time};

fn fq(queues: u32, packets: u32) -> Port<FqCodel> {
    let config = FqCodelConfig { queues, ..defaults() };
    Port::new(managed(config, packets), Rate(100_000_000))
}

#[test]
fn flows_share_by_bytes_whatever_the_size_of_their_packets() {
    let mut port = fq(0, 10_240);
    for name in 0..600 {
        port.offer(Time::ZERO, 0, name, 1500);
        port.offer(Time::ZERO, 1, name, 300);
        port.offer(Time::ZERO, 2, name, 750);
    }
    let mut bytes = [0i64; 3];
    for _ in 0..500 {
        let packet = port.serve(Time::ZERO).0.unwrap();
        bytes[packet.flow as usize] += i64::from(packet.size);
        // Nobody is ahead of another by more than a quantum and a packet.
        let (max, min) = (bytes.iter().max().unwrap(), bytes.iter().min().unwrap());
        assert!(max - min <= 2 * 1500, "{bytes:?}");
    }
}

#[test]
fn a_new_flow_goes_before_those_that_have_had_their_turn() {
    let mut port = fq(1024, 10_240);
    (0..10).for_each(|name| assert_eq!(port.offer(Time::ZERO, 0, name, 1500), [0u64; 0]));
    port.serve(Time::ZERO);
    port.offer(Time::ZERO, 1, 100, 100);
    port.offer(Time::ZERO, 1, 101, 100);
    let order: Vec<u64> = (0..4).map(|_| port.serve(Time::ZERO).0.unwrap().seq).collect();
    assert_eq!(order, [100, 101, 1, 2]);
}

#[test]
fn a_full_port_drops_half_of_the_fattest_queue_or_a_batch_from_its_head() {
    let mut port = fq(0, 100);
    (0..60).for_each(|name| assert_eq!(port.offer(Time::ZERO, 0, name, 1500), [0u64; 0]));
    (0..40).for_each(|name| assert_eq!(port.offer(Time::ZERO, 1, 1000 + name, 1500), [0u64; 0]));
    // Half of 60 packets, though the one that comes is another flow's.
    let dropped = port.offer(Time::ZERO, 2, 2000, 64);
    assert_eq!(dropped, (0..30).collect::<Vec<_>>());
    let mut port = fq(0, 300);
    (0..300).for_each(|name| assert_eq!(port.offer(Time::ZERO, 0, name, 1500), [0u64; 0]));
    assert_eq!(port.offer(Time::ZERO, 0, 300, 1500).len(), 64);
}

#[test]
fn of_queues_equally_fat_the_one_used_first_pays_wherever_it_is_hashed_to() {
    for second in 1..20 {
        let mut port = fq(1024, 4);
        for (flow, name) in [(0, 0), (0, 1), (second, 10), (second, 11)] {
            assert_eq!(port.offer(Time::ZERO, flow, name, 1500), [0u64; 0]);
        }
        assert_eq!(port.offer(Time::ZERO, 100, 20, 64), [0]);
    }
}

#[test]
fn hashed_flows_collide_as_often_as_chance_has_it() {
    let mut used = std::collections::BTreeMap::new();
    let mut port = defaults::<FqCodelConfig>().start(Limit::NONE, &PortPlace::TEST);
    for flow in 0..1026u32 {
        let packet = crate::packet::Packet { flow, src: flow, dst: 2000 + flow, ..Default::default() };
        let key = super::super::managed::flow_key(&packet);
        *used.entry(port.place_of(key, |_| 0)).or_insert(0u32) += 1;
    }
    // 1024 (1 - e^-1.002) = 648 of the queues have a flow, give or take 16.
    assert!((600..700).contains(&used.len()), "{}", used.len());
    // Flows that share a queue share its rate: the index of 1026 flows is about 0.824 (spec of the published column).
    let rates: Vec<f64> = used.values().flat_map(|&n| vec![1.0 / f64::from(n); n as usize]).collect();
    let (sum, squares) = (rates.iter().sum::<f64>(), rates.iter().map(|r| r * r).sum::<f64>());
    let jain = sum * sum / (rates.len() as f64 * squares);
    assert!((jain - 0.824).abs() < 0.02, "{jain}");
}
