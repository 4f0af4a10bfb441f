//! The event queue: a timing wheel that sorts a slot only when the slot's time has come.
//!
//! Near events (a few microseconds ahead) are kept in slots whose width is about the time between two events.
//! A slot is a linked list in one slab, so an insertion costs two writes; it is sorted when it is reached.
//! Later events wait in a second, coarser wheel, and the latest in a heap. The order of events never depends
//! on which of the three held them.

use crate::units::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Number of slots of the near wheel. Its span is this number times the width of a slot.
const NEAR: usize = 4096;
/// Number of near-wheel spans that the coarse wheel covers.
const COARSE: usize = 1024;
const NONE: u32 = u32::MAX;

/// An event. It has a time, which is the first criterion of its order.
pub trait Timed: Copy + Ord {
    fn time(&self) -> Time;
}

#[derive(Clone, Copy)]
struct Entry<E> {
    event: E,
    next: u32,
}

/// A priority queue of events. Time only moves forward.
pub struct EventQueue<E> {
    /// Width of a near slot is 2^shift ps.
    shift: u32,
    /// Number of the current slot.
    slot: u64,
    /// Events of the current slot, in descending order: the next one is the last element.
    current: Vec<E>,
    entries: Vec<Entry<E>>,
    free: u32,
    near: Box<[u32; NEAR]>,
    near_bits: Box<[u64; NEAR / 64]>,
    near_count: usize,
    coarse: Box<[u32; COARSE]>,
    coarse_count: usize,
    far: BinaryHeap<Reverse<(E, u32)>>,
    /// The first span for which the coarse wheel or the heap holds an event; `u64::MAX`: none.
    distant: u64,
    len: usize,
}

impl<E: Timed> EventQueue<E> {
    /// Events at least this many slots ahead wait in the heap.
    pub const SLOTS: u64 = (NEAR * COARSE) as u64;

