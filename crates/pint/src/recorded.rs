//! Recorded digests: what the last hop of a packet's path hands to the collector, and its form as CSV.
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

use std::fmt;
use std::io::{self, BufRead, Write};
use std::net::IpAddr;
use std::str::FromStr;

use crate::csv::{CsvError, Lines};
use crate::plan::unknown;
use crate::query::FlowKey;

/// Who sends, receives or records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Address {
    #[default]
    Unknown,
    /// A host or switch by its number.
    Number(u64),
    Ip(IpAddr),
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Flow {
    pub id: u64,
    pub source: Address,
    pub destination: Address,
    pub source_port: u16,
    pub destination_port: u16,
    pub protocol: u8,
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

    /// What each column of a table is; None for columns that are passed over. Errors: a required column is missing, a known one is there
    /// twice.
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

    /// Puts a field's text where it belongs; an empty field of a column that is not required is its default. Error: what was expected.
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
            (Column::FlowId, _) => row.flow.id = number,
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
            Column::FlowId => row.flow.id = number(text)?,
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
        // A sign is no digit, though the parser takes it.
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

/// Reads a CSV file row by row.
#[derive(Debug)]
pub struct CsvReader<R> {
    lines: Lines<R>,
    /// What each field of a row is; None for columns that are passed over.
    columns: Vec<Option<Column>>,
    /// An error has been told; nothing follows it.
    ended: bool,
}

impl<R: BufRead> CsvReader<R> {
    /// Reads the header. `file` is named in errors. Errors: no header, a required column missing or twice.
    pub fn new(input: R, file: &str) -> Result<CsvReader<R>, CsvError> {
        let lines = Lines::new(input, file)?;
        let columns = Column::of_header(lines.header())
            .map_err(|(column, message)| lines.error(column.name(), message))?;
        Ok(CsvReader { lines, columns, ended: false })
    }

    fn row(&mut self) -> Result<Option<Recorded>, CsvError> {
        let CsvReader { lines, columns, .. } = self;
        let mut row = Recorded::default();
        let read = lines.next(|place, field| match columns.get(place) {
            Some(Some(column)) => column.set(&mut row, field),
            _ => Ok(()),
        })?;
        Ok(read.then_some(row))
    }
}

impl<R: BufRead> Iterator for CsvReader<R> {
    type Item = Result<Recorded, CsvError>;

    /// The next row; after an error nothing more.
    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let row = self.row();
        self.ended = row.is_err();
        row.transpose()
    }
}

/// Writes rows as CSV with all columns.
#[derive(Debug)]
pub struct CsvWriter<W> {
    output: W,
}

impl<W: Write> CsvWriter<W> {
    /// Writes the header.
    pub fn new(mut output: W) -> io::Result<CsvWriter<W>> {
        writeln!(output, "{}", Column::ALL.map(Column::name).join(","))?;
        Ok(CsvWriter { output })
    }

    pub fn write(&mut self, row: &Recorded) -> io::Result<()> {
        let Recorded { time_ns, flow, packet, digest, hops, plan_version, sink, looped } = row;
        writeln!(
            self.output,
            "{time_ns},{},{},{},{},{},{},{packet},{digest},{hops},{plan_version},{sink},{}",
            flow.id,
            flow.source,
            flow.destination,
            flow.source_port,
            flow.destination_port,
            flow.protocol,
            u8::from(*looped)
        )
    }

