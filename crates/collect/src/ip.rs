//! Frames and IP packets: from the link's header to the header after that of IP, and the flow that a packet
//! belongs to.
//!
//! Nothing is copied. A packet may be cut off (a capture keeps headers, a report the start of a packet): its
//! payload is then what there is of it; a header that is cut off is malformed.
//!
//! Source: RFC 791, RFC 8200 (§4, extension headers), LINKTYPE registry of tcpdump.org.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::Malformed;
use crate::bytes::{array, u16_at, u32_at};
use crate::ethertype::{after_ethertype, ethernet};

pub const TCP: u8 = 6;
pub const UDP: u8 = 17;
pub const GRE: u8 = 47;
const IPV4_INSIDE: u8 = 4;
const IPV6_INSIDE: u8 = 41;
pub(crate) const ETHERTYPE_IPV4: u16 = 0x0800;
pub(crate) const ETHERTYPE_IPV6: u16 = 0x86dd;
const ETHERTYPE_BRIDGED: u16 = 0x6558;
const VXLAN_PORT: u16 = 4789;
pub(crate) const VXLAN_GPE_PORT: u16 = 4790;
pub(crate) const GENEVE_PORT: u16 = 6081;
pub(crate) const GPE_IPV4: u16 = 1;
pub(crate) const GPE_IPV6: u16 = 2;
pub(crate) const GPE_ETHERNET: u16 = 3;
/// Packet type of Linux cooked links: sent by the machine that captured it.
const COOKED_SENT: u16 = 4;
/// The number of IPv6's routing header, and its type with a list of segments.
const ROUTING: u8 = 43;
const SEGMENTS: u8 = 4;
/// The maximum number of IPv6 extension headers and tunnels that are followed.
const MAX_NESTED: usize = 8;

/// The kinds of link whose frames are read, by their number in a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    Ethernet,
    /// IP without a header.
    Raw,
    /// The family in four bytes of either byte order.
    Loopback,
    LinuxCooked,
    LinuxCooked2,
}

impl Link {
    pub fn of_linktype(number: u32) -> Option<Link> {
        Some(match number {
            1 => Link::Ethernet,
            12 | 14 | 101 | 228 | 229 => Link::Raw,
            0 | 108 => Link::Loopback,
            113 => Link::LinuxCooked,
            276 => Link::LinuxCooked2,
            _ => return None,
        })
    }

    /// The interface that a frame's own header states, of `tcpdump -i any`: in version 2 of Linux cooked
    /// links the number that Linux gives it; version 1 states the direction alone, 0 if the packet was
    /// received and 1 if it was sent.
    pub fn interface(self, frame: &[u8]) -> Option<u32> {
        match self {
            Link::LinuxCooked => u16_at(frame, 0).map(|kind| u32::from(kind == COOKED_SENT)),
            Link::LinuxCooked2 => u32_at(frame, 4),
            Link::Ethernet | Link::Raw | Link::Loopback => None,
        }
    }

    /// The IP packet of a frame; None if it carries something else.
    pub fn ip(self, frame: &[u8]) -> Result<Option<&[u8]>, Malformed> {
        let cut = |at| u16_at(frame, at).ok_or(Malformed::Frame);
        match self {
            Link::Ethernet => ethernet(frame),
            Link::Raw => Ok(Some(frame)),
            Link::Loopback => {
                Ok(frame.get(4..).filter(|ip| ip.first().is_some_and(|b| matches!(b >> 4, 4 | 6))))
            }
            Link::LinuxCooked => after_ethertype(frame, cut(14)?, 16),
            Link::LinuxCooked2 => after_ethertype(frame, cut(0)?, 20),
        }
    }
}

/// An IP packet, its extension headers passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ip<'a> {
    pub source: IpAddr,
    pub destination: IpAddr,
    /// The destination, or the last one while a segment routing header still has segments: no router changes
    /// it.
    pub final_destination: IpAddr,
    pub dscp: u8,
    pub ecn: u8,
    /// TTL or hop limit.
    pub hop_limit: u8,
    /// IPv4's identification; None in IPv6.
    pub id: Option<u16>,
    pub dont_fragment: bool,
    /// 0 in IPv4.
    pub flow_label: u32,
    /// Any part of a fragmented packet.
    pub fragment: bool,
    /// Options of the IPv6 hop-by-hop header, without its first two bytes.
    pub hop_by_hop: &'a [u8],
    /// Options of an IPv6 destination header before the last one, such as that before a routing header.
    pub earlier_destination_options: &'a [u8],
    /// Options of the last IPv6 destination header.
    pub destination_options: &'a [u8],
    /// Of what the payload is.
    pub protocol: u8,
    /// After all IP headers; in a later fragment, not a transport header.
    pub payload: &'a [u8],
    /// The header states more bytes than there are: a capture or a report kept the start of the packet.
    pub cut: bool,
}

