//! How long a collective operation takes in which ranks send to several others: round by round.
//!
//! A message is in the round of the longest chain of messages that it waits for. Each round takes the time of
//! its busiest link, and the chunks of a channel follow each other at the distance of the time of the link that
//! is busiest in all rounds together:
//!
//! ```text
//! T = Σ_d (α_d + max_l b_dl / R_l) + (c - 1) max_l Σ_d b_dl / R_l
//! ```
//!
//! with b_dl the bytes of the first chunk of every channel, of all groups side by side, that cross link l in
//! round d; R_l: its rate; α_d: the longest latency of a message; c: chunks of a channel. Links are NICs in
//! both directions, all links between a switch of hosts and other switches, and what a rank sends within its
//! scale-up domain. A message is no faster than its NICs, or its path if it keeps to one.

use rustc_hash::{FxHashMap, FxHashSet};

use super::graphs::Links;
use super::nics::Connection;
use crate::topology::{HostId, LinkId, NodeId, Way};
use crate::units::{Rate, Time};
use crate::workload::graph::JobGraph;
use crate::workload::schedule::{Law, Schedule, Transfer};

/// Messages of all groups that are looked at; the rounds of operations with more are taken to be alike.
const LOOKED_AT: usize = 200_000;
/// Messages among which the first ones of each channel are looked for.
const OPENED: usize = 16 * LOOKED_AT;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rounds {
    /// Latencies of all rounds, and seconds of their busiest links.
    latency: Time,
    busy: f64,
    /// The longest latency, and the seconds of the link that is busiest in all rounds.
    longest: Time,
    busiest: f64,
    /// Of a channel.
    chunks: f64,
    /// Messages of all groups.
    pub looked_at: u64,
}

impl Rounds {
    /// `scale`: of the bytes.
    pub fn time(&self, scale: f64) -> Time {
        self.latency.saturating_add(time((self.busy + (self.chunks - 1.0) * self.busiest) * scale))
    }

    /// The time of the busiest link, until what it carries is acknowledged.
    pub fn of_busiest(&self) -> Time {
        self.longest.saturating_add(self.longest).saturating_add(time(self.chunks * self.busiest))
    }
}

fn time(seconds: f64) -> Time {
    Time((seconds * 1e12).min(4e18) as u64)
}

/// What messages share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    /// Out of a host, or into it.
    Nic(LinkId, bool),
    /// All links of a host through which others send, too.
    Host(u32),
    From(NodeId),
    To(NodeId),
    Inside(u32),
}

/// The first chunks of every channel of an operation, by round; none if they are many.
fn first_chunks(law: &Law, members: u32) -> Option<Vec<Vec<u32>>> {
    let (mut round, mut next, mut opened, mut visited) = (Vec::new(), Vec::new(), 0, 0);
    for member in 0..members {
        next.clear();
        law.opens(member, &mut next);
        opened += next.len();
        if opened > OPENED {
            return None;
        }
        let mut known = FxHashSet::default();
        round.extend(next.iter().copied().filter(|&message| {
            let Transfer { to, channel, .. } = law.transfer(message);
            known.insert((to, channel))
        }));
    }
    let mut rounds = Vec::new();
    let mut left: FxHashMap<u32, u32> = FxHashMap::default();
    while !round.is_empty() {
        visited += round.len();
        if visited > LOOKED_AT {
            return None;
        }
        let mut following = Vec::new();
        for &message in &round {
            next.clear();
            law.after_arrival(message, &mut next);
            law.after_acknowledgement(message, &mut next);
            next.extend(law.after_sending(message));
            for &later in &next {
                let left = left.entry(later).or_insert_with(|| law.needs(later));
                *left = left.saturating_sub(1);
                if *left == 0 {
                    following.push(later);
                }
            }
        }
        rounds.push(std::mem::replace(&mut round, following));
    }
    Some(rounds)
}

/// What is known of the messages of an operation while its rounds are looked at.
#[derive(Default)]
struct Known {
    ways: FxHashMap<(HostId, HostId, u32), Option<Way>>,
    nics: FxHashMap<Connection, Option<u32>>,
    turns: FxHashMap<HostId, u32>,
    /// Of a round: the seconds of each link, of the slowest message, and the longest latency.
    busy: FxHashMap<Place, f64>,
    alone: f64,
    latency: Time,
}

