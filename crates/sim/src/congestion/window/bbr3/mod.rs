//! BBR version 3: reacts to a model of the path (bandwidth, minimum round-trip time, and maximum bytes in
//! flight), with bounds from losses.
//!
//! ```text
//!             pacing gain   cwnd gain   bounds of bandwidth and of bytes in flight
//! Startup     2.77          2           none
//! Drain       0.5           2           short term
//! DOWN        0.9           2           short term, long term
//! CRUISE      1             2           short term, 85 % of long term
//! REFILL      1             2           long term
//! UP          1.25          2.25        long term, which grows
//! ProbeRTT    1             0.5         short term, 85 % of long term
//!
//! pacing rate = 0.99 gain min(max_bw, bw_shortterm)
//! cwnd = min(gain bw min_rtt + extra_acked, bounds), at least 3 send quanta and 4 segments
//! Startup -> Drain -> DOWN -> CRUISE -> REFILL -> UP -> DOWN ...;  any -> ProbeRTT every 5 s -> CRUISE
//! ```
//!
//! Source: Cardwell, Swett, Beshay, draft-ietf-ccwg-bbr-05, §5; the table is §5.6.1. One file for each of its
//! nouns: [`path`] (§5.5.1 to §5.5.9), [`bounds`] (§5.5.10), [`startup`] (§5.3.1, §5.3.2), [`cycle`]
//! (§5.3.3), [`probe_rtt`] (§5.3.4); control is here (§5.6).
//! Differs from the source: nothing is undone after a spurious recovery (§5.5.11), because the transport does
//! not report one; round-trip times are the transport's samples, not those of the packet sent last; the
//! bandwidth filter advances once per cycle (§5.5.6, as in Linux), not with every round after UP; marks (ECN)
//! are ignored, as the draft has no response to them; pace and aggregation begin again only after idle time of
//! a timeout or more (§5.4).
//! Parameters: see [`Bbr3Parameters::read`].

mod bounds;
mod cycle;
mod path;
mod probe_rtt;
mod startup;

use super::{
    Acked, Change, Congestion, CongestionWindow, LostSegment, Profile, Signal, State, WindowContext,
    WindowController, WindowParameters,
};
use crate::congestion::SchemeDoc;
use crate::doc::Series;
use crate::parameters::Parameters;
use crate::units::{Rate, Time};
use bounds::Bounds;
use cycle::Cycle;
use path::Path;
use probe_rtt::ProbeRtt;
use startup::FullPipe;

pub const DOC: SchemeDoc = SchemeDoc {
    name: "bbr3",
    title: "BBR (v3): paces at the bandwidth of the path, with bounds set by losses",
    text: "Like version 1 it paces at the maximum delivery rate of the path and keeps at most twice the \
           bandwidth-delay product in flight. It probes for more bandwidth every two to three seconds or \
           about sixty round trips, stops when more than 2 % of the bytes in flight are lost, stores that \
           number of bytes, and stays 15 % below it between probes.",
    source: "draft-ietf-ccwg-bbr-05 (Cardwell, Swett, Beshay, 2026)",
    equations: "pacing rate = 0.99 gain min(max_bw, bw_shortterm)\n\
                cwnd = min(gain bw min_rtt + extra_acked, inflight_longterm, inflight_shortterm)",
    validation: "Startup, Drain, the four states of ProbeBW, ProbeRTT and the bounds that losses set, by hand and alone on a link \
                 (tests/tcp.rs).",
    series: &[
        Series::new(
            "mode",
            "",
            "State: 0 Startup, 1 Drain, 2 ProbeBW_DOWN, 3 ProbeBW_CRUISE, 4 ProbeBW_REFILL, 5 ProbeBW_UP, 6 ProbeRTT.",
        ),
        Series::new("max_bw_bps", "bit/s", "Maximum bandwidth of the path."),
        Series::new(
            "bw_shortterm_bps",
            "bit/s",
            "Bound that losses set to the bandwidth for now; infinite: none.",
        ),
        Series::new("min_rtt_ns", "ns", "Minimum round-trip time; 0: none yet."),
        Series::new("inflight_longterm_bytes", "bytes", "Bound on the bytes in flight; infinite: none."),
        Series::new(
            "inflight_shortterm_bytes",
            "bytes",
            "Bound on the bytes in flight since the last losses; infinite: none.",
        ),
        Series::new("pacing_gain", "", "Factor between bandwidth and pacing rate."),
    ],
    ..SchemeDoc::NONE
};

