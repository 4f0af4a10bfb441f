//! pHost on the paper's network: 144 hosts, nine racks, four cores, 10 and 40 Gb/s, against the exact unit cases and the
//! flows of its authors' simulator.

use crate::common::phost_paper::*;
use crate::common::*;
use proptest::prelude::*;
use weftline_sim::config::{Config, LinkLoss};
use weftline_sim::engine::random::RandomStream;
use weftline_sim::measure::{FlowRecord, Outcome};
use weftline_sim::units::Time;
use weftline_sim::workload::FlowSpec;

/// The paper's network with some settings changed, and these flows on it.
fn paper(sets: &[(&str, &str)], flows: Vec<FlowSpec>) -> Config {
    with_flows("phost", sets, flows)
}

/// Completion times in nanoseconds, in the order of the flows.
fn fct_ns(sets: &[(&str, &str)], flows: Vec<FlowSpec>) -> Vec<u64> {
    let (kept, outcome) = run(paper(sets, flows));
    assert_eq!(sum_of(&outcome, |port| port.packets_dropped), 0);
    completion_times(&kept).iter().map(|fct| (fct.0 + 500) / 1000).collect()
}

#[test]
fn single_flows_take_the_authors_times() {
    let cases = [
        (0, 1, 1, 2_128),
        (0, 17, 1, 2_960),
        (0, 17, 2, 4_160),
        (0, 17, 8, 11_360),
        (0, 17, 9, 14_288),
        (0, 17, 12, 17_888),
        (0, 17, 13, 19_088),
        (0, 1, 8, 10_528),
        (0, 1, 9, 12_624),
        (0, 1, 100, 121_824),
        (0, 143, 100, 123_488),
        (5, 77, 1000, 1_203_489),
    ];
    let start = |at: usize| Time::from_ms(10 * at as u64);
    let flows = cases.iter().enumerate().map(|(at, &(src, dst, n, _))| packets(src, dst, n, start(at)));
    let expected = cases.map(|case| case.3);
    let found = fct_ns(&[], flows.collect());
    assert!(found.iter().zip(&expected).all(|(a, b)| a.abs_diff(*b) <= 1), "{found:?}\n{expected:?}");
}

#[test]
fn two_senders_share_a_receiver_shortest_first() {
    let flows = vec![packets(0, 40, 100, Time::ZERO), packets(20, 40, 20, Time::from_us(1))];
    assert_eq!(fct_ns(&[], flows), [147_488, 27_688]);
}

#[test]
fn a_sender_that_lets_its_tokens_expire_is_downgraded_for_thirty_microseconds() {
    let flows = vec![packets(0, 40, 100, Time::ZERO), packets(0, 60, 20, Time::from_us(1))];
    assert_eq!(fct_ns(&[], flows), [200_288, 27_688]);
}

/// The settings of the authors' runs `phost` and `phost8`.
fn settings_of(protocol: &str) -> [(&'static str, &'static str); 1] {
    [("transport.short_flow", if protocol == "phost8" { "8" } else { "0" })]
}

#[test]
fn short_flows_next_to_a_long_one_take_the_authors_times_with_and_without_priority() {
    for protocol in ["phost", "phost8"] {
        let Some((flows, times, _)) = authors("unit_short_vs_long", protocol) else { return };
        let found = fct_ns(&settings_of(protocol), flows);
        let near = |(found, time): (&u64, &f64)| (*found as f64 - time).abs() <= 1.0;
        assert!(found.iter().zip(&times).all(near), "{protocol}: {found:?}\n{times:?}");
    }
}

