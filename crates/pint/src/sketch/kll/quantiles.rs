//! What a sketch says: ranks, quantiles, and how far off they may be.

use super::{Item, Kll, rank_deviation};

/// A quantile with its error bars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval<T> {
    pub value: T,
    /// The true quantile is not below this; None if the samples are too few, or the sketch too small, to say.
    pub low: Option<T>,
    /// The true quantile is not above this; None if the samples are too few, or the sketch too small, to say.
    pub high: Option<T>,
}

/// The items of a sketch in order, with the weight up to each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SortedView<T> {
    /// Item, and the weight of it and all before it.
    items: Vec<(T, u64)>,
    range: (T, T),
    /// Length of the stream.
    length: u64,
    /// Of the sketch; None if ranks are exact.
    k: Option<u32>,
}

impl<T: Item> Kll<T> {
    /// The items in order; None of an empty stream.
    pub fn sorted(&self) -> Option<SortedView<T>> {
        let range = self.range?;
        let mut items: Vec<(T, u64)> = Vec::with_capacity(self.retained());
        items.extend(self.sample.map(|sample| (sample.item, sample.weight)));
        for (level, &length) in self.lengths.iter().enumerate() {
            let (start, weight) = (self.start(level), 1 << (self.floor + level as u32));
            items.extend(self.items[start..start + length as usize].iter().map(|&item| (item, weight)));
        }
        items.sort_unstable();
        let mut total = 0;
        for (_, weight) in &mut items {
            total += *weight;
            *weight = total;
        }
        Some(SortedView { items, range, length: self.length, k: (!self.is_exact()).then_some(self.k) })
    }

    /// The `share`-quantile (in [0, 1]): the smallest item whose rank is at least `share`; None of an empty stream.
    pub fn quantile(&self, share: f64) -> Option<T> {
        Some(self.sorted()?.quantile(share))
    }

    /// The share of the stream that is at most `item`; 0 of an empty stream.
    pub fn rank(&self, item: T) -> f64 {
        self.sorted().map_or(0.0, |view| view.rank(item))
    }
}

impl<T: Item> SortedView<T> {
    /// The `share`-quantile, `share` brought into [0, 1]; exact at both ends.
    pub fn quantile(&self, share: f64) -> T {
        if share <= 0.0 {
            return self.range.0;
        }
        if share >= 1.0 {
            return self.range.1;
        }
        let total = self.items.last().map_or(0, |&(_, weight)| weight);
        // 0.9 of 10 is 9, not the next float's 10.
        let wanted = (share * total as f64 * (1.0 - 1e-15)).ceil() as u64;
        let place = self.items.partition_point(|&(_, weight)| weight < wanted);
        self.items.get(place).map_or(self.range.1, |&(item, _)| item)
    }

    /// The share of the stream that is at most `item`.
    pub fn rank(&self, item: T) -> f64 {
        let place = self.items.partition_point(|&(other, _)| other <= item);
        let below = if place == 0 { 0 } else { self.items[place - 1].1 };
        let total = self.items.last().map_or(1, |&(_, weight)| weight);
        below as f64 / total as f64
    }

    /// The `share`-quantile of what the stream is a sample of, with bars that hold with `confidence` (in (0, 1)). They span what
    /// independent sampling leaves open and the sketch's own rank error: exact order statistics while every item is kept, else the normal
    /// approximation with both variances. Samples that hang together (consecutive packets) are worth fewer than their number.
    pub fn interval(&self, share: f64, confidence: f64) -> Interval<T> {
        let value = self.quantile(share);
        let outside = (1.0 - confidence.clamp(1e-9, 1.0 - 1e-9)) / 2.0;
        let n = self.length as f64;
        let share = share.clamp(0.0, 1.0);
        let Some(k) = self.k else {
            let (low, high) = order_statistics(self.items.len(), share, outside);
            let item = |rank: usize| self.items.get(rank - 1).map(|&(item, _)| item);
            return Interval { value, low: low.and_then(item), high: high.and_then(item) };
        };
        let sketch = rank_deviation(k);
        let reach = normal_quantile(1.0 - outside) * (share * (1.0 - share) / n + sketch * sketch).sqrt();
        let low = (share - reach > 0.5 / n).then(|| self.quantile(share - reach));
        let high = (share + reach < 1.0 - 0.5 / n).then(|| self.quantile(share + reach));
        Interval { value, low, high }
    }
}

/// Ranks (from 1) of the samples of `n` that the `share`-quantile lies between, below and above each with probability at most
/// `outside`: the number of samples below the quantile is binomial.
fn order_statistics(n: usize, share: f64, outside: f64) -> (Option<usize>, Option<usize>) {
    if share <= 0.0 || share >= 1.0 {
        return (None, None);
    }
    // The largest l with P(Bin(n, share) <= l - 1) <= outside, and the same from above.
    let from_below = |share: f64| {
        let (count, odds) = (n as f64, libm::log(share) - libm::log1p(-share));
        let mut log_term = count * libm::log1p(-share);
        let mut sum = 0.0;
        for l in 0..n {
            sum += libm::exp(log_term);
            if sum > outside {
                return l;
            }
            log_term += libm::log((count - l as f64) / (l as f64 + 1.0)) + odds;
        }
        n
    };
    let (low, high) = (from_below(share), from_below(1.0 - share));
    ((low > 0).then_some(low), (high > 0).then(|| n + 1 - high))
}

/// The `p`-quantile of the standard normal distribution, p in (0, 1).
pub(crate) fn normal_quantile(p: f64) -> f64 {
    let below = |x: f64| 0.5 * libm::erfc(-x / core::f64::consts::SQRT_2);
    let (mut low, mut high) = (-9.0, 9.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if below(middle) < p { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_statistics_are_those_of_the_binomial() {
        // Median of 10: P(Bin(10, 1/2) <= 1) = 11/1024 = 1.07 %, <= 2: 5.47 %. So 95 % lies between the 2nd and the 9th.
        assert_eq!(order_statistics(10, 0.5, 0.025), (Some(2), Some(9)));
        // The median of 5 is below all of them with probability 1/32 = 3.1 %.
        assert_eq!(order_statistics(5, 0.5, 0.025), (None, None));
        assert_eq!(order_statistics(5, 0.5, 0.04), (Some(1), Some(5)));
        // p99 of 100: P(all 100 below) = 36.6 %, no upper bound.
        let (low, high) = order_statistics(100, 0.99, 0.025);
        assert!(high.is_none() && low == Some(97), "{low:?}");
    }

    #[test]
    fn normal_quantiles_are_those_of_the_tables() {
        for (p, x) in [(0.5, 0.0), (0.975, 1.959_964), (0.995, 2.575_829), (0.001, -3.090_232)] {
            assert!((normal_quantile(p) - x).abs() < 1e-6);
        }
    }
}
