//! What load balancers make a switch do beyond choosing: they are told of what leaves, write into packets, and send probes. Only
//! switches whose balancer asks for it come here.

use super::{Switch, departs};
use crate::balance::{Balancer, Hula, Passing, Ports, Side, SubflowMark, mark_of};
use crate::engine::random::mix64;
use crate::net::PortId;
use crate::net::agenda::Action;
use crate::net::host::TRAIL_SHIFT;
use crate::net::partition::Partition;
use crate::net::port::Port;
use crate::packet::{NONE, Packet, PacketId, PacketKind};
use crate::queue::{QueueDiscipline, Verdict};
use crate::topology::{NextHops, Routes, Row};
use crate::units::{Rate, Time};
use crate::wire::mptcp;

impl Switch {
    /// The same as for others in [`Switch::admit`]: sends a packet at once if nothing is in its way.
    #[inline(never)]
    pub(super) fn pass_watched(&mut self, net: &mut Partition, out: PortId, id: PacketId) -> bool {
        let packet = &mut net.packets[id];
        let port = &mut net.ports[out as usize];
        let passes = port.is_idle(net.now)
            && port.up
            && self.buffer.lets_pass(packet.ingress, packet.class, u64::from(packet.size))
            && port.queue.lets_through(packet.class, port.paused);
        if !passes {
            return false;
        }
        let marks = departs(self, port, packet, net.now, &mut net.stacks, false);
        net.totals[out as usize].ecn_marks += u64::from(marks);
        self.tell_balancer(net, out, id);
        net.transmit(out, id, false);
        true
    }

    /// The balancer is told of a packet that leaves.
    #[inline(never)]
    pub(super) fn tell_balancer(&mut self, net: &mut Partition, out: PortId, id: PacketId) {
        let local = out - self.first_port;
        let at = (net.now, net.ports[out as usize].line.rate.0);
        let size = u32::from(net.packets[id].size);
        if !self.balancer.writes_headers() || net.packets[id].class == 0 {
            return self.balancer.departs(local, size, &mut 0, at);
        }
        let mut header = net.headers.get(id);
        self.balancer.departs(local, size, &mut header, at);
        net.headers.set(id, header);
    }

    /// What a packet carries for the balancers is put on at its first switch, and taken off at its last.
    #[inline(never)]
    pub(super) fn write_header(&mut self, net: &mut Partition, port: PortId, out: PortId, id: PacketId) {
        let Balancer::Conga(conga) = &mut self.balancer else { return };
        let ways = (port - self.first_port, out - self.first_port);
        let mut header = net.headers.get(id);
        let packet = &mut net.packets[id];
        let more = conga.passes(packet, ways, &mut header, net.now);
        packet.size = (i32::from(packet.size) + more).clamp(0, i32::from(u16::MAX)) as u16;
        net.headers.set(id, header);
    }

