//! Load balancers in whole networks: where probes go, how fast failures are left, what is spread how.

use crate::common::*;
use std::collections::BTreeSet;
use std::sync::Arc;
use weftline_sim::balance::conga::CongaParameters;
use weftline_sim::balance::ecmp::EcmpParameters;
use weftline_sim::balance::hula::{Hula, HulaParameters};
use weftline_sim::balance::letflow::LetFlowParameters;
use weftline_sim::balance::mp_hula::MpHulaParameters;
use weftline_sim::balance::{BalancerConfig, Fabric, FlowletParameters, Neighbour, NetworkView, Place, Side};
use weftline_sim::config::*;
use weftline_sim::topology::TopologyParameters;
use weftline_sim::topology::fat_tree::FatTree;
use weftline_sim::topology::hpcc_fat_tree::HpccFatTree;
use weftline_sim::topology::hpn::Hpn;
use weftline_sim::topology::leaf_spine::LeafSpine;
use weftline_sim::topology::pods::Pods;
use weftline_sim::topology::{Link, NextHopOrder, NodeKind, Routes, Topology};
use weftline_sim::units::{Bytes, Rate, Time};

fn hula(interval_us: u64) -> HulaParameters {
    let interval = Time::from_us(interval_us);
    HulaParameters {
        interval,
        probe_size: 64,
        probe_class: 0,
        release: true,
        time_constant: Time(interval.0 * 2),
        failure_time: Time(interval.0 * 3),
        flowlets: FlowletParameters { gap: Time::from_us(10), slots: 1 << 16 },
        refresh_on_best: true,
        suppress: true,
        hysteresis: 0,
        hardware: false,
        staggered: true,
    }
}

/// HULA, or MP-HULA with more than one rank.
fn ranked(hula: HulaParameters, ranks: u8) -> BalancerConfig {
    match ranks {
        1 => BalancerConfig::Hula(hula),
        _ => BalancerConfig::MpHula(MpHulaParameters { hula, ranks, subflows: Default::default() }),
    }
}

fn leaf_spine(leaves: u64, spines: u64, hosts_per_leaf: u64) -> Topology {
    let (host, fabric) = (link(Rate::from_gbps(10), Time::from_us(1)), Rate::from_gbps(10));
    let fabric_rate = Some(fabric);
    LeafSpine { leaves, spines, hosts_per_leaf, host_link: host, fabric_rate, ..LeafSpine::default() }
        .build()
        .unwrap()
}

/// Three tiers in which a core is linked to two aggregation switches of each pod.
fn cores_with_two_links_to_a_pod() -> Topology {
    let mut topology = HpccFatTree {
        pods: 2,
        tors_per_pod: 2,
        aggs_per_pod: 2,
        cores_per_agg: 1,
        hosts_per_tor: 1,
        ..HpccFatTree::default()
    }
    .build()
    .unwrap();
    let cores = ["core0", "core1"].map(|name| node_named(&topology, name));
    let sample = topology.links.last().unwrap().clone();
    let linked = |t: &Topology, a, b| t.links.iter().any(|l| (l.a, l.b) == (a, b) || (l.a, l.b) == (b, a));
    for agg in 0..4 {
        let agg = node_named(&topology, &format!("agg{agg}"));
        for core in cores {
            if !linked(&topology, agg, core) {
                topology.links.push(weftline_sim::topology::Link { a: agg, b: core, ..sample.clone() });
            }
        }
    }
    topology
}

/// HULA's network without one of the links between aggregation switches and cores.
fn pods_without_a_core_link() -> Topology {
    let mut topology =
        Pods { pods: 3, leaves_per_pod: 3, hosts_per_leaf: 1, ..Pods::default() }.build().unwrap();
    let (agg, core) = (node_named(&topology, "agg0"), node_named(&topology, "core1"));
    let broken = link_between(&topology, agg, core);
    topology.links.remove(broken as usize);
    topology
}

