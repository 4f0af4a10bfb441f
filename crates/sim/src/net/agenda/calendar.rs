//! A calendar: time in slots of some tens of events each, a ring of slots ahead, and a queue for what is
//! further off.
//!
//! An event is written behind the others of its slot, in no order; a slot is put in order when its turn
//! comes. So an event is touched twice before it happens, however far ahead it was, and most of what it costs
//! to order it has no branch to guess.
//!
//! Where slots are no longer than the shortest delay of a link, nothing that a node sends reaches another
//! within one: then events are ordered by node and only behind that by time ([`Calendar::by_node`]), so that
//! a node's state is in the cache while it works, and the processor knows what comes next. As with
//! [`Windows`](super::Windows), but for nodes that have two or three events in a window: inboxes would be mostly
//! cost.

use super::{Event, Far};
use crate::engine::queue::{EventQueue, Timed};
use crate::packet::PacketId;
use crate::units::Time;
use std::ops::Range;

/// Slots of the ring.
const RING: usize = 128;
/// The shortest and the longest slot: any time has its number (see [`Slots`]), and time within a slot fits
/// into 32 bits.
const SHORTEST: u64 = 1 << 7;
const LONGEST: u64 = 1 << 24;
/// Parts of time that a slot is dealt out into, as a power of two: without nodes, and at nodes with many
/// events; and how many nodes with few events share a part.
const PARTS: u32 = 6;
const PARTS_OF_BUSY: u32 = 3;
const QUIET_IN_PART: usize = 4;
/// An event that comes up within the slot at work is compared with this number of the next ones, one after the
/// other, and then by bisection. A slot with this number of events in one part is not sorted by insertion.
const NEAR: usize = 32;
/// How far behind the event taken last the one lies whose packet is worth fetching.
const AHEAD: usize = 6;

const _: () = assert!(RING == u128::BITS as usize && SHORTEST >= 1 << PARTS);

/// Events by slot of time. Time only moves forward.
pub struct Calendar {
    slots: Slots,
    /// The slot at work: its number, its begin, and its end or where it was cut off.
    number: u64,
    start: Time,
    until: Time,
    /// The first event of that slot behind the cut.
    first_kept: Time,
    /// What happens in it, in order, the next event `at` that place and [`LAST`] at the `end`; behind that
    /// [`AHEAD`] of those that were there before. While a [`Slot`] is taken out: what came up since.
    order: Vec<Waiting>,
    at: usize,
    end: usize,
    /// What is in place of `order` while that is taken out.
    other_order: Vec<Waiting>,
    /// All bits where events are ordered by node, none where that does not count.
    nodes: u32,
    /// By part: where its events end.
    ends: Vec<u32>,
    /// Up to this number, the events of a slot are not dealt out: to look through all parts would take longer than to sort.
    few: usize,
    /// By node; where they do not count, of all.
    parts: Vec<Part>,
    /// Of each event that is dealt out, its part.
    part_of: Vec<u32>,
    /// Slots from the one at work on, by their number, and a bit for each that holds something.
    ring: [Vec<Waiting>; RING],
    occupied: u128,
    far: EventQueue<Far>,
    /// The first slot that may have something of `far`; `u64::MAX`: none.
    far_from: u64,
}

/// Slots of time, all of one length: a number from 8 to 15 times a power of two, so that a multiplication
/// divides by it.
#[derive(Debug, Clone, Copy)]
struct Slots {
    length: u64,
    /// The power of two.
    shift: u32,
    /// 2^64 over the number, rounded up: exact for what is below 2^60.
    per: u64,
}

impl Slots {
    /// As long as this, or up to an eighth shorter.
    fn of_length(max: Time) -> Slots {
        let max = max.0.clamp(SHORTEST, LONGEST);
        let shift = max.ilog2() - 3;
        let number = max >> shift;
        Slots { length: number << shift, shift, per: u64::MAX / number + 1 }
    }

    /// The slot that a time lies in.
    #[inline(always)]
    fn number_of(self, time: Time) -> u64 {
        ((u128::from(time.0 >> self.shift) * u128::from(self.per)) >> 64) as u64
    }

    /// The first moment of a slot.
    #[inline(always)]
    fn start_of(self, number: u64) -> Time {
        Time(number.saturating_mul(self.length))
    }

    /// The same for the slot of a time that is not beyond the last.
    #[inline(always)]
    fn start_of_known(self, number: u64) -> Time {
        Time(number * self.length)
    }
}

/// Where the events of a node begin among the parts that a slot is dealt out into, and how long a part of its
/// time is, as a power of two: longer than a slot where it has but one, which it may share.
#[derive(Debug, Clone, Copy)]
struct Part {
    first: u32,
    span: u32,
}

