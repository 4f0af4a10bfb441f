//! What an acknowledgement, or a timeout, does to a connection: loss detection, fast recovery, growth of the window.
//!
//! States and their changes, by what comes:
//!
//! ```text
//! Open      -> Disorder   a SACK of something beyond a hole
//! Disorder  -> Recovery   the third, or the first hole has three segments beyond it (RFC 6675 §5 steps 1, 2)
//! Disorder  -> Open       the hole is filled
//! Recovery  -> Open       everything that was out when it began is acknowledged (RFC 6675 §5 step A)
//! Open      -> Reduced    an ECN echo; -> Open when what was out then is acknowledged (RFC 3168 §6.1.2)
//! any       -> Loss       a timeout (RFC 5681 §3.1); -> Open as from Recovery
//! ```
//!
//! Source: RFC 5681, RFC 6675 §5, RFC 6582 (the recovery point), RFC 6937, RFC 3168, RFC 6298 §5.
//! With [RACK](super::rack) a segment that counts as lost begins recovery, and nothing else does (RFC 8985 §6.2).
//! A timeout may turn out to be spurious: [F-RTO](super::forward_rto).

use super::connection::{Connection, Early, Next, Phase};
use super::forward_rto::ForwardRto;
use super::loss_probe::LossProbe;
use super::prr::{Bound, Prr, Step};
use super::rack::Bounds;
use super::rto::RttEstimator;
use super::scoreboard::{BLOCKS, Block, Update};
use crate::congestion::window::{Acked, Congestion, RateSample, Signal, State, WindowController};
use crate::transport::plb::Feedback;
use crate::transport::tcp::config::{EcnEcho, Flight, PrrBound, RecoveryWindow, TcpConfig};
use crate::units::Time;

/// An acknowledgement as it comes.
#[derive(Debug, Clone, Copy)]
pub struct Acknowledgement {
    pub expected: u64,
    pub blocks: [Block; BLOCKS],
    /// Blocks that it has.
    pub count: usize,
    /// What has come twice (D-SACK, RFC 2883); empty: nothing.
    pub duplicate: Block,
    pub echo: Time,
    /// What it, and the segment whose time it echoes, waited for processors of hosts.
    pub in_hosts: Time,
    /// Bytes that the receiver takes beyond `expected`.
    pub window: u64,
    pub marked: bool,
}

/// A sender's part of explicit congestion notification.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ecn {
    /// Echoes mean the congestion that was answered, until everything below is acknowledged.
    until: u64,
    /// The next new packet says that the window was reduced.
    pub tell: bool,
}

impl Ecn {
    pub fn until(&self) -> u64 {
        self.until
    }

    /// A reduction has been undone: echoes count from this byte on.
    pub fn take_back(&mut self, from: u64) {
        *self = Ecn { until: from, tell: false };
    }
}

impl Connection {
    /// Takes in an acknowledgement.
    pub fn acknowledge(&mut self, ack: &Acknowledgement, now: Time, config: &TcpConfig) {
        match config.recovery.reactions.by_state {
            false => self.acknowledge_by_rfcs(ack, now, config),
            true => self.acknowledge_by_state(ack, now, config),
        }
        if self.persist.running {
            // The receiver is there.
            self.timeouts = 0;
        }
        self.watch_window(now, config);
    }

    fn acknowledge_by_rfcs(&mut self, ack: &Acknowledgement, now: Time, config: &TcpConfig) {
        let waiting = self.waiting_for_nic(now, config);
        let (update, acked) = self.take_in(ack, now, config);
        self.law.on_feedback(&acked, &mut self.window);
        self.react(&update, &acked, waiting, now, config);
        if self.law.steers_recovery() {
            let acked = Acked { in_flight: self.board.pipe(), state: self.state, ..acked };
            self.law.on_ack(&acked, &mut self.window);
        }
        self.after(&update, now, config);
    }

