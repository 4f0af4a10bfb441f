//! Scenarios from arbitrary text. Lines before a line `%%` are `--set` arguments, the rest is the file. What loads must
//! be described, built, and load again from its resolved text with the same result.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use weftline_sim::scenario::{Hooks, Scenario};
use weftline_sim::workload::Traffic;

/// Larger networks cost the fuzzer seconds and memory and teach nothing; beyond the limit of nodes they are refused.
const TEDIOUS: std::ops::RangeInclusive<i64> = 9..=1_000_000;

fuzz_target!(|input: &str| {
    let (sets, text) = input.split_once("\n%%\n").unwrap_or(("", input));
    let sets: Vec<(String, String)> = sets
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(path, value)| (path.to_string(), value.to_string()))
        .collect();
    let wholesale = |(path, value): &(String, String)| {
        path.trim().starts_with("topology") && has_tedious(&format!("value = {value}"), "value")
    };
    if has_tedious(text, "topology") || sets.iter().any(wholesale) {
        return;
    }
    let load = |text: &str, sets: &[(String, String)]| {
        Scenario::load(text, "fuzz.toml", Path::new("/nonexistent"), sets, None, Hooks::default())
    };
    match load(text, &sets) {
        Ok(scenario) => {
            let config = scenario.config().expect("what was loaded can be built");
            if is_small(config.traffic) {
                scenario.check();
            }
            let again = match load(scenario.resolved(), &[]) {
                Ok(again) => again,
                Err(error) => panic!("{error}\n{}", scenario.resolved()),
            };
            assert_eq!(again.resolved(), scenario.resolved());
        }
        Err(error) => assert!(!error.problems.is_empty() && !error.to_string().is_empty()),
    }
});

/// Whether the flows are few; the product counts up to 50 million of them.
fn is_small(traffic: Traffic) -> bool {
    let mut left = 20_000u32;
    for mut source in traffic.sources {
        while source.next().is_some() {
            if left == 0 {
                return false;
            }
            left -= 1;
        }
    }
    true
}

/// Whether a tedious number stands anywhere below `key`.
fn has_tedious(text: &str, key: &str) -> bool {
    let Ok(table) = text.parse::<toml::Table>() else { return false };
    table.get(key).is_some_and(tedious)
}

fn tedious(value: &toml::Value) -> bool {
    match value {
        toml::Value::Integer(number) => TEDIOUS.contains(number),
        toml::Value::Array(items) => items.iter().any(tedious),
        toml::Value::Table(table) => table.values().any(tedious),
        _ => false,
    }
}
