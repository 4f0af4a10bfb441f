//! A switch: forwards by destination, charges its shared buffer, pauses senders, marks, and writes telemetry.

mod balancing;
mod config;

pub use config::SwitchConfig;

use super::agenda::Action;
use super::buffer::{Admission, SharedBuffer};
use super::ecn::EcnMarker;
use super::partition::Partition;
use super::port::Port;
use super::{PFC_FRAME_BYTES, PortId};
use crate::balance::{Balancer, Events, LoadBalancer};
use crate::counters::CounterSet;
use crate::engine::random::RandomStream;
use crate::packet::{NONE, Packet, PacketId, PacketKind, flag};
use crate::queue::{QueueDiscipline, Verdict};
use crate::telemetry::int::{HopState, IntRecord, IntWriter};
use crate::telemetry::packet_digest::PacketDigest;
use crate::telemetry::pint::{DepartingPacket, PintSwitch};
use crate::topology::{NextHops, Routes, Row};
use crate::units::{Rate, Time};
use balancing::OwnPorts;
pub use balancing::leads_to;
use rustc_hash::FxHashSet;

/// What a switch writes into the packets that take telemetry along.
pub enum SwitchTelemetry {
    Int,
    Pint(Box<PintSwitch>),
}

pub struct Switch {
    pub node: u32,
    pub first_port: PortId,
    /// Where its next hops are looked up; renewed with the routes.
    pub row: Row,
    /// Its id in path ids: 12 bits, never 0.
    pub path_id: u16,
    /// Packets may be forwarded once this many bytes of them have come; 0: once all have.
    pub cuts_through: u16,
    /// They are held back until their tails can follow without a gap.
    pub waits_for_tails: bool,
    /// Packets keep a trail of their way.
    pub traces: bool,
    /// One of these, or the balancer is told of packets that pass.
    pub looks_closer: bool,
    /// None of these holds, its balancer gets no event of arrivals, what finds its port idle may leave at once,
    /// and not every transmission ends with an event: the way of packets through it is compiled without all that.
    pub is_plain: bool,
    pub buffer: SharedBuffer,
    /// A packet that the buffer refuses may take the place of less urgent ones of its port.
    pub exchanges: bool,
    pub balancer: Balancer,
    /// Packets that the balancer holds.
    pub held: FxHashSet<PacketId>,
    /// Events that the balancer gets.
    pub events: Events,
    /// The balancer gets packets that leave.
    pub watched: bool,
    /// A bit for each of the first 64 local ports of which it need not be told.
    pub unwatched_ports: u64,
    /// What finds its port idle may leave at once. Not where a balancer watches, which is looked after apart.
    pub lets_pass: bool,
    /// What it writes into packets.
    pub telemetry: SwitchTelemetry,
    /// By local port: what marks packets that leave, and, where the switch marks them as they come, what does
    /// that.
    pub markers: Vec<EcnMarker>,
    /// Packets of this class and of those above it are marked when they leave.
    pub first_marked: u8,
    pub arrival_markers: Vec<EcnMarker>,
    pub random: RandomStream,
}

impl Switch {
    /// A packet has come in by a port.
    #[inline(always)]
    pub fn receive(&mut self, net: &mut Partition, routes: &Routes, port: PortId, id: PacketId) {
        if !net.arrives(port, id) {
            return;
        }
        if net.packets[id].kind.is_for_neighbour() {
            return self.receive_frame(net, routes, port, id);
        }
        match self.is_plain {
            true => self.forward::<true>(net, routes, port, id),
            false => self.forward_closely(net, routes, port, id),
        }
    }

    #[inline(never)]
    fn forward_closely(&mut self, net: &mut Partition, routes: &Routes, port: PortId, id: PacketId) {
        self.forward::<false>(net, routes, port, id);
    }

    /// A probe, or a pause or resume frame, has come in by a port.
    #[cold]
    fn receive_frame(&mut self, net: &mut Partition, routes: &Routes, port: PortId, id: PacketId) {
        let frame = net.packets[id];
        if frame.kind == PacketKind::Probe {
            return self.receive_probe(net, routes, port, id);
        }
        net.discard(id);
        if net.handle_pause(port, &frame) {
            self.kick(net, port);
        }
    }

