//! Names of nodes and ports: `leaf0`, `leaf0.p3`, and patterns over them with `*` and `?`.
//!
//! `leaf0.p3` is port 3 of leaf0, counted from 0 in the order of the links; `leaf0->spine1` are the ports of
//! leaf0 that lead to spine1. Each side may be a pattern, and `leaf*` alone matches all ports.

use super::ports::Ports;
use super::{LinkId, NodeId, PortSet, Topology};
use crate::parameters::nearest;
use rustc_hash::FxHashMap;
use std::rc::Rc;
use std::str::Chars;

/// Whether `name` matches `pattern`, in which `*` matches any characters and `?` one.
pub fn fits(pattern: &str, name: &str) -> bool {
    let (mut pattern, mut name) = (pattern.chars(), name.chars());
    // Where to continue if the rest does not match: after the last star, which then matches one more
    // character.
    let mut retry: Option<(Chars, Chars)> = None;
    loop {
        let mut rest = name.clone();
        let Some(found) = rest.next() else { return pattern.all(|c| c == '*') };
        let mut after = pattern.clone();
        match (after.next(), &mut retry) {
            (Some('*'), _) => {
                retry = Some((after.clone(), name.clone()));
                pattern = after;
            }
            (Some(c), _) if c == '?' || c == found => (pattern, name) = (after, rest),
            (_, Some((after, from))) => {
                from.next();
                (pattern, name) = (after.clone(), from.clone());
            }
            (_, None) => return false,
        }
    }
}

/// Whether a pattern stands for one name only.
fn is_name(pattern: &str) -> bool {
    !pattern.contains(['*', '?'])
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
        PortPatterns::of(self).matching(pattern).map(|ports| ports.to_vec())
    }
}

/// Unknown names of nodes for which the nearest one is looked for.
const EXPLAINED: usize = 100;

/// The names of a network, for many patterns: what they have in common is looked up once.
pub struct PortPatterns<'t> {
    topology: &'t Topology,
    ports: Ports,
    by_name: FxHashMap<&'t str, NodeId>,
    /// By pattern, what it stands for.
    known: FxHashMap<String, Result<Rc<PortSet>, String>>,
    /// Unknown names so far.
    unknown: usize,
}

impl<'t> PortPatterns<'t> {
    pub fn of(topology: &'t Topology) -> PortPatterns<'t> {
        let names = topology.nodes.iter().map(|node| node.name.as_str());
        let (ports, by_name) = (topology.ports(), names.zip(0..).collect());
        PortPatterns { topology, ports, by_name, known: FxHashMap::default(), unknown: 0 }
    }

    pub fn topology(&self) -> &'t Topology {
        self.topology
    }

    /// As [`Topology::find_node`].
    pub fn find_node(&self, name: &str) -> Option<NodeId> {
        self.by_name.get(name).copied()
    }

    /// As [`Topology::unknown_node`]; of many, the later ones without the nearest name.
    pub fn unknown_node(&mut self, name: &str) -> String {
        self.unknown += 1;
        if self.unknown <= EXPLAINED {
            self.topology.unknown_node(name)
        } else {
            format!("unknown node \"{name}\"")
        }
    }

    /// The nodes that a pattern stands for, in order.
    fn nodes(&mut self, pattern: &str) -> Result<Vec<NodeId>, String> {
        let found: Vec<NodeId> = match is_name(pattern) {
            true => self.find_node(pattern).into_iter().collect(),
            false => {
                let nodes = self.topology.nodes.iter().zip(0..);
                nodes.filter(|(node, _)| fits(pattern, &node.name)).map(|(_, id)| id).collect()
            }
        };
        if found.is_empty() { Err(self.unknown_node(pattern)) } else { Ok(found) }
    }

    /// As [`Topology::ports_matching`].
    pub fn matching(&mut self, pattern: &str) -> Result<Rc<PortSet>, String> {
        if let Some(known) = self.known.get(pattern) {
            return known.clone();
        }
        let found = self.search(pattern).map(Rc::new);
        self.known.insert(pattern.to_string(), found.clone());
        found
    }

    fn search(&mut self, pattern: &str) -> Result<PortSet, String> {
        let (node_part, port_part, to_part) = match (pattern.split_once("->"), pattern.split_once('.')) {
            (Some((node, to)), _) => (node.trim(), "*", to.trim()),
            (None, Some((node, port))) => (node, port, "*"),
            (None, None) => (pattern, "*", "*"),
        };
        let nodes = self.nodes(node_part)?;
        let leads_to: Option<Vec<bool>> = match to_part {
            "*" => None,
            _ => {
                let mut chosen = vec![false; self.topology.nodes.len()];
                self.nodes(to_part)?.into_iter().for_each(|node| chosen[node as usize] = true);
                Some(chosen)
            }
        };
        let mut found = PortSet::new();
        for &node in &nodes {
            for (&(_, neighbour), port) in self.ports[node as usize].iter().zip(0u32..) {
                let named = port_part == "*" || fits(port_part, &format!("p{port}"));
                if named && leads_to.as_ref().is_none_or(|chosen| chosen[neighbour as usize]) {
                    found.push((node, port));
                }
            }
        }
        if !found.is_empty() {
            return Ok(found);
        }
        let max = nodes.iter().map(|&n| self.ports[n as usize].len()).max().unwrap_or(0);
        Err(match pattern.contains("->") {
            true => format!(
                "no port matches \"{pattern}\": there is no link between \"{node_part}\" and \
                             \"{to_part}\""
            ),
            false => format!(
                "no port matches \"{pattern}\": expected a name such as \"{}\" ({max} ports, p0 to p{})",
                self.topology.port_name(nodes[0], 0),
                max.saturating_sub(1)
            ),
        })
    }
}

#[cfg(test)]
mod tests;
