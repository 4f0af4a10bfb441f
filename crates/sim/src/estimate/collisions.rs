//! Flows that keep to one path each and take the same next hop by chance: how many, and how much later they
//! end.
//!
//! ```text
//! C(n, m) (1 / k)^m (1 - 1 / k)^(n - m)      chance that of n flows, each at one of k next hops, m are at a given one
//! ```
//!
//! So the sum over flows of the chance that each finds m others at its next hop, when it comes, is the number
//! of next hops that come to have m + 1 of them. Looked at are the links from the switch of a source to
//! others, and those to the switch of a destination.
//!
//! Differs from a run: links between other switches, such as those of a core, are shared evenly; the hash of
//! the run is not computed, so the end is that of half of all seeds.

/// Beyond this number of flows at the same links their shares are taken as even.
const MANY: u32 = 1000;
/// A smaller chance is left out.
const RARE: f64 = 1e-7;

/// The chances that one more of `others` flows, each at one of `hops` next hops, finds 1, 2, ... of these at
/// its own.
pub fn chances(others: u32, hops: usize) -> impl Iterator<Item = (u32, f64)> {
    let (n, ways) = (f64::from(others), hops as f64);
    let largest = if hops > 1 && others <= MANY { others } else { 0 };
    let (mean, mut chance) = (n / ways, (1.0 - 1.0 / ways).powf(n));
    (1..=largest)
        .map(move |m| {
            chance *= (n - f64::from(m) + 1.0) / (f64::from(m) * (ways - 1.0));
            (m, chance)
        })
        .take_while(move |&(m, chance)| f64::from(m) < mean || chance > RARE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chances_are_those_of_a_binomial_law() {
        let of = |others, hops| chances(others, hops).map(|(_, chance)| chance).collect::<Vec<_>>();
        let near = |found: Vec<f64>, expected: &[f64]| {
            assert_eq!(found.len(), expected.len(), "{found:?}");
            for (found, expected) in found.iter().zip(expected) {
                assert!((found - expected).abs() < 1e-12, "{found} {expected}");
            }
        };
        // Two coins; three dice.
        near(of(2, 2), &[0.5, 0.25]);
        near(of(3, 6), &[75.0 / 216.0, 15.0 / 216.0, 1.0 / 216.0]);
        near(of(0, 4), &[]);
        // There is no choice of one next hop, and many flows are even.
        near(of(3, 1), &[]);
        near(of(MANY + 1, 4), &[]);
        let whole: f64 = of(MANY, 4).iter().sum();
        assert!((whole - 1.0).abs() < 1e-4, "{whole}");
    }

    /// Four flows at four next hops: all at one in 4 of 256 cases, three at one in 48.
    #[test]
    fn the_sum_over_flows_is_the_number_of_next_hops_with_so_many() {
        let with = |flows: u32| -> f64 {
            let of =
                |earlier: u32| chances(earlier, 4).find(|&(m, _)| m + 1 == flows).map_or(0.0, |(_, c)| c);
            (0..4).map(of).sum()
        };
        assert!((with(4) - 4.0 / 256.0).abs() < 1e-12, "{}", with(4));
        // Those with three, and those that had three before they had four.
        assert!((with(3) - (48.0 + 4.0) / 256.0).abs() < 1e-12, "{}", with(3));
    }
}