/// Slowdowns by the authors' definition, sorted, over 20 seeds of the label counters.
#[test]
#[ignore = "40 runs of 2000 flows: part of make validate"]
fn two_thousand_flows_of_imc10_are_as_slow_as_in_the_authors_simulator() {
    for protocol in ["phost", "phost8"] {
        let Some((flows, times, ideal)) = authors("small_aditya", protocol) else { return };
        let of = |times: &[f64]| summary(times.iter().zip(&ideal).map(|(fct, opt)| fct / opt).collect());
        let (mean, p99) = of(&times);
        let seeds = 1..=20u64;
        let runs: Vec<(f64, f64)> = seeds
            .map(|seed| {
                let config = Config { seed, ..paper(&settings_of(protocol), flows.clone()) };
                let (mut kept, outcome) = run_in(1, config);
                kept.flows.sort_by_key(|flow| flow.flow);
                assert_eq!(sum_of(&outcome, |port| port.packets_dropped), 0);
                let found: Vec<f64> = completion_times(&kept).iter().map(|fct| fct.as_ns()).collect();
                of(&found)
            })
            .collect();
        let average = |of: fn(&(f64, f64)) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
        let (our_mean, our_p99) = (average(|run| run.0), average(|run| run.1));
        println!("{protocol}: mean {our_mean:.4} (authors {mean:.4}), p99 {our_p99:.3} ({p99:.3})");
        assert!((our_mean / mean - 1.0).abs() < 0.015, "{protocol}: mean {our_mean} against {mean}");
        assert!((our_p99 / p99 - 1.0).abs() < 0.10, "{protocol}: p99 {our_p99} against {p99}");
    }
}

/// A small network of two racks, on which links lose packets of these kinds.
fn lossy(kinds: u32, share: f64, seed: u64, sets: &[(&str, &str)]) -> Config {
    let mut config = paper(&[&TWO_RACKS[..], sets].concat(), random_flows(6, 60, seed));
    config.seed = seed;
    config.failures.loss = Some(LinkLoss { share, kinds });
    config
}

#[test]
fn no_flow_is_stuck_whatever_kind_of_packet_links_lose() {
    let (request, token) = (LinkLoss::control(0), LinkLoss::control(1));
    let kinds = [LinkLoss::DATA, LinkLoss::ACKNOWLEDGEMENTS, request, token, LinkLoss::ALL];
    for (number, kinds) in kinds.into_iter().enumerate() {
        for free in ["short", "every"] {
            for share in [0.02, 0.2] {
                // A flow whose acknowledgement is lost again and again has no more payload to deliver.
                let sets = [("transport.free_tokens_for", free), ("run.stall", "10s")];
                let (kept, outcome) = run(lossy(kinds, share, number as u64, &sets));
                let done = kept.flows.iter().filter(|flow| flow.finish.is_some()).count();
                assert_eq!(done, 60, "kind {number} lost at {share}, free tokens for {free}");
                let lost = sum_of(&outcome, |port| port.packets_lost);
                assert!(lost > 0, "nothing of kind {number} was lost");
            }
        }
    }
}

#[test]
fn every_byte_of_a_flow_is_delivered_once_though_packets_are_sent_again() {
    let (kept, _) = run(lossy(LinkLoss::ALL, 0.1, 7, &[]));
    sends_again_only_what_it_must(&kept);
}

#[test]
fn a_flow_with_free_tokens_for_all_does_not_stall() {
    // The paper's free tokens save the round trip that the released code pays: all packets leave back to back.
    let flows: Vec<FlowSpec> =
        [9, 12, 13, 100, 1000].iter().zip(0..).map(|(&n, at)| packets(0, 17, n, Time::from_ms(at))).collect();
    let found = fct_ns(&[("transport.free_tokens_for", "every")], flows);
    // 1.728 us, 1.2 us a packet, and the request before them.
    assert_eq!(found, [9, 12, 13, 100, 1000].map(|n| 1728 + 1200 * n + 32));
}

#[test]
fn links_of_another_age_need_no_other_settings() {
    // 100 Gb/s and 1 us: a round trip takes 70 packets, not 4. Free tokens, window and timers follow.
    let modern = [
        ("topology.host_link", "{ rate = \"100Gbps\", delay = \"1us\" }"),
        ("topology.fabric_link", "{ rate = \"400Gbps\", delay = \"1us\" }"),
    ];
    let flows = vec![packets(0, 17, 2000, Time::ZERO), packets(0, 17, 20, Time::from_ms(1))];
    let found = fct_ns(&modern, flows);
    let request_and_token = 8_000 + 2 * (2 * 3 + 2);
    assert!(found[0].abs_diff(8_000 + 120 * 2000 + request_and_token) < 200, "{found:?}");
    assert!(found[1].abs_diff(8_000 + 120 * 20) < 50, "{found:?}");
}

