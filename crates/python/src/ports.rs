//! `weftline lab`: ports of the engine between real interfaces.

use pyo3::prelude::*;
use weftline_ports::plan::Plan;

use crate::errors::input;

/// Finds out whether ports can be made of a task (JSON); nothing is opened.
///
/// Errors: what cannot be served, and why.
#[pyfunction]
pub fn check_ports(py: Python<'_>, task: &str) -> PyResult<()> {
    py.detach(|| Plan::read(task)).map(drop).map_err(input)
}

/// Serves the ports of a task until SIGTERM and returns what they did, as JSON. Writes the line `ready` once every
/// interface is open.
///
/// Errors: what cannot be served; an interface that cannot be opened; another system than Linux.
#[pyfunction]
#[cfg(target_os = "linux")]
pub fn serve_ports(py: Python<'_>, task: &str) -> PyResult<String> {
    use crate::errors::failed;
    use std::io::Write;

    py.detach(|| {
        let plan = Plan::read(task).map_err(input)?;
        let ready = || {
            let mut out = std::io::stdout();
            // A closed pipe is ignored: the parent sends SIGTERM then.
            let _ = writeln!(out, "ready").and_then(|()| out.flush());
        };
        weftline_ports::serve(plan, ready).map_err(failed)
    })
}

/// There are such interfaces on Linux alone.
#[pyfunction]
#[cfg(not(target_os = "linux"))]
pub fn serve_ports(_task: &str) -> PyResult<String> {
    Err(input("ports between real interfaces need Linux"))
}
