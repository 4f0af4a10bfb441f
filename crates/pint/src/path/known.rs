//! Paths over a list of ids: candidates are struck out, and what is known of the network strikes out more.

use super::{
    Contradiction, MOST_KEPT, PathDecoder, Traced, contains, hops_of, insert, remove, size, unknown,
};
use crate::code::{HopSet, Layer, survivor};
use crate::collector::{PathFindings, Step};
use crate::encoder::{Field, block};
use crate::graph::Graph;
use crate::hash::Word;

/// The ids that a hop may have, as indices.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Choice {
    All,
    /// Ascending, at least two.
    Some(Vec<u32>),
    One(u32),
}

/// What is known of a path over a list of ids.
#[derive(Debug, Clone)]
pub struct KnownPath {
    hops: Vec<Choice>,
    /// The hops with one id left.
    known: HopSet,
    open: u32,
    kept: Vec<Kept>,
    /// The next of `kept` to give way.
    oldest: usize,
    /// What was known at the start leaves no path.
    impossible: bool,
}

/// A digest of several unknown hops.
#[derive(Debug, Clone)]
struct Kept {
    word: Word,
    bits: u32,
    /// The unknown hops, and what is left when the known ones are XORed out.
    left: HopSet,
    value: u64,
}

/// Pairs of ids that a digest of two unknown hops is tried with, at most.
const MOST_PAIRS: usize = 4096;
/// Candidates of a hop whose distances to others are used, at most.
const FEW: usize = 4;

/// Hops whose choice has shrunk.
type Shrunk = Vec<usize>;

impl KnownPath {
    pub(super) fn new(decoder: &PathDecoder, hops: u32, ends: (Option<u32>, Option<u32>)) -> KnownPath {
        let mut path = KnownPath {
            hops: vec![Choice::All; hops as usize],
            known: [0; 4],
            open: hops,
            kept: Vec::new(),
            oldest: 0,
            impossible: false,
        };
        let last = hops as usize - 1;
        let begun = [(0, ends.0), (last, ends.1)].into_iter().try_for_each(|(hop, end)| {
            let Some(end) = end else { return Ok(()) };
            path.keep(hop, |id| id == end, decoder).map(|_| ())
        });
        let mut shrunk: Shrunk = (0..hops as usize).filter(|&hop| path.hops[hop] != Choice::All).collect();
        path.impossible = begun.is_err() || path.spread(decoder, None, &mut shrunk).is_err();
        path
    }

    pub(super) fn take(
        &mut self,
        decoder: &PathDecoder,
        traced: &Traced,
        packet: u64,
        digest: u64,
        fields: &[Field],
    ) -> Step {
        let before = self.open;
        for field in fields {
            let word = field.key.word(packet);
            let (bits, value) = (u32::from(field.bits), field.read(digest));
            if self.impossible || self.take_field(decoder, traced, word, bits, value).is_err() {
                return Step::Contradiction;
            }
        }
        if before > 0 && self.open == 0 { Step::Decoded } else { Step::On }
    }

    fn take_field(
        &mut self,
        decoder: &PathDecoder,
        traced: &Traced,
        word: Word,
        bits: u32,
        value: u64,
    ) -> Result<(), Contradiction> {
        let ids = decoder.knowledge.graph.ids();
        let writes = |id: u32| block(traced.blocks, bits, word, ids[id as usize]);
        let count = self.hops.len() as u32;
        let selection = match traced.code.layer(word) {
            Layer::Baseline => {
                let hop = survivor(word, count) as usize - 1;
                return match self.hops[hop] {
                    Choice::One(id) if writes(id) == value => Ok(()),
                    Choice::One(_) => Err(Contradiction),
                    _ => self.learn(hop, |id| writes(id) == value, decoder, traced),
                };
            }
            Layer::Xor(selection) => selection,
        };
        let all = selection.contributors(word, count);
        let mut rest = value;
        let left = unknown(&all, &self.known);
        for hop in hops_of(&all) {
            if let Choice::One(id) = self.hops[hop] {
                rest ^= writes(id);
            }
        }
        match size(&left) {
            0 if rest != 0 => Err(Contradiction),
            0 => Ok(()),
            1 => {
                let hop = hops_of(&left).next().unwrap_or(0);
                self.learn(hop, |id| writes(id) == rest, decoder, traced)
            }
            _ => {
                let kept = Kept { word, bits, left, value: rest };
                let at = if self.kept.len() < MOST_KEPT {
                    self.kept.push(kept);
                    self.kept.len() - 1
                } else {
                    self.oldest = (self.oldest + 1) % MOST_KEPT;
                    self.kept[self.oldest] = kept;
                    self.oldest
                };
                let mut shrunk = Shrunk::new();
                self.try_pairs(at, decoder, traced, &mut shrunk)?;
                self.spread(decoder, Some(traced), &mut shrunk)
            }
        }
    }

