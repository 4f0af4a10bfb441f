use super::*;
use crate::topology::{NextHopOrder, Routes};

#[test]
fn the_default_has_64_hosts_and_160_gbps_between_its_halves() {
    let topology = Pods::default().build().unwrap();
    assert_eq!((topology.hosts().len(), topology.nodes.len()), (64, 64 + 4 + 4 + 2));
    assert_eq!(topology.links.len(), 64 + 4 * 2 + 4 * 2);
    let name = |node: u32| topology.nodes[node as usize].name.as_str();
    // The links of the first pod to the cores: agg0 and agg1 to both cores.
    let up: Vec<_> = topology.links.iter().filter(|l| name(l.b).starts_with("core")).collect();
    let first: Vec<_> = up.iter().filter(|l| matches!(name(l.a), "agg0" | "agg1")).collect();
    assert_eq!(first.iter().map(|l| l.rate.0).sum::<u64>(), 160_000_000_000);
    // Two uplinks at each of two tiers: a host has four paths to the other pod, and eight if the
    // downlinks are counted too.
    let routes = Routes::compute(&topology, &|_| true, NextHopOrder::ByPort);
    let hops = |node: &str| {
        let node = topology.nodes.iter().position(|n| n.name == node).unwrap() as u32;
        routes.next_hops(node, 63).len()
    };
    assert_eq!(["leaf0", "agg0", "core0", "agg2", "leaf3"].map(hops), [2, 2, 2, 1, 1]);
}

#[test]
fn cores_may_have_links_of_their_own_rate_and_counts_above_zero_are_asked_for() {
    let slow = Pods { core_rate: Some(Rate::from_gbps(10)), ..Pods::default() }.build().unwrap();
    assert_eq!(slow.links.last().unwrap().rate, Rate::from_gbps(10));
    let none = Pods { cores: 0, ..Pods::default() }.build().unwrap_err().to_string();
    assert_eq!(none, "cores: expected at least 1, found 0");
}
