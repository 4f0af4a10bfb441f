//! Scenarios at the edge of what can be simulated: they end, with a result or with the reason.

mod common;

use std::path::Path;

use common::Kept;
use weftline_sim::measure::{Ending, Outcome};
use weftline_sim::scenario::{Hooks, Scenario};
use weftline_sim::simulation::{self, RunError};

const STAR: &str = "[topology]\nkind = \"star\"\nhosts = 3\n[transport]\nkind = \"rdma\"\n";

fn run(workload: &str) -> (Result<Outcome, RunError>, Kept) {
    let text = format!("{STAR}{workload}");
    let loaded = Scenario::load(&text, "edge.toml", Path::new("."), &[], None, Hooks::default());
    let config = loaded.and_then(|scenario| scenario.config()).unwrap_or_else(|error| panic!("{error}"));
    let mut kept = Kept::default();
    let result = simulation::run(config, &mut kept, &mut |_| true);
    (result, kept)
}

#[test]
fn a_run_that_outlives_the_clock_fails_and_keeps_what_it_has() {
    // 46 days between two operations: the third begins after 92 days, the fourth after 138.
    let (result, kept) = run(
        "[[workload]]\nkind = \"collective\"\nbytes = \"3KB\"\ncompute = \"4000000s\"\nrepeat = 5\n[run]\nstall = \
         \"4000000s\"\ngrid = \"1000s\"\n",
    );
    let error = result.expect_err("beyond the clock").to_string();
    assert!(error.starts_with("simulated time passed 107 days"), "{error}");
    assert_eq!(kept.flows.iter().filter(|flow| flow.finish.is_some()).count(), 3 * 12);
}

#[test]
fn time_without_flows_costs_no_events() {
    let (result, _) = run("[[workload]]\nkind = \"permutation\"\nsize = \"1KB\"\nstart = \"3999999s\"\n");
    let outcome = result.expect("a run");
    assert_eq!((outcome.ending, outcome.flows_done), (Ending::Done, 3));
    assert!(outcome.events < 1000, "{}", outcome.events);
}
