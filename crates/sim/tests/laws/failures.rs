//! Links and switches that fail, come back or slow down while flows are in progress.

use crate::common::*;
use pint::plan::Plan;
use pint::utilisation::Law;
use pint::value::{Approximation, Rounding};
use std::sync::Arc;
use weftline_sim::config::{Change, Config, Failure, Failures, Recovery, Sampled, TelemetryConfig, Until};
use weftline_sim::measure::{Entity, Outcome};
use weftline_sim::telemetry::pint::{Computed, PintConfig};
use weftline_sim::topology::TopologyParameters;
use weftline_sim::topology::dumbbell::Dumbbell;
use weftline_sim::topology::leaf_spine::LeafSpine;
use weftline_sim::topology::star::Star;
use weftline_sim::topology::{LinkId, NodeId, Topology};
use weftline_sim::units::{Bytes, Rate, Time};
use weftline_sim::workload::FlowSpec;

const RATE: Rate = Rate::from_gbps(100);
/// 1048 B at 100 Gb/s.
const PACKET: Time = Time(83_840);
const RECOVERIES: [Recovery; 2] = [Recovery::GoBackN, Recovery::SelectiveRepeat { reordering: 3 }];

/// Two leaves with two hosts each, two spines; all links 100 Gb/s and 1 us.
fn leaf_spine() -> Topology {
    let network = LeafSpine {
        leaves: 2,
        spines: 2,
        hosts_per_leaf: 2,
        extra_hosts: 0,
        host_link: link(RATE, Time::from_us(1)),
        fabric_rate: Some(RATE),
        fabric_delay: Time::from_us(1),
        oversubscription: 0.0,
    };
    network.build().unwrap()
}

fn failing(config: Config, detection: Time, events: &[(Time, Change)]) -> Config {
    let events = events.iter().map(|&(at, change)| Failure { at, change }).collect();
    Config { failures: Failures { detection, events, loss: None }, ..config }
}

/// From leaf0 to leaf1: 5000 packets, 420 us in flight.
fn long_flow() -> Vec<FlowSpec> {
    vec![flow(0, 2, 5_000_000, Time::ZERO)]
}

/// The spines that carry the data and the acknowledgements of a lone flow from leaf0 to leaf1.
fn spines_of(topology: &Topology, flows: Vec<FlowSpec>) -> (NodeId, NodeId) {
    let (_, outcome) = run(normal("none", topology.clone(), flows));
    let spines = [node_named(topology, "spine0"), node_named(topology, "spine1")];
    let used = |leaf: &str| {
        let leaf = node_named(topology, leaf);
        let sent =
            |&spine: &NodeId| totals_of(&outcome, leaf, port_towards(topology, leaf, spine)).packets_sent > 0;
        *spines.iter().find(|spine| sent(spine)).expect("a path")
    };
    (used("leaf0"), used("leaf1"))
}

fn sent_by(outcome: &Outcome, topology: &Topology, from: NodeId, to: NodeId) -> u64 {
    totals_of(outcome, from, port_towards(topology, from, to)).packets_sent
}

/// The flow must end about the detection delay later than it would have.
fn assert_late_by(kept: &Kept, delay: Time) {
    let (fct, ideal) = (completion_times(kept)[0], kept.flows[0].ideal);
    let slack = Time::from_us(30);
    assert!(fct >= ideal + delay && fct < ideal + delay + slack, "{fct}, alone {ideal}, {delay} later");
}

#[test]
fn a_flow_goes_around_a_failed_link_after_the_detection_delay() {
    let topology = leaf_spine();
    let (spine, _) = spines_of(&topology, long_flow());
    let other = node_named(&topology, "spine0") + node_named(&topology, "spine1") - spine;
    let (leaf0, leaf1) = (node_named(&topology, "leaf0"), node_named(&topology, "leaf1"));
    let detection = Time::from_us(20);
    for recovery in RECOVERIES {
        // First the link into the spine: its leaf knows at once that it is down, and strands what it would send there.
        // Then the link after it: the spine does.
        for (from, to) in [(leaf0, spine), (spine, leaf1)] {
            let down = (Time::from_us(100), Change::LinkDown(link_between(&topology, from, to)));
            let mut config = failing(normal("none", topology.clone(), long_flow()), detection, &[down]);
            rdma_of(&mut config).recovery = recovery;
            rdma_of(&mut config).nack_interval = Time::from_us(5);
            let (kept, outcome) = run(config);
            assert_late_by(&kept, detection);
            let lost = totals_of(&outcome, to, port_towards(&topology, to, from)).packets_lost;
            // A microsecond of link holds 12 packets.
            assert!((11..=13).contains(&lost), "{lost} lost on the link");
            let stranded = totals_of(&outcome, from, port_towards(&topology, from, to)).packets_stranded;
            // Those that come in 20 us, and those that are in flight before the failure.
            assert!((235..=265).contains(&stranded), "{stranded} stranded");
            assert_eq!(sum_of(&outcome, |port| port.packets_lost), lost, "nothing is lost elsewhere");
            assert_eq!(sum_of(&outcome, |port| port.packets_stranded), stranded);
            assert!(sent_by(&outcome, &topology, leaf0, other) > 3500);
        }
    }
}

