//! Bounds from losses: how much may be in flight in the long and in the short term.
//!
//! Bytes lost while probing set the long-term bound to the bytes in flight when the loss rate passed the
//! threshold. Losses at other times lower the short-term bounds to what was delivered in the last round, at
//! most by a factor beta; probing resets them.
//!
//! Source: draft-ietf-ccwg-bbr-05 §5.5.10.2 (long term), §5.5.10.3 (short term).

use super::{Bbr3, MIN_SEGMENTS, Mode};
use crate::congestion::window::{Acked, CongestionWindow, LostSegment};
use crate::units::Time;

#[derive(Debug, Clone, Copy, Default)]
pub struct Bounds {
    /// BBR.bw_shortterm and BBR.inflight_shortterm; none: infinite.
    pub bandwidth: Option<u64>,
    pub short: Option<u64>,
    /// BBR.inflight_longterm.
    pub long: Option<u64>,
    /// Maximum bandwidth, and maximum bytes, delivered in this round.
    bandwidth_latest: u64,
    pub inflight_latest: u64,
    pub loss_in_round: bool,
    /// End of the round that began with its first loss.
    loss_round_end: u64,
    pub loss_round_start: bool,
    /// Separate ranges lost in this round, and the end of the last one.
    pub ranges: u32,
    range_end: u64,
    /// BBR.bw_probe_samples: the lost or acknowledged bytes were sent while probing, and have not been
    /// reacted to yet.
    pub sampling: bool,
}

impl Bounds {
    /// BBRUpdateLatestDeliverySignals.
    pub fn update_latest(&mut self, ack: &Acked) {
        let rate = ack.rate.rate().map_or(0, |rate| rate.0);
        self.bandwidth_latest = self.bandwidth_latest.max(rate);
        self.inflight_latest = self.inflight_latest.max(ack.rate.delivered);
        self.loss_round_start = ack.delivered > 0 && ack.rate.prior_delivered >= self.loss_round_end;
        if self.loss_round_start {
            self.loss_round_end = ack.delivered_ever;
        }
    }

    /// BBRAdvanceLatestDeliverySignals.
    pub fn advance_latest(&mut self, ack: &Acked) {
        if self.loss_round_start {
            self.bandwidth_latest = ack.rate.rate().map_or(0, |rate| rate.0);
            self.inflight_latest = ack.rate.delivered;
        }
    }

    /// BBRResetCongestionSignals.
    pub fn reset_signals(&mut self) {
        (self.loss_in_round, self.bandwidth_latest, self.inflight_latest) = (false, 0, 0);
    }

    /// BBRResetShortTermModel.
    pub fn reset_short_term(&mut self) {
        (self.bandwidth, self.short) = (None, None);
    }
}

impl Bbr3 {
    /// BBRNoteLoss, which also counts the lost ranges.
    pub(super) fn note_loss(&mut self, lost: &LostSegment) {
        let bounds = &mut self.bounds;
        if !bounds.loss_in_round {
            bounds.loss_round_end = lost.delivered_ever;
        }
        bounds.loss_in_round = true;
        bounds.ranges += u32::from(lost.first != bounds.range_end);
        bounds.range_end = lost.first + lost.bytes;
    }

    /// BBRUpdateCongestionSignals, BBRAdaptLowerBoundsFromCongestion.
    pub(super) fn adapt_to_losses(&mut self, window: &CongestionWindow) {
        if !self.bounds.loss_round_start {
            return;
        }
        let max = self.path.max_bandwidth();
        let bounds = &mut self.bounds;
        if bounds.loss_in_round && !self.mode.accelerates() {
            let beta = self.p.beta;
            let lower = |latest: u64, before: u64| latest.max((beta * before as f64) as u64);
            bounds.bandwidth = Some(lower(bounds.bandwidth_latest, bounds.bandwidth.unwrap_or(max)));
            bounds.short = Some(lower(bounds.inflight_latest, bounds.short.unwrap_or(window.cwnd)));
        }
        bounds.loss_in_round = false;
    }

    /// IsInflightTooHigh.
    pub(super) fn is_too_much(&self, lost: u64, in_flight: u64) -> bool {
        lost as f64 > in_flight as f64 * self.p.loss_threshold
    }

    /// BBRInflightAtLoss: the bytes in flight when losses passed the threshold, possibly within this segment.
    pub(super) fn in_flight_at_loss(&self, lost: &LostSegment) -> u64 {
        let before = lost.in_flight.saturating_sub(lost.bytes) as f64;
        let lost_before = lost.lost_since.saturating_sub(lost.bytes) as f64;
        let threshold = self.p.loss_threshold;
        let prefix = (threshold * before - lost_before) / (1.0 - threshold);
        (before + prefix.max(0.0)) as u64
    }

    /// BBRHandleInflightTooHigh.
    pub(super) fn too_much_in_flight(
        &mut self,
        in_flight: u64,
        app_limited: bool,
        now: Time,
        delivered: u64,
        window: &CongestionWindow,
    ) {
        self.bounds.sampling = false;
        if !app_limited {
            let min = (self.target(window) as f64 * self.p.beta) as u64;
            self.bounds.long = Some(in_flight.max(min));
        }
        if self.mode == Mode::Up {
            self.enter_down(now, delivered);
        }
    }

    /// BBRInflightWithHeadroom (§5.3.3.6).
    pub(super) fn with_headroom(&self, window: &CongestionWindow) -> u64 {
        let Some(long) = self.bounds.long else { return u64::MAX };
        let headroom = ((self.p.headroom * long as f64) as u64).max(window.mss);
        long.saturating_sub(headroom).max(MIN_SEGMENTS * window.mss)
    }
}
