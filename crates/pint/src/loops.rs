//! Loop detection: a packet that returns to the hop whose hash it carries is reported.
//!
//! A field of b bits of hash and a counter of ceil(log2(T + 1)) bits. Before it samples, a hop compares the hash with its own: on a
//! match it reports if the counter is T, else counts up. Sampling (each hop is the last to write with equal probability)
//! continues only while the counter is 0, so that a hop that was met once is waited for.
//!
//! A path of k hops without a loop is reported with probability below C(k - 1, T + 1) 2^(-b (T + 1)): 0.05 % for b = 16, T = 0, 32 hops.
//!
//! Source: Ben Basat et al., "PINT", SIGCOMM 2020, appendix A.4.

use crate::code::reservoir_acts;
use crate::hash::Word;

/// Detection in a field of some width: the hash in the low bits, the counter above it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LoopDetection {
    /// T: matches that are let pass.
    tolerance: u32,
    hash_bits: u32,
}

impl LoopDetection {
    /// In a field of `bits` (at most 64); None if the counter leaves no bit for the hash.
    pub const fn new(bits: u32, tolerance: u32) -> Option<LoopDetection> {
        let counter_bits = 32 - tolerance.leading_zeros();
        if bits > 64 || bits <= counter_bits {
            return None;
        }
        Some(LoopDetection { tolerance, hash_bits: bits - counter_bits })
    }

    pub const fn tolerance(self) -> u32 {
        self.tolerance
    }

    /// Bits of hash.
    pub const fn hash_bits(self) -> u32 {
        self.hash_bits
    }

    /// The field after the `hop`-th hop (from 1), whose id is `value`, and whether it reports a loop.
    #[inline]
    pub fn step(self, field: u64, word: Word, hop: u32, value: u64) -> (u64, bool) {
        let mine = word.value(value, self.hash_bits);
        let hash = field & (u64::MAX >> (64 - self.hash_bits));
        // A hash of all 64 bits has no counter above it.
        let count = field.checked_shr(self.hash_bits).unwrap_or(0);
        if hop > 1 && hash == mine {
            if count >= u64::from(self.tolerance) {
                return (field, true);
            }
            return (field + (1 << self.hash_bits), false);
        }
        if count == 0 && reservoir_acts(word, hop) { (mine, false) } else { (field, false) }
    }
}

#[cfg(test)]
mod tests;