    /// Strikes out the ids of a hop that `stays` is false for, and what follows from that.
    fn learn(
        &mut self,
        hop: usize,
        stays: impl Fn(u32) -> bool,
        decoder: &PathDecoder,
        traced: &Traced,
    ) -> Result<(), Contradiction> {
        if !self.keep(hop, stays, decoder)? {
            return Ok(());
        }
        self.spread(decoder, Some(traced), &mut vec![hop])
    }

    /// Strikes out ids of a hop; whether there were any.
    fn keep(
        &mut self,
        hop: usize,
        stays: impl Fn(u32) -> bool,
        decoder: &PathDecoder,
    ) -> Result<bool, Contradiction> {
        let left = match &mut self.hops[hop] {
            Choice::One(id) => return if stays(*id) { Ok(false) } else { Err(Contradiction) },
            Choice::Some(list) => {
                let before = list.len();
                list.retain(|&id| stays(id));
                if list.len() == before {
                    return Ok(false);
                }
                std::mem::take(list)
            }
            Choice::All => {
                let count = decoder.knowledge.graph.len();
                let list: Vec<u32> = (0..count as u32).filter(|&id| stays(id)).collect();
                if list.len() == count && count > 1 {
                    return Ok(false);
                }
                list
            }
        };
        self.hops[hop] = match left[..] {
            [] => return Err(Contradiction),
            [id] => {
                insert(&mut self.known, hop);
                self.open -= 1;
                Choice::One(id)
            }
            _ => Choice::Some(left),
        };
        Ok(true)
    }

    /// Works off what follows from choices that have shrunk.
    fn spread(
        &mut self,
        decoder: &PathDecoder,
        traced: Option<&Traced>,
        shrunk: &mut Shrunk,
    ) -> Result<(), Contradiction> {
        while let Some(hop) = shrunk.pop() {
            if let (Some(traced), Choice::One(id)) = (traced, &self.hops[hop]) {
                let id = *id;
                self.peel(hop, id, decoder, traced, shrunk)?;
            }
            if decoder.knowledge.neighbours || decoder.knowledge.shortest {
                for next in [hop.wrapping_sub(1), hop + 1] {
                    if next < self.hops.len() && self.keep_neighbours(hop, next, decoder)? {
                        shrunk.push(next);
                    }
                }
                if decoder.knowledge.shortest {
                    self.keep_distances(hop, decoder, shrunk)?;
                }
                if let Some(traced) = traced {
                    self.try_pairs_of(hop, decoder, traced, shrunk)?;
                }
            }
        }
        Ok(())
    }

