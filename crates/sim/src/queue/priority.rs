//! Strict priority among eight classes, the lower number first; first come, first served within a class.

use super::classes::ClassLists;
use super::{QueueDiscipline, Verdict};
use crate::packet::{PacketId, PacketSlab};

#[derive(Debug, Clone, Default)]
pub struct Priority {
    lists: ClassLists,
}

impl QueueDiscipline for Priority {
    #[inline]
    fn enqueue(&mut self, id: PacketId, packets: &mut PacketSlab) -> Verdict {
        self.lists.push(id, packets);
        Verdict::Queued
    }

    #[inline]
    fn dequeue(&mut self, paused: u8, packets: &mut PacketSlab) -> Option<PacketId> {
        // Class 0 carries PFC itself and is never paused.
        let ready = self.lists.occupied() & (!paused | 1);
        if ready == 0 {
            return None;
        }
        Some(self.lists.pop(ready.trailing_zeros() as usize, packets))
    }

    #[inline]
    fn lets_through(&mut self, class: u8, paused: u8) -> bool {
        self.lists.occupied() == 0 && (class == 0 || paused & (1 << class) == 0)
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

    #[test]
    fn the_lower_class_leaves_first() {
        let mut packets = PacketSlab::new();
        let mut queue = Priority::default();
        for class in [5, 2, 7, 2] {
            let id = packets.insert(Packet { class, size: 1, ..Packet::default() });
            queue.enqueue(id, &mut packets);
        }
        let order: Vec<u8> =
            std::iter::from_fn(|| queue.dequeue(0, &mut packets).map(|id| packets[id].class)).collect();
        assert_eq!(order, [2, 2, 5, 7]);
    }
}
