//! HULA on real switches: what the programs of the data plane begin with, from a scenario.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use weftline_dataplane::Plain;
use weftline_dataplane::hula::{COUNTS, Switch, probe, switches};
use weftline_sim::balance::hula::HulaParameters;
use weftline_sim::balance::{BalancerConfig, BalancerParameters};
use weftline_sim::packet::Packet;

use crate::errors::input;
use crate::scenarios::Scenario;

/// One switch: see [`weftline_dataplane::hula::Switch`].
#[pyclass(frozen, get_all, module = "weftline._native")]
pub struct HulaSwitch {
    /// Its place among the nodes.
    node: u32,
    config: Py<PyBytes>,
    /// By port, bytes that a full link sends in the time constant.
    whole: Vec<u64>,
    tors: Vec<Py<PyBytes>>,
    /// The probe that it sends first, without the link's addresses, and by which ports.
    probe: Option<Py<PyBytes>>,
    up: u64,
}

/// The switches of a scenario with HULA, and by host the number of its ToR.
#[pyfunction]
pub fn hula_switches(py: Python<'_>, scenario: &Scenario) -> PyResult<(Vec<HulaSwitch>, Vec<u32>, u64)> {
    let config = scenario.config()?;
    let BalancerConfig::Hula(hula) = &config.switch.balancer else {
        return Err(input("switch.balancer.kind: expected \"hula\""));
    };
    let (found, tor_of) = switches(&config, hula).map_err(input)?;
    let switches = found.iter().map(|switch| HulaSwitch::new(py, switch, hula)).collect();
    Ok((switches, tor_of, hula.interval.as_ns() as u64))
}

impl HulaSwitch {
    /// With the probe that a ToR's process sends.
    pub fn new(py: Python<'_>, switch: &Switch, hula: &HulaParameters) -> HulaSwitch {
        let bytes = |bytes: &[u8]| PyBytes::new(py, bytes).unbind();
        let first = || {
            let src = switch.config.own.checked_sub(1)?;
            let packet = Packet { src, size: hula.probe_size, ..Packet::default() };
            probe([0; 12], hula.probe_tag(&packet), &packet)
        };
        HulaSwitch {
            node: switch.node,
            config: bytes(switch.config.bytes()),
            whole: switch.ports.iter().map(|port| port.whole).collect(),
            tors: switch.tors.iter().map(|tor| bytes(tor.bytes())).collect(),
            probe: first().map(|frame| bytes(&frame)),
            up: switch.config.up,
        }
    }
}

/// Names of the counters of HULA's programs, in their order.
#[pyfunction]
pub fn hula_counts() -> Vec<&'static str> {
    COUNTS.to_vec()
}
