//! pFabric's queue: by hand, and against a model that scans a plain list.

use super::*;
use crate::engine::random::RandomStream;
use crate::packet::Packet;

/// Data of a flow with so many bytes left; `seq` names the packet.
fn data(flow: u32, left: u32, name: u64) -> Packet {
    Packet { flow, aux: left, seq: name, size: 100, class: 1, ..Packet::default() }
}

fn ack(name: u64) -> Packet {
    Packet { kind: PacketKind::Ack, aux: 9999, seq: name, size: 40, class: 1, ..Packet::default() }
}

/// Offers packets to a port: the names of those dropped, and of those that then leave, in order.
fn through(limit: u64, offered: &[Packet]) -> (Vec<u64>, Vec<u64>) {
    let mut packets = PacketSlab::new();
    let mut queue = Pfabric::new(Bytes(limit));
    let mut dropped = Vec::new();
    for packet in offered {
        let id = packets.insert(*packet);
        if let Verdict::Dropped(removed) = queue.enqueue(id, &mut packets, Time::ZERO) {
            dropped.push(packets[removed].seq);
        }
    }
    let left =
        std::iter::from_fn(|| queue.dequeue(0, &mut packets, Time::ZERO).map(|id| packets[id].seq)).collect();
    assert!(queue.is_empty() && queue.bytes() == 0);
    (dropped, left)
}

#[test]
fn the_earliest_packet_of_the_highest_priority_flow_leaves_first() {
    // Flow 7 has the packet with the least left, 4, but 1 came before it and is of the same flow.
    let offered = [data(5, 500, 0), data(7, 900, 1), data(5, 400, 2), data(6, 300, 3), data(7, 200, 4)];
    // 1 for 4, then 4; then 3; then 0 for 2, and 2.
    assert_eq!(through(10_000, &offered), (vec![], vec![1, 4, 3, 0, 2]));
}

#[test]
fn of_equals_the_earliest_leaves_first_and_the_latest_is_dropped() {
    let offered = [data(1, 500, 0), data(2, 500, 1), data(3, 500, 2), data(4, 500, 3)];
    assert_eq!(through(300, &offered), (vec![3], vec![0, 1, 2]));
}

#[test]
fn a_full_port_drops_the_packet_with_the_largest_remaining_size_even_if_it_is_the_new_one() {
    let offered = [data(1, 500, 0), data(2, 800, 1), data(3, 300, 2), data(4, 400, 3), data(5, 900, 4)];
    assert_eq!(through(300, &offered), (vec![1, 4], vec![2, 3, 0]));
}

#[test]
fn signals_go_before_data_and_push_data_out() {
    let offered = [data(1, 500, 0), data(1, 400, 1), ack(2), ack(3)];
    assert_eq!(through(240, &offered), (vec![0], vec![2, 3, 1]));
    // Nothing but signals waits: the latest of them is the one that is dropped.
    assert_eq!(through(100, &[ack(0), ack(1), ack(2)]), (vec![2], vec![0, 1]));
}

#[test]
fn pauses_are_neither_counted_nor_held_back_and_paused_classes_wait() {
    let mut packets = PacketSlab::new();
    let mut queue = Pfabric::new(Bytes(300));
    let offered = [
        Packet { class: 3, ..data(1, 100, 0) },
        data(2, 200, 1),
        Packet { class: 3, ..ack(2) },
        ack(3),
        Packet { kind: PacketKind::Pause, size: 64, seq: 4, ..Packet::default() },
    ];
    for packet in offered {
        let id = packets.insert(packet);
        assert_eq!(queue.enqueue(id, &mut packets, Time::ZERO), Verdict::Queued);
    }
    assert_eq!((queue.bytes(), queue.class_bytes(0), queue.class_bytes(3)), (344, 64, 140));
    let mut leave = |paused| queue.dequeue(paused, &mut packets, Time::ZERO).map(|id| packets[id].seq);
    let paused = [leave(0b1001), leave(0b1001), leave(0b1001), leave(0b1001)];
    assert_eq!(paused, [Some(4), Some(3), Some(1), None]);
    assert_eq!([leave(0), leave(0), leave(0)], [Some(2), Some(0), None]);
}

