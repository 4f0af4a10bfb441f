//! The telemetry that RDMA packets carry, between UDP and the rest of the packet.
//!
//! ```text
//!  0      version (4 bits, 1), contents (4 bits: 1 INT, 2 PINT, 4 timestamp, 8 INT with more hops than records)
//!  1      INT: in how many 128 B the bytes sent, and in how many 80 B the queue, are counted.  PINT: bytes of the digest
//!  2, 3   bytes of this header and of all that follows it up to the rest of the packet
//!  4, 5   the UDP port that the rest is for
//!  6, 7   INT: hops (4 bits, 15 for more), path id (12 bits).  PINT: bit 15 a loop was found; hops (8 bits)
//!  then   timestamp: 8 bytes, ns
//!         INT: 8 bytes a hop: rate (3 bits), time in ns (24), bytes sent (20), queue (17)
//!         PINT: the digest
//! ```
//!
//! Records have the same width as on the wire. Rate codes 1 to 7 stand for 10, 25, 40, 50, 100, 200 and 400
//! Gb/s, 0 for other rates.
//!
//! Source: Li et al., "HPCC", SIGCOMM 2019, Fig 7 (records, hops, path id); Ben Basat et al., "PINT", SIGCOMM
//! 2020, §3 (a digest of a few bits). That a port states what follows, and the original port is kept, is as
//! with INT over UDP (P4.org, INT 2.1 §5.5).

use crate::packet::Packet;
use crate::telemetry::int::{IntLayout, IntRecord, IntView};
use crate::telemetry::packet_digest::PacketDigest;
use crate::telemetry::pint::PintConfig;
use crate::transport::Settings;
use crate::transport::rdma::RdmaConfig;

/// The UDP port of packets with telemetry.
pub const PORT: u16 = 49_201;
const VERSION: u8 = 1;
const INT: u8 = 1;
const PINT: u8 = 2;
const TIMESTAMP: u8 = 4;
/// Later hops have overwritten the records of earlier ones.
const OVERWRITTEN: u8 = 8;
const FIXED: usize = 8;
/// Of [`IntLayout::sent_unit`].
const UNIT: u32 = 128;

/// The telemetry of a packet with its header, or nothing. `places`: what it carries, its head first.
pub fn telemetry(packet: &Packet, settings: &Settings, of: &RdmaConfig, places: &mut [IntRecord]) -> Vec<u8> {
    let mut shim = vec![VERSION << 4, 0, 0, 0, 0, 0, 0, 0];
    shim[4..6].copy_from_slice(&super::rdma::PORT.to_be_bytes());
    if of.controller.needs().timestamp {
        shim[0] |= TIMESTAMP;
        shim.extend(packet.sent.ns().to_be_bytes());
    }
    if !places.is_empty() {
        match &settings.pint {
            Some(pint) => digest(&mut shim, pint, places),
            None => records(&mut shim, settings.int_layout, places, settings.path_ids),
        }
    }
    if shim.len() == FIXED && shim[0] & 15 == 0 {
        return Vec::new();
    }
    let length = (shim.len() as u16).to_be_bytes();
    shim[2..4].copy_from_slice(&length);
    shim
}

/// The records of INT.
fn records(shim: &mut Vec<u8>, layout: IntLayout, places: &[IntRecord], path_ids: bool) {
    let Some(view) = IntView::of(places) else { return };
    shim[0] |= INT;
    if view.hops as usize > view.records.len() {
        shim[0] |= OVERWRITTEN;
    }
    shim[1] = (layout.sent_unit / UNIT) as u8;
    let path = if path_ids { view.path_id & 0xfff } else { 0 };
    let head = (view.hops.min(15) as u16) << 12 | path;
    shim[6..8].copy_from_slice(&head.to_be_bytes());
    view.records.iter().for_each(|record| shim.extend(packed(record).to_be_bytes()));
}

/// A record as 64 bits.
fn packed(record: &IntRecord) -> u64 {
    let rate = match record.rate_kbps {
        10_000_000 => 1,
        25_000_000 => 2,
        40_000_000 => 3,
        50_000_000 => 4,
        100_000_000 => 5,
        200_000_000 => 6,
        400_000_000 => 7,
        _ => 0,
    };
    let fields = [
        (u64::from(record.time), IntRecord::TIME_BITS),
        (u64::from(record.sent), IntRecord::SENT_BITS),
        (u64::from(record.queue), IntRecord::QUEUE_BITS),
    ];
    fields.iter().fold(rate, |word, (value, bits)| word << bits | value & ((1 << bits) - 1))
}

/// PINT's digest of the hops passed so far.
fn digest(shim: &mut Vec<u8>, pint: &PintConfig, places: &mut [IntRecord]) {
    if places.len() < 2 {
        return;
    }
    let mut packet_digest = PacketDigest::of(places);
    let digest = pint.digest(&mut packet_digest).to_be_bytes();
    let bytes = (pint.wire_bytes as usize).clamp(1, 8);
    shim[0] |= PINT;
    shim[1] = bytes as u8;
    shim[6] = u8::from(packet_digest.looped()) << 7;
    shim[7] = packet_digest.hops().min(255) as u8;
    shim.extend(&digest[8 - bytes..]);
}

#[cfg(test)]
mod tests;