    /// Sends a packet on, as soon as its tail allows at a cut-through switch.
    #[inline(always)]
    fn forward<const PLAIN: bool>(
        &mut self,
        net: &mut Partition,
        routes: &Routes,
        port: PortId,
        id: PacketId,
    ) {
        if !PLAIN && self.events.has(Events::ARRIVALS) {
            self.tell_arrival(net, port, id);
        }
        let packet = &net.packets[id];
        let out_local = match routes.hops_from(self.row, packet.dst) {
            NextHops::One(port) => port,
            NextHops::Many(ports) => {
                let way = self.balancer.choose_by_hash(packet, ports).unwrap_or_else(|| {
                    let (first, count) = (self.first_port, self.markers.len() as u32);
                    self.balancer.choose(packet, ports, &OwnPorts { net, routes, first, count, packet: id })
                });
                ports[way]
            }
            NextHops::None => return net.drop_without_route(port, id),
        };
        let out = self.first_port + out_local;
        if !PLAIN && self.looks_closer {
            if self.traces {
                self.leave_trail(net, out_local, id);
            }
            if self.events.has(Events::FORWARDS) {
                self.tell_forward(net, port, out, id);
            }
            if self.events.has(Events::HOLDS) && self.hold(net, routes, (port, out), id) {
                return;
            }
            let (packet, waits) = (&net.packets[id], self.waits_for_tails);
            let wait = || must_wait_for_tail(net, port, out, packet, self.cuts_through);
            if let Some(at) = waits.then(wait).flatten() {
                // It is in no queue yet, so there is room to remember the port.
                net.packets[id].next = out;
                let node = net.ports[port as usize].slot;
                return net.schedule(node, at, Action::Forward { port, packet: id });
            }
        }
        self.admit::<PLAIN>(net, out, id);
    }

    /// A packet that was held back for its tail goes on.
    pub fn go_on(&mut self, net: &mut Partition, id: PacketId) {
        let out = net.packets[id].next;
        self.admit::<false>(net, out, id);
    }

    /// The transmitter of a port becomes free.
    #[inline(always)]
    pub fn departure(&mut self, net: &mut Partition, port: PortId) {
        net.ports[port as usize].departure_pending = false;
        self.kick(net, port);
    }

    /// Sends a packet by port `out` at once, or takes it into the buffer and queues it there.
    #[inline(always)]
    fn admit<const PLAIN: bool>(&mut self, net: &mut Partition, out: PortId, id: PacketId) {
        if !PLAIN {
            net.look_at(out);
        }
        let (packet, carried) = net.packets.with_room_of(id);
        let port = &mut net.ports[out as usize];
        let passes = (port.is_idle(net.now) & port.up)
            && (PLAIN || self.lets_pass || self.is_unwatched(out))
            && self.buffer.lets_pass(packet.ingress, packet.class, u64::from(packet.size))
            && port.queue.lets_through(packet, port.paused);
        if !passes {
            return self.queue(net, out, id);
        }
        if departs(self, port, (packet, carried), net.now, &net.int, false) {
            net.totals[out as usize].ecn_marks += 1;
        }
        let launched = port.launch(packet, net.now, false);
        net.follow(&launched, out, id, PLAIN);
    }

    /// The balancer has no use for what leaves by this port.
    #[inline(always)]
    fn is_unwatched(&self, port: PortId) -> bool {
        let local = port - self.first_port;
        local < 64 && self.unwatched_ports >> local & 1 == 1
    }

    /// Takes a packet into the buffer and into the queue of port `out`.
    #[inline(never)]
    fn queue(&mut self, net: &mut Partition, out: PortId, id: PacketId) {
        if self.watched && self.pass_watched(net, out, id) {
            return;
        }
        if matches!(self.telemetry, SwitchTelemetry::Pint(_)) {
            note_arrival(net, id);
        }
        let (packet, port) = (&net.packets[id], &net.ports[out as usize]);
        let (class, ingress, size) = (packet.class, packet.ingress, u64::from(packet.size));
        if !port.up {
            return net.drop_unroutable(out, id);
        }
        if port.owns_buffer {
            return self.queue_at_own(net, out, id);
        }
        let queued = port.queue.class_bytes(class);
        let admission = self.buffer.admit(ingress, class, size, queued);
        if admission == Admission::Refused {
            return self.exchange(net, out, id);
        }
        self.mark_arriving(net, out, id);
        if admission == Admission::Pauses {
            self.send_pfc(net, ingress, class, PacketKind::Pause);
        }
        let port = &mut net.ports[out as usize];
        let mut verdict = port.queue.enqueue(id, &mut net.packets, net.now);
        if verdict != Verdict::Queued {
            while let Some(dropped) = verdict.next_dropped(&net.packets) {
                self.drop_queued(net, out, dropped);
            }
            return self.kick(net, out);
        }
        net.look_at(out);
        let port = &net.ports[out as usize];
        if port.is_idle(net.now) {
            self.serve(net, out);
        } else if !port.departure_pending {
            net.expect_departure(out);
        }
    }

