//! Segments of TCP and multipath TCP.
//!
//! Sequence numbers start with the SYN, which has number 0 at both ends: the first byte of a flow has
//! number 1. Timestamps are in nanoseconds, modulo 2^32; a segment of the receiver, for which the simulator has no
//! clock, repeats the timestamp that it echoes. Data sequence numbers are absolute: the first byte of a flow
//! has number 0. A packet of a connection that fell back to TCP has padding in place of the options of multipath TCP.
//!
//! Source: RFC 9293 §3.1, RFC 7323 §2.2 and §3.2, RFC 2018 §3, RFC 3168 §6.1; RFC 8684 §3.1 to §3.3.

use super::headers;
use super::{Rest, ports_of};
use crate::packet::{Packet, PacketKind};
use crate::telemetry::int::{IntRecord, numbers_in};
use crate::transport::mptcp::{MptcpConfig, scale};
use crate::transport::tcp::{EcnEcho, TcpConfig};
use crate::wire::addresses::subflow_ports;
use crate::wire::mptcp::{self, option_bytes, subflow_of};
use crate::wire::tcp::code;

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const PSH: u8 = 8;
const ACK: u8 = 16;
const ECE: u8 = 64;
const CWR: u8 = 128;

/// Bytes of a header without options, and the maximum size of options.
const PLAIN: usize = 20;
const OPTIONS: usize = 40;

/// The fields of a segment.
#[derive(Default)]
struct Segment {
    flags: u8,
    sequence: u32,
    acknowledged: u32,
    window: u16,
    options: Vec<u8>,
    payload: usize,
    /// The segment goes to the flow's sender.
    back: bool,
}

/// Writes a segment of TCP. `places`: its SACK blocks, if any.
pub fn segment(to: &mut Vec<u8>, packet: &Packet, config: &TcpConfig, places: &[IntRecord]) -> Rest {
    let mut segment = match packet.kind {
        PacketKind::Data => data(packet, config),
        PacketKind::Control => signal(packet, config),
        _ => Segment { window: window(u64::from(packet.aux), config), ..acknowledgement(packet) },
    };
    if packet.kind == PacketKind::Ack {
        selective_blocks(&mut segment, packet, numbers(places));
    }
    write(to, packet, &segment, ports_of(packet, segment.back))
}

/// Writes a segment of multipath TCP. `places`: its SACK blocks, or the option of its handshake.
pub fn multipath(to: &mut Vec<u8>, packet: &Packet, config: &MptcpConfig, places: &[IntRecord]) -> Rest {
    let mut segment = match packet.kind {
        PacketKind::Data => data(packet, &config.tcp),
        PacketKind::Control => set_up(packet, &config.tcp),
        _ => Segment { window: packet.payload, ..acknowledgement(packet) },
    };
    match packet.kind {
        PacketKind::Data => mapping(&mut segment, packet, config.checksum),
        PacketKind::Control => set_up_option(&mut segment, numbers(places)),
        _ => {
            data_acknowledgement(&mut segment, packet);
            selective_blocks(&mut segment, packet, numbers(places));
        }
    }
    let (_, subflow) = subflow_of(packet);
    let [mut from, mut into] = subflow_ports(packet.flow, subflow, config.address_of(subflow));
    if segment.back {
        std::mem::swap(&mut from, &mut into);
    }
    write(to, packet, &segment, [from, into])
}

/// The sequence number of a byte of the flow.
fn number(byte: u64) -> u32 {
    (byte as u32).wrapping_add(1)
}

/// The window as far as the header can represent it.
fn window(bytes: u64, config: &TcpConfig) -> u16 {
    u16::try_from(bytes >> scale(config)).unwrap_or(u16::MAX)
}

fn data(packet: &Packet, config: &TcpConfig) -> Segment {
    let reduced = if packet.code() & code::REDUCED != 0 { CWR } else { 0 };
    let pushed = if packet.is_last() { PSH } else { 0 };
    Segment {
        flags: ACK | reduced | pushed,
        sequence: number(packet.seq),
        acknowledged: 1,
        window: window(config.receive_buffer, config),
        options: stamps(packet, false),
        payload: usize::from(packet.payload),
        back: false,
    }
}

