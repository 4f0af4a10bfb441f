//! What the application has written: all at once as the send buffer takes it, or messages at a rate.
//!
//! Under a rate a message is written every so often from the start of the flow on; one that does not fit the send buffer is
//! left out, as by an application that does not wait (spec of the Cebinae runs: a writer at a constant bit rate). It is
//! computed when it is asked for: no event per message.
//!
//! A connection that stays open has messages [appended](Source::append), each of which the application writes all at once.
//!
//! A transport that hands its data to one of several connections writes them itself: such a source has what it was
//! [given](Source::write), and ends when it is [closed](Source::close).

use crate::units::{Rate, Time};
use std::collections::VecDeque;

#[derive(Debug)]
pub struct Source {
    size: u64,
    buffer: u64,
    /// Bytes of a message and the time between two; none without a rate.
    pace: Option<(u64, Time)>,
    start: Time,
    /// Messages that have been written or left out.
    ticks: u64,
    /// When the next comes.
    next_tick: Time,
    written: u64,
    /// In pieces: where each write ends that has not been sent whole.
    ends: Option<VecDeque<u64>>,
}

impl Source {
    pub fn new(size: u64, buffer: u64, rate: Option<Rate>, message: u32, start: Time) -> Source {
        let message = u64::from(message.max(1));
        let pace = rate.map(|rate| (message, rate.transmission_time(message).max(Time(1))));
        Source { size, buffer, pace, start, ticks: 0, next_tick: start, written: 0, ends: None }
    }

    /// A source of which nothing is written yet, and the end is not known.
    pub fn by_hand() -> Source {
        let pace = Some((u64::MAX, Time::MAX));
        Source {
            size: u64::MAX,
            buffer: u64::MAX,
            pace,
            start: Time::ZERO,
            ticks: 0,
            next_tick: Time::MAX,
            written: 0,
            ends: None,
        }
    }

    /// The same, each write of which is a piece: no segment goes beyond its end, and none waits for what comes after.
    pub fn in_pieces() -> Source {
        Source { ends: Some(VecDeque::new()), ..Source::by_hand() }
    }

    /// A source of messages that are appended, none yet; each is a piece.
    pub fn of_messages(buffer: u64) -> Source {
        Source { size: 0, buffer, pace: None, ends: Some(VecDeque::new()), ..Source::by_hand() }
    }

    /// Appends a message.
    pub fn append(&mut self, bytes: u64) {
        debug_assert!(self.pace.is_none());
        self.size += bytes;
        if let Some(ends) = &mut self.ends {
            ends.push_back(self.size);
        }
    }

    /// Writes bytes by hand; the first of them has the number that is returned.
    pub fn write(&mut self, bytes: u64) -> u64 {
        debug_assert!(self.size == u64::MAX && self.next_tick == Time::MAX);
        self.written += bytes;
        if let Some(ends) = &mut self.ends {
            ends.push_back(self.written);
        }
        self.written - bytes
    }

    /// Bytes from `next` on to the end of the stream, or of the piece that it is in: no segment goes beyond.
    #[inline]
    pub fn left(&mut self, next: u64) -> u64 {
        let Some(ends) = &mut self.ends else { return self.size - next };
        while ends.front().is_some_and(|&end| end <= next) {
            ends.pop_front();
        }
        ends.front().map_or(u64::MAX, |end| end - next)
    }

    /// What was written by hand is all.
    pub fn close(&mut self) {
        self.size = self.written;
    }

    /// Every byte below has been written by now; `acknowledged` has left the buffer for good.
    #[inline]
    pub fn written(&mut self, acknowledged: u64, now: Time) -> u64 {
        let Some((message, every)) = self.pace else {
            return self.size.min(acknowledged.saturating_add(self.buffer));
        };
        if now >= self.next_tick {
            let ticks = (now - self.start).0 / every.0 + 1;
            let room = (self.buffer + acknowledged).saturating_sub(self.written) / message;
            self.written = self.size.min(self.written + room.min(ticks - self.ticks) * message);
            self.ticks = ticks;
            self.next_tick = self.start.saturating_add(Time(every.0.saturating_mul(ticks)));
        }
        self.written
    }

    /// When more than this will have been written; none if nothing is to come before an acknowledgement does.
    pub fn when_more_than(&self, bytes: u64, acknowledged: u64) -> Option<Time> {
        let (message, every) = self.pace?;
        if self.next_tick == Time::MAX {
            return None;
        }
        let missing = (bytes + 1).saturating_sub(self.written).div_ceil(message);
        let room = (self.buffer + acknowledged).saturating_sub(self.written) / message;
        if self.written >= self.size || missing == 0 || room < missing {
            return None;
        }
        Some(self.next_tick.saturating_add(Time(every.0.saturating_mul(missing - 1))))
    }

    /// Bytes written from `next` on.
    pub fn unsent(&self, next: u64) -> u64 {
        let written = if self.pace.is_some() { self.written } else { self.size };
        written.saturating_sub(next)
    }

    /// It may have nothing to send before its end: the application writes at a rate, or messages now and then.
    pub fn runs_dry(&self) -> bool {
        self.pace.is_some() || self.ends.is_some()
    }
    /// Between two messages that it writes at a rate.
    pub fn interval(&self) -> Option<Time> {
        self.pace.map(|(_, every)| every)
    }
    /// Bytes that it writes at once, at a rate.
    pub fn message(&self) -> Option<u64> {
        self.pace.map(|(message, _)| message)
    }

    pub fn size(&self) -> u64 {
        self.size
    }
}

#[cfg(test)]
mod tests;
