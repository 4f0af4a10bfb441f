//! Ports that have a buffer of their own, under a discipline that knows the time.
//!
//! What all such disciplines share is here: the limit in packets or bytes, the NIC's queue behind the
//! discipline, pauses (class 0), which pass by everything, and the account of what was dropped and marked. A
//! discipline ([`Discipline`]) only decides which packet waits where, which leaves next and which is dropped,
//! at arrival or when it is about to leave.
//!
//! A managed port takes nothing from the switch's shared buffer and calls for no pauses. While the peer
//! pauses any class, all data wait.

mod port;
mod waiting;

use super::five_tuple::FiveTuples;
use super::{CLASSES, PortMemory, QueueDefaults, QueueDiscipline, QueueFacts, QueueParameters, Verdict};
use crate::counters::{CounterGroup, CounterSet};
use crate::doc::SchemeDoc;
use crate::packet::{NONE, Packet, PacketId, PacketKind, PacketSlab, flag, trimming};
use crate::parameters::Parameters;
use crate::units::{Bytes, Rate, Time};
use std::collections::VecDeque;

pub use port::{FAR, PortFacts, PortPlace};
pub use waiting::{List, Queued, Waiting, flow_key};

/// What a port may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    pub packets: u32,
    pub bytes: Bytes,
}

impl Limit {
    pub const NONE: Limit = Limit { packets: u32::MAX, bytes: Bytes(u64::MAX) };

    pub fn of_packets(packets: u32) -> Limit {
        Limit { packets, ..Limit::NONE }
    }

    /// Bytes of a full port of packets of 1500 B.
    pub fn full(&self) -> Bytes {
        const FULL_PACKET: u64 = 1500;
        Bytes(self.bytes.0.min(u64::from(self.packets) * FULL_PACKET))
    }
}

/// A managed port: what all disciplines have there, and the parameters of the one that it is under.
#[derive(Debug, Clone, PartialEq)]
pub struct ManagedConfig<P> {
    pub discipline: P,
    pub limit: Limit,
    /// Packets that wait in the NIC behind the discipline, which has no say over them any more.
    pub nic_packets: u32,
    /// Bytes of every packet that are on the wire but that the discipline does not count.
    pub link_header: u16,
}

/// The parameters of a discipline of managed ports.
pub trait DisciplineParameters: Sized {
    type State: Discipline;
    const DOC: SchemeDoc;
    /// Packets that a port may hold by default; 0: any number.
    const PACKETS: u32 = 1000;
    fn read(p: &mut Parameters) -> Self;
    /// It decides itself which packets are marked: the thresholds of the switch do not hold at its ports.
    fn marks(&self) -> bool {
        false
    }
    /// It marks packets, if they may be marked, instead of dropping them: what to set so that it drops them.
    fn drops_instead(&self) -> Option<&'static str> {
        None
    }
    /// The largest packet that an empty port of this limit takes.
    fn largest(&self, limit: Limit) -> Bytes {
        limit.bytes
    }
    /// What a port takes in addition to this state and its packets.
    fn tables(&self) -> PortMemory {
        PortMemory::default()
    }
    /// What deserves a look at a port of this limit.
    fn warning(&self, _limit: Limit, _port: &PortFacts) -> Option<String> {
        None
    }
    fn start(&self, limit: Limit, place: &PortPlace) -> Self::State;
}

impl<P: DisciplineParameters> QueueParameters for ManagedConfig<P> {
    type State = Box<Managed<P::State>>;
    const DOC: SchemeDoc = P::DOC;

    fn read(p: &mut Parameters, _defaults: QueueDefaults) -> ManagedConfig<P> {
        let help = "maximum number of packets that wait at a port, in a private buffer instead of the shared one; \
                    0: no limit in packets";
        let packets = p.integer("packets", i64::from(P::PACKETS), (0, 100_000_000), help) as u32;
        let help = "maximum number of bytes that wait at a port, in addition to the limits of the shared buffer if \
                    the port uses it; 0B: no limit";
        let bytes = p.bytes("limit", Bytes(0), help);
        let help = "packets that the NIC takes from the discipline before it can send them";
        let nic_packets = p.integer("nic_packets", 0, (0, 100_000), help) as u32;
        let help = "bytes of every packet on the wire that the discipline does not count; of a smaller packet it counts nothing";
        let header = p.bytes("link_header", Bytes(0), help);
        if header.0 > 64 {
            p.complain("link_header", format!("{header} is not a valid link header: expected at most 64B"));
        }
        let limit = Limit {
            packets: if packets == 0 { u32::MAX } else { packets },
            bytes: if bytes.0 == 0 { Limit::NONE.bytes } else { bytes },
        };
        let link_header = header.0.min(64) as u16;
        ManagedConfig { discipline: P::read(p), limit, nic_packets, link_header }
    }

