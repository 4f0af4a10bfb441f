//! Pods of leaves and aggregation switches, joined by cores that are linked to every aggregation switch.
//!
//! Every leaf (`leaf0`, ...) is linked to every aggregation switch of its pod (`agg0`, ...), and these to
//! every core (`core0`, ...). A core therefore has several links into each pod, unlike in a fat tree: the
//! failure of one of them reduces the pod's capacity, but all paths remain.
//!
//! Source: the network on which HULA was evaluated (Katta et al., SOSR 2016; from memory, unverified): 2 pods
//! of 2 leaves and 2 aggregation switches, 2 cores, 10 Gb/s to hosts and 40 Gb/s above. 16 servers per leaf
//! as in the talk on MP-HULA (Benet et al., NetCompute 2018). Delays are not published. With these numbers
//! the leaves are oversubscribed 2:1, and half of the hosts have 160 Gb/s to the other half.

use super::TopologyParameters;
use super::network::{LinkSpec, Network, check_counts, read_count};
use super::{Topology, TopologyError};
use crate::doc::SchemeDoc;
use crate::parameters::Parameters;
use crate::units::{Rate, Time};

/// Nodes in the order hosts, leaves, aggregation switches, cores; pod by pod.
#[derive(Debug, Clone, PartialEq)]
pub struct Pods {
    pub pods: u64,
    pub leaves_per_pod: u64,
    pub aggs_per_pod: u64,
    pub cores: u64,
    pub hosts_per_leaf: u64,
    pub host_link: LinkSpec,
    pub fabric_link: LinkSpec,
    /// Rate of the links between aggregation switches and cores; none: as `fabric_link`.
    pub core_rate: Option<Rate>,
}

impl Default for Pods {
    fn default() -> Pods {
        let link = |gbps| LinkSpec { rate: Rate::from_gbps(gbps), delay: Time::from_us(1) };
        Pods {
            pods: 2,
            leaves_per_pod: 2,
            aggs_per_pod: 2,
            cores: 2,
            hosts_per_leaf: 16,
            host_link: link(10),
            fabric_link: link(40),
            core_rate: None,
        }
    }
}

impl TopologyParameters for Pods {
    const DOC: SchemeDoc = SchemeDoc {
        name: "pods",
        title: "pods of leaves and aggregation switches, every one of these linked to every core (HULA's \
             network), 64 hosts",
        source: "The network of HULA, SOSR 2016 (from memory, unverified), with the 16 servers per leaf of \
                 the talk on MP-HULA",
        validation: "Counts, uplinks and the 160 Gb/s between its halves (topology/pods.rs).",
        ..SchemeDoc::NONE
    };

    fn read(p: &mut Parameters) -> Pods {
        let d = Pods::default();
        Pods {
            pods: read_count(p, "pods", d.pods, 1, "Pods."),
            leaves_per_pod: read_count(p, "leaves_per_pod", d.leaves_per_pod, 1, "Leaves per pod."),
            aggs_per_pod: read_count(p, "aggs_per_pod", d.aggs_per_pod, 1, "Aggregation switches per pod."),
            cores: read_count(p, "cores", d.cores, 1, "Cores, each linked to every aggregation switch."),
            hosts_per_leaf: read_count(p, "hosts_per_leaf", d.hosts_per_leaf, 1, "Hosts per leaf."),
            host_link: LinkSpec::read_host(p, d.host_link),
            fabric_link: LinkSpec::read_fabric(p, d.fabric_link),
            core_rate: p.rate_or_auto(
                "core_link.rate",
                "Rate of the links between aggregation switches and cores; auto: that of the other fabric links.",
            ),
        }
    }

    fn build(&self) -> Result<Topology, TopologyError> {
        check_counts(&[
            ("pods", self.pods),
            ("leaves_per_pod", self.leaves_per_pod),
            ("aggs_per_pod", self.aggs_per_pod),
            ("cores", self.cores),
            ("hosts_per_leaf", self.hosts_per_leaf),
        ])?;
        self.host_link.check_host()?;
        self.fabric_link.check_fabric()?;
        let core_link =
            LinkSpec { rate: self.core_rate.unwrap_or(self.fabric_link.rate), ..self.fabric_link };
        core_link.check("core_link.rate", "fabric_link.delay")?;
        self.connect(core_link)
    }
}

impl Pods {
    fn connect(&self, core_link: LinkSpec) -> Result<Topology, TopologyError> {
        // Each factor is at most a million, so that no product of three overflows.
        let (leaves, aggs) = (self.pods * self.leaves_per_pod, self.pods * self.aggs_per_pod);
        let hosts = leaves * self.hosts_per_leaf;
        let nodes = [hosts, leaves, aggs, self.cores].into_iter().map(u128::from).sum();
        let above = u128::from(aggs) * u128::from(self.cores);
        let links = u128::from(hosts) + u128::from(leaves) * u128::from(self.aggs_per_pod) + above;
        let mut network = Network::new(nodes, links)?;
        network.hosts(hosts);
        let leaf = network.switches("leaf", leaves, 1);
        let agg = network.switches("agg", aggs, 2);
        let core = network.switches("core", self.cores, 3);
        for host in 0..hosts {
            network.link(host, leaf + host / self.hosts_per_leaf, self.host_link);
        }
        for l in 0..leaves {
            let pod = l / self.leaves_per_pod;
            for place in 0..self.aggs_per_pod {
                network.link(leaf + l, agg + pod * self.aggs_per_pod + place, self.fabric_link);
            }
        }
        for a in 0..aggs {
            for c in 0..self.cores {
                network.link(agg + a, core + c, core_link);
            }
        }
        network.finish()
    }
}

#[cfg(test)]
mod tests;
