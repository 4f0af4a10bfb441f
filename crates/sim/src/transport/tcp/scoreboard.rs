//! What a sender knows of the segments between the first unacknowledged byte and the next new one: which have arrived,
//! which are lost, which were sent again.
//!
//! Source: Blanton et al., RFC 6675 §3 and §4: Update(), IsLost(), SetPipe(), NextSeg(). All counters are kept as segments
//! change, so that an acknowledgement costs what it changes, not the window.
//! Differs from the source: IsLost() counts segments, not bytes; a lost segment that was sent again counts once in the pipe;
//! NextSeg() has no rule 4 (one segment more at the end of recovery).
//! Under [`Reactions::keeps_again`] what was sent again counts in the pipe until it is acknowledged cumulatively, also when it has arrived;
//! and losses are counted from the segment that was acknowledged selectively last at or above the one below the highest (ns-3.35).
//!
//! Longer than 500 lines, because the marks of segments and the counters over them change together.

use crate::transport::tcp::config::{Doubtful, Reactions};
use crate::units::Time;
use std::collections::VecDeque;

/// Selective acknowledgements that fit an acknowledgement beside timestamps (RFC 2018 §3).
pub const BLOCKS: usize = 3;

/// Bytes from the first up to the second.
pub type Block = (u64, u64);

mod mark {
    pub const SACKED: u8 = 1;
    pub const LOST: u8 = 2;
    /// Sent again since it was lost, and in flight.
    pub const AGAIN: u8 = 4;
    /// Sent more than once.
    pub const TWICE: u8 = 8;
    /// May give a sample of the round-trip time.
    pub const TIMED: u8 = 16;
}

#[derive(Debug, Clone, Copy)]
pub struct Segment {
    pub first: u64,
    /// Sent last.
    pub sent: Time,
    pub payload: u16,
    marks: u8,
}

impl Segment {
    /// Above its last byte.
    pub fn end(&self) -> u64 {
        self.first + u64::from(self.payload)
    }
    fn is(&self, mark: u8) -> bool {
        self.marks & mark != 0
    }
    pub fn sent_twice(&self) -> bool {
        self.is(mark::TWICE)
    }
}

/// What an acknowledgement changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Update {
    /// Bytes that the cumulative acknowledgement moved on.
    pub acknowledged: u64,
    /// Bytes newly acknowledged selectively.
    pub sacked: u64,
    /// Bytes that have arrived, one way or the other.
    pub delivered: u64,
    /// The first segment acknowledged cumulatively that is timed: was it sent once.
    pub timed_once: Option<bool>,
    /// Something that was sent again was acknowledged.
    pub again: bool,
}

/// A segment that has just been delivered: its number among all of the flow, and what it was.
pub type Delivered<'a> = &'a mut dyn FnMut(u64, &Segment);

#[derive(Debug)]
pub struct Scoreboard {
    mss: u64,
    threshold: u32,
    segments: VecDeque<Segment>,
    /// Number of the first of them.
    first: u64,
    acknowledged: u64,
    next: u64,
    sacked: u64,
    lost: u64,
    /// Bytes that were found to be lost since the flow began, once for each time.
    lost_ever: u64,
    /// Bytes sent again and in flight.
    again: u64,
    /// Bytes lost that were not sent again.
    waiting: u64,
    /// Every segment with a lower number has `threshold` segments above it that have arrived.
    edge: u64,
    /// Segments from the edge on that have arrived.
    above: u32,
    /// No lost segment with a lower number waits to be sent again.
    from: u64,
    /// The same of segments that neither have arrived nor were sent again (rule 3).
    from_any: u64,
    /// Blocks that have been seen.
    seen: [Block; BLOCKS],
    /// Above the highest byte that has arrived.
    highest: u64,
    reactions: Reactions,
    /// Segments that were found to be lost and not asked for, if that is asked for: number, first byte, payload.
    found: Option<Vec<(u64, u64, u16)>>,
    /// Under [`Reactions::counts_from_top`]: the segment from which arrivals are counted downwards.
    top: Option<u64>,
}

impl Scoreboard {
    pub fn new(mss: u32, threshold: u32, reactions: Reactions) -> Scoreboard {
        Scoreboard {
            mss: u64::from(mss),
            threshold,
            segments: VecDeque::new(),
            first: 0,
            acknowledged: 0,
            next: 0,
            sacked: 0,
            lost: 0,
            lost_ever: 0,
            again: 0,
            waiting: 0,
            edge: 0,
            above: 0,
            from: 0,
            from_any: 0,
            seen: [(0, 0); BLOCKS],
            highest: 0,
            reactions,
            found: None,
            top: None,
        }
    }

    /// The same, and it notes what is found to be lost.
    pub fn noting_losses(mut self, notes: bool) -> Scoreboard {
        self.found = notes.then(Vec::new);
        self
    }

