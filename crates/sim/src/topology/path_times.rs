//! Properties of paths: hops, delays, rates; and from them the base RTT of the network and its maximum BDP.
//!
//! The base RTT of an ordered pair is twice the sum of the link delays plus, in one direction, the time to
//! send one packet's payload on every hop. Source: the HPCC authors' simulator, which uses the maximum over
//! all pairs for every flow (their papers write T = 13 us for 12.24 us); the window is that time multiplied
//! by the bottleneck's rate.

use rustc_hash::FxHashMap;

use super::{HostId, LinkId, NodeId, Routes, Topology};
use crate::units::{Rate, Time};

/// A path from host to host along the first next hops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Path {
    /// Number of links.
    pub hops: u32,
    /// Sum of the propagation delays in one direction.
    pub delay: Time,
    /// Minimum rate on the path.
    pub bottleneck: Rate,
    /// The rate of the first link.
    pub first: Rate,
}

/// Computes paths of pairs of hosts. Contains the ports of the topology, so that a query allocates nothing.
pub struct PathTimes<'t> {
    topology: &'t Topology,
    routes: &'t Routes,
    ports: Vec<Vec<(LinkId, NodeId)>>,
}

impl<'t> PathTimes<'t> {
    pub fn new(topology: &'t Topology, routes: &'t Routes) -> PathTimes<'t> {
        PathTimes { topology, routes, ports: topology.ports() }
    }

    /// Links from `src` to `dst`, always by the first next hop; empty if there is no path or both are the
    /// same host.
    pub fn links(&self, src: HostId, dst: HostId) -> impl Iterator<Item = LinkId> + '_ {
        let mut node = self.routes.host_node(src);
        std::iter::from_fn(move || {
            let port = *self.routes.next_hops(node, dst).first()?;
            let (link, next) = self.ports[node as usize][port as usize];
            node = next;
            Some(link)
        })
    }

    /// The path from `src` to `dst`; none if there is no path or both are the same host.
    pub fn pair(&self, src: HostId, dst: HostId) -> Option<Path> {
        let mut path: Option<Path> = None;
        for link in self.links(src, dst) {
            let link = &self.topology.links[link as usize];
            let so_far =
                path.unwrap_or(Path { hops: 0, delay: Time::ZERO, bottleneck: link.rate, first: link.rate });
            path = Some(Path {
                hops: so_far.hops + 1,
                delay: so_far.delay.saturating_add(link.delay),
                bottleneck: so_far.bottleneck.min(link.rate),
                ..so_far
            });
        }
        path
    }

    /// Sum of the times to transmit `bytes` on every link of the path (store and forward, no propagation).
    ///
    /// Each hop is rounded up to a picosecond; with `whole_ns`, down to a nanosecond (integer division, as in
    /// the HPCC authors' simulator).
    pub fn transmission_times(&self, src: HostId, dst: HostId, bytes: u64, whole_ns: bool) -> Time {
        let hop = |link: LinkId| sending_time(self.topology.links[link as usize].rate, bytes, whole_ns);
        self.links(src, dst).map(hop).fold(Time::ZERO, Time::saturating_add)
    }

    /// Base RTT of a pair for packets of this payload.
    pub fn base_rtt(&self, src: HostId, dst: HostId, payload: u64, whole_ns: bool) -> Option<Time> {
        let path = self.pair(src, dst)?;
        let there = path.delay.saturating_add(path.delay);
        Some(there.saturating_add(self.transmission_times(src, dst, payload, whole_ns)))
    }

    /// One host, or two if there are several, of each set of hosts with equal links.
    ///
    /// Equal links lead to the same switches, port by port, at the same rates and delays. All paths between
    /// two sets have the same times, so that these hosts represent all.
    pub fn representatives(&self) -> Vec<HostId> {
        let mut seen: FxHashMap<Attachment, u32> = FxHashMap::default();
        let mut chosen = Vec::new();
        for host in 0..self.routes.hosts() as HostId {
            let ports = &self.ports[self.routes.host_node(host) as usize];
            let access = self.routes.access_ports(host).iter().map(|&port| {
                let (link, switch) = ports[port as usize];
                let link = &self.topology.links[link as usize];
                (switch, link.rate, link.delay)
            });
            let alike = seen.entry((self.routes.shared_target(host), access.collect())).or_default();
            *alike += 1;
            if *alike <= 2 {
                chosen.push(host);
            }
        }
        chosen
    }
}

