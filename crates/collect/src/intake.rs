//! Packets in: their telemetry is read and counted; paths and digests are passed to a [`Sink`].
//!
//! A stack that a hop could not write into is counted and tells nothing of the path. Delays and queues stay
//! in the units of the devices. Every packet and every refusal is counted, once: see [`Counts::adds_up`].

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Malformed;
use crate::capture::Packet;
use crate::flows::{FlowCounts, Point};
use crate::histogram::{self, Histogram};
use crate::int::{Header, Md, Values};
use crate::ioam::Ioam;
use crate::ip::{FlowKey, Ip};
use crate::packet::{Digest, DigestCarrier, Markers, Telemetry, id_is_in_use, telemetry};
use crate::pint::UselessDigest;
use crate::report::Group;
use crate::sequence::Sequence;
use crate::shim::Shim;

mod traces;

use traces::Traces;

/// The id, in a path, of a node that did not give one.
pub const UNKNOWN_NODE: u64 = u64::MAX;
const MAX_HOPS: usize = 65_536;
/// A hop in its table, which keeps room free.
const HOP_BYTES: usize = 2 * (size_of::<HopKey>() + size_of::<HopState>());
const MAX_SOURCES: usize = 1_000;

/// Which hop a measurement is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum HopKey {
    Node(u64),
    /// The n-th hop of all paths, from 1, where telemetry has no ids of nodes.
    Position(u8),
}

/// What is known of a hop; in units of the device.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HopState {
    pub latency: Histogram,
    pub queue: Histogram,
    /// Queues that filled their field, so that they may have been longer.
    // Checkpoints of earlier versions lack it.
    #[serde(default)]
    pub queue_minima: u64,
    /// The same of delays.
    #[serde(default)]
    pub latency_minima: u64,
    /// Packets that reports say were dropped here.
    pub drops: u64,
}

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// What happened to all input.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
        // Checkpoints of earlier versions lack what was not counted then.
        #[serde(default)]
        pub struct Counts {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counts {
            /// Names and values, in the order of the declaration.
            pub fn all(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name),)*]
            }
        }
    };
}

counts! {
    packets,
    /// Of a kind of link that is not read.
    other_links,
    not_ip,
    /// Frame or IP header malformed.
    unreadable,
    /// Telemetry malformed, and none that could be read.
    malformed_packets,
    /// Datagrams of sources that are muted or not allowed.
    unwelcome,
    without_telemetry,
    with_telemetry,
    /// Pieces of telemetry, by kind, from here on.
    int_md,
    int_mx,
    ioam_traces,
    ioam_direct_exports,
    ioam_edge_to_edge,
    ioam_other,
    hpcc,
    timestamps_only,
    pint_digests,
    /// With digests in IPv4 ids: unfragmented packets without DF, whose ids are for fragments (RFC 6864).
    ids_without_df,
    /// With a plan: digests that are more than its 64 bits.
    wide_digests,
    /// With a plan: of packets with a higher hop limit than the carrier says that they began with.
    impossible_hop_limits,
    /// With a plan: of packets that were cut off before the end of what their ids are made of.
    cut_digests,
    report_groups,
    reports,
    /// Of these, reports of a type whose contents no specification gives (IOAM): nothing else of them counts.
    opaque_reports,
    /// Packets in reports of which headers or INT are malformed, or cut off.
    malformed_in_reports,
    /// Not taken in again.
    repeated_groups,
    /// Stacks without a node.
    empty_stacks,
    /// Stacks that a hop did not write into: hop count, MTU or room used up.
    incomplete_stacks,
    /// Hops that a packet left before it came, by their clocks.
    negative_delays,
    flows_refused,
    flows_evicted,
    hops_refused,
    sources_refused,
    paths_refused,
    events_refused,
    /// Packets with another path than their flow's, but older than its newest packet.
    late_paths,
    /// Flows whose newest packet had a wrong time, or whose clock was set back.
    clock_steps,
    /// Findings that the shards were too slow for.
    shed,
}

