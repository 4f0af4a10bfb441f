//! Shortest paths of a given number of switches, drawn at random: what flows take when packets to decode a path are counted.
//!
//! Both ends are drawn among all pairs that far apart, in both directions; of several shortest paths, each step back towards the source
//! is drawn among the neighbours that are nearer to it.
//!
//! Source: Ben Basat et al., "PINT", SIGCOMM 2020, §6.3 (paths of every length up to the diameter). How the paper chose among the pairs of
//! one length is not stated.

use crate::accuracy::Draws;
use crate::graph::Graph;
use std::fmt;

/// Sources that are looked at, at most; of a larger network this many, evenly spread.
const MAX_SOURCES: usize = 4096;

/// The pairs of switches whose shortest paths have the same number of switches.
#[derive(Debug, Clone)]
pub struct Routes<'g> {
    graph: &'g Graph,
    hops: u32,
    ends: Vec<bool>,
    sources: Vec<u32>,
    /// Pairs up to and including each source's.
    until: Vec<u64>,
}

/// No two switches are that far apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoRoute {
    pub hops: u32,
    /// Switches on the longest shortest path.
    pub longest: u32,
}

impl fmt::Display for NoRoute {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let NoRoute { hops, longest } = self;
        write!(f, "no shortest path of the topology has {hops} switches; the longest has {longest}")
    }
}

impl std::error::Error for NoRoute {}

impl<'g> Routes<'g> {
    /// Paths of `hops` switches, at least one, whose ends `may_end` holds for; where it holds for no pair that far apart, between any two.
    pub fn new(graph: &'g Graph, hops: u32, may_end: impl Fn(u32) -> bool) -> Result<Routes<'g>, NoRoute> {
        let count = graph.len();
        let step = count.div_ceil(MAX_SOURCES).max(1);
        let sources: Vec<u32> = (0..count).step_by(step).map(|source| source as u32).collect();
        let mut ends: Vec<bool> = (0..count as u32).map(may_end).collect();
        let mut longest = 0;
        for _ in 0..2 {
            let mut routes = Routes { graph, hops, ends, sources: Vec::new(), until: Vec::new() };
            let mut pairs = 0;
            for &source in &sources {
                let distances = graph.distances_from(source);
                longest =
                    longest.max(distances.iter().copied().filter(|&far| far < u16::MAX).max().unwrap_or(0));
                let found = routes.targets(source, &distances).len() as u64;
                if found > 0 {
                    pairs += found;
                    routes.sources.push(source);
                    routes.until.push(pairs);
                }
            }
            if pairs > 0 {
                return Ok(routes);
            }
            ends = vec![true; count];
        }
        Err(NoRoute { hops, longest: u32::from(longest) + 1 })
    }

    /// The ids of one path's switches, in order.
    pub fn draw(&self, draws: &mut Draws) -> Vec<u64> {
        let pair = draws.below(self.until.last().copied().unwrap_or(1));
        let place = self.until.partition_point(|&until| until <= pair);
        let source = self.sources[place];
        let distances = self.graph.distances_from(source);
        let targets = self.targets(source, &distances);
        let before = if place == 0 { 0 } else { self.until[place - 1] };
        let mut node = targets[(pair - before) as usize];
        let mut path = vec![self.graph.ids()[node as usize]];
        while node != source {
            let nearer = |other: &u32| distances[*other as usize] + 1 == distances[node as usize];
            let ways: Vec<u32> = self.graph.neighbours(node).filter(nearer).collect();
            node = ways[draws.below(ways.len() as u64) as usize];
            path.push(self.graph.ids()[node as usize]);
        }
        path.reverse();
        path
    }

    /// The other ends of a source's paths.
    fn targets(&self, source: u32, distances: &[u16]) -> Vec<u32> {
        if !self.ends[source as usize] {
            return Vec::new();
        }
        let far =
            |node: &u32| u32::from(distances[*node as usize]) + 1 == self.hops && self.ends[*node as usize];
        (0..distances.len() as u32).filter(far).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// A square 1-2-3-4 with a tail 4-5.
    fn square() -> Graph {
        Graph::new(vec![1, 2, 3, 4, 5], &[(1, 2), (2, 3), (3, 4), (4, 1), (4, 5)]).unwrap().0
    }

    #[test]
    fn the_pairs_that_far_apart_come_equally_often_and_so_do_their_ways() {
        let graph = square();
        let routes = Routes::new(&graph, 4, |_| true).unwrap();
        let mut draws = Draws::new(1);
        let mut seen: BTreeMap<Vec<u64>, u32> = BTreeMap::new();
        (0..4_000).for_each(|_| *seen.entry(routes.draw(&mut draws)).or_default() += 1);
        let paths: Vec<&[u64]> = seen.keys().map(Vec::as_slice).collect();
        assert_eq!(paths, [[2, 1, 4, 5], [2, 3, 4, 5], [5, 4, 1, 2], [5, 4, 3, 2]]);
        assert!(seen.values().all(|&count| (850..1_150).contains(&count)), "{seen:?}");
    }

    #[test]
    fn ends_are_those_that_may_be_where_two_are_that_far_apart() {
        let graph = square();
        let mut draws = Draws::new(2);
        let may_end = |index: u32| index == 1 || index == 3;
        let routes = Routes::new(&graph, 3, may_end).unwrap();
        assert!((0..100).all(|_| matches!(routes.draw(&mut draws)[..], [2, _, 4] | [4, _, 2])));
        assert_eq!(Routes::new(&graph, 4, may_end).unwrap().draw(&mut draws).len(), 4);
        assert_eq!(Routes::new(&graph, 1, may_end).unwrap().draw(&mut draws).len(), 1);
        let why = Routes::new(&graph, 5, may_end).unwrap_err();
        assert_eq!(why.to_string(), "no shortest path of the topology has 5 switches; the longest has 4");
    }
}