/// With tokens that live 1.5 packet times, as on the published network, it takes 17 times as long as the link.
#[test]
fn a_source_with_many_destinations_keeps_its_link_busy_where_round_trips_are_long() {
    let flows: Vec<String> =
        (1..33).map(|dst| format!("{{ src = 0, dst = {dst}, size = \"11680B\" }}")).collect();
    let text = format!(
        "[topology]\nkind = \"star\"\nhosts = 33\n[transport]\nkind = \"phost\"\n[[workload]]\nkind = \"flows\"\nflows = [{}]\n",
        flows.join(", ")
    );
    let (kept, _) =
        run(crate::common::load(&text, &[]).expect("a scenario").config().expect("a configuration"));
    let last = completion_times(&kept).into_iter().max().expect("flows");
    let link = Time::from_ns(120 * 8 * 32);
    assert!(last < Time(5 * link.0 / 2), "{last} for {link} of transmission");
}

/// Over six links that store and forward the data of a flow arrive 5.9 packet times after its request.
#[test]
fn a_lone_small_flow_is_sent_once_over_many_links_of_one_rate() {
    for link in ["{ rate = \"1Gbps\", delay = \"200ns\" }", "{ rate = \"10Gbps\", delay = \"200ns\" }"] {
        let flow =
            |n: u64| format!("{{ src = 0, dst = 15, size = \"{}B\", start = \"{}ms\" }}", 1460 * n, 5 * n);
        let flows: Vec<String> = (1..9).map(flow).collect();
        let text = format!(
            "[topology]\nkind = \"fat-tree\"\nk = 4\nhost_link = {link}\nfabric_link = {link}\n\
             [transport]\nkind = \"phost\"\n[[workload]]\nkind = \"flows\"\nflows = [{}]\n",
            flows.join(", ")
        );
        let (kept, _) =
            run(crate::common::load(&text, &[]).expect("a scenario").config().expect("a configuration"));
        let sent: Vec<(u64, u32)> =
            kept.flows.iter().map(|flow| (flow.packets_sent, flow.timeouts)).collect();
        assert_eq!(sent, (1..9).map(|n| (n, 0)).collect::<Vec<_>>(), "{link}");
    }
}

/// The links are 100 us long: the destination of an incast asks for what was dropped a round trip after the
/// time of the free packets, and the bits take 5.3 ms.
#[test]
fn an_incast_takes_little_longer_than_its_bits_where_round_trips_are_long() {
    let text = "[topology]\nkind = \"star\"\nhosts = 17\nhost_link = { rate = \"25Gbps\", delay = \"100us\" }\n\
                [transport]\nkind = \"phost\"\n[[workload]]\nkind = \"incast\"\nreceiver = \"16\"\nsize = \"1MB\"\n";
    let (kept, _) =
        run(crate::common::load(text, &[]).expect("a scenario").config().expect("a configuration"));
    let last = completion_times(&kept).into_iter().max().expect("flows");
    assert!(last < Time::from_us(8000), "{last}");
}

#[test]
fn settings_that_cannot_work_are_refused_with_the_reason() {
    let cases: &[(&[(&str, &str)], &str)] = &[
        (&[("transport.window", "0")], "no flow can send with a window of 0 tokens"),
        (&[("transport.token_life", "0.5")], "tokens that are valid for 0.5 packet times expire while"),
        (
            &[("switch.queue.kind", "fifo")],
            "pHost sends short flows above long ones: set kind = \"priority\"",
        ),
        (&[("transport.class", "6")], "expected a whole number from 1 to 5, found 6"),
        (&[("transport.request_timeout", "1ns")], "expected a time from 1us"),
        (&[("transport.free_tokens_for", "all")], "known: short, every"),
        (&[("transport.controller.kind", "hpcc")], "controller"),
        (&[("transport.polici", "tenant")], "did you mean \"policy\"?"),
        (&[("compat.like", "hpcc-ns3")], "repeats a simulator that has only RDMA"),
    ];
    for (sets, reason) in cases {
        let problems = problems("phost", sets);
        assert!(problems.contains(reason), "{sets:?}: {problems}");
    }
}

