//! MP-HULA's part of a switch: whose subflow a packet is, and which rank that gives it.
//!
//! A ToR reads the set-up of MPTCP connections that passes and writes connection and subflow into the packets of its hosts; the
//! ToR of the receiver takes the mark out again. Every switch between them, the first one too, reads nothing else. Packets without
//! a mark are none of its business.
//!
//! Source: Benet et al., "MP-HULA", NetCompute 2018 (talk: parse, identify, correlate, mark; MPTCP_ID of 64 bits and subflow of
//! 4). That the ToR decides on the first packet, and the table of ports in use, are ours.

use super::Arrival;
use super::connections::{self, Connections, FlowKey};
use super::mp_hula::SubflowParameters;
use super::subflows::{RankRule, SubflowMark, disjoint};
use crate::engine::random::mix64;
use crate::packet::PacketKind;
use crate::wire::mptcp::{self, LONGEST};
use rustc_hash::FxHashMap;

/// Bit of a header's word that says that there is a mark in it, and the place of the subflow below.
const MARKED: u64 = 1 << 63;
const SUBFLOW: u32 = 59;

/// The word that a marked packet carries. It has the first 59 bits of the connection: what is on the wire has all 64.
pub fn word(mark: Option<SubflowMark>) -> u64 {
    let word = |mark: SubflowMark| MARKED | u64::from(mark.subflow & 15) << SUBFLOW | mark.connection >> 5;
    mark.map_or(0, word)
}

/// The mark in a word; the last five bits of the connection are 0.
pub fn mark(word: u64) -> Option<SubflowMark> {
    let read = || SubflowMark { connection: word << 5, subflow: (word >> SUBFLOW) as u8 & 15 };
    (word & MARKED != 0).then(read)
}

/// A packet at a ToR, as far as it counts here.
#[derive(Debug, Clone, Copy)]
pub struct Segment {
    pub flow: FlowKey,
    /// It ends its subflow.
    pub reset: bool,
    pub syn: bool,
    /// It belongs to the set-up of a connection, and has these options.
    pub options: Option<[u8; LONGEST]>,
}

impl Segment {
    pub fn of(arrival: &Arrival) -> Segment {
        let packet = arrival.packet;
        let control = packet.kind == PacketKind::Control;
        let (_, subflow) = mptcp::subflow_of(packet);
        Segment {
            flow: u64::from(packet.flow) << 8 | u64::from(subflow),
            reset: control && matches!(packet.code(), mptcp::code::RESET | mptcp::code::GIVEN_UP),
            syn: control && packet.code() == mptcp::code::SYN,
            options: control.then(|| arrival.options.map_or([0; LONGEST], |n| mptcp::option_bytes(&n))),
        }
    }

    fn read(&self) -> connections::Segment<'_> {
        let options = self.options.as_ref().map_or(&[][..], |options| &options[..]);
        connections::Segment { flow: self.flow, reset: self.reset, syn: self.syn, options }
    }
}

/// What a switch needs to steer subflows.
pub struct Steering {
    rule: RankRule,
    k: u32,
    /// Steps above the ToRs.
    tier: u32,
    /// Bytes of a mark.
    size: u16,
    /// Of a ToR: the subflows that it knows.
    known: Option<Connections>,
    /// Ports in use, by the place of the connection; none where ranks alone decide.
    used: Option<FxHashMap<u32, Used>>,
    /// A port counts as used so long after a packet left by it.
    lasts: u64,
    mark_bytes: u64,
}

/// The ports that a connection's subflows use at a switch, and since when. A connection whose hash meets that of another loses
/// its entry to it.
#[derive(Debug, Clone, Copy)]
struct Used {
    connection: u64,
    ports: [u32; 16],
    at: [u64; 16],
}

/// A connection, and by subflow its port and when a packet left by it.
pub type InUse = (u64, Vec<Option<(u32, u64)>>);

const NOWHERE: Used = Used { connection: 0, ports: [u32::MAX; 16], at: [0; 16] };
/// Connections that a switch with disjoint subflows remembers.
const USED: u32 = 1 << 10;

