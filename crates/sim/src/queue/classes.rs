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
    classes: [List; CLASSES],
}

/// The packets of one class, side by side with what is counted of them: one or two cache lines for all that a packet touches.
#[derive(Debug, Clone, Copy)]
struct List {
    bytes: u32,
    head: PacketId,
    tail: PacketId,
}

impl Default for ClassLists {
    fn default() -> ClassLists {
        let none = List { bytes: 0, head: NONE, tail: NONE };
        ClassLists { occupied: 0, total: 0, classes: [none; CLASSES] }
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
        u64::from(self.classes[usize::from(class)].bytes)
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
        let list = &mut self.classes[class];
        list.bytes += size;
        if self.occupied & (1 << class) == 0 {
            self.occupied |= 1 << class;
            list.head = id;
        } else {
            packets[list.tail].next = id;
        }
        list.tail = id;
    }

    /// Takes the youngest packet of a class that holds one. Walks through the class: it is for full queues, not for every
    /// packet.
    #[cold]
    pub fn pop_last(&mut self, class: usize, packets: &mut PacketSlab) -> PacketId {
        debug_assert!(self.occupied & (1 << class) != 0);
        let List { head, tail: last, .. } = self.classes[class];
        if head == last {
            return self.pop(class, packets);
        }
        let mut before = head;
        while packets[before].next != last {
            before = packets[before].next;
        }
        packets[before].next = NONE;
        self.classes[class].tail = before;
        self.count_out(class, u32::from(packets[last].size));
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
        let (mut before, mut id) = (NONE, self.classes[class].head);
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
            self.classes[class].tail = before;
        }
        self.count_out(class, u32::from(packets[id].size));
        Some(id)
    }

    /// Takes the oldest packet of a class that holds one.
    #[inline(always)]
    pub fn pop(&mut self, class: usize, packets: &mut PacketSlab) -> PacketId {
        debug_assert!(self.occupied & (1 << class) != 0);
        let id = self.classes[class].head;
        let packet = &packets[id];
        self.count_out(class, u32::from(packet.size));
        let next = packet.next;
        self.classes[class].head = next;
        // It leaves when this one's transmission ends.
        packets.prefetch(next);
        if next == NONE {
            self.occupied &= !(1 << class);
        }
        id
    }

    /// A packet of so many bytes leaves the list of a class.
    #[inline(always)]
    fn count_out(&mut self, class: usize, bytes: u32) {
        self.total -= bytes;
        self.classes[class].bytes -= bytes;
    }
}
