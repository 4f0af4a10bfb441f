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
    pub most: Bytes,
    /// Bytes kept of each packet; none: its headers.
    pub kept: Option<Bytes>,
}

impl CapturePlan {
    /// What a run asks for, if it does.
    pub fn of(config: &Config) -> Option<CapturePlan> {
        let capture = config.measure.capture.as_ref()?;
        let ports = config.topology.ports();
        let name = |&(node, local): &(u32, u32)| {
            let (link, _) = ports[node as usize][local as usize];
            let name = config.topology.direction_name(link, node);
            (name, config.topology.links[link as usize].rate.0)
        };
        let mut links: Vec<(String, u64)> = capture.ports.iter().map(name).collect();
        let named = links.clone();
        for ((name, _), &(node, local)) in links.iter_mut().zip(&capture.ports) {
            // Of several between the same two nodes.
            if named.iter().filter(|(other, _)| other == name).count() > 1 {
                *name = format!("{name} ({})", config.topology.port_name(node, local));
            }
        }
        Some(CapturePlan { links, most: capture.most, kept: capture.kept })
    }
}

/// The file while it grows.
pub struct CaptureFile {
    path: PathBuf,
    file: BufWriter<File>,
    most: u64,
    bytes: u64,
    packets: u64,
    /// When the first packet began that had no room.
    stopped: Option<Time>,
    block: Vec<u8>,
}

impl CaptureFile {
    /// Makes the file with the blocks that say what its links are.
    pub fn create(path: &Path, plan: &CapturePlan) -> Result<CaptureFile, ResultsError> {
        let file = File::create(path).map_err(|error| failed(path, &error))?;
        let mut capture = CaptureFile {
            path: path.to_path_buf(),
            file: BufWriter::new(file),
            most: plan.most.0,
            bytes: 0,
            packets: 0,
            stopped: None,
            block: Vec::new(),
        };
        capture.section()?;
        plan.links.iter().try_for_each(|(name, rate)| capture.interface(name, *rate, plan.kept))?;
        if capture.bytes > capture.most {
            let (links, needed) = (plan.links.len(), Bytes(capture.bytes));
            return Err(ResultsError::input(format!(
                "measure.pcap_bytes: {} is too small: the names of {links} links alone take {needed}",
                plan.most
            )));
        }
        Ok(capture)
    }

    /// Appends packets; whether there is room for more.
    pub fn append(&mut self, frames: &Frames) -> Result<bool, ResultsError> {
        for frame in &frames.frames {
            let bytes = &frames.bytes[frame.bytes.clone()];
            let length = (PACKET_BLOCK + bytes.len().next_multiple_of(4)) as u64;
            if self.stopped.is_some() || self.bytes + length > self.most {
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

    /// What to say of a file that was not long enough.
    pub fn warning(&self) -> Option<String> {
        let stopped = self.stopped?;
        Some(format!(
            "{FILE} reached measure.pcap_bytes = \"{}\" after {} packets: what began to leave at {stopped} or later is not \
             in it",
            Bytes(self.most),
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
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    fn plan(most: u64) -> CapturePlan {
        CapturePlan { links: vec![("a->b".into(), 10_000_000_000)], most: Bytes(most), kept: None }
    }

    fn frames(times: &[u64]) -> Frames {
        let mut frames = Frames::default();
        for &ns in times {
            let from = frames.bytes.len();
            frames.bytes.extend([1, 2, 3, 4, 5]);
            let bytes = from..from + 5;
            frames.frames.push(Frame { time: Time::from_ns(ns), link: 0, length: 1000, bytes });
        }
        frames
    }

    /// 28 bytes and the application's name; 20 bytes, a name of 4, a rate of 8 and a resolution of 1.
    const HEADS: u64 = 28 + (4 + 16) + 4 + 20 + (4 + 4) + (4 + 8) + (4 + 4) + 4;

    #[test]
    fn the_bytes_of_a_file_are_those_of_the_format() {
        let dir = Scratch::new();
        let path = dir.join("a.pcapng");
        let mut file = CaptureFile::create(&path, &plan(10_000)).unwrap();
        assert!(file.append(&frames(&[(1 << 32) + 7])).unwrap());
        file.close().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(concat!("weftline ", env!("CARGO_PKG_VERSION")).len().next_multiple_of(4), 16);
        assert_eq!(bytes.len() as u64, HEADS + 40);
        assert_eq!(bytes[..12], [10, 13, 13, 10, 52, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a]);
        let interface = &bytes[52..];
        assert_eq!(interface[..16], [1, 0, 0, 0, 52, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(interface[16..24], [2, 0, 4, 0, b'a', b'-', b'>', b'b']);
        assert_eq!(interface[24..36], [8, 0, 8, 0, 0, 0xe4, 0x0b, 0x54, 2, 0, 0, 0]);
        assert_eq!(interface[36..44], [9, 0, 1, 0, 9, 0, 0, 0]);
        let packet = &bytes[HEADS as usize..];
        let words = [6, 40, 0, 1, 7, 5, 1000].map(u32::to_le_bytes).concat();
        assert_eq!(packet[..28], words);
        assert_eq!(packet[28..], [1, 2, 3, 4, 5, 0, 0, 0, 40, 0, 0, 0]);
    }

    #[test]
    fn a_file_ends_before_the_packet_that_has_no_room() {
        let dir = Scratch::new();
        let path = dir.join("a.pcapng");
        let mut file = CaptureFile::create(&path, &plan(HEADS + 80)).unwrap();
        assert!(!file.append(&frames(&[1, 2, 3, 4])).unwrap());
        assert!(!file.append(&frames(&[5])).unwrap());
        file.close().unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().len(), HEADS + 80);
        let summary = file.summary();
        assert_eq!((summary["packets"].as_u64(), summary["stopped_ns"].as_f64()), (Some(2), Some(3.0)));
        let said = file.warning().unwrap();
        assert!(
            said.contains("pcap_bytes") && said.contains("after 2 packets") && said.contains("3ns"),
            "{said}"
        );
    }

    #[test]
    fn a_place_that_cannot_be_written_and_a_limit_below_the_heads_are_named() {
        let dir = Scratch::new();
        let Err(error) = CaptureFile::create(&dir.join("none/a.pcapng"), &plan(10_000)) else { panic!() };
        assert!(error.to_string().contains("none/a.pcapng"), "{error}");
        let Err(error) = CaptureFile::create(&dir.join("a.pcapng"), &plan(50)) else { panic!() };
        assert!(error.to_string().contains("pcap_bytes") && error.to_string().contains("1 link"), "{error}");
    }
}
