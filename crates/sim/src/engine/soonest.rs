//! A queue of (time, number) for many entries: only those that come soon are ordered.
//!
//! A heap of a hundred thousand entries does not fit the caches, and each removal reads a path through all of
//! it. Here a small heap holds what comes within a span of time, and a list holds the rest in no order; when
//! the heap is empty, the list is read from end to end for what comes within the next span. The span adapts,
//! so that a sixteenth of the list or so comes in it. The order is that of one heap.

use crate::units::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The span becomes longer if less than one entry in this many came within it, and shorter if more than one
/// in [`MOST`] did.
const LEAST: usize = 32;
const MOST: usize = 8;
/// So few entries are always ordered together.
const FEW: usize = 64;

/// Entries in the order of (time, number).
#[derive(Debug, Clone)]
pub struct Soonest {
    near: BinaryHeap<Reverse<(Time, u32)>>,
    /// All later than `until`.
    far: Vec<(Time, u32)>,
    until: Time,
    span: Time,
}

impl Default for Soonest {
    fn default() -> Soonest {
        Soonest { near: BinaryHeap::new(), far: Vec::new(), until: Time::ZERO, span: Time(1) }
    }
}

impl Soonest {
    pub fn push(&mut self, time: Time, number: u32) {
        if time <= self.until {
            self.near.push(Reverse((time, number)));
        } else {
            self.far.push((time, number));
        }
    }

    /// Returns the first entry.
    pub fn peek(&mut self) -> Option<(Time, u32)> {
        if self.near.is_empty() {
            self.refill();
        }
        self.near.peek().map(|&Reverse(entry)| entry)
    }

    /// Removes and returns the first entry.
    pub fn pop(&mut self) -> Option<(Time, u32)> {
        if self.near.is_empty() {
            self.refill();
        }
        self.near.pop().map(|Reverse(entry)| entry)
    }

    pub fn len(&self) -> usize {
        self.near.len() + self.far.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns all entries, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (Time, u32)> {
        self.near.iter().map(|&Reverse(entry)| entry).chain(self.far.iter().copied())
    }

    /// Moves what comes within the next span to the heap, at least one entry if there is any.
    fn refill(&mut self) {
        let Some(first) = self.far.iter().map(|entry| entry.0).min() else { return };
        self.until = first.saturating_add(self.span);
        let (before, until) = (self.far.len(), self.until);
        let mut soon = std::mem::take(&mut self.near).into_vec();
        self.far.retain(|&entry| {
            let later = entry.0 > until;
            if !later {
                soon.push(Reverse(entry));
            }
            later
        });
        if soon.len() < (before / LEAST).max(FEW).min(before) {
            self.span = Time(self.span.0.saturating_mul(2));
        } else if soon.len() > (before / MOST).max(FEW) {
            self.span = Time((self.span.0 / 2).max(1));
        }
        self.near = soon.into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::random::RandomStream;

    #[test]
    fn the_order_is_that_of_one_heap_however_many_there_are() {
        for (entries, mean) in [(1, 1e3), (10, 1e9), (3000, 1e6), (3000, 1.0)] {
            let mut random = RandomStream::new(1, "soonest");
            let (mut soonest, mut heap) = (Soonest::default(), BinaryHeap::new());
            for number in 0..entries {
                let time = Time(random.exponential(mean) as u64);
                soonest.push(time, number);
                heap.push(Reverse((time, number)));
            }
            for _ in 0..20_000 {
                assert_eq!(soonest.len(), heap.len());
                assert_eq!(soonest.peek(), heap.peek().map(|top| top.0));
                let Some((time, number)) = soonest.pop() else { break };
                assert_eq!(heap.pop(), Some(Reverse((time, number))));
                if random.below(1000) > 0 {
                    let later = time.saturating_add(Time(random.exponential(mean) as u64));
                    soonest.push(later, number);
                    heap.push(Reverse((later, number)));
                }
            }
            let mut rest: Vec<_> = soonest.iter().collect();
            rest.sort_unstable();
            assert_eq!(rest, std::iter::from_fn(|| soonest.pop()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_end_of_time_can_be_reached() {
        let mut soonest = Soonest::default();
        [Time::MAX, Time::ZERO, Time::MAX].into_iter().zip(0..).for_each(|(time, n)| soonest.push(time, n));
        let order: Vec<_> = std::iter::from_fn(|| soonest.pop()).map(|entry| entry.1).collect();
        assert_eq!(order, [1, 0, 2]);
        assert!(soonest.is_empty());
    }
}
