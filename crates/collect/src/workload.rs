//! Packets for `weftline bench` and for measurements: telemetry from memory, through the parsers alone or
//! through the whole collector.

use std::sync::Arc;

use pint::encoder::Encoder;
use pint::graph::Graph;
use pint::hash::mix;
use pint::path::{Knowledge, PathDecoder};
use pint::plan::{Plan, read};

use crate::capture::Packet;
use crate::collector::Collector;
use crate::int::Values;
use crate::ioam::Ioam;
use crate::ip::{Ip, Link, TCP, UDP};
use crate::packet::{Markers, Telemetry, telemetry};
use crate::pint::{Decoder, packet_id};

/// Different packets of a workload, which are taken in turns.
const PACKETS: u32 = 1_024;
const REPORT_PORT: u16 = 32_766;

/// What the packets carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carried {
    /// A report of interfaces and queue, on a packet without INT, one in each datagram.
    Reports,
    /// A pre-allocated trace of five nodes: ids, time, interfaces, namespace data and queue, as Linux writes
    /// it.
    Traces,
}

/// A path and the delays of its hops, in 16 bits.
const PATH_AND_LATENCY: &str = r#"
bits = 16
hops = { expected = 5, maximal = 64 }
[[query]]
name = "path"
value = "switch-id"
aggregation = "path"
bits = 8
[[query]]
name = "latency"
value = "hop-latency"
aggregation = "quantiles"
quantiles = [0.5, 0.99]
approximation = { epsilon = 0.025 }
bits = 8
"#;
const SWITCHES: u64 = 80;
const HOPS: u32 = 5;

/// Digests of PINT: a plan for path and latency, and the decoder of its digests.
pub fn digest_decoder() -> Result<Decoder, String> {
    let queries = read(PATH_AND_LATENCY, "queries").map_err(|error| error.to_string())?;
    let plan = Plan::new(queries).map_err(|error| error.to_string())?;
    let graph = Graph::of_ids((0..SWITCHES).collect()).map_err(|error| error.to_string())?;
    let knowledge = Knowledge { graph, ..Knowledge::default() };
    let paths = PathDecoder::new(&plan, knowledge).map_err(|error| error.to_string())?;
    Ok(Decoder { plan: Arc::new(plan), paths: Arc::new(paths) })
}

/// The switches of a flow of [`digest_frame`].
pub fn switches_of(flow: u32) -> [u64; HOPS as usize] {
    let first = mix(u64::from(flow)) % SWITCHES;
    // 7 has no divisor in common with the number of switches: no switch is there twice.
    std::array::from_fn(|hop| (first + 7 * hop as u64) % SWITCHES)
}

/// The `number`-th frame of a flow over these switches: a TCP segment whose IPv4 id is the digest of five hops.
pub fn digest_frame(encoder: &Encoder, flow: u32, number: u32, switches: [u64; HOPS as usize]) -> Vec<u8> {
    let mut segment = (flow as u16).to_be_bytes().to_vec();
    segment.extend([0, 80]);
    segment.extend(number.to_be_bytes());
    segment.extend([0, 0, 0, 1, 0x50, 0x10, 1, 0]);
    segment.extend(mix(u64::from(flow) << 32 | u64::from(number)).to_be_bytes());
    let mut frame = ethernet(0x0800, &ipv4_of(TCP, 64 - HOPS as u8, flow, &segment));
    let packet = Ip::parse(&frame[14..]).map_or(0, |ip| packet_id(&ip));
    let latency = |hop: u32| mix(packet ^ u64::from(hop)) % 5_000;
    let hops = (1..).zip(switches);
    let digest =
        hops.fold(0, |digest, (hop, switch)| encoder.encode(digest, packet, hop, &[switch, latency(hop)]));
    frame[18..20].copy_from_slice(&(digest as u16).to_be_bytes());
    frame
}

/// Ethernet frames that the parsers read.
pub fn frames(carried: Carried) -> Vec<Vec<u8>> {
    (0..PACKETS)
        .map(|n| match carried {
            Carried::Reports => ethernet(0x0800, &ipv4(&udp(REPORT_PORT, &report(n)))),
            Carried::Traces => ethernet(0x86dd, &ipv6(&trace(n))),
        })
        .collect()
}

/// Reads `count` packets with every value of theirs; returns a sum over the values, so that none is left out.
pub fn parse(frames: &[Vec<u8>], count: u64) -> u64 {
    let markers = Markers::default();
    let mut sum = 0u64;
    for frame in frames.iter().cycle().take(count as usize) {
        let Ok(Some(ip)) = Link::Ethernet.ip(frame) else { continue };
        let Ok(ip) = Ip::parse(ip) else { continue };
        telemetry(&ip, &markers, &mut |found| {
            let found = match found {
                Ok(Telemetry::Reports(group)) => {
                    group.reports().flatten().map(|report| of_report(&report)).sum()
                }
                Ok(Telemetry::Ioam(Ioam::Trace(trace))) => {
                    trace.nodes().map(|node| of_node(&node.fields())).sum()
                }
                _ => 0,
            };
            sum = sum.wrapping_add(found);
        });
    }
    sum
}