    /// A segment that was found to be lost since the last question: number, first byte, payload.
    #[inline]
    pub fn next_found(&mut self) -> Option<(u64, u64, u16)> {
        self.found.as_mut()?.pop()
    }

    /// Every byte below has been acknowledged cumulatively.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged
    }
    /// The first byte that has never been sent.
    pub fn next(&self) -> u64 {
        self.next
    }
    /// Number of the next new segment.
    pub fn next_number(&self) -> u64 {
        self.first + self.segments.len() as u64
    }
    /// Segments that have arrived beyond a hole; with a threshold that is never reached, all of them.
    pub fn sacked_segments(&self) -> u32 {
        self.above
    }
    /// Segments that are not acknowledged cumulatively.
    pub fn segments(&self) -> usize {
        self.segments.len()
    }
    pub fn outstanding(&self) -> u64 {
        self.next - self.acknowledged
    }
    pub fn lost(&self) -> u64 {
        self.lost
    }
    pub fn lost_ever(&self) -> u64 {
        self.lost_ever
    }
    /// RFC 6675's pipe: bytes in flight.
    #[inline]
    pub fn pipe(&self) -> u64 {
        self.outstanding() + self.again - self.sacked - self.lost
    }
    /// Something lost waits to be sent again.
    #[inline]
    pub fn has_lost(&self) -> bool {
        self.waiting > 0
    }
    pub fn front(&self) -> Option<&Segment> {
        self.segments.front()
    }
    /// The first unacknowledged segment is lost.
    pub fn front_is_lost(&self) -> bool {
        self.front().is_some_and(|segment| segment.is(mark::LOST))
    }
    /// The first unacknowledged segment was sent again since it was lost.
    pub fn front_was_sent_again(&self) -> bool {
        self.front().is_some_and(|segment| segment.is(mark::TWICE))
    }

    /// A new segment leaves.
    pub fn send_new(&mut self, payload: u16, now: Time) -> u64 {
        let first = self.next;
        self.segments.push_back(Segment { first, sent: now, payload, marks: mark::TIMED });
        self.next += u64::from(payload);
        first
    }

    fn at(&self, number: u64) -> &Segment {
        &self.segments[(number - self.first) as usize]
    }
    fn at_mut(&mut self, number: u64) -> &mut Segment {
        &mut self.segments[(number - self.first) as usize]
    }

    /// The lowest lost segment that was not sent again (NextSeg rule 1): its number.
    pub fn next_lost(&mut self) -> Option<u64> {
        if !self.has_lost() {
            return None;
        }
        self.from = self.from.max(self.first);
        while self.from < self.next_number() {
            let segment = self.at(self.from);
            if segment.is(mark::LOST) && !segment.is(mark::AGAIN) {
                return Some(self.from);
            }
            self.from += 1;
        }
        None
    }

    /// The lowest segment that neither arrived nor was sent again (NextSeg rule 3).
    pub fn next_doubtful(&mut self, which: Doubtful) -> Option<u64> {
        if which == Doubtful::None {
            return None;
        }
        self.from_any = self.from_any.max(self.first);
        while self.from_any < self.next_number() {
            let segment = self.at(self.from_any);
            if segment.first >= self.highest && which == Doubtful::Below {
                return None;
            }
            if !segment.is(mark::SACKED | mark::AGAIN) {
                return Some(self.from_any);
            }
            self.from_any += 1;
        }
        None
    }

    /// A segment leaves again.
    pub fn send_again(&mut self, number: u64, now: Time) -> (u64, u16) {
        let segment = self.at_mut(number);
        debug_assert!(!segment.is(mark::SACKED | mark::AGAIN));
        segment.marks |= mark::AGAIN | mark::TWICE;
        segment.sent = now;
        let (first, payload, lost) = (segment.first, segment.payload, segment.is(mark::LOST));
        self.again += u64::from(payload);
        self.waiting -= if lost { u64::from(payload) } else { 0 };
        (first, payload)
    }

    /// Takes in an acknowledgement: selective blocks first, then everything below `acknowledged`.
    pub fn update(&mut self, acknowledged: u64, blocks: &[Block], delivered: Delivered) -> Update {
        let mut update = Update::default();
        for &block in blocks {
            self.sack(block, &mut update, delivered);
        }
        if !blocks.is_empty() {
            self.seen = [(0, 0); BLOCKS];
            self.seen[..blocks.len().min(BLOCKS)].copy_from_slice(&blocks[..blocks.len().min(BLOCKS)]);
        }
        if acknowledged > self.acknowledged {
            self.advance(acknowledged.min(self.next), &mut update, delivered);
        }
        update.delivered += update.sacked;
        if !self.reactions.losses_by_sacks || update.sacked > 0 {
            self.find_lost();
        }
        update
    }

    /// The part of a block that was not seen before.
    fn sack(&mut self, (mut from, mut to): Block, update: &mut Update, delivered: Delivered) {
        from = from.max(self.acknowledged);
        to = to.min(self.next);
        for (start, end) in self.seen {
            if start <= from && from < end {
                from = end;
            }
            if start < to && to <= end {
                to = start;
            }
        }
        if from >= to {
            return;
        }
        self.highest = self.highest.max(to);
        let mut at = self.place(from);
        while let Some(segment) = self.segments.get_mut(at) {
            if segment.end() > to {
                return;
            }
            let number = self.first + at as u64;
            if !segment.is(mark::SACKED) {
                delivered(number, segment);
                let (payload, was) = (u64::from(segment.payload), *segment);
                segment.marks = segment.marks & !mark::LOST | mark::SACKED;
                self.sacked += payload;
                update.sacked += payload;
                if !self.reactions.keeps_again {
                    segment.marks &= !mark::AGAIN;
                    update.again |= was.sent_twice();
                    self.not_again(&was);
                }
                match self.reactions.counts_from_top {
                    false => self.above += u32::from(number >= self.edge),
                    true => self.raise_top(number),
                }
                self.not_lost(&was);
            }
            at += 1;
        }
    }

    /// A segment has just been acknowledged selectively: from where arrivals are counted now, and how many.
    fn raise_top(&mut self, number: u64) {
        let counted = |board: &Scoreboard, from: u64| {
            (from..=number).filter(|&n| n >= board.edge && board.at(n).is(mark::SACKED)).count() as u32
        };
        match self.top {
            None => self.above = counted(self, self.edge),
            Some(top) if top < number => self.above += counted(self, top + 1),
            Some(top) => {
                self.above += u32::from(number >= self.edge);
                if number + 1 < top {
                    return;
                }
                // Right below: the one above counts no more.
                self.above -= u32::from(top >= self.edge);
            }
        }
        self.top = Some(number);
    }

    /// Place of the first segment that begins at or after a byte.
    fn place(&self, byte: u64) -> usize {
        let Some(front) = self.segments.front() else { return 0 };
        let guess = (byte.saturating_sub(front.first) / self.mss) as usize;
        match self.segments.get(guess) {
            Some(segment) if segment.first == byte => guess,
            _ => self.segments.partition_point(|segment| segment.first < byte),
        }
    }

    fn advance(&mut self, acknowledged: u64, update: &mut Update, delivered: Delivered) {
        while let Some(segment) = self.segments.front().copied() {
            if segment.end() > acknowledged {
                break;
            }
            let payload = u64::from(segment.payload);
            if segment.is(mark::SACKED) {
                self.sacked -= payload;
                let counts = !self.reactions.counts_from_top || self.top.is_some_and(|top| self.first <= top);
                self.above -= u32::from(counts && self.first >= self.edge);
            } else {
                delivered(self.first, &segment);
                update.delivered += payload;
                let again = if self.reactions.keeps_again { mark::AGAIN } else { mark::TWICE };
                update.again |= segment.is(again);
            }
            self.not_lost(&segment);
            self.not_again(&segment);
            if update.timed_once.is_none() && segment.is(mark::TIMED) {
                update.timed_once = Some(!segment.is(mark::TWICE));
            }
            update.acknowledged += payload;
            self.acknowledged = segment.end();
            self.segments.pop_front();
            self.first += 1;
        }
        self.edge = self.edge.max(self.first);
        if self.top.is_some_and(|top| top <= self.first) {
            self.top = None;
            self.above = 0;
        }
    }

    /// A segment has arrived that may have counted as lost.
    fn not_lost(&mut self, was: &Segment) {
        if was.is(mark::LOST) {
            self.lost -= u64::from(was.payload);
            self.waiting -= if was.is(mark::AGAIN) { 0 } else { u64::from(was.payload) };
        }
    }

    /// A segment that may have been sent again is no longer in flight.
    fn not_again(&mut self, was: &Segment) {
        self.again -= if was.is(mark::AGAIN) { u64::from(was.payload) } else { 0 };
    }

    /// Moves the edge below which `threshold` later segments have arrived; what has not arrived below it is lost.
    fn find_lost(&mut self) {
        while self.above >= self.threshold && self.edge < self.next_number() {
            let sacked = self.at(self.edge).is(mark::SACKED);
            if self.above - u32::from(sacked) < self.threshold {
                return;
            }
            if sacked {
                self.above -= 1;
            } else {
                self.lose(self.edge);
            }
            self.edge += 1;
        }
    }

    fn lose(&mut self, number: u64) {
        let segment = self.at_mut(number);
        if segment.is(mark::LOST | mark::SACKED) {
            return;
        }
        segment.marks |= mark::LOST;
        let (payload, again, first) = (u64::from(segment.payload), segment.is(mark::AGAIN), segment.first);
        if let Some(found) = &mut self.found {
            found.push((number, first, payload as u16));
        }
        self.lost += payload;
        self.lost_ever += payload;
        self.waiting += if again { 0 } else { payload };
        self.from = self.from.min(number);
    }

    /// The segment of this number, if what was sent of it last may be in flight.
    #[inline]
    pub fn in_flight(&self, number: u64) -> Option<&Segment> {
        let segment = self.segments.get(usize::try_from(number.checked_sub(self.first)?).ok()?)?;
        let left = segment.is(mark::SACKED) || segment.is(mark::LOST) && !segment.is(mark::AGAIN);
        (!left).then_some(segment)
    }

    /// What was sent last of a segment is lost, be it the first time or another.
    pub fn lose_last_sent(&mut self, number: u64) {
        let segment = self.at_mut(number);
        debug_assert!(!segment.is(mark::SACKED));
        if segment.is(mark::AGAIN) {
            segment.marks &= !mark::AGAIN;
            let (payload, lost) = (u64::from(segment.payload), segment.is(mark::LOST));
            self.again -= payload;
            let lost_again = if lost { payload } else { 0 };
            self.waiting += lost_again;
            self.lost_ever += lost_again;
            self.from = self.from.min(number);
        }
        self.lose(number);
    }

    /// The timeout was spurious: nothing counts as lost, and what was sent again counts once.
    pub fn forgive(&mut self) {
        for segment in &mut self.segments {
            segment.marks &= !(mark::LOST | mark::AGAIN);
        }
        (self.lost, self.waiting, self.again) = (0, 0, 0);
    }

    /// A segment leaves once more to ask what has arrived: it does not count twice in the pipe.
    pub fn probe_again(&mut self, number: u64, now: Time) -> (u64, u16) {
        let segment = self.at_mut(number);
        segment.marks |= mark::TWICE;
        segment.sent = now;
        (segment.first, segment.payload)
    }

    /// A timeout: the first segment is lost, and of the others those that `overdue` says of the time at which they were sent.
    pub fn lose_overdue(&mut self, overdue: impl Fn(Time) -> bool) {
        for number in self.first..self.next_number() {
            let segment = self.at_mut(number);
            segment.marks &= !mark::TIMED;
            let sent = segment.sent;
            if self.in_flight(number).is_some() && (number == self.first || overdue(sent)) {
                self.lose_last_sent(number);
            }
        }
        self.from = self.first;
        self.from_any = self.first;
    }

    /// The first unacknowledged segment is lost, whatever has arrived beyond it.
    pub fn lose_front(&mut self) {
        if !self.segments.is_empty() {
            self.lose(self.first);
        }
    }

    /// The same, and that it was sent again does not count.
    pub fn lose_front_again(&mut self) {
        let Some(front) = self.segments.front_mut() else { return };
        let was = *front;
        front.marks &= !mark::AGAIN;
        if was.is(mark::AGAIN) {
            self.again -= u64::from(was.payload);
            self.waiting += if was.is(mark::LOST) { u64::from(was.payload) } else { 0 };
            self.from = self.first;
        }
        self.lose(self.first);
    }

    /// ns-3.35's IsLost(): of the segments from a byte on, the first that is lost or has arrived is lost.
    pub fn is_lost_from(&self, byte: u64) -> bool {
        let below = self.top.is_some_and(|top| byte < self.at(top).first);
        let mut decided = self.segments.range(self.place(byte).min(self.segments.len())..);
        below && decided.find(|s| s.is(mark::LOST | mark::SACKED)).is_some_and(|s| s.is(mark::LOST))
    }

    /// The first unacknowledged segment was sent again since the last timeout.
    pub fn front_is_again(&self) -> bool {
        self.front().is_some_and(|segment| segment.is(mark::AGAIN))
    }

    /// The first unacknowledged segment leaves again, whatever is known of it: its number.
    pub fn send_front_again(&mut self, now: Time) -> Option<(u64, u64, u16)> {
        let number = self.first;
        let front = self.segments.front_mut()?;
        if front.is(mark::AGAIN) {
            front.sent = now;
            return Some((number, front.first, front.payload));
        }
        let (first, payload) = self.send_again(number, now);
        Some((number, first, payload))
    }

    /// A timeout: what has not arrived is lost, also what was sent again.
    pub fn lose_all(&mut self) {
        for number in self.first..self.next_number() {
            self.at_mut(number).marks &= !(mark::AGAIN | mark::TIMED);
            self.lose(number);
        }
        self.again = 0;
        self.waiting = self.lost;
        self.from = self.first;
        self.from_any = self.first;
    }
}
