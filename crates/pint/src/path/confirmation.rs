//! Whether a path that is known was seen again, hop by hop.
//!
//! A digest tells of its own hops only. Where a route changes before its path is known, hops of the old route
//! and of the new one are put together to a path that never existed, and nothing contradicts it before a
//! digest of a hop that differs. So a known path is *confirmed* when, since then and since the last digest
//! that did not fit, every hop was tested: by digests of 16 bits together, or of fragments by a digest of
//! each that no other hop wrote (two wrong fragments may cancel each other in every packet, hashes only by
//! chance). If the route changed once before the path was known, all these digests are of the new one: a
//! confirmed path of fragments is right, one of hashes is wrong with a probability of about 2^-16. Each
//! digest must be of another packet, also than those by which the path became known: the collector sees to
//! that, for as many packets as it remembers ([`crate::collector::REMEMBERED`]).
//!
//! Source: ours; the paper assumes that routes stay as they are.

use super::{hops_of, size};
use crate::code::HopSet;
use crate::encoder::Blocks;

/// Bits that have to agree with each hop of a path.
const BITS: u32 = 16;

/// What is left to be tested of a known path.
#[derive(Debug, Clone, Default)]
pub(super) struct Confirmation {
    /// By fragment and hop, digests that are still needed; empty before the path is known and once it is
    /// confirmed.
    needed: Vec<u8>,
    /// Of which some are.
    open: u32,
}

impl Confirmation {
    /// Starts, again if the path was under test, with fields of `bits` bits.
    pub fn start(&mut self, hops: u32, blocks: Blocks, bits: u32) {
        let (each, fragments) = match blocks {
            Blocks::Hashed => (BITS.div_ceil(bits.max(1)), 1),
            Blocks::Fragments { count } => (1, count),
        };
        self.needed.clear();
        self.needed.resize((hops * fragments) as usize, each as u8);
        self.open = hops * fragments;
    }

    /// Starts again, if the path is under test: a digest did not fit.
    pub fn start_again(&mut self, hops: u32, blocks: Blocks, bits: u32) {
        if self.is_open() {
            self.start(hops, blocks, bits);
        }
    }

    /// Whether the path is known and not confirmed.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.open > 0
    }

    /// Takes in that a field that these hops wrote fits; returns whether the path is confirmed now.
    pub fn fits(&mut self, writers: &HopSet, hops: u32, blocks: Blocks, fragment: u32) -> bool {
        if self.open == 0 || (blocks != Blocks::Hashed && size(writers) != 1) {
            return false;
        }
        for hop in hops_of(writers) {
            let Some(needed) = self.needed.get_mut(hop + (fragment * hops) as usize) else { continue };
            self.open -= u32::from(*needed == 1);
            *needed = needed.saturating_sub(1);
        }
        if self.open == 0 {
            self.needed = Vec::new();
        }
        self.open == 0
    }

    pub fn bytes(&self) -> usize {
        self.needed.capacity()
    }
}
