//! Queue disciplines: one file each. A port owns one.

mod classes;
mod fifo;
mod pfabric;
mod priority;

use crate::config::{DropRule, QueueConfig};
use crate::packet::{PacketId, PacketSlab};
use crate::parameters::Parameters;
use crate::units::Bytes;

pub use classes::{CLASSES, ClassLists};
pub use fifo::Fifo;
pub use pfabric::Pfabric;
pub use priority::Priority;

/// What became of a packet offered to a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Queued,
    /// This packet (the offered one, or one that it displaced) is not in the queue and must be freed by the caller.
    Dropped(PacketId),
}

/// Keeps packets in the order in which they shall leave.
pub trait QueueDiscipline {
    fn enqueue(&mut self, id: PacketId, packets: &mut PacketSlab) -> Verdict;
    /// The next packet to leave; bit c of `paused` holds class c back.
    fn dequeue(&mut self, paused: u8, packets: &mut PacketSlab) -> Option<PacketId>;
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
}

/// A port's queue; one line per discipline.
#[derive(Debug, Clone)]
#[repr(u8)]
pub enum Queue {
    Fifo(Fifo),
    Pfabric(Pfabric),
    Priority(Priority),
}

/// Names that a scenario may use, with what they are.
pub const KINDS: &[(&str, &str)] = &[
    ("fifo", "eight classes, class 0 first, the others in turn; first come, first served within a class"),
    (
        "pfabric",
        "the flow with the least left first; a full port drops the packet whose flow has the most left",
    ),
    ("priority", "eight classes, the lower number first; first come, first served within a class"),
];

/// Which packet a full queue drops.
pub const DROPS: &[(&str, &str)] = &[
    ("lowest", "the youngest packet of the least urgent class that waits, the new one among them"),
    ("tail", "the new one"),
];

/// Reads the settings of the discipline named `kind`; none where [`KINDS`] has no such name. `limit` is what a port holds
/// where nothing is said, if it has a limit of its own.
pub fn read(kind: &str, limit: Option<Bytes>, p: &mut Parameters) -> Option<QueueConfig> {
    match kind {
        "fifo" => Some(QueueConfig::Fifo),
        "pfabric" => Some(QueueConfig::Pfabric { limit: pfabric_limit(limit, p) }),
        "priority" => {
            let help = "bytes that may wait at a port, beside the limits of the shared buffer; 0B: no limit of its own";
            let limit = p.bytes("limit", limit.unwrap_or(Bytes(0)), help);
            let help = "which packet a port that has reached its limit drops";
            let drop = match p.choice("drop", "lowest", DROPS, help) {
                "tail" => DropRule::Tail,
                _ => DropRule::Lowest,
            };
            Some(QueueConfig::Priority { limit: (limit.0 > 0).then_some(limit), drop })
        }
        _ => None,
    }
}

/// Bytes that pFabric's publication lets wait at a port of 10 Gb/s.
pub const PFABRIC_LIMIT: Bytes = Bytes(36 << 10);

fn pfabric_limit(limit: Option<Bytes>, p: &mut Parameters) -> Bytes {
    let help = "bytes that may wait at a port (published: 36KiB at 10 Gb/s, two bandwidth-delay products; with \
                transport.kind = \"pfabric\" scaled like its window)";
    let limit = p.bytes("limit", limit.unwrap_or(PFABRIC_LIMIT), help);
    if limit == Bytes(0) || limit.0 > u64::from(u32::MAX) {
        let message = format!("{limit} is no limit: expected more than 0B and less than 4GiB");
        p.complain("limit", message);
        return PFABRIC_LIMIT;
    }
    limit
}

macro_rules! each {
    ($queue:expr, $q:ident => $call:expr) => {
        match $queue {
            Queue::Fifo($q) => $call,
            Queue::Pfabric($q) => $call,
            Queue::Priority($q) => $call,
        }
    };
}

impl Queue {
    pub fn new(config: QueueConfig) -> Queue {
        match config {
            QueueConfig::Fifo => Queue::Fifo(Fifo::default()),
            QueueConfig::Pfabric { limit } => Queue::Pfabric(Pfabric::new(limit)),
            QueueConfig::Priority { limit, drop } => Queue::Priority(Priority::new(limit, drop)),
        }
    }
}

impl QueueDiscipline for Queue {
    #[inline(always)]
    fn enqueue(&mut self, id: PacketId, packets: &mut PacketSlab) -> Verdict {
        each!(self, q => q.enqueue(id, packets))
    }
    #[inline(always)]
    fn dequeue(&mut self, paused: u8, packets: &mut PacketSlab) -> Option<PacketId> {
        each!(self, q => q.dequeue(paused, packets))
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
}
