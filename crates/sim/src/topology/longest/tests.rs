use proptest::prelude::*;

use super::super::fat_tree::FatTree;
use super::super::{dumbbell::Dumbbell, hpcc_fat_tree::HpccFatTree, leaf_spine::LeafSpine, star::Star};
use super::*;
use crate::topology::TopologyParameters;
use crate::topology::{HostId, Link, NextHopOrder, Node, NodeKind, PathTimes};

fn base(topology: &Topology, payload: u64) -> (Time, u64) {
    let routes = Routes::compute(topology, &|_| true, NextHopOrder::DescendingNodeId);
    let result = longest(topology, &routes, payload, true);
    assert_eq!(result, longest(topology, &routes, payload, false), "whole nanoseconds at these rates");
    assert_eq!(result, by_definition(topology, &routes, payload, true));
    (result.base_rtt, result.product)
}

#[test]
fn base_rtts_are_those_of_the_authors_simulator() {
    let star = Star { hosts: 17, ..Star::default() }.build().unwrap();
    assert_eq!(base(&star, 1000), (Time::from_ns(4160), 52_000));
    let pod = HpccFatTree { pods: 1, tors_per_pod: 2, cores_per_agg: 0, ..HpccFatTree::default() };
    assert_eq!(base(&pod.build().unwrap(), 1000), (Time::from_ns(8200), 102_500));
    let fat = HpccFatTree::default().build().unwrap();
    assert_eq!(base(&fat, 1000), (Time::from_ns(12_240), 153_000));
    let dumbbell = Dumbbell::default().build().unwrap();
    assert_eq!(base(&dumbbell, 1000), (Time::from_ns(6240), 78_000));
}

/// Pair by pair, and path by path.
fn by_definition(topology: &Topology, routes: &Routes, payload: u64, whole_ns: bool) -> Longest {
    if !whole_ns {
        return over_all_paths(topology, routes, payload);
    }
    let times = PathTimes::new(topology, routes);
    let hosts = routes.hosts() as HostId;
    let mut longest = Longest::default();
    for (src, dst) in (0..hosts).flat_map(|src| (0..hosts).map(move |dst| (src, dst))) {
        let Some(path) = times.pair(src, dst) else { continue };
        let rtt = times.base_rtt(src, dst, payload, whole_ns).unwrap();
        longest.hops = longest.hops.max(path.hops);
        longest.base_rtt = longest.base_rtt.max(rtt);
        longest.product = longest.product.max(path.bottleneck.bytes_in(rtt).0);
    }
    longest
}

fn over_all_paths(topology: &Topology, routes: &Routes, payload: u64) -> Longest {
    let ports = topology.ports();
    let mut longest = Longest::default();
    for dst in 0..routes.hosts() as HostId {
        let mut known = FxHashMap::default();
        known.insert(routes.host_node(dst), vec![Cost::NOTHING]);
        for src in (0..routes.hosts() as HostId).filter(|&src| src != dst) {
            for cost in costs_to(dst, routes.host_node(src), (topology, routes, &ports, payload), &mut known)
            {
                longest.hops = longest.hops.max(cost.hops);
                longest.base_rtt = longest.base_rtt.max(cost.base_rtt());
                longest.product = longest.product.max(cost.bottleneck.bytes_in(cost.base_rtt()).0);
            }
        }
    }
    longest
}

/// The distinct costs of all shortest paths from a node to a host.
fn costs_to(
    dst: HostId,
    node: NodeId,
    of: (&Topology, &Routes, &Ports, u64),
    known: &mut FxHashMap<NodeId, Vec<Cost>>,
) -> Vec<Cost> {
    if let Some(costs) = known.get(&node) {
        return costs.clone();
    }
    let (topology, routes, ports, payload) = of;
    let mut costs = Vec::new();
    for &port in routes.next_hops(node, dst) {
        let (link, next) = ports[node as usize][port as usize];
        let link = &topology.links[link as usize];
        let sending = sending_time(link.rate, payload, false);
        let own = Cost { hops: 1, delay: link.delay, sending, bottleneck: link.rate };
        costs.extend(costs_to(dst, next, of, known).into_iter().map(|cost| own.and(cost)));
    }
    costs.sort_by_key(|cost| (cost.hops, cost.delay, cost.sending, cost.bottleneck));
    costs.dedup();
    known.insert(node, costs.clone());
    costs
}

#[test]
fn the_slower_of_two_spines_counts_whichever_is_first() {
    for slow in [0, 1] {
        let mut t =
            LeafSpine { leaves: 2, spines: 2, hosts_per_leaf: 2, ..LeafSpine::default() }.build().unwrap();
        let name = format!("spine{slow}");
        let spine = t.nodes.iter().position(|node| node.name == name).unwrap() as u32;
        for link in t.links.iter_mut().filter(|link| link.a == spine || link.b == spine) {
            link.delay = Time::from_ms(2);
        }
        for order in [NextHopOrder::ByPort, NextHopOrder::DescendingNodeId] {
            let routes = Routes::compute(&t, &|_| true, order);
            assert!(longest(&t, &routes, 1000, false).base_rtt > Time::from_ms(8));
        }
    }
}

