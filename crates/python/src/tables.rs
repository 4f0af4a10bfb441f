//! Results of a run, from its folder: tables as Arrow streams, percentiles and series as JSON.

use std::path::PathBuf;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_schema::SchemaRef;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use serde_json::{Value, json};
use weftline_results::slowdown::{Point, Scheme};
use weftline_results::{self as results, ResultsError, flow_table, parquet_read};
use weftline_sim::{describe, parameters};

use crate::errors::{input, of_results, whole};

/// Names of the tables and their files; a run need not have the later ones.
const TABLES: [(&str, &str); 6] = [
    ("flows", flow_table::FILE),
    ("series", results::series::FILE),
    ("queues", results::queues::FILE),
    ("jobs", results::jobs::FILE),
    ("ranks", results::ranks::FILE),
    ("telemetry", "telemetry.parquet"),
];

/// Tables that runs without rows of theirs, and earlier versions, do not write.
const MAY_BE_ABSENT: [&str; 4] = ["series", "queues", "jobs", "ranks"];

/// What is counted, as JSON: `losses`, the counters of data packets, and `groups`, those of schemes, with what is shown of them.
#[pyfunction]
pub fn counters() -> String {
    describe::declarations().to_string()
}

/// A table of a run: anything that takes Arrow streams (pyarrow, pandas, polars, DuckDB) can read it repeatedly.
/// Rows are read from the file as they are requested.
#[pyclass(frozen, module = "weftline._native")]
pub struct Table {
    path: PathBuf,
    name: String,
}

impl Table {
    /// The columns that a run writes.
    fn written(&self) -> Option<SchemaRef> {
        match self.name.as_str() {
            "flows" => Some(flow_table::schema()),
            "series" => Some(results::series::schema()),
            "queues" => Some(results::queues::schema()),
            "jobs" => Some(results::jobs::schema()),
            "ranks" => Some(results::ranks::schema()),
            _ => None,
        }
    }

    fn may_be_absent(&self) -> bool {
        MAY_BE_ABSENT.contains(&self.name.as_str())
    }

    fn open(&self) -> Result<FFI_ArrowArrayStream, ResultsError> {
        results::file_digests::check_file(&self.path)?;
        match self.written() {
            Some(schema) if self.may_be_absent() && !self.path.exists() => {
                Ok(parquet_read::empty_stream(schema))
            }
            written => parquet_read::stream(&self.path, written),
        }
    }
}

#[pymethods]
impl Table {
    /// The Arrow PyCapsule interface. The table's own types are given, whatever was requested.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let stream = py.detach(|| self.open()).map_err(of_results)?;
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// The file that the rows are read from.
    #[getter]
    fn path(&self) -> String {
        self.path.display().to_string()
    }

    /// Names of the columns.
    #[getter]
    fn columns(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        match self.written() {
            Some(schema) if self.may_be_absent() && !self.path.exists() => Ok(names(&schema)),
            _ => py.detach(|| parquet_read::columns(&self.path)).map_err(of_results),
        }
    }

    fn __repr__(&self) -> String {
        format!(
            "<weftline table {:?} in {}; pass it to pyarrow.table, polars.DataFrame or pandas>",
            self.name,
            self.path.display()
        )
    }
}

fn names(schema: &arrow_schema::Schema) -> Vec<String> {
    schema.fields().iter().map(|field| field.name().clone()).collect()
}

/// The table `name` of the run in `dir`: "flows", "series", "queues", "jobs", "ranks" or "telemetry".
#[pyfunction]
pub fn table(dir: PathBuf, name: &str) -> PyResult<Table> {
    let known = TABLES.iter().map(|(known, _)| *known);
    let Some((_, file)) = TABLES.iter().find(|(known, _)| *known == name) else {
        return Err(input(parameters::unknown("table", name, known)));
    };
    let path = dir.join(file);
    if !path.exists() {
        results::file_digests::check_file(&path).map_err(of_results)?;
    }
    let may_be_absent = MAY_BE_ABSENT.contains(&name) && dir.join(flow_table::FILE).exists();
    if !path.exists() && !may_be_absent {
        return Err(input(format!("{}: no such file: expected the folder of a run", path.display())));
    }
    Ok(Table { path, name: name.to_string() })
}

