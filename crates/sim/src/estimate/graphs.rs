//! When a job graph ends, as far as that follows from its operations without a packet.
//!
//! The operations of all ranks are played in the order of time: computations take their time on their stream,
//! a message the time of its bytes on the idle path after the messages that its host sent before, and a
//! collective operation begins when its last rank has joined. Where ranks send to several others it is carried out in rounds
//! (see [`rounds`](super::rounds)); a ring, and an operation of too many messages to look at, takes
//!
//! ```text
//! T = max(n α + b β, α' + B β')     n: messages of its longest chain, b: bytes that are sent with them; B: that one rank sends
//! ```
//!
//! with α the latency of a message and β the time of a byte on the wire, in the mean of its ranks' next ones,
//! α' and β' of the slowest. A message of a chain is sent with those of the other channels and those to other ranks that
//! the same event frees: they share the links of their host. Between switches,
//!
//! ```text
//! β = max(1 / r, q / R)     r: rate of the slowest link of the path, R: of the links of a host
//! ```
//!
//! where the busiest links between switches take q times as long as the busiest link of a host for all bytes that groups alike
//! bring in operations of that kind.
//!
//! So the idle time of a pipeline, slower ranks, and messages within scale-up domains count, and connections that a hash
//! puts on one NIC. Differs from a run: the messages of an operation do not share links with other operations, flows do
//! not collide on a path (links between switches are shared evenly), windows and rates do not have to grow, nothing is
//! lost, all ranks leave a collective operation together, and no transport sends the messages of one channel before
//! those of another.
//!
//! Of an operation that is repeated each further one adds T; where some rank receives nothing (a broadcast, a reduce), it does
//! not wait for the others, and each further one adds the time of the busiest rank until its messages are acknowledged.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::costs::{Cost, Costs, Extent, Limits};
use super::fabric::Fabric;
use super::failing::Slowed;
use super::loads::Loads;
pub use super::nics::Hashed;
use super::odds::Paths;
use super::replay::Wire;
use super::rounds::Rounds;
use crate::topology::{HostId, Path, PathTimes};
use crate::transport::NicPolicy;
use crate::units::{Rate, Time};
use crate::workload::graph::listed::{Listed, Op, SendEnds};
use crate::workload::graph::matching::Matching;
use crate::workload::graph::operations::Class;
use crate::workload::graph::{JobGraph, Work};
use crate::workload::lanes::nic_of;
use crate::workload::schedule::{Law, Schedule};

/// What a run has that the estimated end of a job does not count, as `weftline check` prints it.
pub const NOT_COUNTED: &str = "flows that collide on a path, operations that share a NIC, windows and rates that grow, and losses other than those after a link fails";
/// Operations that are played; if there are more, the others are assumed to be similar.
const MAX_OPS: u64 = 4_000_000;
/// Different operations whose times are remembered.
const REMEMBERED: usize = 64;

/// Times of messages on links that nothing else uses.
pub struct Links<'t> {
    pub times: &'t PathTimes<'t>,
    pub wire: &'t Wire,
    pub fabric: &'t Fabric,
    pub nics: NicPolicy,
    /// All packets of a message take one path.
    pub one_path: bool,
    /// And if next hops have unequal rates, some message takes a slow one.
    pub meets_slow: bool,
    pub loads: &'t Loads,
    /// By links that have failed or are slow.
    pub slowed: &'t Slowed,
    pub hashed: &'t Hashed,
    /// None: next hops have equal rates, or balancers heed how busy they are.
    pub paths: Option<&'t Paths<'t>>,
}

