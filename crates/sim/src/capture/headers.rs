//! Ethernet, IPv4 and UDP headers.
//!
//! Node n has the MAC address 02:00 followed by its number in four bytes. The Ethernet source and destination are the two ends of the link, as between routers. A
//! traffic class is written as the class selector of the same number. Packets whose sender reacts to marks
//! are ECT(0); marked ones are CE. Packets are not fragmented, so their identification is 0 (RFC 6864 §4.1),
//! and their time to live is not decremented.
//!
//! Source: IEEE 802.3 §3.2; RFC 791 §3.1, RFC 768, RFC 1071 (checksums), RFC 2474 §4.2.2 (class selectors),
//! RFC 3168 §5.

use crate::packet::{Packet, PacketKind, flag};
use crate::wire::addresses::address;

pub const IPV4: u16 = 0x0800;
pub const TCP: u8 = 6;
pub const UDP: u8 = 17;
const TIME_TO_LIVE: u8 = 64;
pub const IPV4_BYTES: usize = 20;
pub const UDP_BYTES: usize = 8;

/// The MAC address of a node.
pub fn mac(node: u32) -> [u8; 6] {
    let [a, b, c, d] = node.to_be_bytes();
    [2, 0, a, b, c, d]
}

/// The Ethernet header of a frame from one node to another.
pub fn ethernet(to: &mut Vec<u8>, from: [u8; 6], into: [u8; 6], kind: u16) {
    to.extend(into);
    to.extend(from);
    to.extend(kind.to_be_bytes());
}

/// The IPv4 header of a packet between two hosts, with `rest` bytes after it.
pub fn ipv4(packet: &Packet, protocol: u8, hosts: [u32; 2], rest: usize) -> [u8; IPV4_BYTES] {
    let mut header = [0; IPV4_BYTES];
    header[0] = 0x45;
    header[1] = packet.wire_class << 5 | congestion_bits(packet);
    header[2..4].copy_from_slice(&length(IPV4_BYTES + rest));
    // Flag: do not fragment.
    header[6] = 0x40;
    header[8] = TIME_TO_LIVE;
    header[9] = protocol;
    header[12..16].copy_from_slice(&address(hosts[0]));
    header[16..].copy_from_slice(&address(hosts[1]));
    let sum = checksum(&[&header]);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    header
}

/// Inserts options, a multiple of four bytes, into the IPv4 header at this offset.
pub fn add_options(frame: &mut Vec<u8>, at: usize, options: &[u8]) {
    debug_assert!(options.len() % 4 == 0 && options.len() <= 40);
    let length = usize::from(u16::from_be_bytes([frame[at + 2], frame[at + 3]])) + options.len();
    frame.splice(at + IPV4_BYTES..at + IPV4_BYTES, options.iter().copied());
    frame[at] += (options.len() / 4) as u8;
    frame[at + 2..at + 4].copy_from_slice(&self::length(length));
    frame[at + 10..at + 12].fill(0);
    let sum = checksum(&[&frame[at..at + IPV4_BYTES + options.len()]]);
    frame[at + 10..at + 12].copy_from_slice(&sum.to_be_bytes());
}

/// A length as a 16-bit field.
pub fn length(bytes: usize) -> [u8; 2] {
    u16::try_from(bytes).unwrap_or(u16::MAX).to_be_bytes()
}

/// RFC 3168: 0 not capable, 2 capable, 3 marked. In an acknowledgement the packet's flag is an echo, which
/// belongs into the transport's header.
fn congestion_bits(packet: &Packet) -> u8 {
    match packet.kind {
        PacketKind::Data if packet.marked() => 3,
        PacketKind::Data if packet.flags & flag::NOT_CAPABLE == 0 => 2,
        _ => 0,
    }
}

/// A UDP header without its checksum, with `rest` bytes after it.
pub fn udp(ports: [u16; 2], rest: usize) -> [u8; UDP_BYTES] {
    let mut header = [0; UDP_BYTES];
    header[..2].copy_from_slice(&ports[0].to_be_bytes());
    header[2..4].copy_from_slice(&ports[1].to_be_bytes());
    header[4..6].copy_from_slice(&length(UDP_BYTES + rest));
    header
}

/// RFC 1071 checksum over these slices in sequence. Each but the last must have an even length.
pub fn checksum(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let word = |chunk: &[u8]| u64::from(u16::from_be_bytes([chunk[0], chunk.get(1).copied().unwrap_or(0)]));
    let mut sum: u64 = words.map(word).sum();
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// The checksum of a segment: over its own bytes, `rest` zero bytes, and the pseudo-header of the IPv4 header.
pub fn segment_checksum(ipv4: &[u8; IPV4_BYTES], segment: &[u8], rest: usize) -> u16 {
    let [high, low] = length(segment.len() + rest);
    let pseudo = [0, ipv4[9], high, low];
    checksum(&[&ipv4[12..], &pseudo, segment])
}

#[cfg(test)]
mod tests;
