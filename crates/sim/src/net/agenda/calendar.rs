//! A calendar: time in slots of some tens of events each, a ring of slots ahead, and a queue for what is further off.
//!
//! An event is written behind the others of its slot, in no order; a slot is put in order when its time comes. So an event
//! is touched twice before it happens, and most of what it costs to order it has no branch to guess.

use super::Event;
use crate::engine::queue::{EventQueue, Timed};
use crate::units::Time;

/// Slots of the ring.
const SLOTS: usize = 128;
/// Parts that a slot is dealt out into.
const PARTS: usize = 64;
/// An event that comes up within the slot at work is looked for its place among so many that are next, one by one.
const NEAR: usize = 32;
/// How far behind the event taken last the one lies that is worth fetching.
const AHEAD: usize = 4;

/// Events by time. Time only moves forward.
pub struct Calendar {
    /// A slot is 2^shift ps wide.
    shift: u32,
    /// The number of the slot at work.
    slot: u64,
    /// Its events, the next one last; of these the first `left` are to happen.
    events: Vec<Event>,
    left: usize,
    /// The slots after it, by their number, and a bit for each that holds something.
    ring: [Vec<Event>; SLOTS],
    occupied: u128,
    far: EventQueue<Event>,
}

const _: () = assert!(SLOTS == u128::BITS as usize);

impl Calendar {
    /// A calendar whose slots are about so wide; best where a slot holds some tens of events.
    pub fn new(slot_width: Time) -> Calendar {
        Calendar {
            shift: slot_width.0.clamp(1 << 10, 1 << 24).ilog2(),
            slot: 0,
            events: Vec::new(),
            left: 0,
            ring: std::array::from_fn(|_| Vec::new()),
            occupied: 0,
            far: EventQueue::new(slot_width),
        }
    }

    /// Adds an event, not earlier than the last one taken out.
    #[inline(always)]
    pub fn push(&mut self, event: Event) {
        let slot = event.time().0 >> self.shift;
        // One comparison for both ends.
        if slot.wrapping_sub(self.slot + 1) >= SLOTS as u64 - 1 {
            return self.push_outside(slot, event);
        }
        let place = slot as usize % SLOTS;
        self.occupied |= 1 << place;
        self.ring[place].push(event);
    }

    /// What belongs to the slot at work, or is far off.
    #[inline(never)]
    fn push_outside(&mut self, slot: u64, event: Event) {
        if slot > self.slot { self.far.push(event) } else { self.insert(event) }
    }

    /// Puts an event among those of the slot at work: mostly it is one of the next.
    fn insert(&mut self, event: Event) {
        if self.left == self.events.len() {
            self.events.push(event);
        }
        let near = self.left.saturating_sub(NEAR);
        let mut at = self.left;
        self.left += 1;
        while at > near && self.events[at - 1] < event {
            self.events[at] = self.events[at - 1];
            at -= 1;
        }
        if at == near {
            let place = self.events[..near].partition_point(|other| *other > event);
            self.events.copy_within(place..near, place + 1);
            at = place;
        }
        self.events[at] = event;
    }

    /// Takes out the next event if it comes before `limit`.
    #[inline(always)]
    pub fn pop_before(&mut self, limit: Time) -> Option<Event> {
        loop {
            if let Some(&event) = self.events[..self.left].last() {
                if event.time() >= limit {
                    return None;
                }
                self.left -= 1;
                return Some(event);
            }
            if !self.open_next(limit) {
                return None;
            }
        }
    }

    /// An event that comes a few behind the one taken last; some other one where there are not so many in its slot.
    #[inline(always)]
    pub fn ahead(&self) -> Event {
        self.events[self.left.saturating_sub(AHEAD)]
    }

    /// A time before which no event comes; none without events. Where it is not the time of an event, it lies further on
    /// after a call of [`Calendar::pop_before`] with a later limit.
    pub fn none_before(&self) -> Option<Time> {
        if let Some(event) = self.events[..self.left].last() {
            return Some(event.time());
        }
        self.next_slot().map(|slot| Time(slot << self.shift))
    }

