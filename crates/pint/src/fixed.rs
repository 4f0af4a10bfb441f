//! Logarithms and powers of two on integers, twice: exact enough to define a code, and coarse as a switch's tables are.
//!
//! [`log2`] and [`exp2`] look up one of 256 intervals and add a parabola through its ends and its middle. They are monotone by
//! construction (the parabola ends exactly where the next interval starts) and within 2^-28 and 2^-30 of the truth, so a code
//! defined with them is the same on every machine and in every language.
//!
//! [`Arithmetic`] is what a pipeline of tables can do: the position of the highest bit, a table of 2^q entries for the next q
//! bits, sums of logarithms for products, a table of powers to return. With q bits the logarithm is at most 1.443 * 2^-q too
//! small and a product or quotient of two numbers is wrong by at most 2.4 * 2^-q: 0.92 % for q = 8.
//!
//! Source: Ben Basat et al., "PINT", SIGCOMM 2020, §4.3, appendix B and C.
//! Differs from the source: the table of powers is read at the nearest entry, not the one below, which is what makes 1 % for q = 8.

/// Fractional bits of [`log2`] and [`exp2`].
pub const FRACTION: u32 = 32;
const INTERVALS: usize = 256;

/// log2(1 + i/512) in units of 2^-40. By squaring: each square that reaches 2 is a bit of the logarithm.
const fn log_points() -> [u64; 2 * INTERVALS + 1] {
    let mut points = [0; 2 * INTERVALS + 1];
    let mut i = 0;
    while i < 2 * INTERVALS {
        // In units of 2^-63, from 1 to 2.
        let mut x = (1u128 << 63) + ((i as u128) << 54);
        let mut log = 0u64;
        let mut bit = 0;
        while bit < 42 {
            x = (x * x) >> 63;
            log <<= 1;
            if x >> 64 != 0 {
                x >>= 1;
                log |= 1;
            }
            bit += 1;
        }
        points[i] = (log + 2) >> 2;
        i += 1;
    }
    points[2 * INTERVALS] = 1 << 40;
    points
}

/// 2^(i/512) - 1 in units of 2^-40, by products of square roots of two.
const fn power_points() -> [u64; 2 * INTERVALS + 1] {
    let mut roots = [0u128; 9];
    let mut root = 2u128 << 62;
    let mut k = 0;
    while k < 9 {
        root = (root << 62).isqrt();
        roots[k] = root;
        k += 1;
    }
    let mut points = [0; 2 * INTERVALS + 1];
    let mut i = 0;
    while i < 2 * INTERVALS {
        let mut product = 1u128 << 62;
        let mut bit = 0;
        while bit < 9 {
            // Bit 8 of i stands for a half, the first root.
            if i >> (8 - bit) & 1 == 1 {
                product = (product * roots[bit]) >> 62;
            }
            bit += 1;
        }
        points[i] = ((product - (1 << 62) + (1 << 21)) >> 22) as u64;
        i += 1;
    }
    points[2 * INTERVALS] = 1 << 40;
    points
}

/// Ends of the intervals in units of 2^-32, and how far the middle is from the chord, times four, in units of 2^-40.
pub(crate) struct Parabolas {
    pub(crate) ends: [u64; INTERVALS + 1],
    pub(crate) bends: [u32; INTERVALS],
    /// Slopes at the lower ends, in units of 2^-40 per interval.
    slopes: [u64; INTERVALS],
}

impl Parabolas {
    const fn through(points: [u64; 2 * INTERVALS + 1], concave: bool) -> Parabolas {
        let mut all = Parabolas { ends: [0; INTERVALS + 1], bends: [0; INTERVALS], slopes: [0; INTERVALS] };
        let mut i = 0;
        while i <= INTERVALS {
            all.ends[i] = (points[2 * i] + 128) >> 8;
            i += 1;
        }
        i = 0;
        while i < INTERVALS {
            let chord = (all.ends[i] + all.ends[i + 1]) << 7;
            let middle = points[2 * i + 1];
            all.bends[i] = 4 * (if concave { middle - chord } else { chord - middle }) as u32;
            let (rise, bend) = ((all.ends[i + 1] - all.ends[i]) << 8, all.bends[i] as u64);
            all.slopes[i] = if concave { rise + bend } else { rise - bend };
            i += 1;
        }
        all
    }
}

pub(crate) static LOGARITHMS: Parabolas = Parabolas::through(log_points(), true);
pub(crate) static POWERS: Parabolas = Parabolas::through(power_points(), false);

/// log2 of a number from 1, in units of 2^-32, within 2^-28; never falls as `v` grows. Of 0 it is 0.
#[inline]
pub fn log2(v: u64) -> u64 {
    let v = v.max(1);
    let exponent = v.ilog2();
    // The 32 bits after the highest one.
    let fraction = (v << (63 - exponent)) << 1 >> 32;
    let (interval, t) = ((fraction >> 24) as usize, fraction & 0xff_ffff);
    let end = LOGARITHMS.ends[interval];
    let bend = u64::from(LOGARITHMS.bends[interval]);
    let slope = LOGARITHMS.slopes[interval] - ((bend * t) >> 24);
    (u64::from(exponent) << 32) + end + ((slope * t) >> 32)
}

