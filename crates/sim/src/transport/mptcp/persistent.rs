//! Connections that stay open: flows that follow each other over one, as bytes appended to its stream.
//!
//! The first flow opens the connection and its subflows; those behind it find both as they were left: windows, round-trip times, keys and
//! tokens, data sequence numbers, subflows that were given up. A subflow that carried nothing for longer than its retransmission timeout
//! begins with the first window again (RFC 5681 §4.1), before it is given anything, if `window_validation` says so.
//!
//! Source: RFC 8684 §3.3; RFC 5681 §4.1.
//! Differs from the source: as under TCP, each direction is a connection of its own, and a segment ends where a flow does.

use super::sender::{Sender, Standing};
use super::{Mptcp, config_of};
use crate::measure::Entity;
use crate::transport::messages::{Message, Messages};
use crate::transport::tcp::outgoing::Outgoing;
use crate::transport::{Ended, HostContext};
use crate::workload::{FlowId, FlowSpec};

impl Mptcp {
    /// A flow starts that is sent over a connection which stays open, or opens it.
    pub(super) fn start_message(
        &mut self,
        connection: FlowId,
        flow: FlowId,
        spec: &FlowSpec,
        cx: &mut HostContext,
    ) {
        let message = Message::new(flow, spec, cx.now());
        if let Some(&number) = self.kept.get(&connection) {
            self.append(number, message, cx);
        } else if flow == connection {
            let mut messages = Box::<Messages>::default();
            messages.push(message);
            self.connect(flow, spec, Some(messages), cx);
        } else {
            // It died with those before it.
            cx.record(message.record(cx.host, None));
        }
    }

    /// Appends a flow to what a connection sends.
    fn append(&mut self, number: u32, message: Message, cx: &mut HostContext) {
        let sender = &mut self.senders[number as usize];
        let config = &config_of(cx.settings, sender.spec.transport).tcp;
        sender.stream.append(message.spec.size);
        sender.messages.get_or_insert_default().push(message);
        for path in sender.paths.iter().filter(|path| path.standing == Standing::Up) {
            let idle = self.outgoing[path.slot].board.pipe() == 0;
            self.outgoing[path.slot].restart_after_idling(cx.net.now, config, idle);
        }
        self.distribute(number, cx);
    }

    /// What an acknowledgement says of the flows that a connection carries.
    pub(super) fn end_messages(&mut self, number: u32, cx: &mut HostContext) {
        let sender = &mut self.senders[number as usize];
        let acknowledged = sender.stream.acknowledged();
        while let Some(message) = sender.messages.as_mut().and_then(|m| m.take(acknowledged)) {
            cx.net.recorder.flow(message.record(cx.host, Some(cx.net.now)));
            if cx.settings.dependencies {
                cx.ended.push(Ended { flow: message.flow, host: cx.host, at_receiver: false });
            }
            if cx.settings.subflows {
                let entity = Entity::Flow(message.flow);
                sender.measure(|metric, value| cx.net.recorder.sample(cx.net.now, entity, metric, value));
                sender.reset_measurement();
            }
        }
        self.rest(number);
    }

    /// Subflows of a connection that stays open and has nothing to send leave their NICs alone.
    pub(super) fn rest(&mut self, number: u32) {
        let sender = &self.senders[number as usize];
        if sender.messages.is_some() && sender.stream.is_done() {
            for path in sender.paths.iter().filter(|path| path.standing == Standing::Up) {
                self.outgoing.rest(path.slot);
            }
        }
    }
}

impl Sender {
    /// It carries a flow that is not done.
    pub fn carries(&self, flow: FlowId) -> bool {
        match &self.messages {
            Some(messages) => messages.carries(flow),
            None => self.flow == flow,
        }
    }

    /// Records its flows, which did not end.
    pub fn record_unfinished(&self, outgoing: &Outgoing, cx: &mut HostContext) {
        match &self.messages {
            Some(messages) => messages.iter().for_each(|message| cx.record(message.record(cx.host, None))),
            None => cx.record(self.record(cx.host, None, outgoing)),
        }
    }
}
