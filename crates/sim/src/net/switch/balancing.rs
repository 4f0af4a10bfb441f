//! What a switch does for a load balancer that asks for more than to choose: it tells it of packets that come, pass and leave, and of
//! probes and its timer, and sends its probes. Only switches whose balancer asks for it come here.

use super::{Switch, departs};
use crate::balance::{
    Arrival, Balancer, Departure, Events, Forward, Held, LoadBalancer, Neighbour, Ports, SwitchContext,
};
use crate::engine::random::mix64;
use crate::net::PortId;
use crate::net::agenda::Action;
use crate::net::host::TRAIL_SHIFT;
use crate::net::partition::Partition;
use crate::net::port::Port;
use crate::packet::{NONE, Packet, PacketId, PacketKind};
use crate::queue::{CLASSES, QueueDiscipline};
use crate::topology::{NextHops, Routes, Row};
use crate::units::{Rate, Time};

impl Switch {
    /// The same as for others in [`Switch::admit`]: sends a packet at once if nothing is in its way.
    #[inline(never)]
    pub(super) fn pass_watched(&mut self, net: &mut Partition, out: PortId, id: PacketId) -> bool {
        net.look_at(out);
        let (packet, carried) = net.packets.with_room_of(id);
        let port = &mut net.ports[out as usize];
        let passes = port.is_idle(net.now)
            && port.up
            && self.buffer.lets_pass(packet.ingress, packet.class, u64::from(packet.size))
            && port.queue.lets_through(packet, port.paused);
        if !passes {
            return false;
        }
        let marks = departs(self, port, (packet, carried), net.now, &net.int, false);
        net.totals[out as usize].ecn_marks += u64::from(marks);
        self.tell_departure(net, out, id);
        net.transmit(out, id, false);
        true
    }

    /// The balancer is told of a packet that leaves.
    #[inline(never)]
    pub(super) fn tell_departure(&mut self, net: &mut Partition, out: PortId, id: PacketId) {
        let (packet, rate) = (&net.packets[id], net.ports[out as usize].line.rate);
        let bytes = u32::from(packet.size);
        let departure = Departure { port: out - self.first_port, bytes, rate, now: net.now };
        if !self.events.has(Events::WORDS) || packet.class == 0 {
            return self.balancer.on_departure(&departure, &mut 0);
        }
        let mut word = net.headers.get(id);
        self.balancer.on_departure(&departure, &mut word);
        net.headers.set(id, word);
    }

    /// The balancer is told of a packet that has come in, before it chooses.
    #[inline(never)]
    pub(super) fn tell_arrival(&mut self, net: &mut Partition, port: PortId, id: PacketId) {
        let packet = &net.packets[id];
        let has_more = packet.kind == PacketKind::Control && packet.carries;
        let options = has_more.then(|| net.numbers(id));
        let arrival = Arrival { packet, port: port - self.first_port, options, now: net.now };
        let mut word = net.headers.get(id);
        let more = self.balancer.on_arrival(&arrival, &mut word);
        lengthen(net, id, word, more);
    }

    /// The same of a packet whose port is chosen.
    #[inline(never)]
    pub(super) fn tell_forward(&mut self, net: &mut Partition, port: PortId, out: PortId, id: PacketId) {
        let (from, to) = (port - self.first_port, out - self.first_port);
        let mut word = net.headers.get(id);
        let forward = Forward { packet: &net.packets[id], from, to, now: net.now };
        let more = self.balancer.on_forward(&forward, &mut word);
        lengthen(net, id, word, more);
    }