/// BBR.DefaultCwndGain, BBR.ProbeRTTCwndGain and the cwnd gain of UP (§5.6.1).
const CWND_GAIN: f64 = 2.0;
const UP_CWND_GAIN: f64 = 2.25;
const PROBE_RTT_CWND_GAIN: f64 = 0.5;
/// BBR.MinPipeCwnd in segments (§5.6.4.3).
const MIN_SEGMENTS: u64 = 4;
/// BBR.PacingMarginPercent (§5.6.2).
const PACING_MARGIN: f64 = 0.01;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bbr3Parameters {
    pub startup_gain: f64,
    /// BBR.LossThresh.
    pub loss_threshold: f64,
    /// BBR.Beta.
    pub beta: f64,
    /// BBR.Headroom.
    pub headroom: f64,
    pub probe_rtt_interval: Time,
    pub probe_rtt_time: Time,
    pub min_rtt_window: Time,
    /// Maximum pacing rate.
    pub max_pacing: Rate,
}

impl WindowParameters for Bbr3Parameters {
    type State = Bbr3;
    const HEEDS_MARKS: bool = false;
    const FOLLOWS_DELAY: bool = true;
    const DOC: SchemeDoc = DOC;

    /// Losses at random do not change its model of the path.
    fn window_at_loss(&self, _loss: f64, _round_trip: Time) -> Option<f64> {
        None
    }

    fn read(p: &mut Parameters, _profile: Profile) -> Bbr3Parameters {
        let help = "pacing gain of Startup (draft §5.3.1.1: 2.77)";
        let startup_gain = p.number("startup_gain", 2.77, (1.01, 100.0), help);
        let help = "share of the bytes in flight above which losses end a probe (BBR.LossThresh: 0.02)";
        let loss_threshold = p.number("loss_threshold", 0.02, (0.0, 0.99), help);
        let help = "factor by which a bound is cut at most (BBR.Beta: 0.7)";
        let beta = p.number("beta", 0.7, (0.01, 1.0), help);
        let help = "share of inflight_longterm left free while not probing (BBR.Headroom: 0.15)";
        let headroom = p.number("headroom", 0.15, (0.0, 0.99), help);
        let help = "ProbeRTT begins after this time without an equally low round-trip time (5 s)";
        let probe_rtt_interval = p.time("probe_rtt_interval", Time::from_ms(5_000), help);
        let help = "minimum time in ProbeRTT (200 ms)";
        let probe_rtt_time = p.time("probe_rtt_time", Time::from_ms(200), help);
        let help = "window of the minimum round-trip time (BBR.MinRTTFilterLen: 10 s)";
        let min_rtt_window = p.time("min_rtt_window", Time::from_ms(10_000), help);
        let max_pacing = p.rate("max_pacing", Rate::from_gbps(100_000), "maximum pacing rate");
        if max_pacing == Rate(0) {
            p.complain("max_pacing", "must be greater than 0: a flow at 0 bit/s would never end".into());
        }
        Bbr3Parameters {
            startup_gain,
            loss_threshold,
            beta,
            headroom,
            probe_rtt_interval,
            probe_rtt_time,
            min_rtt_window,
            max_pacing: Rate(max_pacing.0.max(1)),
        }
    }

