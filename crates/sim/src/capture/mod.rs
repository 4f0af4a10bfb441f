//! Converts captured packets to frames: Ethernet, IPv4, and the headers of each transport.
//!
//! Payload bytes are zero. By default only headers are kept, except for RoCEv2 (`rdma`). A frame is as long
//! as the packet in the simulator, or longer if the real headers need more bytes than the scheme's settings
//! assume.
//!
//! One file per format: `tcp` (with multipath), `rdma` with its telemetry in `shim`, `datagrams` (pHost,
//! pFabric, Fastpass, NDP), `tag` (headers of load balancers, and probes), `pause`; `headers` contains what all of
//! them share.

mod datagrams;
mod headers;
mod pause;
mod rdma;
mod shim;
pub mod tag;
mod tcp;

use crate::balance::BalancerConfig;
use crate::config::{CaptureConfig, Config};
use crate::measure::{Frame, Frames, Sink};
use crate::net::tap::{Notes, Seen};
use crate::packet::{Packet, PacketKind};
use crate::telemetry::int::IntRecord;
use crate::topology::{NodeKind, Topology};
use crate::transport::{Settings, WireFormat};
use std::sync::Arc;

/// Converts captured packets to frames, batch by batch.
pub struct Capture {
    writer: Writer,
    pub notes: Notes,
    frames: Frames,
}

/// What follows the headers of a packet: `payload` zero bytes, then the bytes of `end`.
struct Rest {
    payload: usize,
    end: Option<[u8; 4]>,
    /// The whole frame is kept, even if only headers are requested.
    whole: bool,
}

impl Rest {
    /// Zero bytes only.
    fn zeros(payload: usize) -> Rest {
        Rest { payload, end: None, whole: false }
    }
}

/// The two ends of a link, in the direction of the packets.
struct Link {
    from: u32,
    to: u32,
    between_switches: bool,
}

/// What is needed to write a frame.
struct Writer {
    settings: Arc<Settings>,
    links: Vec<Link>,
    balancer: BalancerConfig,
    /// Maximum number of bytes kept per frame; none: only its headers.
    kept: Option<usize>,
}

impl Capture {
    /// Creates the capture of a run, if its scenario requests one.
    pub fn of(config: &Config, settings: &Arc<Settings>) -> Option<Capture> {
        let capture = config.measure.capture.as_ref()?;
        let writer = Writer {
            settings: settings.clone(),
            links: links(capture, &config.topology),
            balancer: config.switch.balancer.clone(),
            kept: capture.kept.map(|bytes| bytes.0 as usize),
        };
        Some(Capture { writer, notes: Notes::default(), frames: Frames::default() })
    }

    /// Writes the captured packets, in order of time, to `sink`. Returns false if the sink wants no more.
    pub fn flush(&mut self, sink: &mut dyn Sink) -> std::io::Result<bool> {
        if self.notes.seen.is_empty() {
            return Ok(true);
        }
        self.notes.sort();
        self.frames.clear();
        let Notes { seen, records } = &mut self.notes;
        for one in seen.iter() {
            let from = self.frames.bytes.len();
            let places = &mut records[one.records.clone()];
            let length = self.writer.frame(&mut self.frames.bytes, one, places);
            let bytes = from..self.frames.bytes.len();
            self.frames.frames.push(Frame { time: one.time, link: one.link, length, bytes });
        }
        self.notes.clear();
        sink.frames(&self.frames)
    }
}

fn links(capture: &CaptureConfig, topology: &Topology) -> Vec<Link> {
    let ports = topology.ports();
    let is_switch = |node: u32| topology.nodes[node as usize].kind == NodeKind::Switch;
    let link = |&(from, local): &(u32, u32)| {
        let (_, to) = ports[from as usize][local as usize];
        Link { from, to, between_switches: is_switch(from) && is_switch(to) }
    };
    capture.ports.iter().map(link).collect()
}

/// Source and destination port of a packet. `back`: the packet goes to the flow's sender.
fn ports_of(packet: &Packet, back: bool) -> [u16; 2] {
    let [sender, receiver] = crate::wire::addresses::ports(packet.flow);
    if back { [receiver, sender] } else { [sender, receiver] }
}

impl Writer {
    /// Appends a frame and returns its full length.
    fn frame(&self, to: &mut Vec<u8>, seen: &Seen, places: &mut [IntRecord]) -> u32 {
        let (packet, link, start) = (&seen.packet, &self.links[usize::from(seen.link)], to.len());
        let ends = (headers::mac(link.from), headers::mac(link.to));
        let rest = match packet.kind {
            PacketKind::Pause | PacketKind::Resume => {
                pause::frame(to, packet, link.from);
                Rest::zeros(0)
            }
            PacketKind::Probe => {
                headers::ethernet(to, ends.0, ends.1, tag::ETHERTYPE);
                to.extend(self.balancer.probe_tag(packet).map_or(Vec::new(), |tag| tag::bytes(0, &tag)));
                Rest::zeros(0)
            }
            _ => {
                headers::ethernet(to, ends.0, ends.1, headers::IPV4);
                let at = to.len();
                let rest = self.packet(to, packet, places);
                if let Some(tag) = self.balancer.tag(seen.header, link.between_switches) {
                    headers::add_options(to, at, &tag::bytes(tag::OPTION, &tag));
                }
                rest
            }
        };
        let end = rest.end.as_ref().map_or(&[][..], |end| end);
        let own = to.len() - start + rest.payload + end.len();
        let length = own.max(usize::from(packet.size));
        if let Some(kept) = self.kept.or(rest.whole.then_some(length)) {
            to.resize(to.len() + rest.payload, 0);
            to.extend(end);
            to.resize(start + length, 0);
            to.truncate(start + kept);
        }
        length as u32
    }

    /// Appends the packet of a host, in the format of its transport.
    fn packet(&self, to: &mut Vec<u8>, packet: &Packet, places: &mut [IntRecord]) -> Rest {
        match self.settings.transports[usize::from(packet.profile)].wire_format() {
            WireFormat::Plain => datagrams::plain(to, packet),
            WireFormat::Segments(config) => tcp::segment(to, packet, config, places),
            WireFormat::Subflows(config) => tcp::multipath(to, packet, config, places),
            WireFormat::QueuePairs(config) => {
                let telemetry = shim::telemetry(packet, &self.settings, config, places);
                rdma::packet(to, packet, config, &telemetry, self.kept.is_some())
            }
            WireFormat::Tokens => datagrams::phost(to, packet),
            WireFormat::Priorities => datagrams::pfabric(to, packet),
            WireFormat::Pulls => datagrams::ndp(to, packet),
            WireFormat::Grants => datagrams::homa(to, packet),
            WireFormat::Timeslots(config) => datagrams::fastpass(to, packet, config),
        }
    }
}