fn of_values(values: &Values) -> u64 {
    u64::from(values.interfaces.map_or(0, |(_, egress)| egress))
        + u64::from(values.queue.map_or(0, |queue| queue.1))
}

fn of_report(report: &crate::report::Report) -> u64 {
    let flow =
        report.ip().ok().flatten().and_then(|ip| Ip::parse(ip).ok()).map_or(0, |ip| ip.flow().source_port);
    of_values(&report.values()) + u64::from(flow)
}

fn of_node(fields: &crate::ioam::Fields) -> u64 {
    let words = [fields.node, fields.seconds, fields.fraction, fields.namespace_data, fields.queue_depth];
    words.iter().map(|word| u64::from(word.unwrap_or_default())).sum()
}

/// Takes `count` packets into a collector; returns how many carried telemetry.
pub fn collect(frames: &[Vec<u8>], count: u64) -> u64 {
    let mut collector = Collector::new(Markers::default(), 256 << 20);
    for (time_ns, bytes) in (0..count).zip(frames.iter().cycle()) {
        let length = bytes.len() as u32;
        collector.take(&Packet { time_ns, link: Some(Link::Ethernet), interface: 0, length, bytes });
    }
    collector.counts().with_telemetry
}

/// A group of one report.
fn report(n: u32) -> Vec<u8> {
    let inner = ipv4(&udp(9_000 + (n % 64) as u16, &[]));
    let mut report = vec![0x14, ((8 + 8 + inner.len()) / 4) as u8, 2, 0x20, 0x50, 0, 0, 0, 0, 0, 0, 0];
    report.extend([0, 5, 0, 6]);
    report.extend((2 << 24 | n).to_be_bytes());
    report.extend(inner);
    let mut group = (2 << 28 | n).to_be_bytes().to_vec();
    group.extend([0, 0, 0, (n % 32) as u8]);
    group.extend(report);
    group
}

fn trace(n: u32) -> Vec<u8> {
    let mut option = vec![0x11, 18, 1, 0, 0x31, 0, 0, 0, 0, 123, 0x30, 0, 0xf6, 0, 0, 0];
    for node in 0..5u32 {
        option.extend(((59 + node) << 24 | (105 - node)).to_be_bytes());
        for word in [0x0001_0002, 1_768_478_400, n, 0xd000_0000, n % 7 * 1_032] {
            option.extend(u32::to_be_bytes(word));
        }
    }
    option[5] = (option.len() - 6) as u8;
    option[1] = (option.len() / 8 - 1) as u8;
    option.extend(udp(9_000 + (n % 64) as u16, &[]));
    option
}

fn udp(port: u16, payload: &[u8]) -> Vec<u8> {
    let mut udp = vec![0x9c, 0x41];
    udp.extend(port.to_be_bytes());
    udp.extend((8 + payload.len() as u16).to_be_bytes());
    udp.extend([0, 0]);
    udp.extend(payload);
    udp
}

fn ipv4(payload: &[u8]) -> Vec<u8> {
    ipv4_of(UDP, 61, 1, payload)
}

/// From 10.x.x.x, by a number, to 10.0.0.2.
fn ipv4_of(protocol: u8, hop_limit: u8, source: u32, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend((20 + payload.len() as u16).to_be_bytes());
    packet.extend([0, 0, 0x40, 0, hop_limit, protocol, 0, 0]);
    packet.extend((10 << 24 | source).to_be_bytes());
    packet.extend([10, 0, 0, 2]);
    packet.extend(payload);
    packet
}

fn ipv6(payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend((payload.len() as u16).to_be_bytes());
    packet.extend([0, 61]);
    packet.extend([0x20; 32]);
    packet.extend(payload);
    packet
}

fn ethernet(ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend(ethertype.to_be_bytes());
    frame.extend(payload);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_packet_is_read_whole() {
        for carried in [Carried::Reports, Carried::Traces] {
            let frames = frames(carried);
            let mut collector = Collector::new(Markers::default(), 256 << 20);
            for bytes in &frames {
                let length = bytes.len() as u32;
                collector.take(&Packet {
                    time_ns: 0,
                    link: Some(Link::Ethernet),
                    interface: 0,
                    length,
                    bytes,
                });
            }
            assert_eq!(collector.malformed().len(), 0, "{:?}", collector.malformed());
            let counts = collector.counts();
            assert_eq!(counts.reports + counts.ioam_traces, u64::from(PACKETS));
            assert!(collect(&frames, 5_000) == 5_000 && parse(&frames, 5_000) > 0);
        }
    }
}
