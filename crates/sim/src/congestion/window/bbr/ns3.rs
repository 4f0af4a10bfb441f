//! BBR as in ns-3.35: the behaviour behind the published results of Cebinae (SIGCOMM 2022).
//!
//! It is version 1 with differences that make it weaker than, or different from, Linux' and the draft's:
//!
//! - RTprop is the minimum *smoothed* time. An invalid sample of the delivery rate leaves the previous one in use,
//!   and rounds end by it.
//! - The bandwidth filter begins with the first window over the handshake's time, which the first sample replaces; it
//!   distinguishes samples by their rates (ns3_filter.rs).
//! - Recovery begins with the bytes in flight plus a segment, or with what was just delivered, and conserves packets
//!   for a round. Its end restores the window, but the transport then sets it to the threshold, which is a BDP from
//!   Drain on. Windows have 32 bits: without a threshold the sum with the delivered bytes wraps.
//! - The allowance for aggregated acknowledgements counts time in whole seconds, and restarts with 4096 bytes.
//! - Phases of ProbeBW begin with a draw of ns-3's generator, which is the same for every flow.
//!
//! Source: ns-3.35, TcpBbr (behaviour, as read; no code).

use super::full_pipe::FullPipe;
use super::mrg::Mrg32k3a;
use super::ns3_filter::Ns3Filter;
use super::{BbrParameters, CWND_GAIN, CYCLE, MIN_SEGMENTS, Mode};
use crate::congestion::window::{Acked, Change, CongestionWindow, State};
use crate::units::{Rate, Time};

/// Window of the bandwidth's maximum in rounds.
const BANDWIDTH_ROUNDS: u64 = 10;
/// Rounds after which the other one of two maxima of aggregation is restarted.
const AGGREGATION_ROUNDS: u32 = 5;
/// Acknowledged bytes with which an epoch of aggregation restarts.
const EPOCH_BYTES: u64 = 1 << 12;
/// Seed and run of the published results, and BBR's stream.
const DRAWS: (u32, u64, u64) = (2022, (1 << 63) + 4, 1205);

/// State of one flow.
pub struct Ns3Bbr {
    p: BbrParameters,
    filter: Ns3Filter,
    mode: Mode,
    pacing_gain: f64,
    cwnd_gain: f64,
    rounds: u64,
    round_start: bool,
    round_end: u64,
    pipe: FullPipe,
    rtprop: Time,
    rtprop_stamp: Time,
    rtprop_expired: bool,
    phase: usize,
    phase_start: Time,
    draws: Mrg32k3a,
    /// End of ProbeRTT; zero: not known.
    probe_rtt_end: Time,
    probe_rtt_round_done: bool,
    /// ProbeRTT has occurred: from then on sending with nothing in flight counts as a restart.
    has_probed_rtt: bool,
    idle_restart: bool,
    prior_cwnd: u64,
    conserves: bool,
    extra: [u64; 2],
    extra_at: usize,
    extra_rounds: u32,
    epoch: Time,
    epoch_acked: u64,
    initial: u64,
}

impl Ns3Bbr {
    pub fn new(p: &BbrParameters, initial: u64) -> Ns3Bbr {
        Ns3Bbr {
            p: *p,
            filter: Ns3Filter::default(),
            mode: Mode::Startup,
            pacing_gain: p.high_gain,
            cwnd_gain: p.high_gain,
            rounds: 0,
            round_start: false,
            round_end: 0,
            pipe: FullPipe::default(),
            rtprop: Time::MAX,
            rtprop_stamp: Time::ZERO,
            rtprop_expired: false,
            phase: 0,
            phase_start: Time::ZERO,
            draws: Mrg32k3a::new(DRAWS.0, DRAWS.1, DRAWS.2),
            probe_rtt_end: Time::ZERO,
            probe_rtt_round_done: false,
            has_probed_rtt: false,
            idle_restart: false,
            prior_cwnd: 0,
            conserves: false,
            extra: [0; 2],
            extra_at: 0,
            extra_rounds: 0,
            epoch: Time::ZERO,
            epoch_acked: 0,
            initial,
        }
    }

    /// The connection is established.
    fn begin(&mut self, change: &Change, window: &mut CongestionWindow) {
        self.rtprop = change.rtt.unwrap_or(Time::MAX);
        self.rtprop_stamp = change.now;
        self.epoch = change.now;
        self.prior_cwnd = window.cwnd;
        let ms = change.rtt.map_or(1, |rtt| (rtt.ns() / 1_000_000).max(1));
        let nominal = window.cwnd * 8_000 / ms;
        self.filter = Ns3Filter::new(BANDWIDTH_ROUNDS, nominal);
        window.pacing = Some(Rate((self.pacing_gain * nominal as f64) as u64));
    }

