//! MP-HULA on real switches: what its programs begin with, from a scenario.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use weftline_dataplane::Plain;
use weftline_dataplane::mphula::{COUNTS, switches};
use weftline_sim::balance::BalancerConfig;

use crate::errors::input;
use crate::hula::HulaSwitch;
use crate::scenarios::Scenario;

/// Switches, the entry of `mphula_config` of each, by host the number of its ToR, and the probe interval in ns.
type Switches = (Vec<HulaSwitch>, Vec<Py<PyBytes>>, Vec<u32>, u64);

/// The switches of a scenario with MP-HULA.
#[pyfunction]
pub fn mphula_switches(py: Python<'_>, scenario: &Scenario) -> PyResult<Switches> {
    let config = scenario.config()?;
    let BalancerConfig::MpHula(settings) = &config.switch.balancer else {
        return Err(input("switch.balancer.kind: expected \"mp-hula\""));
    };
    let (found, tor_of) = switches(&config, settings).map_err(input)?;
    let (switches, own) = found
        .iter()
        .map(|(switch, own)| {
            (HulaSwitch::new(py, switch, &settings.hula), PyBytes::new(py, own.bytes()).unbind())
        })
        .unzip();
    Ok((switches, own, tor_of, settings.hula.interval.as_ns() as u64))
}

/// Names of the counters of MP-HULA's programs, in their order.
#[pyfunction]
pub fn mphula_counts() -> Vec<&'static str> {
    COUNTS.to_vec()
}
