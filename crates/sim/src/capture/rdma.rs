//! Packets of queue pairs, as RoCEv2 has them: UDP to port 4791, the base transport header of InfiniBand, payload, and a CRC over
//! what no router changes.
//!
//! A flow is one message of the reliable connection's SEND: first, middle and last packet, or an only one. The queue pair's number is
//! 256 more than that of the flow that opened it (24 bits), a packet's the number of its first byte over the MTU. The mark that an acknowledgement echoes is its
//! BECN. Telemetry goes between UDP and the rest, behind a header of its own ([`super::shim`]) and under that one's port.
//!
//! Source: InfiniBand Architecture Specification 1.4, vol. 1, §9.2 (headers), §9.7.5.1 (syndromes), annex A17 (RoCEv2: port, CRC).

use super::headers::{self, IPV4_BYTES, UDP, UDP_BYTES};
use super::{Behind, ports_of, shim};
use crate::packet::{Packet, PacketKind};
use crate::transport::rdma::{FIRST, RdmaConfig};

/// Of RoCEv2.
pub const PORT: u16 = 4791;
const SEND_FIRST: u8 = 0;
const SEND_MIDDLE: u8 = 1;
const SEND_LAST: u8 = 2;
const SEND_ONLY: u8 = 4;
const ACKNOWLEDGE: u8 = 17;
/// Of an acknowledgement without a limit of credits, and of one that says that a packet is missing.
const ALL_CREDITS: u8 = 31;
const SEQUENCE_ERROR: u8 = 0x60;
const FIRST_PAIR: u32 = 256;
const BECN: u8 = 0x40;
const DEFAULT_PARTITION: [u8; 2] = [0xff; 2];

/// Writes a packet; `telemetry`: its header and what it carries, or nothing. Without it a packet is kept whole: Wireshark's reader
/// of InfiniBand takes one for malformed whose CRC it cannot see. `whole`: others are too.
pub fn packet(
    to: &mut Vec<u8>,
    packet: &Packet,
    settings: &RdmaConfig,
    telemetry: &[u8],
    whole: bool,
) -> Behind {
    let transport = transport_header(packet, settings);
    let payload = usize::from(packet.payload).next_multiple_of(4);
    let behind = transport.len() + payload + 4;
    let ports = [ports_of(packet, false)[0], PORT];
    let whole = whole || telemetry.is_empty();
    // Of the packet as its sender made it, before telemetry.
    let end = if whole { invariant_crc(packet, ports, &transport, payload) } else { [0; 4] };
    let ports = if telemetry.is_empty() { ports } else { [ports[0], shim::PORT] };
    let udp = headers::udp(ports, telemetry.len() + behind);
    to.extend(headers::ipv4(packet, UDP, [packet.src, packet.dst], UDP_BYTES + telemetry.len() + behind));
    to.extend(udp);
    to.extend(telemetry);
    to.extend(transport);
    Behind { payload, end: Some(end), whole }
}

/// The base transport header, and of acknowledgements the extended one.
fn transport_header(packet: &Packet, settings: &RdmaConfig) -> Vec<u8> {
    let mtu = u64::from(settings.mtu.max(1));
    let (code, number) = match packet.kind {
        PacketKind::Data => (send_code(packet), packet.seq / mtu),
        PacketKind::Nack => (ACKNOWLEDGE, packet.seq / mtu),
        // The last packet that has come in order.
        _ => (ACKNOWLEDGE, packet.seq.div_ceil(mtu).wrapping_sub(1)),
    };
    let padding = (4 - packet.payload % 4) as u8 & 3;
    let echo = packet.kind != PacketKind::Data && packet.marked();
    // Pairs 0 and 1 are for management.
    let [_, a, b, c] = packet.flow.wrapping_add(FIRST_PAIR).to_be_bytes();
    let [_, x, y, z] = (number as u32).to_be_bytes();
    let mut header = vec![code, padding << 4];
    header.extend(DEFAULT_PARTITION);
    header.extend([if echo { BECN } else { 0 }, a, b, c]);
    // Every packet asks for an acknowledgement.
    header.extend([if code == ACKNOWLEDGE { 0 } else { 0x80 }, x, y, z]);
    if code == ACKNOWLEDGE {
        let syndrome = if packet.kind == PacketKind::Nack { SEQUENCE_ERROR } else { ALL_CREDITS };
        // No message is complete that is not over.
        header.extend([syndrome, 0, 0, 0]);
    }
    header
}

fn send_code(packet: &Packet) -> u8 {
    match (packet.seq == 0 || packet.flags & FIRST != 0, packet.is_last()) {
        (true, true) => SEND_ONLY,
        (true, false) => SEND_FIRST,
        (false, false) => SEND_MIDDLE,
        (false, true) => SEND_LAST,
    }
}

/// The CRC of a packet with so many bytes of zeros for its payload: what routers change counts as ones (annex A17.3.3).
fn invariant_crc(packet: &Packet, ports: [u16; 2], transport: &[u8], payload: usize) -> [u8; 4] {
    let behind = transport.len() + payload + 4;
    let mut ipv4: [u8; IPV4_BYTES] = headers::ipv4(packet, UDP, [packet.src, packet.dst], UDP_BYTES + behind);
    for changes in [1, 8, 10, 11] {
        ipv4[changes] = 0xff;
    }
    let mut udp = headers::udp(ports, behind);
    udp[6..].fill(0xff);
    let mut transport = transport.to_vec();
    transport[4] = 0xff;
    let crc = [&[0xff; 8][..], &ipv4, &udp, &transport].iter().fold(!0, |crc, bytes| crc32(crc, bytes));
    let crc = (0..payload).fold(crc, |crc, _| crc32(crc, &[0]));
    (!crc).to_le_bytes()
}

/// The CRC of Ethernet, so far `crc`, over more bytes (IEEE 802.3 §3.2.9), low bit first.
fn crc32(crc: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(crc, |crc, &byte| CRCS[((crc ^ u32::from(byte)) & 0xff) as usize] ^ crc >> 8)
}

const CRCS: [u32; 256] = {
    let mut crcs = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut crc, mut bit) = (byte as u32, 0);
        while bit < 8 {
            crc = crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 };
            bit += 1;
        }
        crcs[byte] = crc;
        byte += 1;
    }
    crcs
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::flag;

    #[test]
    fn the_crc_of_the_digits_is_the_known_one() {
        assert_eq!(!crc32(!0, b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn a_message_has_a_first_a_middle_and_a_last_packet() {
        let of = |seq, flags| send_code(&Packet { seq, flags, ..Packet::default() });
        assert_eq!([of(0, 0), of(1000, 0), of(2000, flag::LAST)], [0, 1, 2]);
        assert_eq!(of(0, flag::LAST), 4);
        // A flow behind others of its queue pair.
        assert_eq!([of(3000, FIRST), of(3000, FIRST | flag::LAST)], [0, 4]);
    }
}