    /// Creates a queue whose slots are about `slot_width` wide. It is fastest if a slot holds a few events.
    pub fn new(slot_width: Time) -> EventQueue<E> {
        EventQueue {
            shift: slot_width.0.clamp(64, 1 << 24).ilog2(),
            slot: 0,
            current: Vec::new(),
            entries: Vec::new(),
            free: NONE,
            near: Box::new([NONE; NEAR]),
            near_bits: Box::new([0; NEAR / 64]),
            near_count: 0,
            coarse: Box::new([NONE; COARSE]),
            coarse_count: 0,
            far: BinaryHeap::new(),
            distant: u64::MAX,
            len: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds an event. It must not be earlier than the last event removed.
    #[inline]
    pub fn push(&mut self, event: E) {
        self.len += 1;
        let slot = event.time().0 >> self.shift;
        if slot <= self.slot {
            return self.push_current(event);
        }
        let entry = self.allocate(event);
        if slot - self.slot < NEAR as u64 {
            self.hang_near(slot, entry);
        } else {
            self.hang_far(slot, entry);
        }
    }

    /// Removes and returns the next event.
    pub fn pop(&mut self) -> Option<E> {
        self.pop_before(Time::MAX)
    }

    /// Removes and returns the next event if it comes before `limit`.
    #[inline]
    pub fn pop_before(&mut self, limit: Time) -> Option<E> {
        loop {
            if let Some(event) = self.current.last() {
                if event.time() >= limit {
                    return None;
                }
                self.len -= 1;
                return self.current.pop();
            }
            if self.len == 0 || !self.advance(limit) {
                return None;
            }
        }
    }

    /// Returns a lower bound for the time of the next event; none if the queue is empty. If the bound is not
    /// the time of an event, a call of [`EventQueue::pop_before`] with a later limit raises it.
    pub fn none_before(&self) -> Option<Time> {
        if let Some(event) = self.current.last() {
            return Some(event.time());
        }
        if self.len == 0 {
            return None;
        }
        let now = self.slot / NEAR as u64;
        let mut slot = u64::MAX;
        if self.near_count > 0 {
            slot = self.next_near_in_span().unwrap_or((now + 1) * NEAR as u64);
        }
        if self.len > self.near_count {
            slot = slot.min(self.distant.saturating_mul(NEAR as u64));
        }
        Some(Time(slot.saturating_mul(1 << self.shift)))
    }

    #[cold]
    fn push_current(&mut self, event: E) {
        let at = self.current.partition_point(|other| *other > event);
        self.current.insert(at, event);
    }

    #[inline]
    fn allocate(&mut self, event: E) -> u32 {
        if self.free != NONE {
            let entry = self.free;
            let place = &mut self.entries[entry as usize];
            self.free = place.next;
            place.event = event;
            entry
        } else {
            self.entries.push(Entry { event, next: NONE });
            (self.entries.len() - 1) as u32
        }
    }

    #[inline]
    fn hang_near(&mut self, slot: u64, entry: u32) {
        let place = slot as usize % NEAR;
        self.entries[entry as usize].next = self.near[place];
        self.near[place] = entry;
        self.near_bits[place / 64] |= 1 << (place % 64);
        self.near_count += 1;
    }

    #[cold]
    fn hang_far(&mut self, slot: u64, entry: u32) {
        let (span, now) = (slot / NEAR as u64, self.slot / NEAR as u64);
        self.distant = self.distant.min(span);
        if span - now < COARSE as u64 {
            let place = span as usize % COARSE;
            self.entries[entry as usize].next = self.coarse[place];
            self.coarse[place] = entry;
            self.coarse_count += 1;
        } else {
            self.far.push(Reverse((self.entries[entry as usize].event, entry)));
        }
    }

    /// Moves to the next occupied slot and sorts its events. Returns false if that slot begins at `limit` or
    /// later.
    fn advance(&mut self, limit: Time) -> bool {
        let last = limit.0.saturating_sub(1) >> self.shift;
        loop {
            if let Some(slot) = self.next_near_in_span() {
                if slot > last {
                    return false;
                }
                self.slot = slot;
                self.open_slot();
                return true;
            }
            if !self.enter_next_span(last) {
                return false;
            }
            if self.near[self.slot as usize % NEAR] != NONE {
                self.open_slot();
                return true;
            }
        }
    }

    /// Returns the next occupied near slot up to the end of the current span.
    #[inline]
    fn next_near_in_span(&self) -> Option<u64> {
        if self.near_count == 0 {
            return None;
        }
        let from = self.slot as usize % NEAR + 1;
        let base = self.slot - (self.slot % NEAR as u64);
        let mut word = from / 64;
        if word >= NEAR / 64 {
            return None;
        }
        let mut bits = self.near_bits[word] & (!0 << (from % 64));
        loop {
            if bits != 0 {
                return Some(base + (word * 64) as u64 + u64::from(bits.trailing_zeros()));
            }
            word += 1;
            if word == NEAR / 64 {
                return None;
            }
            bits = self.near_bits[word];
        }
    }

    /// Moves to the first slot of the next span that may hold an event, and moves the events of that span to
    /// the near wheel. Returns false if that slot comes after `last`.
    fn enter_next_span(&mut self, last: u64) -> bool {
        let now = self.slot / NEAR as u64;
        let span = if self.near_count > 0 { now + 1 } else { self.distant };
        if span > last / NEAR as u64 {
            return false;
        }
        self.slot = span * NEAR as u64;
        let mut entry = std::mem::replace(&mut self.coarse[span as usize % COARSE], NONE);
        while entry != NONE {
            let next = self.entries[entry as usize].next;
            self.coarse_count -= 1;
            self.hang_near(self.entries[entry as usize].event.time().0 >> self.shift, entry);
            entry = next;
        }
        while let Some(&Reverse((event, entry))) = self.far.peek() {
            let slot = event.time().0 >> self.shift;
            if slot / NEAR as u64 > span {
                break;
            }
            self.far.pop();
            self.hang_near(slot, entry);
        }
        if self.distant <= span {
            self.distant = self.next_distant_span(span);
        }
        true
    }

    /// Returns the first span after `now` for which the coarse wheel or the heap holds an event; `u64::MAX`:
    /// none.
    fn next_distant_span(&self, now: u64) -> u64 {
        let mut span = u64::MAX;
        if self.coarse_count > 0 {
            let place = (1..COARSE as u64).find(|d| self.coarse[(now + d) as usize % COARSE] != NONE);
            span = now + place.unwrap_or(1);
        }
        if let Some(Reverse((event, _))) = self.far.peek() {
            span = span.min((event.time().0 >> self.shift) / NEAR as u64);
        }
        span
    }

    fn open_slot(&mut self) {
        let place = self.slot as usize % NEAR;
        let mut entry = std::mem::replace(&mut self.near[place], NONE);
        self.near_bits[place / 64] &= !(1 << (place % 64));
        while entry != NONE {
            let taken = &mut self.entries[entry as usize];
            self.current.push(taken.event);
            let next = taken.next;
            taken.next = self.free;
            self.free = entry;
            entry = next;
            self.near_count -= 1;
        }
        if self.current.len() > 1 {
            self.current.sort_unstable_by(|a, b| b.cmp(a));
        }
    }
}

#[cfg(test)]
mod tests;
