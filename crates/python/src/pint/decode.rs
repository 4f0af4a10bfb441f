//! Recorded digests from a file through a collector.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pint::collector::{
    Collector, DecodedAfter, Event, EventKind, FlowReport, Limits, PathWriter, Patience, Sink, Tally,
};
use pint::graph::Graph;
use pint::path::PathDecoder;
use pint::query::Value;
use pint::recorded::{Address, CsvReader, Flow, Recorded};
use pyo3::prelude::*;
use serde_json::{Value as Json, json};
use weftline_results::ResultsError;

use super::ground::Ground;
use super::{Plan, created, opened};
use crate::errors::{failed, input, of_results};
use crate::interrupts::interruptible;

/// What a collector knows about the network, and how far it may trust it.
#[derive(Debug, Clone, Default)]
pub struct Knowledge {
    pub ground: Ground,
    /// Consecutive hops are neighbours.
    pub neighbours: bool,
    /// Consecutive hops differ: every switch is every other's neighbour, whatever the links.
    pub differ: bool,
    /// The first and the last hop are the switches of the flow's ends.
    pub ends: bool,
    /// Paths are shortest paths.
    pub shortest: bool,
}

impl Knowledge {
    /// Of a topology file: with `ids_only` its switches, any two of which may follow each other, else also
    /// its links; without a file nothing.
    ///
    /// Errors: what is known of a topology without one; ends and shortest paths, which follow from links,
    /// with `ids_only`.
    pub fn read(topology: Option<&Path>, ids_only: bool, ends: bool, shortest: bool) -> PyResult<Knowledge> {
        let Some(file) = topology else {
            if ids_only || ends || shortest {
                return Err(input("ids only, ends, shortest: what is known of a topology needs --topology"));
            }
            return Ok(Knowledge::default());
        };
        if ids_only && (ends || shortest) {
            return Err(input("ids only: then neither ends nor shortest paths are known"));
        }
        Ok(Knowledge { ground: Ground::read(file)?, neighbours: !ids_only, differ: ids_only, ends, shortest })
    }

    /// Only that the ports of switches have numbers below this.
    pub fn of_ports(ports: u32) -> Knowledge {
        Knowledge { ground: Ground { ports, ..Ground::default() }, ..Knowledge::default() }
    }

    /// Only that ids are 0 to `ids` - 1.
    pub fn numbered(ids: u64) -> Knowledge {
        Knowledge { ground: Ground { ids: (0..ids).collect(), ..Ground::default() }, ..Knowledge::default() }
    }
}

/// The hosts that flows may be between, where the first and the last hop of paths follow from them; none:
/// any.
#[derive(Debug, Default)]
pub struct Ends(Option<BTreeSet<u64>>);

impl Ends {
    pub fn of(knowledge: &Knowledge) -> Ends {
        Ends(knowledge.ends.then(|| knowledge.ground.hosts.clone()))
    }

    /// Errors: a flow with an end that the topology does not have. An end that the record does not name is
    /// not an error.
    pub fn check(&self, flow: &Flow) -> PyResult<()> {
        let Some(hosts) = &self.0 else { return Ok(()) };
        for (name, end) in [("src", flow.source), ("dst", flow.destination)] {
            let known = match end {
                Address::Unknown => true,
                Address::Number(host) => hosts.contains(&host),
                _ => false,
            };
            if !known {
                return Err(input(format!(
                    "{name}: the topology has no host {end}, so its switch is unknown: give the topology \
                     that has it, or leave out ends"
                )));
            }
        }
        Ok(())
    }
}

/// The decoder of the plan's paths. Links that the topology has twice become a warning.
pub fn paths(plan: &pint::plan::Plan, knowledge: &mut Knowledge) -> PyResult<PathDecoder> {
    let ground = &mut knowledge.ground;
    let (graph, repeated) = if knowledge.differ {
        (Graph::complete(ground.ids.clone()).map_err(input)?, 0)
    } else {
        Graph::new(ground.ids.clone(), &ground.edges).map_err(input)?
    };
    if repeated > 0 {
        ground.warnings.push(format!("{repeated} links are in the topology more than once and count once"));
    }
    let known = pint::path::Knowledge {
        graph,
        neighbours: knowledge.neighbours || knowledge.differ,
        ends: knowledge.ends.then(|| ground.attached.clone()),
        shortest: knowledge.shortest,
        ports: ground.ports,
    };
    let decoder = PathDecoder::new(plan, known).map_err(input)?;
    let port = u64::from(ground.ports.saturating_sub(1));
    let last = ground.ids.last().copied().unwrap_or(0);
    for (value, last) in [(Value::SwitchId, last), (Value::IngressPort, port), (Value::EgressPort, port)] {
        ground.warnings.extend(plan.beyond_bits(value, last));
    }
    let names = decoder.untraced().iter().map(|&query| plan.queries().queries[query].name.as_str());
    let names: Vec<&str> = names.collect();
    if !names.is_empty() {
        ground.warnings.push(format!(
            "{}: hashes cannot be decoded without the switches and their ports: give a topology; the other queries are answered",
            names.join(", ")
        ));
    }
    Ok(decoder)
}

