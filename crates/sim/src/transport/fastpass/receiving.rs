//! The receiving side of a host: every data packet is sent back as its acknowledgement.

use super::super::arrived::Arrived;
use super::super::{Ended, HostContext};
use super::{Fastpass, config_of};
use crate::net::PortId;
use crate::packet::hash::flow_hash;
use crate::packet::{Packet, PacketId, PacketKind, flag};

impl Fastpass {
    pub(super) fn receive_data(&mut self, id: PacketId, cx: &mut HostContext) -> Option<PortId> {
        let packet = cx.net.packets[id];
        match self.received.contains_key(&packet.flow) {
            true => cx.came_again(&packet),
            false => self.take_data(&packet, cx),
        }
        let config = config_of(cx.settings, packet.profile);
        let (control, class, spray) = (config.control, config.class, config.spray);
        let back = flow_hash(packet.dst, packet.src, packet.flow);
        let Some(port) = cx.port_to(packet.src, back) else {
            cx.net.discard(id);
            return None;
        };
        let label = self.label_for(packet.src, port, back, spray, cx);
        let answer = &mut cx.net.packets[id];
        answer.kind = PacketKind::Ack;
        (answer.src, answer.dst) = (packet.dst, packet.src);
        answer.size = control as u16;
        answer.payload = 0;
        (answer.class, answer.wire_class) = (class, class);
        answer.flags &= flag::MARKED;
        answer.hash = label;
        cx.enqueue_control(port, id);
        Some(port)
    }

    /// Takes in data of a flow that is not complete.
    fn take_data(&mut self, packet: &Packet, cx: &mut HostContext) {
        let packets = (packet.seq >> 32) as u32;
        let arrived = self.receivers.entry(packet.flow).or_insert_with(|| Arrived::new(packets));
        if !arrived.take(packet.seq as u32) {
            return cx.came_again(packet);
        }
        cx.net.recorder.deliver(packet.flow, packet.group, u64::from(packet.payload));
        if arrived.missing() > 0 {
            return;
        }
        self.receivers.remove(&packet.flow);
        self.received.insert(packet.flow, ());
        if cx.settings.dependencies {
            cx.ended.push(Ended { flow: packet.flow, host: cx.host, at_receiver: true });
        }
    }
}
