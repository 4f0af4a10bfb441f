//! Values in a few bits: multiplicative and additive approximation, rounded to the nearest code or at random.
//!
//! | approximation | code of v | estimate of code a | error |
//! |---|---|---|---|
//! | multiplicative, base B = (1 + epsilon)^2 | log_B v | B^a | a factor of at most 1 + epsilon |
//! | additive, width W = 2 delta | v / W | W a | at most delta |
//! | exact | v | a | none |
//!
//! The real number in the second column is rounded to the nearest code, or up or down at random: in the
//! *value* domain so that the mean of the estimates is v, or in the *logarithm* domain so that the mean of
//! their logarithms is log v. Beyond the largest code values saturate. The multiplicative approximation has
//! no code for 0: it counts as 1.
//!
//! Encoding takes integers only. The base is not the requested one but the nearest 2^(2^20 / n) for an
//! integer n (the *rate*, codes per octave in units of 2^-20); over 256 codes of base 1.05 that moves an
//! estimate by less than 10^-5 of itself.
//!
//! Source: Ben Basat et al., "PINT", SIGCOMM 2020, §4.3; value-domain rounding after the authors' simulator
//! of HPCC-PINT.

use crate::fixed::{exp2, log2, multiply_high};

/// How a real-valued code becomes an integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// To the nearest code; takes no coin.
    Nearest,
    /// At random, the mean estimate is the value.
    Value,
    /// At random, the mean logarithm of the estimate is the value's.
    Logarithm,
}

/// A geometric grid of levels B^0, B^1, ... in integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Grid {
    /// Codes per octave, in units of 2^-20.
    pub(crate) rate: u64,
    /// log2 B, in units of 2^-32.
    pub(crate) step: u64,
    /// B - 1, in units of 2^-28.
    pub(crate) span: u64,
}

impl Grid {
    /// From 1/4 code per octave (base 16) to 4096.
    pub(crate) const fn new(rate: u64) -> Option<Grid> {
        if rate < 1 << 18 || rate > 1 << 32 {
            return None;
        }
        Some(Grid { rate, step: ((1 << 52) + rate / 2) / rate, span: 0 })
    }

    pub(crate) fn with_span(mut self) -> Grid {
        self.span = self.above_one(self.step);
        self
    }

    /// 2^x - 1 in units of 2^-28, for x up to 4 in units of 2^-32.
    #[inline]
    fn above_one(self, x: u64) -> u64 {
        ((exp2(x as u32) << (x >> 32)) - (1 << 32)) >> 4
    }

    /// log_B of a number whose log2 is given in units of 2^-32; in units of 2^-32 too.
    #[inline]
    pub(crate) fn position(self, log: u64) -> u64 {
        position(log, self.rate)
    }

    /// The code of a position.
    #[inline]
    pub(crate) fn round(self, position: u64, rounding: Rounding, coin: u32) -> u64 {
        self.place(position, rounding).round(|| coin)
    }

    /// The codes that a position may become.
    #[inline]
    pub(crate) fn place(self, position: u64, rounding: Rounding) -> Place {
        let (code, fraction) = (position >> 32, position & 0xffff_ffff);
        match rounding {
            Rounding::Nearest => Place { code: code + (fraction >> 31), part: 0, whole: 1 },
            Rounding::Logarithm => Place { code, part: fraction, whole: 1 << 32 },
            // P(up) = (B^fraction - 1) / (B - 1).
            Rounding::Value => {
                let above = self.above_one(((fraction >> 4) * self.step) >> 28);
                Place { code, part: above, whole: self.span }
            }
        }
    }
}

/// log_B of a number whose log2 is given, both in units of 2^-32, for a grid of `rate`.
#[inline]
fn position(log: u64, rate: u64) -> u64 {
    ((u128::from(log) * u128::from(rate)) >> 20) as u64
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Scale {
    Exact,
    /// `inverse` is floor(2^64 / width).
    Additive {
        width: u64,
        inverse: u64,
    },
    Multiplicative(Grid),
}

/// How a value is written into a field of some bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Approximation {
    scale: Scale,
    rounding: Rounding,
    bits: u32,
}

impl Approximation {
    /// The value itself in 1 to 64 bits; None for other widths.
    pub const fn exact(bits: u32) -> Option<Approximation> {
        if bits == 0 || bits > 64 {
            return None;
        }
        Some(Approximation { scale: Scale::Exact, rounding: Rounding::Nearest, bits })
    }

    /// Multiples of `width` (2 delta, from 2) in 1 to 32 bits, rounded to the nearest or in the value domain;
    /// else None.
    pub const fn additive(width: u64, bits: u32, rounding: Rounding) -> Option<Approximation> {
        if width < 2 || bits == 0 || bits > 32 || matches!(rounding, Rounding::Logarithm) {
            return None;
        }
        let inverse = ((1u128 << 64) / width as u128) as u64;
        Some(Approximation { scale: Scale::Additive { width, inverse }, rounding, bits })
    }

