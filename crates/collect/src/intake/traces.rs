//! The IOAM traces of a packet: what they measured of hops, and one path for each namespace.
//!
//! A packet may have several traces of one namespace: where some devices write incremental traces and others
//! pre-allocated ones, both are in it, and the destination header may have one of its ends. A node is in the
//! one that it can write, so the path is that of all of them, in the order of hop limits. Without hop limits
//! it is not known where the nodes of one trace belong among those of another, so they tell no path.
//!
//! Source: RFC 9197 §4.4 (both kinds in a packet), RFC 9486 §3 (headers).

use super::{HopKey, Intake, Sink, UNKNOWN_NODE};
use crate::flows::Point;
use crate::ioam::{Fields, Trace};
use crate::ip::{FlowKey, Ip};

/// In ns, of a hop in a trace: it was this or longer.
const LONGEST_DELAY: u32 = 1 << 31;

/// The traces of a packet, in its order. Nearly all packets have at most one, which needs no memory.
#[derive(Debug, Default)]
pub(super) struct Traces<'a> {
    first: Option<Trace<'a>>,
    others: Vec<Trace<'a>>,
}

impl<'a> Traces<'a> {
    pub(super) fn push(&mut self, trace: Trace<'a>) {
        match self.first {
            None => self.first = Some(trace),
            Some(_) => self.others.push(trace),
        }
    }

    fn all(&self) -> impl Iterator<Item = &Trace<'a>> {
        self.first.iter().chain(&self.others)
    }
}

impl Intake {
    /// Takes the traces of a packet, and hands on a path for each namespace.
    pub(super) fn take_traces(
        &mut self,
        ip: &Ip,
        traces: &Traces,
        (time_ns, point): (u64, Point),
        sink: &mut impl Sink,
    ) {
        let Some(first) = &traces.first else { return };
        let of_packet = ip.flow();
        if traces.others.is_empty() {
            self.building.clear();
            for node in first.nodes() {
                let id = self.node_of_trace(&node.fields());
                self.building.push(id);
            }
            self.building.reverse();
            self.counts.ioam_traces += 1;
            let flow = FlowKey { namespace: Some(first.namespace), ..of_packet };
            self.observe(&flow, point, time_ns, first.overflow, sink);
            return;
        }
        let mut namespaces: Vec<u16> = traces.all().map(|trace| trace.namespace).collect();
        namespaces.sort_unstable();
        namespaces.dedup();
        for namespace in namespaces {
            let of_namespace = || traces.all().filter(|trace| trace.namespace == namespace);
            let incomplete = self.join(of_namespace());
            let flow = FlowKey { namespace: Some(namespace), ..of_packet };
            self.observe(&flow, point, time_ns, incomplete, sink);
        }
    }

    /// Puts a path together out of the traces of one namespace; returns whether it is incomplete.
    fn join<'a>(&mut self, traces: impl Iterator<Item = &'a Trace<'a>>) -> bool {
        let mut nodes: Vec<(Option<u8>, u64)> = Vec::new();
        let (mut written, mut incomplete) = (0, false);
        for trace in traces {
            let start = nodes.len();
            for node in trace.nodes() {
                let fields = node.fields();
                let id = self.node_of_trace(&fields);
                nodes.push((fields.hop_limit, id));
            }
            nodes[start..].reverse();
            self.counts.ioam_traces += 1;
            incomplete |= trace.overflow;
            written += u32::from(nodes.len() > start);
        }
        if written > 1 {
            // Hop limits fall along the path, so the oldest node is first.
            nodes.sort_by_key(|&(hop_limit, _)| std::cmp::Reverse(hop_limit));
            nodes.dedup();
            incomplete |= nodes.iter().any(|(hop_limit, _)| hop_limit.is_none())
                || nodes.windows(2).any(|pair| pair[0].0 == pair[1].0);
        }
        self.building.clear();
        self.building.extend(nodes.iter().map(|&(_, id)| id));
        incomplete
    }

    /// Takes what a node measured; returns its id.
    fn node_of_trace(&mut self, fields: &Fields) -> u64 {
        let id = fields.node.map(u64::from).or(fields.wide_node).unwrap_or(UNKNOWN_NODE);
        // The highest bit alone is set if the delay did not fit.
        let delay = fields.transit_delay.map(|delay| delay.min(LONGEST_DELAY));
        let key = HopKey::Node(id);
        self.measured(key, delay.map(u64::from), fields.queue_depth.map(u64::from));
        if let Some(hop) = self.hops.get_mut(&key).filter(|_| delay == Some(LONGEST_DELAY)) {
            hop.latency_minima += 1;
        }
        id
    }
}
