//! The event queue: a timing wheel whose slots are put in order only when their time comes.
//!
//! Near events (a few microseconds) hang in slots of about the time between two events, as linked lists in one slab,
//! so inserting costs two writes; a slot is sorted by (time, key) when it is reached. Events further off wait
//! in a coarse second wheel, and the rest in a heap. Order never depends on how an event came to its slot.

use crate::units::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Slots of the near wheel; slot width times this is its span.
const NEAR: usize = 4096;
/// Spans of the near wheel that the coarse wheel covers.
const COARSE: usize = 1024;
const NONE: u32 = u32::MAX;

/// Something that happens at `time`; `key` orders what happens at the same time.
#[derive(Clone, Copy, Debug)]
pub struct Event<T> {
    pub time: Time,
    pub key: u64,
    pub what: T,
}

#[derive(Clone, Copy)]
struct Entry<T> {
    event: Event<T>,
    next: u32,
}

/// A priority queue of events by (time, key). Time only moves forward.
pub struct EventQueue<T> {
    /// Width of a near slot is 2^shift ps.
    shift: u32,
    /// Number of the slot being worked off.
    slot: u64,
    /// Its events, the next one last.
    current: Vec<Event<T>>,
    entries: Vec<Entry<T>>,
    free: u32,
    near: Box<[u32; NEAR]>,
    near_bits: Box<[u64; NEAR / 64]>,
    near_count: usize,
    coarse: Box<[u32; COARSE]>,
    coarse_count: usize,
    far: BinaryHeap<Reverse<(u64, u64, u32)>>,
    len: usize,
}

