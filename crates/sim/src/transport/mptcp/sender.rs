//! A connection at its initiator: its stream, its subflows, and who of them gets what.

use super::packets;
use super::scheduler::{self, Order};
use super::stream::{Given, MAX_SUBFLOWS, Stream, is_slower};
use crate::congestion::window::coupled::Subflow;
use crate::congestion::window::{State, WindowController};
use crate::measure::FlowRecord;
use crate::packet::{Packet, flag};
use crate::transport::messages::Messages;
use crate::transport::mptcp::parameters::{MptcpConfig, SchedulerKind};
use crate::transport::tcp::outgoing::Outgoing;
use crate::units::{Rate, Time};
use crate::wire::mptcp::{MptcpOption, Version, code, sender_of};
use crate::workload::{FlowId, FlowSpec};
use std::collections::VecDeque;

/// Where a subflow stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Its SYN is on its way.
    Opening,
    /// The third packet of its join is, and must be confirmed.
    Proving,
    Up,
    /// Given up, or refused.
    Gone,
}

/// The place of a subflow that was never opened.
const NOWHERE: u32 = u32::MAX;

/// One of a connection's subflows.
#[derive(Debug)]
pub struct Path {
    /// Its place among the connections that send from here.
    pub slot: u32,
    /// The port that it uses; another one whenever it is opened anew.
    pub port: u8,
    pub standing: Standing,
    /// Of its join.
    pub nonce: u32,
    /// What the third packet of its handshake has.
    pub third: Option<MptcpOption>,
    /// What it was given and has not got acknowledged: first byte on the subflow, and what it was.
    given: VecDeque<(u64, Given)>,
    /// How many of these, at the end, have not left.
    held: usize,
    /// The next piece that it carries, where every subflow carries everything.
    cursor: u64,
    /// When its window was halved last for holding up the others.
    penalised: Time,
    /// Its smoothed pacing rate, which the scheduler of Linux keeps.
    pace: Option<Rate>,
    /// The largest window that it has had, where the scheduler looks at its buffer.
    widest: u64,
    /// Payload that left on it, whatever was sent again not counted.
    pub bytes: u64,
    /// When it is opened again at the earliest, once it is gone; [`Time::MAX`]: never.
    pub retry: Time,
    /// Another one had its number before.
    pub reopened: bool,
    /// Its NIC has no link: nothing leaves on it, so that nothing of it can time out.
    pub cut_off: bool,
}

impl Path {
    pub fn new(slot: u32, port: u8, nonce: u32) -> Path {
        Path {
            slot,
            port,
            standing: Standing::Opening,
            nonce,
            third: None,
            given: VecDeque::new(),
            held: 0,
            cursor: 0,
            penalised: Time::ZERO,
            pace: None,
            widest: 0,
            bytes: 0,
            retry: Time::MAX,
            reopened: false,
            cut_off: false,
        }
    }

    /// One that waits for its NIC, from `now` on.
    pub fn waiting(now: Time) -> Path {
        Path { standing: Standing::Gone, retry: now, ..Path::new(NOWHERE, 0, 0) }
    }

    /// The same, opened where another one is gone.
    pub fn in_place_of(self, closed: &Path) -> Path {
        Path { bytes: closed.bytes, reopened: closed.slot != NOWHERE, ..self }
    }

    /// Everything below this byte of the subflow has been acknowledged.
    pub fn release(&mut self, acknowledged: u64) {
        // Segments are acknowledged whole.
        while self.given.front().is_some_and(|&(first, _)| first < acknowledged) {
            self.given.pop_front();
        }
    }

    /// What the segment with this first byte is.
    fn piece(&self, first: u64) -> Option<Given> {
        let after = self.given.partition_point(|given| given.0 <= first);
        Some(self.given.get(after.checked_sub(1)?)?.1)
    }

    /// The next piece that leaves on it for the first time.
    #[inline]
    fn next_piece(&self) -> Option<u64> {
        let at = self.given.len() - self.held;
        self.given.get(at).map(|(_, given)| given.piece)
    }