    /// In recovery: bytes that may leave, and that the NIC has not taken yet.
    fn waiting_for_nic(&mut self, now: Time, config: &TcpConfig) -> u64 {
        let waits = self.state == State::Recovery
            && !self.law.steers_recovery()
            && matches!(self.next(now, config), Next::New(_) | Next::Again(_));
        if waits { self.window.cwnd.saturating_sub(self.board.pipe()) } else { 0 }
    }

    /// What an acknowledgement says of segments, round-trip times and rates.
    pub fn take_in(&mut self, ack: &Acknowledgement, now: Time, config: &TcpConfig) -> (Update, Acked) {
        // Messages that found the buffer full before this made room are left out.
        self.written(now);
        let (prior_in_flight, prior_lost) = (self.board.pipe(), self.board.lost_ever());
        self.f_rto.look();
        self.rack.iter_mut().for_each(|rack| rack.look());
        let (rates, rack, min_rtt) = (&mut self.rates, &mut self.rack, self.rtt.min_rtt());
        let f_rto = &mut self.f_rto;
        let update = self.board.update(ack.expected, &ack.blocks[..ack.count], &mut |number, segment| {
            if let Some(rates) = rates {
                rates.arrived(number, segment.payload, segment.sent, now);
            }
            f_rto.arrived(segment);
            if let Some(rack) = rack {
                rack.arrived(segment, (segment.end() <= ack.expected).then_some(ack.echo), min_rtt, now);
            }
        });
        let more_room = ack.expected + ack.window > self.receivable;
        self.take_window(ack.expected, ack.window);
        let sampled = self.measure(&update, ack, now, config);
        if let Some(rack) = &mut self.rack {
            rack.adapt(ack.duplicate.0 < ack.duplicate.1, self.board.acknowledged(), self.board.next());
            self.detect_losses(now, config);
            self.answer_probe(ack, &update, more_room, now, config);
        }
        self.tell_losses(now);
        let acked = self.describe(&update, ack, prior_in_flight, prior_lost, sampled, now, config);
        if let Some(plb) = &mut self.plb {
            let feedback = Feedback {
                now,
                // Another path changes nothing of what hosts take.
                rtt: sampled.then(|| {
                    RttEstimator::sample(ack.echo, now, config.rtt.clock).saturating_sub(ack.in_hosts)
                }),
                marked: acked.marked,
                weight: update.delivered,
                acknowledged: acked.acknowledged,
                next: acked.next,
            };
            self.hash = plb.on_ack(&feedback, self.hash).unwrap_or(self.hash);
        }
        (update, acked)
    }

    /// Tells the controller of segments that were found to be lost, if it wants to know.
    fn tell_losses(&mut self, now: Time) {
        while let Some((number, first, payload)) = self.board.next_found() {
            let lost = self.rates.as_mut().and_then(|rates| rates.lose(number, (first, payload), now));
            if let Some(lost) = lost {
                self.law.on_lost(&lost, &self.window);
            }
        }
    }

    /// Marks what is lost by its time; whether anything is.
    fn detect_losses(&mut self, now: Time, config: &TcpConfig) -> bool {
        let bounds = Bounds {
            recovering: matches!(self.state, State::Recovery | State::Loss),
            threshold: config.recovery.dup_threshold,
            min_rtt: self.rtt.min_rtt(),
            smoothed: self.rtt.smoothed(),
        };
        self.rack.as_mut().is_some_and(|rack| rack.detect(&mut self.board, &bounds, now))
    }

    /// Takes a sample of the round-trip time; whether there was one.
    fn measure(&mut self, update: &Update, ack: &Acknowledgement, now: Time, config: &TcpConfig) -> bool {
        let fits = if config.rtt.karn { update.timed_once == Some(true) } else { true };
        let sampled = update.acknowledged > 0 && fits;
        if sampled {
            let sample = RttEstimator::sample(ack.echo, now, config.rtt.clock);
            self.rtt.take(sample, &config.rtt, &config.rto);
        }
        sampled
    }