/// One switch's balancer, which knows its neighbours from the topology alone.
fn balancer_of(topology: &Topology, node: u32, fabric: &Arc<Fabric>) -> Hula {
    let ports = topology.ports();
    let tier = |node: u32| topology.nodes[node as usize].tier;
    let neighbours: Vec<Neighbour> = ports[node as usize]
        .iter()
        .map(|&(link, peer)| Neighbour {
            node: peer,
            port: ports[peer as usize].iter().position(|&(l, _)| l == link).unwrap() as u32,
            side: match tier(peer).cmp(&tier(node)) {
                _ if tier(peer) == 0 => Side::Host,
                std::cmp::Ordering::Less => Side::Down,
                std::cmp::Ordering::Equal => Side::Level,
                std::cmp::Ordering::Greater => Side::Up,
            },
        })
        .collect();
    let at = Place {
        seed: 1,
        node,
        name: "s",
        tier: tier(node),
        ways_below: 1,
        tor: None,
        neighbours: &neighbours,
        fabric,
        largest_packet: 0,
        subflows: false,
        murmur: false,
        only_data: false,
        released: false,
    };
    Hula::new(hula(200), 1, None, &at)
}

#[test]
fn probes_never_go_up_after_down_and_come_by_every_shortest_path() {
    let networks = [
        leaf_spine(4, 3, 2),
        FatTree { k: 4, hosts_per_tor: 0, ..FatTree::default() }.build().unwrap(),
        HpccFatTree::default().build().unwrap(),
        cores_with_two_links_to_a_pod(),
        Pods::default().build().unwrap(),
        pods_without_a_core_link(),
    ];
    for topology in networks {
        let routes = Routes::compute(&topology, &|_| true, NextHopOrder::ByPort);
        let fabric = Arc::new(Fabric { tor_of: vec![0], host_on: vec![0], ..Fabric::default() });
        let nodes = topology.nodes.len() as u32;
        let is_switch = |node: &u32| topology.nodes[*node as usize].kind == NodeKind::Switch;
        let balancers: Vec<Option<Hula>> =
            (0..nodes).map(|n| is_switch(&n).then(|| balancer_of(&topology, n, &fabric))).collect();
        let hula = |node: u32| balancers[node as usize].as_ref().unwrap();
        for (host, &node) in topology.hosts().iter().enumerate() {
            let (host, tor) = (host as u32, topology.ports()[node as usize][0].1);
            // (switch, port that the probe came by, it was sent down before)
            let (mut reached, mut all) = (BTreeSet::new(), Vec::new());
            let first = hula(tor).neighbours().iter().filter(|n| n.side == Side::Up);
            let mut next: Vec<(u32, u32, bool)> = first.map(|n| (n.node, n.port, false)).collect();
            while let Some((at, by, fell)) = next.pop() {
                if !routes.next_hops(at, host).contains(&by) || !reached.insert((at, by, fell)) {
                    continue;
                }
                all.push((at, by));
                // A switch with hosts keeps what it receives.
                let has_hosts = hula(at).neighbours().iter().any(|n| n.side == Side::Host);
                for (to, n) in hula(at).neighbours().iter().enumerate() {
                    if !has_hosts && hula(at).passes_on(by, to as u32) {
                        assert!(!(fell && n.side == Side::Up), "up after down at {at}");
                        next.push((n.node, n.port, fell || n.side == Side::Down));
                    }
                }
            }
            all.sort_unstable();
            all.dedup();
            let mut expected = Vec::new();
            for switch in (0..nodes).filter(is_switch).filter(|&switch| switch != tor) {
                expected.extend(routes.next_hops(switch, host).iter().map(|&port| (switch, port)));
            }
            expected.sort_unstable();
            assert_eq!(all, expected, "host {host}");
        }
    }
}

