//! The ports of all nodes in one list.

use std::ops::Index;

use super::{LinkId, NodeId, Topology};

/// For each node, its ports: (link, neighbour), in the order of the links.
#[derive(Default, Debug, Clone)]
pub struct Ports {
    /// By node: index of its first port in `list`; one more at the end.
    first: Vec<u32>,
    list: Vec<(LinkId, NodeId)>,
}

impl Ports {
    pub(super) fn of(topology: &Topology) -> Ports {
        // Index of the next port of each node, one node later: in the end that of the node's first port.
        let mut first = vec![0u32; topology.nodes.len() + 2];
        let ends = |&super::Link { a, b, .. }: &super::Link| [(a, b), (b, a)];
        topology.links.iter().flat_map(ends).for_each(|(node, _)| first[node as usize + 2] += 1);
        (2..first.len()).for_each(|at| first[at] += first[at - 1]);
        let mut list = vec![(0, 0); 2 * topology.links.len()];
        for (link, link_ends) in topology.links.iter().map(ends).enumerate() {
            for (node, neighbour) in link_ends {
                let next = &mut first[node as usize + 1];
                list[*next as usize] = (link as LinkId, neighbour);
                *next += 1;
            }
        }
        first.pop();
        Ports { first, list }
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.first.len() - 1
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The ports of each node in turn.
    pub fn iter(&self) -> impl Iterator<Item = &[(LinkId, NodeId)]> {
        (0..self.len()).map(|node| &self[node])
    }
}

impl Index<usize> for Ports {
    type Output = [(LinkId, NodeId)];

    fn index(&self, node: usize) -> &Self::Output {
        &self.list[self.first[node] as usize..self.first[node + 1] as usize]
    }
}
