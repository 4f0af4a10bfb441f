//! In-band Network Telemetry 2.1: shims, the MD header with its stack of hops, the MX header.
//!
//! A stack has the newest hop first. A hop has the values of the instruction bitmap in the order of its bits,
//! then words of its domain, then the checksum complement; the oldest may have words that only a source
//! inserts. A value of all ones is one that the hop does not have.
//!
//! Source: P4.org Applications Working Group, "In-band Network Telemetry (INT) Dataplane Specification",
//! version 2.1. Differs from the source: it gives INT neither ports nor code points, so `Markers` holds those
//! of a domain.

use crate::Malformed;
use crate::bytes::{array, u16_at, u32_at, u64_at, words};

/// Words of the value of every bit of the instruction bitmap, the highest first.
const VALUE_WORDS: [u8; 16] = [1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1];
/// Bytes of the MD and the MX header without what follows them.
const HEADER_BYTES: usize = 12;

/// Words that the values of this bitmap take.
pub(crate) fn bitmap_words(bitmap: u16) -> usize {
    (0..16).filter(|bit| bitmap & 0x8000 >> bit != 0).map(|bit| usize::from(VALUE_WORDS[bit])).sum()
}

/// An INT header of either kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Header<'a> {
    Md(Md<'a>),
    Mx(Mx<'a>),
}

impl<'a> Header<'a> {
    /// Reads a header of the type that its shim states (1 MD, 3 MX), of all the bytes that the shim's length
    /// covers.
    pub fn parse(kind: u8, bytes: &'a [u8]) -> Result<Header<'a>, Malformed> {
        if bytes.len() < HEADER_BYTES {
            return Err(Malformed::IntLength);
        }
        if bytes[0] >> 4 != 2 {
            return Err(Malformed::IntVersion);
        }
        match kind {
            1 => Md::parse(bytes).map(Header::Md),
            3 => Mx::parse(bytes).map(Header::Mx),
            _ => Err(Malformed::IntShim),
        }
    }
}

/// Fields that both headers have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instructions {
    /// D: the sink discards the packet.
    pub discard: bool,
    /// Which values hops give; bit 0 is the highest.
    pub bitmap: u16,
    /// 0: no domain.
    pub domain: u16,
    pub domain_bitmap: u16,
    pub domain_flags: u16,
}

impl Instructions {
    fn parse(bytes: &[u8]) -> Option<Instructions> {
        Some(Instructions {
            discard: bytes.first()? & 8 != 0,
            bitmap: u16_at(bytes, 4)?,
            domain: u16_at(bytes, 6)?,
            domain_bitmap: u16_at(bytes, 8)?,
            domain_flags: u16_at(bytes, 10)?,
        })
    }
}

/// INT-MD: instructions, and what hops wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Md<'a> {
    pub instructions: Instructions,
    /// E: a hop found no hops remaining, so the stack has fewer hops than the path.
    pub hops_exceeded: bool,
    /// M: a hop did not write because of the MTU.
    pub mtu_exceeded: bool,
    /// Words of a hop.
    pub hop_words: u8,
    pub remaining_hops: u8,
    stack: &'a [u8],
    hops: usize,
}

impl<'a> Md<'a> {
    fn parse(bytes: &'a [u8]) -> Result<Md<'a>, Malformed> {
        let instructions = Instructions::parse(bytes).ok_or(Malformed::IntLength)?;
        let stack = &bytes[HEADER_BYTES..];
        let hop_words = bytes[2] & 31;
        if bitmap_words(instructions.bitmap) > usize::from(hop_words) {
            return Err(Malformed::IntHop);
        }
        let hop_bytes = usize::from(hop_words) * 4;
        let hops = stack.len().checked_div(hop_bytes).unwrap_or(0);
        let left_over = stack.len() - hops * hop_bytes;
        // Only a domain's source inserts more than other hops.
        if left_over % 4 != 0 || (left_over != 0 && (hops == 0 || instructions.domain == 0)) {
            return Err(Malformed::IntStack);
        }
        Ok(Md {
            instructions,
            hops_exceeded: bytes[0] & 4 != 0,
            mtu_exceeded: bytes[0] & 2 != 0,
            hop_words,
            remaining_hops: bytes[3],
            stack,
            hops,
        })
    }

    pub fn len(&self) -> usize {
        self.hops
    }

    pub fn is_empty(&self) -> bool {
        self.hops == 0
    }

    /// The hops in the order in which the packet passed them, oldest first.
    pub fn hops(&self) -> impl DoubleEndedIterator<Item = Hop<'a>> + use<'a> {
        let (stack, hops, hop_bytes) = (self.stack, self.hops, usize::from(self.hop_words) * 4);
        let bitmap = self.instructions.bitmap;
        (0..hops).rev().map(move |place| {
            let start = place * hop_bytes;
            let end = if place + 1 == hops { stack.len() } else { start + hop_bytes };
            Hop { bitmap, own_bytes: hop_bytes, bytes: &stack[start..end] }
        })
    }
}

/// What one hop wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop<'a> {
    bitmap: u16,
    /// Without what only a source inserts.
    own_bytes: usize,
    bytes: &'a [u8],
}

impl<'a> Hop<'a> {
    /// Bit 15, the complement, stands last and is not among them.
    pub fn values(&self) -> Values {
        Values::parse(self.bitmap & !1, self.bytes)
    }

    /// The node id alone.
    pub fn node(&self) -> Option<u32> {
        known(u32_at(self.bytes, 0)?).filter(|_| self.bitmap & 0x8000 != 0)
    }

