//! Properties of paths of pairs of hosts: hops, delays, rates, base RTT (see [`longest`](super::longest)).

use super::longest::sending_time;
use super::{HostId, LinkId, NodeId, Ports, Routes, Topology};
use crate::units::{Rate, Time};

/// A path from host to host along the first next hops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Path {
    /// Number of links.
    pub hops: u32,
    /// Sum of the propagation delays in one direction.
    pub delay: Time,
    /// Minimum rate on the path.
    pub bottleneck: Rate,
    /// The rate of the first link.
    pub first: Rate,
}

/// A path by one of the ports of its first host, with what it shares with other paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Way {
    pub path: Path,
    /// The first link and the last, and the nodes between which the others are.
    pub links: [LinkId; 2],
    pub nodes: [NodeId; 2],
    /// The rate of the last link.
    pub last: Rate,
    /// Other hosts pass packets on.
    pub relayed: bool,
}

/// Computes paths of pairs of hosts. Contains the ports of the topology, so that a query allocates nothing.
pub struct PathTimes<'t> {
    topology: &'t Topology,
    routes: &'t Routes,
    ports: Ports,
}

/// A path that is being walked: the node that it has reached, and its times up to there.
#[derive(Debug, Clone, Copy)]
struct Walk {
    node: NodeId,
    path: Option<Path>,
}

impl<'t> PathTimes<'t> {
    pub fn new(topology: &'t Topology, routes: &'t Routes) -> PathTimes<'t> {
        PathTimes { topology, routes, ports: topology.ports() }
    }

    /// Links from `src` to `dst`, always by the first next hop; empty if there is no path or both are the
    /// same host.
    pub fn links(&self, src: HostId, dst: HostId) -> impl Iterator<Item = LinkId> + '_ {
        let mut node = self.routes.host_node(src);
        std::iter::from_fn(move || {
            let port = *self.routes.next_hops(node, dst).first()?;
            let (link, next) = self.ports[node as usize][port as usize];
            node = next;
            Some(link)
        })
    }

    /// The path from `src` to `dst`; none if there is no path or both are the same host.
    pub fn pair(&self, src: HostId, dst: HostId) -> Option<Path> {
        let mut walk = Walk { node: self.routes.host_node(src), path: None };
        while self.step(&mut walk, dst) {}
        walk.path
    }

    /// The ports of `src` by which its packets leave for `dst`.
    pub fn ports(&self, src: HostId, dst: HostId) -> &[u32] {
        self.routes.next_hops(self.routes.host_node(src), dst)
    }

    /// The path that leaves `src` by a port, and from there takes the first next hops.
    pub fn way(&self, src: HostId, dst: HostId, port: u32) -> Option<Way> {
        let own = self.routes.host_node(src);
        let (first, next) = *self.ports[own as usize].get(port as usize)?;
        let mut walk = Walk { node: own, path: None };
        let (mut last, mut nodes, mut relayed) = (first, [next; 2], false);
        self.walk(&mut walk, port);
        loop {
            let before = walk.node;
            let Some(&port) = self.routes.next_hops(before, dst).first() else { break };
            relayed |= self.routes.host_at(before).is_some();
            (last, nodes[1]) = (self.ports[before as usize][port as usize].0, before);
            self.walk(&mut walk, port);
        }
        let rate = self.topology.links[last as usize].rate;
        (self.routes.host_at(walk.node) == Some(dst)).then_some(())?;
        Some(Way { path: walk.path?, links: [first, last], nodes, last: rate, relayed })
    }

    /// The paths of many pairs: all of them take a step in turn, so that the memory accesses of one do not wait
    /// for those of another.
    pub fn pairs(&self, pairs: impl Iterator<Item = (HostId, HostId)>) -> Vec<Option<Path>> {
        let start = |(src, dst)| (Walk { node: self.routes.host_node(src), path: None }, dst);
        let mut walks: Vec<(Walk, HostId)> = pairs.map(start).collect();
        let mut moving: Vec<u32> = (0..walks.len() as u32).collect();
        while !moving.is_empty() {
            moving.retain(|&at| {
                let (walk, dst) = &mut walks[at as usize];
                self.step(walk, *dst)
            });
        }
        walks.into_iter().map(|(walk, _)| walk.path).collect()
    }

    /// Walks one link; returns false where there is none.
    fn step(&self, walk: &mut Walk, dst: HostId) -> bool {
        let Some(&port) = self.routes.next_hops(walk.node, dst).first() else { return false };
        self.walk(walk, port);
        true
    }

    fn walk(&self, walk: &mut Walk, port: u32) {
        let (link, next) = self.ports[walk.node as usize][port as usize];
        let link = &self.topology.links[link as usize];
        let so_far =
            walk.path.unwrap_or(Path { hops: 0, delay: Time::ZERO, bottleneck: link.rate, first: link.rate });
        let path = Path {
            hops: so_far.hops + 1,
            delay: so_far.delay.saturating_add(link.delay),
            bottleneck: so_far.bottleneck.min(link.rate),
            ..so_far
        };
        *walk = Walk { node: next, path: Some(path) };
    }

    /// Sum of the times to transmit `bytes` on every link of the path (store and forward, no propagation).
    ///
    /// Each hop is rounded up to a picosecond; with `whole_ns`, down to a nanosecond (integer division, as in
    /// the HPCC authors' simulator).
    pub fn transmission_times(&self, src: HostId, dst: HostId, bytes: u64, whole_ns: bool) -> Time {
        let hop = |link: LinkId| sending_time(self.topology.links[link as usize].rate, bytes, whole_ns);
        self.links(src, dst).map(hop).fold(Time::ZERO, Time::saturating_add)
    }

    /// Base RTT of a pair for packets of this payload.
    pub fn base_rtt(&self, src: HostId, dst: HostId, payload: u64, whole_ns: bool) -> Option<Time> {
        let path = self.pair(src, dst)?;
        let there = path.delay.saturating_add(path.delay);
        Some(there.saturating_add(self.transmission_times(src, dst, payload, whole_ns)))
    }
}

#[cfg(test)]
mod tests;
