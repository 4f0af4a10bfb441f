//! A queue pair: one flow at its sender.

use super::nic::Nic;
use super::selective::Scoreboard;
use super::windowed::{News, Numbered, Windowed};
use crate::congestion::{Ack, Control, Controller, TIMERS, Window};
use crate::measure::FlowRecord;
use crate::packet::Packet;
use crate::settings::RdmaSettings;
use crate::units::{Rate, Time};
use crate::workload::{FlowId, FlowSpec};

/// The timeout doubles with each expiry in a row, up to 2^6 times.
pub const MOST_BACKOFF: u32 = 6;

pub struct QueuePair {
    pub flow: FlowId,
    pub dst: u32,
    pub size: u64,
    /// Next byte to send; falls back when something was lost.
    pub next: u64,
    /// Every byte below has been acknowledged.
    pub acknowledged: u64,
    /// Every byte below has been sent at least once.
    sent_up_to: u64,
    /// Bytes on the wire of the packet sent last.
    pub last_size: u16,
    pub nic: u16,
    /// Its number among the gates of the NIC.
    pub gate: u32,
    pub hash: u32,
    pub group: u16,
    /// Index of its settings.
    pub transport: u16,
    pub done: bool,
    pub line_rate: Rate,
    /// Window at line rate; 0 without a window.
    window_limit: u64,
    window_rule: Window,
    /// Bytes allowed in flight at the present rate; 0: unlimited.
    pub window_now: u64,
    pub control: Control,
    pub controller: Controller,
    /// What steers instead, if it is one of TCP's controllers.
    pub windowed: Option<Box<Windowed>>,
    /// Controller timers for which an event is on its way.
    pub timers_set: [Time; TIMERS],
    pub rto_armed: bool,
    backoff: u32,
    pub rto_deadline: Time,
    /// Time of the event that checks the deadline.
    pub rto_event: Time,
    /// Selective repeat's record of what arrived; none under go-back-N.
    scoreboard: Option<Box<Scoreboard>>,
    pub start: Time,
    deadline: Option<Time>,
    packets_sent: u64,
    packets_retransmitted: u64,
}

impl QueuePair {
    pub fn new(
        flow: FlowId,
        spec: &FlowSpec,
        controller: Controller,
        control: Control,
        settings: &RdmaSettings,
        line_rate: Rate,
        window_limit: u64,
    ) -> QueuePair {
        let mut pair = QueuePair {
            flow,
            dst: spec.dst,
            size: spec.size,
            next: 0,
            acknowledged: 0,
            sent_up_to: 0,
            last_size: 0,
            nic: 0,
            gate: 0,
            hash: 0,
            group: spec.group,
            transport: spec.transport,
            done: false,
            line_rate,
            window_limit,
            window_rule: settings.window,
            window_now: 0,
            control,
            controller,
            windowed: None,
            timers_set: [Time::MAX; TIMERS],
            rto_armed: false,
            backoff: 0,
            rto_deadline: Time::MAX,
            rto_event: Time::MAX,
            scoreboard: settings.selective.map(|r| Box::new(Scoreboard::new(r, settings.config.mtu))),
            start: spec.start,
            deadline: spec.deadline,
            packets_sent: 0,
            packets_retransmitted: 0,
        };
        pair.size_window();
        pair
    }

    /// Bytes sent and neither acknowledged nor given up.
    #[inline]
    pub fn in_flight(&self) -> u64 {
        let outstanding = self.next.saturating_sub(self.acknowledged);
        match &self.scoreboard {
            None => outstanding,
            Some(board) => outstanding.saturating_sub(board.not_in_flight()),
        }
    }

    /// Something is left to send.
    #[inline]
    pub fn has_data(&self) -> bool {
        self.next < self.size || self.scoreboard.as_ref().is_some_and(|board| board.has_lost())
    }

