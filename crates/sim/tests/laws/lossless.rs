//! With PFC and headroom as specified no packet is ever dropped, and pauses are respected.

use crate::common::*;
use proptest::prelude::*;
use weftline_sim::config::{
    Config, Forwarding, RdmaConfig, Recovery, TelemetryConfig, TransportConfig, Until,
};
use weftline_sim::measure::{Entity, Outcome};
use weftline_sim::net::PFC_FRAME_BYTES;
use weftline_sim::topology::TopologyParameters;
use weftline_sim::topology::leaf_spine::LeafSpine;
use weftline_sim::topology::star::Star;
use weftline_sim::topology::{Link, Node, NodeKind, Topology};
use weftline_sim::units::{Bytes, Rate, Time};
use weftline_sim::workload::FlowSpec;

/// A star of `senders + 1` hosts.
fn star(senders: u32, rate: Rate, delay: Time) -> Topology {
    Star { hosts: u64::from(senders) + 1, host_link: link(rate, delay) }.build().unwrap()
}

/// All hosts but the last send to the last.
fn incast(senders: u32, size: u64) -> Vec<FlowSpec> {
    (0..senders).map(|src| flow(src, senders, size, Time::ZERO)).collect()
}

/// The smallest buffer of a switch: headroom and reserve of every port, and this much to share. A packet has up to 50 B
/// of telemetry (five records of INT, or TIMELY's timestamp).
fn tight_buffer(config: &Config, shared: u64) -> Bytes {
    let packet = 1000 + 48 + 50;
    let pfc = &config.switch.pfc;
    let needs = |at: usize| -> u64 {
        let of_port = |link: &weftline_sim::topology::Link| {
            let in_flight = link.rate.bytes_in(link.delay).0 * u64::from(pfc.headroom_factor);
            in_flight + 3 * packet + u64::from(PFC_FRAME_BYTES) + pfc.reserve.0
        };
        config.topology.ports()[at].iter().map(|&(l, _)| of_port(&config.topology.links[l as usize])).sum()
    };
    let max = config.topology.switches().into_iter().map(|node| needs(node as usize)).max();
    Bytes(max.expect("a switch") + shared)
}

/// Runs without retransmission: nothing may be missing.
fn lossless(mut config: Config, shared: u64) -> (Kept, Outcome) {
    config.switch.buffer = tight_buffer(&config, shared);
    rdma_of(&mut config).rto = None;
    let (kept, outcome) = run(config);
    assert_eq!(sum_of(&outcome, |port| port.packets_dropped), 0, "dropped");
    assert_eq!(outcome.flows_done, outcome.flows);
    assert!(kept.flows.iter().all(|flow| flow.packets_retransmitted == 0));
    (kept, outcome)
}

#[test]
fn incast_into_a_small_buffer_drops_nothing_at_any_delay_and_rate() {
    for senders in [2, 16, 255] {
        for gbps in [25, 100, 400] {
            for delay_ns in [10, 100, 1000, 5000] {
                let topology = star(senders, Rate::from_gbps(gbps), Time::from_ns(delay_ns));
                let size = if senders == 255 { 20_000 } else { 200_000 };
                let config = normal("none", topology, incast(senders, size));
                let (_, outcome) = lossless(config, 10_000);
                let pauses = sum_of(&outcome, |port| port.pauses);
                assert!(pauses > 0, "{senders} to 1 at {gbps} Gb/s, {delay_ns} ns: no pause");
            }
        }
    }
}

#[test]
fn headroom_suffices_when_full_packets_hold_up_the_pause_frame() {
    // Hosts 0 to 7 send to host 16 and receive full streams from hosts 8 to 15, so that a pause frame for them waits for
    // a packet most of the time. The packets are as large as they get.
    for gbps in [100, 400] {
        for delay_ns in [1, 5, 10, 11, 12, 15, 20, 50, 200] {
            let topology = star(16, Rate::from_gbps(gbps), Time::from_ns(delay_ns));
            let mut flows: Vec<FlowSpec> =
                (8..16).map(|src| flow(src, src - 8, 400_000, Time::ZERO)).collect();
            flows.extend((0..8).map(|src| flow(src, 16, 50_000, Time::from_ns(100 + 7 * u64::from(src)))));
            let mut config = normal("none", topology, flows);
            config.telemetry = TelemetryConfig::Int { max_hops: 5, path_id: false, all: true };
            lossless(config, 3_000);
        }
    }
}

#[test]
fn the_receiver_of_an_incast_under_pfc_is_never_idle() {
    // Pauses must not starve the port that they protect: 16 senders take the same time as one that sends everything.
    let rate = Rate::from_gbps(100);
    let (kept, outcome) =
        lossless(normal("none", star(16, rate, Time::from_us(1)), incast(16, 500_000)), 200_000);
    let last = completion_times(&kept).into_iter().max().unwrap();
    let busy = rate.transmission_time(16 * 500 * 1048);
    let edges = Time(4_000_000 + 83_840 + 2 * 4_800);
    assert!(last >= busy + edges && last < busy + edges + Time::from_ns(100), "{last} for {busy}");
    assert!(sum_of(&outcome, |port| port.pauses) > 16);
}

