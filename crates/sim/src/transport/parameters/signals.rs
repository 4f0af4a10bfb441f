//! What a flow has in addition to the packets of its data, and what it waits for before the first of them.

use crate::topology::HostId;
use crate::units::Time;

/// Packets without data where nothing is lost: acknowledgements, grants, tokens, pulls, requests.
///
/// ```text
/// once + a min(n, f) + each max(n - f, 0)      n: packets of data; f, a: `first`
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Answers {
    /// Of a flow, whatever its size.
    pub once: f64,
    /// The number of first packets that differ from the others, and what each of them has.
    pub first: (u64, f64),
    /// What each further packet has.
    pub each: f64,
    /// The first packets of a flow differ only if it has no others.
    pub of_short: bool,
}

impl Answers {
    /// This number for each packet.
    pub const fn each(each: f64) -> Answers {
        Answers { once: 0.0, first: (0, 0.0), each, of_short: false }
    }

    /// Those of a flow with this number of packets of data.
    pub fn of(&self, packets: u64) -> f64 {
        let first = if self.of_short && packets > self.first.0 { 0 } else { packets.min(self.first.0) };
        self.once + first as f64 * self.first.1 + (packets - first) as f64 * self.each
    }

    /// The same of a flow on a connection that is open.
    pub fn of_next(&self, packets: u64) -> f64 {
        (packets as f64 * self.each).max(1.0)
    }
}

/// A receiver asks for packets at the rate of its own link, whatever links before it carry, and again for
/// those that were lost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Asks {
    /// Share of its link's rate.
    pub share: f64,
    /// Bytes of a flow that may be requested and not have arrived.
    pub unanswered: u64,
    /// The times of full packets for which nothing is requested of a flow that has reached `unanswered`.
    pub pause: f64,
    /// Packets of a flow that its source sends before any is requested; only of flows that have no more, or of
    /// all.
    pub first: u64,
    pub first_of_short: bool,
    /// Times that these take on the receiver's link, and packets' times in addition, after which it requests
    /// those that have not arrived; none: it does not.
    pub patience: Option<(f64, f64)>,
}

impl Asks {
    /// Packets of a flow that are sent before any is requested.
    pub fn first_of(&self, packets: u64) -> u64 {
        if self.first_of_short && packets > self.first { 0 } else { packets.min(self.first) }
    }
}

/// A host that every flow asks before its first packet leaves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Permission {
    pub host: HostId,
    /// From the arrival of a request until it is granted, in the mean.
    pub granted_after: Time,
    /// From then until the first packet leaves; none: as soon as the source learns of it.
    pub sent_after: Option<Time>,
    /// Packets between this host and the source of a flow.
    pub packets: Answers,
}

/// A sender, or a receiver that misses packets, has them sent again when nothing has come for a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resends {
    pub after: Time,
    /// The time doubles while nothing comes.
    pub doubles: bool,
}

impl Resends {
    /// The first timeout at which packets arrive again, where none have arrived since `at` and none can before
    /// `usable`.
    pub fn first(&self, at: Time, usable: Time) -> Time {
        let (lost, after) = (usable.saturating_sub(at).0, self.after.0.max(1));
        if !self.doubles {
            return at.saturating_add(Time(after.saturating_mul(lost.div_ceil(after).max(1))));
        }
        let (mut passed, mut next) = (after, after);
        while passed < lost {
            next = next.saturating_mul(2);
            passed = passed.saturating_add(next);
        }
        at.saturating_add(Time(passed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_continues_at_the_first_timeout_after_its_path_is_usable() {
        let us = Time::from_us;
        let first =
            |doubles: bool, usable: u64| Resends { after: us(10), doubles }.first(us(100), us(usable));
        // 10, 30, 70 us after the last packet arrived.
        assert_eq!([90, 110, 111, 131].map(|usable| first(true, usable)), [110, 110, 130, 170].map(us));
        assert_eq!([90, 110, 111, 131].map(|usable| first(false, usable)), [110, 110, 120, 140].map(us));
    }
}
