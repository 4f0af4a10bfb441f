//! The persist timer: a sender whose window is closed asks whether it has opened, for the update may have been lost.
//!
//! It runs while nothing is in flight and the window holds back what there is to send: for a timeout first, then twice as long each time, up
//! to the longest timeout. When it expires, what fits an open window is sent, however little (the override of the sender's silly window
//! avoidance); for a closed one a probe is sent, which is answered at once. Probes go on for as long as they are answered.
//!
//! Source: Eddy, RFC 9293 §3.8.6.1 (zero-window probes), §3.8.6.2.1 (sender's silly window avoidance, override).
//! Differs from the source: a probe carries no byte (as in Linux, whose probe repeats an old one), so that none is refused.

use super::connection::{Connection, Phase};
use super::packets::signal;
use crate::packet::Packet;
use crate::transport::HostContext;
use crate::transport::tcp::config::TcpConfig;
use crate::units::Time;
use crate::wire::tcp::code;

/// State of a connection that its receiver holds back.
#[derive(Debug, Clone, Copy, Default)]
pub struct Persist {
    /// The timer runs, in place of the retransmission timeout.
    pub running: bool,
    /// Probes that it has sent in a row.
    pub probes: u32,
    /// What fits the window is sent, however little.
    pub forced: bool,
}

impl Connection {
    /// Starts the timer when the receiver's window holds everything back, and stops it when it does no more.
    pub fn watch_window(&mut self, now: Time, config: &TcpConfig) {
        let held =
            self.phase == Phase::Established && self.board.outstanding() == 0 && self.is_held(now, config);
        if held && !self.persist.running {
            self.persist = Persist { running: true, ..Persist::default() };
            self.alarm.deadline = now.saturating_add(self.rtt.rto());
        } else if !held && self.persist.running {
            self.persist = Persist::default();
            self.alarm.deadline = Time::MAX;
        }
    }

    /// The timer expires; whether a probe is to be sent.
    pub fn persist_expires(&mut self, now: Time, config: &TcpConfig) -> bool {
        let closed = self.receivable <= self.board.next();
        self.persist.probes += 1;
        self.persist.forced = !closed;
        self.timeouts += 1;
        if self.timeouts > config.retries {
            self.phase = Phase::Dead;
        }
        let wait = Time(self.rtt.rto().0.saturating_mul(1 << self.persist.probes.min(30)));
        self.alarm.deadline = now.saturating_add(wait.min(config.rto.max));
        closed && !self.is_over()
    }

    /// Sends the probe of a closed window.
    pub fn send_window_probe(&self, slot: u32, config: &TcpConfig, cx: &mut HostContext) {
        let seq = self.board.acknowledged();
        let probe = Packet { seq, sent: cx.now(), ..self.header(slot, cx) };
        // Without a route it is lost, and the next one asks again.
        signal(code::WINDOW_PROBE, probe, config, cx);
    }
}
