//! The other end at its host: connections that come in, joins that prove that they belong to one, the stream as it comes.

use super::announcing::Announcing;
use super::assembly::Assembly;
use super::packets::{scaled_window, turned};
use super::sender::{data_sequence, version};
use super::{Mptcp, config_of};
use crate::engine::random::{RandomStream, mix64};
use crate::measure::Entity;
use crate::packet::{Packet, PacketId, PacketKind, flag};
use crate::transport::mptcp::parameters::MptcpConfig;
use crate::transport::tcp::incoming::StreamKey;
use crate::transport::tcp::packets::{segment, write_answer};
use crate::transport::tcp::receiver::{Answer, Reply};
use crate::transport::{Ended, HostContext};
use crate::wire::mptcp::{Join, MptcpOption, Version, code, proof, short, subflow_of, token};
use crate::workload::FlowId;
use rustc_hash::FxHashMap;

/// Connections that are received at a host.
#[derive(Default)]
pub struct Arrivals {
    open: FxHashMap<FlowId, Arrival>,
    /// Those by their tokens.
    tokens: FxHashMap<u32, FlowId>,
    /// Length of the flows received in full, of which packets may still come.
    received: FxHashMap<FlowId, u64>,
}

/// A connection that is received.
pub(super) struct Arrival {
    pub key: u64,
    token: u32,
    /// The initiator's, once it is known; 0 where the connection is one of TCP.
    pub other: Option<u64>,
    /// The connection fell back to TCP.
    plain: bool,
    assembly: Assembly,
    /// Places of its subflows among the streams that are received here.
    streams: Vec<u32>,
    joins: Vec<Joining>,
    pub announcing: Announcing,
}

/// A subflow that has asked to join.
struct Joining {
    port: u8,
    nonce: u32,
    /// What is to be answered once the keys are known.
    waits: Option<Packet>,
}

impl Arrival {
    /// The code of its acknowledgements.
    fn says(&self) -> u8 {
        match (self.plain, self.other) {
            (true, _) => code::PLAIN,
            (_, None) => code::KEYLESS,
            _ => 0,
        }
    }

    /// This end's nonce for the join by a port.
    fn nonce(&self, port: u8) -> u32 {
        mix64(self.key ^ u64::from(port)) as u32
    }
}

impl Arrivals {
    /// A connection that is received.
    pub(super) fn get(&mut self, flow: FlowId) -> Option<&mut Arrival> {
        self.open.get_mut(&flow)
    }

    pub fn forget(&mut self, flow: FlowId) {
        self.received.remove(&flow);
    }

    /// Takes in a connection; the key of this end.
    fn take_in(&mut self, flow: FlowId, version: Version, cx: &HostContext) -> &mut Arrival {
        let Arrivals { open, tokens, .. } = self;
        open.entry(flow).or_insert_with(|| {
            let mut random = RandomStream::new(cx.settings.seed, &format!("mptcp.flow{flow}.key"));
            // No two connections may have the same token (RFC 8684 §3.1).
            let mut key = random.next_u64();
            while tokens.contains_key(&token(version, key)) {
                key = random.next_u64();
            }
            let token = token(version, key);
            tokens.insert(token, flow);
            Arrival {
                key,
                token,
                other: None,
                plain: false,
                assembly: Assembly::default(),
                streams: Vec::new(),
                joins: Vec::new(),
                announcing: Announcing::default(),
            }
        })
    }
}

fn key_of(packet: &Packet) -> StreamKey {
    u64::from(subflow_of(packet).1) << 32 | u64::from(packet.flow)
}

