//! The initiator's side at its host: connections that begin and end, data handed out, acknowledgements, timeouts, subflows that
//! are given up. The [path manager](super::path_manager) opens them.

use super::packets::{self, signal};
use super::sender::{Sender, Standing};
use super::{Mptcp, RETRY, TOKENS, config_of};
use crate::engine::random::RandomStream;
use crate::measure::Entity;
use crate::packet::{Packet, PacketId};
use crate::transport::messages::Messages;
use crate::transport::mptcp::parameters::JoinRule;
use crate::transport::tcp::connection::Phase;
use crate::transport::{Ended, HostContext};
use crate::units::Time;
use crate::wire::mptcp::{code, sender_of, subflow_of};
use crate::workload::{FlowId, FlowSpec};

/// Windows are the connection's: a subflow's receiver takes everything.
const UNBOUNDED: u64 = u64::MAX >> 1;

impl Mptcp {
    /// A flow begins: its first subflow is opened.
    pub(super) fn connect(
        &mut self,
        flow: FlowId,
        spec: &FlowSpec,
        messages: Option<Box<Messages>>,
        cx: &mut HostContext,
    ) {
        let settings = config_of(cx.settings, spec.transport);
        let mut random = RandomStream::new(cx.settings.seed, &format!("mptcp.flow{flow}"));
        let mut sender = Sender::new(flow, spec, settings, random.next_u64(), cx.now());
        sender.messages = messages;
        let number = self.free.pop().unwrap_or(self.senders.len() as u32);
        match self.senders.get_mut(number as usize) {
            Some(free) => *free = sender,
            None => self.senders.push(sender),
        }
        if spec.connection.is_some() {
            self.kept.insert(flow, number);
        }
        self.open_first(number, cx);
    }

    /// The place, connection and number there of the subflow that a packet answers.
    pub(super) fn own(&self, packet: &Packet) -> Option<(u32, u32, usize)> {
        let (slot, port) = subflow_of(packet);
        if !self.outgoing.is_alive(slot, packet.flow) {
            return None;
        }
        let &(number, at) = self.owners.get(slot as usize)?;
        let path = self.senders[number as usize].paths.get(usize::from(at))?;
        (path.slot == slot && path.port == port).then_some((slot, number, usize::from(at)))
    }

    /// A subflow is up.
    pub(super) fn establish(&mut self, slot: u32, packet: &Packet, cx: &mut HostContext) {
        let config = config_of(cx.settings, packet.profile);
        let (number, at) = self.owners[slot as usize];
        self.outgoing.establish(slot, packet, &config.tcp, cx);
        self.outgoing[slot].receivable = UNBOUNDED;
        self.senders[number as usize].paths[usize::from(at)].standing = Standing::Up;
        self.rest(number);
    }

    /// Hands data to the subflows that have room, as the scheduler orders them.
    pub(super) fn distribute(&mut self, number: u32, cx: &mut HostContext) {
        let sender = &mut self.senders[number as usize];
        let config = config_of(cx.settings, sender.spec.transport);
        sender.size_buffers(&self.outgoing, config);
        while let Some((at, given)) = sender.choose(&self.outgoing, config, cx.net.now) {
            sender.hand(at, &given, &mut self.outgoing);
            if given.unblocks != 0 && config.penalise {
                sender.penalise(at, &given, &mut self.outgoing, cx.net.now);
            }
            let slot = sender.paths[at].slot;
            self.outgoing.rouse(slot, &config.tcp);
            self.outgoing.steer(slot, &config.tcp, cx);
            let nic = self.outgoing[slot].nic;
            if !self.touched.contains(&nic) {
                self.touched.push(nic);
            }
        }
    }

    /// The next data packet of a subflow that may send, or of one of the same connection that comes before it.
    pub(super) fn build(&mut self, slot: u32, cx: &mut HostContext) -> Option<Packet> {
        let (number, at) = self.owners[slot as usize];
        let sender = &mut self.senders[number as usize];
        let at = sender.in_order(usize::from(at), &self.outgoing, cx.net.now);
        let slot = sender.paths[at].slot;
        let config = config_of(cx.settings, sender.spec.transport);
        let before = self.outgoing[slot].packets_retransmitted;
        let mut packet = self.outgoing.build(slot, &config.tcp, cx)?;
        let repeated = self.outgoing[slot].packets_retransmitted > before;
        if !sender.label(at, &mut packet, repeated, cx.net.now) {
            cx.sent_for_no_flow(packet.group);
        }
        Some(packet)
    }

    /// An acknowledgement has come, of a subflow and of the connection.
    pub(super) fn receive_ack(&mut self, id: PacketId, cx: &mut HostContext) {
        let packet = cx.net.packets[id];
        let Some((slot, number, at)) = self.own(&packet) else { return cx.net.discard(id) };
        let config = config_of(cx.settings, packet.profile);
        let sender = &mut self.senders[number as usize];
        let keyless = packet.code() == code::KEYLESS;
        let first = !keyless && !sender.confirmed;
        if !keyless {
            sender.confirmed = true;
            let before = sender.stream.acknowledged();
            let data = packets::whole(packet.aux, before).max(before);
            sender.stream.acknowledge(data, packets::window(packet.payload, &config.tcp));
        }
        if config.tcp.controller.couples() {
            sender.couple(at, &mut self.outgoing, &mut self.seen);
        }
        // The subflow has no window of its own.
        cx.net.packets[id].aux = u32::MAX >> 2;
        self.outgoing.acknowledge(slot, id, &config.tcp, cx);
        sender.paths[at].release(self.outgoing[slot].board.acknowledged());
        let port = self.outgoing.port(slot, cx);
        self.touch(port, cx);
        let sender = &self.senders[number as usize];
        if sender.messages.is_some() {
            self.end_messages(number, cx);
        } else if sender.stream.is_done() {
            return self.end(number, cx);
        }
        if first && config.join == JoinRule::Confirmed {
            self.open_others(number, usize::from(config.subflows), cx);
        }
        if keyless {
            self.tell_keys(number, cx);
        }
        self.distribute(number, cx);
    }

