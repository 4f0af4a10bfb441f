//! pFabric on the pHost paper's network: 144 hosts, nine racks, four cores, 10 and 40 Gb/s, against the exact unit cases and
//! the flows of the authors' simulator; and flows that end whatever is lost.

use crate::common::phost_paper::{self, authors, packets, problems, summary, with_flows};
use crate::common::*;
use weftline_sim::config::Config;
use weftline_sim::scenario::Scenario;
use weftline_sim::units::Time;
use weftline_sim::workload::FlowSpec;

fn load(sets: &[(&str, &str)]) -> Scenario {
    phost_paper::load("pfabric", sets)
}

/// The paper's network with some settings changed, and these flows on it.
fn paper(sets: &[(&str, &str)], flows: Vec<FlowSpec>) -> Config {
    with_flows("pfabric", sets, flows)
}

/// Completion times in nanoseconds, in the order of the flows.
fn fct_ns(sets: &[(&str, &str)], flows: Vec<FlowSpec>) -> Vec<u64> {
    let (kept, _) = run(paper(sets, flows));
    completion_times(&kept).iter().map(|fct| (fct.0 + 500) / 1000).collect()
}

#[test]
fn the_published_network_has_the_published_windows_queues_and_timeout() {
    let resolved = load(&[]).resolved().to_string();
    for line in [
        "initial_window = 12",
        "max_window = 15",
        "rto = \"45us\"",
        "queue_limit = \"36.864KB\"",
        "probe_after = 0",
        "kind = \"pfabric\", limit = \"36.864KB\"",
    ] {
        assert!(resolved.contains(line), "{line}\n{resolved}");
    }
}

#[test]
fn single_flows_take_the_authors_times() {
    let cases = [
        (0, 1, 1, 2_096),
        (0, 17, 1, 2_928),
        (0, 17, 2, 4_128),
        (0, 17, 8, 11_328),
        (0, 17, 9, 12_528),
        (0, 17, 12, 16_128),
        (0, 17, 13, 17_328),
        (0, 1, 8, 10_496),
        (0, 1, 9, 11_696),
        (0, 1, 100, 120_896),
        (0, 143, 100, 121_728),
        (5, 77, 1000, 1_201_728),
    ];
    let start = |at: usize| Time::from_ms(10 * at as u64);
    let flows = cases.iter().enumerate().map(|(at, &(src, dst, n, _))| packets(src, dst, n, start(at)));
    let expected = cases.map(|case| case.3);
    let found = fct_ns(&[], flows.collect());
    assert!(found.iter().zip(&expected).all(|(a, b)| a.abs_diff(*b) <= 1), "{found:?}\n{expected:?}");
}

/// To the nanosecond.
fn equal(found: &[u64], expected: &[f64]) {
    let close = |(a, b): (&u64, &f64)| (*a as f64 - b).abs() <= 1.0;
    assert!(
        found.len() == expected.len() && found.iter().zip(expected).all(close),
        "{found:?}\n{expected:?}"
    );
}

#[test]
fn two_senders_share_a_receiver_shortest_first() {
    let flows = vec![packets(0, 40, 100, Time::ZERO), packets(20, 40, 20, Time::from_us(1))];
    equal(&fct_ns(&[], flows), &[145_728.0, 25_928.0]);
}

#[test]
fn a_sender_serves_its_shorter_flow_first() {
    let flows = vec![packets(0, 40, 100, Time::ZERO), packets(0, 60, 20, Time::from_us(1))];
    let found = fct_ns(&[], flows);
    // The long flow 0.4 % later than the authors' 145 728 ns: their first window leaves the NIC in a scrambled order, and
    // the short flow's burst pushes other packets of it out. The spec allows 2 % for that.
    assert_eq!(found[1], 25_928);
    assert!((found[0] as f64 / 145_728.0 - 1.0).abs() < 0.02, "{found:?}");
}

#[test]
fn short_flows_next_to_a_long_one_take_the_authors_times() {
    let Some((flows, times, _)) = authors("unit_short_vs_long", "pfabric") else { return };
    equal(&fct_ns(&[], flows), &times);
}

