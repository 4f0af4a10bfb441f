//! Leaf-spine: every leaf is linked to every spine, hosts are on the leaves.

use super::TopologyParameters;
use super::network::{LinkSpec, Network, check_counts, fabric_rate, read_count};
use super::{Topology, TopologyError};
use crate::doc::SchemeDoc;
use crate::parameters::Parameters;
use crate::units::{Rate, Time};

/// Two tiers: `leaf0`, `leaf1`, ... and `spine0`, `spine1`, ...
#[derive(Debug, Clone, PartialEq)]
pub struct LeafSpine {
    pub leaves: u64,
    pub spines: u64,
    pub hosts_per_leaf: u64,
    /// Additional hosts on leaf 0, with the highest numbers, which no workload uses.
    pub extra_hosts: u64,
    pub host_link: LinkSpec,
    /// None: 400 Gb/s, or the rate that results from `oversubscription`.
    pub fabric_rate: Option<Rate>,
    pub fabric_delay: Time,
    /// Capacity of a leaf's hosts over that of its uplinks; 0: not set.
    pub oversubscription: f64,
}

/// A larger number should be racks of their own.
const MAX_EXTRA_HOSTS: u64 = 1000;

impl Default for LeafSpine {
    fn default() -> LeafSpine {
        LeafSpine {
            leaves: 4,
            spines: 2,
            hosts_per_leaf: 16,
            extra_hosts: 0,
            host_link: LinkSpec::HOST,
            fabric_rate: None,
            fabric_delay: LinkSpec::FABRIC.delay,
            oversubscription: 0.0,
        }
    }
}

impl TopologyParameters for LeafSpine {
    const DOC: SchemeDoc = SchemeDoc {
        name: "leaf-spine",
        title: "every leaf linked to every spine; optional oversubscription",
        source: "weftline's definition",
        validation: "The completion time of a single flow equals its closed form to the picosecond \
                     (tests/laws/lone_flow.rs).",
        ..SchemeDoc::NONE
    };

    fn read(p: &mut Parameters) -> LeafSpine {
        let d = LeafSpine::default();
        LeafSpine {
            leaves: read_count(p, "leaves", d.leaves, 1, "Switches that have hosts."),
            spines: read_count(p, "spines", d.spines, 1, "Switches that join the leaves."),
            hosts_per_leaf: read_count(p, "hosts_per_leaf", d.hosts_per_leaf, 1, "Hosts per leaf."),
            extra_hosts: read_count(
                p,
                "extra_hosts",
                d.extra_hosts,
                0,
                "Additional hosts on leaf 0, with the highest ids, which no workload uses: for an arbiter.",
            ),
            host_link: LinkSpec::read_host(p, d.host_link),
            fabric_rate: p.rate_or_auto(
                "fabric_link.rate",
                "Rate of the links between leaves and spines; auto: by oversubscription if given, else 400Gbps.",
            ),
            fabric_delay: p.time("fabric_link.delay", d.fabric_delay, "One-way delay of the fabric links."),
            oversubscription: p.number(
                "oversubscription",
                d.oversubscription,
                (0.0, 1000.0),
                "Host capacity of a leaf over its uplink capacity; sets fabric_link.rate. 0: not used.",
            ),
        }
    }

    fn build(&self) -> Result<Topology, TopologyError> {
        check_counts(&[
            ("leaves", self.leaves),
            ("spines", self.spines),
            ("hosts_per_leaf", self.hosts_per_leaf),
        ])?;
        self.host_link.check_host()?;
        let under = self.hosts_per_leaf as f64 * self.host_link.rate.0 as f64;
        let rate = fabric_rate(self.fabric_rate, self.oversubscription, under, self.spines)?;
        let fabric_link = LinkSpec { rate, delay: self.fabric_delay };
        fabric_link.check_fabric()?;
        if self.extra_hosts > MAX_EXTRA_HOSTS {
            let message = format!("expected at most {MAX_EXTRA_HOSTS}, found {}", self.extra_hosts);
            return Err(TopologyError::key("extra_hosts", message));
        }
        let ordinary = self.leaves * self.hosts_per_leaf;
        let hosts = ordinary + self.extra_hosts;
        let nodes = u128::from(hosts) + u128::from(self.leaves) + u128::from(self.spines);
        let mut network = Network::new(nodes, u128::from(hosts) + u128::from(self.leaves * self.spines))?;
        network.hosts(hosts);
        let leaf = network.switches("leaf", self.leaves, 1);
        let spine = network.switches("spine", self.spines, 2);
        for host in 0..hosts {
            let on = if host < ordinary { host / self.hosts_per_leaf } else { 0 };
            network.link(host, leaf + on, self.host_link);
        }
        for l in 0..self.leaves {
            for s in 0..self.spines {
                network.link(leaf + l, spine + s, fabric_link);
            }
        }
        let topology = network.finish()?;
        Ok(Topology { extra_hosts: self.extra_hosts as u32, ..topology })
    }
}

#[cfg(test)]
mod tests;
