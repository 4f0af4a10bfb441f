use crate::topology::TopologyParameters;
use proptest::prelude::*;

use super::super::{
    Link, Node, NodeKind, fat_tree::FatTree, hpcc_fat_tree::HpccFatTree, leaf_spine::LeafSpine,
};
use super::search::Search;
use super::*;
use crate::units::{Rate, Time};

fn all(_: LinkId) -> bool {
    true
}

fn network(kinds: &[NodeKind], links: &[(u32, u32)]) -> Topology {
    let node = |(i, &kind): (usize, &NodeKind)| Node { name: format!("n{i}"), kind, tier: 1 };
    let link = |&(a, b): &(u32, u32)| Link { a, b, rate: Rate::from_gbps(1), delay: Time::from_us(1) };
    Topology {
        nodes: kinds.iter().enumerate().map(node).collect(),
        links: links.iter().map(link).collect(),
        host_labels: Vec::new(),
        gpus_per_node: None,
        extra_hosts: 0,
        parts: Vec::new(),
    }
}

#[test]
fn a_leaf_sends_to_all_spines_and_a_spine_to_one_leaf() {
    let t = LeafSpine { leaves: 2, spines: 3, hosts_per_leaf: 2, ..LeafSpine::default() }.build().unwrap();
    // Nodes: hosts 0..3, leaf0 = 4, leaf1 = 5, spine0 = 6 ...
    let routes = Routes::compute(&t, &all, NextHopOrder::ByPort);
    assert_eq!(routes.next_hops(4, 1), [1], "down to its own host");
    assert_eq!(routes.next_hops(4, 2), [2, 3, 4], "up to every spine");
    assert_eq!(routes.next_hops(7, 2), [1], "spine1's second port leads to leaf1");
    assert_eq!(routes.next_hops(0, 3), [0]);
    assert!(routes.next_hops(0, 0).is_empty());
    let descending = Routes::compute(&t, &all, NextHopOrder::DescendingNodeId);
    assert_eq!(descending.next_hops(4, 2), [4, 3, 2]);
}

#[test]
fn parallel_links_stay_in_port_order_when_nodes_descend() {
    use NodeKind::{Host, Switch};
    let t = network(
        &[Host, Host, Switch, Switch, Switch, Switch],
        &[(0, 2), (2, 3), (2, 4), (2, 3), (2, 4), (3, 5), (4, 5), (5, 1)],
    );
    let routes = Routes::compute(&t, &all, NextHopOrder::DescendingNodeId);
    assert_eq!(routes.next_hops(2, 1), [2, 4, 1, 3], "node 4 by ports 2 and 4, then node 3 by ports 1 and 3");
    assert_eq!(Routes::compute(&t, &all, NextHopOrder::ByPort).next_hops(2, 1), [1, 2, 3, 4]);
}

#[test]
fn routes_go_around_links_and_switches_that_are_down() {
    let t = LeafSpine { leaves: 2, spines: 2, hosts_per_leaf: 1, ..LeafSpine::default() }.build().unwrap();
    // Links: 0 host0-leaf0, 1 host1-leaf1, 2 leaf0-spine0, 3 leaf0-spine1, 4 leaf1-spine0, 5 leaf1-spine1.
    let without = |down: &'static [u32]| Routes::compute(&t, &|l| !down.contains(&l), NextHopOrder::ByPort);
    assert_eq!(without(&[4]).next_hops(2, 1), [2], "only spine1 is left");
    assert!(without(&[4]).next_hops(4, 1) == [0], "spine0 goes back by leaf0");
    assert_eq!(without(&[2, 4]).next_hops(2, 1), [2], "spine0 down");
    let cut = without(&[1]);
    assert!((0..6).all(|node| cut.next_hops(node, 1).is_empty()), "nothing reaches a host without a link");
    assert!(cut.next_hops(1, 0).is_empty());
    assert_eq!(cut.next_hops(2, 0), [0]);
}