    #[allow(clippy::too_many_arguments)]
    fn describe(
        &mut self,
        update: &Update,
        ack: &Acknowledgement,
        prior_in_flight: u64,
        prior_lost: u64,
        sampled: bool,
        now: Time,
        config: &TcpConfig,
    ) -> Acked {
        let mss = self.window.mss;
        let counted = self.carry + update.acknowledged;
        self.carry = counted % mss;
        let given = self.rtt.given(&config.rtt).filter(|_| sampled || config.rtt.smoothed);
        let first = self.board.next_number() - self.board.segments() as u64;
        let rate = self
            .rates
            .as_mut()
            .map_or(RateSample::default(), |rates| rates.sample(first, now, self.rtt.min_rtt()));
        Acked {
            now,
            bytes: update.acknowledged,
            segments: counted / mss,
            delivered: update.delivered,
            delivered_ever: self.rates.as_ref().map_or(0, |rates| rates.delivered()),
            lost: self.board.lost_ever() - prior_lost,
            prior_in_flight,
            in_flight: self.board.pipe(),
            acknowledged: self.board.acknowledged(),
            next: self.board.next(),
            cursor: self.cursor,
            rtt: given,
            min_rtt: self.rtt.min_rtt(),
            in_hosts: ack.in_hosts,
            rate,
            marked: ack.marked && config.ecn != EcnEcho::Off,
            window_limited: !config.window_validation || self.usage.is_limited_by(&self.window),
            state: self.state,
        }
    }

    /// Changes states, and the window with them.
    fn react(&mut self, update: &Update, acked: &Acked, waiting: u64, now: Time, config: &TcpConfig) {
        let mut entered = false;
        if update.sacked > 0 && !matches!(self.state, State::Loss | State::Recovery) {
            self.duplicates += 1;
            if self.state == State::Open {
                self.change(State::Disorder, now);
            }
        }
        if self.is_loss(update, config) {
            self.enter_recovery(update, now, config);
            entered = true;
        }
        if update.acknowledged > 0 && update.sacked == 0 {
            self.duplicates = 0;
        }
        if acked.marked && update.acknowledged > 0 && !entered {
            self.answer_mark(now, config);
        }
        if self.state == State::Loss && self.judge_timeout(update, acked, now, config) {
            return;
        }
        match self.state {
            State::Recovery if acked.acknowledged >= self.recover => self.leave_recovery(acked, now),
            State::Recovery if !entered && update.delivered > 0 => {
                self.recover_on(update, acked.lost > 0, waiting, config)
            }
            State::Recovery => {}
            State::Reduced if acked.acknowledged >= self.ecn.until => {
                self.change(State::Open, now);
                self.grow(acked);
            }
            State::Reduced => {}
            _ if update.acknowledged == 0 => {}
            // What arrived out of order was only late.
            State::Disorder if update.sacked == 0 => {
                self.change(State::Open, now);
                self.grow(acked);
            }
            State::Disorder => {}
            State::Loss => {
                if acked.acknowledged >= self.recover {
                    self.first_partial = true;
                    self.rack.iter_mut().for_each(|rack| rack.recovered());
                    self.change(State::Open, now);
                }
                self.grow(&newly_arrived(acked, self.window.mss));
            }
            State::Open => self.grow(acked),
        }
    }

    /// Fast recovery is to begin.
    fn is_loss(&self, update: &Update, config: &TcpConfig) -> bool {
        let beyond = self.duplicates >= config.recovery.dup_threshold || self.board.front_is_lost();
        let lost = if self.rack.is_some() { self.board.lost() > 0 } else { update.sacked > 0 && beyond };
        lost && !matches!(self.state, State::Loss | State::Recovery)
    }

    fn grow(&mut self, acked: &Acked) {
        if !self.law.steers_recovery() && acked.bytes > 0 {
            let acked = Acked { state: self.state, in_flight: self.board.pipe(), ..*acked };
            self.law.on_ack(&acked, &mut self.window);
        }
    }

