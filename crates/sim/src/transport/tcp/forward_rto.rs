//! F-RTO: whether a retransmission timeout was spurious, told by what the next two acknowledgements answer.
//!
//! ```text
//! timeout       the first unacknowledged segment goes again (none if an older recovery has not ended: no F-RTO then)
//! 1st advance   up to everything that was out: conventional, at most two segments
//!               less: up to two new segments in place of those that count as lost
//! next          of a segment that was sent once, before the timeout: the timeout was spurious, nothing counts as lost
//!               else: conventional, at most three segments
//! spurious      cwnd = flight + min(acknowledged, first window), ssthresh = max(flight, ssthresh) of before
//! ```
//!
//! Source: Sarolahti, Kojo, Yamamoto, Hata, RFC 5682 §3.1 (with SACK); Ludwig, Gurtov, RFC 4015 §3.2 (the window afterwards).
//! Differs from the source: the timeout is not adapted (RFC 4015 §3.2 step 7), for late answers with timestamps are samples themselves;
//! a controller takes back nothing of its own but window and threshold. Linux begins anew with each timeout in a row, takes the whole
//! window back, and asks timestamps as well.

use super::connection::{Connection, Next};
use super::scoreboard::{Segment, Update};
use crate::congestion::window::{Acked, State, WindowController};
use crate::transport::tcp::config::TcpConfig;
use crate::units::Time;

/// New segments that ask.
const QUESTIONS: u32 = 2;

/// What a connection knows of its last timeout.
#[derive(Debug, Clone, Copy, Default)]
pub struct ForwardRto {
    step: Step,
    /// Above what had been sent when the timeout expired (RecoveryPoint).
    recover: u64,
    /// max(flight, ssthresh) of then (pipe_prev).
    threshold: u64,
    /// The acknowledgement at work answers something that was sent once, before the timeout.
    original: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Step {
    /// Nothing is suspected.
    #[default]
    Off,
    /// The first acknowledgement that moves on is awaited.
    First,
    /// New segments ask: so many are left to send.
    Second(u32),
}

impl ForwardRto {
    /// A timeout has expired.
    pub fn begin(recover: u64, threshold: u64) -> ForwardRto {
        ForwardRto { step: Step::First, recover, threshold, original: false }
    }

    /// An acknowledgement has come.
    pub fn look(&mut self) {
        self.original = false;
    }

    /// It delivers a segment.
    #[inline]
    pub fn arrived(&mut self, segment: &Segment) {
        self.original |= segment.end() <= self.recover && !segment.sent_twice();
    }

    /// New segments that may be sent, and nothing else; none: no question is open.
    #[inline]
    pub fn questions(&self) -> Option<u32> {
        match self.step {
            Step::Second(left) => Some(left),
            _ => None,
        }
    }

    /// A new segment leaves.
    #[inline]
    pub fn sent_new(&mut self) {
        if let Step::Second(left) = &mut self.step {
            *left = left.saturating_sub(1);
        }
    }
}

impl Connection {
    /// After a timeout: what an acknowledgement says of it. Whether it was spurious, and has been undone.
    pub fn judge_timeout(&mut self, update: &Update, acked: &Acked, now: Time, config: &TcpConfig) -> bool {
        match self.f_rto.step {
            Step::Off => {}
            Step::First if update.acknowledged == 0 => {}
            Step::First => {
                // Step 2: two new segments, if there is anything to send and room at the receiver.
                let all = acked.acknowledged >= self.f_rto.recover;
                let new = !all && matches!(self.new_data(0, now, config), Next::New(_));
                self.f_rto.step = if new { Step::Second(QUESTIONS) } else { Step::Off };
            }
            Step::Second(_) if self.f_rto.original => {
                self.undo_timeout(update, now, config);
                return true;
            }
            Step::Second(_) => {
                self.f_rto.step = Step::Off;
                if !self.law.steers_recovery() {
                    self.window.cwnd = self.window.cwnd.min(3 * self.window.mss);
                }
            }
        }
        false
    }

    /// Step 3b, and the response of RFC 4015: the stream goes on where it was.
    fn undo_timeout(&mut self, update: &Update, now: Time, config: &TcpConfig) {
        self.board.forgive();
        if let Some(rack) = &mut self.rack {
            rack.rebuild_order(&self.board);
        }
        self.recover = self.board.acknowledged();
        self.ecn.take_back(self.recover);
        self.duplicates = 0;
        self.first_partial = true;
        if !self.law.steers_recovery() {
            let first_window = self.window.mss * u64::from(config.initial_window);
            self.window.cwnd = self.board.pipe() + update.acknowledged.min(first_window);
            self.window.ssthresh = self.f_rto.threshold;
        }
        self.f_rto = ForwardRto::default();
        self.change(State::Open, now);
    }
}
