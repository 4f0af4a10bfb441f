//! A frame as the packet that a queue discipline sees, and the mark that goes back into the frame.

use crate::carrier::{self, Int};
use rustc_hash::FxHashMap;
use weftline_sim::packet::{Packet, PacketKind, flag};
use weftline_sim::tag;
use weftline_sim::units::Time;

const ETHERNET_BYTES: usize = 14;
const IPV4: [u8; 2] = [0x08, 0x00];
const TCP: u8 = 6;
const UDP: u8 = 17;
/// SYN, FIN and RST.
const SIGNALS: u8 = 0x07;
const CONGESTION_BITS: u8 = 0b11;
/// The class of all packets: the one above it is that of pauses, which do not exist here.
const CLASS: u8 = 1;
/// Flows that are remembered; with more, numbering starts again, which bounds the memory.
const MOST_FLOWS: usize = 1 << 20;

/// Addresses as host numbers and five-tuples as flow numbers. Both directions of a connection have one
/// number, as in the simulator; numbers are given in the order in which flows are seen.
#[derive(Debug, Default)]
pub struct Names {
    hosts: FxHashMap<u32, u32>,
    flows: FxHashMap<(u8, [(u32, u16); 2]), u32>,
    /// Hosts are the engine's: frames carry packets of the simulator.
    of_engine: bool,
    int: Option<Int>,
    /// Class and bytes of the load balancer's probes, if it sends any.
    probe: Option<(u8, u16)>,
}

impl Names {
    /// `hosts`: the number of each address.
    pub fn new(hosts: impl IntoIterator<Item = (u32, u32)>) -> Names {
        Names { hosts: hosts.into_iter().collect(), ..Names::default() }
    }

    /// Hosts are the engine's, in a run with this INT: a frame of theirs is the packet that it carries.
    pub fn of_engine(self, int: Option<Int>) -> Names {
        Names { of_engine: true, int, ..self }
    }

    /// Switches send each other probes of this class and number of bytes.
    pub fn with_probes(self, probe: Option<(u8, u16)>) -> Names {
        Names { probe, ..self }
    }

    /// Returns the packet of a frame that is received now. Frames other than IPv4 and probes become control
    /// packets of flow 0.
    pub fn packet(&mut self, frame: &[u8], now: Time) -> Packet {
        let size = u16::try_from(frame.len()).unwrap_or(u16::MAX);
        let host = |address: [u8; 4]| self.hosts.get(&u32::from_be_bytes(address)).copied();
        let carried = self.of_engine.then(|| carrier::packet(frame, host, self.int.as_ref())).flatten();
        if let Some((packet, _)) = carried {
            return packet;
        }
        let other = Packet {
            kind: PacketKind::Control,
            flags: flag::NOT_CAPABLE,
            size,
            class: CLASS,
            wire_class: CLASS,
            sent: now,
            ..Packet::default()
        };
        if let Some((class, size)) = self.probe.filter(|_| is_probe(frame)) {
            return Packet { kind: PacketKind::Probe, size, class, wire_class: class, ..other };
        }
        let Some(seen) = Seen::of(frame) else { return other };
        let [src, dst] = [seen.ends[0].0, seen.ends[1].0].map(|address| self.host(address));
        let flow = self.flow(seen.protocol, seen.ends);
        let payload = u16::try_from(seen.payload).unwrap_or(u16::MAX);
        let kind = match seen.payload {
            0 if seen.signal => PacketKind::Control,
            0 => PacketKind::Ack,
            _ => PacketKind::Data,
        };
        let capable = if seen.congestion == 0 { flag::NOT_CAPABLE } else { 0 };
        let marked = if seen.congestion == CONGESTION_BITS { flag::MARKED } else { 0 };
        let (seq, flags) = (u64::from(seen.sequence), capable | marked);
        Packet { seq, src, dst, flow, hash: flow, payload, kind, flags, ..other }
    }

    fn host(&self, address: u32) -> u32 {
        self.hosts.get(&address).copied().unwrap_or(address)
    }

    fn flow(&mut self, protocol: u8, mut ends: [(u32, u16); 2]) -> u32 {
        ends.sort_unstable();
        if self.flows.len() >= MOST_FLOWS {
            self.flows.clear();
        }
        let next = self.flows.len() as u32;
        *self.flows.entry((protocol, ends)).or_insert(next)
    }
}