impl Part {
    #[inline(always)]
    fn of(self, event: Waiting) -> u32 {
        self.first + ((event.0 >> 64) as u32 >> self.span)
    }
}

/// An event with its node in place of the high half of its time; the low half counts from the begin of its
/// slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Waiting(u128);

/// It belongs to no node and comes behind all others.
const LAST: Waiting = Waiting(u128::MAX);

impl Waiting {
    /// In the slot that begins at `start`.
    #[inline(always)]
    fn new(node: u32, event: Event, start: Time) -> Waiting {
        let since = event.time().0.wrapping_sub(start.0) as u32;
        let high = u64::from(node) << 32 | u64::from(since);
        Waiting(u128::from(high) << 64 | u128::from(event.order()))
    }

    #[inline(always)]
    pub fn node(self) -> u32 {
        (self.0 >> 96) as u32
    }

    /// The packet that it is about, if any; else some number.
    #[inline(always)]
    pub fn packet(self) -> PacketId {
        self.0 as PacketId
    }

    /// The event, of the slot that begins at `start`.
    #[inline(always)]
    fn event(self, start: Time) -> Event {
        let time = start.0 + u64::from((self.0 >> 64) as u32);
        Event(u128::from(time) << 64 | u128::from(self.0 as u64))
    }
}

impl Calendar {
    /// One event after the other; slots of about this length hold some tens of them.
    pub fn by_time(length: Time) -> Calendar {
        Calendar::new(length, 0, (0, 1), PARTS)
    }

    /// One node after the other in each slot: of so many first those that have few events, then others.
    /// `length` is at most the shortest delay between two of them.
    pub fn by_node(length: Time, quiet: usize, busy: usize) -> Calendar {
        Calendar::new(length, u32::MAX, (quiet, busy), PARTS_OF_BUSY)
    }

    fn new(length: Time, nodes: u32, (quiet, busy): (usize, usize), spans: u32) -> Calendar {
        let slots = Slots::of_length(length);
        // The last moment of a slot falls into the last span.
        let whole = (slots.length - 1).ilog2() + 1;
        let quiet_ones = (0..quiet).map(|node| Part { first: (node / QUIET_IN_PART) as u32, span: whole });
        let first_busy = quiet.div_ceil(QUIET_IN_PART);
        let first_of = |node| (first_busy + (node << spans)) as u32;
        let parts = first_busy + (busy << spans);
        let busy_ones = (0..busy).map(|node| Part { first: first_of(node), span: whole - spans });
        Calendar {
            slots,
            number: 0,
            start: Time::ZERO,
            until: Time::ZERO,
            first_kept: Time::MAX,
            order: vec![LAST; AHEAD + 1],
            at: 0,
            end: 0,
            other_order: vec![LAST; AHEAD + 1],
            nodes,
            ends: vec![0; parts],
            few: (2 * parts).isqrt(),
            part_of: Vec::new(),
            parts: quiet_ones.chain(busy_ones).collect(),
            ring: std::array::from_fn(|_| Vec::new()),
            occupied: 0,
            far: EventQueue::new(Time(slots.length)),
            far_from: u64::MAX,
        }
    }

    /// Nodes take turns.
    pub fn is_by_node(&self) -> bool {
        self.nodes != 0
    }

    /// Adds an event of a node, not earlier than the last one taken out.
    #[inline(always)]
    pub fn push(&mut self, node: u32, event: Event) {
        let number = self.slots.number_of(event.time());
        // One comparison for both ends.
        if number.wrapping_sub(self.number + 1) >= RING as u64 - 1 {
            return self.push_outside(node, number, event);
        }
        self.hang(node, number, event);
    }

    #[inline(always)]
    fn hang(&mut self, node: u32, number: u64, event: Event) {
        let place = number as usize % RING;
        let inbox = &mut self.ring[place];
        if inbox.is_empty() {
            self.occupied |= 1 << place;
        }
        inbox.push(Waiting::new(node & self.nodes, event, self.slots.start_of_known(number)));
    }

    /// What belongs to the slot at work, or is far off.
    #[inline(never)]
    fn push_outside(&mut self, node: u32, number: u64, event: Event) {
        if event.time() < self.until {
            self.insert(Waiting::new(node & self.nodes, event, self.start));
        } else if number <= self.number {
            // Behind its cut.
            self.first_kept = self.first_kept.min(event.time());
            self.hang(node, number, event);
        } else {
            self.far.push(Far { event, node });
            self.far_from = self.far_from.min(number);
        }
    }