    /// Pieces that it was given and has not got acknowledged.
    pub fn unacknowledged(&self) -> impl Iterator<Item = u64> + '_ {
        self.given.iter().map(|(_, given)| given.piece)
    }

    /// Pieces that it was given and that have not left on it.
    pub fn held(&self) -> impl Iterator<Item = u64> + '_ {
        self.unacknowledged().skip(self.given.len() - self.held)
    }

    /// The scheduler considers it: it is up and has a link, and nothing of it has timed out, or in Linux it is not stale.
    fn is_active(&self, outgoing: &Outgoing, config: &MptcpConfig) -> bool {
        let timeouts = if config.scheduler == SchedulerKind::Linger { scheduler::STALE } else { 1 };
        self.standing == Standing::Up && !self.cut_off && outgoing[self.slot].timeouts < timeouts
    }

    /// Its window, or in Linux its buffer, has room for a segment.
    fn has_room(&self, outgoing: &Outgoing, config: &MptcpConfig) -> bool {
        let mss = u64::from(config.tcp.mss);
        match config.scheduler {
            SchedulerKind::Linger => self.buffered(outgoing) < scheduler::buffer(self.widest, mss),
            _ => self.buffered(outgoing) == 0 || outgoing[self.slot].room() >= mss,
        }
    }

    /// Bytes that it was given and that are not acknowledged.
    fn buffered(&self, outgoing: &Outgoing) -> u64 {
        let tcp = &outgoing[self.slot];
        tcp.board.outstanding() + tcp.source.unsent(tcp.board.next())
    }

    /// How long its buffer lasts at its smoothed pacing rate.
    fn linger(&self, outgoing: &Outgoing) -> Time {
        scheduler::linger(self.buffered(outgoing), self.pace.or_else(|| outgoing[self.slot].window_rate()))
    }
}

/// A connection that sends from here.
#[derive(Debug)]
pub struct Sender {
    pub flow: FlowId,
    pub spec: FlowSpec,
    pub start: Time,
    pub version: Version,
    /// Its own, and the other end's once that is known.
    pub keys: [u64; 2],
    pub stream: Stream,
    /// Flows that it carries one after the other, if it stays open; `flow` is the first of them.
    pub messages: Option<Box<Messages>>,
    pub paths: Vec<Path>,
    /// Subflows opened so far.
    pub opened: u32,
    /// The NIC that the first of them left by.
    pub first_nic: u32,
    /// Data have been acknowledged, so the other end knows both keys; or there are none.
    pub confirmed: bool,
    /// It fell back to TCP.
    pub plain: bool,
    /// The keys were sent last.
    pub keys_sent: Time,
    /// How often they were sent again because nothing was heard.
    pub unanswered: u32,
    /// Whose turn it is.
    turn: usize,
    /// What is left of the burst of the subflow before that, as Linux has it.
    burst: u64,
    /// Of subflows that are gone.
    packets_sent: u64,
    packets_retransmitted: u64,
    /// Timeouts of all its subflows.
    pub timeouts: u32,
    /// Packets and payload that had been sent on another subflow before.
    copies: u64,
    pub reinjected: u64,
    /// Packets of the set-up were sent twice.
    pub repeated: bool,
    pub over: bool,
}

impl Sender {
    pub fn new(flow: FlowId, spec: &FlowSpec, config: &MptcpConfig, key: u64, now: Time) -> Sender {
        Sender {
            flow,
            spec: *spec,
            start: now,
            version: version(config),
            keys: [key, 0],
            stream: Stream::new(spec.size, config.tcp.mss, config.tcp.send_buffer),
            messages: None,
            paths: Vec::with_capacity(usize::from(config.subflows)),
            opened: 0,
            first_nic: 0,
            confirmed: false,
            plain: false,
            keys_sent: Time::ZERO,
            unanswered: 0,
            turn: 0,
            burst: 0,
            packets_sent: 0,
            packets_retransmitted: 0,
            timeouts: 0,
            copies: 0,
            reinjected: 0,
            repeated: false,
            over: false,
        }
    }

