use super::super::managed::ManagedConfig;
use super::super::managed::tests::{Port, config as managed, defaults};
use super::*;
use crate::queue::QueueDiscipline;
use crate::units::{Bytes, Rate, Time};

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

/// RFC 8290 §4.2: an empty queue leaves the lists when its turn comes. A link that is free asks for a packet, so none is left in a list
/// then, and a flow that comes back is a new one, whatever it had sent before.
#[test]
fn a_flow_that_comes_back_to_an_idle_port_is_a_new_one() {
    let order = |idle: bool| {
        let mut port = fq(0, 100);
        port.offer(Time::ZERO, 0, 0, 1500);
        port.serve(Time::ZERO);
        if idle {
            port.queue.rest();
        }
        for (flow, name) in [(0, 1), (0, 2), (1, 10), (1, 11)] {
            port.offer(Time::ZERO, flow, name, 1500);
        }
        (0..4).map(|_| port.serve(Time::ZERO).0.unwrap().seq).collect::<Vec<_>>()
    };
    // While its packet is being sent, flow 0 has had its turn.
    assert_eq!((order(true), order(false)), (vec![1, 10, 2, 11], vec![10, 1, 11, 2]));
    // A NIC with room for more asks as well.
    let nic = |nic_packets| {
        let mut port = Port::new(
            ManagedConfig { nic_packets, ..managed(FqCodelConfig { queues: 0, ..defaults() }, 100) },
            Rate(100_000_000),
        );
        for (flow, name) in [(0, 0), (0, 1), (0, 2), (0, 3), (1, 10), (1, 11)] {
            port.offer(Time::ZERO, flow, name, 1500);
        }
        (0..6).map(|_| port.serve(Time::ZERO).0.unwrap().seq).collect::<Vec<_>>()
    };
    assert_eq!(nic(2), [0, 1, 10, 2, 11, 3]);
}

#[test]
fn no_more_than_the_limit_in_bytes_waits_however_small_a_batch_is() {
    let config = FqCodelConfig { queues: 0, batch: 1, ..defaults() };
    let limit = Limit { bytes: Bytes(3000), ..Limit::NONE };
    let mut port = Port::new(ManagedConfig { limit, ..managed(config, 0) }, Rate(100_000_000));
    (0..20).for_each(|name| assert_eq!(port.offer(Time::ZERO, 0, name, 100), [0u64; 0]));
    // Of 3500 B the five first packets of the fattest queue go.
    assert_eq!(port.offer(Time::ZERO, 1, 100, 1500), [0, 1, 2, 3, 4]);
    assert_eq!(port.queue.bytes(), 3000);
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
