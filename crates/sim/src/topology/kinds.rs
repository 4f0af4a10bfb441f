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
mod tests;
