//! Packets of queue pairs as RoCEv2: UDP to port 4791, the base transport header of InfiniBand, payload, and
//! a CRC over the fields that routers do not change.
//!
//! A flow is one message of a reliable connection's SEND: first, middle and last packets, or a single one.
//! The number of the queue pair is that of the flow that opened it plus 256 (24 bits); the sequence number of
//! a packet is the offset of its first byte divided by the MTU. The mark that an acknowledgement echoes is
//! the BECN bit. Telemetry is between UDP and the base header, with a header ([`super::shim`]) and a UDP port
//! of its own.
//!
//! Source: InfiniBand Architecture Specification 1.4, vol. 1, §9.2 (headers), §9.7.5.1 (syndromes), annex A17
//! (RoCEv2: port, CRC).

use super::headers::{self, IPV4_BYTES, UDP, UDP_BYTES};
use super::{Rest, ports_of, shim};
use crate::packet::{Packet, PacketKind};
use crate::transport::rdma::{FIRST, RdmaConfig};

/// UDP port of RoCEv2.
pub const PORT: u16 = 4791;
const SEND_FIRST: u8 = 0;
const SEND_MIDDLE: u8 = 1;
const SEND_LAST: u8 = 2;
const SEND_ONLY: u8 = 4;
const ACKNOWLEDGE: u8 = 17;
/// Syndromes of an acknowledgement without a credit limit, and of one that reports a missing packet.
const ALL_CREDITS: u8 = 31;
const SEQUENCE_ERROR: u8 = 0x60;
const FIRST_PAIR: u32 = 256;
const BECN: u8 = 0x40;
const DEFAULT_PARTITION: [u8; 2] = [0xff; 2];

/// Writes a packet. `telemetry`: its telemetry header and contents, or empty. Without telemetry the whole
/// packet is kept, because Wireshark's InfiniBand dissector reports a packet without its CRC as malformed.
/// `whole`: packets with telemetry are kept whole, too.
pub fn packet(
    to: &mut Vec<u8>,
    packet: &Packet,
    settings: &RdmaConfig,
    telemetry: &[u8],
    whole: bool,
) -> Rest {
    let transport = transport_header(packet, settings);
    let payload = usize::from(packet.payload).next_multiple_of(4);
    let rest = transport.len() + payload + 4;
    let ports = [ports_of(packet, false)[0], PORT];
    let whole = whole || telemetry.is_empty();
    // The CRC covers the packet as its sender created it, before telemetry.
    let end = if whole { invariant_crc(packet, ports, &transport, payload) } else { [0; 4] };
    let ports = if telemetry.is_empty() { ports } else { [ports[0], shim::PORT] };
    let udp = headers::udp(ports, telemetry.len() + rest);
    to.extend(headers::ipv4(packet, UDP, [packet.src, packet.dst], UDP_BYTES + telemetry.len() + rest));
    to.extend(udp);
    to.extend(telemetry);
    to.extend(transport);
    Rest { payload, end: Some(end), whole }
}

/// The base transport header, and for acknowledgements the extended one.
fn transport_header(packet: &Packet, settings: &RdmaConfig) -> Vec<u8> {
    let mtu = u64::from(settings.mtu.max(1));
    let (code, number) = match packet.kind {
        PacketKind::Data => (send_code(packet), packet.seq / mtu),
        PacketKind::Nack => (ACKNOWLEDGE, packet.seq / mtu),
        // The sequence number of the last packet received in order.
        _ => (ACKNOWLEDGE, packet.seq.div_ceil(mtu).wrapping_sub(1)),
    };
    let padding = (4 - packet.payload % 4) as u8 & 3;
    let echo = packet.kind != PacketKind::Data && packet.marked();
    // Queue pairs 0 and 1 are reserved for management.
    let [_, a, b, c] = packet.flow.wrapping_add(FIRST_PAIR).to_be_bytes();
    let [_, x, y, z] = (number as u32).to_be_bytes();
    let mut header = vec![code, padding << 4];
    header.extend(DEFAULT_PARTITION);
    header.extend([if echo { BECN } else { 0 }, a, b, c]);
    // Every packet requests an acknowledgement.
    header.extend([if code == ACKNOWLEDGE { 0 } else { 0x80 }, x, y, z]);
    if code == ACKNOWLEDGE {
        let syndrome = if packet.kind == PacketKind::Nack { SEQUENCE_ERROR } else { ALL_CREDITS };
        // The message sequence number stays 0 until the message is complete.
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

/// The CRC of a packet with `payload` zero bytes; fields that routers change count as ones (annex A17.3.3).
fn invariant_crc(packet: &Packet, ports: [u16; 2], transport: &[u8], payload: usize) -> [u8; 4] {
    let rest = transport.len() + payload + 4;
    let mut ipv4: [u8; IPV4_BYTES] = headers::ipv4(packet, UDP, [packet.src, packet.dst], UDP_BYTES + rest);
    for changes in [1, 8, 10, 11] {
        ipv4[changes] = 0xff;
    }
    let mut udp = headers::udp(ports, rest);
    udp[6..].fill(0xff);
    let mut transport = transport.to_vec();
    transport[4] = 0xff;
    let crc = [&[0xff; 8][..], &ipv4, &udp, &transport].iter().fold(!0, |crc, bytes| crc32(crc, bytes));
    let crc = (0..payload).fold(crc, |crc, _| crc32(crc, &[0]));
    (!crc).to_le_bytes()
}

/// Continues the CRC of Ethernet (IEEE 802.3 §3.2.9), low bit first, over more bytes.
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
        // A flow that is not the first one of its queue pair.
        assert_eq!([of(3000, FIRST), of(3000, FIRST | flag::LAST)], [0, 4]);
    }
}
