//! ConWeave: the first switch of an RDMA flow moves the flow when its path answers late; the last switch restores the order.
//!
//! The first ToR requests an answer once per round trip (`INIT`). If none has come at the deadline, the next packet is the last one
//! on the old path (`TAIL`), and later packets take another path. The last ToR holds what comes on the new path before the TAIL,
//! and sends it after the TAIL. Where that ToR sees a marked packet, it reports the path (`NOTIFY`), and the first ToR avoids the
//! path for some time.
//!
//! ```text
//! a packet of a flow at its first ToR, at `now`
//!   silent for longer than `inactive`, or answered in time:  next epoch, phase 0, INIT, deadline = now + delays + reply_extra
//!   otherwise, after the deadline:                            TAIL on the old path; from the next packet on phase 1 on another path
//! a packet of phase 1 at the last ToR while the epoch is in phase 0:  held until
//!   arrival of the last packet of phase 0 + (departure of the TAIL - departure of that packet) + resume_extra, or TAIL + 1 ns
//! ```
//!
//! Two paths are drawn for a new flow or a move, and the first that is not avoided is taken; if both are, a new flow takes the
//! first one and others stay. A path is a pair of ports: those upward at the first two switches. Hashes choose all other ports, and
//! those of acknowledgements and of transports' signals.
//!
//! Source: Song et al., "Network load balancing with in-network reordering support for RDMA", SIGCOMM 2023, and the constants of
//! its authors' simulator. Differs from the source: tags have no bytes on the wire, as in that simulator; epochs have 12 bits and
//! times 32 bits of nanoseconds; held packets count to no buffer; a first ToR forgets a silent flow later than the last ToR, so
//! that no epoch is taken for an older one; by default the deadline allows for slower links and larger
//! packets than the authors', because an answer that is late only as packets take long to be sent tells
//! nothing of queues.
//! Parameters: reply_extra 4 us (with 1048 B at 100 Gb/s), busy 16 us, resume_extra 16 us, wait 200 us,
//! inactive 300 us, ageing 2 ms.

mod first;
mod label;
mod last;

use super::ecmp::{EcmpParameters, EitherEcmp};
use super::fabric::{Fabric, Neighbour, Side};
use super::{
    BalancerFacts, BalancerParameters, Events, Forward, Held, LoadBalancer, NetworkView, Place, Ports,
    Reorders, SwitchContext, Tag,
};
use crate::counters::{Counter, CounterGroup, CounterSet, Fold, Metric};
use crate::doc::SchemeDoc;
use crate::engine::random::RandomStream;
use crate::packet::{Packet, PacketKind};
use crate::parameters::Parameters;
use crate::units::Time;
use first::{Outgoing, Slower};
use label::{Flag, Label, Reply};
use last::Incoming;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// Ports that one of the two parts of a path can name.
const PORTS: usize = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConWeaveParameters {
    /// What an answer may take beyond the propagation delays of both ways; none: the authors' time, and the
    /// time by which packets take longer on the links of the path than on the authors'.
    pub reply_extra: Option<Time>,
    /// For how long a path is avoided that was reported as congested.
    pub busy: Time,
    /// A TAIL is awaited until this time after it is expected.
    pub resume_extra: Time,
    /// It is awaited for this time where nothing says when to expect it.
    pub wait: Time,
    /// A flow that was silent for longer may move.
    pub inactive: Time,
    /// One that was silent for longer is forgotten.
    pub ageing: Time,
}

impl BalancerParameters for ConWeaveParameters {
    const DOC: SchemeDoc = SchemeDoc {
        name: "conweave",
        title: "a flow moves when its path answers late, and its last switch puts its packets in order",
        source: "Song et al., \"Network load balancing with in-network reordering support for RDMA\", SIGCOMM 2023",
        validation: "Lone flows to the ns and means over seeds against the authors' simulator (tests/rivals.rs).",
        counters: &[&MOVES],
        ..SchemeDoc::NONE
    };
    type State = Box<ConWeave>;

