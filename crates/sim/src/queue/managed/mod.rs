//! Ports that have a buffer of their own, under a discipline that knows the time.
//!
//! What all such disciplines share is here: the limit in packets or bytes, the NIC's queue behind the discipline, pauses
//! (class 0), which pass by everything, and the account of what was dropped and marked. A discipline ([`Discipline`]) only
//! decides which packet waits where, which leaves next and which is dropped, at arrival or when it is about to leave.
//!
//! A managed port takes nothing from the switch's shared buffer and calls for no pauses. While the peer pauses any class,
//! all data wait.

mod fifo;
mod waiting;

use super::{QueueDiscipline, Verdict};
use crate::counters::{CounterGroup, CounterSet};
use crate::packet::{NONE, PacketId, PacketKind, PacketSlab, flag};
use crate::queue::CLASSES;
use crate::queue::afq::Afq;
use crate::queue::cebinae::Cebinae;
use crate::queue::codel::CodelQueue;
use crate::queue::config::{DisciplineConfig, Limit, ManagedConfig};
use crate::queue::drr::Drr;
use crate::queue::dualpi2::Dualpi2;
use crate::queue::five_tuple::FiveTuples;
use crate::queue::fq_codel::FqCodel;
use crate::queue::red::Red;
use crate::units::{Rate, Time};
use fifo::ManagedFifo;
use std::collections::VecDeque;
#[cfg(test)]
pub use waiting::flow_key;
pub use waiting::{List, Queued, Waiting};

/// Where a port is: what disciplines derive their random streams and rates from.
#[derive(Debug, Clone, Copy)]
pub struct PortPlace<'a> {
    pub seed: u64,
    /// Of its node, and its number there.
    pub node: &'a str,
    pub local: u16,
    pub rate: Rate,
    /// A NIC that was full asks its discipline for more in an event of its own, behind others of that time (ns-3.35).
    pub asks_later: bool,
}

/// Decides about the packets of a managed port.
pub trait Discipline {
    /// Takes in a packet, or drops it, or others for it.
    fn enqueue(&mut self, packet: Queued, cx: &mut Bench);
    /// The next packet to leave; what is dropped on the way is told to the bench. None only if nothing waits.
    fn dequeue(&mut self, cx: &mut Bench) -> Option<Queued>;
    /// All that waits is gone, as the link is.
    fn forget(&mut self);
    /// The link has another rate now.
    fn set_rate(&mut self, _rate: Rate) {}
    /// Adds what it has counted until now, beside the packets that it dropped.
    fn count(&mut self, _now: Time, _counters: &mut CounterSet) {}
}

/// Why a packet was dropped: a group with one counter. Every cause has all ports with a buffer of their own in its table.
pub type Cause = &'static CounterGroup;

