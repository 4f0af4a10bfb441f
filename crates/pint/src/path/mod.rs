//! Which switches a flow crossed, from its packets' digests.
//!
//! For every digest the decoder computes who wrote it. A digest that one unknown hop alone has written is an
//! equation for that hop: all ids whose hash differs are out. A hop with one id left is known; its hashes are
//! then XORed out of every digest it took part in, which may leave one unknown hop there (*peeling*). Nothing
//! is guessed: with the true switches among the ids, a reported path is the right one if all its digests took
//! one route; [`confirmation`] says whether it was seen again since. A digest that contradicts what is known,
//! or leaves a hop without an id, means that the path has changed.
//!
//! What is known of the network shrinks the choice further ([`Knowledge`]): consecutive hops are neighbours;
//! the first and the last are those of the flow's ends; hops i and j of a shortest path are |i - j| links
//! apart. With a network, digests of two unknown hops are used as well: an id stays only if some id of the
//! other hop goes with it.
//!
//! Without a list of ids, values are read in fragments ([`raw`]).
//!
//! The network constrains switch ids only. Numbers of ports repeat along a path: hashes of them are looked
//! for among the numbers that a switch's ports have, fragments are read as they are.
//!
//! Source: Ben Basat et al., "PINT", SIGCOMM 2020, §4.2 (peeling, hashing, fragments), §7 (change of path).
//! The use of the network is not in the paper.

mod candidates;
mod confirmation;
mod kind;
mod known;
mod network;
mod raw;
mod scan;

use crate::code::{Code, HOP_WORDS, HopSet, MAX_HOPS};
use crate::collector::{PathFindings, Paths, Step};
use crate::encoder::{Blocks, Field, Task};
use crate::graph::Graph;
use crate::hash::spread;
use crate::plan::Plan;
use crate::query::Value;
use crate::recorded::{Address, Flow};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

pub use kind::{DecoderKind, KindError};
pub use known::KnownPath;
pub use raw::RawPath;

/// Digests with several unknown hops that are kept for a flow; a further one takes the place of the oldest.
pub const MAX_KEPT: usize = 1024;
/// Networks up to this size have their distances stored (2 bytes a pair).
const STORED: usize = 4096;

/// What a decoder knows about the network, and how far it may trust it. If it is wrong, paths are not found,
/// or reported as changed.
#[derive(Debug, Clone, Default)]
pub struct Knowledge {
    /// The values that hops may have, and which of them are neighbours.
    pub graph: Graph,
    /// Consecutive hops are neighbours.
    pub neighbours: bool,
    /// The first and the last hop are the switches that the flow's ends are attached to, by the ends'
    /// numbers.
    pub ends: Option<BTreeMap<u64, u64>>,
    /// Paths are shortest paths between their ends (implies neighbours).
    pub shortest: bool,
    /// The ports of a switch have numbers below this; 0: their numbers are not known.
    pub ports: u32,
}

/// Why a plan's paths cannot be decoded with what is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathError {
    /// A network without links has no paths.
    NoLinks,
    /// A host is attached to a switch that is not in the network.
    NotThere { host: u64, switch: u64 },
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            PathError::NoLinks => {
                write!(f, "the topology has no links between switches: paths cannot be checked against it")
            }
            PathError::NotThere { host, switch } => {
                write!(f, "host {host} is attached to switch {switch}, which is not in the topology")
            }
        }
    }
}

impl std::error::Error for PathError {}

/// What a query's digests look like.
#[derive(Debug, Clone, Copy)]
struct Traced {
    code: Code,
    blocks: Blocks,
    /// Its values are numbers of ports, not ids of switches.
    of_ports: bool,
}

/// Decodes the paths of a plan's queries.
#[derive(Debug, Clone)]
pub struct PathDecoder {
    /// By query; none for those that trace no path, or cannot.
    queries: Vec<Option<Traced>>,
    untraced: Vec<usize>,
    knowledge: Knowledge,
    /// For hashes of numbers of ports, where these are known.
    ports: Option<Box<PathDecoder>>,
    /// The ids as they meet a packet's word in h.
    spread: Vec<u64>,
    /// By pair, if the network is small and paths are shortest.
    distances: Vec<u16>,
}

