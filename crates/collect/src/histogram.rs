//! Counts of values in buckets of at most 1/32 of their value: quantiles that do not depend on the order of
//! the values.

use serde::{Deserialize, Serialize};

const SUB_BITS: u32 = 5;
/// The maximum relative error of a quantile.
pub const ERROR: f64 = 1.0 / (1 << SUB_BITS) as f64;
/// By how much one value may increase the memory of a histogram: a sixteenth of all 1 920 buckets.
pub const MAX_GROWTH_BYTES: usize = MAX_GROWTH * size_of::<(u16, u64)>();
const MAX_GROWTH: usize = 120;

/// Counts, and what is known exactly. At most 1 920 buckets.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Histogram {
    /// Buckets and their counts, in the order of the buckets.
    buckets: Vec<(u16, u64)>,
    pub count: u64,
    pub sum: u128,
    pub max: u64,
}

impl Histogram {
    /// Adds a value; returns by how many bytes the histogram grew.
    pub fn add(&mut self, value: u64) -> usize {
        self.count += 1;
        self.sum += u128::from(value);
        self.max = self.max.max(value);
        self.add_to(bucket(value), 1)
    }

    fn add_to(&mut self, bucket: u16, count: u64) -> usize {
        match self.buckets.binary_search_by_key(&bucket, |&(bucket, _)| bucket) {
            Ok(place) => {
                self.buckets[place].1 += count;
                0
            }
            Err(place) => {
                let before = self.buckets.capacity();
                if self.buckets.len() == before {
                    self.buckets.reserve_exact(before.clamp(4, MAX_GROWTH));
                }
                self.buckets.insert(place, (bucket, count));
                (self.buckets.capacity() - before) * size_of::<(u16, u64)>()
            }
        }
    }

    /// Adds the values of another histogram.
    pub fn merge(&mut self, other: &Histogram) {
        for &(bucket, count) in &other.buckets {
            self.add_to(bucket, count);
        }
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    /// The values that were added since `earlier`, a former state of this histogram; their maximum is that of
    /// their bucket.
    pub fn since(&self, earlier: &Histogram) -> Histogram {
        let mut before = earlier.buckets.iter().copied().peekable();
        let mut found = Histogram::default();
        for &(bucket, count) in &self.buckets {
            let old = before.next_if(|&(other, _)| other == bucket).map_or(0, |(_, old)| old);
            if count > old {
                found.buckets.push((bucket, count - old));
                found.max = upper(bucket).min(self.max);
            }
        }
        found.count = self.count - earlier.count;
        found.sum = self.sum - earlier.sum;
        found
    }

    /// The upper end of each bucket and its count.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.buckets.iter().map(|&(bucket, count)| (upper(bucket), count))
    }

    /// The memory of the buckets.
    pub fn bytes(&self) -> usize {
        self.buckets.capacity() * size_of::<(u16, u64)>()
    }

    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// A value that is at most [`ERROR`] above the one of this rank (0 to 1); None of no values.
    pub fn quantile(&self, rank: f64) -> Option<u64> {
        let place = ((self.count as f64 * rank).ceil() as u64).clamp(1, self.count.max(1));
        let mut below = 0;
        let &(bucket, _) = self.buckets.iter().find(|&&(_, count)| {
            below += count;
            below >= place
        })?;
        Some(upper(bucket).min(self.max))
    }
}

fn bucket(value: u64) -> u16 {
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(SUB_BITS + 1);
    (shift << SUB_BITS) as u16 + (value >> shift) as u16
}

/// The largest value of a bucket.
fn upper(bucket: u16) -> u64 {
    let shift = (u32::from(bucket) >> SUB_BITS).saturating_sub(1);
    let lead = u64::from(bucket) - (u64::from(shift) << SUB_BITS);
    (lead << shift) + ((1 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn a_value_is_within_the_error_of_its_bucket(value: u64) {
            let edge = upper(bucket(value));
            proptest::prop_assert!(edge >= value);
            proptest::prop_assert!((edge - value) as f64 <= value as f64 * ERROR);
        }
    }

    #[test]
    fn quantiles_of_a_thousand_values() {
        let mut histogram = Histogram::default();
        (1..=1000).rev().for_each(|value| assert!(histogram.add(value) <= MAX_GROWTH_BYTES));
        let median = histogram.quantile(0.5).unwrap();
        assert!((500..=516).contains(&median), "{median}");
        assert_eq!((histogram.quantile(1.0), histogram.mean()), (Some(1000), Some(500.5)));
        assert_eq!(Histogram::default().quantile(0.5), None);
    }
}