/// The headers of a frame, as far as they are read.
struct Seen {
    protocol: u8,
    /// Address and port of source and destination.
    ends: [(u32, u16); 2],
    sequence: u32,
    payload: usize,
    signal: bool,
    congestion: u8,
}

impl Seen {
    /// None: no IPv4, or a header that is cut off.
    fn of(frame: &[u8]) -> Option<Seen> {
        let ip = ipv4(frame)?;
        let long = |at: usize| Some(u32::from_be_bytes(ip.get(at..at + 4)?.try_into().ok()?));
        let header = usize::from(ip[0] & 0xf) * 4;
        let whole = usize::from(u16::from_be_bytes([ip[2], ip[3]])).min(ip.len());
        let fragment = u16::from_be_bytes([ip[6], ip[7]]) & 0x1fff;
        let after = ip.get(header..whole)?;
        let mut seen = Seen {
            protocol: ip[9],
            ends: [(long(12)?, 0), (long(16)?, 0)],
            sequence: 0,
            payload: after.len(),
            signal: false,
            congestion: ip[1] & CONGESTION_BITS,
        };
        let has_ports = matches!(seen.protocol, TCP | UDP) && fragment == 0;
        if let (true, &[a, b, c, d, ..]) = (has_ports, after) {
            seen.ends[0].1 = u16::from_be_bytes([a, b]);
            seen.ends[1].1 = u16::from_be_bytes([c, d]);
        }
        if let (TCP, 0, Some(tcp)) = (seen.protocol, fragment, after.first_chunk::<20>()) {
            seen.sequence = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]);
            seen.payload = after.len().saturating_sub(usize::from(tcp[12] >> 4) * 4);
            seen.signal = tcp[13] & SIGNALS != 0;
        } else if seen.protocol == UDP && fragment == 0 {
            seen.payload = after.len().saturating_sub(8);
        }
        Some(seen)
    }
}

/// The frame is a probe of a load balancer.
fn is_probe(frame: &[u8]) -> bool {
    frame.get(12..14) == Some(&tag::ETHERTYPE.to_be_bytes()[..])
}

/// The IPv4 packet of a frame, if its header is whole.
fn ipv4(frame: &[u8]) -> Option<&[u8]> {
    let ip = (frame.get(12..14)? == IPV4).then(|| &frame[ETHERNET_BYTES..])?;
    (ip.len() >= 20 && ip[0] >> 4 == 4 && ip[0] & 0xf >= 5).then_some(ip)
}

