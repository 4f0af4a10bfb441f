//! Paths by destination (D-mod-k): on the way up a tree, the destination's number chooses the port, one digit
//! a tier.
//!
//! In a fat tree this spreads a shift permutation over all paths without two flows on one link; the
//! benchmarks use it so that all simulators carry the same packets over the same links.
//!
//! Source: Zahavi et al., "Optimized InfiniBand fat-tree routing for shift all-to-all communication
//! patterns", Concurrency and Computation: Practice and Experience 22(2), 2010. Differs from the source:
//! hosts have the numbers of the topology, which follow the order of the tree in `fat-tree`, `clos`, `pods`
//! and `leaf-spine`, and not in `rail` and `hpn`; the way down has no digits of its own, so parallel links of
//! one pair of switches are not used alike.

use super::{BalancerFacts, BalancerParameters, LoadBalancer, NetworkView, Place, Ports, Reorders, Shares};
use crate::doc::SchemeDoc;
use crate::packet::Packet;
use crate::parameters::Parameters;

#[derive(Debug, Clone, PartialEq)]
pub struct DestinationParameters;

impl BalancerParameters for DestinationParameters {
    const DOC: SchemeDoc = SchemeDoc {
        name: "destination",
        title: "the destination's number chooses the port, one digit per tier (D-mod-k): where hosts are numbered \
                switch by switch, shift permutations do not collide",
        source: "Zahavi et al., \"Optimized InfiniBand fat-tree routing for shift all-to-all communication \
                 patterns\", 2010",
        validation: "Digits of the destination by hand, for each tier (balance/destination.rs).",
        ..SchemeDoc::NONE
    };
    type State = Destination;

    fn read(_p: &mut Parameters) -> DestinationParameters {
        DestinationParameters
    }
    fn start(&self, at: &Place) -> Destination {
        Destination { ways_below: at.ways_below }
    }
    fn facts(&self) -> BalancerFacts {
        BalancerFacts { repeats: true, shares: Some(Shares::ByDestination(way)), ..BalancerFacts::default() }
    }
    fn warning(&self, network: &NetworkView) -> Option<String> {
        let left_out = |(switch, taken, hops)| {
            format!(
                "switch.balancer: the numbers of the hosts of {} choose {taken} of the {hops} next hops that lead to them, as hosts are \
                 not numbered switch by switch: the others carry nothing to them. Set kind = \"ecmp\" or \"label\"",
                network.name(switch)
            )
        };
        let Some(switch) = network.choice_downward() else {
            return network.hops_left_out().map(left_out);
        };
        Some(format!(
            "switch.balancer: {} has several next hops down to a rack, but the digits of a destination's number choose the way \
             up only: links down are used unequally, and some carry nothing. Set kind = \"ecmp\" or \"label\", or a topology with one \
             way down",
            network.name(switch)
        ))
    }
    fn order(&self) -> Reorders {
        Reorders::Never
    }
}

/// Which of `count` ways leads to a host.
fn way(dst: u32, ways_below: u32, count: usize) -> usize {
    (dst / ways_below) as usize % count
}

pub struct Destination {
    /// What the digits of the switches below make up.
    ways_below: u32,
}

impl LoadBalancer for Destination {
    fn choose(&mut self, packet: &Packet, candidates: &[u32], _ports: &impl Ports) -> usize {
        way(packet.dst, self.ways_below, candidates.len())
    }
}

#[cfg(test)]
mod tests {
    use super::super::situation::Still;
    use super::*;
    use crate::scenario::{Hooks, Scenario};
    use std::path::Path;

    #[test]
    fn hosts_that_are_not_numbered_switch_by_switch_are_warned_of() {
        let warning = |keys: &str| {
            let text = format!(
                "[topology]\n{keys}\n[switch]\nbalancer = {{ kind = \"destination\" }}\n[[workload]]\nkind = \"permutation\"\n"
            );
            let loaded = Scenario::load(&text, "s.toml", Path::new("."), &[], None, Hooks::default());
            loaded.unwrap_or_else(|error| panic!("{error}")).warnings.join("\n")
        };
        let rail = warning("kind = \"rail\"\nnodes = 8\ngpus = 8\nnodes_per_segment = 4\nspines = 4");
        assert!(rail.contains(" choose 1 of the 4 next hops that lead to them"), "{rail}");
        for keys in ["kind = \"fat-tree\"\nk = 6", "kind = \"leaf-spine\"\nhosts_per_leaf = 3\nspines = 4"] {
            assert_eq!(warning(keys), "", "{keys}");
        }
    }

    #[test]
    fn each_tier_reads_its_own_digit_of_the_destination() {
        let ports = [0, 1, 2, 3];
        let to = |dst| Packet { dst, ..Packet::default() };
        let (mut tor, mut agg) = (Destination { ways_below: 1 }, Destination { ways_below: 4 });
        assert_eq!([7, 8, 9].map(|dst| tor.choose(&to(dst), &ports, &Still::default())), [3, 0, 1]);
        assert_eq!([7, 8, 16].map(|dst| agg.choose(&to(dst), &ports, &Still::default())), [1, 2, 0]);
    }
}