    fn facts(&self) -> QueueFacts {
        let tables = self.discipline.tables();
        QueueFacts {
            owns_buffer: true,
            marks: self.discipline.marks(),
            drops_instead: self.discipline.drops_instead(),
            capacity: Some(self.limit.bytes),
            packets: Some(self.limit.packets),
            largest: Some(self.discipline.largest(self.limit)),
            memory: PortMemory { state: tables.state + size_of::<Managed<P::State>>() as u64, ..tables },
            ..QueueFacts::default()
        }
    }

    fn warning(&self, port: &PortFacts) -> Option<String> {
        self.discipline.warning(self.limit, port)
    }

    fn start(&self, place: &PortPlace) -> Box<Managed<P::State>> {
        Box::new(Managed::new(self, place))
    }
}

/// Decides about the packets of a managed port.
pub trait Discipline {
    /// Takes in a packet, or drops it, or others for it.
    fn enqueue(&mut self, packet: Queued, cx: &mut QueueContext);
    /// The next packet to leave; packets dropped meanwhile are reported to `cx`. None only if no packet
    /// waits.
    fn dequeue(&mut self, cx: &mut QueueContext) -> Option<Queued>;
    /// Nothing waits, and a packet of this size, as the discipline counts, has come and leaves at once:
    /// whether all is now as if it had been taken in and had left. A discipline that must see every packet
    /// refuses.
    fn lets_through(&mut self, _packet: &Packet, _size: u32) -> bool {
        false
    }
    /// Nothing waits, and the link, or the NIC, finds no packet.
    fn rest(&mut self) {}
    /// All that waits is gone, as the link is.
    fn reset(&mut self);
    /// The link has another rate now.
    fn set_rate(&mut self, _rate: Rate) {}
    /// Adds what it has counted until now, beside the packets that it dropped.
    fn count(&mut self, _now: Time, _counters: &mut CounterSet) {}
}

/// Why a packet was dropped: a group with one counter. Every cause has all ports with a buffer of their own
/// in its table.
pub type Cause = &'static CounterGroup;

/// Declares a cause: its key, its title, a sentence on it, and one on its series, which is called `drops_`
/// and the key.
#[macro_export]
macro_rules! cause {
    ($name:ident, $key:literal, $title:literal, $text:literal, $series:literal) => {
        #[doc = $text]
        pub static $name: $crate::counters::CounterGroup = $crate::counters::CounterGroup {
            table: "drop_causes",
            text: "Drops by reason, of every port that has a private buffer.",
            counters: &[$crate::counters::Counter::sum($key, "packets", $title, $text)],
            metrics: &[$crate::counters::Metric {
                name: concat!("drops_", $key),
                part: $key,
                series: (concat!("drops_", $key), $series),
                ..$crate::counters::Metric::NONE
            }],
            gauges: &[],
        };
    };
}
pub use cause;

cause!(
    BUFFER,
    "buffer",
    "drops because the buffer is full",
    "Packets that disciplines with a private buffer dropped because it was full.",
    "Drops because the buffer is full, in an interval; measure.disciplines."
);
cause!(
    EARLY,
    "early",
    "early drops",
    "Packets that a discipline dropped although there was room, as a signal to their senders to slow down.",
    "Drops in an interval that signal senders to slow down."
);

/// What a discipline works with.
pub struct QueueContext<'a> {
    pub now: Time,
    pub waiting: &'a mut Waiting,
    limit: Limit,
    account: &'a mut QueueCounters,
    packets: &'a mut PacketSlab,
}

