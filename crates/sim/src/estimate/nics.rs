//! By which NICs the messages of a job leave their hosts, and at which rate.
//!
//! Under `round-robin` and `least-bytes` the connections of a host take its NICs in turn, from the first on,
//! as if the job were alone. Differs from a run: there others have their turns, too, and bytes that have not
//! ended may be equal.

use rustc_hash::FxHashMap;

use super::costs::MAX_CHAIN;
use super::graphs::Links;
use crate::packet::hash::flow_hash;
use crate::topology::{HostId, Routes};
use crate::transport::NicPolicy;
use crate::units::Rate;
use crate::workload::graph::JobGraph;
use crate::workload::lanes::nic_of;

/// The ranks that a connection joins, and its channel.
pub type Connection = (u32, u32, u32);

/// The NICs of a job's connections where a hash chooses them, as in the run: the first message of a
/// connection is the flow that is hashed. Empty under other policies.
#[derive(Debug, Default)]
pub struct Hashed(FxHashMap<Connection, u32>);

impl Hashed {
    /// `first`: number of the flow that is the job's first message.
    pub fn of(graph: &JobGraph, routes: &Routes, first: u32) -> Hashed {
        let mut hashed = FxHashMap::default();
        for number in 0..graph.messages().min(MAX_CHAIN as u32) {
            let message = graph.message(number);
            let [src, dst] = [message.from, message.to].map(|rank| graph.hosts[rank as usize]);
            let connection = (message.from, message.to, message.channel);
            if message.inside || src == dst || hashed.contains_key(&connection) {
                continue;
            }
            let ports = routes.next_hops(routes.host_node(src), dst);
            let hash = flow_hash(src, dst, first.wrapping_add(number)) as usize;
            let Some(&nic) = ports.get(hash % ports.len().max(1)) else { continue };
            hashed.insert(connection, nic);
        }
        Hashed(hashed)
    }
}

impl Links<'_> {
    /// The NIC of a connection; none where its packets leave by all. `turn`: connections that its host has
    /// opened before.
    pub fn nic(&self, graph: &JobGraph, connection: Connection, turn: u32) -> Option<u32> {
        let (from, to, channel) = connection;
        let [src, dst] = [from, to].map(|rank| graph.hosts[rank as usize]);
        let able = self.times.ports(src, dst);
        let in_turn = || able.get(turn as usize % able.len().max(1)).copied();
        match self.nics {
            NicPolicy::All => None,
            NicPolicy::Hash => self.hashed.0.get(&connection).copied().or_else(in_turn),
            NicPolicy::ByLane => {
                let count = self.fabric.nics(src) as u32;
                let wanted = nic_of(graph.seats.lane(from, channel), count).unwrap_or(0);
                able.iter().copied().min_by_key(|&port| (port + count - wanted) % count)
            }
            NicPolicy::RoundRobin | NicPolicy::LeastBytes => in_turn(),
        }
    }

    /// The NICs of the connections between two ranks, and between the `sharing` ranks of their hosts that
    /// send likewise.
    pub fn nics_of(&self, graph: &JobGraph, (from, to): (u32, u32), sharing: u32) -> Vec<Option<u32>> {
        let seats = &graph.seats;
        // Rings of a channel each share the NIC of the channel.
        let sharing = if seats.by_channel { 1 } else { sharing.min(seats.per_host).max(1) };
        let shifted = |rank: u32, other: u32| {
            let at = rank % seats.per_host;
            rank - at + (at + other) % seats.per_host
        };
        let ranks = (0..sharing).map(|other| (shifted(from, other), shifted(to, other)));
        let ranks = ranks.filter(|&(from, to)| from.max(to) < graph.ranks());
        let all = ranks.flat_map(|(from, to)| (0..seats.channels).map(move |channel| (from, to, channel)));
        all.zip(0..).map(|(connection, turn)| self.nic(graph, connection, turn)).collect()
    }

    /// The rate in bit/s of the NICs of both hosts for connections that have the same number of bytes to
    /// send: they end with those of the NIC that takes longest.
    pub fn rate_of_nics(&self, src: HostId, dst: HostId, nics: &[Option<u32>]) -> f64 {
        let rates = |port: u32| {
            let way = self.times.way(src, dst, port);
            way.map_or((1.0, 1.0), |way| (way.path.first.0.max(1) as f64, way.last.0.max(1) as f64))
        };
        let mut busy: FxHashMap<u32, f64> = FxHashMap::default();
        for &nic in nics {
            for (port, share) in self.shares(src, dst, nic) {
                *busy.entry(port).or_default() += share;
            }
        }
        let seconds = busy.into_iter().map(|(port, share)| {
            let (first, last) = rates(port);
            share / first.min(last)
        });
        nics.len() as f64 / seconds.fold(1e-30, f64::max)
    }

    /// The rate of the slowest link of the paths by some NICs.
    pub fn narrowest(&self, src: HostId, dst: HostId, nics: &[Option<u32>]) -> Rate {
        let ports = nics.iter().flat_map(|&nic| self.shares(src, dst, nic));
        let ways = ports.filter_map(|(port, _)| self.times.way(src, dst, port));
        ways.map(|way| self.at_best((src, dst), way.path).bottleneck).min().unwrap_or(Rate(1))
    }

    /// The ports by which the packets of a connection leave, each with its share of them.
    pub fn shares(&self, src: HostId, dst: HostId, nic: Option<u32>) -> impl Iterator<Item = (u32, f64)> {
        let all = if nic.is_none() { self.spread(src, dst) } else { Vec::new() };
        nic.map(|nic| (nic, 1.0)).into_iter().chain(all)
    }

    /// The same of packets that leave by all: a NIC that is free takes the next one.
    fn spread(&self, src: HostId, dst: HostId) -> Vec<(u32, f64)> {
        let rate = |&port: &u32| {
            let way = self.times.way(src, dst, port);
            (port, way.map_or(0.0, |way| way.path.first.0 as f64))
        };
        let rates: Vec<(u32, f64)> = self.times.ports(src, dst).iter().map(rate).collect();
        let sum = rates.iter().map(|(_, rate)| rate).sum::<f64>().max(1.0);
        rates.into_iter().map(|(port, rate)| (port, rate / sum)).collect()
    }
}
