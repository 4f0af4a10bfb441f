//! The RDMA switch's egress queue: eight classes, class 0 (PFC) strictly first and never paused, the others round
//! robin, first come, first served within a class.
//!
//! Source: the HPCC authors' simulator (Li et al., SIGCOMM 2019, §5.1).

use super::classes::{CLASSES, ClassLists};
use super::{QueueDiscipline, Verdict};
use crate::packet::{PacketId, PacketSlab};
use crate::units::Time;

#[derive(Debug, Clone, Default)]
#[repr(C)]
pub struct Fifo {
    /// Class served last; the search for the next one starts behind it.
    last: u8,
    lists: ClassLists,
}

impl QueueDiscipline for Fifo {
    #[inline]
    fn enqueue(&mut self, id: PacketId, packets: &mut PacketSlab, _now: Time) -> Verdict {
        self.lists.push(id, packets);
        Verdict::Queued
    }

    #[inline]
    fn dequeue(&mut self, paused: u8, packets: &mut PacketSlab, _now: Time) -> Option<PacketId> {
        let occupied = self.lists.occupied();
        if occupied & 1 != 0 {
            return Some(self.lists.pop(0, packets));
        }
        let ready = occupied & !paused;
        if ready == 0 {
            return None;
        }
        // Rotated so that the class behind the last one served comes first.
        let turn = (self.last + 1) % CLASSES as u8;
        let class = (ready.rotate_right(u32::from(turn)).trailing_zeros() as u8 + turn) % CLASSES as u8;
        self.last = class;
        Some(self.lists.pop(usize::from(class), packets))
    }

    #[inline]
    fn lets_through(&mut self, class: u8, paused: u8) -> bool {
        let through = self.lists.occupied() == 0 && (class == 0 || paused & (1 << class) == 0);
        if through && class != 0 {
            self.last = class;
        }
        through
    }

    #[inline]
    fn bytes(&self) -> u64 {
        self.lists.bytes()
    }
    #[inline]
    fn class_bytes(&self, class: u8) -> u64 {
        self.lists.class_bytes(class)
    }
    #[inline]
    fn is_empty(&self) -> bool {
        self.lists.occupied() == 0
    }
}

#[cfg(test)]
mod tests {
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
}
