//! ProbeBW: DOWN drains, CRUISE holds, REFILL fills the pipe for a round, UP probes for more.
//!
//! Source: draft-ietf-ccwg-bbr-05 §5.3.3.5 (time between probes), §5.3.3.6 (states).

use super::{Bbr3, Mode};
use crate::congestion::window::{Acked, CongestionWindow};
use crate::units::Time;

/// Rounds after which Reno would have probed (§5.3.3.5.3).
const RENO_ROUNDS: u64 = 63;
/// §5.3.3.6: maximum number of doublings of the bound's growth.
const MAX_DOUBLINGS: u32 = 30;

/// The phase in which the packets acknowledged now were sent (BBR.ack_phase).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AckPhase {
    Other,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

#[derive(Debug, Clone, Copy)]
pub struct Cycle {
    pub phase: AckPhase,
    /// Rounds since the last probe (BBR.rounds_since_bw_probe).
    pub rounds: u64,
    start: Time,
    wait: Time,
    /// BBR.bw_probe_up_rounds, BBR.bw_probe_up_acks (bytes), BBR.probe_up_cnt: acknowledged segments per
    /// additional segment; none: no growth.
    doublings: u32,
    acknowledged: u64,
    count: Option<u64>,
    random: u64,
}

impl Cycle {
    pub fn new(random: u64) -> Cycle {
        Cycle {
            phase: AckPhase::Other,
            rounds: 0,
            start: Time::ZERO,
            wait: Time::ZERO,
            doublings: 0,
            acknowledged: 0,
            count: None,
            random,
        }
    }

    /// BBRPickProbeWait: the next probe comes after 2 to 3 s.
    fn pick_wait(&mut self) {
        // A step of Knuth's generator (MMIX), from the random number of the flow.
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (coin, fraction) = (self.random >> 63, (self.random >> 32) & 0x7fff_ffff);
        self.rounds = coin;
        self.wait =
            Time::from_ms(2_000) + Time(((1_000_000_000_000u128 * u128::from(fraction)) >> 31) as u64);
    }

    /// BBRRaiseInflightLongtermSlope.
    fn raise_slope(&mut self, window: &CongestionWindow) {
        let growth = window.mss << self.doublings;
        self.doublings = (self.doublings + 1).min(MAX_DOUBLINGS);
        self.count = Some((window.cwnd / growth).max(1));
    }
}

impl Bbr3 {
    /// BBRStartProbeBW_DOWN.
    pub(super) fn enter_down(&mut self, now: Time, delivered: u64) {
        self.bounds.reset_signals();
        self.cycle.count = None;
        self.cycle.pick_wait();
        self.cycle.start = now;
        self.cycle.phase = AckPhase::ProbeStopping;
        self.path.begin_round(delivered);
        self.mode = Mode::Down;
    }

    pub(super) fn enter_cruise(&mut self) {
        self.mode = Mode::Cruise;
    }

    fn enter_refill(&mut self, ack: &Acked) {
        self.bounds.reset_short_term();
        (self.cycle.doublings, self.cycle.acknowledged) = (0, 0);
        self.cycle.phase = AckPhase::Refilling;
        self.path.begin_round(ack.delivered_ever);
        self.mode = Mode::Refill;
    }

    fn enter_up(&mut self, ack: &Acked, window: &CongestionWindow) {
        self.bounds.sampling = true;
        self.cycle.phase = AckPhase::ProbeStarting;
        self.path.begin_round(ack.delivered_ever);
        self.full.reset(ack.rate.rate().map_or(0, |rate| rate.0));
        self.mode = Mode::Up;
        self.cycle.raise_slope(window);
    }

    /// BBRUpdateProbeBWCyclePhase.
    pub(super) fn update_cycle(&mut self, ack: &Acked, window: &CongestionWindow) {
        if !self.full.reached {
            return;
        }
        self.adapt_long_term(ack, window);
        let down = self.mode == Mode::Up && self.is_time_to_go_down(ack, window);
        match self.mode {
            Mode::Down | Mode::Cruise if self.is_time_to_probe(ack, window) => self.enter_refill(ack),
            Mode::Down if self.is_time_to_cruise(ack, window) => self.enter_cruise(),
            Mode::Refill if self.path.round_start => self.enter_up(ack, window),
            Mode::Up if down => self.enter_down(ack.now, ack.delivered_ever),
            _ => {}
        }
    }

    /// BBRAdaptLongTermModel.
    fn adapt_long_term(&mut self, ack: &Acked, window: &CongestionWindow) {
        if self.path.round_start {
            match self.cycle.phase {
                AckPhase::ProbeStarting => self.cycle.phase = AckPhase::ProbeFeedback,
                AckPhase::ProbeStopping => {
                    self.cycle.phase = AckPhase::Other;
                    self.bounds.sampling = false;
                    if self.mode.is_probe_bw() && !self.path.limited {
                        self.path.advance();
                    }
                }
                _ => {}
            }
        }
        if self.is_too_much(ack.rate.lost, ack.rate.in_flight) {
            return;
        }
        let Some(long) = self.bounds.long else { return };
        self.bounds.long = Some(long.max(ack.rate.in_flight));
        if self.mode == Mode::Up {
            self.probe_upward(ack, window);
        }
    }

    /// BBRProbeInflightLongtermUpward.
    fn probe_upward(&mut self, ack: &Acked, window: &CongestionWindow) {
        let (Some(long), Some(count)) = (self.bounds.long, self.cycle.count) else { return };
        if !ack.window_limited || window.cwnd < long {
            return;
        }
        // In whole segments: in between the bound is the limit, and a full pipe is not detected.
        self.cycle.acknowledged += ack.delivered;
        let more = self.cycle.acknowledged / (count * window.mss);
        self.cycle.acknowledged -= more * count * window.mss;
        self.bounds.long = Some(long + more * window.mss);
        if self.path.round_start {
            self.cycle.raise_slope(window);
        }
    }

    /// BBRIsTimeToProbeBW, BBRIsRenoCoexistenceProbeTime.
    fn is_time_to_probe(&self, ack: &Acked, window: &CongestionWindow) -> bool {
        let reno = (self.target(window) / window.mss).min(RENO_ROUNDS);
        ack.now > self.cycle.start.saturating_add(self.cycle.wait) || self.cycle.rounds >= reno
    }

    /// BBRIsTimeToCruise.
    fn is_time_to_cruise(&self, ack: &Acked, window: &CongestionWindow) -> bool {
        ack.in_flight <= self.with_headroom(window)
            && ack.in_flight <= self.inflight(self.path.max_bandwidth(), 1.0, window)
    }

    /// BBRIsTimeToGoDown.
    fn is_time_to_go_down(&mut self, ack: &Acked, window: &CongestionWindow) -> bool {
        let bounded = self.bounds.long.is_some_and(|long| window.cwnd >= long);
        if ack.window_limited && bounded {
            self.full.reset(ack.rate.rate().map_or(0, |rate| rate.0));
            return false;
        }
        self.full.now
    }
}
