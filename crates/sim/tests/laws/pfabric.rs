//! pFabric: flows end whatever queues, buffers and links lose, the same in any number of regions.

use crate::common::*;
use proptest::prelude::*;
use std::path::Path;
use weftline_sim::config::{Config, Failures, LinkLoss};
use weftline_sim::scenario::{Hooks, Scenario};
use weftline_sim::topology::Topology;
use weftline_sim::units::Time;
use weftline_sim::workload::FlowSpec;

/// Three racks of four hosts, two spines, at 100 Gb/s; keys of `[transport]` and `[switch]`.
fn racks(transport: &str, switch: &str, flows: Vec<FlowSpec>) -> Config {
    let text = format!(
        "[topology]\nkind = \"leaf-spine\"\nleaves = 3\nspines = 2\nhosts_per_leaf = 4\n\
         [transport]\nkind = \"pfabric\"\n{transport}\n[switch]\n{switch}\n\
         [[workload]]\nkind = \"permutation\"\nsize = \"1KB\"\n"
    );
    let scenario = Scenario::load(&text, "racks.toml", Path::new("."), &[], None, Hooks::default());
    let config = scenario.unwrap_or_else(|error| panic!("{error}")).config().expect("a configuration");
    Config { traffic: traffic(flows), ..config }
}

/// Runs twice, the second time cut into regions: all flows end, and what was sent twice is known.
fn finished(config: Config) -> Kept {
    let (kept, outcome) = run(config);
    assert_eq!(outcome.flows_done, outcome.flows, "{:?}", outcome.ending);
    for flow in &kept.flows {
        assert_eq!(flow.packets_sent, flow.size.div_ceil(1460) + flow.packets_retransmitted);
    }
    kept
}

fn again(kept: &Kept) -> u64 {
    kept.flows.iter().map(|flow| flow.packets_retransmitted).sum()
}

fn incast(senders: u32, size: u64) -> Vec<FlowSpec> {
    (1..=senders).map(|src| flow(src, 0, size, Time::ZERO)).collect()
}

#[test]
fn the_shortest_flow_of_an_incast_hardly_notices_the_others() {
    let mut flows = incast(8, 1_000_000);
    flows.push(flow(9, 0, 20_000, Time::from_us(100)));
    let kept = finished(racks("", "", flows));
    assert!(again(&kept) > 0);
    let short = &kept.flows[8];
    let fct = short.finish.unwrap() - short.start;
    assert!(fct.0 < short.ideal.0 * 11 / 10, "{fct} for {}", short.ideal);
    // The long ones share what is left: the last ends when all bytes have come, and a little later.
    let last = kept.flows.iter().filter_map(|flow| flow.finish).max().unwrap();
    assert!(last.as_us() > 8.0 * 80.0 && last.as_us() < 8.0 * 80.0 * 1.15, "{last}");
}

#[test]
fn a_starved_flow_probes_and_begins_again() {
    // A NIC is busy for 3 ms with a flow that is always the more urgent.
    let flows = vec![flow(0, 4, 50_000_000, Time::ZERO), flow(0, 5, 60_000_000, Time::from_us(10))];
    let with = |probe_after: u32| {
        let (kept, outcome) = run(racks(&format!("probe_after = {probe_after}"), "", flows.clone()));
        (completion_times(&kept), sum_of(&outcome, |port| port.bytes_dropped))
    };
    let ((times, dropped), (times_with, dropped_with)) = (with(0), with(5));
    println!("{dropped} B dropped, {dropped_with} B with probes: {times:?}, {times_with:?}");
    assert!(dropped > 10 * dropped_with);
    for (a, b) in times.iter().zip(&times_with) {
        assert!(a.as_ns() / b.as_ns() < 1.02 && b.as_ns() / a.as_ns() < 1.02, "{a} {b}");
    }
}

#[test]
fn the_deadline_may_order_packets_instead_of_what_is_left() {
    let with = |src: u32, deadline: Option<u64>| FlowSpec {
        deadline: deadline.map(Time::from_us),
        ..flow(src, 0, 1_000_000, Time::ZERO)
    };
    let flows = vec![with(1, None), with(2, Some(900)), with(3, Some(200)), with(4, Some(500))];
    let kept = finished(racks("priority = \"deadline\"", "", flows));
    let mut order: Vec<u32> = (0..4).collect();
    order.sort_by_key(|&flow| kept.flows[flow as usize].finish);
    assert_eq!(order, [2, 3, 1, 0]);
}