    fn start(&self, flow: &WindowContext) -> Bbr3 {
        Bbr3 {
            p: *self,
            mode: Mode::Startup,
            path: Path::new(),
            full: FullPipe::default(),
            bounds: Bounds::default(),
            cycle: Cycle::new(flow.random),
            probe_rtt: ProbeRtt::default(),
            drain_round: 0,
            prior_cwnd: 0,
            recovering: false,
            initial: flow.initial,
            packet: flow.packet,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

impl Mode {
    fn is_probe_bw(self) -> bool {
        matches!(self, Mode::Down | Mode::Cruise | Mode::Refill | Mode::Up)
    }
    /// BBRIsProbingBW.
    fn accelerates(self) -> bool {
        matches!(self, Mode::Startup | Mode::Refill | Mode::Up)
    }
}

/// State of one flow.
pub struct Bbr3 {
    p: Bbr3Parameters,
    mode: Mode,
    path: Path,
    full: FullPipe,
    bounds: Bounds,
    cycle: Cycle,
    probe_rtt: ProbeRtt,
    /// Round in which Drain began.
    drain_round: u64,
    /// Window before recovery or ProbeRTT.
    prior_cwnd: u64,
    recovering: bool,
    initial: u64,
    /// Size of a full segment on the wire.
    packet: u64,
}

impl Bbr3 {
    fn pacing_gain(&self) -> f64 {
        match self.mode {
            Mode::Startup => self.p.startup_gain,
            Mode::Drain => 0.5,
            Mode::Down => 0.9,
            Mode::Up => 1.25,
            Mode::Cruise | Mode::Refill | Mode::ProbeRtt => 1.0,
        }
    }

    fn cwnd_gain(&self) -> f64 {
        match self.mode {
            Mode::Up => UP_CWND_GAIN,
            Mode::ProbeRtt => PROBE_RTT_CWND_GAIN,
            _ => CWND_GAIN,
        }
    }

    /// BBRBoundBWForModel: BBR.bw.
    fn bandwidth(&self) -> u64 {
        self.path.max_bandwidth().min(self.bounds.bandwidth.unwrap_or(u64::MAX))
    }

    /// BBRBDPMultiple: bytes that fill the path `gain` times at this bandwidth.
    fn bdp(&self, bandwidth: u64, gain: f64) -> u64 {
        match self.path.min_rtt {
            Time::MAX => self.initial,
            rtt => (gain * Rate(bandwidth).bytes_in(rtt).0 as f64) as u64,
        }
    }

    /// BBRQuantizationBudget (§5.6.4.2).
    fn budget(&self, cap: u64, window: &CongestionWindow) -> u64 {
        let min = (3 * quantum(window)).max(MIN_SEGMENTS * window.mss);
        cap.max(min) + if self.mode == Mode::Up { 2 * window.mss } else { 0 }
    }

    /// BBRInflight.
    fn inflight(&self, bandwidth: u64, gain: f64, window: &CongestionWindow) -> u64 {
        self.budget(self.bdp(bandwidth, gain), window)
    }

    /// BBRTargetInflight (§5.3.3.5.3).
    fn target(&self, window: &CongestionWindow) -> u64 {
        self.bdp(self.bandwidth(), 1.0).min(window.cwnd)
    }

    /// §5.6.2, for a gain.
    fn pace(&self, gain: f64, window: &mut CongestionWindow) {
        let rate = gain * self.bandwidth() as f64 * (1.0 - PACING_MARGIN);
        // The bandwidth counts payload, the pacer bytes on the wire.
        let rate = (rate as u128 * u128::from(self.packet) / u128::from(window.mss)) as u64;
        let rate = Rate(rate.clamp(1, self.p.max_pacing.0));
        if self.full.reached || window.pacing.is_none_or(|now| rate > now) {
            window.pacing = Some(rate);
        }
    }

    /// §5.6.4.6.
    fn set_cwnd(&mut self, ack: &Acked, window: &mut CongestionWindow) {
        let max = self.bdp(self.bandwidth(), self.cwnd_gain()) + self.path.extra();
        let max = self.budget(max, window);
        if self.full.reached {
            window.cwnd = window.cwnd.saturating_add(ack.delivered).min(max);
        } else if window.cwnd < max || ack.delivered_ever < self.initial {
            window.cwnd += ack.delivered;
        }
        window.cwnd = window.cwnd.max(MIN_SEGMENTS * window.mss);
        if self.mode == Mode::ProbeRtt {
            window.cwnd = window.cwnd.min(self.probe_rtt_cwnd(window));
        }
        window.cwnd = window.cwnd.min(self.bound(window));
    }

    /// BBRBoundCwndForModel (§5.6.4.7).
    fn bound(&self, window: &CongestionWindow) -> u64 {
        let long = match self.mode {
            Mode::Down | Mode::Refill | Mode::Up => self.bounds.long.unwrap_or(u64::MAX),
            Mode::Cruise | Mode::ProbeRtt => self.with_headroom(window),
            Mode::Startup | Mode::Drain => u64::MAX,
        };
        long.min(self.bounds.short.unwrap_or(u64::MAX)).max(MIN_SEGMENTS * window.mss)
    }

    /// BBRInitPacingRate: the first window per round trip.
    fn first_pacing(&self, rtt: Time) -> Rate {
        let bits = u128::from(self.initial) * 8_000_000_000_000 / u128::from(rtt.0.max(1));
        let rate = (bits as f64 * self.p.startup_gain) as u64;
        Rate(rate.max(1)).min(self.p.max_pacing)
    }

    /// BBRSaveCwnd (§5.6.4.4).
    fn save_cwnd(&mut self, window: &CongestionWindow) {
        let undisturbed = !self.recovering && self.mode != Mode::ProbeRtt;
        self.prior_cwnd = if undisturbed { window.cwnd } else { self.prior_cwnd.max(window.cwnd) };
    }
}

/// BBRSetSendQuantum (§5.6.3): a millisecond's worth, from two segments to 64 KB.
fn quantum(window: &CongestionWindow) -> u64 {
    let millisecond = window.pacing.map_or(0, |rate| rate.0 / 8_000);
    millisecond.min(64 << 10).max(2 * window.mss)
}

impl WindowController for Bbr3 {
    /// BBRInitPacingRate (§5.6.2), with a round-trip time of 1 ms if there is no sample.
    fn on_start(&mut self, now: Time, rtt: Option<Time>, window: &mut CongestionWindow) {
        self.path.start(now);
        window.pacing = Some(self.first_pacing(rtt.unwrap_or(Time::from_ms(1))));
    }

    /// BBRHandleLostPacket (§5.5.10.2).
    fn on_lost(&mut self, lost: &LostSegment, window: &CongestionWindow) {
        self.note_loss(lost);
        if self.bounds.sampling && self.is_too_much(lost.lost_since, lost.in_flight) {
            let in_flight = self.in_flight_at_loss(lost);
            self.too_much_in_flight(in_flight, lost.app_limited, lost.now, lost.delivered_ever, window);
        }
    }

    /// BBRUpdateOnACK (§5.2.3).
    fn on_ack(&mut self, ack: &Acked, window: &mut CongestionWindow) {
        if let Some(rtt) = ack.rtt.filter(|_| self.path.min_rtt == Time::MAX) {
            window.pacing = Some(self.first_pacing(rtt));
        }
        self.bounds.update_latest(ack);
        if self.path.update_bandwidth(ack) {
            self.cycle.rounds += 1;
        }
        self.adapt_to_losses(window);
        self.path.update_extra(ack, self.bandwidth(), window.cwnd, self.full.reached);
        self.full.update(ack, self.path.round_start && !self.path.limited);
        self.check_startup(ack);
        self.check_drain(ack, window);
        self.update_cycle(ack, window);
        self.path.update_min_rtt(ack, self.p.probe_rtt_interval, self.p.min_rtt_window);
        self.check_probe_rtt(ack, window);
        self.bounds.advance_latest(ack);
        self.pace(self.pacing_gain(), window);
        self.set_cwnd(ack, window);
    }

    /// Losses bound the model, not the threshold. At a timeout the window is saved before the transport cuts
    /// it (BBROnEnterRTO).
    fn on_congestion(&mut self, congestion: &Congestion, window: &CongestionWindow) -> u64 {
        if congestion.by == Signal::Timeout {
            self.save_cwnd(window);
        }
        window.ssthresh
    }

    /// §5.6.4.4: the window in recovery.
    fn on_state(&mut self, change: &Change, window: &mut CongestionWindow) {
        let recovers = |state| matches!(state, State::Recovery | State::Loss);
        if recovers(change.to) && !recovers(change.from) {
            if change.to == State::Recovery {
                self.save_cwnd(window);
            }
            self.recovering = true;
        } else if !recovers(change.to) && recovers(change.from) {
            self.recovering = false;
            window.cwnd = window.cwnd.max(self.prior_cwnd);
        }
    }

    fn steers_recovery(&self) -> bool {
        true
    }

    fn needs_rate(&self) -> bool {
        true
    }

    /// BBRHandleRestartFromIdle (§5.4.1): no ProbeRTT, however short the pause was.
    fn on_resume(&mut self, _now: Time) {
        self.probe_rtt.idle = true;
    }

    /// The rest of it.
    fn on_restart(&mut self, now: Time, window: &mut CongestionWindow) {
        self.path.restart_extra(now);
        if self.mode.is_probe_bw() {
            self.pace(1.0, window);
        } else if self.mode == Mode::ProbeRtt {
            self.check_probe_rtt_done(now, self.path.delivered, window);
        }
    }

    fn internals(&self, out: &mut Vec<(&'static str, f64)>) {
        let or_infinite = |bytes: Option<u64>| bytes.map_or(f64::INFINITY, |bytes| bytes as f64);
        let min_rtt = if self.path.min_rtt == Time::MAX { 0.0 } else { self.path.min_rtt.as_ns() };
        out.push(("mode", self.mode as u8 as f64));
        out.push(("max_bw_bps", self.path.max_bandwidth() as f64));
        out.push(("bw_shortterm_bps", or_infinite(self.bounds.bandwidth)));
        out.push(("min_rtt_ns", min_rtt));
        out.push(("inflight_longterm_bytes", or_infinite(self.bounds.long)));
        out.push(("inflight_shortterm_bytes", or_infinite(self.bounds.short)));
        out.push(("pacing_gain", self.pacing_gain()));
    }
}

#[cfg(test)]
mod tests;
