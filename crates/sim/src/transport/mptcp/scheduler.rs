//! Which subflow gets the next segment: a choice among those that have room.
//!
//! Source: Raiciu et al., NSDI 2012, §4.2 (the shortest round-trip time first); Paasch et al., "Experimental evaluation of
//! multipath TCP schedulers", CSWS 2014 (round robin); Frommgen et al., "ReMP TCP: low latency multipath TCP", ICC 2016
//! (redundant). The scheduler of Linux (net/mptcp/protocol.c, from memory, unverified, beyond what is measured of its rule): of all
//! active subflows the one with the shortest linger time, which is what its buffer holds over its smoothed pacing rate; if its
//! buffer is full, nobody gets anything, as a slower one would be empty later still; it keeps the turn for a burst. A buffer grows with the window and never shrinks, so after a slow start that went
//! too far it holds seconds of data, for which the receiver waits before it reads what others have brought.

use super::stream::MAX_SUBFLOWS;
use crate::transport::mptcp::parameters::SchedulerKind;
use crate::units::{Rate, Time};

/// Bytes that a subflow gets before another one is looked for, in Linux.
pub const BURST: u64 = 65_428;
/// Segments of the first window (RFC 6928).
const FIRST_WINDOW: u64 = 10;
/// Timeouts in a row after which Linux takes a subflow for stale.
pub const STALE: u32 = 4;

/// Bytes that Linux reserves for the buffer of a subflow: two windows of the largest that it has had, with what a segment takes in
/// memory (its payload and 576 B of headers, in a block of a power of two, and 256 B that describe it).
pub fn reserved(widest: u64, mss: u64) -> u64 {
    2 * widest.max(FIRST_WINDOW * mss) / mss * ((mss + 576).next_power_of_two() + 256)
}

/// Payload for which such a buffer has room. What waits takes a sixteenth more than its payload, as measured.
pub fn buffer(widest: u64, mss: u64) -> u64 {
    reserved(widest, mss) * 16 / 17
}

/// The smoothed pacing rate of a subflow that gets the next burst; `buffered`: bytes in its buffer.
pub fn smoothed(before: Option<Rate>, now: Option<Rate>, buffered: u64) -> Option<Rate> {
    let (Some(before), Some(now)) = (before.or(now), now) else { return before };
    let sum = u128::from(before.0) * u128::from(buffered) + u128::from(now.0) * u128::from(BURST);
    Some(Rate((sum / u128::from(buffered + BURST)) as u64))
}

/// How long a buffer lasts; no time where no rate is known.
pub fn linger(buffered: u64, rate: Option<Rate>) -> Time {
    rate.map_or(Time::ZERO, |rate| Rate(rate.0.max(1)).transmission_time(buffered))
}

/// Subflows with room, by number, in the order in which they are asked.
#[derive(Debug, Default)]
pub struct Order {
    waiting: [(Time, u8); MAX_SUBFLOWS],
    count: usize,
}

impl Order {
    /// `times`: of each subflow that has room its smoothed round-trip time, or its linger time; `turn`: whose turn it is.
    pub fn new(kind: SchedulerKind, times: impl Iterator<Item = Option<Time>>, turn: usize) -> Order {
        let mut order = Order::default();
        for (subflow, time) in times.enumerate().take(MAX_SUBFLOWS) {
            let Some(time) = time else { continue };
            let key = match kind {
                SchedulerKind::MinRtt | SchedulerKind::Linger => time,
                // Behind those from the turn on come those before it.
                SchedulerKind::RoundRobin => Time(u64::from(subflow < turn)),
                SchedulerKind::Redundant => Time::ZERO,
            };
            order.waiting[order.count] = (key, subflow as u8);
            order.count += 1;
        }
        order.waiting[..order.count].sort_unstable();
        order
    }

    pub fn subflows(&self) -> impl Iterator<Item = usize> + '_ {
        self.waiting[..self.count].iter().map(|&(_, subflow)| usize::from(subflow))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(kind: SchedulerKind, us: [Option<u64>; 4], turn: usize) -> Vec<usize> {
        Order::new(kind, us.into_iter().map(|us| us.map(Time::from_us)), turn).subflows().collect()
    }

    #[test]
    fn the_shortest_round_trip_is_asked_first_and_equal_ones_by_number() {
        let us = [Some(30), None, Some(10), Some(30)];
        assert_eq!(order(SchedulerKind::MinRtt, us, 3), [2, 0, 3]);
    }

    #[test]
    fn in_linux_the_buffer_that_is_empty_soonest_comes_first() {
        let rate = |bps| Some(Rate(bps));
        assert_eq!(linger(60_000, rate(96_000_000)), Time::from_ms(5));
        assert_eq!(linger(60_000, None), Time::ZERO);
        // 3 parts of what was before and one of the new rate.
        assert_eq!(smoothed(rate(8), rate(16), 3 * BURST), rate(10));
        assert_eq!(smoothed(None, rate(16), 0), rate(16));
        assert_eq!(smoothed(None, None, 0), None);
        // Three that were seen in Linux 6.18.
        assert_eq!([17, 44, 282].map(|n| reserved(n * 1448, 1448)), [78_336, 202_752, 1_299_456]);
        assert_eq!((buffer(1448, 1448), buffer(144_800, 1448)), (43_369, 433_694));
        assert_eq!(order(SchedulerKind::Linger, [Some(5), Some(3), None, Some(3)], 0), [1, 3, 0]);
    }

    #[test]
    fn turns_go_round() {
        let us = [Some(30), Some(1), None, Some(2)];
        assert_eq!(order(SchedulerKind::RoundRobin, us, 1), [1, 3, 0]);
        assert_eq!(order(SchedulerKind::RoundRobin, us, 4), [0, 1, 3]);
        assert_eq!(order(SchedulerKind::Redundant, us, 1), [0, 1, 3]);
    }
}
