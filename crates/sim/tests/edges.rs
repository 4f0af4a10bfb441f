//! What hosts do between their transports and their links: CLOVE's choice of paths, packets put in order,
//! what is counted there.

use crate::common::*;
use weftline_sim::balance::BalancerConfig;
use weftline_sim::balance::FlowletParameters;
use weftline_sim::balance::clove::{CloveFeedback, CloveParameters};
use weftline_sim::balance::ecmp::EcmpParameters;
use weftline_sim::balance::spray::SprayParameters;
use weftline_sim::config::*;
use weftline_sim::topology::Topology;
use weftline_sim::topology::TopologyParameters;
use weftline_sim::topology::leaf_spine::LeafSpine;
use weftline_sim::transport::binding::NicPolicy;
use weftline_sim::units::{Bytes, Rate, Time};
use weftline_sim::workload::FlowSpec;

fn leaf_spine(spines: u64, hosts_per_leaf: u64) -> Topology {
    let (host, fabric) = (link(Rate::from_gbps(10), Time::from_us(1)), Rate::from_gbps(10));
    let fabric_rate = Some(fabric);
    LeafSpine { leaves: 2, spines, hosts_per_leaf, host_link: host, fabric_rate, ..LeafSpine::default() }
        .build()
        .unwrap()
}

/// Two spines; the path through the second is this number of microseconds longer.
fn unequal(us: u64) -> Topology {
    let mut topology = leaf_spine(2, 1);
    let (leaf1, spine1) = (node_named(&topology, "leaf1"), node_named(&topology, "spine1"));
    let long = link_between(&topology, leaf1, spine1);
    topology.links[long as usize].delay = Time::from_us(1 + us);
    topology
}

/// One flow whose packets take two ways in turn, the second 5 us longer; 0.85 us a packet. Acknowledgements
/// take them too.
fn in_turn(host: HostConfig, transport: &str) -> (Kept, weftline_sim::measure::Outcome) {
    let mut config = normal(transport, unequal(5), vec![flow(0, 1, 100_000, Time::ZERO)]);
    config.switch.balancer = BalancerConfig::Spray(SprayParameters::InTurn);
    config.host = host;
    config.measure.reordering = true;
    config.measure.paths = true;
    rdma_of(&mut config).rto = Some(Time::from_ms(5));
    rdma_of(&mut config).recovery = Recovery::SelectiveRepeat { reordering: 1000 };
    run(config)
}

const IN_ORDER: HostConfig = HostConfig {
    queue: None,
    resequencing: Some(ResequencingConfig { timeout: Time::from_us(100), buffer: Bytes(1_000_000) }),
    packet_time: Time::ZERO,
    nic_policy: NicPolicy::Hash,
};

#[test]
fn packets_that_take_ways_of_unlike_length_overtake_each_other_and_are_put_in_order() {
    let (kept, outcome) = in_turn(HostConfig::default(), "dctcp");
    let seen = outcome.receiving.unwrap();
    assert_eq!(completion_times(&kept).len(), 1);
    // Of 100 packets every second one is overtaken, except the few at the end, which no packet follows.
    assert_eq!(seen.packets, 100);
    assert!((47..=50).contains(&seen.reordered), "{seen:?}");
    assert_eq!((seen.reordered_delivered, seen.held), (seen.reordered, 0));
    // One flow, two ways.
    assert_eq!((seen.flows, seen.paths), (1, 2));

    let (kept, outcome) = in_turn(IN_ORDER, "dctcp");
    let seen = outcome.receiving.unwrap();
    assert_eq!(completion_times(&kept).len(), 1);
    assert!((47..=50).contains(&seen.reordered), "{seen:?}");
    assert_eq!((seen.reordered_delivered, seen.expired), (0, 0));
    // The packets by the short way wait for those before them: 5 us are six packets of both ways, so three or
    // so are held.
    assert!(seen.held > 40 && (2_000..=8_000).contains(&seen.max_held), "{seen:?}");
}