    /// The buffer has no room for a packet: it takes that of less urgent ones of its queue, or is dropped.
    #[cold]
    fn exchange(&mut self, net: &mut Partition, out: PortId, id: PacketId) {
        if !self.exchanges {
            return net.drop_packet(out, id);
        }
        let size = u64::from(net.packets[id].size);
        let (mut is_taken, queue) = (true, &mut net.ports[out as usize].queue);
        let mut verdict = queue.exchange(id, &mut net.packets, net.now);
        while let Some(dropped) = verdict.next_dropped(&net.packets) {
            if dropped == id {
                is_taken = false;
                net.drop_packet(out, id);
            } else {
                self.drop_queued(net, out, dropped);
            }
        }
        if is_taken {
            self.buffer.take_in_exchange(size);
            self.mark_arriving(net, out, id);
            self.kick(net, out);
        }
    }

    /// A packet that a queue dropped for another one, or did not take.
    #[cold]
    fn drop_queued(&mut self, net: &mut Partition, out: PortId, dropped: PacketId) {
        let packet = &net.packets[dropped];
        let (ingress, class) = (packet.ingress, packet.class);
        self.buffer.release(ingress, class, u64::from(packet.size));
        net.drop_packet(out, dropped);
        if self.buffer.may_resume(ingress, class) {
            self.send_pfc(net, ingress, class, PacketKind::Resume);
        }
    }

    /// Marks a packet that comes to a queue above its threshold, where the switch marks them then.
    #[inline(always)]
    fn mark_arriving(&mut self, net: &mut Partition, out: PortId, id: PacketId) {
        if self.arrival_markers.is_empty() {
            return;
        }
        let (packet, port) = (&mut net.packets[id], &net.ports[out as usize]);
        let marker = &self.arrival_markers[usize::from(port.local)];
        if packet.class != 0 && marker.marks(port.queue.class_bytes(packet.class), &mut self.random) {
            net.totals[out as usize].ecn_marks += 1;
            if packet.kind == PacketKind::Data {
                packet.flags |= flag::MARKED;
            }
        }
    }

    /// Takes a packet into the buffer that port `out` has to itself.
    #[inline(never)]
    fn queue_at_own(&mut self, net: &mut Partition, out: PortId, id: PacketId) {
        self.mark_arriving(net, out, id);
        net.ports[out as usize].enqueue(id, &mut net.packets, net.now);
        let returned =
            net.ports[out as usize].queue.account().map_or(NONE, |account| account.take_returned());
        net.settle(out);
        if returned != NONE {
            self.send_back(net, returned);
        }
        self.kick(net, out);
    }

    /// Packets, linked by their `next`, go back over the ports by which they came.
    #[cold]
    fn send_back(&mut self, net: &mut Partition, first: PacketId) {
        let mut id = first;
        while id != NONE {
            let next = net.packets[id].next;
            let back = self.first_port + u32::from(net.packets[id].ingress);
            self.admit::<false>(net, back, id);
            id = next;
        }
    }

    /// A port became free, or something came for it: sends the next packet if it can.
    #[inline(always)]
    pub fn kick(&mut self, net: &mut Partition, port_id: PortId) {
        if net.always_departs {
            if net.ports[port_id as usize].queue.is_empty() {
                return;
            }
            net.look_at(port_id);
        }
        let port = &net.ports[port_id as usize];
        if port.is_idle(net.now) {
            self.serve(net, port_id);
        } else if !port.departure_pending && !port.queue.is_empty() {
            net.expect_departure(port_id);
        }
    }