    /// Puts an event among those of the slot at work: there is room where those were that have happened.
    fn insert(&mut self, event: Waiting) {
        if self.at == 0 {
            self.make_room();
        }
        let from = self.at;
        let far = (from + NEAR).min(self.end);
        let mut to = from;
        while to < far && self.order[to] < event {
            self.order[to - 1] = self.order[to];
            to += 1;
        }
        if to == far {
            let last = self.order[far..self.end].partition_point(|other| *other < event) + far;
            self.order.copy_within(far..last, far - 1);
            to = last;
        }
        self.order[to - 1] = event;
        self.at = from - 1;
    }

    /// Moves what is to happen further back, so that there is room before it.
    #[cold]
    fn make_room(&mut self) {
        let waiting = self.end + 1;
        let room = waiting.max(NEAR);
        if self.order.len() < waiting + room + AHEAD {
            self.order.resize(2 * (waiting + room) + AHEAD, LAST);
        }
        self.order.copy_within(..waiting, room);
        (self.at, self.end) = (room, self.end + room);
    }

    /// Takes out the next event if it comes before `limit`. Limits do not go back.
    #[inline(always)]
    pub fn pop_before(&mut self, limit: Time) -> Option<Event> {
        loop {
            let next = self.order[self.at];
            if next.node() != LAST.node() {
                self.at += 1;
                return Some(next.event(self.start));
            }
            if !self.open_next(limit) {
                return None;
            }
        }
    }

    /// The packet of an event some way behind the one taken last, if that is about a packet; some other
    /// number where not, or where there are not so many in its slot.
    #[inline(always)]
    pub fn packet_ahead(&self) -> PacketId {
        self.order.get(self.at + AHEAD).map_or(PacketId::MAX, |event| event.packet())
    }

    /// Takes out what happens in the next slot before `limit`, until it is given back. It may be nothing, but
    /// if no slot is left that holds anything before `limit` there is none.
    #[inline]
    pub fn take_slot(&mut self, limit: Time) -> Option<Slot> {
        if self.at == self.end && !self.open_next(limit) {
            return None;
        }
        std::mem::swap(&mut self.order, &mut self.other_order);
        let slot = Slot { order: std::mem::take(&mut self.other_order), left: self.at..self.end };
        (self.order[0], self.at, self.end) = (LAST, 0, 0);
        Some(slot)
    }

    /// All that was in the slot, and came up since, has happened.
    pub fn give_back(&mut self, slot: Slot) {
        debug_assert!(self.at == self.end);
        self.other_order = slot.order;
    }

    /// Takes out the next event of those that are `due` and what came up since; then the event behind it, and
    /// one some way behind it, which may be some that do not count.
    #[inline(always)]
    pub fn next_of_slot(&mut self, due: &mut DueInSlot) -> Option<[Waiting; 3]> {
        let Some(&[first, second, .., ahead]) = due.0.first_chunk::<{ AHEAD + 1 }>() else {
            return self.next_before(LAST);
        };
        if self.at < self.end
            && let Some(own) = self.next_before(first)
        {
            return Some(own);
        }
        due.0 = &due.0[1..];
        Some([first, second, ahead])
    }

    /// The same of what came up since, if that comes before another event.
    #[inline]
    fn next_before(&mut self, other: Waiting) -> Option<[Waiting; 3]> {
        let own = Some(self.order[self.at]).filter(|own| *own < other)?;
        self.at += 1;
        Some([own, other, LAST])
    }

    /// The event that waits in the slot at work.
    #[inline(always)]
    pub fn event_of(&self, waiting: Waiting) -> Event {
        waiting.event(self.start)
    }

    /// A time before which no event comes; none without events. Where it is not the time of an event, it lies
    /// further on after a call of [`Calendar::pop_before`] with a later limit.
    pub fn none_before(&self) -> Option<Time> {
        if self.order[self.at].node() != LAST.node() {
            return Some(self.start);
        }
        let number = self.next_number()?;
        let cut = number == self.number && self.occupied >> (number as usize % RING) & 1 != 0;
        Some(if cut { self.first_kept } else { self.slots.start_of(number).max(self.until) })
    }

    /// The next slot that may hold something.
    #[inline]
    fn next_number(&self) -> Option<u64> {
        let ahead = self.occupied.rotate_right((self.number % RING as u64) as u32);
        let near = (ahead != 0).then(|| self.number + u64::from(ahead.trailing_zeros()));
        let far = (self.far_from < u64::MAX).then(|| self.far_from.max(self.number));
        near.into_iter().chain(far).min()
    }

    /// Takes in what of `far` belongs to the slot at work, which ends at `end`.
    #[cold]
    #[inline(never)]
    fn take_far(&mut self, end: Time) {
        let inbox = &mut self.ring[self.number as usize % RING];
        while let Some(Far { event, node }) = self.far.pop_before(end) {
            inbox.push(Waiting::new(node & self.nodes, event, self.start));
        }
        // The queue may name a time that has passed, until it is asked what comes then.
        let from = self.far.none_before();
        self.far_from = from.map_or(u64::MAX, |time| self.slots.number_of(time).max(self.number));
    }