#[test]
fn a_flow_survives_the_failure_of_the_link_that_its_acknowledgements_take() {
    let topology = leaf_spine();
    let (_, spine) = spines_of(&topology, long_flow());
    let leaf1 = node_named(&topology, "leaf1");
    let down = (Time::from_us(100), Change::LinkDown(link_between(&topology, leaf1, spine)));
    for recovery in RECOVERIES {
        let mut config = failing(normal("none", topology.clone(), long_flow()), Time::from_us(20), &[down]);
        rdma_of(&mut config).recovery = recovery;
        let (kept, outcome) = run(config);
        assert_eq!(outcome.flows_done, 1);
        let (forward, _) = spines_of(&topology, long_flow());
        // Where data takes the other spine, only acknowledgements were lost, and later ones make up for them.
        if forward != spine {
            assert_eq!(
                (completion_times(&kept)[0], kept.flows[0].packets_retransmitted),
                (kept.flows[0].ideal, 0)
            );
        }
    }
}

#[test]
fn a_link_that_comes_back_is_used_again_after_the_detection_delay() {
    let topology = leaf_spine();
    let (spine, _) = spines_of(&topology, long_flow());
    let leaf = node_named(&topology, "leaf0");
    let port = port_towards(&topology, leaf, spine);
    let failed = link_between(&topology, leaf, spine);
    let (down, up, detection) = (Time::from_us(100), Time::from_us(200), Time::from_us(20));
    let events = [(down, Change::LinkDown(failed)), (up, Change::LinkUp(failed))];
    let mut config = failing(normal("none", topology.clone(), long_flow()), detection, &events);
    config.measure.utilisation = Some(Sampled { what: vec![(leaf, port)], every: Time::from_us(1) });
    let (kept, _) = run(config);
    assert_late_by(&kept, detection);
    let fct = completion_times(&kept)[0];
    for sample in &kept.samples {
        let busy = sample.value > 0.5;
        let expected = match sample.time {
            // The first packet takes 1.1 us, the last acknowledgement 4 us.
            t if t <= Time::from_us(3) || t + Time::from_us(10) > fct => continue,
            t if t > down && t <= down + Time::from_us(1) => continue,
            t if t > up + detection && t <= up + detection + Time::from_us(10) => continue,
            t => t <= down || t > up + detection,
        };
        assert_eq!(busy, expected, "{sample:?}");
    }
}

#[test]
fn a_link_is_in_use_by_what_its_rates_in_the_interval_could_carry() {
    let topology = Star { hosts: 2, host_link: link(RATE, Time::from_us(1)) }.build().unwrap();
    let (host, switch) = (topology.hosts()[0], topology.switches()[0]);
    let slow = link_between(&topology, host, switch);
    let rate = |us, gbps| (Time::from_us(us), Change::LinkRate(slow, Rate::from_gbps(gbps)));
    // 50 us at 100 Gb/s, 30 at 10 and 20 at 100 are 730 kB; then 10 Gb/s to the end.
    let events = [rate(150, 10), rate(180, 100), rate(200, 10)];
    let flows = vec![flow(0, 1, 10_000_000, Time::ZERO)];
    let mut config = failing(normal("none", topology, flows), Time::from_us(20), &events);
    config.measure.utilisation = Some(Sampled { what: vec![(host, 0)], every: Time::from_us(100) });
    config.until = Until::At(Time::from_us(400));
    let (kept, _) = run(config);
    assert_eq!(kept.samples.len(), 4);
    for sample in &kept.samples {
        // A packet and its header are 0.8 % of what 10 Gb/s carry in 100 us.
        assert!((sample.value - 1.0).abs() < 0.01, "{sample:?}");
    }
}

