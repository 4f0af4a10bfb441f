//! The time a flow takes alone, in closed form: what slowdowns are measured against.
//!
//! *Alone* is exact for a flow that nothing throttles: packets leave back to back, every hop stores (or cuts through)
//! and forwards, and every packet is acknowledged over the same links, the last acknowledgement behind those before
//! it. The other definitions are those of the authors that weftline is compared with; they leave parts out and are
//! named as theirs.

use crate::config::{Compat, IdealFct};
use crate::net::map::{Map, Side};
use crate::net::port::Line;
use crate::settings::{Framing, Settings};
use crate::units::{Rate, Time};
use crate::workload::FlowSpec;

/// More hops than any path has; ends a walk that would go in circles.
const MOST_HOPS: usize = 256;

/// Ideal completion time of a flow, by the definition that the settings name; along the first of its shortest paths.
/// Zero where there is no path.
pub fn ideal_fct(settings: &Settings, framing: &Framing, map: &Map, spec: &FlowSpec) -> Time {
    let path = walk(map, spec);
    if path.is_empty() {
        return Time::ZERO;
    }
    match settings.ideal {
        IdealFct::Alone => alone(&path, map, framing, spec.size, settings.compat),
        IdealFct::Delivery => delivery(&path, framing, spec.size, settings.compat).last.tail,
        IdealFct::Hpcc => hpcc(&path, framing, spec.size),
        IdealFct::Phost => phost(&path, spec.size),
    }
}

/// The links that a packet crosses on its way.
fn walk<'m>(map: &'m Map, spec: &FlowSpec) -> Vec<&'m Side> {
    let mut path = Vec::new();
    let (mut node, goal) = (map.routes.host_node(spec.src), map.routes.host_node(spec.dst));
    while node != goal && path.len() < MOST_HOPS {
        let Some(&local) = map.routes.next_hops(node, spec.dst).first() else { return Vec::new() };
        let side = map.side(node, local);
        node = side.peer_node;
        path.push(side);
    }
    path
}

/// The packets of `size` payload bytes as they come to the receiver.
fn delivery(path: &[&Side], framing: &Framing, size: u64, compat: Compat) -> Train {
    let packets = size.div_ceil(framing.payload);
    let full = framing.data_bytes(framing.payload);
    let last = framing.data_bytes(size - (packets - 1) * framing.payload);
    let train = Train { full_packets: packets - 1, ..Train::default() };
    path.iter().fold(train, |train, side| train.cross(&side.line, full, last, compat))
}

/// When the last byte of `size` payload bytes has been acknowledged, to the picosecond.
fn alone(path: &[&Side], map: &Map, framing: &Framing, size: u64, compat: Compat) -> Time {
    let train = delivery(path, framing, size, compat);
    // Packets are acknowledged when all of them is there; acknowledgements too follow each other back to back.
    let full_packets = if framing.acks_each { train.full_packets } else { 0 };
    let mut acks = Train { first: train.first.whole(), last: train.last.whole(), full_packets, ..train };
    let ack = framing.ack;
    for side in path.iter().rev() {
        acks = acks.cross(&map.opposite(side).line, ack, ack, compat);
    }
    acks.last.tail
}

/// Equal packets, and a last one that may be smaller, as they reach a hop. The equal ones come at one pace: that of
/// the slowest hop so far.
#[derive(Clone, Copy, Default)]
struct Train {
    full_packets: u64,
    first: Arrival,
    pace: Time,
    last: Arrival,
}

/// When a packet may be forwarded, and when all of it is there.
#[derive(Clone, Copy, Default)]
struct Arrival {
    head: Time,
    tail: Time,
}

impl Arrival {
    fn whole(self) -> Arrival {
        Arrival { head: self.tail, ..self }
    }
}

impl Train {
    /// The train at the far end of the link behind `port`.
    fn cross(self, line: &Line, full: u64, last: u64, compat: Compat) -> Train {
        let tx = |bytes| line.transmission_time(bytes, compat);
        // Neither before its head has come, nor so early that its end would leave before it has come.
        let earliest = |packet: Arrival, bytes| match line.ideal {
            true => packet.head,
            false => packet.head.max(packet.tail.saturating_sub(tx(bytes))),
        };
        let mut start = earliest(self.last, last);
        let mut next = Train { pace: self.pace.max(tx(full)), ..self };
        if self.full_packets > 0 {
            let first = earliest(self.first, full);
            let all_gone = first
                .saturating_add(Time(next.pace.0.saturating_mul(self.full_packets - 1)))
                .saturating_add(tx(full));
            start = start.max(all_gone);
            next.first = reaches(line, first, full, compat);
        }
        next.last = reaches(line, start, last, compat);
        next
    }
}

/// When a packet that starts at `start` may be forwarded by the next hop, and when all of it is there.
fn reaches(line: &Line, start: Time, bytes: u64, compat: Compat) -> Arrival {
    let (whole, to_head) = line.times(bytes, compat);
    let after = |time| start.saturating_add(time).saturating_add(line.delay);
    Arrival { head: after(to_head), tail: after(whole) }
}

/// Base RTT (a full payload in one direction) and all bytes with plain headers at the slowest link, in whole ns.
fn hpcc(path: &[&Side], framing: &Framing, size: u64) -> Time {
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

/// OPT of the pHost authors: whole packets of 1460 B payload and 40 B header at the host's rate, an acknowledgement, and
/// the headers over the inner links (cut-through) or a packet more (store and forward).
fn phost(path: &[&Side], size: u64) -> Time {
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
