//! Rail-only: as [`super::rail`], but every rail has spines of its own, and no switch joins two rails.
//!
//! GPUs of different places in their nodes reach each other only through a scale-up domain: a job forwards there (a hierarchical
//! collective with `scale_up_rate`). Traffic that no rail carries is refused.
//!
//! Source: Wang, Ghobadi, Shakeri, Zhang, Hasani, "Rail-only: a low-cost high-performance network for training LLMs with trillion
//! parameters" (abstract only: 38 to 77 % less cost, all-to-all 8.2 to 11.2 % slower).

use super::TopologyParameters;
use super::rail::Rail;
use super::{Topology, TopologyError};
use crate::doc::SchemeDoc;
use crate::parameters::Parameters;

/// Two tiers: leaves as in `rail`, spine r n + i is the i-th of rail r's n.
#[derive(Debug, Clone, PartialEq)]
pub struct RailOnly(pub Rail);

impl TopologyParameters for RailOnly {
    const DOC: SchemeDoc = SchemeDoc {
        name: "rail-only",
        title: "as rail, with spines for each rail and none between rails: other rails only through scale-up domains",
        source: "Wang et al., \"Rail-only\", 2024 (abstract only)",
        validation: "Counts; rails do not meet; traffic between them is refused (topology/rail_only.rs, tests/fabrics.rs).",
        ..SchemeDoc::NONE
    };

    fn read(p: &mut Parameters) -> RailOnly {
        RailOnly(Rail::read(p))
    }

    fn build(&self) -> Result<Topology, TopologyError> {
        self.0.connect(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::{NextHopOrder, Routes};

    #[test]
    fn rails_do_not_meet() {
        let rail = Rail { nodes: 6, gpus: 4, nodes_per_segment: 2, spines: 3, ..Rail::default() };
        let topology = RailOnly(rail).build().expect("a network");
        topology.validate().expect("a valid network");
        let counts = (topology.hosts().len(), topology.nodes.len(), topology.links.len());
        assert_eq!(counts, (24, 24 + 12 + 12, 24 + 12 * 3));
        let routes = Routes::compute(&topology, &|_| true, NextHopOrder::ByPort);
        for (src, dst) in (0..24).flat_map(|src| (0..24).map(move |dst| (src, dst))).filter(|(a, b)| a != b) {
            let joined = !routes.next_hops(topology.hosts()[src as usize], dst).is_empty();
            assert_eq!(joined, src % 4 == dst % 4);
            assert_eq!(topology.stranded(src, dst).is_none(), joined);
        }
        // A rail that falls apart is found.
        let mut broken = topology;
        broken.links.retain(|link| broken.nodes[link.a as usize].name != "leaf4");
        let message = broken.validate().expect_err("a leaf without spines").to_string();
        assert_eq!(message, "not connected: no path from host0 to host8");
    }
}