/// The links of a host: its shared target, and the switch, rate and delay of each port.
type Attachment = (Option<u32>, Vec<(NodeId, Rate, Time)>);

/// Returns the maximum base RTT of all pairs of hosts, and the maximum product of a pair's base RTT and its
/// bottleneck, in bytes.
///
/// `whole_ns` truncates the time of each hop to a nanosecond, as the HPCC authors' simulator does. Both are
/// zero if no two hosts are connected.
pub fn max_base_rtt(topology: &Topology, routes: &Routes, payload: u64, whole_ns: bool) -> (Time, u64) {
    let times = PathTimes::new(topology, routes);
    let hosts = times.representatives();
    let mut costs = Costs::new(&times, payload, whole_ns);
    let (mut longest, mut largest) = (Time::ZERO, 0);
    for &dst in &hosts {
        costs.start(dst);
        for &src in hosts.iter().filter(|&&src| src != dst) {
            let Some(cost) = costs.from(routes.host_node(src)) else { continue };
            let rtt = cost.delay.saturating_add(cost.delay).saturating_add(cost.sending);
            longest = longest.max(rtt);
            largest = largest.max(cost.bottleneck.bytes_in(rtt).0);
        }
    }
    (longest, largest)
}

/// Time to send this number of bytes: rounded up to a picosecond, or down to a nanosecond.
fn sending_time(rate: Rate, bytes: u64, whole_ns: bool) -> Time {
    match whole_ns {
        true => Time::from_ns((u128::from(bytes) * 8_000_000_000 / u128::from(rate.0)) as u64),
        false => rate.transmission_time(bytes),
    }
}

/// Times and rates of the path from a node to a host.
#[derive(Debug, Clone, Copy)]
struct Cost {
    delay: Time,
    sending: Time,
    bottleneck: Rate,
}

/// Costs to one host at a time. First next hops form a tree, so that each node is visited once per host.
struct Costs<'p, 't> {
    times: &'p PathTimes<'t>,
    /// By link.
    sending: Vec<Time>,
    dst: HostId,
    /// By node; none if not yet known.
    known: Vec<Option<Cost>>,
    /// Scratch: the path to the nearest node with known cost.
    path: Vec<(NodeId, LinkId)>,
}

impl<'p, 't> Costs<'p, 't> {
    fn new(times: &'p PathTimes<'t>, bytes: u64, whole_ns: bool) -> Costs<'p, 't> {
        let sending = times.topology.links.iter().map(|link| sending_time(link.rate, bytes, whole_ns));
        let known = vec![None; times.topology.nodes.len()];
        Costs { times, sending: sending.collect(), dst: 0, known, path: Vec::new() }
    }

    /// Starts the computation of costs to `dst`.
    fn start(&mut self, dst: HostId) {
        self.dst = dst;
        self.known.fill(None);
        let nothing = Cost { delay: Time::ZERO, sending: Time::ZERO, bottleneck: Rate(u64::MAX) };
        self.known[self.times.routes.host_node(dst) as usize] = Some(nothing);
    }

    /// None if there is no path.
    fn from(&mut self, node: NodeId) -> Option<Cost> {
        let mut at = node;
        self.path.clear();
        let mut cost = loop {
            if let Some(cost) = self.known[at as usize] {
                break cost;
            }
            let port = *self.times.routes.next_hops(at, self.dst).first()?;
            let (link, next) = self.times.ports[at as usize][port as usize];
            self.path.push((at, link));
            at = next;
        };
        for &(node, link) in self.path.iter().rev() {
            let sending = self.sending[link as usize];
            let link = &self.times.topology.links[link as usize];
            cost = Cost {
                delay: cost.delay.saturating_add(link.delay),
                sending: cost.sending.saturating_add(sending),
                bottleneck: cost.bottleneck.min(link.rate),
            };
            self.known[node as usize] = Some(cost);
        }
        Some(cost)
    }
}

#[cfg(test)]
mod tests;
