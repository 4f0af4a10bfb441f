//! Queue pairs that stay open: flows that follow each other over one, as messages of its sequence of packets.
//!
//! The first flow opens the queue pair. Those behind it find it as the last one left it: rate, window, the
//! controller's averages and the telemetry that it compares with, the path. They are sent in the order in
//! which they were given to it, each from a packet of its own on: sequence numbers count whole packets, so
//! they go on behind the last packet of the flow before, short as that may be. A flow has arrived when its
//! last byte has and all before it; it is done when that is acknowledged.
//!
//! A pair that has nothing to send and nothing in flight *rests*: its NIC forgets it and no retransmission
//! timeout runs. The timers of its controller go on. HPCC's first acknowledgement after a rest compares with
//! the telemetry from before it: the rate that it computes is the mean over the rest, low, as the link was.
//! After a rest in which the counters of INT may have wrapped there is nothing to compare with
//! ([`comparable`](crate::telemetry::int::IntLayout::comparable)).
//!
//! Source: InfiniBand Architecture Specification 1.4, vol. 1, §9.7 (a reliable connection: messages in order,
//! packets numbered).
//! Differs from the source: nothing opens or closes a pair but its first flow and the end of the run. The last
//! packet of a flow counts as a whole one in what is in flight, once the next flow follows it.

use super::Rdma;
use super::RdmaConfig;
use super::pair::{Cut, QueuePair};
use crate::net::PortId;
use crate::packet::{Packet, flag};
use crate::transport::messages::{Message, Messages};
use crate::transport::nic::Nic;
use crate::transport::{Ended, HostContext};
use crate::units::Time;
use crate::workload::{FlowId, FlowSpec};

/// In a data packet: the first one of a flow that is not the first of its queue pair.
pub const FIRST: u8 = 1 << flag::CODE_SHIFT;

/// The flows that a queue pair carries one after the other.
#[derive(Debug, Default)]
pub struct Stream {
    messages: Messages,
    /// While it rests: its pacing lets the next packet leave from then on.
    due: Time,
}

impl Stream {
    /// The next packet, from byte `from` on.
    pub fn cut(&mut self, from: u64, acknowledged: u64, sent_up_to: u64, lost: bool, mtu: u64) -> Cut {
        let Some(message) = self.messages.at_mut(from) else {
            debug_assert!(false, "a queue pair sends what it has");
            return Cut { seq: from, payload: 0, flags: 0, left: 0 };
        };
        let (first, end) = (message.first(), message.end);
        let seq = from.max(first);
        let mut cut = Cut::of_flow(seq, end, acknowledged.clamp(first, end), mtu);
        if seq == first {
            cut.flags |= FIRST;
        }
        message.count(lost || from < sent_up_to);
        cut
    }

    pub fn count_timeout(&mut self) {
        self.messages.count_timeout();
    }

    /// Where the flow ends that has this byte.
    pub fn end_of_flow_at(&self, byte: u64) -> u64 {
        self.messages.at(byte).map_or(byte, |message| message.end)
    }
}

impl QueuePair {
    /// Its flow is the first of several.
    pub fn keep_open(&mut self, first: Message) {
        self.stream = Some(Box::default());
        self.append(first, 1);
    }

    fn append(&mut self, message: Message, mtu: u32) {
        let stream = self.stream.get_or_insert_default();
        stream.messages.begin_packet(u64::from(mtu));
        stream.messages.push(message);
        self.size = stream.messages.length();
        self.goal = stream.messages.first_end().unwrap_or(self.size);
    }

    /// It is done and carries no other flow.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.done && self.stream.is_none()
    }

    /// A timer of its controller came while it rests: there is no packet to bring forward.
    pub fn steer_at_rest(&mut self) {
        self.control.repace = false;
        self.size_window();
    }

    /// It sends this flow, which is not done.
    pub fn carries(&self, flow: FlowId) -> bool {
        match &self.stream {
            Some(stream) => stream.messages.carries(flow),
            None => self.flow == flow,
        }
    }

    /// Flows that it sends, which are not done.
    pub fn flows(&self) -> impl Iterator<Item = FlowId> {
        let stream = self.stream.as_deref().into_iter();
        let own = self.stream.is_none().then_some(self.flow);
        own.into_iter().chain(stream.flat_map(|stream| stream.messages.iter().map(|message| message.flow)))
    }

    pub fn record_unfinished(&self, cx: &mut HostContext) {
        match &self.stream {
            Some(stream) => {
                stream.messages.iter().for_each(|message| cx.record(message.record(cx.host, None)))
            }
            None => cx.record(self.record(cx.host, None)),
        }
    }
}

/// What a queue pair was to reach is acknowledged: its flow is done, or those that it carries up to there.
#[inline(never)]
pub(super) fn end_flows(pair: &mut QueuePair, nics: &[Nic], cx: &mut HostContext) {
    let now = cx.now();
    let end = |flow: FlowId, cx: &mut HostContext| {
        if cx.settings.dependencies {
            cx.ended.push(Ended { flow, host: cx.host, at_receiver: false });
        }
    };
    let Some(stream) = &mut pair.stream else {
        pair.done = true;
        let record = pair.record(cx.host, Some(now));
        cx.record(record);
        if record.packets_retransmitted == 0 {
            cx.net.delivered_once.push((pair.flow, pair.dst, cx.transport));
        }
        return end(pair.flow, cx);
    };
    while let Some(message) = stream.messages.take(pair.acknowledged) {
        cx.record(message.record(cx.host, Some(now)));
        end(message.flow, cx);
    }
    match stream.messages.first_end() {
        Some(goal) => pair.goal = goal,
        None => {
            stream.due = nics[usize::from(pair.nic)].due(pair.gate);
            pair.done = true;
            pair.rto_armed = false;
        }
    }
}

impl Rdma {
    /// A flow starts over a queue pair that is open.
    pub(super) fn append(
        &mut self,
        slot: u32,
        flow: FlowId,
        spec: &FlowSpec,
        cx: &mut HostContext,
    ) -> PortId {
        let settings = cx.settings.of::<RdmaConfig>(spec.transport);
        let pair = &mut self.pairs[slot as usize];
        let nic = &mut self.nics[usize::from(pair.nic)];
        pair.append(Message::new(flow, spec, cx.now()), settings.mtu);
        if pair.done {
            pair.done = false;
            let due = pair.stream.as_ref().map_or(Time::ZERO, |stream| stream.due);
            pair.gate = nic.add(slot, due, settings.class);
        }
        pair.update_gate(nic);
        let port = cx.first_port + u32::from(pair.nic);
        cx.bound(flow, port, spec.size);
        port
    }

    /// A flow has arrived over a queue pair that stays open, and others behind it that were there already: what is expected next.
    #[cold]
    pub(super) fn flows_arrived(&mut self, packet: &Packet, cx: &mut HostContext) -> u64 {
        let mtu = cx.settings.of::<RdmaConfig>(packet.profile).mtu;
        let Some(receiver) = self.receivers.get_mut(&packet.flow) else { return 0 };
        while receiver.is_complete() {
            let flow = cx.net.awaited.arrive(packet.flow);
            if cx.settings.dependencies {
                cx.ended.push(Ended { flow, host: cx.host, at_receiver: true });
            }
            let there = receiver.next_flow(mtu);
            if there > 0 {
                cx.net.deliver(packet.flow, packet.group, there);
            }
        }
        receiver.expected
    }
}

#[cfg(test)]
mod tests;