#[test]
fn mixed_rates_and_flows_in_both_directions_drop_nothing() {
    // The worst for headroom: short links, and reverse links whose packets hold up the pause frame.
    for delay_ns in [10, 500] {
        let network = LeafSpine {
            leaves: 3,
            spines: 1,
            hosts_per_leaf: 8,
            extra_hosts: 0,
            host_link: link(Rate::from_gbps(100), Time::from_ns(delay_ns)),
            fabric_rate: Some(Rate::from_gbps(400)),
            fabric_delay: Time::from_ns(delay_ns),
            oversubscription: 0.0,
        };
        let mut topology = network.build().unwrap();
        for slow in [3, 11, 19] {
            topology.links[slow].rate = Rate::from_gbps(25);
        }
        // Everybody sends to the slow host of the next leaf, and the slow hosts to everybody.
        let mut flows: Vec<FlowSpec> =
            (0..24).map(|src| flow(src, (src / 8 + 1) % 3 * 8 + 3, 60_000, Time::ZERO)).collect();
        flows.extend(
            (0..24)
                .filter(|dst| dst % 8 != 3)
                .map(|dst| flow((dst / 8 + 1) % 3 * 8 + 3, dst, 60_000, Time::ZERO)),
        );
        for controller in ["none", "dcqcn", "timely"] {
            for forwarding in [Forwarding::StoreAndForward, Forwarding::CutThrough { header: 64 }] {
                let mut config = normal(controller, topology.clone(), flows.clone());
                config.switch.forwarding = forwarding;
                let (_, outcome) = lossless(config, 20_000);
                assert!(sum_of(&outcome, |port| port.pauses) > 0);
            }
        }
    }
}

#[test]
fn a_paused_port_sends_nothing_more_than_the_packet_it_has_begun() {
    let rate = Rate::from_gbps(100);
    let topology = star(4, rate, Time::from_us(1));
    let mut config = normal("none", topology.clone(), incast(4, 1_000_000));
    config.measure.pauses = true;
    let switch = topology.switches()[0];
    let every = Time::from_ns(50);
    let what = (0..4).map(|host| (host, 0)).collect();
    config.measure.utilisation = Some(weftline_sim::config::Sampled { what, every });
    let (kept, outcome) = lossless(config, 50_000);
    for host in 0..4 {
        let of = |metric| {
            kept.samples.iter().filter(move |s| s.entity == Entity::Port(host, 0) && s.metric == metric)
        };
        let events: Vec<(Time, bool)> = of("paused").map(|s| (s.time, s.value == 1.0)).collect();
        assert!(events.len() >= 4 && events.windows(2).all(|pair| pair[0].1 != pair[1].1), "{events:?}");
        let mut total = Time::ZERO;
        for pair in events.windows(2).filter(|pair| pair[0].1) {
            let (from, to) = (pair[0].0, pair[1].0);
            total += to - from;
            let silent = of("utilisation").filter(|s| s.time > from + every && s.time <= to);
            assert!(silent.clone().count() > 0 || to - from < every + every);
            assert!(silent.into_iter().all(|s| s.value == 0.0), "host {host} sent between {from} and {to}");
        }
        let totals = totals_of(&outcome, host, 0);
        assert_eq!(totals.paused, total);
        assert_eq!(totals.pauses, events.iter().filter(|e| e.1).count() as u64);
        // Four senders share one port: each is paused three quarters of the time, except at the ends.
        let share = totals.paused.as_us() / (4.0 * 83.84 * 1000.0 / 1000.0);
        assert!((0.6..0.8).contains(&share), "host {host} was paused {share} of the time");
    }
    assert_eq!(totals_of(&outcome, switch, 0).packets_dropped, 0);
}

#[test]
fn selective_repeat_and_go_back_n_are_the_same_while_nothing_is_lost() {
    let topology = star(8, Rate::from_gbps(100), Time::from_us(1));
    let with = |recovery| {
        let mut config = normal("dcqcn", topology.clone(), incast(8, 300_000));
        rdma_of(&mut config).recovery = recovery;
        let (kept, _) = lossless(config, 50_000);
        completion_times(&kept)
    };
    assert_eq!(with(Recovery::GoBackN), with(Recovery::SelectiveRepeat { reordering: 3 }));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn random_traffic_on_random_links_drops_nothing(
        links in prop::collection::vec((25u64..400, 10u64..5_000), 3..10),
        pairs in prop::collection::vec((0usize..10, 0usize..10, 1u64..60_000, 0u64..20_000), 1..40),
        shared in 0u64..100_000,
        cut: bool,
    ) {
        let hosts = links.len();
        let mut topology = star(hosts as u32 - 1, Rate::from_gbps(1), Time::from_us(1));
        for (at, &(gbps, delay_ns)) in links.iter().enumerate() {
            topology.links[at].rate = Rate::from_gbps(gbps);
            topology.links[at].delay = Time::from_ns(delay_ns);
        }
        let mut flows: Vec<FlowSpec> = pairs
            .iter()
            .filter(|pair| pair.0 % hosts != pair.1 % hosts)
            .map(|&(a, b, size, ns)| flow((a % hosts) as u32, (b % hosts) as u32, size, Time::from_ns(ns)))
            .collect();
        flows.sort_by_key(|flow| flow.start);
        let mut config = normal("none", topology, flows);
        if cut {
            config.switch.forwarding = Forwarding::CutThrough { header: 64 };
        }
        lossless(config, shared);
    }
}

