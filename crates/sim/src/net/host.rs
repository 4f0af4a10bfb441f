//! A host: NIC ports, and the transports that they pull packets from; between them, where something is asked for there, its edge.

mod config;
mod edge;
mod processor;
mod resequencer;
mod telemetry_shim;

pub use config::{HostConfig, ResequencingConfig};
pub use edge::Edge;
pub use resequencer::TRAIL_SHIFT;
pub use telemetry_shim::{TelemetryShim, record_digest};

use super::PortId;
use super::agenda::{self, Action};
use super::partition::Partition;
use super::port::Port;
use crate::counters::CounterSet;
use crate::engine::prefetch::prefetch_lines;
use crate::packet::{PacketId, PacketKind};
use crate::queue::QueueDiscipline;
use crate::topology::Row;
use crate::transport::{HostContext, Look, Transport, TransportState};
use crate::units::Time;
use crate::workload::{FlowId, FlowSpec};

/// What a host looks at when a port became free, or when something came for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kick {
    /// The port.
    Port,
    /// All ports: any of them may take what they share.
    AnyPort,
    /// The queue in front of the port, which is filled first.
    Queue,
}

pub struct Host {
    pub id: u32,
    /// Its place among the hosts of its partition.
    pub index: u32,
    pub node: u32,
    pub first_port: PortId,
    pub ports: u16,
    pub kick: Kick,
    /// Where its next hops are looked up, and those of the switch behind its first port; renewed with the routes.
    pub rows: [Row; 2],
    pub transports: Vec<TransportState>,
    /// The transport that is asked first for the next packet: the one behind the one that gave the last.
    pub turn: usize,
    /// What packets pass between transports and links; none: nothing.
    pub edge: Option<Box<Edge>>,
}

impl Host {
    /// Begins to fetch what is touched of a host whatever happens there.
    #[inline(always)]
    pub fn prefetch(&self, ports: &[Port]) {
        if let (Some(transport), Some(port)) = (self.transports.first(), ports.get(self.first_port as usize))
        {
            prefetch_lines(port, 2);
            transport.prefetch();
        }
    }

    /// A packet has come in by a port.
    #[inline]
    pub fn receive(&mut self, port: PortId, id: PacketId, cx: &mut HostContext) {
        if !cx.net.arrives(port, id) {
            return;
        }
        if cx.net.packets[id].kind.is_for_neighbour() {
            return self.handle_pfc(port, id, cx);
        }
        // What a host received follows from what was sent; where assertions are on it is counted too.
        if cfg!(debug_assertions) {
            cx.net.count(id, |losses| &mut losses.data_received);
        }
        if self.edge.is_some() {
            return self.receive_at_edge(port, id, cx);
        }
        self.deliver(id, cx);
    }

    /// A transport gets a packet.
    #[inline(always)]
    fn deliver(&mut self, id: PacketId, cx: &mut HostContext) {
        let transport = cx.net.packets[id].transport;
        cx.transport = transport;
        if let Some(port) = self.transports[usize::from(transport)].receive(id, cx) {
            self.kick(port, cx);
        }
    }

    #[inline(never)]
    fn receive_at_edge(&mut self, port: PortId, id: PacketId, cx: &mut HostContext) {
        let at = (self.node, port - self.first_port);
        if let Some(edge) = &mut self.edge {
            edge.on_ingress(cx.net, cx.map, id, at);
        }
        self.deliver_ready(cx);
    }

    /// The transports get what the edge has for them.
    fn deliver_ready(&mut self, cx: &mut HostContext) {
        let Some(edge) = &mut self.edge else { return };
        let ready = edge.ready();
        for (token, at) in edge.alarms().into_iter().enumerate() {
            let Some(at) = at else { continue };
            let timer = Action::Timer { host: self.index, token: token as u32, transport: agenda::EDGE };
            cx.net.schedule(self.index, at, timer);
        }
        ready.iter().for_each(|&id| self.deliver(id, cx));
        if let Some(edge) = &mut self.edge {
            edge.give_back(ready);
        }
    }

    /// No packet of a flow that a transport received here can come any more.
    pub fn forget(&mut self, flow: FlowId, transport: u8) {
        self.transports[usize::from(transport)].forget(flow);
        if let Some(edge) = &mut self.edge {
            edge.forget(flow);
        }
    }