    /// What is in flight, as thresholds are computed from it.
    fn flight(&self, config: &TcpConfig) -> u64 {
        match config.recovery.flight {
            Flight::Pipe => self.board.pipe(),
            // What limited transmit sent does not count (RFC 5681 §3.2).
            Flight::Outstanding => self.board.outstanding().min(self.window.cwnd),
        }
    }

    /// RFC 6675 §5 step 4.
    fn enter_recovery(&mut self, update: &Update, now: Time, config: &TcpConfig) {
        let in_flight = self.flight(config);
        self.recover = self.board.next();
        let answered = self.state == State::Reduced;
        self.change(State::Recovery, now);
        if !answered {
            let congestion = Congestion { now, in_flight, by: Signal::Loss };
            self.window.ssthresh = self.law.on_congestion(&congestion, &self.window);
            self.answer_marks_so_far(config);
        }
        if self.rack.is_none() {
            self.board.lose_front();
        }
        self.probe = LossProbe::default();
        self.prr = Prr::new(in_flight);
        self.recover_on(update, true, 0, config);
    }

    /// The window during recovery, after an acknowledgement that shows more to be lost or not, while `waiting`
    /// bytes that may leave wait for the NIC.
    fn recover_on(&mut self, update: &Update, shows_loss: bool, waiting: u64, config: &TcpConfig) {
        if self.law.steers_recovery() {
            return;
        }
        let (pipe, ssthresh) = (self.board.pipe(), self.window.ssthresh);
        self.window.cwnd = match config.recovery.window {
            RecoveryWindow::Prr(prr) => {
                let bound = match prr.bound {
                    PrrBound::SlowStart => Bound::SlowStart,
                    PrrBound::Progress if update.acknowledged > 0 && !shows_loss => Bound::SlowStart,
                    PrrBound::Retransmitted if update.again => Bound::SlowStart,
                    PrrBound::Retransmitted => Bound::Delivered,
                    PrrBound::Progress => Bound::AtLeastDelivered,
                    PrrBound::Conservative => Bound::Conservative,
                };
                let step = Step { delivered: update.delivered, waiting, pipe, ssthresh, bound };
                let window = self.prr.window(&step, self.window.mss, prr.wraps);
                // When what was sent again is lost again, one segment may leave (RFC 9937 §5).
                if pipe == 0 { window.max(self.window.mss) } else { window }
            }
            RecoveryWindow::Threshold => ssthresh,
        };
    }

    fn leave_recovery(&mut self, acked: &Acked, now: Time) {
        self.duplicates = 0;
        self.first_partial = true;
        self.rack.iter_mut().for_each(|rack| rack.recovered());
        if !self.law.steers_recovery() {
            self.window.cwnd = self.window.ssthresh;
        }
        self.change(State::Open, now);
        self.grow(&newly_arrived(acked, self.window.mss));
    }

    /// An ECN echo: the window is reduced once per window of data.
    pub fn answer_mark(&mut self, now: Time, config: &TcpConfig) {
        let new_window = self.board.acknowledged() > self.ecn.until || self.ecn.until == 0;
        if !new_window || !matches!(self.state, State::Open | State::Disorder) {
            return;
        }
        self.reduce(Signal::Mark, now, config);
    }

    /// The window is reduced: echoes of marks of what is out mean the same congestion, and the next new
    /// segment states that they are answered, also where a loss was the reason (RFC 3168 §6.1.2).
    fn answer_marks_so_far(&mut self, config: &TcpConfig) {
        self.ecn = Ecn { until: self.board.next(), tell: config.ecn != EcnEcho::Off };
    }

