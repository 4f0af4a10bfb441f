//! The network as a decoder of paths knows it: ids of switches, and which of them are neighbours.

use std::collections::VecDeque;
use std::fmt;

/// Switches by index, in the order of their ids, with their neighbours.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Graph {
    ids: Vec<u64>,
    /// Where each switch's neighbours begin in `others`.
    starts: Vec<u32>,
    others: Vec<u32>,
    /// Every switch is every other's neighbour; no links are listed.
    complete: bool,
}

/// Why there is no graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GraphError {
    /// An id is in the list twice.
    Repeated(u64),
    /// A link joins a switch with itself.
    SelfLoop(u64),
    /// A link names an id that is not in the list.
    Unknown(u64),
    /// More than 2^31 switches or links.
    TooLarge,
}

impl fmt::Display for GraphError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            GraphError::Repeated(id) => write!(f, "switch {id} is listed twice"),
            GraphError::SelfLoop(id) => write!(f, "a link joins switch {id} with itself"),
            GraphError::Unknown(id) => {
                write!(f, "a link names switch {id}, which is not in the list of switches")
            }
            GraphError::TooLarge => write!(f, "more than {} switches or links", 1u32 << 31),
        }
    }
}

impl std::error::Error for GraphError {}

impl Graph {
    /// Of switches without links: no more is known than which ids there are.
    pub fn of_ids(ids: Vec<u64>) -> Result<Graph, GraphError> {
        Graph::new(ids, &[]).map(|(graph, _)| graph)
    }

    /// Of switches and links between them (in either order), and how many links were given more than once: those count once.
    pub fn new(mut ids: Vec<u64>, links: &[(u64, u64)]) -> Result<(Graph, u64), GraphError> {
        if ids.len().max(links.len()) > 1 << 31 {
            return Err(GraphError::TooLarge);
        }
        ids.sort_unstable();
        if let Some(pair) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(GraphError::Repeated(pair[0]));
        }
        let index = |id: u64| ids.binary_search(&id).map_err(|_| GraphError::Unknown(id));
        let mut both = Vec::with_capacity(2 * links.len());
        for &(a, b) in links {
            if a == b {
                return Err(GraphError::SelfLoop(a));
            }
            let (a, b) = (index(a)? as u32, index(b)? as u32);
            both.extend([(a, b), (b, a)]);
        }
        both.sort_unstable();
        let given = both.len();
        both.dedup();
        let mut starts = vec![0u32; ids.len() + 1];
        both.iter().for_each(|&(from, _)| starts[from as usize + 1] += 1);
        for node in 0..ids.len() {
            starts[node + 1] += starts[node];
        }
        let repeated = (given - both.len()) as u64 / 2;
        let others = both.into_iter().map(|(_, to)| to).collect();
        Ok((Graph { ids, starts, others, complete: false }, repeated))
    }

    /// Of switches of which each is every other's neighbour: all that is known is that two hops next to each other differ.
    pub fn complete(ids: Vec<u64>) -> Result<Graph, GraphError> {
        Ok(Graph { complete: true, ..Graph::of_ids(ids)? })
    }

    /// Ids, ascending.
    pub fn ids(&self) -> &[u64] {
        &self.ids
    }

    /// Number of switches.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// The place of an id.
    pub fn index_of(&self, id: u64) -> Option<u32> {
        self.ids.binary_search(&id).ok().map(|index| index as u32)
    }

    /// Whether it is one of [`Graph::complete`].
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Those that a switch has listed: none of a complete graph.
    #[inline]
    fn listed(&self, index: u32) -> &[u32] {
        &self.others[self.starts[index as usize] as usize..self.starts[index as usize + 1] as usize]
    }

    /// Ascending.
    #[inline]
    pub fn neighbours(&self, index: u32) -> impl Iterator<Item = u32> + use<'_> {
        let all = if self.complete { self.len() as u32 } else { 0 };
        let others = (0..all).filter(move |&other| other != index);
        self.listed(index).iter().copied().chain(others)
    }

    /// How many neighbours a switch has.
    #[inline]
    pub fn degree(&self, index: u32) -> usize {
        if self.complete { self.len() - 1 } else { self.listed(index).len() }
    }

    /// Whether two switches are neighbours.
    #[inline]
    pub fn are_linked(&self, a: u32, b: u32) -> bool {
        if self.complete { a != b } else { self.listed(a).binary_search(&b).is_ok() }
    }

    /// Links from one switch to each; `u16::MAX` where there is no way, or a longer one.
    pub fn distances_from(&self, index: u32) -> Vec<u16> {
        let first = if self.complete { 1 } else { u16::MAX };
        let mut distances = vec![first; self.len()];
        distances[index as usize] = 0;
        if self.complete {
            return distances;
        }
        let mut queue = VecDeque::from([index]);
        while let Some(node) = queue.pop_front() {
            let next = distances[node as usize].saturating_add(1);
            for &other in self.listed(node) {
                if distances[other as usize] == u16::MAX && next < u16::MAX {
                    distances[other as usize] = next;
                    queue.push_back(other);
                }
            }
        }
        distances
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_count_once_in_both_directions() {
        let (graph, repeated) = Graph::new(vec![30, 10, 20], &[(10, 20), (20, 10), (20, 30)]).unwrap();
        assert_eq!((graph.ids(), repeated), (&[10, 20, 30][..], 1));
        assert_eq!(graph.neighbours(1).collect::<Vec<_>>(), [0, 2]);
        assert!(graph.are_linked(2, 1) && !graph.are_linked(2, 0));
        assert_eq!(graph.distances_from(0), [0, 1, 2]);
        assert_eq!(Graph::of_ids(vec![7, 8]).unwrap().distances_from(0), [0, u16::MAX]);
    }

    #[test]
    fn a_complete_graph_has_a_link_for_every_pair() {
        let pairs = [(1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)];
        let alone: &[(u64, u64)] = &[];
        for (ids, links) in [(vec![4, 2, 1, 3], &pairs[..]), (vec![7], alone), (vec![], alone)] {
            let complete = Graph::complete(ids.clone()).unwrap();
            let (listed, _) = Graph::new(ids, links).unwrap();
            assert_eq!(complete.ids(), listed.ids());
            for node in 0..listed.len() as u32 {
                assert!(complete.neighbours(node).eq(listed.neighbours(node)));
                assert_eq!(complete.degree(node), listed.degree(node));
                assert_eq!(complete.distances_from(node), listed.distances_from(node));
                for other in 0..listed.len() as u32 {
                    assert_eq!(complete.are_linked(node, other), listed.are_linked(node, other));
                }
            }
        }
        assert_eq!(Graph::complete(vec![1, 1]), Err(GraphError::Repeated(1)));
    }

    #[test]
    fn what_cannot_be_a_network_is_refused() {
        assert_eq!(Graph::new(vec![1, 1], &[]), Err(GraphError::Repeated(1)));
        assert_eq!(Graph::new(vec![1, 2], &[(2, 2)]), Err(GraphError::SelfLoop(2)));
        assert_eq!(Graph::new(vec![1, 2], &[(2, 3)]), Err(GraphError::Unknown(3)));
    }
}
