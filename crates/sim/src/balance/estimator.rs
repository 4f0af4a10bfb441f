//! How busy a link is: bytes that left it of late, older ones forgotten in proportion.
//!
//! ```text
//! U <- D + U max(0, 1 - dt / tau)
//! ```
//!
//! for every departure of D bytes, dt after the one before. At a constant rate r it comes to U = r tau, so the link's
//! utilisation is U / (C tau). It decays when it is read, too: an idle link does not keep its last value. The hardware form
//! counts time in ticks of 1.024 ns, takes the power of two next to tau, and shifts where the exact one divides.
//!
//! A kernel: whole numbers, no clock; times are in picoseconds.
//!
//! Source: Katta et al., "HULA: scalable load balancing using programmable data planes", SOSR 2016 (recalled); the shift and
//! the clamp as public P4 and ns-3 versions have them.

/// What all estimators of a switch share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EstimatorLaw {
    /// Picoseconds; a power of two in the hardware form.
    tau: u64,
    /// 2^64 over tau: multiplying by it divides.
    reciprocal: u64,
    /// Bits to shift by in the hardware form.
    shift: Option<u32>,
}

/// Picoseconds of a hardware tick, as a power of two.
const TICK_BITS: u32 = 10;
/// U is kept in parts of a byte, so that what is forgotten is not rounded away.
const FRACTION_BITS: u32 = 8;

impl EstimatorLaw {
    pub fn exact(tau: u64) -> EstimatorLaw {
        let tau = tau.max(2);
        EstimatorLaw { tau, reciprocal: u64::MAX / tau, shift: None }
    }

    pub fn shifting(tau: u64) -> EstimatorLaw {
        let ticks = (tau >> TICK_BITS).max(1);
        let below = 63 - ticks.leading_zeros();
        // The power of two with the smaller ratio to tau.
        let above = below < 40 && u128::from(ticks) * u128::from(ticks) > 1u128 << (2 * below + 1);
        let shift = below + u32::from(above);
        EstimatorLaw { tau: 1 << (shift + TICK_BITS), reciprocal: 0, shift: Some(shift) }
    }

    /// Over which it averages, in picoseconds.
    pub fn tau(&self) -> u64 {
        self.tau
    }

    /// 2^64 over that; 0 in the hardware form.
    pub fn reciprocal(&self) -> u64 {
        self.reciprocal
    }

    /// Bits to shift by; none: the exact form.
    pub fn shift(&self) -> Option<u32> {
        self.shift
    }

    /// Bytes that a full link of this rate sends in that time.
    pub fn whole(&self, bits_per_second: u64) -> u64 {
        // U 8 / (C tau), tau in seconds.
        let whole = u128::from(bits_per_second) * u128::from(self.tau) / 8_000_000_000_000;
        u64::try_from(whole.max(1)).unwrap_or(u64::MAX)
    }
}

/// Of one link in one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkEstimator {
    /// Bytes with [`FRACTION_BITS`].
    pub used: u64,
    /// Time of the last departure.
    pub last: u64,
}

impl LinkEstimator {
    /// What is left of U at a time not before the last departure.
    #[inline]
    fn left(&self, law: &EstimatorLaw, now: u64) -> u64 {
        match law.shift {
            None => {
                let passed = now - self.last;
                if passed >= law.tau {
                    return 0;
                }
                // The share of tau that has passed, in 1/2^64.
                let share = passed * law.reciprocal;
                self.used - ((u128::from(self.used) * u128::from(share)) >> 64) as u64
            }
            Some(shift) => {
                let passed = (now >> TICK_BITS) - (self.last >> TICK_BITS);
                if passed >> shift > 0 {
                    return 0;
                }
                self.used - ((u128::from(self.used) * u128::from(passed)) >> shift) as u64
            }
        }
    }

    /// A packet of so many bytes leaves.
    #[inline]
    pub fn add(&mut self, law: &EstimatorLaw, bytes: u32, now: u64) {
        self.used = self.left(law, now) + (u64::from(bytes) << FRACTION_BITS);
        self.last = now;
    }

    /// Bytes that count at a time.
    #[cfg(test)]
    fn bytes(&self, law: &EstimatorLaw, now: u64) -> u64 {
        self.left(law, now) >> FRACTION_BITS
    }

    /// Utilisation of a link with this rate in 1/256, at most 255.
    pub fn utilisation(&self, law: &EstimatorLaw, now: u64, bits_per_second: u64) -> u8 {
        // 256 parts of a byte are one byte, and 256 parts of a link the whole link.
        (self.left(law, now) / law.whole(bits_per_second)).min(255) as u8
    }
}

#[cfg(test)]
mod tests;
