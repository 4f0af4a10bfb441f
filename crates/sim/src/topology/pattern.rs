//! Names of nodes and ports: `leaf0`, `leaf0.p3`, and patterns over them with `*` and `?`.
//!
//! `leaf0.p3` is port 3 of leaf0, counted from 0 in the order of the links; `leaf0->spine1` are the ports of
//! leaf0 that lead to spine1. Each side may be a pattern, and `leaf*` alone matches all ports.

use super::{LinkId, NodeId, PortSet, Topology};
use crate::parameters::nearest;

/// Whether `name` matches `pattern`, in which `*` matches any characters and `?` one.
pub fn fits(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    let (mut p, mut n) = (0, 0);
    // Where to continue if the rest does not match: after the last star, which then matches one more
    // character.
    let mut retry: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                retry = Some((p + 1, n));
                p += 1;
            }
            Some(&c) if c == '?' || c == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match retry {
                Some((after, from)) => {
                    retry = Some((after, from + 1));
                    (p, n) = (after, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&c| c == '*')
}

impl Topology {
    pub fn find_node(&self, name: &str) -> Option<NodeId> {
        self.nodes.iter().position(|node| node.name == name).map(|n| n as NodeId)
    }

    /// `unknown node "lef0": did you mean "leaf0"?`
    pub fn unknown_node(&self, name: &str) -> String {
        let words: String = name.chars().filter(|c| !matches!(c, '*' | '?')).collect();
        match nearest(&words, self.nodes.iter().map(|node| node.name.as_str())) {
            Some(near) => format!("unknown node \"{name}\": did you mean \"{near}\"?"),
            None => {
                let few: Vec<&str> = self.examples().collect();
                format!(
                    "unknown node \"{name}\" (there are {} nodes, such as {})",
                    self.nodes.len(),
                    few.join(", ")
                )
            }
        }
    }

    /// The first node of each tier.
    fn examples(&self) -> impl Iterator<Item = &str> {
        let top = self.nodes.iter().map(|node| node.tier).max().unwrap_or(0);
        (0..=top).filter_map(|tier| self.nodes.iter().find(|n| n.tier == tier)).map(|n| n.name.as_str())
    }

    /// Returns the nodes whose name matches the pattern, in order. Errors: no node matches; the message
    /// offers the nearest name.
    pub fn nodes_matching(&self, pattern: &str) -> Result<Vec<NodeId>, String> {
        let found: Vec<NodeId> = (0..self.nodes.len())
            .filter(|&n| fits(pattern, &self.nodes[n].name))
            .map(|n| n as NodeId)
            .collect();
        if found.is_empty() { Err(self.unknown_node(pattern)) } else { Ok(found) }
    }

    /// The name of a port in results: `leaf0.p3`.
    pub fn port_name(&self, node: NodeId, port: u32) -> String {
        format!("{}.p{port}", self.nodes[node as usize].name)
    }

    /// The name of a link in the direction away from `from`: `leaf0->spine1`.
    pub fn direction_name(&self, link: LinkId, from: NodeId) -> String {
        let Some(link) = self.links.get(link as usize) else { return String::new() };
        let to = if link.a == from { link.b } else { link.a };
        format!("{}->{}", self.nodes[from as usize].name, self.nodes[to as usize].name)
    }

    /// Returns the ports that match `node.pN`, `node->neighbour` or `node` (all its ports), each part a
    /// pattern, in order of (node, port). Errors: nothing matches.
    pub fn ports_matching(&self, pattern: &str) -> Result<PortSet, String> {
        let ports = self.ports();
        let (node_part, port_part, to_part) = match (pattern.split_once("->"), pattern.split_once('.')) {
            (Some((node, to)), _) => (node.trim(), "*", to.trim()),
            (None, Some((node, port))) => (node, port, "*"),
            (None, None) => (pattern, "*", "*"),
        };
        let nodes = self.nodes_matching(node_part)?;
        if to_part != "*" {
            self.nodes_matching(to_part)?;
        }
        let mut found = PortSet::new();
        for &node in &nodes {
            for (port, &(_, neighbour)) in ports[node as usize].iter().enumerate() {
                let named = port_part == "*" || fits(port_part, &format!("p{port}"));
                if named && fits(to_part, &self.nodes[neighbour as usize].name) {
                    found.push((node, port as u32));
                }
            }
        }
        if !found.is_empty() {
            return Ok(found);
        }
        let max = nodes.iter().map(|&n| ports[n as usize].len()).max().unwrap_or(0);
        Err(match pattern.contains("->") {
            true => format!(
                "no port matches \"{pattern}\": there is no link between \"{node_part}\" and \
                             \"{to_part}\""
            ),
            false => format!(
                "no port matches \"{pattern}\": expected a name such as \"{}\" ({max} ports, p0 to p{})",
                self.port_name(nodes[0], 0),
                max.saturating_sub(1)
            ),
        })
    }
}

#[cfg(test)]
mod tests;