/// An incast of each of these classes, all from the same hosts to host 8, 20 us one after the other.
fn incasts_of_classes(classes: u8) -> Config {
    let flows = (0..classes).flat_map(|number| {
        let incast = incast(8, 400_000).into_iter();
        let start = Time::from_us(20 * u64::from(number));
        incast.map(move |flow| FlowSpec { transport: u16::from(number), start, ..flow })
    });
    let mut config = normal("none", star(8, Rate::from_gbps(100), Time::from_us(1)), flows.collect());
    let rdma = rdma_of(&mut config).clone();
    let of = |class| TransportConfig::Rdma(RdmaConfig { class, rto: None, ..rdma.clone() });
    config.transports = (1..=classes).map(of).collect();
    config.switch.pfc.classes = u32::from(classes);
    config
}

#[test]
fn incasts_of_several_classes_drop_nothing_where_each_has_its_headroom() {
    for classes in [1, 3, 7] {
        let mut config = incasts_of_classes(classes);
        config.switch.buffer = Bytes(9 * u64::from(classes) * 50_000 + 100_000);
        let (_, outcome) = run(config);
        assert_eq!(sum_of(&outcome, |port| port.packets_dropped), 0, "{classes} classes");
        assert_eq!(outcome.flows_done, outcome.flows);
        assert!(sum_of(&outcome, |port| port.pauses) > 0, "{classes} classes: no pause");
    }
}

#[test]
fn the_series_of_pauses_lasts_as_long_as_any_class_is_paused() {
    let mut config = incasts_of_classes(2);
    config.switch.buffer = Bytes(1_000_000);
    config.measure.pauses = true;
    let (kept, outcome) = run(config);
    let mut several = 0;
    for &(node, port, totals) in &outcome.ports {
        let rows = kept
            .samples
            .iter()
            .filter(|row| row.metric == "paused" && row.entity == Entity::Port(node, port));
        let rows: Vec<(Time, f64)> = rows.map(|row| (row.time, row.value)).collect();
        let spans = rows.windows(2).filter(|pair| pair[0].1 > 0.0).map(|pair| pair[1].0 - pair[0].0);
        assert_eq!(spans.fold(Time::ZERO, |sum, span| sum + span), totals.paused, "node {node}, port {port}");
        several += rows.windows(2).filter(|pair| pair[0].1 > 0.0 && pair[1].1 > 0.0).count();
    }
    assert!(several > 0, "no port was paused for two classes");
}

/// Five switches in a ring, each with a host that sends two switches on: `size` bytes.
fn ring(size: u64, ends: Time) -> Outcome {
    let node = |kind: NodeKind, n: u32| {
        let letter = if kind == NodeKind::Host { 'h' } else { 's' };
        Node { name: format!("{letter}{n}"), kind, tier: u8::from(kind == NodeKind::Switch) }
    };
    let hosts = (0..5).map(|n| node(NodeKind::Host, n));
    let nodes = hosts.chain((0..5).map(|n| node(NodeKind::Switch, n))).collect();
    let (rate, delay) = (Rate::from_gbps(100), Time::from_us(1));
    let own = (0..5).map(|n| Link { a: n, b: 5 + n, rate, delay });
    let links = own.chain((0..5).map(|n| Link { a: 5 + n, b: 5 + (n + 1) % 5, rate, delay })).collect();
    let topology = Topology { nodes, links, ..Topology::default() };
    let flows = (0..5).map(|src| flow(src, (src + 2) % 5, size, Time::ZERO)).collect();
    let mut config = normal("none", topology, flows);
    config.switch.buffer = Bytes(2 << 20);
    config.until = Until::At(ends);
    run(config).1
}

#[test]
fn a_run_that_ends_in_a_deadlock_says_which_ports_wait_for_each_other_since_when() {
    // The host's port of a switch is its first one.
    let outcome = ring(20_000_000, Time::from_ms(2));
    let deadlock = outcome.deadlock.expect("two flows on each link of the ring at full rate");
    let (mut nodes, ports): (Vec<u32>, Vec<u32>) = deadlock.circle.iter().copied().unzip();
    nodes.sort_unstable();
    assert_eq!((nodes, ports.contains(&0)), (vec![5, 6, 7, 8, 9], false));
    assert!(deadlock.since > Time::from_us(10) && deadlock.since < Time::from_us(500), "{}", deadlock.since);
    // With the hosts, which wait for the ring.
    assert_eq!(deadlock.ports, 10);
    assert_eq!(ring(100_000, Time::from_ms(2)).deadlock, None);
}
