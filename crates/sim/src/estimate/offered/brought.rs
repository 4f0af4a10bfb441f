//! What a workload brings, and when: bits by place, with what is known of chance in them.

use rustc_hash::FxHashMap;

use super::BUSIER;
use crate::config::Until;
use crate::topology::{HostId, NodeId};
use crate::units::Time;
use crate::workload::Ends;

/// The deviance of what arrives from what a link carries, beyond which it is not chance: four standard
/// deviations of independent arrivals, squared.
const NO_CHANCE: f64 = 16.0;
/// Mean gaps between arrivals within which an end of a workload's time is the same as that of the whole time.
const SAME: f64 = 10.0;

/// When a workload brings flows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    pub first: Time,
    pub last: Time,
    /// Number of times at which something arrived.
    pub times: u64,
}

impl Span {
    /// The share of the time until `end` that it lasts.
    pub fn share(&self, end: Time) -> f64 {
        if self.times < 2 || end == Time::ZERO {
            return 1.0;
        }
        let gap = self.last.saturating_sub(self.first).as_seconds() / (self.times - 1) as f64;
        let same = |one: Time, other: Time| other.saturating_sub(one).as_seconds() <= SAME * gap;
        let from = if same(Time::ZERO, self.first) { Time::ZERO } else { self.first };
        let to = if same(self.last, end) { end } else { self.last };
        (to.saturating_sub(from).as_seconds() / end.as_seconds()).clamp(0.0, 1.0)
    }

    /// The share of it that lies between two times.
    pub fn part(&self, (from, to): (Time, Time)) -> f64 {
        let (first, last) = (self.first.max(from), self.last.min(to));
        if first > last {
            return 0.0;
        }
        let whole = self.last.saturating_sub(self.first).as_seconds();
        if whole > 0.0 { last.saturating_sub(first).as_seconds() / whole } else { 1.0 }
    }
}

/// Bits, the sum of the squares of the bits of each time, and the bits of the sizes that were drawn.
#[derive(Debug, Clone, Copy, Default)]
pub struct Amount {
    pub bits: f64,
    pub squares: f64,
    pub drawn: f64,
}

impl Amount {
    pub fn add(&mut self, other: Amount, part: f64) {
        self.bits += part * other.bits;
        self.drawn += part * other.drawn;
        self.squares += part * other.squares;
    }

    /// Whether flows that bring on average what is carried would hardly ever bring this much: the deviance of a
    /// Poisson number of flows, as many and as large as count for its variance.
    pub fn is_beyond(self, carried: f64) -> bool {
        if carried <= 0.0 || self.bits <= carried {
            return false;
        }
        if self.squares == 0.0 {
            return self.bits > carried * BUSIER;
        }
        let flows = self.bits * self.bits / self.squares;
        2.0 * flows * ((self.bits / carried).ln() - (1.0 - carried / self.bits)) > NO_CHANCE
    }

    /// What it is, where this many times more flows come than were looked at.
    pub fn of_all(self, times: f64) -> Amount {
        let (bits, squares) = (times * self.bits, times * times * self.squares);
        Amount { bits, squares, drawn: times * self.drawn }
    }

    pub fn without_chance(self) -> Amount {
        Amount { squares: 0.0, ..self }
    }
}