impl<'a> Ip<'a> {
    pub fn parse(bytes: &'a [u8]) -> Result<Ip<'a>, Malformed> {
        match bytes.first().ok_or(Malformed::Ip)? >> 4 {
            4 => Ip::v4(bytes),
            6 => Ip::v6(bytes),
            _ => Err(Malformed::Ip),
        }
    }

    fn v4(bytes: &'a [u8]) -> Result<Ip<'a>, Malformed> {
        let header: [u8; 20] = array(bytes, 0).ok_or(Malformed::Ip)?;
        let header_bytes = usize::from(header[0] & 15) * 4;
        // 0 before segmentation offload: all that there is.
        let total = match u16::from_be_bytes([header[2], header[3]]) {
            0 => bytes.len(),
            total => usize::from(total),
        };
        if header_bytes < 20 || total < header_bytes {
            return Err(Malformed::Ip);
        }
        // What follows the total length is Ethernet's padding.
        let payload = bytes.get(header_bytes..total.min(bytes.len())).ok_or(Malformed::Ip)?;
        let fragment = u16::from_be_bytes([header[6], header[7]]);
        let address =
            |at: usize| IpAddr::V4(Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]));
        Ok(Ip {
            source: address(12),
            destination: address(16),
            final_destination: address(16),
            dscp: header[1] >> 2,
            ecn: header[1] & 3,
            hop_limit: header[8],
            id: Some(u16::from_be_bytes([header[4], header[5]])),
            dont_fragment: fragment & 0x4000 != 0,
            flow_label: 0,
            fragment: fragment & 0x3fff != 0,
            hop_by_hop: &[],
            earlier_destination_options: &[],
            destination_options: &[],
            protocol: header[9],
            payload,
            cut: total > bytes.len(),
        })
    }

