//! What the nodes of a partition share: clock, events, packets, ports, and the one way to put a packet on a link.

use super::outbox::Outbox;
use super::port::Port;
use super::{NodeIndex, PortId};
use crate::config::{Compat, TelemetryConfig};
use crate::engine::queue::EventQueue;
use crate::measure::PortTotals;
use crate::measure::recorder::Recorder;
use crate::packet::{NONE, Packet, PacketId, PacketSlab};
use crate::telemetry::int::{IntLayout, IntStacks};
use crate::units::Time;

/// Something that happens at a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// A packet (its head, at a cut-through switch) reaches the node by this port.
    Arrival { port: PortId, packet: PacketId },
    /// A packet held back for its tail may be forwarded.
    Forward { port: PortId, packet: PacketId },
    /// The transmitter of this port becomes free and something waits.
    Departure { port: PortId },
    /// The NIC behind this port may have a paced packet of a transport due; stale unless `serial` is the NIC's.
    Wake { port: PortId, serial: u32, transport: u8 },
    /// A timer of a transport at a host (its index in the partition); `token` is the transport's own.
    Timer { host: u32, token: u32, transport: u8 },
    /// A flow starts: `arrival` indexes the flows announced; `stage` counts the zero-delay steps of the compat mode.
    StartFlow { arrival: u32, stage: u8 },
}

/// What goes first among simultaneous events of one node, outside the compat mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Rank {
    /// Packets arrive, by input port.
    Arrival,
    /// Packets held back for their tails go on, by input port.
    Forward,
    /// Transmitters become free, by port.
    Departure,
    /// Timers, in the order in which the node set them.
    Timer,
    /// Flows start, by id.
    Flow,
}

/// The order of simultaneous events.
enum Order {
    /// By rank and place at the node, whatever the order of insertion. Nodes do not touch each other at one moment, so
    /// that they need no order among themselves; timers are counted through all nodes.
    ByRank { timers_set: u64 },
    /// As the HPCC authors' simulator would have inserted them.
    ByInsertion { inserted: u64 },
}

pub struct Partition {
    pub now: Time,
    pub compat: Compat,
    /// Its number among the partitions.
    pub number: u16,
    pub packets: PacketSlab,
    pub stacks: IntStacks,
    pub ports: Vec<Port>,
    pub totals: Vec<PortTotals>,
    pub recorder: Recorder,
    pub packet_hops: u64,
    pub bytes_on_wire: u64,
    /// Of these, telemetry in data packets and acknowledgements, counted where it is sent first.
    pub telemetry_bytes: u64,
    pub events_handled: u64,
    /// By partition that they are for.
    pub outboxes: Vec<Outbox>,
    events: EventQueue<Action>,
    order: Order,
}

/// What a partition is built from.
pub struct PartitionPlan {
    pub number: u16,
    pub partitions: usize,
    pub ports: Vec<Port>,
    pub compat: Compat,
    pub telemetry: TelemetryConfig,
    pub layout: IntLayout,
    pub recorder: Recorder,
}

impl Partition {
    pub fn new(plan: PartitionPlan) -> Partition {
        let max_hops = match plan.telemetry {
            TelemetryConfig::None => 1,
            TelemetryConfig::Int { max_hops, .. } => max_hops as usize,
        };
        // A slot of the queue should hold a few events (a busy port has one about every 100 ns), and all slots together the
        // microsecond or so that packets spend on a link.
        let slot = Time((1_000_000 / plan.ports.len().max(1) as u64).clamp(1 << 10, 1 << 14));
        Partition {
            now: Time::ZERO,
            compat: plan.compat,
            number: plan.number,
            packets: PacketSlab::new(),
            stacks: IntStacks::new(max_hops, plan.layout),
            totals: vec![PortTotals::default(); plan.ports.len()],
            ports: plan.ports,
            recorder: plan.recorder,
            packet_hops: 0,
            bytes_on_wire: 0,
            telemetry_bytes: 0,
            events_handled: 0,
            outboxes: (0..plan.partitions).map(|_| Outbox::default()).collect(),
            events: EventQueue::new(slot),
            order: match plan.compat {
                Compat::None => Order::ByRank { timers_set: 0 },
                Compat::HpccNs3 => Order::ByInsertion { inserted: 0 },
            },
        }
    }

    /// Takes the next event that comes before `limit`, and moves the clock to it.
    #[inline]
    pub fn next_event(&mut self, limit: Time) -> Option<Action> {
        let event = self.events.pop_before(limit)?;
        debug_assert!(event.time >= self.now);
        self.now = event.time;
        self.events_handled += 1;
        Some(event.what)
    }

    /// A time before which nothing happens here; none if nothing is to happen.
    pub fn nothing_before(&self) -> Option<Time> {
        self.events.none_before()
    }

    /// Schedules what happens at a node; `place` orders events of one rank (port number, flow id).
    #[inline]
    pub fn schedule(&mut self, at: Time, rank: Rank, place: u64, action: Action) {
        let key = match &mut self.order {
            Order::ByRank { .. } => (rank as u64) << 60 | place,
            Order::ByInsertion { inserted } => {
                *inserted += 1;
                *inserted
            }
        };
        self.events.push(at, key, action);
    }