impl QueueContext<'_> {
    /// A packet of this size does not fit into what is left of the limit.
    pub fn is_full_for(&self, size: u32) -> bool {
        self.waiting.packets() >= self.limit.packets
            || self.waiting.bytes() + u64::from(size) > self.limit.bytes.0
    }

    /// More waits than may.
    pub fn overflows(&self) -> bool {
        self.waiting.packets() > self.limit.packets || self.waiting.bytes() > self.limit.bytes.0
    }

    pub fn limit(&self) -> Limit {
        self.limit
    }

    /// What names the two hosts of a packet.
    pub fn hosts_of(&self, packet: &Queued) -> u64 {
        let packet = &self.packets[packet.packet];
        u64::from(packet.src) << 32 | u64::from(packet.dst)
    }

    /// Hash of a packet's five-tuple.
    pub fn five_tuple(&self, packet: &Queued, tuples: FiveTuples, perturbation: u32) -> u32 {
        let packet = &self.packets[packet.packet];
        tuples.hash(packet.src, packet.dst, perturbation)
    }

    /// Drops a packet that is in no list.
    pub fn drop(&mut self, packet: Queued, cause: Cause) {
        self.account.subtract(packet, self.packets);
        self.account.drops.add(cause, [1]);
        self.packets[packet.packet].next = self.account.dropped;
        self.account.dropped = packet.packet;
    }

    /// The transport of a packet allows that it is trimmed, and it has not been.
    pub fn may_trim(&self, packet: &Queued) -> bool {
        self.packets[packet.packet].trimming == trimming::ALLOWED
    }

    /// Cuts a packet that is in no list to a number of bytes, in a class of headers.
    pub fn trim(&mut self, packet: Queued, to: u16, class: u8) -> Queued {
        self.account.subtract(packet, self.packets);
        let place = &mut self.packets[packet.packet];
        place.size = place.size.min(to);
        place.payload = 0;
        (place.class, place.wire_class) = (class, class);
        place.trimming |= trimming::TRIMMED;
        let header = Queued::new(packet.packet, place, self.account.link_header, packet.came);
        self.account.add(class, u64::from(place.size));
        header
    }

    /// Turns a trimmed packet that is in no list round to its source, unless it returns already; whether it
    /// did.
    pub fn turn_round(&mut self, packet: Queued) -> bool {
        let place = &mut self.packets[packet.packet];
        if place.trimming != trimming::ALLOWED | trimming::TRIMMED {
            return false;
        }
        place.trimming |= trimming::RETURNED;
        std::mem::swap(&mut place.src, &mut place.dst);
        place.next = self.account.returned;
        self.account.returned = packet.packet;
        self.account.subtract(packet, self.packets);
        true
    }

    /// Marks a packet if it may be marked; whether it did.
    pub fn mark(&mut self, packet: &Queued) -> bool {
        if !packet.capable {
            return false;
        }
        self.packets[packet.packet].flags |= flag::MARKED;
        self.account.marks += 1;
        true
    }
}

/// Packets and bytes (as on the wire) of a port, and what its switch has yet to be told.
#[derive(Debug, Clone, Default)]
pub struct QueueCounters {
    packets: u32,
    bytes: u64,
    class_bytes: [u64; CLASSES],
    link_header: u16,
    /// Dropped packets, by their `next`.
    dropped: PacketId,
    /// Packets that go back to their sources, by their `next`.
    returned: PacketId,
    marks: u64,
    /// Since the start, by [`Cause`].
    drops: CounterSet,
    /// The NIC was full and has room now: it has to be woken to ask for more.
    to_wake: bool,
}

impl QueueCounters {
    fn add(&mut self, class: u8, wire: u64) {
        self.packets += 1;
        self.bytes += wire;
        self.class_bytes[usize::from(class) % CLASSES] += wire;
    }

    fn subtract(&mut self, packet: Queued, packets: &PacketSlab) {
        let place = &packets[packet.packet];
        let size = counted(place, self.link_header);
        assert!(packet.size == size, "a packet of {size} bytes was queued as one of {}", packet.size);
        let wire = u64::from(place.size);
        self.packets -= 1;
        self.bytes -= wire;
        self.class_bytes[usize::from(packet.class) % CLASSES] -= wire;
    }

    /// The first of the packets that the discipline has dropped, linked by their `next`: the caller must free
    /// and count them.
    pub fn take_dropped(&mut self) -> PacketId {
        std::mem::replace(&mut self.dropped, NONE)
    }

    /// The first of the packets that turn round, linked by their `next`: the caller sends them back over
    /// their ports of ingress.
    #[inline]
    pub fn take_returned(&mut self) -> PacketId {
        std::mem::replace(&mut self.returned, NONE)
    }