/// 2^x for x from 0 to 1 in units of 2^-32: from 2^32 to 2^33, in units of 2^-32, within 2^-30; never falls as x grows.
#[inline]
pub fn exp2(x: u32) -> u64 {
    let (interval, t) = ((x >> 24) as usize, u64::from(x & 0xff_ffff));
    let end = POWERS.ends[interval];
    let bend = u64::from(POWERS.bends[interval]);
    let slope = POWERS.slopes[interval] + ((bend * t) >> 24);
    (1 << 32) + end + ((slope * t) >> 32)
}

/// The upper 64 bits of a product.
#[inline]
pub const fn multiply_high(a: u64, b: u64) -> u64 {
    ((a as u128 * b as u128) >> 64) as u64
}

/// Products and quotients through tables of logarithms and powers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arithmetic {
    /// q: bits after the highest one that index the tables; 1 to 16.
    table_bits: u32,
    /// Fractional bits that a table's entry keeps; 1 to 32.
    entry_bits: u32,
}

impl Arithmetic {
    /// The paper's example: tables of 256 entries.
    pub const PAPER: Arithmetic = Arithmetic { table_bits: 8, entry_bits: 24 };
    /// The authors' simulator: the 16 top bits, 15 fractional bits (spec of HPCC-PINT, "Arithmetic").
    pub const AUTHORS: Arithmetic = Arithmetic { table_bits: 15, entry_bits: 15 };

    /// None unless `table_bits` is 1 to 16 and `entry_bits` 1 to 32.
    pub const fn new(table_bits: u32, entry_bits: u32) -> Option<Arithmetic> {
        if table_bits == 0 || table_bits > 16 || entry_bits == 0 || entry_bits > 32 {
            return None;
        }
        Some(Arithmetic { table_bits, entry_bits })
    }

    pub const fn table_bits(self) -> u32 {
        self.table_bits
    }

    pub const fn entry_bits(self) -> u32 {
        self.entry_bits
    }

    /// log2 by the highest bit and a table of the next bits, in units of 2^-32: at most 1.443 * 2^-q too small, exact on powers of
    /// two (both up to the entry's last bit). Of 0 it is 0.
    #[inline]
    pub fn log2(self, v: u64) -> i64 {
        let dropped = (64 - v.leading_zeros()).saturating_sub(self.table_bits + 1);
        self.entry((v >> dropped) << dropped)
    }

    /// The same with the dropped bits of `v` rounded at random by `coin` (in units of 2^-32): the number that is looked up is `v`
    /// on average, so that an estimator which feeds on itself does not drift.
    #[inline]
    pub fn log2_rounded(self, v: u64, coin: u32) -> i64 {
        let dropped = (64 - v.leading_zeros()).saturating_sub(self.table_bits + 1);
        let (kept, rest) = (v >> dropped, v & ((1 << dropped) - 1));
        let up = ((u64::from(coin) << 32) >> (64 - dropped).min(63)) < rest;
        // Up from all ones is the next power of two; beyond 2^64 the largest number stands for it.
        let rounded = kept + u64::from(up);
        self.entry(if rounded.leading_zeros() < dropped { u64::MAX } else { rounded << dropped })
    }

    #[inline]
    fn entry(self, v: u64) -> i64 {
        let spare = FRACTION - self.entry_bits;
        ((log2(v) >> spare) << spare) as i64
    }

    /// 2^x for a sum of logarithms in units of 2^-32, rounded down to an integer, within 0.35 * 2^-q of itself before; the largest
    /// number from 2^64 on.
    #[inline]
    pub fn exp2(self, x: i64) -> u64 {
        let half = 1i64 << (FRACTION - self.table_bits - 1);
        let Some(x) = x.checked_add(half).filter(|&x| x >= 0) else { return 0 };
        if x >> FRACTION >= 64 {
            return u64::MAX;
        }
        let fraction = (x as u32) & !(2 * half as u32 - 1);
        let (power, exponent) = (exp2(fraction), (x >> FRACTION) as u32);
        if exponent >= FRACTION { power << (exponent - FRACTION) } else { power >> (FRACTION - exponent) }
    }

    /// a * b, saturating; 0 if one of them is.
    pub fn product(self, a: u64, b: u64) -> u64 {
        if a == 0 || b == 0 { 0 } else { self.exp2(self.log2(a) + self.log2(b)) }
    }

    /// a / b rounded down; the largest number if `b` is 0.
    pub fn quotient(self, a: u64, b: u64) -> u64 {
        match (a, b) {
            (_, 0) => u64::MAX,
            (0, _) => 0,
            _ => self.exp2(self.log2(a) - self.log2(b)),
        }
    }
}

#[cfg(test)]
mod tests;
