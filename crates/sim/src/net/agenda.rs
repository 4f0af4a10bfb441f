//! What is to happen in a partition, and in which order.
//!
//! An event is 16 bytes: its time, and a word that says what happens and orders what happens at the same
//! time. Order is a property of the model: by rank of the kind, then by port, timer or flow; nothing depends
//! on when or by whom an event was inserted. Nodes do not touch each other at one moment, so they need no
//! order among themselves.
//!
//! There are three agendas, with the same outcome. *Windows*: time advances by the shortest link delay, and
//! in each window every node works off its events at one go; nothing that it sends can reach another node
//! before the next window. *Calendar*: the same for links so short that nodes have few events in a window; or
//! one event after the other through all nodes, for networks in which one link is too short for any windows,
//! and as the oracle of the tests. *Insertion*: one event after the other too, ties broken by order of
//! insertion, for the compat modes.

mod calendar;
mod due;
mod insertion;
mod wires;

use super::PortId;
use crate::engine::prefetch::{prefetch, prefetch_end};
use crate::engine::queue::{EventQueue, Timed};
use crate::packet::PacketId;
use crate::units::Time;
use calendar::Calendar;
pub use calendar::{DueInSlot, Slot};
pub use due::{Due, InOrder};
use due::{Own, Sorter};
use insertion::Insertion;
use wires::Wires;

/// Something that happens at a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// A packet (its head, at a cut-through switch) reaches the node by this port.
    Arrival { port: PortId, packet: PacketId },
    /// A packet that came by this port and was held back for its tail may be forwarded.
    Forward { port: PortId, packet: PacketId },
    /// The transmitter of this port becomes free and something waits.
    Departure { port: PortId },
    /// The NIC behind this port may have a paced packet of a transport due; stale unless `serial` is the
    /// NIC's. At a switch, the NIC asks the port's discipline for more.
    Wake { port: PortId, serial: u32, transport: u8 },
    /// A timer of a transport at a host (its index in the partition); `token` is the transport's own.
    Timer { host: u32, token: u32, transport: u8 },
    /// A timer of a switch (its index among those of the partition); `token` is the switch's own.
    SwitchTimer { switch: u32, token: u32 },
    /// A flow starts: `arrival` is the place of its announcement; `stage` counts the zero-delay steps of the
    /// compat mode.
    StartFlow { flow: u32, arrival: u32, stage: u8 },
}

/// What goes first among simultaneous events of one node: packets that arrive, by input port; packets held
/// back for their tails, by input port; transmitters that become free, by port; NICs that wake up, by port;
/// timers, by transport and token, those of switches behind those of hosts; flows that start, by id.
mod rank {
    pub const ARRIVAL: u64 = 0;
    pub const FORWARD: u64 = 1;
    pub const DEPARTURE: u64 = 2;
    pub const WAKE: u64 = 3;
    pub const TIMER: u64 = 4;
    pub const FLOW: u64 = 5;
}

/// The numbers that stand where that of a transport would, for timers of hosts' edges and of switches. A host
/// has fewer transports.
pub const EDGE: u8 = 14;
const SWITCHES: u8 = 15;
/// Bits of ports, and of announced flows.
pub const PORT_BITS: u32 = 28;
/// Bits of a wake-up's serial number.
pub const SERIAL_BITS: u32 = 24;
const LOW: u64 = 0xffff_ffff;

/// An [`Action`] and its time, as one number: the time, then the rank, what orders events of that rank, and
/// what else belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Event(u128);

impl Event {
    /// The arrival of a packet.
    #[inline(always)]
    pub fn of_arrival(time: Time, port: PortId, packet: PacketId) -> Event {
        Event(u128::from(time.0) << 64 | u128::from(u64::from(port) << 32 | u64::from(packet)))
    }

    /// A transmitter becomes free.
    #[inline(always)]
    pub fn of_departure(time: Time, port: PortId) -> Event {
        Event(u128::from(time.0) << 64 | u128::from(rank::DEPARTURE << 60 | u64::from(port) << 32))
    }