    /// The window at the present rate: floor(W0 * rate / line rate), at least a byte (HPCC authors' simulator).
    #[inline]
    pub fn size_window(&mut self) {
        self.window_now = match (self.control.cwnd, self.window_rule) {
            (Some(cwnd), _) => cwnd.max(1),
            (None, Window::None) => 0,
            (None, Window::Fixed) => self.window_limit,
            (None, Window::FollowsRate) => {
                let (limit, rate, line) = (self.window_limit, self.control.rate.0, self.line_rate.0);
                let scaled = match limit.checked_mul(rate) {
                    Some(product) => product / line,
                    None => (u128::from(limit) * u128::from(rate) / u128::from(line)) as u64,
                };
                scaled.max(1)
            }
        };
    }

    /// Tells the NIC whether this queue pair may send.
    #[inline]
    pub fn update_gate(&self, nic: &mut Nic) {
        let open = self.window_now == 0 || self.in_flight() < self.window_now;
        nic.update(self.gate, self.has_data(), open, self.done);
    }

    /// The next packet to send, as (first byte, payload bytes): lost ones first.
    pub fn take_next(&mut self, mtu: u32) -> (u64, u16) {
        let mtu = u64::from(mtu);
        self.packets_sent += 1;
        if let Some(seq) = self.scoreboard.as_mut().and_then(|board| board.take_lost()) {
            self.packets_retransmitted += 1;
            return (seq, mtu.min(self.size - seq) as u16);
        }
        let seq = self.next;
        let payload = mtu.min(self.size - seq);
        self.next += payload;
        if seq < self.sent_up_to {
            self.packets_retransmitted += 1;
        }
        self.sent_up_to = self.sent_up_to.max(self.next);
        (seq, payload as u16)
    }

    /// Takes in what an acknowledgement says; the bytes that it newly took out of flight.
    pub fn acknowledge(&mut self, packet: &Packet, settings: &RdmaSettings) -> u64 {
        let newly = packet.seq.saturating_sub(self.acknowledged);
        self.acknowledged = self.acknowledged.max(packet.seq);
        self.next = self.next.max(self.acknowledged);
        match &mut self.scoreboard {
            None => newly,
            Some(board) => {
                let arrived = u64::from(packet.aux) * u64::from(settings.config.mtu);
                newly + board.acknowledge(self.acknowledged, arrived, self.next)
            }
        }
    }

    /// A NACK names the missing byte: go-back-N starts again from there.
    pub fn missing(&mut self, seq: u64) {
        if self.scoreboard.is_none() && seq >= self.acknowledged {
            self.next = self.acknowledged;
        }
    }

    /// The timeout expired: everything in flight counts as lost.
    pub fn give_up_in_flight(&mut self) {
        self.backoff = (self.backoff + 1).min(MOST_BACKOFF);
        match &mut self.scoreboard {
            None => self.next = self.acknowledged,
            Some(board) => board.lose_all(self.acknowledged, self.next),
        }
    }

    /// The receiver has got further: the timeout begins anew.
    pub fn progress(&mut self, now: Time, rto: Option<Time>) {
        self.backoff = 0;
        if let Some(rto) = rto {
            self.rto_deadline = now + rto;
        }
    }

    pub fn backed_off(&self, rto: Time) -> Time {
        Time(rto.0.saturating_mul(1 << self.backoff))
    }

    /// A window controller says what the flow starts with.
    pub fn start_windowed(&mut self, now: Time) {
        if let Some(windowed) = &mut self.windowed {
            windowed.start(now, &mut self.control);
        }
        self.size_window();
    }

    /// A window controller learns of the packet that was just taken.
    #[inline(never)]
    pub fn tell_sent(&mut self, first: u64, payload: u16, mtu: u32, now: Time) {
        let in_flight = self.in_flight();
        if let Some(windowed) = &mut self.windowed {
            let packet = Numbered { number: first / u64::from(mtu), payload };
            windowed.sent(packet, in_flight, self.acknowledged, self.sent_up_to, now);
        }
    }

