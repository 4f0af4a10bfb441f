//! The hash that flows are found by: keyed at random, so that colliding flows cannot be constructed.
//!
//! Words of a flow are folded in one after the other: state = high xor low half of (state xor word) times a
//! secret odd factor. It is not a cryptographic hash: who could see where flows lie in the table might find the
//! key; nothing of the collector tells that.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

/// Makes hashers of one table.
#[derive(Debug, Clone)]
pub(super) struct Keyed {
    start: u64,
    factor: u64,
}

impl Default for Keyed {
    fn default() -> Keyed {
        let random = RandomState::new();
        Keyed { start: random.hash_one(1u8), factor: random.hash_one(2u8) | 1 }
    }
}

impl BuildHasher for Keyed {
    type Hasher = Folding;

    #[inline]
    fn build_hasher(&self) -> Folding {
        Folding { state: self.start, factor: self.factor }
    }
}

pub(super) struct Folding {
    state: u64,
    factor: u64,
}

impl Folding {
    #[inline]
    fn fold(&mut self, word: u64) {
        let product = u128::from(self.state ^ word) * u128::from(self.factor);
        self.state = product as u64 ^ (product >> 64) as u64;
    }
}

/// The integers that a flow is made of.
macro_rules! folded {
    ($($write:ident: $integer:ty),*) => {
        $(#[inline]
        fn $write(&mut self, number: $integer) {
            self.fold(number as u64);
        })*
    };
}

impl Hasher for Folding {
    folded! { write_u8: u8, write_u16: u16, write_u32: u32, write_u64: u64, write_usize: usize, write_isize: isize }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.fold(u64::from_le_bytes(word));
        }
    }

    /// Folded once more: the table looks at the highest bits as well as the lowest.
    #[inline]
    fn finish(&self) -> u64 {
        let product = u128::from(self.state) * u128::from(self.factor);
        product as u64 ^ (product >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorded::{Address, Flow};

    /// 40 000 flows that differ in a few low bits, into 1 024 places by their lowest and by their highest
    /// bits.
    #[test]
    fn flows_that_are_alike_are_spread_evenly() {
        let keyed = Keyed { start: 0x243f_6a88_85a3_08d3, factor: 0x1319_8a2e_0370_7345 };
        let mut counts = [[0f64; 1024]; 2];
        for n in 0..40_000u16 {
            let source = Address::Ip(std::net::Ipv4Addr::new(10, 0, (n % 7) as u8, 1).into());
            let flow = Flow { source, source_port: n, destination_port: 80, ..Flow::default() };
            let hash = keyed.hash_one(flow);
            counts[0][hash as usize % 1024] += 1.0;
            counts[1][(hash >> 54) as usize] += 1.0;
        }
        for counts in counts {
            let expected = 40_000.0 / 1024.0;
            let chi2: f64 =
                counts.iter().map(|count| (count - expected) * (count - expected) / expected).sum();
            // Mean 1 023, standard deviation 45.
            assert!((chi2 - 1023.0).abs() < 5.0 * 45.2, "{chi2}");
        }
    }

    #[test]
    fn tables_have_different_keys() {
        assert_ne!(Keyed::default().hash_one(Flow::default()), Keyed::default().hash_one(Flow::default()));
    }
}
