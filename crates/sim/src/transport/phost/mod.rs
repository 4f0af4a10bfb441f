//! pHost: destinations give tokens, sources spend them, switches only queue.
//!
//! A source announces a flow by a *request*. The destination's clock gives one *token* for every packet time
//! of its link, to the flow that its policy puts first; a token is the right to send one packet within a
//! short time. So a destination's link is never promised twice, and the fabric, over which every packet takes
//! a path of its own, hardly queues. The first packets of a flow need no token (*free tokens*). One
//! acknowledgement ends a flow.
//!
//! Source: Gao, Narayan, Kumar, Agarwal, Ratnasamy, Shenker, "pHost: Distributed Near-Optimal Datacenter
//! Transport Over Commodity Network Fabric", CoNEXT 2015, and its authors' simulator (commit 8e9cf04), whose
//! timers and states these are. Differs from the source: a request is repeated until the destination answers
//! (theirs is sent once), which tells a source that has to wait for its first token that its flow is known,
//! so that it need not repeat; a request carries the packet time of its source, and a flow from a slower host
//! gets tokens at that pace; the NIC pulls a data packet when it is free and nothing else waits; ties are
//! broken by this engine's rules. Free tokens of longer flows are left out of the window, and fewer ticks are
//! reserved for them, so that they do not stall (docs/schemes/phost.md). Validated by: tests/phost.rs.

mod clock;
mod destination;
mod parameters;
mod ranking;
mod receiving;
mod sending;
mod source;

pub use parameters::PhostConfig;

use super::{FlowView, Hold, HostContext, Leaving, Look, Timeouts, Transport};
use crate::engine::prefetch::{prefetch, prefetch_lines};
use crate::engine::random::RandomStream;
use crate::net::PortId;
use crate::packet::{Packet, PacketId, PacketKind};
use crate::transport::policy::Policy;
use crate::units::{Rate, Time};
use crate::workload::{FlowId, FlowSpec};
use clock::TokenClock;
use destination::{DestinationFlow, Pace};
use ranking::Ranking;
use rustc_hash::{FxHashMap, FxHashSet};
use source::SourceFlow;
use std::collections::VecDeque;

/// Codes of control packets.
pub mod code {
    /// Source to destination. `seq`: packets of the flow; `sent`: its deadline; `aux`: time of a full packet
    /// at the source, in picoseconds.
    pub const REQUEST: u8 = 0;
    /// Destination to source. `seq`: the packet that it is for, and above it its number; `aux`: packets that
    /// are missing; `sent`: how often the destination has waited for packets in vain.
    pub const TOKEN: u8 = 1;
    /// Destination to source: the flow is known, and its turn will come.
    pub const KNOWN: u8 = 2;
}

/// The timer of the token clock, and those of flows that wait for their first token; others are of flows at
/// their source.
const CLOCK: u32 = u32::MAX;
const WAITING: u32 = u32::MAX - 1;

/// The pHost stack of one host.
pub struct Phost {
    sources: Vec<SourceFlow>,
    free_sources: Vec<u32>,
    /// By NIC: flows that have tokens.
    nics: Vec<Ranking>,
    flows: Vec<DestinationFlow>,
    free_flows: Vec<u32>,
    slots: FxHashMap<FlowId, u32>,
    /// Flows that have arrived in full, of which packets may still come.
    arrived: FxHashSet<FlowId>,
    clock: TokenClock,
    /// Flows that wait for their first token, by arrival: their sources get an answer to the request.
    unanswered: VecDeque<FlowId>,
    /// What all links of this host carry together, and the pace of the clock that follows, by the transport's
    /// index.
    rate: Rate,
    paces: Vec<Pace>,
    /// That of the token that came last, which is that of most.
    life: TokenLife,
    /// Flows that began here, and flows that became known here.
    started: u32,
    announced: u32,
    /// The label of the next packet that has a choice of paths.
    label: u32,
}

/// How long tokens live, of flows with some settings by a link of some rate.
#[derive(Debug, Clone, Copy, Default)]
struct TokenLife {
    of: (Rate, u16),
    life: Time,
}

impl Phost {
    /// `host` names the stream that the first label is drawn from; the policies are those of sources and
    /// destinations.
    pub fn new(nics: usize, (sources, destinations): (Policy, Policy), seed: u64, host: u32) -> Phost {
        let mut random = RandomStream::new(seed, &format!("phost.host{host}.label"));
        Phost {
            sources: Vec::new(),
            free_sources: Vec::new(),
            nics: (0..nics).map(|_| Ranking::new(sources)).collect(),
            flows: Vec::new(),
            free_flows: Vec::new(),
            slots: FxHashMap::default(),
            arrived: FxHashSet::default(),
            clock: TokenClock::new(destinations),
            unanswered: VecDeque::new(),
            rate: Rate(0),
            paces: Vec::new(),
            life: TokenLife::default(),
            started: 0,
            announced: 0,
            label: random.next_u64() as u32,
        }
    }