#[test]
fn a_flow_goes_around_a_failed_switch() {
    let topology = leaf_spine();
    let (spine, back) = spines_of(&topology, long_flow());
    let detection = Time::from_us(20);
    for recovery in RECOVERIES {
        let down = (Time::from_us(100), Change::SwitchDown(spine));
        let mut config = failing(normal("none", topology.clone(), long_flow()), detection, &[down]);
        rdma_of(&mut config).recovery = recovery;
        rdma_of(&mut config).nack_interval = Time::from_us(5);
        let (kept, outcome) = run(config);
        assert_late_by(&kept, detection);
        let of_spine = outcome.ports.iter().filter(|port| port.0 == spine);
        // What was in flight to the switch is lost there.
        let into: u64 = of_spine.map(|(_, _, totals)| totals.packets_lost).sum();
        let expected = if back == spine { 22..=26 } else { 11..=13 };
        assert!(expected.contains(&into), "{into}");
    }
}

#[test]
fn a_switch_that_comes_back_serves_its_hosts_again() {
    let topology = Star { hosts: 3, host_link: link(RATE, Time::from_us(1)) }.build().unwrap();
    let switch = topology.switches()[0];
    let events =
        [(Time::from_us(20), Change::SwitchDown(switch)), (Time::from_us(300), Change::SwitchUp(switch))];
    for recovery in RECOVERIES {
        for detection in [Time::ZERO, Time::from_us(50), Time::from_ms(1)] {
            let flows = (0..2).map(|src| flow(src, 2, 1_000_000, Time::ZERO)).collect();
            let mut config = failing(normal("none", topology.clone(), flows), detection, &events);
            rdma_of(&mut config).recovery = recovery;
            let (kept, outcome) = run(config);
            assert_eq!(outcome.flows_done, 2);
            assert!(completion_times(&kept).iter().all(|fct| *fct > Time::from_us(300)));
            assert!(sum_of(&outcome, |port| port.packets_stranded) > 0, "what was queued is lost");
        }
    }
}

/// The end of a flow whose last hop changes its rate at `at`, by hand.
fn degraded_by_hand(packets: u64, at: Time, slow: Rate) -> Time {
    let delay = Time::from_us(1);
    let mut free = Time::ZERO;
    for packet in 0..packets {
        let start = free.max(delay + Time(PACKET.0 * (packet + 1)));
        free = start + if start < at { PACKET } else { slow.transmission_time(1048) };
    }
    free + delay + slow.transmission_time(60) + delay + RATE.transmission_time(60) + delay
}

#[test]
fn a_degraded_link_takes_its_new_rate_from_the_next_packet_on() {
    let topology = Star { hosts: 2, host_link: link(RATE, Time::from_us(1)) }.build().unwrap();
    for slow in [Rate::from_gbps(40), Rate::from_mbps(33_300)] {
        let at = Time::from_us(50);
        let change = (at, Change::LinkRate(1, slow));
        let config = normal("none", topology.clone(), vec![flow(0, 1, 1_000_000, Time::ZERO)]);
        let (kept, outcome) = run(failing(config, Time::ZERO, &[change]));
        assert_eq!(completion_times(&kept)[0], degraded_by_hand(1000, at, slow));
        assert_eq!(sum_of(&outcome, |port| port.packets_lost + port.packets_stranded), 0);
    }
}

#[test]
fn a_flow_resumes_when_its_host_link_comes_back() {
    let topology = Star { hosts: 2, host_link: link(RATE, Time::from_us(1)) }.build().unwrap();
    for recovery in RECOVERIES {
        for (which, detection) in
            [(0, Time::ZERO), (1, Time::ZERO), (0, Time::from_us(50)), (1, Time::from_us(50))]
        {
            let events =
                [(Time::from_us(30), Change::LinkDown(which)), (Time::from_us(400), Change::LinkUp(which))];
            let config = normal("none", topology.clone(), vec![flow(0, 1, 2_000_000, Time::ZERO)]);
            let mut config = failing(config, detection, &events);
            rdma_of(&mut config).recovery = recovery;
            let (kept, _) = run(config);
            // It waits for its timeout, 500 us after the last acknowledgement, and sends on.
            let fct = completion_times(&kept)[0];
            assert!(
                fct > Time::from_us(530) && fct < Time::from_us(530 + 200),
                "{which}, {recovery:?}: {fct}"
            );
        }
    }
}

