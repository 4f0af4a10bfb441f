//! Files of jobs: what they hold, and their times without a network.

use std::path::PathBuf;

use pyo3::prelude::*;
use weftline_sim::describe;

use crate::errors::input;
use crate::interrupts::interruptible;

/// What a file of GOAL or Chakra holds, as JSON; with `machine` (settings of LogGOPS) also when each rank ends, in ns.
#[pyfunction]
#[pyo3(signature = (path, groups=None, machine=None))]
pub fn import_graph(
    py: Python<'_>,
    path: PathBuf,
    groups: Option<PathBuf>,
    machine: Option<&str>,
) -> PyResult<String> {
    let machine = machine.map(String::from);
    py.detach(|| {
        interruptible(move || {
            describe::rank_lists(&path, groups.as_deref(), machine.as_deref()).map_err(input)
        })
    })
}