#[test]
fn for_a_packet_that_the_buffer_refuses_as_many_bytes_of_the_largest_remaining_size_are_dropped() {
    let mut packets = PacketSlab::new();
    let mut queue = Pfabric::new(Bytes(1000));
    let small = |flow, left, name| Packet { size: 60, ..data(flow, left, name) };
    for packet in [small(1, 900, 0), small(2, 800, 1), data(3, 300, 2), ack(3)] {
        let id = packets.insert(packet);
        assert_eq!(queue.enqueue(id, &mut packets, Time::ZERO), Verdict::Queued);
    }
    let mut exchange = |packet| {
        let before = queue.bytes();
        let id = packets.insert(packet);
        let mut verdict = queue.exchange(id, &mut packets, Time::ZERO);
        let dropped: Vec<u64> =
            std::iter::from_fn(|| verdict.next_dropped(&packets).map(|id| packets[id].seq)).collect();
        assert!(queue.bytes() <= before);
        dropped
    };
    assert_eq!(exchange(data(4, 950, 4)), [4]);
    assert_eq!(exchange(data(5, 100, 5)), [1, 0]);
    assert_eq!(exchange(data(6, 300, 6)), [6], "the latest of equals");
    // Data have 200 bytes, and signals drop no signals.
    assert_eq!(exchange(Packet { size: 201, ..ack(7) }), [7]);
    assert_eq!(exchange(Packet { size: 101, ..ack(8) }), [5, 2]);
    assert_eq!(exchange(ack(9)), [9]);
}

/// The same queue, said plainly: a list that is searched for everything.
struct Model {
    limit: u64,
    /// In the order in which they came.
    packets: Vec<Modelled>,
}

struct Modelled {
    priority: u32,
    flow: u64,
    size: u64,
    class: u8,
    name: u64,
}

impl Model {
    fn bytes(&self) -> u64 {
        self.packets.iter().map(|p| p.size).sum()
    }

    fn enqueue(&mut self, packet: Modelled) -> Option<u64> {
        self.packets.push(packet);
        if self.bytes() <= self.limit {
            return None;
        }
        let largest = self.packets.iter().map(|p| p.priority).max()?;
        let at = self.packets.iter().rposition(|p| p.priority == largest)?;
        Some(self.packets.remove(at).name)
    }

    fn dequeue(&mut self, paused: u8) -> Option<u64> {
        let mut order: Vec<usize> = (0..self.packets.len()).collect();
        order.sort_by_key(|&at| self.packets[at].priority);
        let head =
            |at: usize| self.packets.iter().position(|p| p.flow == self.packets[at].flow).unwrap_or(at);
        let may = |at: &usize| paused & (1 << self.packets[*at].class) == 0;
        let at = order.into_iter().map(head).find(may)?;
        Some(self.packets.remove(at).name)
    }
}

#[test]
fn any_traffic_is_served_as_by_a_list_that_is_searched() {
    let mut random = RandomStream::new(5, "pfabric");
    let mut max_waiting = 0;
    for round in 0..300u64 {
        let limit = 100 + random.below(80_000);
        let mut packets = PacketSlab::new();
        let mut queue = Pfabric::new(Bytes(limit));
        let mut model = Model { limit, packets: Vec::new() };
        for name in 0..600 {
            // Now and then everything leaves, so that a port that held many packets holds few again.
            let leave = if random.below(200) == 0 { model.packets.len() } else { 1 };
            if leave > 1 || random.below(5) < 2 {
                let paused = if leave == 1 && random.below(3) == 0 { 1 << (1 + random.below(3)) } else { 0 };
                for _ in 0..leave {
                    let left = queue.dequeue(paused, &mut packets, Time::ZERO);
                    let left = left.map(|id| (packets[id].seq, packets.remove(id)).0);
                    assert_eq!(left, model.dequeue(paused), "round {round}");
                }
                continue;
            }
            let flow = random.below(6) as u32;
            // Few numbers, so that there are ties.
            let packet = match random.below(4) {
                0 => Packet { flow, ..ack(name) },
                _ => data(flow, 1 + random.below(5) as u32, name),
            };
            let size = (packet.size + random.below(1400) as u16).min(1500);
            let packet = Packet { size, class: 1 + random.below(3) as u8, ..packet };
            // A signal is a flow of its own in the model.
            let is_data = packet.kind == PacketKind::Data;
            let (priority, flow) = if is_data { (packet.aux, u64::from(flow)) } else { (0, 1000 + name) };
            let id = packets.insert(packet);
            let mut verdict = queue.enqueue(id, &mut packets, Time::ZERO);
            let dropped = verdict.next_dropped(&packets).map(|id| (packets[id].seq, packets.remove(id)).0);
            assert_eq!(verdict, Verdict::Queued);
            let modelled = Modelled { priority, flow, size: u64::from(size), class: packet.class, name };
            assert_eq!(dropped, model.enqueue(modelled), "round {round}");
            assert_eq!(queue.bytes(), model.bytes());
            max_waiting = max_waiting.max(model.packets.len());
        }
        while let Some(expected) = model.dequeue(0) {
            assert_eq!(queue.dequeue(0, &mut packets, Time::ZERO).map(|id| packets[id].seq), Some(expected));
        }
        assert!(queue.is_empty());
    }
    assert!(max_waiting > 2 * few::MAX_PACKETS, "{max_waiting} packets at most: not enough for the index");
}