    /// Schedules a timer of a node, behind the timers that it set before for the same time.
    #[inline]
    pub fn schedule_timer(&mut self, at: Time, action: Action) {
        let place = match &mut self.order {
            Order::ByRank { timers_set } => {
                *timers_set += 1;
                *timers_set
            }
            Order::ByInsertion { .. } => 0,
        };
        self.schedule(at, Rank::Timer, place, action);
    }

    /// Takes in what another partition sent here.
    pub fn take_in(&mut self, outbox: &mut Outbox) {
        let (ports, events) = (&self.ports, &mut self.events);
        outbox.empty_into(&mut self.packets, &mut self.stacks, |at, port, packet| {
            let key = (Rank::Arrival as u64) << 60 | u64::from(ports[port as usize].local);
            events.push(at, key, Action::Arrival { port, packet });
        });
    }

    /// Puts a packet on the link of an idle port. `more` says that something will want to leave after it.
    #[inline]
    pub fn transmit(&mut self, port_id: PortId, id: PacketId, more: bool) {
        let port = &mut self.ports[port_id as usize];
        let packet = &mut self.packets[id];
        let size = u64::from(packet.size);
        debug_assert!(port.is_idle(self.now) && port.up);
        let whole = port.line.transmission_time(size, self.compat);
        port.busy_until = self.now + whole;
        port.bytes_sent += size;
        port.packets_sent += 1;
        self.packet_hops += 1;
        self.bytes_on_wire += size;
        packet.generation = port.generation;
        packet.ingress = port.peer_local;
        let seen = port.line.time_to_head(size, whole, self.compat);
        let (at, local, peer) = (self.now + seen + port.line.delay, port.peer_local, port.peer);
        let there = port.peer_partition;
        if more || self.compat == Compat::HpccNs3 {
            self.expect_departure(port_id);
        }
        if there != self.number {
            return self.cross(there, at, peer, id);
        }
        self.schedule(at, Rank::Arrival, u64::from(local), Action::Arrival { port: peer, packet: id });
    }

    /// A packet leaves for another partition.
    fn cross(&mut self, there: u16, at: Time, port: PortId, id: PacketId) {
        self.outboxes[usize::from(there)].post(at, port, self.packets[id], &self.stacks);
        self.discard(id);
    }

    /// Makes sure that a departure event comes when the port's transmitter is free.
    #[inline]
    pub fn expect_departure(&mut self, port_id: PortId) {
        let port = &mut self.ports[port_id as usize];
        if port.departure_pending {
            return;
        }
        port.departure_pending = true;
        let (at, local) = (port.busy_until.max(self.now), u64::from(port.local));
        self.schedule(at, Rank::Departure, local, Action::Departure { port: port_id });
    }

    /// The node that a port belongs to.
    #[inline]
    pub fn owner(&self, port: PortId) -> NodeIndex {
        self.ports[port as usize].owner
    }

    /// Frees a packet and the telemetry that it carries.
    #[inline]
    pub fn discard(&mut self, id: PacketId) {
        let stack = self.packets[id].telemetry;
        if stack != NONE {
            self.stacks.remove(stack);
        }
        self.packets.remove(id);
    }

    /// Counts a packet that was refused at this port and frees it.
    #[cold]
    pub fn drop_packet(&mut self, port: PortId, id: PacketId) {
        let totals = &mut self.totals[port as usize];
        totals.packets_dropped += 1;
        totals.bytes_dropped += u64::from(self.packets[id].size);
        self.discard(id);
    }

    /// Counts a packet that has nowhere to go (its port's link is down, or no route is left) and frees it.
    #[cold]
    pub fn strand_packet(&mut self, port: PortId, id: PacketId) {
        let totals = &mut self.totals[port as usize];
        totals.packets_stranded += 1;
        totals.bytes_stranded += u64::from(self.packets[id].size);
        self.discard(id);
    }

    /// Counts a packet that the link into this port lost, and frees it.
    #[cold]
    fn lose_packet(&mut self, port: PortId, id: PacketId) {
        let totals = &mut self.totals[port as usize];
        totals.packets_lost += 1;
        totals.bytes_lost += u64::from(self.packets[id].size);
        self.discard(id);
    }

    /// Takes out the event that is next, without its happening: for the accounts at the end.
    pub fn take_pending(&mut self) -> Option<Action> {
        self.events.pop().map(|event| event.what)
    }

    /// A packet has come over the link into this port: counts it, unless the link went down meanwhile.
    #[inline]
    pub fn arrives(&mut self, port_id: PortId, id: PacketId) -> bool {
        let port = &mut self.ports[port_id as usize];
        let packet = &self.packets[id];
        if packet.generation != port.generation {
            self.lose_packet(port_id, id);
            return false;
        }
        port.bytes_received += u64::from(packet.size);
        port.packets_received += 1;
        true
    }

    /// The link of a port went down: nothing pauses it any more.
    pub fn release_pause(&mut self, port_id: PortId) {
        let port = &mut self.ports[port_id as usize];
        if std::mem::take(&mut port.paused) != 0 {
            let totals = &mut self.totals[port_id as usize];
            totals.paused += self.now - totals.paused_since;
        }
    }

    /// A pause or resume frame takes effect on the port that it came in by; true if the port may send again.
    pub fn obey_pause(&mut self, port_id: PortId, frame: &Packet) -> bool {
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
        let stopped = frame.kind == crate::packet::PacketKind::Pause;
        self.recorder.pause(self.now, port.node, u32::from(port.local), stopped);
        !stopped
    }
}
