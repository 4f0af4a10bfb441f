//! Runs a scenario, keeps nothing, and prints how many packet-hops it was: the loop alone, for a profiler.
//!
//!     cargo run --release -p weftline-sim --example hops -- benches/p8.toml --set workload.0.size=1MB
//!
//! `benches/instructions.py` counts instructions a packet-hop with it.

use std::path::Path;
use std::process::ExitCode;

use weftline_sim::measure::{FlowRecord, Sample, Sink};
use weftline_sim::scenario::{Hooks, Scenario};
use weftline_sim::{Execution, Simulation};

const USAGE: &str = "expected SCENARIO.toml [--set PATH=VALUE]... [--threads N] [--regions N] [--windows true|false] [--estimate true|false]";

/// Takes records and keeps none.
struct Nowhere;

impl Sink for Nowhere {
    fn flows(&mut self, _batch: &[FlowRecord]) -> std::io::Result<()> {
        Ok(())
    }
    fn samples(&mut self, _batch: &[Sample]) -> std::io::Result<()> {
        Ok(())
    }
}

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
    let file = arguments.next().ok_or(USAGE)?;
    let mut sets = Vec::new();
    let mut execution = Execution::default();
    let mut estimated = false;
    while let Some(argument) = arguments.next() {
        let value = arguments.next().ok_or(USAGE)?;
        let number = || value.parse::<usize>().map_err(|_| USAGE);
        match argument.as_str() {
            "--set" => {
                let (path, value) = value.split_once('=').ok_or(USAGE)?;
                sets.push((path.to_owned(), value.to_owned()));
            }
            "--threads" => execution.threads = number()?,
            "--regions" => execution.regions = Some(number()?),
            "--estimate" => estimated = value.parse().map_err(|_| USAGE)?,
            "--windows" => execution.windows = Some(value.parse().map_err(|_| USAGE)?),
            _ => return Err(USAGE.to_owned()),
        }
    }
    let text = std::fs::read_to_string(&file).map_err(|error| format!("{file}: {error}"))?;
    let base = Path::new(&file).parent().unwrap_or(Path::new("."));
    let scenario =
        Scenario::load(&text, &file, base, &sets, None, Hooks::default()).map_err(|e| e.to_string())?;
    let config = scenario.config().map_err(|e| e.to_string())?;
    let simulation = Simulation::new(config, execution).map_err(|e| e.to_string())?;
    if estimated {
        let estimate = scenario.estimate();
        eprintln!("estimated_seconds {:.4}", estimate.seconds);
        if let Some((end, work)) = estimate.if_stalled {
            let seconds = estimate.seconds - estimate.recurring.seconds + work.seconds;
            eprintln!("estimated_seconds_if_stalled {seconds:.4} until {end}");
        }
    }
    let began = std::time::Instant::now();
    let (outcome, balance) =
        simulation.run_balanced(&mut Nowhere, &mut |_| true).map_err(|e| e.to_string())?;
    eprintln!("seconds {:.4}", began.elapsed().as_secs_f64());
    if balance.regions.len() > 1 {
        let events: u64 = balance.regions.iter().map(|region| region.events).sum();
        let crossings: u64 = balance.regions.iter().map(|region| region.crossings).sum();
        let speedup = events as f64 / balance.critical_path.max(1) as f64;
        let (windows, alone) = (balance.windows, balance.share_alone);
        for region in &balance.regions {
            eprintln!("{region:?}");
        }
        let regions = balance.regions.len();
        eprintln!(
            "regions {regions} most_speedup {speedup:.2} windows {windows} crossings {crossings} \
             share_alone {alone:.2} threads_ratio {:.2}",
            balance.threads_ratio.unwrap_or(f64::NAN)
        );
    }
    eprintln!("end {} {:?}", outcome.end, outcome.ending);
    eprintln!("events {}", outcome.events);
    eprintln!("fingerprint {:016x}", outcome.fingerprint);
    Ok(outcome.packet_hops)
}