/// Slowdown by flow size, as JSON: `{"bins": [{"size_bytes", "count", "p50", "p95", "p99", "mean", "max"}], "overall": {...}}`.
/// Of the flows of one group, where `group` names one.
#[pyfunction]
#[pyo3(signature = (dir, bins, scheme, group=None))]
pub fn slowdown(
    py: Python<'_>,
    dir: PathBuf,
    bins: Bound<'_, PyAny>,
    scheme: &str,
    group: Option<String>,
) -> PyResult<String> {
    let scheme = scheme_of(&bins, scheme)?;
    py.detach(|| {
        let mut finished = results::slowdown::read(&dir)?;
        if let Some(group) = group {
            let wanted = finished.groups.iter().position(|name| *name == group);
            if wanted.is_none() {
                let known = finished.groups.iter().map(String::as_str);
                return Err(ResultsError::input(parameters::unknown("group", &group, known)));
            }
            let mut of_point = finished.group.into_iter();
            finished.points.retain(|_| of_point.next().map(|number| number as usize) == wanted);
        }
        Ok(results::slowdown::to_json(&finished.points, scheme).to_string())
    })
    .map_err(of_results)
}

/// How flows are put into bins.
fn scheme_of(bins: &Bound<'_, PyAny>, scheme: &str) -> PyResult<Scheme> {
    Ok(match scheme {
        "equal-count" => Scheme::EqualCount(match whole(bins, "bins", "a whole number above 0")? {
            0u32 => return Err(input("bins: expected a whole number above 0, found 0")),
            bins => bins as usize,
        }),
        "decades" => Scheme::Decades,
        other => {
            return Err(input(parameters::unknown(
                "scheme of bins",
                other,
                ["equal-count", "decades"].into_iter(),
            )));
        }
    })
}

/// Slowdown by flow size, as JSON (see [`slowdown`]), of given flows: their ids, sizes in bytes and slowdowns.
#[pyfunction]
pub fn slowdown_of(
    flows: Vec<u32>,
    sizes: Vec<u64>,
    slowdowns: Vec<f64>,
    bins: Bound<'_, PyAny>,
    scheme: &str,
) -> PyResult<String> {
    let scheme = scheme_of(&bins, scheme)?;
    let points: Vec<Point> = flows
        .into_iter()
        .zip(sizes)
        .zip(slowdowns)
        .map(|((flow, size), slowdown)| Point { flow, size, slowdown })
        .collect();
    Ok(results::slowdown::to_json(&points, scheme).to_string())
}

/// The cumulative curve of a number of the finished flows, `[[value, share at or below it], ...]` as JSON: a
/// point for each distinct value, thinned to at most `points` points.
#[pyfunction]
#[pyo3(signature = (dir, column, points=300, group=None))]
pub fn distribution(
    py: Python<'_>,
    dir: PathBuf,
    column: &str,
    points: usize,
    group: Option<String>,
) -> PyResult<String> {
    py.detach(|| {
        let wanted = results::completion::Wanted { group, ..Default::default() };
        let curve = results::distribution::read(&dir, column, &wanted, points)?;
        Ok(results::distribution::to_json(&curve).to_string())
    })
    .map_err(of_results)
}