impl Counts {
    /// With what a table of flows counted added.
    pub fn with(mut self, flows: &FlowCounts) -> Counts {
        self.flows_refused += flows.refused;
        self.flows_evicted += flows.evicted;
        self.paths_refused += flows.paths_refused;
        self.events_refused += flows.events_refused;
        self.late_paths += flows.late;
        self.clock_steps += flows.clock_steps;
        self
    }

    /// Whether every packet was counted once.
    pub fn adds_up(&self) -> bool {
        self.packets
            == self.other_links
                + self.not_ip
                + self.unreadable
                + self.malformed_packets
                + self.unwelcome
                + self.without_telemetry
                + self.with_telemetry
    }
}

/// Who receives the paths and digests that packets carry.
pub trait Sink {
    /// The path of a packet, oldest hop first.
    fn path(&mut self, flow: &FlowKey, point: Point, time_ns: u64, nodes: &[u64]);
    /// A digest of PINT in a packet. Error: it is of no use.
    fn digest(
        &mut self,
        _ip: &Ip,
        _digest: &Digest,
        _point: Point,
        _time_ns: u64,
    ) -> Result<(), UselessDigest> {
        Ok(())
    }
}

/// What an intake knows, as it is saved.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SavedIntake {
    counts: Counts,
    malformed: Vec<(Malformed, u64)>,
    #[serde(default)]
    malformed_in_reports: Vec<(Malformed, u64)>,
    digests: Vec<(DigestCarrier, u64)>,
    hops: Vec<(HopKey, HopState)>,
    sources: Vec<((u32, u8), Sequence)>,
}

impl SavedIntake {
    pub fn hops(&self) -> BTreeMap<HopKey, HopState> {
        self.hops.iter().cloned().collect()
    }
}

/// Takes packets in: reads their telemetry, counts it, and keeps what is known of hops and sources.
#[derive(Debug)]
pub struct Intake {
    markers: Arc<Markers>,
    counts: Counts,
    malformed: BTreeMap<Malformed, u64>,
    /// Of the packets that reports are about.
    malformed_in_reports: BTreeMap<Malformed, u64>,
    /// Of the captures that are read.
    point: Option<u16>,
    digests: BTreeMap<DigestCarrier, u64>,
    hops: BTreeMap<HopKey, HopState>,
    /// Bytes that hops may still take.
    hop_room: usize,
    hop_bytes: usize,
    sources: BTreeMap<(u32, u8), Sequence>,
    /// The path that is being put together.
    building: Vec<u64>,
}

impl Intake {
    /// `limit_bytes`: of the measurements of hops.
    pub fn new(markers: Markers, limit_bytes: usize) -> Intake {
        Intake {
            markers: Arc::new(markers),
            counts: Counts::default(),
            malformed: BTreeMap::new(),
            malformed_in_reports: BTreeMap::new(),
            point: None,
            digests: BTreeMap::new(),
            hops: BTreeMap::new(),
            hop_room: limit_bytes,
            hop_bytes: 0,
            sources: BTreeMap::new(),
            building: Vec::new(),
        }
    }

    /// What is known, to be restored.
    pub fn saved(&self) -> SavedIntake {
        SavedIntake {
            counts: self.counts,
            malformed: self.malformed.iter().map(|(&reason, &count)| (reason, count)).collect(),
            malformed_in_reports: self.malformed_in_reports.iter().map(|(&reason, &n)| (reason, n)).collect(),
            digests: self.digests.iter().map(|(&carrier, &count)| (carrier, count)).collect(),
            hops: self.hops.iter().map(|(&key, state)| (key, state.clone())).collect(),
            sources: self.sources.iter().map(|(&key, &sequence)| (key, sequence)).collect(),
        }
    }

