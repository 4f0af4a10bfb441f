//! A queue pair under one of TCP's window controllers.
//!
//! The pair's acknowledgements answer one packet each and bring back when it was sent, whether it was marked, and what is missing.
//! From these come what a law of [`window`](crate::congestion::window) wants to see: bytes acknowledged, round-trip times, samples
//! of the delivery rate, and the states of recovery.
//!
//! ```text
//! Open -> Recovery   a NACK (go-back-N), or a packet overtaken by `reordering` others (selective repeat): cwnd = ssthresh
//! Open -> Reduced    a mark: cwnd = ssthresh, once per window of data
//! any  -> Loss       the retransmission timeout: cwnd = one packet
//! all  -> Open       every byte that had been sent by then is acknowledged
//! ```
//!
//! The law's window is what the pair may have in flight, its pacing rate (BBR) the pair's rate, at most that of the line.
//!
//! Source: RFC 5681 §3.1 (timeout), RFC 6675 §5 (recovery, the threshold at once), RFC 6582 (the recovery point), RFC 3168 §6.1.2
//! (marks), RFC 7661 in Linux' form (growth only while the window limits); delivery rates as under TCP.
//! Differs from TCP: no handshake, no delayed acknowledgements, no duplicate acknowledgements (and so no state of disorder); a packet
//! leaves while less than the window is in flight, so that the last one may reach beyond it; a NACK tells of one lost packet, though
//! go-back-N sends all behind it again; the timeout is the pair's own.

use crate::congestion::Control;
use crate::congestion::window::{
    Acked, Change, Congestion, CongestionWindow, FlowPath, NO_THRESHOLD, RateSample, Signal, State,
    WindowConfig, WindowContext, WindowController, WindowLaw, usage::WindowUsage,
};
use crate::transport::rate_sample::RateEstimator;
use crate::units::{Rate, Time};

/// What an acknowledgement told a pair.
#[derive(Debug, Clone, Copy, Default)]
pub struct News {
    pub now: Time,
    /// Since the packet that it answers was sent.
    pub rtt: Time,
    /// Of it, what processors of hosts took.
    pub in_hosts: Time,
    /// The packet that it answers was marked.
    pub marked: bool,
    /// Every byte below has been acknowledged, before and after.
    pub before: u64,
    pub acknowledged: u64,
    /// Next byte that has never been sent.
    pub highest: u64,
    /// Bytes in flight before and after, and those unacknowledged before.
    pub prior_in_flight: u64,
    pub in_flight: u64,
    pub outstanding: u64,
}

/// A packet of a flow, by its number.
#[derive(Debug, Clone, Copy)]
pub struct Numbered {
    pub number: u64,
    pub payload: u16,
}

/// The law of one queue pair and what it is told.
pub struct Windowed {
    law: WindowLaw,
    window: CongestionWindow,
    state: State,
    /// Recovery, or what follows a timeout, ends when everything below is acknowledged.
    recover: u64,
    /// Marks mean the congestion that was answered until everything below is acknowledged; 0: none was.
    answered: u64,
    /// What was acknowledged when the timeout expired last.
    expired_at: Option<u64>,
    min_rtt: Time,
    /// RFC 6298's mean of round-trip times.
    smoothed: Option<Time>,
    /// Bytes acknowledged beyond whole packets.
    carry: u64,
    /// Of the acknowledgement at work: bytes that it shows to have arrived, and to be lost.
    delivered: u64,
    lost: u64,
    usage: WindowUsage,
    rates: Option<Box<RateEstimator>>,
    /// Bytes in flight that a scenario's `window` allows, whatever the law says.
    max_in_flight: u64,
    line_rate: Rate,
    /// When the last packet left.
    sent_at: Time,
}

impl Windowed {
    /// A flow starts; `max_in_flight`: bytes in flight that it may have at all.
    pub fn new(
        config: &WindowConfig,
        context: &WindowContext,
        line_rate: Rate,
        max_in_flight: u64,
    ) -> Windowed {
        let law = config.start(context);
        let rates = law.needs_rate().then(|| Box::new(RateEstimator::new(false)));
        Windowed {
            law,
            window: CongestionWindow {
                cwnd: context.initial,
                ssthresh: NO_THRESHOLD,
                pacing: None,
                paced: false,
                mss: context.mss,
            },
            state: State::Open,
            recover: 0,
            answered: 0,
            expired_at: None,
            min_rtt: Time::MAX,
            smoothed: None,
            carry: 0,
            delivered: 0,
            lost: 0,
            usage: WindowUsage::default(),
            rates,
            max_in_flight,
            line_rate,
            sent_at: Time::ZERO,
        }
    }