fn acknowledgement(packet: &Packet) -> Segment {
    Segment {
        flags: ACK | if packet.marked() { ECE } else { 0 },
        sequence: 1,
        acknowledged: number(packet.seq),
        options: stamps(packet, true),
        back: true,
        ..Segment::default()
    }
}

/// The packets of a handshake and of a close, and the probe of a closed window.
fn signal(packet: &Packet, config: &TcpConfig) -> Segment {
    let own = window(config.receive_buffer, config);
    let end = number(packet.seq);
    let (flags, sequence, acknowledged, back) = match packet.code() {
        code::SYN => return opening(packet, config, false),
        code::SYN_ACK => return opening(packet, config, true),
        code::FIN => (FIN | ACK, end, 1, false),
        code::FIN_ACK => (FIN | ACK, 1, end.wrapping_add(1), true),
        code::CLOSED => (ACK, end.wrapping_add(1), 2, false),
        // A window probe requests again what was acknowledged last (RFC 9293 §3.8.6.1).
        code::WINDOW_PROBE => (ACK, end.wrapping_sub(1), 1, false),
        _ => (ACK, 1, 1, false),
    };
    let options = stamps(packet, back);
    Segment { flags, sequence, acknowledged, window: own, options, payload: 0, back }
}

/// A SYN, or a SYN-ACK.
fn opening(packet: &Packet, config: &TcpConfig, back: bool) -> Segment {
    let capable = match (config.ecn, back) {
        (EcnEcho::Off, _) => 0,
        (_, false) => ECE | CWR,
        (_, true) => ECE,
    };
    let [a, b] = u16::try_from(config.mss).unwrap_or(u16::MAX).to_be_bytes();
    let mut options = vec![2, 4, a, b, 4, 2];
    timestamp(&mut options, packet, back);
    options.extend([1, 3, 3, scale(config) as u8]);
    Segment {
        flags: SYN | capable | if back { ACK } else { 0 },
        sequence: 0,
        acknowledged: u32::from(back),
        // Windows are not scaled yet (RFC 7323 §2.2).
        window: u16::try_from(config.receive_buffer).unwrap_or(u16::MAX),
        options,
        payload: 0,
        back,
    }
}

/// The packets of a subflow's handshake.
fn set_up(packet: &Packet, config: &TcpConfig) -> Segment {
    let (flags, back) = match packet.code() {
        mptcp::code::SYN => return opening(packet, config, false),
        mptcp::code::SYN_ACK => return opening(packet, config, true),
        mptcp::code::CONFIRMED | mptcp::code::ADDRESS => (ACK, true),
        mptcp::code::RESET => (RST | ACK, true),
        mptcp::code::GIVEN_UP => (RST | ACK, false),
        _ => (ACK, false),
    };
    let options = if flags & RST == 0 { stamps(packet, back) } else { Vec::new() };
    let own = window(config.receive_buffer, config);
    Segment { flags, sequence: 1, acknowledged: 1, window: own, options, payload: 0, back }
}

/// The timestamp option, after two bytes of padding (RFC 7323 appendix A).
fn stamps(packet: &Packet, back: bool) -> Vec<u8> {
    let mut options = vec![1, 1];
    timestamp(&mut options, packet, back);
    options
}

fn timestamp(options: &mut Vec<u8>, packet: &Packet, back: bool) {
    let stamp = (packet.sent.ns() as u32).to_be_bytes();
    options.extend([8, 10]);
    options.extend(stamp);
    options.extend(if back { stamp } else { [0; 4] });
}

/// The numbers stored in a packet's places.
fn numbers(places: &[IntRecord]) -> Option<[u32; 6]> {
    places.first_chunk().map(|first| numbers_in(*first))
}

