//! A queue pair: one flow at its sender.

use super::TOKENS;
use super::parameters::RdmaConfig;
use super::selective::Scoreboard;
use super::stream::Stream;
use super::windowed::{News, Numbered, Windowed};
use crate::congestion::{Ack, Control, Controller, TIMERS, Window};
use crate::measure::FlowRecord;
use crate::packet::{Packet, flag};
use crate::transport::HostContext;
use crate::transport::nic::Nic;
use crate::transport::plb::Plb;
use crate::units::{Rate, Time};
use crate::workload::{FlowId, FlowSpec};

/// The timeout doubles with each expiry in a row, up to 2^6 times.
pub const MAX_BACKOFF: u32 = 6;

pub struct QueuePair {
    /// The flow that opened it.
    pub flow: FlowId,
    pub dst: u32,
    /// Where what it has to send ends.
    pub size: u64,
    /// Next byte to send; falls back when something was lost.
    pub next: u64,
    /// Every byte below has been acknowledged.
    pub acknowledged: u64,
    /// A flow ends when everything below is acknowledged.
    pub goal: u64,
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
    /// Every byte is acknowledged. One that stays open rests until there is more.
    pub done: bool,
    pub line_rate: Rate,
    /// Window at line rate; 0 without a window.
    window_limit: u64,
    window_rule: Window,
    /// Bytes allowed in flight at the present rate; 0: unlimited.
    pub window_now: u64,
    /// Bytes that may be sent beyond those acknowledged in order.
    bdp_cap: u64,
    pub control: Control,
    pub controller: Controller,
    /// The flows that it carries one after the other, if it stays open.
    pub stream: Option<Box<Stream>>,
    /// What steers instead, if it is one of TCP's controllers.
    pub windowed: Option<Box<Windowed>>,
    /// What changes its path, if something does.
    pub plb: Option<Box<Plb>>,
    /// Controller timers for which an event is on its way.
    pub timers_set: [Time; TIMERS],
    pub rto_armed: bool,
    backoff: u32,
    /// The timeout runs from then on.
    pub rto_since: Time,
    /// Time of the event that checks the deadline.
    pub rto_event: Time,
    /// Selective repeat's record of what arrived; none under go-back-N.
    scoreboard: Option<Box<Scoreboard>>,
    pub start: Time,
    deadline: Option<Time>,
    packets_sent: u64,
    packets_retransmitted: u64,
    /// Retransmission timeouts that expired.
    timeouts: u32,
}