fn with_balancer(
    balancer: BalancerConfig,
    topology: Topology,
    flows: Vec<weftline_sim::workload::FlowSpec>,
) -> Config {
    let mut config = normal("dctcp", topology, flows);
    config.switch.balancer = balancer;
    config
}

#[test]
fn on_a_leaf_spine_a_round_of_probes_is_one_up_and_one_down_each_leaf_spine_and_other_leaf() {
    let mut config = with_balancer(BalancerConfig::Hula(hula(200)), leaf_spine(3, 2, 1), vec![]);
    config.until = Until::At(Time::from_us(2000));
    let (_, outcome) = run(config);
    // Ten rounds of 3 leaves, 2 spines: 6 up, and 12 down to the two other leaves; the last may still be in flight.
    assert!((10 * 18 - 2..=10 * 18).contains(&total(&outcome, "probes")), "{}", total(&outcome, "probes"));
    assert_eq!(total(&outcome, "probe_bytes"), total(&outcome, "probes") * 64);
    assert_eq!(sum_of(&outcome, |p| p.bytes_sent), total(&outcome, "probe_bytes"), "nothing else was sent");
}

#[test]
fn where_hosts_have_a_switch_in_each_of_two_planes_every_plane_has_its_probes() {
    let planes = Hpn { segments: 3, nodes_per_segment: 1, gpus: 1, spines: 2, ..Hpn::default() };
    let mut config = with_balancer(BalancerConfig::Hula(hula(200)), planes.build().unwrap(), vec![]);
    config.until = Until::At(Time::from_us(2000));
    let (_, outcome) = run(config);
    // Two leaf-spines as above.
    assert!((20 * 18 - 4..=20 * 18).contains(&total(&outcome, "probes")), "{}", total(&outcome, "probes"));
}

#[test]
fn a_host_on_two_switches_of_one_plane_is_refused_where_switches_know_the_racks() {
    let mut topology = leaf_spine(2, 2, 1);
    let (host, other) = (node_named(&topology, "host0"), node_named(&topology, "leaf1"));
    let first = topology.links[0].clone();
    topology.links.push(Link { a: host, b: other, ..first });
    let routes = Routes::compute(&topology, &|_| true, NextHopOrder::ByPort);
    let network = NetworkView::of(&topology, &routes);
    for balancer in [BalancerConfig::Hula(hula(200)), BalancerConfig::Conga(conga())] {
        let [(key, message)] = &balancer.problems(&network)[..] else { panic!("one problem") };
        assert_eq!(*key, "kind");
        assert!(message.contains("host0 has links to leaf0 and to leaf1, which are connected"), "{message}");
    }
}

/// A flow from leaf 0 to leaf 1 over two spines, one of which loses its link to leaf 1: utilisation of leaf 0's links to the
/// spines every 10 us.
fn after_failure(ranks: u8, at: Time) -> (Vec<(Time, [f64; 2])>, HulaParameters) {
    let topology = leaf_spine(2, 2, 4);
    let (leaf0, leaf1) = (node_named(&topology, "leaf0"), node_named(&topology, "leaf1"));
    let spines = ["spine0", "spine1"].map(|name| node_named(&topology, name));
    let ports = spines.map(|spine| (leaf0, port_towards(&topology, leaf0, spine)));
    let broken = link_between(&topology, spines[0], leaf1);
    let flows = (0..4).map(|host| flow(host, 4 + host, 20_000_000, Time::from_us(host as u64 * 3))).collect();
    let balancer = hula(50);
    let mut config = with_balancer(ranked(balancer, ranks), topology, flows);
    // Routes do not follow within the run: the balancer finds out by itself.
    let change = Change::LinkDown(broken);
    config.failures =
        Failures { detection: Time::from_ms(10_000), events: vec![Failure { at, change }], loss: None };
    config.until = Until::At(Time::from_ms(4));
    config.measure.utilisation = Some(Sampled { what: ports.to_vec(), every: Time::from_us(10) });
    let (kept, _) = run(config);
    let samples = kept.samples.chunks(2).map(|two| (two[0].time, [two[0].value, two[1].value])).collect();
    (samples, balancer)
}

