//! A host: NIC ports, and the transports that they pull packets from; between them, where something is asked for there, its edge.

mod edge;
mod paths;
mod receiving;

pub use edge::{Edge, EdgeTotals};
pub use receiving::TRAIL_SHIFT;

use super::PortId;
use super::agenda::Action;
use super::map::Map;
use super::partition::Partition;
use crate::packet::{PacketId, PacketKind};
use crate::queue::QueueDiscipline;
use crate::settings::Settings;
use crate::transport::{Ended, HostContext, Look, Transport, TransportState};
use crate::workload::{FlowId, FlowSpec};

pub struct Host {
    pub id: u32,
    /// Its place among the hosts of its partition.
    pub index: u32,
    pub node: u32,
    pub first_port: PortId,
    pub ports: u16,
    pub transports: Vec<TransportState>,
    /// The transport that is asked first for the next packet: the one behind the one that gave the last.
    pub turn: usize,
    /// What packets pass between transports and links; none: nothing.
    pub edge: Option<Box<Edge>>,
}

/// What a host works with: everything of the network but the hosts.
pub struct Surroundings<'a> {
    pub net: &'a mut Partition,
    pub settings: &'a Settings,
    pub map: &'a Map,
    pub ended: &'a mut Vec<Ended>,
}

impl Host {
    #[inline]
    fn context<'a>(&self, transport: u8, around: &'a mut Surroundings) -> HostContext<'a> {
        HostContext {
            net: around.net,
            settings: around.settings,
            map: around.map,
            ended: around.ended,
            host: self.id,
            index: self.index,
            node: self.node,
            first_port: self.first_port,
            transport,
        }
    }

    /// A packet has come in by a port.
    #[inline]
    pub fn receive(&mut self, port: PortId, id: PacketId, around: &mut Surroundings) {
        if !around.net.arrives(port, id) {
            return;
        }
        let packet = &around.net.packets[id];
        match packet.kind {
            PacketKind::Pause | PacketKind::Resume => {
                let frame = *packet;
                around.net.discard(id);
                if around.net.obey_pause(port, &frame) {
                    self.kick(port, around);
                }
            }
            _ if self.edge.is_some() => self.receive_at_edge(port, id, around),
            _ => self.deliver(id, around),
        }
    }

    /// A transport gets a packet.
    #[inline]
    fn deliver(&mut self, id: PacketId, around: &mut Surroundings) {
        let transport = around.net.packets[id].transport;
        let mut cx = self.context(transport, around);
        if let Some(port) = self.transports[usize::from(transport)].receive(id, &mut cx) {
            self.kick(port, around);
        }
    }

    #[inline(never)]
    fn receive_at_edge(&mut self, port: PortId, id: PacketId, around: &mut Surroundings) {
        let at = (self.node, port - self.first_port);
        if let Some(edge) = &mut self.edge {
            edge.comes(around.net, around.map, id, at);
        }
        self.deliver_ready(around);
    }

    /// The transports get what the edge has for them.
    fn deliver_ready(&mut self, around: &mut Surroundings) {
        let Some(edge) = &mut self.edge else { return };
        let ready = edge.ready();
        if let Some(at) = edge.alarm() {
            let timer = Action::Timer { host: self.index, token: 0, transport: edge::TIMER };
            around.net.schedule(self.index, at, timer);
        }
        ready.iter().for_each(|&id| self.deliver(id, around));
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

    pub fn start_flow(&mut self, flow: FlowId, spec: &FlowSpec, around: &mut Surroundings) {
        let transport = around.settings.transport_of[usize::from(spec.transport)];
        let mut cx = self.context(transport, around);
        if let Some(port) = self.transports[usize::from(transport)].start_flow(flow, spec, &mut cx) {
            self.kick(port, around);
        }
    }

    /// A timer of one of the transports, or of the edge.
    pub fn timer(&mut self, transport: u8, token: u32, around: &mut Surroundings) {
        if transport == edge::TIMER {
            self.edge.iter_mut().for_each(|edge| edge.timer(around.net));
            return self.deliver_ready(around);
        }
        let mut cx = self.context(transport, around);
        if let Some(port) = self.transports[usize::from(transport)].on_timer(token, &mut cx) {
            self.kick(port, around);
        }
    }

    /// A NIC's wake-up for paced packets of one of the transports.
    #[inline]
    pub fn wake(&mut self, transport: u8, port: PortId, serial: u32, around: &mut Surroundings) {
        let cx = self.context(transport, around);
        if self.transports[usize::from(transport)].on_wake(port, serial, &cx) {
            self.kick(port, around);
        }
    }

    /// A port became free, or something came for it: sends the next packet if there is one.
    #[inline]
    pub fn kick(&mut self, port_id: PortId, around: &mut Surroundings) {
        let port = &mut around.net.ports[port_id as usize];
        if !port.is_idle(around.net.now) {
            return self.look_ahead(port_id, around);
        }
        if !port.up {
            return;
        }
        let next = match port.queue.dequeue(port.paused, &mut around.net.packets, around.net.now) {
            Some(id) => {
                let packet = &mut around.net.packets[id];
                packet.class = packet.wire_class;
                Some(id)
            }
            None => self.pull(port_id, around),
        };
        if let Some(id) = next {
            if let Some(edge) = &mut self.edge {
                edge.leaves(around.net, around.map, id, (self.node, port_id - self.first_port));
            }
            around.net.transmit(port_id, id, false);
            self.look_ahead(port_id, around);
        }
    }

    /// The port is busy: makes sure that it is looked at again when it can send the next packet, if there is one. That
    /// is when its transmitter becomes free, or when pacing lets the packet go.
    #[inline]
    fn look_ahead(&mut self, port_id: PortId, around: &mut Surroundings) {
        let port = &around.net.ports[port_id as usize];
        if port.departure_pending {
            return;
        }
        if !port.queue.is_empty() {
            return around.net.expect_departure(port_id);
        }
        let (free, paused, nic) = (port.busy_until, port.paused, (port_id - self.first_port) as usize);
        for (number, transport) in self.transports.iter_mut().enumerate() {
            match transport.next_look(nic, paused, free, around.net.compat) {
                Look::NoMore => {}
                Look::WhenFree => return around.net.expect_departure(port_id),
                Look::Wake { at, serial } => {
                    let wake = Action::Wake { port: port_id, serial, transport: number as u8 };
                    around.net.schedule(self.index, at, wake);
                }
            }
        }
    }

    /// Asks the transports for a packet, in turn.
    #[inline]
    fn pull(&mut self, port: PortId, around: &mut Surroundings) -> Option<PacketId> {
        let count = self.transports.len();
        if count == 1 {
            let mut cx = self.context(0, around);
            return self.transports[0].next_packet(port, &mut cx);
        }
        let mut transport = self.turn;
        for _ in 0..count {
            let next = if transport + 1 == count { 0 } else { transport + 1 };
            let mut cx = self.context(transport as u8, around);
            if let Some(id) = self.transports[transport].next_packet(port, &mut cx) {
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
            net.strand_packet(port, id);
        }
    }

    /// The run ends.
    pub fn finish(&mut self, around: &mut Surroundings) {
        for transport in 0..self.transports.len() {
            let mut cx = self.context(transport as u8, around);
            self.transports[transport].finish(&mut cx);
        }
        if let Some(edge) = &mut self.edge {
            edge.finish(around.net);
        }
    }
}
