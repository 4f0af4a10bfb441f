//! BBR's model of the path: rounds, the maximum bandwidth of two cycles, the minimum round-trip time, and the
//! degree of aggregation of acknowledgements.
//!
//! Source: draft-ietf-ccwg-bbr-05 §5.5.1 (rounds), §5.5.5 and §5.5.6 (BBR.max_bw), §5.3.4.3 (BBR.min_rtt),
//! §5.5.9 (BBR.extra_acked).

use crate::congestion::window::Acked;
use crate::congestion::window::bbr::model::MaxFilter;
use crate::units::{Rate, Time};

/// BBRExtraAckedFilterLen in rounds; one until the pipe has been full.
const EXTRA_ROUNDS: u64 = 10;

#[derive(Debug, Clone, Copy)]
pub struct Path {
    pub rounds: u64,
    /// A round ends when a packet is acknowledged that was sent after this number of bytes had been
    /// delivered.
    round_end: u64,
    pub round_start: bool,
    /// Total bytes delivered.
    pub delivered: u64,
    /// Maximum bandwidth of the last cycle of ProbeBW and of this one.
    bandwidth: [u64; 2],
    /// Packets sent before more than this number of bytes was delivered give no bandwidth sample (ProbeRTT).
    held_back_until: Option<u64>,
    /// The sample of the current acknowledgement does not show what the path delivers.
    pub limited: bool,
    /// [`Time::MAX`] before the first sample.
    pub min_rtt: Time,
    min_rtt_stamp: Time,
    /// The minimum of the last five seconds, which determines when ProbeRTT is due.
    probe_delay: Time,
    pub probe_stamp: Time,
    pub expired: bool,
    extra: MaxFilter,
    extra_start: Time,
    extra_delivered: u64,
}

impl Path {
    pub fn new() -> Path {
        Path {
            rounds: 0,
            round_end: 0,
            round_start: false,
            delivered: 0,
            bandwidth: [0; 2],
            held_back_until: None,
            limited: false,
            min_rtt: Time::MAX,
            min_rtt_stamp: Time::ZERO,
            probe_delay: Time::MAX,
            probe_stamp: Time::ZERO,
            expired: false,
            extra: MaxFilter::default(),
            extra_start: Time::ZERO,
            extra_delivered: 0,
        }
    }

    pub fn start(&mut self, now: Time) {
        (self.min_rtt_stamp, self.probe_stamp, self.extra_start) = (now, now, now);
    }

    /// BBR.max_bw.
    pub fn max_bandwidth(&self) -> u64 {
        self.bandwidth[0].max(self.bandwidth[1])
    }

    /// BBRUpdateRound and BBRUpdateMaxBw. Returns whether a round begins.
    pub fn update_bandwidth(&mut self, ack: &Acked) -> bool {
        self.delivered = ack.delivered_ever;
        self.round_start = ack.delivered > 0 && ack.rate.prior_delivered >= self.round_end;
        if self.round_start {
            self.begin_round(ack.delivered_ever);
            self.rounds += 1;
        }
        let held_back = self.held_back_until.is_some_and(|until| ack.rate.prior_delivered <= until);
        self.limited = ack.rate.app_limited || held_back;
        if let Some(rate) = ack.rate.rate() {
            if rate.0 >= self.max_bandwidth() || !self.limited {
                self.bandwidth[1] = self.bandwidth[1].max(rate.0);
            }
        }
        self.round_start
    }

    /// BBRStartRound.
    pub fn begin_round(&mut self, delivered: u64) {
        self.round_end = delivered;
    }

    /// BBRAdvanceMaxBwFilter: removes the cycle before the last one.
    pub fn advance(&mut self) {
        if self.bandwidth[1] > 0 {
            self.bandwidth = [self.bandwidth[1], 0];
        }
    }

    /// Samples of ProbeRTT are low and are ignored, until more than what is in flight now has been delivered
    /// (MarkConnectionAppLimited).
    pub fn hold_back(&mut self, ack: &Acked) {
        self.held_back_until = Some(ack.delivered_ever + ack.in_flight);
    }

    /// BBRUpdateMinRTT.
    pub fn update_min_rtt(&mut self, ack: &Acked, interval: Time, window: Time) {
        self.expired = ack.now > self.probe_stamp.saturating_add(interval);
        if let Some(rtt) = ack.rtt {
            if rtt < self.probe_delay || self.expired {
                (self.probe_delay, self.probe_stamp) = (rtt, ack.now);
            }
        }
        let old = ack.now > self.min_rtt_stamp.saturating_add(window);
        if self.probe_delay < self.min_rtt || old {
            (self.min_rtt, self.min_rtt_stamp) = (self.probe_delay, self.probe_stamp);
        }
    }

    /// BBR.extra_acked.
    pub fn extra(&self) -> u64 {
        self.extra.get()
    }

    pub fn restart_extra(&mut self, now: Time) {
        (self.extra_start, self.extra_delivered) = (now, 0);
    }

    /// BBRUpdateACKAggregation.
    pub fn update_extra(&mut self, ack: &Acked, bandwidth: u64, cwnd: u64, filled: bool) {
        let mut expected = Rate(bandwidth).bytes_in(ack.now.saturating_sub(self.extra_start)).0;
        if self.extra_delivered <= expected {
            self.restart_extra(ack.now);
            expected = 0;
        }
        self.extra_delivered += ack.delivered;
        let extra = self.extra_delivered.saturating_sub(expected).min(cwnd);
        self.extra.update(self.rounds, extra, if filled { EXTRA_ROUNDS } else { 1 });
    }
}
