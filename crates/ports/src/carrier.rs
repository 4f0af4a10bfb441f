//! Packets of the engine's hosts as frames: Ethernet, IPv4, UDP, and the fields that a host of the engine reads.
//!
//! The IPv4 packet has the length of the simulated one, but not shorter than [`MIN_BYTES`] and what the packet carries in addition to its fields (SACK
//! blocks: 32 bytes); what is left is zeros. Switches of a kernel see
//! addresses, ports that follow from the packet's label (so that they choose among equal paths by it), a type of service that
//! follows from its class, and an ECN-capable codepoint. The source address is the sending host's. Where `src` of a packet says
//! something else (a word of a schedule), that word follows the fields.
//!
//! In a run with INT, a data packet that carries it has an empty stack of INT 2.1 between IP and UDP
//! ([`weftline_dataplane::stack`]), to which every switch adds its values: real bytes in the place of those that the simulated
//! packet counts. The host that receives it has the records of the path, and returns them among the fields of its answer.

use weftline_dataplane::stack::{self, Stack};
use weftline_sim::config::TelemetryConfig;
use weftline_sim::packet::{NONE, Packet, PacketKind, flag};
use weftline_sim::telemetry::int::{IntLayout, IntRecord, path_id};
use weftline_sim::units::Time;

/// Bytes of the shortest IPv4 packet that carries the fields.
pub const MIN_BYTES: usize = IP_BYTES + UDP_BYTES + FIELD_BYTES;
/// The UDP port to which all are sent.
pub const PORT: u16 = 22_342;

const ETHERNET_BYTES: usize = 14;
const IP_BYTES: usize = 20;
const UDP_BYTES: usize = 8;
const FIELD_BYTES: usize = 48;
const RECORD_BYTES: usize = 16;
/// Of `src`, where it is not the sending host.
const SOURCE_BYTES: usize = 4;
const MOST_RECORDS: usize = u8::MAX as usize;
const UDP: u8 = 17;
const HOPS: u8 = 64;
/// Of the fields' layout.
const VERSION: u8 = 1;
const FIRST_SOURCE_PORT: u16 = 49_152;
const CONGESTION_BITS: u8 = 0b11;
const CAPABLE: u8 = 0b10;
/// Type of service by class, in the order in which the kernel's bands serve them: minimise delay, none, maximise throughput.
const SERVICES: [u8; 3] = [0x10, 0x00, 0x08];
/// By their numbers in the header, which do not follow from the order in memory.
const KINDS: [PacketKind; 7] = [
    PacketKind::Data,
    PacketKind::Ack,
    PacketKind::Nack,
    PacketKind::Pause,
    PacketKind::Resume,
    PacketKind::Probe,
    PacketKind::Control,
];

/// Records of a stack into which not every hop could write: more than any header has room for, so they mean nothing.
const UNREADABLE: u32 = 256;

/// INT of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Int {
    layout: IntLayout,
    max_hops: u8,
    /// Bytes of it in a simulated data packet.
    bytes: u16,
}

impl Int {
    /// None: the run has no INT.
    pub fn of(telemetry: &TelemetryConfig, layout: Option<IntLayout>) -> Option<Int> {
        let TelemetryConfig::Int { max_hops, .. } = telemetry else { return None };
        let max_hops = u8::try_from(*max_hops).unwrap_or(u8::MAX);
        Some(Int { layout: layout?, max_hops, bytes: u16::try_from(telemetry.bytes(true)).ok()? })
    }

    /// By how much a packet may be longer on a real link than it is simulated.
    pub fn growth(&self) -> u64 {
        let real = stack::HEADER + usize::from(self.max_hops) * stack::HOP;
        (real as u64).saturating_sub(self.bytes.into())
    }

    /// The simulator's stack: its head, then a record for each hop.
    fn places(&self, stack: &Stack) -> Vec<IntRecord> {
        let hops = if stack.whole { stack.hops.len() as u32 } else { UNREADABLE };
        let path = stack.hops.iter().fold(0, |path, hop| path ^ u32::from(path_id(hop.node) & 0xfff));
        let record = |hop: &stack::Hop| {
            IntRecord::of(hop.time_ns, hop.sent, hop.queue.into(), hop.rate_kbps, self.layout)
        };
        let head = IntRecord { time: hops, sent: path, ..IntRecord::default() };
        std::iter::once(head).chain(stack.hops.iter().map(record)).collect()
    }
}

/// Who sends to whom on a link.
#[derive(Debug, Clone, Copy)]
pub struct Ends {
    pub macs: [[u8; 6]; 2],
    /// Number of the host that sends.
    pub host: u32,
    /// Addresses of that host and of the one that the packet is for.
    pub addresses: [[u8; 4]; 2],
}

