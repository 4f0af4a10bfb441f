//! By which of its NICs a flow leaves a host that has several: `[host] nic_policy`.
//!
//! With `all`, flows are bound to no port. The ports of a host share one scheduler in every transport, and a port that is free takes
//! the next packet that may leave by it: one whose receiver it leads to on a shortest path. Of several free ports the one after the
//! port that sent last comes first. Packets that wait in queues of ports (acknowledgements and other control packets, and data of
//! transports that fill the queue of a NIC) wait at the port that will be free for them first.
//!
//! With the other policies,
//! a flow, or a connection of several flows, is bound to one port when it starts, among those on a shortest path to its receiver
//! whose link is up. Where none is up, all are taken to be. It moves to another when its own leads there no longer, and stays
//! there: a transport names what it sends by places ([`Transport::leaving`]), and learns of the other NIC.
//!
//! Source: UEC's simulator (next port in turn); NCCL (a channel of a GPU uses the NIC of its rail); UEC's NICs with several ports
//! (`all`: the next free port takes the next packet).

use super::{HostContext, Transport};
use crate::measure::FlowRecord;
use crate::net::PortId;
use crate::net::port::Port;
use crate::queue::QueueDiscipline;
use crate::topology::{NextHops, Topology};
use crate::units::Rate;
use crate::workload::lanes::{lane_of, nic_of};
use crate::workload::{FlowId, FlowSpec};
use rustc_hash::FxHashMap;

pub const POLICIES: &[(&str, &str)] = &[
    ("hash", "by the hash of the flow, as a switch chooses among equal paths"),
    ("round-robin", "the flows of a host take its NICs in turn"),
    (
        "by-rail",
        "a job's GPUs and channels are spread over the NICs of their host in order; other flows by hash",
    ),
    ("least-bytes", "the NIC with the fewest bytes of flows that have not ended; of equal ones the first"),
    ("all", "all of them: a NIC that is free takes the next packet of the host that may leave by it"),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NicPolicy {
    #[default]
    Hash,
    RoundRobin,
    ByLane,
    LeastBytes,
    All,
}

impl NicPolicy {
    const ALL: [NicPolicy; 5] =
        [NicPolicy::Hash, NicPolicy::RoundRobin, NicPolicy::ByLane, NicPolicy::LeastBytes, NicPolicy::All];

    /// By its name among [`POLICIES`].
    pub fn named(name: &str) -> NicPolicy {
        let at = POLICIES.iter().position(|(known, _)| *known == name);
        at.map_or(NicPolicy::Hash, |at| NicPolicy::ALL[at])
    }

    pub fn name(self) -> &'static str {
        POLICIES[self as usize].0
    }

    /// The rates at which flows can leave hosts, each once, the lowest first.
    pub fn host_rates(self, topology: &Topology) -> Vec<Rate> {
        if self == NicPolicy::All { topology.whole_host_rates() } else { topology.host_rates() }
    }

    /// A flow that starts in the same state of its host at another time takes the same NIC.
    pub fn repeats(self) -> bool {
        matches!(self, NicPolicy::Hash | NicPolicy::ByLane)
    }
}

/// By which NIC a flow or a connection leaves its host, and to whom.
#[derive(Debug, Clone, Copy)]
pub struct Leaving {
    pub nic: u16,
    pub dst: u32,
    pub hash: u32,
}

/// What hosts remember of the flows that they have bound.
#[derive(Debug, Default)]
pub struct Bindings {
    /// By the first port of a host: flows so far; under [`NicPolicy::All`] the number of the port that comes first.
    turns: FxHashMap<PortId, u32>,
    /// Bytes of flows that have not ended, by port.
    bytes: FxHashMap<PortId, u64>,
    flows: FxHashMap<FlowId, (PortId, u64)>,
    /// The highest rates that links have from now on, by port, of links whose rate an event changed.
    lasting: FxHashMap<PortId, Rate>,
}

impl Bindings {
    fn add(&mut self, flow: FlowId, port: PortId, bytes: u64) {
        *self.bytes.entry(port).or_default() += bytes;
        self.flows.insert(flow, (port, bytes));
    }

    fn remove(&mut self, flow: FlowId) -> Option<u64> {
        let (port, bytes) = self.flows.remove(&flow)?;
        self.bytes.entry(port).and_modify(|all| *all -= bytes);
        Some(bytes)
    }

    /// The link of a port has a new rate, and this one at most from now on.
    pub fn expect(&mut self, port: PortId, lasting: Rate) {
        self.lasting.insert(port, lasting);
    }

    /// The highest rate that the link of a port has from now on: a connection that begins while an event slows the
    /// link lasts, and its link with it, beyond that event.
    fn lasting(&self, port: PortId, now: Rate) -> Rate {
        self.lasting.get(&port).map_or(now, |&lasting| lasting.max(now))
    }