    /// Whether the balancer holds a packet whose port is chosen, so that it is not forwarded now.
    #[inline(never)]
    pub(super) fn hold(
        &mut self,
        net: &mut Partition,
        routes: &Routes,
        (port, out): (PortId, PortId),
        id: PacketId,
    ) -> bool {
        let (from, to) = (port - self.first_port, out - self.first_port);
        let (packet, word, now) = (net.packets[id], net.headers.get(id), net.now);
        let forward = Forward { packet: &packet, from, to, now };
        // It is in no queue yet, so there is room to remember the port.
        net.packets[id].next = out;
        let passes = self.act(net, routes, |balancer, cx| balancer.holds(&forward, Held(id), word, cx));
        match passes.map(Held::into_id) {
            Some(passes) if passes == id => return false,
            Some(other) => {
                self.held.remove(&other);
                self.go_on(net, other);
            }
            None => {}
        }
        self.held.insert(id);
        true
    }

    /// A packet's trail: one switch more, and which way it took there.
    #[inline(never)]
    pub(super) fn leave_trail(&self, net: &mut Partition, out: u32, id: PacketId) {
        let trail = net.trails.get(id);
        let (passed, path) = ((trail >> TRAIL_SHIFT) + 1, trail & ((1 << TRAIL_SHIFT) - 1));
        let here = u64::from(self.node) << 32 | u64::from(out);
        let path = mix64(path ^ mix64(here)) & ((1 << TRAIL_SHIFT) - 1);
        net.trails.set(id, passed.min(255) << TRAIL_SHIFT | path);
    }

    /// When its balancer's timer comes up first; none: it has none.
    pub fn first_timer(&self) -> Option<Time> {
        self.balancer.first_timer()
    }

    /// The balancer's timer has come up.
    #[inline(never)]
    pub fn timer(&mut self, net: &mut Partition, routes: &Routes) {
        let next = self.act(net, routes, |balancer, cx| balancer.on_timer(cx));
        if let Some(at) = next {
            self.wake(net, at);
        }
    }

    fn wake(&self, net: &mut Partition, at: Time) {
        let node = net.ports[self.first_port as usize].slot;
        net.schedule(node, at, Action::SwitchTimer { switch: node - net.hosts, token: 0 });
    }

    /// A probe has come in by a port.
    #[inline(never)]
    pub(super) fn receive_probe(&mut self, net: &mut Partition, routes: &Routes, port: PortId, id: PacketId) {
        let probe = net.packets[id];
        net.discard(id);
        let local = port - self.first_port;
        self.act(net, routes, |balancer, cx| balancer.on_probe(&probe, local, cx));
    }

    /// The balancer acts; then the probes leave that it sends, and the packets that it releases.
    #[inline(always)]
    fn act<T>(
        &mut self,
        net: &mut Partition,
        routes: &Routes,
        act: impl FnOnce(&mut Balancer, &mut Acting) -> T,
    ) -> T {
        let sent = std::mem::take(&mut net.outgoing);
        let (first, count) = (self.first_port, self.markers.len() as u32);
        let ports = OwnPorts { net, routes, first, count, packet: NONE };
        let mut acting = Acting { ports, row: self.row, sent, released: Vec::new(), wakes: Vec::new() };
        let result = act(&mut self.balancer, &mut acting);
        let Acting { mut sent, released, wakes, .. } = acting;
        sent.drain(..).for_each(|(local, probe)| self.send_probe(net, local, probe));
        net.outgoing = sent;
        for id in released.into_iter().map(Held::into_id) {
            self.held.remove(&id);
            self.go_on(net, id);
        }
        wakes.into_iter().for_each(|at| self.wake(net, at));
        result
    }

    fn send_probe(&mut self, net: &mut Partition, local: u32, probe: Packet) {
        let (class, port) = (probe.class, self.first_port + local);
        let (kind, ingress) = (PacketKind::Probe, local as u16);
        let id = net.packets.insert(Packet { kind, ingress, wire_class: class, carries: false, ..probe });
        if class > 0 {
            return self.queue(net, port, id);
        }
        // Class 0: before all others; only a queue with a buffer of its own refuses it.
        let queue = &mut net.ports[port as usize].queue;
        let mut verdict = queue.enqueue(id, &mut net.packets, net.now);
        while let Some(dropped) = verdict.next_dropped(&net.packets) {
            net.drop_packet(port, dropped);
        }
        self.kick(net, port);
    }
}

