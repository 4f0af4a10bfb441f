//! Data packets of queue pairs at their receiver: taken in, and returned as acknowledgements.

use super::receiver::{Answer, Comes, Receiver};
use super::{Rdma, settings_of};
use crate::net::PortId;
use crate::net::host::record_digest;
use crate::packet::hash::reverse_hash;
use crate::packet::{Packet, PacketId, PacketKind, flag};
use crate::transport::{Ended, HostContext};
use std::collections::hash_map::Entry;

impl Rdma {
    /// A data packet has arrived: answers it where it must be answered.
    pub fn receive_data(&mut self, id: PacketId, cx: &mut HostContext) -> Option<PortId> {
        let packet = cx.net.packets[id];
        if let Some(pint) = &cx.settings.pint {
            record_digest(pint, id, 0, cx.settings.seed, cx.net);
        }
        let entry = self.receivers.entry(packet.flow);
        let new = matches!(entry, Entry::Vacant(_));
        let received = if new { self.received.get(&packet.flow) } else { None };
        let (answer, expected) = match received {
            Some(&length) => {
                cx.came_again(&packet);
                (Receiver::duplicate(&cx.settings.rules), length)
            }
            None => {
                let several = new && cx.net.awaited.stays_open(packet.flow);
                let receiver = entry.or_insert_with(|| Receiver::new(several));
                let before = receiver.expected;
                let settings = settings_of(cx, packet.profile);
                if packet.seq != before {
                    match receiver.sort(&packet, settings) {
                        Comes::New => {}
                        Comes::Again => cx.came_again(&packet),
                        Comes::Refused => cx.refused(&packet),
                    }
                }
                let answer = receiver.take(&packet, cx.net.now, settings, &cx.settings.rules);
                let (mut expected, complete) = (receiver.expected, receiver.is_complete());
                if expected > before {
                    cx.net.deliver(packet.flow, packet.group, expected - before);
                    if complete {
                        expected = self.received_all(&packet, expected, cx);
                    }
                }
                (answer, expected)
            }
        };
        let kind = match answer {
            Answer::Nothing => {
                cx.net.discard(id);
                return None;
            }
            Answer::Ack => PacketKind::Ack,
            Answer::Nack => PacketKind::Nack,
        };
        let Some(port) = cx.port_to(packet.src, packet.hash) else {
            cx.net.discard(id);
            return None;
        };
        let settings = settings_of(cx, packet.profile);
        let answered = &mut cx.net.packets[id];
        answered.kind = kind;
        answered.src = packet.dst;
        answered.dst = packet.src;
        answered.seq = expected;
        answered.aux = (packet.seq / u64::from(settings.mtu)) as u32;
        answered.size = settings.derived.ack_bytes;
        answered.payload = 0;
        answered.class = settings.derived.ack_class;
        if settings.acks_first {
            answered.wire_class = 0;
        }
        answered.flags &= flag::MARKED | flag::LAST;
        if !cx.settings.rules.murmur_ecmp && !cx.settings.rules.flow_number_labels {
            answered.hash = reverse_hash(packet.hash);
        }
        cx.net.telemetry_bytes += u64::from(settings.derived.telemetry_bytes);
        if cx.settings.rules.queue_per_flow {
            self.queue_answer(port, packet.flow, id, cx);
        } else {
            cx.enqueue_control(port, id);
        }
        Some(port)
    }

    /// Every byte of a flow has arrived: of its receiver only the length stays, until no duplicate can come any more. Returns
    /// what is expected next.
    fn received_all(&mut self, packet: &Packet, length: u64, cx: &mut HostContext) -> u64 {
        let flow = packet.flow;
        if self.receivers.get(&flow).is_some_and(Receiver::takes_several) {
            return self.flows_arrived(packet, cx);
        }
        if cx.settings.dependencies {
            cx.ended.push(Ended { flow, host: cx.host, at_receiver: true });
        }
        self.receivers.remove(&flow);
        self.received.insert(flow, length);
        length
    }
}