    pub fn start(&mut self, now: Time, control: &mut Control) {
        self.law.on_start(now, None, &mut self.window);
        self.steer(control);
    }

    /// Routes have changed.
    pub fn on_path(&mut self, path: &FlowPath) {
        self.law.on_path(path);
    }

    /// A packet leaves; with it so many bytes are in flight.
    pub fn sent(&mut self, packet: Numbered, in_flight: u64, acknowledged: u64, highest: u64, now: Time) {
        self.sent_at = now;
        if let Some(rates) = &mut self.rates {
            rates.send(packet.number, now, in_flight <= u64::from(packet.payload), in_flight);
        }
        if in_flight <= u64::from(packet.payload) {
            self.law.on_resume(now);
        }
        self.usage.on_sent(in_flight, in_flight >= self.window.cwnd, acknowledged, highest);
    }

    /// Nothing is left to send, though the window has room.
    pub fn runs_dry(&mut self, in_flight: u64) {
        if let Some(rates) = &mut self.rates {
            rates.limited_by_application(in_flight);
        }
    }

    /// A packet is known to have arrived.
    pub fn arrived(&mut self, packet: Numbered, sent: Time, now: Time) {
        self.delivered += u64::from(packet.payload);
        if let Some(rates) = &mut self.rates {
            rates.arrived(packet.number, packet.payload, sent, now);
        }
    }

    /// A packet is found to be lost.
    pub fn lost(&mut self, packet: Numbered, now: Time) {
        self.lost += u64::from(packet.payload);
        let first = packet.number * self.window.mss;
        let rates = self.rates.as_mut();
        if let Some(lost) = rates.and_then(|rates| rates.lose(packet.number, (first, packet.payload), now)) {
            self.law.on_lost(&lost, &self.window);
        }
    }

    /// An acknowledgement, once what it says of packets has been told.
    pub fn acknowledged(&mut self, news: &News, control: &mut Control) {
        let acked = self.describe(news);
        self.law.on_feedback(&acked, &mut self.window);
        self.react(news, &acked);
        if self.law.steers_recovery() {
            let acked = Acked { state: self.state, ..acked };
            self.law.on_ack(&acked, &mut self.window);
        }
        (self.delivered, self.lost) = (0, 0);
        self.steer(control);
    }

    fn describe(&mut self, news: &News) -> Acked {
        let mss = self.window.mss;
        let bytes = news.acknowledged - news.before;
        let counted = self.carry + bytes;
        self.carry = counted % mss;
        let rtt = (self.delivered > 0 && news.rtt > Time::ZERO).then_some(news.rtt);
        if let Some(sample) = rtt {
            self.min_rtt = self.min_rtt.min(sample);
            // RFC 6298 §2.
            self.smoothed =
                Some(self.smoothed.map_or(sample, |mean| Time(mean.0 - mean.0 / 8 + sample.0 / 8)));
        }
        let first = news.acknowledged.div_ceil(mss);
        let min_rtt = self.min_rtt;
        let rates = self.rates.as_mut();
        let rate = rates.map_or(RateSample::default(), |rates| rates.sample(first, news.now, min_rtt));
        Acked {
            now: news.now,
            bytes,
            segments: counted / mss,
            delivered: self.delivered,
            delivered_ever: self.rates.as_ref().map_or(0, |rates| rates.delivered()),
            lost: self.lost,
            prior_in_flight: news.prior_in_flight,
            in_flight: news.in_flight,
            acknowledged: news.acknowledged,
            next: news.highest,
            cursor: news.highest,
            rtt,
            min_rtt,
            in_hosts: news.in_hosts,
            rate,
            marked: news.marked,
            window_limited: self.usage.is_limited_by(&self.window),
            state: self.state,
        }
    }