#[test]
fn a_buffer_that_loses_acknowledgements_too_only_takes_longer() {
    // Both directions are full, and a switch holds four packets of all its ports.
    let mut flows = incast(8, 300_000);
    flows.extend((1..=8).map(|dst| flow(0, dst, 300_000, Time::ZERO)));
    let kept = finished(racks("", "buffer = \"6KB\"", flows));
    assert!(again(&kept) > 100, "{}", again(&kept));
}

#[test]
fn it_shares_hosts_and_switches_with_rdma() {
    let text = "[topology]\nkind = \"star\"\nhosts = 6\n[switch]\nqueue = { kind = \"pfabric\" }\n\
        pfc = { enabled = false }\n\
        [transport]\ncontroller = { kind = \"dctcp\" }\nrecovery = \"selective-repeat\"\n\
        [[workload]]\nkind = \"incast\"\nsenders = 4\nreceiver = 0\nsize = \"300KB\"\n\
        [[workload]]\nkind = \"incast\"\nsenders = 5\nreceiver = 0\nsize = \"200KB\"\ntransport = { kind = \"pfabric\" }\n";
    let scenario = Scenario::load(text, "both.toml", Path::new("."), &[], None, Hooks::default());
    let config = scenario.unwrap_or_else(|error| panic!("{error}")).config().expect("a configuration");
    let (kept, outcome) = run(config);
    assert_eq!((outcome.flows_done, kept.flows.len()), (9, 9));
}

/// Links go down and come back, some change their rate; at the end all are up.
fn failing(topology: &Topology, drawn: &[(u64, u8, u32)]) -> Failures {
    let switches = topology.switches();
    let links = topology.links.len() as u32;
    let mut events: Vec<_> = drawn.iter().map(|&one| failure(one, links, &switches)).collect();
    events.sort_by_key(|event| event.at);
    let up = |link| failure((400, 2, link), links, &switches);
    let switches_up = (0..switches.len() as u32).map(|which| failure((400, 5, which), links, &switches));
    events.extend((0..links).map(up).chain(switches_up));
    Failures { detection: Time::from_us(5), events, loss: None }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn every_flow_ends_though_links_and_switches_fail(
        seed in 0u64..1000,
        drawn in proptest::collection::vec((1u64..300, 0u8..6, 0u32..1000), 0..12),
        limit in 3u64..60,
        buffer in 5u64..500,
        probe_after in 0u32..4,
        loss in 0u32..80,
    ) {
        let transport = format!("probe_after = {probe_after}\nqueue_limit = \"{limit}KB\"");
        let mut config = racks(&transport, &format!("buffer = \"{buffer}KB\""), random_flows(12, 30, seed));
        config.seed = seed;
        config.failures = failing(&config.topology, &drawn);
        config.failures.loss = Some(LinkLoss { share: f64::from(loss) / 1000.0, kinds: LinkLoss::ALL });
        finished(config);
    }
}

#[test]
fn no_flow_is_stuck_whatever_kind_of_packet_links_lose() {
    for kinds in [LinkLoss::DATA, LinkLoss::ACKNOWLEDGEMENTS, LinkLoss::ALL] {
        for (share, probe_after) in [(0.02, 0), (0.15, 0), (0.15, 2)] {
            let mut config = racks(&format!("probe_after = {probe_after}"), "", random_flows(12, 40, 9));
            config.failures.loss = Some(LinkLoss { share, kinds });
            let kept = finished(config);
            assert!(again(&kept) > 0, "nothing was lost at {share}");
        }
    }
}

#[test]
fn a_run_is_the_same_in_one_to_eight_regions() {
    let mut flows = random_flows(12, 200, 3);
    flows.extend((1..12).map(|src| flow(src, 0, 200_000, Time::from_us(10))));
    flows.sort_by_key(|flow| flow.start);
    let config = racks("queue_limit = \"20KB\"", "", flows);
    let (_, one) = run_in(1, config.clone());
    assert!(sum_of(&one, |port| port.packets_dropped) > 0);
    for regions in 2..=8 {
        let (_, outcome) = run_in(regions, config.clone());
        assert_eq!(outcome.fingerprint, one.fingerprint, "in {regions} regions");
    }
}
