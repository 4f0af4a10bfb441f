//! Events and results as JSON, and paths as lines of CSV.

use std::io::{self, Write};

use serde_json::{Map, Value as Json, json};

use super::events::{Event, EventKind, Findings, FlowReport, HopFrequent, HopQuantiles, PathFindings};
use crate::plan::Plan;
use crate::recorded::{Address, Column, Flow};
use crate::sketch::kll::Interval;
use crate::value::Number;

/// The parts of a flow that say something.
fn flow_json(flow: &Flow) -> Json {
    let mut parts = Map::new();
    let address = |address: &Address| match address {
        Address::Number(number) => json!(number),
        other => json!(other.to_string()),
    };
    if let Some(id) = flow.id {
        parts.insert("flow_id".to_string(), json!(id));
    }
    for (name, end) in [("src", &flow.source), ("dst", &flow.destination)] {
        if *end != Address::Unknown {
            parts.insert(name.to_string(), address(end));
        }
    }
    let numbers = [
        ("src_port", u32::from(flow.source_port)),
        ("dst_port", u32::from(flow.destination_port)),
        ("protocol", u32::from(flow.protocol)),
    ];
    for (name, number) in numbers.into_iter().filter(|(_, number)| *number != 0) {
        parts.insert(name.to_string(), json!(number));
    }
    Json::Object(parts)
}

fn query_name(plan: &Plan, query: usize) -> &str {
    plan.queries().queries.get(query).map_or("", |query| query.name.as_str())
}

impl Event {
    /// Keys: `time_ns`, `flow`, `query`, `event` (`path-decoded`, `hops-changed`, `path-changed`,
    /// `inconsistent`, `loop`) and what belongs to it.
    pub fn to_json(&self, plan: &Plan) -> Json {
        let (name, more) = match &self.kind {
            EventKind::PathDecoded { path, digests } => {
                ("path-decoded", json!({ "path": path, "digests": digests }))
            }
            EventKind::HopsChanged { from, to } => ("hops-changed", json!({ "from": from, "to": to })),
            EventKind::PathChanged => ("path-changed", json!({})),
            EventKind::Inconsistent => ("inconsistent", json!({})),
            EventKind::Loop { packet, sink } => {
                ("loop", json!({ "packet_id": packet, "sink": sink.to_string() }))
            }
        };
        let mut written = json!({ "time_ns": self.time_ns, "flow": flow_json(&self.flow), "event": name });
        if let Some(query) = self.query {
            written["query"] = json!(query_name(plan, query));
        }
        if let (Json::Object(written), Json::Object(more)) = (&mut written, more) {
            written.extend(more);
        }
        written
    }
}

impl FlowReport {
    /// Keys: `flow`, `key`, `ending` (null while the record is open), `hops` (null if any), `epoch`,
    /// `first_ns`, `last_ns`, `digests`, `strays`, `repeated`, `may_be_of_next`, `queries` by name.
    pub fn to_json(&self, plan: &Plan) -> Json {
        let results = self.results.iter();
        let queries: Map<String, Json> = results
            .map(|(query, findings)| {
                (query_name(plan, *query).to_string(), findings_json(plan, *query, findings))
            })
            .collect();
        json!({
            "flow": flow_json(&self.flow),
            "key": self.key.name(),
            "ending": self.ending.map(super::Ending::name),
            "hops": self.hops,
            "epoch": self.epoch,
            "first_ns": self.first_ns,
            "last_ns": self.last_ns,
            "digests": self.digests,
            "strays": self.strays,
            "repeated": self.repeated,
            "may_be_of_next": self.may_be_of_next,
            "queries": queries,
        })
    }
}

fn findings_json(plan: &Plan, query: usize, findings: &Findings) -> Json {
    match findings {
        Findings::Path(path) => json!({
            "hops": path.hops,
            "candidates": path.candidates,
            "complete": path.path().is_some(),
            "digests": path.digests,
            "decoded_after": path.decoded_after,
            "confirmed_after": path.confirmed_after,
            "contradicted": path.contradicted,
        }),
        Findings::Quantiles(hops) => {
            let asked = match plan.queries().queries.get(query).map(|query| &query.aggregation) {
                Some(crate::query::Aggregation::Quantiles { quantiles, .. }) => quantiles.as_slice(),
                _ => &[],
            };
            json!({ "hops": hops.iter().map(|hop| quantiles_json(asked, hop)).collect::<Vec<_>>() })
        }
        Findings::Frequent(hops) => {
            json!({ "hops": hops.iter().map(frequent_json).collect::<Vec<_>>() })
        }
        Findings::Packets(summary) => json!({
            "packets": summary.packets,
            "mean": summary.mean,
            "smallest": number(summary.smallest),
            "largest": number(summary.largest),
            "last": number(summary.last),
            "at_ceiling": summary.at_ceiling,
            "at_floor": summary.at_floor,
        }),
        Findings::Loops { digests } => json!({ "digests": digests }),
    }
}

