//! ConWeave: the first switch of an RDMA flow moves the flow when its path answers late; the last switch restores the order.
//!
//! The first ToR requests an answer once per round trip (`INIT`). If none has come at the deadline, the next packet is the last one
//! on the old path (`TAIL`), and later packets take another path. The last ToR holds what comes on the new path before the TAIL,
//! and sends it after the TAIL. Where that ToR sees a marked packet, it reports the path (`NOTIFY`), and the first ToR avoids the
//! path for some time.
//!
//! ```text
//! a packet of a flow at its first ToR, at `now`
//!   silent for longer than `inactive`, or answered in time:  next epoch, phase 0, INIT, deadline = now + round trip + reply_extra
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
//! that no epoch is taken for an older one.
//! Parameters: reply_extra 4 us, busy 16 us, resume_extra 16 us, wait 200 us, inactive 300 us, ageing 2 ms.

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
use crate::topology::NextHops;
use crate::units::Time;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

/// Bytes of an answer, which is in the class before all others.
const REPLY_BYTES: u16 = 64;
/// From a TAIL to the packets that were held for it.
const BEHIND_TAIL: Time = Time::from_ns(1);
/// Ports that one of the two parts of a path can name.
const PORTS: usize = 256;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConWeaveParameters {
    /// What an answer may take beyond the round trip of an empty network.
    pub reply_extra: Time,
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
                    moves (the authors': 4us)";
        let reply_extra = p.time("reply_extra", us(4), help);
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flag {
    Data,
    Init,
    Tail,
}

/// What a packet carries between its first and its last ToR.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Label {
    flag: Flag,
    phase: bool,
    epoch: u16,
    /// The port at the first ToR, and above it that at the next switch.
    path: u16,
    /// In ns: of phase 0 when it left the first ToR, of phase 1 when the TAIL did.
    time: u32,
}

/// Epochs are numbers of 12 bits.
const EPOCHS: u16 = 1 << 12;
const VALID: u64 = 1 << 63;

impl Label {
    fn pack(self) -> u64 {
        let head = VALID | (self.flag as u64) << 61 | u64::from(self.phase) << 60;
        head | u64::from(self.epoch) << 48 | u64::from(self.path) << 32 | u64::from(self.time)
    }

    fn unpack(word: u64) -> Option<Label> {
        let flag = [Flag::Data, Flag::Init, Flag::Tail, Flag::Data][(word >> 61 & 3) as usize];
        let label = Label {
            flag,
            phase: word >> 60 & 1 == 1,
            epoch: (word >> 48) as u16 % EPOCHS,
            path: (word >> 32) as u16,
            time: word as u32,
        };
        (word & VALID != 0).then_some(label)
    }
}

/// What a probe of the last ToR says, as its `aux`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reply {
    Init,
    Clear,
    Notify,
}

const REPLIES: [Reply; 3] = [Reply::Init, Reply::Clear, Reply::Notify];

/// A flow as a ToR knows it.
type Key = (u32, u32);

/// A flow at its first ToR.
#[derive(Debug, Clone, Copy)]
struct Outgoing {
    /// Its path answered in time.
    stable: bool,
    active: Time,
    deadline: Time,
    epoch: u16,
    phase: bool,
    path: u16,
    tail: u32,
}

