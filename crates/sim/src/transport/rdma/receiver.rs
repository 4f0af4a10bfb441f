//! A flow at its receiver: what is expected next, and what is answered.

use super::selective::Reassembly;
use crate::config::Compat;
use crate::packet::Packet;
use crate::settings::RdmaSettings;
use crate::units::Time;

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
    pub fn is_complete(&self) -> bool {
        self.end == Some(self.expected)
    }

    /// What a packet comes to, before it is taken in; to be asked of those that are not the next one in order.
    #[cold]
    pub fn sort(&self, packet: &Packet, settings: &RdmaSettings) -> Comes {
        if packet.seq < self.expected {
            return Comes::Again;
        }
        match (&self.beyond, settings.selective) {
            (_, None) => Comes::Refused,
            (Some(beyond), _) if beyond.has(packet.seq / u64::from(settings.config.mtu)) => Comes::Again,
            _ => Comes::New,
        }
    }

    /// Takes in a data packet and says how to answer it.
    #[inline]
    pub fn take(&mut self, packet: &Packet, now: Time, settings: &RdmaSettings, compat: Compat) -> Answer {
        let end = packet.seq + u64::from(packet.payload);
        if packet.seq == self.expected && self.beyond.is_none() {
            self.expected = end;
            if packet.is_last() {
                self.end = Some(end);
            }
            return Answer::Ack;
        }
        if settings.selective.is_some() {
            return self.place(packet, settings.config.mtu);
        }
        if packet.seq > self.expected {
            return self.missing(now, settings.config.nack_interval);
        }
        Receiver::duplicate(compat)
    }

    /// How a packet is answered that has arrived before.
    pub fn duplicate(compat: Compat) -> Answer {
        match compat {
            // There, a duplicate is dropped without a word, so a lost acknowledgement stays lost.
            Compat::HpccNs3 => Answer::Nothing,
            Compat::None => Answer::Ack,
        }
    }

    /// Out-of-order placement (IRN §3.1): every packet is kept and acknowledged for itself.
    fn place(&mut self, packet: &Packet, mtu: u32) -> Answer {
        if packet.is_last() {
            self.end = Some(packet.seq + u64::from(packet.payload));
        }
        if packet.seq < self.expected {
            return Answer::Ack;
        }
        let beyond = self.beyond.get_or_insert_default();
        let (first, mtu) = (self.expected / u64::from(mtu), u64::from(mtu));
        let whole = beyond.place(first, packet.seq / mtu);
        if whole > 0 {
            let reached = (first + whole) * mtu;
            self.expected = self.end.map_or(reached, |end| reached.min(end));
        }
        if beyond.is_empty() {
            self.beyond = None;
        }
        Answer::Ack
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
