//! Runs a scenario into a folder, as `weftline run` does: loop and tables, for a profiler.
//!
//!     cargo run --release -p weftline-results --example record -- benches/fat320-dctcp.toml FOLDER --set telemetry.kind=pint

use std::path::Path;
use std::process::ExitCode;

use weftline_results::{About, Names, RunFolder, Stopwatch};
use weftline_sim::scenario::{Hooks, Scenario};
use weftline_sim::{Execution, Simulation};

const USAGE: &str = "expected SCENARIO.toml FOLDER [--set PATH=VALUE]...";

fn main() -> ExitCode {
    match packet_hops(std::env::args().skip(1)) {
        Ok(hops) => {
            println!("packet_hops {hops}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}

/// Runs what the command line names.
fn packet_hops(mut arguments: impl Iterator<Item = String>) -> Result<u64, String> {
    let (file, folder) = (arguments.next().ok_or(USAGE)?, arguments.next().ok_or(USAGE)?);
    let mut sets = Vec::new();
    while let Some(argument) = arguments.next() {
        let value = arguments.next().filter(|_| argument == "--set").ok_or(USAGE)?;
        let (path, value) = value.split_once('=').ok_or(USAGE)?;
        sets.push((path.to_owned(), value.to_owned()));
    }
    let text = std::fs::read_to_string(&file).map_err(|error| format!("{file}: {error}"))?;
    let base = Path::new(&file).parent().unwrap_or(Path::new("."));
    let scenario =
        Scenario::load(&text, &file, base, &sets, None, Hooks::default()).map_err(|e| e.to_string())?;
    let config = scenario.config().map_err(|e| e.to_string())?;
    let mut results = RunFolder::create(Path::new(&folder), true, About::default(), Names::of(&config))
        .map_err(|e| e.to_string())?;
    let simulation = Simulation::new(config, Execution::default()).map_err(|e| e.to_string())?;
    let stopwatch = Stopwatch::start(1);
    let outcome = simulation.run(&mut results, &mut |_| true).map_err(|e| e.to_string())?;
    let hops = outcome.packet_hops;
    results.finish(&outcome, &stopwatch.read()).map_err(|e| e.to_string())?;
    Ok(hops)
}
