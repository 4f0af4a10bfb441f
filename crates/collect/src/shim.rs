//! weftline's own telemetry header, which its captures have under UDP port 49201 (docs/packets.md,
//! Telemetry): HPCC's records of hops, a digest of PINT, or a timestamp.
//!
//! Source: Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, Fig. 7 (records of hops).

use crate::Malformed;
use crate::bytes::{array, u16_at, u64_at};

pub const PORT: u16 = 49_201;
const HEADER_BYTES: usize = 8;
const RECORD_BYTES: usize = 8;
/// What a header may contain.
const INT: u8 = 1;
const PINT: u8 = 2;
const TIMESTAMP: u8 = 4;
/// INT with more hops than records.
const OVERWRITTEN: u8 = 8;
/// The largest number of hops that the header states; it stands for more, too.
const MAX_COUNT: usize = 15;
/// In its unit.
const LONGEST_QUEUE: u64 = 0x1_ffff;
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
    /// The packet passed more hops than it has records: later hops have overwritten earlier ones, and none is
    /// returned.
    pub overwritten: bool,
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
    /// The field is full: the queue may have been longer.
    pub queue_is_minimum: bool,
}

impl<'a> Shim<'a> {
    /// Reads what follows the UDP header.
    pub fn parse(payload: &'a [u8]) -> Result<Shim<'a>, Malformed> {
        let [first, _, high, low, ..] = array::<8>(payload, 0).ok_or(Malformed::Shim)?;
        if first >> 4 == 1 && usize::from(u16::from_be_bytes([high, low])) > payload.len() {
            return Err(Malformed::Frame);
        }
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
        if first & TIMESTAMP != 0 {
            shim.timestamp_ns = Some(u64_at(contents, 0)?);
            contents = &contents[8..];
        }
        if first & INT != 0 {
            let (hops, records) = (usize::from(counts >> 12), contents.len() / RECORD_BYTES);
            let overwritten = first & OVERWRITTEN != 0 || hops > records;
            let fits = overwritten || hops == records.min(MAX_COUNT);
            if !fits || contents.len() % RECORD_BYTES != 0 {
                return None;
            }
            let records = if overwritten { &[] } else { contents };
            shim.hpcc = Some(Hpcc { path_id: counts & 0xfff, unit, overwritten, records });
        } else if first & PINT != 0 {
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
                queue_bytes: (bits & LONGEST_QUEUE) * 80 * unit,
                queue_is_minimum: bits & LONGEST_QUEUE == LONGEST_QUEUE,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header with INT of these hops, and as many records; record n has a queue of n units.
    fn header(contents: u8, hops: u8, records: u8) -> Vec<u8> {
        let mut bytes = vec![1 << 4 | contents, 1, 0, 8 + 8 * records, 0x12, 0xb7, hops << 4, 7];
        (1..=u64::from(records)).for_each(|queue| bytes.extend(queue.to_be_bytes()));
        bytes
    }

    fn queues(bytes: &[u8]) -> (bool, Vec<u64>) {
        let hpcc = Shim::parse(bytes).unwrap().hpcc.unwrap();
        (hpcc.overwritten, hpcc.records().map(|record| record.queue_bytes / 80).collect())
    }

    #[test]
    fn records_are_read_up_to_the_header_s_length_however_many_hops_four_bits_state() {
        assert_eq!(queues(&header(INT, 5, 5)), (false, (1..=5).collect()));
        assert_eq!(queues(&header(INT, 15, 20)), (false, (1..=20).collect()));
        assert_eq!(queues(&header(INT, 0, 0)), (false, vec![]));
    }

    #[test]
    fn records_that_later_hops_have_overwritten_are_of_no_hop() {
        assert_eq!(queues(&header(INT, 7, 5)), (true, vec![]));
        assert_eq!(queues(&header(INT | OVERWRITTEN, 15, 15)), (true, vec![]));
        for malformed in [header(INT, 3, 5), header(INT, 14, 20)] {
            assert_eq!(Shim::parse(&malformed), Err(Malformed::Shim));
        }
        let mut uneven = header(INT, 1, 1);
        uneven[3] += 1;
        uneven.push(0);
        assert_eq!(Shim::parse(&uneven), Err(Malformed::Shim));
    }

    #[test]
    fn a_full_field_for_the_queue_states_a_minimum() {
        let mut bytes = header(INT, 2, 2);
        bytes[13..16].copy_from_slice(&[1, 0xff, 0xff]);
        let hpcc = Shim::parse(&bytes).unwrap().hpcc.unwrap();
        let found: Vec<_> =
            hpcc.records().map(|record| (record.queue_bytes, record.queue_is_minimum)).collect();
        assert_eq!(found, [(10_485_680, true), (160, false)]);
    }

    #[test]
    fn what_ends_before_its_header_does_is_cut_off() {
        let whole = header(INT, 5, 5);
        assert_eq!(Shim::parse(&whole[..whole.len() - 1]), Err(Malformed::Frame));
        assert_eq!(Shim::parse(&whole[..8]), Err(Malformed::Frame));
        let mut other = whole;
        other[0] = 0x21;
        assert_eq!(Shim::parse(&other[..8]), Err(Malformed::Shim));
    }
}
