//! What comes to a host, flow by flow: put in order before the transports see it, and counted.
//!
//! A packet that has come before others of its flow is held until they come, for `timeout` at most; then, and where a flow
//! would hold more than `buffer`, what is held goes up in order and the gap counts as a loss. A packet from before the gap goes up
//! as soon as it comes. Packets are in the order of their bytes; which of two was sent first tells whether one overtook the other, so
//! that what is sent again does not count as reordered.
//!
//! Source: He et al., "Presto", SIGCOMM 2015, §3.2 (the receiver's offload), and Cao et al., "DRB", CoNEXT 2013 (recalled).
//! Differs from the source: one timeout, where Presto's adapts to what it saw; gaps inside a cell wait as well, where Presto takes
//! them for losses at once; packets go up one by one.

use super::ResequencingConfig;
use crate::measure;
use crate::net::partition::Partition;
use crate::packet::PacketId;
use crate::units::Time;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// A flow and its sender's number for it: subflows of one flow have each their own bytes.
type Key = (u32, u32);

/// Distinct paths of a flow that are told apart.
const MAX_PATHS: usize = 256;

pub struct Resequencer {
    resequencing: Option<ResequencingConfig>,
    traces: bool,
    /// By flow, one for each of its senders.
    flows: FxHashMap<u32, Vec<(u32, Inflow)>>,
    /// By when they are given up waiting for: flows that hold packets.
    due: BTreeSet<(Time, Key)>,
    /// Of the event that was set last; [`Time::MAX`]: none is on its way.
    armed: Time,
    /// By flow, the paths that its packets came by.
    paths: FxHashMap<u32, Vec<u32>>,
    totals: measure::Receiving,
    held_bytes: u64,
}

#[derive(Default)]
struct Inflow {
    /// The byte that is next in order.
    expected: u64,
    /// By first byte.
    held: BTreeMap<u64, PacketId>,
    bytes: u64,
    deadline: Time,
    /// When the packet that was sent last of those that came was sent, and of those that went up.
    newest: Time,
    newest_up: Time,
}

impl Resequencer {
    pub fn new(resequencing: Option<ResequencingConfig>, traces: bool) -> Resequencer {
        Resequencer {
            resequencing,
            traces,
            flows: FxHashMap::default(),
            due: BTreeSet::new(),
            armed: Time::MAX,
            paths: FxHashMap::default(),
            totals: measure::Receiving::default(),
            held_bytes: 0,
        }
    }

    /// Packets are to keep a trail of their way.
    pub fn traces(&self) -> bool {
        self.traces
    }

    /// A data packet has come: what is to go up now is added to `ready`.
    pub fn take(&mut self, net: &mut Partition, id: PacketId, ready: &mut Vec<PacketId>) {
        let packet = net.packets[id];
        let key = (packet.flow, packet.sender);
        if self.traces {
            self.trace(packet.flow, net.trails.get(id));
        }
        let inflow = inflow(&mut self.flows, key);
        self.totals.packets += 1;
        self.totals.reordered += u64::from(packet.sent < inflow.newest);
        inflow.newest = inflow.newest.max(packet.sent);
        let first = ready.len();
        match self.resequencing {
            Some(config) => self.order(net, id, key, config, ready),
            None => ready.push(id),
        }
        self.count_up(net, key, &ready[first..]);
    }

    /// Holds a packet, or lets it and those behind it go up.
    fn order(
        &mut self,
        net: &mut Partition,
        id: PacketId,
        key: Key,
        config: ResequencingConfig,
        ready: &mut Vec<PacketId>,
    ) {
        let packet = net.packets[id];
        let (first, payload) = (packet.seq, u64::from(packet.payload));
        let inflow = inflow(&mut self.flows, key);
        if first <= inflow.expected || inflow.held.contains_key(&first) {
            inflow.expected = inflow.expected.max(net.next_byte(&packet));
            ready.push(id);
            if !inflow.held.is_empty() {
                self.release(net, key, false, ready);
            }
            return;
        }
        if inflow.held.is_empty() {
            inflow.deadline = net.now.saturating_add(config.timeout);
            self.due.insert((inflow.deadline, key));
        }
        inflow.held.insert(first, id);
        inflow.bytes += payload;
        let full = inflow.bytes > config.buffer.0;
        self.totals.held += 1;
        self.held_bytes += payload;
        self.totals.max_held = self.totals.max_held.max(self.held_bytes);
        if full {
            self.release(net, key, true, ready);
        }
    }

