//! Strict priority among eight classes, the lower number first; first come, first served within a class. With a limit,
//! a full port drops the new packet, or the youngest packet of the least urgent class for it.
//!
//! Source of the second rule: Gao et al., "pHost", CoNEXT 2015, as its authors' simulator has it.
//! Differs from the source: class 0, which carries pauses, is neither limited nor counted.

use super::classes::ClassLists;
use super::{PortPlace, QueueDefaults, QueueDiscipline, QueueFacts, QueueParameters, Verdict};
use crate::doc::SchemeDoc;
use crate::packet::{PacketId, PacketSlab};
use crate::parameters::Parameters;
use crate::units::{Bytes, Time};

#[derive(Debug, Clone, PartialEq)]
pub struct PriorityConfig {
    /// Bytes that may wait at a port.
    pub limit: Option<Bytes>,
    pub drop: DropRule,
}

/// Which packet a full queue drops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropRule {
    /// The one that came last of the least urgent class: the new one only if no less urgent one waits.
    Lowest,
    /// The new one.
    Tail,
}

const DROPS: &[(&str, &str)] = &[
    ("lowest", "the youngest packet of the least urgent class that waits, the new one among them"),
    ("tail", "the new one"),
];

impl QueueParameters for PriorityConfig {
    type State = Priority;
    const DOC: SchemeDoc = SchemeDoc {
        name: "priority",
        title: "eight classes, the lower number first; first come, first served within a class",
        source: "Strict priority; the drop rule as in the pHost authors' simulator (Gao et al., \"pHost\", CoNEXT 2015)",
        validation: "Order and drops by hand (queue/priority.rs); with pHost against its authors' simulator.",
        ..SchemeDoc::NONE
    };

    fn read(p: &mut Parameters, defaults: QueueDefaults) -> PriorityConfig {
        let help =
            "bytes that may wait at a port, beside the limits of the shared buffer; 0B: no limit of its own";
        let limit = p.bytes("limit", defaults.limit.unwrap_or(Bytes(0)), help);
        let help = "which packet a port that has reached its limit drops";
        let drop = match p.choice("drop", "lowest", DROPS, help) {
            "tail" => DropRule::Tail,
            _ => DropRule::Lowest,
        };
        PriorityConfig { limit: (limit.0 > 0).then_some(limit), drop }
    }

    fn facts(&self) -> QueueFacts {
        QueueFacts { capacity: self.limit, ..QueueFacts::default() }
    }

    fn start(&self, _place: &PortPlace) -> Priority {
        let limit = self.limit.map_or(u32::MAX, |limit| u32::try_from(limit.0).unwrap_or(u32::MAX));
        Priority { lists: ClassLists::default(), limit, drop: self.drop }
    }
}

#[derive(Debug, Clone)]
pub struct Priority {
    lists: ClassLists,
    /// Bytes that may wait.
    limit: u32,
    drop: DropRule,
}

impl Priority {
    /// Bytes that wait, pauses left out, are more than may.
    fn overflows(&self, new: u64) -> bool {
        self.lists.bytes() - self.lists.class_bytes(0) + new > u64::from(self.limit)
    }

    /// Takes a packet into a full queue: which one is dropped for it.
    #[cold]
    fn displace(&mut self, id: PacketId, packets: &mut PacketSlab) -> PacketId {
        if self.drop == DropRule::Tail {
            return id;
        }
        self.lists.push(id, packets);
        let lowest = u8::BITS - 1 - self.lists.occupied().leading_zeros();
        self.lists.pop_last(lowest as usize, packets)
    }
}

impl QueueDiscipline for Priority {
    // Not inlined: fifo ports would carry this code along.
    #[inline(never)]
    fn enqueue(&mut self, id: PacketId, packets: &mut PacketSlab, _now: Time) -> Verdict {
        let packet = &packets[id];
        if packet.class != 0 && self.overflows(u64::from(packet.size)) {
            return Verdict::Dropped(self.displace(id, packets));
        }
        self.lists.push(id, packets);
        Verdict::Queued
    }

    #[inline]
    fn dequeue(&mut self, paused: u8, packets: &mut PacketSlab, _now: Time) -> Option<PacketId> {
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

    fn port(limit: Option<Bytes>, drop: DropRule) -> Priority {
        PriorityConfig { limit, drop }.start(&PortPlace::TEST)
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
        let mut packets = PacketSlab::new();
        let mut queue = port(Some(Bytes(300)), drop);
        let mut dropped = Vec::new();
        for &(class, aux) in offered {
            let id = packets.insert(Packet { class, aux, size: 100, ..Packet::default() });
            if let Verdict::Dropped(gone) = queue.enqueue(id, &mut packets, Time::ZERO) {
                dropped.push(packets[gone].aux);
            }
        }
        assert!(queue.bytes() - queue.class_bytes(0) <= 300);
        let left =
            std::iter::from_fn(|| queue.dequeue(0, &mut packets, Time::ZERO).map(|id| packets[id].aux))
                .collect();
        (dropped, left)
    }

    #[test]
    fn a_full_port_drops_the_youngest_of_the_least_urgent_class() {
        let offered = [(2, 0), (3, 1), (3, 2), (1, 3), (3, 4), (2, 5), (2, 6), (0, 7)];
        let (dropped, left) = through_a_full_port(DropRule::Lowest, &offered);
        assert_eq!((dropped, left), (vec![2, 4, 1, 6], vec![7, 3, 0, 5]));
    }

    #[test]
    fn a_drop_tail_port_refuses_the_new_one_whatever_its_class() {
        let offered = [(3, 0), (3, 1), (3, 2), (1, 3), (0, 4)];
        assert_eq!(through_a_full_port(DropRule::Tail, &offered), (vec![3], vec![4, 0, 1, 2]));
    }
}
