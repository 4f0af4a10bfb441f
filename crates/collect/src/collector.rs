//! The collector of one thread: telemetry of packets in; paths of flows, delays and queues of hops, changes,
//! loss and refusals out.
//!
//! A flow is known by its five-tuple at one point of observation: an interface of the capture, or the node
//! that reports. Its path is the list of node ids of a complete stack. An event is a path that differs from
//! the flow's previous one. All memory counts against one limit: a tenth of it is for the measurements of
//! hops, the rest for flows, paths and events; what finds no room is counted.

use std::collections::BTreeMap;

use crate::Malformed;
use crate::capture::Packet;
use crate::ip::FlowKey;
use crate::packet::{DigestCarrier, Markers};
use crate::pint::{Decoder, Decoding};
use crate::sequence::Sequence;
use crate::tables::Tables;

pub use crate::flows::{Change, FlowState, FlowTable, Point};
pub use crate::intake::{Counts, HopKey, HopState, Intake, Sink, UNKNOWN_NODE};

/// The share of the memory that the measurements of hops may take: one part of this many.
pub(crate) const HOP_SHARE: usize = 10;

/// Takes packets in.
#[derive(Debug)]
pub struct Collector {
    intake: Intake,
    tables: Tables,
}

impl Collector {
    pub fn new(markers: Markers, limit_bytes: usize) -> Collector {
        let hops = limit_bytes / HOP_SHARE;
        let tables = Tables { flows: FlowTable::new(limit_bytes - hops, 0), pint: None };
        Collector { intake: Intake::new(markers, hops), tables }
    }

    /// One that decodes PINT's digests as well. Error: switches cannot run the plan.
    pub fn with_pint(markers: Markers, limit_bytes: usize, decoder: &Decoder) -> Result<Collector, String> {
        let hops = limit_bytes / HOP_SHARE;
        let tables = Tables::new(limit_bytes - hops, 0, Some(decoder))?;
        Ok(Collector { intake: Intake::new(markers, hops), tables })
    }

    /// The digests of PINT; None without a plan.
    pub fn pint(&mut self) -> Option<&mut Decoding> {
        self.tables.pint.as_mut()
    }

    /// Takes a packet of a capture.
    pub fn take(&mut self, packet: &Packet) {
        self.intake.take(packet, &mut self.tables);
    }

    pub(crate) fn intake(&self) -> &Intake {
        &self.intake
    }

    pub(crate) fn table(&self) -> &FlowTable {
        &self.tables.flows
    }

    pub fn counts(&self) -> Counts {
        self.intake.counts().with(&self.tables.flows.counts())
    }

    /// Refusals by their reason.
    pub fn malformed(&self) -> &BTreeMap<Malformed, u64> {
        self.intake.malformed()
    }

    /// Digests of PINT by what carried them.
    pub fn digests(&self) -> &BTreeMap<DigestCarrier, u64> {
        self.intake.digests()
    }

    /// Flows in the order of their keys.
    pub fn flows(&self) -> Vec<((FlowKey, Point), FlowState)> {
        self.tables.flows.flows()
    }

    /// The nodes of a path, in the order in which packets pass them.
    pub fn path(&self, id: u32) -> &[u64] {
        self.tables.flows.path(id)
    }

    pub fn hops(&self) -> &BTreeMap<HopKey, HopState> {
        self.intake.hops()
    }

    /// Node and hardware unit, and the sequence of their reports.
    pub fn sources(&self) -> &BTreeMap<(u32, u8), Sequence> {
        self.intake.sources()
    }

    pub fn changes(&self) -> &[Change] {
        self.tables.flows.changes()
    }

    /// Bytes of all tables.
    pub fn bytes(&self) -> usize {
        self.intake.bytes() + self.tables.bytes()
    }
}