/// Slowdowns by the authors' definition, over 20 seeds of the label counters.
#[test]
#[ignore = "20 runs of 2000 flows: part of make validate"]
fn two_thousand_flows_of_imc10_are_as_slow_as_in_the_authors_simulator() {
    let Some((flows, times, ideal)) = authors("small_aditya", "pfabric") else { return };
    let of = |times: &[f64]| summary(times.iter().zip(&ideal).map(|(fct, opt)| fct / opt).collect());
    let (mean, p99) = of(&times);
    let mut drops = 0;
    let runs: Vec<(f64, f64)> = (1..=20u64)
        .map(|seed| {
            let config = Config { seed, ..paper(&[], flows.clone()) };
            let (mut kept, outcome) = run_in(1, config);
            kept.flows.sort_by_key(|flow| flow.flow);
            drops += sum_of(&outcome, |port| port.packets_dropped);
            let found: Vec<f64> = completion_times(&kept).iter().map(|fct| fct.as_ns()).collect();
            of(&found)
        })
        .collect();
    let average = |of: fn(&(f64, f64)) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
    let (our_mean, our_p99) = (average(|run| run.0), average(|run| run.1));
    println!(
        "mean {our_mean:.4} (authors {mean:.4}), p99 {our_p99:.3} ({p99:.3}), {} drops (4715)",
        drops / 20
    );
    assert!((our_mean / mean - 1.0).abs() < 0.015, "mean {our_mean} against {mean}");
    assert!((our_p99 / p99 - 1.0).abs() < 0.10, "p99 {our_p99} against {p99}");
}

#[test]
#[ignore = "a run of 320 flows of 10 MB in all to each of ten receivers: part of make validate"]
fn an_incast_takes_as_long_as_in_the_authors_simulator() {
    let Some((flows, times, _)) = authors("incast_N32_10MB", "pfabric") else { return };
    let of = |times: &[f64]| {
        let requests = times.chunks(32).map(|request| request.iter().copied().fold(0.0, f64::max));
        (times.iter().sum::<f64>() / times.len() as f64, requests.sum::<f64>() / 10.0)
    };
    let (mut kept, outcome) = run_in(1, paper(&[], flows));
    kept.flows.sort_by_key(|flow| flow.flow);
    let found: Vec<f64> = completion_times(&kept).iter().map(|fct| fct.as_ns()).collect();
    let ((mean, request), (their_mean, their_request)) = (of(&found), of(&times));
    let drops = sum_of(&outcome, |port| port.packets_dropped);
    println!(
        "mean {mean:.0} ({their_mean:.0}), request {request:.0} ({their_request:.0}), {drops} drops (37852)"
    );
    assert!((mean / their_mean - 1.0).abs() < 0.01, "mean {mean} against {their_mean}");
    assert!((request / their_request - 1.0).abs() < 0.01, "requests {request} against {their_request}");
}

#[test]
fn settings_that_cannot_work_are_refused_with_the_reason() {
    let cases = [
        ("transport.initial_window", "0", "a window of 0 would never send"),
        ("transport.max_window", "5", "5 is less than initial_window, which is 12"),
        ("transport.rto", "4us", "4us expires before an answer can arrive: the longest base RTT is 4.52us"),
        ("transport.rto", "0s", "expected a time from 1us"),
        ("transport.queue_limit", "1KB", "expected room for a packet, 1.5KB"),
        ("transport.mtu", "20KB", "out of range"),
        ("transport.priority", "urgent", "unknown value \"urgent\""),
        ("transport.intial_window", "3", "did you mean \"initial_window\"?"),
        ("transport.window", "12KB", "window"),
        ("switch.queue.limit", "0B", "0B is not a valid limit"),
        ("compat.like", "hpcc-ns3", "repeats a simulator that has only RDMA"),
    ];
    for (key, value, reason) in cases {
        let found = problems("pfabric", &[(key, value)]);
        assert!(found.contains(reason), "{key} = {value}: {found}");
    }
}

#[test]
fn another_queue_deserves_a_look_and_no_more() {
    let scenario = load(&[("switch.queue", "{ kind = \"fifo\" }")]);
    assert!(
        scenario.warnings.iter().any(|warning| warning.contains("kind = \"pfabric\"")),
        "{:?}",
        scenario.warnings
    );
    assert!(load(&[]).warnings.is_empty());
}

