//! Startup and Drain: the rate doubles until the pipe is full, then the queue is drained.
//!
//! The pipe is full after three rounds that deliver less than a quarter more, or when a round loses more than
//! 2 % in six ranges.
//!
//! Source: draft-ietf-ccwg-bbr-05 §5.3.1.2 (plateau), §5.3.1.3 (losses), §5.3.2 (Drain).

use super::{Bbr3, Mode};
use crate::congestion::window::{Acked, CongestionWindow};

/// §5.3.1.2: three rounds that grow by less than a quarter.
const GROWTH: f64 = 1.25;
const ROUNDS: u32 = 3;
/// BBRStartupFullLossCnt (§5.3.1.3).
const LOST_RANGES: u32 = 6;
/// §5.3.2: maximum number of rounds of Drain.
const DRAIN_ROUNDS: u64 = 3;

/// The estimator of a full pipe.
#[derive(Debug, Clone, Copy, Default)]
pub struct FullPipe {
    pub bandwidth: u64,
    rounds: u32,
    pub now: bool,
    /// The pipe has been full: Startup has ended.
    pub reached: bool,
}

impl FullPipe {
    /// BBRResetFullBW, with this bandwidth as the new reference.
    pub fn reset(&mut self, bandwidth: u64) {
        *self = FullPipe { bandwidth, rounds: 0, now: false, reached: self.reached };
    }

    /// BBRCheckFullBWReached; `counts`: a round begins, with a sample that shows what the path delivers.
    pub fn update(&mut self, ack: &Acked, counts: bool) {
        if self.now || !counts {
            return;
        }
        let rate = ack.rate.rate().map_or(0, |rate| rate.0);
        if rate as f64 >= self.bandwidth as f64 * GROWTH {
            self.reset(rate);
            return;
        }
        self.rounds += 1;
        self.now = self.rounds >= ROUNDS;
        self.reached |= self.now;
    }
}

impl Bbr3 {
    /// BBRCheckStartupDone.
    pub(super) fn check_startup(&mut self, ack: &Acked) {
        let bounds = &mut self.bounds;
        if bounds.loss_round_start {
            let ranges = std::mem::take(&mut bounds.ranges);
            let lossy = self.recovering && ranges >= LOST_RANGES;
            if self.mode == Mode::Startup && lossy && self.is_too_much(ack.rate.lost, ack.rate.in_flight) {
                self.full.reached = true;
                let bdp = self.bdp(self.bandwidth(), 1.0);
                self.bounds.long = Some(bdp.max(self.bounds.inflight_latest));
            }
        }
        if self.mode == Mode::Startup && self.full.reached {
            self.mode = Mode::Drain;
            self.drain_round = self.path.rounds;
        }
    }

    /// BBRCheckDrainDone.
    pub(super) fn check_drain(&mut self, ack: &Acked, window: &CongestionWindow) {
        let drained = ack.in_flight <= self.inflight(self.bandwidth(), 1.0, window);
        let long = self.path.rounds > self.drain_round + DRAIN_ROUNDS;
        if self.mode == Mode::Drain && (drained || long) {
            self.enter_down(ack.now, ack.delivered_ever);
        }
    }
}
