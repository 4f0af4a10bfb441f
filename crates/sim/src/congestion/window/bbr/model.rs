//! BBR's model of the path: the maximum delivery rate of the last rounds, and the minimum round-trip time of
//! the last seconds.
//!
//! Source: Cardwell, Cheng, Hassas Yeganeh, Jacobson, draft-cardwell-iccrg-bbr-congestion-control-00, §4.1.1
//! (rounds), §4.1.2 (BtlBw), §4.1.3 (RTprop).

use crate::congestion::window::Acked;
use crate::units::{Rate, Time};

/// Window of the bandwidth's maximum in rounds (BtlBwFilterLen).
pub const BANDWIDTH_ROUNDS: u64 = 10;

/// The maximum over the last rounds: the best three samples, each later and lower than the one before.
#[derive(Debug, Clone, Copy, Default)]
pub struct MaxFilter {
    /// (round, rate), the best first.
    best: [(u64, u64); 3],
}

impl MaxFilter {
    pub fn get(&self) -> u64 {
        self.best[0].1
    }

    /// Adds a sample of a round; the maximum is over `rounds` rounds.
    pub fn update(&mut self, round: u64, rate: u64, rounds: u64) {
        let sample = (round, rate);
        if rate >= self.best[0].1 || round - self.best[2].0 > rounds {
            self.best = [sample; 3];
            return;
        }
        if rate >= self.best[1].1 {
            (self.best[1], self.best[2]) = (sample, sample);
        } else if rate >= self.best[2].1 {
            self.best[2] = sample;
        }
        self.forget(sample, rounds);
    }

    /// Replaces samples that are too old. A second best as old as a part of the window is renewed.
    fn forget(&mut self, sample: (u64, u64), rounds: u64) {
        let age = sample.0 - self.best[0].0;
        if age > rounds {
            self.best = [self.best[1], self.best[2], sample];
            if sample.0 - self.best[0].0 > rounds {
                self.best = [self.best[1], self.best[2], sample];
            }
        } else if self.best[1].0 == self.best[0].0 && age > rounds / 4 {
            (self.best[1], self.best[2]) = (sample, sample);
        } else if self.best[2].0 == self.best[1].0 && age > rounds / 2 {
            self.best[2] = sample;
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct Model {
    pub bandwidth: MaxFilter,
    /// Minimum round-trip time; [`Time::MAX`] before the first sample.
    pub rtprop: Time,
    /// When it was measured.
    pub stamp: Time,
    /// The minimum is older than its window.
    pub expired: bool,
    pub rounds: u64,
    /// A round ends when a packet is acknowledged that was sent after this number of bytes had been
    /// delivered.
    pub round_end: u64,
    /// The current acknowledgement begins a round.
    pub round_start: bool,
    /// Packets sent before more than this number of bytes was delivered give no bandwidth sample: few were in flight.
    held_back_until: Option<u64>,
    /// The sample of the current acknowledgement does not show what the path delivers.
    pub limited: bool,
}

impl Model {
    pub fn new() -> Model {
        Model {
            bandwidth: MaxFilter::default(),
            rtprop: Time::MAX,
            stamp: Time::ZERO,
            expired: false,
            rounds: 0,
            round_end: 0,
            round_start: false,
            held_back_until: None,
            limited: false,
        }
    }

    /// §4.1.1.3 and §4.1.2.
    pub fn update_bandwidth(&mut self, ack: &Acked) {
        self.round_start = ack.delivered > 0 && ack.rate.prior_delivered >= self.round_end;
        if self.round_start {
            self.round_end = ack.delivered_ever;
            self.rounds += 1;
        }
        let held_back = self.held_back_until.is_some_and(|until| ack.rate.prior_delivered <= until);
        self.limited = ack.rate.app_limited || held_back;
        let Some(rate) = ack.rate.rate() else { return };
        if rate.0 >= self.bandwidth.get() || !self.limited {
            self.bandwidth.update(self.rounds, rate.0, BANDWIDTH_ROUNDS);
        }
    }

    /// §4.1.3.
    pub fn update_rtprop(&mut self, ack: &Acked, window: Time) {
        self.expired = ack.now > self.stamp.saturating_add(window);
        let Some(rtt) = ack.rtt else { return };
        if rtt <= self.rtprop || self.expired {
            self.rtprop = rtt;
            self.stamp = ack.now;
        }
    }

    /// Samples during ProbeRTT are low and are ignored (§4.3.5: as if the sender were limited by its
    /// application, until more than what is in flight now has been delivered).
    pub fn hold_back(&mut self, ack: &Acked) {
        self.held_back_until = Some(ack.delivered_ever + ack.in_flight);
    }

    /// Begins a round with the bytes delivered from now on.
    pub fn begin_round(&mut self, ack_delivered: u64) {
        self.round_end = ack_delivered;
    }

    /// Bytes in flight that fill the path `gain` times; none before the first measurement.
    pub fn bdp(&self, gain: f64) -> Option<u64> {
        let known = self.rtprop < Time::MAX && self.bandwidth.get() > 0;
        known.then(|| (gain * Rate(self.bandwidth.get()).bytes_in(self.rtprop).0 as f64) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::window::RateSample;
    use crate::congestion::window::tests::situations::acked;

    /// As delivery rates have it (draft-cheng-iccrg-delivery-rate-estimation-00 §3.4): a sender is limited until more has been
    /// delivered than what was in flight then.
    #[test]
    fn packets_that_few_were_in_flight_with_give_no_bandwidth() {
        let mut model = Model::new();
        let ack = |delivered, prior_delivered, delivered_ever| {
            let interval = Time::from_ms(10);
            let rate = RateSample { delivered, interval, prior_delivered, ..RateSample::default() };
            Acked { delivered, delivered_ever, in_flight: 3_000, rate, ..acked(1) }
        };
        model.update_bandwidth(&ack(100_000, 0, 100_000));
        let bandwidth = model.bandwidth.get();
        model.hold_back(&ack(1_000, 99_000, 100_000));
        // More rounds than the filter has.
        model.rounds += 2 * BANDWIDTH_ROUNDS;
        for prior in [100_000, 103_000] {
            model.update_bandwidth(&ack(4_000, prior, prior + 4_000));
            assert!(model.limited);
            assert_eq!(model.bandwidth.get(), bandwidth);
        }
        model.update_bandwidth(&ack(90_000, 104_000, 194_000));
        assert!(!model.limited);
        assert_eq!(model.bandwidth.get(), bandwidth / 10 * 9);
    }

    #[test]
    fn the_filter_keeps_the_maximum_of_ten_rounds() {
        let mut filter = MaxFilter::default();
        let rates = [10, 30, 20, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5];
        let max: Vec<u64> = rates
            .iter()
            .enumerate()
            .map(|(round, &rate)| {
                filter.update(round as u64, rate, BANDWIDTH_ROUNDS);
                filter.get()
            })
            .collect();
        // 30 of round 1 counts up to round 11; 20 of round 2 was replaced by later samples.
        assert_eq!(max[..12], [10, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30]);
        assert!(max[12] < 30);
        assert_eq!(max[14], 5);
    }
}
