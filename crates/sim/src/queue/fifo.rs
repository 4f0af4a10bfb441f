//! The RDMA switch's egress queue: eight classes, class 0 (PFC) strictly first and never paused, the others round
//! robin, first come, first served within a class.
//!
//! Source: the HPCC authors' simulator (Li et al., SIGCOMM 2019, §5.1).
//!
//! With `packets` or `limit` a port has a buffer of its own: one queue, whatever the class, which drops the packet that comes
//! when it is full.

use super::classes::{CLASSES, ClassLists};
use super::managed::{
    BUFFER, Discipline, DisciplineParameters, Limit, List, ManagedConfig, PortPlace, QueueContext, Queued,
};
use super::{QueueDefaults, QueueDiscipline, QueueFacts, QueueParameters, Verdict};
use crate::doc::SchemeDoc;
use crate::packet::{Packet, PacketId, PacketSlab};
use crate::parameters::Parameters;
use crate::units::Time;

const DOC: SchemeDoc = SchemeDoc {
    name: "fifo",
    title: "first come, first served: within each of eight classes, which are served in turn, or over all classes \
            if the queue has its own limit",
    source: "Li et al., \"HPCC: High Precision Congestion Control\", SIGCOMM 2019, and its authors' simulator",
    validation: "Waiting times at a port with Poisson arrivals equal those of an M/D/1 queue \
                 (tests/laws/queueing.rs).",
    ..SchemeDoc::NONE
};

#[derive(Debug, Clone, PartialEq)]
pub enum FifoConfig {
    /// Eight classes over the switch's shared buffer.
    Shared,
    /// One queue in a buffer of the port's own.
    Own(ManagedConfig<OwnFifoConfig>),
}

impl QueueParameters for FifoConfig {
    type State = Fifo;
    const DOC: SchemeDoc = DOC;

    fn read(p: &mut Parameters, defaults: QueueDefaults) -> FifoConfig {
        let own = ManagedConfig::<OwnFifoConfig>::read(p, defaults);
        if own.limit != Limit::NONE {
            return FifoConfig::Own(own);
        }
        if own.nic_packets > 0 || own.link_header > 0 {
            let message =
                "a fifo of the shared buffer has no NIC queue and no link header: set packets or limit";
            p.complain("nic_packets", message.to_string());
        }
        FifoConfig::Shared
    }

    fn facts(&self) -> QueueFacts {
        match self {
            FifoConfig::Shared => QueueFacts { serves_in_turn: true, repeats: true, ..QueueFacts::default() },
            FifoConfig::Own(own) => own.facts(),
        }
    }

    /// Of the form over the shared buffer; a port of the other one is [`OwnFifo`]'s.
    fn start(&self, _place: &PortPlace) -> Fifo {
        Fifo::default()
    }
}

#[derive(Debug, Clone, Default)]
#[repr(C)]
pub struct Fifo {
    /// Class served last; the search for the next one starts behind it.
    last: u8,
    lists: ClassLists,
}

impl QueueDiscipline for Fifo {
    #[inline]
    fn enqueue(&mut self, id: PacketId, packets: &mut PacketSlab, _now: Time) -> Verdict {
        self.lists.push(id, packets);
        Verdict::Queued
    }

    #[inline(always)]
    fn dequeue(&mut self, paused: u8, packets: &mut PacketSlab, _now: Time) -> Option<PacketId> {
        let occupied = self.lists.occupied();
        if occupied & 1 != 0 {
            return Some(self.lists.pop(0, packets));
        }
        let ready = occupied & !paused;
        if ready == 0 {
            return None;
        }
        // Rotated so that the class behind the last one served comes first.
        let turn = (self.last + 1) % CLASSES as u8;
        let class = (ready.rotate_right(u32::from(turn)).trailing_zeros() as u8 + turn) % CLASSES as u8;
        self.last = class;
        Some(self.lists.pop(usize::from(class), packets))
    }

    #[inline]
    fn lets_through(&mut self, packet: &Packet, paused: u8) -> bool {
        let class = packet.class;
        let through = self.lists.occupied() == 0 && (class == 0 || paused & (1 << class) == 0);
        if through && class != 0 {
            self.last = class;
        }
        through
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

/// First come, first served, whatever the class; a full port drops the packet that comes.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnFifoConfig;

impl DisciplineParameters for OwnFifoConfig {
    type State = OwnFifo;
    const DOC: SchemeDoc = DOC;
    const PACKETS: u32 = 0;

    fn read(_p: &mut Parameters) -> OwnFifoConfig {
        OwnFifoConfig
    }

    fn start(&self, _limit: Limit, _place: &PortPlace) -> OwnFifo {
        OwnFifo::default()
    }
}

#[derive(Debug, Clone, Default)]
pub struct OwnFifo {
    list: List,
}

impl Discipline for OwnFifo {
    fn enqueue(&mut self, packet: Queued, cx: &mut QueueContext) {
        if cx.is_full_for(packet.size) {
            return cx.drop(packet, &BUFFER);
        }
        cx.waiting.push(&mut self.list, packet);
    }

    fn dequeue(&mut self, cx: &mut QueueContext) -> Option<Queued> {
        cx.waiting.pop(&mut self.list)
    }

    fn lets_through(&mut self, _packet: &Packet, _size: u32) -> bool {
        true
    }

    fn reset(&mut self) {
        self.list = List::default();
    }
}

#[cfg(test)]
mod tests;
