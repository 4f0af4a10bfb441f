//! BBR version 1: reacts to a model of the path (bottleneck bandwidth, minimum round-trip time) instead of
//! losses.
//!
//! ```text
//! pacing rate  pacing_gain BtlBw
//! cwnd         cwnd_gain BtlBw RTprop + 3 send quanta
//! Startup      both gains 2.89 until the bandwidth has grown by less than a quarter in three rounds
//! Drain        pacing gain 1 / 2.89 until one BDP is in flight
//! ProbeBW      cwnd gain 2; pacing gains 5/4, 3/4, 1, 1, 1, 1, 1, 1, for an RTprop each, from a random one on
//! ProbeRTT     cwnd of four segments for 200 ms and a round, when RTprop is older than 10 s
//! ```
//!
//! Source: Cardwell, Cheng, Hassas Yeganeh, Jacobson, draft-cardwell-iccrg-bbr-congestion-control-00, §4.2
//! (control parameters) and §4.3 (state machine), by its names; delivery rates from the transport
//! (draft-cheng-iccrg-delivery-rate-estimation-00).
//! Differs from the source: two additional segments in the first phase of ProbeBW (Linux, ns-3.35); no
//! allowance for aggregated acknowledgements and no long-term sampling for policers (Linux has both). Under
//! the ns-3.35 profile RTprop is computed from the smoothed time.
//! Parameters: see [`BbrParameters::read`].

mod full_pipe;
pub(super) mod model;
mod mrg;
mod ns3;
mod ns3_filter;

use super::{
    Acked, Change, Congestion, CongestionWindow, Profile, State, WindowContext, WindowController,
    WindowParameters,
};
use crate::congestion::SchemeDoc;
use crate::doc::Series;
use crate::parameters::Parameters;
use crate::units::{Rate, Time};
use full_pipe::FullPipe;
use model::Model;
use ns3::Ns3Bbr;

pub const DOC: SchemeDoc = SchemeDoc {
    name: "bbr",
    title: "BBR (v1): paces at the bandwidth that the path delivers",
    text: "The sender measures the maximum delivery rate and the minimum round-trip time, paces at the \
           rate, and keeps at most two times their product in flight. It probes for bandwidth every eighth \
           round trip and for the round-trip time every ten seconds. It ignores losses, except for one \
           round of packet conservation.",
    source: "draft-cardwell-iccrg-bbr-congestion-control-00 (Cardwell, Cheng, Hassas Yeganeh, Jacobson, 2017)",
    equations: "pacing rate = pacing_gain BtlBw\n\
                cwnd = cwnd_gain BtlBw RTprop + 3 quanta",
    validation: "Startup, Drain, the cycle of ProbeBW and ProbeRTT alone on a link (tests/tcp.rs).",
    series: &[
        Series::new("mode", "", "State: 0 Startup, 1 Drain, 2 ProbeBW, 3 ProbeRTT."),
        Series::new("btlbw_bps", "bit/s", "Estimate of the bandwidth of the path."),
        Series::new("rtprop_ns", "ns", "Estimate of the round-trip time without queues; 0: none yet."),
        Series::new("pacing_gain", "", "Factor between bandwidth and pacing rate."),
    ],
    ..SchemeDoc::NONE
};

/// Gains of ProbeBW's phases (§4.3.4).
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
const CWND_GAIN: f64 = 2.0;
/// BBRMinPipeCwnd in segments.
const MIN_SEGMENTS: u64 = 4;

/// The size of a burst (§4.2.2).
const QUANTA: &[(&str, &str)] = &[
    ("rate", "a segment below 1.2 Mb/s, two below 24 Mb/s, then a millisecond's worth up to 64 KB"),
    ("segment", "a segment (ns-3.35)"),
];

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BbrParameters {
    pub high_gain: f64,
    pub rtprop_window: Time,
    pub probe_rtt_time: Time,
    pub quantum_is_segment: bool,
    /// Maximum pacing rate.
    pub max_pacing: Rate,
    /// At the end of recovery the window is set to the threshold, as for other laws.
    pub exits_to_threshold: bool,
    /// The implementation of ns-3.35.
    pub ns3: bool,
}

/// Implementations of version 1.
const FORMS: &[(&str, &str)] = &[
    ("draft", "the draft's (draft-cardwell-iccrg-bbr-congestion-control-00)"),
    ("ns3-3.35", "ns-3.35's: its samples, aggregation and recovery, and the draws of its generator"),
];

