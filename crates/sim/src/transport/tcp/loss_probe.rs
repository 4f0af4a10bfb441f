//! The tail loss probe: where nothing more would show that the last segments of a flight are lost, one segment asks.
//!
//! A probe timeout (PTO) of two round-trip times runs while nothing has arrived out of order. When it expires a new segment is sent, or
//! the last one again; RACK sees the losses in the answer. The window is reduced if the probe itself is what repaired a loss.
//!
//! ```text
//! PTO   2 SRTT, with one segment in flight the longest delay of an acknowledgement more; 1 s before the first sample;
//!       not after the retransmission timeout
//! ```
//!
//! Source: Cheng, Cardwell, Dukkipati, Jha, RFC 8985 §7.2 (PTO), §7.3 (probe), §7.4 (answers), §8 (one timer at a time).

use super::acknowledgement::Acknowledgement;
use super::connection::{Connection, Early, Next, Phase};
use super::scoreboard::Update;
use crate::congestion::window::{Signal, State};
use crate::transport::tcp::config::TcpConfig;
use crate::units::Time;

/// A connection's probe.
#[derive(Debug, Clone, Copy, Default)]
pub struct LossProbe {
    /// The PTO has expired: what is sent next is the probe.
    pub wanted: bool,
    /// Where the probe that is not answered ends.
    end: Option<u64>,
    /// It was a segment sent again.
    again: bool,
}

impl LossProbe {
    pub fn sent(&mut self, end: u64, again: bool) {
        *self = LossProbe { wanted: false, end: Some(end), again };
    }
}

impl Connection {
    /// Sets the earlier timer (§8): to look again at what is suspected, or the PTO, which is restarted after new data and with each
    /// acknowledgement that moves on.
    pub fn arm_early(&mut self, restart: bool, now: Time, config: &TcpConfig) {
        if let Some(due) = self.rack.as_ref().and_then(|rack| rack.due) {
            self.alarm.early = Early::Reordering(due);
        } else if !self.may_probe(config) {
            self.alarm.early = Early::None;
        } else if restart || !matches!(self.alarm.early, Early::Probe(_)) {
            let at = now.saturating_add(self.probe_timeout(config));
            self.alarm.early = Early::Probe(at.min(self.alarm.deadline));
        }
    }

    /// §7.2.
    fn may_probe(&self, config: &TcpConfig) -> bool {
        config.recovery.rack.is_some_and(|rack| rack.probes)
            && self.phase == Phase::Established
            && !matches!(self.state, State::Recovery | State::Loss)
            && self.board.outstanding() > 0
            && self.board.sacked_segments() == 0
            && self.probe.end.is_none()
            && !self.probe.wanted
    }

    fn probe_timeout(&self, config: &TcpConfig) -> Time {
        let Some(smoothed) = self.rtt.smoothed() else { return Time::from_ms(1000) };
        let alone = self.board.segments() == 1;
        let delay = config.recovery.rack.filter(|_| alone).map_or(Time::ZERO, |rack| rack.ack_delay);
        Time(2 * smoothed.0).saturating_add(delay)
    }

    /// The PTO expires: a probe is to be sent, whatever the window, and the retransmission timeout runs anew.
    pub fn want_probe(&mut self, now: Time) {
        self.probe.wanted = self.board.outstanding() > 0;
        self.due = now;
        self.alarm.deadline = now.saturating_add(self.rtt.rto());
    }

    /// §7.3: new data, or the last segment again.
    pub fn next_probe(&mut self, now: Time, config: &TcpConfig) -> Next {
        match self.new_data(0, now, config) {
            Next::New(payload) => Next::New(payload),
            _ if self.board.outstanding() > 0 => Next::Again(self.board.next_number() - 1),
            _ => Next::Nothing,
        }
    }

    /// §7.4: what an acknowledgement says of the probe.
    pub fn answer_probe(
        &mut self,
        ack: &Acknowledgement,
        update: &Update,
        more_room: bool,
        now: Time,
        config: &TcpConfig,
    ) {
        if update.delivered > 0 {
            self.probe.wanted = false;
        }
        let Some(end) = self.probe.end.filter(|end| ack.expected >= *end) else { return };
        let repaired = self.probe.again && ack.expected > end && ack.duplicate.1 != end;
        let nothing_lost = !self.probe.again
            || ack.duplicate.1 == end
            || update.acknowledged == 0 && ack.count == 0 && ack.expected == end && !more_room;
        if repaired || nothing_lost {
            self.probe = LossProbe::default();
        }
        if repaired && matches!(self.state, State::Open | State::Disorder) {
            self.reduce(Signal::Loss, now, config);
        }
    }
}
