//! Hosts with two NICs: equal paths, and a path that is slower.

use super::{goodput, until, watched};
use crate::common::*;
use weftline_sim::config::{Config, Until};
use weftline_sim::topology::Link;
use weftline_sim::units::{Rate, Time};

/// Two hosts with two NICs each, one path from NIC to NIC at 50 Mb/s and 1 ms, the other with this delay.
pub fn two_nics(sets: &[(&str, &str)], delay: Time) -> Config {
    let text = r#"
[topology]
kind = "dumbbell"
left = 1
right = 1
[switch]
queue = { kind = "fifo", packets = 100 }
[transport]
kind = "mptcp"
subflows = 2
controller = { kind = "newreno" }
[[workload]]
kind = "permutation"
size = "1KB"
"#;
    let mut config =
        load(text, sets).unwrap_or_else(|error| panic!("{error}")).config().expect("a configuration");
    // Hosts 0 and 1, switches 2 and 3: each host on each switch.
    let link = |a, b, delay| Link { a, b, rate: Rate::from_mbps(50), delay };
    let fast = Time::from_ms(1);
    config.topology.links = vec![link(0, 2, fast), link(1, 2, fast), link(0, 3, delay), link(1, 3, delay)];
    config.traffic = traffic(vec![flow(0, 1, 1 << 40, Time::ZERO)]);
    until(watched(config, vec![0]), 20)
}

#[test]
fn subflows_leave_by_all_nics_of_a_host() {
    for (subflows, paths) in [("1", 1.0), ("2", 2.0), ("4", 2.0)] {
        let (kept, _) = run(two_nics(&[("transport.subflows", subflows)], Time::from_ms(1)));
        let rate = goodput(&kept, 0, 5, 20);
        println!("{subflows} subflows: {rate:.1} Mb/s");
        assert!((rate / (paths * 47.0) - 1.0).abs() < 0.04, "{subflows} subflows: {rate}");
    }
}

#[test]
fn a_slow_path_does_not_hold_a_buffer_up_where_the_fast_one_helps_out() {
    // 100 ms and 2 ms: 64 KB, of the shared window or to send from, would be full of what the slow path carries.
    for buffer in ["transport.receive_buffer", "transport.send_buffer"] {
        let rate = |opportunistic: &str| {
            let sets = [
                (buffer, "\"64KB\""),
                ("transport.opportunistic", opportunistic),
                ("transport.penalise", opportunistic),
            ];
            let (kept, _) = run(two_nics(&sets, Time::from_ms(50)));
            goodput(&kept, 0, 5, 20)
        };
        let (without, with) = (rate("false"), rate("true"));
        println!("{buffer}: {without:.1} without, {with:.1} Mb/s with");
        assert!(with > 1.5 * without, "{buffer}: {without} and {with}");
    }
}

/// Two hosts with two NICs each: paths of 1 Gb/s and 10 us, and of 10 Mb/s and 5 ms.
pub const UNEQUAL: &str = r#"
[topology]
kind = "hpn"
segments = 1
nodes_per_segment = 2
gpus = 1
planes = 2
spines = 1
host_link = { rate = "1Gbps", delay = "5us" }
[[topology.override]]
between = ["host1", "tor0"]
rate = "10Mbps"
delay = "5ms"
[transport]
kind = "mptcp"
subflows = 2
[[workload]]
kind = "flows"
flows = [{ src = 0, dst = 1, size = "20MB" }]
[measure]
subflows = true
controllers = { flows = [0], every = "10ms" }
"#;

#[test]
fn in_linux_a_slow_path_gets_no_data_because_the_buffer_of_the_fast_one_is_full() {
    let scenario = load(
        UNEQUAL,
        &[
            ("transport.scheduler", "\"linux\""),
            ("measure.queues", "{ every = \"1ms\", ports = \"tor0->host1\" }"),
        ],
    )
    .unwrap_or_else(|e| panic!("{e}"));
    let (kept, _) = run(scenario.config().expect("a configuration"));
    let finish = kept.flows[0].finish.expect("a finished flow");
    let queues =
        kept.samples.iter().filter(|sample| sample.metric == "queue_bytes").map(|sample| sample.value);
    let longest = queues.fold(0.0, f64::max);
    // A burst, and what is left of the one before: not the megabytes that the slow subflow's own buffer has room for.
    assert!(longest > 0.0 && longest < 150e3, "{longest} B, {finish}");
}