    pub fn on_ack(&mut self, ack: &Acked, window: &mut CongestionWindow) {
        self.update_bandwidth(ack);
        self.update_aggregation(ack, window);
        if self.mode == Mode::ProbeBw && self.phase_is_over(ack, window) {
            self.next_phase(ack.now);
        }
        self.check_full_pipe(ack);
        self.check_drain(ack, window);
        self.update_rtprop(ack);
        self.check_probe_rtt(ack, window);
        self.set_pacing_rate(self.pacing_gain, window);
        self.set_cwnd(ack, window);
    }

    fn update_bandwidth(&mut self, ack: &Acked) {
        let rate = ack.rate.kept.0;
        if rate == 0 {
            return;
        }
        self.round_start = ack.rate.prior_delivered >= self.round_end;
        if self.round_start {
            self.round_end = ack.delivered_ever;
            self.rounds += 1;
            self.conserves = false;
        }
        if rate >= self.filter.get() || !ack.rate.app_limited {
            self.filter.update(self.rounds, rate);
        }
    }

    fn update_aggregation(&mut self, ack: &Acked, window: &CongestionWindow) {
        if ack.delivered == 0 || !ack.rate.valid {
            return;
        }
        if self.round_start {
            self.extra_rounds = (self.extra_rounds + 1).min(31);
            if self.extra_rounds >= AGGREGATION_ROUNDS {
                self.extra_rounds = 0;
                self.extra_at = 1 - self.extra_at;
                self.extra[self.extra_at] = 0;
            }
        }
        let seconds = (ack.now - self.epoch).ns() / 1_000_000_000;
        let mut expected = self.filter.get() * seconds / 8;
        if self.epoch_acked <= expected || self.epoch_acked + ack.delivered >= EPOCH_BYTES {
            self.epoch_acked = 0;
            self.epoch = ack.now;
            expected = 0;
        }
        self.epoch_acked += ack.delivered;
        let extra = (self.epoch_acked - expected).min(window.cwnd);
        self.extra[self.extra_at] = self.extra[self.extra_at].max(extra);
    }

    /// Bytes in flight for a gain.
    fn inflight(&self, gain: f64, window: &CongestionWindow) -> u64 {
        if self.rtprop == Time::MAX {
            return self.initial;
        }
        let bdp = self.filter.get() as f64 * (self.rtprop.ns() as f64 / 1e9) / 8.0;
        let probes = self.mode == Mode::ProbeBw && self.phase == 0;
        let more = if probes { 2 * window.mss } else { 0 };
        (gain * bdp + (3 * window.mss) as f64 + more as f64) as u64
    }

    fn phase_is_over(&self, ack: &Acked, window: &CongestionWindow) -> bool {
        let long = ack.now - self.phase_start > self.rtprop;
        if self.pacing_gain == 1.0 {
            long
        } else if self.pacing_gain > 1.0 {
            long && (ack.lost > 0 || ack.prior_in_flight >= self.inflight(self.pacing_gain, window))
        } else {
            long || ack.prior_in_flight <= self.inflight(1.0, window)
        }
    }

    fn next_phase(&mut self, now: Time) {
        self.phase_start = now;
        self.phase = (self.phase + 1) % CYCLE.len();
        self.pacing_gain = CYCLE[self.phase];
    }

    fn enter_probe_bw(&mut self, now: Time) {
        self.mode = Mode::ProbeBw;
        self.cwnd_gain = CWND_GAIN;
        self.phase = CYCLE.len() - 1 - (self.draws.next() * 6.0) as usize;
        self.next_phase(now);
    }

    fn check_full_pipe(&mut self, ack: &Acked) {
        if self.round_start && !ack.rate.app_limited {
            self.pipe.round(self.filter.get());
        }
    }

    fn check_drain(&mut self, ack: &Acked, window: &mut CongestionWindow) {
        if self.mode == Mode::Startup && self.pipe.filled() {
            self.mode = Mode::Drain;
            self.pacing_gain = 1.0 / self.p.high_gain;
            self.cwnd_gain = self.p.high_gain;
            window.ssthresh = self.inflight(1.0, window);
        }
        if self.mode == Mode::Drain && ack.in_flight <= self.inflight(1.0, window) {
            self.enter_probe_bw(ack.now);
        }
    }

    fn update_rtprop(&mut self, ack: &Acked) {
        self.rtprop_expired = ack.now > self.rtprop_stamp.saturating_add(self.p.rtprop_window);
        let Some(rtt) = ack.rtt else { return };
        if rtt <= self.rtprop || self.rtprop_expired {
            (self.rtprop, self.rtprop_stamp) = (rtt, ack.now);
        }
    }

    fn check_probe_rtt(&mut self, ack: &Acked, window: &mut CongestionWindow) {
        if self.mode != Mode::ProbeRtt && self.rtprop_expired && !self.idle_restart {
            self.mode = Mode::ProbeRtt;
            (self.pacing_gain, self.cwnd_gain) = (1.0, 1.0);
            self.save_cwnd(ack.state, window);
            self.probe_rtt_end = Time::ZERO;
        }
        if self.mode == Mode::ProbeRtt {
            self.probe_rtt(ack, window);
        }
        if !ack.rate.valid || ack.rate.delivered > 0 {
            self.idle_restart = false;
        }
    }