    /// The next slot that may hold something.
    #[inline]
    fn next_slot(&self) -> Option<u64> {
        // The queue may name a time that has passed, until it is asked what comes then.
        let far = self.far.none_before().map(|time| (time.0 >> self.shift).max(self.slot + 1));
        self.next_near().into_iter().chain(far).min()
    }

    /// The next slot of the ring that holds something.
    #[inline]
    fn next_near(&self) -> Option<u64> {
        let first = self.slot + 1;
        let ahead = self.occupied.rotate_right(first as u32 % SLOTS as u32);
        (ahead != 0).then(|| first + u64::from(ahead.trailing_zeros()))
    }

    /// Goes to the next slot that may hold something and puts its events in order; false if it begins at `limit` or later.
    #[inline(never)]
    fn open_next(&mut self, limit: Time) -> bool {
        let Some(slot) = self.next_slot() else { return false };
        let start = Time(slot << self.shift);
        if start >= limit {
            return false;
        }
        let until = Time(start.0.saturating_add(1 << self.shift));
        self.slot = slot;
        let place = slot as usize % SLOTS;
        self.occupied &= !(1 << place);
        while let Some(event) = self.far.pop_before(until) {
            self.ring[place].push(event);
        }
        self.put_in_order(place);
        true
    }

    /// Takes the events of a place of the ring: deals them out by time into parts, the last part first, and lets each go
    /// as far back as it must.
    fn put_in_order(&mut self, place: usize) {
        let inbox = &mut self.ring[place];
        let count = inbox.len();
        if self.events.len() < count {
            self.events.resize(2 * count, Event(0));
        }
        let shift = self.shift - PARTS.ilog2();
        let part = |event: &Event| !(event.time().0 >> shift) as usize % PARTS;
        let mut starts = [0u32; PARTS];
        for event in &*inbox {
            starts[part(event)] += 1;
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += std::mem::replace(start, sum);
        }
        let events = &mut self.events[..count];
        for event in &*inbox {
            let to = &mut starts[part(event)];
            events[*to as usize] = *event;
            *to += 1;
        }
        inbox.clear();
        self.left = count;
        for at in 1..count {
            let event = events[at];
            let mut to = at;
            while to > 0 && events[to - 1] < event {
                events[to] = events[to - 1];
                to -= 1;
            }
            if to < at {
                events[to] = event;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Action;
    use super::*;
    use crate::engine::random::RandomStream;
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    /// Against a heap, in steps of any length, with delays from zero to far beyond the ring.
    #[test]
    fn events_come_out_in_order_whatever_their_distance() {
        for (seed, width, most) in [(1, 1 << 10, 36), (2, 1 << 15, 36), (3, 1 << 24, 36), (4, 1 << 10, 20)] {
            let mut random = RandomStream::new(seed, "calendar");
            let mut calendar = Calendar::new(Time(width));
            let mut oracle = BinaryHeap::new();
            let (mut now, mut added) = (Time::ZERO, 0);
            while added < 40_000 || !oracle.is_empty() {
                if added < 40_000 {
                    for _ in 0..random.below(60) {
                        // Now and then far beyond the ring, while most go on within it.
                        let far = random.below(40) == 0;
                        let magnitude = random.below(if far { 36 } else { most });
                        let at = now + Time(random.below(1 << magnitude));
                        added += 1;
                        let event = Event::new(at, Action::Timer { host: 0, token: added, transport: 0 });
                        calendar.push(event);
                        oracle.push(Reverse(event));
                    }
                }
                let Some(from) = calendar.none_before() else { continue };
                assert!(from <= oracle.peek().expect("an event").0.time());
                let magnitude = random.below(most - 6);
                let limit = from + Time(1 + random.below(1 << magnitude));
                for _ in 0..random.below(100) {
                    let expected = oracle.peek().filter(|event| event.0.time() < limit).copied();
                    let found = calendar.pop_before(limit);
                    assert_eq!(found.map(Reverse), expected);
                    let Some(event) = found else { break };
                    oracle.pop();
                    now = event.time();
                }
            }
        }
    }
}