    /// Everything is acknowledged.
    fn end(&mut self, number: u32, cx: &mut HostContext) {
        let record = self.senders[number as usize].record(cx.host, Some(cx.now()), &self.outgoing);
        let sender = &self.senders[number as usize];
        let once = record.packets_retransmitted == 0 && !sender.repeated;
        if once {
            cx.net.delivered_once.push((sender.flow, sender.spec.dst, cx.transport));
        }
        if cx.settings.dependencies {
            cx.ended.push(Ended { flow: sender.flow, host: cx.host, at_receiver: false });
        }
        cx.record(record);
        if cx.settings.subflows {
            let sender = &self.senders[number as usize];
            sender.measure(|metric, value| {
                cx.net.recorder.sample(cx.net.now, Entity::Flow(sender.flow), metric, value);
            });
        }
        self.close(number, Phase::Done, cx);
    }

    /// A connection is over: its place and those of its subflows are free for others.
    fn close(&mut self, number: u32, phase: Phase, cx: &mut HostContext) {
        let sender = &mut self.senders[number as usize];
        let config = config_of(cx.settings, sender.spec.transport);
        for path in sender.paths.iter_mut().filter(|path| path.standing != Standing::Gone) {
            path.standing = Standing::Gone;
            self.outgoing[path.slot].phase = phase;
            self.outgoing.steer(path.slot, &config.tcp, cx);
            self.outgoing.close(path.slot, cx);
        }
        sender.over = true;
        self.free.push(number);
    }

    /// The timeout of a subflow may have expired.
    pub(super) fn time_out(&mut self, slot: u32, cx: &mut HostContext) {
        if !self.outgoing.expires(slot, cx) {
            return;
        }
        let (number, at) = self.owners[slot as usize];
        let at = usize::from(at);
        let sender = &mut self.senders[number as usize];
        let config = config_of(cx.settings, sender.spec.transport);
        if sender.paths[at].standing != Standing::Up {
            sender.repeated = true;
            sender.count_timeout();
            cx.timed_out(sender.spec.group);
            self.outgoing[slot].timeouts += 1;
            let timeouts = self.outgoing[slot].timeouts;
            let fails = timeouts >= config.fail_after && sender.has_better(at, &self.outgoing);
            return match timeouts <= config.tcp.syn_retries && !fails {
                true => self.send_opening(slot, cx),
                false => self.give_up(number, at, cx),
            };
        }
        if !sender.confirmed && self.outgoing[slot].board.outstanding() == 0 {
            sender.repeated = true;
            sender.count_timeout();
            cx.timed_out(sender.spec.group);
            sender.unanswered += 1;
            return match sender.unanswered <= config.tcp.retries {
                true => self.tell_keys(number, cx),
                false => self.give_up(number, at, cx),
            };
        }
        let before = self.outgoing[slot].timeouts;
        self.outgoing.time_out(slot, &config.tcp, cx);
        // Not where a timer of its loss detection came before.
        let expired = self.outgoing[slot].timeouts > before;
        if expired {
            sender.count_timeout();
        }
        if config.reinject && expired {
            let Sender { paths, stream, .. } = sender;
            paths[at].unacknowledged().for_each(|piece| stream.send_again(piece));
        }
        let port = self.outgoing.port(slot, cx);
        let tcp = &self.outgoing[slot];
        let fails = config.rejoin > Time::ZERO
            && tcp.timeouts >= config.fail_after
            && sender.has_better(at, &self.outgoing);
        let dead = tcp.phase == Phase::Dead;
        self.touch(port, cx);
        if fails || dead {
            self.give_up(number, at, cx);
        }
        if !self.senders[number as usize].over {
            self.distribute(number, cx);
        }
    }

    /// A subflow is given up, or was refused. With the last one, or before the keys are known, the connection is dead.
    pub(super) fn give_up(&mut self, number: u32, at: usize, cx: &mut HostContext) {
        let sender = &mut self.senders[number as usize];
        let config = config_of(cx.settings, sender.spec.transport);
        let (slot, port) = (sender.paths[at].slot, sender.paths[at].port);
        let header =
            Packet { sent: cx.now(), sender: sender_of(slot, port), ..self.outgoing[slot].header(slot, cx) };
        let exit = self.outgoing.port(slot, cx);
        signal(code::GIVEN_UP, header, None, exit, &config.tcp, cx);
        let keyless = sender.keys[1] == 0;
        sender.lose(at, &self.outgoing);
        self.outgoing[slot].phase = Phase::Dead;
        self.outgoing.steer(slot, &config.tcp, cx);
        self.outgoing.close(slot, cx);
        let left = sender.paths.len() - sender.count(Standing::Gone);
        if keyless || left == 0 {
            self.bury(number, cx);
        } else if config.rejoin > Time::ZERO {
            let retry = cx.now().saturating_add(config.rejoin);
            sender.paths[at].retry = retry;
            cx.set_timer(retry, number * TOKENS + RETRY);
        }
        self.touch(exit, cx);
    }

    /// A connection has died: its flow is recorded as unfinished.
    fn bury(&mut self, number: u32, cx: &mut HostContext) {
        let sender = &self.senders[number as usize];
        sender.record_unfinished(&self.outgoing, cx);
        if sender.messages.is_some() {
            self.kept.remove(&sender.flow);
        }
        self.close(number, Phase::Dead, cx);
    }
}