#[test]
fn a_sender_that_was_paused_for_a_failed_link_goes_on() {
    // Host 0 fills the queue of the slow link between the switches and is paused; when that link fails and the queue is
    // lost, nothing leaves it any more, and yet the host must learn that it may send to host 1 next to it.
    let network = Dumbbell {
        left: 2,
        right: 1,
        host_link: link(RATE, Time::from_us(1)),
        bottleneck_link: link(Rate::from_gbps(10), Time::from_us(1)),
        ..Dumbbell::default()
    };
    let topology = network.build().unwrap();
    let fails = link_between(&topology, node_named(&topology, "s0"), node_named(&topology, "s1"));
    let flows = vec![flow(0, 2, 2_000_000, Time::ZERO), flow(0, 1, 100_000, Time::from_us(101))];
    let mut config = normal("none", topology.clone(), flows);
    config.switch.buffer = Bytes(400_000);
    config.until = Until::At(Time::from_us(400));
    config.measure.pauses = true;
    let (kept, outcome) =
        run(failing(config, Time::from_us(5), &[(Time::from_us(100), Change::LinkDown(fails))]));
    let paused = kept.samples.iter().any(|s| s.entity == Entity::Port(0, 0) && s.time < Time::from_us(100));
    assert!(paused, "the test needs a pause");
    assert!(kept.flows.iter().any(|flow| flow.dst == 1 && flow.finish.is_some()), "{:?}", kept.flows);
    assert!(totals_of(&outcome, 0, 0).paused < Time::from_us(105));
}

#[test]
fn a_pause_ends_in_its_series_when_the_link_goes_down() {
    let topology = Star { hosts: 3, host_link: link(RATE, Time::from_us(1)) }.build().unwrap();
    let flows = vec![flow(0, 2, 2_000_000, Time::ZERO), flow(1, 2, 2_000_000, Time::ZERO)];
    let mut config = normal("none", topology, flows);
    config.switch.buffer = Bytes(400_000);
    config.until = Until::At(Time::from_us(400));
    config.measure.pauses = true;
    let row = |kept: &Kept| {
        let of_host = kept.samples.iter().filter(|s| s.entity == Entity::Port(0, 0) && s.metric == "paused");
        of_host.map(|s| (s.time, s.value == 1.0)).collect::<Vec<_>>()
    };
    let intact = row(&run(config.clone()).0);
    let pause = intact.windows(2).find(|pair| pair[0].0 > Time::from_us(50) && pair[0].1).expect("a pause");
    let fails = Time((pause[0].0.0 + pause[1].0.0) / 2);
    let (kept, outcome) = run(failing(config, Time::from_us(5), &[(fails, Change::LinkDown(0))]));
    let found = row(&kept);
    assert_eq!(found.last(), Some(&(fails, false)), "{found:?}");
    let paused = found.chunks_exact(2).map(|pair| pair[1].0.0 - pair[0].0.0).sum();
    assert_eq!(totals_of(&outcome, 0, 0).paused, Time(paused));
}

/// HPCC's u of flow 0 over time, while its path changes at 120 us without a loss: a second spine comes into use.
fn rerouted_u(path_id: bool) -> Option<(Vec<(Time, f64)>, Time)> {
    let topology = leaf_spine();
    let (spine, _) = spines_of(&topology, long_flow());
    let leaf = node_named(&topology, "leaf0");
    let comes: LinkId = link_between(&topology, leaf, spine);
    let events = [(Time(1), Change::LinkDown(comes)), (Time::from_us(100), Change::LinkUp(comes))];
    let mut flows = long_flow();
    flows[0].start = Time::from_us(10);
    let mut config = failing(normal("hpcc", topology.clone(), flows), Time::from_us(5), &events);
    config.telemetry = TelemetryConfig::Int { max_hops: 5, path_id, all: false };
    config.measure.controllers = Some(Sampled { what: vec![0], every: Time::from_ns(100) });
    let (kept, outcome) = run(config);
    assert_eq!(kept.flows[0].packets_retransmitted, 0);
    let other = node_named(&topology, "spine0") + node_named(&topology, "spine1") - spine;
    assert!(
        sent_by(&outcome, &topology, leaf, spine) > 1000 && sent_by(&outcome, &topology, leaf, other) > 1000
    );
    let u = kept.samples.iter().filter(|s| s.metric == "u").map(|s| (s.time, s.value)).collect();
    Some((u, kept.flows[0].finish?))
}

