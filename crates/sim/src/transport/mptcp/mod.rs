//! Multipath TCP: one byte stream over several TCP subflows.
//!
//! A flow is a connection, or one of those that follow each other over a [connection that stays open](persistent). Its first subflow is
//! opened by a handshake that exchanges keys; others join, each from a port of its own, so that the network may send them over other
//! paths. A subflow is a TCP connection in all that it does: windows, losses, timeouts, acknowledgements. What it carries is handed to it
//! segment by segment, by a scheduler, as its window has room; what waits for the same NIC leaves in the order of the stream, as from
//! the queue of a host. Every segment says which bytes of the stream it has, and the receiver puts the stream together and
//! acknowledges it as a whole. What a subflow fails to bring across others carry; one that brings nothing across any more is given up and
//! opened anew later. A flow is done when its last byte is acknowledged by the connection.
//!
//! ```text
//! initiator                                          other end
//!   SYN        MP_CAPABLE                              ->
//!   <-         MP_CAPABLE (key)                        SYN-ACK
//!   ACK        MP_CAPABLE (both keys), data            ->
//!   <-         data acknowledgement                    now both know the keys
//!   SYN        MP_JOIN (token, nonce)  another port    ->
//!   <-         MP_JOIN (proof, nonce)                  SYN-ACK
//!   ACK        MP_JOIN (proof)                         ->
//!   <-                                                 ACK: the subflow may carry data
//! ```
//!
//! Source: Ford et al., RFC 8684 (version 1), RFC 6824 (version 0); Raiciu et al., "How hard can it be? Designing and
//! implementing a deployable multipath TCP", NSDI 2012; Linux 6 where these leave a choice.
//! Differs from the source: data sequence numbers begin at 0; data carry no keys: an acknowledgement that acknowledges no data asks
//! for them again; a connection falls back to TCP where one of its hosts does not support multipath TCP, and at no other time (nothing
//! in the network changes packets), and its packets keep their lengths; the other end announces ports of its one address, and only where
//! `join` asks for it; no DATA_FIN of its own (the last byte is acknowledged at once, as a DATA_FIN would be); subflows only from the initiator, who alone sends data; the application reads
//! at once, so the shared window is the buffer beyond the last byte in order.
//! Validated by: tests/mptcp.rs.

mod announcing;
mod assembly;
mod handshake;
mod packets;
mod parameters;
mod path_manager;
mod persistent;
mod receiving;
mod scheduler;
mod sender;
mod sending;
mod stream;
mod subflow_series;

pub use packets::scale;
pub use parameters::MptcpConfig;

use super::{FlowView, HostContext, Look, Timeouts, Transport};
use crate::congestion::window::WindowController;
use crate::congestion::window::coupled::Subflow;
use crate::net::PortId;
use crate::packet::{PacketId, PacketKind};
use crate::transport::settings::Settings;
use crate::transport::tcp::incoming::Incoming;
use crate::transport::tcp::outgoing::Outgoing;
use crate::units::Time;
use crate::workload::{FlowId, FlowSpec};
use receiving::Arrivals;
use rustc_hash::FxHashMap;
use sender::{SUBFLOW_WINDOWS, Sender, Standing};

/// Timers: four to a number, of a subflow that sends, of one that receives, of a connection, of a NIC.
const TOKENS: u32 = 4;
const DELAYED: u32 = 1;
const RETRY: u32 = 2;
const KICK: u32 = 3;

/// The multipath TCP stack of one host.
pub struct Mptcp {
    /// Subflows that send from here, and connections.
    outgoing: Outgoing,
    senders: Vec<Sender>,
    free: Vec<u32>,
    /// Connections that stay open, by the flows that opened them.
    kept: FxHashMap<FlowId, u32>,
    /// By the place of a subflow: its connection, and its number there.
    owners: Vec<(u32, u8)>,
    /// Subflows that are received here, and connections.
    incoming: Incoming,
    arrivals: Arrivals,
    /// Room for what coupled laws see.
    seen: Vec<Subflow>,
    /// NICs that may have something to send since the last event.
    touched: Vec<u16>,
}

impl Mptcp {
    pub fn new(nics: usize) -> Mptcp {
        Mptcp {
            outgoing: Outgoing::new(nics, TOKENS),
            senders: Vec::new(),
            free: Vec::new(),
            kept: FxHashMap::default(),
            owners: Vec::new(),
            incoming: Incoming::new(TOKENS, DELAYED),
            arrivals: Arrivals::default(),
            seen: Vec::new(),
            touched: Vec::new(),
        }
    }

    /// A port may have something to send.
    fn touch(&mut self, port: PortId, cx: &HostContext) {
        let nic = (port - cx.first_port) as u16;
        if !self.touched.contains(&nic) {
            self.touched.push(nic);
        }
    }