    /// The words of the domain that every hop inserts.
    pub fn domain_words(&self) -> impl Iterator<Item = u32> + use<'a> {
        words(self.bytes.get(self.values_bytes()..self.domain_end()).unwrap_or_default())
    }

    /// Words that only the source inserts; empty but at the oldest hop.
    pub fn source_only(&self) -> impl Iterator<Item = u32> + use<'a> {
        words(self.bytes.get(self.domain_end()..self.complement_at()).unwrap_or_default())
    }

    /// The checksum complement; all ones if the hop updated the checksum instead.
    pub fn complement(&self) -> Option<u32> {
        u32_at(self.bytes, self.complement_at()).filter(|_| self.bitmap & 1 != 0)
    }

    fn values_bytes(&self) -> usize {
        4 * bitmap_words(self.bitmap & !1)
    }

    fn domain_end(&self) -> usize {
        self.own_bytes - 4 * usize::from(self.bitmap & 1)
    }

    fn complement_at(&self) -> usize {
        self.bytes.len() - 4 * usize::from(self.bitmap & 1)
    }
}

/// INT-MX: instructions; the packet carries no data of hops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mx<'a> {
    pub instructions: Instructions,
    source_inserted: &'a [u8],
}

impl<'a> Mx<'a> {
    fn parse(bytes: &'a [u8]) -> Result<Mx<'a>, Malformed> {
        let instructions = Instructions::parse(bytes).ok_or(Malformed::IntLength)?;
        Ok(Mx { instructions, source_inserted: &bytes[HEADER_BYTES..] })
    }

    /// Words that the source inserted for its domain.
    pub fn source_inserted(&self) -> impl Iterator<Item = u32> + use<'a> {
        words(self.source_inserted)
    }
}

/// The values that bits 0 to 8 of a bitmap ask for; None where the bit is clear or the hop does not have the
/// value. Units are those of the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Values {
    pub node: Option<u32>,
    /// Level 1: ingress, egress.
    pub interfaces: Option<(u16, u16)>,
    pub hop_latency: Option<u32>,
    /// Queue and its occupancy.
    pub queue: Option<(u8, u32)>,
    pub ingress_time: Option<u64>,
    pub egress_time: Option<u64>,
    /// Level 2: ingress, egress.
    pub logical_interfaces: Option<(u32, u32)>,
    pub tx_utilisation: Option<u32>,
    /// Buffer and its occupancy.
    pub buffer: Option<(u8, u32)>,
}

impl Values {
    /// Reads the values of a bitmap; those that the bytes do not reach are None.
    pub(crate) fn parse(bitmap: u16, bytes: &[u8]) -> Values {
        let mut values = Values::default();
        let mut at = 0;
        let mut left = bitmap;
        while left != 0 {
            let bit = left.leading_zeros() as usize;
            left &= !(0x8000 >> bit);
            let word = u32_at(bytes, at).and_then(known);
            let double = || u64_at(bytes, at).filter(|&value| value != u64::MAX);
            let with_id = || word.map(|word| ((word >> 24) as u8, word & 0xff_ffff));
            match bit {
                0 => values.node = word,
                1 => values.interfaces = word.map(|word| ((word >> 16) as u16, word as u16)),
                2 => values.hop_latency = word,
                3 => values.queue = with_id(),
                4 => values.ingress_time = double(),
                5 => values.egress_time = double(),
                6 => values.logical_interfaces = double().map(|pair| ((pair >> 32) as u32, pair as u32)),
                7 => values.tx_utilisation = word,
                8 => values.buffer = with_id(),
                _ => {}
            }
            at += 4 * usize::from(VALUE_WORDS[bit]);
        }
        values
    }
}

/// All ones: the hop does not have the value.
fn known(word: u32) -> Option<u32> {
    (word != u32::MAX).then_some(word)
}

/// How INT was found in a packet, and what its sink restores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// After the TCP or UDP header of packets with a DSCP.
    Dscp {
        original: u8,
    },
    /// After the TCP or UDP header and a marker of 64 bits.
    ProbeMarker,
    /// Under a UDP port, the payload following.
    UdpPort {
        original: u16,
    },
    /// Under a UDP header of its own before the old transport header.
    UdpHeader {
        original_protocol: u8,
    },
    /// `inserted`: the source inserted GRE.
    Gre {
        inserted: bool,
    },
    /// `was_vxlan`: the source changed VXLAN into VXLAN-GPE.
    VxlanGpe {
        vni: u32,
        was_vxlan: bool,
    },
    Geneve {
        vni: u32,
    },
}

/// A shim of four bytes: kind, its three bits for the carrier, what its last two bytes hold, then the header
/// and the rest.
pub(crate) struct Shim<'a> {
    pub kind: u8,
    /// The low four bits of the first byte.
    pub flags: u8,
    pub last: u16,
    pub header: &'a [u8],
    pub rest: &'a [u8],
}

impl<'a> Shim<'a> {
    pub fn parse(bytes: &'a [u8]) -> Result<Shim<'a>, Malformed> {
        let [first, length, high, low] = array(bytes, 0).ok_or(Malformed::IntLength)?;
        let after = &bytes[4..];
        let (header, rest) = after.split_at_checked(4 * usize::from(length)).ok_or(Malformed::IntLength)?;
        Ok(Shim { kind: first >> 4, flags: first & 15, last: u16::from_be_bytes([high, low]), header, rest })
    }
}
