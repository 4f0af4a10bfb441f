//! What an acknowledgement, or a timeout, does to a connection in ns-3.35: the behaviour behind the published results of
//! Cebinae (SIGCOMM 2022), kept apart from the one that follows the RFCs (acknowledgement.rs).
//!
//! What differs from there:
//!
//! - Recovery begins with the third duplicate exactly, or when of the segments from the second unacknowledged one on the first
//!   that is decided is lost. In the states after it a segment that was sent again counts as in flight until it is
//!   acknowledged cumulatively, even when it has been acknowledged selectively.
//! - An acknowledgement that moves on in recovery sends at once, whatever the window, unless the first unacknowledged segment
//!   was sent again: what is lost, or else new data, or else that first segment once more. One that also brings new SACK
//!   blocks is taken by proportional rate reduction twice.
//! - Every timeout lowers the threshold, and controllers are told of each as of a new one. The acknowledgement that ends the time
//!   after one adds to the window only what lies beyond the point where it ends. One that moves on but brings new SACK blocks does
//!   not restart the timeout.
//! - The timeout runs on with nothing in flight, from the last acknowledgement, as long as something written waits for its pacer.
//! - A controller hears of RTTs with acknowledgements that it is told of, after changes of state; none in the first part of
//!   disorder.
//! - Segments are handed down when an acknowledgement lets them, and bear that time, even if the NIC sends them later.
//!
//! Source: ns-3.35, TcpSocketBase and TcpTxBuffer (behaviour, as observed and read; no code).

use super::acknowledgement::Acknowledgement;
use super::connection::{Connection, Next, Phase, Sending};
use super::prr::{Bound, Prr, Step};
use super::scoreboard::Update;
use crate::congestion::window::{Acked, Congestion, Signal, State, WindowController};
use crate::transport::tcp::config::{Reactions, RecoveryWindow, TcpConfig};
use crate::units::Time;

/// The reactions of ns-3.35.
pub const REACTIONS: Reactions = Reactions {
    by_state: true,
    keeps_again: true,
    counts_from_top: true,
    losses_by_sacks: true,
    pipe_fills_receiver: true,
    keeps_first_window: true,
    repeats_syn_ack: true,
    looks_after_writes: true,
    paces_payload: true,
    notes_in_flight: true,
    keeps_samples: true,
    answers_first: true,
};

impl Connection {
    /// Takes in an acknowledgement.
    pub fn acknowledge_by_state(&mut self, ack: &Acknowledgement, now: Time, config: &TcpConfig) {
        let prior_lost = self.board.lost();
        let (update, acked) = self.take_in(ack, now, config);
        (self.noted, self.delivered) = (self.board.pipe(), update.delivered);
        let again = update.again && self.state == State::Recovery && ack.expected < self.recover;
        let bound = if again { Bound::SlowStart } else { Bound::Delivered };
        let ssthresh = self.window.ssthresh;
        let pipe = self.board.pipe();
        let mut step = Step { delivered: update.delivered, waiting: 0, pipe, ssthresh, bound };
        let duplicates = self.duplicates;
        if update.sacked > 0 {
            self.count_duplicate(&mut step, now, config);
        }
        if acked.marked && update.acknowledged > 0 {
            self.answer_mark(now, config);
        }
        if update.acknowledged > 0 {
            self.move_on(&update, &acked, duplicates, &step, now, config);
        } else if self.board.outstanding() > 0 {
            self.law.on_feedback(&acked, &mut self.window);
        }
        if self.law.steers_recovery() {
            let lost = self.board.lost().abs_diff(prior_lost);
            let acked = Acked { in_flight: self.noted, state: self.state, lost, ..acked };
            self.law.on_ack(&acked, &mut self.window);
        }
        self.hand_down(now, config);
        if self.board.acknowledged() == self.source.size() && self.messages.is_none() {
            self.phase = Phase::Done;
        }
    }

    /// An acknowledgement with something new among its SACK blocks.
    fn count_duplicate(&mut self, step: &mut Step, now: Time, config: &TcpConfig) {
        match self.state {
            State::Loss => return,
            State::Recovery => return self.reduce_in_proportion(step, config),
            _ => self.duplicates += 1,
        }
        if self.state == State::Open {
            self.change(State::Disorder, now);
        }
        if self.state != State::Disorder {
            return;
        }
        let acknowledged = self.board.acknowledged();
        let third = self.duplicates == config.recovery.dup_threshold;
        if third && (acknowledged >= self.recover || !self.recovering)
            || self.board.is_lost_from(acknowledged + self.window.mss)
        {
            self.begin_recovery(step, now, config);
        }
    }

    fn begin_recovery(&mut self, step: &mut Step, now: Time, config: &TcpConfig) {
        if !self.board.is_lost_from(self.board.acknowledged()) {
            self.board.lose_front_again();
        }
        self.recover = self.board.next();
        self.recovering = true;
        self.change(State::Recovery, now);
        step.pipe = self.board.pipe();
        self.noted = step.pipe;
        let congestion = Congestion { now, in_flight: step.pipe, by: Signal::Loss };
        self.window.ssthresh = self.law.on_congestion(&congestion, &self.window);
        if !self.law.steers_recovery() {
            self.prr = Prr::new(self.board.outstanding());
            self.reduce_in_proportion(step, config);
        }
        self.retransmit(now, config);
    }

    /// Proportional rate reduction.
    fn reduce_in_proportion(&mut self, step: &Step, config: &TcpConfig) {
        if self.law.steers_recovery() {
            return;
        }
        let step = Step { ssthresh: self.window.ssthresh, ..*step };
        self.window.cwnd = match config.recovery.window {
            RecoveryWindow::Prr(prr) => self.prr.window(&step, self.window.mss, prr.wraps),
            RecoveryWindow::Threshold => step.ssthresh,
        };
    }

