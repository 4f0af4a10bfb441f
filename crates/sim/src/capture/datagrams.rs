//! Frames of pHost, pFabric, Fastpass, NDP and Homa packets: UDP, and a header defined here.
//!
//! ```text
//!  0      version (4 bits, 1), scheme (4 bits: 0 others, 1 pHost, 2 pFabric, 3 Fastpass, 4 NDP, 5 Homa)
//!  1      what it is: 0 data, 1 acknowledgement, 2 request, 3 token, 4 schedule, 5 and 6 halves of one with paths, 7 a flow wants
//!         nothing more, 8 probe, 9 a flow is known (Fastpass: an answer to a repeated request),
//!         10 trimmed data, 11 trimmed data that return, 12 refusal, 13 pull,
//!         14 grant, 15 packets are requested again, 16 the sender is busy, 17 the sender asks for an acknowledgement
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
//!         Fastpass request              timeslots requested so far, destination, deadline in ns *
//!         Fastpass answer               timeslots given so far, 1: the request was new
//!         Fastpass schedule             epoch (32 bits), the flows of its eight timeslots (2^32 - 1: none)
//!         Fastpass half a schedule      epoch, the flows of four timeslots, their paths
//!         NDP data, trimmed, returned    packets of the flow, number of the packet
//!         NDP acknowledgement, refusal  pull number, packets in order, number of the packet, 1: it pulls
//!         NDP pull                      pull number, packets in order
//!         Homa data                     bytes of the message *, number of the packet
//!         Homa grant                    packets that may be sent, level of the new ones
//!         Homa packets requested        first packet, the one after the last, level (8 bits) and above
//!                                       it the number of the round
//!         Homa sender asks              bytes of the message *
//! ```
//!
//! The papers leave the format of the headers open. Here they contain what the packets carry in the
//! simulator.

use super::headers::{self, UDP, UDP_BYTES};
use super::{Rest, ports_of};
use crate::packet::{Packet, PacketKind, trimming};
use crate::transport::fastpass::FastpassConfig;
use crate::transport::{fastpass, homa, pfabric, phost};
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
const TRIMMED: u8 = 10;
const RETURNED: u8 = 11;
const REFUSAL: u8 = 12;
const PULL: u8 = 13;
const GRANT: u8 = 14;
const RESEND: u8 = 15;
const BUSY: u8 = 16;
const NEED_ACK: u8 = 17;

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

pub fn ndp(to: &mut Vec<u8>, packet: &Packet) -> Rest {
    let (high, low) = halves(packet.seq);
    let (kind, body) = match packet.kind {
        PacketKind::Data if packet.trimming & trimming::RETURNED != 0 => (RETURNED, words(&[high, low])),
        PacketKind::Data if packet.is_trimmed() => (TRIMMED, words(&[high, low])),
        PacketKind::Data => (DATA, words(&[high, low])),
        PacketKind::Control => (PULL, words(&[high, low])),
        PacketKind::Nack => (REFUSAL, words(&[high, low, packet.aux, u32::from(packet.code())])),
        _ => (ACKNOWLEDGEMENT, words(&[high, low, packet.aux, u32::from(packet.code())])),
    };
    write(to, packet, [4, kind], packet.flow, [packet.src, packet.dst], &body)
}

pub fn homa(to: &mut Vec<u8>, packet: &Packet) -> Rest {
    use homa::code;
    let (high, low) = halves(packet.seq);
    let (kind, body) = match (packet.kind, packet.code()) {
        (PacketKind::Data, _) => (DATA, words(&[high, low, packet.aux])),
        (PacketKind::Control, code::GRANT) => (GRANT, words(&[low, high])),
        (PacketKind::Control, code::RESEND) => (RESEND, words(&[packet.aux, low, high])),
        (PacketKind::Control, code::BUSY) => (BUSY, Vec::new()),
        (PacketKind::Control, code::NEED_ACK) => (NEED_ACK, words(&[high, low])),
        (PacketKind::Control, _) => (KNOWN, Vec::new()),
        _ => (ACKNOWLEDGEMENT, Vec::new()),
    };
    write(to, packet, [5, kind], packet.flow, [packet.src, packet.dst], &body)
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
        (PacketKind::Control, code::REPORT) => (KNOWN, words(&[low, packet.aux])),
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
