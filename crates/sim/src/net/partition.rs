//! What the nodes of a partition share: clock, events, packets, ports, and the one way to put a packet on a
//! link.

mod departures;

use super::agenda::{Action, Agenda, AgendaKind, Due, DueInSlot, EDGE, Event, InOrder, Slot};
use super::awaited::Awaited;
use super::carried::Numbers;
use super::headers::Headers;
use super::loss::Losses;
use super::memory::{Carried, Memory};
use super::outbox::Outbox;
use super::port::{Launched, Port};
use super::tap::{Destination, Seen, Taps};
use super::{NodeIndex, PortId};
use crate::engine::queue::Timed;
use crate::measure::recorder::Recorder;
use crate::measure::{LossCounters, PortTotals};
use crate::packet::{NONE, Packet, PacketId, PacketKind, PacketSlab};
use crate::queue::QueueDiscipline;
use crate::telemetry::int::IntWriter;
use crate::transport::Numbering;
use crate::transport::binding::Bindings;
use crate::units::Time;
use crate::workload::FlowId;
use rustc_hash::FxHashMap;
use std::ops::Range;

pub struct Partition {
    pub now: Time,
    /// The end of every transmission has a number, and is an event if something comes before it, whether or not more waits.
    pub always_departs: bool,
    /// Hosts' ports have queues in front of them, and nothing lies between those and transports: a packet for which its port is idle
    /// may leave at once.
    pub passes_queues: bool,
    /// The same for a packet that comes alone: every host has one port, whose queue has room for any packet.
    pub passes_alone: bool,
    /// Index among the partitions.
    pub number: u16,
    /// The destination of packets that stay here.
    own: Destination,
    pub packets: PacketSlab,
    /// What packets carry where telemetry is on, how INT is written, and what they carry where it is off.
    pub(super) carried: Carried,
    pub int: IntWriter,
    pub(super) apart: Numbers,
    pub headers: Headers,
    /// Where they have been, if that is measured.
    pub trails: Headers,
    /// What they, and the packets that they acknowledge, have waited for processors of hosts, in ps.
    pub waits: Headers,
    /// When a packet was lost or stranded last.
    pub last_loss: Option<Time>,
    /// On links whose packets are written down.
    pub taps: Taps,
    pub ports: Vec<Port>,
    pub totals: Vec<PortTotals>,
    /// Of each port, its node among those of the partition.
    owners: Vec<u32>,
    pub recorder: Recorder,
    /// Flows so far to each host, where their ports count them: then there is one partition.
    pub flows_to: FxHashMap<u32, u32>,
    /// What hosts here have bound to their NICs.
    pub bindings: Bindings,
    /// By [`Packet::profile`].
    numberings: Box<[Numbering]>,
    /// Telemetry in data packets and acknowledgements, counted where it is sent first.
    pub telemetry_bytes: u64,
    taken_in_order: u64,
    /// Flows of which every packet was sent once and has arrived, as their senders know now: (flow, receiver,
    /// transport). Their receivers may forget them, because no duplicate is on its way.
    pub delivered_once: Vec<(FlowId, u32, u8)>,
    /// Flows that are to come to hosts here over connections that stay open.
    pub awaited: Awaited,
    /// By partition that they are for.
    pub outboxes: Vec<Outbox>,
    /// Probes that a switch is about to send, by its port.
    pub outgoing: Vec<(u32, Packet)>,
    /// Links may go down, and packets on them be lost.
    links_fail: bool,
    losses: Option<Losses>,
    pub agenda: Agenda,
    /// The packets and what they carry do not fit the cache of a core: more is fetched ahead of its turn.
    pub fetches_far: bool,
    /// What they carry, too, where they carry anything.
    fetches_all: bool,
    /// Nodes of the partition are numbered hosts first, then switches.
    pub hosts: u32,
}

/// How a link lost a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Loss {
    /// It went down while the packet was on it.
    DeadLink,
    Random,
}

