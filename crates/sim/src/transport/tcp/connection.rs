//! A connection at its sender: handshake, what to send next, timers.
//!
//! Longer than 500 lines, because all of a connection's states change together.

use super::acknowledgement::Ecn;
use super::forward_rto::ForwardRto;
use super::loss_probe::LossProbe;
use super::persist::Persist;
use super::prr::Prr;
use super::rack::Rack;
use super::rto::RttEstimator;
use super::scoreboard::Scoreboard;
use super::source::Source;
use crate::congestion::window::{
    Change, CongestionWindow, FlowPath, NO_THRESHOLD, State, WindowContext, WindowController, WindowLaw,
    usage::WindowUsage,
};
use crate::measure::FlowRecord;
use crate::net::port::cut_transmission_time;
use crate::transport::messages::Messages;
use crate::transport::nic::Nic;
use crate::transport::plb::Plb;
use crate::transport::rate_sample::RateEstimator;
use crate::transport::tcp::config::{Reactions, TcpConfig, TcpPacing};
use crate::units::{Rate, Time};
use crate::workload::{FlowId, FlowSpec};
use std::collections::VecDeque;

/// Where a connection stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// A SYN is on its way.
    Opening,
    Established,
    /// Everything is acknowledged.
    Done,
    /// Given up: nothing was heard for too long.
    Dead,
}

/// The gate of a connection that stays open and has nothing to do: none, so that a NIC need not look at it.
pub const RESTING: u32 = u32::MAX;

/// What a connection would send now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    Nothing,
    /// Nothing before this time, when the application will have written more.
    At(Time),
    New(u16),
    /// The segment of this number.
    Again(u64),
}

/// A data packet to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sending {
    pub first: u64,
    pub payload: u16,
    /// The time that its timestamp tells.
    pub sent: Time,
    /// Its sender has reduced its window for an ECN echo (CWR).
    pub reduced: bool,
    /// It was sent before.
    pub again: bool,
}

/// The retransmission timeout and what may come before it: one event at a time is on its way, and looks when it comes whether
/// it came too early.
#[derive(Debug, Clone, Copy)]
pub struct Alarm {
    /// When the timeout expires; [`Time::MAX`]: not running.
    pub deadline: Time,
    pub early: Early,
    /// Of the event in force.
    pub event: Time,
}

/// A timer that runs before the retransmission timeout (RFC 8985 §8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Early {
    None,
    /// What is suspected counts as lost then.
    Reordering(Time),
    /// A tail loss probe is sent then.
    Probe(Time),
}

impl Alarm {
    /// When it goes off first.
    #[inline]
    pub fn next(&self) -> Time {
        match self.early {
            Early::None => self.deadline,
            Early::Reordering(at) | Early::Probe(at) => at.min(self.deadline),
        }
    }

    /// The same, of what has not happened yet: what was found to be overdue (a reordering timer that a timeout came before, when the NIC
    /// took its time to send again) goes off at once. An event in the past would never come.
    #[inline]
    pub fn next_from(&self, now: Time) -> Time {
        let next = self.next();
        if next < now { Time(now.0 + 1) } else { next }
    }
}

pub struct Connection {
    pub flow: FlowId,
    pub spec: FlowSpec,
    pub hash: u32,
    /// Flows that it carries one after the other, if it stays open; `flow` is the first of them.
    pub messages: Option<Box<Messages>>,
    /// The NIC that it leaves by, and its number among that one's gates ([`RESTING`]: it has none).
    pub nic: u16,
    pub gate: u32,
    pub start: Time,
    pub phase: Phase,
    pub board: Scoreboard,
    pub source: Source,
    pub rtt: RttEstimator,
    pub window: CongestionWindow,
    pub law: WindowLaw,
    pub state: State,
    pub prr: Prr,
    /// Loss detection by time, if that is what it is.
    pub rack: Option<Box<Rack>>,
    pub probe: LossProbe,
    /// Whether the last timeout was spurious.
    pub f_rto: ForwardRto,
    pub rates: Option<Box<RateEstimator>>,
    /// What changes its path, if something does.
    pub plb: Option<Box<Plb>>,
    /// Duplicate acknowledgements in a row.
    pub duplicates: u32,
    /// Recovery ends when everything below is acknowledged.
    pub recover: u64,
    pub reactions: Reactions,
    /// [`Reactions::by_state`]: not everything below `recover` has been acknowledged.
    pub recovering: bool,
    /// The byte after the segment that was sent last, which under [`Reactions::by_state`] may be one that was sent again.
    pub cursor: u64,
    /// [`Reactions::by_state`]: segments that the NIC has not sent yet.
    pub outbox: VecDeque<Sending>,
    /// [`Reactions::looks_after_writes`]: what comes at the very time of a write comes before it. It was under way already when the write
    /// before that was made.
    pub comes_before_writes: bool,
    /// [`Reactions::notes_in_flight`]: what was in flight when that was asked for last, and bytes that the acknowledgement at work delivered.
    pub noted: u64,
    pub delivered: u64,
    /// No partial acknowledgement has come in this recovery.
    pub first_partial: bool,
    /// Bytes acknowledged beyond whole segments.
    pub carry: u64,
    /// The receiver takes bytes below.
    pub receivable: u64,
    /// The widest window that it has told.
    widest: u64,
    pub persist: Persist,
    pub ecn: Ecn,
    pub alarm: Alarm,
    /// Timeouts in a row, of SYNs or of data.
    pub timeouts: u32,
    pub usage: WindowUsage,
    /// Pacing lets the next packet leave from then on.
    pub due: Time,
    pub last_sent: Time,
    pub packets_sent: u64,
    pub packets_retransmitted: u64,
    /// Timeouts since it was opened, of SYNs and of data.
    pub expired: u32,
}

