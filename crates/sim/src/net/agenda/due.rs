//! The events of a node in a window, put in order at one go.

use super::Event;
use crate::engine::queue::Timed;
use crate::units::Time;
use std::ops::Range;

/// Comes after every event.
const END: Event = Event(u128::MAX);
/// How many events before its own a packet is fetched.
const AHEAD: usize = 6;
/// So many events at most are sorted by insertion at once.
const FEW: usize = 32;

/// The events of one node in a window that lay in its inbox, in order. They are taken out of the agenda while
/// the node works: what is a variable of the loop need not be looked up again for each event.
#[derive(Default)]
pub struct InOrder {
    events: Vec<Event>,
    /// How many are to happen; the other ones, of which there are at least [`AHEAD`], do not count.
    left: usize,
}

impl InOrder {
    #[inline(always)]
    pub fn due(&self) -> Due<'_> {
        Due(self.events.get(..self.left + AHEAD).unwrap_or_default())
    }
}

/// Those of them that have not happened, followed by [`AHEAD`] events that do not count.
pub struct Due<'a>(&'a [Event]);

impl Due<'_> {
    /// Takes out the next event of these and those of `own`. With one of these comes an event some way behind
    /// it, whose packet may be fetched; it may be one that does not count.
    #[inline(always)]
    pub fn next(&mut self, own: &mut Own) -> Option<(Event, Option<Event>)> {
        let Some(&[first, .., ahead]) = self.0.first_chunk::<{ AHEAD + 1 }>() else {
            return own.pop().map(|event| (event, None));
        };
        if own.first < first {
            return own.pop().map(|event| (event, None));
        }
        self.0 = &self.0[1..];
        Some((first, Some(ahead)))
    }
}

/// What comes up for a node while it works, mostly the ends of transmissions, which come up nearly in order:
/// put among the other events they would be passed by all that arrives until then.
pub struct Own {
    /// In order, from place `next` on.
    events: Vec<Event>,
    next: usize,
    /// The next one, or [`END`].
    first: Event,
}

impl Default for Own {
    fn default() -> Own {
        Own { events: Vec::new(), next: 0, first: END }
    }
}

impl Own {
    fn pop(&mut self) -> Option<Event> {
        if self.first == END {
            return None;
        }
        self.next += 1;
        let then = self.events.get(self.next).copied().unwrap_or(END);
        Some(std::mem::replace(&mut self.first, then))
    }

    #[inline(always)]
    pub fn insert(&mut self, event: Event) {
        if self.events.last().is_some_and(|last| *last > event) {
            return self.insert_before_last(event);
        }
        if self.next == self.events.len() {
            self.first = event;
        }
        self.events.push(event);
    }

    #[inline(never)]
    fn insert_before_last(&mut self, event: Event) {
        let end = self.events.len();
        self.events.push(event);
        let near = self.next.max(end.saturating_sub(FEW));
        let mut at = end;
        while at > near && self.events[at - 1] > event {
            self.events[at] = self.events[at - 1];
            at -= 1;
        }
        if at == near && near > self.next {
            let far = self.next + self.events[self.next..near].partition_point(|other| *other < event);
            self.events.copy_within(far..near, far + 1);
            at = far;
        }
        self.events[at] = event;
        self.first = self.first.min(event);
    }

    /// Another node begins.
    #[inline]
    pub fn clear(&mut self) {
        debug_assert!(self.first == END);
        self.events.clear();
        self.next = 0;
    }
}

/// Puts the events of an inbox in order.
pub struct Sorter {
    pub sorted: InOrder,
    /// Where each bucket of time begins.
    starts: [u32; 2 * Sorter::BUCKETS],
}

impl Default for Sorter {
    fn default() -> Sorter {
        Sorter { sorted: InOrder::default(), starts: [0; 2 * Sorter::BUCKETS] }
    }
}

impl Sorter {
    /// Buckets at most.
    const BUCKETS: usize = 512;

    /// How many of the inbox are to happen.
    #[inline(always)]
    pub fn left(&self) -> usize {
        self.sorted.left
    }

    /// Empties an inbox; what in it comes only at `until` or later. Nothing in it comes before `start`.
    #[inline]
    pub fn take_in(&mut self, inbox: &mut Vec<Event>, start: Time, until: Time) -> &[Event] {
        let count = inbox.len();
        if self.sorted.events.len() < 2 * count + AHEAD {
            self.sorted.events.resize(4 * count + AHEAD, END);
        }
        let later =
            if count <= FEW { self.insert_each(inbox, until) } else { self.deal_out(inbox, start, until) };
        inbox.clear();
        &self.sorted.events[later]
    }

    /// By insertion; where those that come later lie. Packets of one sender come in order.
    #[inline]
    fn insert_each(&mut self, inbox: &[Event], until: Time) -> Range<usize> {
        let count = inbox.len();
        let (due, later) = self.sorted.events.split_at_mut(count);
        let later = &mut later[..count];
        let (mut dues, mut laters) = (0, 0);
        for &event in inbox {
            if event.time() >= until {
                later[laters] = event;
                laters += 1;
                continue;
            }
            let mut at = dues;
            while at > 0 && due[at - 1] > event {
                due[at] = due[at - 1];
                at -= 1;
            }
            due[at] = event;
            dues += 1;
        }
        self.sorted.left = dues;
        count..count + laters
    }

    /// Sorts into buckets of time, those of later windows into the last one, then by insertion.
    fn deal_out(&mut self, inbox: &[Event], start: Time, until: Time) -> Range<usize> {
        const MASK: usize = 2 * Sorter::BUCKETS - 1;
        let longest = until.0 - 1 - start.0;
        let wanted = inbox.len().next_power_of_two().min(Sorter::BUCKETS);
        let shift = longest.max(1).ilog2().saturating_sub(wanted.ilog2() - 1);
        let buckets = (longest >> shift) + 1;
        // So that the last one ends where the window does.
        let base = until.0.wrapping_sub(buckets << shift);
        let bucket = |event: &Event| (event.time().0.wrapping_sub(base) >> shift).min(buckets) as usize;
        self.starts[..buckets as usize + 2].fill(0);
        for event in inbox {
            self.starts[(bucket(event) + 1) & MASK] += 1;
        }
        let mut sum = 0;
        for start in &mut self.starts[..buckets as usize + 1] {
            sum += *start;
            *start = sum;
        }
        let events = &mut self.sorted.events[..];
        for event in inbox {
            let to = &mut self.starts[bucket(event) & MASK];
            events[*to as usize] = *event;
            *to += 1;
        }
        self.sorted.left = sum as usize;
        let due = &mut events[..sum as usize];
        for at in 1..due.len() {
            let event = due[at];
            let mut to = at;
            while to > 0 && due[to - 1] > event {
                due[to] = due[to - 1];
                to -= 1;
            }
            if to < at {
                due[to] = event;
            }
        }
        sum as usize..inbox.len()
    }
}

#[cfg(test)]
mod tests;
