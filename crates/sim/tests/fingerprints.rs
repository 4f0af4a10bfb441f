//! The same bits everywhere: small runs of every scheme, with failures, measures and every compat mode. Each case of
//! `fingerprints/cases.toml` is a scenario of that folder with some keys set; `fingerprints/expected.txt` stores what each
//! gives. The bits are equal with any number of threads (a network that cannot be cut, or a compat mode, runs on one), in
//! debug and release builds and, by `python/tests/test_fingerprints.py`, through the Python module.
//!
//! A changed line is a change of results: it needs its reason in the commit. `WEFTLINE_ACCEPT=1` stores what is found.

mod common;

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use weftline_sim::Execution;
use weftline_sim::describe;
use weftline_sim::scenario::{Hooks, Scenario};

/// Cases that run with three and eight threads too, not only with one and two.
const MORE_THREADS: [&str; 6] = [
    "hpcc-leaf-spine",
    "dcqcn-pfc-incast",
    "lossy-spray-selective",
    "failed-link-cut-through",
    "balancer-mp-hula-mptcp",
    "host-all-nics",
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fingerprints")
}

/// A scenario of the folder and what is set in it.
struct Case {
    name: String,
    base: String,
    sets: Vec<(String, String)>,
}

fn cases() -> Vec<Case> {
    let text = std::fs::read_to_string(folder().join("cases.toml")).expect("cases.toml");
    let table: toml::Table = text.parse().expect("TOML");
    let cases = table["case"].as_table().expect("tables [case.NAME]").iter();
    cases
        .map(|(name, case)| Case {
            name: name.clone(),
            base: case["base"].as_str().expect("base").to_string(),
            sets: case.get("set").and_then(|set| set.as_table()).map_or(Vec::new(), |set| {
                set.iter().map(|(key, value)| (key.clone(), value.to_string())).collect()
            }),
        })
        .collect()
}

fn load(case: &Case) -> Scenario {
    let path = folder().join(format!("{}.toml", case.base));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    Scenario::load(&text, &case.name, &folder(), &case.sets, None, Hooks::default())
        .unwrap_or_else(|error| panic!("{}: {error}", case.name))
}

/// What a case gives: flows, samples, digests, frames, counters of ports and the number of events.
fn bits(case: &Case, threads: usize) -> String {
    let config = load(case).config().expect("a valid scenario");
    // Regions are requested, because runs as small as these would otherwise use one thread.
    let execution = Execution { threads, regions: Some(threads), ..Execution::default() };
    let (kept, outcome) = common::run_as(execution, config);
    let declared = describe::counters();
    for counters in outcome.counters.iter().chain(outcome.disciplines.iter().flat_map(|port| port.2.iter())) {
        assert!(declared.contains(&&**counters), "{}: not in the DOC of any scheme: {counters:?}", case.name);
    }
    format!("{:016x} {:016x}", outcome.fingerprint, kept.hash())
}

#[test]
fn the_bits_of_every_case_are_those_that_are_stored() {
    let path = folder().join("expected.txt");
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    let expected = |name: &str| {
        stored.lines().find_map(|line| line.split_once(' ').filter(|(n, _)| *n == name).map(|(_, bits)| bits))
    };
    let mut found = String::from(
        "# Case, fingerprint of flows and counters, hash of samples, digests and captured frames.\n",
    );
    let mut changed = Vec::new();
    for case in cases() {
        let bits_of_one = bits(&case, 1);
        let more: &[usize] = if MORE_THREADS.contains(&case.name.as_str()) { &[2, 3, 4, 8] } else { &[2] };
        for &threads in more {
            assert_eq!(
                bits_of_one,
                bits(&case, threads),
                "{}: another run with {threads} threads",
                case.name
            );
        }
        if expected(&case.name) != Some(&bits_of_one) {
            changed.push(format!("{} {bits_of_one} (stored: {:?})", case.name, expected(&case.name)));
        }
        let _ = writeln!(found, "{} {bits_of_one}", case.name);
    }
    if std::env::var_os("WEFTLINE_ACCEPT").is_some() {
        std::fs::write(&path, found).expect("expected.txt");
        return;
    }
    assert!(changed.is_empty(), "changed (WEFTLINE_ACCEPT=1 stores them):\n{}", changed.join("\n"));
    assert_eq!(stored.lines().count(), found.lines().count(), "expected.txt has cases that there are not");
}

#[test]
fn every_scheme_that_is_listed_is_in_a_case() {
    let mut used = BTreeSet::new();
    for case in cases() {
        let resolved: toml::Table = load(&case).resolved().parse().expect("TOML");
        kinds(&toml::Value::Table(resolved), "", &mut used);
    }
    let mut missing = Vec::new();
    for (list, section) in [
        ("transports", "transport"),
        ("controllers", "transport.controller"),
        ("tcp-controllers", "transport.controller"),
        ("queues", "switch.queue"),
        ("balancers", "switch.balancer"),
        ("topologies", "topology"),
        ("workloads", "workload"),
        ("telemetry", "telemetry"),
    ] {
        for entry in describe::names()[list].as_array().expect("a list") {
            let name = entry["name"].as_str().expect("a name");
            if name != "auto" && !used.contains(&(section.to_string(), name.to_string())) {
                missing.push(format!("{section}.kind = {name}"));
            }
        }
    }
    assert!(missing.is_empty(), "no case in cases.toml: {}", missing.join(", "));
}

/// Every `kind` of a resolved scenario with its section, without the numbers of lists.
fn kinds(value: &toml::Value, path: &str, found: &mut BTreeSet<(String, String)>) {
    match value {
        toml::Value::Table(table) => {
            if let Some(kind) = table.get("kind").and_then(|kind| kind.as_str()) {
                found.insert((path.trim_start_matches("workload.").to_string(), kind.to_string()));
            }
            for (key, value) in table {
                kinds(value, &if path.is_empty() { key.clone() } else { format!("{path}.{key}") }, found);
            }
        }
        toml::Value::Array(list) => list.iter().for_each(|value| kinds(value, path, found)),
        _ => {}
    }
}
