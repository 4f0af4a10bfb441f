//! What each node and each link will have to do in a run: the flows of its traffic, walked over the routes.
//!
//! Of many flows only the first are looked at, and there a size counts up to a few times the mean: which hosts happen to send
//! the largest flows first is not typical of the rest. Of many messages of a job, which are listed rank by rank and phase by
//! phase, some of all are looked at. At every node a random next hop is taken, on many walks a flow,
//! because which path the balancer will choose is not known here.
//!
//! An estimate, not a result: it decides where the network is cut, which no result shows.

use crate::engine::random::RandomStream;
use crate::topology::{NodeId, Ports, Routes, Topology};
use crate::units::{Rate, Time};
use crate::workload::graph::JobGraph;
use crate::workload::merge::Merged;
use crate::workload::{FlowSource, FlowSpec, Traffic};

/// Flows that are looked at; in larger networks one a host, as those of a permutation come host by host.
const MAX_FLOWS: usize = 20_000;
/// Walks of all flows together, about, dealt out by size.
const WALKS: u64 = 40_000;
/// Where flows are left out, a size counts up to this many times the mean.
const MAX_OF_MEAN: u64 = 2;
/// Payload of a packet, for the estimate.
const PACKET: u64 = 1000;
/// What a packet costs a host in relation to a switch: counted with callgrind, about 750 to 516 instructions.
const HOST_COST: u64 = 3;
const SWITCH_COST: u64 = 2;
/// Every node also counts for this share of the mean, as a node that no walk passed may be used all the same.
const MIN_SHARE: u64 = 50;
/// Longer paths than this do not exist in a network that can be simulated.
const MAX_HOPS: usize = 1000;

/// Work of a run, in units of its own.
pub struct Work {
    /// Of each node.
    pub nodes: Vec<u64>,
    /// Of each link: packets in both directions.
    pub links: Vec<u64>,
    /// Packet-hops a second, acknowledgements included; 0 where nothing is sent.
    pub hops_per_second: f64,
}

impl Work {
    /// Of a network under some traffic, until `end`.
    pub fn of(topology: &Topology, routes: &Routes, traffic: &Traffic, end: Time) -> Work {
        let (large, sources): (Vec<_>, Vec<_>) =
            traffic.clone().sources.into_iter().partition(|source| is_large(source.as_ref()));
        let mut merged = Merged::new(&Traffic { sources, groups: traffic.groups.clone() });
        let limit = MAX_FLOWS.max(routes.hosts());
        let mut flows: Vec<FlowSpec> = Vec::new();
        while flows.len() < limit
            && let Some(arrival) = merged.next()
            && arrival.spec.start < end
        {
            flows.push(arrival.spec);
        }
        let complete = flows.len() < limit;
        let begin_to_begin = match (flows.first(), flows.last()) {
            (Some(first), Some(last)) => last.start.saturating_sub(first.start),
            _ => Time::ZERO,
        };
        flows.extend(large.iter().filter_map(|source| source.graph()).flat_map(|graph| sample(&graph)));
        cut_off(&mut flows, topology, routes, end);
        let mean = flows.iter().map(|flow| flow.size / flows.len() as u64).sum::<u64>().max(PACKET);
        let max_size = if complete { u64::MAX } else { MAX_OF_MEAN * mean };
        let of_a_walk = (mean as f64 * flows.len() as f64 / WALKS as f64).max(PACKET as f64) as u64;
        let mut walker = Walker::new(topology, routes);
        for flow in &flows {
            walker.walk(flow, flow.size.min(max_size), of_a_walk);
        }
        walker.into_work(begin_to_begin)
    }
}

/// Whether it is a job with more messages than are looked at.
fn is_large(source: &dyn FlowSource) -> bool {
    source.graph().is_some_and(|graph| graph.flows() > MAX_FLOWS as u64)
}

/// Messages of a job on the network, one of each part of its list, with the bytes of all.
fn sample(graph: &JobGraph) -> Vec<FlowSpec> {
    let mut random = RandomStream::new(0, "work of jobs");
    let messages = u64::from(graph.messages());
    let part = messages.div_ceil(MAX_FLOWS as u64);
    let mut flows: Vec<FlowSpec> = (0..messages / part)
        .map(|number| graph.message((number * part + random.below(part)) as u32))
        .filter(|message| !message.inside)
        .map(|message| graph.flow(&message))
        .collect();
    let sampled = flows.iter().map(|flow| flow.size).sum::<u64>().max(1);
    let times = (graph.bytes() / sampled).max(1);
    flows.iter_mut().for_each(|flow| flow.size = flow.size.saturating_mul(times));
    flows
}

