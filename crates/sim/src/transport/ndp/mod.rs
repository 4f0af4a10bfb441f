//! NDP: senders begin at line rate, switches trim what does not fit, receivers pull the rest at the pace of
//! their link.
//!
//! A flow begins without a handshake with a *first window* of packets, sent back to back, every packet over a
//! path of its own. A switch port that has no room cuts the payload off and forwards the header before all
//! data, so a receiver learns of every packet: it answers a whole one with an ACK and a trimmed one with a
//! NACK, and for each it owes the sender one *pull*, the right to send one more packet. A receiver's pulls
//! are paced for all its flows together, at (nearly) the rate of its link. What was trimmed is sent again
//! before new data.
//!
//! Source: Handley, Raiciu, Agache, Voinescu, Moore, Antichi, Wójcik, "Re-architecting datacenter networks
//! and stacks for low latency and high performance", SIGCOMM 2017, and its authors' simulator (csg-htsim,
//! commit 841d9e7), whose states these are.
//! Differs from the source: the last packet of a flow is no longer than its data (there every packet is
//! full); what nothing answered within a timeout is sent again (there it is compiled out: a header that is
//! lost stays lost).
//! Validated by: tests/ndp.rs.

mod parameters;
mod receiver;
mod sender;
#[cfg(test)]
mod tests;

pub use parameters::NdpConfig;

use super::{FlowView, Hold, HostContext, Leaving, Look, Timeouts, Transport};
use crate::engine::prefetch::prefetch_lines;
use crate::engine::random::RandomStream;
use crate::net::PortId;
use crate::packet::{Packet, PacketId, PacketKind, trimming};
use crate::units::Time;
use crate::workload::{FlowId, FlowSpec};
use receiver::{Pacer, Receiver};
use rustc_hash::FxHashMap;
use sender::Sender;
use std::collections::BTreeSet;
use std::ops::Bound;

/// Codes of packets: an acknowledgement that is a pull as well.
pub const PULLS: u8 = 1;

/// The timer of the pacer; others are of flows at their source.
const PACER: u32 = u32::MAX;

/// The NDP stack of one host.
pub struct Ndp {
    flows: Vec<Sender>,
    free: Vec<u32>,
    /// By NIC: flows with packets that may leave.
    nics: Vec<Turns>,
    receivers: FxHashMap<FlowId, Receiver>,
    /// Packets of the flows received in full, of which packets may still come.
    received: FxHashMap<FlowId, u32>,
    pacer: Pacer,
    /// The label of the next answer or pull that has a choice of paths; data have those of their flow.
    label: u32,
    /// Of the orders in which flows take their paths.
    random: RandomStream,
}

/// Flows that are served in turn, one packet each, by their numbers.
#[derive(Debug, Default)]
struct Turns {
    waiting: BTreeSet<(FlowId, u32)>,
    last: (FlowId, u32),
}

impl Turns {
    fn insert(&mut self, flow: FlowId, slot: u32) {
        self.waiting.insert((flow, slot));
    }

    fn remove(&mut self, flow: FlowId, slot: u32) {
        self.waiting.remove(&(flow, slot));
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The next flow after the one that was served last for which `may` holds; its slot.
    fn next(&mut self, may: impl Fn(u32) -> bool) -> Option<u32> {
        let after = self.waiting.range((Bound::Excluded(self.last), Bound::Unbounded));
        let next = after.chain(self.waiting.range(..=self.last)).find(|(_, slot)| may(*slot));
        self.last = *next?;
        Some(self.last.1)
    }

    fn any(&self, may: impl Fn(u32) -> bool) -> bool {
        self.waiting.iter().any(|(_, slot)| may(*slot))
    }
}

impl Ndp {
    /// `host` names the stream that labels are drawn from.
    pub fn new(nics: usize, seed: u64, host: u32) -> Ndp {
        let mut random = RandomStream::new(seed, &format!("ndp.host{host}.label"));
        Ndp {
            flows: Vec::new(),
            free: Vec::new(),
            nics: (0..nics).map(|_| Turns::default()).collect(),
            receivers: FxHashMap::default(),
            received: FxHashMap::default(),
            pacer: Pacer::default(),
            label: random.next_u64() as u32,
            random,
        }
    }