#[test]
fn a_failed_path_is_left_within_the_time_of_failure_and_a_round_of_probes() {
    for ranks in [1, 2] {
        let at = Time::from_us(1003);
        let (samples, hula) = after_failure(ranks, at);
        let probe = |share: &f64| *share > 0.02;
        let before = samples.iter().filter(|s| s.0 < at && probe(&s.1[0])).count();
        assert!(before > 20, "{before} samples with traffic by the path that will fail");
        let left = at + hula.failure_time + hula.interval;
        let late: Vec<_> =
            samples.iter().filter(|s| s.0 > left + Time::from_us(10) && probe(&s.1[0])).collect();
        assert!(late.is_empty(), "traffic on the failed path after {left}: {late:?}");
        let carried = samples.iter().filter(|s| s.0 > left + Time::from_us(600) && s.1[1] > 0.9).count();
        assert!(carried > 100, "{carried} samples with a full second path");
    }
}

#[test]
fn lost_probes_are_made_good_by_the_next_ones() {
    let flows = random_flows(12, 60, 4);
    let mut config = with_balancer(ranked(hula(20), 2), leaf_spine(3, 2, 4), flows);
    config.failures.loss = Some(LinkLoss { share: 0.3, kinds: LinkLoss::PROBES });
    let (kept, outcome) = run(config);
    assert!(sum_of(&outcome, |p| p.packets_lost) > 10);
    assert_eq!(completion_times(&kept).len(), 60);
}

#[test]
fn probes_that_queue_among_the_traffic_arrive_too_and_every_switch_learns_of_every_rack() {
    for probe_class in [0, 3] {
        let balancer = BalancerConfig::Hula(HulaParameters { probe_class, ..hula(50) });
        let flows = random_flows(12, 60, 4);
        let (kept, outcome) = run(with_balancer(balancer, leaf_spine(3, 2, 4), flows));
        assert_eq!(completion_times(&kept).len(), 60);
        // Racks begin within the first interval; a probe is in flight for some 2 us, or waits in a queue.
        let settled = Time(outcome.counters.get("probes_settled_ns").unwrap());
        assert!(settled < Time::from_us(if probe_class == 0 { 55 } else { 400 }), "{settled}");
    }
}

#[test]
fn the_last_loss_after_a_failure_is_as_late_as_its_balancer_learns_of_it() {
    // Routes never follow. A hash loses packets until the end, HULA until its probes are missed.
    let last = |topology: &Topology, [spine, tor]: [&str; 2], balancer| {
        let broken = link_between(topology, node_named(topology, spine), node_named(topology, tor));
        let flows = (0..4).map(|h| flow(h, 4 + h, 20_000_000, Time::ZERO)).collect();
        let mut config = with_balancer(balancer, topology.clone(), flows);
        let (at, change) = (Time::from_us(1000), Change::LinkDown(broken));
        let events = vec![Failure { at, change }];
        config.failures = Failures { detection: Time::from_ms(10_000), events, loss: None };
        config.until = Until::At(Time::from_ms(4));
        rdma_of(&mut config).rto = Some(Time::from_us(200));
        run(config).1.last_loss.unwrap()
    };
    // Two segments of four nodes of one GPU: tor2 and spine0 are in the first plane, tor3 and spine2 in the second.
    let (host_link, fabric_link) =
        (link(Rate::from_gbps(10), Time::from_us(1)), link(Rate::from_gbps(10), Time::from_us(1)));
    let planes = Hpn { gpus: 1, spines: 2, host_link, fabric_link, ..Hpn::default() }.build().unwrap();
    let of_leaves = leaf_spine(2, 2, 4);
    let config = hula(50);
    let limit = Time::from_us(1000) + config.failure_time + config.interval + Time::from_us(10);
    for (topology, at) in
        [(&of_leaves, ["spine0", "leaf1"]), (&planes, ["spine0", "tor2"]), (&planes, ["spine2", "tor3"])]
    {
        let hula = last(topology, at, BalancerConfig::Hula(config));
        assert!(hula > Time::from_us(1000) && hula < limit, "{at:?}: {hula}, limit {limit}");
        let ecmp = last(topology, at, BalancerConfig::Ecmp(EcmpParameters { salt: 0 }));
        assert!(ecmp > limit + Time::from_us(500), "{at:?}: {ecmp}");
    }
}