    /// What a packet to `dst` by this port is labelled with: balancers choose its path by it.
    #[inline(always)]
    fn label_for(&mut self, dst: u32, port: PortId, flow_hash: u32, spray: bool, cx: &HostContext) -> u32 {
        if spray { cx.next_label(dst, port, &mut self.label) } else { flow_hash }
    }

    /// Sends a control packet of the flow that `packet` describes: kind, code, addresses and what it says.
    #[inline(always)]
    fn signal(&mut self, packet: Packet, settings: &PhostConfig, cx: &mut HostContext) -> Option<PortId> {
        let port = cx.port_to(packet.dst, packet.hash)?;
        let label = self.label_for(packet.dst, port, packet.hash, settings.spray, cx);
        let class = settings.class;
        let id = cx.net.packets.insert(Packet {
            src: cx.host,
            hash: label,
            size: settings.control as u16,
            class,
            wire_class: class,
            transport: cx.transport,
            ..packet
        });
        cx.enqueue_alone(port, id);
        Some(port)
    }
}

impl Transport for Phost {
    #[inline(always)]
    fn prefetch(&self) {
        prefetch_lines(self, 5);
        prefetch(&self.nics, 0);
    }

    fn start_flow(&mut self, flow: FlowId, spec: &FlowSpec, cx: &mut HostContext) -> Option<PortId> {
        Some(self.start(flow, spec, cx))
    }

    #[inline(never)]
    fn receive(&mut self, id: PacketId, cx: &mut HostContext) -> Option<PortId> {
        let packet = &cx.net.packets[id];
        match (packet.kind, packet.code()) {
            (PacketKind::Data, _) => self.receive_data(id, cx),
            (PacketKind::Control, code::TOKEN) => self.receive_token(id, cx),
            (PacketKind::Control, code::KNOWN) => {
                self.receive_notice(id, cx);
                None
            }
            (PacketKind::Control, _) => self.receive_request(id, cx),
            _ => {
                self.receive_ack(id, cx);
                None
            }
        }
    }

    #[inline(never)]
    fn next_packet(&mut self, port: PortId, cx: &mut HostContext) -> Option<PacketId> {
        self.spend(port, cx)
    }

    #[inline(never)]
    fn next_look(&mut self, nic: usize, paused: u8, free: Time) -> Look {
        let sources = &self.sources;
        let sends = |slot: u32| {
            let flow = &sources[slot as usize];
            paused & (1 << flow.class) == 0 && flow.can_send_at(free)
        };
        if self.nics[nic].first(sends).is_some() { Look::WhenFree } else { Look::NoMore }
    }

    fn on_timer(&mut self, token: u32, cx: &mut HostContext) -> Option<PortId> {
        if token == WAITING {
            return self.tell_waiting(cx);
        }
        if token != CLOCK {
            return self.request_timer(token, cx);
        }
        if self.clock.is_due(cx.net.now) { self.tick(cx) } else { None }
    }

    fn on_wake(&mut self, _port: PortId, _serial: u32, _cx: &HostContext) -> bool {
        false
    }

    fn places(&self) -> u32 {
        self.sources.len() as u32
    }

    fn leaving(&self, place: u32, flows: &mut Vec<FlowId>) -> Option<Leaving> {
        let flow = self.sources.get(place as usize).filter(|flow| !flow.done)?;
        flows.push(flow.flow);
        Some(Leaving { nic: flow.nic, dst: flow.dst, hash: flow.hash })
    }

    fn leave_by(&mut self, place: u32, by: Leaving, _cx: &mut HostContext) {
        let flow = &mut self.sources[place as usize];
        if flow.ranked {
            self.nics[usize::from(flow.nic)].remove(flow.group, flow.rank);
            self.nics[usize::from(by.nic)].insert(flow.group, flow.rank, place);
        }
        (flow.nic, flow.hash) = (by.nic, by.hash);
    }

    fn forget(&mut self, flow: FlowId) {
        self.arrived.remove(&flow);
    }

    fn finish(&mut self, cx: &mut HostContext) {
        self.record_unfinished(cx);
    }

    fn hold(&self, flow: FlowId) -> Option<Hold> {
        let flow = self.sources.iter().find(|known| known.flow == flow && !known.done)?;
        Some(if flow.has_tokens() { Hold::Free { from: flow.start } } else { Hold::Receiver })
    }

    fn timeouts(&self, flow: FlowId) -> Option<Timeouts> {
        let flow = self.sources.iter().find(|known| known.flow == flow && !known.done)?;
        let until = "until the source repeated its request, which nothing had answered (request_timeout)";
        Some(Timeouts { expired: flow.requests, has_earlier: false, until })
    }

    fn view(&self, flow: FlowId, now: Time) -> Option<FlowView> {
        let flow = self.sources.iter().find(|known| known.flow == flow && !known.done)?;
        let internals = vec![("tokens", flow.tokens(now) as f64), ("packets_sent", flow.sent as f64)];
        Some(FlowView { rate_bps: None, cwnd_bytes: None, internals })
    }
}