#[test]
fn the_resolved_scenario_says_every_setting_and_gives_the_same_settings_again() {
    let lines = [
        "free_tokens = 8",
        "window = 8",
        "token_life = 1.5",
        "retoken = 9.0",
        "downgrade = 25.0",
        "short_flow = 8",
        "request_timeout = \"120us\"",
        "policy = \"shortest-remaining\"",
        "queue = { kind = \"priority\", limit = \"36.864KB\", drop = \"lowest\", trim = \"none\" }",
        "balancer = { kind = \"label\" }",
    ];
    resolves_to_the_same("phost", &[], &lines);
}

#[test]
fn deadlines_and_tenants_decide_who_goes_first_at_both_ends() {
    let [shortest, earliest, in_turn, by_recency] =
        by_policy(|policy, flows| paper(&[("transport.policy", policy)], flows));
    assert!(shortest[1] < Time::from_us(80) && shortest[0] > Time::from_us(190), "{shortest:?}");
    assert!(earliest[0] < Time::from_us(130) && earliest[1] > Time::from_us(190), "{earliest:?}");
    // Each has half of the link until the shorter one is done.
    assert!(in_turn[1] > Time::from_us(140) && in_turn[1] < Time::from_us(160), "{in_turn:?}");
    assert_eq!(in_turn, by_recency);
}

#[test]
fn flows_over_rdma_and_phost_share_hosts_and_all_end() {
    shares_hosts_with_rdma(paper(&[], Vec::new()));
}

#[test]
fn incast_requests_take_the_authors_times() {
    let cases = [(32, "phost"), (32, "phost8"), (128, "phost8")];
    for (senders, protocol) in cases {
        let Some((flows, times, _)) = authors(&format!("incast_N{senders}_10MB"), protocol) else { return };
        let starts: Vec<f64> = flows.iter().map(|flow| flow.start.as_ns()).collect();
        let (mut kept, outcome) = run_in(1, paper(&settings_of(protocol), flows));
        kept.flows.sort_by_key(|flow| flow.flow);
        assert_eq!(sum_of(&outcome, |port| port.packets_dropped), 0);
        let found: Vec<f64> = completion_times(&kept).iter().map(|fct| fct.as_ns()).collect();
        let (ours, theirs) = (fct_and_rct(senders, &starts, &found), fct_and_rct(senders, &starts, &times));
        println!("{senders}, {protocol}: FCT, RCT {ours:?}, authors {theirs:?}");
        assert!((ours.0 / theirs.0 - 1.0).abs() < 0.001, "FCT {ours:?} {theirs:?}");
        assert!((ours.1 / theirs.1 - 1.0).abs() < 0.001, "RCT {ours:?} {theirs:?}");
    }
}

/// 128 senders wait for their turn for milliseconds; the request timeout is 120 us.
#[test]
fn sources_that_wait_for_their_turn_repeat_no_requests() {
    let flows = |start| (0..128).map(move |src| packets(src, 143, 54, start));
    let of = |timeout: &str| {
        let config = paper(&[("transport.request_timeout", timeout)], flows(Time::ZERO).collect());
        let sources = config.topology.hosts()[..128].to_vec();
        let (kept, outcome) = run(config);
        let of_sources = outcome.ports.iter().filter(|(node, ..)| sources.contains(node));
        let sent: u64 = of_sources.map(|(_, _, port)| port.packets_sent).sum();
        let data: u64 = kept.flows.iter().map(|flow| flow.packets_sent).sum();
        (completion_times(&kept), sent - data)
    };
    let (patient, ours) = (of("10s"), of("120us"));
    assert_eq!(ours.1, 128, "requests are repeated");
    let mean = |times: &[Time]| times.iter().map(|time| time.as_ns()).sum::<f64>() / times.len() as f64;
    assert!((mean(&ours.0) / mean(&patient.0) - 1.0).abs() < 1e-6, "{} {}", mean(&ours.0), mean(&patient.0));
}

