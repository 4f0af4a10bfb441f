//! Homa: short messages at line rate, receivers grant the rest, the shortest first, over eight priorities.
//!
//! A message begins without a handshake: its first round trip of bytes is *unscheduled*. Every further packet waits for a
//! *grant* of the receiver, which keeps a few senders going at once (*overcommitment*), those whose messages are
//! the shortest, and names the priority of the packet that it lets go. Unscheduled packets have the upper priorities, by what is
//! left of their message, with cutoffs such that each priority carries equal bytes. A sender's link sends the message with
//! the least left. Lost packets are requested again by the receiver (*RESEND*); a sender that is occupied with shorter
//! messages answers *BUSY*. One acknowledgement ends a message.
//!
//! Source: Montazeri, Li, Alizadeh, Ousterhout, "Homa: A Receiver-Driven Low-Latency Transport Protocol Using Network
//! Priorities", SIGCOMM 2018, and its authors' simulator (HomaSimulation, commit ab09ecb), whose rules these are; RESEND,
//! BUSY and the acknowledgement as the Linux module has them (HomaModule, commit 9edb958).
//! Differs from the source: one acknowledgement, by which the sender learns of the end (there is none in the simulator); grants
//! are cumulative, so that a lost one is made up for by the next; a message that a timeout has found silent is not granted to
//! until a packet of it comes, and not timed while its packets may wait before its receiver's link,
//! for which the receiver compares the times at which packets left (all hosts have one clock). The paper's RESEND requests the first range that is missing: here, as in the module, a round requests
//! every range. The module repeats rounds at a constant interval and at the highest priority, and answers each NEED_ACK for an
//! incomplete message with one; here repetitions double the time, the level is that of the bytes that are missing, and a
//! message of which a packet came, or was requested, less than a timeout ago is not requested.
//! Validated by: tests/homa.rs.

mod downlink;
mod layout;
mod levels;
mod parameters;
mod receiver;
mod sender;
#[cfg(test)]
mod tests;

pub use parameters::HomaConfig;

use super::{FlowView, Hold, HostContext, Leaving, Look, Timeouts, Transport};
use crate::engine::prefetch::prefetch_lines;
use crate::engine::random::RandomStream;
use crate::net::PortId;
use crate::packet::{Packet, PacketId, PacketKind};
use crate::units::Time;
use crate::workload::{FlowId, FlowSpec};
use downlink::Downlink;
use receiver::{Incoming, Peer};
use rustc_hash::{FxHashMap, FxHashSet};
use sender::Outgoing;
use std::collections::BTreeSet;

/// Codes of control packets.
pub mod code {
    /// Receiver to sender. `seq`: packets of the message that may be sent, and above it the level of the new ones.
    pub const GRANT: u8 = 0;
    /// Receiver to sender: packets from `aux` to below `seq` are missing; above that their level, and the number of the round.
    /// `sent`: what left long before then does not wait in front of the receiver any more.
    pub const RESEND: u8 = 1;
    /// Sender to receiver: it sends shorter messages first.
    pub const BUSY: u8 = 2;
    /// Sender to receiver: a message of `seq` bytes was sent, its last packet at `sent`, and no packet came back. An
    /// acknowledgement with this code answers it.
    pub const NEED_ACK: u8 = 3;
    /// Receiver to sender: the message is known, and its turn will come.
    pub const KNOWN: u8 = 4;
}

/// What a message is ordered by: bytes left, then its age; and where it is.
type Rank = (u64, FlowId, u32);

/// Timers: of messages that are sent from here by their place, of those that come here, and of grants to a peer.
const INCOMING: u32 = 1 << 31;
const PEER: u32 = 1 << 30;

/// The Homa stack of one host.
pub struct Homa {
    outgoing: Vec<Outgoing>,
    free_outgoing: Vec<u32>,
    /// By NIC: messages with packets that may leave.
    nics: Vec<BTreeSet<Rank>>,
    incoming: Vec<Incoming>,
    /// By NIC.
    downlinks: Vec<Downlink>,
    free_incoming: Vec<u32>,
    slots: FxHashMap<FlowId, u32>,
    /// Messages received in full, of which packets may still come.
    received: FxHashSet<FlowId>,
    peers: Vec<Peer>,
    peer_of: FxHashMap<u32, u32>,
    /// The best message of every peer that has one to grant to.
    ranking: BTreeSet<Rank>,
    /// Of the paths that packets take.
    random: RandomStream,
}

impl Homa {
    /// `host` names the stream that labels are drawn from.
    pub fn new(nics: usize, seed: u64, host: u32) -> Homa {
        Homa {
            outgoing: Vec::new(),
            free_outgoing: Vec::new(),
            nics: (0..nics).map(|_| BTreeSet::new()).collect(),
            incoming: Vec::new(),
            downlinks: vec![Downlink::default(); nics],
            free_incoming: Vec::new(),
            slots: FxHashMap::default(),
            received: FxHashSet::default(),
            peers: Vec::new(),
            peer_of: FxHashMap::default(),
            ranking: BTreeSet::new(),
            random: RandomStream::new(seed, &format!("homa.host{host}.label")),
        }
    }