#[test]
fn hosts_of_one_switch_count_by_their_links() {
    let hosts = |hosts_per_leaf| LeafSpine { leaves: 3, spines: 2, hosts_per_leaf, ..LeafSpine::default() };
    let mut t = hosts(4).build().unwrap();
    t.links[5].rate = Rate::from_gbps(10);
    t.links[9].delay = Time::from_us(700);
    let mut lone = hosts(1).build().unwrap();
    lone.links[0].delay = Time::from_us(700);
    for t in [&t, &lone] {
        let routes = Routes::compute(t, &|_| true, NextHopOrder::ByPort);
        assert_eq!(longest(t, &routes, 1460, false), by_definition(t, &routes, 1460, false));
    }
}

fn kinds(hosts: usize, switches: usize) -> Vec<NodeKind> {
    [vec![NodeKind::Host; hosts], vec![NodeKind::Switch; switches]].concat()
}

/// Links between these nodes, with some of four rates and many delays.
fn network(kinds: &[NodeKind], links: &[(u32, u32, u32)]) -> Topology {
    let node = |(i, &kind): (usize, &NodeKind)| Node { name: format!("n{i}"), kind, tier: 1 };
    let link = |&(a, b, draw): &(u32, u32, u32)| Link {
        a,
        b,
        rate: Rate([3, 10, 25, 100][draw as usize % 4] * 1_000_000_000),
        delay: Time(u64::from(draw / 4 % 50 + 1) * 100_000),
    };
    let (nodes, links) = (kinds.iter().enumerate().map(node).collect(), links.iter().map(link).collect());
    Topology { nodes, links, host_labels: Vec::new(), extra_hosts: 0, parts: Vec::new(), gpus_per_node: None }
}

proptest! {
    #[test]
    fn any_network_has_the_longest_paths_of_the_definition(
        (hosts, switches) in (2u32..9, 1u32..7),
        ends in prop::collection::vec((0u32..16, 0u32..16, 0u32..4000, prop::bool::weighted(0.9)), 1..40),
        whole_ns in prop::bool::ANY,
        few_kinds in prop::bool::ANY,
    ) {
        let n = hosts + switches;
        let ends: Vec<_> = ends.into_iter().map(|(a, b, draw, up)| (a % n, b % n, draw, up)).filter(|l| l.0 != l.1).collect();
        let links: Vec<_> = ends.iter().map(|&(a, b, draw, _)| (a, b, if few_kinds { draw % 2 } else { draw })).collect();
        let t = network(&kinds(hosts as usize, switches as usize), &links);
        for order in [NextHopOrder::ByPort, NextHopOrder::DescendingNodeId] {
            let routes = Routes::compute(&t, &|link| ends[link as usize].3, order);
            prop_assert_eq!(longest(&t, &routes, 1460, whole_ns), by_definition(&t, &routes, 1460, whole_ns));
        }
    }
}

#[test]
fn what_is_known_is_that_of_its_payload_and_way_of_counting() {
    let t = network(&kinds(3, 2), &[(0, 3, 1), (1, 3, 2), (2, 4, 3), (3, 4, 5)]);
    let routes = Routes::compute(&t, &|_| true, NextHopOrder::ByPort);
    let known = KnownLongest::default();
    for (payload, whole_ns) in [(1000, false), (0, false), (1000, true), (1000, false), (0, false)] {
        let found = known.find(&t, &routes, payload, whole_ns);
        assert_eq!(found, longest(&t, &routes, payload, whole_ns));
    }
    assert_eq!(known.0.lock().unwrap().len(), 3, "each is sought once");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn networks_with_several_columns_of_targets_have_the_longest_paths_of_the_definition(
        chords in prop::collection::vec((0u32..150, 0u32..150, 0u32..4000), 20..120),
        draws in prop::collection::vec(0u32..4000, 450),
    ) {
        // 300 hosts, two on each switch; the switches form a line with additional links.
        let n = 300;
        let mut links: Vec<(u32, u32, u32)> = (0..n).map(|host| (host, n + host / 2, draws[host as usize])).collect();
        links.extend((1..150).map(|switch| (n + switch - 1, n + switch, draws[(n + switch) as usize])));
        links.extend(chords.iter().filter(|(a, b, _)| a != b).map(|&(a, b, draw)| (n + a, n + b, draw)));
        let t = network(&kinds(n as usize, 150), &links);
        let routes = Routes::compute(&t, &|_| true, NextHopOrder::ByPort);
        prop_assert_eq!(longest(&t, &routes, 1000, false), by_definition(&t, &routes, 1000, false));
    }
}

#[test]
fn in_a_fat_tree_few_nodes_are_looked_at_for_each_column_of_targets() {
    let steps = |k| {
        let t = FatTree { k, ..FatTree::default() }.build().unwrap();
        let routes = Routes::compute(&t, &|_| true, NextHopOrder::ByPort);
        let mut search = Search::new(&t, &routes, 1000, false);
        assert_eq!(search.run().base_rtt, Time::from_ns(12_480));
        (search.steps as f64, t.switches().len() as f64)
    };
    let ((small, few), (large, many)) = (steps(16), steps(32));
    // Pairs of switches over 64, and a node for each on the first paths.
    assert!(small <= few * few / 64.0 * 2.0 && large <= many * many / 64.0 * 2.0, "{small} {large}");
}
