//! Steps and targets of controllers that follow from the rate of the NIC and from the round trip of the
//! network: their values, and that a network with four times the rate and a quarter of the delays does the
//! same in a quarter of the time.

use crate::common::*;
use serde_json::{Value, json};
use weftline_sim::measure::Entity;
use weftline_sim::units::Time;

/// A star of hosts at 400 Gb/s, all of which send to host 0. By hand: 4 x 500 ns of links, 2 x 80 ns to send
/// 4000 B.
const STAR: &str = r#"
[topology]
kind = "star"
hosts = 17
host_link = { rate = "400Gbps", delay = "500ns" }

[transport]
mtu = "4KB"
initial_window = 10
controller = { kind = "swift", base_target = "auto" }

[[workload]]
kind = "incast"
receiver = "0"
size = "2MB"
"#;
const AUTO: &str = "{ kind = \"hpcc\", rai = \"auto\" }";

/// The figures of the first transport that `weftline check` prints.
fn checked(text: &str, sets: &[(&str, &str)]) -> Value {
    let scenario = load(text, sets).unwrap_or_else(|error| panic!("{error}"));
    scenario.check()["transports"][0].clone()
}

fn without_window(controller: &str) -> String {
    STAR.replace("initial_window = 10\n", "")
        .replace("{ kind = \"swift\", base_target = \"auto\" }", controller)
}

#[test]
fn check_prints_what_auto_stands_for_on_each_fabric() {
    // (fabric, base RTT in ns by hand, rates of NICs in Gb/s): 4 KB on every link one way, all delays twice.
    let leaf_spine = "{ kind = \"leaf-spine\", leaves = 2, spines = 2, hosts_per_leaf = 9, host_link = { rate = \"800Gbps\", \
                      delay = \"1us\" }, fabric_link = { rate = \"800Gbps\", delay = \"1us\" } }";
    let rail = "{ kind = \"rail\", nodes = 16, gpus = 2, nodes_per_segment = 8, spines = 2, host_link = { rate = \"100Gbps\", \
                delay = \"500ns\" }, fabric_link = { rate = \"200Gbps\", delay = \"2us\" } }";
    let star = "{ kind = \"star\", hosts = 17, host_link = { rate = \"400Gbps\", delay = \"500ns\" } }";
    let fabrics = [
        (star, 2000.0 + 2.0 * 80.0, 400u64),
        (leaf_spine, 8000.0 + 4.0 * 40.0, 800),
        (rail, 10_000.0 + 2.0 * 320.0 + 2.0 * 160.0, 100),
    ];
    for (fabric, base_rtt, gbps) in fabrics {
        let sets = [("topology", fabric)];
        let swift = checked(STAR, &sets);
        assert_eq!(swift["base_rtt_ns"], json!(base_rtt), "{fabric}");
        assert_eq!(swift["base_target_ns"], json!(base_rtt));
        let close = |key: &str, expected: f64| {
            let found = swift[key].as_f64().expect(key);
            assert!((found - expected).abs() < 0.002, "{fabric}, {key}: {found}, expected {expected}");
        };
        close("per_hop_ns", base_rtt / 32.0);
        close("range_ns", base_rtt * 5.0);
        let mbps = |controller: &str, key: &str| {
            checked(&without_window(controller), &sets)[key].as_u64().map(|bps| bps as f64 / 1e6)
        };
        assert_eq!(mbps(AUTO, "rai_bps"), Some(gbps as f64 / 2.0));
        assert_eq!(mbps("{ kind = \"hpcc-pint\", rai = \"auto\" }", "rai_bps"), Some(gbps as f64 / 2.0));
        assert_eq!(mbps("{ kind = \"dcqcn\" }", "rai_bps"), Some(gbps as f64 / 5.0));
        assert_eq!(mbps("{ kind = \"dcqcn\" }", "rhai_bps"), Some(gbps as f64 * 2.0));
        // What is given is not derived.
        assert_eq!(mbps("{ kind = \"hpcc\" }", "rai_bps"), None);
        assert_eq!(mbps("{ kind = \"dcqcn\", rai = \"40Mbps\" }", "rai_bps"), None);
    }
    let given =
        checked(STAR, &[("transport.controller.per_hop", "1us"), ("transport.controller.range", "auto")]);
    assert_eq!((given.get("per_hop_ns"), given["range_ns"].as_f64()), (None, Some(5.0 * 2160.0)));
    // A time of one's own takes what is added from it, too.
    let own = [("transport.controller.base_target", "6550ns"), ("transport.controller.per_hop", "auto")];
    let own = checked(STAR, &own);
    assert_eq!((own["per_hop_ns"].as_f64(), own.get("range_ns")), (Some(1000.0), None));
}