    /// A geometric grid of `rate` codes per octave, in units of 2^-20, from 2^18 (base 16) to 2^32, in 1 to
    /// 32 bits; else None.
    pub fn multiplicative(rate: u64, bits: u32, rounding: Rounding) -> Option<Approximation> {
        if bits == 0 || bits > 32 {
            return None;
        }
        let grid = Grid::new(rate)?.with_span();
        Some(Approximation { scale: Scale::Multiplicative(grid), rounding, bits })
    }

    pub const fn bits(&self) -> u32 {
        self.bits
    }

    pub const fn rounding(&self) -> Rounding {
        self.rounding
    }

    /// Codes per octave in units of 2^-20, if multiplicative.
    pub const fn rate(&self) -> Option<u64> {
        match self.scale {
            Scale::Multiplicative(grid) => Some(grid.rate),
            _ => None,
        }
    }

    /// The same, if it is such a grid.
    pub(crate) fn logarithmic(&self) -> Option<Logarithmic> {
        match (self.scale, self.rounding) {
            (_, Rounding::Value) => None,
            (Scale::Multiplicative(grid), rounding) => {
                let random = rounding == Rounding::Logarithm;
                Some(Logarithmic { rate: grid.rate << 12, limit: self.limit() as u32, random })
            }
            _ => None,
        }
    }

    /// The largest code.
    #[inline]
    pub const fn limit(&self) -> u64 {
        u64::MAX >> (64 - self.bits)
    }

    /// The code of `v`; `coin` (in units of 2^-32) decides where the rounding is random.
    #[inline]
    pub fn encode(&self, v: u64, coin: u32) -> u64 {
        self.encode_with(v, || coin)
    }

    /// As [`Approximation::encode`], with a coin that is tossed only if the rounding is random.
    #[inline]
    pub fn encode_with(&self, v: u64, coin: impl FnOnce() -> u32) -> u64 {
        let coin = if self.rounding == Rounding::Nearest { 0 } else { coin() };
        self.unbounded(v, coin).min(self.limit())
    }

    /// The code of `v` if it is above `now`, which is returned else. A coin that cannot matter is tossed too:
    /// that costs less than a branch that is guessed wrong.
    #[inline]
    pub fn raise(&self, now: u64, v: u64, coin: impl FnOnce() -> u32) -> u64 {
        self.encode_tossed(v, coin()).max(now)
    }

    #[inline(never)]
    fn encode_tossed(&self, v: u64, coin: u32) -> u64 {
        self.unbounded(v, coin).min(self.limit())
    }

    /// Whether `v` is beyond the largest code by the nearest rounding, so that its estimate is too small.
    pub fn saturates(&self, v: u64) -> bool {
        Approximation { rounding: Rounding::Nearest, ..*self }.unbounded(v, 0) > self.limit()
    }

    /// The code of `v` however large.
    #[inline]
    fn unbounded(&self, v: u64, coin: u32) -> u64 {
        self.place(v).round(|| coin)
    }

    /// Where `v` lies among the codes.
    #[inline(always)]
    pub(crate) fn place(&self, v: u64) -> Place {
        match self.scale {
            Scale::Exact => Place { code: v, part: 0, whole: 1 },
            Scale::Additive { width, inverse } => {
                // The quotient by the inverse is at most one too small.
                let low = multiply_high(v, inverse);
                let short = v - low * width >= width;
                let (code, rest) = (low + u64::from(short), v - (low + u64::from(short)) * width);
                match self.rounding {
                    Rounding::Nearest => {
                        Place { code: code + u64::from(rest >= width - rest), part: 0, whole: 1 }
                    }
                    _ => Place { code, part: rest, whole: width },
                }
            }
            Scale::Multiplicative(grid) => grid.place(grid.position(log2(v)), self.rounding),
        }
    }
}

/// A geometric grid whose rounding compares the position's fraction with a coin: to the nearest, where the
/// coin always lies just below one half, or in the logarithm domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Logarithmic {
    rate: u64,
    limit: u32,
    random: bool,
}

impl Logarithmic {
    /// As [`Approximation::encode_with`].
    #[inline(always)]
    pub(crate) fn encode(self, v: u64, coin: impl FnOnce() -> u32) -> u64 {
        // In units of 2^-64. Adding the coin's complement carries into the code if the fraction is above the
        // coin.
        let position = u128::from(log2(v)) * u128::from(self.rate);
        let up = if self.random { u64::from(!coin()) << 32 } else { 1 << 63 };
        let code = ((position + u128::from(up)) >> 64) as u64;
        code.min(u64::from(self.limit))
    }
}

