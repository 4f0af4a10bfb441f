//! IOAM in IPv6 options: pre-allocated and incremental traces, edge to edge, direct export.
//!
//! A trace has the newest node first. In a pre-allocated trace the free space stands before the nodes. A
//! field of all ones is one that the node does not have.
//!
//! Source: RFC 9197 (data), RFC 9486 (IPv6), RFC 9326 (direct export). Linux fills the fraction of a second
//! with microseconds and the queue depth with bytes.

use crate::Malformed;
use crate::bytes::{u16_at, u32_at, u64_at};

/// Types of the IPv6 option: its data may change on the path, or may not.
pub const OPTIONS: [u8; 2] = [0x31, 0x11];
/// Bit 0 is the highest of 24.
const WIDE: u32 = 1 << (23 - 8) | 1 << (23 - 9) | 1 << (23 - 10);
const FIXED: u32 = 0xff_fffc;
const OPAQUE: u32 = 1 << (23 - 22);
const TRACE_BYTES: usize = 8;

/// What one option holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ioam<'a> {
    Trace(Trace<'a>),
    EdgeToEdge(EdgeToEdge),
    DirectExport(DirectExport),
    /// Of a type that is not read, proof of transit among them.
    Other(u8),
}

impl<'a> Ioam<'a> {
    /// Reads the data of an IPv6 option of one of the types [`OPTIONS`].
    pub fn parse(option: &'a [u8]) -> Result<Ioam<'a>, Malformed> {
        let &[_, kind, ref data @ ..] = option else { return Err(Malformed::IoamLength) };
        match kind {
            0 | 1 => Trace::parse(data, kind == 1).map(Ioam::Trace),
            3 => EdgeToEdge::parse(data).map(Ioam::EdgeToEdge).ok_or(Malformed::IoamLength),
            4 => DirectExport::parse(data).map(Ioam::DirectExport).ok_or(Malformed::IoamLength),
            other => Ok(Ioam::Other(other)),
        }
    }
}

/// A trace of the nodes that a packet passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trace<'a> {
    pub incremental: bool,
    pub namespace: u16,
    /// Words of a node, its opaque snapshot not counted.
    pub node_words: u8,
    /// A node found no room, so the trace has fewer nodes than the path.
    pub overflow: bool,
    pub loopback: bool,
    pub active: bool,
    pub remaining_words: u8,
    /// Which fields nodes write, in 24 bits.
    pub trace_type: u32,
    nodes: &'a [u8],
}

impl<'a> Trace<'a> {
    fn parse(data: &'a [u8], incremental: bool) -> Result<Trace<'a>, Malformed> {
        let (header, space) = data.split_at_checked(TRACE_BYTES).ok_or(Malformed::IoamLength)?;
        let lengths = u16_at(header, 2).ok_or(Malformed::IoamLength)?;
        let remaining_words = (lengths & 127) as u8;
        let trace_type = u32_at(header, 4).ok_or(Malformed::IoamLength)? >> 8;
        let free = if incremental { 0 } else { 4 * usize::from(remaining_words) };
        let trace = Trace {
            incremental,
            namespace: u16_at(header, 0).ok_or(Malformed::IoamLength)?,
            node_words: (lengths >> 11) as u8,
            overflow: lengths >> 7 & 8 != 0,
            loopback: lengths >> 7 & 4 != 0,
            active: lengths >> 7 & 2 != 0,
            remaining_words,
            trace_type,
            nodes: space.get(free..).ok_or(Malformed::IoamLength)?,
        };
        let needed = (trace_type & FIXED).count_ones() + (trace_type & WIDE).count_ones();
        if needed != u32::from(trace.node_words) || (needed == 0 && trace_type & OPAQUE == 0) {
            return Err(Malformed::IoamNode);
        }
        let mut rest = trace.nodes;
        while !rest.is_empty() {
            let length = trace.node_bytes(rest).filter(|&length| length <= rest.len());
            rest = &rest[length.ok_or(Malformed::IoamStack)?..];
        }
        Ok(trace)
    }

    /// Bytes of the node that these begin with.
    fn node_bytes(&self, nodes: &[u8]) -> Option<usize> {
        let fixed = 4 * usize::from(self.node_words);
        if self.trace_type & OPAQUE == 0 {
            return Some(fixed);
        }
        Some(fixed + 4 + 4 * usize::from(*nodes.get(fixed)?))
    }

    /// The nodes as they stand in the packet, newest first.
    pub fn nodes(&self) -> impl Iterator<Item = Node<'a>> + use<'a> {
        let trace = *self;
        let mut rest = self.nodes;
        std::iter::from_fn(move || {
            let (node, after) =
                rest.split_at_checked(trace.node_bytes(rest).filter(|_| !rest.is_empty())?)?;
            rest = after;
            Some(Node { trace_type: trace.trace_type, bytes: node })
        })
    }
}

/// What one node wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node<'a> {
    trace_type: u32,
    bytes: &'a [u8],
}