/// The frame of a packet and of what it carries.
pub fn frame(packet: &Packet, records: &[IntRecord], ends: &Ends, int: Option<&Int>) -> Vec<u8> {
    // A stack of INT in which no hop has written yet; other data (options of TCP) has more places.
    let int = int.filter(|_| packet.kind == PacketKind::Data && *records == [IntRecord::default()]);
    let records = if int.is_some() { &[] } else { &records[..records.len().min(MOST_RECORDS)] };
    let simulated = packet.size - int.map_or(0, |int| int.bytes).min(packet.size);
    let source_bytes = if packet.src == ends.host { 0 } else { SOURCE_BYTES };
    let own = usize::from(simulated).max(MIN_BYTES + source_bytes + records.len() * RECORD_BYTES);
    let length = (own + if int.is_some() { stack::HEADER } else { 0 }).min(u16::MAX.into());
    let own = length - if int.is_some() { stack::HEADER } else { 0 };
    let mut frame = vec![0; ETHERNET_BYTES + length];
    let (ethernet, ip) = frame.split_at_mut(ETHERNET_BYTES);
    let [from, to] = ends.macs;
    ethernet[..6].copy_from_slice(&to);
    ethernet[6..12].copy_from_slice(&from);
    ethernet[12..].copy_from_slice(&[0x08, 0x00]);
    let capable = packet.kind == PacketKind::Data && packet.flags & flag::NOT_CAPABLE == 0;
    let congestion = match packet.marked() && packet.kind == PacketKind::Data {
        true => CONGESTION_BITS,
        false if capable => CAPABLE,
        false => 0,
    };
    ip[0] = 0x45;
    ip[1] = SERVICES[usize::from(packet.wire_class).min(SERVICES.len() - 1)] | congestion;
    ip[2..4].copy_from_slice(&(length as u16).to_be_bytes());
    (ip[8], ip[9]) = (HOPS, UDP);
    ip[12..16].copy_from_slice(&ends.addresses[0]);
    ip[16..20].copy_from_slice(&ends.addresses[1]);
    let sum = sum(&ip[..IP_BYTES]);
    ip[10..12].copy_from_slice(&(!sum).to_be_bytes());
    let source = FIRST_SOURCE_PORT | (packet.hash ^ packet.hash >> 14) as u16 & !FIRST_SOURCE_PORT;
    let mut udp = &mut ip[IP_BYTES..];
    if let Some(int) = int {
        let header = stack::header(source, own - IP_BYTES, UDP, int.max_hops);
        udp[..stack::HEADER].copy_from_slice(&header);
        udp = &mut udp[stack::HEADER..];
    }
    udp[..2].copy_from_slice(&source.to_be_bytes());
    udp[2..4].copy_from_slice(&PORT.to_be_bytes());
    udp[4..6].copy_from_slice(&((own - IP_BYTES) as u16).to_be_bytes());
    let (fields, rest) = udp[UDP_BYTES..].split_at_mut(FIELD_BYTES);
    write(packet, fields);
    (fields[46], fields[47]) = (records.len() as u8, source_bytes as u8);
    let (word, rest) = rest.split_at_mut(source_bytes);
    word.copy_from_slice(&packet.src.to_be_bytes()[..source_bytes]);
    let words = records.iter().flat_map(|one| [one.time, one.sent, one.queue, one.rate_kbps]);
    rest.chunks_mut(4).zip(words).for_each(|(place, word)| place.copy_from_slice(&word.to_be_bytes()));
    frame
}

