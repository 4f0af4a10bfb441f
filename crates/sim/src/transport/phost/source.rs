//! A flow at its source: tokens that wait to be spent, and what was last heard from the destination.
//!
//! A source never decides how much it sends: each packet needs a live token, which names the packet. Tokens
//! expire, so that a source which is busy with another flow does not spend them long after the destination
//! has given its time to somebody else.

use super::ranking::Rank;
use crate::measure::FlowRecord;
use crate::transport::arrived::Arrived;
use crate::transport::phost::parameters::PhostConfig;
use crate::transport::silence::Silence;
use crate::units::Time;
use crate::workload::{FlowId, FlowSpec};
use std::collections::VecDeque;

/// The right to send one packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token {
    /// The last moment at which it may be spent.
    pub expires: Time,
    /// The packet that it is for.
    pub packet: u32,
    /// The destination's own count of the flow's tokens; free ones count from 0.
    pub number: u32,
}

/// What is looked at when its NIC looks for a packet comes first.
#[derive(Debug)]
#[repr(C, align(64))]
pub struct SourceFlow {
    /// By expiry, the next one to expire in front.
    tokens: VecDeque<Token>,
    /// When the last of them expires.
    last_expiry: Time,
    pub flow: FlowId,
    /// Where its packets leave.
    pub nic: u16,
    /// It is in the order: it has tokens, or had when it was last looked at.
    pub ranked: bool,
    /// Traffic class of its data.
    pub class: u8,
    /// Its place in the order of its NIC, with what is left as the destination last said.
    pub rank: Rank,
    pub silence: Silence,
    pub transport: u16,
    pub group: u16,
    pub done: bool,
    /// Its destination knows it, and asks for what it lacks.
    pub known: bool,
    pub dst: u32,
    pub packets: u32,
    pub hash: u32,
    /// Requests sent.
    pub requests: u32,
    pub size: u64,
    /// Data packets sent, those sent again among them.
    pub sent: u64,
    /// Packets that were sent once at least, and how many were sent again.
    once: Arrived,
    again: u64,
    /// Repeated requests whose earlier ones had been lost, and waits of the destination after which packets were sent
    /// again.
    pub timeouts: u32,
    /// Repeated requests of which it is not known yet whether the earlier ones had been lost.
    repeated: u32,
    /// How often the destination has waited for packets in vain, by its tokens; and what this was when a
    /// packet was last sent again.
    pub rounds: u32,
    counted: u32,
    pub start: Time,
    pub deadline: Option<Time>,
}

impl SourceFlow {
    /// A flow as it starts, without tokens; its NIC, path and times are its maker's to fill in.
    pub fn new(flow: FlowId, spec: &FlowSpec, config: &PhostConfig, rank: Rank, now: Time) -> SourceFlow {
        let packets = packets_of(spec.size, config);
        SourceFlow {
            flow,
            dst: spec.dst,
            size: spec.size,
            packets,
            tokens: VecDeque::new(),
            last_expiry: Time::ZERO,
            rank,
            ranked: false,
            nic: 0,
            hash: 0,
            class: config.data_class(packets),
            group: spec.group,
            transport: spec.transport,
            start: now,
            deadline: spec.deadline,
            sent: 0,
            once: Arrived::new(packets),
            again: 0,
            timeouts: 0,
            repeated: 0,
            rounds: 0,
            counted: 0,
            requests: 0,
            silence: Silence::starting(now, config.request_timeout),
            done: false,
            known: false,
        }
    }

    /// Takes in a token; among equals of expiry the earlier one is spent first.
    pub fn take(&mut self, token: Token) {
        // Mostly it expires last.
        if self.tokens.is_empty() || self.last_expiry <= token.expires {
            self.last_expiry = token.expires;
            return self.tokens.push_back(token);
        }
        let at = self.tokens.iter().rposition(|known| known.expires <= token.expires).map_or(0, |at| at + 1);
        self.tokens.insert(at, token);
    }

    /// Spends the live token that expires first; those that have expired are gone.
    pub fn spend(&mut self, now: Time) -> Option<Token> {
        while let Some(token) = self.tokens.pop_front() {
            if token.expires >= now {
                return Some(token);
            }
        }
        None
    }

    /// A packet leaves. Returns true if it is the first that is sent again because the destination waited in
    /// vain: a packet may be missing merely because no token was spent on it yet.
    #[inline]
    pub fn count(&mut self, packet: u32) -> bool {
        self.sent += 1;
        !self.once.take(packet) && self.count_again()
    }

    #[cold]
    fn count_again(&mut self) -> bool {
        self.again += 1;
        let timed_out = self.rounds > self.counted;
        self.counted = self.rounds;
        self.timeouts += u32::from(timed_out);
        timed_out
    }

    /// A request is sent, the first one or another.
    pub fn request(&mut self) {
        self.repeated += u32::from(self.requests > 0);
        self.requests += 1;
    }

    /// The destination has answered, or the run ends. Returns how many repeated requests count as timeouts: those that
    /// an answer waited for, because earlier packets had been `lost`.
    pub fn answered(&mut self, lost: bool) -> u32 {
        let repeated = std::mem::take(&mut self.repeated);
        let counted = if lost { repeated } else { 0 };
        self.timeouts += counted;
        counted
    }

    /// Its destination gives tokens for what it lacks, and has not got all.
    pub fn is_looked_after(&self) -> bool {
        self.known && self.once.missing() > 0
    }

    #[inline]
    pub fn has_tokens(&self) -> bool {
        !self.tokens.is_empty()
    }

    /// Tokens that may still be spent.
    pub fn tokens(&self, now: Time) -> usize {
        self.tokens.iter().filter(|token| token.expires >= now).count()
    }

    /// Some token will still be live at this time.
    pub fn can_send_at(&self, at: Time) -> bool {
        !self.tokens.is_empty() && self.last_expiry >= at
    }

    /// The flow is over, or unfinished at the end of the run.
    pub fn record(&self, src: u32, finish: Option<Time>) -> FlowRecord {
        FlowRecord {
            flow: self.flow,
            src,
            dst: self.dst,
            size: self.size,
            start: self.start,
            finish,
            ideal: Time::ZERO,
            packets_sent: self.sent,
            packets_retransmitted: self.again,
            timeouts: self.timeouts,
            group: self.group,
            transport: self.transport,
            deadline: self.deadline,
            until: finish.unwrap_or(self.start),
        }
    }
}

/// Packets of a flow of so many bytes.
pub fn packets_of(size: u64, config: &PhostConfig) -> u32 {
    u32::try_from(size.div_ceil(u64::from(config.mtu))).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