#[test]
fn hosts_with_two_links_choose_among_them_and_never_transit() {
    use NodeKind::{Host, Switch};
    // Two planes: host0 and host1 are on both switches, host2 on the first only.
    let t = network(&[Host, Host, Host, Switch, Switch], &[(0, 3), (0, 4), (1, 3), (1, 4), (2, 3)]);
    let routes = Routes::compute(&t, &all, NextHopOrder::ByPort);
    assert_eq!(routes.next_hops(0, 1), [0, 1]);
    assert_eq!(routes.next_hops(0, 2), [0]);
    assert!(routes.next_hops(4, 2).is_empty(), "the second plane does not reach host2 through a host");
    assert_eq!(routes.access_ports(0), [0, 1]);
}

#[test]
fn the_fat_tree_has_four_ways_up_at_each_tier() {
    let t = HpccFatTree::default().build().unwrap();
    let routes = Routes::compute(&t, &all, NextHopOrder::DescendingNodeId);
    // ToR 320 has 16 host ports, then aggregation switches 340 to 343; 340 has 4 ToRs, then cores.
    assert_eq!(routes.next_hops(320, 319), [19, 18, 17, 16]);
    assert_eq!(routes.next_hops(340, 319), [7, 6, 5, 4]);
    assert_eq!(routes.next_hops(360, 319), [4]);
    assert_eq!(routes.hops_from(routes.row(340), 319), NextHops::Many(&[7, 6, 5, 4]));
    assert_eq!(routes.hops_from(routes.row(360), 319), NextHops::One(4));
    assert_eq!(routes.hops_from(routes.row(0), 319), NextHops::One(0));
}

/// The definition, host by host: next hops are neighbours one step closer, through switches only.
fn by_definition(t: &Topology, usable: &dyn Fn(LinkId) -> bool, dst: NodeId) -> Vec<Vec<u32>> {
    let ports = t.ports();
    let passes = |n: NodeId| n == dst || t.nodes[n as usize].kind == NodeKind::Switch;
    let mut distance = vec![usize::MAX; t.nodes.len()];
    distance[dst as usize] = 0;
    let mut changed = true;
    while std::mem::take(&mut changed) {
        for (_, link) in t.links.iter().enumerate().filter(|(l, _)| usable(*l as LinkId)) {
            for (from, to) in [(link.a, link.b), (link.b, link.a)] {
                let by_this = distance[to as usize].saturating_add(1);
                if passes(to) && by_this < distance[from as usize] {
                    distance[from as usize] = by_this;
                    changed = true;
                }
            }
        }
    }
    let closer = |n: usize, &(l, to): &(LinkId, NodeId)| {
        let there = distance[to as usize];
        usable(l) && passes(to) && there != usize::MAX && there + 1 == distance[n]
    };
    (0..t.nodes.len())
        .map(|n| (0..ports[n].len()).filter(|&p| closer(n, &ports[n][p])).map(|p| p as u32).collect())
        .collect()
}

/// Next hops of all pairs by the definition.
fn check_all(t: &Topology, usable: &dyn Fn(LinkId) -> bool, routes: &Routes) -> Result<(), TestCaseError> {
    for (host, &dst) in t.hosts().iter().enumerate() {
        let expected = by_definition(t, usable, dst);
        for node in 0..t.nodes.len() as u32 {
            let (expected, host) = (&expected[node as usize][..], host as u32);
            prop_assert_eq!(routes.next_hops(node, host), expected, "{} to {}", node, dst);
            let by_row = match expected {
                [] => NextHops::None,
                &[port] => NextHops::One(port),
                ports => NextHops::Many(ports),
            };
            if node != dst {
                prop_assert_eq!(routes.hops_from(routes.row(node), host), by_row, "{} to {}", node, dst);
            }
        }
    }
    Ok(())
}

/// Direct chunks; packed ones; some of each, without memory from column to column.
const ALL_LIMITS: [Limits; 3] =
    [Limits::USUAL, Limits { direct: 0, known: 1 << 16 }, Limits { direct: 5, known: 0 }];

