//! Frames of pHost, pFabric and Fastpass packets: UDP, and a header defined here.
//!
//! ```text
//!  0      version (4 bits, 1), scheme (4 bits: 0 others, 1 pHost, 2 pFabric, 3 Fastpass)
//!  1      what it is: 0 data, 1 acknowledgement, 2 request, 3 token, 4 schedule, 5 and 6 halves of one with paths, 7 a flow wants
//!         nothing more, 8 probe
//!  2      bit 0 the last byte of its flow is in it, bit 1 a mark is echoed
//!  3      bytes of this header
//!  4..8   flow; of a schedule 2^32 - 1
//!  then, by scheme and kind, numbers of 4 bytes (those marked * of 8):
//!         others                        first byte, or next byte expected *, a number of the transport's own
//!         pHost data, acknowledgement   packets of the flow, number of the packet, number of the token
//!         pHost request                 packets of the flow, deadline in ns * (2^64 - 1: none)
//!         pHost token                   number of the packet, number of the token, packets missing
//!         pFabric data, probe           first byte *, what queues order by
//!         pFabric acknowledgement       next byte expected *, number of the packet that came
//!         Fastpass data, acknowledgement  packets of the flow, number of the packet
//!         Fastpass request              timeslots wanted, destination, deadline in ns *
//!         Fastpass schedule             epoch (32 bits), the flows of its eight timeslots (2^32 - 1: none)
//!         Fastpass half a schedule      epoch, the flows of four timeslots, their paths
//! ```
//!
//! The papers leave the format of the headers open. Here they contain what the packets carry in the
//! simulator.

use super::headers::{self, UDP, UDP_BYTES};
use super::{Rest, ports_of};
use crate::packet::{Packet, PacketKind};
use crate::transport::fastpass::FastpassConfig;
use crate::transport::{fastpass, pfabric, phost};
use crate::units::Time;

/// The UDP port of all of them.
pub const PORT: u16 = 49_200;
const VERSION: u8 = 1;
const HEAD: usize = 8;

const DATA: u8 = 0;
const ACKNOWLEDGEMENT: u8 = 1;
const REQUEST: u8 = 2;
const TOKEN: u8 = 3;
const SCHEDULE: u8 = 4;
const FIRST_HALF: u8 = 5;
const SECOND_HALF: u8 = 6;
const FORGET: u8 = 7;
const PROBE: u8 = 8;
const KNOWN: u8 = 9;

/// A packet of a transport without a format of its own.
pub fn plain(to: &mut Vec<u8>, packet: &Packet) -> Rest {
    let kind = match packet.kind {
        PacketKind::Data => DATA,
        PacketKind::Control => REQUEST,
        _ => ACKNOWLEDGEMENT,
    };
    let body = [packet.seq.to_be_bytes().to_vec(), words(&[packet.aux])].concat();
    write(to, packet, [0, kind], packet.flow, [packet.src, packet.dst], &body)
}

pub fn phost(to: &mut Vec<u8>, packet: &Packet) -> Rest {
    let (high, low) = halves(packet.seq);
    let (kind, body) = match (packet.kind, packet.code()) {
        (PacketKind::Data, _) => (DATA, words(&[high, low, packet.aux])),
        (PacketKind::Control, phost::code::TOKEN) => (TOKEN, words(&[low, high, packet.aux])),
        (PacketKind::Control, phost::code::KNOWN) => (KNOWN, Vec::new()),
        (PacketKind::Control, _) => (REQUEST, [words(&[low]), deadline(packet.sent)].concat()),
        _ => (ACKNOWLEDGEMENT, words(&[high, low, packet.aux])),
    };
    write(to, packet, [1, kind], packet.flow, [packet.src, packet.dst], &body)
}

pub fn pfabric(to: &mut Vec<u8>, packet: &Packet) -> Rest {
    let kind = match packet.kind {
        PacketKind::Data if packet.code() == pfabric::PROBE => PROBE,
        PacketKind::Data => DATA,
        _ => ACKNOWLEDGEMENT,
    };
    let body = [packet.seq.to_be_bytes().to_vec(), words(&[packet.aux])].concat();
    write(to, packet, [2, kind], packet.flow, [packet.src, packet.dst], &body)
}

pub fn fastpass(to: &mut Vec<u8>, packet: &Packet, config: &FastpassConfig) -> Rest {
    use fastpass::code;
    let (high, low) = halves(packet.seq);
    let (kind, body) = match (packet.kind, packet.code()) {
        (PacketKind::Data, _) => (DATA, words(&[high, low])),
        (PacketKind::Control, code::SCHEDULE) => return schedule(to, packet, SCHEDULE, config),
        (PacketKind::Control, code::FIRST_HALF) => return schedule(to, packet, FIRST_HALF, config),
        (PacketKind::Control, code::SECOND_HALF) => return schedule(to, packet, SECOND_HALF, config),
        (PacketKind::Control, code::FORGET) => (FORGET, Vec::new()),
        (PacketKind::Control, _) => (REQUEST, [words(&[low, packet.aux]), deadline(packet.sent)].concat()),
        _ => (ACKNOWLEDGEMENT, words(&[high, low])),
    };
    write(to, packet, [3, kind], packet.flow, [packet.src, packet.dst], &body)
}

/// A schedule comes from the arbiter: its content is where other packets have their addresses.
fn schedule(to: &mut Vec<u8>, packet: &Packet, kind: u8, config: &FastpassConfig) -> Rest {
    let (epoch, content) = fastpass::schedule::content(packet);
    let body = [words(&[epoch]), words(&content)].concat();
    let plain = Packet { flags: 0, payload: 0, ..*packet };
    write(to, &plain, [3, kind], u32::MAX, [config.arbiter.host, packet.dst], &body)
}

/// A 64-bit number as two words, the high half first.
fn halves(number: u64) -> (u32, u32) {
    ((number >> 32) as u32, number as u32)
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn deadline(at: Time) -> Vec<u8> {
    let ns = if at == Time::MAX { u64::MAX } else { at.ns() };
    ns.to_be_bytes().to_vec()
}

fn write(
    to: &mut Vec<u8>,
    packet: &Packet,
    [scheme, kind]: [u8; 2],
    flow: u32,
    hosts: [u32; 2],
    body: &[u8],
) -> Rest {
    let payload = if packet.kind == PacketKind::Data { usize::from(packet.payload) } else { 0 };
    let header = HEAD + body.len();
    let echoes = packet.kind == PacketKind::Ack && packet.marked();
    let last = packet.kind == PacketKind::Data && packet.is_last();
    let ipv4 = headers::ipv4(packet, UDP, hosts, UDP_BYTES + header + payload);
    to.extend(ipv4);
    let from = to.len();
    let ports = [ports_of(&Packet { flow, ..*packet }, false)[0], PORT];
    to.extend(headers::udp(ports, header + payload));
    to.extend([VERSION << 4 | scheme, kind, u8::from(last) | u8::from(echoes) << 1, header as u8]);
    to.extend(flow.to_be_bytes());
    to.extend(body);
    let sum = match headers::segment_checksum(&ipv4, &to[from..], payload) {
        // A checksum of 0 would mean that there is none (RFC 768).
        0 => u16::MAX,
        sum => sum,
    };
    to[from + 6..from + 8].copy_from_slice(&sum.to_be_bytes());
    Rest::zeros(payload)
}
