//! The time a flow takes alone, in closed form: what slowdowns are measured against.
//!
//! *Alone* is exact for a flow that nothing throttles: packets leave back to back, every hop stores (or cuts through)
//! and forwards, the last acknowledgement comes back over the same links. The other definitions are those of the
//! authors that weftline is compared with; they leave parts out and are named as theirs.

use crate::config::{Compat, IdealFct};
use crate::net::PortId;
use crate::net::port::Port;
use crate::settings::{RdmaSettings, Settings};
use crate::topology::Routes;
use crate::units::{Rate, Time};
use crate::workload::FlowSpec;

/// More hops than any path has; ends a walk that would go in circles.
const MOST_HOPS: usize = 256;

/// Ideal completion time of a flow, by the definition that the settings name; along the first of its shortest paths.
/// `first_port` is its source's first port. Zero where there is no path.
pub fn ideal_fct(
    settings: &Settings,
    rdma: &RdmaSettings,
    routes: &Routes,
    ports: &[Port],
    first_port: PortId,
    spec: &FlowSpec,
) -> Time {
    let path = walk(routes, ports, first_port, spec);
    if path.is_empty() {
        return Time::ZERO;
    }
    match settings.ideal {
        IdealFct::Alone => alone(&path, rdma, spec.size, settings.compat),
        IdealFct::Hpcc => hpcc(&path, rdma, spec.size),
        IdealFct::Phost => phost(&path, rdma, spec.size),
    }
}

/// The ports that a packet leaves by on its way.
fn walk<'p>(routes: &Routes, ports: &'p [Port], first_port: PortId, spec: &FlowSpec) -> Vec<&'p Port> {
    let mut path = Vec::new();
    let (mut node, goal) = (routes.host_node(spec.src), routes.host_node(spec.dst));
    let mut first_port = first_port;
    while node != goal && path.len() < MOST_HOPS {
        let Some(&local) = routes.next_hops(node, spec.dst).first() else { return Vec::new() };
        let port = &ports[(first_port + local) as usize];
        node = port.peer_node;
        first_port = port.peer - u32::from(port.peer_local);
        path.push(port);
    }
    path
}

/// When the last byte of `size` payload bytes has been acknowledged, to the picosecond.
fn alone(path: &[&Port], rdma: &RdmaSettings, size: u64, compat: Compat) -> Time {
    let mtu = u64::from(rdma.config.mtu);
    let packets = size.div_ceil(mtu);
    let last = rdma.data_bytes(size - (packets - 1) * mtu);
    // Start of the last packet at each hop: behind its own arrival, and behind the full packets before it.
    let full = (packets > 1).then(|| rdma.data_bytes(mtu));
    let mut tail = Time::ZERO;
    let mut head = Time::ZERO;
    let mut full_head = Time::ZERO;
    let mut full_tail = Time::ZERO;
    let mut slowest = Time::ZERO;
    for port in path {
        let tx = |bytes| port.transmission_time(bytes, compat);
        let mut start = head.max(tail.saturating_sub(tx(last)));
        if let Some(bytes) = full {
            // Equal packets leave a hop at the pace of the slowest hop so far.
            let first_start = full_head.max(full_tail.saturating_sub(tx(bytes)));
            slowest = slowest.max(tx(bytes));
            let end_of_full = first_start + tx(bytes) + Time(slowest.0 * (packets - 2));
            start = start.max(end_of_full);
            (full_head, full_tail) = reaches(port, first_start, bytes, compat);
        }
        (head, tail) = reaches(port, start, last, compat);
    }
    let ack = u64::from(rdma.ack_bytes);
    let (mut ack_head, mut ack_tail) = (tail, tail);
    for port in path.iter().rev() {
        let start = ack_head.max(ack_tail.saturating_sub(port.transmission_time(ack, compat)));
        (ack_head, ack_tail) = reaches(port, start, ack, compat);
    }
    ack_tail
}

/// When a packet that starts at `start` may be forwarded by the next hop, and when all of it is there.
fn reaches(port: &Port, start: Time, bytes: u64, compat: Compat) -> (Time, Time) {
    let tail = start + port.transmission_time(bytes, compat) + port.delay;
    let header = u64::from(port.peer_cuts_through);
    if header > 0 && header < bytes {
        (start + port.transmission_time(header, compat) + port.delay, tail)
    } else {
        (tail, tail)
    }
}

/// Base RTT (a full payload in one direction) and all bytes with plain headers at the slowest link, in whole ns.
fn hpcc(path: &[&Port], rdma: &RdmaSettings, size: u64) -> Time {
    const PLAIN_HEADER: u64 = 48;
    let mtu = u64::from(rdma.config.mtu);
    let total = size + size.div_ceil(mtu) * PLAIN_HEADER;
    let ns = |bytes: u64, rate: Rate| (u128::from(bytes) * 8_000_000_000 / u128::from(rate.0)) as u64;
    let mut rtt = 0;
    let mut slowest = Rate(u64::MAX);
    for port in path {
        rtt += 2 * port.delay.ns() + ns(mtu, port.rate);
        slowest = slowest.min(port.rate);
    }
    Time::from_ns(rtt + ns(total, slowest))
}

/// OPT of the pHost authors: whole packets of 1460 B payload and 40 B header at the host's rate, an acknowledgement, and
/// the headers over the inner links (cut-through) or a packet more (store and forward).
fn phost(path: &[&Port], _rdma: &RdmaSettings, size: u64) -> Time {
    let packets = size.div_ceil(1460);
    let host = path[0].rate;
    let cut_through = path[0].peer_cuts_through > 0;
    let delays: u64 = path.iter().map(|port| 2 * port.delay.0).sum();
    let at_host = if cut_through { 1500 * packets + 40 + 80 } else { 1500 * (packets + 1) + 80 };
    let inner_bytes = if cut_through { 80 } else { 1540 };
    let inner: u64 = path[1..path.len().saturating_sub(1).max(1)]
        .iter()
        .map(|port| port.rate.transmission_time(inner_bytes).0)
        .sum();
    Time(delays + host.transmission_time(at_host).0 + inner)
}