    pub fn finish(mut self) -> io::Result<W> {
        self.output.flush()?;
        Ok(self.output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csv::MAX_LINE;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<Vec<Recorded>, String> {
        let reader = CsvReader::new(text.as_bytes(), "d.csv").map_err(|error| error.to_string())?;
        reader.map(|row| row.map_err(|error| error.to_string())).collect()
    }

    const HEADER: &str = "packet_id,digest,hops,plan_version,src,time_ns,note\n";

    #[test]
    fn columns_in_any_order_others_passed_over() {
        let text = format!("\u{feff}{HEADER}7,0xff,3,1,10.0.0.1,12.75,\"a, \"\"b\"\"\"\r\n\n8,1,2,0x2,,,\n");
        let rows = read(&text).unwrap();
        let source = Address::Ip("10.0.0.1".parse().unwrap());
        let flow = Flow { source, ..Flow::default() };
        let first = Recorded {
            packet: 7,
            digest: 255,
            hops: 3,
            plan_version: 1,
            time_ns: 12,
            flow,
            ..Recorded::default()
        };
        let second = Recorded { packet: 8, digest: 1, hops: 2, plan_version: 2, ..Recorded::default() };
        assert_eq!(rows, [first, second]);
    }

    #[test]
    fn errors_tell_file_line_column_and_what_was_expected() {
        for (text, told) in [
            ("", "d.csv:1: expected a line with the names of the columns, found nothing"),
            (
                "packet_id,digests,hops,plan_version\n",
                "d.csv:1: column digest: the header does not have it: unknown column \"digest\": did you mean \"digests\"?",
            ),
            (
                "packet_id,digest,hops,plan_version,hops\n",
                "d.csv:1: column hops: the header has it more than once",
            ),
            (
                "packet_id,digest,hops,plan_version\n1,2,3,4\n1,x,3,4\n",
                "d.csv:3: column digest: expected a whole number of at most 64 bits, decimal or 0x..., found \"x\"",
            ),
            (
                "packet_id,digest,hops,plan_version\n1,2,-3,4\n",
                "d.csv:2: column hops: expected a number of hops, found \"-3\"",
            ),
            (
                "packet_id,digest,hops,plan_version\n1,,3,4\n",
                "d.csv:2: column digest: expected a whole number",
            ),
            (
                "packet_id,digest,hops,plan_version\n1,2,3,4294967296\n",
                "d.csv:2: column plan_version: expected a version of 32 bits",
            ),
            (
                "packet_id,digest,hops,plan_version\n1,2,3,4\n1,2",
                "d.csv:3: expected 4 fields, found 2 (the last line: is the file cut off?)",
            ),
            ("packet_id,digest,hops,plan_version\n1,2,3,4,5\n", "d.csv:2: expected 4 fields, found 5"),
            (
                "packet_id,digest,hops,plan_version\n1,\"2,3,4\n",
                "d.csv:2: column digest: a quote is not closed",
            ),
            (
                "packet_id,digest,hops,plan_version\n1,\"2\"3,4\n",
                "d.csv:2: column digest: expected a comma after the closing quote",
            ),
            (
                "packet_id,digest,hops,plan_version,src\n1,2,3,4,10.0.0.256\n",
                "d.csv:2: column src: expected a host's number, an IPv4 or an IPv6 address, found \"10.0.0.256\"",
            ),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(told), "{error}\n{told}");
        }
        let long = format!("{HEADER}{}", "1".repeat(MAX_LINE + 10));
        assert_eq!(read(&long).unwrap_err(), "d.csv:2: the line is longer than 65536 bytes");
        let mut reader =
            CsvReader::new(&b"packet_id,digest,hops,plan_version\n\xff,1,1,1\n1,1,1,1\n"[..], "d.csv")
                .unwrap();
        assert_eq!(reader.next().unwrap().unwrap_err().to_string(), "d.csv:2: the text is not UTF-8");
        assert!(reader.next().is_none());
    }

    fn address() -> impl Strategy<Value = Address> {
        prop_oneof![
            Just(Address::Unknown),
            any::<u64>().prop_map(Address::Number),
            any::<std::net::Ipv4Addr>().prop_map(|a| Address::Ip(a.into())),
            any::<std::net::Ipv6Addr>().prop_map(|a| Address::Ip(a.into())),
        ]
    }

    prop_compose! {
        fn rows()(
            source in address(), destination in address(), sink in address(), ports: (u16, u16, u8), numbers: (u64, u64, u64, u64),
            small: (u32, u32, bool),
        ) -> Recorded {
            let flow = Flow {
                id: numbers.3, source, destination, source_port: ports.0, destination_port: ports.1, protocol: ports.2,
            };
            let (hops, plan_version, looped) = small;
            Recorded { time_ns: numbers.0, flow, packet: numbers.1, digest: numbers.2, hops, plan_version, sink, looped }
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(rows in prop::collection::vec(rows(), 0..20)) {
            let mut writer = CsvWriter::new(Vec::new()).unwrap();
            rows.iter().for_each(|row| writer.write(row).unwrap());
            let text = String::from_utf8(writer.finish().unwrap()).unwrap();
            prop_assert_eq!(read(&text).unwrap(), rows);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(prop_oneof![Just(b','), Just(b'"'), Just(b'\n'), any::<u8>()], 0..200)) {
            let text = [HEADER.as_bytes(), &bytes].concat();
            if let Ok(reader) = CsvReader::new(&text[..], "d.csv") {
                prop_assert!(reader.count() <= 201);
            }
            let _ = CsvReader::new(&bytes[..], "d.csv").map(Iterator::count);
        }
    }
}