#[test]
fn nics_of_several_rates_have_a_step_each() {
    let two = [("topology.override", "[{ between = [\"host0\", \"s0\"], rate = \"100Gbps\" }]")];
    assert_eq!(checked(&without_window(AUTO), &two)["rai_bps"], json!([50_000_000u64, 200_000_000u64]));
}

#[test]
fn tcp_and_subflows_follow_the_network_too() {
    for kind in ["tcp", "mptcp"] {
        let text = STAR.replace("mtu = \"4KB\"", &format!("kind = \"{kind}\""));
        let found = checked(&text, &[]);
        assert_eq!(found["base_target_ns"], found["base_rtt_ns"], "{kind}");
        let scenario =
            load(&text, &[("workload.0.size", "\"100KB\"")]).unwrap_or_else(|error| panic!("{error}"));
        let (kept, _) = run(scenario.config().expect("a configuration"));
        assert!(kept.flows.iter().all(|flow| flow.finish.is_some()), "{kind}");
    }
}

#[test]
fn what_leaves_queues_no_room_is_refused() {
    let message = |sets: &[(&str, &str)]| load(STAR, sets).err().expect("wrong");
    let hops = message(&[("transport.controller.per_hop", "0s")]);
    assert!(
        hops.contains("transport.controller.per_hop=0s: expected more than 0s with base_target"),
        "{hops}"
    );
    for set in [("transport.controller.law", "released"), ("compat.like", "htsim")] {
        let law = message(&[set]);
        assert!(law.contains("base_target: auto is the round trip of an idle path"), "{law}");
    }
    let word = message(&[("transport.controller.base_target", "automatic")]);
    assert!(word.contains("transport.controller.base_target=automatic: "), "{word}");
    let zero = load(&without_window("{ kind = \"hpcc\", rai = \"0bps\" }"), &[]).err().expect("wrong");
    assert!(zero.contains("transport.controller.rai: must be greater than 0"), "{zero}");
}

#[test]
fn auto_at_the_published_rate_is_the_published_step() {
    let at = |controller: &str| {
        let sets = [("topology.host_link.rate", "100Gbps"), ("workload.0.size", "300KB")];
        let scenario = load(&without_window(controller), &sets).unwrap_or_else(|error| panic!("{error}"));
        run_in(1, scenario.config().expect("a configuration"))
    };
    let (auto, published) = (at(AUTO), at("{ kind = \"hpcc\" }"));
    assert_eq!((auto.0.flows, auto.1.fingerprint), (published.0.flows, published.1.fingerprint));
}

/// Completion times of the incast, and of the queue at its bottleneck what it held at most from a time on.
fn incast(text: &str, sets: &[(&str, &str)], from: Time) -> (Vec<Time>, f64) {
    let every = [("measure.queues", "{ ports = \"s0.*\", every = \"500ns\" }")];
    let sets: Vec<(&str, &str)> = sets.iter().chain(&every).copied().collect();
    let scenario = load(text, &sets).unwrap_or_else(|error| panic!("{error}"));
    let (mut kept, _) = run_in(1, scenario.config().expect("a configuration"));
    kept.flows.sort_by_key(|flow| flow.flow);
    let late = kept.samples.iter().filter(|s| s.metric == "queue_bytes" && s.time >= from);
    let longest = late.map(|sample| sample.value).fold(0.0, f64::max);
    (completion_times(&kept), longest)
}

