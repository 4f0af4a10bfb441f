//! One packet of fixed size, and the slab that holds all packets of a partition.
//!
//! A packet is 64 bytes, one cache line, and is referred to by its index. In runs with telemetry every place
//! has lines for its records after that of the packet, so that both are found, fetched and handed over
//! together.

pub mod hash;

use crate::engine::shared_memory::{Plain, Share, Taken};
use crate::units::Time;

/// Index of a packet in its [`PacketSlab`].
pub type PacketId = u32;
/// "No packet".
pub const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum PacketKind {
    #[default]
    Data,
    /// An acknowledgement: `seq` is the next byte expected.
    Ack,
    /// An acknowledgement that reports the byte `seq` as missing.
    Nack,
    /// A transport's own signal (a request, a token, a schedule). [`Packet::code`] says which.
    Control,
    /// PFC: the peer must not send `aux`'s class until a [`PacketKind::Resume`] comes.
    Pause,
    Resume,
    /// A load balancer's probe between switches: the path to the ToR `src` has a utilisation of `aux` / 256.
    Probe,
}

impl PacketKind {
    /// A frame for whoever is at the other end of the link; other packets are for a host.
    #[inline(always)]
    pub fn is_for_neighbour(self) -> bool {
        matches!(self, PacketKind::Pause | PacketKind::Resume | PacketKind::Probe)
    }
}

/// Bits of [`Packet::flags`].
pub mod flag {
    /// Congestion experienced (data), or its echo (acknowledgement).
    pub const MARKED: u8 = 1;
    /// The packet contains the last byte of its flow.
    pub const LAST: u8 = 2;
    /// Switches write telemetry records into the packet.
    pub const TELEMETRY: u8 = 4;
    /// The sender would not react to a mark: a queue that would mark the packet drops it.
    pub const NOT_CAPABLE: u8 = 8;
    /// The first bit of [`Packet::code`](super::Packet::code).
    pub const CODE_SHIFT: u8 = 4;
}

/// Bits of [`Packet::trimming`].
pub mod trimming {
    /// The transport understands headers without payload: a queue may trim the packet.
    pub const ALLOWED: u8 = 1;
    /// The payload was cut off.
    pub const TRIMMED: u8 = 2;
    /// There was no room for the header: it returns to its source.
    pub const RETURNED: u8 = 4;
}

#[derive(Debug, Clone, Copy, Default)]
#[repr(C, align(64))]
pub struct Packet {
    /// First payload byte (data) or next byte expected (acknowledgements).
    pub seq: u64,
    /// Start of the transmission at the source; echoed by the acknowledgement.
    pub sent: Time,
    /// The next packet of the list (queue, free list) that contains this one.
    pub next: PacketId,
    pub flow: u32,
    /// Host numbers of source and destination.
    pub src: u32,
    pub dst: u32,
    /// The sender's own number for the flow, echoed by the acknowledgement.
    pub sender: u32,
    /// Selects among equal-cost paths; in the compat mode the sender's UDP port, and above it the receiver's.
    pub hash: u32,
    /// Data: remaining bytes of the flow, or the other priorities by which pFabric's queues order packets.
    /// Selective acknowledgements: number of the packet that arrived. Pauses: the class.
    pub aux: u32,
    /// Size on the wire in bytes.
    pub size: u16,
    pub payload: u16,
    /// Ingress port, as a port of the node at which the packet is.
    pub ingress: u16,
    pub group: u16,
    pub kind: PacketKind,
    /// Traffic class in which the packet queues and can be paused.
    pub class: u8,
    /// The class from the first switch on (a NIC may prioritise acknowledgements).
    pub wire_class: u8,
    pub flags: u8,
    /// Which transport of the host the packet belongs to, and which settings its flow uses.
    pub transport: u8,
    pub profile: u8,
    /// Generation of the link on which the packet is; a link that went down in the meantime has another one.
    pub generation: u8,
    /// Whether queues may cut the payload off, and did: bits of [`trimming`].
    pub trimming: u8,
    /// It carries telemetry, or numbers of its transport.
    pub carries: bool,
}

const _: () = assert!(std::mem::size_of::<Packet>() == 64);

impl Packet {
    pub fn marked(&self) -> bool {
        self.flags & flag::MARKED != 0
    }
    pub fn is_trimmed(&self) -> bool {
        self.trimming & trimming::TRIMMED != 0
    }
    /// A pause, or a probe that goes before all others: charged to no buffer.
    #[inline]
    pub fn is_uncharged(&self) -> bool {
        self.class == 0 && self.kind.is_for_neighbour()
    }
    pub fn is_last(&self) -> bool {
        self.flags & flag::LAST != 0
    }
    /// Which signal of its transport a [`PacketKind::Control`] packet is: 0 to 15, defined by the transport.
    pub fn code(&self) -> u8 {
        self.flags >> flag::CODE_SHIFT
    }
}

/// All packets of a partition. Free places are reused, the last one freed first. The memory is shared with
/// the other partitions of a run, so that packets cross between them by index.
pub struct PacketSlab {
    packets: Share<Packet>,
    /// Of a place: the packet, and what it carries.
    lines: u32,
    /// The first free place; each leads to the next one.
    free: u32,
    live: usize,
    /// Places with a packet, and free ones in the list.
    places: usize,
}

