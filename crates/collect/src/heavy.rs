//! The largest of many weighted flows, in memory of a fixed size.
//!
//! Source: Metwally, Agrawal, El Abbadi, "Efficient Computation of Frequent and Top-k Elements in Data
//! Streams", ICDT 2005 (Space-Saving), with weights: a newcomer takes the place and the count of the
//! smallest.

use std::collections::{BTreeMap, HashMap};

use crate::key::Key;

#[derive(Debug)]
pub(crate) struct Heavy {
    max: usize,
    /// Count, and a number that tells equal counts apart, of each flow.
    places: HashMap<Key, (u64, u64)>,
    /// By count: the flow, and by how much its count may be too high.
    counts: BTreeMap<(u64, u64), (Key, u64)>,
    next: u64,
}

impl Heavy {
    /// Estimate of the bytes of an entry in both tables.
    pub const ENTRY_BYTES: usize = 2 * 80 + 64;

    pub fn new(max: usize) -> Heavy {
        Heavy { max, places: HashMap::new(), counts: BTreeMap::new(), next: 0 }
    }

    pub fn bytes(&self) -> usize {
        self.counts.len() * Heavy::ENTRY_BYTES
    }

    pub fn max_bytes(&self) -> usize {
        self.max * Heavy::ENTRY_BYTES
    }

    pub fn add(&mut self, key: Key, weight: u64) {
        let (count, excess) = if let Some(place) = self.places.remove(&key) {
            self.counts.remove(&place).map_or((0, 0), |(_, excess)| (place.0, excess))
        } else if self.counts.len() < self.max {
            (0, 0)
        } else if let Some((place, (smallest, _))) = self.counts.pop_first() {
            self.places.remove(&smallest);
            (place.0, place.0)
        } else {
            (0, 0)
        };
        let place = (count + weight, self.next);
        self.next += 1;
        self.places.insert(key, place);
        self.counts.insert(place, (key, excess));
    }

    /// Flows, their counts, and by how much these may be too high; the largest first.
    pub fn largest(&self) -> Vec<(Key, u64, u64)> {
        self.counts.iter().rev().map(|(&(count, _), &(key, excess))| (key, count, excess)).collect()
    }
}
