//! Cuts a network into parts that can be simulated side by side: about equal in work, few packets between
//! them, and no short link cut, because the shortest link between parts is how far one may run ahead of
//! another.
//!
//! What hangs together is grown part by part from one side of the network to the other (Karypis and Kumar's
//! greedy graph growing), switches with the hosts on them as units, and then improved by moving units across
//! the seams while that lets fewer packets cross or evens out the work (as Fiduccia and Mattheyses do, one
//! unit at a time).

use super::work::Work;
use crate::topology::{NodeKind, Topology};
use crate::units::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Which part each node belongs to, and what follows from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    pub part: Vec<u16>,
    pub parts: usize,
    /// The shortest delay of a link between parts; [`Time::MAX`] where there is none.
    pub lookahead: Time,
}

/// A part may have this much more than its share of the work, in per cent.
const SLACK: u64 = 2;
/// Rounds of improvement; it mostly ends by itself after two or three.
const ROUNDS: usize = 8;

impl Split {
    /// One part.
    pub fn whole(topology: &Topology) -> Split {
        Split { part: vec![0; topology.nodes.len()], parts: 1, lookahead: Time::MAX }
    }

    /// The hosts, then the switches.
    pub fn hosts_apart(topology: &Topology) -> Split {
        let part = topology.nodes.iter().map(|node| u16::from(node.kind != NodeKind::Host)).collect();
        Split { part, parts: 2, lookahead: Time::MAX }
    }

    /// At most `parts` parts, with the longest lookahead that leaves them about equal; fewer where the
    /// network does not have as many units, and one where only links without delay could be cut.
    pub fn new(topology: &Topology, work: &Work, parts: usize) -> Split {
        if parts < 2 {
            return Split::whole(topology);
        }
        let mut delays: Vec<Time> =
            topology.links.iter().map(|link| link.delay).filter(|&delay| delay > Time::ZERO).collect();
        delays.sort_unstable();
        delays.dedup();
        let mut best: Option<(u64, Split)> = None;
        // Longer links to be kept whole leave larger units, and so parts that are less equal.
        let (mut from, mut to) = (0, delays.len());
        while from < to {
            let middle = from + (to - from) / 2;
            let units = Units::new(topology, work, delays[middle]);
            let part_of_unit = units.split(parts);
            let split = Split::of(topology, &units, &part_of_unit);
            let heaviest = units.heaviest(&part_of_unit, parts);
            let equal = heaviest * 100 <= units.share(parts) * (100 + 2 * SLACK) && split.parts == parts;
            if equal || best.as_ref().is_none_or(|(weight, _)| heaviest < *weight) {
                best = Some((heaviest, split));
            }
            if equal { from = middle + 1 } else { to = middle }
        }
        best.map_or_else(|| Split::whole(topology), |(_, split)| split)
    }

    /// How many times as fast as one part all are together, the heaviest of them working all the time.
    pub fn gain(&self, work: &Work) -> f64 {
        let mut weights = vec![0u64; self.parts];
        for (&part, work) in self.part.iter().zip(&work.nodes) {
            weights[usize::from(part)] += work;
        }
        let heaviest = weights.iter().copied().max().unwrap_or(0).max(1);
        weights.iter().sum::<u64>() as f64 / heaviest as f64
    }

    fn of(topology: &Topology, units: &Units, part_of_unit: &[u16]) -> Split {
        // Parts without a unit are left out.
        let mut number = vec![u16::MAX; part_of_unit.len() + 1];
        let mut parts = 0;
        let mut part = Vec::with_capacity(topology.nodes.len());
        for node in 0..topology.nodes.len() {
            let of_unit = usize::from(part_of_unit[units.unit[node] as usize]);
            if number[of_unit] == u16::MAX {
                number[of_unit] = parts;
                parts += 1;
            }
            part.push(number[of_unit]);
        }
        let cut = topology.links.iter().filter(|link| part[link.a as usize] != part[link.b as usize]);
        let lookahead = cut.map(|link| link.delay).min().unwrap_or(Time::MAX);
        Split { part, parts: usize::from(parts).max(1), lookahead }
    }
}

/// Nodes that stay together.
struct Units {
    /// Of each node.
    unit: Vec<u32>,
    /// Work.
    weight: Vec<u64>,
    /// Neighbours, and packets on the links to them.
    links: Vec<Vec<(u32, u64)>>,
}

impl Units {
    /// Hosts stay with their switch, and nodes with links shorter than `shortest` between them together.
    fn new(topology: &Topology, work: &Work, shortest: Time) -> Units {
        let mut sets = Sets::new(topology.nodes.len());
        let mut placed = vec![false; topology.nodes.len()];
        for link in &topology.links {
            let is_host = |node: u32| topology.nodes[node as usize].kind == NodeKind::Host;
            let host = if is_host(link.a) { link.a } else { link.b };
            let first_of_host = is_host(host) && !std::mem::replace(&mut placed[host as usize], true);
            if first_of_host || link.delay < shortest {
                sets.join(link.a, link.b);
            }
        }
        let mut number = vec![u32::MAX; topology.nodes.len()];
        let (mut unit, mut count) = (Vec::new(), 0);
        for node in 0..topology.nodes.len() as u32 {
            let root = sets.root(node) as usize;
            if number[root] == u32::MAX {
                number[root] = count;
                count += 1;
            }
            unit.push(number[root]);
        }
        let (mut weight, mut links) = (vec![0; count as usize], vec![Vec::new(); count as usize]);
        for (&unit, work) in unit.iter().zip(&work.nodes) {
            weight[unit as usize] += work;
        }
        for (link, &packets) in topology.links.iter().zip(&work.links) {
            let (a, b) = (unit[link.a as usize], unit[link.b as usize]);
            if a != b {
                links[a as usize].push((b, packets));
                links[b as usize].push((a, packets));
            }
        }
        Units { unit, weight, links }
    }