    #[inline]
    pub fn new(time: Time, action: Action) -> Event {
        let at_port = |rank: u64, port: PortId, low: u32| {
            debug_assert!(port < 1 << PORT_BITS);
            rank << 60 | u64::from(port) << 32 | u64::from(low)
        };
        let order = match action {
            Action::Arrival { port, packet } => at_port(rank::ARRIVAL, port, packet),
            Action::Forward { port, packet } => at_port(rank::FORWARD, port, packet),
            Action::Departure { port } => at_port(rank::DEPARTURE, port, 0),
            Action::Wake { port, serial, transport } => {
                debug_assert!(serial < 1 << SERIAL_BITS);
                at_port(rank::WAKE, port, u32::from(transport) << SERIAL_BITS | serial)
            }
            Action::Timer { host, token, transport } => {
                debug_assert!(host < 1 << 24 && transport < SWITCHES);
                rank::TIMER << 60 | u64::from(transport) << 56 | u64::from(host) << 32 | u64::from(token)
            }
            Action::SwitchTimer { switch, token } => {
                debug_assert!(switch < 1 << 24);
                let transport = u64::from(SWITCHES);
                rank::TIMER << 60 | transport << 56 | u64::from(switch) << 32 | u64::from(token)
            }
            Action::StartFlow { flow, arrival, stage } => {
                debug_assert!(arrival < 1 << PORT_BITS);
                (rank::FLOW + u64::from(stage)) << 60 | u64::from(flow) << PORT_BITS | u64::from(arrival)
            }
        };
        Event(u128::from(time.0) << 64 | u128::from(order))
    }

    /// The wake-up of a NIC between two nanoseconds, put off to the second.
    #[inline]
    fn put_off(self) -> Option<Event> {
        let (ns, time) = (Time::from_ns(1).0, self.time().0);
        let between = self.order() >> 60 == rank::WAKE && time % ns != 0;
        between.then(|| Event(u128::from(time.next_multiple_of(ns)) << 64 | u128::from(self.order())))
    }

    #[inline]
    fn order(self) -> u64 {
        self.0 as u64
    }

    /// The packet that it is about, if any; else some number.
    #[inline(always)]
    pub fn packet(self) -> PacketId {
        self.order() as u32
    }

    /// The port that it is about, if any; else some number.
    #[inline(always)]
    pub fn port(self) -> PortId {
        (self.order() >> 32) as u32 & ((1 << PORT_BITS) - 1)
    }

    /// Transport and token, if this is a timer of a host.
    #[inline]
    pub fn timer(self) -> Option<(u8, u32)> {
        let transport = (self.order() >> 56) as u8 & 15;
        (self.order() >> 60 == rank::TIMER && transport != SWITCHES)
            .then_some((transport, self.order() as u32))
    }

    /// Port and packet, if this is an arrival: what most events are.
    #[inline]
    pub fn arrival(self) -> Option<(PortId, PacketId)> {
        (self.order() >> 60 == rank::ARRIVAL).then(|| ((self.order() >> 32) as u32, self.order() as u32))
    }

    /// The port, if this is a transmitter that becomes free: what most others are.
    #[inline(always)]
    pub fn departure(self) -> Option<PortId> {
        (self.order() >> 60 == rank::DEPARTURE).then(|| self.port())
    }

    /// Port, serial number and transport, if this is a wake-up of a NIC: what most others at a host are.
    #[inline(always)]
    pub fn wake(self) -> Option<(PortId, u32, u8)> {
        let low = self.order() as u32;
        let serial = low & ((1 << SERIAL_BITS) - 1);
        (self.order() >> 60 == rank::WAKE).then(|| (self.port(), serial, (low >> SERIAL_BITS) as u8))
    }