/// The decoder of a plan's text for a collector of packets, which may get the switches from a topology, and
/// their names.
pub fn shared_decoder(
    text: &str,
    topology: Option<&Path>,
) -> PyResult<(weftline_collect::pint::Decoder, Json)> {
    let plan = pint::plan::Plan::open(text, "plan").map_err(input)?;
    let mut knowledge = Knowledge::read(topology, false, false, false)?;
    let paths = Arc::new(paths(&plan, &mut knowledge)?);
    Ok((weftline_collect::pint::Decoder { plan: Arc::new(plan), paths }, names(&knowledge)))
}

/// The names of switches, by their numbers.
fn names(knowledge: &Knowledge) -> Json {
    knowledge.ground.names.iter().map(|(id, name)| (id.to_string(), json!(name))).collect()
}

/// Maximum number of entries of the input that are reported.
const SHOWN_REFUSALS: usize = 5;

/// Where results go.
struct Outputs {
    plan: pint::plan::Plan,
    paths: Option<(PathBuf, PathWriter<BufWriter<File>>)>,
    findings: Option<(PathBuf, BufWriter<File>)>,
    /// The first reports, for a person.
    shown: Vec<Json>,
    show: usize,
    tally: Tally,
    decoded_after: DecodedAfter,
    events: Vec<Json>,
    error: Option<PyErr>,
}

impl Outputs {
    fn line(&mut self, reported: &Json) {
        if let Some((path, file)) = &mut self.findings {
            if let Err(error) = writeln!(file, "{reported}") {
                self.error = Some(failed(format!("{}: {error}", path.display())));
            }
        }
    }

    fn finish(self) -> PyResult<()> {
        if let Some((path, writer)) = self.paths {
            let written = writer.finish().and_then(|mut file| file.flush());
            written.map_err(|error| failed(format!("{}: {error}", path.display())))?;
        }
        if let Some((path, mut file)) = self.findings {
            file.flush().map_err(|error| failed(format!("{}: {error}", path.display())))?;
        }
        Ok(())
    }
}

impl Sink for Outputs {
    fn event(&mut self, event: Event) {
        if let EventKind::PathDecoded { digests, .. } = event.kind {
            self.decoded_after.add(digests);
            return;
        }
        let reported = event.to_json(&self.plan);
        self.line(&reported);
        if self.events.len() < self.show {
            self.events.push(reported);
        }
    }

    fn ended(&mut self, report: FlowReport) {
        self.tally.ended(&report);
        if let Some((path, writer)) = &mut self.paths {
            if let Err(error) = writer.write(&self.plan, &report) {
                self.error = Some(failed(format!("{}: {error}", path.display())));
            }
        }
        if self.findings.is_some() || self.shown.len() < self.show {
            let reported = report.to_json(&self.plan);
            self.line(&reported);
            if self.shown.len() < self.show {
                self.shown.push(reported);
            }
        }
    }
}

