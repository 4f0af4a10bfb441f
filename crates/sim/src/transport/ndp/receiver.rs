//! The receiving side of a host: every packet that comes is answered at once and earns its flow a pull, and one pacer
//! for all flows sends the pulls.

use super::parameters::NdpConfig;
use super::{Ndp, PACER, PULLS, Turns};
use crate::net::PortId;
use crate::packet::hash::flow_hash;
use crate::packet::{Packet, PacketId, PacketKind, flag};
use crate::transport::arrived::Arrived;
use crate::transport::{Ended, HostContext};
use crate::units::{Rate, Time};
use crate::workload::FlowId;

/// A flow that is received here.
#[derive(Debug)]
pub struct Receiver {
    arrived: Arrived,
    packets: u32,
    /// Pulls that were earned, and those of them that wait for the pacer.
    earned: u32,
    waiting: u32,
    src: u32,
    /// The source's own number for it.
    sender: u32,
    group: u16,
    profile: u8,
}

impl Receiver {
    fn new(packet: &Packet) -> Receiver {
        let packets = (packet.seq >> 32) as u32;
        Receiver {
            arrived: Arrived::new(packets),
            packets,
            earned: 0,
            waiting: 0,
            src: packet.src,
            sender: packet.sender,
            group: packet.group,
            profile: packet.profile,
        }
    }

    /// Every packet below has come.
    fn in_order(&self) -> u32 {
        self.arrived.search(0).unwrap_or(self.packets)
    }
}

/// The clock of all pulls of a host.
#[derive(Debug, Default)]
pub struct Pacer {
    /// Flows with pulls that wait.
    turns: Turns,
    /// When the last pull left; none yet.
    last: Option<Time>,
    /// What the packet that it asks for takes of the host's links.
    interval: Time,
    /// What the interval follows from: the rate of the host's links, and a transport's index.
    of: (Rate, u8),
    /// The timer in force comes then.
    due: Option<Time>,
}

impl Pacer {
    /// No pull waits, and the last one was sent an interval ago.
    fn is_free(&self, now: Time) -> bool {
        self.turns.is_empty() && self.last.is_none_or(|last| last.saturating_add(self.interval) <= now)
    }
}

impl Ndp {
    /// A data packet has come, whole or trimmed: it goes back as its answer.
    pub(super) fn receive_data(&mut self, id: PacketId, cx: &mut HostContext) -> Option<PortId> {
        let packet = cx.net.packets[id];
        let config = cx.settings.of::<NdpConfig>(packet.profile);
        let mut answer = PacketKind::Ack;
        let (in_order, pull) = match self.received.get(&packet.flow) {
            Some(&packets) => {
                cx.came_again(&packet);
                (packets, None)
            }
            None => {
                let receiver = self.receivers.entry(packet.flow).or_insert_with(|| Receiver::new(&packet));
                receiver.sender = packet.sender;
                let number = packet.seq as u32;
                if receiver.arrived.has(number) {
                    cx.came_again(&packet);
                } else if packet.is_trimmed() {
                    cx.refused(&packet);
                    answer = PacketKind::Nack;
                } else {
                    receiver.arrived.take(number);
                    cx.net.recorder.deliver(packet.flow, packet.group, u64::from(packet.payload));
                }
                receiver.earned += 1;
                let (earned, in_order) = (receiver.earned, receiver.in_order());
                if in_order == receiver.packets {
                    self.complete(&packet, in_order, cx);
                }
                (in_order, Some(earned))
            }
        };
        let at_once = pull.is_some() && self.pacer.is_free(cx.net.now);
        if at_once {
            self.has_pulled(packet.profile, cx);
        } else if pull.is_some() && self.receivers.contains_key(&packet.flow) {
            self.wait_for_pull(packet.flow, cx);
        }
        let back = flow_hash(packet.dst, packet.src, packet.flow);
        let Some(port) = cx.port_to(packet.src, back) else {
            cx.net.discard(id);
            return None;
        };
        let label = self.label_for(packet.src, port, back, config.spray, cx);
        let reply = &mut cx.net.packets[id];
        reply.kind = answer;
        (reply.src, reply.dst) = (packet.dst, packet.src);
        reply.seq = u64::from(pull.unwrap_or(0)) << 32 | u64::from(in_order);
        reply.aux = packet.seq as u32;
        reply.size = config.control as u16;
        reply.payload = 0;
        reply.trimming = 0;
        reply.flags = (packet.flags & flag::MARKED) | (u8::from(at_once) * (PULLS << flag::CODE_SHIFT));
        (reply.class, reply.wire_class) = (config.class, config.class);
        reply.hash = label;
        cx.enqueue_control(port, id);
        Some(port)
    }