    fn read(p: &mut Parameters) -> ConWeaveParameters {
        let us = Time::from_us;
        let help = "conweave: what an answer between ToRs may take beyond the propagation delays of both ways before the flow \
                    moves; auto: the authors' 4us, and the time by which full packets take longer on the path's links than \
                    1048 B at 100 Gb/s, as in the authors' network; without that time under compat.like = \"conweave-ns3\"";
        let reply_extra = p.time_or_auto("reply_extra", help);
        let help =
            "conweave: for how long a path is avoided on which a packet was marked (the authors': 16us)";
        let busy = p.time("busy", us(16), help);
        let help = "conweave: how much longer than expected the last packet of the old path is awaited (the authors': 16us; \
                    64us on three tiers with PFC)";
        let resume_extra = p.time("resume_extra", us(16), help);
        let help = "conweave: how long it is awaited if no packet of the old path came first (the authors': 200us; 600us on \
                    three tiers with PFC, 300us without)";
        let wait = p.time("wait", us(200), help);
        let help = "conweave: a flow that was silent for longer may take another path at once (the authors': 300us; 1ms on \
                    three tiers)";
        let inactive = p.time("inactive", us(300), help);
        let help = "conweave: a flow is forgotten when it was silent for this time (the authors': 2ms)";
        let ageing = p.time("ageing", Time::from_ms(2), help);
        if ageing < inactive {
            p.complain("ageing", format!("{ageing} is shorter than inactive = \"{inactive}\""));
        }
        // Times on the wire repeat after 4.3 s.
        for (key, value) in [("wait", wait), ("resume_extra", resume_extra), ("ageing", ageing)] {
            if value > Time::from_ms(1000) {
                p.complain(key, format!("{value} is not valid: expected at most 1s"));
            }
        }
        ConWeaveParameters { reply_extra, busy, resume_extra, wait, inactive, ageing }
    }
    fn start(&self, at: &Place) -> Box<ConWeave> {
        Box::new(ConWeave::new(*self, at))
    }
    /// The last switch puts them in order again, unless a TAIL is lost or late.
    fn order(&self) -> Reorders {
        Reorders::AfterPauses(self.inactive)
    }
    fn facts(&self) -> BalancerFacts {
        BalancerFacts {
            goes_by_flow: true,
            hashes_ports: true,
            knows_fabric: true,
            holds_packets: true,
            ..BalancerFacts::default()
        }
    }

    fn problems(&self, network: &NetworkView) -> Vec<(&'static str, String)> {
        let upper = network.switches().find(|&switch| network.tier(switch) > 3);
        let message = match (network.reach_everywhere(), upper, network.max_ports()) {
            (Err(why), ..) => format!(
                "\"conweave\" needs ToRs that are connected by one or two tiers of switches above them (leaf-spine, fat-tree): {why}"
            ),
            (_, Some(upper), _) => format!(
                "\"conweave\" names a path by two ports upward, and {} is in a fourth tier: use kind = \"hula\"",
                network.name(upper)
            ),
            (_, _, Some((ports, switch))) if ports > PORTS => format!(
                "{} has {ports} ports; \"conweave\" names a port in 8 bits, {PORTS} of them",
                network.name(switch)
            ),
            _ => return Vec::new(),
        };
        Vec::from([("kind", message)])
    }

    /// Flag of the packet (0: data, 1: INIT, 2: TAIL) with its phase in the bit above; epoch, path and time.
    fn tag(&self, word: u64, between_switches: bool) -> Option<Tag> {
        let tag = Label::unpack(word).filter(|_| between_switches)?;
        Some(Tag { kind: TAG, first: tag.flag as u8 | u8::from(tag.phase) << 2, rest: word.to_be_bytes() })
    }
    fn probe_tag(&self, probe: &Packet) -> Option<Tag> {
        Some(Tag { kind: REPLY_TAG, first: probe.aux as u8, rest: probe.seq.to_be_bytes() })
    }
}