/// A packet carries this word on, and is so many bytes longer.
fn lengthen(net: &mut Partition, id: PacketId, word: u64, more: i32) {
    net.headers.set(id, word);
    let packet = &mut net.packets[id];
    packet.size = (i32::from(packet.size) + more).clamp(0, i32::from(u16::MAX)) as u16;
}

/// Whether a port of the node of `row` is on a shortest path to a host.
pub fn leads_to(routes: &Routes, row: Row, host: u32, port: u32) -> bool {
    match routes.hops_from(row, host) {
        NextHops::None => false,
        NextHops::One(only) => only == port,
        NextHops::Many(ports) => ports.contains(&port),
    }
}

/// What a switch's balancer may see.
pub(super) struct OwnPorts<'a> {
    pub net: &'a Partition,
    pub routes: &'a Routes,
    pub first: PortId,
    /// Number of its ports.
    pub count: u32,
    /// The packet to be sent; [`NONE`]: none.
    pub packet: PacketId,
}

impl OwnPorts<'_> {
    fn port(&self, local: u32) -> &Port {
        assert!(local < self.count, "port {local} of a switch with {} ports", self.count);
        &self.net.ports[(self.first + local) as usize]
    }
}

impl Ports for OwnPorts<'_> {
    fn now(&self) -> Time {
        self.net.now
    }
    fn backlog(&self, port: u32) -> u64 {
        let port = self.port(port);
        let leaving = port.busy_until.saturating_sub(self.net.now);
        port.queue.bytes() + port.line.rate.bytes_in(leaving).0
    }
    fn rate(&self, port: u32) -> Rate {
        self.port(port).line.rate
    }
    fn word(&self) -> u64 {
        self.net.headers.get(self.packet)
    }
    fn first_byte(&self, packet: &Packet) -> u64 {
        self.net.first_byte(packet)
    }
    fn hops(&self, node: u32, host: u32) -> NextHops<'_> {
        self.routes.hops_from(self.routes.row(node), host)
    }
}

/// What a switch's balancer may do where it acts of its own accord.
struct Acting<'a> {
    ports: OwnPorts<'a>,
    row: Row,
    /// By local port.
    sent: Vec<(u32, Packet)>,
    released: Vec<Held>,
    wakes: Vec<Time>,
}

impl Ports for Acting<'_> {
    fn now(&self) -> Time {
        self.ports.now()
    }
    fn backlog(&self, port: u32) -> u64 {
        self.ports.backlog(port)
    }
    fn rate(&self, port: u32) -> Rate {
        self.ports.rate(port)
    }
    fn hops(&self, node: u32, host: u32) -> NextHops<'_> {
        self.ports.hops(node, host)
    }
}

impl SwitchContext for Acting<'_> {
    fn is_up(&self, port: u32) -> bool {
        self.ports.port(port).up
    }
    fn leads_to(&self, port: u32, host: u32) -> bool {
        leads_to(self.ports.routes, self.row, host, port)
    }
    fn leads_here(&self, neighbour: &Neighbour, host: u32) -> bool {
        let routes = self.ports.routes;
        leads_to(routes, routes.row(neighbour.node), host, neighbour.port)
    }
    fn send(&mut self, port: u32, probe: Packet) {
        self.ports.port(port);
        let (size, class) = (probe.size, probe.class);
        let valid = size > 0 && usize::from(class) < CLASSES;
        assert!(
            valid,
            "a probe of {size} bytes in class {class}: expected at least 1 byte and a class below {CLASSES}"
        );
        self.sent.push((port, probe));
    }
    fn release(&mut self, packet: Held) {
        self.released.push(packet);
    }
    fn wake(&mut self, at: Time) {
        self.wakes.push(at.max(self.now() + Time(1)));
    }
}
