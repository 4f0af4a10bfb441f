//! KLL: quantiles of a stream of any length in space that depends on the wanted error only.
//!
//! Items live in levels; an item of level l stands for 2^l of the stream. When all levels together are full,
//! the lowest that is over its share is sorted and every second item of it, from the first or the second by a
//! fair coin, moves up a level. The top level has room for k items, each below it for 2/3 of the one above.
//! Levels whose room would be less than 2 are not kept: one *sampler* stands for all of them, which passes on
//! one of 2^f items, each with the same probability.
//!
//! - Up to k items nothing is thrown away: ranks are exact.
//! - Beyond, the rank of a value is off by at most [`rank_error`]`(k)` of the stream with 99 % confidence:
//!   1.33 % for k = 200.
//! - At most [`room`]`(k)` items are kept, about 3k, however long the stream.
//! - The coin is drawn from a seed: the same stream gives the same sketch, to the bit.
//!
//! Source: Karnin, Lang and Liberty, "Optimal Quantile Approximation in Streams", FOCS 2016, §3 and §4
//! (levels, sampler, merging); filling all levels before compacting one: Ivkin et al., "Streaming Quantiles
//! Algorithms with Small Space and Update Time", 2019, §3.1. Differs from the source: an odd item out stays
//! in its level. Validated by: the tests below; `python/tests/test_pint_oracle.py` against Apache
//! DataSketches.

mod quantiles;
mod written;

use crate::hash::{GOLDEN, mix};

pub(crate) use quantiles::normal_quantile;
pub use quantiles::{Interval, SortedView};

/// Range of k.
pub const MIN_K: u32 = 8;
pub const MAX_K: u32 = 65_535;
/// The longest stream, in items; far beyond what a collector lives to see, and no weight overflows.
pub const MAX_LENGTH: u64 = 1 << 56;

/// What a sketch can hold: an ordered number of fixed width.
pub trait Item: Copy + Ord {
    const BYTES: usize;
    /// Appends [`Item::BYTES`] bytes.
    fn write(self, bytes: &mut Vec<u8>);
    /// The item of [`Item::BYTES`] bytes.
    fn read(bytes: &[u8]) -> Self;
}

macro_rules! item {
    ($($int:ty),*) => {$(
        impl Item for $int {
            const BYTES: usize = size_of::<$int>();

            fn write(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }

            fn read(bytes: &[u8]) -> $int {
                let mut place = [0; size_of::<$int>()];
                place.copy_from_slice(bytes);
                <$int>::from_le_bytes(place)
            }
        }
    )*};
}
item!(u8, u16, u32, u64);

/// A floating-point number with the order of its bits: that of the numbers, -0 below 0, NaN at the ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Real(u64);

impl From<f64> for Real {
    fn from(x: f64) -> Real {
        let bits = x.to_bits();
        Real(if bits >> 63 == 1 { !bits } else { bits | 1 << 63 })
    }
}

impl From<Real> for f64 {
    fn from(Real(key): Real) -> f64 {
        f64::from_bits(if key >> 63 == 1 { key & !(1 << 63) } else { !key })
    }
}

impl Item for Real {
    const BYTES: usize = 8;

    fn write(self, bytes: &mut Vec<u8>) {
        self.0.write(bytes);
    }

    fn read(bytes: &[u8]) -> Real {
        Real(u64::read(bytes))
    }
}

/// Rank error of one quantile, as a share of the stream, that 99 of 100 sketches stay within. The curve that
/// Apache DataSketches publishes for its KLL (1.33 % at k = 200); this sketch stays below it, as the tests
/// check.
pub fn rank_error(k: u32) -> f64 {
    2.296 / libm::pow(f64::from(k), 0.9723)
}

/// Standard deviations of a rank's error that [`rank_error`] comes to; measured, 4.0 to 6.2 for k from 50 to
/// 800 (the tests check it). The published curve bounds the largest error over all ranks.
pub const RANK_DEVIATIONS: f64 = 4.5;
/// The same for error bars, for k from 8 on: small sketches have larger errors than the curve has.
const MIN_RANK_DEVIATIONS: f64 = 3.5;

/// The rank error at the rank `phi` as a share of that in the middle. Compacting m items, about 2/3 k, moves
/// a rank only if an odd number of them is beyond it: with probability (1 - (1 - 2q)^m) / 2 where a share q
/// of the stream is beyond it.
pub fn tail_share(k: u32, phi: f64) -> f64 {
    let beyond = phi.min(1.0 - phi).clamp(0.0, 0.5);
    libm::sqrt(1.0 - libm::pow(1.0 - 2.0 * beyond, 2.0 * f64::from(k) / 3.0))
}

