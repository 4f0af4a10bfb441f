//! Scenarios as people write them, from text to the end of the run.

use std::path::Path;

use weftline_sim::measure::{Ending, FlowRecord, Sample, Sink};
use weftline_sim::scenario::{Hooks, Scenario};

#[derive(Default)]
struct Collected {
    flows: Vec<FlowRecord>,
    samples: usize,
}

impl Sink for Collected {
    fn flows(&mut self, batch: &[FlowRecord]) -> std::io::Result<()> {
        self.flows.extend_from_slice(batch);
        Ok(())
    }
    fn samples(&mut self, batch: &[Sample]) -> std::io::Result<()> {
        self.samples += batch.len();
        Ok(())
    }
}

/// Runs a scenario; the fingerprint and what it recorded.
fn run(text: &str, sets: &[(&str, &str)]) -> (u64, Collected) {
    let sets: Vec<(String, String)> = sets.iter().map(|(p, v)| (p.to_string(), v.to_string())).collect();
    let scenario = Scenario::load(text, "s.toml", Path::new("."), &sets, None, Hooks::default())
        .unwrap_or_else(|error| panic!("{error}"));
    let mut collected = Collected::default();
    let config = scenario.config().unwrap();
    let outcome =
        weftline_sim::run(config, &mut collected, &mut |_| true).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(outcome.ending, Ending::Done);
    assert_eq!(outcome.flows, outcome.flows_done);
    (outcome.fingerprint, collected)
}

const SCENARIO: &str = r#"
[topology]
kind = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 4

[[workload]]
kind = "poisson"
sizes = "fb-hadoop"
load = 0.5
duration = "100us"

[measure]
queues = { ports = "leaf0.*" }
"#;

#[test]
fn a_scenario_of_ten_lines_runs_with_every_controller() {
    for controller in ["hpcc", "dcqcn", "timely", "dctcp", "none"] {
        let (_, collected) = run(SCENARIO, &[("transport.controller.kind", controller)]);
        assert!(!collected.flows.is_empty() && collected.samples > 0, "{controller}");
        assert!(collected.flows.iter().all(|flow| flow.finish.is_some()), "{controller}");
    }
}

#[test]
fn the_resolved_scenario_gives_the_same_bits() {
    let sets = [("transport.controller.kind", "dcqcn"), ("seed", "7"), ("switch.balancer.kind", "spray")];
    let (first, _) = run(SCENARIO, &sets);
    let owned: Vec<(String, String)> = sets.iter().map(|(p, v)| (p.to_string(), v.to_string())).collect();
    let resolved = Scenario::load(SCENARIO, "s.toml", Path::new("."), &owned, None, Hooks::default())
        .unwrap_or_else(|error| panic!("{error}"));
    let (second, _) = run(resolved.resolved(), &[]);
    assert_eq!(first, second);
}