impl Mptcp {
    /// A SYN has come: of a new connection, or of a subflow that joins one.
    pub(super) fn receive_syn(&mut self, packet: &Packet, option: Option<MptcpOption>, cx: &mut HostContext) {
        let config = config_of(cx.settings, packet.profile);
        let version = version(config);
        match option {
            Some(MptcpOption::Capable { .. }) | None if self.arrivals.received.contains_key(&packet.flow) => {
            }
            Some(MptcpOption::Capable { sender, .. }) if config.is_capable(cx.host, cx.settings.seed) => {
                let arrival = self.arrivals.take_in(packet.flow, version, cx);
                arrival.other = arrival.other.or(sender);
                let (version, sender) = (version.number(), Some(arrival.key));
                let answer =
                    MptcpOption::Capable { version, checksum: config.checksum, sender, receiver: None };
                self.reply(code::SYN_ACK, packet, Some(answer), cx);
            }
            // One of the two hosts does not support multipath TCP.
            Some(MptcpOption::Capable { .. }) | None => {
                let arrival = self.arrivals.take_in(packet.flow, version, cx);
                (arrival.other, arrival.plain) = (Some(0), true);
                self.reply(code::SYN_ACK, packet, None, cx);
            }
            Some(MptcpOption::Join(Join::Syn { token, nonce, .. })) => {
                let port = subflow_of(packet).1;
                let Some(&flow) = self.arrivals.tokens.get(&token) else {
                    return self.reply(code::RESET, packet, None, cx);
                };
                self.forget_predecessor(packet, nonce);
                let Some(arrival) = self.arrivals.open.get_mut(&flow) else { return };
                arrival.joins.retain(|join| join.port != port);
                arrival.joins.push(Joining { port, nonce, waits: Some(*packet) });
                self.answer_joins(packet.flow, cx);
            }
            _ => {}
        }
    }

    /// Answers the joins that wait, if both keys are known.
    fn answer_joins(&mut self, flow: FlowId, cx: &mut HostContext) {
        let Some(arrival) = self.arrivals.open.get_mut(&flow) else { return };
        let Some(other) = arrival.other else { return };
        let key = arrival.key;
        let mut answers = Vec::new();
        for at in 0..arrival.joins.len() {
            let own = arrival.nonce(arrival.joins[at].port);
            let join = &mut arrival.joins[at];
            let Some(packet) = join.waits.take() else { continue };
            let version = version(config_of(cx.settings, packet.profile));
            let proof = short(proof(version, [key, other], [own, join.nonce]));
            answers.push((packet, Join::SynAck { address: join.port, proof, nonce: own }));
        }
        for (packet, answer) in answers {
            self.reply(code::SYN_ACK, &packet, Some(MptcpOption::Join(answer)), cx);
        }
    }

    /// The third packet of a handshake has come: both keys, or the proof of one that joins.
    pub(super) fn receive_third(
        &mut self,
        packet: &Packet,
        option: Option<MptcpOption>,
        cx: &mut HostContext,
    ) {
        let Some(arrival) = self.arrivals.open.get_mut(&packet.flow) else {
            // Joins that come late, and keys that were overtaken, are answered by nobody: their flow may be forgotten already.
            if packet.aux > 0 {
                self.acknowledge_all(packet, cx);
            }
            return;
        };
        match option {
            Some(MptcpOption::Capable { sender: Some(other), receiver, .. }) => {
                if receiver != Some(arrival.key) {
                    return;
                }
                arrival.other = Some(other);
                self.answer_joins(packet.flow, cx);
                // Data that came before the keys wait for their acknowledgement.
                self.announce_first(packet, cx);
                self.acknowledge_now(packet, cx);
            }
            Some(MptcpOption::Join(Join::Ack { proof: theirs })) => {
                let port = subflow_of(packet).1;
                let join = arrival.joins.iter().find(|join| join.port == port);
                let version = version(config_of(cx.settings, packet.profile));
                let expected = join.zip(arrival.other).map(|(join, other)| {
                    proof(version, [other, arrival.key], [join.nonce, arrival.nonce(port)])
                });
                let code = if expected == Some(theirs) { code::CONFIRMED } else { code::RESET };
                self.reply(code, packet, None, cx);
            }
            _ => {}
        }
    }

