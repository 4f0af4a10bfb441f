//! Queue disciplines that own their port's buffer, in whole runs: everything arrives, every byte is accounted for, and the
//! number of regions is nowhere in the results.

use crate::common::*;
use weftline_sim::config::{Config, QueueConfig, Sampled};
use weftline_sim::measure::{Outcome, Sample};
use weftline_sim::units::Time;

/// Eight senders share a link of a tenth of their rate with whom they send to; only the port into it is managed.
const DUMBBELL: &str = r#"
[topology]
kind = "dumbbell"
left = 8
right = 8
host_link = { rate = "10Gbps", delay = "1us" }
bottleneck_link = { rate = "1Gbps", delay = "5us" }

[switch]
pfc = { enabled = false }

[[switch.port]]
match = "s0->s1"
queue = QUEUE

[transport]
recovery = "selective-repeat"
rto = "2ms"
window = "10KB"
controller = { kind = "none" }

[[workload]]
kind = "incast"
senders = 15
receiver = "host15"
size = "100KB"
arrivals = "periodic"
every = "5ms"
count = 3
"#;

fn config(queue: &str) -> Config {
    let text = DUMBBELL.replace("QUEUE", queue);
    load(&text, &[]).unwrap_or_else(|error| panic!("{queue}: {error}")).config().unwrap()
}

fn dropped(outcome: &Outcome) -> u64 {
    sum_of(outcome, |totals| totals.packets_dropped)
}

#[test]
fn a_pattern_gives_its_port_a_queue_and_leaves_the_others_alone() {
    let config = config("{ kind = \"fifo\", packets = 20 }");
    let (left, right) = (node_named(&config.topology, "s0"), node_named(&config.topology, "s1"));
    let at = |node, towards| config.switch.queue_at(node, port_towards(&config.topology, node, towards));
    assert!(at(left, right).facts().owns_buffer);
    assert_eq!((at(right, left), at(left, 0)), (&QueueConfig::default(), &QueueConfig::default()));
}

/// What a port's discipline tells over time adds up to what it tells at the end; rates are those of the groups.
#[test]
fn series_of_disciplines_add_up_to_their_totals() {
    for (queue, cause) in [
        ("{ kind = \"cebinae\", packets = 40, deadline = \"10us\" }", "drops_filter"),
        ("{ kind = \"codel\", target = \"20us\", interval = \"200us\" }", "drops_early"),
        ("{ kind = \"afq\", rounds = 4, round_bytes = \"2KB\" }", "drops_horizon"),
        ("{ kind = \"fifo\", packets = 20 }", "drops_buffer"),
    ] {
        let mut config = config(queue);
        let left = node_named(&config.topology, "s0");
        let right = node_named(&config.topology, "s1");
        let port = (left, port_towards(&config.topology, left, right));
        config.measure.disciplines = Some(Sampled { what: vec![port], every: Time::from_us(100) });
        let (kept, outcome) = run(config);
        let sum = |metric: &str| -> f64 {
            kept.samples.iter().filter(|s| s.metric == metric).map(|sample| sample.value).sum()
        };
        let end = outcome.end.0 - outcome.end.0 % Time::from_us(100).0;
        for (counter, count) in
            outcome.disciplines[0].2.iter().filter(|c| c.table == "drop_causes").flat_map(|c| c.each())
        {
            let (name, count) = (counter.key, count.unwrap());
            let summed = sum(&format!("drops_{name}"));
            assert!(summed <= count as f64, "{queue}: {name}: {summed} of {count}");
            assert!(
                summed >= count as f64 - 1.0 || end < outcome.end.0,
                "{queue}: {name}: {summed} of {count}"
            );
        }
        assert!(sum(cause) > 0.0, "{queue}: nothing for {cause}");
        for at in kept.samples.iter().filter(|sample| sample.metric == "rate_top_bps") {
            let same = |s: &&Sample| s.time == at.time && s.metric == "rate_bottom_bps";
            let bottom = kept.samples.iter().find(same).unwrap();
            assert_eq!(at.value + bottom.value, 1e9);
        }
        let has = |metric| kept.samples.iter().any(|sample| sample.metric == metric);
        assert_eq!(has("rate_top_bps") && has("saturated_share"), queue.contains("cebinae"));
    }
}

