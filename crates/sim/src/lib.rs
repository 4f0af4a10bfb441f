//! weftline's simulator: scenario → build → run → results.

#[macro_use]
mod registry;

pub mod balance;
mod build;
mod capture;
mod clock;
pub mod compat;
pub mod config;
pub mod congestion;
pub mod counters;
pub mod describe;
pub mod doc;
pub mod engine;
pub mod estimate;
pub mod external;
mod files;
mod ideal;
pub mod machine;
pub mod measure;
pub mod net;
pub mod packet;
pub mod parameters;
pub mod queue;
mod run;
pub mod scenario;
pub mod schemes;
pub mod telemetry;
pub mod topology;
pub mod transport;
pub mod units;
pub mod why;
pub mod wire;
pub mod workload;

pub use build::{Execution, Surroundings, each_switch};
pub use capture::tag;
pub use net::passing::Passing;
pub use run::alone::World;
pub use run::{Plan, RunError, Simulation};

use config::Config;
use measure::{Outcome, Progress, Sink};

/// Builds a network and runs it on one thread. `watch` is called with the progress about ten times per
/// second; the run stops when it returns false.
pub fn run(
    config: Config,
    sink: &mut dyn Sink,
    watch: &mut dyn FnMut(&Progress) -> bool,
) -> Result<Outcome, RunError> {
    Simulation::new(config, Execution::default())?.run(sink, watch)
}
