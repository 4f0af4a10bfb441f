//! Queue disciplines: one file each. A port owns one.

mod afq;
mod cebinae;
mod classes;
mod codel;
mod drr;
mod dualpi2;
pub mod external;
mod fifo;
mod five_tuple;
mod fq_codel;
mod managed;
mod pfabric;
mod priority;
mod red;
mod trimming;

use crate::counters::{CounterGroup, CounterSet};
use crate::doc::SchemeDoc;
use crate::packet::{NONE, Packet, PacketId, PacketSlab};
use crate::parameters::{Nothing, Parameters};
use crate::units::{Bytes, Rate, Time};

pub use cebinae::{CacheErrors, CacheKind, CacheTrial};
pub use classes::{CLASSES, ClassLists};
pub use managed::{
    BUFFER, Cause, Discipline, DisciplineParameters, EARLY, Limit, List, ManagedConfig, PortFacts, PortPlace,
    QueueContext, QueueCounters, Queued, Waiting, cause,
};

/// What became of a packet offered to a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Queued,
    /// This packet (the offered one, or one that it displaced) is not in the queue and must be freed by the caller.
    Dropped(PacketId),
    /// The same of several packets, linked by their `next`: the first of them.
    DroppedAll(PacketId),
}

impl Verdict {
    /// Takes out the next of the packets that the caller must free, before it frees that one.
    #[inline]
    pub fn next_dropped(&mut self, packets: &PacketSlab) -> Option<PacketId> {
        let (id, rest) = match *self {
            Verdict::Queued => return None,
            Verdict::Dropped(id) => (id, NONE),
            Verdict::DroppedAll(id) => (id, packets[id].next),
        };
        *self = if rest == NONE { Verdict::Queued } else { Verdict::DroppedAll(rest) };
        Some(id)
    }
}

/// Keeps packets in the order in which they shall leave.
pub trait QueueDiscipline {
    fn enqueue(&mut self, id: PacketId, packets: &mut PacketSlab, now: Time) -> Verdict;
    /// The next packet to leave; bit c of `paused` holds class c back.
    fn dequeue(&mut self, paused: u8, packets: &mut PacketSlab, now: Time) -> Option<PacketId>;
    /// The switch's buffer has no room for a packet: a discipline that drops the least urgent packets takes it and drops others
    /// that have at least as many bytes together, or drops the packet itself.
    fn exchange(&mut self, id: PacketId, _packets: &mut PacketSlab, _now: Time) -> Verdict {
        Verdict::Dropped(id)
    }
    /// Any packet that waits, while there are any: the port is emptied, and nothing is decided.
    fn evict(&mut self, packets: &mut PacketSlab) -> Option<PacketId> {
        self.dequeue(0, packets, Time::ZERO)
    }
    /// Whether a packet that comes now may leave at once, as if it had been queued and dequeued: nothing waits and nothing
    /// holds it back. A discipline that must see every packet refuses.
    fn lets_through(&mut self, _packet: &Packet, _paused: u8) -> bool {
        false
    }
    /// Bytes in the queue, all classes.
    fn bytes(&self) -> u64;
    /// Bytes in the queue of one class.
    fn class_bytes(&self, class: u8) -> u64;
    fn is_empty(&self) -> bool;
    /// Packets wait in a buffer of the port's own, not in the switch's.
    fn owns_buffer(&self) -> bool {
        false
    }
    /// What a port with a buffer of its own has dropped and marked; none: the switch knows it already.
    fn account(&mut self) -> Option<&mut QueueCounters> {
        None
    }
    /// The NIC after the discipline, which was full, requests more.
    fn ask(&mut self, _packets: &mut PacketSlab, _now: Time) {}
    /// The link is free and nothing waits: it has found no packet, before the next one comes.
    fn rest(&mut self) {}
    /// The link has another rate now.
    fn set_rate(&mut self, _rate: Rate) {}
    /// Adds what it has counted until now.
    fn count(&mut self, _now: Time, _counters: &mut CounterSet) {}
}

