//! RACK: loss detection by time. A segment is lost when one that was sent later has arrived, and a reordering window has passed
//! since it could have arrived itself.
//!
//! ```text
//! lost       sent + RACK.rtt + window <= now, and sent before RACK.xmit_ts
//! window     0 while no reordering was seen, in recovery or with three segments beyond a hole;
//!            else min(steps min_rtt / 4, SRTT)
//! steps      1; one more in each round with a duplicate reported (D-SACK), 1 again after 16 recoveries without
//! ```
//!
//! RACK.xmit_ts is of the segment sent last among those that have arrived, and RACK.rtt of the one sent last
//! among those that the last acknowledgement delivers. Reordering is seen where an acknowledgement delivers a
//! segment below one that an earlier acknowledgement delivered: the order of segments that one acknowledgement
//! delivers is unknown. Segments are looked at in the order in which they were sent, so that an acknowledgement
//! costs what it changes.
//!
//! Source: Cheng, Cardwell, Dukkipati, Jha, RFC 8985 §5 (state), §6.2 (steps 1 to 5), §6.3 (timeouts).
//! Differs from the source: the reordering timer is set to when the first segment is due, not the last; the timestamp that is echoed tells
//! a segment sent again from its original only where the segment moved the stream on (elsewhere it is another segment's, RFC 7323 §4.3),
//! and the least round-trip time tells everywhere.

use super::scoreboard::{Scoreboard, Segment};
use crate::units::Time;
use std::collections::VecDeque;

/// Recoveries without a duplicate after which the window has one step again (RFC 8985 §6.2 step 4).
const PERSIST: u32 = 16;

#[derive(Debug)]
pub struct Rack {
    /// Of the segment sent last among those that have arrived: when it was sent, and where it ends.
    latest: (Time, u64),
    /// What the segment took that was sent last among those that the last acknowledgement delivered.
    rtt: Time,
    /// Above the highest byte that has arrived (RACK.fack), and that before the acknowledgement at work.
    highest: u64,
    before: u64,
    /// Of the segment sent last among those that the acknowledgement at work delivers.
    newest: (Time, u64),
    reordering_seen: bool,
    /// Quarters of the least round-trip time in the window (RACK.reo_wnd_mult).
    steps: u32,
    persist: u32,
    /// No step more before everything below is acknowledged (RACK.dsack_round).
    round: Option<u64>,
    /// The reordering window, as the last acknowledgement left it.
    window: Time,
    /// Every transmission in order: number of the segment, and when. Those that have arrived, or were sent again, are skipped.
    order: VecDeque<(u64, Time)>,
    /// When the first segment that is suspected is due.
    pub due: Option<Time>,
}

/// What bounds the reordering window.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// In fast recovery, or after a timeout.
    pub recovering: bool,
    /// Segments that count as a loss at once.
    pub threshold: u32,
    /// [`Time::MAX`] before the first sample.
    pub min_rtt: Time,
    pub smoothed: Option<Time>,
}

impl Rack {
    pub fn new() -> Rack {
        Rack {
            latest: (Time::ZERO, 0),
            rtt: Time::ZERO,
            highest: 0,
            before: 0,
            newest: (Time::ZERO, 0),
            reordering_seen: false,
            steps: 1,
            persist: PERSIST,
            round: None,
            window: Time::ZERO,
            order: VecDeque::new(),
            due: None,
        }
    }

    #[inline]
    pub fn sent(&mut self, number: u64, now: Time) {
        self.order.push_back((number, now));
    }

    /// An acknowledgement has come.
    #[inline]
    pub fn look(&mut self) {
        (self.before, self.newest) = (self.highest, (Time::ZERO, 0));
    }

    /// It delivers a segment (steps 2 and 3). `echo`: the time echoed, if the segment moved the stream on.
    #[inline]
    pub fn arrived(&mut self, segment: &Segment, echo: Option<Time>, min_rtt: Time, now: Time) {
        let (rtt, again) = (now.saturating_sub(segment.sent), segment.sent_twice());
        self.highest = self.highest.max(segment.end());
        self.reordering_seen |= segment.end() < self.before && !again;
        let of_the_original =
            echo.is_some_and(|echo| echo < segment.sent) || min_rtt != Time::MAX && rtt < min_rtt;
        if again && of_the_original {
            return;
        }
        let sent = (segment.sent, segment.end());
        if sent > self.newest {
            (self.newest, self.rtt) = (sent, rtt);
        }
        self.latest = self.latest.max(sent);
    }

    /// Step 4, of duplicates: an acknowledgement reports one, or none; `next` is the first byte never sent.
    pub fn adapt(&mut self, duplicate: bool, acknowledged: u64, next: u64) {
        if self.round.is_some_and(|round| acknowledged >= round) {
            self.round = None;
        }
        if duplicate && self.round.is_none() {
            self.round = Some(next);
            self.steps += 1;
            self.persist = PERSIST;
        }
    }

    /// Step 4: a recovery has ended.
    pub fn recovered(&mut self) {
        self.persist -= 1;
        if self.persist == 0 {
            (self.steps, self.persist) = (1, PERSIST);
        }
    }

    /// Step 5: marks what is lost; whether anything is. What is suspected only is [`due`](Rack::due) later.
    pub fn detect(&mut self, board: &mut Scoreboard, bounds: &Bounds, now: Time) -> bool {
        self.window = self.reordering_window(board, bounds);
        self.due = None;
        let mut found = false;
        while let Some(&(number, sent)) = self.order.front() {
            if let Some(segment) = board.in_flight(number).filter(|segment| segment.sent == sent) {
                if self.latest <= (sent, segment.end()) {
                    break;
                }
                let due = self.due_at(sent);
                if due > now {
                    self.due = Some(due);
                    break;
                }
                board.lose_last_sent(number);
                found = true;
            }
            self.order.pop_front();
        }
        found
    }

    /// What counted as lost is in flight again: all that is, in the order in which it was sent.
    pub fn rebuild_order(&mut self, board: &Scoreboard) {
        let first = board.next_number() - board.segments() as u64;
        let flying = (first..board.next_number())
            .filter_map(|number| board.in_flight(number).map(|segment| (number, segment.sent)));
        self.order = flying.collect();
        self.order.make_contiguous().sort_by_key(|&(number, sent)| (sent, number));
    }

    /// When a segment that was sent then would have arrived.
    pub fn due_at(&self, sent: Time) -> Time {
        sent.saturating_add(self.rtt).saturating_add(self.window)
    }

    fn reordering_window(&self, board: &Scoreboard, bounds: &Bounds) -> Time {
        let at_once = bounds.recovering || board.sacked_segments() >= bounds.threshold;
        if !self.reordering_seen && at_once || bounds.min_rtt == Time::MAX {
            return Time::ZERO;
        }
        let window = Time(bounds.min_rtt.0.saturating_mul(u64::from(self.steps)) / 4);
        window.min(bounds.smoothed.unwrap_or(Time::MAX))
    }
}

#[cfg(test)]
mod tests;