    /// The subflow that gets something next, and what.
    pub fn choose(&mut self, outgoing: &Outgoing, config: &MptcpConfig, now: Time) -> Option<(usize, Given)> {
        if config.scheduler == SchedulerKind::Linger {
            return self.choose_by_linger(outgoing, config, now);
        }
        let times = self.paths.iter().map(|path| {
            let asked = path.is_active(outgoing, config) && path.has_room(outgoing, config);
            asked.then(|| outgoing[path.slot].rtt.smoothed().unwrap_or(Time::ZERO))
        });
        let order = Order::new(config.scheduler, times, self.turn);
        for at in order.subflows() {
            let given = match config.scheduler {
                SchedulerKind::Redundant => self.stream.copy_for(at, self.paths[at].cursor),
                _ => self.stream.next_for(at).or_else(|| self.unblock(at, outgoing, config, now)),
            };
            if let Some(given) = given {
                self.turn = at + 1;
                return Some((at, given));
            }
        }
        None
    }

    /// The same by the rule of Linux: the minimum linger time is that of all active subflows, and while the buffer of the subflow that
    /// has it is full, no other one gets new data. That wait ends: the subflow's buffer drains, or those of others do, until one of
    /// them has the minimum, or the subflow becomes stale.
    fn choose_by_linger(
        &mut self,
        outgoing: &Outgoing,
        config: &MptcpConfig,
        now: Time,
    ) -> Option<(usize, Given)> {
        if let Some(given) = self.burst_continues(outgoing, config, now) {
            return Some((self.turn - 1, given));
        }
        let active = |path: &Path| path.is_active(outgoing, config).then(|| path.linger(outgoing));
        let order = Order::new(config.scheduler, self.paths.iter().map(active), self.turn);
        // Linux sends again on subflows alone that have nothing else to send.
        let mut idle = order.subflows().filter(|&at| self.paths[at].buffered(outgoing) == 0);
        let again = idle.find_map(|at| Some((at, self.stream.again_for(at)?)));
        let (at, given) = again.or_else(|| {
            let at = order.subflows().next().filter(|&at| self.paths[at].has_room(outgoing, config))?;
            Some((at, self.new_or_unblocking(at, outgoing, config, now)?))
        })?;
        self.turn = at + 1;
        self.begin_burst(at, &given, outgoing);
        Some((at, given))
    }

    /// In Linux, buffers grow with windows; that of the connection is those of its subflows together.
    pub fn size_buffers(&mut self, outgoing: &Outgoing, config: &MptcpConfig) {
        if config.scheduler != SchedulerKind::Linger {
            return;
        }
        let mut all = 0;
        for path in self.paths.iter_mut().filter(|path| path.standing == Standing::Up) {
            path.widest = path.widest.max(outgoing[path.slot].window.cwnd);
            all += scheduler::reserved(path.widest, u64::from(config.tcp.mss));
        }
        self.stream.set_buffer(config.tcp.send_buffer.min(all));
    }

    /// What the subflow that had the last segment gets, if its burst has not ended and its buffer has room.
    fn burst_continues(&mut self, outgoing: &Outgoing, config: &MptcpConfig, now: Time) -> Option<Given> {
        let path = self.paths.get(self.turn.checked_sub(1)?)?;
        if self.burst == 0 || !path.is_active(outgoing, config) || !path.has_room(outgoing, config) {
            return None;
        }
        let given = self.new_or_unblocking(self.turn - 1, outgoing, config, now)?;
        self.burst = self.burst.saturating_sub(u64::from(given.length));
        Some(given)
    }

    fn new_or_unblocking(
        &mut self,
        at: usize,
        outgoing: &Outgoing,
        config: &MptcpConfig,
        now: Time,
    ) -> Option<Given> {
        self.stream.new_for(at).or_else(|| self.unblock(at, outgoing, config, now))
    }

    /// The piece that holds the shared window or the send buffer up, for a subflow with room, unless one that carries
    /// it gets it across in good time.
    fn unblock(&mut self, at: usize, outgoing: &Outgoing, config: &MptcpConfig, now: Time) -> Option<Given> {
        if !config.opportunistic {
            return None;
        }
        let blocking = self.stream.blocking(at)?;
        let own = &outgoing[self.paths[at].slot].rtt;
        let mut carriers = self.paths.iter().enumerate().filter(|(other, _)| blocking.on & 1 << other != 0);
        let held_up = carriers.all(|(_, path)| blocking.is_held_up(&outgoing[path.slot].rtt, own, now));
        held_up.then(|| self.stream.unblock(at, blocking))
    }

