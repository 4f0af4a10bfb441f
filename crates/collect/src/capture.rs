//! Packets out of captures: pcap and pcapng of either byte order, plain or gzipped, from any stream.
//!
//! Memory is that of the longest record, which has a limit. Blocks of pcapng that hold no packets are passed
//! over.
//!
//! Source: draft-ietf-opsawg-pcap (microseconds or nanoseconds), draft-ietf-opsawg-pcapng (sections,
//! interfaces, enhanced, simple and obsolete packet blocks, if_tsresol, if_tsoffset). Own code, because
//! pcap-parser 0.17 allocates the options of every packet and reads a big-endian if_tsoffset as
//! little-endian.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use flate2::read::MultiGzDecoder;

use crate::ip::Link;

/// The maximum length of a record or block.
const MAX_RECORD: usize = 1 << 24;
/// The maximum number of captures that are read together: points of observation have numbers of 16 bits.
pub(crate) const MAX_CAPTURES: usize = 1 << 16;
const READ_BYTES: usize = 1 << 18;
const SECTION: u32 = 0x0a0d_0d0a;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const INTERFACE: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
const OPTION_NAME: u16 = 2;
const OPTION_RESOLUTION: u16 = 9;
const OPTION_OFFSET: u16 = 14;
const SECOND_NS: u128 = 1_000_000_000;

/// What is wrong with a capture, and where.
#[derive(Debug, thiserror::Error)]
#[error("{name}: record {record} (byte {byte}): {problem}")]
pub struct CaptureError {
    pub name: String,
    /// Counted from 1: the record that could not be read.
    pub record: u64,
    pub byte: u64,
    pub problem: Problem,
}

/// The kinds of what can be wrong.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    #[error("cannot be read: {0}")]
    Unreadable(std::io::Error),
    #[error("is empty")]
    Empty,
    #[error("is not a capture: expected pcap or pcapng")]
    NotACapture,
    #[error("cut off")]
    CutOff,
    #[error("a record of {0} bytes; the maximum is {MAX_RECORD}")]
    TooLong(usize),
    #[error("a damaged record")]
    Damaged,
    #[error("is capture {0}; the maximum is {MAX_CAPTURES}")]
    TooMany(usize),
}

/// A packet of a capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Since the epoch of the capture; 0 if the capture has no times.
    pub time_ns: u64,
    /// None: a kind of link that is not read.
    pub link: Option<Link>,
    /// Counted over all sections of the file.
    pub interface: u32,
    /// Bytes on the wire.
    pub length: u32,
    /// Those that were kept.
    pub bytes: &'a [u8],
}

/// What a capture begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct First {
    /// Of its first packet.
    pub time_ns: u64,
    /// Link and name of each interface that was described before it.
    pub interfaces: Vec<(Option<Link>, String)>,
}

#[derive(Debug, Clone)]
struct Interface {
    link: Option<Link>,
    name: String,
    ticks_per_second: u128,
    offset_seconds: i64,
    snap_length: u32,
}

#[derive(Debug, Clone, Copy)]
enum Format {
    Unknown,
    Classic { big_endian: bool, tick_ns: u64, link: Option<Link> },
    Next { big_endian: bool },
}

/// Reads a capture, packet by packet.
pub struct Reader {
    name: String,
    stream: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    byte: u64,
    record: u64,
    format: Format,
    interfaces: Vec<Interface>,
    /// The first interface of this section.
    section: usize,
    /// Bytes of the last record or block.
    taken: usize,
}

impl Reader {
    /// Opens a file; `-` is the standard input.
    pub fn open(path: &Path) -> Result<Reader, CaptureError> {
        let name = path.display().to_string();
        if name == "-" {
            return Reader::new(Box::new(std::io::stdin()), "standard input".to_owned());
        }
        match File::open(path) {
            Ok(file) => Reader::new(Box::new(file), name),
            Err(error) => Err(CaptureError { name, record: 1, byte: 0, problem: Problem::Unreadable(error) }),
        }
    }

    /// Reads any stream, which may be gzipped; `name` is for errors.
    pub fn new(mut stream: Box<dyn Read + Send>, name: String) -> Result<Reader, CaptureError> {
        let mut magic = Vec::new();
        if let Err(error) = (&mut stream).take(2).read_to_end(&mut magic) {
            return Err(CaptureError { name, record: 1, byte: 0, problem: Problem::Unreadable(error) });
        }
        let zipped = magic == [0x1f, 0x8b];
        let whole = std::io::Cursor::new(magic).chain(stream);
        Ok(Reader {
            name,
            stream: if zipped { Box::new(MultiGzDecoder::new(whole)) } else { Box::new(whole) },
            buffer: vec![0; READ_BYTES],
            start: 0,
            end: 0,
            byte: 0,
            record: 0,
            format: Format::Unknown,
            interfaces: Vec::new(),
            section: 0,
            taken: 0,
        })
    }