    /// The window is reduced without anything to send again.
    pub fn reduce(&mut self, by: Signal, now: Time, config: &TcpConfig) {
        let congestion = Congestion { now, in_flight: self.flight(config), by };
        self.window.ssthresh = self.law.on_congestion(&congestion, &self.window);
        if !self.law.steers_recovery() {
            self.window.cwnd = self.window.ssthresh;
        }
        self.answer_marks_so_far(config);
        self.change(State::Reduced, now);
    }

    /// Restarts the timeout, or stops it (RFC 6298 §5.2, §5.3).
    fn after(&mut self, update: &Update, now: Time, config: &TcpConfig) {
        if self.board.acknowledged() == self.source.size() && self.messages.is_none() {
            self.phase = Phase::Done;
        }
        if update.acknowledged == 0 {
            self.arm_early(false, now, config);
            return;
        }
        self.timeouts = 0;
        if self.board.outstanding() == 0 {
            self.alarm.deadline = Time::MAX;
            self.alarm.early = Early::None;
            return;
        }
        let partial = self.state == State::Recovery;
        if config.recovery.restart_each || !partial || self.first_partial {
            self.rtt.progress(&config.rto);
            self.alarm.deadline = now.saturating_add(self.rtt.rto());
        }
        if partial {
            self.first_partial = false;
        }
        self.arm_early(true, now, config);
    }

    /// One of the timeouts has expired.
    pub fn time_out(&mut self, now: Time, config: &TcpConfig) {
        match self.alarm.early {
            Early::Reordering(at) if at <= now => {
                self.alarm.early = Early::None;
                if self.detect_losses(now, config) && self.is_loss(&Update::default(), config) {
                    self.enter_recovery(&Update::default(), now, config);
                }
                self.arm_early(false, now, config);
            }
            Early::Probe(at) if at <= now => {
                self.alarm.early = Early::None;
                self.want_probe(now);
            }
            _ => self.time_out_last(now, config),
        }
    }

    /// The retransmission timeout has expired: everything counts as lost, with RACK what is overdue (RFC 8985 §6.3), and one segment
    /// may be sent (RFC 5681 §3.1).
    fn time_out_last(&mut self, now: Time, config: &TcpConfig) {
        self.count_timeout(now);
        if self.timeouts > config.retries {
            self.phase = Phase::Dead;
            return;
        }
        if config.recovery.reactions.by_state {
            return self.time_out_by_state(now, config);
        }
        self.rtt.back_off(&config.rto);
        let threshold = self.flight(config).max(self.window.ssthresh);
        let fresh = config.recovery.f_rto && !matches!(self.state, State::Recovery | State::Loss);
        self.f_rto =
            if fresh { ForwardRto::begin(self.board.next(), threshold) } else { ForwardRto::default() };
        // Once for what is lost: not when the same segment is lost again.
        if self.state != State::Loss || !self.board.front_was_sent_again() {
            let congestion = Congestion { now, in_flight: self.flight(config), by: Signal::Timeout };
            self.window.ssthresh = self.law.on_congestion(&congestion, &self.window);
            self.answer_marks_so_far(config);
        }
        self.recover = self.board.next();
        self.duplicates = 0;
        match &mut self.rack {
            Some(rack) => self.board.lose_overdue(|sent| rack.due_at(sent) <= now),
            None => self.board.lose_all(),
        }
        (self.probe, self.alarm.early) = (LossProbe::default(), Early::None);
        self.window.cwnd = self.board.pipe() + self.window.mss;
        self.due = now;
        self.change(State::Loss, now);
        self.alarm.deadline = now.saturating_add(self.rtt.rto());
    }
}

/// An acknowledgement that fills a hole, worth what it shows to have arrived: what had come beyond the hole arrived while the window was
/// being reduced, and makes it grow no more (Linux counts what is delivered, too).
fn newly_arrived(acked: &Acked, mss: u64) -> Acked {
    let bytes = acked.bytes.min(acked.delivered);
    Acked { bytes, segments: acked.segments.min(bytes.div_ceil(mss)), ..*acked }
}
