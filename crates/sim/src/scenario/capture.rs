//! `measure.pcap`: links whose packets are written down, how much of each packet, and how long the file may become.

use super::measure::patterns;
use super::network::Network;
use super::section::Section;
use crate::config::CaptureConfig;
use crate::parameters::Source;
use crate::topology::PortSet;
use crate::units::Bytes;

const KEY: &str = "pcap";
const PCAP_HELP: &str = "links whose packets capture.pcapng gets, as a pattern or a list of them: \"leaf0->spine1\" (that \
                         direction), \"leaf0.p3\", \"leaf0->host*\"";
const BYTES: &str = "pcap_bytes";
const BYTES_HELP: &str = "maximum size of capture.pcapng; later packets are left out, with a warning";
const KEPT: &str = "pcap_snaplen";
const KEPT_HELP: &str =
    "bytes kept of each packet; auto: its headers (payload is zeros); \"65535B\" keeps everything";

const DEFAULT_BYTES: Bytes = Bytes(100_000_000);
/// A shorter file would hold its own headers alone.
const MIN_BYTES: Bytes = Bytes(10_000);
/// Of a packet: Ethernet, IPv4 and the ports.
const MIN_KEPT: Bytes = Bytes(64);
const MAX_KEPT: Bytes = Bytes(65_535);
/// Maximum number of links in one file.
const MAX_LINKS: usize = 4096;

/// Reads the keys; none: nothing is to be written down. `network` none: the topology is wrong.
pub fn read(section: &mut Section, network: Option<&Network>) -> Option<CaptureConfig> {
    if section.peek(KEY).is_none() {
        for key in [BYTES, KEPT] {
            if section.peek(key).is_some() {
                section.complain(
                    key,
                    format!("has no effect without {KEY}, which selects the links to capture"),
                );
                quantities(section);
            }
        }
        [KEY, BYTES, KEPT].iter().for_each(|key| section.offer(key));
        return None;
    }
    let patterns = patterns(section, KEY, None, PCAP_HELP);
    let (max_bytes, kept) = quantities(section);
    let (patterns, network) = (patterns?, network?);
    let ports = ports(section, &patterns, network)?;
    let capture = CaptureConfig { ports, max_bytes, kept };
    let links = capture.links(&network.topology);
    let needed = CaptureConfig::head_bytes(&links);
    if max_bytes >= MIN_BYTES && max_bytes < needed {
        let expected = format!("expected {needed} or more for the names of {} links", links.len());
        section.complain(BYTES, format!("{max_bytes} is too small: {expected}"));
    }
    Some(capture)
}

fn ports(section: &mut Section, patterns: &[String], network: &Network) -> Option<PortSet> {
    let mut ports = PortSet::new();
    for pattern in patterns {
        match network.topology.ports_matching(pattern) {
            Ok(more) => ports.extend(more),
            Err(message) => section.complain(KEY, message),
        }
    }
    ports.sort_unstable();
    ports.dedup();
    if ports.len() > MAX_LINKS {
        let message = format!("{} links: expected at most {MAX_LINKS} in one file", ports.len());
        section.complain(KEY, message);
    }
    if patterns.is_empty() {
        section.complain(KEY, "expected at least one link, such as \"leaf0->spine1\"".into());
    }
    Some(ports)
}

fn quantities(section: &mut Section) -> (Bytes, Option<Bytes>) {
    let mut p = section.parameters();
    let max_bytes = p.bytes(BYTES, DEFAULT_BYTES, BYTES_HELP);
    if max_bytes < MIN_BYTES {
        p.complain(BYTES, format!("{max_bytes} is too small: expected at least {MIN_BYTES}"));
    }
    let kept = p.bytes_or_auto(KEPT, KEPT_HELP);
    if kept.is_some_and(|kept| !(MIN_KEPT..=MAX_KEPT).contains(&kept)) {
        p.complain(KEPT, format!("expected {MIN_KEPT} to {MAX_KEPT}, or \"auto\" for the headers"));
    }
    (max_bytes, kept)
}

/// Declares the keys, for the list of keys.
pub fn declare(section: &mut Section) {
    section.parameters().text(KEY, None, PCAP_HELP);
    quantities(section);
}
