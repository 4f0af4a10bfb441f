//! Networks as plain data: nodes, ports and links. Builders and importers create them, the simulator reads
//! them.
//!
//! This room does not depend on packets or time. The id of a host is its index among the hosts, unless the
//! topology's file numbers hosts itself.

mod error;
mod kinds;
mod lines;
mod longest;
mod memory;
mod network;
mod overrides;
mod path_times;
pub mod pattern;
mod planes;
mod ports;
mod routes;
mod validity;
mod ways;
mod zoo;

pub mod clos;
pub mod dumbbell;
pub mod fat_tree;
pub mod file;
pub mod gml;
pub mod graphml;
pub mod hpcc_fat_tree;
pub mod hpcc_text;
pub mod hpn;
pub mod htsim;
pub mod leaf_spine;
pub mod parking_lot;
pub mod pods;
pub mod rail;
pub mod rail_only;
pub mod star;
pub mod toml_file;

pub use error::TopologyError;
pub use longest::{KnownLongest, Longest, longest};
pub use memory::network_bytes;
pub use network::LinkSpec;
pub use overrides::{LinkOverride, apply_overrides};
pub use path_times::{Path, PathTimes, Way};
pub use planes::planes;
pub use ports::Ports;
pub use routes::{NextHopOrder, NextHops, Routes, Row};
pub use toml_file::write_toml;
pub use validity::{MAX_LINKS, MAX_NODES, MAX_PORTS};
pub use ways::ways_below;
pub use zoo::ZooOptions;

use crate::doc::SchemeDoc;
use crate::parameters::Parameters;
use crate::units::{Rate, Time};
use std::path::Path as FilePath;

/// A kind of topology with its parameters: a file of this room, and a line in the registry below.
pub trait TopologyParameters: Sized {
    const DOC: SchemeDoc;
    fn read(p: &mut Parameters) -> Self;
    /// Builds the topology. Errors: invalid counts or links.
    fn build(&self) -> Result<Topology, TopologyError>;
    /// Builds the topology; file names are relative to `base_dir`. The strings are warnings.
    fn build_in(&self, _base_dir: &FilePath) -> Result<(Topology, Vec<String>), TopologyError> {
        Ok((self.build()?, Vec::new()))
    }
}

registry! {
    /// A topology to be built, with all its parameters.
    TopologySpec: TopologyParameters {
        Star = star::Star;
        Dumbbell = dumbbell::Dumbbell;
        ParkingLot = parking_lot::ParkingLot;
        LeafSpine = leaf_spine::LeafSpine;
        FatTree = fat_tree::FatTree;
        HpccFatTree = hpcc_fat_tree::HpccFatTree;
        Clos = clos::Clos;
        Pods = pods::Pods;
        Rail = rail::Rail;
        RailOnly = rail_only::RailOnly;
        Hpn = hpn::Hpn;
        File = file::FileSpec;
    }
}

impl TopologySpec {
    /// Builds and validates the topology; file names are relative to `base_dir`. The strings are warnings.
    pub fn build(&self, base_dir: &FilePath) -> Result<(Topology, Vec<String>), TopologyError> {
        each_kind!(self, spec => spec.build_in(base_dir))
    }
}

/// Index of a node in [`Topology::nodes`].
pub type NodeId = u32;
/// Index of a link in [`Topology::links`].
pub type LinkId = u32;
/// Index of a host among the hosts, in the order of the topology.
pub type HostId = u32;
/// Ports by (node, port of the node), in order.
pub type PortSet = Vec<(NodeId, u32)>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeKind {
    Host,
    Switch,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The name in scenarios and results: `host17`, `leaf0`, `spine2`, `core3`.
    pub name: String,
    pub kind: NodeKind,
    /// 0 for hosts, 1 for the switches next to them, and so on; 1 for every switch of a graph without tiers.
    pub tier: u8,
}

