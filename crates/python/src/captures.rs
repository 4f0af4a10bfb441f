//! The capture of a run, from frames that come from elsewhere.

use std::path::PathBuf;

use pyo3::prelude::*;
use weftline_results::capture::{CaptureFile, CapturePlan};
use weftline_sim::measure::{Frame, Frames};
use weftline_sim::units::Time;

use crate::errors::{input, of_results};
use crate::scenarios::Scenario;

/// The links that a scenario captures: the port that packets leave by, and the name. With the bytes that are kept
/// of each packet (none: its headers), and those of the whole file. None: it captures no links.
#[pyfunction]
#[allow(clippy::type_complexity)] // as Python takes it
pub fn captured_links(scenario: &Scenario) -> PyResult<Option<(Vec<(String, String)>, Option<u64>, u64)>> {
    let config = scenario.config()?;
    let Some(capture) = &config.measure.capture else { return Ok(None) };
    let topology = &config.topology;
    let ports = capture.ports.iter().map(|&(node, local)| topology.port_name(node, local));
    let names = capture.links(topology).into_iter().map(|(name, _)| name);
    Ok(Some((ports.zip(names).collect(), capture.kept.map(|kept| kept.0), capture.max_bytes.0)))
}

/// Writes `capture.pcapng` with frames in order of time: when each begins in ns, the place of its link among
/// [`captured_links`], its length, what is kept of it. What the summary states of it as JSON, and a warning if
/// the file was full.
#[pyfunction]
pub fn write_capture(
    scenario: &Scenario,
    path: PathBuf,
    frames: Vec<(u64, u16, u32, Vec<u8>)>,
) -> PyResult<(String, Option<String>)> {
    let config = scenario.config()?;
    let mut batch = Frames::default();
    for (ns, link, length, bytes) in frames {
        let from = batch.bytes.len();
        batch.bytes.extend(bytes);
        let bytes = from..batch.bytes.len();
        batch.frames.push(Frame { time: Time::from_ns(ns), link, length, bytes });
    }
    let plan =
        CapturePlan::of(&config).ok_or_else(|| input("measure.pcap: the scenario captures no links"))?;
    let mut file = CaptureFile::create(&path, &plan).map_err(of_results)?;
    file.append(&batch).map_err(of_results)?;
    file.close().map_err(of_results)?;
    Ok((file.summary().to_string(), file.warning()))
}