/// A code, and the odds that it is the next one: `part` in `whole`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) code: u64,
    pub(crate) part: u64,
    pub(crate) whole: u64,
}

impl Place {
    /// The coin is in units of 2^-32, and tossed only if both codes are possible.
    #[inline]
    pub(crate) fn round(self, coin: impl FnOnce() -> u32) -> u64 {
        if self.part == 0 {
            return self.code;
        }
        let up = u128::from(coin()) * u128::from(self.whole) < u128::from(self.part) << 32;
        self.code + u64::from(up)
    }
}

#[cfg(feature = "std")]
mod decode {
    use super::{Approximation, Grid, Rounding, Scale};
    use std::cmp::Ordering;

    /// What a code stands for. Exact values are kept as they are: `f64` holds whole numbers up to 2^53 only,
    /// and an id that is rounded is another id.
    #[derive(Debug, Clone, Copy)]
    pub enum Number {
        Exact(u64),
        Estimate(f64),
    }

    impl Number {
        /// The nearest `f64`.
        pub fn get(self) -> f64 {
            match self {
                Number::Exact(value) => value as f64,
                Number::Estimate(value) => value,
            }
        }
    }

    impl Default for Number {
        fn default() -> Number {
            Number::Estimate(0.0)
        }
    }

    impl PartialEq for Number {
        fn eq(&self, other: &Number) -> bool {
            self.partial_cmp(other) == Some(Ordering::Equal)
        }
    }

    impl PartialEq<f64> for Number {
        fn eq(&self, other: &f64) -> bool {
            self.get() == *other
        }
    }

    impl PartialOrd for Number {
        fn partial_cmp(&self, other: &Number) -> Option<Ordering> {
            match (*self, *other) {
                (Number::Exact(own), Number::Exact(other)) => Some(own.cmp(&other)),
                (own, other) => own.get().partial_cmp(&other.get()),
            }
        }
    }

    impl Grid {
        /// B^`code`.
        pub(crate) fn level(self, code: u64) -> f64 {
            libm::exp2(code as f64 * 1_048_576.0 / self.rate as f64)
        }
    }

    /// The rate of a base, in units of 2^-20; None unless the base is above 1 and at most 16 (and at least
    /// 2^(1/4096)).
    fn rate(base: f64) -> Option<u64> {
        if !(base > 1.0 && base <= 16.0) {
            return None;
        }
        let rate = (1_048_576.0 / libm::log2(base)).round();
        (rate <= 4_294_967_296.0).then_some(rate as u64)
    }

    impl Approximation {
        /// Multiplicative with this base, above 1.00017 and at most 16; else None.
        pub fn from_base(base: f64, bits: u32, rounding: Rounding) -> Option<Approximation> {
            Approximation::multiplicative(rate(base)?, bits, rounding)
        }

        /// Multiplicative with base (1 + epsilon)^2, so that the nearest code is off by a factor of at most
        /// 1 + epsilon.
        pub fn from_epsilon(epsilon: f64, bits: u32, rounding: Rounding) -> Option<Approximation> {
            Approximation::from_base((1.0 + epsilon) * (1.0 + epsilon), bits, rounding)
        }

        /// The estimate of a code.
        pub fn decode(&self, code: u64) -> f64 {
            match self.scale {
                Scale::Exact => code as f64,
                Scale::Additive { width, .. } => code as f64 * width as f64,
                Scale::Multiplicative(grid) => grid.level(code),
            }
        }

        /// As [`Approximation::decode`], without rounding a value that is exact.
        pub fn number(&self, code: u64) -> Number {
            match self.scale {
                Scale::Exact => Number::Exact(code),
                _ => Number::Estimate(self.decode(code)),
            }
        }

        /// The largest estimate.
        pub fn largest(&self) -> f64 {
            self.decode(self.limit())
        }
    }

    /// Bits that hold all values from 1 to `largest` at this epsilon; None if epsilon is not within
    /// (0.000085, 3].
    pub fn bits_for(largest: u64, epsilon: f64) -> Option<u32> {
        let rate = rate((1.0 + epsilon) * (1.0 + epsilon))?;
        let code = libm::log2(largest.max(1) as f64) * rate as f64 / 1_048_576.0;
        Some((64 - (code.round() as u64).leading_zeros()).max(1))
    }

    /// Bits that hold all values from 0 to `largest` with an absolute error of at most `delta`.
    pub fn bits_for_delta(largest: u64, delta: u64) -> u32 {
        let code = (u128::from(largest) + u128::from(delta)) / (2 * u128::from(delta)).max(1);
        (128 - code.leading_zeros()).max(1)
    }
}
#[cfg(feature = "std")]
pub use decode::{Number, bits_for, bits_for_delta};

#[cfg(test)]
mod tests;