    /// Goes to the next slot that may hold something and puts its events in order, up to `limit`: what comes
    /// then or later is kept for when the slot is opened again. False if nothing comes before.
    #[inline(never)]
    fn open_next(&mut self, limit: Time) -> bool {
        let Some(number) = self.next_number() else { return false };
        let start = self.slots.start_of(number);
        if start.max(self.until) >= limit {
            return false;
        }
        let end = self.slots.start_of(number + 1);
        (self.number, self.start, self.until) = (number, start, end.min(limit));
        let place = number as usize % RING;
        if self.far_from <= number {
            self.take_far(end);
        }
        self.occupied &= !(1 << place);
        let mut inbox = std::mem::take(&mut self.ring[place]);
        let kept = if limit < end { cut(&mut inbox, start, limit) } else { Vec::new() };
        self.first_kept = kept.iter().map(|event| event.event(start).time()).min().unwrap_or(Time::MAX);
        self.put_in_order(&inbox);
        inbox.clear();
        if !kept.is_empty() {
            inbox.extend(kept);
            self.occupied |= 1 << place;
        }
        self.ring[place] = inbox;
        true
    }

    /// Deals the events of a slot out to their parts, and lets each go as far ahead as it must.
    fn put_in_order(&mut self, inbox: &[Waiting]) {
        let count = inbox.len();
        if self.order.len() <= count + AHEAD {
            self.order.resize(2 * (count + AHEAD) + 1, LAST);
        }
        let order = &mut self.order[..=count];
        if count <= self.few {
            order[..count].copy_from_slice(inbox);
        } else {
            let part_of = &mut self.part_of;
            part_of.resize(part_of.len().max(count), 0);
            deal_out(inbox, &self.parts, &mut self.ends, part_of, order);
        }
        order[count] = LAST;
        sort_nearly_sorted(&mut order[..count]);
        (self.at, self.end) = (0, count);
    }
}

/// Puts events in order of their parts.
#[inline(always)]
fn deal_out(inbox: &[Waiting], parts: &[Part], ends: &mut [u32], part_of: &mut [u32], order: &mut [Waiting]) {
    ends.fill(0);
    for (event, part) in inbox.iter().zip(&mut *part_of) {
        *part = parts[event.node() as usize].of(*event);
        ends[*part as usize] += 1;
    }
    let mut sum = 0;
    for end in &mut *ends {
        let before = sum;
        sum += *end;
        *end = before;
    }
    for (event, part) in inbox.iter().zip(part_of) {
        let to = &mut ends[*part as usize];
        order[*to as usize] = *event;
        *to += 1;
    }
}

/// Sorts few events, or those that were dealt out to their parts.
#[inline(always)]
fn sort_nearly_sorted(order: &mut [Waiting]) {
    let (mut moves, mut at) = (0, 0);
    while let Some(ascending) = order[at..].windows(2).position(|pair| pair[0] > pair[1]) {
        at += ascending + 1;
        moves += move_ahead(&mut order[..=at]);
        if moves > NEAR * order.len() {
            // All in one part.
            return order.sort_unstable();
        }
    }
}

/// Lets the last event go as far ahead as it must; by how many places.
#[inline(never)]
fn move_ahead(order: &mut [Waiting]) -> usize {
    let from = order.len() - 1;
    let (event, mut to) = (order[from], from);
    while to > 0 && order[to - 1] > event {
        order[to] = order[to - 1];
        to -= 1;
    }
    order[to] = event;
    from - to
}

/// The events of a slot, in order, taken out of the calendar while nodes work: what is a variable of the loop
/// need not be looked up again for each event.
pub struct Slot {
    order: Vec<Waiting>,
    left: Range<usize>,
}

impl Slot {
    #[inline(always)]
    pub fn due(&self) -> DueInSlot<'_> {
        DueInSlot(self.order.get(self.left.start..self.left.end + AHEAD).unwrap_or_default())
    }
}

/// Those of them that have not happened, followed by [`AHEAD`] that do not count.
pub struct DueInSlot<'a>(&'a [Waiting]);

/// Takes what comes at `limit` or later out of the events of a slot that begins at `start`.
#[cold]
fn cut(inbox: &mut Vec<Waiting>, start: Time, limit: Time) -> Vec<Waiting> {
    let comes_later = |event: &Waiting| event.event(start).time() >= limit;
    let later = inbox.iter().copied().filter(comes_later).collect();
    inbox.retain(|event| !comes_later(event));
    later
}

#[cfg(test)]
mod tests;