/// Standard deviation of a rank's error, as a share of the stream, for error bars: of ranks in the middle. At
/// the tail of a small sketch errors are smaller on average, but not normal: some are as large.
pub fn rank_deviation(k: u32) -> f64 {
    rank_error(k) / MIN_RANK_DEVIATIONS
}

/// Maximum number of items of a sketch (without the one in its sampler).
pub fn room(k: u32) -> usize {
    total_room(k, level_limit(k))
}

/// The largest k whose sketches keep at most `items`; None if even [`MIN_K`] keeps more.
pub fn k_for_room(items: usize) -> Option<u32> {
    let (mut fits, mut beyond) = (MIN_K, MAX_K + 1);
    if room(fits) > items {
        return None;
    }
    while beyond - fits > 1 {
        let middle = fits + (beyond - fits) / 2;
        if room(middle) <= items { fits = middle } else { beyond = middle }
    }
    Some(fits)
}

/// ceil(k (2/3)^depth), at least 2: room of the level `depth` below the top.
fn level_room(k: u32, depth: u32) -> usize {
    // Depths stay below `level_limit`, at most 26: 2^26 k and 3^26 fit.
    (u64::from(k) << depth).div_ceil(3u64.pow(depth)).max(2) as usize
}

/// Levels before the sampler takes over: those with room for more than 2 items, and one.
fn level_limit(k: u32) -> usize {
    (1..26).find(|&depth| level_room(k, depth) <= 2).unwrap_or(26) as usize + 1
}

fn total_room(k: u32, levels: usize) -> usize {
    (0..levels as u32).map(|depth| level_room(k, depth)).sum()
}

/// Two sketches describe more than [`MAX_LENGTH`] items together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the merged sketch would describe more than 2^56 items")]
pub struct TooLong;

/// One of the items that the sampler has seen, with the weight of them all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sample<T> {
    item: T,
    weight: u64,
}

/// The sketch of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kll<T> {
    k: u32,
    /// Items of the lowest level stand for 2^`floor`; above 0 the sampler works.
    floor: u32,
    /// Length of the stream.
    length: u64,
    /// Steps on with every coin.
    coin: u64,
    sample: Option<Sample<T>>,
    /// Smallest and largest of the stream.
    range: Option<(T, T)>,
    /// The levels from the top to the lowest. All but the lowest are sorted.
    items: Vec<T>,
    /// Items in each level, the lowest first.
    lengths: Vec<u32>,
    /// Most items before a compaction, for this number of levels.
    full: usize,
}

impl<T: Item> Kll<T> {
    /// An empty sketch; `k` is brought into [`MIN_K`] to [`MAX_K`].
    pub fn new(k: u32, seed: u64) -> Kll<T> {
        let k = k.clamp(MIN_K, MAX_K);
        Kll {
            k,
            floor: 0,
            length: 0,
            coin: mix(seed),
            sample: None,
            range: None,
            items: Vec::new(),
            lengths: vec![0],
            full: total_room(k, 1),
        }
    }

    pub fn k(&self) -> u32 {
        self.k
    }

    /// Length of the stream.
    pub fn len(&self) -> u64 {
        self.length
    }

    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Items kept.
    pub fn retained(&self) -> usize {
        self.items.len() + usize::from(self.sample.is_some())
    }

    /// Whether every item is kept, so that ranks are exact.
    pub fn is_exact(&self) -> bool {
        self.floor == 0 && self.lengths.len() == 1
    }

    /// Smallest and largest item of the stream.
    pub fn range(&self) -> Option<(T, T)> {
        self.range
    }