#[test]
fn a_network_four_times_as_fast_does_the_same_in_a_quarter_of_the_time() {
    let times = |text: &str, rate, delay| {
        let link = [("topology.host_link.rate", rate), ("topology.host_link.delay", delay)];
        let sets: Vec<(&str, &str)> = link.into_iter().chain([("workload.0.size", "500KB")]).collect();
        let times = incast(text, &sets, Time::ZERO).0;
        assert_eq!(times.len(), 16);
        times.iter().map(|time| time.as_ns()).collect::<Vec<f64>>()
    };
    let (slow, fast) = (times(STAR, "100Gbps", "2us"), times(STAR, "400Gbps", "500ns"));
    for (slow, fast) in slow.iter().zip(&fast) {
        assert!((slow / fast / 4.0 - 1.0).abs() < 1e-5, "{slow} ns and {fast} ns");
    }
    // INT counts nanoseconds, of which a packet takes 82 at 400 Gb/s and 3272 at 10 Gb/s. Even there one
    // decides which of two packets leaves first, and single flows end up to 12 % apart; their mean and the
    // last end do not.
    let hpcc = without_window("{ kind = \"hpcc\", rai = \"auto\", min_rate = \"1Mbps\" }");
    let (slow, fast) = (times(&hpcc, "10Gbps", "20us"), times(&hpcc, "40Gbps", "5us"));
    let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len() as f64;
    let last = |times: &[f64]| times.iter().copied().fold(0.0, f64::max);
    for ratio in [mean(&slow) / mean(&fast), last(&slow) / last(&fast)] {
        assert!((ratio / 4.0 - 1.0).abs() < 0.03, "{ratio}");
    }
}

#[test]
fn an_incast_at_400_gbps_fills_its_link_with_a_short_queue() {
    // 16 x 2 MB in packets of 4048 B on the wire; with INT 42 B more.
    let (bdp, packet) = (400e9 / 8.0 * 2.16e-6, 4048.0);
    let settled = Time::from_us(100);
    let last = |times: &[Time]| times.iter().max().expect("flows").as_ns();
    let alone = |wire: f64| 16.0 * 500.0 * wire * 8.0 / 400.0;

    // HPCC: load eta + N rai / C = 0.958 in equilibrium, below 1, where no queue stays: at most a packet of
    // each sender.
    let (times, longest) = incast(&without_window(AUTO), &[], settled);
    let share = alone(packet + 42.0) / last(&times);
    println!("hpcc: {share:.3} of the link, at most {longest} B queued");
    assert!((0.9..=1.0).contains(&share) && longest <= 16.0 * (packet + 42.0), "{share}, {longest} B");

    // Swift: the target at a window of one packet, T (1 + 1 / 32 + 5 (1 - 0.1) / (sqrt(10) - 0.1)), less T,
    // in bytes, and a packet of each sender; the link is never idle.
    let bound = bdp * (1.0 / 32.0 + 5.0 * 0.9 / (10f64.sqrt() - 0.1)) + 16.0 * packet;
    let (times, longest) = incast(STAR, &[], settled);
    let share = alone(packet) / last(&times);
    println!("swift: {share:.3} of the link, at most {longest} B queued, {bound:.0} B allowed");
    assert!((0.95..=1.0).contains(&share) && longest <= bound, "{share}, {longest} B");
    // The target published for slower networks holds five times as much.
    let (_, published) = incast(STAR, &[("transport.controller.base_target", "20us")], settled);
    assert!(published > 5.0 * longest, "{published} B and {longest} B");
}

/// Two hosts, of the same rack and of the other one, send to host 0.
const NEAR_AND_FAR: &str = r#"
[topology]
kind = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 4

[transport]
controller = { kind = "swift", base_target = "auto" }

[[workload]]
kind = "flows"
flows = [{ src = 1, dst = 0, size = "20MB" }, { src = 4, dst = 0, size = "20MB" }]
"#;

#[test]
fn near_and_far_pairs_share_a_link_alike_under_targets_of_their_own_paths() {
    for sets in [&[][..], &[("transport.kind", "tcp")]] {
        let scenario = load(NEAR_AND_FAR, sets).unwrap_or_else(|error| panic!("{error}"));
        let (mut kept, _) = run_in(1, scenario.config().expect("a configuration"));
        kept.flows.sort_by_key(|flow| flow.flow);
        let times: Vec<f64> = completion_times(&kept).iter().map(|time| time.as_us()).collect();
        let ratio = times[0].max(times[1]) / times[0].min(times[1]);
        assert!(ratio < 1.25, "{times:?} us");
    }
}

