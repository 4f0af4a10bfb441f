//! weftline's own telemetry header, which its captures have under UDP port 49201 (docs/packets.md,
//! Telemetry): HPCC's records of hops, a digest of PINT, or a timestamp.
//!
//! Source: Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, Fig. 7 (records of hops).

use crate::Malformed;
use crate::bytes::{array, u16_at, u64_at};

pub const PORT: u16 = 49_201;
const HEADER_BYTES: usize = 8;
const RECORD_BYTES: usize = 8;
/// Rates of links in Gb/s by their code; 0 stands for any other.
const GBPS: [u16; 8] = [0, 10, 25, 40, 50, 100, 200, 400];

/// The header and its contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shim<'a> {
    /// UDP port that the rest is for.
    pub original_port: u16,
    pub timestamp_ns: Option<u64>,
    pub hpcc: Option<Hpcc<'a>>,
    pub pint: Option<Pint>,
    /// What the telemetry was put before.
    pub rest: &'a [u8],
}

/// HPCC's telemetry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hpcc<'a> {
    pub path_id: u16,
    /// The unit of bytes sent is 128 B, that of the queue 80 B, each times this.
    pub unit: u8,
    records: &'a [u8],
}

/// A digest of PINT.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pint {
    pub digest: u64,
    pub digest_bytes: u8,
    pub hops: u8,
    pub looped: bool,
}

/// What one hop wrote for HPCC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// None: a rate that has no code.
    pub gbps: Option<u16>,
    /// Modulo 2^24.
    pub time_ns: u32,
    /// Modulo 2^20 units.
    pub sent_bytes: u64,
    pub queue_bytes: u64,
}

impl<'a> Shim<'a> {
    /// Reads what follows the UDP header.
    pub fn parse(payload: &'a [u8]) -> Result<Shim<'a>, Malformed> {
        Shim::read(payload).ok_or(Malformed::Shim)
    }

    fn read(payload: &'a [u8]) -> Option<Shim<'a>> {
        let [first, unit, ..] = array::<8>(payload, 0)?;
        let length = usize::from(u16_at(payload, 2)?);
        let (header, rest) = payload.split_at_checked(length)?;
        let counts = u16_at(header.get(..HEADER_BYTES)?, 6)?;
        if first >> 4 != 1 {
            return None;
        }
        let mut contents = &header[HEADER_BYTES..];
        let mut shim =
            Shim { original_port: u16_at(header, 4)?, timestamp_ns: None, hpcc: None, pint: None, rest };
        if first & 4 != 0 {
            shim.timestamp_ns = Some(u64_at(contents, 0)?);
            contents = &contents[8..];
        }
        if first & 1 != 0 {
            let records = contents.get(..RECORD_BYTES * usize::from(counts >> 12))?;
            shim.hpcc = Some(Hpcc { path_id: counts & 0xfff, unit, records });
        } else if first & 2 != 0 {
            let digest =
                contents.get(..usize::from(unit)).filter(|digest| (1..=8).contains(&digest.len()))?;
            shim.pint = Some(Pint {
                digest: digest.iter().fold(0, |digest, &byte| digest << 8 | u64::from(byte)),
                digest_bytes: unit,
                hops: counts as u8,
                looped: counts & 0x8000 != 0,
            });
        }
        Some(shim)
    }
}

impl<'a> Hpcc<'a> {
    /// The hops in the order in which the packet passed them.
    pub fn records(&self) -> impl Iterator<Item = Record> + use<'a> {
        let unit = u64::from(self.unit);
        self.records.chunks_exact(RECORD_BYTES).filter_map(move |record| {
            let bits = u64_at(record, 0)?;
            Some(Record {
                gbps: Some(GBPS[(bits >> 61) as usize]).filter(|&gbps| gbps != 0),
                time_ns: (bits >> 37) as u32 & 0xff_ffff,
                sent_bytes: (bits >> 17 & 0xf_ffff) * 128 * unit,
                queue_bytes: (bits & 0x1_ffff) * 80 * unit,
            })
        })
    }
}