    #[inline]
    pub fn action(self) -> Action {
        if let Some((port, serial, transport)) = self.wake() {
            return Action::Wake { port, serial, transport };
        }
        let port = self.port();
        let low = (self.order() & LOW) as u32;
        match self.order() >> 60 {
            rank::ARRIVAL => Action::Arrival { port, packet: low },
            rank::FORWARD => Action::Forward { port, packet: low },
            rank::DEPARTURE => Action::Departure { port },
            rank::TIMER => {
                let (host, transport) = (port & ((1 << 24) - 1), (self.order() >> 56) as u8 & 0xf);
                match transport {
                    SWITCHES => Action::SwitchTimer { switch: host, token: low },
                    _ => Action::Timer { host, token: low, transport },
                }
            }
            stage => Action::StartFlow {
                flow: (self.order() >> PORT_BITS) as u32,
                arrival: self.order() as u32 & ((1 << PORT_BITS) - 1),
                stage: (stage - rank::FLOW) as u8,
            },
        }
    }
}

impl Timed for Event {
    #[inline]
    fn time(&self) -> Time {
        Time((self.0 >> 64) as u64)
    }
}

/// An event that is far off, with the node that it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Far {
    event: Event,
    node: u32,
}

impl Timed for Far {
    #[inline]
    fn time(&self) -> Time {
        self.event.time()
    }
}

/// How a partition orders its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgendaKind {
    /// By windows of this length, at most the shortest delay of a link within the partition.
    Windows(Time),
    /// The same where nodes have few events in one.
    ShortWindows(Time),
    /// One event after the other.
    Calendar,
    /// `longest`: the delay of the longest link. With `whole_ns`, NICs that would wake up between two
    /// nanoseconds do so at the second, behind all else, in order of their ports. With `by_wire`, a link inserts the
    /// arrival of a packet when the one before it has been delivered.
    Insertion { longest: Time, whole_ns: bool, by_wire: bool },
}

// What is large in it is touched with every event: it does not lie elsewhere.
#[allow(clippy::large_enum_variant)]
#[repr(u8)]
pub enum Agenda {
    Windows(Windows),
    Calendar(Calendar),
    Insertion(Insertion),
}

impl Agenda {
    /// For a partition with numbers of nodes, hosts first, and of ports.
    pub fn new(kind: AgendaKind, (hosts, nodes): (usize, usize), ports: usize) -> Agenda {
        // A slot of the queue should hold a few events (a busy port has one about every 100 ns), and all
        // slots together the microsecond or so that packets spend on a link. One of the calendar should hold
        // some tens.
        let slot = Time((1_000_000 / ports.max(1) as u64).clamp(1 << 10, 1 << 14));
        match kind {
            AgendaKind::Windows(length) => Agenda::Windows(Windows::new(length, nodes)),
            AgendaKind::ShortWindows(length) => {
                Agenda::Calendar(Calendar::by_node(length, hosts, nodes - hosts))
            }
            AgendaKind::Calendar => Agenda::Calendar(Calendar::by_time(Time(slot.0 * 32))),
            AgendaKind::Insertion { longest, whole_ns, by_wire } => {
                // A packet that crosses a long link should not wait in the heap.
                let slot = slot.max(Time(longest.0.saturating_mul(2) / EventQueue::<Far>::SLOTS));
                let wires = by_wire.then(|| Wires::new(ports));
                Agenda::Insertion(Insertion::new(slot, whole_ns, ports, wires))
            }
        }
    }

    /// Adds what happens at a node of the partition.
    #[inline(always)]
    pub fn push(&mut self, node: u32, event: Event) {
        match self {
            Agenda::Windows(windows) => windows.push(node, event),
            Agenda::Calendar(calendar) => calendar.push(node, event),
            Agenda::Insertion(insertion) => insertion.push(event),
        }
    }

    /// Adds what happens at several nodes, between windows.
    pub fn push_all(&mut self, nodes: &[u32], events: &[Event]) {
        match self {
            Agenda::Windows(windows) => windows.push_all(nodes, events),
            other => nodes.iter().zip(events).for_each(|(&node, &event)| other.push(node, event)),
        }
    }