    /// Packets read so far.
    pub fn packets(&self) -> u64 {
        self.record
    }

    /// What the capture begins with, before anything of it is read; None if it has no packets.
    pub fn first(&mut self) -> Result<Option<First>, CaptureError> {
        let Some(Packet { time_ns, link, .. }) = self.next_packet()? else { return Ok(None) };
        // The record of the packet stays to be read: it is in the buffer, because nothing was filled after
        // it.
        self.start -= self.taken;
        self.byte -= self.taken as u64;
        self.record -= 1;
        let described = self.interfaces.iter().map(|interface| (interface.link, interface.name.clone()));
        let interfaces = match self.format {
            Format::Classic { .. } => vec![(link, String::new())],
            _ => described.collect(),
        };
        Ok(Some(First { time_ns, interfaces }))
    }

    /// The next packet; None at the end. After an error, nothing more can be read.
    pub fn next_packet(&mut self) -> Result<Option<Packet<'_>>, CaptureError> {
        if matches!(self.format, Format::Unknown) {
            self.begin()?;
        }
        match self.format {
            Format::Classic { big_endian, tick_ns, link } => self.classic(big_endian, tick_ns, link),
            _ => self.next_generation(),
        }
    }

    fn begin(&mut self) -> Result<(), CaptureError> {
        let found = self.fill(4)?;
        if found < 4 {
            return Err(self.wrong(if found == 0 { Problem::Empty } else { Problem::NotACapture }));
        }
        let magic = self.u32_at(0, false);
        let (big_endian, tick_ns) = match magic {
            0xa1b2_c3d4 => (false, 1000),
            0xa1b2_3c4d => (false, 1),
            0xd4c3_b2a1 => (true, 1000),
            0x4d3c_b2a1 => (true, 1),
            SECTION => {
                self.format = Format::Next { big_endian: false };
                return Ok(());
            }
            _ => return Err(self.wrong(Problem::NotACapture)),
        };
        self.need(24)?;
        // The upper bits hold the length of the frame check sequence.
        let link = Link::of_linktype(self.u32_at(20, big_endian) & 0xffff);
        self.format = Format::Classic { big_endian, tick_ns, link };
        self.consume(24);
        Ok(())
    }

    fn classic(
        &mut self,
        big: bool,
        tick_ns: u64,
        link: Option<Link>,
    ) -> Result<Option<Packet<'_>>, CaptureError> {
        if self.fill(16)? == 0 {
            return Ok(None);
        }
        self.need(16)?;
        let kept = self.u32_at(8, big) as usize;
        self.need_record(16 + kept)?;
        let time_ns =
            u64::from(self.u32_at(0, big)) * SECOND_NS as u64 + u64::from(self.u32_at(4, big)) * tick_ns;
        let length = self.u32_at(12, big);
        self.record += 1;
        let bytes = self.consume(16 + kept);
        Ok(Some(Packet { time_ns, link, interface: 0, length, bytes: &bytes[16..] }))
    }

    fn next_generation(&mut self) -> Result<Option<Packet<'_>>, CaptureError> {
        loop {
            if self.fill(12)? == 0 {
                return Ok(None);
            }
            self.need(12)?;
            let Format::Next { mut big_endian } = self.format else { return Ok(None) };
            let section = self.u32_at(0, false) == SECTION;
            if section {
                big_endian = match (self.u32_at(8, false), self.u32_at(8, true)) {
                    (BYTE_ORDER, _) => false,
                    (_, BYTE_ORDER) => true,
                    _ => return Err(self.wrong(Problem::Damaged)),
                };
                self.format = Format::Next { big_endian };
                self.section = self.interfaces.len();
            }
            let kind = self.u32_at(0, big_endian);
            let length = self.u32_at(4, big_endian) as usize;
            if length < 12 || length % 4 != 0 {
                return Err(self.wrong(Problem::Damaged));
            }
            self.need_record(length)?;
            let packet = match kind {
                INTERFACE => {
                    let interface = self.interface(length, big_endian);
                    self.interfaces.push(interface.ok_or_else(|| self.wrong(Problem::Damaged))?);
                    None
                }
                ENHANCED_PACKET | SIMPLE_PACKET | OBSOLETE_PACKET => {
                    let place = self.packet_block(kind, length, big_endian);
                    Some(place.ok_or_else(|| self.wrong(Problem::Damaged))?)
                }
                _ => None,
            };
            let Some((time_ns, index, wire_length, at, kept)) = packet else {
                self.consume(length);
                continue;
            };
            self.record += 1;
            let link = self.interfaces[index].link;
            let bytes = &self.consume(length)[at..at + kept];
            return Ok(Some(Packet { time_ns, link, interface: index as u32, length: wire_length, bytes }));
        }
    }

    /// Time, interface, wire length, place and length of the packet in a block.
    fn packet_block(&self, kind: u32, length: usize, big: bool) -> Option<(u64, usize, u32, usize, usize)> {
        let word = |at: usize| (at + 4 <= length - 4).then(|| self.u32_at(at, big));
        let (number, at, kept, wire_length) = match kind {
            SIMPLE_PACKET => (0, 12, None, word(8)?),
            OBSOLETE_PACKET => (self.u16_at(8, big)?.into(), 28, Some(word(20)?), word(24)?),
            _ => (word(8)? as usize, 28, Some(word(20)?), word(24)?),
        };
        let index = self.section.checked_add(number)?;
        let interface = self.interfaces.get(index)?;
        let whole =
            if interface.snap_length == 0 { wire_length } else { wire_length.min(interface.snap_length) };
        let kept = kept.unwrap_or(whole) as usize;
        if at + kept > length - 4 {
            return None;
        }
        let time_ns = match kind {
            SIMPLE_PACKET => 0,
            _ => interface.nanoseconds(u64::from(word(12)?) << 32 | u64::from(word(16)?)),
        };
        Some((time_ns, index, wire_length, at, kept))
    }

    fn interface(&self, length: usize, big: bool) -> Option<Interface> {
        let mut interface = Interface {
            link: Link::of_linktype(self.u16_at(8, big)?.into()),
            name: String::new(),
            ticks_per_second: 1_000_000,
            offset_seconds: 0,
            snap_length: (length >= 20).then(|| self.u32_at(12, big))?,
        };
        let mut at = 16;
        while at + 4 <= length - 4 {
            let (code, bytes) = (self.u16_at(at, big)?, usize::from(self.u16_at(at + 2, big)?));
            let value = self.buffer.get(self.start + at + 4..self.start + at + 4 + bytes)?;
            if at + 4 + bytes > length - 4 {
                return None;
            }
            match (code, bytes) {
                (0, _) => break,
                (OPTION_NAME, _) => interface.name = String::from_utf8_lossy(value).into_owned(),
                (OPTION_RESOLUTION, 1) => {
                    let exponent = u32::from(value[0] & 127);
                    let base: u128 = if value[0] & 128 != 0 { 2 } else { 10 };
                    // Finer ticks than those of 64 bits a second name no time.
                    interface.ticks_per_second =
                        base.checked_pow(exponent).filter(|&ticks| ticks <= 1 << 64)?;
                }
                (OPTION_OFFSET, 8) => {
                    let offset: [u8; 8] = value.try_into().ok()?;
                    interface.offset_seconds =
                        if big { i64::from_be_bytes(offset) } else { i64::from_le_bytes(offset) };
                }
                _ => {}
            }
            at += 4 + bytes.next_multiple_of(4);
        }
        Some(interface)
    }

    fn u16_at(&self, at: usize, big: bool) -> Option<u16> {
        let bytes: [u8; 2] = *self.buffer[..self.end].get(self.start + at..)?.first_chunk()?;
        Some(if big { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) })
    }

    /// A number within what was filled; 0 beyond it, which no caller asks for.
    fn u32_at(&self, at: usize, big: bool) -> u32 {
        let bytes = self.buffer[..self.end].get(self.start + at..).and_then(|rest| rest.first_chunk());
        debug_assert!(bytes.is_some());
        let bytes: [u8; 4] = bytes.copied().unwrap_or_default();
        if big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) }
    }

    /// Tries to have this number of bytes in the buffer; returns how many of them there are.
    fn fill(&mut self, count: usize) -> Result<usize, CaptureError> {
        if self.end - self.start >= count {
            return Ok(count);
        }
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.buffer.len() < count {
            self.buffer.resize(count.next_power_of_two(), 0);
        }
        while self.end < count {
            match self.stream.read(&mut self.buffer[self.end..]) {
                Ok(0) => break,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                    return Err(self.wrong(Problem::CutOff));
                }
                Err(error) => return Err(self.wrong(Problem::Unreadable(error))),
            }
        }
        Ok(count.min(self.end))
    }

    fn need(&mut self, count: usize) -> Result<(), CaptureError> {
        if self.fill(count)? < count { Err(self.wrong(Problem::CutOff)) } else { Ok(()) }
    }

    fn need_record(&mut self, count: usize) -> Result<(), CaptureError> {
        if count > MAX_RECORD { Err(self.wrong(Problem::TooLong(count))) } else { self.need(count) }
    }

    fn consume(&mut self, count: usize) -> &[u8] {
        let start = self.start;
        self.start += count;
        self.taken = count;
        self.byte += count as u64;
        &self.buffer[start..start + count]
    }

    fn wrong(&self, problem: Problem) -> CaptureError {
        CaptureError { name: self.name.clone(), record: self.record + 1, byte: self.byte, problem }
    }
}

impl Interface {
    fn nanoseconds(&self, ticks: u64) -> u64 {
        let since = u128::from(ticks) * SECOND_NS / self.ticks_per_second;
        let offset = i128::from(self.offset_seconds) * SECOND_NS as i128;
        (since as i128 + offset).clamp(0, u64::MAX.into()) as u64
    }
}
