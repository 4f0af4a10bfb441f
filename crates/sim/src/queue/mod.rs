//! Queue disciplines: one file each. A port owns one.

mod afq;
mod cebinae;
mod classes;
mod codel;
mod config;
mod drr;
mod dualpi2;
mod fifo;
mod five_tuple;
mod fq_codel;
mod managed;
mod pfabric;
mod priority;
mod read;
mod red;

use crate::counters::{CounterGroup, CounterSet};
use crate::packet::{PacketId, PacketSlab};
use crate::units::Time;
pub use config::*;

pub use cebinae::{CacheErrors, CacheTrial};
pub use classes::{CLASSES, ClassLists};
pub use fifo::Fifo;
pub use managed::{Managed, PortPlace};
pub use pfabric::Pfabric;
pub use priority::Priority;
pub use read::{KINDS, PFABRIC_LIMIT, read, source};

/// What became of a packet offered to a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Queued,
    /// This packet (the offered one, or one that it displaced) is not in the queue and must be freed by the caller.
    Dropped(PacketId),
}

/// Keeps packets in the order in which they shall leave.
pub trait QueueDiscipline {
    fn enqueue(&mut self, id: PacketId, packets: &mut PacketSlab, now: Time) -> Verdict;
    /// The next packet to leave; bit c of `paused` holds class c back.
    fn dequeue(&mut self, paused: u8, packets: &mut PacketSlab, now: Time) -> Option<PacketId>;
    /// Any packet that waits, while there are any: the port is emptied, and nothing is decided.
    fn evict(&mut self, packets: &mut PacketSlab) -> Option<PacketId> {
        self.dequeue(0, packets, Time::ZERO)
    }
    /// Whether a packet of this class that comes now may leave at once, as if it had been queued and dequeued: nothing
    /// waits and nothing holds it back. A discipline that must see every packet says no.
    fn lets_through(&mut self, _class: u8, _paused: u8) -> bool {
        false
    }
    /// Bytes in the queue, all classes.
    fn bytes(&self) -> u64;
    /// Bytes in the queue of one class.
    fn class_bytes(&self, class: u8) -> u64;
    fn is_empty(&self) -> bool;
    /// Adds what it has counted until now.
    fn count(&mut self, _now: Time, _counters: &mut CounterSet) {}
}

/// What disciplines count.
pub const COUNTERS: &[&CounterGroup] =
    &[&managed::BUFFER, &managed::EARLY, &cebinae::FILTER, &cebinae::COUNTERS, &afq::HORIZON];

/// A port's queue; one line per discipline.
#[derive(Debug, Clone)]
#[repr(u8)]
pub enum Queue {
    Fifo(Fifo),
    Pfabric(Pfabric),
    Priority(Priority),
    /// A discipline that knows the time, over a buffer of the port's own.
    Managed(Box<Managed>),
}

macro_rules! each {
    ($queue:expr, $q:ident => $call:expr) => {
        match $queue {
            Queue::Fifo($q) => $call,
            Queue::Pfabric($q) => $call,
            Queue::Priority($q) => $call,
            Queue::Managed($q) => $call,
        }
    };
}

impl Queue {
    pub fn new(config: &QueueConfig, place: &PortPlace) -> Queue {
        match config {
            QueueConfig::Fifo => Queue::Fifo(Fifo::default()),
            QueueConfig::Pfabric { limit } => Queue::Pfabric(Pfabric::new(*limit)),
            QueueConfig::Priority { limit, drop } => Queue::Priority(Priority::new(*limit, *drop)),
            QueueConfig::Managed(managed) => Queue::Managed(Box::new(Managed::new(managed, place))),
        }
    }

    /// Packets wait in a buffer of the port's own, not in the switch's.
    #[inline(always)]
    pub fn owns_buffer(&self) -> bool {
        matches!(self, Queue::Managed(_))
    }

    /// The queue of a port that has a buffer of its own.
    #[inline]
    pub fn managed(&mut self) -> Option<&mut Managed> {
        match self {
            Queue::Managed(managed) => Some(managed),
            _ => None,
        }
    }
}

impl QueueDiscipline for Queue {
    #[inline(always)]
    fn enqueue(&mut self, id: PacketId, packets: &mut PacketSlab, now: Time) -> Verdict {
        each!(self, q => q.enqueue(id, packets, now))
    }
    #[inline(always)]
    fn dequeue(&mut self, paused: u8, packets: &mut PacketSlab, now: Time) -> Option<PacketId> {
        each!(self, q => q.dequeue(paused, packets, now))
    }
    #[inline(never)]
    fn evict(&mut self, packets: &mut PacketSlab) -> Option<PacketId> {
        each!(self, q => q.evict(packets))
    }
    #[inline(always)]
    fn lets_through(&mut self, class: u8, paused: u8) -> bool {
        each!(self, q => q.lets_through(class, paused))
    }
    #[inline(always)]
    fn bytes(&self) -> u64 {
        each!(self, q => q.bytes())
    }
    #[inline(always)]
    fn class_bytes(&self, class: u8) -> u64 {
        each!(self, q => q.class_bytes(class))
    }
    #[inline(always)]
    fn is_empty(&self) -> bool {
        each!(self, q => q.is_empty())
    }
    fn count(&mut self, now: Time, counters: &mut CounterSet) {
        each!(self, q => q.count(now, counters))
    }
}
