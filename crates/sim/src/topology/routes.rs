//! Shortest paths by hop count with all equal-cost next hops (ECMP). Hosts do not forward.
//!
//! Hosts with a single link to the same switch are reached alike from everywhere else: they form one
//! *target*. Each switch has a row with one entry per target; an entry is a port, or a list of ports stored
//! once. Rows consist of chunks of 64 targets; equal chunks and equal rows are stored once, so that the rows
//! of a fat tree with 8 192 hosts take 5 KB. Hosts with one usable port share rows in which every reachable
//! target has that port.
//!
//! A graph in which every switch differs from every other has no compact form: large ones take about a byte
//! per pair of switch and target ([`table`]).

mod search;
mod table;

pub use crate::compat::NextHopOrder;

use super::{HostId, LinkId, NodeId, Topology};
pub(super) use table::TARGETS;
use table::{Limits, Table};

/// Ports (indices into [`Topology::ports`] of a node) that lead to a host on a shortest path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextHops<'r> {
    /// There is no path.
    None,
    One(u32),
    /// At least two, in the requested order.
    Many(&'r [u32]),
}

/// Where the next hops of a node are found; valid only with the [`Routes`] that returned it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    begin: usize,
    /// The target at the node itself, if it is a switch with hosts; otherwise [`NONE`].
    own: u32,
}

/// A host as a destination.
#[derive(Debug, Clone, Copy)]
struct End {
    target: u32,
    /// If it shares its target with others: the port of its switch to it; otherwise [`NONE`].
    last_hop: u32,
}

/// Next hops of every node to every host. Immutable, without interior mutability: threads may share it.
#[derive(Debug, Clone)]
pub struct Routes {
    /// By host as a destination.
    ends: Vec<End>,
    table: Table,
    /// By node.
    rows: Vec<Row>,
    /// Ports of a host for sending, as an entry.
    access: Vec<u32>,
    host_node: Vec<NodeId>,
    /// Host id of each node; [`NONE`] for switches.
    host_of: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl Routes {
    /// Finds all shortest paths over the links for which `usable` returns true. If a switch is down, all its
    /// links are unusable.
    pub fn compute(topology: &Topology, usable: &dyn Fn(LinkId) -> bool, order: NextHopOrder) -> Routes {
        search::Search::new(topology, usable, order).run(Limits::USUAL)
    }

    /// Returns the row of a node for [`Routes::hops_from`]; it must be renewed when routes change.
    pub fn row(&self, node: NodeId) -> Row {
        self.rows[node as usize]
    }

    /// Next hops from the node of `row` to a host: the lookup of the packet loop. A host must not look up
    /// itself.
    #[inline(always)]
    pub fn hops_from(&self, row: Row, dst: HostId) -> NextHops<'_> {
        self.table.hops(self.entry(row, dst))
    }

    /// Whether the node of `row` has several next hops to a host.
    #[inline(always)]
    pub fn has_choice(&self, row: Row, dst: HostId) -> bool {
        Table::is_list(self.entry(row, dst))
    }

    #[inline(always)]
    fn entry(&self, row: Row, dst: HostId) -> u32 {
        let End { target, last_hop } = self.ends[dst as usize];
        // Both are looked up, because a branch would be unpredictable.
        let entry = self.table.entry(row.begin, target);
        if target == row.own { last_hop } else { entry }
    }

    /// Ports of `node` that lead to the host on a shortest path, as a slice; empty if there is no path, or
    /// the node is the host. Not for the packet loop.
    #[inline]
    pub fn next_hops(&self, node: NodeId, dst: HostId) -> &[u32] {
        if self.host_of[node as usize] == dst {
            return &[];
        }
        self.ports(self.hops_from(self.row(node), dst))
    }

    /// Usable ports of a host.
    pub fn access_ports(&self, host: HostId) -> &[u32] {
        self.ports(self.table.hops(self.access[host as usize]))
    }

    /// Node of a host.
    pub fn host_node(&self, host: HostId) -> NodeId {
        self.host_node[host as usize]
    }

    /// The host at a node, if the node is one.
    pub fn host_at(&self, node: NodeId) -> Option<HostId> {
        Some(self.host_of[node as usize]).filter(|&host| host != NONE)
    }

    pub fn hosts(&self) -> usize {
        self.host_node.len()
    }

    /// Memory of the routes in bytes.
    pub fn memory_bytes(&self) -> usize {
        let words = [&self.access, &self.host_node, &self.host_of];
        let words: usize = words.iter().map(|list| list.capacity()).sum();
        let ends = self.ends.capacity() * size_of::<End>();
        words * size_of::<u32>() + ends + self.rows.capacity() * size_of::<Row>() + self.table.memory_bytes()
    }

    /// The target of a host, and whether that is its switch.
    pub(super) fn target(&self, host: HostId) -> (u32, bool) {
        let End { target, last_hop } = self.ends[host as usize];
        (target, last_hop != NONE)
    }

    /// Identifies the next hops of a node to the targets of a column of [`TARGETS`]: nodes with equal ones
    /// share the number, except for the target at the node itself.
    pub(super) fn chunk(&self, node: NodeId, column: usize) -> u32 {
        self.table.chunk(self.rows[node as usize].begin, column)
    }

    /// The ports of a node that lead to a target that is not its own.
    pub(super) fn ports_to(&self, node: NodeId, target: u32) -> &[u32] {
        self.ports(self.table.hops(self.table.entry(self.rows[node as usize].begin, target)))
    }

    fn ports<'r>(&'r self, hops: NextHops<'r>) -> &'r [u32] {
        match hops {
            NextHops::None => &[],
            NextHops::One(port) => self.table.single(port),
            NextHops::Many(ports) => ports,
        }
    }
}

#[cfg(test)]
mod tests;
