//! Hosts that stand for all hosts of a network, where it has too many to look at every pair.
//!
//! Hosts are of one kind if the network looks the same from each of them: their links have the same rates and
//! delays, the nodes behind these links have the same links again, and so on (colour refinement). A choice by
//! kinds does not depend on how hosts are numbered, as one of every second host would.

use crate::topology::{HostId, NodeId, Topology};
use crate::units::Rate;
use rustc_hash::FxHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};

/// Links away from a host up to which a difference makes it another kind.
const DISTANCE: usize = 16;

/// The hosts that workloads use, by kind: the kinds with the fastest links first, then in the order of their
/// first hosts.
pub struct Kinds(Vec<Vec<HostId>>);

impl Kinds {
    pub fn of(topology: &Topology) -> Kinds {
        let (hosts, ports, colours) = (topology.hosts(), topology.ports(), colours(topology));
        let rate = |node: NodeId| {
            let rates = ports[node as usize].iter().map(|&(link, _)| topology.links[link as usize].rate);
            rates.max().unwrap_or(Rate(0))
        };
        let mut kinds: BTreeMap<u64, Vec<HostId>> = BTreeMap::new();
        for (&node, host) in hosts.iter().zip(0..topology.ordinary_hosts() as HostId) {
            kinds.entry(colours[node as usize]).or_default().push(host);
        }
        let mut kinds: Vec<Vec<HostId>> = kinds.into_values().collect();
        kinds.sort_by_key(|kind| (std::cmp::Reverse(rate(hosts[kind[0] as usize])), kind[0]));
        Kinds(kinds)
    }

    /// A number of hosts up to the limit, of every kind in proportion to its number.
    pub fn in_proportion(&self, limit: usize) -> Vec<HostId> {
        let all: Vec<HostId> = self.0.iter().flatten().copied().collect();
        spread(&all, limit).copied().collect()
    }

    /// A number of hosts up to the limit, equally many of a rare kind and of a frequent one.
    pub fn of_each(&self, limit: usize) -> Vec<HostId> {
        if self.0.iter().map(Vec::len).sum::<usize>() <= limit {
            return self.in_proportion(limit);
        }
        let each = (limit / self.0.len()).max(1);
        spread(&self.0, limit).flat_map(|kind| spread(kind, each)).copied().collect()
    }
}

/// A number of them up to the limit, evenly spread, the first one among them.
fn spread<T>(all: &[T], limit: usize) -> impl Iterator<Item = &T> {
    all.iter().step_by(all.len().div_ceil(limit).max(1))
}

/// Of every node a number that is the same for nodes from which the network looks the same.
fn colours(topology: &Topology) -> Vec<u64> {
    let ports = topology.ports();
    let is_host: BTreeSet<NodeId> = topology.hosts().into_iter().collect();
    let nodes = 0..topology.nodes.len() as NodeId;
    let mut colours: Vec<u64> = nodes.clone().map(|node| u64::from(is_host.contains(&node))).collect();
    let mut known = 2;
    for _ in 0..DISTANCE {
        let colour = |node: NodeId| {
            let around = ports[node as usize].iter().map(|&(link, peer)| {
                let link = &topology.links[link as usize];
                (link.rate, link.delay, colours[peer as usize])
            });
            let mut around: Vec<_> = around.collect();
            around.sort_unstable();
            let mut hasher = FxHasher::default();
            (colours[node as usize], around).hash(&mut hasher);
            hasher.finish()
        };
        colours = nodes.clone().map(colour).collect();
        let distinct = colours.iter().collect::<BTreeSet<_>>().len();
        if distinct == known {
            break;
        }
        known = distinct;
    }
    colours
}