/// What a partition is built from.
pub struct PartitionPlan<'a> {
    pub number: u16,
    pub partitions: usize,
    pub ports: Vec<Port>,
    pub always_departs: bool,
    pub passes_queues: bool,
    pub passes_alone: bool,
    pub agenda: AgendaKind,
    pub hosts: u32,
    pub nodes: usize,
    pub memory: &'a Memory,
    pub recorder: Recorder,
    /// By [`Packet::profile`].
    pub numberings: Box<[Numbering]>,
    pub links_fail: bool,
    /// What links lose at random.
    pub losses: Option<Losses>,
}

impl Partition {
    pub fn new(plan: PartitionPlan<'_>) -> Partition {
        let (packets, carried, int) = plan.memory.share();
        let ports = plan.ports.len();
        Partition {
            now: Time::ZERO,
            always_departs: plan.always_departs,
            passes_queues: plan.passes_queues,
            passes_alone: plan.passes_alone,
            number: plan.number,
            own: Destination::partition(plan.number),
            packets,
            carried,
            int,
            apart: Numbers::default(),
            headers: Headers::default(),
            trails: Headers::default(),
            waits: Headers::default(),
            last_loss: None,
            taps: Taps::default(),
            totals: vec![PortTotals::default(); plan.ports.len()],
            owners: plan.ports.iter().map(|port| port.slot).collect(),
            ports: plan.ports,
            recorder: plan.recorder,
            flows_to: FxHashMap::default(),
            bindings: Bindings::default(),
            numberings: plan.numberings,
            telemetry_bytes: 0,
            taken_in_order: 0,
            delivered_once: Vec::new(),
            awaited: Awaited::default(),
            outboxes: (0..plan.partitions).map(|_| Outbox::default()).collect(),
            outgoing: Vec::new(),
            agenda: Agenda::new(plan.agenda, (plan.hosts as usize, plan.nodes), ports),
            hosts: plan.hosts,
            fetches_far: false,
            fetches_all: false,
            links_fail: plan.links_fail || plan.losses.is_some(),
            losses: plan.losses,
        }
    }

    /// Payload came in order over a connection to a host here.
    #[inline(always)]
    pub fn deliver(&mut self, connection: FlowId, group: u16, bytes: u64) {
        self.recorder.count_bytes(group, bytes);
        if !self.recorder.watched.is_empty() {
            self.watch(connection, bytes);
        }
    }

    #[cold]
    fn watch(&mut self, connection: FlowId, bytes: u64) {
        self.recorder.watch(self.awaited.current(connection), bytes);
    }

    /// Where there are no windows with inboxes: takes the next event before `limit`, and moves the clock
    /// to it.
    #[inline(always)]
    pub fn next_event(&mut self, limit: Time) -> Option<Event> {
        let Agenda::Calendar(calendar) = &mut self.agenda else { return self.next_inserted(limit) };
        let event = calendar.pop_before(limit)?;
        self.packets.prefetch(calendar.packet_ahead());
        self.now = event.time();
        self.taken_in_order += 1;
        Some(event)
    }

    /// The same by the order of insertion.
    #[inline(never)]
    fn next_inserted(&mut self, limit: Time) -> Option<Event> {
        let event = self.agenda.next(limit)?;
        self.now = event.time();
        self.taken_in_order += 1;
        Some(event)
    }

    /// Where nodes take turns by the calendar: takes out what happens in the next slot before `limit`.
    #[inline]
    pub fn take_slot(&mut self, limit: Time) -> Option<Slot> {
        let Agenda::Calendar(calendar) = &mut self.agenda else { return None };
        calendar.take_slot(limit)
    }

    #[inline]
    pub fn give_back_slot(&mut self, slot: Slot) {
        if let Agenda::Calendar(calendar) = &mut self.agenda {
            calendar.give_back(slot);
        }
    }