impl Links<'_> {
    /// Of an operation that `groups` of ranks carry out side by side. None where ranks send to one other rank
    /// only, so that all rounds are alike, and of more messages than can be looked at.
    pub fn rounds(
        &self,
        graph: &JobGraph,
        law: &Law,
        groups: &[Vec<u32>],
        is_inside: impl Fn(u32, u32) -> bool,
    ) -> Option<Rounds> {
        if law.sent(0).is_some() {
            return None;
        }
        let members = groups.first().map_or(0, |ranks| ranks.len() as u32);
        let rounds = first_chunks(law, members)?;
        let visited: usize = rounds.iter().map(Vec::len).sum();
        if visited == 0 || visited.saturating_mul(groups.len()) > LOOKED_AT {
            return None;
        }
        let mut found = Rounds {
            latency: Time::ZERO,
            busy: 0.0,
            longest: Time::ZERO,
            busiest: 0.0,
            chunks: f64::from(law.messages()) / visited as f64,
            looked_at: (visited * groups.len()) as u64,
        };
        let (mut known, mut all) = (Known::default(), FxHashMap::default());
        for round in &rounds {
            (known.alone, known.latency) = (0.0, Time::ZERO);
            for ranks in groups {
                for &message in round {
                    let of = law.transfer(message);
                    let [from, to] = [of.from, of.to].map(|member| ranks[member as usize]);
                    let of = Transfer { from, to, ..of };
                    match is_inside(from, to) || graph.hosts[from as usize] == graph.hosts[to as usize] {
                        true => self.stay(graph, of, &mut known),
                        false => self.cross(graph, of, law.ends_acknowledged(), &mut known),
                    }
                }
            }
            let busy = known.busy.values().copied().fold(known.alone, f64::max);
            for (place, seconds) in known.busy.drain() {
                *all.entry(place).or_insert(0.0) += seconds;
            }
            found.busy += busy;
            found.latency = found.latency.saturating_add(known.latency);
            found.longest = found.longest.max(known.latency);
        }
        found.busiest = all.into_values().fold(0.0, f64::max);
        Some(found)
    }

    /// A rank sends within its domain one message after the other.
    fn stay(&self, graph: &JobGraph, of: Transfer, known: &mut Known) {
        let Some(links) = graph.scale_up() else { return };
        let seconds = of.bytes as f64 * 8.0 / links.rate.max(Rate(1)).0 as f64;
        *known.busy.entry(Place::Inside(of.from)).or_default() += seconds;
        known.latency = known.latency.max(links.delay);
    }

    fn cross(&self, graph: &JobGraph, of: Transfer, acknowledged: bool, known: &mut Known) {
        let (wire, fabric, slowed) = (self.wire, self.fabric, self.slowed);
        let [src, dst] = [of.from, of.to].map(|rank| graph.hosts[rank as usize]);
        let headers = of.bytes.div_ceil(wire.mtu) * (wire.packet() - wire.mtu);
        let bits = (of.bytes + headers) as f64 * 8.0;
        let connection = (of.from, of.to, of.channel);
        let nic = *known.nics.entry(connection).or_insert_with(|| {
            let turn = known.turns.entry(src).or_default();
            *turn += 1;
            self.nic(graph, connection, *turn - 1)
        });
        let [out, into] = [src, dst].map(|host| slowed.own[host as usize]);
        let [up, down] = [src, dst].map(|host| slowed.beyond[host as usize]);
        for (port, share) in self.shares(src, dst, nic) {
            let key = (src, dst, port);
            let Some(way) = *known.ways.entry(key).or_insert_with(|| self.times.way(src, dst, port)) else {
                continue;
            };
            let way = Way { path: self.at_best((src, dst), way.path), ..way };
            let bits = bits * share;
            let [first, last] = [way.path.first, way.last].map(|rate| rate.0.max(1) as f64);
            let mut alone = (bits * out / first).max(bits * into / last);
            if self.one_path && way.path.hops > 2 {
                let path = self.slowest_path(src, dst).min(way.path.bottleneck.0.max(1) as f64);
                alone = alone.max(bits * up.max(down) / path);
            }
            let mut add = |place: Place, seconds: f64| *known.busy.entry(place).or_default() += seconds;
            if way.relayed {
                let [source, destination, ..] = fabric.places(src, dst, &way.path);
                add(Place::Host(source), bits * out / fabric.rate(source));
                add(Place::Host(destination), bits * into / fabric.rate(destination));
            } else {
                add(Place::Nic(way.links[0], false), bits * out / first);
                add(Place::Nic(way.links[1], true), bits * into / last);
                if way.path.hops > 2 {
                    let [from, to] = [fabric.on_from(way.nodes[0]), fabric.back_to(way.nodes[1])];
                    add(Place::From(way.nodes[0]), bits * up / fabric.rate(from));
                    add(Place::To(way.nodes[1]), bits * down / fabric.rate(to));
                }
            }
            known.alone = known.alone.max(alone);
            let hops = u64::from(way.path.hops.saturating_sub(1));
            let packet = way.path.bottleneck.transmission_time(wire.packet());
            let back = if acknowledged { way.path.delay } else { Time::ZERO };
            let latency =
                way.path.delay.saturating_add(back).saturating_add(Time(packet.0.saturating_mul(hops)));
            known.latency = known.latency.max(latency.saturating_add(wire.waiting(self.times, src)));
        }
    }
}