    /// What a packet is labelled with: balancers choose its path by it.
    fn label_for(&mut self, hash: u32, spray: bool) -> u32 {
        if spray { self.random.next_u64() as u32 } else { hash }
    }

    /// Sends a packet without data, at the highest level: `packet` has its kind and receiver.
    fn signal(&mut self, packet: Packet, config: &HomaConfig, cx: &mut HostContext) -> Option<PortId> {
        let port = cx.port_to(packet.dst, packet.hash)?;
        let label = self.label_for(packet.hash, config.spray);
        let class = config.class(0);
        let id = cx.net.packets.insert(Packet {
            src: cx.host,
            hash: label,
            size: config.control as u16,
            class,
            wire_class: class,
            transport: cx.transport,
            ..packet
        });
        cx.enqueue_control(port, id);
        Some(port)
    }
}

impl Transport for Homa {
    #[inline(always)]
    fn prefetch(&self) {
        prefetch_lines(self, 4);
    }

    fn start_flow(&mut self, flow: FlowId, spec: &FlowSpec, cx: &mut HostContext) -> Option<PortId> {
        Some(self.start(flow, spec, cx))
    }

    #[inline(never)]
    fn receive(&mut self, id: PacketId, cx: &mut HostContext) -> Option<PortId> {
        let packet = cx.net.packets[id];
        cx.net.discard(id);
        self.observe(&packet, cx);
        match (packet.kind, packet.code()) {
            (PacketKind::Data, _) => self.receive_data(&packet, cx),
            (PacketKind::Control, code::GRANT) => self.receive_grant(&packet, cx),
            (PacketKind::Control, code::RESEND) => self.receive_resend(&packet, cx),
            (PacketKind::Control, code::BUSY) => self.receive_busy(&packet, cx),
            (PacketKind::Control, code::NEED_ACK) => self.receive_need_ack(&packet, cx),
            _ => self.receive_news(&packet, cx),
        }
    }

    #[inline(never)]
    fn next_packet(&mut self, port: PortId, cx: &mut HostContext) -> Option<PacketId> {
        self.send_next(port, cx)
    }

    #[inline(never)]
    fn next_look(&mut self, nic: usize, paused: u8, _free: Time) -> Look {
        let outgoing = &self.outgoing;
        let sends = |rank: &Rank| paused == 0 || paused & (1 << outgoing[rank.2 as usize].class()) == 0;
        if self.nics[nic].iter().any(sends) { Look::WhenFree } else { Look::NoMore }
    }

    fn on_timer(&mut self, token: u32, cx: &mut HostContext) -> Option<PortId> {
        if token & INCOMING != 0 {
            self.incoming_timer(token & !INCOMING, cx)
        } else if token & PEER != 0 {
            self.peer_timer(token & !PEER, cx)
        } else {
            self.outgoing_timer(token, cx)
        }
    }

    fn on_wake(&mut self, _port: PortId, _serial: u32, _cx: &HostContext) -> bool {
        false
    }

    fn places(&self) -> u32 {
        self.outgoing.len() as u32
    }

    fn leaving(&self, place: u32, flows: &mut Vec<FlowId>) -> Option<Leaving> {
        let message = self.outgoing.get(place as usize).filter(|message| !message.done)?;
        flows.push(message.flow);
        Some(message.leaving())
    }

    fn leave_by(&mut self, place: u32, by: Leaving, _cx: &mut HostContext) {
        let message = &mut self.outgoing[place as usize];
        let (old, rank) = message.leave_by(by);
        if let Some(rank) = rank {
            self.nics[usize::from(old)].remove(&rank);
            self.nics[usize::from(by.nic)].insert(rank);
        }
    }

    fn forget(&mut self, flow: FlowId) {
        self.received.remove(&flow);
    }

    fn finish(&mut self, cx: &mut HostContext) {
        for message in self.outgoing.iter_mut().filter(|message| !message.done) {
            message.count_unanswered(cx);
            cx.net.recorder.flow(message.record(cx.host, None));
        }
    }

    fn hold(&self, flow: FlowId) -> Option<Hold> {
        let message = self.outgoing.iter().find(|known| known.flow == flow && !known.done)?;
        Some(match message.next_to_send() {
            Some(_) => Hold::Free { from: message.start },
            None if message.waits_for_grants() => Hold::Receiver,
            None => Hold::Sent,
        })
    }

    fn timeouts(&self, flow: FlowId) -> Option<Timeouts> {
        let message = self.outgoing.iter().find(|known| known.flow == flow && !known.done)?;
        let until = "until the sender, which had received no answer, requested one (rto)";
        Some(Timeouts { expired: message.asks, has_earlier: false, until })
    }

    fn view(&self, flow: FlowId, _now: Time) -> Option<FlowView> {
        let message = self.outgoing.iter().find(|known| known.flow == flow && !known.done)?;
        let internals = vec![
            ("packets_granted", f64::from(message.granted)),
            ("bytes_left", message.left() as f64),
            ("packets_to_repeat", message.to_repeat() as f64),
        ];
        Some(FlowView { rate_bps: None, cwnd_bytes: None, internals })
    }
}