#[test]
fn sources_and_destinations_may_have_policies_of_their_own() {
    // Two flows of one source to two destinations, the longer one with the earlier deadline.
    let flow = |dst, n, deadline| FlowSpec {
        deadline: Some(Time::from_us(deadline)),
        ..packets(0, dst, n, Time::ZERO)
    };
    let flows = || vec![flow(40, 200, 100), flow(60, 100, 10_000)];
    let of = |sets: &[(&str, &str)]| fct_ns(sets, flows());
    let shortest = of(&[]);
    let deadline = of(&[("transport.policy", "earliest-deadline")]);
    assert!(shortest[1] < shortest[0] && deadline[0] < shortest[0], "{shortest:?} {deadline:?}");
    // Each destination has one flow, so what decides is the source's.
    assert_eq!(of(&[("transport.source_policy", "earliest-deadline")]), deadline);
    let apart =
        [("transport.policy", "earliest-deadline"), ("transport.source_policy", "shortest-remaining")];
    assert_eq!(of(&apart), shortest);
}

#[test]
fn the_time_that_a_flow_takes_alone_is_the_authors_opt() {
    let Some((flows, _, ideal)) = authors("unit_single", "phost8") else { return };
    let (mut kept, _) = run_in(1, paper(&[], flows));
    kept.flows.sort_by_key(|flow| flow.flow);
    let found: Vec<f64> = kept.flows.iter().map(|flow| flow.ideal.as_ns()).collect();
    assert_eq!(found, ideal);
}

#[test]
fn a_workload_may_run_over_another_transport_than_the_scenario() {
    let over = |transport: &str, own: &str| {
        let text = format!(
            "[topology]\nkind = \"star\"\nhosts = 4\n[transport]\n{transport}\n[[workload]]\nkind = \"permutation\"\n\
             size = \"9KB\"\ntransport = {own}\n"
        );
        let scenario = crate::common::load(&text, &[]).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let config = scenario.config().expect("a configuration");
        let (kept, _) = run(config.clone());
        assert!(kept.flows.iter().all(|flow| flow.finish.is_some() && flow.transport == 1));
        (config.transports[0].name(), config.transports[1].name())
    };
    // Nothing is taken from a transport of another kind: `controller` means nothing to pHost, `policy` nothing to RDMA.
    let phost = "{ kind = \"phost\", short_flow = 0 }";
    assert_eq!(over("controller = { kind = \"dctcp\" }", phost), ("rdma", "phost"));
    let rdma = "{ kind = \"rdma\", controller = { kind = \"dctcp\" } }";
    assert_eq!(over("kind = \"phost\"\npolicy = \"earliest-deadline\"", rdma), ("phost", "rdma"));
}

