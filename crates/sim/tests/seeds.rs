//! What a run's seed moves: the paths and queues that hashes choose for flows.

use crate::common::*;
use std::path::Path;
use weftline_sim::measure::Outcome;
use weftline_sim::units::Time;

/// Sixteen flows that are listed individually cross four spines.
fn listed(balancer: &str, seed: u64) -> (Vec<Time>, Outcome) {
    let flow = |at: u32| {
        format!("{{ src = {}, dst = {}, size = \"50KB\", start = \"0us\" }}", at % 8, 8 + (at * 3) % 8)
    };
    let flows: Vec<String> = (0..16).map(flow).collect();
    let text = format!(
        "[topology]\nkind = \"leaf-spine\"\nleaves = 2\nspines = 4\nhosts_per_leaf = 8\n[transport]\ncontroller = {{ kind = \
         \"none\" }}\n[switch]\nbalancer = {{ kind = \"{balancer}\" }}\n[[workload]]\nkind = \"flows\"\nflows = [{}]\n",
        flows.join(", ")
    );
    let scenario = load(&text, &[("seed", &seed.to_string())]).unwrap_or_else(|error| panic!("{error}"));
    let (kept, outcome) = run(scenario.config().expect("a configuration"));
    (completion_times(&kept), outcome)
}

/// Data packets that left the first leaf by each of its links to spines.
fn spines(outcome: &Outcome) -> Vec<u64> {
    let leaf = outcome.ports.iter().map(|port| port.0).find(|&node| node >= 16).expect("a switch");
    outcome
        .ports
        .iter()
        .filter(|port| port.0 == leaf && port.1 >= 8)
        .map(|port| port.2.packets_sent)
        .collect()
}

#[test]
fn listed_flows_take_other_paths_under_other_seeds() {
    for balancer in ["ecmp", "clove", "presto"] {
        let runs: Vec<_> = (1..=8).map(|seed| listed(balancer, seed)).collect();
        let mut all: Vec<_> = runs.iter().map(|(times, outcome)| (times.clone(), spines(outcome))).collect();
        all.sort();
        all.dedup();
        assert!(all.len() >= 5, "{balancer}: {} different runs of 8", all.len());
        // Twice the same seed is twice the same run.
        assert_eq!(listed(balancer, 5), runs[4], "{balancer}");
    }
}

/// With the seed that scenarios have where they name none, hashes are what the salt alone makes of them.
#[test]
fn seed_one_adds_nothing_to_a_salt() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fingerprints");
    let text = std::fs::read_to_string(folder.join("hpcc-leaf-spine.toml")).expect("a scenario");
    let fingerprint = |seed: &str| {
        let scenario = load_in(&folder, &text, &[("seed", seed)]).unwrap_or_else(|error| panic!("{error}"));
        run(scenario.config().expect("a configuration")).1.fingerprint
    };
    // As it was when no seed entered the hash.
    assert_eq!(format!("{:016x}", fingerprint("1")), "725ace24692e375b");
    assert_ne!(fingerprint("1"), fingerprint("2"));
}

/// Sixteen hosts send to one that serves flows in turn: which of them share a queue is the hash's doing.
#[test]
fn listed_flows_share_other_queues_under_other_seeds() {
    let flow = |at: u32| format!("{{ src = {at}, dst = 16, size = \"200KB\", start = \"0us\" }}");
    let flows: Vec<String> = (0..16).map(flow).collect();
    for queue in ["kind = \"fq-codel\", queues = 8", "kind = \"afq\", sketch_slots = 8"] {
        let text = format!(
            "[topology]\nkind = \"star\"\nhosts = 17\n[transport]\nkind = \"tcp\"\n[switch]\nqueue = {{ {queue} }}\npfc = {{ \
             enabled = false }}\n[[workload]]\nkind = \"flows\"\nflows = [{}]\n",
            flows.join(", ")
        );
        let times = |seed: &str| {
            let scenario = load(&text, &[("seed", seed)]).unwrap_or_else(|error| panic!("{error}"));
            completion_times(&run(scenario.config().expect("a configuration")).0)
        };
        let mut all: Vec<_> = ["1", "2", "3", "4"].map(times).into();
        all.sort();
        all.dedup();
        assert!(all.len() > 2, "{queue}");
    }
}