/// Completion of the flows of `min_size` to `max_size` bytes (none: no bound), as JSON:
/// `{"count", "fct_ns": {"p50", "p95", "p99", "mean", "max"}, "goodput_bps": {..}, "slowdown": {..}, "nfct"}`.
#[pyfunction]
#[pyo3(signature = (dir, min_size=0, max_size=None, group=None))]
pub fn completion(
    py: Python<'_>,
    dir: PathBuf,
    min_size: u64,
    max_size: Option<u64>,
    group: Option<String>,
) -> PyResult<String> {
    let wanted = results::completion::Wanted { min_size, max_size, group };
    py.detach(|| Ok(results::completion::read(&dir, &wanted)?.to_json().to_string())).map_err(of_results)
}

/// Whether deadlines were met, as JSON: `{"count", "met"}` of the flows that have one, of one group or all.
#[pyfunction]
#[pyo3(signature = (dir, group=None))]
pub fn deadlines(py: Python<'_>, dir: PathBuf, group: Option<String>) -> PyResult<String> {
    py.detach(|| {
        let (count, met) = results::deadlines::met(&dir, group.as_deref())?;
        Ok(json!({ "count": count, "met": met }).to_string())
    })
    .map_err(of_results)
}

/// Bytes that had started but not arrived when half of the flows had started and when the last one did, as JSON:
/// `{"half_bytes", "last_bytes", "started_bytes", "half_ns", "last_ns"}`; null unless the goodput of groups was measured.
#[pyfunction]
pub fn backlog(py: Python<'_>, dir: PathBuf) -> PyResult<String> {
    py.detach(|| Ok(json!(results::backlog::read(&dir)?.map(|found| found.to_json())).to_string()))
        .map_err(of_results)
}

/// What every flow whose goodput was measured delivered between two times, as JSON:
/// `[{"flow", "src", "dst", "group", "start_ns", "bytes", "until_ns"}]`.
#[pyfunction]
pub fn shares(py: Python<'_>, dir: PathBuf, from_ns: f64, to_ns: f64) -> PyResult<String> {
    py.detach(|| {
        let shares = results::shares::read(&dir, from_ns, to_ns)?;
        let rows = shares.into_iter().map(|share| {
            json!({
                "flow": share.flow, "src": share.src, "dst": share.dst, "group": share.group,
                "start_ns": share.start_ns, "bytes": share.bytes, "until_ns": share.until_ns,
            })
        });
        Ok(Value::Array(rows.collect()).to_string())
    })
    .map_err(of_results)
}

/// The steps of jobs, as a JSON list of the rows of jobs.parquet; empty for a run without jobs.
#[pyfunction]
pub fn jobs(py: Python<'_>, dir: PathBuf) -> PyResult<String> {
    py.detach(|| results::jobs::read(&dir).map(|rows| rows.to_string())).map_err(of_results)
}

/// Queue length over all ports that were sampled, as JSON:
/// `{"percentiles": {"p50", "p95", "p99", "p999", "max"}, "cdf": [[bytes, share], ...]}`.
#[pyfunction]
pub fn queues(py: Python<'_>, dir: PathBuf) -> PyResult<String> {
    py.detach(|| {
        let histogram = results::queues::read(&dir)?;
        Ok(json!({ "percentiles": results::queues::percentiles(&histogram), "cdf": results::queues::cdf(&histogram) })
            .to_string())
    })
    .map_err(of_results)
}

/// One metric over time, as JSON: `{"entities": {name: [[time_ns, value], ...]}}`.
///
/// Averaged over spans of `every_ns` (0: as recorded), then thinned to at most `max_points` each (0: all).
#[pyfunction]
pub fn series(
    py: Python<'_>,
    dir: PathBuf,
    metric: &str,
    every_ns: f64,
    max_points: Bound<'_, PyAny>,
) -> PyResult<String> {
    let points: u32 = whole(&max_points, "max_points", "a whole number, 0 for all points")?;
    py.detach(|| {
        let entities = results::series::read(&dir, metric, every_ns, points as usize)?;
        let entities = entities.into_iter().map(|(name, points)| (name, json!(points)));
        Ok(json!({ "entities": Value::Object(entities.collect()) }).to_string())
    })
    .map_err(of_results)
}