/// Exact values as whole numbers.
fn number(x: Number) -> Json {
    match x {
        Number::Exact(value) => json!(value),
        Number::Estimate(value) => json!(value),
    }
}

fn quantiles_json(asked: &[f64], hop: &HopQuantiles) -> Json {
    let value = |(quantile, found): (&f64, &Interval<Number>)| {
        let mut value = json!({ "quantile": quantile, "value": number(found.value), "low": found.low.map(number), "high": found.high.map(number) });
        mark(&mut value, found.value, hop.ceiling, hop.floor);
        value
    };
    let values: Vec<Json> = asked.iter().zip(&hop.values).map(value).collect();
    json!({ "samples": hop.samples, "exact": hop.exact, "rank_error": hop.rank_error, "quantiles": values })
}

/// States of a value that it may be any larger one, as it has the largest code, or that it may be 0, as it
/// has the smallest one.
fn mark(value: &mut Json, found: Number, ceiling: Number, floor: Option<f64>) {
    if found >= ceiling {
        value["at_ceiling"] = json!(true);
    }
    if floor.is_some_and(|floor| found.get() <= floor) {
        value["at_floor"] = json!(true);
    }
}

fn frequent_json(hop: &HopFrequent) -> Json {
    let value = |found: &super::FrequentValue| {
        let mut value = json!({ "value": number(found.value), "least": found.min, "most": found.max, "low": found.low, "high": found.high });
        mark(&mut value, found.value, hop.ceiling, hop.floor);
        value
    };
    json!({ "samples": hop.samples, "values": hop.values.iter().map(value).collect::<Vec<_>>() })
}

/// Writes the paths of flows as CSV: the flow's columns, then `epoch`, `ending`, `first_ns`, `last_ns`,
/// `query`, `digests`, `decoded_after`, `confirmed_after`, `hops`, `known` (hops that are) and `path`, its
/// hops from the first, parted by spaces, "?" where more than one value is possible.
#[derive(Debug)]
pub struct PathWriter<W> {
    output: W,
}

const FLOW: [Column; 6] = [
    Column::FlowId,
    Column::Source,
    Column::Destination,
    Column::SourcePort,
    Column::DestinationPort,
    Column::Protocol,
];

impl<W: Write> PathWriter<W> {
    /// Writes the header.
    pub fn new(mut output: W) -> io::Result<PathWriter<W>> {
        let flow = FLOW.map(Column::name).join(",");
        writeln!(
            output,
            "{flow},epoch,ending,first_ns,last_ns,query,digests,decoded_after,confirmed_after,hops,known,path"
        )?;
        Ok(PathWriter { output })
    }

    /// Writes one line for every path of the report.
    pub fn write(&mut self, plan: &Plan, report: &FlowReport) -> io::Result<()> {
        let after = |digests: Option<u64>| digests.map_or(String::new(), |digests| digests.to_string());
        let FlowReport { flow, ending, epoch, first_ns, last_ns, .. } = report;
        for (query, findings) in &report.results {
            let Findings::Path(path) = findings else { continue };
            writeln!(
                self.output,
                "{},{},{},{},{},{},{epoch},{},{first_ns},{last_ns},{},{},{},{},{},{},{}",
                flow.id.map_or(String::new(), |id| id.to_string()),
                flow.source,
                flow.destination,
                flow.source_port,
                flow.destination_port,
                flow.protocol,
                ending.map_or("", super::Ending::name),
                quoted(query_name(plan, *query)),
                path.digests,
                after(path.decoded_after),
                after(path.confirmed_after),
                path.hops.len(),
                path.hops.iter().flatten().count(),
                path_text(path),
            )?;
        }
        Ok(())
    }

    pub fn finish(mut self) -> io::Result<W> {
        self.output.flush()?;
        Ok(self.output)
    }
}

fn path_text(path: &PathFindings) -> String {
    let hop = |hop: &Option<u64>| hop.map_or("?".to_string(), |id| id.to_string());
    path.hops.iter().map(hop).collect::<Vec<_>>().join(" ")
}

/// A field in quotes if it needs them.
fn quoted(text: &str) -> String {
    if text.contains([',', '"']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_string() }
}
