//! Classes of links, for totals in results: `host -> leaf`, `leaf -> spine`.

use super::{NodeKind, Topology};
use std::collections::BTreeSet;

/// Maximum number of classes of switches by their names; a network whose switches have names of towns has one
/// class.
const MAX_KINDS: usize = 8;

impl Topology {
    /// Returns the classes of links by the nodes at their ends, and for every port of every node the index of
    /// the class of its link. The class of a switch is its name without the number.
    pub fn link_kinds(&self) -> (Vec<String>, Vec<Vec<u16>>) {
        let stem = |name: &str| name.trim_end_matches(|c: char| c.is_ascii_digit()).to_string();
        let stems: BTreeSet<String> =
            self.nodes.iter().filter(|n| n.kind == NodeKind::Switch).map(|n| stem(&n.name)).collect();
        let kind = |node: u32| match &self.nodes[node as usize] {
            node if node.kind == NodeKind::Host => "host".to_string(),
            node if stems.len() <= MAX_KINDS && !stem(&node.name).is_empty() => stem(&node.name),
            _ => "switch".to_string(),
        };
        let mut kinds: Vec<String> = Vec::new();
        let mut number = |from: &str, to: &str| {
            let name = format!("{from} -> {to}");
            let known = kinds.iter().position(|kind| *kind == name);
            known.unwrap_or_else(|| {
                kinds.push(name);
                kinds.len() - 1
            }) as u16
        };
        let mut links = Vec::with_capacity(self.nodes.len());
        for (node, ports) in self.ports().iter().enumerate() {
            let from = kind(node as u32);
            links.push(ports.iter().map(|&(_, peer)| number(&from, &kind(peer))).collect());
        }
        (kinds, links)
    }
}

#[cfg(test)]
mod tests {
    use crate::topology::TopologyParameters;
    use crate::topology::leaf_spine::LeafSpine;

    #[test]
    fn links_are_distinguished_by_what_they_join() {
        let topology =
            LeafSpine { leaves: 2, spines: 1, hosts_per_leaf: 2, ..LeafSpine::default() }.build().unwrap();
        let (kinds, links) = topology.link_kinds();
        let of = |node: &str| {
            let place = topology.nodes.iter().position(|n| n.name == node).unwrap();
            links[place].iter().map(|&kind| kinds[usize::from(kind)].as_str()).collect::<Vec<_>>()
        };
        assert_eq!(of("host3"), ["host -> leaf"]);
        assert_eq!(of("leaf1"), ["leaf -> host", "leaf -> host", "leaf -> spine"]);
        assert_eq!(of("spine0"), ["spine -> leaf", "spine -> leaf"]);
    }

    #[test]
    fn switches_with_names_of_their_own_are_switches() {
        let mut topology =
            LeafSpine { leaves: 12, spines: 1, hosts_per_leaf: 1, ..LeafSpine::default() }.build().unwrap();
        let towns =
            "Aachen Bonn Celle Dresden Essen Fulda Goslar Halle Ilmenau Jena Kassel Leipzig Mainz".split(' ');
        for (node, town) in topology.nodes[12..].iter_mut().zip(towns) {
            node.name = town.into();
        }
        assert_eq!(topology.link_kinds().0, ["host -> switch", "switch -> host", "switch -> switch"]);
    }
}
