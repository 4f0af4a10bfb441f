//! Randomised counting along a path: a sum or a product of one value a hop, in a few bits.
//!
//! The counter holds a code c that stands for L(c) = (B^c - 1) / (B - 1), so 0 and 1 are exact and levels lie
//! B^c apart. A hop reads L(c), adds its value, and rounds the sum to one of the two codes around it at
//! random so that the mean is kept: after any number of hops the mean of L(c) is the sum. This is Morris's
//! counter with steps of any size instead of one.
//!
//! One rounding of x has a variance of at most a quarter of the gap squared, ((1 + (B - 1) x) / 2)^2. So
//! after k hops that end at x the standard deviation is at most sqrt(k) (1 + (B - 1) x) / 2: for a relative
//! epsilon choose B = 1 + 2 epsilon / sqrt(k). Codes up to log_B(1 + (B - 1) x) are used: O(log 1/epsilon +
//! log log x) bits.
//!
//! A product needs no levels: each hop adds its value's own code, rounded in the value domain. The mean of
//! B^c is the product; one hop's relative variance v is at most (B - 1)^2 / (4 B), that of the product (1 +
//! v)^k - 1.
//!
//! Source: Ben Basat et al., "PINT", SIGCOMM 2020, §4.3; Morris, "Counting large numbers of events in small
//! registers", CACM 1978. Differs from the source: it names no variant; this one adds in one step and has the
//! variance above.

use crate::fixed::{exp2, log2};
use crate::value::{Grid, Rounding};

/// A counter that adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Counter {
    grid: Grid,
    bits: u32,
}

impl Counter {
    /// With `rate` codes per octave in units of 2^-20, from 2^20 (base 2) to 2^32, in 1 to 16 bits; else
    /// None.
    pub fn new(rate: u64, bits: u32) -> Option<Counter> {
        if rate < 1 << 20 || bits == 0 || bits > 16 {
            return None;
        }
        Some(Counter { grid: Grid::new(rate)?.with_span(), bits })
    }

    pub const fn bits(&self) -> u32 {
        self.bits
    }

    /// Codes per octave in units of 2^-20.
    pub const fn rate(&self) -> u64 {
        self.grid.rate
    }

    /// The code after `v` (taken as at most 2^32 - 1) is added, with a coin in units of 2^-32; the largest
    /// code at the end of the range.
    #[inline]
    pub fn add(&self, code: u64, v: u64, coin: u32) -> u64 {
        let limit = u64::MAX >> (64 - self.bits);
        let code = code.min(limit);
        if v == 0 {
            return code;
        }
        let sum = self.power(code).saturating_add(v.min(0xffff_ffff) * self.grid.span);
        // From units of 2^-28 to ones.
        let position = self.grid.position(log2(sum) - (28 << 32));
        self.grid.round(position, Rounding::Value, coin).clamp(code, limit)
    }

    /// B^code = 1 + (B - 1) L(code), in units of 2^-28, saturating.
    #[inline]
    fn power(&self, code: u64) -> u64 {
        let x = code * self.grid.step;
        let (mantissa, exponent) = (exp2(x as u32), x >> 32);
        match exponent {
            0..4 => (mantissa + (1 << (3 - exponent))) >> (4 - exponent),
            4..=34 => mantissa << (exponent - 4),
            _ => u64::MAX,
        }
    }
}

#[cfg(feature = "std")]
impl Counter {
    /// For sums of up to `hops` values with a relative standard deviation of at most `epsilon` (in large
    /// sums); None if out of range.
    pub fn from_epsilon(epsilon: f64, hops: u32, bits: u32) -> Option<Counter> {
        let base = 1.0 + 2.0 * epsilon / f64::from(hops.max(1)).sqrt();
        if !(base > 1.0 && base <= 2.0) {
            return None;
        }
        let rate = (1_048_576.0 / libm::log2(base)).round();
        if rate > 4_294_967_296.0 { None } else { Counter::new(rate as u64, bits) }
    }

    /// L(code), the estimate.
    pub fn decode(&self, code: u64) -> f64 {
        (self.grid.level(code) - 1.0) * 268_435_456.0 / self.grid.span as f64
    }

    /// The first code that may stand for any larger sum: the largest one, or where 1 + (B - 1) L no longer
    /// fits its 64 bits.
    pub fn ceiling(&self) -> u64 {
        let beyond = self.grid.position(log2(u64::MAX) - (28 << 32));
        // A position that close to the next code is all but always rounded to it.
        ((beyond + (1 << 16)) >> 32).min(u64::MAX >> (64 - self.bits))
    }

    /// The largest estimate; larger sums are decoded as this one, or one code more.
    pub fn largest(&self) -> f64 {
        self.decode(self.ceiling())
    }

    /// A bound on the standard deviation of the estimate of `sum` after `hops` additions.
    pub fn deviation(&self, sum: f64, hops: u32) -> f64 {
        f64::from(hops).sqrt() * (1.0 + self.grid.span as f64 / 268_435_456.0 * sum) / 2.0
    }
}

#[cfg(test)]
mod tests;