    fn share(&self, parts: usize) -> u64 {
        self.weight.iter().sum::<u64>().div_ceil(parts as u64)
    }

    fn heaviest(&self, part: &[u16], parts: usize) -> u64 {
        let mut weights = vec![0; parts];
        part.iter().zip(&self.weight).for_each(|(&part, &weight)| weights[usize::from(part)] += weight);
        weights.into_iter().max().unwrap_or(0)
    }

    fn split(&self, parts: usize) -> Vec<u16> {
        let mut part = self.grow(parts);
        for _ in 0..ROUNDS {
            if !self.improve(&mut part, parts) {
                break;
            }
        }
        part
    }

    /// Grows one part after the other, each by the unit that has most in common with it.
    fn grow(&self, parts: usize) -> Vec<u16> {
        let mut part = vec![FREE; self.weight.len()];
        let mut left: u64 = self.weight.iter().sum();
        let mut first_free = 0;
        for number in 0..parts as u16 {
            let goal = left / (parts as u64 - u64::from(number));
            let mut grown = 0;
            let mut border = Border::new(part.len());
            while let Some(unit) = border.nearest(&part).or_else(|| {
                first_free = (first_free..part.len()).find(|&unit| part[unit] == FREE)?;
                Some(first_free)
            }) {
                let weight = self.weight[unit];
                // The last unit goes where it misses the goal by less.
                if grown > 0 && grown + weight / 2 > goal && usize::from(number) + 1 < parts {
                    break;
                }
                part[unit] = number;
                grown += weight;
                for &(other, packets) in &self.links[unit] {
                    border.add(other, packets);
                }
            }
            left -= grown;
        }
        part
    }

    /// Moves units to other parts where that lets fewer packets cross and both parts stay within their
    /// limits, or where it takes work from a part beyond its limit; whether any moved.
    fn improve(&self, part: &mut [u16], parts: usize) -> bool {
        let mut weights = vec![0u64; parts];
        part.iter().zip(&self.weight).for_each(|(&part, &weight)| weights[usize::from(part)] += weight);
        let share = self.share(parts);
        let (min, max) = (share * (100 - SLACK) / 100, share * (100 + SLACK) / 100);
        let mut moved = false;
        let mut common = vec![0u64; parts];
        for unit in 0..part.len() {
            common.fill(0);
            for &(other, packets) in &self.links[unit] {
                common[usize::from(part[other as usize])] += packets;
            }
            let (own, weight) = (usize::from(part[unit]), self.weight[unit]);
            let fits = |p: usize| p != own && weights[p] + weight <= max.max(weights[own].saturating_sub(1));
            let too_heavy = weights[own] > max;
            let better = |p: usize| common[p] > common[own] && weights[own] >= min + weight;
            let targets = (0..parts).filter(|&p| fits(p) && (too_heavy && common[p] > 0 || better(p)));
            // With equal cuts to the lighter part, with equal weights to the first.
            if let Some(best) = targets.max_by_key(|&p| (common[p], Reverse((weights[p], p)))) {
                part[unit] = best as u16;
                weights[own] -= weight;
                weights[best] += weight;
                moved = true;
            }
        }
        moved
    }
}

const FREE: u16 = u16::MAX;

/// The units next to a part that grows, by how much they have in common with it.
struct Border {
    pull: Vec<u64>,
    /// With the pull at the time; those that have grown since are there again.
    heap: BinaryHeap<(u64, Reverse<u32>)>,
}

impl Border {
    fn new(units: usize) -> Border {
        Border { pull: vec![0; units], heap: BinaryHeap::new() }
    }

    fn add(&mut self, unit: u32, packets: u64) {
        let pull = &mut self.pull[unit as usize];
        *pull += packets;
        self.heap.push((*pull, Reverse(unit)));
    }

    /// The free unit with most in common, the first of equals.
    fn nearest(&mut self, part: &[u16]) -> Option<usize> {
        while let Some((pull, Reverse(unit))) = self.heap.pop() {
            if part[unit as usize] == FREE && self.pull[unit as usize] == pull {
                return Some(unit as usize);
            }
        }
        None
    }
}

/// Disjoint sets of nodes.
struct Sets {
    parent: Vec<u32>,
}

impl Sets {
    fn new(count: usize) -> Sets {
        Sets { parent: (0..count as u32).collect() }
    }

    fn root(&mut self, mut node: u32) -> u32 {
        while self.parent[node as usize] != node {
            self.parent[node as usize] = self.parent[self.parent[node as usize] as usize];
            node = self.parent[node as usize];
        }
        node
    }

    fn join(&mut self, a: u32, b: u32) {
        let (a, b) = (self.root(a), self.root(b));
        self.parent[a.max(b) as usize] = a.min(b);
    }
}

#[cfg(test)]
mod tests;