    /// Takes out the next event before `limit`; none under windows, where nodes take turns.
    #[inline(always)]
    pub fn next(&mut self, limit: Time) -> Option<Event> {
        match self {
            Agenda::Windows(_) => None,
            Agenda::Calendar(calendar) => calendar.pop_before(limit),
            Agenda::Insertion(insertion) => insertion.next(limit),
        }
    }

    /// A time before which nothing happens; none if nothing is to happen.
    pub fn nothing_before(&self) -> Option<Time> {
        match self {
            Agenda::Windows(windows) => windows.nothing_before(),
            Agenda::Calendar(calendar) => calendar.none_before(),
            Agenda::Insertion(insertion) => insertion.none_before(),
        }
    }

    /// Takes out everything, for the accounts at the end.
    pub fn drain(&mut self) -> Vec<Event> {
        match self {
            Agenda::Windows(windows) => windows.drain(),
            queue => std::iter::from_fn(|| queue.next(Time::MAX)).collect(),
        }
    }
}

/// Events by node, worked off window by window.
pub struct Windows {
    length: Time,
    /// The window at work begins and ends here.
    start: Time,
    until: Time,
    /// What comes so long after it is kept apart.
    span: Time,
    /// By node, in no order: what came up before the window at work began, and since.
    inboxes: Vec<Vec<Event>>,
    next_inboxes: Vec<Vec<Event>>,
    /// Nodes with something in the one, and in the other.
    active: Vec<u64>,
    coming: Vec<u64>,
    /// The first event after the window at work and before the horizon.
    first: Time,
    far: EventQueue<Far>,
    /// Of the node at work.
    sorter: Sorter,
    own: Own,
    /// Events that nodes have worked off, or are about to.
    pub handled: u64,
}

/// Windows that inboxes are for: an event is looked at once in each until it comes.
const SPAN: u64 = 3;

impl Windows {
    fn new(length: Time, nodes: usize) -> Windows {
        let words = nodes.div_ceil(64);
        Windows {
            length: length.max(Time(1)),
            start: Time::ZERO,
            until: Time::ZERO,
            span: Time(length.0.saturating_mul(SPAN).min(1 << 62)),
            inboxes: vec![Vec::new(); nodes],
            next_inboxes: vec![Vec::new(); nodes],
            active: vec![0; words],
            coming: vec![0; words],
            first: Time::MAX,
            far: EventQueue::new(Time(length.0 / 64)),
            sorter: Sorter::default(),
            own: Own::default(),
            handled: 0,
        }
    }

    #[inline(always)]
    pub fn push(&mut self, node: u32, event: Event) {
        // One comparison for both ends.
        if event.time().0.wrapping_sub(self.until.0) >= self.span.0 {
            return self.push_outside(node, event);
        }
        self.first = self.first.min(event.time());
        let inbox = &mut self.next_inboxes[node as usize];
        if inbox.is_empty() {
            self.coming[node as usize / 64] |= 1 << (node % 64);
        }
        inbox.push(event);
    }

    /// What is far off, or comes up for the node at work within the window.
    #[inline(never)]
    fn push_outside(&mut self, node: u32, event: Event) {
        if !self.push_own(event) {
            self.far.push(Far { event, node });
        }
    }

    /// Adds what comes up for the node at work; false if it comes after the window.
    #[inline(always)]
    pub fn push_own(&mut self, event: Event) -> bool {
        let comes = event.time() < self.until;
        if comes {
            self.handled += 1;
            self.own.insert(event);
        }
        comes
    }

    /// Adds what happens at other nodes than the one at work, in no order.
    fn push_all(&mut self, nodes: &[u32], events: &[Event]) {
        const NODES_AHEAD: usize = 16;
        const ENDS_AHEAD: usize = 8;
        for (at, (&node, &event)) in nodes.iter().zip(events).enumerate() {
            if let (Some(&far), Some(&near)) = (nodes.get(at + NODES_AHEAD), nodes.get(at + ENDS_AHEAD)) {
                prefetch(&self.next_inboxes, far as usize);
                prefetch_end(&self.next_inboxes[near as usize]);
            }
            self.push(node, event);
        }
    }

