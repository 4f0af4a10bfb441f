//! Flows that a connection carries one after the other, as its sender keeps them: each is a message, whose last byte ends a segment.
//!
//! A connection that carries one flow has none of this. Packets are counted to the flow whose bytes they have.

use crate::measure::FlowRecord;
use crate::units::Time;
use crate::workload::{FlowId, FlowSpec};
use std::collections::VecDeque;

/// A flow on a connection that stays open.
#[derive(Debug, Clone, Copy)]
pub struct Message {
    pub flow: FlowId,
    pub spec: FlowSpec,
    /// When it was given to the connection.
    pub start: Time,
    /// Behind its last byte in the stream.
    pub end: u64,
    packets_sent: u64,
    packets_retransmitted: u64,
    timeouts: u32,
}

impl Message {
    /// Its first byte in the stream.
    pub fn first(&self) -> u64 {
        self.end - self.spec.size
    }

    pub fn new(flow: FlowId, spec: &FlowSpec, start: Time) -> Message {
        Message { flow, spec: *spec, start, end: 0, packets_sent: 0, packets_retransmitted: 0, timeouts: 0 }
    }

    /// A packet with bytes of it leaves.
    pub fn count(&mut self, again: bool) {
        self.packets_sent += 1;
        self.packets_retransmitted += u64::from(again);
    }

    pub fn packets_retransmitted(&self) -> u64 {
        self.packets_retransmitted
    }

    pub fn record(&self, src: u32, finish: Option<Time>) -> FlowRecord {
        FlowRecord {
            finish,
            packets_sent: self.packets_sent,
            packets_retransmitted: self.packets_retransmitted,
            timeouts: self.timeouts,
            ..FlowRecord::of(self.flow, &self.spec, src, self.start)
        }
    }
}

/// The messages of a stream that are not acknowledged to their ends.
#[derive(Debug, Default)]
pub struct Messages {
    waiting: VecDeque<Message>,
    /// Bytes of all messages so far.
    length: u64,
}

impl Messages {
    /// Appends a message to the stream.
    pub fn push(&mut self, message: Message) {
        self.length += message.spec.size;
        self.waiting.push_back(Message { end: self.length, ..message });
    }

    /// The next message begins a packet: the stream goes on at a whole number of packets.
    pub fn begin_packet(&mut self, mtu: u64) {
        self.length = self.length.next_multiple_of(mtu);
    }

    /// The message that has this byte, or the next one behind it.
    pub fn at(&self, byte: u64) -> Option<&Message> {
        self.waiting.get(self.place(byte))
    }

    pub fn at_mut(&mut self, byte: u64) -> Option<&mut Message> {
        let place = self.place(byte);
        self.waiting.get_mut(place)
    }

    /// Mostly the first message, or the second one while the first is in flight.
    #[inline]
    fn place(&self, byte: u64) -> usize {
        let ends = |place: usize| self.waiting.get(place).is_some_and(|message| message.end <= byte);
        match (0..2).find(|&place| !ends(place)) {
            Some(place) => place,
            None => self.waiting.partition_point(|message| message.end <= byte),
        }
    }

    /// Where the first message ends that is not acknowledged.
    pub fn first_end(&self) -> Option<u64> {
        self.waiting.front().map(|message| message.end)
    }

    /// Bytes of all messages so far.
    pub fn length(&self) -> u64 {
        self.length
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub fn carries(&self, flow: FlowId) -> bool {
        self.waiting.iter().any(|message| message.flow == flow)
    }

    /// A message ends before this byte.
    pub fn end_at(&self, byte: u64) -> bool {
        self.waiting.iter().any(|message| message.end == byte)
    }

    /// A packet leaves that begins with this byte. One of what is acknowledged counts for the message that is first in line; false:
    /// none is, and it counts for no flow.
    pub fn count(&mut self, first: u64, again: bool) -> bool {
        let message = self.at_mut(first);
        message.map(|message| message.count(again)).is_some()
    }

    /// A timeout of the connection expires: it counts for the message that is first in line.
    pub fn count_timeout(&mut self) {
        if let Some(message) = self.waiting.front_mut() {
            message.timeouts += 1;
        }
    }

    /// The next message of which everything is acknowledged; it is no longer kept.
    pub fn take(&mut self, acknowledged: u64) -> Option<Message> {
        self.waiting.front().filter(|message| message.end <= acknowledged)?;
        self.waiting.pop_front()
    }

    /// Those that are not acknowledged to their ends.
    pub fn iter(&self) -> impl Iterator<Item = &Message> {
        self.waiting.iter()
    }
}

#[cfg(test)]
mod tests;