impl Links<'_> {
    /// The best path where next hops have unequal rates.
    pub fn at_best(&self, ends: (HostId, HostId), path: Path) -> Path {
        self.paths.map_or(path, |paths| paths.best(ends, path))
    }

    /// The rate in bit/s at which messages are slowed down that keep to one path each.
    pub fn slowest_path(&self, src: HostId, dst: HostId) -> f64 {
        if self.meets_slow { self.fabric.slowest_path(src, dst) } else { f64::INFINITY }
    }

    /// Of messages between two hosts, if this many ranks of the sender's host send, over connections that have these NICs.
    fn between(&self, src: HostId, dst: HostId, (sharing, taken): (u32, &[Option<u32>])) -> Limits {
        let Some(path) = self.times.pair(src, dst) else { return Limits::default() };
        let path = self.at_best((src, dst), path);
        let packet = path.bottleneck.transmission_time(self.wire.packet());
        let hops = u64::from(path.hops.saturating_sub(1));
        let latency = path.delay.saturating_add(Time(packet.0.saturating_mul(hops)));
        let latency = latency.saturating_add(self.wire.waiting(self.times, src));
        let connections = taken.len().max(1) as f64;
        let all = self.fabric.host_rate(src).max(1.0);
        let own = self.rate_of_nics(src, dst, taken).min(all);
        // Connections take paths of their own, as the packets of all NICs do.
        let paths = if self.nics == NicPolicy::All { self.fabric.nics(src) } else { 1.0 };
        let slowest = self.slowest_path(src, dst).min(self.narrowest(src, dst, taken).0.max(1) as f64);
        let path = if self.one_path { slowest * connections.max(paths) } else { own };
        let (slow, beyond) = self.slowed.between(src, dst);
        let bits = 8.0 * f64::from(sharing);
        Limits {
            latency,
            own: bits * slow / own,
            path: bits * beyond / path.min(own),
            shared: bits * beyond / all,
            between_switches: hops > 1,
        }
    }

    /// Of the messages of a collective operation, whose members are the ranks that `rank` returns,
    /// `is_inside` a domain or not.
    fn among(
        &self,
        graph: &JobGraph,
        (law, members, class): (&Law, u32, Class),
        rank: impl Fn(u32) -> u32,
        is_inside: impl Fn(u32, u32) -> bool,
    ) -> Costs {
        const LOOKED_AT: u32 = 64;
        let squeeze = self.loads.squeeze(class);
        if graph.seats.per_host > 1 && law.sent(0).is_none() {
            return self.of_shared_hosts(graph, (law, squeeze), rank, is_inside);
        }
        let next = (1..members).take(LOOKED_AT as usize);
        let pairs: Vec<(u32, u32)> = next.map(|member| (rank(member - 1), rank(member))).collect();
        // Where no two of them are on one host, the other ranks of the host do the same.
        let seats = &graph.seats;
        let together = pairs.iter().any(|&(from, to)| seats.together(from, to));
        let sharing = if together { 1 } else { seats.per_host };
        let cost = |&(from, to): &(u32, u32)| match is_inside(from, to) {
            true => (Links::inside(graph), Cost::default()),
            false => {
                let limits = self.crossing(graph, from, to, sharing);
                let [own, squeezed] = [limits.of_message(squeeze), limits.shared * squeeze];
                (limits.cost(own, self.wire), limits.cost(squeezed, self.wire))
            }
        };
        let (own, squeezed): (Vec<Cost>, Vec<Cost>) = pairs.iter().map(cost).unzip();
        let mut costs = Costs::of(&own);
        // What a rank sends takes as long as the busiest links between switches, whichever of its messages cross them.
        for Cost { per_byte, per_packet, .. } in squeezed {
            let worst = &mut costs.worst;
            (worst.per_byte, worst.per_packet) =
                (worst.per_byte.max(per_byte), worst.per_packet.max(per_packet));
        }
        costs
    }

    /// Where a rank sends to others of its host and to other hosts, the mean over messages counts: the bytes
    /// of a chain, or of a rank, are within its host and outside as those of all messages are.
    fn of_shared_hosts(
        &self,
        graph: &JobGraph,
        (law, squeeze): (&Law, f64),
        rank: impl Fn(u32) -> u32,
        is_inside: impl Fn(u32, u32) -> bool,
    ) -> Costs {
        const LOOKED_AT: u64 = 16_384;
        let all = u64::from(law.messages());
        let messages = (0..all.min(LOOKED_AT)).map(|at| {
            // Of many messages some that are spread over steps and ranks.
            let number =
                if all > LOOKED_AT { (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) % all } else { at };
            let transfer = law.transfer(number as u32);
            (rank(transfer.from), rank(transfer.to), transfer.bytes as f64)
        });
        let messages: Vec<(u32, u32, f64)> = messages.collect();
        let outside = || messages.iter().filter(|&&(from, to, _)| !is_inside(from, to));
        // How many ranks of a host send to other hosts, or receive from them.
        let sharing = |ranks: FxHashSet<u32>| {
            let hosts: FxHashSet<u32> = ranks.iter().map(|rank| rank / graph.seats.per_host).collect();
            ranks.len().div_ceil(hosts.len().max(1)).max(1) as u32
        };
        let senders = sharing(outside().map(|&(from, ..)| from).collect());
        let receivers = sharing(outside().map(|&(_, to, _)| to).collect());
        let mean = |sharing: u32| {
            let mut known: FxHashMap<(HostId, HostId), Cost> = FxHashMap::default();
            let (mut bytes, mut latencies, mut mean) = (0.0, 0.0, Cost::default());
            let mut worst = Time::ZERO;
            for &(from, to, size) in &messages {
                let ends = (graph.hosts[from as usize], graph.hosts[to as usize]);
                let cost = match is_inside(from, to) {
                    true => Links::inside(graph),
                    false => *known.entry(ends).or_insert_with(|| {
                        let limits = self.crossing(graph, from, to, sharing);
                        limits.cost(limits.of_message(squeeze).max(limits.shared * squeeze), self.wire)
                    }),
                };
                (bytes, latencies) = (bytes + size, latencies + cost.latency.0 as f64);
                mean.per_byte += size * cost.per_byte;
                mean.per_packet += size * cost.per_packet;
                worst = worst.max(cost.latency);
            }
            mean.latency = Time((latencies / messages.len().max(1) as f64) as u64);
            (mean.per_byte, mean.per_packet) =
                (mean.per_byte / bytes.max(1.0), mean.per_packet / bytes.max(1.0));
            (mean, worst)
        };
        let (chain, latency) = mean(senders);
        // A root sends or receives alone what the others of a host share a link for.
        let (busiest, _) = mean(senders.min(receivers));
        Costs { mean: chain, worst: Cost { latency, ..busiest } }
    }

    /// Of a message between two hosts, if this many ranks of the sender's host send.
    fn crossing(&self, graph: &JobGraph, from: u32, to: u32, sharing: u32) -> Limits {
        let [src, dst] = [from, to].map(|rank| graph.hosts[rank as usize]);
        self.between(src, dst, (sharing, &self.nics_of(graph, (from, to), sharing)))
    }

    fn inside(graph: &JobGraph) -> Cost {
        graph.scale_up().map_or(Cost::default(), |links| Cost {
            latency: links.delay,
            per_byte: 8.0 / links.rate.max(Rate(1)).0 as f64,
            per_packet: 0.0,
        })
    }

    /// How long a job takes from its start.
    pub fn duration(&self, graph: &JobGraph) -> Time {
        match &graph.work {
            Work::Listed(work) => Play::new(self, graph, work).end(),
            Work::Repeated(work) => {
                let (mut first, mut further) = (Time::ZERO, Time::ZERO);
                for instance in 0..work.instances() / work.repeat {
                    let phase = work.phase(instance);
                    let count = phase.groups.count(graph.ranks()).max(1);
                    let members = graph.ranks() / count;
                    let law = phase.largest();
                    let rank = |member| phase.groups.rank(0, member);
                    let inside = |from, to| work.is_inside(instance, from, to);
                    let ranks = |group| (0..members).map(|member| phase.groups.rank(group, member)).collect();
                    let groups: Vec<Vec<u32>> = (0..count).map(ranks).collect();
                    let (whole, of_rank) = match self.rounds(graph, law, &groups, inside) {
                        Some(rounds) => (rounds.time(1.0), rounds.of_busiest()),
                        None => {
                            let among = (law, members, graph.class(instance));
                            let (costs, extent) =
                                (self.among(graph, among, rank, inside), Extent::of(law, members));
                            (extent.time(costs, self.wire.mtu), extent.of_rank(costs, self.wire.mtu))
                        }
                    };
                    // A rank that receives nothing begins the next operation when its messages are acknowledged.
                    let overlap = (0..members).any(|member| law.receives(member) == 0);
                    let next = if overlap { of_rank.min(whole) } else { whole };
                    (first, further) = (first.saturating_add(whole), further.saturating_add(next));
                }
                let further = Time(further.0.saturating_mul(u64::from(work.repeat.saturating_sub(1))));
                first.saturating_add(further).saturating_add(graph.computing())
            }
        }
    }
}