    fn v6(bytes: &'a [u8]) -> Result<Ip<'a>, Malformed> {
        let header: [u8; 40] = array(bytes, 0).ok_or(Malformed::Ip)?;
        let address = |at| Some(IpAddr::V6(Ipv6Addr::from(array::<16>(&header, at)?)));
        let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
        let end = if length == 0 { bytes.len() } else { bytes.len().min(40 + length) };
        let first = u32::from_be_bytes([header[0], header[1], header[2], header[3]]);
        let mut ip = Ip {
            source: address(8).ok_or(Malformed::Ip)?,
            destination: address(24).ok_or(Malformed::Ip)?,
            final_destination: address(24).ok_or(Malformed::Ip)?,
            dscp: (first >> 22 & 63) as u8,
            ecn: (first >> 20 & 3) as u8,
            hop_limit: header[7],
            id: None,
            dont_fragment: true,
            flow_label: first & 0xf_ffff,
            fragment: false,
            hop_by_hop: &[],
            earlier_destination_options: &[],
            destination_options: &[],
            protocol: header[6],
            payload: &bytes[40..end],
            cut: 40 + length > bytes.len(),
        };
        for _ in 0..MAX_NESTED {
            let rest = ip.payload;
            let units = || rest.get(1).map(|&units| usize::from(units));
            let length = match ip.protocol {
                0 | ROUTING | 60 => units().map(|units| 8 * units + 8),
                44 => Some(8),
                51 => units().map(|units| 4 * units + 8),
                _ => return Ok(ip),
            };
            let length = length.filter(|&length| length <= rest.len()).ok_or(Malformed::Ipv6Extension)?;
            match ip.protocol {
                0 => ip.hop_by_hop = &rest[2..length],
                ROUTING => {
                    if let Some(last) = last_segment(&rest[..length]) {
                        ip.final_destination = last;
                    }
                }
                60 => {
                    ip.earlier_destination_options = ip.destination_options;
                    ip.destination_options = &rest[2..length];
                }
                44 => {
                    let place = u16_at(rest, 2).ok_or(Malformed::Ipv6Extension)?;
                    ip.fragment = place & 0xfff9 != 0;
                    ip.dont_fragment = !ip.fragment;
                }
                _ => {}
            }
            ip.protocol = rest[0];
            ip.payload = &rest[length..];
            if ip.fragment {
                return Ok(ip);
            }
        }
        Err(Malformed::Ipv6Extension)
    }

    /// The IPv6 options that may carry telemetry, in the order of the headers: type and data.
    pub fn options(&self) -> impl Iterator<Item = Result<(u8, &'a [u8]), Malformed>> + use<'a> {
        [self.hop_by_hop, self.earlier_destination_options, self.destination_options]
            .into_iter()
            .flat_map(Options)
    }

    /// Source and destination port of TCP or UDP; None for other protocols, fragments, and headers that are
    /// cut off.
    pub fn ports(&self) -> Option<(u16, u16)> {
        if self.fragment || !matches!(self.protocol, TCP | UDP) {
            return None;
        }
        Some((u16_at(self.payload, 0)?, u16_at(self.payload, 2)?))
    }

    /// The flow of this packet; that inside of tunnels if it is one.
    pub fn flow(&self) -> FlowKey {
        let (mut packet, mut vni) = (*self, None);
        for _ in 0..MAX_NESTED {
            let Some((inside, network)) = packet.inside() else { break };
            (packet, vni) = (inside, network.or(vni));
        }
        FlowKey { vni, ..packet.own_flow() }
    }

    /// The packet inside of a tunnel, and its network; None: this is no tunnel, or that packet cannot be
    /// read.
    fn inside(&self) -> Option<(Ip<'a>, Option<u32>)> {
        if self.fragment {
            return None;
        }
        match self.protocol {
            UDP => inside_udp(self.ports()?.1, self.payload.get(8..)?),
            GRE => {
                let [flags, ..] = array::<4>(self.payload, 0)?;
                let bytes = self.payload.get(gre_header_bytes(flags)..)?;
                Some((ip_after(u16_at(self.payload, 2)?, bytes)?, None))
            }
            IPV4_INSIDE | IPV6_INSIDE => Some((Ip::parse(self.payload).ok()?, None)),
            _ => None,
        }
    }

    /// The flow by the headers outside of any tunnel.
    pub fn own_flow(&self) -> FlowKey {
        let (source_port, destination_port) = self.ports().unwrap_or_default();
        FlowKey {
            source: self.source,
            destination: self.destination,
            source_port,
            destination_port,
            protocol: self.protocol,
            vni: None,
            namespace: None,
        }
    }
}

/// The destination after all segments of a routing header, if it has segments left.
///
/// Source: RFC 8754, §2: the list begins with the last segment.
fn last_segment(header: &[u8]) -> Option<IpAddr> {
    let &[_, _, kind, left, ..] = header else { return None };
    let last = (kind == SEGMENTS && left > 0).then(|| array::<16>(header, 8)).flatten()?;
    Some(IpAddr::V6(Ipv6Addr::from(last)))
}

/// The packet inside of a tunnel over UDP, and its network, by the header of the tunnel.
///
/// Source: RFC 7348 (VXLAN), draft-ietf-nvo3-vxlan-gpe-12, RFC 8926 (Geneve).
fn inside_udp(port: u16, header: &[u8]) -> Option<(Ip<'_>, Option<u32>)> {
    let vni = Some(u32_at(header, 4)? >> 8);
    let payload = &header[8..];
    let ip = match port {
        VXLAN_PORT => ip_after(ETHERTYPE_BRIDGED, payload)?,
        VXLAN_GPE_PORT => ip_of_gpe(header[3].into(), payload)?,
        GENEVE_PORT => ip_after(u16_at(header, 2)?, payload.get(4 * usize::from(header[0] & 63)..)?)?,
        _ => return None,
    };
    Some((ip, vni))
}

/// The flow inside of a tunnel over UDP, by the header of the tunnel.
pub(crate) fn flow_inside_udp(port: u16, header: &[u8]) -> Option<FlowKey> {
    let (ip, vni) = inside_udp(port, header)?;
    let flow = ip.flow();
    Some(FlowKey { vni: flow.vni.or(vni), ..flow })
}

/// The packet after a header that names it by the next protocol of VXLAN-GPE.
pub(crate) fn ip_of_gpe(next: u16, bytes: &[u8]) -> Option<Ip<'_>> {
    match next {
        GPE_IPV4 | GPE_IPV6 => Ip::parse(bytes).ok(),
        GPE_ETHERNET => ip_after(ETHERTYPE_BRIDGED, bytes),
        _ => None,
    }
}

/// The packet after a header that names it by EtherType.
pub(crate) fn ip_after(ethertype: u16, bytes: &[u8]) -> Option<Ip<'_>> {
    let ip = match ethertype {
        ETHERTYPE_IPV4 | ETHERTYPE_IPV6 => bytes,
        ETHERTYPE_BRIDGED => ethernet(bytes).ok()??,
        _ => return None,
    };
    Ip::parse(ip).ok()
}

/// Bytes of a GRE header; RFC 2890: checksum (C), key (K) and sequence (S) take a word each.
pub(crate) fn gre_header_bytes(flags: u8) -> usize {
    4 + 4 * (flags & 0xb0).count_ones() as usize
}

/// What tells flows apart: the five-tuple, the network if it lies in a tunnel, and the namespace of an IOAM
/// trace: a packet may have a trace of each, with nodes of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowKey {
    pub source: IpAddr,
    pub destination: IpAddr,
    pub source_port: u16,
    pub destination_port: u16,
    pub protocol: u8,
    pub vni: Option<u32>,
    pub namespace: Option<u16>,
}

/// Options of IPv6: type, length, data. Padding is passed over; after an option that is cut off, nothing
/// follows.
struct Options<'a>(&'a [u8]);

impl<'a> Iterator for Options<'a> {
    type Item = Result<(u8, &'a [u8]), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (&kind, rest) = self.0.split_first()?;
            if kind == 0 {
                self.0 = rest;
                continue;
            }
            let length = rest.first().map_or(usize::MAX, |&length| usize::from(length));
            let Some(data) = rest.get(1..).and_then(|rest| rest.get(..length)) else {
                self.0 = &[];
                return Some(Err(Malformed::Ipv6Option));
            };
            self.0 = &rest[1 + length..];
            if kind != 1 {
                return Some(Ok((kind, data)));
            }
        }
    }
}