    /// Lets go up what a flow holds in order; `all`: over gaps too.
    fn release(&mut self, net: &mut Partition, key: Key, all: bool, ready: &mut Vec<PacketId>) {
        let inflow = inflow(&mut self.flows, key);
        let before = ready.len();
        while let Some((&first, &id)) = inflow.held.first_key_value() {
            if first > inflow.expected && !all {
                break;
            }
            let packet = net.packets[id];
            let payload = u64::from(packet.payload);
            inflow.held.remove(&first);
            inflow.bytes -= payload;
            self.held_bytes -= payload;
            inflow.expected = inflow.expected.max(net.next_byte(&packet));
            ready.push(id);
        }
        if ready.len() == before {
            return;
        }
        self.due.remove(&(inflow.deadline, key));
        if let (false, Some(config)) = (inflow.held.is_empty(), self.resequencing) {
            // Another gap: it is waited for from now on.
            inflow.deadline = net.now.saturating_add(config.timeout);
            self.due.insert((inflow.deadline, key));
        }
    }

    /// When the first packets are given up waiting for, if an event is to be set for it.
    pub fn alarm(&mut self) -> Option<Time> {
        let &(first, _) = self.due.first()?;
        if first >= self.armed {
            return None;
        }
        self.armed = first;
        Some(first)
    }

    /// An event has come: flows that have waited long enough let go what they hold.
    pub fn expire(&mut self, net: &mut Partition, ready: &mut Vec<PacketId>) {
        if net.now >= self.armed {
            self.armed = Time::MAX;
        }
        while let Some(&(at, key)) = self.due.first().filter(|(at, _)| *at <= net.now) {
            self.due.remove(&(at, key));
            let first = ready.len();
            self.release(net, key, true, ready);
            self.totals.expired += (ready.len() - first) as u64;
            self.count_up(net, key, &ready[first..]);
        }
    }

    /// Counts what the transports see out of order.
    fn count_up(&mut self, net: &Partition, key: Key, up: &[PacketId]) {
        let inflow = inflow(&mut self.flows, key);
        for &id in up {
            let sent = net.packets[id].sent;
            self.totals.reordered_delivered += u64::from(sent < inflow.newest_up);
            inflow.newest_up = inflow.newest_up.max(sent);
        }
    }

    /// Remembers the path that a packet came by. Trails of one switch have no choice.
    fn trace(&mut self, flow: u32, trail: u64) {
        if trail >> TRAIL_SHIFT < 2 {
            return;
        }
        let paths = self.paths.entry(flow).or_insert_with(|| {
            self.totals.flows += 1;
            Vec::new()
        });
        let path = trail as u32;
        if !paths.contains(&path) && paths.len() < MAX_PATHS {
            paths.push(path);
            self.totals.paths += 1;
        }
    }

    /// No packet of this flow can come any more.
    pub fn forget(&mut self, flow: u32) {
        self.paths.remove(&flow);
        let holds = |(_, inflow): &(u32, Inflow)| !inflow.held.is_empty();
        if self.flows.get(&flow).is_some_and(|all| !all.iter().any(holds)) {
            self.flows.remove(&flow);
        }
    }

    /// The run ends: what is held is freed.
    pub fn finish(&mut self, net: &mut Partition) {
        for (_, key) in std::mem::take(&mut self.due) {
            let inflow = inflow(&mut self.flows, key);
            for (_, id) in std::mem::take(&mut inflow.held) {
                net.discard(id);
            }
        }
    }

    pub fn add_to(&self, totals: &mut measure::Receiving) {
        let own = &self.totals;
        totals.packets += own.packets;
        totals.reordered += own.reordered;
        totals.reordered_delivered += own.reordered_delivered;
        totals.held += own.held;
        totals.expired += own.expired;
        totals.max_held = totals.max_held.max(own.max_held);
        totals.flows += own.flows;
        totals.paths += own.paths;
    }
}

/// What is known of a flow and sender; nothing yet where it is met first.
#[inline]
fn inflow(flows: &mut FxHashMap<u32, Vec<(u32, Inflow)>>, (flow, sender): Key) -> &mut Inflow {
    let all = flows.entry(flow).or_default();
    let at = all.iter().position(|(known, _)| *known == sender).unwrap_or_else(|| {
        all.push((sender, Inflow::default()));
        all.len() - 1
    });
    &mut all[at].1
}

/// Above it a trail counts the switches that a packet passed; below is a name of its path.
pub const TRAIL_SHIFT: u32 = 56;