    /// The packets that [`QueueCounters::take_dropped`] would return.
    pub fn dropped(&self, packets: &PacketSlab) -> impl Iterator<Item = PacketId> {
        linked(self.dropped, packets)
    }

    /// The packets that [`QueueCounters::take_returned`] would return.
    pub fn returned(&self, packets: &PacketSlab) -> impl Iterator<Item = PacketId> {
        linked(self.returned, packets)
    }

    fn take_one_dropped(&mut self, packets: &PacketSlab) -> Option<PacketId> {
        let id = (self.dropped != NONE).then_some(self.dropped)?;
        self.dropped = packets[id].next;
        Some(id)
    }

    /// Packets that it has marked since it was asked last.
    pub fn take_marks(&mut self) -> u64 {
        std::mem::take(&mut self.marks)
    }

    /// Whether the NIC has to be woken, in an event at this time, to [ask](QueueDiscipline::ask) for more;
    /// said once.
    #[inline]
    pub fn take_wake(&mut self) -> bool {
        std::mem::take(&mut self.to_wake)
    }
}

/// Packets linked by their `next`. Each is looked at only when the one behind it is asked for, so that the
/// caller may refuse it before.
fn linked(first: PacketId, packets: &PacketSlab) -> impl Iterator<Item = PacketId> {
    let mut before = None;
    std::iter::from_fn(move || {
        let id = before.map_or(first, |id| packets[id].next);
        before = Some(id);
        (id != NONE).then_some(id)
    })
}

/// A managed port's queue. What ports ask most lies at the same place whatever the discipline, so that one
/// branch decides.
#[derive(Debug, Clone)]
#[repr(C)]
pub struct Managed<D> {
    account: QueueCounters,
    waiting: Waiting,
    limit: Limit,
    nic: VecDeque<Queued>,
    nic_packets: usize,
    asks_later: bool,
    pauses: VecDeque<PacketId>,
    discipline: D,
}

impl<D: Discipline> Managed<D> {
    pub fn new<P: DisciplineParameters<State = D>>(
        config: &ManagedConfig<P>,
        place: &PortPlace,
    ) -> Managed<D> {
        Managed {
            discipline: config.discipline.start(config.limit, place),
            waiting: Waiting::default(),
            limit: config.limit,
            account: QueueCounters {
                link_header: config.link_header,
                dropped: NONE,
                returned: NONE,
                ..QueueCounters::default()
            },
            nic: VecDeque::new(),
            nic_packets: config.nic_packets as usize,
            asks_later: place.asks_later,
            pauses: VecDeque::new(),
        }
    }

    /// Moves packets on into the NIC while it has room, until the discipline has no more.
    fn fill_nic(&mut self, packets: &mut PacketSlab, now: Time) {
        while self.nic.len() < self.nic_packets {
            if self.waiting.is_empty() {
                return self.discipline.rest();
            }
            let Some(packet) = self.leave_discipline(packets, now) else { return };
            self.nic.push_back(packet);
        }
    }

    fn leave_discipline(&mut self, packets: &mut PacketSlab, now: Time) -> Option<Queued> {
        let Managed { discipline, waiting, limit, account, .. } = self;
        let mut cx = QueueContext { now, waiting, limit: *limit, account, packets };
        discipline.dequeue(&mut cx)
    }

    /// All packets that wait, in no particular order, are as if dropped; the discipline begins anew.
    fn empty(&mut self, packets: &mut PacketSlab) {
        self.discipline.reset();
        let removed: Vec<Queued> = self.nic.drain(..).chain(self.waiting.take_all()).collect();
        for packet in removed {
            self.account.subtract(packet, packets);
            packets[packet.packet].next = self.account.dropped;
            self.account.dropped = packet.packet;
        }
    }
}

impl<D: Discipline> QueueDiscipline for Managed<D> {
    // Not inlined: ports of other kinds would carry this code along.
    #[inline(never)]
    fn enqueue(&mut self, id: PacketId, packets: &mut PacketSlab, now: Time) -> Verdict {
        let packet = &packets[id];
        self.account.add(packet.class, u64::from(packet.size));
        if packet.class == 0 {
            self.pauses.push_back(id);
            return Verdict::Queued;
        }
        let queued = Queued::new(id, packet, self.account.link_header, now);
        let Managed { discipline, waiting, limit, account, .. } = self;
        let mut cx = QueueContext { now, waiting, limit: *limit, account, packets };
        discipline.enqueue(queued, &mut cx);
        self.fill_nic(packets, now);
        Verdict::Queued
    }