    /// A pause or resume frame has come in by a port, or a balancer's probe, which hosts ignore.
    #[cold]
    #[inline(never)]
    fn handle_pfc(&mut self, port: PortId, id: PacketId, cx: &mut HostContext) {
        let frame = cx.net.packets[id];
        cx.net.discard(id);
        if frame.kind != PacketKind::Probe && cx.net.handle_pause(port, &frame) {
            self.kick(port, cx);
        }
    }

    pub fn start_flow(&mut self, flow: FlowId, spec: &FlowSpec, cx: &mut HostContext) {
        let transport = cx.settings.transport_of[usize::from(spec.transport)];
        cx.transport = transport;
        if let Some(port) = self.transports[usize::from(transport)].start_flow(flow, spec, cx) {
            self.kick(port, cx);
        }
    }

    /// A timer of one of the transports, or of the edge.
    pub fn timer(&mut self, transport: u8, token: u32, cx: &mut HostContext) {
        if transport == agenda::EDGE {
            self.edge.iter_mut().for_each(|edge| edge.timer(token, cx.net));
            return self.deliver_ready(cx);
        }
        cx.transport = transport;
        if let Some(port) = self.transports[usize::from(transport)].on_timer(token, cx) {
            self.kick(port, cx);
        }
    }

    /// Routes have changed, or one of its links is down or up again.
    pub fn on_network_change(&mut self, cx: &mut HostContext) {
        for transport in 0..self.transports.len() {
            cx.transport = transport as u8;
            let moved = cx.move_flows(&mut self.transports[transport]);
            let others = self.transports[transport].on_network_change(cx);
            for port in moved.into_iter().chain(others) {
                self.kick(port, cx);
            }
        }
    }

    /// A NIC's wake-up for paced packets of one of the transports.
    #[inline]
    pub fn wake(&mut self, transport: u8, port: PortId, serial: u32, cx: &mut HostContext) {
        cx.transport = transport;
        let Some(of) = self.transports.get_mut(usize::from(transport)) else {
            return self.refill(port, cx);
        };
        if of.on_wake(port, serial, cx) {
            self.kick(port, cx);
        }
    }

    /// The NIC after a queue requests more.
    #[cold]
    fn refill(&mut self, port: PortId, cx: &mut HostContext) {
        cx.net.ports[port as usize].queue.ask(&mut cx.net.packets, cx.net.now);
        cx.net.settle(port);
        self.kick(port, cx);
    }

    /// A port became free, or something came for it: sends the next packet if there is one.
    #[inline]
    pub fn kick(&mut self, port: PortId, cx: &mut HostContext) {
        match self.kick {
            Kick::Port => self.kick_port(port, cx),
            Kick::AnyPort => self.kick_all(cx),
            Kick::Queue => self.kick_queue(port, cx),
        }
    }

    /// Puts all that transports may send now into the queue of a port, and sends the next packet if the port is free.
    #[inline(never)]
    fn kick_queue(&mut self, port_id: PortId, cx: &mut HostContext) {
        self.serve_queue(port_id, cx);
        while cx.net.ports[port_id as usize].up
            && let Some(id) = self.pull(port_id, cx)
        {
            if cx.net.may_pass(port_id, id) {
                self.transmit(port_id, id, false, cx);
                continue;
            }
            cx.enqueue(port_id, id);
            self.serve_queue(port_id, cx);
        }
        let (port, nic) = (&cx.net.ports[port_id as usize], cx.scheduler_of(port_id));
        let paused = port.paused;
        // What is held back by a pause, or by a link that is down, is looked at again when that ends.
        if !port.is_idle(cx.net.now) && !port.queue.is_empty() {
            cx.net.expect_departure(port_id);
        }
        for (number, transport) in self.transports.iter_mut().enumerate() {
            if let Look::Wake { at, serial } = transport.next_look(nic, paused, cx.net.now) {
                cx.transport = number as u8;
                cx.set_wake(at, port_id, serial);
            }
        }
    }

    /// Sends the next packet that waits in front of a port, if the port is free.
    fn serve_queue(&mut self, port_id: PortId, cx: &mut HostContext) {
        if cx.net.ports[port_id as usize].queue.is_empty() {
            return;
        }
        cx.net.look_at(port_id);
        let port = &mut cx.net.ports[port_id as usize];
        let next = match port.up && port.is_idle(cx.net.now) {
            true => port.queue.dequeue(port.paused, &mut cx.net.packets, cx.net.now),
            false => None,
        };
        cx.net.settle(port_id);
        if let Some(id) = next {
            let packet = &mut cx.net.packets[id];
            packet.class = packet.wire_class;
            self.transmit(port_id, id, false, cx);
        }
    }