impl Connection {
    pub fn new(
        flow: FlowId,
        spec: &FlowSpec,
        config: &TcpConfig,
        random: u64,
        path: FlowPath,
        now: Time,
    ) -> Connection {
        let mss = u64::from(config.mss);
        let initial = mss * u64::from(config.initial_window);
        let context = WindowContext { initial, mss, packet: u64::from(config.packet()), random, path };
        let law = config.controller.start(&context);
        let reactions = config.recovery.reactions;
        let rates = law.needs_rate().then(|| Box::new(RateEstimator::new(reactions.keeps_samples)));
        let notes_losses = rates.is_some() && !reactions.keeps_samples;
        let application = config.application;
        Connection {
            flow,
            spec: *spec,
            hash: 0,
            messages: None,
            nic: 0,
            gate: 0,
            start: now,
            phase: Phase::Opening,
            board: Scoreboard::new(
                config.mss,
                if config.recovery.rack.is_some() { u32::MAX } else { config.recovery.dup_threshold },
                reactions,
            )
            .noting_losses(notes_losses),
            source: Source::new(spec.size, config.send_buffer, application.rate, application.message, now),
            rtt: RttEstimator::new(&config.rto),
            window: CongestionWindow {
                cwnd: initial,
                ssthresh: NO_THRESHOLD,
                pacing: None,
                paced: config.pacing == TcpPacing::Window,
                mss,
            },
            law,
            state: State::Open,
            prr: Prr::default(),
            rack: config.recovery.rack.map(|_| Box::new(Rack::new())),
            probe: LossProbe::default(),
            f_rto: ForwardRto::default(),
            rates,
            plb: None,
            duplicates: 0,
            recover: 0,
            reactions,
            recovering: false,
            cursor: 0,
            outbox: VecDeque::new(),
            comes_before_writes: reactions.looks_after_writes,
            noted: 0,
            delivered: 0,
            first_partial: true,
            carry: 0,
            receivable: 0,
            widest: 0,
            persist: Persist::default(),
            ecn: Ecn::default(),
            alarm: Alarm { deadline: Time::MAX, early: Early::None, event: Time::MAX },
            timeouts: 0,
            usage: WindowUsage::default(),
            due: Time::ZERO,
            last_sent: now,
            packets_sent: 0,
            packets_retransmitted: 0,
            expired: 0,
        }
    }

