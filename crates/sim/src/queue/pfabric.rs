//! pFabric's queue: a full port drops the packet with the most left to send, a free one sends the earliest packet of the
//! flow that has a packet with the least left.
//!
//! Data carry their priority in [`Packet::aux`](crate::packet::Packet::aux): the bytes that their flow had left when they
//! were sent, the smaller the more urgent. What is not data (acknowledgements, a transport's signals) has priority 0, above
//! all data. Ties: the earliest goes first, the latest is dropped. Sending the flow's *earliest* packet, and not the one
//! with the smallest number, keeps a flow in order and keeps its first packets from starving.
//!
//! Where few data wait they are looked through ([`Few`]); where more do they are in an index ([`Index`]), so that nothing
//! looks at more than O(log n) packets.
//!
//! Source: Alizadeh et al., "pFabric", SIGCOMM 2013, as the pHost authors' simulator has it (Gao et al., CoNEXT 2015): one
//! packet at most is dropped for one that comes.
//! Differs from the source: class 0, which carries pauses, is neither limited nor counted; a class that is paused waits. Where
//! the switch's buffer has no room for a packet, those that are dropped for it have as many bytes as it has.
//! *Parameters*: `limit`, bytes that may wait (published: 36 KiB at 10 Gb/s, two bandwidth-delay products).

mod few;
mod index;

use super::classes::{CLASSES, ClassLists};
use super::{PortPlace, QueueDefaults, QueueDiscipline, QueueFacts, QueueParameters, Verdict};
use crate::doc::SchemeDoc;
use crate::packet::{NONE, Packet, PacketId, PacketKind, PacketSlab};
use crate::parameters::Parameters;
use crate::units::{Bytes, Time};
use few::Few;
use index::Index;

#[derive(Debug, Clone, PartialEq)]
pub struct PfabricQueueConfig {
    /// Bytes that may wait at a port.
    pub limit: Bytes,
}

/// Bytes that pFabric's publication lets wait at a port of 10 Gb/s.
const PUBLISHED_LIMIT: Bytes = Bytes(36 << 10);

impl QueueParameters for PfabricQueueConfig {
    type State = Pfabric;
    const DOC: SchemeDoc = SchemeDoc {
        name: "pfabric",
        title: "the flow with the fewest remaining bytes first; a full port drops the packet with the largest number \
                of remaining bytes",
        source: "Alizadeh et al., \"pFabric\", SIGCOMM 2013",
        validation: "Completion times and drops compared with those of the pHost authors' simulator (tests/pfabric.rs); page: \
                     docs/schemes/pfabric.md.",
        ..SchemeDoc::NONE
    };

    fn read(p: &mut Parameters, defaults: QueueDefaults) -> PfabricQueueConfig {
        let help = "maximum number of bytes that wait at a port (published: 36KiB at 10 Gb/s, two bandwidth-delay \
                    products; with transport.kind = \"pfabric\" scaled like its window)";
        let limit = p.bytes("limit", defaults.limit.unwrap_or(PUBLISHED_LIMIT), help);
        if limit == Bytes(0) || limit.0 > u64::from(u32::MAX) {
            let message = format!("{limit} is not a valid limit: expected more than 0B and less than 4GiB");
            p.complain("limit", message);
            return PfabricQueueConfig { limit: PUBLISHED_LIMIT };
        }
        PfabricQueueConfig { limit }
    }

    fn facts(&self) -> QueueFacts {
        QueueFacts { capacity: Some(self.limit), serves_by_remaining: true, ..QueueFacts::default() }
    }

    fn start(&self, _place: &PortPlace) -> Pfabric {
        Pfabric::new(self.limit)
    }
}

/// What is looked at while nothing waits comes first.
#[derive(Debug, Clone)]
pub struct Pfabric {
    /// Packets that wait.
    packets: u32,
    /// Bytes that wait, class 0 left out, and bytes that may.
    bytes: u32,
    limit: u32,
    waiting: Box<Waiting>,
}

