//! Paths over a list of ids: candidates are struck out until one is left.

use super::candidates::{Candidates, Left};
use super::confirmation::Confirmation;
use super::network::Work;
use super::scan::Wanted;
use super::{
    Contradiction, MAX_KEPT, PathDecoder, Traced, contains, hops_of, insert, intersection, remove, size,
    unknown,
};
use crate::code::{HOP_WORDS, HopSet};
use crate::collector::{PathFindings, Step};
use crate::encoder::{Blocks, Field, block};
use crate::graph::Graph;
use crate::hash::Word;

/// What is known of a path over a list of ids.
#[derive(Debug, Clone)]
pub struct KnownPath {
    pub(super) hops: Vec<Candidates>,
    /// The hops with one id left.
    known: HopSet,
    open: u32,
    /// Digests of several unknown hops.
    pub(super) kept: Vec<Kept>,
    /// The next of `kept` to give way.
    oldest: usize,
    /// Bytes of the lists of `hops`.
    listed: usize,
    /// What was known at the start leaves no path.
    impossible: bool,
    /// It leaves one path, and no digest was taken since.
    settled: bool,
    confirmation: Confirmation,
}

/// A digest of several unknown hops.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kept {
    pub print: Print,
    /// The unknown hops, and what is left when the known ones are XORed out.
    pub left: HopSet,
    pub value: u64,
}

/// What one field of one packet makes of an id.
#[derive(Debug, Clone, Copy)]
pub(super) struct Print {
    pub word: Word,
    pub bits: u32,
    pub blocks: Blocks,
}

impl Print {
    /// What a hop of this id writes.
    #[inline]
    pub fn of(&self, decoder: &PathDecoder, id: u32) -> u64 {
        match self.blocks {
            Blocks::Hashed => self.word.spread_value(decoder.spread[id as usize], self.bits),
            blocks => block(blocks, self.bits, self.word, decoder.knowledge.graph.ids()[id as usize]),
        }
    }

    /// Which piece of an id it is of; 0 of hashes.
    fn fragment(&self) -> u32 {
        match self.blocks {
            Blocks::Hashed => 0,
            Blocks::Fragments { count } => self.word.fragment(count),
        }
    }
}

impl KnownPath {
    pub(super) fn new(decoder: &PathDecoder, hops: u32, ends: (Option<u32>, Option<u32>)) -> KnownPath {
        let mut path = KnownPath {
            hops: vec![Candidates::All; hops as usize],
            known: [0; HOP_WORDS],
            open: hops,
            kept: Vec::new(),
            oldest: 0,
            listed: 0,
            impossible: false,
            settled: false,
            confirmation: Confirmation::default(),
        };
        let mut work = Work::default();
        for (hop, end) in [(0, ends.0), (hops as usize - 1, ends.1)] {
            let Some(end) = end else { continue };
            path.impossible |= path.keep(hop, |id| id == end, decoder, &mut work).is_err();
        }
        path.impossible = path.impossible || path.spread(decoder, &mut work).is_err();
        path.settled = path.open == 0;
        path
    }

    #[inline]
    pub(super) fn take(
        &mut self,
        decoder: &PathDecoder,
        traced: &Traced,
        packet: u64,
        digest: u64,
        fields: &[Field],
    ) -> Step {
        let (before, hops, blocks) = (self.open, self.hops.len() as u32, traced.blocks);
        let mut confirmed = false;
        for field in fields {
            let word = field.key.word(packet);
            let print = Print { word, bits: u32::from(field.bits), blocks };
            let writers = traced.code.writers(word, hops);
            let taken = self.take_field(decoder, print, &writers, field.read(digest));
            if self.impossible || taken.is_err() {
                self.confirmation.start_again(hops, blocks, print.bits);
                return Step::Contradiction;
            }
            if self.confirmation.is_open() {
                confirmed |= self.confirmation.fits(&writers, hops, blocks, print.fragment());
            }
        }
        let settled = std::mem::take(&mut self.settled);
        if settled || (before > 0 && self.open == 0) {
            self.confirmation.start(hops, blocks, fields.first().map_or(1, |field| u32::from(field.bits)));
            return if settled { Step::Settled } else { Step::Decoded };
        }
        if confirmed { Step::Confirmed } else { Step::On }
    }

    /// Whether a packet that was taken before fits the path, if it is known.
    pub(super) fn fits(
        &mut self,
        decoder: &PathDecoder,
        traced: &Traced,
        packet: u64,
        digest: u64,
        fields: &[Field],
    ) -> bool {
        if self.open > 0 {
            return true;
        }
        let (hops, blocks) = (self.hops.len() as u32, traced.blocks);
        let mut fits = true;
        for field in fields {
            let print = Print { word: field.key.word(packet), bits: u32::from(field.bits), blocks };
            let writers = traced.code.writers(print.word, hops);
            // With no hop unknown, nothing is learnt.
            if self.take_field(decoder, print, &writers, field.read(digest)).is_err() {
                self.confirmation.start_again(hops, blocks, print.bits);
                fits = false;
            }
        }
        fits
    }

