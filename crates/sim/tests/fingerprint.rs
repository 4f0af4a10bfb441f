//! The same bits everywhere: fingerprints of small runs, stored in `tests/fingerprints/expected.txt`, equal with any
//! number of threads, in debug and release builds and, by `python/tests/test_fingerprints.py`, through the Python module.
//! A change of one is a change of results: it needs its reason in the commit.

mod common;

use std::path::{Path, PathBuf};
use weftline_sim::config::Compat;
use weftline_sim::scenario::{Hooks, Scenario};
use weftline_sim::simulation::{Execution, Plan};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fingerprints")
}

fn fingerprint(name: &str, threads: usize) -> String {
    let path = folder().join(format!("{name}.toml"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let scenario = Scenario::load(&text, name, &folder(), &[], None, Hooks::default())
        .unwrap_or_else(|error| panic!("{error}"));
    let config = scenario.config().expect("a valid scenario");
    // Regions are asked for, as runs as small as these would otherwise go on with one thread.
    let execution = Execution { threads, regions: Some(threads), ..Execution::default() };
    if config.compat == Compat::HpccNs3 && threads > 1 {
        let plan = Plan::of(&config, execution);
        let why = plan.why_fewer.expect("the reason");
        assert!(plan.threads == 1 && why.contains("hpcc-ns3"), "{why}");
    }
    let (kept, outcome) = common::run_as(execution, config);
    assert_eq!(outcome.flows_done, outcome.flows, "{name}: unfinished flows");
    assert_eq!(kept.flows.len() as u64, outcome.flows);
    format!("{:016x}", outcome.fingerprint)
}

#[test]
fn fingerprints_are_those_that_are_stored() {
    let stored = std::fs::read_to_string(folder().join("expected.txt")).expect("expected.txt");
    let mut changed = Vec::new();
    for line in stored.lines().filter(|line| !line.starts_with('#')) {
        let (name, expected) = line.split_once(' ').expect("`name fingerprint` on each line");
        let found = fingerprint(name, 1);
        for threads in [1, 2, 3, 8] {
            assert_eq!(found, fingerprint(name, threads), "{name}: another run with {threads} threads");
        }
        if found != expected.trim() {
            changed.push(format!("{name} {found} (stored: {expected})"));
        }
    }
    assert!(changed.is_empty(), "changed:\n{}", changed.join("\n"));
}