/// What is due at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    End { rank: u32, op: u32 },
    Arrival { from: u32, op: u32 },
}

/// Two hosts, and the NIC that messages between them take.
type Pair = (HostId, HostId, Option<u32>);

/// The operations of a list, in the order of time.
struct Play<'p> {
    links: &'p Links<'p>,
    graph: &'p JobGraph,
    work: &'p Listed,
    needs: Vec<Vec<u32>>,
    due: BinaryHeap<Reverse<(Time, Due)>>,
    /// Until when a stream computes, a NIC of a host sends, messages between two hosts take their path, and links between
    /// switches are busy.
    streams: FxHashMap<(u32, u16), Time>,
    sends: FxHashMap<(HostId, u32), Time>,
    paths: FxHashMap<(HostId, HostId), Time>,
    fabric: FxHashMap<u32, Time>,
    matching: Vec<Matching>,
    /// By collective operation: the ranks that have joined, and their operations.
    joined: FxHashMap<u32, Vec<(u32, u32)>>,
    /// Of hosts: what limits a message, and the shared links between switches.
    pairs: FxHashMap<Pair, (Limits, [u32; 2])>,
    extents: Vec<(&'p Law, Extent)>,
    /// By group, and the messages of the operation.
    groups: FxHashMap<(u32, u32), Costs>,
    /// An operation of every group, by what they do side by side.
    alike: FxHashMap<Class, Vec<u32>>,
    /// By group, messages and the first sender: the rounds of operations, and the bytes of one with these.
    rounds: FxHashMap<(u32, u32, u32), (Option<Rounds>, u64)>,
    /// Messages whose rounds were looked at.
    looked_at: u64,
    ended: u64,
}

