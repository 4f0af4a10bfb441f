//! ProbeRTT: half of a bandwidth-delay product in flight for 200 ms and a round, so that queues drain and the
//! round-trip time of the empty path is measured.
//!
//! Source: draft-ietf-ccwg-bbr-05 §5.3.4.3 (entry, time, end), §5.3.4.4 (exit), §5.6.4.5 (window).

use super::cycle::AckPhase;
use super::{Bbr3, MIN_SEGMENTS, Mode, PROBE_RTT_CWND_GAIN};
use crate::congestion::window::{Acked, CongestionWindow};
use crate::units::Time;

#[derive(Debug, Clone, Copy, Default)]
pub struct ProbeRtt {
    /// Earliest end; none while the bytes in flight decrease.
    done: Option<Time>,
    round_done: bool,
    /// The flow restarts after idle time, in which queues have drained (BBR.idle_restart).
    pub idle: bool,
}

impl Bbr3 {
    /// BBRProbeRTTCwnd.
    pub(super) fn probe_rtt_cwnd(&self, window: &CongestionWindow) -> u64 {
        self.bdp(self.bandwidth(), PROBE_RTT_CWND_GAIN).max(MIN_SEGMENTS * window.mss)
    }

    /// BBRCheckProbeRTT.
    pub(super) fn check_probe_rtt(&mut self, ack: &Acked, window: &mut CongestionWindow) {
        if self.mode != Mode::ProbeRtt && self.path.expired && !self.probe_rtt.idle {
            self.save_cwnd(window);
            self.mode = Mode::ProbeRtt;
            self.probe_rtt.done = None;
            self.cycle.phase = AckPhase::ProbeStopping;
            self.path.begin_round(ack.delivered_ever);
        }
        if self.mode == Mode::ProbeRtt {
            self.stay_in_probe_rtt(ack, window);
        }
        if ack.delivered > 0 {
            self.probe_rtt.idle = false;
        }
    }

    /// BBRHandleProbeRTT.
    fn stay_in_probe_rtt(&mut self, ack: &Acked, window: &mut CongestionWindow) {
        self.path.hold_back(ack);
        if self.probe_rtt.done.is_none() {
            if ack.in_flight <= self.probe_rtt_cwnd(window) {
                self.probe_rtt.done = Some(ack.now.saturating_add(self.p.probe_rtt_time));
                self.probe_rtt.round_done = false;
                self.path.begin_round(ack.delivered_ever);
            }
            return;
        }
        self.probe_rtt.round_done |= self.path.round_start;
        if self.probe_rtt.round_done {
            self.check_probe_rtt_done(ack.now, ack.delivered_ever, window);
        }
    }

    /// BBRCheckProbeRTTDone, BBRExitProbeRTT.
    pub(super) fn check_probe_rtt_done(&mut self, now: Time, delivered: u64, window: &mut CongestionWindow) {
        if self.probe_rtt.done.is_none_or(|done| now <= done) {
            return;
        }
        self.path.probe_stamp = now;
        window.cwnd = window.cwnd.max(self.prior_cwnd);
        self.bounds.reset_short_term();
        match self.full.reached {
            true => {
                self.enter_down(now, delivered);
                self.enter_cruise();
            }
            false => self.mode = Mode::Startup,
        }
    }
}
