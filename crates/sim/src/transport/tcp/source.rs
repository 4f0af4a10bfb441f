//! What the application has written: all at once as the send buffer takes it, or messages at a rate.
//!
//! Under a rate a message is written every so often from the start of the flow on; one that does not fit the send buffer is
//! left out, as by an application that does not wait (spec of the Cebinae runs: a writer at a constant bit rate). It is
//! computed when it is asked for: no event per message.

use crate::units::{Rate, Time};

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
}

impl Source {
    pub fn new(size: u64, buffer: u64, rate: Option<Rate>, message: u32, start: Time) -> Source {
        let message = u64::from(message.max(1));
        let pace = rate.map(|rate| (message, rate.transmission_time(message).max(Time(1))));
        Source { size, buffer, pace, start, ticks: 0, next_tick: start, written: 0 }
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
        let missing = (bytes + 1).saturating_sub(self.written).div_ceil(message);
        let room = (self.buffer + acknowledged).saturating_sub(self.written) / message;
        if self.written >= self.size || missing == 0 || room < missing {
            return None;
        }
        Some(self.next_tick.saturating_add(Time(every.0.saturating_mul(missing - 1))))
    }

    /// The application writes at a rate and has less than its buffer full.
    pub fn is_paced(&self) -> bool {
        self.pace.is_some()
    }
    pub fn size(&self) -> u64 {
        self.size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_rate_the_buffer_is_what_limits() {
        let mut source = Source::new(10_000, 4_000, None, 0, Time::ZERO);
        assert_eq!(source.written(0, Time::ZERO), 4_000);
        assert_eq!(source.written(3_000, Time::ZERO), 7_000);
        assert_eq!(source.written(9_000, Time::ZERO), 10_000);
        assert_eq!(source.when_more_than(7_000, 3_000), None);
    }

    #[test]
    fn messages_come_at_their_rate_and_those_that_find_the_buffer_full_are_left_out() {
        // 1000 B at 8 Mb/s: one every millisecond, the first at 5 ms.
        let start = Time::from_ms(5);
        let mut source = Source::new(u64::MAX, 3_500, Some(Rate::from_mbps(8)), 1000, start);
        assert_eq!(source.written(0, start), 1_000);
        assert_eq!(source.when_more_than(1_000, 0), Some(Time::from_ms(6)));
        assert_eq!(source.when_more_than(1_999, 0), Some(Time::from_ms(6)));
        assert_eq!(source.when_more_than(2_000, 0), Some(Time::from_ms(7)));
        assert_eq!(source.written(0, Time::from_us(6_999)), 2_000);
        // Of the messages at 7, 8, 9 and 10 ms one finds room.
        assert_eq!(source.written(0, Time::from_ms(10)), 3_000);
        assert_eq!(source.when_more_than(3_000, 0), None);
        // An acknowledgement makes room for the message at 11 ms, not for those before it.
        assert_eq!(source.written(1_000, Time::from_us(10_500)), 3_000);
        assert_eq!(source.when_more_than(3_000, 1_000), Some(Time::from_ms(11)));
        assert_eq!(source.written(1_000, Time::from_ms(11)), 4_000);
    }
}
