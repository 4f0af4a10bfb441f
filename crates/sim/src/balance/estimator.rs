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
    #[cfg(test)]
    fn tau(&self) -> u64 {
        self.tau
    }
}

/// Of one link in one direction.
#[derive(Debug, Clone, Copy, Default)]
pub struct LinkEstimator {
    /// Bytes with [`FRACTION_BITS`].
    used: u64,
    last: u64,
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
        // U 8 / (C tau), tau in seconds; 256 of them are the whole link.
        let whole = u128::from(bits_per_second) * u128::from(law.tau) / 8_000_000_000_000;
        let used = (u128::from(self.left(law, now)) * 256) >> FRACTION_BITS;
        (used / whole.max(1)).min(255) as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1_000_000;

    /// 1500 B every so many ns for 8 ms, many times tau; the estimator and the time of the last departure.
    fn steady(law: &EstimatorLaw, every_ns: u64) -> (LinkEstimator, u64) {
        let mut link = LinkEstimator::default();
        let mut now = 0;
        while now < 8000 * US {
            now += every_ns * 1000;
            link.add(law, 1500, now);
        }
        (link, now)
    }

    #[test]
    fn by_hand_half_is_forgotten_after_half_of_tau() {
        let law = EstimatorLaw::exact(400 * US);
        let mut link = LinkEstimator::default();
        link.add(&law, 1000, 0);
        link.add(&law, 500, 200 * US);
        // 500 + 1000 / 2, of which after another 100 us three quarters are left.
        assert_eq!((link.bytes(&law, 200 * US), link.bytes(&law, 300 * US)), (1000, 750));
        // Reading changes nothing; beyond tau nothing is left, and never less than nothing.
        assert_eq!(link.bytes(&law, 599 * US), 2);
        assert_eq!((link.bytes(&law, 600 * US), link.bytes(&law, 9_000 * US)), (0, 0));
        link.add(&law, 700, 9_000 * US);
        assert_eq!(link.bytes(&law, 9_000 * US), 700);
    }

    #[test]
    fn the_fixed_point_is_rate_times_tau_within_a_packet() {
        for law in [EstimatorLaw::exact(400 * US), EstimatorLaw::shifting(400 * US)] {
            for every_ns in [120, 400, 1200, 5000] {
                let (link, now) = steady(&law, every_ns);
                let expected = 1500 * law.tau() / (every_ns * 1000);
                let found = link.bytes(&law, now);
                assert!(
                    found.abs_diff(expected) <= 1500 + expected / 300,
                    "{law:?} {every_ns}: {found} {expected}"
                );
            }
        }
    }

    #[test]
    fn the_same_load_reads_alike_on_links_of_any_rate_and_a_full_link_reads_full() {
        let law = EstimatorLaw::exact(400 * US);
        // 1500 B take 1200 ns at 10 Gb/s and 300 ns at 40: every 2400 ns and every 600 ns is half.
        for (every_ns, gbps) in [(2400, 10), (600, 40)] {
            let (link, now) = steady(&law, every_ns);
            let read = link.utilisation(&law, now, gbps * 1_000_000_000);
            assert!((127..=131).contains(&read), "{read} at {gbps} Gb/s");
        }
        let (link, now) = steady(&law, 1200);
        assert_eq!(link.utilisation(&law, now, 10_000_000_000), 255);
        assert_eq!(
            link.utilisation(&law, now + 400 * US, 10_000_000_000),
            0,
            "an idle link does not keep its value"
        );
    }

    #[test]
    fn the_hardware_form_takes_the_nearest_power_of_two() {
        // 400 us are 390 625 ticks: 2^18 is 262 144, 2^19 is 524 288, which is nearer in ratio.
        assert_eq!(EstimatorLaw::shifting(400 * US).tau(), 1 << 29);
        assert_eq!(EstimatorLaw::shifting(1 << 28).tau(), 1 << 28);
    }
}