    /// Puts a packet on the link of a port; `more` says that something may want to leave after it.
    #[inline(always)]
    fn transmit(&mut self, port_id: PortId, id: PacketId, more: bool, cx: &mut HostContext) {
        if let Some(edge) = &mut self.edge {
            edge.on_egress(cx.net, cx.map, id, (self.node, port_id - self.first_port));
        }
        cx.net.transmit(port_id, id, more);
    }

    #[inline(never)]
    fn kick_all(&mut self, cx: &mut HostContext) {
        let (turn, count) = (cx.turn(), u32::from(self.ports));
        for at in 0..count {
            let local = (turn + at) % count;
            let port = self.first_port + local;
            let before = cx.net.ports[port as usize].packets_sent;
            self.kick_port(port, cx);
            if cx.net.ports[port as usize].packets_sent > before {
                cx.pass_turn(local);
            }
        }
    }

    #[inline]
    fn kick_port(&mut self, port_id: PortId, cx: &mut HostContext) {
        let port = &mut cx.net.ports[port_id as usize];
        if port.departure_pending {
            return;
        }
        if port.busy_until <= cx.net.now {
            if !port.up {
                return;
            }
            let next = match port.queue.dequeue(port.paused, &mut cx.net.packets, cx.net.now) {
                Some(id) => {
                    let packet = &mut cx.net.packets[id];
                    packet.class = packet.wire_class;
                    Some(id)
                }
                None => self.pull(port_id, cx),
            };
            let Some(id) = next else { return };
            // Transports may have more by then, which only they know.
            self.transmit(port_id, id, cx.net.always_departs, cx);
        }
        self.look_ahead(port_id, cx);
    }

    /// The port is busy: makes sure that it is looked at again when it can send the next packet, if there is one. That
    /// is when its transmitter becomes free, or when pacing lets the packet go.
    #[inline(always)]
    fn look_ahead(&mut self, port_id: PortId, cx: &mut HostContext) {
        let port = &cx.net.ports[port_id as usize];
        if port.departure_pending {
            return;
        }
        if !port.queue.is_empty() {
            return cx.net.expect_departure(port_id);
        }
        let (free, paused, nic) = (port.busy_until, port.paused, cx.scheduler_of(port_id));
        for (number, transport) in self.transports.iter_mut().enumerate() {
            match transport.next_look(nic, paused, free) {
                Look::NoMore => {}
                Look::WhenFree => return cx.net.expect_departure(port_id),
                Look::Wake { at, serial } => {
                    cx.transport = number as u8;
                    cx.set_wake(at, port_id, serial);
                }
            }
        }
    }

    /// Asks the transports for a packet, in turn.
    #[inline(always)]
    fn pull(&mut self, port: PortId, cx: &mut HostContext) -> Option<PacketId> {
        let count = self.transports.len();
        if count == 1 {
            cx.transport = 0;
            return self.transports[0].next_packet(port, cx);
        }
        let mut transport = self.turn;
        for _ in 0..count {
            let next = if transport + 1 == count { 0 } else { transport + 1 };
            cx.transport = transport as u8;
            if let Some(id) = self.transports[transport].next_packet(port, cx) {
                self.turn = next;
                return Some(id);
            }
            transport = next;
        }
        None
    }

    /// The link of a port went down: what waits for it is lost.
    pub fn flush_port(&mut self, net: &mut Partition, port: PortId) {
        while let Some(id) = net.ports[port as usize].queue.evict(&mut net.packets) {
            net.drop_unroutable(port, id);
        }
    }

    /// Adds what its transports and its edge have counted until now.
    pub fn count(&mut self, now: Time, counters: &mut CounterSet) {
        self.transports.iter_mut().for_each(|transport| transport.count(now, counters));
        self.edge.iter_mut().for_each(|edge| edge.count(now, counters));
    }

    /// The run ends.
    pub fn finish(&mut self, cx: &mut HostContext) {
        for transport in 0..self.transports.len() {
            cx.transport = transport as u8;
            self.transports[transport].finish(cx);
        }
        if let Some(edge) = &mut self.edge {
            edge.finish(cx.net);
        }
    }
}