    fn at(&self, port: PortId) -> u64 {
        self.bytes.get(&port).copied().unwrap_or(0)
    }
}

impl HostContext<'_> {
    /// The port that a flow, and what follows on its connection, leaves by; none: nothing leads to its receiver. `hash` becomes one
    /// by which all its packets leave there.
    pub fn bind(&mut self, flow: FlowId, spec: &FlowSpec, hash: &mut u32) -> Option<PortId> {
        match self.settings.nic_policy {
            NicPolicy::Hash => return self.port_to(spec.dst, *hash),
            NicPolicy::All => return Some(self.first_port),
            _ => {}
        }
        let port = self.choose_port(spec.dst, *hash, spec.lane)?;
        *hash = self.hash_for(port, spec.dst, *hash);
        self.bound(flow, port, spec.size);
        Some(port)
    }

    /// The scheduler that a port takes packets from, among those that a transport has at its host.
    #[inline]
    pub fn scheduler_of(&self, port: PortId) -> usize {
        if self.settings.nic_policy == NicPolicy::All { 0 } else { (port - self.first_port) as usize }
    }

    /// A packet to `dst` may leave by a port whose scheduler has it.
    #[inline]
    pub fn may_leave(&self, port: PortId, dst: u32) -> bool {
        self.settings.nic_policy != NicPolicy::All || self.leads(port - self.first_port, dst)
    }

    /// A port of this host, by its number here, is on a shortest path to `dst`.
    #[cold]
    #[inline(never)]
    fn leads(&self, port: u32, dst: u32) -> bool {
        match self.map.routes.hops_from(self.rows[0], dst) {
            NextHops::None => false,
            NextHops::One(one) => one == port,
            NextHops::Many(ports) => ports.contains(&port),
        }
    }

    /// The port in whose queue a packet to `dst` waits, of a flow that is bound to `nic`.
    pub fn queue_for(&self, nic: u16, dst: u32, hash: u32) -> PortId {
        let bound = self.first_port + u32::from(nic);
        match self.settings.nic_policy {
            NicPolicy::All => self.port_to(dst, hash).unwrap_or(bound),
            _ => bound,
        }
    }

    /// The rate at which a flow that is bound to a port can leave: that of the port, or of all that lead to its receiver and are up.
    /// While an event slows a link, the rate that it has afterwards.
    pub fn rate_by(&self, port: PortId, dst: u32) -> Rate {
        let lasting = |port: PortId| self.net.bindings.lasting(port, self.net.ports[port as usize].line.rate);
        let own = lasting(port);
        if self.settings.nic_policy != NicPolicy::All {
            return own;
        }
        let all = (0..self.ports()).filter(|&local| self.leads(local, dst) && self.port(local).up);
        let rate = Rate(all.map(|local| lasting(self.first_port + local).0).sum());
        if rate.0 > 0 { rate } else { own }
    }

    /// By how many packets a paced flow to `dst` may be late and make up for it; 0: what is late stays late.
    #[inline]
    pub fn late_packets(&self, dst: u32) -> u64 {
        if self.settings.unlike_nics { self.nics_of_unlike_rates(dst) } else { 0 }
    }

    /// How many NICs that are up lead to `dst`, if their rates differ. A flow's packet may then become due
    /// while all of them are busy, and be late by the time of one packet of each; NICs of one rate become free
    /// in turn, each when a packet is due.
    #[cold]
    #[inline(never)]
    fn nics_of_unlike_rates(&self, dst: u32) -> u64 {
        let NextHops::Many(ports) = self.map.routes.hops_from(self.rows[0], dst) else { return 0 };
        let rates =
            || ports.iter().map(|&local| self.port(local)).filter(|port| port.up).map(|port| port.line.rate);
        if rates().min() == rates().max() { 0 } else { rates().count() as u64 }
    }

    fn port(&self, local: u32) -> &Port {
        &self.net.ports[(self.first_port + local) as usize]
    }

    /// The port that comes first where several are free, by its number here.
    pub fn turn(&self) -> u32 {
        self.net.bindings.turns.get(&self.first_port).copied().unwrap_or(0)
    }

    /// A packet has left by a port, by its number here: the one after it comes first.
    pub fn pass_turn(&mut self, port: u32) {
        let next = (port + 1) % self.ports();
        self.net.bindings.turns.insert(self.first_port, next);
    }

    /// Of these ports of the host the one by which a packet that is queued now leaves first: one that is up and not paused, and whose
    /// queue is empty first.
    #[cold]
    #[inline(never)]
    pub(super) fn first_free(&self, ports: &[u32]) -> Option<PortId> {
        let (turn, count) = (self.turn(), self.ports());
        let rank = |&local: &u32| {
            let port = self.port(local);
            let queued = port.line.transmission_time(port.queue.bytes());
            let free = port.busy_until.max(self.net.now).saturating_add(queued);
            (!port.up, port.paused != 0, free, (local + count - turn) % count)
        };
        ports.iter().copied().min_by_key(rank).map(|local| self.first_port + local)
    }

    /// A flow has been given to a connection that leaves by a port.
    #[inline]
    pub fn bound(&mut self, flow: FlowId, port: PortId, bytes: u64) {
        if self.settings.nic_policy == NicPolicy::LeastBytes {
            self.net.bindings.add(flow, port, bytes);
        }
    }

    /// A flow has ended.
    #[inline]
    pub fn unbind(&mut self, record: &FlowRecord) {
        if self.settings.nic_policy == NicPolicy::LeastBytes {
            self.net.bindings.remove(record.flow);
        }
    }

    /// Moves what leaves by NICs that no longer lead to its receiver to others that do; the ports that have it now. What was in
    /// flight is repeated as the transport repeats what is lost.
    pub fn move_flows(&mut self, transport: &mut impl Transport) -> Vec<PortId> {
        let (mut changed, mut flows) = (Vec::new(), Vec::new());
        let bound = self.ports() > 1 && self.settings.nic_policy != NicPolicy::All;
        let places = if bound { transport.places() } else { 0 };
        for place in 0..places {
            flows.clear();
            let Some(old) = transport.leaving(place, &mut flows) else { continue };
            let Some((port, new)) = self.another_port(old) else { continue };
            for &flow in &flows {
                if let Some(bytes) = self.net.bindings.remove(flow) {
                    self.bound(flow, port, bytes);
                }
            }
            transport.leave_by(place, new, self);
            changed.push(port);
        }
        changed.sort_unstable();
        changed.dedup();
        changed
    }

    /// Where what leaves by a NIC that no longer leads to its receiver goes, if another one does.
    fn another_port(&mut self, old: Leaving) -> Option<(PortId, Leaving)> {
        let own = u32::from(old.nic);
        if self.leads(own, old.dst) {
            return None;
        }
        // The next one that leads there.
        let port = self.choose_port(old.dst, old.hash, lane_of(own, self.ports()))?;
        let hash = match self.settings.nic_policy {
            NicPolicy::Hash => old.hash,
            _ => self.hash_for(port, old.dst, old.hash),
        };
        Some((port, Leaving { nic: (port - self.first_port) as u16, hash, ..old }))
    }

    /// A hash like this one by which packets to `dst` leave by a port.
    fn hash_for(&self, port: PortId, dst: u32, hash: u32) -> u32 {
        let NextHops::Many(ports) = self.map.routes.hops_from(self.rows[0], dst) else { return hash };
        let (count, local) = (ports.len() as u32, port - self.first_port);
        let at = ports.iter().position(|&port| port == local).unwrap_or(0) as u32;
        let hash = hash.min(u32::MAX - count);
        hash - hash % count + at
    }

    fn ports(&self) -> u32 {
        let first = &self.map.first_port;
        first[self.node as usize + 1] - first[self.node as usize]
    }

    fn choose_port(&mut self, dst: u32, hash: u32, lane: u16) -> Option<PortId> {
        let (policy, first, count) = (self.settings.nic_policy, self.first_port, self.ports());
        let by_hash = self.port_to(dst, hash)?;
        let NextHops::Many(all) = self.map.routes.hops_from(self.rows[0], dst) else { return Some(by_hash) };
        let wanted = nic_of(lane, count);
        if policy == NicPolicy::Hash || (policy == NicPolicy::ByLane && wanted.is_none()) {
            return Some(by_hash);
        }
        let ports = &self.net.ports;
        let is_up = |port: u32| ports[(first + port) as usize].up;
        let none_up = !all.iter().any(|&port| is_up(port));
        let mut able = all.iter().copied().filter(|&port| none_up || is_up(port));
        let bindings = &mut self.net.bindings;
        let port = match policy {
            NicPolicy::RoundRobin => {
                let turn = bindings.turns.entry(first).or_default();
                let at = *turn as usize % able.clone().count();
                *turn = turn.wrapping_add(1);
                able.nth(at)
            }
            NicPolicy::LeastBytes => able.min_by_key(|&port| (bindings.at(first + port), port)),
            NicPolicy::Hash | NicPolicy::ByLane | NicPolicy::All => {
                able.min_by_key(|&port| (port + count - wanted.unwrap_or(0)) % count)
            }
        };
        port.map(|port| first + port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_have_their_names() {
        for policy in NicPolicy::ALL {
            assert_eq!(NicPolicy::named(policy.name()), policy);
        }
    }
}