/// Bits of a flow on the wire: as it counts, and by the size that was drawn.
#[derive(Debug, Clone, Copy)]
pub struct Bits {
    pub bits: f64,
    pub drawn: f64,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Arrived {
    pub amount: Amount,
    /// The last time, and the bits that arrived then.
    pub at: Time,
    pub latest: f64,
}

impl Arrived {
    /// Returns what the bits add.
    pub fn add(&mut self, Bits { bits, drawn }: Bits, now: Time) -> Amount {
        let before = if now == self.at { self.latest } else { 0.0 };
        (self.at, self.latest) = (now, before + bits);
        let more = Amount { bits, squares: self.latest * self.latest - before * before, drawn };
        self.amount.add(more, 1.0);
        more
    }
}

/// What is left of a workload of which not all flows were looked at.
#[derive(Debug, Clone, Copy, Default)]
pub struct Left {
    pub flows: u64,
    pub bytes: u64,
    pub first: Time,
    pub last: Time,
}

impl Left {
    /// The share of it that starts before the run ends.
    pub fn due(&self, until: Until) -> f64 {
        let Until::At(stop) = until else { return 1.0 };
        if stop >= self.last || stop < self.first {
            return f64::from(u8::from(stop >= self.last));
        }
        let passed = stop.saturating_sub(self.first).as_seconds();
        passed / self.last.saturating_sub(self.first).as_seconds()
    }
}

/// What a workload brings.
#[derive(Default)]
pub struct Brought {
    pub first: Time,
    pub last: Time,
    pub times: u64,
    /// Flows that were looked at.
    pub flows: u64,
    pub left: Left,
    /// Of rounds.
    pub period: Option<Time>,
    /// The hosts that its flows are between.
    pub ends: Ends,
    pub all: Arrived,
    /// Of receivers.
    pub answers: Arrived,
    /// By place of several links together.
    pub list: Vec<Arrived>,
    pub table: FxHashMap<u32, Arrived>,
    /// Between two switches with hosts.
    pub pairs: FxHashMap<(NodeId, NodeId), Amount>,
}

impl Brought {
    pub fn arrive(&mut self, now: Time) {
        if self.flows == 0 {
            self.first = now;
        }
        self.times += u64::from(self.flows == 0 || now != self.last);
        (self.flows, self.last) = (self.flows + 1, now);
    }

    pub fn span(&self) -> Span {
        let (left, last) = (self.left.flows, self.last.max(self.left.last));
        let last = last.saturating_add(self.period.unwrap_or_default());
        Span { first: self.first, last, times: self.times + left }
    }

    /// All of its flows over those that were looked at.
    pub fn whole(&self) -> f64 {
        1.0 + self.left.flows as f64 / (self.flows as f64).max(1.0)
    }

    /// Whether chance has no part in what rounds bring to a place: to one of a host, as the mean counts where rounds draw their
    /// hosts, and to any other one where all rounds are between the same hosts.
    pub fn is_exact(&self, is_of_host: bool) -> bool {
        self.period.is_some() && (is_of_host || self.ends.drawn == [false; 2])
    }

    /// What rounds that draw their hosts bring to each of them by the mean, by place.
    pub fn expected(&self) -> impl Iterator<Item = (u32, Amount)> {
        let each = |way: u32, hosts: &'_ [HostId]| {
            let part = 1.0 / hosts.len().max(1) as f64;
            let mut amount = Amount::default();
            amount.add(self.all.amount, part);
            hosts.iter().map(move |host| (2 * host + way, amount)).collect::<Vec<_>>()
        };
        let all = [&self.ends.senders, &self.ends.receivers];
        let drawn = all.into_iter().zip(0..).filter(|&(_, way)| self.draws(way));
        drawn.flat_map(move |(hosts, way)| each(way, hosts))
    }

    /// Whether rounds draw the hosts out of which (0) or into which (1) flows go.
    pub fn draws(&self, way: u32) -> bool {
        self.period.is_some() && self.ends.drawn[way as usize]
    }

    pub fn add(&mut self, place: u32, bits: Bits, now: Time) {
        match self.list.get_mut(place as usize) {
            Some(arrived) => arrived.add(bits, now),
            None => self.table.entry(place).or_default().add(bits, now),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_large_flows_are_chance_and_many_times_what_a_link_carries_is_not() {
        let amount =
            |flows: f64, size: f64| Amount { bits: flows * size, squares: flows * size * size, drawn: 0.0 };
        assert!(amount(20.0, 1.0).is_beyond(4.0));
        assert!(!amount(5.0, 1.0).is_beyond(1.0));
        assert!(!amount(1.0, 20.0).is_beyond(1.0));
        // Four standard deviations of 1000 flows are 126.
        assert!(amount(1000.0, 1.0).is_beyond(870.0));
        assert!(!amount(1000.0, 1.0).is_beyond(885.0));
    }
}