/// Settings drawn from what may be given, as `--set` takes them.
fn drawn(random: &mut RandomStream) -> Vec<(&'static str, String)> {
    let queue = of(random, &["priority", "priority", "fifo"]);
    let short = if queue == "fifo" { "0".to_string() } else { of(random, &["0", "3", "8"]) };
    let limit = of(random, &["0B", "3KB", "6200B", "36KiB"]);
    let mut sets = vec![
        ("topology.leaves", of(random, &["1", "2", "3"])),
        ("topology.spines", of(random, &["1", "2", "3"])),
        ("topology.hosts_per_leaf", of(random, &["2", "3"])),
        ("switch.queue.kind", queue.clone()),
        ("switch.balancer.kind", of(random, &["label", "ecmp", "spray", "destination"])),
        ("switch.pfc.enabled", of(random, &["true", "false", "false"])),
        ("switch.forwarding", of(random, &["cut-through", "ideal-cut-through"])),
        ("transport.free_tokens", of(random, &["0", "1", "8", "30"])),
        ("transport.free_tokens_for", of(random, &["short", "every"])),
        ("transport.window", of(random, &["1", "2", "8", "40"])),
        ("transport.token_life", of(random, &["1.0", "1.5", "20.0"])),
        ("transport.token_interval", of(random, &["0.5", "1.0", "1.03"])),
        ("transport.hold", of(random, &["true", "false"])),
        ("transport.first_wait", of(random, &["0.0", "2.0"])),
        ("transport.retoken", of(random, &["0.0", "9.0", "100.0"])),
        ("transport.downgrade", of(random, &["0.0", "15.0", "25.0"])),
        ("transport.wake_on_data", of(random, &["true", "false"])),
        ("transport.spray", of(random, &["true", "false"])),
        ("transport.request_timeout", of(random, &["10us", "120us"])),
        ("transport.policy", of(random, &["shortest-remaining", "earliest-deadline", "tenant-round-robin"])),
        ("transport.short_flow", short),
        ("run.stall", "10s".to_string()),
    ];
    if queue == "priority" {
        sets.push(("switch.queue.limit", limit));
        sets.push(("switch.queue.drop", of(random, &["lowest", "tail"])));
    }
    sets
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn every_flow_ends_under_any_settings_that_are_taken_though_links_lose_packets_of_any_kind(
        seed in 0u64..1 << 32,
        kinds in prop_oneof![Just(LinkLoss::ALL), 1u32..16],
        percent in 0u32..12,
    ) {
        let mut random = RandomStream::new(seed, "settings");
        let sets = drawn(&mut random);
        let sets: Vec<(&str, &str)> = sets.iter().map(|(key, value)| (*key, &value[..])).collect();
        let config = paper(&sets, Vec::new());
        prop_assert!(every_flow_ends(config, seed, &mut random, kinds, percent), "{:?}", sets);
    }
}

/// Timeouts are counted for the group when they occur, and for the flow when it ends or the run does.
#[test]
fn timeouts_of_flows_that_the_end_of_the_run_cuts_off_are_theirs_too() {
    let mut unfinished = 0;
    for until in ["100us", "300us", "1ms", "3ms"] {
        let (kept, outcome) = run(lossy(LinkLoss::ALL, 0.2, 3, &[("run.until", until)]));
        let of_flows: u64 = kept.flows.iter().map(|flow| u64::from(flow.timeouts)).sum();
        let cut_off = kept.flows.iter().filter(|flow| flow.finish.is_none());
        unfinished += cut_off.map(|flow| flow.timeouts).sum::<u32>();
        let counted: u64 = outcome.losses.iter().map(|losses| losses.timeouts).sum();
        assert_eq!(of_flows, counted, "until {until}");
    }
    assert!(unfinished > 0, "no flow was cut off after a timeout");
}

/// 100 flows of a source wait for its link longer than the request timeout, and repeat requests that had come. One
/// that is lost has its flow wait for the timeout.
#[test]
fn a_repeated_request_is_a_timeout_where_the_first_one_was_lost() {
    let of = |rest: &str| {
        let text = format!("[topology]\nkind = \"star\"\nhosts = 4\n[transport]\nkind = \"phost\"\n{rest}");
        let config = crate::common::load(&text, &[]).expect("a scenario").config().expect("a configuration");
        let (kept, outcome) = run(config);
        let of_flows: u64 = kept.flows.iter().map(|flow| u64::from(flow.timeouts)).sum();
        assert_eq!(of_flows, losses_of(&outcome).timeouts);
        (kept, of_flows)
    };
    let (kept, timeouts) = of("[[workload]]\nkind = \"bulk\"\nhosts = \"0\"\nto = \"1\"\nsize = \"50KB\"\n\
                              flows_per_pair = 100\n");
    assert_eq!((kept.flows.len(), timeouts), (100, 0));
    // Without free tokens the request is all that the source sends.
    let (kept, timeouts) = of("free_tokens = 0\n[[workload]]\nkind = \"flows\"\n\
                              flows = [{ src = 0, dst = 1, size = \"1MB\" }]\n[failures]\ndetection = \"0us\"\n\
                              [[failures.event]]\nat = \"0us\"\nlink = [\"host1\", \"s0\"]\nlasts = \"30us\"\n");
    assert_eq!((kept.flows[0].packets_retransmitted, timeouts), (0, 1));
}

