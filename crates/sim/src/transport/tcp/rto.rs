//! Round-trip times and the retransmission timeout.
//!
//! ```text
//! first sample  SRTT = R,  RTTVAR = R / 2
//! later ones    RTTVAR = 3/4 RTTVAR + 1/4 |SRTT - R|,  SRTT = 7/8 SRTT + 1/8 R
//! RTO = max(least, SRTT + max(G, 4 RTTVAR)), doubled with each expiry in a row, at the most 60 s
//! ```
//!
//! Source: Paxson, Allman, Chu, Sargent, RFC 6298 §2 and §5; samples from timestamps, RFC 7323 §4.
//! Differs from the source: a backoff ends when something new is acknowledged, also without a sample (Linux, ns-3.35). With `min_bounds_variance`
//! the least bounds 4 RTTVAR: RTO = SRTT + max(least, 4 RTTVAR) (Linux).

use crate::transport::tcp::config::{RtoConfig, RttConfig};
use crate::units::Time;

#[derive(Debug)]
pub struct RttEstimator {
    /// None before the first sample.
    smoothed: Option<Time>,
    variation: Time,
    /// The least that controllers were given.
    min_rtt: Time,
    latest: Time,
    rto: Time,
}

impl RttEstimator {
    pub fn new(config: &RtoConfig) -> RttEstimator {
        RttEstimator {
            smoothed: None,
            variation: Time::ZERO,
            min_rtt: Time::MAX,
            latest: Time::ZERO,
            rto: config.initial,
        }
    }

    pub fn smoothed(&self) -> Option<Time> {
        self.smoothed
    }
    pub fn min_rtt(&self) -> Time {
        self.min_rtt
    }
    pub fn rto(&self) -> Time {
        self.rto
    }
    /// What takes longer to be answered is late: the timeout without its least, its granularity and its backoff.
    pub fn late(&self) -> Option<Time> {
        self.smoothed.map(|smoothed| smoothed + Time(4 * self.variation.0))
    }

    /// The sample that a timestamp gives, at the resolution of its clock.
    pub fn sample(sent: Time, now: Time, clock: Time) -> Time {
        if clock == Time::ZERO {
            return now.saturating_sub(sent);
        }
        let ticks = now.0 / clock.0 - (sent.0 / clock.0).min(now.0 / clock.0);
        // An answer within one tick took some time.
        if ticks == 0 { Time::from_us(1) } else { Time(ticks * clock.0) }
    }

    /// Takes in a sample.
    pub fn take(&mut self, sample: Time, rtt: &RttConfig, rto: &RtoConfig) {
        // With a coarse clock means are whole nanoseconds, rounded down (ns-3.35).
        let unit = if rtt.clock == Time::ZERO { 1 } else { Time::from_ns(1).0 };
        let mean = |sum: u64, parts: u64| Time(sum / (parts * unit) * unit);
        let smoothed = match self.smoothed {
            None => {
                self.variation = mean(sample.0, 2);
                sample
            }
            Some(smoothed) => {
                let difference = smoothed.0.abs_diff(sample.0);
                self.variation = mean(3 * self.variation.0 + difference, 4);
                mean(7 * smoothed.0 + sample.0, 8)
            }
        };
        self.smoothed = Some(smoothed);
        self.latest = sample;
        self.min_rtt = self.min_rtt.min(if rtt.smoothed { smoothed } else { sample });
        self.compute(rto);
    }

    /// The timeout that the samples give.
    fn compute(&mut self, rto: &RtoConfig) {
        let Some(smoothed) = self.smoothed else { return };
        let spread = Time(4 * self.variation.0).max(rto.granularity);
        let timeout = match rto.min_bounds_variance {
            true => smoothed + spread.max(rto.min),
            false => (smoothed + spread).max(rto.min),
        };
        self.rto = timeout.min(rto.max);
    }

    /// Something new was acknowledged: a backoff ends, sample or not.
    pub fn progress(&mut self, rto: &RtoConfig) {
        self.compute(rto);
    }

    /// What controllers are given as the round-trip time now.
    pub fn given(&self, rtt: &RttConfig) -> Option<Time> {
        self.smoothed.map(|smoothed| if rtt.smoothed { smoothed } else { self.latest })
    }

    /// The timeout expired (RFC 6298 §5.5).
    pub fn back_off(&mut self, config: &RtoConfig) {
        self.rto = Time(self.rto.0.saturating_mul(2)).min(config.max);
    }
}

#[cfg(test)]
impl RttEstimator {
    /// One that has come to these.
    pub fn of(smoothed: Option<Time>, variation: Time) -> RttEstimator {
        let time = smoothed.unwrap_or(Time::MAX);
        RttEstimator { smoothed, variation, min_rtt: time, latest: time, rto: time }
    }
}

#[cfg(test)]
mod tests;
