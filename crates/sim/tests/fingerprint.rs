//! The same bits everywhere: fingerprints of small runs, stored in `tests/fingerprints/expected.txt`, equal in debug and
//! release builds and, by `python/tests/test_fingerprints.py`, through the Python module. A change of one is a change of
//! results: it needs its reason in the commit.

mod common;

use std::path::{Path, PathBuf};
use weftline_sim::scenario::{Hooks, Scenario};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fingerprints")
}

fn fingerprint(name: &str) -> String {
    let path = folder().join(format!("{name}.toml"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let scenario = Scenario::load(&text, name, &folder(), &[], None, Hooks::default())
        .unwrap_or_else(|error| panic!("{error}"));
    let (kept, outcome) = common::run(scenario.config().expect("a valid scenario"));
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
        let found = fingerprint(name);
        assert_eq!(found, fingerprint(name), "{name}: two runs differ");
        if found != expected.trim() {
            changed.push(format!("{name} {found} (stored: {expected})"));
        }
    }
    assert!(changed.is_empty(), "changed:\n{}", changed.join("\n"));
}
