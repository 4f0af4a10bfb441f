//! Digests of PINT that packets carry in their own headers: from packets to a collector of PINT.
//!
//! The id of a packet is a hash of what no router changes: with mix of `pint::hash`, it is the fold id =
//! mix(id xor word), from 0, over these 64-bit words in network order: source (two words, an IPv4 address as
//! ::ffff:a.b.c.d), destination (with a segment routing header, that after all of its segments, RFC 8754),
//! protocol, the first 8 bytes of the transport header (0 if there are fewer);
//! then of TCP its acknowledgement (upper half) and checksum, of UDP with checksum 0 the first 16 bytes of
//! payload (missing bytes are 0). Of a packet that was cut off before the last of these bytes, the id is not
//! known.
//!
//! The number of hops is the hop limit that the packet began with less the one that it has. It began with
//! what the carrier says, else with the smallest of 64, 128 and 255 that is not below it.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;

use pint::collector::{Collector, Event, EventKind, FlowReport, Limits, Sink};
use pint::hash::mix;
use pint::path::PathDecoder;
use pint::plan::{Plan, label_bits};
use pint::query::FlowKey as Key;
use pint::recorded::{Address, Flow, Recorded};
use serde_json::{Value, json};

use crate::bytes::{array, u64_at};
use crate::flows::Point;
use crate::ip::{Ip, TCP, UDP};
use crate::packet::{Digest, DigestCarrier};

/// Of the memory, in eighths: records that ended, and events, that wait to be taken out. The rest is for open
/// records.
const ENDED_SHARE: usize = 2;
const EVENTS_SHARE: usize = 1;

/// Of a point in the number of a flow, below the interface.
const POINT_BITS: u32 = 16;

/// A plan, and what decodes its paths.
#[derive(Debug, Clone)]
pub struct Decoder {
    pub plan: Arc<Plan>,
    pub paths: Arc<PathDecoder>,
}

impl Decoder {
    /// Whether flows with different ends never share a record, so that shards may divide them.
    pub fn divides(&self) -> bool {
        let keys = self.plan.queries().queries.iter().map(|query| query.flow);
        keys.into_iter().all(|key| matches!(key, Key::FiveTuple | Key::SourceDestination))
    }
}

/// Why a collector of PINT cannot take a digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UselessDigest {
    /// It does not fit into 64 bits, which no plan exceeds.
    TooWide,
    /// The hop limit of the packet is above the one that its carrier says that it began with.
    HopLimit,
    /// The packet was cut off before the end of what its id is made of.
    Cut,
}

/// The digest of a packet as a collector of PINT takes it. Where it was seen is a part of the flow, as number
/// of the flow: a digest at another point or interface is that of another path.
pub fn recorded(
    ip: &Ip,
    digest: &Digest,
    plan_version: u32,
    point: Point,
    time_ns: u64,
) -> Result<Recorded, UselessDigest> {
    let initial = digest.initial_hop_limit.unwrap_or(match ip.hop_limit {
        ..=64 => 64,
        65..=128 => 128,
        129.. => 255,
    });
    let number = match point {
        Point::Capture { point, interface } => u64::from(interface) << POINT_BITS | u64::from(point),
        Point::Interface(interface) => u64::from(interface) << POINT_BITS,
        Point::Node(_) => 0,
    };
    // An option has the low 8 bits of the plan's id.
    let stated = if digest.carrier == DigestCarrier::FlowLabel {
        label_bits(plan_version)
    } else {
        plan_version & 255
    };
    let other = digest.plan.is_some_and(|plan| u32::from(plan) != stated);
    let flow = ip.own_flow();
    Ok(Recorded {
        time_ns,
        flow: Flow {
            id: (number > 0).then_some(number),
            source: Address::Ip(flow.source),
            destination: Address::Ip(flow.destination),
            source_port: flow.source_port,
            destination_port: flow.destination_port,
            protocol: flow.protocol,
        },
        packet: if has_id(ip) { packet_id(ip) } else { return Err(UselessDigest::Cut) },
        digest: u64::try_from(digest.digest).map_err(|_| UselessDigest::TooWide)?,
        hops: initial.checked_sub(ip.hop_limit).ok_or(UselessDigest::HopLimit)?.into(),
        plan_version: if other { !plan_version } else { plan_version },
        ..Recorded::default()
    })
}

/// Whether all that the id of a packet is made of is there, or was never sent.
fn has_id(ip: &Ip) -> bool {
    let checksum_ends = if ip.protocol == TCP { 18 } else { 8 };
    let ends = match array(ip.payload, 6) {
        Some([0, 0]) if ip.protocol == UDP => 24,
        _ => checksum_ends,
    };
    !ip.cut || ip.payload.len() >= ends
}

