//! What path tracing is compared with: packets until a path of k hops is known by PPM and by AMS2, each with one sampled hop a packet.
//!
//! *PPM* (probabilistic packet marking) cuts a router's address into 8 fragments; a packet brings one fragment of one hop, and all 8 k are
//! needed. *AMS2* (advanced marking scheme) brings one of 8 hashes of a hop's address, and m different ones of every hop are needed. Both
//! are counted in packets only; the search for addresses that fit, and the false ones that AMS2 finds, are left out, as in the authors'
//! script.
//!
//! Source: Ben Basat et al., "PINT", SIGCOMM 2020, §6.3, Fig 10; Savage et al., SIGCOMM 2000 (PPM); Song and Perrig, INFOCOM 2001 (AMS2).
//! Differs from the source: [`Scheme::Ams2AsDrawn`] is what the published curves agree with (7 hashes, every second packet of no use);
//! [`Scheme::Ams2`] is the scheme as described.

use crate::accuracy::{Draws, PathTrials};

/// A scheme that is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// 8 fragments of every hop.
    Ppm,
    /// `m` (1 to 8) of 8 hashes of every hop.
    Ams2 { m: u32 },
    /// `m` (1 to 7) of 7 hashes of every hop, and only every second packet counts for it.
    Ams2AsDrawn { m: u32 },
}

impl Scheme {
    /// By its name: `ppm`, `ams2`, `ams2-as-drawn`; `m` counts for the last two.
    pub fn named(name: &str, m: u32) -> Option<Scheme> {
        match name {
            "ppm" => Some(Scheme::Ppm),
            "ams2" => Some(Scheme::Ams2 { m }),
            "ams2-as-drawn" => Some(Scheme::Ams2AsDrawn { m }),
            _ => None,
        }
    }

    /// Different marks of a hop, and how many of them are needed.
    fn marks(self) -> (u64, u32) {
        match self {
            Scheme::Ppm => (8, 8),
            Scheme::Ams2 { m } => (8, m.clamp(1, 8)),
            Scheme::Ams2AsDrawn { m } => (7, m.clamp(1, 7)),
        }
    }
}

/// Packets until a path of `hops` is known, drawn at random.
pub fn packets(scheme: Scheme, hops: u32, draws: &mut Draws) -> u64 {
    let (marks, needed) = scheme.marks();
    let unused = matches!(scheme, Scheme::Ams2AsDrawn { .. });
    let mut seen = vec![0u8; hops as usize];
    let (mut open, mut count) = (hops, 0);
    while open > 0 {
        count += 1;
        if unused && draws.below(2) == 0 {
            continue;
        }
        let hop = &mut seen[draws.below(u64::from(hops)) as usize];
        let before = hop.count_ones();
        *hop |= 1 << draws.below(marks);
        open -= u32::from(before < needed && hop.count_ones() == needed);
    }
    count
}

/// Packets over trials.
pub fn trials(scheme: Scheme, hops: u32, trials: u32, seed: u64) -> PathTrials {
    let mut draws = Draws::new(seed);
    PathTrials::of((0..trials.max(1)).map(|_| packets(scheme, hops, &mut draws)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Means of an independent check of the PINT paper's Fig 10.
    #[test]
    fn the_means_are_those_of_the_published_comparison_within_3_percent() {
        let table: [(Scheme, [f64; 6]); 5] = [
            (Scheme::Ppm, [54., 173., 398., 1182., 1813., 3175.]),
            (Scheme::Ams2 { m: 5 }, [18., 56., 128., 373., 574., 1008.]),
            (Scheme::Ams2 { m: 6 }, [24., 76., 172., 498., 755., 1332.]),
            (Scheme::Ams2AsDrawn { m: 5 }, [39., 122., 280., 815., 1251., 2197.]),
            (Scheme::Ams2AsDrawn { m: 6 }, [55., 174., 401., 1176., 1792., 3165.]),
        ];
        for (scheme, means) in table {
            for (hops, expected) in [2, 5, 10, 25, 36, 59].into_iter().zip(means) {
                let mean = trials(scheme, hops, 3_000, 1).mean;
                // The table's means are rounded to whole packets.
                let off = (mean - expected).abs();
                assert!(
                    off <= 0.03 * expected + 0.5,
                    "{scheme:?}, {hops} hops: {mean:.1} against {expected}"
                );
            }
        }
    }

    /// One hop, all 8 fragments: 8 H_8 = 21.74 packets.
    #[test]
    fn one_hop_is_a_coupon_collector() {
        let mean = trials(Scheme::Ppm, 1, 20_000, 2).mean;
        assert!((mean - 21.743).abs() < 0.3, "{mean}");
    }
}