    /// Continues from what was known.
    pub fn restore(&mut self, saved: SavedIntake) {
        self.counts = saved.counts;
        self.malformed = saved.malformed.into_iter().collect();
        self.malformed_in_reports = saved.malformed_in_reports.into_iter().collect();
        self.digests = saved.digests.into_iter().collect();
        self.hops = saved.hops.into_iter().collect();
        self.sources = saved.sources.into_iter().collect();
        let of_hop = |hop: &HopState| HOP_BYTES + hop.latency.bytes() + hop.queue.bytes();
        self.hop_bytes = self.hops.values().map(of_hop).sum();
    }

    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Refusals by their reason.
    pub fn malformed(&self) -> &BTreeMap<Malformed, u64> {
        &self.malformed
    }

    /// What was malformed in packets that reports are about, by its reason.
    pub fn malformed_in_reports(&self) -> &BTreeMap<Malformed, u64> {
        &self.malformed_in_reports
    }

    /// Tells of which point of observation the captures are whose packets follow.
    pub fn set_point(&mut self, point: u16) {
        self.point = Some(point);
    }

    /// Digests of PINT by what carried them.
    pub fn digests(&self) -> &BTreeMap<DigestCarrier, u64> {
        &self.digests
    }

    pub fn hops(&self) -> &BTreeMap<HopKey, HopState> {
        &self.hops
    }

    /// Node and hardware unit, and the sequence of their reports.
    pub fn sources(&self) -> &BTreeMap<(u32, u8), Sequence> {
        &self.sources
    }

    /// Bytes of the measurements of hops.
    pub fn bytes(&self) -> usize {
        self.hop_bytes
    }

    /// Counts findings that could not be handed on.
    pub fn count_shed(&mut self, findings: u64) {
        self.counts.shed += findings;
    }

    /// Counts a datagram of a source that is muted or not allowed.
    pub fn count_unwelcome(&mut self) {
        self.counts.packets += 1;
        self.counts.unwelcome += 1;
    }

    /// Takes the payload of a datagram that a socket received: a group of reports. Returns whether it is one.
    pub fn take_datagram(&mut self, bytes: &[u8], time_ns: u64, sink: &mut impl Sink) -> bool {
        self.counts.packets += 1;
        match Group::parse(bytes) {
            Ok(group) => {
                self.counts.with_telemetry += 1;
                let markers = Arc::clone(&self.markers);
                self.group(&group, &markers, time_ns, sink)
            }
            Err(malformed) => {
                self.counts.malformed_packets += 1;
                self.refuse(malformed);
                false
            }
        }
    }

    /// Takes a packet of a capture or of an interface.
    pub fn take(&mut self, packet: &Packet, sink: &mut impl Sink) {
        self.counts.packets += 1;
        let Some(link) = packet.link else {
            self.counts.other_links += 1;
            return;
        };
        match link.ip(packet.bytes) {
            Ok(Some(bytes)) => {
                let interface = link.interface(packet.bytes).unwrap_or(packet.interface);
                let captured = |point| Point::Capture { point, interface };
                let point = self.point.map_or(Point::Interface(interface), captured);
                self.take_ip(bytes, packet.time_ns, point, sink);
            }
            Ok(None) => self.counts.not_ip += 1,
            Err(malformed) => {
                self.counts.unreadable += 1;
                self.refuse(malformed);
            }
        }
    }

    fn take_ip(&mut self, bytes: &[u8], time_ns: u64, point: Point, sink: &mut impl Sink) {
        let ip = match Ip::parse(bytes) {
            Ok(ip) => ip,
            Err(malformed) => {
                self.counts.unreadable += 1;
                self.refuse(malformed);
                return;
            }
        };
        let markers = Arc::clone(&self.markers);
        self.counts.ids_without_df += u64::from(markers.pint_ipv4_id && id_is_in_use(&ip));
        let (mut found, mut refused) = (false, false);
        let mut traces = Traces::default();
        telemetry(&ip, &markers, &mut |result| match result {
            Ok(telemetry) => {
                found = true;
                match telemetry {
                    Telemetry::Ioam(Ioam::Trace(trace)) => traces.push(trace),
                    _ => self.take_telemetry(&ip, &telemetry, &markers, (time_ns, point), sink),
                }
            }
            Err(malformed) => {
                refused = true;
                self.refuse(malformed);
            }
        });
        self.take_traces(&ip, &traces, (time_ns, point), sink);
        match (found, refused) {
            (true, _) => self.counts.with_telemetry += 1,
            (false, true) => self.counts.malformed_packets += 1,
            (false, false) => self.counts.without_telemetry += 1,
        }
    }