    /// The cumulative acknowledgement has moved on.
    fn move_on(
        &mut self,
        update: &Update,
        acked: &Acked,
        duplicates: u32,
        step: &Step,
        now: Time,
        config: &TcpConfig,
    ) {
        if update.sacked == 0 {
            self.duplicates = 0;
        }
        let before = acked.acknowledged < self.recover;
        match self.state {
            State::Recovery if before => {
                if acked.segments > 0 {
                    self.reduce_in_proportion(step, config);
                }
                if !self.board.front_is_again() {
                    self.retransmit(now, config);
                }
                self.law.on_feedback(acked, &mut self.window);
                let first = std::mem::take(&mut self.first_partial);
                self.restart(first, now, config);
            }
            State::Loss if before => {
                self.law.on_feedback(acked, &mut self.window);
                self.grow_by(acked.segments, acked);
                self.restart(true, now, config);
            }
            State::Reduced if acked.acknowledged < self.ecn.until() => {
                self.law.on_feedback(acked, &mut self.window);
                self.restart(true, now, config);
            }
            _ => self.open(update, acked, duplicates, now, config),
        }
    }

    /// An acknowledgement in the open state, or one that leads to it.
    fn open(&mut self, update: &Update, acked: &Acked, duplicates: u32, now: Time, config: &TcpConfig) {
        let mut segments = acked.segments;
        let left = self.state;
        match left {
            State::Loss => segments = (acked.acknowledged - self.recover) / self.window.mss,
            State::Recovery => segments = update.acknowledged / self.window.mss,
            _ => {}
        }
        if left != State::Disorder || segments >= u64::from(duplicates) {
            self.law.on_feedback(acked, &mut self.window);
        }
        if left != State::Disorder || update.sacked == 0 {
            self.change(State::Open, now);
        }
        if matches!(left, State::Loss | State::Recovery) {
            self.first_partial = true;
        }
        if acked.acknowledged >= self.recover {
            self.recovering = false;
        }
        if left == State::Recovery {
            self.duplicates = 0;
            self.restart(true, now, config);
            if !self.law.steers_recovery() {
                self.window.cwnd = self.window.ssthresh;
            }
        }
        if self.state == State::Open {
            self.grow_by(segments, acked);
            self.restart(true, now, config);
        }
    }

    fn grow_by(&mut self, segments: u64, acked: &Acked) {
        if !self.law.steers_recovery() {
            let bytes = segments * self.window.mss;
            let state = self.state;
            let cursor = self.cursor;
            let acked = Acked { bytes, segments, state, cursor, in_flight: self.board.pipe(), ..*acked };
            self.law.on_ack(&acked, &mut self.window);
        }
    }

    /// Something new was acknowledged: the count of timeouts begins anew, and with `clock` the timeout.
    fn restart(&mut self, clock: bool, now: Time, config: &TcpConfig) {
        self.timeouts = 0;
        if clock {
            self.rtt.progress(&config.rto);
            self.alarm.deadline = now.saturating_add(self.rtt.rto());
        }
        let acknowledged = self.board.acknowledged();
        self.cursor = self.cursor.max(acknowledged);
        // It stops when the buffer is empty, which it is not while a pacer holds back what was written.
        if self.board.outstanding() == 0 && self.written(now) <= self.board.next() {
            self.alarm.deadline = Time::MAX;
        }
    }

    /// Sends a segment whatever the window: one that is lost, or else a new one, or else the first once more.
    fn retransmit(&mut self, now: Time, config: &TcpConfig) {
        let next = match self.board.next_lost() {
            Some(number) => Next::Again(number),
            None => self.new_data(self.board.pipe(), now, config),
        };
        let sending = match next {
            Next::Again(_) | Next::New(_) => self.send(next, now, config),
            Next::Nothing | Next::At(_) => self.send_first_again(now, config),
        };
        if let Some(sending) = sending {
            self.cursor = sending.first;
            self.outbox.push_back(sending);
        }
    }

    /// What the window lets go now goes to the queue below.
    pub fn hand_down(&mut self, now: Time, config: &TcpConfig) {
        while self.due <= now || self.pacing_rate(config).is_none() {
            let next = self.next(now, config);
            if self.law.steers_recovery()
                && self.board.pipe() == 0
                && !matches!(next, Next::Nothing | Next::At(_))
            {
                self.law.on_restart(now, &mut self.window);
            }
            let Some(sending) = self.send(next, now, config) else { return };
            self.cursor = sending.first + u64::from(sending.payload);
            self.outbox.push_back(sending);
        }
    }

    /// The next packet for the NIC.
    pub fn take_handed_down(&mut self, now: Time, config: &TcpConfig) -> Option<Sending> {
        if self.outbox.is_empty() {
            self.hand_down(now, config);
        }
        self.outbox.pop_front()
    }

    /// The timeout has expired.
    pub fn time_out_by_state(&mut self, now: Time, config: &TcpConfig) {
        let in_flight = self.board.pipe();
        self.noted = in_flight;
        self.duplicates = 0;
        self.board.lose_all();
        self.recover = self.board.next();
        self.recovering = true;
        self.rtt.back_off(&config.rto);
        let congestion = Congestion { now, in_flight, by: Signal::Timeout };
        self.window.ssthresh = self.law.on_congestion(&congestion, &self.window);
        // Controllers hear of every timeout, also of the second in a row.
        self.enter(State::Loss, now);
        self.window.cwnd = self.window.mss;
        self.due = now;
        self.alarm.deadline = Time::MAX;
        self.hand_down(now, config);
    }
}