    /// Data have come: they are acknowledged, on their subflow and for the connection, at once or later.
    pub(super) fn receive_data(&mut self, id: PacketId, cx: &mut HostContext) {
        let packet = cx.net.packets[id];
        let config = config_of(cx.settings, packet.profile);
        if self.arrivals.received.contains_key(&packet.flow) {
            cx.came_again(&packet);
            cx.net.discard(id);
            return self.acknowledge_all(&packet, cx);
        }
        let Some(arrival) = self.arrivals.open.get_mut(&packet.flow) else {
            cx.refused(&packet);
            return cx.net.discard(id);
        };
        let announces = arrival.announcing.waits;
        let mut segment = segment(&packet, cx.net.waits.get(id), &config.tcp);
        // It may be the last of the connection, never of the subflow.
        segment.last = false;
        let slot = self.incoming.place(key_of(&packet), &packet, &config.tcp, cx);
        if !arrival.streams.contains(&slot) {
            arrival.streams.push(slot);
            let back = &mut self.incoming[slot].back;
            (back.hash, back.ingress) = (turned(&packet).hash, packet.ingress);
        }
        if let Some(answer) = self.incoming.answer_before(slot, &segment) {
            let early = cx.net.packets.insert(self.incoming[slot].back);
            self.acknowledge(early, &packet, answer, cx);
        }
        let taken = self.incoming.take(slot, &segment, &config.tcp, cx);
        let Some(arrival) = self.arrivals.open.get_mut(&packet.flow) else { return cx.net.discard(id) };
        let first = data_sequence(&packet, arrival.assembly.expected());
        // What is next in order is new.
        let bytes = u64::from(packet.payload);
        if first != arrival.assembly.expected() && arrival.assembly.has(first, bytes) {
            cx.came_again(&packet);
        }
        let moved = arrival.assembly.take(first, bytes, packet.is_last());
        let complete = arrival.assembly.is_complete();
        if moved > 0 {
            cx.net.deliver(packet.flow, packet.group, moved);
        }
        if taken.reply == Reply::Later && !complete {
            return cx.net.discard(id);
        }
        let answer = self.incoming.answer(slot);
        self.acknowledge(id, &packet, answer, cx);
        // While the initiator's key is missing the connection is not there to be ended.
        if complete {
            self.complete(packet.flow, cx);
        }
        if announces {
            self.announce_again(&packet, cx);
        }
    }

    /// Sends an acknowledgement in the place of packet `id`, of the subflow that `to` came by.
    fn acknowledge(&mut self, id: PacketId, to: &Packet, answer: Answer, cx: &mut HostContext) {
        let config = config_of(cx.settings, to.profile);
        let (data, says) = match self.arrivals.open.get(&to.flow) {
            Some(arrival) => (arrival.assembly.expected(), arrival.says()),
            None => (self.arrivals.received.get(&to.flow).copied().unwrap_or(0), 0),
        };
        self.send(id, turned(to), answer, (data, says), config, cx);
    }

    fn send(
        &mut self,
        id: PacketId,
        back: Packet,
        mut answer: Answer,
        (data, says): (u64, u8),
        config: &MptcpConfig,
        cx: &mut HostContext,
    ) {
        let room = config.sack_blocks as usize;
        if room == 0 {
            answer.duplicate = (0, 0);
        }
        let taken = usize::from(answer.duplicate.0 < answer.duplicate.1);
        answer.blocks.iter_mut().skip(room - taken).for_each(|block| *block = (0, 0));
        let back = Packet { payload: scaled_window(&config.tcp), ..back };
        // By the NIC that the subflow comes in by.
        let port = cx.first_port + u32::from(back.ingress);
        write_answer(id, back, &answer, data as u32, &config.tcp, cx);
        cx.net.packets[id].flags |= says << flag::CODE_SHIFT;
        cx.enqueue_control(port, id);
        self.touch(port, cx);
    }