/// Makes a [`QueueDiscipline`] of an enum of them; `$each` is the macro that calls whichever it is.
macro_rules! forward_to {
    ($each:ident) => {
        #[inline(always)]
        fn enqueue(&mut self, id: PacketId, packets: &mut PacketSlab, now: Time) -> Verdict {
            $each!(self, q => q.enqueue(id, packets, now))
        }
        #[inline(always)]
        fn dequeue(&mut self, paused: u8, packets: &mut PacketSlab, now: Time) -> Option<PacketId> {
            $each!(self, q => q.dequeue(paused, packets, now))
        }
        #[inline(never)]
        fn exchange(&mut self, id: PacketId, packets: &mut PacketSlab, now: Time) -> Verdict {
            $each!(self, q => q.exchange(id, packets, now))
        }
        #[inline(never)]
        fn evict(&mut self, packets: &mut PacketSlab) -> Option<PacketId> {
            $each!(self, q => q.evict(packets))
        }
        #[inline(always)]
        fn lets_through(&mut self, packet: &Packet, paused: u8) -> bool {
            $each!(self, q => q.lets_through(packet, paused))
        }
        #[inline(always)]
        fn bytes(&self) -> u64 {
            $each!(self, q => q.bytes())
        }
        #[inline(always)]
        fn class_bytes(&self, class: u8) -> u64 {
            $each!(self, q => q.class_bytes(class))
        }
        #[inline(always)]
        fn is_empty(&self) -> bool {
            $each!(self, q => q.is_empty())
        }
        #[inline(always)]
        fn owns_buffer(&self) -> bool {
            $each!(self, q => q.owns_buffer())
        }
        #[inline(always)]
        fn account(&mut self) -> Option<&mut QueueCounters> {
            $each!(self, q => q.account())
        }
        fn ask(&mut self, packets: &mut PacketSlab, now: Time) {
            $each!(self, q => q.ask(packets, now))
        }
        fn rest(&mut self) {
            $each!(self, q => q.rest())
        }
        fn set_rate(&mut self, rate: Rate) {
            $each!(self, q => q.set_rate(rate))
        }
        fn count(&mut self, now: Time, counters: &mut CounterSet) {
            $each!(self, q => q.count(now, counters))
        }
    };
}

/// What the rest of a scenario decides about a queue.
#[derive(Debug, Clone, Copy, Default)]
pub struct QueueDefaults {
    /// Bytes that a port holds by default, if the discipline has a limit of its own.
    pub limit: Option<Bytes>,
    /// Full ports trim packets by default, if the discipline can.
    pub trims: bool,
    /// Headers for which a port has no room are dropped by default.
    pub drops_headers: bool,
}

/// What others ask about a queue without knowing which it is.
#[derive(Debug, Clone, Copy, Default)]
pub struct QueueFacts {
    /// Packets wait in a buffer of the port's own, not in the switch's.
    pub owns_buffer: bool,
    /// It decides itself which packets are marked: the thresholds of the switch do not hold at its ports.
    pub marks: bool,
    /// It marks packets, if they may be marked, instead of dropping them: what to set so that it drops them.
    pub drops_instead: Option<&'static str>,
    /// Bytes that may wait at a port; none: what the switch's buffer lets in.
    pub capacity: Option<Bytes>,
    /// Packets that may wait at a port with a buffer of its own, of any size.
    pub packets: Option<u32>,
    /// The largest packet that an empty port takes, if its limit in bytes holds for that one too.
    pub largest: Option<Bytes>,
    /// What leaves next follows from what its flow has left to send.
    pub serves_by_remaining: bool,
    /// Full ports trim the packets of transports that allow it, to headers of this class.
    pub trims: Option<u8>,
    /// Bytes of trimmed packets, where data never have a turn before them.
    pub headers_first: Option<u16>,
    /// A class is served before all later ones.
    pub serves_by_class: bool,
    /// Classes are served in turn, none above the others.
    pub serves_in_turn: bool,
    /// Once empty, it serves the packets of one class as if none had come before.
    pub repeats: bool,
    pub memory: PortMemory,
}

impl QueueFacts {
    /// Bytes that may wait at a port if all packets have this size; none: what the switch's buffer lets in.
    pub fn room(&self, packet: u64) -> Option<Bytes> {
        let of_packets = self.packets.map_or(u64::MAX, |packets| u64::from(packets).saturating_mul(packet));
        self.capacity.map(|bytes| Bytes(bytes.0.min(of_packets)))
    }
}

/// Bytes of the discipline of a port, without its packets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PortMemory {
    /// Of every port.
    pub state: u64,
    /// Of tables, for each flow that passes, up to a maximum.
    pub each_flow: u64,
    pub max: u64,
}

impl PortMemory {
    /// Tables of one size, which exist from the first flow on.
    pub fn of_tables(bytes: u64) -> PortMemory {
        PortMemory { state: 0, each_flow: bytes, max: bytes }
    }

    /// Of a number of ports, each of which this number of flows pass on average.
    pub fn of_ports(self, ports: u64, flows: f64) -> u64 {
        // Where flows are fewer than ports, the other ports have no tables.
        let (passed, flows) = (ports as f64 * flows.min(1.0), flows.max(1.0));
        let tables = (flows * self.each_flow as f64).min(self.max as f64);
        ports.saturating_mul(self.state).saturating_add((passed * tables) as u64)
    }
}