/// The packet that a frame carries, `dst` and `src` (unless it says something else) by their addresses, and what that carries;
/// none if it carries none.
pub fn packet(
    frame: &[u8],
    host: impl Fn([u8; 4]) -> Option<u32>,
    int: Option<&Int>,
) -> Option<(Packet, Vec<IntRecord>)> {
    let ip = frame.get(ETHERNET_BYTES..).filter(|_| frame[12..14] == [0x08, 0x00])?;
    let [header, service, ..] = *ip else { return None };
    if ip.len() < MIN_BYTES || header != 0x45 || ip[9] != UDP {
        return None;
    }
    let stack = int.and_then(|_| stack::read(&ip[IP_BYTES..]));
    let udp = stack.as_ref().map_or(&ip[IP_BYTES..], |stack| stack.rest);
    if udp.len() < UDP_BYTES + FIELD_BYTES || udp[2..4] != PORT.to_be_bytes() {
        return None;
    }
    let (fields, rest) = udp[UDP_BYTES..].split_at(FIELD_BYTES);
    let mut packet = read(fields)?;
    let (source, rest) = match usize::from(fields[47]) {
        0 => (None, rest),
        SOURCE_BYTES => rest.split_at_checked(SOURCE_BYTES).map(|(word, rest)| (Some(word), rest))?,
        _ => return None,
    };
    let words = rest.get(..usize::from(fields[46]) * RECORD_BYTES)?;
    let word = |at: &[u8]| u32::from_be_bytes([at[0], at[1], at[2], at[3]]);
    let record = |at: &[u8]| IntRecord {
        time: word(at),
        sent: word(&at[4..]),
        queue: word(&at[8..]),
        rate_kbps: word(&at[12..]),
    };
    let records = match (int, &stack) {
        (Some(int), Some(stack)) => int.places(stack),
        _ => words.chunks(RECORD_BYTES).map(record).collect(),
    };
    let address = |at: usize| ip[at..at + 4].try_into().ok().and_then(&host);
    (packet.src, packet.dst) = (address(12)?, address(16)?);
    packet.src = source.map_or(packet.src, word);
    if packet.kind == PacketKind::Data && service & CONGESTION_BITS == CONGESTION_BITS {
        packet.flags |= flag::MARKED;
    }
    Some((packet, records))
}

fn write(packet: &Packet, to: &mut [u8]) {
    to[..8].copy_from_slice(&packet.seq.to_be_bytes());
    to[8..16].copy_from_slice(&packet.sent.0.to_be_bytes());
    let words = [packet.flow, packet.sender, packet.hash, packet.aux];
    for (place, word) in to[16..32].chunks_mut(4).zip(words) {
        place.copy_from_slice(&word.to_be_bytes());
    }
    for (place, short) in to[32..38].chunks_mut(2).zip([packet.payload, packet.group, packet.size]) {
        place.copy_from_slice(&short.to_be_bytes());
    }
    // A kind that has no number is refused by whoever reads it.
    let kind = KINDS.iter().position(|kind| *kind == packet.kind).map_or(u8::MAX, |number| number as u8);
    let bytes = [kind, packet.class, packet.wire_class, packet.flags, packet.transport, packet.profile];
    to[38..44].copy_from_slice(&bytes);
    (to[44], to[45]) = (packet.trimming, VERSION);
}

fn read(from: &[u8]) -> Option<Packet> {
    let long = |at: usize| Some(u64::from_be_bytes(from.get(at..at + 8)?.try_into().ok()?));
    let word = |at: usize| Some(u32::from_be_bytes(from.get(at..at + 4)?.try_into().ok()?));
    let short = |at: usize| Some(u16::from_be_bytes(from.get(at..at + 2)?.try_into().ok()?));
    let [kind, class, wire_class, flags, transport, profile, trimming, version] = *from.get(38..46)? else {
        return None;
    };
    (version == VERSION).then_some(Packet {
        seq: long(0)?,
        sent: Time(long(8)?),
        flow: word(16)?,
        sender: word(20)?,
        hash: word(24)?,
        aux: word(28)?,
        payload: short(32)?,
        group: short(34)?,
        size: short(36)?,
        kind: *KINDS.get(usize::from(kind))?,
        class,
        wire_class,
        flags,
        transport,
        profile,
        trimming,
        next: NONE,
        ..Packet::default()
    })
}

