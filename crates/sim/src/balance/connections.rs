//! Which connection a flow belongs to, and which of its subflows it is: what a ToR learns from the packets of set-up that pass.
//!
//! The third packet of a first handshake has both keys, and with them both tokens; a first packet that joins names a token. The
//! connection's id is the two tokens, the initiator's first. The first flow is subflow 0, those that join count up and wrap
//! after 16. The forged join that a host would reject only gets a rank, so nothing is authenticated; it is forgotten with the
//! reset that answers it. Flows that are silent for long, and the longest silent ones of a full table, are forgotten.
//!
//! Source: Benet et al., "MP-HULA", NetCompute 2018 (talk); the id, the eviction and the sizes are ours.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::subflows::SubflowMark;
use crate::wire::mptcp::{Join, MptcpOption, Version, find, token};

/// A TCP connection by its ends, whoever sends: a number of its addresses and ports that no other has.
pub type FlowKey = u64;

/// What of a TCP header counts here.
#[derive(Debug, Clone, Copy)]
pub struct Segment<'a> {
    pub flow: FlowKey,
    pub reset: bool,
    pub syn: bool,
    pub options: &'a [u8],
}

/// The tables of a ToR.
pub struct Connections {
    flows: FxHashMap<FlowKey, Known>,
    /// Connections by either token.
    tokens: FxHashMap<u32, u64>,
    live: FxHashMap<u64, Live>,
    /// Flows in the order in which they were looked at last; those that were looked at since are put behind when they come up.
    order: VecDeque<(FlowKey, u64)>,
    max: usize,
    idle: u64,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    mark: SubflowMark,
    seen: u64,
}

#[derive(Debug, Clone, Copy)]
struct Live {
    flows: u32,
    next: u8,
}

impl Connections {
    /// Room for so many flows, at least one; a flow that is silent for longer than `idle` is forgotten.
    pub fn new(max: usize, idle: u64) -> Connections {
        Connections {
            flows: FxHashMap::default(),
            tokens: FxHashMap::default(),
            live: FxHashMap::default(),
            order: VecDeque::new(),
            max: max.max(1),
            idle,
        }
    }

    /// A segment passes at a time not before the last: the mark of its flow, if it belongs to a known connection.
    pub fn see(&mut self, segment: &Segment, now: u64) -> Option<SubflowMark> {
        self.expire(now);
        if segment.reset {
            let known = self.flows.get(&segment.flow).map(|known| known.mark);
            self.forget(segment.flow);
            return known;
        }
        if let Some(known) = self.flows.get_mut(&segment.flow).filter(|_| !segment.syn) {
            known.seen = now;
            return Some(known.mark);
        }
        match find(segment.options)? {
            MptcpOption::Capable { version, sender: Some(client), receiver: Some(server), .. } => {
                let version = if version == 0 { Version::V0 } else { Version::V1 };
                let tokens = [client, server].map(|key| token(version, key));
                let connection = u64::from(tokens[0]) << 32 | u64::from(tokens[1]);
                self.tokens.extend(tokens.map(|token| (token, connection)));
                Some(self.add(segment.flow, connection, now))
            }
            MptcpOption::Join(Join::Syn { token, .. }) => {
                // The same first packet again is the same subflow.
                if let Some(known) = self.flows.get(&segment.flow) {
                    return Some(known.mark);
                }
                let connection = *self.tokens.get(&token)?;
                Some(self.add(segment.flow, connection, now))
            }
            _ => None,
        }
    }

    /// The mark of a flow that is known.
    pub fn mark_of(&self, flow: FlowKey) -> Option<SubflowMark> {
        self.flows.get(&flow).map(|known| known.mark)
    }

    /// Flows that are known.
    #[cfg(test)]
    pub fn flows(&self) -> usize {
        self.flows.len()
    }

    fn add(&mut self, flow: FlowKey, connection: u64, now: u64) -> SubflowMark {
        self.forget(flow);
        while self.flows.len() >= self.max && self.forget_oldest() {}
        let live = self.live.entry(connection).or_insert(Live { flows: 0, next: 0 });
        let mark = SubflowMark { connection, subflow: live.next };
        (live.flows, live.next) = (live.flows + 1, (live.next + 1) & 15);
        self.flows.insert(flow, Known { mark, seen: now });
        self.order.push_back((flow, now));
        mark
    }

    /// A flow has ended; with its last flow, the connection.
    fn forget(&mut self, flow: FlowKey) {
        let Some(known) = self.flows.remove(&flow) else { return };
        let connection = known.mark.connection;
        let Some(live) = self.live.get_mut(&connection) else { return };
        live.flows -= 1;
        if live.flows == 0 {
            self.live.remove(&connection);
            for token in [(connection >> 32) as u32, connection as u32] {
                if self.tokens.get(&token) == Some(&connection) {
                    self.tokens.remove(&token);
                }
            }
        }
    }

    /// Forgets the flow that has been silent longest; false if there is none.
    fn forget_oldest(&mut self) -> bool {
        while let Some((flow, seen)) = self.order.pop_front() {
            match self.flows.get(&flow) {
                Some(known) if known.seen > seen => self.order.push_back((flow, known.seen)),
                Some(_) => {
                    self.forget(flow);
                    return true;
                }
                None => {}
            }
        }
        false
    }

    /// Forgets flows that have been silent for too long.
    fn expire(&mut self, now: u64) {
        while let Some(&(flow, seen)) = self.order.front() {
            if now - seen <= self.idle {
                return;
            }
            self.order.pop_front();
            match self.flows.get(&flow) {
                Some(known) if now - known.seen <= self.idle => self.order.push_back((flow, known.seen)),
                Some(_) => self.forget(flow),
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests;