#[test]
fn the_window_of_a_subflow_keeps_its_name_when_another_one_goes() {
    let sets = [
        ("transport.rto_min", "\"10ms\""),
        ("transport.fail_after", "1"),
        ("transport.rejoin", "\"10s\""),
        ("failures.event", "[{ at = \"50ms\", link = [\"host0\", \"tor1\"] }]"),
        ("measure.controllers.every", "\"100ms\""),
    ];
    let scenario = load(UNEQUAL, &sets).unwrap_or_else(|error| panic!("{error}"));
    let mut config = scenario.config().expect("a configuration");
    config.until = Until::At(Time::from_ms(2000));
    let (kept, _) = run(config);
    let last = kept.samples.iter().filter(|s| s.time == Time::from_ms(1900));
    let names: Vec<&str> = last.map(|s| s.metric).filter(|name| name.starts_with("subflow")).collect();
    // The first subflow leaves by the NIC whose link fails.
    assert_eq!(names, ["subflows", "subflow1_cwnd_bytes", "subflow1_alpha"]);
}

#[test]
fn every_subflow_has_its_rows() {
    let sets = [
        ("transport.subflows", "32"),
        ("transport.scheduler", "\"round-robin\""),
        ("measure.controllers.every", "\"1ms\""),
    ];
    let scenario = load(UNEQUAL, &sets).unwrap_or_else(|error| panic!("{error}"));
    let (kept, _) = run(scenario.config().expect("a configuration"));
    let ends = |end: &'static str| {
        kept.samples.iter().filter(move |s| s.metric.starts_with("subflow") && s.metric.ends_with(end))
    };
    let (carried, rows): (f64, usize) = (
        ends("_bytes").filter(|s| !s.metric.contains("cwnd")).map(|s| s.value).sum(),
        ends("_bytes").filter(|s| !s.metric.contains("cwnd")).count(),
    );
    let again: f64 = kept.samples.iter().rfind(|s| s.metric == "reinjected_bytes").unwrap().value;
    assert_eq!((carried - again, rows), (20e6, 32));
    assert!(ends("subflow31_cwnd_bytes").count() > 0);
}

/// When a flow of 1 MB ends between two hosts that have a NIC in each of two planes.
fn end(scheduler: &str, reinject: bool, event: &str, detection: &str) -> Option<Time> {
    let text = format!(
        "[topology]\nkind = \"hpn\"\nsegments = 1\nnodes_per_segment = 2\ngpus = 1\nspines = 1\n\
         host_link = {{ rate = \"10Gbps\", delay = \"1us\" }}\n\
         [transport]\nkind = \"mptcp\"\nscheduler = \"{scheduler}\"\nreinject = {reinject}\n\
         [[workload]]\nkind = \"flows\"\nflows = [{{ src = 0, dst = 1, size = \"1MB\" }}]\n\
         [failures]\ndetection = \"{detection}\"\nevent = [{event}]\n[run]\nstall = \"20s\"\n"
    );
    let scenario = load(&text, &[]).unwrap_or_else(|error| panic!("{error}"));
    run(scenario.config().expect("a configuration")).0.flows[0].finish
}

#[test]
fn what_has_not_left_by_a_nic_whose_link_goes_leaves_by_the_other_one() {
    // Subflows that were given data and have nothing in flight have no timeout that tells the others.
    for (scheduler, reinject) in ["min-rtt", "round-robin", "linux"]
        .into_iter()
        .flat_map(|s| [true, false].map(|reinject| (s, reinject)))
    {
        for (at, detection) in [(30, "1000s"), (50, "100us"), (100, "1000s"), (150, "0s"), (300, "100us")] {
            let event = format!("{{ at = \"{at}us\", link = [\"host0\", \"tor0\"] }}");
            let finish = end(scheduler, reinject, &event, detection);
            // What was in flight is sent again after a timeout of 200 ms; in Linux once the subflow is stale, and
            // without reinjection once it is given up, after 3 s.
            let max_ms = match (scheduler, reinject) {
                (_, false) => 3_100,
                ("linux", true) => 2_000,
                _ => 210,
            };
            let ends = finish.is_some_and(|finish| finish < Time::from_ms(max_ms));
            assert!(ends, "{scheduler}, reinject = {reinject}, {at} us, {detection}: {finish:?}");
        }
    }
}

#[test]
fn a_link_that_is_back_soon_costs_one_timeout_or_less() {
    for scheduler in ["min-rtt", "round-robin", "linux"] {
        let back = end(
            scheduler,
            true,
            "{ at = \"100us\", link = [\"host0\", \"tor0\"], lasts = \"50us\" }",
            "10us",
        );
        assert!(back.is_some_and(|end| end < Time::from_ms(300)), "{scheduler}: {back:?}");
    }
}
