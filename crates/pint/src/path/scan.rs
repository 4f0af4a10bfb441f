//! Which of all ids a digest leaves: the one loop over a network's whole list of ids, run once for each hop of each flow.
//!
//! Where the processor has AVX2 the same loop is compiled for it, four hashes at a time; results are the same.

use crate::hash::Word;

/// What the hash of an id must be on one packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    word: Word,
    /// The bits of the hash that count, and what they must be.
    mask: u64,
    bits: u64,
}

impl Wanted {
    /// h, of `bits` bits (1 to 64), must be `value`.
    #[inline]
    pub fn new(word: Word, bits: u32, value: u64) -> Wanted {
        let unused = 64 - bits;
        Wanted { word, mask: u64::MAX << unused, bits: value << unused }
    }

    /// Whether an id, [`spread`](crate::hash::spread), has it.
    #[inline(always)]
    pub fn has(self, spread: u64) -> bool {
        self.word.spread_value(spread, 64) & self.mask == self.bits
    }

    /// The places, ascending, of those that have it.
    pub fn places(self, spread: &[u64]) -> impl Iterator<Item = u32> {
        (0..)
            .step_by(64)
            .zip(spread.chunks(64))
            .flat_map(move |(first, ids)| super::candidates::bits(self.among(ids), first))
    }

    /// One bit for each of up to 64.
    #[inline]
    fn among(self, ids: &[u64]) -> u64 {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has what the function is compiled for.
            return unsafe { among_four(self, ids) };
        }
        among(self, ids)
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn among_four(wanted: Wanted, ids: &[u64]) -> u64 {
    among(wanted, ids)
}

#[inline(always)]
fn among(wanted: Wanted, ids: &[u64]) -> u64 {
    (0..64).zip(ids).fold(0, |passed, (place, &spread)| passed | u64::from(wanted.has(spread)) << place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::{Key, spread};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ids_found_are_those_whose_hash_is_wanted(packet: u64, count in 0u64..300, bits in 1u32..=64, id: u64) {
            let word = Key::new(1, 1).word(packet);
            let value = word.value(id % count.max(1), bits);
            let ids: Vec<u64> = (0..count).map(spread).collect();
            let expected: Vec<u32> =
                (0..count).filter(|&id| word.value(id, bits) == value).map(|id| id as u32).collect();
            let wanted = Wanted::new(word, bits, value);
            prop_assert_eq!(wanted.places(&ids).collect::<Vec<_>>(), expected);
            for ids in ids.chunks(64) {
                prop_assert_eq!(wanted.among(ids), among(wanted, ids));
            }
        }
    }
}