    /// Changes states, and the window with them.
    fn react(&mut self, news: &News, acked: &Acked) {
        let entered = self.lost > 0 && !matches!(self.state, State::Recovery | State::Loss);
        if entered {
            self.enter_recovery(news);
        } else if acked.marked && acked.bytes > 0 {
            self.answer_mark(news);
        }
        match self.state {
            State::Open => self.grow(acked),
            State::Recovery if acked.acknowledged >= self.recover => {
                if !self.law.steers_recovery() {
                    self.window.cwnd = self.window.ssthresh;
                }
                self.change(State::Open, news);
                self.grow(&self.newly_arrived(acked));
            }
            State::Reduced if acked.acknowledged >= self.answered => {
                self.change(State::Open, news);
                self.grow(acked);
            }
            State::Loss => {
                if acked.acknowledged >= self.recover {
                    self.change(State::Open, news);
                }
                self.grow(&self.newly_arrived(acked));
            }
            _ => {}
        }
    }

    /// An acknowledgement that fills a hole, worth what it shows to have arrived: what had come beyond the hole arrived while the window
    /// was being reduced.
    fn newly_arrived(&self, acked: &Acked) -> Acked {
        let bytes = acked.bytes.min(acked.delivered);
        Acked { bytes, segments: acked.segments.min(bytes.div_ceil(self.window.mss)), ..*acked }
    }

    fn grow(&mut self, acked: &Acked) {
        if !self.law.steers_recovery() && acked.bytes > 0 {
            let acked = Acked { state: self.state, ..*acked };
            self.law.on_ack(&acked, &mut self.window);
        }
    }

    /// RFC 6675 §5 step 4, the threshold at once.
    fn enter_recovery(&mut self, news: &News) {
        self.recover = news.highest;
        let answered = self.state == State::Reduced;
        self.change(State::Recovery, news);
        if !answered {
            self.fall(Signal::Loss, news);
        }
        if !self.law.steers_recovery() {
            self.window.cwnd = self.window.ssthresh;
        }
    }

    /// RFC 3168 §6.1.2: once per window of data.
    fn answer_mark(&mut self, news: &News) {
        let is_new_window = news.acknowledged > self.answered || self.answered == 0;
        if !is_new_window || self.state != State::Open {
            return;
        }
        self.fall(Signal::Mark, news);
        if !self.law.steers_recovery() {
            self.window.cwnd = self.window.ssthresh;
        }
        self.answered = news.highest;
        self.change(State::Reduced, news);
    }

    fn fall(&mut self, by: Signal, news: &News) {
        let in_flight = news.outstanding.min(self.window.cwnd);
        self.window.ssthresh =
            self.law.on_congestion(&Congestion { now: news.now, in_flight, by }, &self.window);
    }

    fn change(&mut self, to: State, news: &News) {
        if self.state == to {
            return;
        }
        let from = std::mem::replace(&mut self.state, to);
        let change = Change {
            now: news.now,
            from,
            to,
            next: news.highest,
            cursor: news.highest,
            in_flight: news.in_flight,
            delivered: self.delivered,
            rtt: self.smoothed,
        };
        self.law.on_state(&change, &mut self.window);
    }

    /// The timeout has expired: nothing is in flight any more.
    pub fn timed_out(&mut self, news: &News, control: &mut Control) {
        // Once for what is lost: not when nothing has come since (RFC 5681 §3.1).
        if self.state != State::Loss || self.expired_at != Some(news.acknowledged) {
            self.fall(Signal::Timeout, news);
        }
        self.expired_at = Some(news.acknowledged);
        self.recover = news.highest;
        self.window.cwnd = self.window.mss;
        self.change(State::Loss, news);
        self.steer(control);
    }

    /// Hands window and rate to the pair.
    fn steer(&self, control: &mut Control) {
        control.cwnd = Some(self.window.cwnd.min(self.max_in_flight));
        let line_rate = Rate(self.line_rate.0.max(1));
        control.rate = self.window.pacing.map_or(line_rate, |rate| Rate(rate.0.clamp(1, line_rate.0)));
    }

    /// When the next packet leaves, of a window below one packet.
    pub fn paced_until(&self) -> Option<Time> {
        Some(self.sent_at + self.law.pacing_delay()?)
    }

    pub fn internals(&self, out: &mut Vec<(&'static str, f64)>) {
        let ssthresh = self.window.ssthresh;
        out.push(("ssthresh_bytes", if ssthresh == NO_THRESHOLD { f64::INFINITY } else { ssthresh as f64 }));
        out.push(("srtt_ns", self.smoothed.map_or(0.0, |time| time.as_ns())));
        self.law.internals(out);
    }
}

#[cfg(test)]
mod tests;