/// On one connection, by two ways: the packets of a flow wait for those of the flows before it, but
/// not for bytes between the short last packet of a flow and the first of the next.
#[test]
fn flows_that_follow_each_other_are_put_in_order_over_short_last_packets() {
    let sizes: Vec<u64> = (1..40).map(|number| 170 * number).collect();
    let at_once = |&size: &u64| FlowSpec { connection: Some(0), ..flow(0, 1, size, Time::ZERO) };
    let mut config = normal("dctcp", unequal(5), sizes.iter().map(at_once).collect());
    config.switch.balancer = BalancerConfig::Spray(SprayParameters::InTurn);
    config.host = IN_ORDER;
    config.measure.reordering = true;
    rdma_of(&mut config).recovery = Recovery::SelectiveRepeat { reordering: 1000 };
    let (kept, outcome) = run(config);
    let seen = outcome.receiving.unwrap();
    assert_eq!(completion_times(&kept).len(), sizes.len());
    assert!(seen.held > 40 && (seen.reordered_delivered, seen.expired) == (0, 0), "{seen:?}");
}

#[test]
fn a_timeout_shorter_than_the_difference_gives_up_and_a_full_buffer_lets_go() {
    let short = |timeout_us, buffer| HostConfig {
        resequencing: Some(ResequencingConfig { timeout: Time::from_us(timeout_us), buffer: Bytes(buffer) }),
        ..HostConfig::default()
    };
    let (kept, outcome) = in_turn(short(2, 1_000_000), "dctcp");
    let seen = outcome.receiving.unwrap();
    assert_eq!(completion_times(&kept).len(), 1);
    assert!(seen.expired > 20 && seen.reordered_delivered > 20, "{seen:?}");
    let (kept, outcome) = in_turn(short(1000, 1500), "dctcp");
    let seen = outcome.receiving.unwrap();
    assert_eq!(completion_times(&kept).len(), 1);
    assert!(seen.max_held <= 2_000 && seen.expired == 0 && seen.reordered_delivered > 20, "{seen:?}");
}

#[test]
fn what_is_lost_is_waited_for_no_longer_than_the_timeout() {
    let mut config = normal("dctcp", leaf_spine(2, 4), random_flows(8, 60, 3));
    config.switch.balancer = BalancerConfig::Spray(SprayParameters::Random);
    config.host = IN_ORDER;
    config.failures.loss = Some(LinkLoss { share: 0.01, kinds: LinkLoss::DATA });
    rdma_of(&mut config).rto = Some(Time::from_ms(1));
    rdma_of(&mut config).recovery = Recovery::SelectiveRepeat { reordering: 64 };
    let (kept, outcome) = run(config);
    assert!(sum_of(&outcome, |p| p.packets_lost) > 5);
    assert_eq!(completion_times(&kept).len(), 60);
    assert!(outcome.receiving.unwrap().held > 0);
}

fn clove(feedback: CloveFeedback) -> BalancerConfig {
    BalancerConfig::Clove(CloveParameters {
        feedback,
        flowlets: FlowletParameters { gap: Time::from_us(20), slots: 4096 },
        paths: 16,
        relay_interval: Time::from_us(10),
        congested_for: Time::from_us(40),
        cut: 341,
        hide_marks: false,
        time_constant: Time::from_us(100),
        ageing: Time::from_ms(10),
        header: 4,
    })
}

#[test]
fn clove_finds_every_path_and_adds_its_header_on_every_link() {
    for feedback in [CloveFeedback::None, CloveFeedback::Ecn, CloveFeedback::Int] {
        let flows =
            || (0..16).map(|n| flow(n % 4, 4 + n % 4, 30_000, Time::from_us(u64::from(n) * 40))).collect();
        let run_with = |balancer| {
            let mut config = normal("dctcp", leaf_spine(4, 4), flows());
            config.switch.balancer = balancer;
            config.measure.paths = true;
            run(config)
        };
        let (_, plain) = run_with(BalancerConfig::Ecmp(EcmpParameters { salt: 0 }));
        let (kept, outcome) = run_with(clove(feedback));
        assert_eq!(completion_times(&kept).len(), 16);
        // 16 flows of 30 packets and as many acknowledgements, 4 B on four links each.
        assert_eq!(total(&outcome, "balancer_header_bytes"), 16 * 60 * 4 * 4);
        assert_eq!(outcome.bytes_on_wire, plain.bytes_on_wire + total(&outcome, "balancer_header_bytes"));
        assert!(total(&outcome, "flowlets") >= 32, "{}", total(&outcome, "flowlets"));
        let spines: Vec<u64> = (0..4)
            .map(|spine| {
                let topology = leaf_spine(4, 4);
                let (leaf, spine) =
                    (node_named(&topology, "leaf0"), node_named(&topology, &format!("spine{spine}")));
                totals_of(&outcome, leaf, port_towards(&topology, leaf, spine)).bytes_sent
            })
            .collect();
        assert!(spines.iter().all(|&bytes| bytes > 0), "{feedback:?}: {spines:?}");
    }
}

