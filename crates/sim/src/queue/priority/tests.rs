use super::*;
use crate::packet::Packet;

fn port(limit: Option<Bytes>, drop: DropRule) -> Priority {
    PriorityConfig { limit, drop, trimming: None }.start(&PortPlace::TEST)
}

#[test]
fn the_lower_class_leaves_first() {
    let mut packets = PacketSlab::new();
    let mut queue = port(None, DropRule::Lowest);
    for class in [5, 2, 7, 2] {
        let id = packets.insert(Packet { class, size: 1, ..Packet::default() });
        queue.enqueue(id, &mut packets, Time::ZERO);
    }
    let order: Vec<u8> =
        std::iter::from_fn(|| queue.dequeue(0, &mut packets, Time::ZERO).map(|id| packets[id].class))
            .collect();
    assert_eq!(order, [2, 2, 5, 7]);
}

/// Offers packets of 100 bytes, (class, name), to a port of 300: which were dropped, and which left in which order.
fn through_a_full_port(drop: DropRule, offered: &[(u8, u32)]) -> (Vec<u32>, Vec<u32>) {
    let offered: Vec<_> = offered.iter().map(|&(class, name)| (class, name, 100)).collect();
    through_a_port_of_300(drop, &offered)
}

/// The same of packets of several sizes: (class, name, size).
fn through_a_port_of_300(drop: DropRule, offered: &[(u8, u32, u16)]) -> (Vec<u32>, Vec<u32>) {
    let mut packets = PacketSlab::new();
    let mut queue = port(Some(Bytes(300)), drop);
    let mut dropped = Vec::new();
    for &(class, aux, size) in offered {
        let id = packets.insert(Packet { class, aux, size, ..Packet::default() });
        let mut verdict = queue.enqueue(id, &mut packets, Time::ZERO);
        while let Some(removed) = verdict.next_dropped(&packets) {
            dropped.push(packets[removed].aux);
            packets.remove(removed);
        }
        assert!(queue.bytes() - queue.class_bytes(0) <= 300);
    }
    let left =
        std::iter::from_fn(|| queue.dequeue(0, &mut packets, Time::ZERO).map(|id| packets[id].aux)).collect();
    (dropped, left)
}

#[test]
fn a_full_port_drops_the_youngest_of_the_lowest_priority_class() {
    let offered = [(2, 0), (3, 1), (3, 2), (1, 3), (3, 4), (2, 5), (2, 6), (0, 7)];
    let (dropped, left) = through_a_full_port(DropRule::Lowest, &offered);
    assert_eq!((dropped, left), (vec![2, 4, 1, 6], vec![7, 3, 0, 5]));
}

#[test]
fn a_large_packet_displaces_as_many_small_ones_as_it_needs_or_is_dropped() {
    let small = [(5, 0, 100), (5, 1, 60), (4, 2, 60), (3, 3, 60)];
    let offer = |large| through_a_port_of_300(DropRule::Lowest, &[&small[..], &[large]].concat());
    assert_eq!(offer((2, 9, 180)), (vec![0, 1], vec![9, 3, 2]));
    // All that is less urgent than class 4 has 160 bytes.
    assert_eq!(offer((4, 9, 180)), (vec![0, 1], vec![3, 2, 9]));
    assert_eq!(offer((4, 9, 181)), (vec![9], vec![3, 2, 0, 1]));
}

#[test]
fn a_drop_tail_port_refuses_the_new_one_whatever_its_class() {
    let offered = [(3, 0), (3, 1), (3, 2), (1, 3), (0, 4)];
    assert_eq!(through_a_full_port(DropRule::Tail, &offered), (vec![3], vec![4, 0, 1, 2]));
}

#[test]
fn for_a_packet_that_the_buffer_refuses_as_many_bytes_of_less_urgent_ones_are_dropped() {
    let exchanged = |drop, class, size| {
        let mut packets = PacketSlab::new();
        let mut queue = port(None, drop);
        for (class, aux, size) in [(5, 0, 100), (5, 1, 60), (2, 2, 100)] {
            let id = packets.insert(Packet { class, aux, size, ..Packet::default() });
            queue.enqueue(id, &mut packets, Time::ZERO);
        }
        let id = packets.insert(Packet { class, aux: 9, size, ..Packet::default() });
        let mut verdict = queue.exchange(id, &mut packets, Time::ZERO);
        let dropped = std::iter::from_fn(|| verdict.next_dropped(&packets).map(|id| packets[id].aux));
        (dropped.collect::<Vec<u32>>(), queue.bytes())
    };
    assert_eq!(exchanged(DropRule::Lowest, 2, 60), (vec![1], 260));
    assert_eq!(exchanged(DropRule::Lowest, 2, 160), (vec![0, 1], 260));
    assert_eq!(exchanged(DropRule::Lowest, 2, 161), (vec![9], 260));
    assert_eq!(exchanged(DropRule::Lowest, 5, 60), (vec![9], 260));
    assert_eq!(exchanged(DropRule::Tail, 2, 60), (vec![9], 260));
}