impl<T: Copy> EventQueue<T> {
    /// A queue whose slots are about `slot_width` wide; best where a slot holds a few events.
    pub fn new(slot_width: Time) -> EventQueue<T> {
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
            len: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds an event, not earlier than the last one taken out.
    #[inline]
    pub fn push(&mut self, time: Time, key: u64, what: T) {
        self.len += 1;
        let slot = time.0 >> self.shift;
        if slot <= self.slot {
            return self.push_current(Event { time, key, what });
        }
        let entry = self.allocate(Event { time, key, what });
        if slot - self.slot < NEAR as u64 {
            self.hang_near(slot, entry);
        } else {
            self.hang_far(slot, entry);
        }
    }

    /// Takes out the next event.
    pub fn pop(&mut self) -> Option<Event<T>> {
        self.pop_before(Time::MAX)
    }

    /// Takes out the next event if it comes before `limit`.
    #[inline]
    pub fn pop_before(&mut self, limit: Time) -> Option<Event<T>> {
        loop {
            if let Some(event) = self.current.last() {
                if event.time >= limit {
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

    /// A time before which no event comes; none without events. Where it is not the time of an event, it lies further on
    /// after a call of [`EventQueue::pop_before`] with a later limit.
    pub fn none_before(&self) -> Option<Time> {
        if let Some(event) = self.current.last() {
            return Some(event.time);
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
            slot = slot.min(self.next_distant_span(now).saturating_mul(NEAR as u64));
        }
        Some(Time(slot.saturating_mul(1 << self.shift)))
    }

    #[cold]
    fn push_current(&mut self, event: Event<T>) {
        let at = self.current.partition_point(|e| (e.time, e.key) > (event.time, event.key));
        self.current.insert(at, event);
    }

    #[inline]
    fn allocate(&mut self, event: Event<T>) -> u32 {
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
        if span - now < COARSE as u64 {
            let place = span as usize % COARSE;
            self.entries[entry as usize].next = self.coarse[place];
            self.coarse[place] = entry;
            self.coarse_count += 1;
        } else {
            let event = &self.entries[entry as usize].event;
            self.far.push(Reverse((event.time.0, event.key, entry)));
        }
    }

    /// Moves to the next slot that holds something and puts its events in order; false if it begins at `limit` or later.
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

    /// The next occupied near slot up to the end of the present span.
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

    /// Goes to the first slot of the next span that may hold something, and brings its events near; false if that slot
    /// comes after `last`.
    fn enter_next_span(&mut self, last: u64) -> bool {
        let now = self.slot / NEAR as u64;
        let span = if self.near_count > 0 { now + 1 } else { self.next_distant_span(now) };
        if span > last / NEAR as u64 {
            return false;
        }
        self.slot = span * NEAR as u64;
        let mut entry = std::mem::replace(&mut self.coarse[span as usize % COARSE], NONE);
        while entry != NONE {
            let next = self.entries[entry as usize].next;
            self.coarse_count -= 1;
            self.hang_near(self.entries[entry as usize].event.time.0 >> self.shift, entry);
            entry = next;
        }
        while let Some(&Reverse((time, _, entry))) = self.far.peek() {
            let slot = time >> self.shift;
            if slot / NEAR as u64 > span {
                break;
            }
            self.far.pop();
            self.hang_near(slot, entry);
        }
        true
    }

    /// The next span that the coarse wheel or the heap has something for; the near wheel is empty.
    fn next_distant_span(&self, now: u64) -> u64 {
        let mut span = u64::MAX;
        if self.coarse_count > 0 {
            let place = (1..COARSE as u64).find(|d| self.coarse[(now + d) as usize % COARSE] != NONE);
            span = now + place.unwrap_or(1);
        }
        if let Some(&Reverse((time, _, _))) = self.far.peek() {
            span = span.min((time >> self.shift) / NEAR as u64);
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
            self.current.sort_unstable_by_key(|e| Reverse((e.time, e.key)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::random::RandomStream;

    /// By windows, as a partition runs: what comes out is the same, and no window is told of twice for nothing.
    #[test]
    fn windows_let_out_what_comes_before_their_end_and_no_more() {
        let mut random = RandomStream::new(4, "windows");
        let mut queue = EventQueue::new(Time(1024));
        let mut oracle = BinaryHeap::new();
        let (mut key, mut empty_windows) = (0u64, 0);
        let mut copy = Vec::new();
        while key < 2000 {
            let magnitude = random.below(40);
            let time = random.below(1 << magnitude);
            queue.push(Time(time), key, 0u32);
            oracle.push(Reverse((time, key)));
            key += 1;
        }
        while let Some(from) = queue.none_before() {
            let limit = from + Time(1 + random.below(1_000_000));
            let before = copy.len();
            while let Some(event) = queue.pop_before(limit) {
                assert!(event.time >= from && event.time < limit);
                copy.push(event.key);
                if key < 6000 && random.below(2) == 0 {
                    let magnitude = random.below(36);
                    let time = limit.0 + random.below(1 << magnitude);
                    queue.push(Time(time), key, 0);
                    oracle.push(Reverse((time, key)));
                    key += 1;
                }
            }
            empty_windows = if copy.len() == before { empty_windows + 1 } else { 0 };
            assert!(empty_windows < 4, "windows that hold nothing follow each other");
        }
        let expected: Vec<u64> = std::iter::from_fn(|| oracle.pop()).map(|Reverse(event)| event.1).collect();
        assert_eq!(copy, expected);
    }

    /// Against a binary heap, with delays from zero to far beyond every wheel.
    #[test]
    fn events_come_out_by_time_and_key_whatever_their_distance() {
        for (seed, width) in [(1, 64), (2, 1024), (3, 1 << 20)] {
            let mut random = RandomStream::new(seed, "queue");
            let mut queue = EventQueue::new(Time(width));
            let mut oracle = BinaryHeap::new();
            let mut now = 0;
            for key in 0..60_000u64 {
                if key % 3 == 2 {
                    let event = queue.pop().unwrap();
                    let Reverse(expected) = oracle.pop().unwrap();
                    assert_eq!((event.time.0, event.key, event.what), expected);
                    now = event.time.0;
                    continue;
                }
                let magnitude = random.below(42);
                let time = now + random.below(1 << magnitude);
                queue.push(Time(time), key, key as u32);
                oracle.push(Reverse((time, key, key as u32)));
            }
            while let Some(Reverse(expected)) = oracle.pop() {
                let event = queue.pop().unwrap();
                assert_eq!((event.time.0, event.key, event.what), expected);
            }
            assert!(queue.pop().is_none() && queue.is_empty());
        }
    }
}