    fn refuse(&mut self, malformed: Malformed) {
        *self.malformed.entry(malformed).or_insert(0) += 1;
    }

    /// Counts what is malformed in the packet of a report, which may also hold only the start of one.
    fn refuse_inside(&mut self, malformed: Malformed) {
        self.counts.malformed_in_reports += 1;
        *self.malformed_in_reports.entry(malformed).or_insert(0) += 1;
    }

    fn take_telemetry(
        &mut self,
        ip: &Ip,
        found: &Telemetry,
        markers: &Markers,
        (time_ns, point): (u64, Point),
        sink: &mut impl Sink,
    ) {
        match found {
            Telemetry::Int { flow, header: Header::Md(md), .. } => {
                self.stack(md);
                self.observe(flow, point, time_ns, md.hops_exceeded || md.mtu_exceeded, sink);
            }
            Telemetry::Int { header: Header::Mx(_), .. } => self.counts.int_mx += 1,
            // Taken with the other traces of the packet.
            Telemetry::Ioam(Ioam::Trace(_)) => {}
            Telemetry::Ioam(Ioam::DirectExport(_)) => self.counts.ioam_direct_exports += 1,
            Telemetry::Ioam(Ioam::EdgeToEdge(_)) => self.counts.ioam_edge_to_edge += 1,
            Telemetry::Ioam(Ioam::Other(_)) => self.counts.ioam_other += 1,
            Telemetry::Shim(shim) => self.shim(shim),
            Telemetry::Digest(digest) => {
                self.counts.pint_digests += 1;
                *self.digests.entry(digest.carrier).or_insert(0) += 1;
                match sink.digest(ip, digest, point, time_ns) {
                    Ok(()) => {}
                    Err(UselessDigest::TooWide) => self.counts.wide_digests += 1,
                    Err(UselessDigest::HopLimit) => self.counts.impossible_hop_limits += 1,
                    Err(UselessDigest::Cut) => self.counts.cut_digests += 1,
                }
            }
            Telemetry::Reports(group) => {
                self.group(group, markers, time_ns, sink);
            }
        }
    }

    /// Takes the hops of a stack, and begins a path with them.
    fn stack(&mut self, md: &Md) {
        self.counts.int_md += 1;
        self.building.clear();
        for hop in md.hops() {
            let values = hop.values();
            let node = values.node.map_or(UNKNOWN_NODE, u64::from);
            self.building.push(node);
            self.measure(HopKey::Node(node), &values);
        }
    }

    fn measure(&mut self, key: HopKey, values: &Values) {
        let latency = match (values.hop_latency, values.ingress_time.zip(values.egress_time)) {
            (None, Some((ingress, egress))) => {
                self.counts.negative_delays += u64::from(egress < ingress);
                egress.checked_sub(ingress)
            }
            (latency, _) => latency.map(u64::from),
        };
        self.measured(key, latency, values.queue.map(|(_, occupancy)| occupancy.into()));
    }

    fn measured(&mut self, key: HopKey, latency: Option<u64>, queue: Option<u64>) {
        if latency.is_none() && queue.is_none() {
            return;
        }
        let Some(hop) = self.hop(key) else { return };
        let mut grown = 0;
        for (histogram, value) in [(&mut hop.latency, latency), (&mut hop.queue, queue)] {
            grown += value.map_or(0, |value| histogram.add(value));
        }
        self.hop_bytes += grown;
    }