impl<'p> Play<'p> {
    fn new(links: &'p Links<'p>, graph: &'p JobGraph, work: &'p Listed) -> Play<'p> {
        Play {
            links,
            graph,
            work,
            needs: work.ranks.iter().map(|list| list.needs.clone()).collect(),
            due: BinaryHeap::new(),
            streams: FxHashMap::default(),
            sends: FxHashMap::default(),
            paths: FxHashMap::default(),
            fabric: FxHashMap::default(),
            matching: work.ranks.iter().map(|_| Matching::default()).collect(),
            joined: FxHashMap::default(),
            pairs: FxHashMap::default(),
            extents: Vec::new(),
            groups: FxHashMap::default(),
            alike: alike(graph, work),
            rounds: FxHashMap::default(),
            looked_at: 0,
            ended: 0,
        }
    }

    fn end(mut self) -> Time {
        for (rank, list) in (0..).zip(&self.work.ranks) {
            let free = (0..list.ops.len() as u32).filter(|&op| list.needs[op as usize] == 0);
            free.for_each(|op| self.start(rank, op, Time::ZERO));
        }
        let mut now = Time::ZERO;
        while let Some(Reverse((time, due))) = self.due.pop() {
            now = time;
            match due {
                Due::End { rank, op } => {
                    self.ended += 1;
                    if self.ended == MAX_OPS {
                        break;
                    }
                    self.free(rank, self.work.ranks[rank as usize].after_end.of(op), now);
                }
                Due::Arrival { from, op } => {
                    let Op::Send { to, tag, .. } = self.work.ranks[from as usize].ops[op as usize] else {
                        continue;
                    };
                    if let Some(receive) = self.matching[to as usize].arrive(from, tag, op) {
                        self.make(now, Due::End { rank: to, op: receive });
                    }
                }
            }
        }
        let all: u64 = self.work.ranks.iter().map(|list| list.ops.len() as u64).sum();
        match self.ended == MAX_OPS {
            true => Time((now.0 as f64 * all as f64 / MAX_OPS as f64).min(4e18) as u64),
            false => now,
        }
    }

    fn make(&mut self, at: Time, due: Due) {
        self.due.push(Reverse((at, due)));
    }

    fn free(&mut self, rank: u32, waiting: &[u32], now: Time) {
        for &op in waiting {
            let left = &mut self.needs[rank as usize][op as usize];
            *left -= 1;
            if *left == 0 {
                self.start(rank, op, now);
            }
        }
    }

    fn start(&mut self, rank: u32, op: u32, now: Time) {
        let list = &self.work.ranks[rank as usize];
        let ends = match list.ops[op as usize] {
            Op::Compute { time, stream } => {
                let busy = self.streams.entry((rank, stream)).or_default();
                *busy = now.max(*busy).saturating_add(time);
                Some(*busy)
            }
            Op::Wait { time } => Some(now.saturating_add(time)),
            Op::StepEnd => Some(now),
            Op::Send { to, bytes, .. } => {
                let arrives = self.arrival((rank, to), bytes, now);
                self.make(arrives, Due::Arrival { from: rank, op });
                Some(if self.work.send_ends == SendEnds::Posted { now } else { arrives })
            }
            Op::Receive { from, tag, .. } => self.matching[rank as usize].post((from, tag), op).map(|_| now),
            Op::Collective { instance } => {
                self.join(instance, rank, op, now);
                None
            }
        };
        if let Some(ends) = ends {
            self.make(ends, Due::End { rank, op });
        }
        self.free(rank, list.after_start.of(op), now);
    }

    /// When a message of its own arrives, after those that its host sends before.
    fn arrival(&mut self, (from, to): (u32, u32), bytes: u64, now: Time) -> Time {
        let (src, dst) = (self.graph.hosts[from as usize], self.graph.hosts[to as usize]);
        if self.work.is_inside(from, to) || src == dst {
            let cost = Links::inside(self.graph);
            return now
                .saturating_add(cost.bytes(bytes as f64, 1, self.links.wire.mtu))
                .saturating_add(cost.latency);
        }
        let (links, graph) = (self.links, self.graph);
        // A message goes by one NIC, that of its rank or of its hash, or by all.
        let own = match links.nics {
            NicPolicy::All => None,
            NicPolicy::Hash => links.nic(graph, (from, to, 0), 0),
            _ => nic_of(graph.seats.lane(from, 0), links.fabric.nics(src) as u32)
                .filter(|nic| links.times.ports(src, dst).contains(nic))
                .or_else(|| links.nic(graph, (from, to, 0), 0)),
        };
        let (limits, switches) = *self.pairs.entry((src, dst, own)).or_insert_with(|| {
            let path = links.times.pair(src, dst);
            let places = path.map_or([0; 4], |path| links.fabric.places(src, dst, &path));
            (links.between(src, dst, (1, &[own])), [places[2], places[3]])
        });
        let pass = |until: &mut Time, per_byte: f64| {
            let span = limits.cost(per_byte, links.wire).bytes(bytes as f64, 1, links.wire.mtu);
            *until = now.max(*until).saturating_add(span);
            *until
        };
        let mut sent = pass(self.sends.entry((src, own.unwrap_or(0))).or_default(), limits.own);
        if limits.between_switches {
            sent = sent.max(pass(self.paths.entry((src, dst)).or_default(), limits.path));
            for place in switches {
                // The same time for each byte at the rate of these links.
                let per_byte = limits.shared * links.fabric.host_rate(src) / links.fabric.rate(place);
                sent = sent.max(pass(self.fabric.entry(place).or_default(), per_byte));
            }
        }
        sent.saturating_add(limits.latency)
    }

    /// A rank joins a collective operation, which ends for all of its ranks some time after the last has
    /// joined.
    fn join(&mut self, instance: u32, rank: u32, op: u32, now: Time) {
        let joined = self.joined.entry(instance).or_default();
        joined.push((rank, op));
        let ranks = self.work.ranks_of(self.work.step_of(instance), self.graph.ranks());
        if (joined.len() as u32) < ranks {
            return;
        }
        let joined = self.joined.remove(&instance).unwrap_or_default();
        let time = self.time_of(instance, ranks);
        let ends = now.saturating_add(time);
        joined.into_iter().for_each(|(rank, op)| self.make(ends, Due::End { rank, op }));
    }

    fn time_of(&mut self, instance: u32, ranks: u32) -> Time {
        let of = self.work.instance(instance);
        if let Some(time) = self.in_rounds(instance) {
            return time;
        }
        let known = self.extents.iter().rev().find(|(law, _)| **law == of.law).map(|(_, extent)| *extent);
        let extent = known.unwrap_or_else(|| {
            let extent = Extent::of(&of.law, ranks);
            if self.extents.len() == REMEMBERED {
                self.extents.remove(0);
            }
            self.extents.push((&of.law, extent));
            extent
        });
        let (links, graph, work) = (self.links, self.graph, self.work);
        let costs = *self.groups.entry((of.group, of.law.messages())).or_insert_with(|| {
            let inside = |from, to| work.is_inside(from, to);
            let among = (&of.law, ranks, graph.class(instance));
            links.among(graph, among, |member| work.rank(instance, member), inside)
        });
        extent.time(costs, links.wire.mtu)
    }

    /// How long an operation takes with those that other groups carry out side by side, if it has rounds.
    fn in_rounds(&mut self, instance: u32) -> Option<Time> {
        let (links, graph, work) = (self.links, self.graph, self.work);
        let of = work.instance(instance);
        if of.law.sent(0).is_some() || of.law.messages() == 0 {
            return None;
        }
        let key = |group: u32| (group, of.law.messages(), of.law.transfer(0).from);
        if !self.rounds.contains_key(&key(of.group)) {
            // A rank that is in several groups takes part in one of their operations at a time.
            let (mut taken, mut groups, mut ranks) = (FxHashSet::default(), Vec::new(), Vec::new());
            let others = self.alike.get(&graph.class(instance)).map_or(&[][..], Vec::as_slice);
            for &other in [instance].iter().chain(others) {
                let members: &[u32] = work.members(other);
                if members.iter().all(|rank| !taken.contains(rank)) {
                    taken.extend(members.iter().copied());
                    groups.push(work.instance(other).group);
                    ranks.push(members.to_vec());
                }
            }
            let few = self.looked_at < MAX_OPS;
            let inside = |from, to| work.is_inside(from, to);
            let rounds = if few { links.rounds(graph, &of.law, &ranks, inside) } else { None };
            self.looked_at += rounds.map_or(u64::from(of.law.messages()), |rounds| rounds.looked_at);
            groups.into_iter().for_each(|group| {
                self.rounds.entry(key(group)).or_insert((rounds, of.bytes));
            });
        }
        let &(rounds, bytes) = self.rounds.get(&key(of.group))?;
        Some(rounds?.time(of.bytes as f64 / bytes.max(1) as f64))
    }
}

/// An operation of every group, by what groups do side by side.
fn alike(graph: &JobGraph, work: &Listed) -> FxHashMap<Class, Vec<u32>> {
    let mut alike: FxHashMap<Class, Vec<u32>> = FxHashMap::default();
    let mut known = FxHashSet::default();
    for instance in 0..work.steps() - work.wholes() {
        let class = graph.class(instance);
        if known.insert((class, work.instance(instance).group)) {
            alike.entry(class).or_default().push(instance);
        }
    }
    alike
}

#[cfg(test)]
mod tests;
