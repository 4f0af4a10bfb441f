//! Scenarios from arbitrary text. Lines before a line `%%` are `--set` arguments, the rest is the file. What loads must
//! be described, built, and load again from its resolved text with the same result.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use weftline_sim::scenario::{Hooks, Scenario};

#[path = "bounds.rs"]
mod bounds;

fuzz_target!(|input: &str| {
    let Some((sets, text)) = bounds::read(input) else { return };
    let load = |text: &str, sets: &[(String, String)]| {
        Scenario::load(text, "fuzz.toml", Path::new("/nonexistent"), sets, None, Hooks::default())
    };
    match load(text, &sets) {
        Ok(scenario) => {
            let config = scenario.config().expect("what was loaded can be built");
            if bounds::is_small(&config.traffic) {
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