impl WindowParameters for BbrParameters {
    type State = Bbr;
    const HEEDS_MARKS: bool = false;
    const FOLLOWS_DELAY: bool = true;
    const DOC: SchemeDoc = DOC;

    /// Losses at random do not change its model of the path.
    fn window_at_loss(&self, _loss: f64, _round_trip: Time) -> Option<f64> {
        None
    }

    fn read(p: &mut Parameters, profile: Profile) -> BbrParameters {
        let help = "gain of Startup (draft: 2 / ln 2 = 2.885; ns3-3.35: 2.89)";
        let high_gain = p.number("high_gain", profile.pick(2.885, 2.89), (1.01, 100.0), help);
        let help = "the minimum round-trip time is measured again when it is older than this (10 s)";
        let rtprop_window = p.time("rtprop_window", Time::from_ms(10_000), help);
        let help = "time with four segments in flight in ProbeRTT (200 ms)";
        let probe_rtt_time = p.time("probe_rtt_time", Time::from_ms(200), help);
        let help = "size of a burst; three of them are added to the window";
        let quantum_is_segment =
            p.choice("quantum", profile.pick("rate", "segment"), QUANTA, help) == "segment";
        let help = "maximum pacing rate (ns3-3.35: 4 Gb/s)";
        let rate = Rate::from_gbps(profile.pick(100_000, 4));
        let max_pacing = p.rate("max_pacing", rate, help);
        if max_pacing == Rate(0) {
            p.complain("max_pacing", "must be greater than 0: a flow at 0 bit/s would never end".into());
        }
        let help = "the end of recovery sets the window to the threshold, a BDP from Drain on (ns3-3.35: true), not to the \
                    one before";
        let exits_to_threshold = p.flag("exits_to_threshold", profile.pick(false, true), help);
        BbrParameters {
            high_gain,
            rtprop_window,
            probe_rtt_time,
            quantum_is_segment,
            max_pacing: Rate(max_pacing.0.max(1)),
            exits_to_threshold,
            ns3: p.choice("form", profile.pick("draft", "ns3-3.35"), FORMS, "implementation of version 1")
                != "draft",
        }
    }

    fn only_tcp(&self) -> Option<(&'static str, &'static str)> {
        let why = "ns-3.35's implementation uses the samples that its TCP keeps from one acknowledgement to the \
             next";
        self.ns3.then_some(("form", why))
    }