/// What is known of one flow's path.
#[derive(Debug, Clone)]
pub enum PathState {
    Known(KnownPath),
    Raw(RawPath),
    /// Of a query that traces no path.
    Nothing,
}

impl PathDecoder {
    /// Decodes what `plan`'s queries for paths carry.
    pub fn new(plan: &Plan, knowledge: Knowledge) -> Result<PathDecoder, PathError> {
        let of_ports = |query: usize| !matches!(plan.queries().queries[query].value, Value::SwitchId);
        PathDecoder::of(&plan.tasks(), of_ports, knowledge)
    }

    /// The same from an encoder's tasks, whose values are ids of switches.
    pub fn of_tasks(tasks: &[Task], knowledge: Knowledge) -> Result<PathDecoder, PathError> {
        PathDecoder::of(tasks, |_| false, knowledge)
    }

    fn of(
        tasks: &[Task],
        of_ports: impl Fn(usize) -> bool,
        knowledge: Knowledge,
    ) -> Result<PathDecoder, PathError> {
        let (mut queries, mut untraced) = (Vec::new(), Vec::new());
        let mut ports = None;
        for (query, task) in tasks.iter().enumerate() {
            let traced = match *task {
                Task::Path { code, blocks } => Some(Traced { code, blocks, of_ports: of_ports(query) }),
                _ => None,
            };
            let hashed = traced.filter(|traced| traced.blocks == Blocks::Hashed);
            let says_nothing = hashed.is_some_and(|traced| match traced.of_ports {
                true => knowledge.ports == 0,
                false => knowledge.graph.is_empty(),
            });
            if hashed.is_some_and(|traced| traced.of_ports) && !says_nothing && ports.is_none() {
                let graph = Graph::of_ids((0..u64::from(knowledge.ports)).collect()).unwrap_or_default();
                let numbers = Knowledge { graph, ..Knowledge::default() };
                ports = Some(Box::new(PathDecoder::of_tasks(&[], numbers)?));
            }
            if says_nothing {
                untraced.push(query);
            }
            queries.push(traced.filter(|_| !says_nothing));
        }
        let graph = &knowledge.graph;
        if knowledge.neighbours || knowledge.shortest {
            let alone = graph.len() > 1 && (0..graph.len() as u32).all(|node| graph.degree(node) == 0);
            if alone {
                return Err(PathError::NoLinks);
            }
        }
        for (&host, &switch) in knowledge.ends.iter().flatten() {
            if graph.index_of(switch).is_none() {
                return Err(PathError::NotThere { host, switch });
            }
        }
        let distances = if knowledge.shortest && graph.len() <= STORED {
            (0..graph.len() as u32).flat_map(|node| graph.distances_from(node)).collect()
        } else {
            Vec::new()
        };
        let spread = graph.ids().iter().map(|&id| spread(id)).collect();
        Ok(PathDecoder { queries, untraced, knowledge, ports, spread, distances })
    }

    /// Queries for paths that carry hashes, which cannot be decoded without a list of possible values: they
    /// are not decoded.
    pub fn untraced(&self) -> &[usize] {
        &self.untraced
    }

    /// The decoder that knows the values of a query.
    #[inline]
    fn knowing(&self, traced: &Traced) -> &PathDecoder {
        if traced.of_ports { self.ports.as_deref().unwrap_or(self) } else { self }
    }

    /// The switch that an end of a flow is attached to, where ends are known.
    fn end(&self, address: Address) -> Option<u32> {
        let Address::Number(host) = address else { return None };
        let switch = self.knowledge.ends.as_ref()?.get(&host)?;
        self.knowledge.graph.index_of(*switch)
    }

    /// Whether links say something of paths.
    fn is_networked(&self) -> bool {
        self.knowledge.neighbours || self.knowledge.shortest
    }