/// Sets "congestion experienced" in the frame of a sender that understands it, and adapts the header's
/// checksum.
pub fn mark(frame: &mut [u8]) -> bool {
    match ipv4(frame).map(|ip| ip[1] & CONGESTION_BITS) {
        None | Some(0 | CONGESTION_BITS) => return false,
        Some(_) => {}
    }
    let ip = &mut frame[ETHERNET_BYTES..];
    let before = u16::from_be_bytes([ip[0], ip[1]]);
    ip[1] |= CONGESTION_BITS;
    let after = u16::from_be_bytes([ip[0], ip[1]]);
    // RFC 1624, equation 3.
    let sum = !u16::from_be_bytes([ip[10], ip[11]]);
    let sum = u32::from(sum) + u32::from(!before) + u32::from(after);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = !(((sum & 0xffff) + (sum >> 16)) as u16);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(congestion: u8, payload: usize, ports: [u16; 2], back: bool) -> Vec<u8> {
        let mut frame = vec![0u8; 14 + 20 + 32 + payload];
        frame[12..14].copy_from_slice(&IPV4);
        let length = (frame.len() - 14) as u16;
        let ip = &mut frame[14..];
        (ip[0], ip[1], ip[9]) = (0x45, congestion, TCP);
        ip[2..4].copy_from_slice(&length.to_be_bytes());
        let hosts: [[u8; 4]; 2] =
            if back { [[10, 0, 0, 2], [10, 0, 0, 1]] } else { [[10, 0, 0, 1], [10, 0, 0, 2]] };
        ip[12..16].copy_from_slice(&hosts[0]);
        ip[16..20].copy_from_slice(&hosts[1]);
        ip[20..22].copy_from_slice(&ports[usize::from(back)].to_be_bytes());
        ip[22..24].copy_from_slice(&ports[usize::from(!back)].to_be_bytes());
        ip[32] = 8 << 4;
        let sum = !sum(&ip[..20]);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        frame
    }

    fn sum(bytes: &[u8]) -> u16 {
        let whole: u32 = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
        ((whole & 0xffff) + (whole >> 16)) as u16
    }

    #[test]
    fn both_directions_are_one_flow_and_each_frame_is_what_it_carries() {
        let mut names = Names::new([(0x0a00_0001, 0), (0x0a00_0002, 5)]);
        let data = names.packet(&frame(2, 100, [4000, 5001], false), Time::ZERO);
        let ack = names.packet(&frame(0, 0, [4000, 5001], true), Time::ZERO);
        let other = names.packet(&frame(0, 1, [4001, 5001], false), Time::ZERO);
        assert_eq!((data.kind, data.payload, data.size), (PacketKind::Data, 100, 166));
        assert_eq!((ack.kind, ack.src, ack.dst), (PacketKind::Ack, 5, 0));
        assert_eq!((data.flow, ack.flow, other.flow), (0, 0, 1));
        assert_eq!((data.flags, other.flags), (0, flag::NOT_CAPABLE));
    }

    #[test]
    fn frames_of_the_engines_hosts_are_the_packets_that_they_carry() {
        let sent = Packet {
            seq: 7,
            src: 3,
            dst: 5,
            flow: 9,
            size: 1000,
            payload: 952,
            class: 2,
            ..Packet::default()
        };
        let sent = Packet { kind: PacketKind::Data, next: weftline_sim::packet::NONE, ..sent };
        let ends = carrier::Ends { macs: [[2; 6]; 2], host: 3, addresses: [[10, 0, 0, 3], [10, 0, 0, 5]] };
        let bytes = carrier::frame(&sent, &[], &ends, None);
        let hosts = || Names::new([(0x0a00_0003, 3), (0x0a00_0005, 5)]);
        let came = hosts().of_engine(None).packet(&bytes, Time::ZERO);
        assert_eq!(format!("{came:?}"), format!("{sent:?}"));
        // To hosts of a kernel it is a datagram like others; so is one of a kernel among the engine's.
        let other = hosts().packet(&bytes, Time::ZERO);
        assert_eq!((other.size, other.class, other.seq), (1014, CLASS, 0));
        let plain = hosts().of_engine(None).packet(&frame(2, 100, [4000, 5001], false), Time::ZERO);
        assert_eq!((plain.kind, plain.payload, plain.size), (PacketKind::Data, 100, 166));
    }

    #[test]
    fn probes_have_their_class_and_bytes_where_switches_send_any() {
        let mut probe = vec![0u8; 64];
        probe[12..14].copy_from_slice(&tag::ETHERTYPE.to_be_bytes());
        let mut names = Names::default().with_probes(Some((0, 70)));
        let seen = names.packet(&probe, Time::ZERO);
        assert_eq!((seen.kind, seen.class, seen.wire_class, seen.size), (PacketKind::Probe, 0, 0, 70));
        assert_eq!(names.packet(&frame(0, 10, [1, 2], false), Time::ZERO).kind, PacketKind::Data);
        let other = Names::default().packet(&probe, Time::ZERO);
        assert_eq!((other.kind, other.class, other.size), (PacketKind::Control, CLASS, 64));
    }

    #[test]
    fn a_mark_leaves_a_right_checksum_and_only_where_the_sender_allows_it() {
        for congestion in 0..4 {
            let mut bytes = frame(congestion, 10, [1, 2], false);
            assert_eq!(mark(&mut bytes), matches!(congestion, 1 | 2));
            assert_eq!(bytes[15], if congestion == 0 { 0 } else { 3 });
            assert_eq!(sum(&bytes[14..34]), 0xffff);
        }
    }

    #[test]
    fn no_cut_frame_is_read_beyond_its_end() {
        let whole = frame(1, 40, [1, 2], false);
        for length in 0..whole.len() {
            let mut cut = whole[..length].to_vec();
            Names::default().packet(&cut, Time::ZERO);
            mark(&mut cut);
        }
    }
}