/// A full-duplex link. A node's ports are its links in the order of [`Topology::links`].
#[derive(Debug, Clone, PartialEq)]
pub struct Link {
    pub a: NodeId,
    pub b: NodeId,
    pub rate: Rate,
    /// One-way propagation delay; greater than zero.
    pub delay: Time,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Topology {
    pub nodes: Vec<Node>,
    pub links: Vec<Link>,
    /// Ids of hosts in the topology's file; empty if they are 0, 1, 2, ...
    pub host_labels: Vec<u32>,
    /// Number of hosts, with the highest ids, that are for services (an arbiter): no workload uses them.
    pub extra_hosts: u32,
    /// By host, in which part of the network it is, where no switch joins the parts: what crosses them stays
    /// in a scale-up domain. Empty: every host reaches every other.
    pub parts: Vec<u32>,
    /// Consecutive hosts that are the GPUs of one node; none: the topology does not group hosts.
    pub gpus_per_node: Option<u32>,
}

impl Topology {
    /// Node of each host, by host id.
    pub fn hosts(&self) -> Vec<NodeId> {
        self.of_kind(NodeKind::Host)
    }
    pub fn switches(&self) -> Vec<NodeId> {
        self.of_kind(NodeKind::Switch)
    }
    fn of_kind(&self, kind: NodeKind) -> Vec<NodeId> {
        (0..self.nodes.len() as NodeId).filter(|&n| self.nodes[n as usize].kind == kind).collect()
    }

    /// The slowest rate at which a host hangs on the network: what the authors of HPCC call the NIC's.
    pub fn nic_rate(&self) -> Rate {
        let is_host = |node: NodeId| self.nodes[node as usize].kind == NodeKind::Host;
        let rates = self.links.iter().filter(|l| is_host(l.a) || is_host(l.b)).map(|l| l.rate);
        rates.min().unwrap_or(Rate(1))
    }

    /// For each node, its ports: (link, neighbour), in the order of the links.
    pub fn ports(&self) -> Ports {
        Ports::of(self)
    }

    /// Number of hosts that workloads use: the first ones.
    pub fn ordinary_hosts(&self) -> usize {
        self.hosts().len().saturating_sub(self.extra_hosts as usize)
    }

    /// The highest rate of a host's link.
    pub fn host_rate(&self) -> Rate {
        self.host_links().map(|link| link.rate).max().unwrap_or_default()
    }

    /// The rates of hosts' links, each once, the lowest first.
    pub fn host_rates(&self) -> Vec<Rate> {
        let mut rates: Vec<Rate> = self.host_links().map(|link| link.rate).collect();
        rates.sort_unstable();
        rates.dedup();
        rates
    }

    /// The rates of all links of a host together, each once, the lowest first.
    pub fn whole_host_rates(&self) -> Vec<Rate> {
        let ports = self.ports();
        let rate = |&(link, _): &(u32, NodeId)| self.links[link as usize].rate.0;
        let whole = |&node: &NodeId| Rate(ports[node as usize].iter().map(rate).sum());
        let mut rates: Vec<Rate> = self.hosts().iter().map(whole).collect();
        rates.sort_unstable();
        rates.dedup();
        rates
    }

    fn host_links(&self) -> impl Iterator<Item = &Link> {
        let of_host = |link: &&Link| [link.a, link.b].iter().any(|&node| self.nodes[node as usize].tier == 0);
        self.links.iter().filter(of_host)
    }

    /// Why nothing can be sent from one host to another; none: they are in one part of the network.
    pub fn stranded(&self, src: HostId, dst: HostId) -> Option<String> {
        let part = |host: HostId| self.parts.get(host as usize);
        (part(src) != part(dst)).then(|| {
            let hosts = self.hosts();
            let name = |host: HostId| &self.nodes[hosts[host as usize] as usize].name;
            format!(
                "no switch joins {} to {}: such traffic must be forwarded in a scale-up domain, as algorithm = \"hierarchical\" does \
                 with scale_up_rate and a domain of the GPUs of a node",
                name(src),
                name(dst)
            )
        })
    }

    /// The id of a host in files and scenarios.
    pub fn host_label(&self, host: HostId) -> u32 {
        self.host_labels.get(host as usize).copied().unwrap_or(host)
    }

    /// Sets the tier of each switch to its distance from the nearest host, for files without tiers.
    fn find_tiers(&mut self) {
        let ports = self.ports();
        let mut reached = self.hosts();
        let mut seen = vec![false; self.nodes.len()];
        reached.iter().for_each(|&host| seen[host as usize] = true);
        let mut next = 0;
        while let Some(&node) = reached.get(next) {
            next += 1;
            for &(_, neighbour) in &ports[node as usize] {
                if !std::mem::replace(&mut seen[neighbour as usize], true) {
                    self.nodes[neighbour as usize].tier = self.nodes[node as usize].tier.saturating_add(1);
                    reached.push(neighbour);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
