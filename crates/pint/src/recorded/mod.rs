//! Recorded digests: what the last hop of a packet's path hands to the collector, and the columns of its
//! tables.
//!
//! | column | meaning | |
//! |---|---|---|
//! | `packet_id` | the id that all hashes are taken of; decimal or 0x... | required |
//! | `digest` | the packet's digest; decimal or 0x... | required |
//! | `hops` | hops that the packet passed, from the TTL | required |
//! | `plan_version` | version of the plan that the hops ran; decimal or 0x... | required |
//! | `time_ns` | when the packet left, nanoseconds; fractions are cut off | 0 if missing |
//! | `src`, `dst` | addresses: a host's number, IPv4 or IPv6 | empty if missing |
//! | `src_port`, `dst_port`, `protocol` | the rest of the five-tuple | 0 if missing |
//! | `flow_id` | tells flows apart that have no five-tuple | 0 if missing |
//! | `sink` | address of who took the digest off | empty if missing |
//! | `loop` | 1: not a digest, a hop reports this packet in a loop | 0 if missing |
//!
//! Columns stand in any order; others are passed over.

mod table;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::net::IpAddr;
use std::str::FromStr;

use crate::plan::unknown;
use crate::query::FlowKey;

pub use table::{CsvReader, CsvWriter};

/// Who sends, receives or records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Address {
    #[default]
    Unknown,
    /// A host or switch by its number.
    Number(u64),
    Ip(IpAddr),
}

impl Address {
    /// Which kind it is, and what sets it apart from others of its kind: one word, or two.
    fn words(&self) -> (u8, u64, Option<u64>) {
        match *self {
            Address::Unknown => (0, 0, None),
            Address::Number(number) => (1, number, None),
            Address::Ip(IpAddr::V4(address)) => (2, address.to_bits().into(), None),
            Address::Ip(IpAddr::V6(address)) => {
                let bits = address.to_bits();
                (3, (bits >> 64) as u64, Some(bits as u64))
            }
        }
    }
}

impl FromStr for Address {
    type Err = ();

    fn from_str(text: &str) -> Result<Address, ()> {
        if text.is_empty() {
            return Ok(Address::Unknown);
        }
        match text.parse() {
            Ok(number) => Ok(Address::Number(number)),
            Err(_) => text.parse().map(Address::Ip).map_err(|_| ()),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Address::Unknown => Ok(()),
            Address::Number(number) => number.fmt(f),
            Address::Ip(address) => address.fmt(f),
        }
    }
}

/// A flow, as exactly as the record says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Flow {
    /// None where the record gives flows no numbers.
    pub id: Option<u64>,
    pub source: Address,
    pub destination: Address,
    pub source_port: u16,
    pub destination_port: u16,
    pub protocol: u8,
}

impl Hash for Flow {
    /// In few words: a collector looks a flow up for every digest.
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        let (source, destination) = (self.source.words(), self.destination.words());
        let kinds = source.0 << 3 | destination.0 << 1 | u8::from(self.id.is_some());
        let ports = u64::from(self.source_port) << 16 | u64::from(self.destination_port);
        state.write_u64(ports << 16 | u64::from(self.protocol) << 8 | u64::from(kinds));
        for (_, word, more) in [source, destination] {
            state.write_u64(word);
            if let Some(more) = more {
                state.write_u64(more);
            }
        }
        if let Some(id) = self.id {
            state.write_u64(id);
        }
    }
}

impl Flow {
    /// What counts as one flow under a key: the parts that do not belong to it are left out.
    pub fn under(&self, key: FlowKey) -> Flow {
        let Flow { source, destination, .. } = *self;
        match key {
            FlowKey::FiveTuple => *self,
            FlowKey::SourceDestination => Flow { source, destination, ..Flow::default() },
            FlowKey::Source => Flow { source, ..Flow::default() },
            FlowKey::Destination => Flow { destination, ..Flow::default() },
            FlowKey::All => Flow::default(),
        }
    }
}

/// One packet's digest as its sink recorded it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recorded {
    pub time_ns: u64,
    pub flow: Flow,
    pub packet: u64,
    pub digest: u64,
    pub hops: u32,
    pub plan_version: u32,
    pub sink: Address,
    /// A hop reports the packet in a loop; the digest is then not complete.
    pub looped: bool,
}

/// The columns, in the order in which they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    Time,
    FlowId,
    Source,
    Destination,
    SourcePort,
    DestinationPort,
    Protocol,
    Packet,
    Digest,
    Hops,
    PlanVersion,
    Sink,
    Loop,
}

