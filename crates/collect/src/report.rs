//! Telemetry reports 2.0: a group of reports of one node in a UDP datagram.
//!
//! A group has a sequence number of 22 bits for each node and hardware unit, from which loss is counted. A
//! report has values of its own node and the start of the packet that it is about, which may itself carry
//! INT.
//!
//! Source: P4.org Applications Working Group, "Telemetry Report Format Specification", version 2.0.

use crate::Malformed;
use crate::bytes::{array, u16_at, u32_at, words};
use crate::ethertype::ethernet;
use crate::int::{Values, bitmap_words};

/// Sequence numbers count modulo this.
pub const SEQUENCES: u32 = 1 << 22;
const LENGTH_TO_THE_END: u8 = 0xff;

/// A datagram of reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group<'a> {
    pub hardware: u8,
    /// Of the node and its hardware unit, modulo [`SEQUENCES`].
    pub sequence: u32,
    pub node: u32,
    body: &'a [u8],
}

impl<'a> Group<'a> {
    pub fn parse(datagram: &'a [u8]) -> Result<Group<'a>, Malformed> {
        let first = u32_at(datagram, 0).ok_or(Malformed::ReportLength)?;
        if first >> 28 != 2 {
            return Err(Malformed::ReportVersion);
        }
        Ok(Group {
            hardware: (first >> 22 & 63) as u8,
            sequence: first & (SEQUENCES - 1),
            node: u32_at(datagram, 4).ok_or(Malformed::ReportLength)?,
            body: &datagram[8..],
        })
    }

    /// The reports in the order of the datagram. After one that is malformed, nothing follows.
    pub fn reports(&self) -> impl Iterator<Item = Result<Report<'a>, Malformed>> + use<'a> {
        let mut rest = self.body;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            Some(match Report::split(rest) {
                Ok((report, after)) => {
                    rest = after;
                    Ok(report)
                }
                Err(malformed) => {
                    rest = &[];
                    Err(malformed)
                }
            })
        })
    }
}

/// What the packet of a report begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inner {
    None,
    Tlv,
    Domain,
    Ethernet,
    Ipv4,
    Ipv6,
}

/// What a node reports about one packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report<'a> {
    /// Whether it has values of its node; else it is only the packet.
    pub has_values: bool,
    /// Of a type (2, IOAM) whose contents the specification leaves open: nothing of it is read.
    pub is_opaque: bool,
    pub inner: Inner,
    pub dropped: bool,
    pub congested: bool,
    pub tracked: bool,
    /// From a node in mid-path.
    pub intermediate: bool,
    /// Its length is that of the rest of the datagram.
    pub to_the_end: bool,
    pub bitmap: u16,
    pub domain: u16,
    pub domain_bitmap: u16,
    pub domain_status: u16,
    metadata: &'a [u8],
    packet: &'a [u8],
}

impl<'a> Report<'a> {
    fn split(bytes: &'a [u8]) -> Result<(Report<'a>, &'a [u8]), Malformed> {
        let [types, length, metadata_words, flags] = array(bytes, 0).ok_or(Malformed::ReportLength)?;
        let to_the_end = length == LENGTH_TO_THE_END;
        let after = &bytes[4..];
        let end = if to_the_end { after.len() } else { 4 * usize::from(length) };
        let (body, rest) = after.split_at_checked(end).ok_or(Malformed::ReportLength)?;
        let (has_values, is_opaque) = match types >> 4 {
            0 => (false, false),
            1 => (true, false),
            2 => (false, true),
            _ => return Err(Malformed::ReportType),
        };
        let inner = match types & 15 {
            _ if is_opaque => Inner::None,
            0 => Inner::None,
            1 => Inner::Tlv,
            2 => Inner::Domain,
            3 => Inner::Ethernet,
            4 => Inner::Ipv4,
            5 => Inner::Ipv6,
            _ => return Err(Malformed::ReportType),
        };
        let metadata_words = if is_opaque { 0 } else { metadata_words };
        let fixed = if has_values { 8 } else { 0 };
        let (fixed, variable) = body.split_at_checked(fixed).ok_or(Malformed::ReportLength)?;
        let metadata_bytes = 4 * usize::from(metadata_words);
        let (metadata, packet) = variable.split_at_checked(metadata_bytes).ok_or(Malformed::ReportLength)?;
        let field = |at| u16_at(fixed, at).unwrap_or_default();
        let bitmap = field(0);
        // Bit 0 is reserved: the node is in the group's header.
        if 4 * bitmap_words(bitmap & 0x7fff) > metadata_bytes {
            return Err(Malformed::ReportLength);
        }
        let report = Report {
            has_values,
            is_opaque,
            inner,
            dropped: flags & 0x80 != 0,
            congested: flags & 0x40 != 0,
            tracked: flags & 0x20 != 0,
            intermediate: flags & 0x10 != 0,
            to_the_end,
            bitmap,
            domain: field(2),
            domain_bitmap: field(4),
            domain_status: field(6),
            metadata,
            packet,
        };
        Ok((report, rest))
    }

    /// What the node measured; its id is the group's.
    pub fn values(&self) -> Values {
        Values::parse(self.bitmap & 0x7ffe, self.metadata)
    }

    /// Queue and reason of a drop.
    pub fn drop(&self) -> Option<(u8, u8)> {
        let [queue, reason, ..] = array::<4>(self.metadata, 4 * bitmap_words(self.bitmap & 0x7ffe))?;
        (self.bitmap & 1 != 0).then_some((queue, reason))
    }

    /// Words of the domain.
    pub fn domain_words(&self) -> impl Iterator<Item = u32> + use<'a> {
        words(self.metadata.get(4 * bitmap_words(self.bitmap & 0x7fff)..).unwrap_or_default())
    }

    /// The IP packet that the report is about, padded to words; None if it holds none. Error: a frame that is
    /// malformed, or an element before it.
    pub fn ip(&self) -> Result<Option<&'a [u8]>, Malformed> {
        match self.inner {
            Inner::Ethernet => ethernet(self.packet),
            Inner::Ipv4 | Inner::Ipv6 => Ok(Some(self.packet)),
            Inner::Tlv => {
                let packet = |tlv: Result<Tlv<'a>, Malformed>| {
                    let packet = tlv.and_then(|tlv| match tlv.kind {
                        1 => ethernet(tlv.value),
                        2 | 3 => Ok(Some(tlv.value)),
                        _ => Ok(None),
                    });
                    packet.transpose()
                };
                self.tlvs().find_map(packet).transpose()
            }
            Inner::None | Inner::Domain => Ok(None),
        }
    }

    /// The elements of an inner part of that kind; empty for any other.
    pub fn tlvs(&self) -> impl Iterator<Item = Result<Tlv<'a>, Malformed>> + use<'a> {
        let mut rest = if self.inner == Inner::Tlv { self.packet } else { &[] };
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let split = array::<4>(rest, 0).and_then(|[kind, length, high, low]| {
                let (value, after) = rest[4..].split_at_checked(4 * usize::from(length))?;
                Some((Tlv { kind: kind >> 4, template: u16::from_be_bytes([high, low]), value }, after))
            });
            rest = split.map_or(&[], |(_, after)| after);
            Some(split.map(|(tlv, _)| tlv).ok_or(Malformed::ReportLength))
        })
    }
}

/// An element: 0 data of a domain, 1 Ethernet, 2 IPv4, 3 IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tlv<'a> {
    pub kind: u8,
    pub template: u16,
    pub value: &'a [u8],
}