impl QueuePair {
    pub fn new(
        flow: FlowId,
        spec: &FlowSpec,
        controller: Controller,
        control: Control,
        settings: &RdmaConfig,
        line_rate: Rate,
        window_limit: u64,
    ) -> QueuePair {
        let mut pair = QueuePair {
            flow,
            dst: spec.dst,
            size: spec.size,
            next: 0,
            acknowledged: 0,
            goal: spec.size,
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
            window_rule: settings.derived.window,
            window_now: 0,
            bdp_cap: settings.bdp_cap(line_rate),
            control,
            controller,
            windowed: None,
            plb: None,
            stream: None,
            timers_set: [Time::MAX; TIMERS],
            rto_armed: false,
            backoff: 0,
            rto_since: Time::ZERO,
            rto_event: Time::MAX,
            scoreboard: settings.derived.selective.map(|r| Box::new(Scoreboard::new(r, settings.mtu))),
            start: spec.start,
            deadline: spec.deadline,
            packets_sent: 0,
            packets_retransmitted: 0,
            timeouts: 0,
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
        self.next < self.size || self.has_lost()
    }

    /// Packets are known to be lost and not yet sent again.
    #[inline]
    fn has_lost(&self) -> bool {
        self.scoreboard.as_ref().is_some_and(|board| board.has_lost())
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
        let in_window = self.window_now == 0 || self.in_flight() < self.window_now;
        let open = in_window && (self.outstanding() < self.bdp_cap || self.has_lost());
        nic.update(self.gate, self.has_data(), open, self.done);
    }

    /// The next packet to send: lost ones first.
    #[inline]
    pub fn take_next(&mut self, mtu: u32, now: Time) -> Cut {
        let mtu = u64::from(mtu);
        if self.stream.is_some() {
            return self.take_from_stream(mtu, now);
        }
        self.packets_sent += 1;
        if let Some(seq) = self.scoreboard.as_mut().and_then(|board| board.take_lost(now)) {
            self.packets_retransmitted += 1;
            return Cut::of_flow(seq, self.size, self.acknowledged, mtu);
        }
        let seq = self.next;
        let cut = Cut::of_flow(seq, self.size, self.acknowledged, mtu);
        self.next += u64::from(cut.payload);
        if seq < self.sent_up_to {
            self.packets_retransmitted += 1;
        }
        self.sent_up_to = self.sent_up_to.max(self.next);
        cut
    }

    /// The same, of a pair that stays open.
    #[inline(never)]
    fn take_from_stream(&mut self, mtu: u64, now: Time) -> Cut {
        let lost = self.scoreboard.as_mut().and_then(|board| board.take_lost(now));
        let from = lost.unwrap_or(self.next);
        let stream = self.stream.get_or_insert_default();
        let cut = stream.cut(from, self.acknowledged, self.sent_up_to, lost.is_some(), mtu);
        if lost.is_none() {
            self.next = cut.seq + u64::from(cut.payload);
            self.sent_up_to = self.sent_up_to.max(self.next);
        }
        cut
    }

    /// Takes in what an acknowledgement says; the bytes that it newly took out of flight.
    pub fn acknowledge(&mut self, packet: &Packet, settings: &RdmaConfig) -> u64 {
        let newly = packet.seq.saturating_sub(self.acknowledged);
        self.acknowledged = self.acknowledged.max(packet.seq);
        self.next = self.next.max(self.acknowledged);
        match &mut self.scoreboard {
            None => newly,
            Some(board) => {
                let arrived = u64::from(packet.aux) * u64::from(settings.mtu);
                newly + board.acknowledge(self.acknowledged, arrived, self.next, packet.sent)
            }
        }
    }

    /// A NACK names the missing byte: go-back-N starts again from there.
    pub fn missing(&mut self, seq: u64) {
        if self.scoreboard.is_none() && seq >= self.acknowledged {
            self.next = self.acknowledged;
        }
    }

    /// The timeout expired: what is in flight counts as lost, or, unless `all` of it is to, what was overtaken again.
    pub fn give_up_in_flight(&mut self, all: bool, settings: &RdmaConfig, now: Time) {
        let patience = Time(settings.timeout(self.outstanding()).unwrap_or(Time::ZERO).0 / 2);
        self.backoff = (self.backoff + 1).min(MAX_BACKOFF);
        self.timeouts += 1;
        if let Some(stream) = &mut self.stream {
            stream.count_timeout();
        }
        match &mut self.scoreboard {
            None => self.next = self.acknowledged,
            // A law of windows begins again with a window of one packet, for which nothing may be in flight.
            Some(board) if all || self.windowed.is_some() => board.lose_all(self.acknowledged, self.next),
            Some(board) => {
                board.lose_overtaken(self.acknowledged, self.next, now.saturating_sub(patience));
            }
        }
    }

    /// The cumulative acknowledgement has advanced: the timeout restarts.
    pub fn progress(&mut self, now: Time) {
        self.backoff = 0;
        self.rto_since = now;
    }

    /// When the timeout expires, as things stand; none: there is no timeout.
    pub fn rto_deadline(&self, settings: &RdmaConfig) -> Option<Time> {
        let rto = settings.timeout(self.outstanding())?;
        Some(self.rto_since.saturating_add(Time(rto.0.saturating_mul(1 << self.backoff))))
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
        let has_more = self.stream.is_none() || self.has_data();
        if let Some(windowed) = &mut self.windowed {
            let packet = Numbered { number: first / u64::from(mtu), payload };
            windowed.sent(packet, in_flight, self.acknowledged, self.sent_up_to, now);
            if !has_more && in_flight < self.window_now {
                windowed.runs_dry(in_flight);
            }
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
        let (stream, size, mtu) = (self.stream.as_deref(), self.size, u64::from(mtu));
        let board = self.scoreboard.as_deref();
        let mut arrived = |number: u64| {
            if !board.is_some_and(|board| board.has_arrived(number)) {
                windowed.arrived(numbered(number, stream, size, mtu), packet.sent, now);
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
    pub fn tell_acknowledged(&mut self, before: &Before, ack: &Ack, in_hosts: Time, mtu: u32) {
        let in_flight = self.in_flight();
        let Some(windowed) = &mut self.windowed else { return };
        let (stream, size, mtu) = (self.stream.as_deref(), self.size, u64::from(mtu));
        match &self.scoreboard {
            Some(board) => board
                .found_lost(before.searched)
                .for_each(|number| windowed.lost(numbered(number, stream, size, mtu), ack.now)),
            // A NACK names one missing packet; that what follows it is sent again does not say that it is lost.
            None if ack.negative && before.next > self.next => {
                windowed.lost(numbered(self.next / mtu, stream, size, mtu), ack.now);
            }
            None => {}
        }
        let news = News {
            now: ack.now,
            rtt: ack.rtt,
            in_hosts,
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

    /// Payload bytes of the packet with this number; 0 where its flow is done.
    #[cold]
    pub fn payload_of(&self, number: u32, mtu: u32) -> u32 {
        u32::from(numbered(u64::from(number), self.stream.as_deref(), self.size, u64::from(mtu)).payload)
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

    /// Sees to it that an event comes for each of the controller's timers.
    #[inline]
    pub fn set_timers(&mut self, slot: u32, cx: &mut HostContext) {
        for timer in 0..TIMERS {
            let at = self.control.timers[timer];
            if at != self.timers_set[timer] {
                self.timers_set[timer] = at;
                if at != Time::MAX {
                    cx.set_timer(at.max(cx.now()), slot * TOKENS + timer as u32);
                }
            }
        }
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
            timeouts: self.timeouts,
            group: self.group,
            transport: self.transport,
            deadline: self.deadline,
            until: finish.unwrap_or(self.start),
        }
    }
}

/// A packet to send, cut from what a queue pair has.
#[derive(Debug, Clone, Copy)]
pub struct Cut {
    /// Its first byte.
    pub seq: u64,
    pub payload: u16,
    /// What it says of its place in the flow ([`flag::LAST`], and [`FIRST`](super::FIRST) where flows follow each other).
    pub flags: u8,
    /// Bytes that its flow has left.
    pub left: u64,
}

impl Cut {
    /// A packet that begins at byte `seq` of a flow that goes up to `end`.
    #[inline]
    pub fn of_flow(seq: u64, end: u64, acknowledged: u64, mtu: u64) -> Cut {
        let payload = mtu.min(end - seq);
        let flags = if seq + payload == end { flag::LAST } else { 0 };
        Cut { seq, payload: payload as u16, flags, left: end - acknowledged }
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

/// A packet of a flow of `size` bytes, or of a stream of several flows.
fn numbered(number: u64, stream: Option<&Stream>, size: u64, mtu: u64) -> Numbered {
    let end = stream.map_or(size, |stream| stream.end_of_flow_at(number * mtu));
    Numbered { number, payload: mtu.min(end.saturating_sub(number * mtu)) as u16 }
}