/// Share of leaf 0's bytes by the path whose second link has the full rate where the other narrows to a
/// fifth, and mean completion time in us.
fn on_unequal_paths(balancer: BalancerConfig) -> (f64, f64) {
    let mut topology = leaf_spine(2, 8);
    let (leaf0, spine1) = (node_named(&topology, "leaf0"), node_named(&topology, "spine1"));
    let slow = link_between(&topology, node_named(&topology, "leaf1"), spine1);
    topology.links[slow as usize].rate = Rate::from_gbps(2);
    let ports = ["spine0", "spine1"].map(|name| port_towards(&topology, leaf0, node_named(&topology, name)));
    let flows = (0..200).map(|n| flow(n % 8, 8 + (n * 3) % 8, 60_000, Time::from_us(u64::from(n) * 160)));
    let mut config = normal("dctcp", topology, flows.collect());
    config.switch.balancer = balancer;
    // Less than a window, 12 KB, so that one flow alone is marked on the narrow path.
    let threshold = Bytes(5_000);
    let mark = |gbps| EcnThreshold {
        rate: Rate::from_gbps(gbps),
        kmin: threshold,
        kmax: threshold,
        pmax: 1.0,
        at: Default::default(),
    };
    config.switch.ecn = vec![mark(2), mark(10)];
    let (kept, outcome) = run(config);
    let bytes = ports.map(|port| totals_of(&outcome, leaf0, port).bytes_sent as f64);
    let times = completion_times(&kept);
    (
        bytes[0] / (bytes[0] + bytes[1]),
        times.iter().map(|t| t.as_ns()).sum::<f64>() / times.len() as f64 / 1000.0,
    )
}

#[test]
fn clove_leaves_the_narrow_path_as_marks_or_utilisation_tell_it_to() {
    let (ecmp, ecmp_mean) = on_unequal_paths(BalancerConfig::Ecmp(EcmpParameters { salt: 0 }));
    let (none, none_mean) = on_unequal_paths(clove(CloveFeedback::None));
    let (ecn, ecn_mean) = on_unequal_paths(clove(CloveFeedback::Ecn));
    let (int, int_mean) = on_unequal_paths(clove(CloveFeedback::Int));
    println!(
        "ecmp {ecmp:.3} {ecmp_mean:.0} us, none {none:.3} {none_mean:.0}, ecn {ecn:.3} {ecn_mean:.0}, int {int:.3} {int_mean:.0}"
    );
    // As with LetFlow, flowlets that are drawn stay longer where nothing delays them.
    assert!((0.5..0.85).contains(&none), "{none}");
    assert!(ecn > none + 0.1 && ecn_mean < ecmp_mean, "{ecn} {ecn_mean} / {ecmp_mean}");
    assert!(int > none + 0.1 && int_mean < ecmp_mean, "{int} {int_mean} / {ecmp_mean}");
}

#[test]
fn clove_finds_its_paths_again_when_routes_change() {
    let topology = leaf_spine(2, 4);
    let broken = link_between(&topology, node_named(&topology, "spine0"), node_named(&topology, "leaf1"));
    let flows = (0..8).map(|n| flow(n % 4, 4 + n % 4, 2_000_000, Time::from_us(u64::from(n)))).collect();
    let mut config = normal("dctcp", topology, flows);
    config.switch.balancer = clove(CloveFeedback::Ecn);
    let change = Change::LinkDown(broken);
    let events = vec![Failure { at: Time::from_us(300), change }];
    config.failures = Failures { detection: Time::from_us(200), events, loss: None };
    rdma_of(&mut config).rto = Some(Time::from_ms(1));
    let (kept, outcome) = run(config);
    assert_eq!(completion_times(&kept).len(), 8);
    // What was lost or had nowhere to go was so until routes followed, and what was in flight then.
    let last = outcome.last_loss.unwrap();
    assert!((Time::from_us(300)..Time::from_us(520)).contains(&last), "{last}");
}
