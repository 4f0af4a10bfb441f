//! `weftline collect`: captures through the collector of telemetry, and a collector that runs.

use std::path::PathBuf;

use pyo3::prelude::*;
use serde_json::{Value, json};
use weftline_collect::live::{Live, config::Config};
use weftline_collect::packet::Markers;
use weftline_collect::parallel::ParallelCollector;
use weftline_collect::series::{Points, Series};

use crate::errors::{failed, input, of_results};
use crate::interrupts::interruptible;
use crate::pint::shared_decoder;

/// Reads captures in the order in which they begin (`-`: the standard input) and returns what was found, as
/// JSON: summary, paths, hops, events, sources, and for each capture its packets, its point of observation
/// and what ended it early. Markers that are None keep their default; so does the number of shards. `points`:
/// which captures are one point of observation, by a name of [`Points::NAMES`].
///
/// Errors: a capture of which nothing can be read, a name that is not known.
#[pyfunction]
#[pyo3(signature = (captures, memory, int_dscp=None, int_port=None, int_gre=None, report_ports=None, ipv4_id=false,
                    flow_label=false, plan=None, topology=None, shards=None, points="by-time"))]
#[allow(clippy::too_many_arguments)] // the call that the Python side makes, argument by argument
pub fn collect(
    py: Python<'_>,
    captures: Vec<PathBuf>,
    memory: usize,
    int_dscp: Option<u8>,
    int_port: Option<u16>,
    int_gre: Option<u16>,
    report_ports: Option<Vec<u16>>,
    ipv4_id: bool,
    flow_label: bool,
    plan: Option<String>,
    topology: Option<PathBuf>,
    shards: Option<usize>,
    points: &str,
) -> PyResult<String> {
    let points = Points::named(points).ok_or_else(|| {
        let names = Points::NAMES.map(|(name, _)| name).join(", ");
        input(format!("points: expected one of {names}, found {points:?}"))
    })?;
    let usual = Markers::default();
    let markers = Markers {
        int_dscp: int_dscp.or(usual.int_dscp),
        int_port: int_port.or(usual.int_port),
        int_gre: int_gre.or(usual.int_gre),
        report_ports: report_ports.unwrap_or(usual.report_ports),
        pint_ipv4_id: ipv4_id,
        pint_flow_label: flow_label,
        ..Markers::default()
    };
    py.detach(|| {
        interruptible(move || {
            let decoder = plan.map(|plan| shared_decoder(&plan, topology.as_deref())).transpose()?;
            let (decoder, names) = decoder.unzip();
            let shards = shards.unwrap_or_else(usual_shards);
            let collector = ParallelCollector::start(markers, memory, shards, decoder.as_ref());
            let mut found = run(captures, points, collector.map_err(input)?)?;
            name_switches(&mut found, names);
            Ok(found.to_string())
        })
    })
}

/// One core reads and parses.
fn usual_shards() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| (cores.get() - 1).clamp(1, 4))
}

/// Adds the names of the switches of a plan's topology to the summary, as `pint decode` has them.
fn name_switches(found: &mut Value, names: Option<Value>) {
    if let Some(names) = names.filter(|names| names.as_object().is_some_and(|names| !names.is_empty())) {
        found["summary"]["names"] = names;
    }
}

fn run(captures: Vec<PathBuf>, points: Points, mut collector: ParallelCollector) -> PyResult<Value> {
    let mut read: Vec<Value> = Vec::new();
    let mut series = Series::open(captures, points).map_err(input)?;
    while let Some(mut turn) = series.next_turn().map_err(input)? {
        collector.set_point(turn.point);
        let mut last_ns = 0;
        let ended = loop {
            match turn.reader.next_packet() {
                Ok(Some(packet)) => {
                    last_ns = last_ns.max(packet.time_ns);
                    collector.take(&packet);
                }
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        };
        let packets = turn.reader.packets();
        let ended = match ended {
            Some(error) if packets == 0 => return Err(input(error)),
            ended => ended.map(|error| error.to_string()),
        };
        let (path, point) = (turn.path.clone(), turn.point);
        read.push(json!({"capture": path, "packets": packets, "point": point, "ended_early": ended}));
        series.end(turn, last_ns);
    }
    let mut found = collector.finish().map_err(failed)?;
    found["summary"]["captures"] = read.into();
    Ok(found)
}

/// A collector of what arrives: its threads run until `finish`.
#[pyclass(module = "weftline._native")]
pub struct LiveCollector {
    live: Option<Live>,
    /// Of the switches of a plan's topology, by their numbers.
    names: Option<Value>,
}

#[pymethods]
impl LiveCollector {
    /// Begins. `config` is JSON with the names of `weftline_collect::live::config::Config`.
    #[new]
    fn new(py: Python<'_>, config: &str) -> PyResult<LiveCollector> {
        let config: Config = serde_json::from_str(config).map_err(input)?;
        let decoder = |plan: &String| shared_decoder(plan, config.topology.as_deref());
        let (decoder, names) = py.detach(|| config.plan.as_ref().map(decoder).transpose())?.unzip();
        let live = py.detach(|| Live::start(config, decoder.as_ref())).map_err(input)?;
        Ok(LiveCollector { live: Some(live), names })
    }

    /// The inputs by name.
    #[getter]
    fn inputs(&self) -> Vec<String> {
        self.live.as_ref().map(|live| live.inputs().to_vec()).unwrap_or_default()
    }

    /// Address and port of HTTP.
    #[getter]
    fn http(&self) -> Option<String> {
        self.live.as_ref().and_then(|live| live.http()).map(|address| address.to_string())
    }

    /// Counts now, as JSON.
    fn status(&self, py: Python<'_>) -> PyResult<String> {
        let live = self.live.as_ref().ok_or_else(|| failed("the collector has ended"))?;
        Ok(py.detach(|| live.status()).to_string())
    }

    /// Stops and returns all findings, as JSON.
    fn finish(&mut self, py: Python<'_>) -> PyResult<String> {
        let live = self.live.take().ok_or_else(|| failed("the collector has ended"))?;
        let mut found = py.detach(|| live.finish()).map_err(failed)?;
        name_switches(&mut found, self.names.take());
        Ok(found.to_string())
    }
}

/// Writes a table, whose rows are a JSON list of objects, as a Parquet file. A table without rows is not
/// written.
#[pyfunction]
pub fn write_rows(py: Python<'_>, path: PathBuf, rows: String) -> PyResult<()> {
    py.detach(|| {
        let rows: Vec<Value> = serde_json::from_str(&rows).map_err(input)?;
        if rows.is_empty() {
            return Ok(());
        }
        weftline_results::rows::write(&path, &rows).map_err(of_results)
    })
}