    /// Takes the next event of a slot that was taken out, and moves the clock to it. With it come its node
    /// and the node of the event behind it; where there is none, another number.
    #[inline(always)]
    pub fn next_of_slot(&mut self, due: &mut DueInSlot) -> Option<(u32, Event, u32)> {
        let Agenda::Calendar(calendar) = &mut self.agenda else { return None };
        let [next, second, ahead] = calendar.next_of_slot(due)?;
        let event = calendar.event_of(next);
        self.packets.prefetch(ahead.packet());
        self.now = event.time();
        self.taken_in_order += 1;
        Some((next.node(), event, second.node()))
    }

    /// Events that have happened.
    pub fn events_handled(&self) -> u64 {
        match &self.agenda {
            Agenda::Windows(windows) => windows.handled,
            _ => self.taken_in_order,
        }
    }

    /// Under windows: begins the next one if anything comes before `limit`, where it ends at the latest.
    #[inline]
    pub fn open_window(&mut self, limit: Time) -> bool {
        const CACHE: usize = 1 << 20;
        self.fetches_far = self.packets.bytes() > CACHE;
        self.fetches_all = self.fetches_far && self.packets.have_room();
        let Agenda::Windows(windows) = &mut self.agenda else { return false };
        windows.open(limit)
    }

    /// Under windows: the next node from `from` on that may have something to do in the one at work.
    #[inline(always)]
    pub fn next_node(&self, from: u32) -> Option<u32> {
        let Agenda::Windows(windows) = &self.agenda else { return None };
        windows.next_node(from)
    }

    /// Under windows: begins to fetch the packets of some of the events of a node.
    #[inline(always)]
    pub fn prefetch_packets(&self, node: u32) {
        let Agenda::Windows(windows) = &self.agenda else { return };
        windows.some_of(node).iter().for_each(|event| self.packets.prefetch(event.packet()));
    }

    /// Under windows: the next event of the node at work, of those that are `due` and what came up since.
    #[inline(always)]
    pub fn next_of_node(&mut self, due: &mut Due) -> Option<Event> {
        let Agenda::Windows(windows) = &mut self.agenda else { return None };
        let (event, ahead) = windows.next_of_node(due)?;
        match ahead {
            None => {}
            Some(ahead) if self.fetches_all => self.packets.prefetch_all(ahead.packet()),
            Some(ahead) => self.packets.prefetch(ahead.packet()),
        }
        self.now = event.time();
        Some(event)
    }

    /// Under windows: what lay in the inbox of the node that begins.
    #[inline(always)]
    pub fn in_order(&mut self) -> InOrder {
        let Agenda::Windows(windows) = &mut self.agenda else { return InOrder::default() };
        windows.in_order()
    }

    #[inline(always)]
    pub fn give_back(&mut self, in_order: InOrder) {
        if let Agenda::Windows(windows) = &mut self.agenda {
            windows.give_back(in_order);
        }
    }

    /// Under windows: puts a node's events of this window in order; whether there are any.
    pub fn begins(&mut self, node: u32) -> bool {
        let Agenda::Windows(windows) = &mut self.agenda else { return false };
        windows.begin(node)
    }

    /// Schedules what happens at a node.
    #[inline]
    pub fn schedule(&mut self, node: u32, at: Time, action: Action) {
        self.agenda.push(node, Event::new(at, action));
    }

    /// Takes in all that another partition sent here.
    pub fn take_in(&mut self, inbox: &mut Outbox) {
        self.packets.receive(inbox.arrivals.len());
        for (&word, event) in inbox.headers.iter().zip(&inbox.arrivals) {
            self.headers.set(event.packet(), word);
        }
        for (&trail, event) in inbox.trails.iter().zip(&inbox.arrivals) {
            self.trails.set(event.packet(), trail);
        }
        for (&wait, event) in inbox.waits.iter().zip(&inbox.arrivals) {
            self.waits.set(event.packet(), wait);
        }
        self.take_in_apart(inbox);
        self.agenda.push_all(&inbox.nodes, &inbox.arrivals);
        inbox.clear();
    }

