//! One fixed-size packet, and the slab that all packets of a partition live in.
//!
//! A packet is 64 bytes, one cache line, and moves by its index. What is larger and rarer (telemetry records) lives in a
//! slab of its own, which only the packets that carry it pay for.

pub mod hash;

use crate::engine::prefetch::prefetch;
use crate::units::Time;

/// Index of a packet in its [`PacketSlab`].
pub type PacketId = u32;
/// "No packet" and "no telemetry".
pub const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum PacketKind {
    #[default]
    Data,
    /// `seq` is the next byte expected.
    Ack,
    /// The same, and says that the byte `seq` is missing.
    Nack,
    /// PFC: the peer must not send `aux`'s class until a [`PacketKind::Resume`] comes.
    Pause,
    Resume,
    /// From switch to switch, for load balancers: the path to the ToR `src` is `aux` / 256 busy.
    Probe,
    /// A transport's own signal (a request, a token, a schedule): which, stands in [`Packet::code`].
    Control,
}

/// Bits of [`Packet::flags`].
pub mod flag {
    /// Congestion experienced (data), or its echo (acknowledgement).
    pub const MARKED: u8 = 1;
    /// The last byte of its flow is in it.
    pub const LAST: u8 = 2;
    /// Switches write telemetry records into it.
    pub const TELEMETRY: u8 = 4;
    /// Its sender would not react to a mark: a queue that would mark it drops it.
    pub const NOT_CAPABLE: u8 = 8;
    /// From this bit on: [`Packet::code`](super::Packet::code).
    pub const CODE_SHIFT: u8 = 4;
}

#[derive(Debug, Clone, Copy, Default)]
#[repr(C, align(64))]
pub struct Packet {
    /// First payload byte (data) or next byte expected (acknowledgements).
    pub seq: u64,
    /// When its transmission at the source began; echoed by the acknowledgement.
    pub sent: Time,
    /// The next packet of the list (queue, free list) that it is in.
    pub next: PacketId,
    pub flow: u32,
    /// Hosts.
    pub src: u32,
    pub dst: u32,
    /// The sender's own number for the flow, echoed by the acknowledgement.
    pub sender: u32,
    /// Chooses among equal paths; in the compat mode the sender's UDP port.
    pub hash: u32,
    /// Records in the telemetry slab.
    pub telemetry: u32,
    /// Data: bytes that the flow had left, or what else pFabric's queues order by. Selective acknowledgements: number of the
    /// packet that arrived. Pauses: the class.
    pub aux: u32,
    /// Bytes on the wire.
    pub size: u16,
    pub payload: u16,
    /// Port (of the node it is at) through which it came in.
    pub ingress: u16,
    pub group: u16,
    pub kind: PacketKind,
    /// Traffic class in which it queues and can be paused.
    pub class: u8,
    /// The same from the first switch on (a NIC may let acknowledgements pass by).
    pub wire_class: u8,
    pub flags: u8,
    /// Which transport of the host takes it, and which of its settings the flow runs under.
    pub transport: u8,
    pub profile: u8,
    /// Generation of the link it is on; a link that went down meanwhile has another.
    pub generation: u8,
}

const _: () = assert!(std::mem::size_of::<Packet>() == 64);

impl Packet {
    pub fn marked(&self) -> bool {
        self.flags & flag::MARKED != 0
    }
    pub fn is_last(&self) -> bool {
        self.flags & flag::LAST != 0
    }
    /// Which of its transport's signals a [`PacketKind::Control`] is: 0 to 15, as the transport numbers them.
    pub fn code(&self) -> u8 {
        self.flags >> flag::CODE_SHIFT
    }
}

/// All packets of a partition; freed places are used again, last freed first.
#[derive(Default)]
pub struct PacketSlab {
    packets: Vec<Packet>,
    free: u32,
    live: usize,
}

impl PacketSlab {
    pub fn new() -> PacketSlab {
        PacketSlab { packets: Vec::new(), free: NONE, live: 0 }
    }

    #[inline]
    pub fn insert(&mut self, packet: Packet) -> PacketId {
        self.live += 1;
        let id = if self.free != NONE { self.free } else { self.grow() };
        let place = &mut self.packets[id as usize];
        self.free = place.next;
        *place = packet;
        id
    }

    /// One more place, which is free.
    #[cold]
    #[inline(never)]
    fn grow(&mut self) -> PacketId {
        self.packets.push(Packet { next: NONE, ..Packet::default() });
        (self.packets.len() - 1) as PacketId
    }

    #[inline]
    pub fn remove(&mut self, id: PacketId) {
        debug_assert!(self.live > 0);
        self.live -= 1;
        self.packets[id as usize].next = self.free;
        self.free = id;
    }

    /// Begins to fetch a packet into the cache.
    #[inline(always)]
    pub fn prefetch(&self, id: PacketId) {
        prefetch(&self.packets, id as usize);
    }

    /// Packets alive: queued or on a wire.
    pub fn live(&self) -> usize {
        self.live
    }
}

impl std::ops::Index<PacketId> for PacketSlab {
    type Output = Packet;
    #[inline]
    fn index(&self, id: PacketId) -> &Packet {
        &self.packets[id as usize]
    }
}
impl std::ops::IndexMut<PacketId> for PacketSlab {
    #[inline]
    fn index_mut(&mut self, id: PacketId) -> &mut Packet {
        &mut self.packets[id as usize]
    }
}