    /// A ToR reads what set-up of MPTCP connections passes, marks the packets of its hosts, and takes marks out of those for them.
    #[inline(never)]
    pub(super) fn mark(&mut self, net: &mut Partition, port: PortId, id: PacketId) {
        let Balancer::Hula(hula) = &mut self.balancer else { return };
        let packet = &net.packets[id];
        let control = packet.kind == PacketKind::Control;
        let carries = control && packet.telemetry != NONE;
        let options = carries.then(|| mptcp::option_bytes(&net.stacks.numbers(packet.telemetry)));
        let (_, subflow) = mptcp::subflow_of(packet);
        let passing = Passing {
            flow: u64::from(packet.flow) << 8 | u64::from(subflow),
            reset: control && matches!(packet.code(), mptcp::code::RESET | mptcp::code::GIVEN_UP),
            syn: control && packet.code() == mptcp::code::SYN,
            options: options.as_ref().map(|bytes| &bytes[..]).or(control.then_some(&[])),
        };
        let mut carried = net.headers.get(id);
        let more = hula.passes(&passing, packet.dst, port - self.first_port, &mut carried, net.now);
        net.headers.set(id, carried);
        let packet = &mut net.packets[id];
        packet.size = (i32::from(packet.size) + more).clamp(0, i32::from(u16::MAX)) as u16;
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

    /// When its timer comes up first; none: it has none.
    pub fn first_timer(&self) -> Option<Time> {
        match &self.balancer {
            Balancer::Hula(hula) => hula.first_probes(),
            _ => None,
        }
    }

    /// Probes are due: one of this switch by each port upward.
    #[inline(never)]
    pub fn timer(&mut self, net: &mut Partition, routes: &Routes) {
        let Balancer::Hula(hula) = &self.balancer else { return };
        let (Some(own), interval) = (hula.own(), hula.interval()) else { return };
        let up = |hula: &Hula, local: u32| hula.neighbours()[local as usize].side == Side::Up;
        self.send_probes(net, routes, own, 0, up);
        let node = net.ports[self.first_port as usize].slot;
        let again = Action::SwitchTimer { switch: node - net.hosts, token: 0 };
        net.schedule(node, net.now + interval, again);
    }

    /// A probe has come in by a port: it is taken note of, and what is news is passed on.
    #[inline(never)]
    pub(super) fn hear_probe(&mut self, net: &mut Partition, routes: &Routes, port: PortId, id: PacketId) {
        let (tor, said) = (net.packets[id].src, net.packets[id].aux as u8);
        net.discard(id);
        let local = port - self.first_port;
        let Balancer::Hula(hula) = &mut self.balancer else { return };
        let allowed = leads_to(routes, self.row, hula.host_on(tor), local);
        let seen = OwnPorts { net, first: self.first_port, packet: NONE };
        let Some(utilisation) = hula.hear(tor, said, local, allowed, &seen) else { return };
        self.send_probes(net, routes, tor, utilisation, |hula, to| hula.passes_on(local, to));
    }

    /// Sends probes of a ToR by the ports for which `by` holds, to those who would take them in: for whom this switch is on
    /// a shortest path.
    fn send_probes(
        &mut self,
        net: &mut Partition,
        routes: &Routes,
        tor: u32,
        utilisation: u8,
        by: impl Fn(&Hula, u32) -> bool,
    ) {
        let Balancer::Hula(hula) = &self.balancer else { return };
        let (host, ports) = (hula.host_on(tor), hula.neighbours().len() as u32);
        for local in 0..ports {
            let Balancer::Hula(hula) = &mut self.balancer else { return };
            let there = hula.neighbours()[local as usize];
            let port = self.first_port + local;
            let goes = by(hula, local)
                && net.ports[port as usize].up
                && leads_to(routes, routes.row(there.node), host, there.port);
            if !goes {
                continue;
            }
            hula.count_probe();
            let probe = Packet {
                kind: PacketKind::Probe,
                size: hula.probe_size(),
                src: tor,
                aux: u32::from(utilisation),
                class: hula.probe_class(),
                wire_class: hula.probe_class(),
                ingress: local as u16,
                telemetry: NONE,
                ..Packet::default()
            };
            let class = probe.class;
            let id = net.packets.insert(probe);
            if class > 0 {
                self.queue(net, port, id);
                continue;
            }
            // Class 0: before all others; only a queue with a buffer of its own refuses it.
            let queue = &mut net.ports[port as usize].queue;
            if let Verdict::Dropped(dropped) = queue.enqueue(id, &mut net.packets, net.now) {
                net.drop_packet(port, dropped);
            }
            self.kick(net, port);
        }
    }
}

/// Whether a port of the node of `row` is on a shortest path to a host.
fn leads_to(routes: &Routes, row: Row, host: u32, port: u32) -> bool {
    match routes.hops_from(row, host) {
        NextHops::None => false,
        NextHops::One(only) => only == port,
        NextHops::Many(ports) => ports.contains(&port),
    }
}

/// What a switch's balancer may see.
pub(super) struct OwnPorts<'a> {
    pub net: &'a Partition,
    pub first: PortId,
    /// The packet to be sent; [`NONE`]: none.
    pub packet: PacketId,
}

impl OwnPorts<'_> {
    fn port(&self, local: u32) -> &Port {
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
    fn mark(&self) -> Option<SubflowMark> {
        mark_of(self.net.headers.get(self.packet))
    }
}