    /// From now on there are packets and what they carry, until the end of the turn.
    pub fn begin_turn(&mut self) {
        self.packets.begin_turn();
    }

    /// The partition has worked; others may then take in what it sent.
    pub fn end_turn(&mut self) {
        self.packets.end_turn();
    }

    /// Puts a packet on the link of an idle port. `more` says that something will want to leave after it.
    #[inline(always)]
    pub fn transmit(&mut self, port_id: PortId, id: PacketId, more: bool) {
        let port = &mut self.ports[port_id as usize];
        debug_assert!(port.is_idle(self.now) && port.up);
        let launched = port.launch(&mut self.packets[id], self.now, more);
        self.follow(&launched, port_id, id, false);
    }

    /// Schedules what follows from a packet on the link of a port. `plain`: the mode is known not to be one in which the end of
    /// every transmission has a number.
    #[inline(always)]
    pub fn follow(&mut self, launched: &Launched, port: PortId, id: PacketId, plain: bool) {
        match launched.free {
            Some((own, free)) => self.push_departure(own, Event::of_departure(free, port)),
            None if !plain && self.always_departs => self.reserve_departure(port),
            None => {}
        }
        self.arrive(launched.there, launched.node, launched.at, launched.peer, id);
    }

    /// A packet is to reach a port of a node, here or in another partition.
    #[inline(always)]
    pub fn arrive(&mut self, there: Destination, node: u32, at: Time, port: PortId, id: PacketId) {
        if there != self.own {
            return self.cross(there, at, node, port, id);
        }
        self.agenda.push(node, Event::of_arrival(at, port, id));
    }

    /// A packet leaves for another partition.
    #[inline(never)]
    fn cross(&mut self, there: Destination, at: Time, node: u32, port: PortId, id: PacketId) {
        let to = match there.target() {
            Ok(partition) => partition,
            Err(tap) => return self.pass_tap(tap, at, node, port, id),
        };
        let outbox = &mut self.outboxes[to];
        outbox.post(node, Event::of_arrival(at, port, id));
        if !self.headers.is_empty() {
            outbox.post_header(self.headers.get(id));
        }
        if !self.trails.is_empty() {
            outbox.post_trail(self.trails.get(id));
        }
        if !self.waits.is_empty() {
            outbox.post_wait(self.waits.get(id));
        }
        if let Some(places) = self.carried_apart(id) {
            self.outboxes[to].post_apart(places);
        }
        self.clear_words(id);
        self.packets.hand_over();
    }

    /// The first byte of its flow that a data packet carries.
    pub fn first_byte(&self, packet: &Packet) -> u64 {
        self.numberings[usize::from(packet.profile)].first_byte(packet)
    }

    /// The first byte of the data packet that is next in order after this one.
    pub fn next_byte(&self, packet: &Packet) -> u64 {
        self.numberings[usize::from(packet.profile)].next_byte(packet)
    }

    /// What a data packet carries, as its transport numbers it.
    pub fn carried_of(&self, id: PacketId) -> Range<u64> {
        let packet = &self.packets[id];
        (self.numberings[usize::from(packet.profile)].carried)(packet)
    }

    /// Records a packet that leaves by a link with a tap, and passes it on to its destination.
    #[cold]
    fn pass_tap(&mut self, tap: usize, at: Time, node: u32, port: PortId, id: PacketId) {
        let (there, link) = self.taps.link(tap);
        let packet = self.packets[id];
        if let Some(trace) = &mut self.taps.trace {
            // The network is one region then, and has a tap on every port, in order.
            let until = self.ports[tap].busy_until;
            trace.note(tap as u32, &packet, id, self.now, until, at);
            return self.arrive(there, node, at, port, id);
        }
        let seen = Seen { time: self.now, link, packet, header: self.headers.get(id), records: 0..0 };
        let mut taps = std::mem::take(&mut self.taps);
        taps.note(seen, |records| self.copy_carried(id, records));
        self.taps = taps;
        self.arrive(there, node, at, port, id);
    }