/// The id of a packet: see the head of this file.
pub fn packet_id(ip: &Ip) -> u64 {
    let address = |address: IpAddr| match address {
        IpAddr::V4(address) => u128::from(address.to_ipv6_mapped()),
        IpAddr::V6(address) => u128::from(address),
    };
    let (source, destination) = (address(ip.source), address(ip.final_destination));
    let checksum_at = |at| array(ip.payload, at).map_or(0, u16::from_be_bytes);
    let mut words = [
        (source >> 64) as u64,
        source as u64,
        (destination >> 64) as u64,
        destination as u64,
        ip.protocol.into(),
        u64_at(ip.payload, 0).unwrap_or(0),
        0,
        0,
    ];
    let count = match ip.protocol {
        TCP => {
            let acknowledgement = array(ip.payload, 8).map_or(0, u32::from_be_bytes);
            words[6] = u64::from(acknowledgement) << 32 | u64::from(checksum_at(16));
            7
        }
        UDP if checksum_at(6) == 0 => {
            let mut start = [0; 16];
            let payload = ip.payload.get(8..).unwrap_or_default();
            let kept = payload.len().min(16);
            start[..kept].copy_from_slice(&payload[..kept]);
            words[6] = u64_at(&start, 0).unwrap_or(0);
            words[7] = u64_at(&start, 8).unwrap_or(0);
            8
        }
        _ => 6,
    };
    words[..count].iter().fold(0, |id, word| mix(id ^ word))
}

/// The digests of one shard.
#[derive(Debug)]
pub struct Decoding {
    decoder: Decoder,
    collector: Collector<Arc<PathDecoder>>,
    kept: Kept,
    refused: BTreeMap<String, u64>,
}

