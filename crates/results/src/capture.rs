//! capture.pcapng: packets of the links that `[measure] pcap` names, as other tools read them.
//!
//! One section, one interface for each link, with its name, its rate, and times in nanoseconds; one enhanced packet block for each
//! packet, in order of time. Little-endian. Where the next packet would make the file longer than it may become, it ends.
//!
//! Source: PCAP Next Generation (draft-ietf-opsawg-pcapng), §4.1 to §4.3; link type 1 is Ethernet.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use weftline_sim::config::Config;
use weftline_sim::measure::{Frame, Frames};
use weftline_sim::units::{Bytes, Time};

use crate::ResultsError;

pub const FILE: &str = "capture.pcapng";

const SECTION: u32 = 0x0a0d_0d0a;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const INTERFACE: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const ETHERNET: u16 = 1;
/// Options of a section, and of an interface.
const APPLICATION: u16 = 4;
const NAME: u16 = 2;
const SPEED: u16 = 8;
const RESOLUTION: u16 = 9;
const NANOSECONDS: u8 = 9;
/// Length of an enhanced packet block without its packet.
const PACKET_BLOCK: usize = 32;

/// What is to be captured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturePlan {
    /// Name and rate in bit/s of each link.
    pub links: Vec<(String, u64)>,
    /// The longest that the file may become.
    pub max_bytes: Bytes,
    /// Bytes kept of each packet; none: its headers.
    pub kept: Option<Bytes>,
}

impl CapturePlan {
    /// What a run asks for, if it does.
    pub fn of(config: &Config) -> Option<CapturePlan> {
        let capture = config.measure.capture.as_ref()?;
        let links = capture.links(&config.topology);
        Some(CapturePlan { links, max_bytes: capture.max_bytes, kept: capture.kept })
    }
}

/// The file while it grows.
pub struct CaptureFile {
    path: PathBuf,
    file: BufWriter<File>,
    max_bytes: u64,
    bytes: u64,
    packets: u64,
    /// When the first packet began that had no room.
    stopped: Option<Time>,
    block: Vec<u8>,
}

impl CaptureFile {
    /// Creates the file with the blocks that describe its links.
    pub fn create(path: &Path, plan: &CapturePlan) -> Result<CaptureFile, ResultsError> {
        let file = File::create(path).map_err(|error| failed(path, &error))?;
        let mut capture = CaptureFile {
            path: path.to_path_buf(),
            file: BufWriter::new(file),
            max_bytes: plan.max_bytes.0,
            bytes: 0,
            packets: 0,
            stopped: None,
            block: Vec::new(),
        };
        capture.section()?;
        plan.links.iter().try_for_each(|(name, rate)| capture.interface(name, *rate, plan.kept))?;
        if capture.bytes > capture.max_bytes {
            let (links, needed) = (plan.links.len(), Bytes(capture.bytes));
            return Err(ResultsError::input(format!(
                "measure.pcap_bytes: {} is too small: the names of {links} links alone take {needed}",
                plan.max_bytes
            )));
        }
        Ok(capture)
    }

    /// Appends packets; whether there is room for more.
    pub fn append(&mut self, frames: &Frames) -> Result<bool, ResultsError> {
        for frame in &frames.frames {
            let bytes = &frames.bytes[frame.bytes.clone()];
            let length = (PACKET_BLOCK + bytes.len().next_multiple_of(4)) as u64;
            if self.stopped.is_some() || self.bytes + length > self.max_bytes {
                self.stopped.get_or_insert(frame.time);
                return Ok(false);
            }
            self.packet(frame, bytes)?;
            self.packets += 1;
        }
        Ok(true)
    }

    /// Everything to the disk.
    pub fn close(&mut self) -> Result<(), ResultsError> {
        self.file.flush().map_err(|error| failed(&self.path, &error))
    }

    /// The warning about a file that was not long enough.
    pub fn warning(&self) -> Option<String> {
        let stopped = self.stopped?;
        Some(format!(
            "{FILE} reached measure.pcap_bytes = \"{}\" after {} packets: packets sent at {stopped} or later are not in it",
            Bytes(self.max_bytes),
            self.packets
        ))
    }

    /// For the summary.
    pub fn summary(&self) -> Value {
        json!({
            "packets": self.packets,
            "bytes": self.bytes,
            "stopped_ns": self.stopped.map(|time| time.as_ns()),
        })
    }

    fn section(&mut self) -> Result<(), ResultsError> {
        self.block.extend(BYTE_ORDER.to_le_bytes());
        self.block.extend([1, 0, 0, 0]);
        // How long the section is, is not known yet.
        self.block.extend([0xff; 8]);
        self.option(APPLICATION, concat!("weftline ", env!("CARGO_PKG_VERSION")).as_bytes());
        self.option(0, &[]);
        self.write(SECTION)
    }

    fn interface(&mut self, name: &str, rate: u64, kept: Option<Bytes>) -> Result<(), ResultsError> {
        self.block.extend(ETHERNET.to_le_bytes());
        self.block.extend([0; 2]);
        // 0: no limit that is known beforehand.
        self.block.extend((kept.map_or(0, |kept| kept.0) as u32).to_le_bytes());
        self.option(NAME, name.as_bytes());
        self.option(SPEED, &rate.to_le_bytes());
        self.option(RESOLUTION, &[NANOSECONDS]);
        self.option(0, &[]);
        self.write(INTERFACE)
    }

    fn packet(&mut self, frame: &Frame, bytes: &[u8]) -> Result<(), ResultsError> {
        let ns = frame.time.ns();
        let words = [u32::from(frame.link), (ns >> 32) as u32, ns as u32, bytes.len() as u32, frame.length];
        words.iter().for_each(|word| self.block.extend(word.to_le_bytes()));
        self.padded(bytes);
        self.write(ENHANCED_PACKET)
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        // Names are far shorter.
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        self.block.extend(code.to_le_bytes());
        self.block.extend((value.len() as u16).to_le_bytes());
        self.padded(value);
    }

    fn padded(&mut self, bytes: &[u8]) {
        self.block.extend(bytes);
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    /// Writes the block that was put together.
    fn write(&mut self, kind: u32) -> Result<(), ResultsError> {
        let length = self.block.len() as u32 + 12;
        let (head, end) = ([kind, length].map(u32::to_le_bytes).concat(), length.to_le_bytes());
        let written = [&head[..], &self.block, &end].iter().try_for_each(|part| self.file.write_all(part));
        self.bytes += u64::from(length);
        self.block.clear();
        written.map_err(|error| failed(&self.path, &error))
    }
}

fn failed(path: &Path, error: &std::io::Error) -> ResultsError {
    ResultsError::failed(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests;