fn conga() -> CongaParameters {
    CongaParameters {
        flowlets: FlowletParameters { gap: Time::from_us(20), slots: 1 << 16 },
        time_constant: Time::from_us(160),
        alpha: 205,
        bits: 3,
        ageing: Time::from_ms(10),
        header: 2,
        three_tier: false,
    }
}

#[test]
fn what_packets_carry_for_conga_is_on_the_links_between_switches_and_nowhere_else() {
    let flows = || vec![flow(0, 2, 100_000, Time::ZERO), flow(1, 0, 5_000, Time::ZERO)];
    let (_, plain) =
        run(with_balancer(BalancerConfig::Ecmp(EcmpParameters { salt: 0 }), leaf_spine(2, 2, 2), flows()));
    let (kept, outcome) = run(with_balancer(BalancerConfig::Conga(conga()), leaf_spine(2, 2, 2), flows()));
    assert_eq!(completion_times(&kept).len(), 2);
    // 100 data packets and as many acknowledgements cross two links between switches each; those of the other flow none.
    assert_eq!(total(&outcome, "balancer_header_bytes"), 2 * 2 * (100 + 100));
    assert_eq!(outcome.bytes_on_wire, plain.bytes_on_wire + total(&outcome, "balancer_header_bytes"));
    assert_eq!(outcome.packet_hops, plain.packet_hops);
}

#[test]
fn conga_spreads_flowlets_over_three_tiers_too() {
    let topology = FatTree { k: 4, hosts_per_tor: 0, ..FatTree::default() }.build().unwrap();
    let flows = random_flows(16, 120, 9);
    let balancer = BalancerConfig::Conga(CongaParameters { three_tier: true, ..conga() });
    let (kept, outcome) = run(with_balancer(balancer, topology, flows));
    assert_eq!(completion_times(&kept).len(), 120);
    assert!(total(&outcome, "balancer_header_bytes") > 0 && total(&outcome, "flowlets") > 120);
}

/// Share of leaf 0's bytes by the path whose second link has the full rate, and mean completion time in ns, where the other
/// path narrows to a fifth. Flows of 60 KB, one per this number of microseconds.
fn on_unequal_paths(balancer: BalancerConfig, every_us: u64, flows: u32) -> (f64, f64) {
    let mut topology = leaf_spine(2, 2, 8);
    let (leaf0, spine1) = (node_named(&topology, "leaf0"), node_named(&topology, "spine1"));
    let slow = link_between(&topology, node_named(&topology, "leaf1"), spine1);
    topology.links[slow as usize].rate = Rate::from_gbps(2);
    let ports = ["spine0", "spine1"].map(|name| port_towards(&topology, leaf0, node_named(&topology, name)));
    let flows =
        (0..flows).map(|n| flow(n % 8, 8 + (n * 3) % 8, 60_000, Time::from_us(u64::from(n) * every_us)));
    let mut config = with_balancer(balancer, topology, flows.collect());
    let mark = |gbps| EcnThreshold {
        rate: Rate::from_gbps(gbps),
        kmin: Bytes(60_000),
        kmax: Bytes(60_000),
        pmax: 1.0,
        at: Default::default(),
    };
    config.switch.ecn = vec![mark(2), mark(10)];
    let (kept, outcome) = run(config);
    let bytes = ports.map(|port| totals_of(&outcome, leaf0, port).bytes_sent as f64);
    let times = completion_times(&kept);
    let mean = times.iter().map(|t| t.as_ns()).sum::<f64>() / times.len() as f64;
    (bytes[0] / (bytes[0] + bytes[1]), mean)
}