    /// What an answer or a pull to `dst` by this port is labelled with: balancers choose its path by it.
    fn label_for(&mut self, dst: u32, port: PortId, hash: u32, spray: bool, cx: &HostContext) -> u32 {
        if spray { cx.next_label(dst, port, &mut self.label) } else { hash }
    }

    /// Sends a packet without payload of the flow that `packet` describes: kind, flags, addresses and what it
    /// says.
    fn signal(&mut self, packet: Packet, config: &NdpConfig, cx: &mut HostContext) -> Option<PortId> {
        let port = cx.port_to(packet.dst, packet.hash)?;
        let label = self.label_for(packet.dst, port, packet.hash, config.spray, cx);
        let id = cx.net.packets.insert(Packet {
            src: cx.host,
            hash: label,
            size: config.control as u16,
            class: config.class,
            wire_class: config.class,
            transport: cx.transport,
            ..packet
        });
        cx.enqueue_control(port, id);
        Some(port)
    }
}

impl Transport for Ndp {
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
        match packet.kind {
            PacketKind::Data if packet.trimming & trimming::RETURNED != 0 => self.receive_returned(id, cx),
            PacketKind::Data => self.receive_data(id, cx),
            _ => {
                cx.net.discard(id);
                self.receive_feedback(&packet, cx)
            }
        }
    }

    #[inline(never)]
    fn next_packet(&mut self, port: PortId, cx: &mut HostContext) -> Option<PacketId> {
        self.send_next(port, cx)
    }

    #[inline(never)]
    fn next_look(&mut self, nic: usize, paused: u8, _free: Time) -> Look {
        let turns = &self.nics[nic];
        if turns.is_empty() {
            return Look::NoMore;
        }
        let flows = &self.flows;
        if turns.any(|slot| paused & (1 << flows[slot as usize].class) == 0) {
            Look::WhenFree
        } else {
            Look::NoMore
        }
    }

    fn on_timer(&mut self, token: u32, cx: &mut HostContext) -> Option<PortId> {
        if token == PACER { self.pull_next(cx) } else { self.timeout(token, cx) }
    }

    fn on_wake(&mut self, _port: PortId, _serial: u32, _cx: &HostContext) -> bool {
        false
    }

    fn places(&self) -> u32 {
        self.flows.len() as u32
    }

    fn leaving(&self, place: u32, flows: &mut Vec<FlowId>) -> Option<Leaving> {
        let flow = self.flows.get(place as usize).filter(|flow| !flow.done)?;
        flows.push(flow.flow);
        Some(Leaving { nic: flow.nic, dst: flow.dst(), hash: flow.hash })
    }

    fn leave_by(&mut self, place: u32, by: Leaving, _cx: &mut HostContext) {
        let flow = &mut self.flows[place as usize];
        self.nics[usize::from(flow.nic)].remove(flow.flow, place);
        (flow.nic, flow.hash) = (by.nic, by.hash);
        if flow.may_send() {
            self.nics[usize::from(by.nic)].insert(flow.flow, place);
        }
    }

    fn forget(&mut self, flow: FlowId) {
        self.received.remove(&flow);
    }

    fn finish(&mut self, cx: &mut HostContext) {
        for flow in self.flows.iter().filter(|flow| !flow.done) {
            cx.net.recorder.flow(flow.record(cx.host, None));
        }
    }

    fn hold(&self, flow: FlowId) -> Option<Hold> {
        let flow = self.flows.iter().find(|known| known.flow == flow && !known.done)?;
        Some(match flow.may_send() {
            true => Hold::Free { from: flow.start },
            false if flow.has_more() => Hold::Receiver,
            false => Hold::Sent,
        })
    }

    fn timeouts(&self, flow: FlowId) -> Option<Timeouts> {
        let flow = self.flows.iter().find(|known| known.flow == flow && !known.done)?;
        let until = "until the sender sent packets again that nothing had answered, or one that no pull had come for (rto)";
        Some(Timeouts { expired: flow.timeouts(), has_earlier: false, until })
    }

    fn view(&self, flow: FlowId, _now: Time) -> Option<FlowView> {
        let flow = self.flows.iter().find(|known| known.flow == flow && !known.done)?;
        let internals = vec![
            ("packets_pulled", f64::from(flow.pulled())),
            ("packets_to_repeat", flow.to_repeat() as f64),
        ];
        Some(FlowView { rate_bps: None, cwnd_bytes: None, internals })
    }
}
