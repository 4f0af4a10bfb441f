//! Ideal times as papers define them, along the first of a flow's shortest paths. They omit parts, so that a
//! flow may take less.

use crate::net::map::{Map, Side};
use crate::transport::Framing;
use crate::units::{Rate, Time};
use crate::workload::FlowSpec;

/// Longer than any path; ends a walk that would loop.
const MAX_HOPS: usize = 256;

/// Returns the links of the first of a packet's shortest paths; none if there is no path.
pub fn first_path<'m>(map: &'m Map, spec: &FlowSpec) -> Vec<&'m Side> {
    let mut path = Vec::new();
    let (mut node, goal) = (map.routes.host_node(spec.src), map.routes.host_node(spec.dst));
    while node != goal && path.len() < MAX_HOPS {
        let Some(&local) = map.routes.next_hops(node, spec.dst).first() else { return Vec::new() };
        let side = map.side(node, local);
        node = side.peer_node;
        path.push(side);
    }
    path
}

/// Base RTT (a full payload in one direction) plus all bytes with plain headers at the slowest link, in whole
/// ns.
pub fn hpcc(path: &[&Side], framing: &Framing, size: u64) -> Time {
    const PLAIN_HEADER: u64 = 48;
    let mtu = framing.payload;
    let total = size + size.div_ceil(mtu) * PLAIN_HEADER;
    let ns = |bytes: u64, rate: Rate| u128::from(bytes) * 8_000_000_000 / u128::from(rate.0);
    let mut rtt = 0;
    let mut slowest = Rate(u64::MAX);
    for Side { line, .. } in path {
        rtt += u128::from(2 * line.delay.ns()) + ns(mtu, line.rate);
        slowest = slowest.min(line.rate);
    }
    u64::try_from((rtt + ns(total, slowest)) * 1000).map_or(Time::MAX, Time)
}

/// OPT of the pHost authors: whole packets of 1460 B payload and 40 B header at the host's rate, an
/// acknowledgement, and the headers over the inner links (cut-through) or one more packet (store and
/// forward).
pub fn phost(path: &[&Side], size: u64) -> Time {
    let packets = size.div_ceil(1460);
    let host = path[0].line.rate;
    let cut_through = path[0].line.cuts_through();
    let delays: u64 = path.iter().map(|side| 2 * side.line.delay.0).sum();
    let at_host = if cut_through { 1500 * packets + 40 + 80 } else { 1500 * (packets + 1) + 80 };
    let inner_bytes = if cut_through { 80 } else { 1540 };
    let inner = path[1..path.len().saturating_sub(1).max(1)]
        .iter()
        .map(|side| side.line.rate.transmission_time(inner_bytes).0)
        .fold(0, u64::saturating_add);
    Time(delays.saturating_add(host.transmission_time(at_host).0).saturating_add(inner))
}