    pub fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Done | Phase::Dead)
    }

    /// The answer to the SYN has come; `window`: what the receiver takes.
    pub fn establish(&mut self, echo: Time, window: u64, now: Time, config: &TcpConfig) {
        self.phase = Phase::Established;
        self.take_window(0, window);
        if config.rtt.handshake {
            self.rtt.take(RttEstimator::sample(echo, now, config.rtt.clock), &config.rtt, &config.rto);
        }
        if self.timeouts > 0 && !self.reactions.keeps_first_window {
            // RFC 5681 §3.1: a SYN was lost.
            self.window.cwnd = self.window.mss;
        }
        self.timeouts = 0;
        self.alarm.deadline = Time::MAX;
        self.law.on_start(now, self.rtt.smoothed(), &mut self.window);
        if self.reactions.by_state {
            let change = self.describe_change(State::Open, now);
            self.law.on_state(&change, &mut self.window);
            self.hand_down(now, config);
        }
    }

    /// Bytes of the congestion window that nothing in flight takes, if new data could leave at all: what one that hands data to
    /// several connections may give to this one. Nothing while something lost waits to be sent again.
    pub fn room(&self) -> u64 {
        if self.phase != Phase::Established || self.board.has_lost() {
            return 0;
        }
        let unsent = self.source.unsent(self.board.next());
        self.window.cwnd.saturating_sub(self.board.pipe() + unsent)
    }

    /// The receiver takes `window` bytes beyond `expected`.
    pub fn take_window(&mut self, expected: u64, window: u64) {
        self.receivable = self.receivable.max(expected + window);
        self.widest = self.widest.max(window);
    }

    /// What the window, the receiver and the application let go now.
    pub fn next(&mut self, now: Time, config: &TcpConfig) -> Next {
        if self.phase != Phase::Established {
            return Next::Nothing;
        }
        if self.probe.wanted {
            return self.next_probe(now, config);
        }
        let held = !config.recovery.limited_transmit && self.state == State::Disorder;
        let in_flight = if held { self.board.outstanding() } else { self.board.pipe() };
        let limit = match self.reactions.pipe_fills_receiver {
            false => self.window.cwnd,
            true => self.window.cwnd.min(self.receivable - self.board.acknowledged()),
        };
        let room = limit.saturating_sub(in_flight);
        if let Some(left) = self.f_rto.questions() {
            return match self.new_data(in_flight, now, config) {
                Next::New(payload) if left > 0 && u64::from(payload) <= room => Next::New(payload),
                _ => Next::Nothing,
            };
        }
        // NextSeg rule 1: what is lost.
        if self.board.has_lost() {
            return match self.board.next_lost() {
                Some(number) if room >= self.window.mss || in_flight == 0 => Next::Again(number),
                _ => Next::Nothing,
            };
        }
        match self.new_data(in_flight, now, config) {
            Next::New(payload) if u64::from(payload) <= room || in_flight == 0 => Next::New(payload),
            Next::New(_) => Next::Nothing,
            other if self.state == State::Recovery && room >= self.window.mss => {
                // NextSeg rule 3: what may be lost.
                self.board.next_doubtful(config.recovery.doubtful).map_or(other, Next::Again)
            }
            other => other,
        }
    }

    /// NextSeg rule 2: data that was never sent, as the receiver and the application let it.
    #[inline(always)]
    pub fn new_data(&mut self, in_flight: u64, now: Time, config: &TcpConfig) -> Next {
        let next = self.board.next();
        let left = self.source.left(next);
        if left == 0 {
            return Next::Nothing;
        }
        let acknowledged = self.board.acknowledged();
        let written = self.written(now) - next;
        let whole = left.min(self.window.mss);
        // A short segment waits while something is unacknowledged (Nagle, RFC 9293 §3.7.4).
        let waits = in_flight > 0 && config.nagle;
        if written < whole && (written == 0 || waits) {
            let enough = if waits { whole } else { 1 };
            let at = self.source.when_more_than(next + enough - 1, acknowledged);
            let after = if self.reactions.looks_after_writes { Time(1) } else { Time::ZERO };
            return at.map_or(Next::Nothing, |at| Next::At(at.saturating_add(after)));
        }
        let payload = written.min(whole);
        let usable = self.receivable.saturating_sub(next);
        // RFC 9293 §3.8.6.2.1: less than there is goes out alone, if it is half of the widest window, or has waited for long.
        let little = usable > 0 && acknowledged == next && (2 * usable >= self.widest || self.persist.forced);
        match payload <= usable {
            true => Next::New(payload as u16),
            false if little => Next::New(usable as u16),
            false => Next::Nothing,
        }
    }

    /// Every byte below has been written by now, for what has come now.
    #[inline]
    pub fn written(&mut self, now: Time) -> u64 {
        let seen = if self.comes_before_writes { now.saturating_sub(Time(1)) } else { now };
        self.source.written(self.board.acknowledged(), seen)
    }

    /// There is something to send, and the receiver's window has no room for it.
    pub fn is_held(&mut self, now: Time, config: &TcpConfig) -> bool {
        let next = self.board.next();
        let written = self.written(now).min(self.source.size());
        written > next
            && next + (written - next).min(self.window.mss) > self.receivable
            && self.new_data(0, now, config) == Next::Nothing
    }

    /// Takes the next packet to be sent.
    pub fn take(&mut self, now: Time, config: &TcpConfig) -> Option<Sending> {
        if self.reactions.by_state {
            return self.take_handed_down(now, config);
        }
        let next = self.next(now, config);
        let probes = self.probe.wanted;
        let sending = self.send(next, now, config)?;
        self.cursor = self.board.next();
        let new = matches!(next, Next::New(_));
        if probes {
            self.probe.sent(self.board.next(), !new);
        }
        self.arm_early(new, now, config);
        Some(sending)
    }

    /// Sends a segment.
    #[inline(always)]
    pub fn send(&mut self, next: Next, now: Time, config: &TcpConfig) -> Option<Sending> {
        let (idle, probes) = (self.board.pipe() == 0, self.probe.wanted);
        let (number, first, payload) = match next {
            Next::Nothing | Next::At(_) => return None,
            Next::Again(number) if probes => {
                let (first, payload) = self.board.probe_again(number, now);
                self.packets_retransmitted += 1;
                (number, first, payload)
            }
            Next::Again(number) => {
                let (first, payload) = self.board.send_again(number, now);
                self.packets_retransmitted += 1;
                (number, first, payload)
            }
            Next::New(payload) => {
                self.restart_after_idling(now, config, idle);
                self.f_rto.sent_new();
                let number = self.board.next_number();
                (number, self.board.send_new(payload, now), payload)
            }
        };
        let reduced = matches!(next, Next::New(_)) && std::mem::take(&mut self.ecn.tell);
        if let Some(messages) = &mut self.messages {
            messages.count(first, matches!(next, Next::Again(_)));
        }
        self.has_sent(number, payload, idle, now, config);
        Some(Sending { first, payload, sent: now, reduced, again: matches!(next, Next::Again(_)) })
    }

    /// Sends the first unacknowledged segment again, whatever is known of it.
    pub fn send_first_again(&mut self, now: Time, config: &TcpConfig) -> Option<Sending> {
        let idle = self.board.pipe() == 0;
        let (number, first, payload) = self.board.send_front_again(now)?;
        self.packets_retransmitted += 1;
        if let Some(messages) = &mut self.messages {
            messages.count(first, true);
        }
        self.has_sent(number, payload, idle, now, config);
        Some(Sending { first, payload, sent: now, reduced: false, again: true })
    }

    /// A segment leaves, with nothing else in flight if `idle`.
    #[inline(always)]
    fn has_sent(&mut self, number: u64, payload: u16, idle: bool, now: Time, config: &TcpConfig) {
        if let Some(rates) = &mut self.rates {
            rates.send(number, now, idle, self.board.pipe());
        }
        if let Some(rack) = &mut self.rack {
            rack.sent(number, now);
        }
        self.packets_sent += 1;
        self.last_sent = now;
        self.prr.sent(u64::from(payload));
        let (pipe, cwnd) = (self.board.pipe(), self.window.cwnd);
        let full = pipe + self.window.mss > cwnd;
        self.usage.on_sent(pipe, full, self.board.acknowledged(), self.board.next());
        self.pace(u64::from(payload), now, config);
        if self.alarm.deadline == Time::MAX || self.persist.running {
            self.persist = Persist::default();
            self.alarm.deadline = now.saturating_add(self.rtt.rto());
        }
    }

    /// A timeout expires, of a SYN or of data.
    pub fn count_timeout(&mut self, now: Time) {
        self.timeouts += 1;
        self.expired += 1;
        if let Some(plb) = &mut self.plb {
            self.hash = plb.on_timeout(now, self.hash);
        }
        if let Some(messages) = &mut self.messages {
            messages.count_timeout();
        }
    }

    /// The answer to the SYN has come once more. The first window counts anew, the threshold is none; nothing is sent.
    pub fn answered_again(&mut self, config: &TcpConfig) {
        self.window.cwnd = self.window.mss * u64::from(config.initial_window);
        self.window.ssthresh = NO_THRESHOLD;
    }

    /// RFC 5681 §4.1: after idling for longer than the timeout a flow begins with the first window again.
    pub fn restart_after_idling(&mut self, now: Time, config: &TcpConfig, idle: bool) {
        if !idle || !config.window_validation {
            return;
        }
        self.law.on_resume(now);
        if now.saturating_sub(self.last_sent) > self.rtt.rto() {
            let initial = self.window.mss * u64::from(config.initial_window);
            if !self.law.steers_recovery() {
                self.window.cwnd = self.window.cwnd.min(initial);
            }
            self.law.on_restart(now, &mut self.window);
        }
    }

    /// When the next packet may leave.
    #[inline(always)]
    fn pace(&mut self, payload: u64, now: Time, config: &TcpConfig) {
        let Some(rate) = self.pacing_rate(config) else { return };
        if self.reactions.paces_payload {
            if self.packets_sent >= u64::from(config.unpaced) && now >= self.due {
                let pause = cut_transmission_time(payload, Rate(rate.0.max(1)));
                self.due = now.saturating_add(pause);
            }
            return;
        }
        if self.packets_sent > u64::from(config.unpaced) {
            let bytes = payload + u64::from(config.header);
            self.due = now.saturating_add(Rate(rate.0.max(1)).transmission_time(bytes));
        }
    }

    pub fn pacing_rate(&self, config: &TcpConfig) -> Option<Rate> {
        match config.pacing {
            TcpPacing::Off => None,
            TcpPacing::Controller => self.window.pacing,
            TcpPacing::Window => self.window.pacing.or_else(|| self.window_rate()),
        }
    }

    /// As Linux paces: 200 % of the window in a round trip in slow start, 120 % later. None before a round trip was measured.
    pub fn window_rate(&self) -> Option<Rate> {
        let percent = if self.window.cwnd < self.window.ssthresh / 2 { 200 } else { 120 };
        let bits = u128::from(self.window.cwnd) * percent * 80_000_000_000;
        let rtt = self.rtt.smoothed()?;
        Some(Rate(u64::try_from(bits / u128::from(rtt.0.max(1))).unwrap_or(u64::MAX)))
    }

    /// Tells the NIC whether and when this connection may send.
    pub fn update_gate(&mut self, nic: &mut Nic, now: Time, config: &TcpConfig) {
        if self.gate == RESTING {
            return;
        }
        let next = self.next(now, config);
        let waits = !self.outbox.is_empty();
        // In ns-3 a pacer's timer is set with every segment that leaves: set later, it would expire after other events of that time.
        let is_paced = self.reactions.by_state && self.due > now && self.phase == Phase::Established;
        let open = waits || next != Next::Nothing || is_paced;
        let ready = if let Next::At(at) = next { at } else { Time::ZERO };
        nic.set_due(self.gate, if waits { Time::ZERO } else { self.due.max(ready) });
        nic.update(self.gate, open, open, self.is_over());
        self.notice_application(next);
    }

    /// The delivery rate says nothing of the network while the application has nothing to send.
    #[inline(always)]
    fn notice_application(&mut self, next: Next) {
        let Some(rates) = &mut self.rates else { return };
        // The application has just written: there is a segment, if messages have one.
        if self.reactions.looks_after_writes
            && self.source.message().is_some_and(|bytes| bytes >= self.window.mss)
        {
            return;
        }
        // A window that leaves no room for a whole segment is not the application's doing.
        if self.source.runs_dry() && self.source.unsent(self.board.next()) >= self.window.mss {
            return;
        }
        let pipe = self.board.pipe();
        let idles = matches!(next, Next::At(_)) || next == Next::Nothing && self.source.runs_dry();
        if idles && pipe < self.window.cwnd && !self.board.has_lost() {
            rates.limited_by_application(pipe);
        }
    }

    /// Moves to another state of recovery.
    pub fn change(&mut self, to: State, now: Time) {
        if self.state != to {
            self.enter(to, now);
        }
    }

    /// Tells the controller of a state, also if it is the present one.
    pub fn enter(&mut self, to: State, now: Time) {
        let from = std::mem::replace(&mut self.state, to);
        let change = self.describe_change(from, now);
        self.law.on_state(&change, &mut self.window);
    }

    /// The move from another state to the present one.
    pub fn describe_change(&self, from: State, now: Time) -> Change {
        Change {
            now,
            from,
            to: self.state,
            next: self.board.next(),
            cursor: self.cursor,
            in_flight: if self.reactions.notes_in_flight { self.noted } else { self.board.pipe() },
            delivered: self.delivered,
            rtt: self.rtt.smoothed(),
        }
    }

    pub fn record(&self, src: u32, finish: Option<Time>) -> FlowRecord {
        FlowRecord {
            finish,
            packets_sent: self.packets_sent,
            packets_retransmitted: self.packets_retransmitted,
            timeouts: self.expired,
            ..FlowRecord::of(self.flow, &self.spec, src, self.start)
        }
    }
}