    /// Bytes of memory, the struct included.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.items.capacity() * size_of::<T>() + self.lengths.capacity() * 4
    }

    /// Takes an item in. Beyond [`MAX_LENGTH`] items are left out.
    pub fn update(&mut self, item: T) {
        if self.length >= MAX_LENGTH {
            return;
        }
        self.length += 1;
        self.range = Some(self.range.map_or((item, item), |(low, high)| (low.min(item), high.max(item))));
        self.insert(item, 1);
        self.compress();
    }

    /// Takes all in that `other` has seen. The smaller k of both counts from then on.
    pub fn merge(&mut self, other: &Kll<T>) -> Result<(), TooLong> {
        let length = self.length.saturating_add(other.length);
        if length > MAX_LENGTH {
            return Err(TooLong);
        }
        if other.k < self.k {
            self.k = other.k;
            self.limit_levels();
        }
        self.length = length;
        if let Some((low, high)) = other.range {
            self.range = Some(self.range.map_or((low, high), |(l, h)| (l.min(low), h.max(high))));
        }
        while self.floor < other.floor {
            self.absorb_lowest();
        }
        if let Some(sample) = other.sample {
            self.insert(sample.item, sample.weight);
        }
        for level in 0..other.lengths.len() {
            let start = other.start(level);
            let items = &other.items[start..start + other.lengths[level] as usize];
            self.insert_level(other.floor + level as u32, items);
        }
        self.full = total_room(self.k, self.lengths.len());
        self.compress();
        Ok(())
    }

    /// Items of weight 2^`height`, sorted or not.
    fn insert_level(&mut self, height: u32, items: &[T]) {
        if height <= self.floor {
            items.iter().for_each(|&item| self.insert(item, 1 << height));
            return;
        }
        let level = (height - self.floor) as usize;
        while self.lengths.len() <= level {
            self.lengths.push(0);
        }
        let start = self.start(level);
        self.items.splice(start..start, items.iter().copied());
        self.lengths[level] += items.len() as u32;
        let end = start + self.lengths[level] as usize;
        self.items[start..end].sort();
    }

    /// An item of at most the weight of the lowest level.
    #[inline]
    fn insert(&mut self, item: T, weight: u64) {
        if let Some(item) = if self.floor == 0 { Some(item) } else { self.sampled(item, weight) } {
            if self.items.len() == self.items.capacity() {
                self.items.reserve_exact((self.items.len() / 2).max(4));
            }
            self.items.push(item);
            self.lengths[0] += 1;
        }
    }

    /// The sampler: gathers weight until it is that of the lowest level, then hands out one item (FOCS 2016,
    /// §4).
    fn sampled(&mut self, item: T, weight: u64) -> Option<T> {
        let target = 1u64 << self.floor;
        let Some(kept) = self.sample else {
            if weight >= target {
                return Some(item);
            }
            self.sample = Some(Sample { item, weight });
            return None;
        };
        let total = kept.weight + weight;
        if total > target {
            // The lighter one stays; the heavier stands for a whole item with the probability that keeps its
            // weight.
            let (light, heavy) = if weight < kept.weight {
                (Sample { item, weight }, kept)
            } else {
                (kept, Sample { item, weight })
            };
            self.sample = Some(light);
            return self.chance(heavy.weight, target).then_some(heavy.item);
        }
        let chosen = if self.chance(weight, total) { item } else { kept.item };
        self.sample = (total < target).then_some(Sample { item: chosen, weight: total });
        (total == target).then_some(chosen)
    }

    /// The next 64 coins.
    fn toss(&mut self) -> u64 {
        self.coin = self.coin.wrapping_add(GOLDEN);
        mix(self.coin)
    }

    /// True with probability `part` / `whole`.
    fn chance(&mut self, part: u64, whole: u64) -> bool {
        (u128::from(self.toss()) * u128::from(whole)) >> 64 < u128::from(part)
    }

    /// First place of a level.
    fn start(&self, level: usize) -> usize {
        self.lengths[level + 1..].iter().map(|&length| length as usize).sum()
    }

    /// Until the levels hold no more than they have room for.
    fn compress(&mut self) {
        while self.items.len() > self.full {
            let levels = self.lengths.len();
            // The levels hold more than the sum of their rooms, so one holds more than its own.
            let Some(level) = (0..levels).find(|&level| {
                self.lengths[level] as usize > level_room(self.k, (levels - 1 - level) as u32)
            }) else {
                return;
            };
            if level + 1 == levels {
                self.lengths.push(0);
            }
            self.compact(level);
            self.limit_levels();
        }
    }

    /// Every second item of a level moves up.
    fn compact(&mut self, level: usize) {
        let (start, length) = (self.start(level), self.lengths[level] as usize);
        let above = start - self.lengths[level + 1] as usize;
        if level == 0 {
            self.items[start..start + length].sort_unstable();
        }
        let (moving, odd) = (length / 2, length % 2);
        let stays = self.items[start];
        let first = start + odd + (self.toss() >> 63) as usize;
        for place in 0..moving {
            self.items[start + place] = self.items[first + 2 * place];
        }
        if odd == 1 {
            self.items[start + moving] = stays;
        }
        self.items.drain(start + moving + odd..start + length);
        self.lengths[level] = odd as u32;
        self.lengths[level + 1] += moving as u32;
        self.items[above..start + moving].sort();
    }

    /// The sampler takes the lowest levels over that are too many.
    fn limit_levels(&mut self) {
        while self.lengths.len() > level_limit(self.k) {
            self.absorb_lowest();
        }
        self.full = total_room(self.k, self.lengths.len());
    }

    fn absorb_lowest(&mut self) {
        let below = self.items.split_off(self.start(0));
        let height = self.floor;
        self.lengths.remove(0);
        if self.lengths.is_empty() {
            self.lengths.push(0);
        }
        self.floor += 1;
        below.into_iter().for_each(|item| self.insert(item, 1 << height));
    }
}

#[cfg(test)]
mod tests;