/// Queues that a port may be given, each small enough to drop.
const QUEUES: &[&str] = &[
    "{ kind = \"afq\", rounds = 4, round_bytes = \"2KB\" }",
    "{ kind = \"dualpi2\", packets = 40, target = \"50us\", update = \"50us\", alpha = 5, beta = 200 }",
    "{ kind = \"red\", min_queue = \"10KB\", max_queue = \"20KB\", weight = 0.1, ecn = false }",
    "{ kind = \"codel\", target = \"20us\", interval = \"200us\" }",
    "{ kind = \"fq-codel\", target = \"20us\", interval = \"200us\", queues = 4, ecn = false }",
    "{ kind = \"fq-codel\", packets = 40, queues = 0, nic_packets = 1 }",
    "{ kind = \"drr\", packets = 40 }",
    "{ kind = \"cebinae\", packets = 40, deadline = \"10us\" }",
    "{ kind = \"fifo\", packets = 20 }",
    "{ kind = \"fifo\", limit = \"20KB\", nic_packets = 1, link_header = \"2B\" }",
];

#[test]
fn every_flow_ends_under_every_discipline_however_the_network_is_cut() {
    for queue in QUEUES {
        let (kept, outcome) = run(config(queue));
        assert!(outcome.flows > 20 && outcome.flows_done == outcome.flows, "{queue}: {}", outcome.flows);
        assert!(kept.flows.iter().all(|flow| flow.finish.is_some()), "{queue}");
        assert!(dropped(&outcome) > 0, "{queue}: nothing was dropped");
        // Everything that is dropped at the managed port is dropped for a reason.
        let [(node, local, counted)] = &outcome.disciplines[..] else { panic!("{queue}") };
        let port = outcome.ports.iter().find(|port| (port.0, port.1) == (*node, *local)).unwrap().2;
        let causes = counted.iter().filter(|counters| counters.table == "drop_causes");
        let all: u64 = causes.flat_map(|counters| counters.each()).filter_map(|(_, count)| count).sum();
        assert_eq!(all, port.packets_dropped, "{queue}");
        if counted.iter().any(|counters| counters.table == "cebinae") {
            // One window a round of 2^19 ns, but the first; what was counted is what came.
            let count = |key| counted.get(key).unwrap();
            let rounds = outcome.end.ns() / (1 << 19);
            assert!(count("windows").abs_diff(rounds) <= 2, "{counted:?}, {rounds} rounds");
            assert!(count("windows_saturated") > 0 && count("to_tail") > 0, "{counted:?}");
            assert_eq!(dropped(&outcome), count("dropped_by_filter") + count("dropped_by_buffer"));
        }
    }
}

/// The first warning about a key of a star on which `transport` sends, and `other` as well.
fn warning(key: &str, transport: &str, other: &str, sets: &[(&str, &str)]) -> Option<String> {
    let text = format!(
        "[topology]\nkind = \"star\"\nhosts = 4\nhost_link = {{ rate = \"25Gbps\", delay = \"1us\" }}\n\
         [transport]\nkind = \"{transport}\"\n[[workload]]\nkind = \"permutation\"\nsize = \"1MB\"\n\
         [[workload]]\nkind = \"permutation\"\nsize = \"1MB\"\ntransport = {other}\n"
    );
    let warnings = load(&text, sets).unwrap_or_else(|error| panic!("{error}")).warnings;
    warnings.into_iter().find(|warning| warning.starts_with(key))
}

#[test]
fn long_flows_in_different_classes_of_strict_priority_are_warned_of() {
    let found =
        |other: &str, sets: &[(&str, &str)]| warning("switch.queue: ports serve", "homa", other, sets);
    let text = found("{ kind = \"tcp\" }", &[]).expect("a warning");
    assert!(text.contains("(\"tcp\" in class 1, \"homa\" in class 7)"), "{text}");
    assert_eq!(found("{ kind = \"tcp\", class = 7 }", &[]), None);
    assert_eq!(found("{ kind = \"tcp\" }", &[("switch.queue", "{ kind = \"fifo\" }")]), None);
}

#[test]
fn a_limit_below_what_makes_pfc_pause_is_warned_of() {
    for (kind, limit, expected) in [
        ("pfabric", "36KiB", true),
        ("phost", "36KiB", true),
        ("phost", "30MB", false),
        ("homa", "0B", false),
    ] {
        let mut sets = vec![("switch.pfc.enabled", "true")];
        sets.extend((limit != "0B").then_some(("switch.queue.limit", limit)));
        let found = warning("switch.pfc: ports of s0 drop", kind, &format!("{{ kind = \"{kind}\" }}"), &sets);
        assert_eq!(found.is_some(), expected, "{kind}, {limit}: {found:?}");
    }
}
