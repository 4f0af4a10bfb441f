//! Paths whose values may be anything: fragment by fragment.

use super::confirmation::Confirmation;
use super::{Contradiction, MAX_KEPT, contains, hops_of, insert, remove, size, unknown};
use crate::code::{Code, HopSet};
use crate::collector::{PathFindings, Step};
use crate::encoder::{Blocks, Field};

/// What is known of a path in fragments.
#[derive(Debug, Clone)]
pub struct RawPath {
    hops: u32,
    /// Fragments of a value.
    count: u32,
    /// Bits of a fragment; 0 until the first digest.
    bits: u32,
    /// By fragment, which hops' are known.
    known: Vec<HopSet>,
    /// By hop, the value as far as its fragments are known.
    values: Vec<u64>,
    kept: Vec<Kept>,
    /// The next of `kept` to give way.
    oldest: usize,
    /// Fragments of hops that are not known.
    open: u32,
    confirmation: Confirmation,
}

/// A digest of several unknown hops.
#[derive(Debug, Clone)]
struct Kept {
    fragment: u32,
    /// The unknown hops, and what is left when the known ones are XORed out.
    left: HopSet,
    value: u64,
}

impl RawPath {
    pub(super) fn new(hops: u32, count: u32) -> RawPath {
        let count = count.clamp(1, 64);
        RawPath {
            hops,
            count,
            bits: 0,
            known: vec![[0; 4]; count as usize],
            values: vec![0; hops as usize],
            kept: Vec::new(),
            oldest: 0,
            open: hops * count,
            confirmation: Confirmation::default(),
        }
    }

    pub(super) fn take(&mut self, code: &Code, packet: u64, digest: u64, fields: &[Field]) -> Step {
        let (before, blocks) = (self.open, Blocks::Fragments { count: self.count });
        let mut confirmed = false;
        for field in fields {
            if self.take_field(code, packet, digest, field).is_err() {
                self.confirmation.start_again(self.hops, blocks, self.bits);
                return Step::Contradiction;
            }
            if self.confirmation.is_open() {
                let word = field.key.word(packet);
                let writers = code.writers(word, self.hops);
                confirmed |= self.confirmation.fits(&writers, self.hops, blocks, word.fragment(self.count));
            }
        }
        if before > 0 && self.open == 0 {
            self.confirmation.start(self.hops, blocks, self.bits);
            return Step::Decoded;
        }
        if confirmed { Step::Confirmed } else { Step::On }
    }

    /// Whether a packet that was taken before fits the path, if it is known.
    pub(super) fn fits(&mut self, code: &Code, packet: u64, digest: u64, fields: &[Field]) -> bool {
        if self.open > 0 {
            return true;
        }
        let blocks = Blocks::Fragments { count: self.count };
        let mut fits = true;
        for field in fields {
            // With no fragment unknown, nothing is learnt.
            if self.take_field(code, packet, digest, field).is_err() {
                self.confirmation.start_again(self.hops, blocks, self.bits);
                fits = false;
            }
        }
        fits
    }

    fn take_field(
        &mut self,
        code: &Code,
        packet: u64,
        digest: u64,
        field: &Field,
    ) -> Result<(), Contradiction> {
        let word = field.key.word(packet);
        let (fragment, value) = (word.fragment(self.count), field.read(digest));
        self.bits = u32::from(field.bits);
        let left = code.writers(word, self.hops);
        self.equation(Kept { fragment, left, value })
    }

    /// Takes in that the fragments of these hops give this value together.
    fn equation(&mut self, equation: Kept) -> Result<(), Contradiction> {
        let mut waiting = vec![equation];
        while let Some(mut equation) = waiting.pop() {
            let known = &self.known[equation.fragment as usize];
            for hop in hops_of(&equation.left).filter(|&hop| contains(known, hop)) {
                equation.value ^= self.piece(hop, equation.fragment);
            }
            equation.left = unknown(&equation.left, known);
            match size(&equation.left) {
                0 if equation.value != 0 => return Err(Contradiction),
                0 => {}
                1 => self.learn(&equation, &mut waiting),
                _ if self.kept.len() < MAX_KEPT => self.kept.push(equation),
                _ => {
                    self.kept[self.oldest] = equation;
                    self.oldest = (self.oldest + 1) % MAX_KEPT;
                }
            }
        }
        Ok(())
    }

    /// The one unknown fragment of an equation becomes known; equations that it takes part in are to be
    /// looked at again.
    fn learn(&mut self, equation: &Kept, waiting: &mut Vec<Kept>) {
        let Some(hop) = hops_of(&equation.left).next() else { return };
        let shift = equation.fragment * self.bits;
        self.values[hop] |= equation.value.checked_shl(shift).unwrap_or(0);
        insert(&mut self.known[equation.fragment as usize], hop);
        self.open -= 1;
        let mut at = 0;
        while at < self.kept.len() {
            let kept = &mut self.kept[at];
            if kept.fragment == equation.fragment && contains(&kept.left, hop) {
                kept.value ^= equation.value;
                remove(&mut kept.left, hop);
                if size(&kept.left) <= 1 {
                    waiting.push(self.kept.swap_remove(at));
                    continue;
                }
            }
            at += 1;
        }
    }

    fn piece(&self, hop: usize, fragment: u32) -> u64 {
        self.values[hop].checked_shr(fragment * self.bits).unwrap_or(0)
            & (u64::MAX >> (64 - self.bits.clamp(1, 64)))
    }

    pub(super) fn bytes(&self) -> usize {
        self.kept.capacity() * size_of::<Kept>()
            + self.values.capacity() * 8
            + self.known.capacity() * size_of::<HopSet>()
            + self.confirmation.bytes()
    }

    pub(super) fn findings(&self) -> PathFindings {
        let complete = |hop: usize| self.known.iter().all(|known| contains(known, hop));
        let hops: Vec<Option<u64>> =
            self.values.iter().enumerate().map(|(hop, &value)| complete(hop).then_some(value)).collect();
        let candidates = hops.iter().map(|hop| hop.map(|_| 1)).collect();
        PathFindings { hops, candidates, ..PathFindings::default() }
    }
}