    /// Every byte of a flow has come, or of several, over a connection that stays open.
    fn arrives(&mut self, connection: FlowId, cx: &mut HostContext) {
        let Some(arrival) = self.arrivals.open.get_mut(&connection) else { return };
        while arrival.assembly.take_end() {
            let flow = cx.net.awaited.arrive(connection);
            if cx.settings.subflows {
                let max_waiting = arrival.assembly.take_max_waiting() as f64;
                cx.net.recorder.sample(cx.net.now, Entity::Flow(flow), "reorder_bytes", max_waiting);
            }
            if cx.settings.dependencies {
                cx.ended.push(Ended { flow, host: cx.host, at_receiver: true });
            }
        }
    }

    /// Every byte of a flow has come.
    fn complete(&mut self, flow: FlowId, cx: &mut HostContext) {
        let Some(arrival) = self.arrivals.open.get(&flow).filter(|arrival| arrival.other.is_some()) else {
            return;
        };
        if cx.net.awaited.stays_open(flow) {
            return self.arrives(flow, cx);
        }
        let length = arrival.assembly.expected();
        let Some(mut arrival) = self.arrivals.open.remove(&flow) else { return };
        self.arrivals.tokens.remove(&arrival.token);
        if cx.settings.subflows {
            let max_waiting = arrival.assembly.take_max_waiting() as f64;
            cx.net.recorder.sample(cx.net.now, Entity::Flow(flow), "reorder_bytes", max_waiting);
        }
        for slot in arrival.streams {
            self.incoming.close(slot);
        }
        self.arrivals.received.insert(flow, length);
        if cx.settings.dependencies {
            cx.ended.push(Ended { flow, host: cx.host, at_receiver: true });
        }
    }

    /// Acknowledges a flow that was received in full.
    fn acknowledge_all(&mut self, to: &Packet, cx: &mut HostContext) {
        let Some(&length) = self.arrivals.received.get(&to.flow) else { return };
        let config = config_of(cx.settings, to.profile);
        let answer = Answer {
            expected: to.seq + u64::from(to.payload),
            blocks: Default::default(),
            echo: to.sent,
            wait: 0,
            marked: false,
            duplicate: (0, 0),
        };
        let id = cx.net.packets.insert(Packet::default());
        let plain = if to.kind == PacketKind::Data { to.code() & code::PLAIN } else { 0 };
        self.send(id, turned(to), answer, (length, plain), config, cx);
    }

    /// Acknowledges what has come on the subflow of a packet, if anything has.
    fn acknowledge_now(&mut self, to: &Packet, cx: &mut HostContext) {
        let Some(arrival) = self.arrivals.open.get(&to.flow) else { return };
        let complete = arrival.assembly.is_complete();
        let Some(slot) = self.incoming.find(key_of(to)) else { return };
        let answer = self.incoming.answer(slot);
        let id = cx.net.packets.insert(Packet::default());
        self.acknowledge(id, to, answer, cx);
        if complete {
            self.complete(to.flow, cx);
        }
    }

    /// A delayed acknowledgement may be due.
    pub(super) fn acknowledge_late(&mut self, slot: u32, cx: &mut HostContext) {
        let Some((answer, back)) = self.incoming.on_timer(slot, cx) else { return };
        let id = cx.net.packets.insert(back);
        // What it answers came the other way.
        self.acknowledge(id, &turned(&back), answer, cx);
    }

    /// A subflow joins by a port that another one had before, if its nonce is another one: what told of its end may have been lost.
    fn forget_predecessor(&mut self, packet: &Packet, nonce: u32) {
        let port = subflow_of(packet).1;
        let arrival = self.arrivals.open.get(&packet.flow);
        if arrival.is_some_and(|arrival| arrival.joins.iter().any(|j| j.port == port && j.nonce != nonce)) {
            self.forget_subflow(packet);
        }
    }

    /// The initiator has given a subflow up.
    pub(super) fn forget_subflow(&mut self, packet: &Packet) {
        let Some(arrival) = self.arrivals.open.get_mut(&packet.flow) else { return };
        if let Some(slot) = self.incoming.find(key_of(packet)) {
            arrival.streams.retain(|&known| known != slot);
            self.incoming.close(slot);
        }
        let port = subflow_of(packet).1;
        arrival.joins.retain(|join| join.port != port);
    }
}