    fn begin_burst(&mut self, at: usize, given: &Given, outgoing: &Outgoing) {
        let path = &mut self.paths[at];
        let rate = outgoing[path.slot].window_rate();
        path.pace = scheduler::smoothed(path.pace, rate, path.buffered(outgoing));
        self.burst = scheduler::BURST.saturating_sub(u64::from(given.length));
    }

    /// A subflow takes what it was given.
    pub fn hand(&mut self, at: usize, given: &Given, outgoing: &mut Outgoing) {
        let path = &mut self.paths[at];
        let first = outgoing[path.slot].source.write(u64::from(given.length));
        path.given.push_back((first, *given));
        path.held += 1;
        path.cursor = given.piece + 1;
    }

    /// Whose turn it is when the NIC lets subflow `at` send: of those that may send by that NIC, the one with the earliest piece of the
    /// stream. So a NIC that is slower than the windows sends the stream in order. A turn for every subflow would leave what one
    /// with a large window was given behind what the others were given later: the end of a flow behind the beginning of the next.
    pub fn in_order(&self, at: usize, outgoing: &Outgoing, now: Time) -> usize {
        let tcp = &outgoing[self.paths[at].slot];
        if tcp.board.has_lost() || tcp.probe.wanted {
            // What it sends again is earlier than all that.
            return at;
        }
        let nic = tcp.nic;
        let (mut chosen, mut earliest) = (at, self.paths[at].next_piece());
        for (other, path) in self.paths.iter().enumerate() {
            let Some(piece) = path.next_piece().filter(|_| path.standing == Standing::Up) else { continue };
            let earlier = earliest.is_some_and(|earliest| piece < earliest);
            if earlier && outgoing[path.slot].nic == nic && outgoing.may_send(path.slot, now) {
                (chosen, earliest) = (other, Some(piece));
            }
        }
        chosen
    }

    /// Halves the windows of the slower subflows that hold up what subflow `by` has to send for them, but for those that repair a loss, and
    /// once a round trip: NSDI 2012, §4.2; states and thresholds as in the scheduler of multipath-tcp.org, which counts the round trip
    /// of the faster one, and takes for slower whatever has a longer one. Out of slow start the threshold is halved too; a
    /// window that was cut to it again and again would not grow back.
    pub fn penalise(&mut self, by: usize, given: &Given, outgoing: &mut Outgoing, now: Time) {
        let slot = self.paths[by].slot;
        for (at, path) in self.paths.iter_mut().enumerate() {
            if given.unblocks & 1 << at == 0 || at == by || path.standing != Standing::Up {
                continue;
            }
            let slower = is_slower(&outgoing[path.slot].rtt, &outgoing[slot].rtt);
            let theirs = outgoing[path.slot].rtt.smoothed().unwrap_or(Time::ZERO);
            let open = outgoing[path.slot].state == State::Open;
            if open && slower && now >= path.penalised.saturating_add(theirs) {
                path.penalised = now;
                let window = &mut outgoing[path.slot].window;
                if !window.in_slow_start() {
                    window.ssthresh = (window.ssthresh / 2).max(2 * window.mss);
                }
                window.cwnd = (window.cwnd / 2).max(window.mss);
            }
        }
    }

    /// Shows the law of a subflow all of them; `seen` is room for them.
    pub fn couple(&self, own: usize, outgoing: &mut Outgoing, seen: &mut Vec<Subflow>) {
        seen.clear();
        let mut place = 0;
        for (at, path) in self.paths.iter().enumerate().filter(|(_, path)| path.standing == Standing::Up) {
            if at == own {
                place = seen.len();
            }
            let tcp = &outgoing[path.slot];
            let recovers = tcp.state == State::Recovery;
            seen.push(Subflow {
                window: if recovers { tcp.window.ssthresh } else { tcp.window.cwnd },
                rtt: tcp.rtt.smoothed().unwrap_or(Time::from_ms(1)),
                between_losses: tcp.law.between_losses(),
            });
        }
        outgoing[self.paths[own].slot].law.couple(seen, place);
    }

