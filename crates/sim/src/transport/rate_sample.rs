//! Samples of the delivery rate: bytes delivered between the sending of a packet and its acknowledgement, over the longer of
//! the times in which they were sent and acknowledged.
//!
//! Source: Cheng, Cardwell, Hassas Yeganeh, Jacobson, draft-cheng-iccrg-delivery-rate-estimation-00, §3.2 (sending), §3.3
//! (acknowledgement), §3.4 (limited by the application).

use crate::congestion::window::{LostSegment, RateSample};
use crate::units::{Rate, Time};
use std::collections::VecDeque;

/// How things stood when a segment was sent.
#[derive(Debug, Clone, Copy, Default)]
struct Departure {
    delivered: u64,
    delivered_at: Time,
    first_sent: Time,
    app_limited: bool,
    in_flight: u64,
    lost: u64,
}

#[derive(Debug, Default)]
pub struct RateEstimator {
    /// Of every unacknowledged segment.
    departures: VecDeque<Departure>,
    /// Number of the first of them.
    first: u64,
    delivered: u64,
    delivered_at: Time,
    /// Bytes found to be lost.
    lost: u64,
    /// When the packet was sent that begins the interval in which bytes were sent.
    first_sent: Time,
    /// The application has nothing more until so much has been delivered; 0: it has.
    app_limited_until: u64,
    /// Of the acknowledgement at work: what it will sample.
    found: Option<Found>,
    /// The sample as ns-3.35 keeps it from one acknowledgement to the next.
    ns3: Option<Ns3Sample>,
}

/// In ns-3.35 a sample is of the segment that was sent after the most had been delivered of all that were ever acknowledged,
/// strictly; the time over which acknowledgements came is measured from where the segment *before* it in this order was.
#[derive(Debug, Default)]
struct Ns3Sample {
    /// Zero: none.
    prior_time: Time,
    prior_delivered: u64,
    acking: Time,
    sending: Time,
    app_limited: bool,
    /// The last sample that counted: bytes, over a time, as a rate.
    bytes: u64,
    interval: Time,
    rate: Rate,
}

impl Ns3Sample {
    /// Takes in a delivered segment; whether the sample is of it.
    fn arrived(&mut self, departure: &Departure, sent: Time, now: Time) -> bool {
        let newer = self.prior_delivered == 0 || departure.delivered > self.prior_delivered;
        if newer {
            self.acking = now - self.prior_time;
            self.prior_delivered = departure.delivered;
            self.prior_time = departure.delivered_at;
            self.app_limited = departure.app_limited;
            self.sending = sent.saturating_sub(departure.first_sent);
        }
        newer
    }

    fn sample(&mut self, delivered: u64, min_rtt: Time) -> RateSample {
        let sample = |ns3: &Ns3Sample, delivered, interval, valid| RateSample {
            delivered,
            interval,
            prior_delivered: ns3.prior_delivered,
            app_limited: ns3.app_limited,
            kept: ns3.rate,
            valid,
            ..RateSample::default()
        };
        if self.prior_time == Time::ZERO {
            return sample(self, 0, Time::ZERO, false);
        }
        let interval = self.sending.max(self.acking);
        let bytes = delivered - self.prior_delivered;
        if interval < min_rtt {
            self.prior_time = Time::ZERO;
            return sample(self, bytes, Time::ZERO, true);
        }
        let product = |bytes: u64, time: Time| u128::from(bytes) * u128::from(time.0);
        if !self.app_limited || product(bytes, self.interval) >= product(self.bytes, interval) {
            (self.bytes, self.interval) = (bytes, interval);
            self.rate = Rate((bytes as f64 * 8.0 / (interval.ns() as f64 / 1e9)) as u64);
        }
        sample(self, bytes, interval, true)
    }
}

#[derive(Debug, Clone, Copy)]
struct Found {
    departure: Departure,
    sent: Time,
}

impl RateEstimator {
    pub fn new(like_ns3: bool) -> RateEstimator {
        RateEstimator { ns3: like_ns3.then(Ns3Sample::default), ..RateEstimator::default() }
    }

    pub fn delivered(&self) -> u64 {
        self.delivered
    }

    /// A segment leaves: `number` among all of the flow, with nothing else in flight if `idle`, with it `in_flight` bytes.
    pub fn send(&mut self, number: u64, now: Time, idle: bool, in_flight: u64) {
        if idle {
            self.first_sent = now;
            self.delivered_at = now;
        }
        let departure = Departure {
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            app_limited: self.app_limited_until > 0,
            in_flight,
            lost: self.lost,
        };
        let place = (number - self.first) as usize;
        match self.departures.get_mut(place) {
            Some(old) => *old = departure,
            None => self.departures.push_back(departure),
        }
    }

    /// A segment of so many bytes, sent last at `sent`, has been delivered.
    pub fn arrived(&mut self, number: u64, payload: u16, sent: Time, now: Time) {
        self.delivered += u64::from(payload);
        self.delivered_at = now;
        let departure = self.departures[(number - self.first) as usize];
        if let Some(ns3) = &mut self.ns3 {
            if ns3.arrived(&departure, sent, now) {
                self.first_sent = sent;
            }
            return;
        }
        if self.found.is_none_or(|found| departure.delivered >= found.departure.delivered) {
            self.found = Some(Found { departure, sent });
            self.first_sent = sent;
        }
    }

    /// The sample of an acknowledgement after which segments from `first` on are unacknowledged. Intervals shorter than the
    /// least round-trip time are not valid (§3.3).
    pub fn sample(&mut self, first: u64, now: Time, min_rtt: Time) -> RateSample {
        let removed = (first - self.first).min(self.departures.len() as u64);
        self.departures.drain(..removed as usize);
        self.first = first;
        if self.app_limited_until > 0 && self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
        if let Some(ns3) = &mut self.ns3 {
            return ns3.sample(self.delivered, min_rtt);
        }
        let Some(Found { departure, sent }) = self.found.take() else { return RateSample::default() };
        let sending = sent.saturating_sub(departure.first_sent);
        let interval = sending.max(now.saturating_sub(departure.delivered_at));
        let valid = min_rtt == Time::MAX || interval >= min_rtt;
        RateSample {
            delivered: self.delivered - departure.delivered,
            interval: if valid { interval } else { Time::ZERO },
            prior_delivered: departure.delivered,
            app_limited: departure.app_limited,
            in_flight: departure.in_flight,
            lost: self.lost - departure.lost,
            ..RateSample::default()
        }
    }

    /// A segment is found to be lost; none where it has been acknowledged meanwhile.
    pub fn lose(&mut self, number: u64, (first, payload): (u64, u16), now: Time) -> Option<LostSegment> {
        let departure = self.departures.get(usize::try_from(number.checked_sub(self.first)?).ok()?)?;
        self.lost += u64::from(payload);
        Some(LostSegment {
            now,
            first,
            bytes: u64::from(payload),
            in_flight: departure.in_flight,
            lost_since: self.lost - departure.lost,
            app_limited: departure.app_limited,
            delivered_ever: self.delivered,
        })
    }

    /// The application has nothing to send while so much is in flight.
    pub fn limited_by_application(&mut self, in_flight: u64) {
        self.app_limited_until = (self.delivered + in_flight).max(1);
    }
}
