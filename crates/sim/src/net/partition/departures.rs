//! Ends of transmissions: an event where something may leave after one, or only a number in the order of events, where every end has
//! one and nothing waits.

use super::Partition;
use crate::net::PortId;
use crate::net::agenda::{Agenda, Event};
use crate::packet::PacketId;
use crate::queue::QueueDiscipline;

impl Partition {
    /// Makes sure that a departure event comes when the port's transmitter is free.
    #[inline]
    pub fn expect_departure(&mut self, port_id: PortId) {
        self.look_at(port_id);
        let port = &mut self.ports[port_id as usize];
        if port.departure_pending {
            return;
        }
        port.departure_pending = true;
        let (at, node) = (port.busy_until.max(self.now), port.slot);
        self.push_departure(node, Event::of_departure(at, port_id));
    }

    /// The end of a transmission at a port where nothing waits. Nothing would happen then, but at that very time it matters whether the
    /// transmission is over.
    #[inline(never)]
    pub(super) fn reserve_departure(&mut self, port: PortId) {
        if let Agenda::Insertion(insertion) = &mut self.agenda
            && insertion.reserve(port)
        {
            return;
        }
        self.expect_departure(port);
    }

    /// Before something is done at a port: where every transmission has an event at its end, one that is yet to come becomes one.
    #[inline(always)]
    pub fn look_at(&mut self, port: PortId) {
        if self.always_departs {
            self.redeem_departure(port);
        }
    }

    #[inline(never)]
    fn redeem_departure(&mut self, port_id: PortId) {
        let port = &mut self.ports[port_id as usize];
        if let Agenda::Insertion(insertion) = &mut self.agenda {
            port.departure_pending |= insertion.redeem(port_id, port.busy_until, self.now);
        }
    }

    #[inline(never)]
    pub(super) fn push_departure(&mut self, node: u32, event: Event) {
        if let Agenda::Windows(windows) = &mut self.agenda
            && windows.push_own(event)
        {
            return;
        }
        self.agenda.push(node, event);
    }

    /// A packet may leave a host's port at once: the port is free and up, and the queue in front of it has no use for the packet, which
    /// then is ready to be transmitted.
    #[inline(never)]
    pub fn may_pass(&mut self, port_id: PortId, id: PacketId) -> bool {
        self.look_at(port_id);
        self.passes(port_id, id)
    }

    /// The same where ends of transmissions are events only if something waits.
    #[inline(always)]
    pub fn passes(&mut self, port_id: PortId, id: PacketId) -> bool {
        let (port, packet) = (&mut self.ports[port_id as usize], &mut self.packets[id]);
        let passes = port.up && port.is_idle(self.now) && port.queue.lets_through(packet, port.paused);
        if passes {
            packet.class = packet.wire_class;
        }
        passes
    }
}