    /// How things stand before an acknowledgement is taken in, of which a window controller learns what has arrived.
    #[inline(never)]
    pub fn before(&mut self, packet: &Packet, mtu: u32, now: Time) -> Before {
        let before = Before {
            acknowledged: self.acknowledged,
            next: self.next,
            in_flight: self.in_flight(),
            searched: self.scoreboard.as_ref().map_or(0, |board| board.searched()),
        };
        let Some(windowed) = &mut self.windowed else { return before };
        let (size, mtu) = (self.size, u64::from(mtu));
        let board = self.scoreboard.as_deref();
        let mut arrived = |number: u64| {
            if !board.is_some_and(|board| board.has_arrived(number)) {
                windowed.arrived(numbered(number, size, mtu), packet.sent, now);
            }
        };
        let reached = packet.seq.max(self.acknowledged).div_ceil(mtu);
        (self.acknowledged.div_ceil(mtu)..reached).for_each(&mut arrived);
        let beyond = u64::from(packet.aux);
        if board.is_some() && beyond >= reached && beyond * mtu < self.next {
            arrived(beyond);
        }
        before
    }

    /// A window controller learns what an acknowledgement came to, and steers.
    #[inline(never)]
    pub fn tell_acknowledged(&mut self, before: &Before, ack: &Ack, mtu: u32) {
        let in_flight = self.in_flight();
        let Some(windowed) = &mut self.windowed else { return };
        let (size, mtu) = (self.size, u64::from(mtu));
        match &self.scoreboard {
            Some(board) => board
                .found_lost(before.searched)
                .for_each(|number| windowed.lost(numbered(number, size, mtu), ack.now)),
            // A NACK names one missing packet; that what follows it is sent again does not say that it is lost.
            None if ack.negative && before.next > self.next => {
                windowed.lost(numbered(self.next / mtu, size, mtu), ack.now);
            }
            None => {}
        }
        let news = News {
            now: ack.now,
            rtt: ack.rtt,
            marked: ack.marked,
            before: before.acknowledged,
            acknowledged: self.acknowledged,
            highest: self.sent_up_to,
            prior_in_flight: before.in_flight,
            in_flight,
            outstanding: before.next.saturating_sub(self.acknowledged),
        };
        windowed.acknowledged(&news, &mut self.control);
    }

    /// The timeout has expired, with so many bytes unacknowledged: a window controller learns of it.
    pub fn tell_timed_out(&mut self, outstanding: u64, now: Time) {
        let in_flight = self.in_flight();
        let Some(windowed) = &mut self.windowed else { return };
        let news = News {
            now,
            before: self.acknowledged,
            acknowledged: self.acknowledged,
            highest: self.sent_up_to,
            prior_in_flight: outstanding,
            in_flight,
            outstanding,
            ..News::default()
        };
        windowed.timed_out(&news, &mut self.control);
    }

    /// Bytes sent and not acknowledged cumulatively.
    pub fn outstanding(&self) -> u64 {
        self.next.saturating_sub(self.acknowledged)
    }

    pub fn record(&self, src: u32, finish: Option<Time>) -> FlowRecord {
        FlowRecord {
            flow: self.flow,
            src,
            dst: self.dst,
            size: self.size,
            start: self.start,
            finish,
            ideal: Time::ZERO,
            packets_sent: self.packets_sent,
            packets_retransmitted: self.packets_retransmitted,
            group: self.group,
            transport: self.transport,
            deadline: self.deadline,
        }
    }
}

/// How a queue pair stood before an acknowledgement.
#[derive(Debug, Clone, Copy)]
pub struct Before {
    acknowledged: u64,
    next: u64,
    in_flight: u64,
    /// Losses had been looked for below this packet.
    searched: u64,
}

/// A packet of a flow of `size` bytes.
fn numbered(number: u64, size: u64, mtu: u64) -> Numbered {
    Numbered { number, payload: mtu.min(size.saturating_sub(number * mtu)) as u16 }
}