    /// The port that is looked at now; events look at others.
    fn touched(&mut self, cx: &mut HostContext) -> Option<PortId> {
        let first = self.touched.first().copied()?;
        for &nic in &self.touched[1..] {
            let next = Time(cx.now().0 + 1);
            cx.set_timer(next, u32::from(nic) * TOKENS + KICK);
        }
        self.touched.clear();
        Some(cx.first_port + u32::from(first))
    }
}

fn config_of(settings: &Settings, index: impl Into<usize>) -> &MptcpConfig {
    settings.of::<MptcpConfig>(index)
}

impl Transport for Mptcp {
    fn start_flow(&mut self, flow: FlowId, spec: &FlowSpec, cx: &mut HostContext) -> Option<PortId> {
        match spec.connection {
            Some(connection) => self.start_message(connection, flow, spec, cx),
            None => self.connect(flow, spec, None, cx),
        }
        self.touched(cx)
    }

    #[inline(never)]
    fn receive(&mut self, id: PacketId, cx: &mut HostContext) -> Option<PortId> {
        match cx.net.packets[id].kind {
            PacketKind::Data => self.receive_data(id, cx),
            PacketKind::Ack => self.receive_ack(id, cx),
            _ => self.receive_signal(id, cx),
        }
        self.touched(cx)
    }

    #[inline(never)]
    fn next_packet(&mut self, port: PortId, cx: &mut HostContext) -> Option<PacketId> {
        loop {
            let slot = self.outgoing.choose(port, cx)?;
            // A gate that turns out to have nothing has been closed, or set to a later time.
            if let Some(packet) = self.build(slot, cx) {
                return Some(cx.net.packets.insert(packet));
            }
        }
    }

    #[inline(never)]
    fn next_look(&mut self, nic: usize, paused: u8, free: Time) -> Look {
        self.outgoing.next_look(nic, paused, free)
    }

    fn on_timer(&mut self, token: u32, cx: &mut HostContext) -> Option<PortId> {
        let number = token / TOKENS;
        match token % TOKENS {
            DELAYED => self.acknowledge_late(number, cx),
            RETRY => self.retry(number, cx),
            KICK => return Some(cx.first_port + number),
            _ => self.time_out(number, cx),
        }
        self.touched(cx)
    }

    fn on_wake(&mut self, port: PortId, serial: u32, cx: &HostContext) -> bool {
        self.outgoing.wake_is(cx.scheduler_of(port), serial)
    }

    fn on_network_change(&mut self, cx: &mut HostContext) -> Vec<PortId> {
        let settings = cx.settings;
        self.outgoing.follow_paths(|transport| &config_of(settings, transport).tcp, cx);
        // The loss of a link opens no subflow.
        if !self.lose_links(cx) {
            self.open_waiting(cx);
        }
        self.touched(cx).into_iter().collect()
    }

    fn forget(&mut self, flow: FlowId) {
        self.arrivals.forget(flow);
    }

    fn finish(&mut self, cx: &mut HostContext) {
        for sender in self.senders.iter().filter(|sender| !sender.over) {
            sender.record_unfinished(&self.outgoing, cx);
        }
        self.outgoing.finish(cx);
    }

    fn timeouts(&self, flow: FlowId) -> Option<Timeouts> {
        let sender = self.senders.iter().find(|sender| sender.carries(flow) && !sender.over)?;
        let until = "until the retransmission timeout of a subflow expired";
        Some(Timeouts { expired: sender.timeouts, has_earlier: true, until })
    }

    fn view(&self, flow: FlowId, _now: Time) -> Option<FlowView> {
        let sender = self.senders.iter().find(|sender| sender.carries(flow) && !sender.over)?;
        // Every subflow keeps its name, whichever others are up.
        let named = sender.paths.iter().zip(SUBFLOW_WINDOWS);
        let up = || named.clone().filter(|(path, _)| path.standing == Standing::Up);
        let windows = || up().map(|(path, name)| (name, self.outgoing[path.slot].window.cwnd as f64));
        let in_flight: u64 = up().map(|(path, _)| self.outgoing[path.slot].board.pipe()).sum();
        let mut internals = vec![
            ("subflows", up().count() as f64),
            ("in_flight_bytes", in_flight as f64),
            ("reinjected_bytes", sender.reinjected as f64),
        ];
        internals.extend(windows());
        let mut own = Vec::new();
        for (number, path) in
            sender.paths.iter().enumerate().filter(|(_, path)| path.standing == Standing::Up)
        {
            self.outgoing[path.slot].law.internals(&mut own);
            let named = |(name, value)| Some((subflow_series::of_subflow(number, name)?, value));
            internals.extend(own.drain(..).filter_map(named));
        }
        let window = windows().map(|(_, bytes)| bytes).sum();
        Some(FlowView { rate_bps: None, cwnd_bytes: Some(window), internals })
    }
}