    /// Every packet of a flow has come: its pulls that wait are not sent.
    fn complete(&mut self, packet: &Packet, packets: u32, cx: &mut HostContext) {
        self.receivers.remove(&packet.flow);
        self.pacer.turns.remove(packet.flow, 0);
        self.received.insert(packet.flow, packets);
        if cx.settings.dependencies {
            cx.ended.push(Ended { flow: packet.flow, host: cx.host, at_receiver: true });
        }
    }

    /// A pull of a flow joins those that wait.
    fn wait_for_pull(&mut self, flow: FlowId, cx: &mut HostContext) {
        let idle = self.pacer.turns.is_empty();
        if let Some(receiver) = self.receivers.get_mut(&flow) {
            receiver.waiting += 1;
            self.pacer.turns.insert(flow, 0);
        }
        if idle {
            let at =
                self.pacer.last.unwrap_or(cx.net.now).saturating_add(self.pacer.interval).max(cx.net.now);
            self.arm(at, cx);
        }
    }

    fn arm(&mut self, at: Time, cx: &mut HostContext) {
        if self.pacer.due != Some(at) {
            self.pacer.due = Some(at);
            cx.set_timer(at, PACER);
        }
    }

    /// The pacer is due: the next flow in turn gets a pull.
    pub(super) fn pull_next(&mut self, cx: &mut HostContext) -> Option<PortId> {
        if self.pacer.due != Some(cx.net.now) {
            return None;
        }
        self.pacer.due = None;
        self.pacer.turns.next(|_| true)?;
        let flow = self.pacer.turns.last.0;
        let receiver = self.receivers.get_mut(&flow)?;
        receiver.waiting -= 1;
        if receiver.waiting == 0 {
            self.pacer.turns.remove(flow, 0);
        }
        let number = receiver.earned - receiver.waiting;
        let pull = Packet {
            kind: PacketKind::Control,
            seq: u64::from(number) << 32 | u64::from(receiver.in_order()),
            flow,
            dst: receiver.src,
            sender: receiver.sender,
            hash: flow_hash(cx.host, receiver.src, flow),
            group: receiver.group,
            profile: receiver.profile,
            ..Packet::default()
        };
        self.has_pulled(pull.profile, cx);
        if !self.pacer.turns.is_empty() {
            self.arm(cx.net.now.saturating_add(self.pacer.interval), cx);
        }
        let config = cx.settings.of::<NdpConfig>(pull.profile);
        self.signal(pull, config, cx)
    }

    /// A pull leaves for a flow of this transport. The next one may once a full packet of that flow has had its time on the
    /// host's links, over the share of it that is pulled.
    #[inline]
    fn has_pulled(&mut self, profile: u8, cx: &HostContext) {
        self.pacer.last = Some(cx.net.now);
        let rate = cx.net.ports[cx.first_port as usize].line.rate;
        // Most hosts have one NIC.
        let of = (rate, profile);
        if self.pacer.of != of {
            let first = cx.first_port as usize;
            let ports = &cx.net.ports[first..first + self.nics.len()];
            let all = Rate(ports.iter().map(|port| port.line.rate.0).sum());
            let config = cx.settings.of::<NdpConfig>(profile);
            let bits = f64::from(config.mtu + config.header) * 8.0;
            self.pacer.interval = Time((bits / (all.0 as f64 * config.pull_share) * 1e12) as u64);
            self.pacer.of = of;
        }
    }
}