#[test]
fn faster_and_longer_links_have_larger_windows_and_queues_by_default() {
    // 100 Gb/s and 1 us: a base RTT of 8 us and 2 * (116.8 + 29.2) ns, 1.83 times the published; ten times the rate.
    let modern = [
        ("topology.host_link", "{ rate = \"100Gbps\", delay = \"1us\" }"),
        ("topology.fabric_link", "{ rate = \"400Gbps\", delay = \"1us\" }"),
    ];
    let resolved = load(&modern).resolved().to_string();
    let lines =
        ["initial_window = 220", "max_window = 275", "queue_limit = \"676.275KB\"", "rto = \"82.553097us\""];
    for line in lines {
        assert!(resolved.contains(line), "{line}\n{resolved}");
    }
    let config = load(&modern).config().expect("a configuration");
    assert_eq!(config.switch.queue.name(), "pfabric");
    assert_eq!(config.switch.queue.facts().capacity, Some(weftline_sim::units::Bytes(676_275)));
    let (kept, _) = run(paper(&modern, vec![packets(0, 17, 2000, Time::ZERO)]));
    assert!(kept.flows[0].finish.unwrap() - kept.flows[0].start == kept.flows[0].ideal);
}

/// The buffer refuses packets long before the queue has reached its limit.
#[test]
fn a_full_shared_buffer_drops_the_packets_with_the_largest_remaining_size_too() {
    let text = r#"
        topology = { kind = "star", hosts = 10, host_link = { rate = "10Gbps", delay = "1us" } }
        transport = { kind = "pfabric" }
        switch = { buffer = "100KB", queue = { kind = "pfabric", limit = "1MB" } }
        [[workload]]
        kind = "incast"
        receiver = "9"
        hosts = "0-7,9"
        size = "300KB"
        [[workload]]
        kind = "flows"
        group = "short"
        flows = [
          { src = 8, dst = 9, size = "1KB", start = "30us" },
          { src = 8, dst = 9, size = "1KB", start = "60us" },
          { src = 8, dst = 9, size = "1KB", start = "300us" },
        ]
    "#;
    let scenario = crate::common::load(text, &[]).unwrap_or_else(|error| panic!("{error}"));
    let (kept, outcome) = run(scenario.config().expect("a configuration"));
    assert!(sum_of(&outcome, |port| port.packets_dropped) > 50);
    let short: Vec<_> = kept.flows.iter().filter(|flow| flow.size == 1000).collect();
    assert_eq!(short.len(), 3);
    for flow in short {
        let fct = flow.finish.expect("an end") - flow.start;
        assert_eq!(flow.packets_retransmitted, 0);
        // The packet that is being sent when it comes.
        assert!(fct <= flow.ideal + Time::from_ns(1_210), "{fct}, alone {}", flow.ideal);
    }
}

/// A window is a number of bytes, whatever the packets: too many overflow the NIC's own queue, too few leave
/// the link idle.
#[test]
fn a_lone_flow_of_any_mtu_is_sent_once_and_takes_its_ideal_time() {
    for rate in ["1Gbps", "10Gbps", "100Gbps", "400Gbps"] {
        for mtu in [64u64, 256, 1460, 4000, 8900] {
            let text = format!(
                r#"
                topology = {{ kind = "star", hosts = 2, host_link = {{ rate = "{rate}", delay = "1us" }} }}
                transport = {{ kind = "pfabric", mtu = "{mtu}B" }}
                [[workload]]
                kind = "flows"
                flows = [{{ src = 0, dst = 1, size = "{}B", start = "0us" }}]
                "#,
                500 * mtu
            );
            let scenario = crate::common::load(&text, &[]).unwrap_or_else(|error| panic!("{error}"));
            let (kept, outcome) = run(scenario.config().expect("a configuration"));
            let flow = kept.flows[0];
            let text = format!("{rate}, {mtu} B: {:?}", (flow.packets_sent, flow.timeouts));
            assert_eq!((flow.packets_sent, flow.packets_retransmitted, flow.timeouts), (500, 0, 0), "{text}");
            assert_eq!(sum_of(&outcome, |port| port.packets_dropped), 0, "{text}");
            assert_eq!(completion_times(&kept)[0], flow.ideal, "{text}");
        }
    }
}
