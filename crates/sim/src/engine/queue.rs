//! The event queue: a timing wheel that sorts a slot only when the slot's time has come.
//!
//! Near events are kept in slots whose width is about the time of a few events. A slot is a linked list in
//! one slab, so an insertion costs two writes; it is sorted when it is reached. Later events wait in a second,
//! coarser wheel, and the latest in a heap. The order of events never depends on which of the three held
//! them, nor on the width of a slot, which follows how many events the slots turn out to hold.

use crate::units::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Number of slots of the near wheel. Its span is this number times the width of a slot.
const NEAR: usize = 4096;
/// Number of near-wheel spans that the coarse wheel covers.
const COARSE: usize = 1024;
const NONE: u32 = u32::MAX;
/// The narrowest and the widest slot, as powers of two of a picosecond.
const SHIFTS: std::ops::RangeInclusive<u32> = 6..=30;
/// Events that an occupied slot should hold on average: below that slots become wider, above it narrower.
const FEW: usize = 2;
const MANY: usize = 16;
/// Occupied slots after which their width is looked at again, at least; and events that wait for each of
/// them, since all are put into new slots when the width changes.
const SLOTS_BETWEEN: usize = 512;
const WAITING_PER_SLOT: usize = 16;
/// Events that the current slot may hold before those that are added to it are looked at.
const CROWD: usize = 128;

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
    /// A bit for each slot that holds something, and one for each word of those.
    near_bits: Box<[u64; NEAR / 64]>,
    near_words: u64,
    near_count: usize,
    coarse: Box<[u32; COARSE]>,
    coarse_bits: [u64; COARSE / 64],
    coarse_count: usize,
    far: BinaryHeap<Reverse<(E, u32)>>,
    /// The first span for which the coarse wheel or the heap holds an event; `u64::MAX`: none.
    distant: u64,
    len: usize,
    /// Slots opened and events found in them since the width was looked at.
    opened: usize,
    found: usize,
    /// Events of the current slot beyond which its width is looked at.
    crowd: usize,
}

const _: () = assert!(NEAR / 64 == u64::BITS as usize && COARSE % 64 == 0);

impl<E: Timed> EventQueue<E> {
    /// Events at least this many slots ahead wait in the heap.
    pub const SLOTS: u64 = (NEAR * COARSE) as u64;