    /// A segment of a subflow leaves: says in the packet which bytes of the connection it has. False: it counts for no flow, as all
    /// flows so far have been acknowledged for the connection, on other subflows.
    pub fn label(&mut self, at: usize, packet: &mut Packet, repeated: bool, now: Time) -> bool {
        let path = &mut self.paths[at];
        let Some(given) = path.piece(packet.seq) else { return self.messages.is_none() };
        packet.sender = sender_of(path.slot, path.port);
        packet.aux = given.start as u32;
        packet.flags |= if given.last { flag::LAST } else { 0 };
        packet.flags |= if self.plain { code::PLAIN << flag::CODE_SHIFT } else { 0 };
        let copied = !repeated && self.stream.leaves(given.piece, now);
        let counts = match &mut self.messages {
            Some(messages) => messages.count(given.start, repeated || copied),
            None => true,
        };
        if repeated {
            return counts;
        }
        debug_assert_eq!(path.next_piece(), Some(given.piece));
        path.held -= 1;
        path.bytes += u64::from(packet.payload);
        if copied {
            self.copies += 1;
            self.reinjected += u64::from(packet.payload);
        }
        counts
    }

    /// A timeout of one of its subflows has expired.
    pub fn count_timeout(&mut self) {
        self.timeouts += 1;
        if let Some(messages) = &mut self.messages {
            messages.count_timeout();
        }
    }

    /// A subflow is gone: others carry what it had.
    pub fn lose(&mut self, at: usize, outgoing: &Outgoing) {
        let path = &mut self.paths[at];
        let tcp = &outgoing[path.slot];
        self.packets_sent += tcp.packets_sent;
        self.packets_retransmitted += tcp.packets_retransmitted;
        path.standing = Standing::Gone;
        path.given.clear();
        path.held = 0;
        self.stream.lose(at);
    }

    /// Subflows that stand so.
    pub fn count(&self, standing: Standing) -> usize {
        self.paths.iter().filter(|path| path.standing == standing).count()
    }

    /// A subflow other than this one is up and gets answers.
    pub fn has_better(&self, than: usize, outgoing: &Outgoing) -> bool {
        let works =
            |path: &Path| path.standing == Standing::Up && !path.cut_off && outgoing[path.slot].timeouts == 0;
        self.paths.iter().enumerate().any(|(at, path)| at != than && works(path))
    }

    /// What its subflows carried, as (metric, value).
    pub fn measure(&self, mut row: impl FnMut(&'static str, f64)) {
        let used = self.paths.iter().filter(|path| path.bytes > 0).count();
        row("subflows_used", used as f64);
        row("reinjected_bytes", self.reinjected as f64);
        for (path, name) in self.paths.iter().zip(SUBFLOW_BYTES) {
            row(name, path.bytes as f64);
        }
    }

    /// What its subflows carry from now on is the next flow's.
    pub fn reset_measurement(&mut self) {
        self.reinjected = 0;
        self.paths.iter_mut().for_each(|path| path.bytes = 0);
    }

    pub fn record(&self, src: u32, finish: Option<Time>, outgoing: &Outgoing) -> FlowRecord {
        let alive = || self.paths.iter().filter(|p| p.standing != Standing::Gone).map(|p| &outgoing[p.slot]);
        let sent: u64 = alive().map(|tcp| tcp.packets_sent).sum();
        let again: u64 = alive().map(|tcp| tcp.packets_retransmitted).sum();
        FlowRecord {
            finish,
            packets_sent: self.packets_sent + sent,
            packets_retransmitted: self.packets_retransmitted + again + self.copies,
            timeouts: self.timeouts,
            ..FlowRecord::of(self.flow, &self.spec, src, self.start)
        }
    }
}

/// A metric of every subflow.
macro_rules! of_subflows {
    ($metric:literal) => {
        of_subflows!($metric: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31)
    };
    ($metric:literal: $($number:literal)*) => {
        [$(concat!("subflow", $number, $metric)),*]
    };
}

/// Payload that left on each subflow.
const SUBFLOW_BYTES: [&str; MAX_SUBFLOWS] = of_subflows!("_bytes");
/// The window of each subflow.
pub const SUBFLOW_WINDOWS: [&str; MAX_SUBFLOWS] = of_subflows!("_cwnd_bytes");

/// The version that a scenario asks for.
pub fn version(config: &MptcpConfig) -> Version {
    if config.version == 0 { Version::V0 } else { Version::V1 }
}

/// A packet's data sequence number, as the other end reckons it.
pub fn data_sequence(packet: &Packet, expected: u64) -> u64 {
    packets::whole(packet.aux, expected)
}