#[test]
fn those_that_look_at_the_whole_path_avoid_the_narrow_one_and_a_hash_does_not() {
    let (ecmp, ecmp_mean) = on_unequal_paths(BalancerConfig::Ecmp(EcmpParameters { salt: 0 }), 160, 200);
    assert!((ecmp - 0.5).abs() < 0.08, "{ecmp}");
    for balancer in [BalancerConfig::Hula(hula(50)), BalancerConfig::Conga(conga())] {
        let (share, mean) = on_unequal_paths(balancer.clone(), 160, 200);
        println!(
            "{balancer:?}: {share:.3} by the wide path, mean {mean:.0} ns; ECMP {ecmp:.3}, {ecmp_mean:.0} ns"
        );
        assert!(share > 0.6 && mean < 0.8 * ecmp_mean, "{share}, {mean} {ecmp_mean}");
    }
}

/// Mean completion time in us, over five seeds, of flows of 10 KB, 200 KB and 2 MB between two leaves over two spines, with
/// two links from every leaf to every spine, one of which is down: CONGA's testbed. `bundled`: the two are one link of twice
/// the rate, which then has half of it left, so that no switch above the leaves has anything to choose.
fn with_one_link_down(
    balancer: BalancerConfig,
    load: f64,
    bundled: bool,
    (seeds, flows): (u64, usize),
) -> f64 {
    let mut total = 0.0;
    for seed in 0..seeds {
        let mut topology = leaf_spine(2, 2, 8);
        let (leaf1, spine1) = (node_named(&topology, "leaf1"), node_named(&topology, "spine1"));
        let broken = link_between(&topology, leaf1, spine1) as usize;
        if bundled {
            let fabric = topology.links.iter_mut().enumerate().filter(|(_, l)| l.a >= 16 && l.b >= 16);
            fabric.filter(|(at, _)| *at != broken).for_each(|(_, l)| l.rate = Rate::from_gbps(20));
        } else {
            let second: Vec<_> = topology.links.iter().filter(|l| l.a >= 16 && l.b >= 16).cloned().collect();
            topology.links.extend(second);
            topology.links.remove(broken);
        }
        let mut random = weftline_sim::engine::random::RandomStream::new(seed, "flows");
        let size = |u: f64| {
            if u < 0.5 {
                10_000
            } else if u < 0.9 {
                200_000
            } else {
                2_000_000
            }
        };
        // Mean 285 KB; the four links between a leaf and the spines carry 40 Gb/s one way when all are well.
        let mean_gap_ns = 285_000.0 * 8.0 / (load * 40.0);
        let mut now = 0.0;
        let flows = (0..flows)
            .map(|_| {
                now += random.exponential(mean_gap_ns);
                let (src, dst) = (random.below(8) as u32, 8 + random.below(8) as u32);
                flow(src, dst, size(random.uniform()), Time::from_ns(now as u64))
            })
            .collect();
        let mut config = with_balancer(balancer.clone(), topology, flows);
        config.seed = seed;
        let mark = |gbps| EcnThreshold {
            rate: Rate::from_gbps(gbps),
            kmin: Bytes(60_000),
            kmax: Bytes(60_000),
            pmax: 1.0,
            at: Default::default(),
        };
        config.switch.ecn = vec![mark(10), mark(20)];
        rdma_of(&mut config).rto = Some(Time::from_ms(5));
        rdma_of(&mut config).recovery = Recovery::SelectiveRepeat { reordering: 64 };
        let (kept, _) = run_in(1, config);
        let mut kept = kept;
        kept.flows.sort_by_key(|flow| flow.flow);
        let times = completion_times(&kept);
        total += times.iter().map(|t| t.as_ns()).sum::<f64>() / times.len() as f64 / 1000.0;
    }
    total / seeds as f64
}

