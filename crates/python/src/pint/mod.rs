//! PINT: plans, encoders, the collector, accuracy. The crate `pint` does it all; this is its door.

mod accuracy;
pub mod bench;
mod collector;
mod decode;
mod ground;
mod replay;
mod sketches;

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use pint::encoder::Encoder;
use pint::hash::Key;
use pint::layout;
use pint::observed::Walks;
use pint::recorded::CsvWriter;
use pint::utilisation::{Law, Tables};
use pint::vectors;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use weftline_dataplane::{Plain, Port};

use crate::errors::{failed, input, whole};
use crate::interrupts::interruptible;

pub use accuracy::{pint_accuracy, pint_compared};
pub use collector::Collector;
pub use decode::{pint_decode, shared_decoder};
pub use replay::pint_replay;
pub use sketches::{FrequentSketch, QuantileSketch};

/// A plan: which packets serve which queries, and where their bits lie.
#[pyclass(frozen, module = "weftline._native")]
pub struct Plan {
    plan: pint::plan::Plan,
    encoder: Encoder,
}

#[pymethods]
impl Plan {
    /// The plan of a file's text: a plan's own, or queries, for which one is made. `file` is its name in errors.
    #[new]
    fn new(py: Python<'_>, text: String, file: String) -> PyResult<Plan> {
        py.detach(|| {
            let plan = pint::plan::Plan::open(&text, &file).map_err(input)?;
            let encoder = plan.encoder().map_err(|why| input(format!("{file}: {why}")))?;
            Ok(Plan { plan, encoder })
        })
    }

    /// 32 bits that tell plans apart whose digests mean different things.
    #[getter]
    fn version(&self) -> u32 {
        self.plan.version()
    }

    /// The plan as a file.
    fn toml(&self) -> String {
        self.plan.to_toml()
    }

    /// The plan and what to expect of it, for a person.
    fn describe(&self, py: Python<'_>) -> String {
        py.detach(|| self.plan.describe())
    }

    /// The same as JSON.
    fn json(&self, py: Python<'_>) -> String {
        py.detach(|| self.plan.to_json().to_string())
    }

    /// Which pipeline stage each query needs: for a person, and as JSON.
    fn layout(&self, stages: Bound<'_, PyAny>) -> PyResult<(String, String)> {
        let stages = match whole::<u32>(&stages, "stages", "a whole number above 0")? {
            0 => return Err(input("stages: expected a whole number above 0, found 0")),
            stages => stages as usize,
        };
        let layout = layout::layout(&self.plan, stages);
        Ok((layout.to_string(), layout.to_json().to_string()))
    }

    /// The digest after the `hop`-th hop (from 1) of a packet, and whether the hop reports the packet in a loop; `values` has one number
    /// a query.
    fn encode(&self, digest: u64, packet: u64, hop: u32, values: Vec<u64>) -> PyResult<(u64, bool)> {
        let (queries, max) = (self.encoder.tasks().len(), self.plan.queries().hops.maximal);
        if values.len() != queries {
            return Err(input(format!("values: expected {queries}, one a query, found {}", values.len())));
        }
        if hop == 0 || hop > max {
            return Err(input(format!("hop: expected 1 to {max}, found {hop}")));
        }
        for (query, &value) in values.iter().enumerate() {
            if let Some(reason) = self.plan.unfit(query, value) {
                let name = self.plan.queries().queries[query].value.name();
                return Err(input(format!("hop {hop}: {name}: {reason}")));
            }
        }
        Ok(self.encoder.encode_and_report(digest, packet, hop, &values))
    }

    /// What a switch that runs Linux loads as its map `pint_config`; `carriers` are flags of the data plane.
    fn switch_config<'py>(
        &self,
        py: Python<'py>,
        switch_id: u32,
        carriers: u32,
    ) -> PyResult<Bound<'py, PyBytes>> {
        for (number, query) in self.plan.queries().queries.iter().enumerate() {
            let reason = self.plan.unfit(number, switch_id.into());
            if let Some(reason) = reason.filter(|_| query.value == pint::query::Value::SwitchId) {
                return Err(input(format!("switch_id: {reason}")));
            }
        }
        let config = weftline_dataplane::pint::Config::new(&self.plan, switch_id, carriers).map_err(input)?;
        Ok(PyBytes::new(py, config.bytes()))
    }

    /// Names of the queries that a packet serves.
    fn serves(&self, packet: u64) -> Vec<String> {
        let queries = &self.plan.queries().queries;
        let mut names: Vec<String> = Vec::new();
        for field in self.encoder.fields(packet) {
            let name = &queries[usize::from(field.query)].name;
            if names.last() != Some(name) {
                names.push(name.clone());
            }
        }
        names
    }

    fn __repr__(&self) -> String {
        let queries = &self.plan.queries();
        format!(
            "<plan {:08x}: {} queries, {} bits>",
            self.plan.version(),
            queries.queries.len(),
            queries.bits
        )
    }
}

/// An entry of the map `pint_ports`: a port of a rate that keeps its load over a base RTT. `key` gives the load's coins.
#[pyfunction]
#[pyo3(signature = (number, bits_per_second, horizon_ns, key, *, to_hosts, paper))]
pub fn pint_port<'py>(
    py: Python<'py>,
    number: u32,
    bits_per_second: u64,
    horizon_ns: u64,
    key: u64,
    to_hosts: bool,
    paper: bool,
) -> Bound<'py, PyBytes> {
    let law = if paper { Law::Paper } else { Law::Code };
    let port = Port::new(number).with_load(law, Tables::PAPER, bits_per_second, horizon_ns, Key::new(key, 0));
    PyBytes::new(py, if to_hosts { port.to_hosts() } else { port }.bytes())
}

/// Runs the plan's encoders on what hops saw (a CSV file) and writes the digests as CSV; returns how many there are.
#[pyfunction]
pub fn pint_encode(py: Python<'_>, plan: &Plan, path: PathBuf, out: PathBuf) -> PyResult<u64> {
    let plan = plan.plan.clone();
    py.detach(|| {
        interruptible(move || {
            let walks = Walks::new(&plan, opened(&path)?, &path.display().to_string()).map_err(input)?;
            let written = |error: std::io::Error| failed(format!("{}: {error}", out.display()));
            let mut writer = CsvWriter::new(BufWriter::new(created(&out)?)).map_err(written)?;
            let mut count = 0;
            for row in walks {
                writer.write(&row.map_err(input)?).map_err(written)?;
                count += 1;
            }
            writer.finish().and_then(|mut file| file.flush()).map_err(written)?;
            Ok(count)
        })
    })
}

/// The test vectors: those of the functions, and those of whole plans and paths, as JSON.
#[pyfunction]
pub fn pint_vectors(py: Python<'_>) -> (String, String) {
    py.detach(|| (vectors::functions(), vectors::paths()))
}

fn opened(path: &Path) -> PyResult<BufReader<File>> {
    let file = File::open(path).map_err(|error| input(format!("{}: {error}", path.display())))?;
    if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
        return Err(input(format!("{}: is a folder, expected a file", path.display())));
    }
    Ok(BufReader::with_capacity(1 << 16, file))
}

fn created(path: &Path) -> PyResult<File> {
    File::create(path).map_err(|error| failed(format!("{}: {error}", path.display())))
}