    /// The state of a hop; None, counted, if it is a new one and there are too many, or if there is no room
    /// for its measurements.
    fn hop(&mut self, key: HopKey) -> Option<&mut HopState> {
        let known = self.hops.contains_key(&key);
        let new_bytes = if known { 0 } else { HOP_BYTES };
        let no_room = self.hop_bytes + new_bytes + 2 * histogram::MAX_GROWTH_BYTES > self.hop_room;
        if no_room || !known && self.hops.len() >= MAX_HOPS {
            self.counts.hops_refused += 1;
            return None;
        }
        self.hop_bytes += new_bytes;
        Some(self.hops.entry(key).or_default())
    }

    fn shim(&mut self, shim: &Shim) {
        if let Some(hpcc) = &shim.hpcc {
            self.counts.hpcc += 1;
            self.counts.incomplete_stacks += u64::from(hpcc.overwritten);
            for (position, record) in (1..).zip(hpcc.records()) {
                let key = HopKey::Position(position);
                self.measured(key, None, Some(record.queue_bytes));
                if let Some(hop) = self.hops.get_mut(&key) {
                    hop.queue_minima += u64::from(record.queue_is_minimum);
                }
            }
        }
        self.counts.pint_digests += u64::from(shim.pint.is_some());
        self.counts.timestamps_only += u64::from(shim.hpcc.is_none() && shim.pint.is_none());
    }

    /// Returns whether all of its reports could be read.
    fn group(&mut self, group: &Group, markers: &Markers, time_ns: u64, sink: &mut impl Sink) -> bool {
        self.counts.report_groups += 1;
        let source = (group.node, group.hardware);
        // Of a late group: paths that were seen since then are newer than its own.
        let mut sent_ns = Some(time_ns);
        if self.sources.len() < MAX_SOURCES || self.sources.contains_key(&source) {
            sent_ns = self.sources.entry(source).or_default().take(group.sequence, time_ns);
        } else {
            self.counts.sources_refused += 1;
        }
        let Some(time_ns) = sent_ns else {
            self.counts.repeated_groups += 1;
            return true;
        };
        let node = HopKey::Node(group.node.into());
        for report in group.reports() {
            let report = match report {
                Ok(report) => report,
                Err(malformed) => {
                    self.refuse(malformed);
                    return false;
                }
            };
            self.counts.reports += 1;
            if report.is_opaque {
                self.counts.opaque_reports += 1;
                continue;
            }
            if report.has_values {
                self.measure(node, &report.values());
            }
            if report.dropped {
                if let Some(hop) = self.hop(node) {
                    hop.drops += 1;
                }
            }
            let ip = match report.ip().and_then(|bytes| bytes.map(Ip::parse).transpose()) {
                Ok(Some(ip)) => ip,
                Ok(None) => continue,
                Err(malformed) => {
                    self.refuse_inside(malformed);
                    continue;
                }
            };
            telemetry(&ip, markers, &mut |result| {
                let (flow, md) = match result {
                    Ok(Telemetry::Int { flow, header: Header::Md(md), .. }) => (flow, md),
                    Ok(_) => return,
                    Err(malformed) => return self.refuse_inside(malformed),
                };
                self.stack(&md);
                // The sink's own values stand in the stack or in the report.
                if self.building.last() != Some(&group.node.into()) {
                    self.building.push(group.node.into());
                }
                let incomplete = md.hops_exceeded || md.mtu_exceeded || report.intermediate;
                self.observe(&flow, Point::Node(group.node), time_ns, incomplete, sink);
            });
        }
        true
    }

    /// Hands the path that was put together on.
    fn observe(
        &mut self,
        flow: &FlowKey,
        point: Point,
        time_ns: u64,
        incomplete: bool,
        sink: &mut impl Sink,
    ) {
        if self.building.is_empty() {
            self.counts.empty_stacks += 1;
        } else if incomplete {
            self.counts.incomplete_stacks += 1;
        } else {
            sink.path(flow, point, time_ns, &self.building);
        }
    }
}
