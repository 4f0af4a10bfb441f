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

/// Receives, and drops, what comes to the connections of an epoll instance (its descriptor), without the interpreter's
/// lock, until the process ends. Connections are non-blocking; one is closed when its other end has closed it.
#[pyfunction]
#[cfg(target_os = "linux")]
pub fn receive(py: Python<'_>, epoll: i32) {
    py.detach(|| weftline_ports::receive(epoll));
}

/// Finds out whether the engine's hosts can run a task (JSON) with real switches; nothing is opened.
///
/// Errors: what they cannot run, and why.
#[pyfunction]
#[cfg(target_os = "linux")]
pub fn check_hosts(py: Python<'_>, task: &str) -> PyResult<()> {
    use weftline_ports::hosts::Hosts;

    py.detach(|| Hosts::read(task).and_then(Hosts::check)).map_err(input)
}

/// Runs the hosts of a task between real interfaces until their flows are done or SIGTERM comes, and returns what they did, as
/// JSON. Calls `begin` once every interface is open; it returns the time of day, in ns, at which the scenario begins.
///
/// Errors: what cannot be run; an interface that cannot be opened; another system than Linux.
#[pyfunction]
#[cfg(target_os = "linux")]
pub fn serve_hosts(py: Python<'_>, task: &str, begin: Py<PyAny>) -> PyResult<String> {
    use crate::errors::failed;
    use weftline_ports::hosts::Hosts;

    py.detach(|| {
        let hosts = Hosts::read(task).map_err(input)?;
        let ready = || {
            let zero = Python::attach(|py| begin.call0(py)?.extract::<u64>(py));
            zero.map_err(|error| std::io::Error::other(error.to_string()))
        };
        hosts.serve(ready).map_err(failed)
    })
}

/// There are such interfaces on Linux alone.
#[pyfunction]
#[cfg(not(target_os = "linux"))]
pub fn check_hosts(_task: &str) -> PyResult<()> {
    Err(input("hosts between real interfaces need Linux"))
}

/// There are such interfaces on Linux alone.
#[pyfunction]
#[cfg(not(target_os = "linux"))]
pub fn serve_hosts(_task: &str, _begin: Py<PyAny>) -> PyResult<String> {
    Err(input("hosts between real interfaces need Linux"))
}

/// The lab is on Linux alone.
#[pyfunction]
#[cfg(not(target_os = "linux"))]
pub fn receive(_epoll: i32) -> PyResult<()> {
    Err(input("hosts of the lab need Linux"))
}

/// There are such interfaces on Linux alone.
#[pyfunction]
#[cfg(not(target_os = "linux"))]
pub fn serve_ports(_task: &str) -> PyResult<String> {
    Err(input("ports between real interfaces need Linux"))
}
