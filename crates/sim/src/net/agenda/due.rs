//! The events of a node in a window, put in order at one go.

use super::Event;
use crate::engine::queue::Timed;
use crate::units::Time;
use std::ops::Range;

/// The events of one node in a window: those that lay in its inbox, and those that come up while it works on
/// them. The latter are mostly the ends of transmissions, which come up nearly in order: put among the others
/// they would be passed by all that arrives until then.
pub struct Due {
    /// What lay in the inbox: from place 1 on `left` events, the next one last. Place 0 has [`Due::END`].
    events: Vec<Event>,
    left: usize,
    /// What came up since, in order, from place `next` on; the last one is [`Due::END`].
    own: Vec<Event>,
    next: usize,
    /// Where each bucket of time begins.
    starts: [u32; 2 * Due::BUCKETS],
}

impl Default for Due {
    fn default() -> Due {
        Due { events: vec![Due::END], left: 0, own: vec![Due::END], next: 0, starts: [0; 2 * Due::BUCKETS] }
    }
}

impl Due {
    /// Comes after every event.
    const END: Event = Event(u128::MAX);
    /// Buckets at most.
    const BUCKETS: usize = 512;
    /// So many events at most are sorted by insertion at once.
    const FEW: usize = 32;

    /// How many of the inbox are to happen.
    #[inline(always)]
    pub fn left(&self) -> usize {
        self.left
    }

    /// The event `ahead` places after the last one that was taken of the inbox, or [`Due::END`].
    #[inline(always)]
    pub fn ahead(&self, ahead: usize) -> Event {
        self.events[(self.left + 1).saturating_sub(ahead)]
    }

    /// Takes out the next one.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<Event> {
        let (first, own) = (self.events[self.left], self.own[self.next]);
        if own < first {
            self.next += 1;
            return Some(own);
        }
        self.left = self.left.checked_sub(1)?;
        Some(first)
    }

    /// Puts in an event that came up while the others are worked off.
    #[inline]
    pub fn insert(&mut self, event: Event) {
        let end = self.own.len() - 1;
        self.own.push(Due::END);
        let near = self.next.max(end.saturating_sub(Due::FEW));
        let mut at = end;
        while at > near && self.own[at - 1] > event {
            self.own[at] = self.own[at - 1];
            at -= 1;
        }
        if at == near && near > self.next {
            let far = self.next + self.own[self.next..near].partition_point(|other| *other < event);
            self.own.copy_within(far..near, far + 1);
            at = far;
        }
        self.own[at] = event;
    }

    /// Empties an inbox; what in it comes only at `until` or later, from the back. Nothing in it comes before
    /// `start`.
    #[inline]
    pub fn take_in(&mut self, inbox: &mut Vec<Event>, start: Time, until: Time) -> &[Event] {
        debug_assert!(self.left == 0 && self.own[self.next] == Due::END);
        self.own.truncate(1);
        self.own[0] = Due::END;
        self.next = 0;
        let count = inbox.len();
        if self.events.len() <= 2 * count + 1 {
            self.events.resize(4 * count + 2, Event(0));
        }
        let later = if count <= Due::FEW {
            self.insert_each(inbox, until)
        } else {
            self.deal_out(inbox, start, until)
        };
        inbox.clear();
        &self.events[later]
    }

    /// By insertion; where those that come later lie. From the back: packets of one sender come in order, and
    /// the last one is to be first.
    #[inline]
    fn insert_each(&mut self, inbox: &[Event], until: Time) -> Range<usize> {
        let count = inbox.len();
        let (due, later) = self.events[1..].split_at_mut(count);
        let later = &mut later[..count];
        let (mut dues, mut laters) = (0, 0);
        for &event in inbox.iter().rev() {
            if event.time() >= until {
                later[laters] = event;
                laters += 1;
                continue;
            }
            let mut at = dues;
            while at > 0 && due[at - 1] < event {
                due[at] = due[at - 1];
                at -= 1;
            }
            due[at] = event;
            dues += 1;
        }
        self.left = dues;
        count + 1..count + 1 + laters
    }

    /// Sorts into buckets of time in descending order, those of later windows at the end, then by insertion.
    fn deal_out(&mut self, inbox: &[Event], start: Time, until: Time) -> Range<usize> {
        const MASK: usize = 2 * Due::BUCKETS - 1;
        let last = until.0 - 1;
        let wanted = inbox.len().next_power_of_two().min(Due::BUCKETS);
        let shift = (last - start.0).max(1).ilog2().saturating_sub(wanted.ilog2() - 1);
        let last_bucket = ((last - start.0) >> shift) + 1;
        // What comes later wraps around, and so comes behind.
        let bucket = |event: &Event| (last.wrapping_sub(event.time().0) >> shift).min(last_bucket) as usize;
        self.starts[..last_bucket as usize + 2].fill(0);
        for event in inbox {
            self.starts[(bucket(event) + 1) & MASK] += 1;
        }
        let mut sum = 0;
        for start in &mut self.starts[..last_bucket as usize + 1] {
            sum += *start;
            *start = sum;
        }
        let events = &mut self.events[1..];
        for event in inbox.iter().rev() {
            let to = &mut self.starts[bucket(event) & MASK];
            events[*to as usize] = *event;
            *to += 1;
        }
        self.left = sum as usize;
        let due = &mut events[..sum as usize];
        for at in 1..due.len() {
            let event = due[at];
            let mut to = at;
            while to > 0 && due[to - 1] < event {
                due[to] = due[to - 1];
                to -= 1;
            }
            if to < at {
                due[to] = event;
            }
        }
        self.left + 1..inbox.len() + 1
    }
}

#[cfg(test)]
mod tests;
