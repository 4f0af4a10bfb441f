use super::*;
use crate::packet::Packet;

fn classes_served(arrivals: &[u8], paused: u8) -> Vec<u8> {
    let mut packets = PacketSlab::new();
    let mut queue = Fifo::default();
    for &class in arrivals {
        let id = packets.insert(Packet { class, size: 100, ..Packet::default() });
        assert_eq!(queue.enqueue(id, &mut packets, Time::ZERO), Verdict::Queued);
    }
    assert_eq!(queue.bytes(), 100 * arrivals.len() as u64);
    std::iter::from_fn(|| queue.dequeue(paused, &mut packets, Time::ZERO).map(|id| packets[id].class))
        .collect()
}

#[test]
fn class_zero_goes_first_and_the_others_take_turns() {
    assert_eq!(classes_served(&[3, 3, 5, 5, 0, 3], 0), [0, 3, 5, 3, 5, 3]);
}

#[test]
fn a_paused_class_waits_but_class_zero_cannot_be_paused() {
    assert_eq!(classes_served(&[3, 0, 5, 3], 0b1001), [0, 5]);
}
