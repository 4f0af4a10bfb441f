//! INT and ECN on real switches: what the programs of the data plane begin with.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use weftline_dataplane::{Plain, Port, ecn, int, stack};
use weftline_sim::config::{EcnMarker, MarkedAt};
use weftline_sim::units::Rate;

use crate::errors::input;
use crate::scenarios::Scenario;

/// The entry of the map `int_config` of a switch between hosts that send and read INT themselves.
#[pyfunction]
pub fn int_switch(py: Python<'_>, node: u32) -> PyResult<Bound<'_, PyBytes>> {
    let config = int::Config::new(node, stack::BITMAP, stack::DOMAIN_BITMAP, 1);
    let config = config.ok_or_else(|| input("INT: the values do not fit a hop"))?;
    Ok(PyBytes::new(py, config.bytes()))
}

/// An entry of the map `int_ports`: a port of a rate.
#[pyfunction]
pub fn int_port(py: Python<'_>, number: u32, bits_per_second: u64) -> Bound<'_, PyBytes> {
    let mut port = Port::new(number);
    port.bits_per_second = bits_per_second;
    PyBytes::new(py, port.bytes())
}

/// Names of the counters of INT's programs, in their order.
#[pyfunction]
pub fn int_counts() -> Vec<&'static str> {
    int::COUNTS.to_vec()
}

/// By rate in bit/s the entry of the map `ecn_ports` of a scenario's ports; none for a rate whose ports mark nothing.
#[pyfunction]
pub fn ecn_ports(py: Python<'_>, scenario: &Scenario, rates: Vec<u64>) -> PyResult<Vec<Option<Py<PyBytes>>>> {
    let config = scenario.config()?;
    let at = config.switch.ecn.first().map_or(MarkedAt::Arrival, |threshold| threshold.at);
    let entry = |rate: u64| {
        let marker = EcnMarker::for_rate(&config.switch.ecn, Rate(rate.max(1)), at);
        ecn::Port::of(marker.thresholds()).map(|port| PyBytes::new(py, port.bytes()).unbind())
    };
    Ok(rates.into_iter().map(entry).collect())
}

/// Names of the counters of ECN's program, in their order.
#[pyfunction]
pub fn ecn_counts() -> Vec<&'static str> {
    ecn::COUNTS.to_vec()
}