/// Sets the sizes of flows to what the links of their hosts can carry of them until `end`.
fn cut_off(flows: &mut [FlowSpec], topology: &Topology, routes: &Routes, end: Time) {
    /// Thirteen days: bytes of any links in it can be counted.
    const LONG: Time = Time(1 << 60);
    let end = end.min(LONG);
    let ports = topology.ports();
    let rate = |&(link, _): &(u32, NodeId)| topology.links[link as usize].rate.0;
    let of_host = |host| Rate(ports[routes.host_node(host) as usize].iter().map(rate).sum());
    let rates: Vec<Rate> = (0..routes.hosts() as u32).map(of_host).collect();
    // In both directions of each host, what the flows so far leave of its links.
    let mut left: Vec<[u64; 2]> = rates.iter().map(|rate| [rate.bytes_in(end).0; 2]).collect();
    for flow in flows {
        let (src, dst) = (flow.src as usize, flow.dst as usize);
        let alone = rates[src].min(rates[dst]).bytes_in(end.saturating_sub(flow.start)).0;
        flow.size = flow.size.min(alone).min(left[src][0]).min(left[dst][1]);
        left[src][0] -= flow.size;
        left[dst][1] -= flow.size;
    }
}

struct Walker<'a> {
    topology: &'a Topology,
    routes: &'a Routes,
    /// Of each node, its (link, neighbour) by port.
    ports: Ports,
    random: RandomStream,
    work: Work,
    hops: u64,
}

impl<'a> Walker<'a> {
    fn new(topology: &'a Topology, routes: &'a Routes) -> Walker<'a> {
        let work = Work {
            nodes: vec![0; topology.nodes.len()],
            links: vec![0; topology.links.len()],
            hops_per_second: 0.0,
        };
        let random = RandomStream::new(0, "work");
        Walker { topology, routes, ports: topology.ports(), random, work, hops: 0 }
    }

    /// Walks a flow of `bytes`, in steps of a number of bytes.
    fn walk(&mut self, flow: &FlowSpec, bytes: u64, of_a_walk: u64) {
        let walks = (bytes / of_a_walk).max(1);
        let packets = (bytes / walks).div_ceil(PACKET).max(1);
        let (from, to) = (self.routes.host_node(flow.src), self.routes.host_node(flow.dst));
        for _ in 0..walks {
            let mut node = from;
            self.work.nodes[node as usize] += HOST_COST * packets;
            for _ in 0..MAX_HOPS {
                let next = self.routes.next_hops(node, flow.dst);
                if next.is_empty() {
                    break;
                }
                let port = next[self.random.below(next.len() as u64) as usize];
                let (link, neighbour) = self.ports[node as usize][port as usize];
                self.work.links[link as usize] += packets;
                self.hops += packets;
                node = neighbour;
                let cost = if node == to { HOST_COST } else { SWITCH_COST };
                self.work.nodes[node as usize] += cost * packets;
            }
        }
    }

    /// The flows were walked; the last of them starts this time after the first.
    fn into_work(self, begin_to_begin: Time) -> Work {
        let Walker { topology, mut work, hops, .. } = self;
        // No faster than the busiest link carries what goes over it; it may all go in one direction.
        let time = |(link, &packets): (&crate::topology::Link, &u64)| {
            (packets * PACKET * 8) as f64 / link.rate.0.max(1) as f64
        };
        let busiest = topology.links.iter().zip(&work.links).map(time).fold(0.0, f64::max);
        let seconds = busiest.max(begin_to_begin.as_seconds());
        work.hops_per_second = if seconds > 0.0 { 2.0 * hops as f64 / seconds } else { 0.0 };
        let min_work = work.nodes.iter().sum::<u64>() / work.nodes.len().max(1) as u64 / MIN_SHARE + 1;
        work.nodes.iter_mut().for_each(|node| *node += min_work);
        work.links.iter_mut().for_each(|link| *link += 1);
        work
    }
}

#[cfg(test)]
mod tests;