/// The parameters of a queue discipline: a file of this room, and a line in the registry below.
pub trait QueueParameters: Sized {
    type State: QueueDiscipline;
    const DOC: SchemeDoc;
    fn read(p: &mut Parameters, defaults: QueueDefaults) -> Self;
    fn doc(&self) -> SchemeDoc {
        Self::DOC
    }
    fn facts(&self) -> QueueFacts {
        QueueFacts::default()
    }
    /// What deserves a look at a port.
    fn warning(&self, _port: &PortFacts) -> Option<String> {
        None
    }
    fn start(&self, place: &PortPlace) -> Self::State;
}

registry! {
    /// A queue discipline with all its parameters.
    QueueConfig: QueueParameters(QueueDefaults) =>
    /// A port's queue.
    #[repr(u8)]
    Queue {
        Afq = ManagedConfig<afq::AfqConfig>;
        Cebinae = ManagedConfig<cebinae::CebinaeConfig>;
        Codel = ManagedConfig<codel::CodelConfig>;
        Drr = ManagedConfig<drr::DrrConfig>;
        Dualpi2 = ManagedConfig<dualpi2::Dualpi2Config>;
        Fifo = fifo::FifoConfig;
        FqCodel = ManagedConfig<fq_codel::FqCodelConfig>;
        Pfabric = pfabric::PfabricQueueConfig;
        Priority = priority::PriorityConfig;
        Red = ManagedConfig<red::RedConfig>;
    }
    also OwnFifo = Box<managed::Managed<fifo::OwnFifo>>;
    also Trimming = Box<managed::Managed<trimming::Trimming>>;
    + External = external::ExternalQueue => external::External
}

/// What disciplines count, those of another crate included.
pub fn counters() -> Vec<&'static CounterGroup> {
    let added = external::ADDED.all().iter().map(|scheme| &scheme.doc);
    let own = DOCS.iter().chain(added).flat_map(|doc| doc.counters).copied();
    [&managed::BUFFER, &managed::EARLY].into_iter().chain(own).collect()
}

/// The discipline of switches whose transport asks for no other.
pub const DEFAULT_KIND: &str = fifo::FifoConfig::DOC.name;

// With it a port has four cache lines.
const _: () = assert!(size_of::<Queue>() <= 120);

impl QueueConfig {
    /// The discipline named `kind` with its defaults; none where [`KINDS`] has no such name.
    pub fn of(kind: &str, defaults: QueueDefaults) -> Option<QueueConfig> {
        QueueConfig::read(kind, &mut Parameters::new(&mut Nothing::default()), defaults)
    }

    /// Its name in scenarios.
    pub fn name(&self) -> &'static str {
        each_kind!(self, parameters => parameters.doc()).name
    }

    pub fn facts(&self) -> QueueFacts {
        each_kind!(self, parameters => parameters.facts())
    }

    /// What deserves a look at a port.
    pub fn warning(&self, port: &PortFacts) -> Option<String> {
        each_kind!(self, parameters => parameters.warning(port))
    }

    /// The queue of a port.
    pub fn start(&self, place: &PortPlace) -> Queue {
        match self {
            QueueConfig::Fifo(fifo::FifoConfig::Own(own)) => Queue::OwnFifo(own.start(place)),
            QueueConfig::Priority(priority::PriorityConfig { trimming: Some(own), .. }) => {
                Queue::Trimming(own.start(place))
            }
            _ => start_kind!(self, parameters => parameters.start(place)),
        }
    }
}

impl Default for QueueConfig {
    fn default() -> QueueConfig {
        QueueConfig::of(DEFAULT_KIND, QueueDefaults::default()).expect("the default is in the registry")
    }
}

/// What ns-3 has in front of every NIC, with its header of PPP, as a table of a scenario.
pub const OF_NS3_HOSTS: &str =
    "kind = \"fq-codel\"\nnic_packets = 100\nlink_header = \"2B\"\nretire = \"always\"";

/// Most ports have the FIFO over the shared buffer: it is asked for first, which is one comparison instead of a jump by table.
macro_rules! each_queue {
    ($queue:expr, $q:ident => $call:expr) => {
        if let Queue::Fifo($q) = $queue { $call } else { each_state!($queue, $q => $call) }
    };
}

impl QueueDiscipline for Queue {
    forward_to!(each_queue);
}

macro_rules! each_inside {
    ($queue:ident, $q:ident => $it:ident.$call:ident($($argument:expr),*)) => {
        (**$queue).$call($($argument),*)
    };
}

impl<Q: QueueDiscipline + ?Sized> QueueDiscipline for Box<Q> {
    forward_to!(each_inside);
}