impl Default for PacketSlab {
    fn default() -> PacketSlab {
        PacketSlab::new()
    }
}

impl PacketSlab {
    /// The slab of a sole partition, which is at work.
    pub fn new() -> PacketSlab {
        PacketSlab::with_room(0)
    }

    /// The same, with room for this number of bytes after each packet.
    pub fn with_room(bytes: usize) -> PacketSlab {
        let lines = 1 + bytes.div_ceil(size_of::<Packet>());
        PacketSlab::of(Share::new(lines), lines as u32)
    }

    fn of(packets: Share<Packet>, lines: u32) -> PacketSlab {
        PacketSlab { packets, lines, free: NONE, live: 0, places: 0 }
    }

    /// The slab of one more partition, with the same memory; the partition is not at work.
    pub fn another(&self) -> PacketSlab {
        PacketSlab::of(self.packets.another(), self.lines)
    }

    /// Allocates memory for this many packets of all partitions, without touching it.
    pub fn reserve(&mut self, packets: usize) {
        self.packets.reserve(packets);
    }

    /// The partition begins to work: until the end of its turn there are packets.
    pub fn begin_turn(&mut self) {
        self.packets.begin_turn();
    }

    /// Others may take free places of which there are too many.
    pub fn end_turn(&mut self) {
        let spare = (self.places - self.live).saturating_sub(2 * self.live);
        if spare > ENOUGH_FREE && self.packets.lacks_spare() {
            let given: Vec<u32> = (0..spare / 2).map(|_| self.unlink()).collect();
            self.places -= given.len();
            self.packets.give_back(given);
        }
        self.packets.end_turn();
    }

    /// Takes the first place out of the list of free ones.
    fn unlink(&mut self) -> u32 {
        let first = self.free;
        self.free = self[first].next;
        first
    }

    #[inline]
    pub fn insert(&mut self, packet: Packet) -> PacketId {
        self.live += 1;
        let id = if self.free != NONE { self.free } else { self.grow() };
        let place = &mut self[id];
        let next = place.next;
        *place = packet;
        self.free = next;
        // Several insertions in a row then do not wait for each place.
        self.prefetch(next);
        id
    }

    /// Adds free places to the empty list; the first of them.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) -> PacketId {
        let taken = match self.packets.take() {
            Taken::One(place) => {
                let id = place * self.lines;
                self.packets.write(id as usize, Packet { next: NONE, ..Packet::default() });
                self.packets.clear_after(id as usize);
                self.places += 1;
                return id;
            }
            Taken::Spare(ids) => ids,
        };
        self.places += taken.len();
        for id in taken {
            self[id].next = self.free;
            self.free = id;
        }
        self.free
    }

    #[inline]
    pub fn remove(&mut self, id: PacketId) {
        debug_assert!(self.live > 0);
        self.live -= 1;
        self[id].next = self.free;
        self.free = id;
    }

    /// A packet leaves for another partition, with its place.
    #[inline]
    pub fn hand_over(&mut self) {
        debug_assert!(self.live > 0);
        self.live -= 1;
        self.places -= 1;
    }

    /// This number of packets comes from another partition, with their places.
    #[inline]
    pub fn receive(&mut self, packets: usize) {
        self.live += packets;
        self.places += packets;
    }

    /// Prefetches a packet into the cache.
    #[inline(always)]
    pub fn prefetch(&self, id: PacketId) {
        self.packets.prefetch(id as usize, 1);
    }

    /// Prefetches it with what it carries, as far as this lies in the first two lines after it.
    #[inline(always)]
    pub fn prefetch_all(&self, id: PacketId) {
        self.packets.prefetch(id as usize, 3);
    }

    /// What is in the room after a packet; empty where there is no room for it.
    #[inline(always)]
    pub fn room<U: Plain>(&self, id: PacketId) -> &[U] {
        self.packets.after(id as usize)
    }

    /// A packet, and the room after it.
    #[inline(always)]
    pub fn with_room_of<U: Plain>(&mut self, id: PacketId) -> (&mut Packet, &mut [U]) {
        self.packets.with_after(id as usize)
    }

    /// There is room after the packets.
    pub fn have_room(&self) -> bool {
        self.lines > 1
    }

    /// Memory of all places that were taken for this partition.
    pub fn bytes(&self) -> usize {
        self.packets.bytes()
    }

    /// Number of packets in use: queued or on a link.
    pub fn live(&self) -> usize {
        self.live
    }
}

/// Free places that a partition keeps in any case.
const ENOUGH_FREE: usize = 4096;

impl std::ops::Index<PacketId> for PacketSlab {
    type Output = Packet;
    #[inline]
    fn index(&self, id: PacketId) -> &Packet {
        self.packets.at(id as usize)
    }
}
impl std::ops::IndexMut<PacketId> for PacketSlab {
    #[inline]
    fn index_mut(&mut self, id: PacketId) -> &mut Packet {
        self.packets.at_mut(id as usize)
    }
}