    /// A hop has become known: it is XORed out of the digests that it took part in.
    fn peel(
        &mut self,
        hop: usize,
        id: u32,
        decoder: &PathDecoder,
        traced: &Traced,
        shrunk: &mut Shrunk,
    ) -> Result<(), Contradiction> {
        let ids = decoder.knowledge.graph.ids();
        let mut at = 0;
        while at < self.kept.len() {
            let kept = &mut self.kept[at];
            if !contains(&kept.left, hop) {
                at += 1;
                continue;
            }
            kept.value ^= block(traced.blocks, kept.bits, kept.word, ids[id as usize]);
            remove(&mut kept.left, hop);
            if size(&kept.left) > 1 {
                at += 1;
                continue;
            }
            let Kept { word, bits, left, value } = self.kept.swap_remove(at);
            match hops_of(&left).next() {
                None if value != 0 => return Err(Contradiction),
                None => {}
                Some(other) => {
                    let writes = |id: u32| block(traced.blocks, bits, word, ids[id as usize]);
                    if self.keep(other, |id| writes(id) == value, decoder)? {
                        shrunk.push(other);
                    }
                }
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
    ) -> Result<bool, Contradiction> {
        let graph = &decoder.knowledge.graph;
        let near = match &self.hops[hop] {
            Choice::All => return Ok(false),
            Choice::One(id) => marked(graph, std::slice::from_ref(id)),
            Choice::Some(list) => marked(graph, list),
        };
        self.keep(next, |id| near[id as usize / 64] >> (id % 64) & 1 == 1, decoder)
    }

    /// Of the others, only those as far from what `hop` may be as they are along the path stay.
    fn keep_distances(
        &mut self,
        hop: usize,
        decoder: &PathDecoder,
        shrunk: &mut Shrunk,
    ) -> Result<(), Contradiction> {
        let here = match &self.hops[hop] {
            Choice::One(id) => vec![*id],
            Choice::Some(list) if list.len() <= FEW => list.clone(),
            _ => return Ok(()),
        };
        let mut far = vec![Vec::new(); here.len()];
        for (row, &id) in far.iter_mut().zip(&here) {
            decoder.with_distances(id, |distances| row.extend_from_slice(distances));
        }
        for other in 0..self.hops.len() {
            let apart = other.abs_diff(hop) as u16;
            if apart > 1 && self.keep(other, |id| far.iter().any(|row| row[id as usize] == apart), decoder)? {
                shrunk.push(other);
            }
        }
        Ok(())
    }

    /// Looks again at the digests of two unknown hops of which `hop` is one.
    fn try_pairs_of(
        &mut self,
        hop: usize,
        decoder: &PathDecoder,
        traced: &Traced,
        shrunk: &mut Shrunk,
    ) -> Result<(), Contradiction> {
        for at in 0..self.kept.len() {
            if contains(&self.kept[at].left, hop) {
                self.try_pairs(at, decoder, traced, shrunk)?;
            }
        }
        Ok(())
    }

    /// With a network: where a digest is of two unknown hops with few ids, those stay that go with one of the other hop.
    fn try_pairs(
        &mut self,
        at: usize,
        decoder: &PathDecoder,
        traced: &Traced,
        shrunk: &mut Shrunk,
    ) -> Result<(), Contradiction> {
        if !(decoder.knowledge.neighbours || decoder.knowledge.shortest) || size(&self.kept[at].left) != 2 {
            return Ok(());
        }
        let Kept { word, bits, left, value } = self.kept[at].clone();
        let mut pair = hops_of(&left);
        let (Some(a), Some(b)) = (pair.next(), pair.next()) else { return Ok(()) };
        let (Choice::Some(of_a), Choice::Some(of_b)) = (&self.hops[a], &self.hops[b]) else { return Ok(()) };
        if of_a.len() * of_b.len() > MOST_PAIRS {
            return Ok(());
        }
        let graph = &decoder.knowledge.graph;
        let writes = |id: u32| block(traced.blocks, bits, word, graph.ids()[id as usize]);
        let adjacent = b - a == 1;
        let goes = |x: u32, hash: u64, y: u32| {
            hash ^ writes(y) == value && (!adjacent || graph.neighbours(x).binary_search(&y).is_ok())
        };
        let with = |own: &[u32], others: &[u32]| -> Vec<u32> {
            let stays = |x: &u32| others.iter().any(|&y| goes(*x, writes(*x), y));
            own.iter().copied().filter(stays).collect()
        };
        let (stay_a, stay_b) = (with(of_a, of_b), with(of_b, of_a));
        for (hop, stay) in [(a, stay_a), (b, stay_b)] {
            if self.keep(hop, |id| stay.binary_search(&id).is_ok(), decoder)? {
                shrunk.push(hop);
            }
        }
        Ok(())
    }

    pub(super) fn bytes(&self) -> usize {
        let lists = self.hops.iter().map(|choice| match choice {
            Choice::Some(list) => list.capacity() * 4,
            _ => 0,
        });
        self.kept.capacity() * size_of::<Kept>()
            + self.hops.capacity() * size_of::<Choice>()
            + lists.sum::<usize>()
    }

    pub(super) fn findings(&self, graph: &Graph) -> PathFindings {
        let of = |choice: &Choice| match choice {
            Choice::All => (None, None),
            Choice::Some(list) => (None, Some(list.len() as u32)),
            Choice::One(id) => (Some(graph.ids()[*id as usize]), Some(1)),
        };
        let (hops, candidates) = self.hops.iter().map(of).unzip();
        PathFindings { hops, candidates, ..PathFindings::default() }
    }
}

/// The neighbours of these, as bits.
fn marked(graph: &Graph, list: &[u32]) -> Vec<u64> {
    let mut near = vec![0; graph.len().div_ceil(64)];
    for &other in list.iter().flat_map(|&id| graph.neighbours(id)) {
        near[other as usize / 64] |= 1 << (other % 64);
    }
    near
}
