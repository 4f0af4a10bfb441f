//! The discounting rate estimator of a link: bytes that left it, a share of them forgotten at every tick.
//!
//! ```text
//! X <- X + bytes, for every packet;  X <- X (1 - alpha), every T;  X is about C tau on a full link, tau = T / alpha
//! ```
//!
//! It is read in steps of the link's rate, as few bits as a header has for it.
//!
//! A kernel: whole numbers, no clock; times are in picoseconds. Ticks that passed unseen are made up for when it is touched.
//!
//! Source: Alizadeh et al., "CONGA: distributed congestion-aware load balancing for datacenters", SIGCOMM 2014, §3.2.

/// What all estimators of a switch share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DreLaw {
    /// T.
    tick: u64,
    /// alpha in 1/1024.
    alpha: u64,
    tau: u64,
    bits: u32,
}

const FRACTION_BITS: u32 = 8;

impl DreLaw {
    /// `alpha` in 1/1024, 1 to 1024; the metric has `bits` bits, 1 to 8.
    pub fn new(tau: u64, alpha: u32, bits: u8) -> DreLaw {
        let alpha = u64::from(alpha.clamp(1, 1024));
        let tick = (u128::from(tau) * u128::from(alpha) / 1024).max(1) as u64;
        DreLaw { tick, alpha, tau: tau.max(1), bits: u32::from(bits.clamp(1, 8)) }
    }
}

/// Of one link in one direction.
#[derive(Debug, Clone, Copy, Default)]
pub struct Dre {
    /// X, in parts of a byte.
    used: u64,
    /// It was discounted for all ticks before this time, when the next one comes.
    next: u64,
    /// Of the link's rate, in bits per second: what a full link comes to, in parts of a byte.
    rate: u64,
    full: u64,
}

impl Dre {
    #[inline]
    fn left(&self, law: &DreLaw, now: u64) -> u64 {
        if now < self.next { self.used } else { self.discounted(law, now) }
    }

    #[inline(never)]
    fn discounted(&self, law: &DreLaw, now: u64) -> u64 {
        let mut left = self.used;
        for _ in 0..=(now - self.next) / law.tick {
            if left == 0 {
                break;
            }
            // Rounded up, so that it comes to nothing.
            left -= (left * law.alpha).div_ceil(1024);
        }
        left
    }

    /// A packet of so many bytes leaves.
    #[inline]
    pub fn add(&mut self, law: &DreLaw, bytes: u32, now: u64) {
        if now >= self.next {
            self.used = self.discounted(law, now);
            self.next = (now / law.tick).saturating_add(1).saturating_mul(law.tick);
        }
        self.used += u64::from(bytes) << FRACTION_BITS;
    }

    /// The link's rate in bits per second, where it may have changed.
    #[inline]
    pub fn set_rate(&mut self, law: &DreLaw, rate: u64) {
        if rate != self.rate {
            let full = u128::from(rate) * u128::from(law.tau) / (8_000_000_000_000 >> FRACTION_BITS);
            (self.rate, self.full) = (rate, full.clamp(1, u128::from(u64::MAX)) as u64);
        }
    }

    /// How busy the link is, in steps of the law's bits. Its rate must have been set.
    #[inline]
    pub fn metric(&self, law: &DreLaw, now: u64) -> u8 {
        let max = (1u64 << law.bits) - 1;
        let used = self.left(law, now).min(u64::MAX >> law.bits);
        ((used << law.bits) / self.full.max(1)).min(max) as u8
    }
}

#[cfg(test)]
mod tests;