/// A flow at its last ToR.
#[derive(Debug, Default)]
struct Incoming {
    active: Time,
    epoch: u16,
    phase: bool,
    /// When the last packet of phase 0 of this epoch left the first ToR and came here.
    sample: Option<(u32, Time)>,
    /// Packets kept, in turn; some, while it puts the flow in order.
    kept: Vec<Held>,
    until: Time,
    /// When the TAIL left, as what is kept says.
    tail: u32,
    /// The timer is set for this time.
    armed: Time,
    tail_came: bool,
}

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
    /// By ToR, there and back without queues.
    round_trips: FxHashMap<u32, Time>,
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
            round_trips: FxHashMap::default(),
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

    /// A packet of a host here for another rack: its path. What it takes along is kept for [`LoadBalancer::on_forward`].
    fn steer(&mut self, packet: &Packet, candidates: &[u32], ports: &impl Ports) -> u32 {
        let (now, key) = (ports.now(), key(packet));
        self.sweep(now);
        let goes = |path: u16| candidates.contains(&u32::from(path & 255));
        let known = self.outgoing.get(&key).copied().filter(|flow| goes(flow.path));
        let mut flow = known.unwrap_or_else(|| Outgoing {
            stable: true,
            active: Time::ZERO,
            deadline: Time::MAX,
            epoch: self.outgoing.get(&key).map_or(0, |flow| flow.epoch),
            phase: false,
            path: 0,
            tail: 0,
        });
        let expired = known.is_none() || now > flow.active + self.config.inactive;
        let renews = expired || flow.stable;
        flow.active = now;
        let mut flag = Flag::Data;
        let (mut phase, old) = (flow.phase, flow.path);
        let stamp = now.ns() as u32;
        if renews {
            flow.stable = false;
            (flow.epoch, flow.phase) = ((flow.epoch + 1) % EPOCHS, false);
            flow.deadline = now + self.round_trip(packet.dst, ports) + self.config.reply_extra;
            (flag, phase) = (Flag::Init, false);
            self.counts.requests += 1;
        } else if flow.deadline < now {
            flow.deadline = Time::MAX;
            (flag, flow.phase, flow.tail) = (Flag::Tail, true, stamp);
            self.counts.moves += 1;
        }
        let mut path = old;
        if expired || flag == Flag::Tail {
            let (first, free) = self.draw(packet.dst, candidates, ports);
            let stays = if known.is_none() { first } else { old };
            flow.path = free.unwrap_or(stays);
            // A TAIL still takes the old path.
            path = if flag == Flag::Tail { old } else { flow.path };
        }
        self.outgoing.insert(key, flow);
        let time = if phase { flow.tail } else { stamp };
        self.label = Label { flag, phase, epoch: flow.epoch, path, time }.pack();
        u32::from(path & 255)
    }

    /// Draws two paths to a host: the first, and the first that is not avoided.
    fn draw(&mut self, dst: u32, candidates: &[u32], ports: &impl Ports) -> (u16, Option<u16>) {
        let (tor, now) = (self.fabric.tor_of[dst as usize], ports.now());
        let mut one = || {
            let port = candidates[self.random.below(candidates.len() as u64) as usize];
            let above = match ports.hops(self.neighbours[port as usize].node, dst) {
                NextHops::Many(ports) => ports[self.random.below(ports.len() as u64) as usize],
                NextHops::One(_) | NextHops::None => 0,
            };
            (port & 255 | (above & 255) << 8) as u16
        };
        let drawn = [one(), one()];
        let free = |path: &u16| self.busy.get(&(tor, *path)).is_none_or(|&until| until < now);
        (drawn[0], drawn.into_iter().find(free))
    }

    /// There and back to the ToR of a host, over links alone.
    fn round_trip(&mut self, host: u32, ports: &impl Ports) -> Time {
        let tor = self.fabric.tor_of[host as usize];
        let (fabric, own) = (&self.fabric, self.node);
        *self.round_trips.entry(tor).or_insert_with(|| {
            let (mut node, mut delay) = (own, Time::ZERO);
            // No shortest path is longer than up and down again.
            for _ in 0..8 {
                let port = match ports.hops(node, host) {
                    NextHops::One(port) => port,
                    NextHops::Many(ports) => ports[0],
                    NextHops::None => break,
                };
                let Some(&(next, link)) = fabric.links.get(node as usize).and_then(|l| l.get(port as usize))
                else {
                    break;
                };
                let last = matches!(ports.hops(next, host), NextHops::None);
                if last {
                    break;
                }
                (node, delay) = (next, delay + link);
            }
            // The last link is that to the host.
            Time(2 * delay.0)
        })
    }

    /// A packet comes to its last ToR with a label: given back, unless it is kept.
    fn order(
        &mut self,
        packet: &Packet,
        held: Held,
        label: Label,
        cx: &mut impl SwitchContext,
    ) -> Option<Held> {
        let (now, key) = (cx.now(), key(packet));
        let ConWeaveParameters { resume_extra, wait, ageing, .. } = self.config;
        let fresh =
            || Incoming { epoch: label.epoch, phase: label.flag == Flag::Tail, ..Incoming::default() };
        let flow = self.incoming.entry(key).or_insert_with(fresh);
        if flow.kept.is_empty() && now > flow.active + ageing {
            *flow = fresh();
        }
        flow.active = now;
        let tail = label.flag == Flag::Tail;
        let ahead = label.epoch.wrapping_sub(flow.epoch) % EPOCHS;
        if ahead >= EPOCHS / 2 {
            return Some(held);
        }
        let reordering = !flow.kept.is_empty();
        if ahead > 0 {
            (flow.epoch, flow.phase, flow.sample) = (label.epoch, tail, None);
        } else if tail && !reordering {
            flow.phase = true;
        }
        if !label.phase {
            flow.sample = Some((label.time, now));
        }
        let mut passes = Some(held);
        if label.phase && (reordering || !flow.phase) {
            if !reordering {
                (flow.tail, flow.tail_came) = (label.time, false);
                let expected = flow.sample.map_or(now + wait, |(left, came)| came + after(label.time, left));
                flow.until = expected + resume_extra;
                self.counts.holds += 1;
            }
            flow.kept.extend(passes.take());
            self.held += 1;
            self.counts.kept += 1;
            self.counts.max_held = self.counts.max_held.max(self.held);
        } else if reordering && tail {
            (flow.until, flow.tail_came) = (now + BEHIND_TAIL, true);
        } else if reordering && !label.phase && !flow.tail_came {
            // The TAIL is as late on the same path.
            flow.until = now + after(flow.tail, label.time) + resume_extra;
        }
        if !flow.kept.is_empty() && (flow.armed <= now || flow.until < flow.armed) {
            flow.armed = flow.until;
            self.due.push(Reverse((flow.until, key)));
            cx.wake(flow.until);
        }
        passes
    }

    /// Answers the first ToR of a packet.
    fn reply(&mut self, packet: &Packet, reply: Reply, label: Label, cx: &mut impl SwitchContext) {
        let probe = Packet {
            size: REPLY_BYTES,
            class: 0,
            src: packet.dst,
            dst: packet.src,
            flow: packet.flow,
            sender: packet.hash,
            hash: packet.hash,
            aux: reply as u32,
            seq: label.pack(),
            sent: cx.now(),
            ..Packet::default()
        };
        self.pass_on(probe, cx);
    }

    /// Sends an answer on towards the ToR of its host.
    fn pass_on(&mut self, probe: Packet, cx: &mut impl SwitchContext) {
        let port = match cx.hops(self.node, probe.dst) {
            NextHops::One(port) => port,
            NextHops::Many(ports) => ports[self.hash.choose(&probe, ports, cx)],
            NextHops::None => return,
        };
        if cx.is_up(port) {
            cx.send(port, probe);
        }
    }

    fn learn(&mut self, probe: &Packet, now: Time) {
        let Some(label) = Label::unpack(probe.seq) else { return };
        let Some(reply) = REPLIES.get(probe.aux as usize) else { return };
        if *reply == Reply::Notify {
            let tor = self.fabric.tor_of[probe.src as usize];
            self.busy.insert((tor, label.path), now + self.config.busy);
            return;
        }
        let Some(flow) = self.outgoing.get_mut(&(probe.flow, probe.sender)) else { return };
        let waits = match reply {
            Reply::Init => !flow.phase && flow.deadline >= now && flow.deadline != Time::MAX,
            _ => flow.phase,
        };
        if waits && label.epoch == flow.epoch {
            (flow.stable, flow.deadline) = (true, Time::MAX);
            self.counts.answers += u64::from(*reply == Reply::Init);
        }
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

/// How much later one time in ns was than another; zero, if it was earlier.
fn after(later: u32, earlier: u32) -> Time {
    let ns = later.wrapping_sub(earlier);
    if ns < u32::MAX / 2 { Time::from_ns(u64::from(ns)) } else { Time::ZERO }
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
        self.hash.choose(packet, candidates, ports)
    }

    fn events(&self) -> Events {
        let everywhere = Events::WORDS;
        if self.own.is_some() { everywhere.and(Events::FORWARDS).and(Events::HOLDS) } else { everywhere }
    }

    /// At its first ToR a packet gets its label.
    fn on_forward(&mut self, forward: &Forward, word: &mut u64) -> i32 {
        if self.side(forward.from) == Side::Host {
            *word = std::mem::take(&mut self.label);
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
        let now = cx.now();
        while let Some(&Reverse((at, key))) = self.due.peek()
            && at <= now
        {
            self.due.pop();
            let Some(flow) = self.incoming.get_mut(&key).filter(|flow| !flow.kept.is_empty()) else {
                continue;
            };
            if flow.until > now {
                if flow.armed <= now {
                    flow.armed = flow.until;
                    self.due.push(Reverse((flow.until, key)));
                    cx.wake(flow.until);
                }
                continue;
            }
            flow.phase = true;
            flow.armed = Time::ZERO;
            self.counts.timed_out += u64::from(!flow.tail_came);
            self.held -= flow.kept.len() as u64;
            flow.kept.drain(..).for_each(|held| cx.release(held));
        }
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