impl Steering {
    /// For a switch `tier` steps above the ToRs, one of which it is if `tor`; `lasts`: how long a port counts as used.
    pub fn new(config: &SubflowParameters, k: u32, tier: u32, tor: bool, lasts: u64) -> Steering {
        Steering {
            rule: RankRule { form: config.rank, hashed_start: config.hashed_start },
            k,
            tier,
            size: config.mark,
            known: tor.then(|| Connections::new(config.known as usize, config.idle.0)),
            used: config.disjoint.then(FxHashMap::default),
            lasts,
            mark_bytes: 0,
        }
    }

    /// A packet of one of the ToR's hosts comes in: what is written into it, and how many bytes longer that makes it if it leaves
    /// the rack.
    pub fn enters(&mut self, packet: &Segment, leaves: bool, now: u64) -> (u64, i32) {
        let Some(known) = &mut self.known else { return (0, 0) };
        let mark = known.see(&packet.read(), now).filter(|_| leaves);
        (word(mark), if mark.is_some() { i32::from(self.size) } else { 0 })
    }

    /// A packet for one of the ToR's hosts comes in from above: by how much it becomes shorter. Its set-up is read here too.
    pub fn exits(&mut self, packet: &Segment, carried: u64, now: u64) -> i32 {
        if let (Some(known), Some(_)) = (&mut self.known, packet.options) {
            known.see(&packet.read(), now);
        }
        if mark(carried).is_some() { -i32::from(self.size) } else { 0 }
    }

    /// A packet leaves for another switch.
    #[inline]
    pub fn count(&mut self, carried: u64) {
        self.mark_bytes += if carried == 0 { 0 } else { u64::from(self.size) };
    }

    /// Bytes of marks that left for other switches.
    pub fn mark_bytes(&self) -> u64 {
        self.mark_bytes
    }

    /// The mark of a subflow that this ToR knows.
    pub fn mark_of(&self, flow: FlowKey) -> Option<SubflowMark> {
        self.known.as_ref()?.mark_of(flow)
    }

    /// The table of ports in use, by place.
    pub fn used(&self) -> impl Iterator<Item = InUse> + '_ {
        let port = |used: &Used, s: usize| (used.ports[s] != u32::MAX).then(|| (used.ports[s], used.at[s]));
        let places =
            self.used.iter().flat_map(|used| (0..USED).map(|place| used.get(&place).unwrap_or(&NOWHERE)));
        places.map(move |used| (used.connection, (0..16).map(|s| port(used, s)).collect()))
    }

    /// Subflows that this ToR knows.
    #[cfg(test)]
    fn known(&self) -> usize {
        self.known.as_ref().map_or(0, Connections::flows)
    }

    /// Which of so many ports, best first, a new flowlet of a subflow takes. There must be one.
    pub fn choose(&self, mark: SubflowMark, live: &[u32], now: u64) -> usize {
        let rank = self.rule.rank(mark, self.tier, self.k, live.len() as u32);
        if !self.parts() {
            return rank as usize;
        }
        let mut taken = [false; 16];
        for (taken, &port) in taken.iter_mut().zip(live) {
            *taken = self.is_taken(mark, port, now);
        }
        disjoint(rank, &taken[..live.len().min(16)]) as usize
    }

    /// Subflows of a connection pass over ports that others of them use.
    pub fn parts(&self) -> bool {
        self.used.is_some()
    }

    /// Another subflow of the connection uses the port.
    pub fn is_taken(&self, mark: SubflowMark, port: u32, now: u64) -> bool {
        let Some(used) = self.used.as_ref().and_then(|used| used.get(&place(mark.connection))) else {
            return false;
        };
        let uses = |s: usize| used.ports[s] == port && now.saturating_sub(used.at[s]) <= self.lasts;
        used.connection == mark.connection && (0..16).any(|s| s != usize::from(mark.subflow & 15) && uses(s))
    }

    /// A packet of a subflow leaves by a port.
    #[inline]
    pub fn uses(&mut self, mark: SubflowMark, port: u32, now: u64) {
        let Some(used) = &mut self.used else { return };
        let used = used.entry(place(mark.connection)).or_insert(NOWHERE);
        if used.connection != mark.connection {
            *used = Used { connection: mark.connection, ..NOWHERE };
        }
        let subflow = usize::from(mark.subflow & 15);
        (used.ports[subflow], used.at[subflow]) = (port, now);
    }
}

fn place(connection: u64) -> u32 {
    mix64(connection) as u32 % USED
}

#[cfg(test)]
mod tests;