/// Numbers of tags on the wire.
const TAG: u8 = 5;
const REPLY_TAG: u8 = 6;

static MOVES: CounterGroup = CounterGroup {
    counters: &[
        Counter::sum(
            "path_requests",
            "packets",
            "requests for an answer",
            "Packets in which ConWeave's first switches requested an answer of the last switch.",
        ),
        Counter::sum(
            "path_answers",
            "packets",
            "answers in time",
            "Answers to these requests that came before their deadline.",
        ),
        Counter::sum(
            "path_notices",
            "packets",
            "notices of marked paths",
            "Packets in which ConWeave's last switches reported a path on which a packet was marked.",
        ),
        Counter::sum(
            "path_moves",
            "moves",
            "flows moved",
            "Times that ConWeave moved a flow after a late answer; it stays on its path if no other one was free.",
        ),
        Counter::sum(
            "packets_held",
            "packets",
            "packets held",
            "Packets that ConWeave's last switches held until those of the old path had come.",
        ),
        Counter::sum(
            "holds",
            "times",
            "times that packets were held",
            "Times that they began to hold packets of a flow.",
        ),
        Counter::sum(
            "holds_timed_out",
            "times",
            "times that held packets were sent too early",
            "Times that held packets were sent before the last packet of the old path had come: the flow may be out of order.",
        ),
        Counter {
            key: "max_held",
            unit: "packets",
            title: "maximum of packets held",
            text: "The maximum number of packets that a switch held at a time.",
            fold: Fold::Max,
        },
    ],
    metrics: &[
        Metric { name: "path_moves", part: "path_moves", ..Metric::NONE },
        Metric { name: "packets_held", part: "packets_held", ..Metric::NONE },
        Metric { name: "holds_timed_out", part: "holds_timed_out", ..Metric::NONE },
        Metric { name: "max_held", part: "max_held", ..Metric::NONE },
    ],
    ..CounterGroup::NONE
};

/// A flow as a ToR knows it.
type Key = (u32, u32);

pub struct ConWeave {
    config: ConWeaveParameters,
    fabric: Arc<Fabric>,
    neighbours: Vec<Neighbour>,
    node: u32,
    /// Its number, if it is a ToR.
    own: Option<u32>,
    hash: EitherEcmp,
    random: RandomStream,
    outgoing: FxHashMap<Key, Outgoing>,
    incoming: FxHashMap<Key, Incoming>,
    /// By ToR and path, until when it is avoided.
    busy: FxHashMap<(u32, u16), Time>,
    /// By ToR and path, what its answers may take.
    allowed: FxHashMap<(u32, u16), Time>,
    /// How much longer packets take than on the authors' links, where that counts.
    slower: Option<Slower>,
    /// By when flows are looked after.
    due: BinaryHeap<Reverse<(Time, Key)>>,
    /// What the packet whose port was chosen last takes along; 0: nothing.
    label: u64,
    swept: Time,
    held: u64,
    counts: Counts,
}

#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    requests: u64,
    answers: u64,
    notices: u64,
    moves: u64,
    kept: u64,
    holds: u64,
    timed_out: u64,
    max_held: u64,
}

/// Only data is moved; a subflow has a hash of its own.
fn key(packet: &Packet) -> Key {
    (packet.flow, packet.hash)
}

impl ConWeave {
    fn new(config: ConWeaveParameters, at: &Place) -> ConWeave {
        ConWeave {
            config,
            fabric: at.fabric.clone(),
            neighbours: at.neighbours.to_vec(),
            node: at.node,
            own: at.tor,
            hash: EcmpParameters { salt: 0 }.start(at),
            random: RandomStream::new(at.seed, &format!("switch.{}.conweave", at.name)),
            outgoing: FxHashMap::default(),
            incoming: FxHashMap::default(),
            busy: FxHashMap::default(),
            allowed: FxHashMap::default(),
            slower: (config.reply_extra.is_none() && !at.released)
                .then_some(Slower { packet: at.largest_packet }),
            due: BinaryHeap::new(),
            label: 0,
            swept: Time::ZERO,
            held: 0,
            counts: Counts::default(),
        }
    }