    #[inline]
    fn take_field(
        &mut self,
        decoder: &PathDecoder,
        print: Print,
        writers: &HopSet,
        mut value: u64,
    ) -> Result<(), Contradiction> {
        for hop in hops_of(&intersection(writers, &self.known)) {
            if let Candidates::One(id) = self.hops[hop] {
                value ^= print.of(decoder, id);
            }
        }
        let left = unknown(writers, &self.known);
        if left == [0; HOP_WORDS] {
            return if value == 0 { Ok(()) } else { Err(Contradiction) };
        }
        let mut work = Work::default();
        if size(&left) == 1 {
            self.strike(decoder, print, &left, value, &mut work)?;
        } else {
            let at = self.remember(Kept { print, left, value });
            self.try_pair(at, decoder, &mut work)?;
        }
        self.spread(decoder, &mut work)
    }

    /// Keeps a digest for later; its place.
    fn remember(&mut self, kept: Kept) -> usize {
        if self.kept.len() < MAX_KEPT {
            self.kept.push(kept);
            return self.kept.len() - 1;
        }
        self.oldest = (self.oldest + 1) % MAX_KEPT;
        self.kept[self.oldest] = kept;
        self.oldest
    }

    /// Strikes out the ids of the only hop of `left` that would have written something else.
    fn strike(
        &mut self,
        decoder: &PathDecoder,
        print: Print,
        left: &HopSet,
        value: u64,
        work: &mut Work,
    ) -> Result<(), Contradiction> {
        let Some(hop) = hops_of(left).next() else {
            return if value == 0 { Ok(()) } else { Err(Contradiction) };
        };
        if print.blocks != Blocks::Hashed {
            return self.keep(hop, |id| print.of(decoder, id) == value, decoder, work);
        }
        let wanted = Wanted::new(print.word, print.bits, value);
        if self.hops[hop] == Candidates::All {
            let left = self.hops[hop].narrow(decoder.spread.len(), wanted.places(&decoder.spread));
            return self.note(hop, 0, left, work);
        }
        self.keep(hop, |id| wanted.has(decoder.spread[id as usize]), decoder, work)
    }

    /// Strikes out ids of a hop.
    #[inline]
    pub(super) fn keep(
        &mut self,
        hop: usize,
        stays: impl Fn(u32) -> bool,
        decoder: &PathDecoder,
        work: &mut Work,
    ) -> Result<(), Contradiction> {
        let before = self.hops[hop].bytes();
        let left = self.hops[hop].retain(decoder.knowledge.graph.len(), stays);
        self.note(hop, before, left, work)
    }

    /// Takes note of what striking out has left of a hop, whose list had `before` bytes.
    pub(super) fn note(
        &mut self,
        hop: usize,
        before: usize,
        left: Left,
        work: &mut Work,
    ) -> Result<(), Contradiction> {
        self.listed = self.listed + self.hops[hop].bytes() - before;
        match left {
            Left::Same => return Ok(()),
            Left::Nothing => return Err(Contradiction),
            Left::Known => {
                insert(&mut self.known, hop);
                self.open -= 1;
            }
            Left::Fewer => {}
        }
        work.shrunk(hop);
        Ok(())
    }

    /// Works off what follows from candidates that were struck out.
    fn spread(&mut self, decoder: &PathDecoder, work: &mut Work) -> Result<(), Contradiction> {
        while let Some(hop) = work.next() {
            if let Candidates::One(id) = self.hops[hop] {
                self.peel(hop, id, decoder, work)?;
            }
            if decoder.is_networked() {
                self.use_network(hop, decoder, work)?;
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
        work: &mut Work,
    ) -> Result<(), Contradiction> {
        let mut at = 0;
        while at < self.kept.len() {
            let kept = &mut self.kept[at];
            if !contains(&kept.left, hop) {
                at += 1;
                continue;
            }
            kept.value ^= kept.print.of(decoder, id);
            remove(&mut kept.left, hop);
            if size(&kept.left) > 1 {
                at += 1;
                continue;
            }
            let Kept { print, left, value } = self.kept.swap_remove(at);
            self.strike(decoder, print, &left, value, work)?;
        }
        Ok(())
    }

    /// Bytes beyond its own size; costs nothing to ask.
    pub(super) fn bytes(&self) -> usize {
        self.kept.capacity() * size_of::<Kept>()
            + self.hops.capacity() * size_of::<Candidates>()
            + self.listed
            + self.confirmation.bytes()
    }

    pub(super) fn findings(&self, graph: &Graph) -> PathFindings {
        let of = |candidates: &Candidates| match candidates {
            Candidates::One(id) => (Some(graph.ids()[*id as usize]), Some(1)),
            _ => (None, candidates.listed().map(|list| list.len() as u32)),
        };
        let (hops, candidates) = self.hops.iter().map(of).unzip();
        PathFindings { hops, candidates, ..PathFindings::default() }
    }
}
