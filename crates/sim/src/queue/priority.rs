//! Strict priority among eight classes, the lower number first; first come, first served within a class. With a limit,
//! a full port drops the new packet, or the youngest packets of the least urgent classes until the new one fits, as it does where
//! the switch's buffer is full; with `trim` it has a buffer of its own and cuts the payload off ([`super::trimming`]).
//!
//! Source of the second rule: Gao et al., "pHost", CoNEXT 2015, as its authors' simulator has it.
//! Differs from the source: class 0, which carries pauses, is neither limited nor counted; the authors' simulator drops one packet
//! for a new one whatever their sizes, so that it may hold more than its limit.

use super::classes::{CLASSES, ClassLists};
use super::managed::{Limit, ManagedConfig};
use super::trimming::{COUNTERS, TrimmingConfig, VICTIMS, Victim};
use super::{PortPlace, QueueDefaults, QueueDiscipline, QueueFacts, QueueParameters, Verdict};
use crate::doc::SchemeDoc;
use crate::packet::{NONE, Packet, PacketId, PacketSlab};
use crate::parameters::Parameters;
use crate::units::{Bytes, Time};

#[derive(Debug, Clone, PartialEq)]
pub struct PriorityConfig {
    /// Bytes that may wait at a port.
    pub limit: Option<Bytes>,
    pub drop: DropRule,
    /// Ports have buffers of their own, and trim what does not fit.
    pub trimming: Option<ManagedConfig<TrimmingConfig>>,
}

/// Which packet a full queue drops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropRule {
    /// Those that came last of the least urgent classes, until the new one fits: the new one only if the less urgent ones that
    /// wait do not have bytes enough.
    Lowest,
    /// The new one.
    Tail,
}

const DROPS: &[(&str, &str)] = &[
    (
        "lowest",
        "the youngest packets of the least urgent classes, until the new packet fits; the new packet if dropping all less \
         urgent ones would not be enough",
    ),
    ("tail", "the new packet"),
];

/// Of both forms.
pub const DOC: SchemeDoc = SchemeDoc {
    name: "priority",
    title: "eight classes, the lowest number first; first come, first served within a class; a full port drops, or trims \
            packets to their headers",
    source: "Strict priority; the drop rule as in the pHost authors' simulator (Gao et al., \"pHost\", CoNEXT 2015); trimming \
             as in NDP (Handley et al., SIGCOMM 2017) and its authors' simulator",
    validation: "Order, drops and trims by hand (queue/priority.rs, queue/trimming.rs); with pHost and NDP against their \
                 authors' simulators.",
    counters: &[&COUNTERS],
    ..SchemeDoc::NONE
};

impl QueueParameters for PriorityConfig {
    type State = Priority;
    const DOC: SchemeDoc = DOC;

    fn read(p: &mut Parameters, defaults: QueueDefaults) -> PriorityConfig {
        let help = "maximum number of bytes that wait at a port, in addition to the limits of the shared buffer; \
                    0B: no additional limit";
        let limit = p.bytes("limit", defaults.limit.unwrap_or(Bytes(0)), help);
        let help = "which packet is dropped where a port has reached its limit, or the shared buffer refuses a packet";
        let drop = match p.choice("drop", "lowest", DROPS, help) {
            "tail" => DropRule::Tail,
            _ => DropRule::Lowest,
        };
        let help = "which packet loses its payload at a port whose data have reached limit, if its transport allows that; ports \
                    then have private buffers";
        let victim = match p.choice("trim", if defaults.trims { "coin" } else { "none" }, VICTIMS, help) {
            "arriving" => Some(Victim::Arriving),
            "last" => Some(Victim::Last),
            "coin" => Some(Victim::Coin),
            _ => None,
        };
        let trimming = TrimmingConfig::read_with(p, victim, limit, defaults);
        let limit = (limit.0 > 0).then_some(limit);
        if trimming.is_some() {
            p.without_effect("drop", || "packets are trimmed, not dropped: set trim = \"none\"".into());
            if limit.is_none() {
                let message = "a port that trims needs a limit: expected a size such as \"72KB\"";
                p.complain("limit", message.into());
            }
        }
        let limits = Limit { bytes: limit.unwrap_or_default(), ..Limit::NONE };
        let trimming = trimming.map(|discipline| ManagedConfig {
            discipline,
            limit: limits,
            nic_packets: 0,
            link_header: 0,
        });
        PriorityConfig { limit, drop, trimming }
    }

    fn facts(&self) -> QueueFacts {
        let trims = self.trimming.as_ref().map(|own| own.discipline.class);
        let largest = trims.and(self.limit);
        let strict = self.trimming.as_ref().filter(|own| own.discipline.headers_per_data == 0);
        QueueFacts {
            capacity: self.limit,
            owns_buffer: trims.is_some(),
            largest,
            trims,
            headers_first: strict.map(|own| own.discipline.to),
            serves_by_class: true,
            ..QueueFacts::default()
        }
    }

    /// Of the form without trimming; a port of the other one is [`super::trimming`]'s.
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
    /// Bytes that would wait in excess of the limit, pauses left out.
    fn excess(&self, new: u64) -> u64 {
        (self.lists.bytes() - self.lists.class_bytes(0) + new).saturating_sub(u64::from(self.limit))
    }

    /// Takes a packet in, if less urgent ones have this number of bytes, and drops as many of them.
    #[cold]
    fn displace(&mut self, id: PacketId, bytes: u64, packets: &mut PacketSlab) -> Verdict {
        let class = packets[id].class;
        let less_urgent: u64 = (class + 1..CLASSES as u8).map(|class| self.lists.class_bytes(class)).sum();
        if self.drop == DropRule::Tail || less_urgent < bytes {
            return Verdict::Dropped(id);
        }
        let (before, mut dropped) = (self.lists.bytes(), NONE);
        while before - self.lists.bytes() < bytes {
            let lowest = u8::BITS - 1 - self.lists.occupied().leading_zeros();
            let last = self.lists.pop_last(lowest as usize, packets);
            packets[last].next = dropped;
            dropped = last;
        }
        self.lists.push(id, packets);
        Verdict::DroppedAll(dropped)
    }
}

impl QueueDiscipline for Priority {
    // Not inlined: fifo ports would carry this code along.
    #[inline(never)]
    fn enqueue(&mut self, id: PacketId, packets: &mut PacketSlab, _now: Time) -> Verdict {
        let packet = &packets[id];
        if packet.class != 0 {
            let excess = self.excess(u64::from(packet.size));
            if excess > 0 {
                return self.displace(id, excess, packets);
            }
        }
        self.lists.push(id, packets);
        Verdict::Queued
    }

    #[cold]
    fn exchange(&mut self, id: PacketId, packets: &mut PacketSlab, _now: Time) -> Verdict {
        let bytes = u64::from(packets[id].size).max(1);
        self.displace(id, bytes, packets)
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
    fn lets_through(&mut self, packet: &Packet, paused: u8) -> bool {
        let class = packet.class;
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
mod tests;
