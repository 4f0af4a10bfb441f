//! A flow at its receiver: what is expected next, and what is answered.

use super::parameters::RdmaConfig;
use super::selective::Reassembly;
use crate::compat::Rules;
use crate::packet::Packet;
use crate::units::Time;
use std::collections::VecDeque;

#[derive(Debug, Default)]
pub struct Receiver {
    /// Every byte below has arrived.
    pub expected: u64,
    /// Length of the flow, once its last packet has been seen.
    end: Option<u64>,
    /// The byte that the last NACK named, and until when the same one is not named again.
    nacked: Option<u64>,
    nack_after: Time,
    /// Selective repeat: what arrived beyond `expected`.
    beyond: Option<Box<Reassembly>>,
    /// What is known of the flows behind the present one, if they follow each other over the queue pair.
    ahead: Option<Box<Ahead>>,
}

/// Of a queue pair that stays open, beyond the end of the flow that is arriving.
#[derive(Debug, Default)]
struct Ahead {
    /// Where flows end whose last packets have come early, in order.
    ends: VecDeque<u64>,
    /// Selective repeat: every packet below has arrived, whichever flow it is of.
    reached: u64,
}

/// What a data packet brings its receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comes {
    New,
    /// Nothing: all of it has come before.
    Again,
    /// Nothing: go-back-N throws away what comes behind a gap.
    Refused,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Ack,
    Nack,
    Nothing,
}

impl Receiver {
    /// Of a queue pair that stays open, if `several`.
    pub fn new(several: bool) -> Receiver {
        Receiver { ahead: several.then(Box::default), ..Receiver::default() }
    }

    /// Every byte of the flow that is arriving has come.
    pub fn is_complete(&self) -> bool {
        self.end == Some(self.expected)
    }

    /// Flows follow each other over the queue pair.
    pub fn takes_several(&self) -> bool {
        self.ahead.is_some()
    }

    /// Goes on to the flow behind the one that is complete: it begins with the next packet. Bytes of it that are there.
    pub fn next_flow(&mut self, mtu: u32) -> u64 {
        let Some(ahead) = &mut self.ahead else { return 0 };
        let first = self.expected.next_multiple_of(u64::from(mtu));
        self.end = ahead.ends.pop_front();
        let reached = ahead.reached.max(first);
        self.expected = self.end.map_or(reached, |end| reached.min(end));
        self.expected - first
    }

    /// What a packet comes to, before it is taken in; to be asked of those that are not the next one in order.
    #[cold]
    pub fn sort(&self, packet: &Packet, settings: &RdmaConfig) -> Comes {
        if packet.seq < self.expected {
            return Comes::Again;
        }
        match (&self.beyond, settings.derived.selective) {
            (_, None) => Comes::Refused,
            (Some(beyond), _) if beyond.has(packet.seq / u64::from(settings.mtu)) => Comes::Again,
            _ => Comes::New,
        }
    }

    /// Takes in a data packet and says how to answer it.
    #[inline]
    pub fn take(&mut self, packet: &Packet, now: Time, settings: &RdmaConfig, rules: &Rules) -> Answer {
        let end = packet.seq + u64::from(packet.payload);
        if packet.seq == self.expected && self.beyond.is_none() {
            self.expected = end;
            if packet.is_last() {
                self.end = Some(end);
            }
            return Answer::Ack;
        }
        if settings.derived.selective.is_some() {
            return self.place(packet, settings.mtu);
        }
        if packet.seq > self.expected {
            return self.missing(now, settings.nack_interval);
        }
        Receiver::duplicate(rules)
    }

    /// How a packet is answered that has arrived before.
    pub fn duplicate(rules: &Rules) -> Answer {
        if rules.unanswered_duplicates { Answer::Nothing } else { Answer::Ack }
    }

    /// Out-of-order placement (IRN §3.1): every packet is kept and acknowledged for itself.
    fn place(&mut self, packet: &Packet, mtu: u32) -> Answer {
        if packet.seq < self.expected {
            return Answer::Ack;
        }
        if packet.is_last() {
            self.learn_end(packet.seq + u64::from(packet.payload));
        }
        let beyond = self.beyond.get_or_insert_default();
        let (first, mtu) = (self.expected / u64::from(mtu), u64::from(mtu));
        let whole = beyond.place(first, packet.seq / mtu);
        if whole > 0 {
            let reached = (first + whole) * mtu;
            self.expected = self.end.map_or(reached, |end| reached.min(end));
            if let Some(ahead) = &mut self.ahead {
                ahead.reached = reached;
            }
        }
        if beyond.is_empty() {
            self.beyond = None;
        }
        Answer::Ack
    }

    /// The last packet of a flow has come: of the present one, or early of one behind it.
    fn learn_end(&mut self, end: u64) {
        let Some(ahead) = &mut self.ahead else {
            self.end = Some(end);
            return;
        };
        let known = self.end.into_iter().chain(ahead.ends.drain(..)).chain([end]);
        let mut ends: Vec<u64> = known.collect();
        ends.sort_unstable();
        ends.dedup();
        ahead.ends = ends.into();
        self.end = ahead.ends.pop_front();
    }

    /// A gap: one NACK per missing byte and interval.
    fn missing(&mut self, now: Time, interval: Time) -> Answer {
        if self.nacked == Some(self.expected) && now < self.nack_after {
            return Answer::Nothing;
        }
        self.nacked = Some(self.expected);
        self.nack_after = now + interval;
        Answer::Nack
    }
}

#[cfg(test)]
mod tests;
