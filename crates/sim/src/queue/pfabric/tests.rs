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
        if let Verdict::Dropped(gone) = queue.enqueue(id, &mut packets, Time::ZERO) {
            dropped.push(packets[gone].seq);
        }
    }
    let left =
        std::iter::from_fn(|| queue.dequeue(0, &mut packets, Time::ZERO).map(|id| packets[id].seq)).collect();
    assert!(queue.is_empty() && queue.bytes() == 0);
    (dropped, left)
}

#[test]
fn the_earliest_packet_of_the_most_urgent_flow_leaves_first() {
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
fn a_full_port_drops_the_packet_with_the_most_left_whichever_it_is() {
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

/// The same queue, said plainly: a list that is searched for everything.
struct Model {
    limit: u64,
    /// (priority, flow, size, name), in the order in which they came.
    packets: Vec<(u32, u64, u64, u64)>,
}

impl Model {
    fn enqueue(&mut self, packet: (u32, u64, u64, u64)) -> Option<u64> {
        self.packets.push(packet);
        if self.packets.iter().map(|p| p.2).sum::<u64>() <= self.limit {
            return None;
        }
        let largest = self.packets.iter().map(|p| p.0).max()?;
        let at = self.packets.iter().rposition(|p| p.0 == largest)?;
        Some(self.packets.remove(at).3)
    }

    fn dequeue(&mut self) -> Option<u64> {
        let smallest = self.packets.iter().map(|p| p.0).min()?;
        let flow = self.packets.iter().find(|p| p.0 == smallest)?.1;
        let at = self.packets.iter().position(|p| p.1 == flow)?;
        Some(self.packets.remove(at).3)
    }
}

#[test]
fn any_traffic_is_served_as_by_a_list_that_is_searched() {
    let mut random = RandomStream::new(5, "pfabric");
    for round in 0..200u64 {
        let limit = 100 + random.below(40_000);
        let mut packets = PacketSlab::new();
        let mut queue = Pfabric::new(Bytes(limit));
        let mut model = Model { limit, packets: Vec::new() };
        for name in 0..400 {
            if random.below(5) < 2 {
                let left = queue.dequeue(0, &mut packets, Time::ZERO);
                let left = left.map(|id| (packets[id].seq, packets.remove(id)).0);
                assert_eq!(left, model.dequeue(), "round {round}");
                continue;
            }
            let flow = random.below(6) as u32;
            // Few numbers, so that there are ties.
            let packet = match random.below(4) {
                0 => Packet { flow, ..ack(name) },
                _ => data(flow, 1 + random.below(5) as u32, name),
            };
            let packet = Packet { size: (packet.size + random.below(1400) as u16).min(1500), ..packet };
            // A signal is a flow of its own in the model.
            let is_data = packet.kind == PacketKind::Data;
            let (priority, flow) = if is_data { (packet.aux, u64::from(flow)) } else { (0, 100 + name) };
            let id = packets.insert(packet);
            let dropped = match queue.enqueue(id, &mut packets, Time::ZERO) {
                Verdict::Queued => None,
                Verdict::Dropped(gone) => Some((packets[gone].seq, packets.remove(gone)).0),
            };
            let expected = model.enqueue((priority, flow, u64::from(packet.size), name));
            assert_eq!(dropped, expected, "round {round}");
            assert_eq!(queue.bytes(), model.packets.iter().map(|p| p.2).sum::<u64>());
        }
        while let Some(expected) = model.dequeue() {
            assert_eq!(queue.dequeue(0, &mut packets, Time::ZERO).map(|id| packets[id].seq), Some(expected));
        }
        assert!(queue.is_empty());
    }
}
