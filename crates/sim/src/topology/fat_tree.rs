//! k-ary fat tree: k pods of k/2 ToR and k/2 aggregation switches with k ports each, (k/2)^2 cores, k^3/4
//! hosts.
//!
//! Source: Al-Fares, Loukissas and Vahdat, "A Scalable, Commodity Data Center Network Architecture",
//! SIGCOMM 2008, §3. The switches that it calls edge are named `tor` here, as in the other builders.

use super::TopologyParameters;
use super::hpcc_fat_tree::HpccFatTree;
use super::network::{LinkSpec, check_counts, read_count};
use super::{Topology, TopologyError};
use crate::doc::SchemeDoc;
use crate::parameters::Parameters;

/// All switches have k ports; a ToR with more than k/2 hosts is oversubscribed.
#[derive(Debug, Clone, PartialEq)]
pub struct FatTree {
    /// Even, at least 2.
    pub k: u64,
    /// 0: k/2, as published.
    pub hosts_per_tor: u64,
    pub host_link: LinkSpec,
    pub fabric_link: LinkSpec,
}

impl Default for FatTree {
    fn default() -> FatTree {
        FatTree { k: 8, hosts_per_tor: 0, host_link: LinkSpec::HOST, fabric_link: LinkSpec::HOST }
    }
}

impl TopologyParameters for FatTree {
    const DOC: SchemeDoc = SchemeDoc {
        name: "fat-tree",
        title: "k-ary fat tree (Al-Fares et al., SIGCOMM 2008)",
        source: "Al-Fares, Loukissas, Vahdat, \"A Scalable, Commodity Data Center Network Architecture\", \
             SIGCOMM 2008, §3",
        validation: "The completion time of a single flow equals its closed form to the picosecond \
                     (tests/laws/lone_flow.rs).",
        ..SchemeDoc::NONE
    };

    fn read(p: &mut Parameters) -> FatTree {
        let d = FatTree::default();
        let hosts = "Hosts per ToR; 0: k/2, as published; a larger number oversubscribes the ToRs.";
        FatTree {
            k: read_count(p, "k", d.k, 2, "Ports per switch, an even number; the network has k^3/4 hosts."),
            hosts_per_tor: read_count(p, "hosts_per_tor", d.hosts_per_tor, 0, hosts),
            host_link: LinkSpec::read_host(p, d.host_link),
            fabric_link: LinkSpec::read_fabric(p, d.fabric_link),
        }
    }

    fn build(&self) -> Result<Topology, TopologyError> {
        let k = self.k;
        if k < 2 || k % 2 == 1 {
            let near = (k + 1).max(2);
            let message =
                format!("expected an even number of ports, at least 2, found {k}: did you mean {near}?");
            return Err(TopologyError::key("k", message));
        }
        check_counts(&[("k", k)])?;
        let half = k / 2;
        // Without hosts_per_tor, a network that is too large is so by k.
        let key = (self.hosts_per_tor == 0).then_some("k");
        HpccFatTree {
            pods: k,
            tors_per_pod: half,
            aggs_per_pod: half,
            hosts_per_tor: if self.hosts_per_tor == 0 { half } else { self.hosts_per_tor },
            cores_per_agg: half,
            host_link: self.host_link,
            fabric_link: self.fabric_link,
        }
        .build()
        .map_err(|error| TopologyError { key: error.key.or(key), ..error })
    }
}

#[cfg(test)]
mod tests;