proptest! {
    #[test]
    fn routes_of_any_network_are_those_of_the_definition(
        kinds in prop::collection::vec(prop::bool::ANY, 2..10),
        ends in prop::collection::vec((0u32..10, 0u32..10, prop::bool::weighted(0.8)), 1..25),
    ) {
        let n = kinds.len() as u32;
        let kinds: Vec<NodeKind> =
            kinds.iter().map(|&host| if host { NodeKind::Host } else { NodeKind::Switch }).collect();
        let kept: Vec<(u32, u32, bool)> =
            ends.iter().map(|&(a, b, up)| (a % n, b % n, up)).filter(|(a, b, _)| a != b).collect();
        let links: Vec<(u32, u32)> = kept.iter().map(|&(a, b, _)| (a, b)).collect();
        let t = network(&kinds, &links);
        let usable = |l: LinkId| kept[l as usize].2;
        for limits in ALL_LIMITS {
            check_all(&t, &usable, &Search::new(&t, &usable, NextHopOrder::ByPort).run(limits))?;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]
    #[test]
    fn routes_of_graphs_with_several_chunks_a_row_are_those_of_the_definition(
        chords in prop::collection::vec((0u32..150, 0u32..150), 60..120),
        down in prop::collection::vec(0u32..400, 0..6),
    ) {
        let t = graph(150, &chords);
        let usable = |l: LinkId| !down.contains(&l);
        for limits in ALL_LIMITS {
            check_all(&t, &usable, &Search::new(&t, &usable, NextHopOrder::ByPort).run(limits))?;
        }
    }
}

/// Hosts 0 to n - 1, each on a switch of its own; the switches form a line with additional links.
fn graph(n: u32, chords: &[(u32, u32)]) -> Topology {
    let kinds: Vec<NodeKind> =
        (0..2 * n).map(|node| if node < n { NodeKind::Host } else { NodeKind::Switch }).collect();
    let mut links: Vec<(u32, u32)> = (0..n).map(|host| (host, n + host)).collect();
    links.extend((1..n).map(|switch| (n + switch - 1, n + switch)));
    links.extend(chords.iter().filter(|(a, b)| a != b).map(|&(a, b)| (n + a, n + b)));
    network(&kinds, &links)
}

#[test]
fn a_fat_tree_of_8192_hosts_takes_some_300_kb_of_which_the_table_is_5_kb() {
    let t = FatTree { k: 32, ..FatTree::default() }.build().unwrap();
    let routes = Routes::compute(&t, &all, NextHopOrder::ByPort);
    assert_eq!(routes.hosts(), 8192);
    assert!(routes.memory_bytes() < 350_000, "{}", routes.memory_bytes());
    // The rest is four words per host and five per node.
    assert!(routes.table.memory_bytes() < 6_000, "{}", routes.table.memory_bytes());
    // ToR 8192: ports 0 to 15 are hosts; aggregation 8704; core 9216, of which each port is a pod.
    assert_eq!(routes.next_hops(8192, 15), [15]);
    assert_eq!(routes.next_hops(8192, 16), (16..32).collect::<Vec<u32>>());
    assert_eq!(routes.next_hops(8704, 255), [15]);
    assert_eq!(routes.next_hops(9216, 8191), [31]);
}

#[test]
fn packed_an_irregular_graph_takes_some_nine_bits_for_each_pair_of_switch_and_host() {
    let n = 1500;
    let mut place = 1u64;
    let mut any = || {
        place = place.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((place >> 33) % u64::from(n)) as u32
    };
    let chords: Vec<(u32, u32)> = (0..n).map(|_| (any(), any())).collect();
    let search = Search::new(&graph(n, &chords), &all, NextHopOrder::ByPort);
    let routes = search.run(Limits { direct: 0, ..Limits::USUAL });
    let (direct, packed) = routes.table.forms();
    assert!(direct == 0 && packed > 0);
    let bytes = routes.memory_bytes();
    assert!(bytes < (n * n) as usize * 5 / 4, "{bytes}");
}

#[test]
fn threads_share_routes() {
    fn shared<T: Send + Sync>() {}
    shared::<Routes>();
}