#[derive(Debug, Clone, Default)]
#[repr(C)]
struct Waiting {
    /// Bytes by class.
    class_bytes: [u32; CLASSES],
    /// Number of the data packet that comes next; begins anew when no data wait.
    order: u32,
    /// All data are in the index; else in `few`.
    many: bool,
    /// Pauses, which go before everything (class 0), and signals (in the list of class 1, whatever their own).
    first: ClassLists,
    few: Few,
    index: Index,
}

/// A data packet that waits.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// See [`key`].
    key: u64,
    packet: PacketId,
    flow: u32,
}

/// The list of `first` that signals are in.
const SIGNALS: usize = 1;

/// What data are ordered by: bytes left, then arrival.
fn key(left: u32, order: u32) -> u64 {
    u64::from(left) << 32 | u64::from(order)
}

impl Pfabric {
    pub fn new(limit: Bytes) -> Pfabric {
        let limit = u32::try_from(limit.0).unwrap_or(u32::MAX);
        Pfabric { packets: 0, bytes: 0, limit, waiting: Box::default() }
    }

    /// Counts a packet in.
    fn add(&mut self, class: u8, size: u16) {
        self.packets += 1;
        self.waiting.class_bytes[usize::from(class) % CLASSES] += u32::from(size);
        if class != 0 {
            self.bytes += u32::from(size);
        }
    }

    /// Counts a packet out.
    fn subtract(&mut self, id: PacketId, packets: &PacketSlab) -> PacketId {
        let (class, size) = (packets[id].class, packets[id].size);
        self.packets -= 1;
        self.waiting.class_bytes[usize::from(class) % CLASSES] -= u32::from(size);
        if class != 0 {
            self.bytes -= u32::from(size);
        }
        id
    }

    /// Bytes of data that wait.
    fn data_bytes(&self) -> u32 {
        self.bytes - self.waiting.first.class_bytes(SIGNALS as u8) as u32
    }

    /// The packet to drop of a port that holds too much: of data the one with the most left, the latest of several.
    fn drop_largest(&mut self, packets: &PacketSlab) -> Option<PacketId> {
        let waiting = &mut *self.waiting;
        let id = if waiting.many { waiting.index.take_last() } else { waiting.few.take_last() }?;
        Some(self.subtract(id, packets))
    }

    /// The next packet to leave while some classes are paused.
    #[cold]
    fn dequeue_unpaused(&mut self, paused: u8, packets: &mut PacketSlab) -> Option<PacketId> {
        let waiting = &mut *self.waiting;
        if waiting.first.occupied() & 1 != 0 {
            return Some(waiting.first.pop(0, packets));
        }
        let may = |id: PacketId, packets: &PacketSlab| paused & (1 << (packets[id].class & 7)) == 0;
        if let Some(id) = waiting.first.take_first_where(SIGNALS, packets, may) {
            return Some(id);
        }
        match waiting.many {
            true => waiting.index.take_urgent_where(|id| may(id, packets)),
            false => waiting.few.take_urgent_where(|id| may(id, packets)),
        }
    }
}

impl Waiting {
    /// Takes in a data packet.
    #[inline]
    fn insert(&mut self, packet: PacketId, flow: u32, left: u32) {
        if self.few.is_empty() && (!self.many || self.index.is_empty()) {
            (self.order, self.many) = (0, false);
        }
        let entry = Entry { key: key(left, self.order), packet, flow };
        self.order = self.order.wrapping_add(1);
        if self.many || !self.few.insert(entry) {
            self.insert_into_index(entry);
        }
    }

    /// Takes in a data packet where many wait, or begin to.
    #[inline(never)]
    fn insert_into_index(&mut self, entry: Entry) {
        self.many = true;
        for earlier in self.few.drain() {
            self.index.insert(earlier);
        }
        self.index.insert(entry);
    }

