//! Where everything is: which region has a host, a node or a port, and what its number is there.

use crate::net::NodeIndex;

/// The numbers of hosts, nodes and ports in their regions.
pub struct Places {
    /// Of each node: its region, and its place among its kind there.
    pub nodes: Vec<(u16, NodeIndex)>,
    /// Of each region, how many hosts it has.
    pub hosts_in: Vec<u32>,
    /// Node of each host.
    pub host_node: Vec<u32>,
    /// Of each node, the number of its first port in its region.
    pub first_port: Vec<u32>,
}

impl Places {
    /// Region and index of a host.
    pub fn of_host(&self, host: u32) -> (usize, u32) {
        let (region, index) = self.nodes[self.host_node[host as usize] as usize];
        let (NodeIndex::Host(index) | NodeIndex::Switch(index)) = index;
        (usize::from(region), index)
    }

    /// Region and number of a node's port.
    pub fn of_port(&self, node: u32, local: u32) -> (usize, u32) {
        let (region, _) = self.nodes[node as usize];
        (usize::from(region), self.first_port[node as usize] + local)
    }
}