    /// A port is idle: sends the next packet if there is one.
    #[inline(never)]
    fn serve(&mut self, net: &mut Partition, port_id: PortId) {
        let port = &mut net.ports[port_id as usize];
        if !port.up {
            return;
        }
        let next = port.queue.dequeue(port.paused, &mut net.packets, net.now);
        if port.owns_buffer {
            net.settle(port_id);
        }
        let Some(id) = next else { return };
        self.send(net, port_id, id);
    }

    /// The NIC behind a discipline asks for more.
    pub fn refill(&mut self, net: &mut Partition, port_id: PortId) {
        net.ports[port_id as usize].queue.ask(&mut net.packets, net.now);
        net.settle(port_id);
        self.kick(net, port_id);
    }

    /// Puts a packet that has left its queue on the link. A resume frame that its leaving calls for goes
    /// before it, but behind it where both leave by the same port (the packet goes back where it came from,
    /// as after a failure).
    #[inline]
    fn send(&mut self, net: &mut Partition, port_id: PortId, id: PacketId) {
        let (packet, carried) = net.packets.with_room_of(id);
        let port = &mut net.ports[port_id as usize];
        let (ingress, class, more) = (packet.ingress, packet.class, !port.queue.is_empty());
        let mut resumes = false;
        if packet.is_uncharged() {
            self.count_pause(port, packet, net.now);
        } else if !port.owns_buffer {
            self.buffer.release(ingress, class, u64::from(packet.size));
            resumes = self.buffer.may_resume(ingress, class);
        }
        if departs(self, port, (packet, carried), net.now, &net.int, true) {
            net.totals[port_id as usize].ecn_marks += 1;
        }
        if !resumes && !self.watched {
            let launched = port.launch(packet, net.now, more);
            return net.follow(&launched, port_id, id, false);
        }
        let same_port = self.first_port + u32::from(ingress) == port_id;
        if resumes && !same_port {
            self.send_pfc(net, ingress, class, PacketKind::Resume);
        }
        if self.watched && !self.is_unwatched(port_id) {
            self.tell_departure(net, port_id, id);
        }
        let more = !net.ports[port_id as usize].queue.is_empty();
        net.transmit(port_id, id, more);
        if resumes && same_port {
            self.send_pfc(net, ingress, class, PacketKind::Resume);
        }
    }

    /// Adds what its balancer and its telemetry have counted until now.
    pub fn count(&mut self, now: Time, counters: &mut CounterSet) {
        self.balancer.count(now, counters);
        if let SwitchTelemetry::Pint(pint) = &mut self.telemetry {
            pint.count(counters);
        }
    }

    /// The rate of a local port changes.
    pub fn set_rate(&mut self, port: u16, rate: Rate) {
        if let SwitchTelemetry::Pint(pint) = &mut self.telemetry {
            pint.set_rate(port, rate);
        }
    }

    /// A pause or resume frame leaves: it is part of the port's load.
    #[cold]
    fn count_pause(&mut self, port: &Port, frame: &Packet, now: Time) {
        if let SwitchTelemetry::Pint(pint) = &mut self.telemetry {
            pint.other(port.local, now, port.queue.bytes(), u32::from(frame.size));
        }
    }

    /// Sends a pause or resume frame for `class` to the peer of a port.
    #[cold]
    fn send_pfc(&mut self, net: &mut Partition, local: u16, class: u8, kind: PacketKind) {
        let frame = Packet { kind, size: PFC_FRAME_BYTES, aux: u32::from(class), ..Packet::default() };
        let id = net.packets.insert(frame);
        let port = self.first_port + u32::from(local);
        // Class 0 is never refused.
        net.ports[port as usize].queue.enqueue(id, &mut net.packets, net.now);
        self.kick(net, port);
    }

