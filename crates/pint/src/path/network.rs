//! What the network reveals about a path: neighbours, distances, and digests of two unknown hops.

use super::candidates::{Candidates, bits};
use super::known::{Kept, KnownPath};
use super::{Contradiction, PathDecoder, contains, hops_of, insert, remove, size};
use crate::code::HopSet;
use crate::graph::Graph;

/// Digests of two unknown hops that are looked at again for one digest, at most; what is left is looked at when a hop shrinks again.
const MAX_TRIES: u32 = 1024;
/// Candidates of a hop whose distances to others are used, at most.
const FEW: usize = 4;
/// Bits of a hash by which pairs are matched; wider ones are matched by their lowest.
const MATCHED: u32 = 12;

/// What is still to be looked at because of one digest.
#[derive(Debug, Default)]
pub(super) struct Work {
    shrunk: HopSet,
    tries: u32,
}

impl Work {
    /// A hop has fewer candidates.
    pub fn shrunk(&mut self, hop: usize) {
        insert(&mut self.shrunk, hop);
    }

    /// The next hop that has.
    pub fn next(&mut self) -> Option<usize> {
        let hop = hops_of(&self.shrunk).next()?;
        remove(&mut self.shrunk, hop);
        Some(hop)
    }

    fn may_try(&mut self) -> bool {
        self.tries += 1;
        self.tries <= MAX_TRIES
    }
}

impl KnownPath {
    /// What follows for others from a hop that has fewer candidates.
    pub(super) fn use_network(
        &mut self,
        hop: usize,
        decoder: &PathDecoder,
        work: &mut Work,
    ) -> Result<(), Contradiction> {
        for next in [hop.wrapping_sub(1), hop + 1] {
            if next < self.hops.len() {
                self.keep_neighbours(hop, next, decoder, work)?;
            }
        }
        if decoder.knowledge.shortest {
            self.keep_distances(hop, decoder, work)?;
        }
        for at in 0..self.kept.len() {
            if contains(&self.kept[at].left, hop) {
                self.try_pair(at, decoder, work)?;
            }
        }
        Ok(())
    }

    /// Of `next`, only neighbours of what `hop` may be stay.
    fn keep_neighbours(
        &mut self,
        hop: usize,
        next: usize,
        decoder: &PathDecoder,
        work: &mut Work,
    ) -> Result<(), Contradiction> {
        let graph = &decoder.knowledge.graph;
        let Some(list) = self.hops[hop].listed() else { return Ok(()) };
        if graph.is_complete() {
            return match *list {
                [only] => self.keep(next, |id| id != only, decoder, work),
                _ => Ok(()),
            };
        }
        let near = Marked::neighbours(graph, list);
        if self.hops[next] == Candidates::All {
            let left = self.hops[next].narrow(graph.len(), near.iter());
            return self.note(next, 0, left, work);
        }
        self.keep(next, |id| near.has(id), decoder, work)
    }

    /// Of the others, only those as far from what `hop` may be as they are along the path stay.
    fn keep_distances(
        &mut self,
        hop: usize,
        decoder: &PathDecoder,
        work: &mut Work,
    ) -> Result<(), Contradiction> {
        let Some(here) = self.hops[hop].listed().filter(|list| list.len() <= FEW) else { return Ok(()) };
        let far: Vec<_> = here.iter().map(|&id| decoder.distances(id)).collect();
        for other in 0..self.hops.len() {
            let apart = other.abs_diff(hop) as u16;
            if apart > 1 {
                self.keep(other, |id| far.iter().any(|row| row[id as usize] == apart), decoder, work)?;
            }
        }
        Ok(())
    }

    /// Where a digest is of two unknown hops, those ids stay that go with one of the other hop.
    pub(super) fn try_pair(
        &mut self,
        at: usize,
        decoder: &PathDecoder,
        work: &mut Work,
    ) -> Result<(), Contradiction> {
        if !decoder.is_networked() || size(&self.kept[at].left) != 2 || !work.may_try() {
            return Ok(());
        }
        let kept = self.kept[at];
        let mut pair = hops_of(&kept.left);
        let (Some(a), Some(b)) = (pair.next(), pair.next()) else { return Ok(()) };
        self.keep_matching(kept, a, b, decoder, work)?;
        self.keep_matching(kept, b, a, decoder, work)
    }

    /// Of `hop`, those ids stay whose hash and that of an id of `other` give the digest together.
    fn keep_matching(
        &mut self,
        Kept { print, value, .. }: Kept,
        hop: usize,
        other: usize,
        decoder: &PathDecoder,
        work: &mut Work,
    ) -> Result<(), Contradiction> {
        // A hop that is known but not yet peeled comes up by itself.
        let (Candidates::Few { .. } | Candidates::Many(_)) = &self.hops[hop] else { return Ok(()) };
        let (Some(others), Some(own)) = (self.hops[other].listed(), self.hops[hop].listed()) else {
            return Ok(());
        };
        let graph = &decoder.knowledge.graph;
        if hop.abs_diff(other) == 1 {
            let goes = |x: u32| {
                let wanted = value ^ print.of(decoder, x);
                let writes = |y: u32| print.of(decoder, y) == wanted;
                if others.len() < graph.degree(x) {
                    return others.iter().any(|&y| writes(y) && graph.are_linked(x, y));
                }
                graph.neighbours(x).any(|y| writes(y) && others.binary_search(&y).is_ok())
            };
            let stay: Vec<u32> = own.iter().copied().filter(|&x| goes(x)).collect();
            return self.keep(hop, |id| stay.binary_search(&id).is_ok(), decoder, work);
        }
        // Every hash matches this number of ids: none would be excluded.
        if others.len() >> print.bits.min(MATCHED) >= 8 {
            return Ok(());
        }
        let low = |hash: u64| (hash & ((1 << MATCHED) - 1)) as usize;
        let mut met = [0u64; 1 << (MATCHED - 6)];
        for &y in others {
            let hash = low(value ^ print.of(decoder, y));
            met[hash / 64] |= 1 << (hash % 64);
        }
        let goes = |x: u32| {
            let hash = low(print.of(decoder, x));
            met[hash / 64] >> (hash % 64) & 1 == 1
        };
        self.keep(hop, goes, decoder, work)
    }
}

/// A set of switches as bits.
struct Marked {
    few: [u64; Marked::FEW],
    /// Of networks with more than 64 switches for each word of `few`.
    many: Vec<u64>,
}

impl Marked {
    const FEW: usize = 16;

    /// The neighbours of these.
    fn neighbours(graph: &Graph, list: &[u32]) -> Marked {
        let words = graph.len().div_ceil(64);
        let many = if words > Marked::FEW { vec![0; words] } else { Vec::new() };
        let mut marked = Marked { few: [0; Marked::FEW], many };
        let set = if words > Marked::FEW { &mut marked.many[..] } else { &mut marked.few[..] };
        for other in list.iter().flat_map(|&id| graph.neighbours(id)) {
            set[other as usize / 64] |= 1 << (other % 64);
        }
        marked
    }

    fn words(&self) -> &[u64] {
        if self.many.is_empty() { &self.few } else { &self.many }
    }

    fn has(&self, id: u32) -> bool {
        self.words()[id as usize / 64] >> (id % 64) & 1 == 1
    }

    /// Ascending.
    fn iter(&self) -> impl Iterator<Item = u32> {
        (0..).step_by(64).zip(self.words()).flat_map(|(first, &word)| bits(word, first))
    }
}
