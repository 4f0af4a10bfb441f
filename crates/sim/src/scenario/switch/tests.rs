//! Tests of `switch`.

use super::super::document::{parse, set};
use super::super::section::Findings;
use super::*;
use crate::net::ecn::EcnDefaults;

fn read_text(text: &str, sets: &[(&str, &str)], ecn: EcnDefaults) -> (SwitchConfig, Findings) {
    let mut table = parse(text, "s.toml").unwrap();
    for (path, value) in sets {
        set(&mut table, path, value, "s.toml").unwrap();
    }
    let rates = [Rate::from_gbps(100), Rate::from_gbps(400)];
    let defaults = SwitchDefaults { ecn, ..SwitchDefaults::LOSSLESS };
    let cx = SwitchContext { rules: Rules::none(), defaults, rates: &rates, topology: None, classes: 0 };
    let mut root = Section::root(&table, "s.toml");
    let mut section = root.child("switch");
    let config = read(&mut section, &cx);
    root.absorb("switch", section);
    (config, root.finish())
}

fn problems(text: &str) -> Vec<String> {
    let (_, findings) = read_text(text, &[], EcnDefaults::Ramp);
    findings.problems.iter().map(|p| p.to_string()).collect()
}

#[test]
fn thresholds_follow_the_rate_and_the_controller() {
    let (config, findings) = read_text("", &[], EcnDefaults::Ramp);
    assert!(findings.problems.is_empty());
    let at = |i: usize| (config.ecn[i].kmin.0, config.ecn[i].kmax.0, config.ecn[i].pmax);
    assert_eq!((at(0), at(1)), ((400_000, 1_600_000, 0.2), (1_600_000, 6_400_000, 0.2)));
    let (config, _) = read_text("", &[], EcnDefaults::Step);
    let at = |i: usize| (config.ecn[i].kmin.0, config.ecn[i].kmax.0, config.ecn[i].pmax);
    assert_eq!((at(0), at(1)), ((300_000, 300_000, 1.0), (1_200_000, 1_200_000, 1.0)));
}

#[test]
fn one_table_of_thresholds_holds_for_every_rate() {
    let text = "[switch]\necn = { kmin = \"40KB\", kmax = \"160KB\", pmax = 0.5 }\n";
    let (config, _) = read_text(text, &[], EcnDefaults::Ramp);
    assert!(config.ecn.iter().all(|t| (t.kmin.0, t.kmax.0, t.pmax) == (40_000, 160_000, 0.5)));
    assert_eq!(config.ecn.len(), 2);
}

#[test]
fn wrong_values_get_their_line_and_reason() {
    assert_eq!(
        problems("[switch]\nbuffer = \"0B\"\ncut_through_header = \"64B\"\n"),
        [
            "s.toml:2: switch.buffer: 0B is not a buffer: expected more than 0 and at most 4096MiB",
            "s.toml:3: switch.cut_through_header: has no effect with forwarding = \"store-and-forward\": set \
             forwarding = \"cut-through\"",
        ]
    );
    let known = queues().iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    assert_eq!(
        problems("[switch]\necn = { kmin = \"2MB\" }\nqueue = { kind = \"fifi\" }\n"),
        [
            format!(
                "s.toml:3: switch.queue.kind: unknown queue \"fifi\": did you mean \"fifo\"? (known: {known})"
            ),
            "s.toml:2: switch.ecn.kmin: 2MB is above kmax, which is 1.6MB at 100Gbps".to_string(),
        ]
    );
    assert_eq!(
        problems("[[switch.ecn]]\nrate = \"100Gbps\"\nkmin = \"1MB\"\nkmax = \"2MB\"\n"),
        ["s.toml:1: switch.ecn: no thresholds for links of 400Gbps: add a table for each rate"]
    );
}

#[test]
fn marking_can_be_switched_off_and_stays_off_in_the_resolved_text() {
    let (config, findings) = read_text("[switch]\necn = { enabled = false }\n", &[], EcnDefaults::Ramp);
    assert!(config.ecn.is_empty());
    let text = super::super::resolve::to_toml(&findings.resolved);
    assert!(text.contains("ecn = { enabled = false }"), "{text}");
}

/// A network of 64 leaves and 32 spines with these patterns.
fn scenario_with(ports: &str) -> (crate::scenario::Scenario, std::time::Duration) {
    let text = format!(
        "[topology]\nkind = \"leaf-spine\"\nleaves = 64\nspines = 32\nhosts_per_leaf = 1\n[[workload]]\nkind = \"permutation\"\n{ports}"
    );
    let began = std::time::Instant::now();
    let path = std::path::Path::new(".");
    let loaded = crate::scenario::Scenario::load(&text, "s.toml", path, &[], None, Default::default());
    (loaded.unwrap_or_else(|error| panic!("{error}")), began.elapsed())
}

fn port(pattern: &str, packets: usize) -> String {
    format!("[[switch.port]]\nmatch = \"{pattern}\"\nqueue = {{ kind = \"fifo\", packets = {packets} }}\n")
}

#[test]
fn thousands_of_patterns_of_ports_are_read_in_linear_time() {
    let own: String =
        (0..5000).map(|i| port(&format!("leaf{}->spine{}", i % 64, i / 64 % 32), 100)).collect();
    let wide: String = (0..5000).map(|_| port("leaf*->spine*", 100)).collect();
    let (own, wide) = (scenario_with(&own), scenario_with(&wide));
    for (scenario, time) in [&own, &wide] {
        let limit = if cfg!(debug_assertions) { 20 } else { 2 };
        assert!(*time < std::time::Duration::from_secs(limit), "{time:?}");
        let ports: usize = scenario.switch.port_queues.iter().map(|(ports, _)| ports.len()).sum();
        assert_eq!(ports, 64 * 32);
    }
    // What an equal pattern names later takes all of its ports.
    assert_eq!(wide.0.switch.port_queues.len(), 1);
}

#[test]
fn a_port_has_the_queue_of_the_last_pattern_that_names_it() {
    let patterns =
        [port("leaf*", 10), port("leaf0->spine*", 20), port("leaf0->spine1", 30), port("leaf1->spine1", 40)];
    let (scenario, _) = scenario_with(&(patterns.concat() + &port("leaf1->spine1", 50)));
    let packets = |name: &str| {
        let found = scenario.network.topology.ports_matching(name).expect("ports");
        format!("{:?}", scenario.switch.queue_at(found[0].0, found[0].1))
    };
    for (name, expected) in [
        ("leaf2->spine0", 10),
        ("leaf1->spine0", 10),
        ("leaf0->spine0", 20),
        ("leaf0->spine1", 30),
        ("leaf1->spine1", 50),
    ] {
        assert!(packets(name).contains(&expected.to_string()), "{name}: {}", packets(name));
    }
    assert_eq!(scenario.switch.port_queues.len(), 4, "nothing has the queue of 40 packets");
}
