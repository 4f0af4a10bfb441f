//! What one thread keeps: flows with their paths, and digests of PINT.

use pint::recorded::Recorded;

use crate::flows::{FlowTable, Point};
use crate::intake::Sink;
use crate::ip::{FlowKey, Ip};
use crate::packet::Digest;
use crate::pint::{Decoder, Decoding, UselessDigest, recorded};

#[derive(Debug)]
pub struct Tables {
    pub flows: FlowTable,
    /// None without a plan.
    pub pint: Option<Decoding>,
}

impl Tables {
    /// With a plan, each half gets half of the memory. Error: switches cannot run the plan.
    pub fn new(limit_bytes: usize, seed: u64, decoder: Option<&Decoder>) -> Result<Tables, String> {
        let flow_bytes = if decoder.is_some() { limit_bytes / 2 } else { limit_bytes };
        let pint = decoder.map(|decoder| Decoding::new(decoder, limit_bytes - flow_bytes)).transpose()?;
        Ok(Tables { flows: FlowTable::new(flow_bytes, seed), pint })
    }

    pub fn bytes(&self) -> usize {
        self.flows.bytes() + self.pint.as_ref().map_or(0, Decoding::bytes)
    }

    pub fn take_digest(&mut self, row: &Recorded) {
        if let Some(pint) = &mut self.pint {
            pint.take(row);
        }
    }
}

impl Sink for Tables {
    fn path(&mut self, flow: &FlowKey, point: Point, time_ns: u64, nodes: &[u64]) {
        self.flows.observe(flow, point, time_ns, nodes);
    }

    fn digest(&mut self, ip: &Ip, digest: &Digest, point: Point, time_ns: u64) -> Result<(), UselessDigest> {
        if let Some(pint) = &mut self.pint {
            pint.take(&recorded(ip, digest, pint.version(), point, time_ns)?);
        }
        Ok(())
    }
}
