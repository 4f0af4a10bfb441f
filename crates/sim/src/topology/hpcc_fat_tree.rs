//! The three-tier FatTree of the HPCC paper: pods of ToR and aggregation switches, joined by groups of
//! cores.
//!
//! Within a pod every ToR (`tor0`, ...) is linked to every aggregation switch (`agg0`, ...). The aggregation
//! switches with the same index in their pods share a group of core switches (`core0`, ...), and each is
//! linked to all of its group. Without cores, one pod is a two-tier fabric.
//!
//! Source: Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, §5.1; the authors' topology
//! file has 5 pods of 4 ToRs with 16 hosts each and 4 aggregation switches, 16 cores, 320 hosts.

use super::TopologyParameters;
use super::network::{LinkSpec, Network, check_counts, read_count};
use super::{Topology, TopologyError};
use crate::doc::SchemeDoc;
use crate::parameters::Parameters;

/// Nodes in the order hosts, ToRs, aggregation switches, cores; links in the order host-ToR, ToR-aggregation,
/// aggregation-core: both as in the authors' file.
#[derive(Debug, Clone, PartialEq)]
pub struct HpccFatTree {
    pub pods: u64,
    pub tors_per_pod: u64,
    pub aggs_per_pod: u64,
    pub hosts_per_tor: u64,
    /// Core switches in the group of an aggregation switch; 0 (with one pod): no cores.
    pub cores_per_agg: u64,
    pub host_link: LinkSpec,
    pub fabric_link: LinkSpec,
}

impl Default for HpccFatTree {
    fn default() -> HpccFatTree {
        HpccFatTree {
            pods: 5,
            tors_per_pod: 4,
            aggs_per_pod: 4,
            hosts_per_tor: 16,
            cores_per_agg: 4,
            host_link: LinkSpec::HOST,
            fabric_link: LinkSpec::FABRIC,
        }
    }
}

impl TopologyParameters for HpccFatTree {
    const DOC: SchemeDoc = SchemeDoc {
        name: "hpcc-fat-tree",
        title: "three-tier FatTree of the HPCC paper, 320 hosts (Li et al., SIGCOMM 2019)",
        source: "Li et al., \"HPCC: High Precision Congestion Control\", SIGCOMM 2019, and its authors' \
             simulator",
        validation: "Nodes and links in the order of the authors' file (tests/reference.rs).",
        ..SchemeDoc::NONE
    };

    fn read(p: &mut Parameters) -> HpccFatTree {
        let d = HpccFatTree::default();
        let cores =
            "Core switches above each aggregation switch, shared between pods; 0 (with a single pod): none.";
        HpccFatTree {
            pods: read_count(p, "pods", d.pods, 1, "Pods (HPCC's FatTree has 5)."),
            tors_per_pod: read_count(p, "tors_per_pod", d.tors_per_pod, 1, "ToR switches per pod."),
            aggs_per_pod: read_count(p, "aggs_per_pod", d.aggs_per_pod, 1, "Aggregation switches per pod."),
            hosts_per_tor: read_count(p, "hosts_per_tor", d.hosts_per_tor, 1, "Hosts per ToR."),
            cores_per_agg: read_count(p, "cores_per_agg", d.cores_per_agg, 0, cores),
            host_link: LinkSpec::read_host(p, d.host_link),
            fabric_link: LinkSpec::read_fabric(p, d.fabric_link),
        }
    }

    fn build(&self) -> Result<Topology, TopologyError> {
        check_counts(&[
            ("pods", self.pods),
            ("tors_per_pod", self.tors_per_pod),
            ("aggs_per_pod", self.aggs_per_pod),
            ("hosts_per_tor", self.hosts_per_tor),
            ("cores_per_agg", self.cores_per_agg.max(1)),
        ])?;
        if self.cores_per_agg == 0 && self.pods > 1 {
            let message = format!("0 leaves {} pods unconnected: expected at least 1", self.pods);
            return Err(TopologyError::key("cores_per_agg", message));
        }
        self.host_link.check_host()?;
        self.fabric_link.check_fabric()?;
        self.connect()
    }
}

impl HpccFatTree {
    fn connect(&self) -> Result<Topology, TopologyError> {
        // Each factor is at most a million, so that no product of three overflows.
        let (tors, aggs) = (self.pods * self.tors_per_pod, self.pods * self.aggs_per_pod);
        let hosts = tors * self.hosts_per_tor;
        let cores = self.aggs_per_pod * self.cores_per_agg;
        let nodes = [hosts, tors, aggs, cores].into_iter().map(u128::from).sum();
        let links = [hosts, tors * self.aggs_per_pod, aggs * self.cores_per_agg];
        let mut network = Network::new(nodes, links.into_iter().map(u128::from).sum())?;

        network.hosts(hosts);
        let tor = network.switches("tor", tors, 1);
        let agg = network.switches("agg", aggs, 2);
        let core = network.switches("core", cores, 3);
        for host in 0..hosts {
            network.link(host, tor + host / self.hosts_per_tor, self.host_link);
        }
        for t in 0..tors {
            let pod = t / self.tors_per_pod;
            for place in 0..self.aggs_per_pod {
                network.link(tor + t, agg + pod * self.aggs_per_pod + place, self.fabric_link);
            }
        }
        for a in 0..aggs {
            let group = a % self.aggs_per_pod;
            for c in 0..self.cores_per_agg {
                network.link(agg + a, core + group * self.cores_per_agg + c, self.fabric_link);
            }
        }
        network.finish()
    }
}
