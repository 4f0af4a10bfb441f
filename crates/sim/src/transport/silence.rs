//! When a source repeats its request because it received nothing from the other end.

use crate::units::Time;

/// The timeout of a source that receives nothing from its destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Silence {
    /// The request is repeated if nothing is received until then.
    pub deadline: Time,
    /// The timer that is set comes then; others are stale.
    pub event: Time,
    /// The timeout; doubled with each expiry in a row.
    pub patience: Time,
}

/// Maximum number of doublings.
pub const MAX_DOUBLINGS: u32 = 4;

impl Silence {
    pub fn starting(now: Time, patience: Time) -> Silence {
        let deadline = now.saturating_add(patience);
        Silence { deadline, event: deadline, patience }
    }

    /// Something was received. Returns when a timer has to come, if before the one that is set.
    #[must_use]
    pub fn broken(&mut self, now: Time, patience: Time) -> Option<Time> {
        self.patience = patience;
        self.wait(now.saturating_add(patience))
    }

    /// Another deadline. Returns when a timer has to come, if before the one that is set.
    #[must_use]
    pub fn wait(&mut self, deadline: Time) -> Option<Time> {
        self.deadline = deadline;
        self.earlier(deadline)
    }

    /// A timer has to come by a time, for another reason: when, if before the one that is set.
    #[must_use]
    pub fn earlier(&mut self, time: Time) -> Option<Time> {
        (time < self.event).then(|| {
            self.event = time;
            time
        })
    }

    /// The timer has come: whether the request must be repeated. The next one is due at `event`.
    pub fn over(&mut self, now: Time, patience: Time) -> bool {
        let over = now >= self.deadline;
        if over {
            let max = Time(patience.0.saturating_mul(1 << MAX_DOUBLINGS));
            self.patience = Time(self.patience.0.saturating_mul(2)).min(max);
            self.deadline = now.saturating_add(self.patience);
        }
        self.event = self.deadline;
        over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_with_every_timeout_and_restarts_when_a_packet_arrives() {
        let us = Time::from_us;
        let mut silence = Silence::starting(us(0), us(10));
        assert!(silence.over(us(10), us(10)));
        assert_eq!((silence.event, silence.patience), (us(30), us(20)));
        assert_eq!(silence.broken(us(15), us(10)), Some(us(25)));
        assert_eq!(silence.broken(us(25), us(10)), None);
        assert!(!silence.over(us(25), us(10)));
        assert_eq!(silence.event, us(35));
        for _ in 0..20 {
            let at = silence.event;
            assert!(silence.over(at, us(10)));
        }
        assert_eq!(silence.patience, us(160));
    }
}