impl Column {
    pub const ALL: [Column; 13] = [
        Column::Time,
        Column::FlowId,
        Column::Source,
        Column::Destination,
        Column::SourcePort,
        Column::DestinationPort,
        Column::Protocol,
        Column::Packet,
        Column::Digest,
        Column::Hops,
        Column::PlanVersion,
        Column::Sink,
        Column::Loop,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Column::Time => "time_ns",
            Column::FlowId => "flow_id",
            Column::Source => "src",
            Column::Destination => "dst",
            Column::SourcePort => "src_port",
            Column::DestinationPort => "dst_port",
            Column::Protocol => "protocol",
            Column::Packet => "packet_id",
            Column::Digest => "digest",
            Column::Hops => "hops",
            Column::PlanVersion => "plan_version",
            Column::Sink => "sink",
            Column::Loop => "loop",
        }
    }

    pub const fn required(self) -> bool {
        matches!(self, Column::Packet | Column::Digest | Column::Hops | Column::PlanVersion)
    }

    pub fn named(name: &str) -> Option<Column> {
        Column::ALL.into_iter().find(|column| column.name() == name)
    }

    /// What each column of a table is; None for columns that are passed over. Errors: a required column is
    /// missing, a known one is there twice.
    pub fn of_header(names: &[String]) -> Result<Vec<Option<Column>>, (Column, String)> {
        let columns: Vec<Option<Column>> = names.iter().map(|name| Column::named(name)).collect();
        for column in Column::ALL {
            let times = columns.iter().filter(|&&found| found == Some(column)).count();
            if times > 1 {
                return Err((column, "the header has it more than once".to_string()));
            }
            if times == 0 && column.required() {
                let others: Vec<&str> = names.iter().map(String::as_str).collect();
                return Err((
                    column,
                    format!("the header does not have it: {}", unknown("column", column.name(), &others)),
                ));
            }
        }
        Ok(columns)
    }

    /// Puts a field's text where it belongs; an empty field of a column that is not required is its default.
    /// Error: what was expected.
    pub fn set(self, row: &mut Recorded, text: &str) -> Result<(), String> {
        if text.is_empty() && !self.required() {
            return Ok(());
        }
        self.parse(row, text).map_err(|expected| {
            let shown: String = text.chars().take(40).collect();
            format!("expected {expected}, found \"{shown}\"")
        })
    }

    /// The same for a column of whole numbers.
    pub fn set_whole(self, row: &mut Recorded, number: u64) -> Result<(), String> {
        match (self, u32::try_from(number)) {
            (Column::Time, _) => row.time_ns = number,
            (Column::FlowId, _) => row.flow.id = Some(number),
            (Column::Packet, _) => row.packet = number,
            (Column::Digest, _) => row.digest = number,
            (Column::Source, _) => row.flow.source = Address::Number(number),
            (Column::Destination, _) => row.flow.destination = Address::Number(number),
            (Column::Sink, _) => row.sink = Address::Number(number),
            (Column::Hops, Ok(number)) => row.hops = number,
            (Column::PlanVersion, Ok(number)) => row.plan_version = number,
            // The small ones, and what is out of range: by way of the text and its errors.
            _ => return self.set(row, &number.to_string()),
        }
        Ok(())
    }

    fn parse(self, row: &mut Recorded, text: &str) -> Result<(), &'static str> {
        let address = |text: &str| text.parse().map_err(|()| "a host's number, an IPv4 or an IPv6 address");
        let port = |text: &str| text.parse().map_err(|_| "a port from 0 to 65535");
        let number = |text: &str| number(text).ok_or("a whole number of at most 64 bits, decimal or 0x...");
        match self {
            Column::Time => row.time_ns = time(text).ok_or("a time in nanoseconds, not negative")?,
            Column::FlowId => row.flow.id = Some(number(text)?),
            Column::Source => row.flow.source = address(text)?,
            Column::Destination => row.flow.destination = address(text)?,
            Column::SourcePort => row.flow.source_port = port(text)?,
            Column::DestinationPort => row.flow.destination_port = port(text)?,
            Column::Protocol => {
                row.flow.protocol = text.parse().map_err(|_| "a protocol's number from 0 to 255")?
            }
            Column::Packet => row.packet = number(text)?,
            Column::Digest => row.digest = number(text)?,
            Column::Hops => row.hops = text.parse().map_err(|_| "a number of hops")?,
            Column::PlanVersion => {
                let version = number(text)?;
                row.plan_version = u32::try_from(version).map_err(|_| "a version of 32 bits")?;
            }
            Column::Sink => row.sink = address(text)?,
            Column::Loop => {
                row.looped = match text {
                    "1" | "true" => true,
                    "0" | "false" => false,
                    _ => return Err("0 or 1"),
                }
            }
        }
        Ok(())
    }
}

/// Decimal, or hexadecimal after 0x.
pub(crate) fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        // A sign is not a digit, although the parser accepts it.
        Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16).ok(),
        Some(_) => None,
        None => text.parse().ok(),
    }
}

/// Whole nanoseconds; a fraction is cut off.
fn time(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    fraction.bytes().all(|byte| byte.is_ascii_digit()).then(|| whole.parse().ok()).flatten()
}