/// The fields of a node; None where the trace does not ask for one or the node does not have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Fields<'a> {
    /// After it was decremented.
    pub hop_limit: Option<u8>,
    pub node: Option<u32>,
    /// Ingress, egress.
    pub interfaces: Option<(u16, u16)>,
    pub seconds: Option<u32>,
    pub fraction: Option<u32>,
    /// In ns; the highest bit is set if it was longer.
    pub transit_delay: Option<u32>,
    pub namespace_data: Option<u32>,
    pub queue_depth: Option<u32>,
    pub checksum_complement: Option<u32>,
    pub wide_node: Option<u64>,
    pub wide_interfaces: Option<(u32, u32)>,
    pub wide_namespace_data: Option<u64>,
    pub buffer_occupancy: Option<u32>,
    /// The schema's id, and its data.
    pub snapshot: Option<(u32, &'a [u8])>,
}

impl<'a> Node<'a> {
    pub fn fields(&self) -> Fields<'a> {
        let mut fields = Fields::default();
        let mut at = 0;
        let mut left = self.trace_type & FIXED;
        while left != 0 {
            let bit = left.leading_zeros() - 8;
            left &= !(1 << (23 - bit));
            let word = u32_at(self.bytes, at);
            let known = word.filter(|&word| word != u32::MAX);
            let double = u64_at(self.bytes, at);
            match bit {
                0 => {
                    fields.hop_limit = word.map(|word| (word >> 24) as u8);
                    fields.node = word.map(|word| word & 0xff_ffff).filter(|&node| node != 0xff_ffff);
                }
                1 => fields.interfaces = known.map(|word| ((word >> 16) as u16, word as u16)),
                2 => fields.seconds = known,
                3 => fields.fraction = known,
                4 => fields.transit_delay = known,
                5 => fields.namespace_data = known,
                6 => fields.queue_depth = known,
                7 => fields.checksum_complement = known,
                8 => {
                    fields.hop_limit = double.map(|double| (double >> 56) as u8);
                    fields.wide_node =
                        double.map(|double| double << 8 >> 8).filter(|&node| node != u64::MAX >> 8);
                }
                9 => {
                    let pair = double.filter(|&pair| pair != u64::MAX);
                    fields.wide_interfaces = pair.map(|pair| ((pair >> 32) as u32, pair as u32));
                }
                10 => fields.wide_namespace_data = double.filter(|&data| data != u64::MAX),
                11 => fields.buffer_occupancy = known,
                _ => {}
            }
            at += if WIDE >> (23 - bit) & 1 == 1 { 8 } else { 4 };
        }
        if self.trace_type & OPAQUE != 0 {
            let schema =
                u32_at(self.bytes, at).map(|word| word & 0xff_ffff).filter(|&schema| schema != 0xff_ffff);
            fields.snapshot = schema.zip(self.bytes.get(at + 4..));
        }
        fields
    }
}

/// What the first node tells the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EdgeToEdge {
    pub namespace: u16,
    /// Which fields follow, the highest bit first: 64-bit sequence, 32-bit sequence, seconds,
    /// fraction.
    pub kind: u16,
    pub sequence: Option<u64>,
    pub seconds: Option<u32>,
    pub fraction: Option<u32>,
}

impl EdgeToEdge {
    fn parse(data: &[u8]) -> Option<EdgeToEdge> {
        let kind = u16_at(data, 2)?;
        let mut found = EdgeToEdge { namespace: u16_at(data, 0)?, kind, ..EdgeToEdge::default() };
        let mut at = 4;
        if kind & 0x8000 != 0 {
            found.sequence = Some(u64_at(data, at)?);
            at += 8;
        }
        let mut next = |asked: u16| {
            if kind & asked == 0 {
                return Some(None);
            }
            at += 4;
            Some(Some(u32_at(data, at - 4)?))
        };
        found.sequence = next(0x4000)?.map(u64::from).or(found.sequence);
        found.seconds = next(0x2000)?;
        found.fraction = next(0x1000)?;
        Some(found)
    }
}

/// Asks nodes to export what a trace of this type would hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DirectExport {
    pub namespace: u16,
    pub flags: u8,
    pub extension_flags: u8,
    pub trace_type: u32,
    pub flow_id: Option<u32>,
    pub sequence: Option<u32>,
}

impl DirectExport {
    fn parse(data: &[u8]) -> Option<DirectExport> {
        let extension_flags = *data.get(3)?;
        let mut found = DirectExport {
            namespace: u16_at(data, 0)?,
            flags: data[2],
            extension_flags,
            trace_type: u32_at(data, 4)? >> 8,
            ..DirectExport::default()
        };
        let mut at = 8;
        if extension_flags & 0x80 != 0 {
            found.flow_id = Some(u32_at(data, at)?);
            at += 4;
        }
        if extension_flags & 0x40 != 0 {
            found.sequence = Some(u32_at(data, at)?);
        }
        Some(found)
    }
}
