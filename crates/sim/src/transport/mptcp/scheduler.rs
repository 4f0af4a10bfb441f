//! Which subflow gets the next segment: a choice among those that have room.
//!
//! Source: Raiciu et al., NSDI 2012, §4.2 (the shortest round-trip time first); Paasch et al., "Experimental evaluation of
//! multipath TCP schedulers", CSWS 2014 (round robin); Frommgen et al., "ReMP TCP: low latency multipath TCP", ICC 2016
//! (redundant).

use super::stream::MAX_SUBFLOWS;
use crate::transport::mptcp::parameters::SchedulerKind;
use crate::units::Time;

/// Subflows with room, by number, in the order in which they are asked.
#[derive(Debug, Default)]
pub struct Order {
    waiting: [(Time, u8); MAX_SUBFLOWS],
    count: usize,
}

impl Order {
    /// `round_trips`: of each subflow that has room its smoothed round-trip time; `turn`: whose turn it is.
    pub fn new(kind: SchedulerKind, round_trips: impl Iterator<Item = Option<Time>>, turn: usize) -> Order {
        let mut order = Order::default();
        for (subflow, rtt) in round_trips.enumerate().take(MAX_SUBFLOWS) {
            let Some(rtt) = rtt else { continue };
            let key = match kind {
                SchedulerKind::MinRtt => rtt,
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
    fn turns_go_round() {
        let us = [Some(30), Some(1), None, Some(2)];
        assert_eq!(order(SchedulerKind::RoundRobin, us, 1), [1, 3, 0]);
        assert_eq!(order(SchedulerKind::RoundRobin, us, 4), [0, 1, 3]);
        assert_eq!(order(SchedulerKind::Redundant, us, 1), [0, 1, 3]);
    }
}
