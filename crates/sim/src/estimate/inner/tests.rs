//! Tests of ends that links between switches other than those of two hosts decide.

use crate::scenario::{Hooks, Scenario};
use std::path::Path;

/// The estimated end in ms.
fn end(topology: &str, workload: &str) -> f64 {
    let text = format!(
        "[topology]\n{topology}\n[transport]\ncontroller = {{ kind = \"dctcp\" }}\n[[workload]]\n{workload}\n"
    );
    let scenario = Scenario::load(&text, "s.toml", Path::new("."), &[], None, Hooks::default());
    scenario.map(|scenario| scenario.estimate().replay.end.as_seconds() * 1e3).unwrap()
}

/// Two pods of eight hosts, each with two links to cores.
fn pods(core: &str) -> String {
    format!(
        "kind = \"clos\"\ntiers = 3\npods = 2\nleaves = 2\nhosts_per_leaf = 4\nhost_link.rate = \"100Gbps\"\n\
         uplinks = 2\ncore_uplinks = 1\ncore_link.rate = \"{core}\""
    )
}

#[test]
fn flows_end_no_earlier_than_the_links_to_the_cores_carry_them() {
    let across = "kind = \"permutation\"\npartners = \"shift\"\nshift = 8\nsize = \"5MB\"";
    // Of each pod 8 x 5000 packets of 1048 B and as many acknowledgements of 60 B over 200 Gb/s.
    let slow = end(&pods("100Gbps"), across);
    let carried = 8.0 * 5000.0 * 1108.0 * 8.0 / 200e9 * 1e3;
    assert!((carried..1.001 * carried).contains(&slow), "{slow} {carried}");
    // The links of hosts decide.
    let fast = end(&pods("800Gbps"), across);
    assert!((0.42..0.45).contains(&fast), "{fast}");
    let within = end(
        &pods("100Gbps"),
        "kind = \"permutation\"\nhosts = \"0-7\"\npartners = \"shift\"\nshift = 4\nsize = \"5MB\"",
    );
    assert!((0.42..0.45).contains(&within), "{within}");
}

#[test]
fn flows_share_the_inner_links_of_their_paths() {
    let line = |long: u32, slow: &str| {
        format!(
            "kind = \"parking-lot\"\nbottlenecks = 3\nlong_hosts = {long}\nhosts_per_hop = 0\nbottleneck_link.rate = \"400Gbps\"\n\
             [[topology.override]]\nbetween = [\"s1\", \"s2\"]\nrate = \"{slow}\""
        )
    };
    let each = "kind = \"bulk\"\nsize = \"20MB\"";
    // 20 000 packets of 1048 B each over 50 Gb/s.
    for long in [1, 2, 4] {
        let carried = f64::from(long) * 20_000.0 * 1048.0 * 8.0 / 50e9 * 1e3;
        let found = end(&line(long, "50Gbps"), each);
        assert!((carried..carried + 0.03).contains(&found), "{long}: {found} {carried}");
    }
    assert_eq!(end(&line(2, "200Gbps"), each), end(&line(2, "400Gbps"), each));
}

#[test]
fn next_hops_that_are_chosen_by_how_busy_they_are_do_not_wait_for_the_slowest() {
    let fabric = "kind = \"leaf-spine\"\nleaves = 2\nspines = 2\nhosts_per_leaf = 8\nfabric_link.rate = \"400Gbps\"\n\
                  [[topology.override]]\nbetween = [\"leaf0\", \"spine1\"]\nrate = \"10Gbps\"\n";
    let across = "kind = \"permutation\"\npartners = \"shift\"\nshift = 8\nsize = \"5MB\"\nrepeat = 4";
    let with =
        |balancer: &str| end(&format!("{fabric}[switch]\nbalancer = {{ kind = \"{balancer}\" }}"), across);
    // Half of 160 MB over 10 Gb/s, and 160 MB over 410 Gb/s.
    let (spray, adaptive) = (with("spray"), with("adaptive"));
    assert!((64.0..75.0).contains(&spray), "{spray}");
    assert!((3.2..4.0).contains(&adaptive), "{adaptive}");
}

#[test]
fn operations_between_pods_take_the_time_of_the_links_to_the_cores() {
    let all = "kind = \"collective\"\noperation = \"all-to-all\"\nalgorithm = \"linear\"\nbytes = \"8MB\"";
    // Of each pod 8 x 8 messages of 500 packets over 200 Gb/s.
    let carried = 64.0 * 500.0 * 1048.0 * 8.0 / 200e9 * 1e3;
    let slow = end(&pods("100Gbps"), all);
    assert!((carried..1.1 * carried).contains(&slow), "{slow} {carried}");
    let fast = end(&pods("800Gbps"), all);
    assert!((0.6..0.7).contains(&fast), "{fast}");
}

#[test]
fn links_up_from_pods_count_in_networks_whose_single_links_are_not_looked_at() {
    // 512 switches with hosts times 10 256 links are more than five million.
    let large = "kind = \"clos\"\ntiers = 3\npods = 8\nleaves = 64\nhosts_per_leaf = 18\nuplinks = 2\ncore_uplinks = 1";
    let across = "kind = \"permutation\"\npartners = \"shift\"\nshift = 1152\nsize = \"100KB\"";
    // Of each pod 1152 x 100 packets and as many acknowledgements over twice 400 Gb/s.
    let carried = 1152.0 * 100.0 * 1108.0 * 8.0 / 800e9 * 1e3;
    let found = end(large, across);
    assert!((carried..1.001 * carried).contains(&found), "{found} {carried}");
}