    /// Takes out the data packet that leaves next, and fetches the one that probably leaves after it.
    #[inline]
    fn take_urgent(&mut self, packets: &PacketSlab) -> Option<PacketId> {
        if self.many {
            return self.index.take_urgent();
        }
        let (id, next) = self.few.take_urgent()?;
        packets.prefetch(next);
        Some(id)
    }
}

impl QueueDiscipline for Pfabric {
    // Not inlined: ports of other kinds would carry this code along.
    #[inline(never)]
    fn enqueue(&mut self, id: PacketId, packets: &mut PacketSlab, _now: Time) -> Verdict {
        let (class, size, flow, left) = {
            let packet = &packets[id];
            (packet.class, packet.size, packet.flow, packet.aux)
        };
        if class == 0 {
            self.add(class, size);
            self.waiting.first.push_to(0, id, packets);
            return Verdict::Queued;
        }
        let fits = u64::from(self.bytes) + u64::from(size) <= u64::from(self.limit);
        if packets[id].kind == PacketKind::Data {
            self.add(class, size);
            self.waiting.insert(id, flow, left);
            return match fits {
                true => Verdict::Queued,
                // The new one is among those to choose from.
                false => self.drop_largest(packets).map_or(Verdict::Queued, Verdict::Dropped),
            };
        }
        let dropped = if fits { None } else { self.drop_largest(packets) };
        if !fits && dropped.is_none() {
            // All that wait are signals, and this is the latest of them.
            return Verdict::Dropped(id);
        }
        self.add(class, size);
        self.waiting.first.push_to(SIGNALS, id, packets);
        dropped.map_or(Verdict::Queued, Verdict::Dropped)
    }

    #[cold]
    fn exchange(&mut self, id: PacketId, packets: &mut PacketSlab, _now: Time) -> Verdict {
        let Packet { class, size, flow, aux: left, kind, .. } = packets[id];
        if kind == PacketKind::Data && class != 0 {
            // The new one is among those to choose from.
            self.waiting.insert(id, flow, left);
        } else if self.data_bytes() < u32::from(size) {
            return Verdict::Dropped(id);
        } else {
            self.waiting.first.push_to(if class == 0 { 0 } else { SIGNALS }, id, packets);
        }
        self.add(class, size);
        let (mut bytes, mut dropped) = (0, NONE);
        while bytes < u32::from(size).max(1) {
            let Some(last) = self.drop_largest(packets) else { break };
            bytes += u32::from(packets[last].size);
            packets[last].next = dropped;
            dropped = last;
        }
        if dropped == NONE { Verdict::Queued } else { Verdict::DroppedAll(dropped) }
    }

    #[inline(never)]
    fn dequeue(&mut self, paused: u8, packets: &mut PacketSlab, _now: Time) -> Option<PacketId> {
        if self.packets == 0 {
            return None;
        }
        let waiting = &mut self.waiting;
        let id = if paused != 0 {
            self.dequeue_unpaused(paused, packets)?
        } else if waiting.first.occupied() != 0 {
            waiting.first.pop(waiting.first.occupied().trailing_zeros() as usize, packets)
        } else {
            waiting.take_urgent(packets)?
        };
        Some(self.subtract(id, packets))
    }

    #[inline]
    fn lets_through(&mut self, packet: &Packet, paused: u8) -> bool {
        let class = packet.class;
        self.packets == 0 && (class == 0 || paused & (1 << class) == 0)
    }

    #[inline]
    fn bytes(&self) -> u64 {
        u64::from(self.bytes) + self.class_bytes(0)
    }
    #[inline]
    fn class_bytes(&self, class: u8) -> u64 {
        if self.packets == 0 { 0 } else { u64::from(self.waiting.class_bytes[usize::from(class) % CLASSES]) }
    }
    #[inline]
    fn is_empty(&self) -> bool {
        self.packets == 0
    }
}

#[cfg(test)]
mod tests;