    fn probe_rtt(&mut self, ack: &Acked, window: &mut CongestionWindow) {
        self.has_probed_rtt = true;
        if self.probe_rtt_end == Time::ZERO && ack.in_flight <= MIN_SEGMENTS * window.mss {
            self.probe_rtt_end = ack.now + self.p.probe_rtt_time;
            self.probe_rtt_round_done = false;
            self.round_end = ack.delivered_ever;
        } else if self.probe_rtt_end != Time::ZERO {
            self.probe_rtt_round_done |= self.round_start;
            self.leave_probe_rtt(ack.now, window);
        }
    }

    /// Leaves ProbeRTT when it has lasted long enough.
    fn leave_probe_rtt(&mut self, now: Time, window: &mut CongestionWindow) {
        if !self.probe_rtt_round_done || now <= self.probe_rtt_end {
            return;
        }
        self.rtprop_stamp = now;
        window.cwnd = window.cwnd.max(self.prior_cwnd);
        if self.pipe.filled() {
            return self.enter_probe_bw(now);
        }
        self.mode = Mode::Startup;
        (self.pacing_gain, self.cwnd_gain) = (self.p.high_gain, self.p.high_gain);
    }

    fn save_cwnd(&mut self, state: State, window: &CongestionWindow) {
        let undisturbed = state != State::Recovery && self.mode != Mode::ProbeRtt;
        self.prior_cwnd = if undisturbed { window.cwnd } else { self.prior_cwnd.max(window.cwnd) };
    }

    fn set_pacing_rate(&mut self, gain: f64, window: &mut CongestionWindow) {
        let rate = Rate((gain * self.filter.get() as f64) as u64).min(self.p.max_pacing).max(Rate(1));
        if self.pipe.filled() || window.pacing.is_none_or(|now| rate > now) {
            window.pacing = Some(rate);
        }
    }

    fn set_cwnd(&mut self, ack: &Acked, window: &mut CongestionWindow) {
        let min = MIN_SEGMENTS * window.mss;
        if ack.delivered > 0 && !self.conserve(ack, window) {
            let aggregated = match self.pipe.filled() {
                true => self.extra[0].max(self.extra[1]).min(self.filter.get() / 80),
                false => 0,
            };
            let target = self.inflight(self.cwnd_gain, window) + aggregated;
            // 32 bits.
            let grown = (window.cwnd + ack.delivered) & u64::from(u32::MAX);
            if self.pipe.filled() {
                window.cwnd = grown.min(target);
            } else if window.cwnd < target || ack.delivered_ever < self.initial {
                window.cwnd = grown;
            }
            window.cwnd = window.cwnd.max(min);
        }
        if self.mode == Mode::ProbeRtt {
            window.cwnd = window.cwnd.min(min);
        }
    }

    /// In recovery: subtracts lost bytes. Returns whether packet conservation determined the window.
    fn conserve(&mut self, ack: &Acked, window: &mut CongestionWindow) -> bool {
        if ack.state != State::Recovery {
            return false;
        }
        if ack.lost > 0 {
            window.cwnd = window.cwnd.saturating_sub(ack.lost).max(window.mss);
        }
        if self.conserves {
            window.cwnd = window.cwnd.max(ack.in_flight + ack.delivered);
        }
        self.conserves
    }

    pub fn on_state(&mut self, change: &Change, window: &mut CongestionWindow) {
        match change.to {
            State::Open if change.from == State::Open => self.begin(change, window),
            State::Loss => {
                self.save_cwnd(change.from, window);
                self.round_start = true;
            }
            State::Recovery => {
                self.save_cwnd(change.from, window);
                window.cwnd = change.in_flight + change.delivered.max(window.mss);
                self.conserves = true;
                // The threshold, which is requested next, keeps the larger window.
                self.save_cwnd(State::Recovery, window);
            }
            State::Open if change.from == State::Recovery => {
                // The previous window is restored, and then set to the threshold.
                self.conserves = false;
                window.cwnd = window.ssthresh.min(u64::from(u32::MAX));
            }
            _ => {}
        }
    }

    /// A segment is sent with nothing in flight.
    pub fn on_restart(&mut self, now: Time, window: &mut CongestionWindow) {
        if !self.has_probed_rtt {
            return;
        }
        self.idle_restart = true;
        (self.epoch, self.epoch_acked) = (now, 0);
        match self.mode {
            Mode::ProbeBw => self.set_pacing_rate(1.0, window),
            Mode::ProbeRtt => self.leave_probe_rtt(now, window),
            _ => {}
        }
    }

    pub fn internals(&self, out: &mut Vec<(&'static str, f64)>) {
        let rtprop = if self.rtprop == Time::MAX { 0.0 } else { self.rtprop.as_ns() };
        out.push(("mode", self.mode as u8 as f64));
        out.push(("btlbw_bps", self.filter.get() as f64));
        out.push(("rtprop_ns", rtprop));
        out.push(("pacing_gain", self.pacing_gain));
    }
}
