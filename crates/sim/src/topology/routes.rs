//! Shortest paths by hop count, all equal-cost next hops kept (ECMP). Hosts never transit.
//!
//! Hosts that hang on one switch by one link are reached alike from everywhere else: they form one
//! *target*. Each switch has a row with one entry per target, an entry being a port, or a list of ports
//! stored once. Rows are made of chunks of 64 targets; equal chunks and equal rows are stored once, so that
//! those of a fat tree with 8 192 hosts take 5 KB. Hosts with one way out share rows in which every target
//! that can be reached has that port.
//!
//! A graph in which every switch differs from every other has no short form: large ones take about a byte
//! for each pair of switch and target ([`table`]).

mod search;
mod table;

pub use crate::compat::NextHopOrder;

use super::{HostId, LinkId, NodeId, Topology};
use table::{Limits, Table};

/// Ports (indices into [`Topology::ports`] of a node) that lead to a host on a shortest path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextHops<'r> {
    /// There is no path.
    None,
    One(u32),
    /// At least two, in the order that was asked for.
    Many(&'r [u32]),
}

/// Where a node looks up its next hops; valid with the [`Routes`] that it came from only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    begin: usize,
    /// The target on the node itself, if it is a switch with hosts; else [`NONE`].
    own: u32,
}

/// Next hops of every node to every host. Immutable and free of interior mutability: threads may share it.
#[derive(Debug, Clone)]
pub struct Routes {
    /// Target of each host as a destination.
    target: Vec<u32>,
    /// For each host that shares its target with others: its switch's port to it; else [`NONE`].
    last_hop: Vec<u32>,
    table: Table,
    /// By node.
    rows: Vec<Row>,
    /// Ports that a host can send by, as an entry.
    access: Vec<u32>,
    host_node: Vec<NodeId>,
    /// Host id of each node; [`NONE`] for switches.
    host_of: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl Routes {
    /// Finds all shortest paths over the links for which `usable` holds. A switch that is down is one whose
    /// links are all unusable.
    pub fn compute(topology: &Topology, usable: &dyn Fn(LinkId) -> bool, order: NextHopOrder) -> Routes {
        search::Search::new(topology, usable, order).run(Limits::USUAL)
    }

    /// What a node keeps to ask [`Routes::hops_from`]; to be renewed when routes are.
    pub fn row(&self, node: NodeId) -> Row {
        self.rows[node as usize]
    }

    /// Next hops from the node of `row` to a host: the lookup of the packet loop. A host does not ask for
    /// the way to itself.
    #[inline(always)]
    pub fn hops_from(&self, row: Row, dst: HostId) -> NextHops<'_> {
        let (target, last_hop) = (self.target[dst as usize], self.last_hop[dst as usize]);
        // Both are looked up: which of them counts is not to be guessed.
        let entry = self.table.entry(row.begin, target);
        self.table.hops(if target == row.own { last_hop } else { entry })
    }

    /// Ports of `node` that lead to the host on a shortest path; none where there is no path, or the node is
    /// the host. A slice, for those who do not ask for every packet.
    #[inline]
    pub fn next_hops(&self, node: NodeId, dst: HostId) -> &[u32] {
        if self.host_of[node as usize] == dst {
            return &[];
        }
        match self.hops_from(self.row(node), dst) {
            NextHops::None => &[],
            NextHops::One(port) => self.table.single(port),
            NextHops::Many(ports) => ports,
        }
    }

    /// Usable ports of a host.
    pub fn access_ports(&self, host: HostId) -> &[u32] {
        match self.table.hops(self.access[host as usize]) {
            NextHops::None => &[],
            NextHops::One(port) => self.table.single(port),
            NextHops::Many(ports) => ports,
        }
    }

    /// Node of a host.
    pub fn host_node(&self, host: HostId) -> NodeId {
        self.host_node[host as usize]
    }

    /// The host that a node is.
    pub fn host_at(&self, node: NodeId) -> Option<HostId> {
        Some(self.host_of[node as usize]).filter(|&host| host != NONE)
    }

    pub fn hosts(&self) -> usize {
        self.host_node.len()
    }

    /// Memory that the routes hold, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let words = [&self.target, &self.last_hop, &self.access, &self.host_node, &self.host_of];
        let words: usize = words.iter().map(|list| list.capacity()).sum();
        words * size_of::<u32>() + self.rows.capacity() * size_of::<Row>() + self.table.memory_bytes()
    }

    /// The target that a host shares with others on its switch; hosts with a target of their own have none.
    pub(super) fn shared_target(&self, host: HostId) -> Option<u32> {
        let shared = self.last_hop[host as usize] != NONE;
        shared.then_some(self.target[host as usize])
    }
}

#[cfg(test)]
mod tests;
