//! HyStart: leaves slow start before the first loss, when the acknowledgements of a round trip show that a
//! queue builds up.
//!
//! ```text
//! train   acknowledgements that follow each other closely last longer than the least RTT (ns-3.35; half of it in Linux)
//! delay   the minimum RTT of a round exceeds that of the flow by eta, from the round's ninth sample on (ns-3.35: of the first eight)
//! eta     = clamp(least RTT / divisor, delay_min, delay_max)
//! ```
//!
//! With the eight samples alone, as in Linux before 5.8, slow start ends when the RTT falls within a round, as when another
//! flow ends and its queue drains: the round's RTTs before are compared with the flow's after.
//!
//! A round begins with the first acknowledgement of what was sent after the round before began; that acknowledgement is the first
//! of the round's train (Linux since 5.16). In ns-3.35, and in Linux before, it still belongs to the train of the round before:
//! if a round trip is shorter than the gap that ends a train, every train after the first round lasts at least a round trip.
//!
//! Source: Ha and Rhee, "Taming the elephants: New TCP slow start", Computer Networks 55(9), 2011, as in
//! Linux' Cubic and in ns-3.35, which differ in their constants. Differs from Linux: the time of a train is not extended by that of
//! bursts of segmentation offload (there up to 1 ms), as there are none here.

use super::{Acked, CongestionWindow, Profile};
use crate::parameters::Parameters;
use crate::units::Time;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HystartParameters {
    pub on: bool,
    /// Window in segments below which it is inactive.
    pub low_window: u64,
    /// Acknowledgements this close form a train.
    pub spacing: Time,
    /// A train is long if it lasts the minimum RTT divided by this.
    pub train_divisor: u64,
    pub delay_divisor: u64,
    pub delay_min: Time,
    pub delay_max: Time,
    /// The acknowledgement that begins a round belongs to it, not to the round before.
    pub begins_round: bool,
    /// All RTTs of a round count, not the first ones alone.
    pub whole_round: bool,
}

/// Samples of a round after which its minimum is judged.
const SAMPLES: u32 = 8;

impl HystartParameters {
    pub fn read(p: &mut Parameters, profile: Profile) -> HystartParameters {
        let help = "HyStart ends slow start before the first loss if RTTs or trains of acknowledgements \
                    become long";
        let on = p.flag("hystart", true, help);
        let help = "window in segments from which on HyStart is active (Linux, ns-3.35: 16)";
        let low_window = p.integer("hystart_low_window", 16, (1, 1 << 20), help) as u64;
        let help = "maximum gap between acknowledgements of a train (2 ms)";
        let spacing = p.time("hystart_spacing", Time::from_ms(2), help);
        let help = "a train ends slow start if it lasts the minimum RTT divided by this (Linux: 2; \
                    ns3-3.35: 1); 1 with pacing = \"window\", as in Linux";
        let train_divisor = p.integer("hystart_train", profile.pick(2, 1), (1, 1000), help) as u64;
        let help = "RTTs end slow start if they exceed the minimum RTT by the minimum divided by this (Linux: 8; \
             ns3-3.35: 1)";
        let delay_divisor = p.integer("hystart_delay", profile.pick(8, 1), (1, 1000), help) as u64;
        let help = "minimum of that excess (4 ms)";
        let delay_min = p.time("hystart_delay_min", Time::from_ms(4), help);
        let help = "maximum of that excess (Linux: 16 ms; ns3-3.35: 1 s)";
        let delay_max = p.time("hystart_delay_max", Time::from_ms(profile.pick(16, 1000)), help);
        if delay_max < delay_min {
            let message = format!("expected at least hystart_delay_min ({delay_min}), found {delay_max}");
            p.complain("hystart_delay_max", message);
        }
        let delay_max = delay_max.max(delay_min);
        let (begins_round, whole_round) = profile.pick((true, true), (false, false));
        HystartParameters {
            on,
            low_window,
            spacing,
            train_divisor,
            delay_divisor,
            delay_min,
            delay_max,
            begins_round,
            whole_round,
        }
    }
}

/// State of one flow.
#[derive(Debug, Clone, Copy)]
pub struct Hystart {
    parameters: HystartParameters,
    round_start: Time,
    /// The last acknowledgement of the train.
    last: Time,
    /// The round ends when this byte is acknowledged.
    round_end: u64,
    /// Minimum RTT of the round's samples; [`Time::MAX`] before the first.
    round_rtt: Time,
    samples: u32,
    found: bool,
}

impl Hystart {
    pub fn new(parameters: HystartParameters) -> Hystart {
        Hystart {
            parameters,
            round_start: Time::ZERO,
            last: Time::ZERO,
            round_end: 0,
            round_rtt: Time::MAX,
            samples: 0,
            found: false,
        }
    }

    /// After a timeout it is active again.
    pub fn reset(&mut self, now: Time, next: u64) {
        self.found = false;
        self.begin_round(now, next);
    }

    fn begin_round(&mut self, now: Time, next: u64) {
        self.round_start = now;
        self.last = now;
        self.round_end = next;
        self.round_rtt = Time::MAX;
        self.samples = 0;
    }

    /// An acknowledgement in slow start, before the window grows.
    pub fn on_slow_start(&mut self, ack: &Acked) {
        if self.parameters.on && ack.acknowledged > self.round_end {
            self.begin_round(ack.now, ack.next);
        }
    }

    /// A sample of the RTT: sets the threshold to the window if slow start is to end.
    pub fn on_rtt(&mut self, ack: &Acked, rtt: Time, min: Time, window: &mut CongestionWindow) {
        let now = ack.now;
        if !self.parameters.on || self.found || window.cwnd > window.ssthresh {
            return;
        }
        if self.parameters.begins_round {
            self.on_slow_start(ack);
        }
        let p = &self.parameters;
        if window.segments() < p.low_window {
            return;
        }
        if now.saturating_sub(self.last) <= p.spacing {
            self.last = now;
            // Pacing alone spreads the packets of a round.
            let divisor = if window.paced { 1 } else { p.train_divisor };
            self.found |= now - self.round_start > Time(min.0 / divisor);
        }
        if self.samples < SAMPLES || p.whole_round {
            self.round_rtt = self.round_rtt.min(rtt);
        }
        if self.samples < SAMPLES {
            self.samples += 1;
        } else {
            let excess = Time(min.0 / p.delay_divisor).clamp(p.delay_min, p.delay_max);
            self.found |= self.round_rtt > min.saturating_add(excess);
        }
        if self.found {
            window.ssthresh = window.cwnd;
        }
    }
}