    /// Records packets that leave by a port from now on, as those of the link with this index.
    pub fn tap(&mut self, port: PortId, link: u16) {
        let port = &mut self.ports[port as usize];
        port.destination = self.taps.add(port.destination, link);
    }

    /// Whether a port leads to another partition.
    pub fn leaves(&self, port: &Port) -> bool {
        let destination =
            port.destination.target().map_or_else(|tap| self.taps.link(tap).0, |_| port.destination);
        destination != self.own
    }

    /// The node that a port belongs to.
    #[inline]
    pub fn owner(&self, port: PortId) -> NodeIndex {
        let slot = self.owners[port as usize];
        match slot.checked_sub(self.hosts) {
            None => NodeIndex::Host(slot),
            Some(switch) => NodeIndex::Switch(switch),
        }
    }

    /// Frees a packet.
    #[inline]
    pub fn discard(&mut self, id: PacketId) {
        self.clear_words(id);
        self.packets.remove(id);
    }

    /// A packet leaves its place: what it carried for others than its transport leaves too.
    #[inline]
    fn clear_words(&mut self, id: PacketId) {
        if self.headers.is_empty() & self.trails.is_empty() & self.waits.is_empty() {
            return;
        }
        for words in [&mut self.headers, &mut self.trails, &mut self.waits] {
            words.clear(id);
        }
    }

    /// Counts a packet that was refused at this port and frees it.
    #[cold]
    pub fn drop_packet(&mut self, port: PortId, id: PacketId) {
        if let Some(trace) = &mut self.taps.trace {
            trace.dropped.push((self.now, id, port));
        }
        let totals = &mut self.totals[port as usize];
        totals.packets_dropped += 1;
        totals.bytes_dropped += u64::from(self.packets[id].size);
        self.count(id, |losses| &mut losses.data_dropped);
        self.discard(id);
    }

    /// Counts what a port with a buffer of its own has dropped and marked, and frees it.
    #[inline(never)]
    pub fn settle(&mut self, port: PortId) {
        let Some(account) = self.ports[port as usize].queue.account() else { return };
        let mut dropped = account.take_dropped();
        self.totals[port as usize].ecn_marks += account.take_marks();
        if account.take_wake() {
            let node = self.ports[port as usize].slot;
            self.schedule(node, self.now, Action::Wake { port, serial: 0, transport: EDGE });
        }
        while dropped != NONE {
            let next = self.packets[dropped].next;
            self.drop_packet(port, dropped);
            dropped = next;
        }
    }

    /// Counts a packet that cannot leave by this port, whose link is down, and frees it.
    #[cold]
    pub fn drop_unroutable(&mut self, port: PortId, id: PacketId) {
        if let Some(trace) = &mut self.taps.trace {
            trace.dropped.push((self.now, id, port));
        }
        self.strand(port, id);
    }

    /// The same at a switch that has no route for a packet that came by this port.
    #[cold]
    pub fn drop_without_route(&mut self, port: PortId, id: PacketId) {
        if let Some(trace) = &mut self.taps.trace {
            let (node, dst) = (self.ports[port as usize].node, self.packets[id].dst);
            trace.without_route.push(((self.now, id), node, dst));
        }
        self.strand(port, id);
    }

    fn strand(&mut self, port: PortId, id: PacketId) {
        let totals = &mut self.totals[port as usize];
        totals.packets_stranded += 1;
        totals.bytes_stranded += u64::from(self.packets[id].size);
        self.count(id, |losses| &mut losses.data_stranded);
        self.last_loss = self.last_loss.max(Some(self.now));
        self.discard(id);
    }