#[test]
fn the_target_is_the_longest_base_rtt_of_the_flows_own_paths_and_a_part_for_each_switch() {
    // By hand, 1000 B: 80 ns on a link at 100 Gb/s, 20 ns on one at 400. That of spine1 to the second rack has 3 us.
    let sets = [
        ("transport.controller.range", "0s"),
        ("topology.override", "[{ between = [\"leaf1\", \"spine1\"], delay = \"3us\" }]"),
        ("measure.controllers", "{ flows = [0, 1], every = \"20us\" }"),
        ("workload.0.flows", "[{ src = 1, dst = 0, size = \"1MB\" }, { src = 4, dst = 2, size = \"1MB\" }]"),
    ];
    let scenario = load(NEAR_AND_FAR, &sets).unwrap_or_else(|error| panic!("{error}"));
    let (kept, _) = run_in(1, scenario.config().expect("a configuration"));
    let target = |flow: u32| {
        let own = kept.samples.iter().filter(|s| s.metric == "target_ns" && s.entity == Entity::Flow(flow));
        own.map(|sample| sample.value).fold(0.0, f64::max)
    };
    let (near, far) = (4000.0 + 2.0 * 80.0, 12_000.0 + 2.0 * (80.0 + 20.0));
    for (flow, expected) in [(0, near + far / 32.0), (1, far + 3.0 * far / 32.0)] {
        let found = target(flow);
        assert!((found - expected).abs() < 0.01, "flow {flow}: {found}, expected {expected}");
    }
}

#[test]
fn the_target_follows_a_flow_to_the_path_around_a_failure() {
    // By hand: six links and five switches instead of four and three; T stays that of the whole network.
    let failures = "{ event = [{ at = \"100us\", link = [\"leaf0\", \"spine0\"] }, { at = \"100us\", link = [\"leaf1\", \"spine1\"] }] }";
    let sets = [
        ("transport.controller.range", "0s"),
        ("topology.leaves", "3"),
        ("measure.controllers", "{ flows = [0], every = \"20us\" }"),
        ("workload.0.flows", "[{ src = 0, dst = 4, size = \"4MB\" }]"),
        ("failures", failures),
    ];
    let scenario = load(NEAR_AND_FAR, &sets).unwrap_or_else(|error| panic!("{error}"));
    let (kept, _) = run_in(1, scenario.config().expect("a configuration"));
    let targets = kept.samples.iter().filter(|sample| sample.metric == "target_ns");
    let found = targets.map(|sample| sample.value).fold(0.0, f64::max);
    let (around, longest) = (12_000.0 + 2.0 * 80.0 + 4.0 * 20.0, 8_000.0 + 2.0 * (80.0 + 20.0));
    assert!((found - around - 5.0 * longest / 32.0).abs() < 0.01, "{found}");
}

#[test]
fn a_constant_that_was_published_for_another_rate_is_warned_about() {
    let warnings = |text: &str, sets: &[(&str, &str)]| -> Vec<String> {
        let facts = load(text, sets).unwrap_or_else(|error| panic!("{error}")).check();
        let all = facts["warnings"].as_array().expect("a list").iter().filter_map(|one| one.as_str());
        all.filter(|text| text.contains("authors' value")).map(str::to_string).collect()
    };
    let of = |controller: &str, rate: &str| {
        warnings(&without_window(controller), &[("topology.host_link.rate", rate)])
    };
    let found = of("{ kind = \"hpcc\" }", "400Gbps");
    assert_eq!(found.len(), 1, "{found:?}");
    let expected = "transport.controller.rai = 50 Mb/s is the authors' value for their network: with NICs of 400 Gb/s, \"auto\" stands \
                    for 200 Mb/s";
    assert!(
        found[0].replace("Mbps", " Mb/s").replace("Gbps", " Gb/s").replace("  ", " ").starts_with(expected),
        "{found:?}"
    );
    // Within a factor of two, and what the user chose.
    assert!(of("{ kind = \"hpcc\" }", "200Gbps").is_empty());
    assert!(of("{ kind = \"hpcc\", rai = \"60Mbps\" }", "800Gbps").is_empty());
    assert!(of(AUTO, "800Gbps").is_empty());
    assert!(of("{ kind = \"dcqcn\" }", "800Gbps").is_empty());
    // The authors' testbed.
    assert!(of("{ kind = \"hpcc\" }", "25Gbps").is_empty());
    assert!(of("{ kind = \"hpcc\" }", "100Gbps").is_empty());
    // 20 us as the target of a network whose round trip is 2.2 us.
    let swift = STAR.replace(", base_target = \"auto\"", "");
    assert!(warnings(&swift, &[]).iter().any(|text| text.contains("base_target")));
    assert!(warnings(STAR, &[]).is_empty());
    let tcp = [("transport.kind", "tcp"), ("transport.initial_window", "10")];
    assert!(warnings(&swift, &tcp).iter().any(|text| text.contains("base_target")));
}