/// Those that the papers compare, with one gap.
fn compared() -> [(&'static str, BalancerConfig); 4] {
    let flowlets = FlowletParameters { gap: Time::from_us(50), slots: 1 << 16 };
    [
        ("ecmp", BalancerConfig::Ecmp(EcmpParameters { salt: 0 })),
        ("letflow", BalancerConfig::LetFlow(LetFlowParameters { flowlets })),
        ("conga", BalancerConfig::Conga(CongaParameters { flowlets, ..conga() })),
        ("hula", BalancerConfig::Hula(HulaParameters { flowlets, ..hula(100) })),
    ]
}

#[test]
fn with_a_link_down_those_that_know_of_it_are_ahead_of_letflow_and_that_of_a_hash() {
    let [ecmp, letflow, conga, hula] =
        compared().map(|(_, balancer)| with_one_link_down(balancer, 0.6, true, (2, 600)));
    println!("ecmp {ecmp:.0} us, letflow {letflow:.0}, conga {conga:.0}, hula {hula:.0}");
    assert!(ecmp > 1.5 * letflow && letflow > conga && letflow > hula);
}

#[test]
#[ignore = "takes a while; prints a table"]
fn with_a_link_down_ecmp_letflow_conga_and_hula_order_as_their_papers_report() {
    for (bundled, load) in [(true, 0.4), (true, 0.6), (false, 0.4), (false, 0.6)] {
        let means = compared().map(|(name, balancer)| {
            let mean = with_one_link_down(balancer, load, bundled, (5, 1500));
            println!("bundled {bundled}, load {load}: {name:8} {mean:8.1} us");
            mean
        });
        let [ecmp, letflow, conga, hula] = means;
        assert!(ecmp > letflow && letflow > hula, "load {load}: {means:?}");
        // Where links are parallel, CONGA's spines hash whole flows onto them; those of LetFlow and HULA move flowlets.
        assert!(!bundled || letflow > conga, "load {load}: {means:?}");
    }
}

/// An answer that is late only because packets take long to be sent does not mean a bad path.
#[test]
fn conweave_moves_no_flow_on_an_idle_network_of_any_rate_and_mtu() {
    let networks = [
        ("kind = \"leaf-spine\"\nleaves = 2\nspines = 4\nhosts_per_leaf = 1", 1),
        ("kind = \"fat-tree\"\nk = 4", 12),
    ];
    for (network, dst) in networks {
        for (host, fabric) in [(1, 1), (10, 40), (25, 25), (100, 100), (400, 400)] {
            for mtu in [256u64, 1000, 8900] {
                let text = format!(
                    r#"
                    [topology]
                    {network}
                    host_link = {{ rate = "{host}Gbps", delay = "1us" }}
                    fabric_link = {{ rate = "{fabric}Gbps", delay = "1us" }}
                    [transport]
                    kind = "rdma"
                    controller = {{ kind = "dcqcn" }}
                    mtu = "{mtu}B"
                    [switch]
                    balancer = {{ kind = "conweave" }}
                    [[workload]]
                    kind = "flows"
                    flows = [{{ src = 0, dst = {dst}, size = "{}B", start = "0us" }}]
                    "#,
                    100 * mtu + 10
                );
                let scenario = load(&text, &[]).unwrap_or_else(|error| panic!("{error}"));
                let (_, outcome) = run_in(1, scenario.config().expect("a configuration"));
                let [requests, answers, moves] =
                    ["path_requests", "path_answers", "path_moves"].map(|key| total(&outcome, key));
                let case = format!("{network}, {host} and {fabric} Gb/s, {mtu} B");
                assert!(
                    requests > 0 && (answers, moves) == (requests, 0),
                    "{case}: {requests}, {answers}, {moves}"
                );
            }
        }
    }
}
