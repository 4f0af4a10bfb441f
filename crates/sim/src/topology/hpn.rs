//! HPN: every NIC has two ports, to two top-of-rack switches in two planes that do not meet above. Within a
//! segment, NIC i of every node is on the two switches of rail i; the switches of a plane are linked to all
//! spines of the plane. `planes` may be more (a multi-plane fabric), or one.
//!
//! A flow takes one of the ports by `[host] nic_policy`, and another when a port's link fails, or all of them. Host n g + i
//! is GPU i of node n.
//!
//! Source: Qian et al., "Alibaba HPN: a data center network for large language model training", SIGCOMM 2024;
//! counts as in SimAI's generator: 15 segments of 128 nodes with 8 GPUs, 240 switches of racks, 120 spines, 2
//! x 200 Gb/s a NIC. Differs from the source: no core above the pods.

use super::TopologyParameters;
use super::network::{LinkSpec, Network, check_counts, read_count};
use super::{Topology, TopologyError};
use crate::doc::SchemeDoc;
use crate::parameters::Parameters;
use crate::units::Rate;

/// Two tiers: `tor0`, ... (plane p of rail i of segment s is tor (s g + i) P + p, of P planes) and `spine0`,
/// ... (plane by plane).
#[derive(Debug, Clone, PartialEq)]
pub struct Hpn {
    pub segments: u64,
    pub nodes_per_segment: u64,
    pub gpus: u64,
    /// Ports of a NIC.
    pub planes: u64,
    /// Of each plane.
    pub spines: u64,
    /// Each of the two ports of a NIC.
    pub host_link: LinkSpec,
    pub fabric_link: LinkSpec,
}

impl Default for Hpn {
    fn default() -> Hpn {
        Hpn {
            segments: 2,
            nodes_per_segment: 4,
            gpus: 8,
            planes: 2,
            spines: 4,
            host_link: LinkSpec { rate: Rate::from_gbps(200), ..LinkSpec::HOST },
            fabric_link: LinkSpec::FABRIC,
        }
    }
}

impl TopologyParameters for Hpn {
    const DOC: SchemeDoc = SchemeDoc {
        name: "hpn",
        title: "planes: every NIC has a port to each of two (or more) switches of its rail, which do not meet above",
        source: "Qian et al., Alibaba HPN, SIGCOMM 2024; counts as in SimAI's generator",
        validation: "Counts of switches and links of a pod of 15 360 GPUs (topology/hpn.rs).",
        ..SchemeDoc::NONE
    };

    fn read(p: &mut Parameters) -> Hpn {
        let d = Hpn::default();
        let segment_help = "Nodes whose NICs of one place are on the same two switches.";
        Hpn {
            segments: read_count(p, "segments", d.segments, 1, "Groups of nodes with racks of their own."),
            nodes_per_segment: read_count(p, "nodes_per_segment", d.nodes_per_segment, 1, segment_help),
            gpus: read_count(p, "gpus", d.gpus, 1, "GPUs of a node, each a host with a NIC of its own."),
            planes: read_count(p, "planes", d.planes, 1, "Ports of a NIC, each in a plane of its own."),
            spines: read_count(p, "spines", d.spines, 1, "Switches that join the racks of a plane."),
            host_link: LinkSpec::read_host(p, d.host_link),
            fabric_link: LinkSpec::read_fabric(p, d.fabric_link),
        }
    }

    fn build(&self) -> Result<Topology, TopologyError> {
        let Hpn { segments, nodes_per_segment, gpus, planes, spines, .. } = *self;
        check_counts(&[
            ("segments", segments),
            ("nodes_per_segment", nodes_per_segment),
            ("gpus", gpus),
            ("planes", planes),
            ("spines", spines),
        ])?;
        self.host_link.check_host()?;
        self.fabric_link.check_fabric()?;
        let hosts = u128::from(segments) * u128::from(nodes_per_segment) * u128::from(gpus);
        let tors = u128::from(segments) * u128::from(gpus) * u128::from(planes);
        let all_spines = u128::from(spines) * u128::from(planes);
        let links = hosts * u128::from(planes) + tors * u128::from(spines);
        let mut network = Network::new(hosts + tors + all_spines, links)?;
        network.hosts(hosts as u64);
        network.in_nodes(gpus);
        let tor = network.switches("tor", tors as u64, 1);
        let spine = network.switches("spine", all_spines as u64, 2);
        for host in 0..hosts as u64 {
            let (segment, place) = (host / gpus / nodes_per_segment, host % gpus);
            for plane in 0..planes {
                network.link(host, tor + (segment * gpus + place) * planes + plane, self.host_link);
            }
        }
        for t in 0..tors as u64 {
            for s in 0..spines {
                network.link(tor + t, spine + t % planes * spines + s, self.fabric_link);
            }
        }
        network.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_has_the_counts_of_its_generator_and_its_planes_do_not_meet() {
        let pod = Hpn { segments: 15, nodes_per_segment: 128, spines: 60, ..Hpn::default() };
        let topology = pod.build().expect("a network");
        assert_eq!(topology.hosts().len(), 15_360);
        assert_eq!(topology.nodes.len(), 15_360 + 240 + 120);
        assert_eq!(topology.links.len(), 2 * 15_360 + 240 * 60);
        let (tor, spine) = (15_360, 15_600);
        for link in &topology.links[2 * 15_360..] {
            assert_eq!((link.a - tor) % 2, u32::from(link.b - spine >= 60));
        }
        let eight = Hpn { planes: 8, gpus: 1, ..Hpn::default() }.build().expect("eight planes");
        assert_eq!((eight.nodes.len(), eight.links.len()), (8 + 16 + 32, 8 * 8 + 16 * 4));
        eight.validate().expect("a valid network");
        Hpn::default().build().expect("a network").validate().expect("a valid network");
    }
}
