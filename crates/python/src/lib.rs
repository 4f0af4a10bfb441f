//! The native module `weftline._native`: types in, types out, progress and interrupts. Nothing is decided here.
//!
//! Results come as JSON text, which Python parses, or as Arrow streams, which every data frame library takes. What is
//! wrong with the input is an `InputError`, a run that could not be completed a `RunFailed`; both carry the whole
//! message.

use pyo3::prelude::*;

/// For [`module!`], which is expanded in another crate.
pub use pyo3;
/// The simulator: what a scheme of another crate is written against.
pub use weftline_sim as sim;

mod bench;
mod captures;
mod collect;
mod controllers;
mod errors;
mod file_digests;
mod flow_cache;
mod graphs;
mod hula;
mod instructions;
mod interrupts;
mod law_notes;
mod mphula;
pub mod own;
mod pint;
mod ports;
mod programs;
mod runs;
mod scenarios;
mod speed;
mod tables;
mod why;

#[pymodule]
mod _native {
    use super::*;

    #[pymodule_export]
    use crate::bench::{bench, bench_scenario, workloads};
    #[pymodule_export]
    use crate::captures::{captured_links, write_capture};
    #[pymodule_export]
    use crate::collect::{LiveCollector, collect, write_rows};
    #[pymodule_export]
    use crate::file_digests::{
        FolderClaim, check_file, check_files, cover_file, decode_tables, digest, seal_is_whole, sealed,
        stamps, sync_files, write_digests,
    };
    #[pymodule_export]
    use crate::flow_cache::flow_cache;
    #[pymodule_export]
    use crate::graphs::import_graph;
    #[pymodule_export]
    use crate::hula::{HulaSwitch, hula_counts, hula_switches};
    #[pymodule_export]
    use crate::mphula::{mphula_counts, mphula_switches};
    #[pymodule_export]
    use crate::pint::{
        Collector, FrequentSketch, Plan, QuantileSketch, pint_accuracy, pint_compared, pint_decode,
        pint_encode, pint_port, pint_replay, pint_vectors,
    };
    #[pymodule_export]
    use crate::ports::{check_hosts, check_ports, receive, serve_hosts, serve_ports};
    #[pymodule_export]
    use crate::programs::{ecn_counts, ecn_ports, int_counts, int_port, int_switch};
    #[pymodule_export]
    use controllers::{Ack, Flow, Hop};
    #[pymodule_export]
    use scenarios::{Scenario, explain, names, schema};
    #[pymodule_export]
    use tables::{
        Table, backlog, completion, counters, deadlines, distribution, jobs, queues, series, shares,
        slowdown, slowdown_of, table,
    };

    /// The version of weftline.
    #[pyfunction]
    fn version() -> &'static str {
        env!("CARGO_PKG_VERSION")
    }

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        let py = module.py();
        module.add("InputError", py.get_type::<errors::InputError>())?;
        module.add("DamagedError", py.get_type::<errors::DamagedError>())?;
        module.add("RunFailed", py.get_type::<errors::RunFailed>())
    }
}