/// Declares a cause: its key, its title, a sentence on it, and one on its series, which is called `drops_` and the key.
macro_rules! cause {
    ($name:ident, $key:literal, $title:literal, $text:literal, $series:literal) => {
        #[doc = $text]
        pub static $name: $crate::counters::CounterGroup = $crate::counters::CounterGroup {
            table: "drop_causes",
            text: "Drops by why, of every port that has a buffer of its own.",
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
pub(super) use cause;

cause!(
    BUFFER,
    "buffer",
    "drops for want of room",
    "Packets that disciplines with a buffer of their own dropped for want of room.",
    "Drops for want of room in an interval; measure.disciplines."
);
cause!(
    EARLY,
    "early",
    "early drops",
    "Packets that a discipline dropped though there was room, to tell their senders to slow down.",
    "Drops in an interval that tell senders to slow down."
);

/// What a discipline works with.
pub struct Bench<'a> {
    pub now: Time,
    pub waiting: &'a mut Waiting,
    limit: Limit,
    account: &'a mut Account,
    packets: &'a mut PacketSlab,
}

impl Bench<'_> {
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
        self.account.subtract(packet);
        self.account.drops.add(cause, [1]);
        self.packets[packet.packet].next = self.account.dropped;
        self.account.dropped = packet.packet;
    }

    /// Marks a packet if its sender would react to that; whether it did.
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
struct Account {
    packets: u32,
    bytes: u64,
    class_bytes: [u64; CLASSES],
    link_header: u16,
    /// Dropped packets, by their `next`.
    dropped: PacketId,
    marks: u64,
    /// Since the start, by [`Cause`].
    drops: CounterSet,
}

impl Account {
    fn add(&mut self, class: u8, wire: u64) {
        self.packets += 1;
        self.bytes += wire;
        self.class_bytes[usize::from(class) % CLASSES] += wire;
    }

    fn subtract(&mut self, packet: Queued) {
        let wire = u64::from(packet.size) + u64::from(self.link_header);
        self.packets -= 1;
        self.bytes -= wire;
        self.class_bytes[usize::from(packet.class) % CLASSES] -= wire;
    }
}

/// A managed port's queue.
#[derive(Debug, Clone)]
pub struct Managed {
    discipline: AnyDiscipline,
    waiting: Waiting,
    limit: Limit,
    account: Account,
    nic: VecDeque<Queued>,
    nic_packets: usize,
    asks_later: bool,
    /// The NIC was full and has room now: it has to be woken to ask for more.
    to_wake: bool,
    pauses: VecDeque<PacketId>,
}

/// One line per discipline.
#[derive(Debug, Clone)]
enum AnyDiscipline {
    Fifo(ManagedFifo),
    Cebinae(Box<Cebinae>),
    Codel(CodelQueue),
    FqCodel(Box<FqCodel>),
    Drr(Box<Drr>),
    Red(Box<Red>),
    Dualpi2(Box<Dualpi2>),
    Afq(Box<Afq>),
}

macro_rules! each {
    ($discipline:expr, $d:ident => $call:expr) => {
        match $discipline {
            AnyDiscipline::Fifo($d) => $call,
            AnyDiscipline::Cebinae($d) => $call,
            AnyDiscipline::Codel($d) => $call,
            AnyDiscipline::FqCodel($d) => $call,
            AnyDiscipline::Drr($d) => $call,
            AnyDiscipline::Red($d) => $call,
            AnyDiscipline::Dualpi2($d) => $call,
            AnyDiscipline::Afq($d) => $call,
        }
    };
}

impl AnyDiscipline {
    fn new(config: &ManagedConfig, place: &PortPlace) -> AnyDiscipline {
        match &config.discipline {
            DisciplineConfig::Fifo => AnyDiscipline::Fifo(ManagedFifo::default()),
            DisciplineConfig::Cebinae(cebinae) => {
                AnyDiscipline::Cebinae(Box::new(Cebinae::new(cebinae, config.limit, place)))
            }
            DisciplineConfig::Codel(codel) => AnyDiscipline::Codel(CodelQueue::new(codel)),
            DisciplineConfig::FqCodel(fq) => AnyDiscipline::FqCodel(Box::new(FqCodel::new(fq, place.seed))),
            DisciplineConfig::Drr { quantum } => AnyDiscipline::Drr(Box::new(Drr::new(*quantum))),
            DisciplineConfig::Red(red) => AnyDiscipline::Red(Box::new(Red::new(red, place))),
            DisciplineConfig::Dualpi2(dual) => AnyDiscipline::Dualpi2(Box::new(Dualpi2::new(dual))),
            DisciplineConfig::Afq(afq) => AnyDiscipline::Afq(Box::new(Afq::new(afq, place.seed))),
        }
    }
}

impl Managed {
    pub fn new(config: &ManagedConfig, place: &PortPlace) -> Managed {
        Managed {
            discipline: AnyDiscipline::new(config, place),
            waiting: Waiting::default(),
            limit: config.limit,
            account: Account { link_header: config.link_header, dropped: NONE, ..Account::default() },
            nic: VecDeque::new(),
            nic_packets: config.nic_packets as usize,
            asks_later: place.asks_later,
            to_wake: false,
            pauses: VecDeque::new(),
        }
    }

    /// A packet that it has dropped and that the caller must free and count, if there is one.
    pub fn take_dropped(&mut self, packets: &PacketSlab) -> Option<PacketId> {
        let id = self.account.dropped;
        if id == NONE {
            return None;
        }
        self.account.dropped = packets[id].next;
        Some(id)
    }

    /// Packets that it has marked since it was asked last.
    pub fn take_marks(&mut self) -> u64 {
        std::mem::take(&mut self.account.marks)
    }

    pub fn set_rate(&mut self, rate: Rate) {
        each!(&mut self.discipline, d => d.set_rate(rate));
    }

    /// Moves packets on into the NIC while it has room.
    fn fill_nic(&mut self, packets: &mut PacketSlab, now: Time) {
        while self.nic.len() < self.nic_packets && !self.waiting.is_empty() {
            let Some(packet) = self.leave_discipline(packets, now) else { return };
            self.nic.push_back(packet);
        }
    }

    /// Whether the NIC has to be woken, in an event at this time, to [ask](Managed::ask) for more; said once.
    #[inline]
    pub fn take_wake(&mut self) -> bool {
        std::mem::take(&mut self.to_wake)
    }

    /// A NIC that was full asks for more, whether or not anything waits: disciplines notice that they are empty. If what has come
    /// meanwhile has filled it, it does not ask.
    pub fn ask(&mut self, packets: &mut PacketSlab, now: Time) {
        if self.nic.len() < self.nic_packets {
            let more = self.leave_discipline(packets, now);
            self.nic.extend(more);
        }
        self.fill_nic(packets, now);
    }

    fn leave_discipline(&mut self, packets: &mut PacketSlab, now: Time) -> Option<Queued> {
        let Managed { discipline, waiting, limit, account, .. } = self;
        let mut bench = Bench { now, waiting, limit: *limit, account, packets };
        each!(discipline, d => d.dequeue(&mut bench))
    }

    /// All packets that wait, in no particular order, are as if dropped; the discipline begins anew.
    fn empty(&mut self, packets: &mut PacketSlab) {
        each!(&mut self.discipline, d => d.forget());
        let gone: Vec<Queued> = self.nic.drain(..).chain(self.waiting.take_all()).collect();
        for packet in gone {
            self.account.subtract(packet);
            packets[packet.packet].next = self.account.dropped;
            self.account.dropped = packet.packet;
        }
    }
}

impl QueueDiscipline for Managed {
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
        let mut bench = Bench { now, waiting, limit: *limit, account, packets };
        each!(discipline, d => d.enqueue(queued, &mut bench));
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
            true if self.asks_later => self.to_wake = true,
            true => self.ask(packets, now),
            false => self.fill_nic(packets, now),
        }
        let packet = next?;
        self.account.subtract(packet);
        Some(packet.packet)
    }

    fn evict(&mut self, packets: &mut PacketSlab) -> Option<PacketId> {
        if let Some(id) = self.take_dropped(packets) {
            return Some(id);
        }
        if self.nic.len() + self.waiting.packets() as usize > 0 {
            self.empty(packets);
            return self.take_dropped(packets);
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
    fn count(&mut self, now: Time, counters: &mut CounterSet) {
        counters.add(&BUFFER, [0]);
        counters.add_all(&self.account.drops);
        each!(&mut self.discipline, d => d.count(now, counters));
    }
}

impl Queued {
    fn new(id: PacketId, packet: &crate::packet::Packet, link_header: u16, now: Time) -> Queued {
        let data = packet.kind == PacketKind::Data;
        Queued {
            packet: id,
            // A packet cannot be smaller than its link header; were it so, nothing of it would count.
            size: u32::from(packet.size.saturating_sub(link_header)),
            came: now,
            key: waiting::flow_key(packet),
            flow: packet.flow,
            class: packet.class,
            data,
            capable: data && packet.flags & flag::NOT_CAPABLE == 0,
        }
    }
}

#[cfg(test)]
pub mod tests;
