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
//! Columns stand in any order; others are passed over. Fields may be quoted as in RFC 4180, without line breaks in them. Reading keeps one
//! line in memory.

use std::fmt;
use std::io::{self, BufRead, Write};
use std::net::IpAddr;
use std::str::FromStr;

use crate::plan::unknown;
use crate::query::FlowKey;

/// Longest line of a file, in bytes.
pub const MAX_LINE: usize = 65_536;

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

/// What a file of recorded digests does not have or should not have, and where.
#[derive(Debug, thiserror::Error)]
#[error("{file}{}: {}{message}", line_text(*.line), column_text(.column))]
pub struct RecordedError {
    /// The file as the user named it.
    pub file: String,
    /// From 1; 0 if the file as a whole is meant.
    pub line: u64,
    /// Empty if the line as a whole is meant.
    pub column: String,
    pub message: String,
}

fn line_text(line: u64) -> String {
    if line == 0 { String::new() } else { format!(":{line}") }
}

fn column_text(column: &str) -> String {
    if column.is_empty() { String::new() } else { format!("column {column}: ") }
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

    /// Puts a field's text where it belongs; else what was expected.
    fn set(self, row: &mut Recorded, text: &str) -> Result<(), &'static str> {
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
fn number(text: &str) -> Option<u64> {
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
    input: R,
    file: String,
    line: u64,
    text: Vec<u8>,
    /// What each field of a row is; None for columns that are passed over.
    columns: Vec<Option<Column>>,
    /// An error has been told; nothing follows it.
    ended: bool,
}

impl<R: BufRead> CsvReader<R> {
    /// Reads the header. `file` is named in errors. Errors: no header, a required column missing or twice.
    pub fn new(input: R, file: &str) -> Result<CsvReader<R>, RecordedError> {
        let mut reader = CsvReader {
            input,
            file: file.to_string(),
            line: 0,
            text: Vec::new(),
            columns: Vec::new(),
            ended: false,
        };
        if !reader.next_line()? {
            return Err(
                reader.error("", "expected a line with the names of the columns, found nothing".to_string())
            );
        }
        let header = std::mem::take(&mut reader.text);
        let header = header.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&header);
        let header =
            std::str::from_utf8(header).map_err(|_| reader.error("", "the text is not UTF-8".to_string()))?;
        let mut names = Vec::new();
        let split = fields(header, |_, name| {
            names.push(name.trim().to_string());
            Ok(())
        });
        split.map_err(|(_, message)| reader.error("", message))?;
        reader.take_columns(&names)?;
        Ok(reader)
    }

    fn take_columns(&mut self, names: &[String]) -> Result<(), RecordedError> {
        self.columns = names.iter().map(|name| Column::named(name)).collect();
        for column in Column::ALL {
            let times = self.columns.iter().filter(|&&found| found == Some(column)).count();
            if times > 1 {
                return Err(self.error(column.name(), "the header has it more than once".to_string()));
            }
            if times == 0 && column.required() {
                let others: Vec<&str> = names.iter().map(String::as_str).collect();
                let hint = unknown("column", column.name(), &others);
                let message = format!("the header does not have it: {hint}");
                return Err(self.error(column.name(), message));
            }
        }
        Ok(())
    }

    /// The next line without its end into `text`; false at the end of the file.
    fn next_line(&mut self) -> Result<bool, RecordedError> {
        self.text.clear();
        self.line += 1;
        let mut limited = io::Read::take(&mut self.input, MAX_LINE as u64 + 1);
        let read = limited.read_until(b'\n', &mut self.text);
        if let Err(error) = read {
            return Err(self.error("", format!("reading failed: {error}")));
        }
        if self.text.len() > MAX_LINE {
            return Err(self.error("", format!("the line is longer than {MAX_LINE} bytes")));
        }
        let read = !self.text.is_empty();
        if self.text.ends_with(b"\n") {
            self.text.pop();
            if self.text.ends_with(b"\r") {
                self.text.pop();
            }
        }
        Ok(read)
    }

    fn row(&mut self) -> Result<Option<Recorded>, RecordedError> {
        loop {
            if !self.next_line()? {
                return Ok(None);
            }
            if !self.text.is_empty() {
                break;
            }
        }
        let mut row = Recorded::default();
        let text = std::str::from_utf8(&self.text)
            .map_err(|_| self.error("", "the text is not UTF-8".to_string()))?;
        let mut count = 0;
        let split = fields(text, |place, field| {
            count = place + 1;
            let Some(Some(column)) = self.columns.get(place) else { return Ok(()) };
            let field = field.trim();
            if field.is_empty() && !column.required() {
                return Ok(());
            }
            column.set(&mut row, field).map_err(|expected| {
                let shown: String = field.chars().take(40).collect();
                format!("expected {expected}, found \"{shown}\"")
            })
        });
        let wanted = self.columns.len();
        if let Err((place, message)) = split {
            let column = self.columns.get(place).copied().flatten().map_or("", Column::name);
            return Err(self.error(column, message));
        }
        if count != wanted {
            let at_end = matches!(self.input.fill_buf(), Ok([]));
            let cut = if count < wanted && at_end { " (the last line: is the file cut off?)" } else { "" };
            return Err(self.error("", format!("expected {wanted} fields, found {count}{cut}")));
        }
        Ok(Some(row))
    }

    fn error(&self, column: &str, message: String) -> RecordedError {
        RecordedError { file: self.file.clone(), line: self.line, column: column.to_string(), message }
    }
}

impl<R: BufRead> Iterator for CsvReader<R> {
    type Item = Result<Recorded, RecordedError>;

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

/// Hands every field of a line to `take`, quotes taken off. Errors: the place of the field and what is wrong.
fn fields(
    line: &str,
    mut take: impl FnMut(usize, &str) -> Result<(), String>,
) -> Result<(), (usize, String)> {
    let (mut rest, mut place) = (line, 0);
    loop {
        let after = if let Some(quoted) = rest.strip_prefix('"') {
            let (field, after) = unquote(quoted).ok_or((place, "a quote is not closed".to_string()))?;
            take(place, &field).map_err(|message| (place, message))?;
            after
        } else {
            let end = rest.find(',').unwrap_or(rest.len());
            take(place, &rest[..end]).map_err(|message| (place, message))?;
            &rest[end..]
        };
        match after.strip_prefix(',') {
            Some(more) => rest = more,
            None if after.is_empty() => return Ok(()),
            None => return Err((place, "expected a comma after the closing quote".to_string())),
        }
        place += 1;
    }
}

/// The text up to the closing quote, doubled quotes made single, and what follows.
fn unquote(text: &str) -> Option<(String, &str)> {
    let (mut field, mut rest) = (String::new(), text);
    loop {
        let end = rest.find('"')?;
        field.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('"') {
            Some(more) => {
                field.push('"');
                rest = more;
            }
            None => return Some((field, rest)),
        }
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
