//! The streams that are received at one host: their places, and their delayed acknowledgements.
//!
//! Like [`Outgoing`](super::outgoing::Outgoing) it knows nothing of flows: whose stream a packet is of, what becomes of its
//! bytes, and the window that goes with an acknowledgement, is the business of the transport that owns it.

use super::packets::{syn_timeout, turned};
use super::reading::{Reading, whole_window};
use super::receiver::{Answer, Incoming as Segment, Receiver, Reply};
use crate::packet::{Packet, PacketKind};
use crate::transport::HostContext;
use crate::transport::tcp::config::TcpConfig;
use crate::units::Time;
use rustc_hash::FxHashMap;

/// A stream among those received at a host: a flow's number, and above its 32 bits that of one of several.
pub type StreamKey = u64;

/// The streams that are received at a host and are not complete.
pub struct Incoming {
    slots: FxHashMap<StreamKey, u32>,
    streams: Vec<Stream>,
    free: Vec<u32>,
    /// A timer's token for the stream in place `slot` is `slot * tokens + token`.
    tokens: u32,
    token: u32,
}

/// A stream that is received.
pub struct Stream {
    pub key: StreamKey,
    pub receiver: Receiver,
    /// What its application has read.
    pub reading: Reading,
    /// What its acknowledgements are made of.
    pub back: Packet,
    /// When the delayed acknowledgement is due.
    due: Time,
    /// When an update of the window is due.
    update: Time,
    /// When the answer to the SYN is due once more, and how often it has been given.
    opening: Time,
    openings: u32,
    /// Of the event that looks at both.
    event: Time,
}

/// What became of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    pub slot: u32,
    /// Bytes that are in order now and were not.
    pub moved: u64,
    /// Every byte below has come.
    pub expected: u64,
    pub reply: Reply,
    /// The last byte is among them.
    pub complete: bool,
    /// All of the segment had come before.
    pub again: bool,
}

impl std::ops::Index<u32> for Incoming {
    type Output = Stream;
    fn index(&self, slot: u32) -> &Stream {
        &self.streams[slot as usize]
    }
}
impl std::ops::IndexMut<u32> for Incoming {
    fn index_mut(&mut self, slot: u32) -> &mut Stream {
        &mut self.streams[slot as usize]
    }
}

impl Incoming {
    pub fn new(tokens: u32, token: u32) -> Incoming {
        Incoming { slots: FxHashMap::default(), streams: Vec::new(), free: Vec::new(), tokens, token }
    }

    /// The place of the stream that a packet is of, which may be its first.
    #[inline]
    pub fn place(&mut self, key: StreamKey, packet: &Packet, config: &TcpConfig, cx: &HostContext) -> u32 {
        if let Some(&slot) = self.slots.get(&key) {
            return slot;
        }
        let stream = Stream {
            key,
            receiver: Receiver::new(config.ecn),
            reading: Reading::new(config),
            back: Packet {
                kind: PacketKind::Ack,
                class: config.class,
                wire_class: config.class,
                transport: cx.transport,
                ..turned(packet)
            },
            due: Time::MAX,
            update: Time::MAX,
            opening: Time::MAX,
            openings: 0,
            event: Time::MAX,
        };
        let slot = self.free.pop().unwrap_or(self.streams.len() as u32);
        match self.streams.get_mut(slot as usize) {
            Some(free) => *free = Stream { event: free.event, ..stream },
            None => self.streams.push(stream),
        }
        self.slots.insert(key, slot);
        slot
    }

    /// What must be acknowledged before a segment is taken in ([`Receiver::must_answer_before`]).
    #[inline]
    pub fn answer_before(&mut self, slot: u32, segment: &Segment) -> Option<Answer> {
        let receiver = &mut self[slot].receiver;
        receiver.must_answer_before(segment).then(|| receiver.answer())
    }

    /// Takes in a segment. To a reply of [`Reply::Now`] belongs [`answer`](Incoming::answer); for another an
    /// acknowledgement is due after a delay.
    #[inline]
    pub fn take(&mut self, slot: u32, segment: &Segment, config: &TcpConfig, cx: &mut HostContext) -> Taken {
        let Stream { receiver, reading, .. } = &mut self[slot];
        let before = receiver.expected();
        if let Some(rate) = config.application.read_rate {
            reading.resume(before, rate, cx.now());
        }
        // What is next in order is new.
        let again = segment.first != before && receiver.has((segment.first, segment.end()));
        let mut reply = receiver.take(segment, &config.ack, cx.now());
        let (expected, complete) = (receiver.expected(), receiver.is_complete());
        if reply == Reply::Later && self.updates(slot, expected, config, cx) {
            reply = Reply::Now;
        }
        if reply == Reply::Later {
            self.delay(slot, config, cx);
        }
        Taken { slot, moved: expected - before, expected, reply, complete, again }
    }