/// As many SACK blocks as fit (RFC 2018 §3).
fn selective_blocks(segment: &mut Segment, packet: &Packet, numbers: Option<[u32; 6]>) {
    let Some(numbers) = numbers else { return };
    let room = OPTIONS.saturating_sub(segment.options.len() + 4) / 8;
    let blocks = numbers.chunks_exact(2).filter(|block| block[0] != block[1]).take(room);
    let edges: Vec<u32> = blocks.flatten().map(|&offset| number(packet.seq).wrapping_add(offset)).collect();
    if edges.is_empty() {
        return;
    }
    segment.options.extend([1, 1, 5, 2 + 4 * edges.len() as u8]);
    edges.iter().for_each(|edge| segment.options.extend(edge.to_be_bytes()));
}

/// The option of a handshake, as it is transmitted.
fn set_up_option(segment: &mut Segment, numbers: Option<[u32; 6]>) {
    let Some(numbers) = numbers else { return };
    let bytes = option_bytes(&numbers);
    let length = usize::from(bytes[1]).next_multiple_of(4).min(OPTIONS.saturating_sub(segment.options.len()));
    segment.options.extend(bytes.iter().take(length));
}

/// The position of a segment's bytes in the connection (RFC 8684 §3.3.1), the last 32 bits of the number, and an acknowledgement of
/// what the other end sends, which is nothing.
fn mapping(segment: &mut Segment, packet: &Packet, checksum: bool) {
    const HAS_ACKNOWLEDGEMENT_AND_MAPPING: u8 = 5;
    /// No operation: in the place of the option where the connection is one of TCP, as packets keep their length.
    const EMPTY: [u8; 24] = [1; 24];
    if packet.code() & mptcp::code::PLAIN != 0 {
        return segment.options.extend(EMPTY);
    }
    segment.options.extend([
        1,
        1,
        1,
        1,
        30,
        if checksum { 20 } else { 18 },
        0x20,
        HAS_ACKNOWLEDGEMENT_AND_MAPPING,
    ]);
    segment.options.extend([0; 4]);
    let first = segment.options.len();
    segment.options.extend(packet.aux.to_be_bytes());
    // Relative to the SYN of the subflow.
    segment.options.extend(number(packet.seq).to_be_bytes());
    segment.options.extend(packet.payload.to_be_bytes());
    // A checksum of the mapping and of a payload of zeros, or the end of the option list, twice. It covers 64 bits of the data
    // sequence number, whose upper half is 0 in the first 4 GB of a connection.
    let sum = if checksum { headers::checksum(&[&segment.options[first..]]) } else { 0 };
    segment.options.extend(sum.to_be_bytes());
}

/// The last 32 bits of the data acknowledgement (RFC 8684 §3.3.2), if the packet's sender has both keys.
fn data_acknowledgement(segment: &mut Segment, packet: &Packet) {
    const HAS_ACKNOWLEDGEMENT: u8 = 1;
    match packet.code() {
        mptcp::code::KEYLESS => {}
        code if code & mptcp::code::PLAIN != 0 => segment.options.extend([1; 8]),
        _ => {
            segment.options.extend([30, 8, 0x20, HAS_ACKNOWLEDGEMENT]);
            segment.options.extend(packet.aux.to_be_bytes());
        }
    }
}

fn write(to: &mut Vec<u8>, packet: &Packet, segment: &Segment, ports: [u16; 2]) -> Rest {
    debug_assert!(segment.options.len() <= OPTIONS && segment.options.len() % 4 == 0);
    let header = PLAIN + segment.options.len();
    let ipv4 = headers::ipv4(packet, headers::TCP, [packet.src, packet.dst], header + segment.payload);
    to.extend(ipv4);
    let from = to.len();
    ports.iter().for_each(|port| to.extend(port.to_be_bytes()));
    to.extend(segment.sequence.to_be_bytes());
    to.extend(segment.acknowledged.to_be_bytes());
    to.extend([(header as u8 / 4) << 4, segment.flags]);
    to.extend(segment.window.to_be_bytes());
    to.extend([0; 4]);
    to.extend(&segment.options);
    let sum = headers::segment_checksum(&ipv4, &to[from..], segment.payload);
    to[from + 16..from + 18].copy_from_slice(&sum.to_be_bytes());
    Rest::zeros(segment.payload)
}