/// A record of a flow: the flow, the name of its key, its hops, how many records of the flow were before.
type RecordOrder = (Flow, &'static str, Option<u32>, u32);
/// When, and to what flow.
type EventOrder = (u64, Flow);

#[derive(Debug)]
struct Kept {
    plan: Arc<Plan>,
    events: Waiting<Event>,
    ended: Waiting<FlowReport>,
    /// Of both, beyond their limits.
    lost: u64,
}

/// A list whose bytes have a limit.
#[derive(Debug)]
struct Waiting<T> {
    rows: VecDeque<T>,
    bytes: usize,
    limit_bytes: usize,
}

impl<T> Waiting<T> {
    fn new(limit_bytes: usize) -> Waiting<T> {
        Waiting { rows: VecDeque::new(), bytes: 0, limit_bytes }
    }

    /// Room for an entry may be twice what is used.
    fn entry_bytes(bytes: usize) -> usize {
        bytes + size_of::<T>()
    }
}

/// The row of a flow, with point and interface for its number; the first of each is not written.
fn with_place(mut row: Value, flow: &Flow) -> Value {
    if let (Some(parts), Some(number)) = (row["flow"].as_object_mut(), flow.id) {
        parts.remove("flow_id");
        let of_point = number & ((1 << POINT_BITS) - 1);
        for (name, number) in [("point", of_point), ("interface", number >> POINT_BITS)] {
            if number > 0 {
                parts.insert(name.to_string(), json!(number));
            }
        }
    }
    row
}

fn order(report: &FlowReport) -> RecordOrder {
    (report.flow, report.key.name(), report.hops, report.epoch)
}

impl Sink for Kept {
    fn event(&mut self, event: Event) {
        // Paths that become known leave room for those that change.
        let decoded = matches!(event.kind, EventKind::PathDecoded { .. });
        let limit = if decoded { self.events.limit_bytes / 2 } else { self.events.limit_bytes };
        let bytes = Waiting::<Event>::entry_bytes(event.bytes());
        if self.events.bytes + bytes > limit {
            self.lost += 1;
            return;
        }
        self.events.bytes += bytes;
        self.events.rows.push_back(event);
    }

    /// The last records that ended are kept.
    fn ended(&mut self, report: FlowReport) {
        self.ended.bytes += Waiting::<FlowReport>::entry_bytes(report.bytes());
        self.ended.rows.push_back(report);
        while self.ended.bytes > self.ended.limit_bytes {
            let Some(oldest) = self.ended.rows.pop_front() else { return };
            self.ended.bytes -= Waiting::<FlowReport>::entry_bytes(oldest.bytes());
            self.lost += 1;
        }
    }
}

impl Kept {
    fn event_row(&self, event: &Event) -> (EventOrder, Value) {
        let mut row = with_place(event.to_json(&self.plan), &event.flow);
        row["kind"] = json!(format!("pint {}", row["event"].as_str().unwrap_or_default()));
        ((event.time_ns, event.flow), row)
    }
}

impl Decoding {
    /// Error: switches cannot run the plan.
    pub fn new(decoder: &Decoder, limit_bytes: usize) -> Result<Decoding, String> {
        let (ended, events) = (limit_bytes / 8 * ENDED_SHARE, limit_bytes / 8 * EVENTS_SHARE);
        let limits = Limits { bytes: limit_bytes - ended - events, ..Limits::default() };
        let collector = Collector::new(&decoder.plan, limits, Arc::clone(&decoder.paths));
        let plan = Arc::clone(&decoder.plan);
        Ok(Decoding {
            decoder: decoder.clone(),
            collector: collector.map_err(|error| format!("plan: {error}"))?,
            kept: Kept { plan, events: Waiting::new(events), ended: Waiting::new(ended), lost: 0 },
            refused: BTreeMap::new(),
        })
    }

    pub fn version(&self) -> u32 {
        self.decoder.plan.version()
    }

    pub fn bytes(&self) -> usize {
        self.collector.bytes() + self.kept.events.bytes + self.kept.ended.bytes
    }

    pub fn flows(&self) -> usize {
        self.collector.flows()
    }

    pub fn take(&mut self, row: &Recorded) {
        if let Err(refusal) = self.collector.take(row, &mut self.kept) {
            let text = match refusal {
                // One line for all versions that others may send.
                pint::collector::Refusal::OtherPlan { .. } => "recorded under another plan".to_owned(),
                refusal => refusal.to_string(),
            };
            *self.refused.entry(text).or_insert(0) += 1;
        }
    }

    /// The events since the last call, with when and to which flow they happened.
    pub fn take_events(&mut self) -> Vec<((u64, Flow), Value)> {
        self.kept.events.bytes = 0;
        let events = std::mem::take(&mut self.kept.events.rows);
        events.iter().map(|event| self.kept.event_row(event)).collect()
    }

    fn rows(&self) -> impl Iterator<Item = (RecordOrder, Value)> {
        let row =
            |report: &FlowReport| (order(report), with_place(report.to_json(&self.kept.plan), &report.flow));
        let kept = self.collector.reports().map(move |report| row(&report));
        self.kept.ended.rows.iter().map(row).chain(kept)
    }

    fn summary(&self) -> Value {
        let counts = self.collector.counts();
        json!({
            "digests": counts.digests, "unserved": counts.unserved, "other_plan": counts.other_plan,
            "hops_refused": counts.hops_refused, "impossible": counts.impossible,
            "paths_decoded": counts.paths_decoded, "paths_changed": counts.paths_changed,
            "inconsistent": counts.inconsistent, "strays": counts.strays, "repeated": counts.repeated,
            "evicted": counts.evicted,
            "not_kept": self.kept.lost, "refused": self.refused,
        })
    }
}

/// What is known of all flows, in their order: records that ended, and those that are kept.
pub fn rows(decodings: &[Decoding]) -> Vec<Value> {
    let mut rows: Vec<_> = decodings.iter().flat_map(Decoding::rows).collect();
    rows.sort_by_key(|(order, _)| *order);
    rows.into_iter().map(|(_, row)| row).collect()
}

/// Adds what happened to the digests of all shards to a summary, as a list of one (empty without a plan), and
/// their memory. `digests`: by what carried them.
pub fn add_to(summary: &mut Value, decodings: &[Decoding], digests: &BTreeMap<DigestCarrier, u64>) {
    let total = decodings.iter().map(Decoding::summary).reduce(|mut total, summary| {
        add(&mut total, &summary);
        total
    });
    let of_all = total.zip(decodings.first()).map(|(mut total, first)| {
        let unstated = digests.iter().filter(|(carrier, _)| !carrier.states_plan());
        total["plan"] = json!(format!("{:08x}", first.version()));
        total["without_version"] = json!(unstated.map(|(_, count)| count).sum::<u64>());
        total
    });
    summary["pint"] = of_all.into_iter().collect();
    let bytes: usize = decodings.iter().map(Decoding::bytes).sum();
    summary["memory_bytes"] = json!(summary["memory_bytes"].as_u64().unwrap_or(0) + bytes as u64);
}

/// Adds the numbers of an object to those of the same names in another.
fn add(total: &mut Value, more: &Value) {
    for (name, value) in more.as_object().into_iter().flatten() {
        match value.as_u64() {
            Some(number) => total[name] = json!(total[name].as_u64().unwrap_or(0) + number),
            None => add(&mut total[name], value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{Markers, Telemetry, telemetry};
    use crate::workload::digest_decoder;

    /// Digests of chance of one flow, whose number of hops changes every three packets: each change ends a
    /// record.
    fn changing(limit_bytes: usize, packets: u64) -> Decoding {
        let decoder = digest_decoder().unwrap();
        let plan_version = decoder.plan.version();
        let mut decoding = Decoding::new(&decoder, limit_bytes).unwrap();
        for packet in 0..packets {
            let (digest, hops) = (mix(packet) & 0xffff, 11 + (packet / 3 % 2) as u32);
            decoding.take(&Recorded { packet, digest, hops, plan_version, ..Recorded::default() });
            assert!(decoding.bytes() <= limit_bytes, "packet {packet}: {} bytes", decoding.bytes());
        }
        decoding
    }

    #[test]
    fn records_that_ended_have_a_limit_of_memory_and_the_last_ones_are_kept() {
        let decoding = changing(400_000, 6_000);
        let epochs: Vec<_> = decoding.rows().map(|((.., epoch), _)| epoch).collect();
        assert!(epochs.len() > 20 && epochs.windows(2).all(|pair| pair[1] == pair[0] + 1), "{epochs:?}");
        let mut summary = json!({"memory_bytes": 7});
        let digests = BTreeMap::from([(DigestCarrier::Ipv4Id, 5), (DigestCarrier::Option, 6)]);
        add_to(&mut summary, std::slice::from_ref(&decoding), &digests);
        assert!(summary["pint"][0]["not_kept"].as_u64().unwrap() > 0);
        assert_eq!(summary["pint"][0]["without_version"], 5);
        assert_eq!(summary["memory_bytes"], 7 + decoding.bytes());
    }

    #[test]
    fn a_digest_of_zero_in_a_flow_label_is_one_whatever_the_version_of_its_plan() {
        for plan_version in [0x20dd_3940, 0xcb1b_8241] {
            let label = label_bits(plan_version) << 16;
            let mut packet = [0; 48];
            packet[..8]
                .copy_from_slice(&(u64::from(6 << 28 | label) << 32 | 8 << 16 | 17 << 8 | 61).to_be_bytes());
            let ip = Ip::parse(&packet).unwrap();
            let markers = Markers { pint_flow_label: true, ..Markers::default() };
            let mut taken = Vec::new();
            telemetry(&ip, &markers, &mut |found| {
                if let Ok(Telemetry::Digest(digest)) = found {
                    taken.push(recorded(&ip, &digest, plan_version, Point::Interface(0), 7).unwrap());
                }
            });
            let [row] = taken.as_slice() else { panic!("{taken:?}") };
            assert_eq!((row.digest, row.hops, row.plan_version), (0, 3, plan_version));
        }
    }

    /// UDP over IPv6 to the last of these segments, with a routing header of this type, before `left` of them.
    fn routed(kind: u8, segments: &[[u8; 16]], left: u8) -> u64 {
        let extension: Vec<u8> =
            [17, 2 * segments.len() as u8, kind, left, segments.len() as u8 - 1, 0, 0, 0]
                .into_iter()
                .chain(segments.iter().rev().copied().flatten())
                .collect();
        let length = (extension.len() + 8) as u16;
        let now = segments[segments.len() - 1 - usize::from(left)];
        let mut packet = [&[0x60, 0, 0, 0][..], &length.to_be_bytes(), &[43, 60], &[0xfd; 16], &now].concat();
        packet.extend(extension);
        packet.extend([0x13, 0x88, 0x23, 0x28, 0, 8, 0x12, 0x34]);
        packet_id(&Ip::parse(&packet).unwrap())
    }

    /// RFC 8754, §4.3.1: a segment's end writes the next segment into the destination address.
    #[test]
    fn a_packet_with_segments_has_one_id_on_its_whole_path() {
        let segments = [[0xa1; 16], [0xa2; 16], [0xa3; 16]];
        let on_path = [2, 1, 0].map(|left| routed(SEGMENT_ROUTING, &segments, left));
        assert_eq!(on_path, [on_path[2]; 3]);
        // The same packet without a routing header, as the destination may see it.
        let mut packet = [&[0x60, 0, 0, 0, 0, 8, 17, 60], &[0xfd; 16][..], &segments[2]].concat();
        packet.extend([0x13, 0x88, 0x23, 0x28, 0, 8, 0x12, 0x34]);
        assert_eq!(on_path[2], packet_id(&Ip::parse(&packet).unwrap()));
        // Of the lists of other types nothing is known.
        assert_ne!(routed(3, &segments, 1), on_path[2]);
    }

    const SEGMENT_ROUTING: u8 = 4;

    #[test]
    fn as_many_events_wait_as_the_memory_holds() {
        let decoder = digest_decoder().unwrap();
        let plan_version = decoder.plan.version();
        let mut decoding = Decoding::new(&decoder, 64 << 20).unwrap();
        for packet in 0..20_000 {
            decoding.take(&Recorded { packet, looped: true, plan_version, ..Recorded::default() });
        }
        assert!(decoding.bytes() > 1 << 20);
        assert_eq!(decoding.take_events().len(), 20_000);
        assert!(decoding.bytes() < 1 << 20 && decoding.summary()["not_kept"] == 0);
    }
}