    fn side(&self, port: u32) -> Side {
        self.neighbours[port as usize].side
    }

    /// Forgets silent flows and paths that are free again, now and then.
    fn sweep(&mut self, now: Time) {
        let ageing = self.config.ageing;
        if now < self.swept + ageing {
            return;
        }
        self.swept = now;
        self.outgoing.retain(|_, flow| flow.active + ageing + ageing >= now);
        self.incoming.retain(|_, flow| !flow.kept.is_empty() || flow.active + ageing >= now);
        self.busy.retain(|_, until| *until >= now);
    }
}

impl LoadBalancer for ConWeave {
    #[inline(never)]
    fn choose(&mut self, packet: &Packet, candidates: &[u32], ports: &impl Ports) -> usize {
        let place = |port: u32| candidates.iter().position(|&candidate| candidate == port);
        if packet.kind == PacketKind::Data {
            let goes_up = self.side(candidates[0]) == Side::Up;
            if self.own.is_some() && goes_up {
                let port = self.steer(packet, candidates, ports);
                return place(port).unwrap_or(0);
            }
            let label = Label::unpack(ports.word()).filter(|_| goes_up);
            if let Some(at) = label.and_then(|label| place(u32::from(label.path >> 8))) {
                return at;
            }
        }
        self.hash.way_of(packet, candidates)
    }

    fn events(&self) -> Events {
        let everywhere = Events::WORDS;
        if self.own.is_some() { everywhere.and(Events::FORWARDS).and(Events::HOLDS) } else { everywhere }
    }

    /// At its first ToR a packet gets its label.
    fn on_forward(&mut self, forward: &Forward, word: &mut u64) -> i32 {
        let label = std::mem::take(&mut self.label);
        if self.side(forward.from) == Side::Host {
            *word = label;
        }
        0
    }

    fn holds(
        &mut self,
        forward: &Forward,
        held: Held,
        word: u64,
        cx: &mut impl SwitchContext,
    ) -> Option<Held> {
        let packet = forward.packet;
        let comes = self.side(forward.from) != Side::Host && self.side(forward.to) == Side::Host;
        let Some(label) = Label::unpack(word).filter(|_| comes && packet.kind == PacketKind::Data) else {
            return Some(held);
        };
        self.sweep(cx.now());
        if !self.is_current(packet, label, cx.now()) {
            return Some(held);
        }
        match label.flag {
            Flag::Init => self.reply(packet, Reply::Init, label, cx),
            Flag::Tail => self.reply(packet, Reply::Clear, label, cx),
            Flag::Data => {}
        }
        if packet.marked() {
            self.counts.notices += 1;
            self.reply(packet, Reply::Notify, label, cx);
        }
        self.order(packet, held, label, cx)
    }

    fn on_probe(&mut self, probe: &Packet, _port: u32, cx: &mut impl SwitchContext) {
        let target = self.fabric.tor_of.get(probe.dst as usize);
        if self.own.is_some() && target == self.own.as_ref() {
            return self.learn(probe, cx.now());
        }
        self.pass_on(*probe, cx);
    }

    /// Sends what was held for long enough.
    fn on_timer(&mut self, cx: &mut impl SwitchContext) -> Option<Time> {
        self.release_due(cx);
        None
    }

    fn count(&mut self, _now: Time, counters: &mut CounterSet) {
        let c = self.counts;
        let all = [c.requests, c.answers, c.notices, c.moves, c.kept, c.holds, c.timed_out, c.max_held];
        counters.add(&MOVES, all);
    }
}

#[cfg(test)]
mod tests;