/// A star of hosts at 100 Gb/s with one at 10 Gb/s.
fn with_a_slow_host(flows: &str) -> (Kept, Outcome) {
    let text = format!(
        "[topology]\nkind = \"star\"\nhosts = 4\n[[topology.override]]\nbetween = [\"host0\", \"*\"]\nrate = \"10Gbps\"\n\
         [transport]\nkind = \"phost\"\n[[workload]]\nkind = \"flows\"\nflows = [{flows}]\n"
    );
    run(crate::common::load(&text, &[]).expect("a scenario").config().expect("a configuration"))
}

#[test]
fn a_slow_source_sends_its_packets_once_and_back_to_back() {
    for packets in [1, 5, 8, 9, 50, 1000] {
        let (kept, outcome) =
            with_a_slow_host(&format!("{{ src = 0, dst = 1, size = \"{}B\" }}", 1460 * packets));
        let flow = &kept.flows[0];
        assert_eq!((flow.packets_sent, flow.timeouts), (packets, 0), "{packets} packets");
        assert_eq!(losses_of(&outcome).timeouts, 0, "{packets} packets");
        let slowdown = completion_times(&kept)[0].as_ns() / flow.ideal.as_ns();
        assert!(slowdown < 1.1, "{packets} packets: {slowdown}");
    }
}

#[test]
fn a_slow_source_leaves_the_rest_of_the_destinations_link_to_a_fast_one() {
    let (kept, _) =
        with_a_slow_host("{ src = 0, dst = 2, size = \"200KB\" }, { src = 1, dst = 2, size = \"2MB\" }");
    let slowdown = |flow: &FlowRecord, fct: Time| fct.as_ns() / flow.ideal.as_ns();
    let slowdowns: Vec<f64> =
        kept.flows.iter().zip(completion_times(&kept)).map(|(flow, fct)| slowdown(flow, fct)).collect();
    assert!(slowdowns[0] < 1.1 && slowdowns[1] < 1.2, "{slowdowns:?}");
}

#[test]
fn a_flow_that_begins_while_an_event_slows_its_link_has_the_rate_of_the_link_after_it() {
    let end = |event: &str| {
        let text = format!(
            "[topology]\nkind = \"star\"\nhosts = 2\n[transport]\nkind = \"phost\"\n[[workload]]\nkind = \"flows\"\n\
             flows = [{{ src = 0, dst = 1, size = \"4MB\", start = \"5us\" }}]\n[failures]\nevent = [{event}]\n"
        );
        let (kept, _) =
            run(crate::common::load(&text, &[]).expect("a scenario").config().expect("a configuration"));
        completion_times(&kept)[0]
    };
    let event = |host: u32, rest: &str| {
        end(&format!(
            "{{ at = \"1us\", change = \"rate\", link = [\"host{host}\", \"s0\"], rate = \"10Gbps\"{rest} }}"
        ))
    };
    let own = end("");
    // 96 us at 10 Gb/s instead of 100 Gb/s cost 86 us, and a few packets wait at the end of the event.
    for host in [0, 1] {
        let more = event(host, ", lasts = \"100us\"").saturating_sub(own);
        assert!(more > Time::from_us(80) && more < Time::from_us(100), "host {host}: {more} more than {own}");
    }
    // For good, it is a link of that rate.
    assert!(event(0, "") > Time(9 * own.0));
}

/// Each source has a token from every destination at once, and lets most expire.
#[test]
fn what_is_asked_for_again_without_being_sent_again_is_no_timeout() {
    let text = "[topology]\nkind = \"star\"\nhosts = 16\n[transport]\nkind = \"phost\"\n\
                [[workload]]\nkind = \"all-to-all\"\nsize = \"100KB\"\n";
    let (_, outcome) =
        run(crate::common::load(text, &[]).expect("a scenario").config().expect("a configuration"));
    let losses = losses_of(&outcome);
    assert_eq!((losses.retransmitted, losses.timeouts), (0, 0));
}
