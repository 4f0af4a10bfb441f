//! Space-Saving: the frequent values of a stream with m counters.
//!
//! A value that has a counter is counted. Another one takes over the counter of the smallest count c (of the smallest value among
//! equals) and continues from c + 1; c is remembered as its possible excess.
//!
//! For a stream of n values, with f the true number of a value: `count - excess <= f <= count`, excess <= n / m, and every value with
//! f > n / m has a counter. Merged sketches keep the same bounds for the joint stream.
//!
//! Source: Metwally, Agrawal and El Abbadi, "Efficient computation of frequent and top-k elements in data streams", ICDT 2005, §3;
//! merging: Agarwal et al., "Mergeable summaries", PODS 2012, §2.

use super::bytes::{Damaged, Reader, Writer};

/// Most counters; a miss looks at all of them.
pub const MAX_COUNTERS: usize = 4_096;
const MARK: [u8; 4] = *b"wSpS";

/// A value with its count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counter {
    pub value: u64,
    /// At least the true number.
    pub count: u64,
    /// At most this much of the count may be others'.
    pub excess: u64,
}

/// The sketch of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpaceSaving {
    room: usize,
    length: u64,
    /// In order of their values.
    counters: Vec<Counter>,
    /// What a value without a counter may have at most, by merges; evictions are bounded by the smallest count.
    missed: u64,
}

impl SpaceSaving {
    /// An empty sketch with `counters` counters, brought into 1 to [`MAX_COUNTERS`].
    pub fn new(counters: usize) -> SpaceSaving {
        SpaceSaving { room: counters.clamp(1, MAX_COUNTERS), length: 0, counters: Vec::new(), missed: 0 }
    }

    /// Values seen.
    pub fn len(&self) -> u64 {
        self.length
    }

    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Counters that there are at most: m.
    pub fn room(&self) -> usize {
        self.room
    }

    /// Bytes of memory, the struct included.
    pub fn bytes(&self) -> usize {
        size_of::<SpaceSaving>() + self.counters.capacity() * size_of::<Counter>()
    }

    pub fn update(&mut self, value: u64) {
        self.length = self.length.saturating_add(1);
        let place = match self.counters.binary_search_by_key(&value, |counter| counter.value) {
            Ok(place) => {
                let counter = &mut self.counters[place];
                counter.count = counter.count.saturating_add(1);
                return;
            }
            Err(place) => place,
        };
        if self.counters.len() < self.room {
            if self.counters.len() == self.counters.capacity() {
                let more = (self.counters.len() / 2).max(4).min(self.room - self.counters.len());
                self.counters.reserve_exact(more);
            }
            let missed = self.missed;
            self.counters.insert(place, Counter { value, count: missed.saturating_add(1), excess: missed });
            return;
        }
        // Room is at least 1, so there is a smallest.
        let Some(victim) = (0..self.counters.len()).min_by_key(|&i| self.counters[i].count) else { return };
        let smallest = self.counters[victim].count;
        let counter = Counter { value, count: smallest.saturating_add(1), excess: smallest };
        // The places between the victim's and the newcomer's move by one.
        if victim < place {
            self.counters[victim..place].rotate_left(1);
            self.counters[place - 1] = counter;
        } else {
            self.counters[place..=victim].rotate_right(1);
            self.counters[place] = counter;
        }
    }

    /// What a value that has no counter may have occurred at most.
    pub fn missed(&self) -> u64 {
        if self.counters.len() < self.room {
            return self.missed;
        }
        self.counters.iter().map(|counter| counter.count).min().unwrap_or(0).max(self.missed)
    }

    /// The counter of a value, if it has one.
    pub fn counter(&self, value: u64) -> Option<Counter> {
        let place = self.counters.binary_search_by_key(&value, |counter| counter.value).ok()?;
        Some(self.counters[place])
    }

    /// All counters, the largest count first, among equals the smallest value.
    pub fn counters(&self) -> Vec<Counter> {
        let mut sorted = self.counters.clone();
        sorted.sort_by_key(|counter| (core::cmp::Reverse(counter.count), counter.value));
        sorted
    }

    /// Values that may make up at least `share` of the stream, the largest count first: every one that does is among them, none below
    /// `share` - 1/m is.
    pub fn frequent(&self, share: f64) -> Vec<Counter> {
        let min = share * self.length as f64;
        let mut found = self.counters();
        found.retain(|counter| counter.count as f64 >= min);
        found
    }

    /// Takes all in that `other` has seen; the smaller number of counters counts from then on.
    pub fn merge(&mut self, other: &SpaceSaving) {
        let (mine, theirs) = (self.missed(), other.missed());
        let missing = |value, missed| Counter { value, count: missed, excess: missed };
        let mut joint = Vec::with_capacity(self.counters.len() + other.counters.len());
        let (mut left, mut right) = (self.counters.iter().peekable(), other.counters.iter().peekable());
        loop {
            let value = match (left.peek(), right.peek()) {
                (Some(a), Some(b)) => a.value.min(b.value),
                (Some(one), None) | (None, Some(one)) => one.value,
                (None, None) => break,
            };
            let a = left.next_if(|counter| counter.value == value).copied().unwrap_or(missing(value, mine));
            let b =
                right.next_if(|counter| counter.value == value).copied().unwrap_or(missing(value, theirs));
            let (count, excess) = (a.count.saturating_add(b.count), a.excess.saturating_add(b.excess));
            joint.push(Counter { value, count, excess });
        }
        self.room = self.room.min(other.room);
        self.length = self.length.saturating_add(other.length);
        self.missed = mine.saturating_add(theirs);
        if joint.len() > self.room {
            joint.sort_by_key(|counter| (core::cmp::Reverse(counter.count), counter.value));
            self.missed = self.missed.max(joint[self.room].count);
            joint.truncate(self.room);
            joint.sort_by_key(|counter| counter.value);
        }
        self.counters = joint;
    }

    /// The sketch as bytes: mark "wSpS", version, counters at most, values seen, what a missing value may have, the counters by value,
    /// checksum.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer::new(MARK);
        out.u32(self.room as u32);
        out.u64(self.length);
        out.u64(self.missed);
        out.u32(self.counters.len() as u32);
        for counter in &self.counters {
            out.u64(counter.value);
            out.u64(counter.count);
            out.u64(counter.excess);
        }
        out.finish()
    }

    /// The sketch of [`SpaceSaving::to_bytes`]. Bytes that are cut off, changed or of another kind are refused.
    pub fn from_bytes(bytes: &[u8]) -> Result<SpaceSaving, Damaged> {
        let mut input = Reader::new(bytes, MARK)?;
        let (room, length, missed) = (input.u32()? as usize, input.u64()?, input.u64()?);
        let count = input.u32()? as usize;
        if room == 0 || room > MAX_COUNTERS || count > room || input.left() != 24 * count {
            return Err(Damaged::Contradiction("its counters are more than fit"));
        }
        let mut counters = Vec::with_capacity(count);
        for _ in 0..count {
            counters.push(Counter { value: input.u64()?, count: input.u64()?, excess: input.u64()? });
        }
        if !counters.is_sorted_by(|a, b| a.value < b.value) {
            return Err(Damaged::Contradiction("its values are not in order"));
        }
        if counters.iter().any(|counter| counter.excess > counter.count || counter.count == 0) {
            return Err(Damaged::Contradiction("a count is smaller than its excess"));
        }
        Ok(SpaceSaving { room, length, counters, missed })
    }
}

#[cfg(test)]
mod tests;