    #[inline(never)]
    fn dequeue(&mut self, paused: u8, packets: &mut PacketSlab, now: Time) -> Option<PacketId> {
        if let Some(id) = self.pauses.pop_front() {
            let size = u64::from(packets[id].size);
            self.account.packets -= 1;
            self.account.bytes -= size;
            self.account.class_bytes[0] -= size;
            return Some(id);
        }
        if paused & !1 != 0 {
            return None;
        }
        let full = self.nic.len() >= self.nic_packets;
        let next = match self.nic.pop_front() {
            Some(packet) => Some(packet),
            None => self.leave_discipline(packets, now),
        };
        match full && self.nic_packets > 0 {
            true if self.asks_later => self.account.to_wake = true,
            true => self.ask(packets, now),
            false => self.fill_nic(packets, now),
        }
        let packet = next?;
        self.account.subtract(packet, packets);
        Some(packet.packet)
    }

    // Not inlined, for the same reason.
    #[inline(never)]
    fn lets_through(&mut self, packet: &Packet, paused: u8) -> bool {
        // A packet would fill a NIC of one, which then asks for more.
        let is_free = self.account.packets == 0 && self.nic_packets != 1 && paused & !1 == 0;
        let size = counted(packet, self.account.link_header);
        if !is_free || packet.class == 0 || u64::from(size) > self.limit.bytes.0 {
            return false;
        }
        self.discipline.rest();
        let passes = self.discipline.lets_through(packet, size);
        if passes && self.nic_packets > 0 {
            // The NIC has room for more.
            self.discipline.rest();
        }
        passes
    }

    #[inline]
    fn rest(&mut self) {
        if self.account.packets == 0 {
            self.discipline.rest();
        }
    }

    fn evict(&mut self, packets: &mut PacketSlab) -> Option<PacketId> {
        if let Some(id) = self.account.take_one_dropped(packets) {
            return Some(id);
        }
        if self.nic.len() + self.waiting.packets() as usize > 0 {
            self.empty(packets);
            return self.account.take_one_dropped(packets);
        }
        self.dequeue(0, packets, Time::ZERO)
    }

    #[inline]
    fn bytes(&self) -> u64 {
        self.account.bytes
    }
    #[inline(never)]
    fn class_bytes(&self, class: u8) -> u64 {
        self.account.class_bytes[usize::from(class) % CLASSES]
    }
    #[inline]
    fn is_empty(&self) -> bool {
        self.account.packets == 0
    }
    #[inline]
    fn owns_buffer(&self) -> bool {
        true
    }
    #[inline]
    fn account(&mut self) -> Option<&mut QueueCounters> {
        Some(&mut self.account)
    }

    /// A NIC that was full asks for more, whether or not anything waits: disciplines notice that they are
    /// empty. If what has come meanwhile has filled it, it does not ask.
    fn ask(&mut self, packets: &mut PacketSlab, now: Time) {
        if self.nic.len() < self.nic_packets {
            let more = self.leave_discipline(packets, now);
            self.nic.extend(more);
        }
        self.fill_nic(packets, now);
    }

    fn set_rate(&mut self, rate: Rate) {
        self.discipline.set_rate(rate);
    }
    fn count(&mut self, now: Time, counters: &mut CounterSet) {
        counters.add(&BUFFER, [0]);
        counters.add_all(&self.account.drops);
        self.discipline.count(now, counters);
    }
}

/// Bytes of a packet that a discipline counts.
fn counted(packet: &Packet, link_header: u16) -> u32 {
    // Acknowledgements and tokens of some transports are smaller than a link header may be.
    u32::from(packet.size.saturating_sub(link_header))
}

impl Queued {
    fn new(id: PacketId, packet: &Packet, link_header: u16, now: Time) -> Queued {
        let data = packet.kind == PacketKind::Data;
        Queued {
            packet: id,
            size: counted(packet, link_header),
            came: now,
            key: flow_key(packet),
            flow: packet.flow,
            class: packet.class,
            data,
            capable: data && packet.flags & flag::NOT_CAPABLE == 0,
        }
    }
}

#[cfg(test)]
pub mod tests;