/// The sum of RFC 1071.
fn sum(bytes: &[u8]) -> u16 {
    let whole: u32 = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let folded = (whole & 0xffff) + (whole >> 16);
    ((folded & 0xffff) + (folded >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENDS: Ends = Ends {
        macs: [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]],
        host: 1,
        addresses: [[10, 0, 0, 1], [10, 0, 0, 2]],
    };

    fn host(address: [u8; 4]) -> Option<u32> {
        (address[..3] == [10, 0, 0]).then(|| u32::from(address[3]))
    }

    #[test]
    fn every_field_comes_back_for_every_kind() {
        for kind in KINDS {
            let sent = Packet {
                seq: 1 << 40,
                sent: Time(987_654_321_012),
                flow: 7,
                src: 1,
                dst: 2,
                sender: 9,
                hash: 0xdead_beef,
                aux: 77,
                size: 1500,
                payload: 1400,
                group: 3,
                kind,
                class: 2,
                wire_class: 1,
                flags: 0x50,
                transport: 1,
                profile: 2,
                trimming: 4,
                next: NONE,
                ..Packet::default()
            };
            for carried in 0..4 {
                let records: Vec<IntRecord> = (0..carried)
                    .map(|n| IntRecord { time: n, sent: n + 10, queue: !n, rate_kbps: n << 20 })
                    .collect();
                let frame = frame(&sent, &records, &ENDS, None);
                assert_eq!((frame.len(), sum(&frame[14..34])), (1514, 0xffff));
                let came = packet(&frame, host, None).unwrap();
                assert_eq!(format!("{came:?}"), format!("{:?}", (sent, records)));
            }
        }
    }

    #[test]
    fn a_mark_of_the_network_arrives_and_short_packets_are_filled_up() {
        let sent = Packet { size: 40, src: 1, kind: PacketKind::Data, ..Packet::default() };
        let mut marked = frame(&sent, &[], &ENDS, None);
        assert_eq!(marked.len(), 14 + MIN_BYTES);
        assert!(crate::frame::mark(&mut marked));
        let (came, _) = packet(&marked, host, None).unwrap();
        assert!(came.marked() && came.size == 40);
        let ack = frame(&Packet { kind: PacketKind::Ack, ..sent }, &[], &ENDS, None);
        assert!(!crate::frame::mark(&mut ack.clone()), "acknowledgements are not marked");
    }

    #[test]
    fn a_source_that_says_something_else_comes_back_and_switches_see_the_sender() {
        for (src, longer) in [(1, 0), (2, 4), (NONE, 4)] {
            let sent = Packet { src, dst: 2, size: 64, kind: PacketKind::Control, ..Packet::default() };
            let frame = frame(&sent, &[], &ENDS, None);
            assert_eq!((frame.len(), &frame[26..30]), (14 + MIN_BYTES + longer, &ENDS.addresses[0][..]));
            let (came, records) = packet(&frame, host, None).unwrap();
            assert_eq!((came.src, came.dst, records.len()), (src, 2, 0));
        }
    }

    #[test]
    fn what_is_cut_off_or_from_elsewhere_is_no_packet() {
        let whole = frame(&Packet::default(), &[IntRecord::default()], &ENDS, None);
        for length in 0..whole.len() {
            assert!(packet(&whole[..length], host, None).is_none());
        }
        assert!(packet(&whole, |_| None, None).is_none());
        for at in [12, 14, 23, 36, 80, 87, 88, 89] {
            let mut wrong = whole.clone();
            wrong[at] ^= 0x55;
            assert!(packet(&wrong, host, None).is_none(), "byte {at}");
        }
    }

    #[test]
    fn switches_write_into_data_and_the_receiver_has_the_records_of_the_simulator() {
        let layout = IntLayout::FINE;
        let telemetry = TelemetryConfig::Int { max_hops: 5, path_id: true, all: false };
        let int = Int::of(&telemetry, Some(layout)).unwrap();
        assert_eq!((int.bytes, int.growth()), (42, 24 + 5 * 28 - 42));
        let sent = Packet { size: 1090, payload: 1000, kind: PacketKind::Data, ..Packet::default() };
        let sent = Packet { src: 1, dst: 2, next: NONE, ..sent };
        let empty = [IntRecord::default()];
        for hops in 0..7u32 {
            let mut bytes = frame(&sent, &empty, &ENDS, Some(&int));
            assert_eq!(bytes.len(), 14 + 1090 - 42 + 24);
            let mut expected = vec![IntRecord { time: hops, ..IntRecord::default() }];
            for node in 0..hops {
                let hop = stack::Hop {
                    node,
                    queue: 1000 * node,
                    time_ns: 1 << 40 | u64::from(node),
                    rate_kbps: 20_000,
                    sent: 9_999_999,
                };
                stack::push(&mut bytes, &hop);
                expected[0].sent ^= u32::from(path_id(node));
                expected.push(IntRecord::of(hop.time_ns, hop.sent, hop.queue.into(), hop.rate_kbps, layout));
            }
            let (came, records) = packet(&bytes, host, Some(&int)).unwrap();
            assert_eq!(format!("{came:?}"), format!("{sent:?}"));
            if hops <= 5 {
                assert_eq!(records, expected);
            } else {
                assert_eq!(records[0].time, UNREADABLE, "a hop had no room");
            }
            assert!(packet(&bytes, host, None).is_none(), "without INT it is from elsewhere");
            for length in 0..bytes.len().min(34 + stack::HEADER + 56) {
                assert!(packet(&bytes[..length], host, Some(&int)).is_none());
            }
            // An answer returns them.
            let ack = Packet { kind: PacketKind::Ack, size: 88, payload: 0, ..sent };
            let (_, returned) = packet(&frame(&ack, &records, &ENDS, Some(&int)), host, Some(&int)).unwrap();
            assert_eq!(returned, records);
        }
    }
}