    fn nothing_before(&self) -> Option<Time> {
        let near = (self.first < Time::MAX).then_some(self.first);
        near.into_iter().chain(self.far.none_before()).min()
    }

    /// Begins the next window if anything comes before `limit`, where it ends at the latest.
    pub fn open(&mut self, limit: Time) -> bool {
        let Some(start) = self.nothing_before().filter(|&start| start < limit) else { return false };
        self.start = start;
        self.until = start.saturating_add(self.length).min(limit);
        self.first = Time::MAX;
        std::mem::swap(&mut self.inboxes, &mut self.next_inboxes);
        std::mem::swap(&mut self.active, &mut self.coming);
        while let Some(Far { event, node }) = self.far.pop_before(self.until) {
            self.inboxes[node as usize].push(event);
            self.active[node as usize / 64] |= 1 << (node % 64);
        }
        true
    }

    /// The next node that may have something to do in this window, from `from` on.
    #[inline]
    pub fn next_node(&self, from: u32) -> Option<u32> {
        let mut word = from as usize / 64;
        let mut bits = self.active.get(word)? & (!0 << (from % 64));
        while bits == 0 {
            word += 1;
            bits = *self.active.get(word)?;
        }
        Some(word as u32 * 64 + bits.trailing_zeros())
    }

    /// Some of the events that lie in the inbox of a node.
    #[inline(always)]
    pub fn some_of(&self, node: u32) -> &[Event] {
        const SOME: usize = 8;
        let inbox = &self.inboxes[node as usize];
        &inbox[inbox.len().saturating_sub(SOME)..]
    }

    /// Begins to fetch the inbox of a node.
    #[inline(always)]
    pub fn prefetch_inbox(&self, node: u32) {
        let inbox = &self.inboxes[node as usize];
        prefetch(inbox, 0);
        prefetch(inbox, inbox.len() / 2);
        prefetch(inbox, inbox.len().wrapping_sub(1));
    }

    /// Puts a node's events of this window in order; whether there are any.
    pub fn begin(&mut self, node: u32) -> bool {
        self.active[node as usize / 64] &= !(1 << (node % 64));
        let inbox = &mut self.inboxes[node as usize];
        self.own.clear();
        let later = self.sorter.take_in(inbox, self.start, self.until);
        if !later.is_empty() {
            let first = later.iter().map(|event| event.time()).min();
            self.first = self.first.min(first.unwrap_or(Time::MAX));
            self.next_inboxes[node as usize].extend(later);
            self.coming[node as usize / 64] |= 1 << (node % 64);
        }
        self.handled += self.sorter.left() as u64;
        self.sorter.left() > 0
    }

    /// What lay in the inbox of the node that begins, for [`Windows::next_of_node`] until it is given back.
    #[inline(always)]
    pub fn in_order(&mut self) -> InOrder {
        std::mem::take(&mut self.sorter.sorted)
    }

    #[inline(always)]
    pub fn give_back(&mut self, in_order: InOrder) {
        self.sorter.sorted = in_order;
    }

    /// As [`Due::next`].
    #[inline(always)]
    pub fn next_of_node(&mut self, due: &mut Due) -> Option<(Event, Option<Event>)> {
        due.next(&mut self.own)
    }

    fn drain(&mut self) -> Vec<Event> {
        let boxes = self.inboxes.iter_mut().chain(&mut self.next_inboxes);
        let mut all: Vec<Event> = boxes.flat_map(|events| events.drain(..)).collect();
        all.extend(std::iter::from_fn(|| self.far.pop()).map(|far| far.event));
        all
    }
}

#[cfg(test)]
mod tests;
