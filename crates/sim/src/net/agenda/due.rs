//! The events of a node in a window, put in order at one go.

use super::Event;
use crate::engine::queue::Timed;
use crate::units::Time;
use std::ops::Range;

/// The events of one node in a window, in order, the next one last.
pub struct Due {
    /// Of these the first `left` are to happen.
    events: Vec<Event>,
    left: usize,
    /// Where each bucket of time begins.
    starts: [u32; 2 * Due::BUCKETS],
}

impl Default for Due {
    fn default() -> Due {
        Due { events: Vec::new(), left: 0, starts: [0; 2 * Due::BUCKETS] }
    }
}

impl Due {
    /// Buckets at most.
    const BUCKETS: usize = 512;
    /// So many events at most are sorted by insertion at once.
    const FEW: usize = 32;

    /// How many are to happen.
    #[inline(always)]
    pub fn left(&self) -> usize {
        self.left
    }

    /// The one `ahead` places behind the one taken last; some other one where there are not so many.
    #[inline(always)]
    pub fn ahead(&self, ahead: usize) -> Event {
        self.events[self.left.saturating_sub(ahead)]
    }

    /// Takes out the next one.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<Event> {
        self.left = self.left.checked_sub(1)?;
        Some(self.events[self.left])
    }

    /// Puts in an event that came up while the others are worked off: mostly one that is among the next.
    #[inline]
    pub fn insert(&mut self, event: Event) {
        if self.left == self.events.len() {
            self.events.push(event);
        }
        let near = self.left.saturating_sub(Due::FEW);
        let mut at = self.left;
        self.left += 1;
        while at > near && self.events[at - 1] < event {
            self.events[at] = self.events[at - 1];
            at -= 1;
        }
        if at == near {
            let far = self.events[..near].partition_point(|other| *other > event);
            self.events.copy_within(far..near, far + 1);
            at = far;
        }
        self.events[at] = event;
    }

    /// Empties an inbox; what in it comes only at `until` or later, from the back. Nothing in it comes before `start`.
    #[inline]
    pub fn take_in(&mut self, inbox: &mut Vec<Event>, start: Time, until: Time) -> &[Event] {
        debug_assert!(self.left == 0);
        let count = inbox.len();
        if self.events.len() <= 2 * count {
            self.events.resize(4 * count + 1, Event(0));
        }
        let later = if count <= Due::FEW {
            self.insert_each(inbox, until)
        } else {
            self.deal_out(inbox, start, until)
        };
        inbox.clear();
        &self.events[later]
    }

    /// By insertion; where those that come later lie. From the back: packets of one sender come in order, and the last
    /// one is to be first.
    #[inline]
    fn insert_each(&mut self, inbox: &[Event], until: Time) -> Range<usize> {
        let count = inbox.len();
        let (due, later) = self.events.split_at_mut(count);
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
        count..count + laters
    }

    /// Into buckets of time, the last ones in the first, and those of later windows behind all; then by insertion.
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
        for event in inbox.iter().rev() {
            let to = &mut self.starts[bucket(event) & MASK];
            self.events[*to as usize] = *event;
            *to += 1;
        }
        self.left = sum as usize;
        let due = &mut self.events[..sum as usize];
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
        self.left..inbox.len()
    }
}

#[cfg(test)]
mod tests;
