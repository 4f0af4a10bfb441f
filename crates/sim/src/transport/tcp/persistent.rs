//! Connections that stay open: flows that follow each other over one, as bytes appended to its stream.
//!
//! The first flow opens the connection; those behind it find it as the last one left it: window, threshold, round-trip time, port. Each
//! is done when its last byte is acknowledged, and arrives when its last byte does. A window that was not used for longer than the
//! retransmission timeout is validated anew (RFC 5681 §4.1), if `window_validation` says so. Nothing closes such a connection but its
//! death, of which the flows that it carries die too.
//!
//! Source: RFC 9293 §3.9.1 (SEND with PUSH), RFC 5681 §4.1.
//! Differs from the source: each direction is a connection of its own, opened by its first flow; a segment ends where a flow does.

use super::Tcp;
use super::connection::Connection;
use super::outgoing::Outgoing;
use super::source::Source;
use crate::net::PortId;
use crate::transport::messages::{Message, Messages};
use crate::transport::tcp::config::TcpConfig;
use crate::transport::{Ended, HostContext};
use crate::workload::{FlowId, FlowSpec};

impl Tcp {
    /// A flow starts that is sent over a connection which stays open, or opens it.
    pub(super) fn start_message(
        &mut self,
        connection: FlowId,
        flow: FlowId,
        spec: &FlowSpec,
        cx: &mut HostContext,
    ) -> Option<PortId> {
        let settings = cx.settings.of::<TcpConfig>(spec.transport);
        let message = Message::new(flow, spec, cx.now());
        match self.kept.get(&connection) {
            Some(&slot) => {
                self.outgoing.append(slot, message, settings, cx);
                let port = self.outgoing.port(slot, cx);
                cx.bound(flow, port, spec.size);
                Some(port)
            }
            None if flow == connection => {
                let mut opened = self.connect(flow, spec, cx);
                opened.keep_open(settings);
                opened.append(message);
                let slot = self.outgoing.open(opened, settings.class);
                self.kept.insert(connection, slot);
                self.outgoing.send_syn(slot, settings, cx)
            }
            None => {
                cx.record(message.record(cx.host, None));
                None
            }
        }
    }

    /// What an acknowledgement says of the flows that a connection carries.
    pub(super) fn end_messages(&mut self, slot: u32, cx: &mut HostContext) {
        let connection = &mut self.outgoing[slot];
        let acknowledged = connection.board.acknowledged();
        while let Some(message) = connection.messages.as_mut().and_then(|m| m.take(acknowledged)) {
            cx.record(message.record(cx.host, Some(cx.net.now)));
            if cx.settings.dependencies {
                cx.ended.push(Ended { flow: message.flow, host: cx.host, at_receiver: false });
            }
        }
        self.outgoing.rest(slot);
    }

    /// A flow has arrived over a connection; whether that one stays open.
    pub(super) fn arrives(&mut self, slot: u32, connection: FlowId, cx: &mut HostContext) -> bool {
        if !cx.net.awaited.stays_open(connection) {
            return false;
        }
        while self.incoming[slot].receiver.take_end() {
            let flow = cx.net.awaited.arrive(connection);
            if cx.settings.dependencies {
                cx.ended.push(Ended { flow, host: cx.host, at_receiver: true });
            }
        }
        true
    }
}

impl Connection {
    /// What it sends is appended, flow by flow.
    fn keep_open(&mut self, config: &TcpConfig) {
        self.source = Source::of_messages(config.send_buffer);
        self.messages = Some(Box::default());
    }

    fn append(&mut self, message: Message) {
        self.source.append(message.spec.size);
        self.messages.get_or_insert_default().push(message);
    }

    /// The flows that it carries, if it stays open.
    pub fn carried(&self) -> impl Iterator<Item = &Message> {
        self.messages.as_deref().into_iter().flat_map(Messages::iter)
    }

    /// It carries a flow that is not done.
    pub fn carries(&self, flow: FlowId) -> bool {
        match &self.messages {
            Some(messages) => messages.carries(flow),
            None => self.flow == flow,
        }
    }
}

impl Outgoing {
    /// Appends a flow to what a connection sends.
    fn append(&mut self, slot: u32, message: Message, config: &TcpConfig, cx: &mut HostContext) {
        self[slot].append(message);
        self.rouse(slot, config);
        self[slot].watch_window(cx.now(), config);
        self.steer(slot, config, cx);
        self.set_alarm(slot, cx);
    }
}

/// Records the flows of connections that did not end.
pub(super) fn record_unfinished(connection: &Connection, cx: &mut HostContext) {
    if connection.messages.is_none() {
        return cx.record(connection.record(cx.host, None));
    }
    for message in connection.carried() {
        cx.record(message.record(cx.host, None));
    }
}