    /// Counts a packet that the link into this port lost, and frees it.
    #[cold]
    fn lose_packet(&mut self, port: PortId, id: PacketId, how: Loss) {
        if let Some(trace) = &mut self.taps.trace {
            trace.lost.push((self.now, id));
        }
        let totals = &mut self.totals[port as usize];
        totals.packets_lost += 1;
        totals.packets_lost_at_random += u64::from(how == Loss::Random);
        totals.bytes_lost += u64::from(self.packets[id].size);
        self.count(
            id,
            match how {
                Loss::DeadLink => |losses| &mut losses.data_lost_on_dead_links,
                Loss::Random => |losses| &mut losses.data_lost_at_random,
            },
        );
        self.last_loss = self.last_loss.max(Some(self.now));
        self.discard(id);
    }

    /// Something befell a packet: it is counted under its group if it has data.
    #[cold]
    pub fn count(&mut self, id: PacketId, counter: fn(&mut LossCounters) -> &mut u64) {
        let packet = &self.packets[id];
        if packet.kind == PacketKind::Data {
            self.recorder.count(packet.group, counter);
        }
    }

    /// The run ends while a packet is on a link or in a queue.
    pub fn leave_in_flight(&mut self, id: PacketId) {
        self.count(id, |losses| &mut losses.data_in_flight);
    }

    /// A packet has come over the link into this port, unless the link went down meanwhile.
    #[inline]
    pub fn arrives(&mut self, port: PortId, id: PacketId) -> bool {
        if self.links_fail && self.is_lost(port, id) {
            return false;
        }
        // What a port received follows from what its peer sent; where assertions are on it is counted too.
        if cfg!(debug_assertions) {
            let port = &mut self.ports[port as usize];
            port.bytes_received += u64::from(self.packets[id].size);
            port.packets_received += 1;
        }
        true
    }

    /// Whether the link into a port lost a packet, which is counted then.
    #[inline(never)]
    fn is_lost(&mut self, port: PortId, id: PacketId) -> bool {
        let how = self.loss_of(port, id);
        if let Some(how) = how {
            self.lose_packet(port, id, how);
        }
        how.is_some()
    }

    /// How the link into a port lost a packet, if it did.
    fn loss_of(&mut self, port: PortId, id: PacketId) -> Option<Loss> {
        let (packet, at) = (&self.packets[id], &self.ports[port as usize]);
        if packet.generation != at.generation {
            return Some(Loss::DeadLink);
        }
        let losses = self.losses.as_mut()?;
        losses.takes(port as usize, (at.node, at.local), packet).then_some(Loss::Random)
    }

    /// Packets and bytes sent so far on all links, by partition of their sender.
    pub fn sent(&self) -> (u64, u64) {
        self.ports
            .iter()
            .fold((0, 0), |(packets, bytes), port| (packets + port.packets_sent, bytes + port.bytes_sent))
    }

    /// The link of a port went down: nothing pauses it any more.
    pub fn release_pause(&mut self, port_id: PortId) {
        let port = &mut self.ports[port_id as usize];
        if std::mem::take(&mut port.paused) != 0 {
            let totals = &mut self.totals[port_id as usize];
            totals.paused += self.now - totals.paused_since;
            self.recorder.pause(self.now, port.node, u32::from(port.local), false);
        }
    }

    /// A pause or resume frame takes effect on the port that it came in by; true if a class may send again.
    pub fn handle_pause(&mut self, port_id: PortId, frame: &Packet) -> bool {
        let port = &mut self.ports[port_id as usize];
        let totals = &mut self.totals[port_id as usize];
        let class = 1u8 << (frame.aux & 7);
        let was = port.paused;
        match frame.kind {
            crate::packet::PacketKind::Pause => {
                port.paused |= class;
                totals.pauses += 1;
                if was == 0 {
                    totals.paused_since = self.now;
                }
            }
            _ => {
                port.paused &= !class;
                if was != 0 && port.paused == 0 {
                    totals.paused += self.now - totals.paused_since;
                }
            }
        }
        // The series is of the port: it is paused as long as any class is.
        self.recorder.pause(self.now, port.node, u32::from(port.local), port.paused != 0);
        frame.kind != crate::packet::PacketKind::Pause
    }
}
