//! Telemetry in the data packets of transports that make no use of it: put in where a packet leaves its host, taken off where it
//! arrives, as a NIC or a virtual switch does it.
//!
//! RDMA carries telemetry by itself, because its acknowledgements bring it back. The data of all others has it one way: a PINT digest
//! under `telemetry.kind = "pint"`, INT records with `telemetry.all`. Their headers are longer by its bytes
//! ([`TransportConfig::with_telemetry`]); acknowledgements and signals carry none.

use crate::measure::DigestRecord;
use crate::net::partition::Partition;
use crate::packet::{Packet, PacketId, PacketKind};
use crate::telemetry::TelemetryConfig;
use crate::telemetry::pint::{PintConfig, packet_id};
use crate::transport::TransportConfig;
use crate::wire::mptcp::subflow_of;
use std::sync::Arc;

pub struct TelemetryShim {
    /// By the settings that a packet names.
    profiles: Box<[Profile]>,
    pint: Option<Arc<PintConfig>>,
    seed: u64,
}

/// What the edge does for the packets of one transport's settings.
#[derive(Clone, Copy)]
struct Profile {
    /// On the wire; 0: nothing is put in.
    bytes: u32,
    /// The upper bits of a packet's `sender` number its subflow.
    multipath: bool,
}

/// Where the number of a subflow goes in a packet's id.
const SUBFLOW_SHIFT: u32 = 56;

impl TelemetryShim {
    /// None where no transport of the run needs it.
    pub fn new(
        transports: &[TransportConfig],
        telemetry: &TelemetryConfig,
        seed: u64,
    ) -> Option<TelemetryShim> {
        let profile = |transport: &TransportConfig| Profile {
            bytes: transport.telemetry_at_edge(telemetry),
            multipath: transport.facts().subflows.is_some(),
        };
        let profiles: Box<[Profile]> = transports.iter().map(profile).collect();
        if profiles.iter().all(|profile| profile.bytes == 0) {
            return None;
        }
        let pint = match telemetry {
            TelemetryConfig::Pint(pint) => Some(pint.clone()),
            _ => None,
        };
        Some(TelemetryShim { profiles, pint, seed })
    }

    /// A packet leaves its host.
    #[inline]
    pub fn on_egress(&self, net: &mut Partition, id: PacketId) {
        let packet = &net.packets[id];
        let profile = self.profiles[usize::from(packet.profile)];
        if packet.kind != PacketKind::Data || profile.bytes == 0 {
            return;
        }
        debug_assert!(!packet.carries, "the transport has attached telemetry to a data packet");
        let first = net.carried_of(id).start;
        let name = packet_id(packet.flow, first) ^ u64::from(profile.subflow(packet)) << SUBFLOW_SHIFT;
        net.begin_telemetry(id);
        if let Some(pint) = &self.pint {
            net.packet_digest(id).begin(name, pint.set_of(name));
        }
        net.telemetry_bytes += u64::from(profile.bytes);
    }

    /// A packet has come: its transport sees it without telemetry.
    #[inline]
    pub fn on_ingress(&self, net: &mut Partition, id: PacketId) {
        let packet = net.packets[id];
        let profile = self.profiles[usize::from(packet.profile)];
        if packet.kind != PacketKind::Data || profile.bytes == 0 || !packet.carries {
            return;
        }
        if let Some(pint) = &self.pint {
            record_digest(pint, id, profile.subflow(&packet), self.seed, net);
        }
        net.packets[id].carries = false;
    }
}

impl Profile {
    fn subflow(self, packet: &Packet) -> u32 {
        if self.multipath { u32::from(subflow_of(packet).1) } else { 0 }
    }
}

/// The digest of a packet that has arrived is recorded.
#[inline(never)]
pub fn record_digest(pint: &PintConfig, id: PacketId, subflow: u32, seed: u64, net: &mut Partition) {
    if pint.recorded == 0 {
        return;
    }
    let (packet, now) = (net.packets[id], net.now);
    let mut packet_digest = net.packet_digest(id);
    if !pint.records(seed, packet_digest.packet()) {
        return;
    }
    let record = DigestRecord {
        time: now,
        flow: packet.flow,
        subflow,
        src: packet.src,
        dst: packet.dst,
        packet: packet_digest.packet(),
        path: pint.paths.then(|| Box::new(pint.path(&packet_digest))),
        digest: pint.digest(&mut packet_digest),
        looped: packet_digest.looped(),
        hops: packet_digest.hops(),
        plan_version: pint.version,
    };
    net.recorder.digest(record);
}