#[test]
fn hpcc_with_path_ids_is_not_misled_by_a_path_change() {
    let worst = |path_id| {
        let (u, _) = rerouted_u(path_id).expect("an end");
        // From the settled state before the change to well after it.
        let around = u.iter().filter(|(t, _)| (Time::from_us(90)..Time::from_us(200)).contains(t));
        let (low, high) =
            around.fold((f64::MAX, 0.0), |(low, high): (f64, f64), s| (low.min(s.1), high.max(s.1)));
        (low, high)
    };
    let (low, high) = worst(true);
    assert!(low > 0.85 && high < 1.05, "u between {low} and {high} with path ids");
    let (low, high) = worst(false);
    assert!(
        low < 0.8 || high > 1.2,
        "u between {low} and {high} without: records of two paths should disagree"
    );
}

/// What a switch with PINT records of every packet, under a plan with one query for loops: 30 bits of hash, none let pass.
fn loops_looked_for() -> TelemetryConfig {
    let text = "bits = 30\nhops = { expected = 5, maximal = 8 }\n[[query]]\nname = \"loops\"\nvalue = \"switch-id\"\n\
                aggregation = \"loops\"\ntolerance = 0\nbits = 30\nfrequency = 1.0\n";
    let plan = Plan::new(pint::plan::read(text, "queries.toml").unwrap()).unwrap();
    TelemetryConfig::Pint(Arc::new(PintConfig::of_plan(plan, Law::Paper, Computed::Exact).unwrap()))
}

#[test]
fn packets_that_a_new_route_turns_back_are_found_in_a_loop() {
    let topology = leaf_spine();
    let (spine, _) = spines_of(&topology, long_flow());
    let leaf1 = node_named(&topology, "leaf1");
    let down = (Time::from_us(100), Change::LinkDown(link_between(&topology, spine, leaf1)));
    let mut config = failing(normal("none", topology.clone(), long_flow()), Time::from_us(20), &[down]);
    config.telemetry = loops_looked_for();
    let (kept, _) = run(config);
    // leaf0, spine, leaf0 again, the other spine, leaf1: what was on the link into the spine when the routes changed.
    let turned = kept.digests.iter().filter(|digest| digest.hops == 5).count();
    assert!((10..=13).contains(&turned), "{turned} turned back");
    assert!(kept.digests.iter().all(|digest| digest.hops == 5 || (digest.hops == 3 && !digest.looped)));
    // The spine takes the place of leaf0's hash with probability 1/2.
    let found = kept.digests.iter().filter(|digest| digest.looped).count();
    assert!((2..=10).contains(&found), "{found} of {turned} found");
}

#[test]
fn the_load_that_packets_bring_follows_a_change_of_their_ports_rate() {
    let topology = Star { hosts: 2, host_link: link(RATE, Time::from_us(1)) }.build().unwrap();
    let rate = |us, gbps| (Time::from_us(us), Change::LinkRate(1, Rate::from_gbps(gbps)));
    let mut config = failing(
        normal("none", topology, vec![flow(0, 1, 2_000_000, Time::ZERO)]),
        Time::ZERO,
        &[rate(1, 400), rate(100, 200)],
    );
    let load = PintConfig::of_load(Law::Paper, Computed::Exact, 1.02, 10, 1 << 16, 1).unwrap();
    config.telemetry = TelemetryConfig::Pint(Arc::new(PintConfig { recorded: 1 << 32, ..load }));
    let (kept, _) = run(config);
    let grid = Approximation::from_base(1.02, 10, Rounding::Logarithm).unwrap();
    let (mut before, mut after) = (0, 0);
    for digest in &kept.digests {
        let load = grid.decode(digest.digest) / 512.0;
        match digest.time.ns() {
            // A few times T after each change.
            30_000..=100_000 => {
                before += 1;
                assert!((load / 0.25 - 1.0).abs() < 0.05, "{load} at {}", digest.time);
            }
            130_000..=160_000 => {
                after += 1;
                assert!((load / 0.5 - 1.0).abs() < 0.05, "{load} at {}", digest.time);
            }
            _ => {}
        }
    }
    assert!(before > 700 && after > 300, "{before} and {after} digests");
}
