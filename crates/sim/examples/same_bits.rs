//! Runs a scenario once for each number of threads and prints what came out, one line of JSON a run: the bits of one line are
//! those of every other, also of another build. `make random` compares them; a debug build checks the assertions too.
//!
//!     cargo run -p weftline-sim --example same_bits -- benches/p8.toml 1 2 4

use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;

use kept::{Hash, Kept};
use weftline_sim::scenario::{Hooks, Scenario};
use weftline_sim::{Execution, Simulation};

#[path = "../tests/common/kept.rs"]
mod kept;

const USAGE: &str = "expected SCENARIO.toml THREADS...";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(file) = arguments.next() else { return refused(USAGE) };
    for argument in arguments {
        let Ok(threads) = argument.parse() else { return refused(USAGE) };
        match bits(&file, threads) {
            Ok(line) => println!("{line}"),
            Err(message) => return refused(&message),
        }
    }
    ExitCode::SUCCESS
}

fn refused(message: &str) -> ExitCode {
    eprintln!("error: {message}");
    ExitCode::from(2)
}

/// Runs the scenario in as many regions as threads, which work in step with an even share of these numbers and event by event
/// with the others.
fn bits(file: &str, threads: usize) -> Result<String, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    let base = Path::new(file).parent().unwrap_or(Path::new("."));
    let scenario =
        Scenario::load(&text, file, base, &[], None, Hooks::default()).map_err(|e| e.to_string())?;
    let config = scenario.config().map_err(|e| e.to_string())?;
    let execution = Execution { threads, regions: Some(threads), windows: Some(threads % 4 == 0) };
    let simulation = Simulation::new(config, execution).map_err(|e| e.to_string())?;
    let mut kept = Kept::default();
    let began = std::time::Instant::now();
    let outcome = simulation.run(&mut kept, &mut |_| true).map_err(|e| e.to_string())?;
    let seconds = began.elapsed().as_secs_f64();
    let mut all = String::new();
    let _ = write!(all, "{:?} {outcome:?}", kept.flows);
    let mut hash = Hash::default();
    hash.bytes(all.as_bytes());
    Ok(format!(
        "{{\"threads\":{threads},\"fingerprint\":\"{:016x}\",\"outcome\":\"{:016x}\",\"records\":\"{:016x}\",\
         \"hops\":{},\"seconds\":{seconds:.4}}}",
        outcome.fingerprint,
        hash.0,
        kept.hash(),
        outcome.packet_hops
    ))
}