    /// A segment has come that is not answered at once: whether an update of the window is due now. One that is due later follows.
    fn updates(&mut self, slot: u32, expected: u64, config: &TcpConfig, cx: &mut HostContext) -> bool {
        let Some(rate) = config.application.read_rate else { return false };
        let stream = &mut self[slot];
        stream.update = stream.reading.update_at(expected, rate, config).unwrap_or(Time::MAX);
        let due = stream.update <= cx.now();
        if !due {
            self.look_again(slot, cx);
        }
        due
    }

    /// The acknowledgement of everything that has come.
    #[inline]
    pub fn answer(&mut self, slot: u32) -> Answer {
        let stream = &mut self[slot];
        stream.due = Time::MAX;
        stream.receiver.answer()
    }

    /// The place of a stream that is not complete.
    pub fn find(&self, key: StreamKey) -> Option<u32> {
        self.slots.get(&key).copied()
    }

    /// The window that goes with the acknowledgement of everything that has come; an update follows when there is more room.
    #[inline]
    pub fn window(&mut self, slot: u32, config: &TcpConfig, cx: &mut HostContext) -> u32 {
        let Some(rate) = config.application.read_rate else { return whole_window(config) };
        let now = cx.now();
        let stream = &mut self[slot];
        let expected = stream.receiver.expected();
        let window = stream.reading.window(expected, rate, now, config);
        let at = stream.reading.update_at(expected, rate, config);
        stream.update = at.map_or(Time::MAX, |at| at.max(now + Time(1)));
        self.look_again(slot, cx);
        window
    }

    /// A stream is over: its place is free for another.
    pub fn close(&mut self, slot: u32) {
        let stream = &mut self[slot];
        (stream.due, stream.update, stream.opening) = (Time::MAX, Time::MAX, Time::MAX);
        let key = stream.key;
        self.slots.remove(&key);
        self.free.push(slot);
    }

    /// An acknowledgement is due when the delay is over.
    fn delay(&mut self, slot: u32, config: &TcpConfig, cx: &mut HostContext) {
        let stream = &mut self[slot];
        if stream.due == Time::MAX {
            stream.due = cx.now().saturating_add(config.ack.delay);
            self.look_again(slot, cx);
        }
    }

    /// Makes sure that an event comes by the time at which something is due. One that is on its way and comes before looks again then.
    fn look_again(&mut self, slot: u32, cx: &mut HostContext) {
        let token = slot * self.tokens + self.token;
        let stream = &mut self[slot];
        let next = stream.due.min(stream.update).min(stream.opening);
        if next < stream.event || stream.event < cx.now() && next < Time::MAX {
            stream.event = next;
            cx.set_timer(next, token);
        }
    }

    /// A SYN is answered: the answer is due once more while nothing else comes ([`opened`](Incoming::opened)).
    pub fn answered(&mut self, slot: u32, config: &TcpConfig, cx: &mut HostContext) {
        let stream = &mut self[slot];
        let delay = syn_timeout(stream.openings, config);
        stream.openings += 1;
        if stream.opening == Time::MAX && stream.openings <= config.syn_retries {
            stream.opening = cx.now().saturating_add(delay);
            self.look_again(slot, cx);
        }
    }

    /// Something of the stream has come that only a sender that has the answer to its SYN sends.
    #[inline]
    pub fn opened(&mut self, slot: u32) {
        self[slot].opening = Time::MAX;
    }

    /// A timer has come: what the answer to the SYN is made of if it is due once more.
    pub fn opens_again(&mut self, slot: u32, cx: &HostContext) -> Option<Packet> {
        let stream = self.streams.get_mut(slot as usize)?;
        let due = stream.event == cx.now() && stream.opening <= cx.now();
        due.then(|| {
            (stream.event, stream.opening) = (Time::MAX, Time::MAX);
            stream.back
        })
    }

    /// A timer has come: the acknowledgement that is due now, if one is, and what it is made of. [`window`](Incoming::window) goes
    /// with it.
    pub fn on_timer(&mut self, slot: u32, cx: &mut HostContext) -> Option<(Answer, Packet)> {
        let stream = self.streams.get_mut(slot as usize)?;
        let now = cx.now();
        if stream.event != now {
            return None;
        }
        stream.event = Time::MAX;
        if now < stream.due.min(stream.update).min(stream.opening) {
            self.look_again(slot, cx);
            return None;
        }
        let owed = stream.due <= now && stream.receiver.owes() || stream.update <= now;
        (stream.due, stream.update) = (Time::MAX, Time::MAX);
        owed.then(|| (stream.receiver.answer(), stream.back))
    }
}
