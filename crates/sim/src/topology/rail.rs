//! Rail-optimised: a node has g GPUs, each a host with a NIC of its own, and NIC i of every node of a segment
//! is on leaf i of the segment. Every leaf is linked to every spine.
//!
//! Host n g + i is GPU i of node n, so that consecutive ranks are the domains of hierarchical collectives.
//! Hosts of one place in their nodes and of one segment (a rail) are one switch apart; all others are three.
//!
//! Source: NVIDIA DGX SuperPOD reference architecture: 32 nodes a scalable unit, a rail a leaf (from memory,
//! unverified).

use super::TopologyParameters;
use super::network::{LinkSpec, Network, check_counts, fabric_rate, read_count};
use super::{Topology, TopologyError};
use crate::doc::SchemeDoc;
use crate::parameters::Parameters;
use crate::units::{Rate, Time};

/// Two tiers: `leaf0`, ... (rail i of segment s is leaf s g + i) and `spine0`, ...
#[derive(Debug, Clone, PartialEq)]
pub struct Rail {
    pub nodes: u64,
    pub gpus: u64,
    pub nodes_per_segment: u64,
    pub spines: u64,
    pub host_link: LinkSpec,
    /// None: 400 Gb/s, or the rate that results from `oversubscription`.
    pub fabric_rate: Option<Rate>,
    pub fabric_delay: Time,
    pub oversubscription: f64,
}

impl Default for Rail {
    fn default() -> Rail {
        Rail {
            nodes: 4,
            gpus: 8,
            nodes_per_segment: 32,
            spines: 4,
            host_link: LinkSpec { rate: Rate::from_gbps(400), ..LinkSpec::HOST },
            fabric_rate: None,
            fabric_delay: LinkSpec::FABRIC.delay,
            oversubscription: 0.0,
        }
    }
}

impl TopologyParameters for Rail {
    const DOC: SchemeDoc = SchemeDoc {
        name: "rail",
        title: "rail-optimised: NIC i of every node of a segment on leaf i, leaves linked to all spines",
        source: "NVIDIA DGX SuperPOD reference architecture (from memory, unverified)",
        validation: "Counts of switches and links; hosts of a rail are one switch apart (topology/rail.rs).",
        ..SchemeDoc::NONE
    };

    fn read(p: &mut Parameters) -> Rail {
        let d = Rail::default();
        let segment_help = "Nodes whose NICs of one place are on one leaf.";
        let rate_help = "Rate of the links between leaves and spines; auto: by oversubscription if given, \
                         else 400Gbps.";
        let ratio_help =
            "Host capacity of a full leaf over its uplink capacity; sets fabric_link.rate. 0: not used.";
        Rail {
            nodes: read_count(p, "nodes", d.nodes, 1, "Nodes, each with `gpus` hosts."),
            gpus: read_count(p, "gpus", d.gpus, 1, "GPUs of a node, each a host with a NIC of its own."),
            nodes_per_segment: read_count(p, "nodes_per_segment", d.nodes_per_segment, 1, segment_help),
            spines: read_count(p, "spines", d.spines, 1, "Switches that join the leaves."),
            host_link: LinkSpec::read_host(p, d.host_link),
            fabric_rate: p.rate_or_auto("fabric_link.rate", rate_help),
            fabric_delay: p.time("fabric_link.delay", d.fabric_delay, "One-way delay of the fabric links."),
            oversubscription: p.number("oversubscription", d.oversubscription, (0.0, 1000.0), ratio_help),
        }
    }

    fn build(&self) -> Result<Topology, TopologyError> {
        self.connect(false)
    }
}

impl Rail {
    /// The network; with `apart` every rail has `spines` switches of its own above its leaves, and none joins
    /// two rails.
    pub(super) fn connect(&self, apart: bool) -> Result<Topology, TopologyError> {
        let Rail { nodes, gpus, nodes_per_segment, spines, .. } = *self;
        check_counts(&[
            ("nodes", nodes),
            ("gpus", gpus),
            ("nodes_per_segment", nodes_per_segment),
            ("spines", spines),
        ])?;
        self.host_link.check_host()?;
        let under = nodes_per_segment.min(nodes) as f64 * self.host_link.rate.0 as f64;
        let rate = fabric_rate(self.fabric_rate, self.oversubscription, under, spines)?;
        let fabric_link = LinkSpec { rate, delay: self.fabric_delay };
        fabric_link.check_fabric()?;
        let leaves = u128::from(nodes.div_ceil(nodes_per_segment)) * u128::from(gpus);
        let hosts = u128::from(nodes) * u128::from(gpus);
        let all_spines = spines * if apart { gpus } else { 1 };
        let switches = leaves + u128::from(all_spines);
        let mut network = Network::new(hosts + switches, hosts + leaves * u128::from(spines))?;
        network.hosts(nodes * gpus);
        network.in_nodes(gpus);
        let leaf = network.switches("leaf", leaves as u64, 1);
        let spine = network.switches("spine", all_spines, 2);
        for host in 0..nodes * gpus {
            let (node, place) = (host / gpus, host % gpus);
            network.link(host, leaf + node / nodes_per_segment * gpus + place, self.host_link);
        }
        for l in 0..leaves as u64 {
            let first = spine + if apart { l % gpus * spines } else { 0 };
            (0..spines).for_each(|s| network.link(leaf + l, first + s, fabric_link));
        }
        if apart {
            network.in_parts((0..nodes * gpus).map(|host| (host % gpus) as u32).collect());
        }
        network.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_a_rail_are_on_one_leaf() {
        let rail = Rail { nodes: 6, gpus: 4, nodes_per_segment: 4, spines: 3, ..Rail::default() };
        let topology = rail.build().expect("a network");
        topology.validate().expect("a valid network");
        // Two segments of four leaves each; the second is not full.
        let counts = (topology.hosts().len(), topology.nodes.len(), topology.links.len());
        assert_eq!(counts, (24, 24 + 8 + 3, 24 + 8 * 3));
        let leaf = |host: usize| topology.links[host].b;
        assert!((0..4).all(|node| leaf(4 * node + 2) == leaf(2)));
        assert_ne!(leaf(16 + 2), leaf(2));
    }

    #[test]
    fn a_scalable_unit_has_256_gpus_and_oversubscription_sets_the_rate_of_the_uplinks() {
        let unit = Rail { nodes: 32, spines: 16, oversubscription: 2.0, ..Rail::default() };
        let topology = unit.build().expect("a network");
        assert_eq!((topology.hosts().len(), topology.links.len()), (256, 256 + 8 * 16));
        // 32 hosts of 400 Gb/s over 16 uplinks, two to one.
        assert_eq!(topology.links.last().map(|link| link.rate), Some(Rate::from_gbps(400)));
    }
}
