//! A collector that Python feeds.

use std::path::PathBuf;

use pint::collector::{Collected, Limits, MIN_BYTES, Patience};
use pint::path::PathDecoder;
use pint::recorded::{Address, Flow, Recorded};
use pyo3::prelude::*;
use serde_json::{Value as Json, json};

use super::Plan;
use super::decode::{Ends, Knowledge, paths};
use crate::errors::input;

/// Takes recorded digests in, one at a time.
#[pyclass(module = "weftline._native")]
pub struct Collector {
    plan: pint::plan::Plan,
    collector: pint::collector::Collector<PathDecoder>,
    collected: Collected,
    ends: Ends,
}

#[pymethods]
impl Collector {
    #[new]
    #[pyo3(signature = (plan, topology, ids_only, ends, shortest, memory, idle_ns, patience))]
    #[allow(clippy::too_many_arguments)] // the call that the Python side makes, argument by argument
    fn new(
        py: Python<'_>,
        plan: &Plan,
        topology: Option<PathBuf>,
        ids_only: bool,
        ends: bool,
        shortest: bool,
        memory: usize,
        idle_ns: Option<u64>,
        patience: (u32, u32, u32),
    ) -> PyResult<Collector> {
        if memory < MIN_BYTES {
            return Err(input(format!("memory: expected at least {MIN_BYTES} bytes, found {memory}")));
        }
        let plan = plan.plan.clone();
        py.detach(|| {
            let mut knowledge = Knowledge::read(topology.as_deref(), ids_only, ends, shortest)?;
            let (agreeing, misfits, fits) = patience;
            let patience = Patience { agreeing, misfits, fits };
            let limits = Limits { bytes: memory, idle_ns, patience };
            let decoder = paths(&plan, &mut knowledge)?;
            let collector = pint::collector::Collector::new(&plan, limits, decoder).map_err(input)?;
            Ok(Collector { plan, collector, collected: Collected::default(), ends: Ends::of(&knowledge) })
        })
    }

    /// Takes one digest; the text says why it was refused, None that it was taken.
    #[pyo3(signature = (packet_id, digest, hops, plan_version, time_ns, flow_id, src, dst, src_port, dst_port, protocol, looped))]
    #[allow(clippy::too_many_arguments)] // the columns of a recorded digest
    fn take(
        &mut self,
        packet_id: u64,
        digest: u64,
        hops: u32,
        plan_version: u32,
        time_ns: u64,
        flow_id: Option<u64>,
        src: &str,
        dst: &str,
        src_port: u16,
        dst_port: u16,
        protocol: u8,
        looped: bool,
    ) -> PyResult<Option<String>> {
        let address = |name: &str, text: &str| -> PyResult<Address> {
            let expected = "expected a host's number, an IPv4 or an IPv6 address";
            text.parse().map_err(|()| input(format!("{name}: {expected}, found \"{text}\"")))
        };
        let (source, destination) = (address("src", src)?, address("dst", dst)?);
        let flow = Flow {
            id: flow_id,
            source,
            destination,
            source_port: src_port,
            destination_port: dst_port,
            protocol,
        };
        self.ends.check(&flow)?;
        let row = Recorded {
            time_ns,
            flow,
            packet: packet_id,
            digest,
            hops,
            plan_version,
            looped,
            ..Recorded::default()
        };
        Ok(self.collector.take(&row, &mut self.collected).err().map(|refusal| refusal.to_string()))
    }

    /// What happened since the last call, as JSON: `events`, and `ended` records.
    fn drain(&mut self) -> String {
        let Collected { events, reports } = std::mem::take(&mut self.collected);
        let events: Vec<Json> = events.iter().map(|event| event.to_json(&self.plan)).collect();
        let ended: Vec<Json> = reports.iter().map(|report| report.to_json(&self.plan)).collect();
        json!({ "events": events, "ended": ended }).to_string()
    }

    /// What is known of all flows now, as JSON.
    fn reports(&self) -> String {
        let reports: Vec<Json> = self.collector.reports().map(|report| report.to_json(&self.plan)).collect();
        Json::Array(reports).to_string()
    }

    /// Flows kept now, and the bytes they take.
    fn size(&self) -> (usize, usize) {
        (self.collector.flows(), self.collector.bytes())
    }
}
