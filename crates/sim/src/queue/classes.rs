//! First-in-first-out lists of packets, one per traffic class: what class-based disciplines are made of.

use crate::packet::{NONE, PacketId, PacketSlab};

/// Traffic classes of a port, as PFC numbers them.
pub const CLASSES: usize = 8;

/// Eight lists through the packets' own `next`. What is looked at while nothing waits comes first.
#[derive(Debug, Clone)]
#[repr(C)]
pub struct ClassLists {
    /// Bit c is set while class c holds packets.
    occupied: u8,
    total: u32,
    bytes: [u32; CLASSES],
    head: [PacketId; CLASSES],
    tail: [PacketId; CLASSES],
}

impl Default for ClassLists {
    fn default() -> ClassLists {
        let (head, tail) = ([NONE; CLASSES], [NONE; CLASSES]);
        ClassLists { occupied: 0, total: 0, bytes: [0; CLASSES], head, tail }
    }
}

impl ClassLists {
    pub fn occupied(&self) -> u8 {
        self.occupied
    }
    pub fn bytes(&self) -> u64 {
        u64::from(self.total)
    }
    pub fn class_bytes(&self, class: u8) -> u64 {
        u64::from(self.bytes[usize::from(class)])
    }

    #[inline]
    pub fn push(&mut self, id: PacketId, packets: &mut PacketSlab) {
        self.push_to(usize::from(packets[id].class) % CLASSES, id, packets);
    }

    /// Takes a packet into the list of a class that need not be its own.
    #[inline]
    pub fn push_to(&mut self, class: usize, id: PacketId, packets: &mut PacketSlab) {
        let packet = &mut packets[id];
        packet.next = NONE;
        let size = u32::from(packet.size);
        self.total += size;
        self.bytes[class] += size;
        if self.occupied & (1 << class) == 0 {
            self.occupied |= 1 << class;
            self.head[class] = id;
        } else {
            packets[self.tail[class]].next = id;
        }
        self.tail[class] = id;
    }

    /// Takes the youngest packet of a class that holds one. Walks through the class: it is for full queues, not for every
    /// packet.
    #[cold]
    pub fn pop_last(&mut self, class: usize, packets: &mut PacketSlab) -> PacketId {
        debug_assert!(self.occupied & (1 << class) != 0);
        let last = self.tail[class];
        if self.head[class] == last {
            return self.pop(class, packets);
        }
        let mut before = self.head[class];
        while packets[before].next != last {
            before = packets[before].next;
        }
        packets[before].next = NONE;
        self.tail[class] = before;
        let size = u32::from(packets[last].size);
        self.total -= size;
        self.bytes[class] -= size;
        last
    }

    /// Takes the oldest packet of a class for which `may` holds, if there is one. Walks through the class.
    #[cold]
    pub fn take_first_where(
        &mut self,
        class: usize,
        packets: &mut PacketSlab,
        may: impl Fn(PacketId, &PacketSlab) -> bool,
    ) -> Option<PacketId> {
        if self.occupied & (1 << class) == 0 {
            return None;
        }
        let (mut before, mut id) = (NONE, self.head[class]);
        while !may(id, packets) {
            (before, id) = (id, packets[id].next);
            if id == NONE {
                return None;
            }
        }
        if before == NONE {
            return Some(self.pop(class, packets));
        }
        let next = packets[id].next;
        packets[before].next = next;
        if next == NONE {
            self.tail[class] = before;
        }
        let size = u32::from(packets[id].size);
        self.total -= size;
        self.bytes[class] -= size;
        Some(id)
    }

    /// Takes the oldest packet of a class that holds one.
    #[inline]
    pub fn pop(&mut self, class: usize, packets: &mut PacketSlab) -> PacketId {
        debug_assert!(self.occupied & (1 << class) != 0);
        let id = self.head[class];
        let packet = &packets[id];
        let size = u32::from(packet.size);
        self.total -= size;
        self.bytes[class] -= size;
        self.head[class] = packet.next;
        if packet.next == NONE {
            self.occupied &= !(1 << class);
        }
        id
    }
}
