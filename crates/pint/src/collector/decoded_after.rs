//! How many digests paths took until they were known.

use std::collections::BTreeMap;

/// Paths by the digests that they took. Few entries: n different numbers need n^2 / 2 digests.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DecodedAfter(BTreeMap<u64, u64>);

impl DecodedAfter {
    /// A path became known after this number of digests. A path that changed and became known again counts again.
    pub fn add(&mut self, digests: u64) {
        *self.0.entry(digests).or_default() += 1;
    }

    /// Paths that became known. Those that never did are not counted here, and would raise every number below.
    pub fn known(&self) -> u64 {
        self.0.values().sum()
    }

    /// Mean over the paths that became known.
    pub fn mean(&self) -> Option<f64> {
        let sum: f64 = self.0.iter().map(|(&digests, &paths)| digests as f64 * paths as f64).sum();
        (!self.0.is_empty()).then(|| sum / self.known() as f64)
    }

    /// The element floor(n `share`) of the n sorted numbers, from 0.
    pub fn at(&self, share: f64) -> Option<u64> {
        let known = self.known();
        let place = ((known as f64 * share) as u64).min(known.saturating_sub(1));
        let mut before = 0;
        let reaches = |(_, paths): &(&u64, &u64)| {
            before += **paths;
            before > place
        };
        self.0.iter().find(reaches).map(|(&digests, _)| digests)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_and_percentiles_are_those_of_the_sorted_numbers() {
        let mut found = DecodedAfter::default();
        assert_eq!((found.known(), found.mean(), found.at(0.5)), (0, None, None));
        [9, 3, 5, 3].into_iter().for_each(|digests| found.add(digests));
        assert_eq!((found.known(), found.mean()), (4, Some(5.0)));
        assert_eq!([0.0, 0.25, 0.5, 0.75, 1.0].map(|share| found.at(share)), [3, 3, 5, 9, 9].map(Some));
    }
}