    fn start(&self, flow: &WindowContext) -> Bbr {
        Bbr {
            p: *self,
            ns3: self.ns3.then(|| Box::new(Ns3Bbr::new(self, flow.initial))),
            model: Model::new(),
            mode: Mode::Startup,
            pacing_gain: self.high_gain,
            cwnd_gain: self.high_gain,
            pipe: FullPipe::default(),
            phase: 0,
            phase_start: Time::ZERO,
            random: flow.random,
            probe_rtt: None,
            prior_cwnd: 0,
            conserves: false,
            restarts_rounds: false,
            idle: false,
            initial: flow.initial,
            packet: flow.packet,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// The end of ProbeRTT: a time, and whether a round has passed.
#[derive(Debug, Clone, Copy)]
struct ProbeRttEnd {
    at: Time,
    round_done: bool,
}

/// State of one flow.
pub struct Bbr {
    p: BbrParameters,
    /// The state in the implementation of ns-3.35, which replaces the following.
    ns3: Option<Box<Ns3Bbr>>,
    model: Model,
    mode: Mode,
    pacing_gain: f64,
    cwnd_gain: f64,
    /// Once full, Startup has ended.
    pipe: FullPipe,
    /// Phase of ProbeBW's cycle, and its start.
    phase: usize,
    phase_start: Time,
    random: u64,
    /// None while ProbeRTT waits for the bytes in flight to decrease.
    probe_rtt: Option<ProbeRttEnd>,
    /// Window before recovery or ProbeRTT.
    prior_cwnd: u64,
    /// Packet conservation: the first round of recovery.
    conserves: bool,
    /// The next acknowledgement begins a round, because recovery has begun.
    restarts_rounds: bool,
    /// The flow restarts after idle time, in which its queue has drained (BBR.idle_restart).
    idle: bool,
    initial: u64,
    /// Size of a full segment on the wire.
    packet: u64,
}

impl Bbr {
    /// §4.3.4: begins with a random phase other than the second.
    fn enter_probe_bw(&mut self, now: Time) {
        self.mode = Mode::ProbeBw;
        self.cwnd_gain = CWND_GAIN;
        self.phase = CYCLE.len() - 1 - (self.random % 7) as usize;
        self.next_phase(now);
    }

    fn next_phase(&mut self, now: Time) {
        self.phase_start = now;
        self.phase = (self.phase + 1) % CYCLE.len();
        self.pacing_gain = CYCLE[self.phase];
    }

    fn enter_startup(&mut self) {
        self.mode = Mode::Startup;
        self.pacing_gain = self.p.high_gain;
        self.cwnd_gain = self.p.high_gain;
    }

    /// §4.3.4.3: whether the current phase has lasted long enough.
    fn phase_is_over(&self, ack: &Acked, window: &CongestionWindow) -> bool {
        let long = ack.now.saturating_sub(self.phase_start) > self.model.rtprop;
        if self.pacing_gain == 1.0 {
            long
        } else if self.pacing_gain > 1.0 {
            long && (ack.lost > 0 || ack.prior_in_flight >= self.inflight(self.pacing_gain, window))
        } else {
            long || ack.prior_in_flight <= self.inflight(1.0, window)
        }
    }

    /// §4.3.2.
    fn check_full_pipe(&mut self) {
        if self.model.round_start && !self.model.limited {
            self.pipe.round(self.model.bandwidth.get());
        }
    }

    /// §4.3.3.
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

    /// §4.3.5.
    fn check_probe_rtt(&mut self, ack: &Acked, expired: bool, window: &mut CongestionWindow) {
        let idle = std::mem::take(&mut self.idle);
        if self.mode != Mode::ProbeRtt && expired && !idle {
            self.mode = Mode::ProbeRtt;
            (self.pacing_gain, self.cwnd_gain) = (1.0, 1.0);
            self.save_cwnd(window, ack.state);
            self.probe_rtt = None;
        }
        if self.mode != Mode::ProbeRtt {
            return;
        }
        self.model.hold_back(ack);
        match &mut self.probe_rtt {
            None if ack.in_flight <= MIN_SEGMENTS * window.mss => {
                let at = ack.now.saturating_add(self.p.probe_rtt_time);
                self.probe_rtt = Some(ProbeRttEnd { at, round_done: false });
                self.model.begin_round(ack.delivered_ever);
            }
            None => {}
            Some(end) => {
                end.round_done |= self.model.round_start;
                if end.round_done && ack.now > end.at {
                    self.model.stamp = ack.now;
                    window.cwnd = window.cwnd.max(self.prior_cwnd);
                    match self.pipe.filled() {
                        true => self.enter_probe_bw(ack.now),
                        false => self.enter_startup(),
                    }
                }
            }
        }
    }

    /// §4.2.3.4.
    fn save_cwnd(&mut self, window: &CongestionWindow, state: State) {
        let undisturbed = !matches!(state, State::Recovery | State::Loss) && self.mode != Mode::ProbeRtt;
        self.prior_cwnd = if undisturbed { window.cwnd } else { self.prior_cwnd.max(window.cwnd) };
    }

    /// §4.2.1, for a gain.
    fn pace(&self, gain: f64, window: &mut CongestionWindow) {
        let rate = (gain * self.model.bandwidth.get() as f64) as u64;
        // The bandwidth counts payload, the pacer bytes on the wire.
        let rate = (u128::from(rate) * u128::from(self.packet) / u128::from(window.mss)) as u64;
        let rate = Rate(rate.clamp(1, self.p.max_pacing.0));
        if self.pipe.filled() || window.pacing.is_none_or(|now| rate > now) {
            window.pacing = Some(rate);
        }
    }

    /// §4.2.2.
    fn quantum(&self, window: &CongestionWindow) -> u64 {
        match window.pacing {
            _ if self.p.quantum_is_segment => window.mss,
            Some(Rate(rate)) if rate >= 24_000_000 => (rate / 8_000).min(64 << 10).max(2 * window.mss),
            Some(Rate(rate)) if rate >= 1_200_000 => 2 * window.mss,
            _ => window.mss,
        }
    }

    /// §4.2.3.2: bytes in flight for a gain.
    fn inflight(&self, gain: f64, window: &CongestionWindow) -> u64 {
        let Some(bdp) = self.model.bdp(gain) else { return self.initial };
        let probes = self.mode == Mode::ProbeBw && self.phase == 0;
        bdp + 3 * self.quantum(window) + if probes { 2 * window.mss } else { 0 }
    }

    /// §4.2.3.
    fn set_cwnd(&mut self, ack: &Acked, window: &mut CongestionWindow) {
        let target = self.inflight(self.cwnd_gain, window);
        if self.conserves && self.model.round_start && ack.state == State::Recovery {
            self.conserves = false;
        }
        if matches!(ack.state, State::Recovery | State::Loss) {
            window.cwnd = window.cwnd.saturating_sub(ack.lost).max(window.mss);
        }
        if self.conserves {
            window.cwnd = window.cwnd.max(ack.in_flight + ack.delivered);
        } else {
            if self.pipe.filled() {
                window.cwnd = window.cwnd.saturating_add(ack.delivered).min(target);
            } else if window.cwnd < target || ack.delivered_ever < self.initial {
                window.cwnd = window.cwnd.saturating_add(ack.delivered);
            }
            window.cwnd = window.cwnd.max(MIN_SEGMENTS * window.mss);
        }
        if self.mode == Mode::ProbeRtt {
            window.cwnd = window.cwnd.min(MIN_SEGMENTS * window.mss);
        }
    }
}

impl WindowController for Bbr {
    /// §4.2.1: the first rate is the first window over the round-trip time, or over 1 ms if that is not known.
    fn on_start(&mut self, now: Time, rtt: Option<Time>, window: &mut CongestionWindow) {
        if self.ns3.is_some() {
            return;
        }
        self.model.stamp = now;
        let rtt = rtt.unwrap_or(Time::from_ms(1)).as_seconds();
        let nominal = window.cwnd as f64 * 8.0 / rtt;
        window.pacing = Some(Rate((nominal * self.p.high_gain) as u64).min(self.p.max_pacing));
    }

    fn on_ack(&mut self, ack: &Acked, window: &mut CongestionWindow) {
        if let Some(ns3) = &mut self.ns3 {
            return ns3.on_ack(ack, window);
        }
        self.model.update_bandwidth(ack);
        if std::mem::take(&mut self.restarts_rounds) {
            self.model.begin_round(ack.delivered_ever);
            self.model.round_start = false;
        }
        if self.mode == Mode::ProbeBw && self.phase_is_over(ack, window) {
            self.next_phase(ack.now);
        }
        self.check_full_pipe();
        self.check_drain(ack, window);
        self.model.update_rtprop(ack, self.p.rtprop_window);
        self.check_probe_rtt(ack, self.model.expired, window);
        self.pace(self.pacing_gain, window);
        self.set_cwnd(ack, window);
    }

    /// Losses are ignored: the threshold is unchanged.
    fn on_congestion(&mut self, _congestion: &Congestion, window: &CongestionWindow) -> u64 {
        window.ssthresh
    }

    /// §4.2.3.3: the window in recovery.
    fn on_state(&mut self, change: &Change, window: &mut CongestionWindow) {
        if let Some(ns3) = &mut self.ns3 {
            return ns3.on_state(change, window);
        }
        match change.to {
            State::Recovery => {
                self.save_cwnd(window, change.from);
                window.cwnd = change.in_flight + window.mss;
                self.conserves = true;
                self.restarts_rounds = true;
            }
            State::Loss => {
                // The transport has set the window to one segment.
                self.conserves = false;
                self.pipe.forget();
            }
            _ if matches!(change.from, State::Recovery | State::Loss) => {
                self.conserves = false;
                window.cwnd = match self.p.exits_to_threshold {
                    true => window.ssthresh.min(u64::from(u32::MAX)),
                    false => window.cwnd.max(self.prior_cwnd),
                };
            }
            _ => {}
        }
    }

    /// §4.3.4.4: a flow that restarts from idle does not enter ProbeRTT.
    fn on_resume(&mut self, _now: Time) {
        self.idle = true;
    }

    /// The same section: it begins at the bandwidth, whatever the phase.
    fn on_restart(&mut self, now: Time, window: &mut CongestionWindow) {
        if let Some(ns3) = &mut self.ns3 {
            ns3.on_restart(now, window);
        } else if self.mode == Mode::ProbeBw {
            self.pace(1.0, window);
        }
    }

    fn steers_recovery(&self) -> bool {
        true
    }

    fn needs_rate(&self) -> bool {
        true
    }

    fn internals(&self, out: &mut Vec<(&'static str, f64)>) {
        if let Some(ns3) = &self.ns3 {
            return ns3.internals(out);
        }
        let rtprop = if self.model.rtprop == Time::MAX { 0.0 } else { self.model.rtprop.as_ns() };
        out.push(("mode", self.mode as u8 as f64));
        out.push(("btlbw_bps", self.model.bandwidth.get() as f64));
        out.push(("rtprop_ns", rtprop));
        out.push(("pacing_gain", self.pacing_gain));
    }
}

#[cfg(test)]
mod tests;