    /// Creates a queue whose slots are about `slot_width` wide at first.
    pub fn new(slot_width: Time) -> EventQueue<E> {
        EventQueue {
            shift: slot_width.0.max(1).ilog2().clamp(*SHIFTS.start(), *SHIFTS.end()),
            slot: 0,
            current: Vec::new(),
            entries: Vec::new(),
            free: NONE,
            near: Box::new([NONE; NEAR]),
            near_bits: Box::new([0; NEAR / 64]),
            near_words: 0,
            near_count: 0,
            coarse: Box::new([NONE; COARSE]),
            coarse_bits: [0; COARSE / 64],
            coarse_count: 0,
            far: BinaryHeap::new(),
            distant: u64::MAX,
            len: 0,
            opened: 0,
            found: 0,
            crowd: CROWD,
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
        self.hang(slot, entry);
    }

    #[inline]
    fn hang(&mut self, slot: u64, entry: u32) {
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
    #[inline(always)]
    pub fn pop_before(&mut self, limit: Time) -> Option<E> {
        while self.current.is_empty() {
            if self.len == 0 || !self.advance(limit) {
                return None;
            }
        }
        let event = self.current.pop_if(|event| event.time() < limit)?;
        self.len -= 1;
        Some(event)
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

    fn push_current(&mut self, event: E) {
        let at = self.current.partition_point(|other| *other > event);
        self.current.insert(at, event);
        if self.current.len() > self.crowd {
            self.spread_current();
        }
    }

    /// Many events came up within the current slot: adding each to a sorted list would take longer and
    /// longer.
    #[cold]
    fn spread_current(&mut self) {
        if let (Some(last), Some(next)) = (self.current.first(), self.current.last()) {
            let each = (last.time() - next.time()).0 / self.current.len() as u64;
            // Those at one time stay together.
            let shift = (each.max(1).ilog2() + FEW.ilog2()).clamp(*SHIFTS.start(), self.shift);
            if each > 0 && shift < self.shift {
                self.set_shift(shift);
            }
        }
        self.crowd = CROWD.max(2 * self.current.len());
    }

    /// Enough slots were opened to see how many events they hold.
    #[cold]
    fn review_width(&mut self) {
        let each = self.found / self.opened;
        (self.opened, self.found) = (0, 0);
        if each < FEW && self.shift < *SHIFTS.end() {
            self.set_shift(self.shift + 1);
        } else if each > MANY && self.shift > *SHIFTS.start() {
            self.set_shift(self.shift - 1);
        }
    }

    /// Gives slots another width, and puts all events into them.
    fn set_shift(&mut self, shift: u32) {
        let begin = self.slot << self.shift;
        let mut waiting = std::mem::take(&mut self.current);
        let lists = self.near.iter_mut().chain(self.coarse.iter_mut());
        for list in lists {
            let mut entry = std::mem::replace(list, NONE);
            while entry != NONE {
                let taken = &self.entries[entry as usize];
                waiting.push(taken.event);
                entry = taken.next;
            }
        }
        waiting.extend(self.far.drain().map(|Reverse((event, _))| event));
        self.entries.clear();
        self.free = NONE;
        self.near_bits.fill(0);
        self.coarse_bits.fill(0);
        (self.near_words, self.near_count, self.coarse_count) = (0, 0, 0);
        self.distant = u64::MAX;
        self.shift = shift;
        self.slot = begin >> shift;
        self.current = Vec::with_capacity(CROWD);
        for event in waiting {
            let slot = event.time().0 >> shift;
            if slot <= self.slot {
                self.current.push(event);
            } else {
                let entry = self.allocate(event);
                self.hang(slot, entry);
            }
        }
        self.current.sort_unstable_by(|a, b| b.cmp(a));
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
        self.near_words |= 1 << (place / 64);
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
            self.coarse_bits[place / 64] |= 1 << (place % 64);
            self.coarse_count += 1;
        } else {
            self.far.push(Reverse((self.entries[entry as usize].event, entry)));
        }
    }

    /// Moves to the next occupied slot and sorts its events. Returns false if that slot begins at `limit` or
    /// later.
    #[inline(never)]
    fn advance(&mut self, limit: Time) -> bool {
        if self.opened >= SLOTS_BETWEEN.max(self.len / WAITING_PER_SLOT) {
            self.review_width();
            if !self.current.is_empty() {
                return true;
            }
        }
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
        if from == NEAR {
            return None;
        }
        let base = self.slot - (self.slot % NEAR as u64);
        let mut word = from / 64;
        let mut bits = self.near_bits[word] & (!0 << (from % 64));
        if bits == 0 {
            let later = self.near_words & (!1 << word);
            if later == 0 {
                return None;
            }
            word = later.trailing_zeros() as usize;
            bits = self.near_bits[word];
        }
        Some(base + (word * 64) as u64 + u64::from(bits.trailing_zeros()))
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
        let place = span as usize % COARSE;
        let mut entry = std::mem::replace(&mut self.coarse[place], NONE);
        self.coarse_bits[place / 64] &= !(1 << (place % 64));
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
            span = now + self.next_coarse(now as usize % COARSE);
        }
        if let Some(Reverse((event, _))) = self.far.peek() {
            span = span.min((event.time().0 >> self.shift) / NEAR as u64);
        }
        span
    }

    /// How many spans after the one at `place` in the coarse wheel the next one is that holds something.
    fn next_coarse(&self, place: usize) -> u64 {
        const WORDS: usize = COARSE / 64;
        let from = (place + 1) % COARSE;
        let first = self.coarse_bits[from / 64] & (!0 << (from % 64));
        let words = (1..=WORDS).map(|ahead| (from / 64 + ahead) % WORDS);
        let all = std::iter::once((from / 64, first)).chain(words.map(|word| (word, self.coarse_bits[word])));
        let found = all.into_iter().find(|&(_, bits)| bits != 0);
        let next = found.map_or(from, |(word, bits)| word * 64 + bits.trailing_zeros() as usize);
        (next + COARSE - place) as u64 % COARSE as u64
    }

    fn open_slot(&mut self) {
        let place = self.slot as usize % NEAR;
        let mut entry = std::mem::replace(&mut self.near[place], NONE);
        let bits = &mut self.near_bits[place / 64];
        *bits &= !(1 << (place % 64));
        self.near_words &= !(u64::from(*bits == 0) << (place / 64));
        while entry != NONE {
            let taken = &mut self.entries[entry as usize];
            self.current.push(taken.event);
            let next = taken.next;
            taken.next = self.free;
            self.free = entry;
            entry = next;
            self.near_count -= 1;
        }
        self.opened += 1;
        self.found += self.current.len();
        self.crowd = CROWD;
        if self.current.len() > 1 {
            self.current.sort_unstable_by(|a, b| b.cmp(a));
        }
    }
}

#[cfg(test)]
mod tests;