    /// The link behind a port went down: what waits for it is lost, its pauses are forgotten, and senders
    /// that were paused for what is lost may go on.
    pub fn flush_port(&mut self, net: &mut Partition, port_id: PortId) {
        let mut freed = Vec::new();
        let charged = !net.ports[port_id as usize].owns_buffer;
        while let Some(id) = net.ports[port_id as usize].queue.evict(&mut net.packets) {
            let packet = net.packets[id];
            if !packet.is_uncharged() && charged {
                self.buffer.release(packet.ingress, packet.class, u64::from(packet.size));
                freed.push((packet.ingress, packet.class));
            }
            net.drop_unroutable(port_id, id);
        }
        self.buffer.forget_pauses(net.ports[port_id as usize].local);
        freed.sort_unstable();
        freed.dedup();
        for (ingress, class) in freed {
            let reachable = net.ports[(self.first_port + u32::from(ingress)) as usize].up;
            if self.buffer.may_resume(ingress, class) && reachable {
                self.send_pfc(net, ingress, class, PacketKind::Resume);
            }
        }
    }
}

/// What a switch does to a packet that leaves by a port: marks it, writes telemetry. Whether it was marked.
#[inline(always)]
fn departs(
    switch: &mut Switch,
    port: &Port,
    (packet, carried): (&mut Packet, &mut [IntRecord]),
    now: Time,
    int: &IntWriter,
    was_queued: bool,
) -> bool {
    let class = packet.class;
    // Where it did not wait nothing waits behind it, and an empty queue is below every threshold.
    let marks = was_queued
        && class >= switch.first_marked
        && switch.markers[usize::from(port.local)].marks(port.queue.class_bytes(class), &mut switch.random);
    if marks && packet.kind == PacketKind::Data {
        packet.flags |= flag::MARKED;
    }
    if packet.carries {
        match &mut switch.telemetry {
            SwitchTelemetry::Int if packet.kind == PacketKind::Data => {
                let hop = HopState {
                    now,
                    bytes_sent: port.bytes_sent,
                    queue_bytes: if was_queued { port.queue.bytes() } else { 0 },
                    rate_kbps: port.rate_kbps,
                    size: packet.size,
                };
                int.push(carried, switch.path_id, hop);
            }
            SwitchTelemetry::Int => {}
            SwitchTelemetry::Pint(pint) if packet.kind == PacketKind::Data => {
                digest(pint, carried, &Departing { now, port, packet, was_queued });
            }
            SwitchTelemetry::Pint(pint) => {
                pint.other(port.local, now, port.queue.bytes(), u32::from(packet.size));
            }
        }
    }
    marks
}

/// PINT's part of what a switch does to a packet that comes to a queue.
#[inline(never)]
fn note_arrival(net: &mut Partition, id: PacketId) {
    let (packet, now) = (&net.packets[id], net.now);
    if packet.carries && packet.kind == PacketKind::Data {
        net.packet_digest(id).set_arrival(now);
    }
}

/// PINT's part of what a switch does to a data packet that leaves.
#[inline(never)]
fn digest(pint: &mut PintSwitch, carried: &mut [IntRecord], departing: &Departing) {
    pint.data(&mut PacketDigest::of(carried), departing);
}

/// A data packet that leaves by a port.
struct Departing<'a> {
    now: Time,
    port: &'a Port,
    packet: &'a Packet,
    was_queued: bool,
}

impl DepartingPacket for Departing<'_> {
    fn now(&self) -> Time {
        self.now
    }
    fn ingress(&self) -> u16 {
        self.packet.ingress
    }
    fn egress(&self) -> u16 {
        self.port.local
    }
    fn queue_bytes(&self) -> u64 {
        self.port.queue.bytes()
    }
    fn sent_bytes(&self) -> u64 {
        self.port.bytes_sent
    }
    fn size(&self) -> u32 {
        u32::from(self.packet.size)
    }
    fn was_queued(&self) -> bool {
        self.was_queued
    }
}

/// Cut-through: when the packet's head may leave by `out`, if that is later than now: its last byte must not
/// leave before it has come.
fn must_wait_for_tail(
    net: &Partition,
    port: PortId,
    out: PortId,
    packet: &Packet,
    cuts_through: u16,
) -> Option<Time> {
    // Both directions of a link are alike but for who cuts through at the far end.
    let inward = net.ports[port as usize].line.towards(cuts_through);
    let size = u64::from(packet.size);
    let (whole, to_head) = inward.times(size);
    let tail = net.now + whole - to_head;
    let outward = net.ports[out as usize].line.transmission_time(size);
    let start = tail.saturating_sub(outward);
    (start > net.now).then_some(start)
}