/// Collects the digests of a CSV or Parquet file. `out` takes paths as CSV, `findings` all results and events
/// as JSON lines; the first `show` are returned, with counts, as JSON. A row at a time is in memory, and at
/// most `memory` bytes of flows.
#[pyfunction]
#[pyo3(signature = (plan, path, topology, ids_only, ends, shortest, memory, idle_ns, patience, out, findings, show))]
#[allow(clippy::too_many_arguments)] // the call that the Python side makes, argument by argument
pub fn pint_decode(
    py: Python<'_>,
    plan: &Plan,
    path: PathBuf,
    topology: Option<PathBuf>,
    ids_only: bool,
    ends: bool,
    shortest: bool,
    memory: usize,
    idle_ns: Option<u64>,
    patience: (u32, u32, u32),
    out: Option<PathBuf>,
    findings: Option<PathBuf>,
    show: usize,
) -> PyResult<String> {
    let plan = plan.plan.clone();
    py.detach(|| {
        interruptible(move || {
            let mut knowledge = Knowledge::read(topology.as_deref(), ids_only, ends, shortest)?;
            let (agreeing, misfits, fits) = patience;
            let patience = Patience { agreeing, misfits, fits };
            let limits = Limits { bytes: memory, idle_ns, patience };
            let decoder = paths(&plan, &mut knowledge)?;
            let collector = Collector::new(&plan, limits, decoder).map_err(input)?;
            let outputs = Outputs {
                paths: match out {
                    Some(out) => {
                        let writer = PathWriter::new(BufWriter::new(created(&out)?));
                        let writer = writer.map_err(|error| failed(format!("{}: {error}", out.display())))?;
                        Some((out, writer))
                    }
                    None => None,
                },
                findings: match findings {
                    Some(findings) => Some((findings.clone(), BufWriter::new(created(&findings)?))),
                    None => None,
                },
                tally: Tally::new(&plan),
                plan,
                shown: Vec::new(),
                show,
                decoded_after: DecodedAfter::default(),
                events: Vec::new(),
                error: None,
            };
            collected(&path, collector, outputs, &knowledge)
        })
    })
}

fn collected<D: pint::collector::Paths>(
    path: &Path,
    mut collector: Collector<D>,
    mut outputs: Outputs,
    knowledge: &Knowledge,
) -> PyResult<String> {
    let (mut rows, mut refused) = (0u64, Vec::new());
    let mut max_flows = 0;
    let ends = Ends::of(knowledge);
    let mut take = |row: &Recorded| {
        rows += 1;
        ends.check(&row.flow)?;
        if let Err(refusal) = collector.take(row, &mut outputs) {
            outputs.tally.refused(row, &refusal);
            if refused.len() < SHOWN_REFUSALS {
                refused.push(format!("row {rows}, packet {}: {refusal}", row.packet));
            }
        }
        max_flows = max_flows.max(collector.flows());
        outputs.error.take().map_or(Ok(()), Err)
    };
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or("").to_lowercase();
    if matches!(extension.as_str(), "parquet" | "pq") {
        let mut stopped = None;
        let read = weftline_results::recorded::each(path, &mut |row| {
            take(&row).map_err(|error| {
                stopped = Some(error);
                ResultsError::Failed(String::new())
            })
        });
        if let Some(error) = stopped {
            return Err(error);
        }
        read.map_err(of_results)?;
    } else {
        for row in CsvReader::new(opened(path)?, &path.display().to_string()).map_err(input)? {
            take(&row.map_err(input)?)?;
        }
    }
    collector.finish(&mut outputs);
    if let Some(error) = outputs.error.take() {
        return Err(error);
    }
    let counts = collector.counts();
    let (decoded, tally) = (&outputs.decoded_after, &outputs.tally);
    let summary = json!({
        "rows": rows,
        "flows": tally.flows(),
        "flows_are_minimum": tally.is_minimum(),
        "records": tally.records,
        "changed_records": tally.changed,
        "complete_paths": tally.known,
        "confirmed_paths": tally.confirmed,
        "incomplete_paths": tally.unknown,
        "too_long": { "digests": tally.too_long, "most_hops": tally.longest, "flows_left_out": tally.left_out() },
        "packets_to_decode": {
            "mean": decoded.mean(),
            "median": decoded.at(0.5),
            "p99": decoded.at(0.99),
            // Of the known paths; those that are not known would raise all three.
            "known": decoded.known(),
            "unknown": tally.unknown_paths,
        },
        "counts": {
            "digests": counts.digests, "unserved": counts.unserved, "other_plan": counts.other_plan,
            "hops_refused": counts.hops_refused, "impossible": counts.impossible, "loops": counts.loops,
            "paths_decoded": counts.paths_decoded, "paths_changed": counts.paths_changed, "inconsistent": counts.inconsistent,
            "strays": counts.strays, "repeated": counts.repeated, "evicted": counts.evicted, "idle": counts.idle,
            "late": counts.late,
        },
        "refused": refused,
        "warnings": knowledge.ground.warnings,
        "names": names(knowledge),
        "events": outputs.events,
        "reports": outputs.shown,
    });
    outputs.finish()?;
    Ok(summary.to_string())
}