    /// Links from a switch to each.
    fn distances(&self, node: u32) -> Cow<'_, [u16]> {
        let (node, count) = (node as usize, self.knowledge.graph.len());
        match self.distances.get(node * count..(node + 1) * count) {
            Some(row) => Cow::Borrowed(row),
            None => Cow::Owned(self.knowledge.graph.distances_from(node as u32)),
        }
    }
}

impl Paths for PathDecoder {
    type Flow = PathState;

    fn start(&self, query: usize, flow: &Flow, hops: u32) -> PathState {
        let Some(traced) = self.queries.get(query).copied().flatten() else { return PathState::Nothing };
        let hops = hops.clamp(1, MAX_HOPS);
        match traced.blocks {
            Blocks::Fragments { count } if traced.of_ports || self.knowledge.graph.is_empty() => {
                PathState::Raw(RawPath::new(hops, count))
            }
            _ => {
                let decoder = self.knowing(&traced);
                let ends = (decoder.end(flow.source), decoder.end(flow.destination));
                PathState::Known(KnownPath::new(decoder, hops, ends))
            }
        }
    }

    fn take(&self, query: usize, state: &mut PathState, packet: u64, digest: u64, fields: &[Field]) -> Step {
        let Some(traced) = self.queries.get(query).copied().flatten() else { return Step::On };
        match state {
            PathState::Nothing => Step::On,
            PathState::Known(path) => path.take(self.knowing(&traced), &traced, packet, digest, fields),
            PathState::Raw(path) => path.take(&traced.code, packet, digest, fields),
        }
    }

    fn fits(&self, query: usize, state: &mut PathState, packet: u64, digest: u64, fields: &[Field]) -> bool {
        let Some(traced) = self.queries.get(query).copied().flatten() else { return true };
        match state {
            PathState::Nothing => true,
            PathState::Known(path) => path.fits(self.knowing(&traced), &traced, packet, digest, fields),
            PathState::Raw(path) => path.fits(&traced.code, packet, digest, fields),
        }
    }

    fn bytes(&self, state: &PathState) -> usize {
        match state {
            PathState::Nothing => 0,
            PathState::Known(path) => path.bytes(),
            PathState::Raw(path) => path.bytes(),
        }
    }

    fn findings(&self, query: usize, state: &PathState) -> PathFindings {
        match state {
            PathState::Nothing => PathFindings::default(),
            PathState::Known(path) => {
                let traced = self.queries.get(query).and_then(Option::as_ref);
                let decoder = traced.map_or(self, |traced| self.knowing(traced));
                path.findings(&decoder.knowledge.graph)
            }
            PathState::Raw(path) => path.findings(),
        }
    }
}

/// A digest that contradicts what is known.
struct Contradiction;

/// Hops (from 0) of a set.
#[inline]
fn hops_of(set: &HopSet) -> impl Iterator<Item = usize> + use<> {
    let (mut block, mut words) = (0, *set);
    std::iter::from_fn(move || {
        while words[block] == 0 {
            block += 1;
            if block == HOP_WORDS {
                block = 0;
                return None;
            }
        }
        let hop = words[block].trailing_zeros();
        words[block] &= words[block] - 1;
        Some(64 * block + hop as usize)
    })
}

fn size(set: &HopSet) -> u32 {
    set.iter().map(|word| word.count_ones()).sum()
}

fn insert(set: &mut HopSet, hop: usize) {
    set[hop / 64] |= 1 << (hop % 64);
}

fn remove(set: &mut HopSet, hop: usize) {
    set[hop / 64] &= !(1 << (hop % 64));
}

fn contains(set: &HopSet, hop: usize) -> bool {
    set[hop / 64] >> (hop % 64) & 1 == 1
}

fn intersection(set: &HopSet, known: &HopSet) -> HopSet {
    std::array::from_fn(|word| set[word] & known[word])
}

/// Those of `set` that are not in `known`.
fn unknown(set: &HopSet, known: &HopSet) -> HopSet {
    std::array::from_fn(|word| set[word] & !known[word])
}

#[cfg(test)]
mod tests;
