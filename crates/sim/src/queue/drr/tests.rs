use super::super::managed::ManagedConfig;
use super::super::managed::tests::{Port, config as managed};
use super::*;
use crate::engine::random::RandomStream;
use crate::units::{Rate, Time};

fn drr(quantum: u32, packets: u32) -> Port<Drr> {
    Port::new(managed(DrrConfig { quantum }, packets), Rate(100_000_000))
}

#[test]
fn turns_follow_the_example_of_the_paper() {
    // SIGCOMM 1995, Figures 2 and 3: quantum 500; queue 1 holds 200, 750, 20; queue 2 500, 500; 3 100, 700; 4 50, 200.
    let mut port = drr(500, 100);
    let queues: [&[u16]; 4] = [&[200, 750, 20], &[500, 500], &[100, 700], &[50, 200]];
    for (flow, sizes) in queues.iter().enumerate() {
        sizes.iter().for_each(|&size| assert_eq!(port.offer(Time::ZERO, flow as u32, 0, size), [0u64; 0]));
    }
    let order: Vec<(u32, u16)> =
        std::iter::from_fn(|| port.serve(Time::ZERO).0).map(|p| (p.flow, p.size)).collect();
    // First turns leave 300 to queue 1, 0 to queue 2, 400 to queue 3; queue 4 is done.
    let first = [(0, 200), (1, 500), (2, 100), (3, 50), (3, 200)];
    let second = [(0, 750), (0, 20), (1, 500), (2, 700)];
    assert_eq!(order, [&first[..], &second[..]].concat());
}

#[test]
fn backlogged_flows_are_never_apart_by_more_than_a_quantum_and_two_packets() {
    // Shreedhar and Varghese, Lemma 2: less than quantum + 2 max.
    let mut port = drr(1500, 100_000);
    let mut random = RandomStream::new(1, "sizes");
    for name in 0..4000 {
        for flow in 0..5 {
            port.offer(Time::ZERO, flow, name, 64 + random.below(1436) as u16);
        }
    }
    let mut bytes = [0i64; 5];
    for _ in 0..10_000 {
        let packet = port.serve(Time::ZERO).0.unwrap();
        bytes[packet.flow as usize] += i64::from(packet.size);
        let apart = bytes.iter().max().unwrap() - bytes.iter().min().unwrap();
        assert!(apart < 1500 + 2 * 1500, "{bytes:?}");
    }
}

#[test]
fn the_longest_queue_pays_for_a_full_port() {
    let mut port = drr(1500, 4);
    for (flow, name) in [(0, 0), (0, 1), (0, 2), (1, 10)] {
        assert_eq!(port.offer(Time::ZERO, flow, name, 1000), [0u64; 0]);
    }
    assert_eq!(port.offer(Time::ZERO, 2, 20, 1000), [0]);
    assert_eq!(port.offer(Time::ZERO, 2, 21, 1000), [1]);
    let left: Vec<u64> = std::iter::from_fn(|| port.serve(Time::ZERO).0).map(|packet| packet.seq).collect();
    assert_eq!(left, [2, 10, 20, 21]);
}

#[test]
fn a_packet_larger_than_the_whole_buffer_is_dropped_itself() {
    let limit = Limit { bytes: Bytes(500), ..Limit::NONE };
    let discipline = DrrConfig { quantum: 1500 };
    let mut port = Port::new(ManagedConfig { limit, ..managed(discipline, 0) }, Rate(1_000_000));
    assert_eq!(port.offer(Time::ZERO, 0, 0, 1000), [0]);
    assert_eq!(port.serve(Time::ZERO).0.map(|packet| packet.seq), None);
}
