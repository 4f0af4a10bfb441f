use super::super::{NextHopOrder, fat_tree::FatTree};
use super::super::{dumbbell::Dumbbell, hpcc_fat_tree::HpccFatTree, leaf_spine::LeafSpine, star::Star};
use super::*;
use crate::topology::TopologyParameters;

fn base(topology: &Topology, payload: u64) -> (Time, u64) {
    let routes = Routes::compute(topology, &|_| true, NextHopOrder::DescendingNodeId);
    let result = max_base_rtt(topology, &routes, payload, true);
    assert_eq!(result, max_base_rtt(topology, &routes, payload, false), "whole nanoseconds at these rates");
    result
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

#[test]
fn a_hop_is_rounded_up_to_picoseconds_or_down_to_nanoseconds() {
    let mut t = Star { hosts: 2, ..Star::default() }.build().unwrap();
    // 8000 bits at 3 Gb/s: 2666.67 ns.
    t.links[1].rate = Rate::from_gbps(3);
    let routes = Routes::compute(&t, &|_| true, NextHopOrder::ByPort);
    let times = PathTimes::new(&t, &routes);
    assert_eq!(times.base_rtt(0, 1, 1000, true), Some(Time::from_ns(4000 + 80 + 2666)));
    assert_eq!(times.base_rtt(0, 1, 1000, false), Some(Time(4_000_000 + 80_000 + 2_666_667)));
    let path = times.pair(1, 0).unwrap();
    assert_eq!((path.hops, path.bottleneck, path.first), (2, Rate::from_gbps(3), Rate::from_gbps(3)));
    assert_eq!(times.pair(1, 1), None);
}

#[test]
fn representatives_stand_for_all_pairs() {
    let mut t =
        LeafSpine { leaves: 3, spines: 2, hosts_per_leaf: 4, ..LeafSpine::default() }.build().unwrap();
    t.links[5].rate = Rate::from_gbps(10);
    t.links[9].delay = Time::from_us(7);
    let routes = Routes::compute(&t, &|_| true, NextHopOrder::ByPort);
    let times = PathTimes::new(&t, &routes);
    assert_eq!(times.representatives(), [0, 1, 4, 5, 6, 8, 9, 10]);
    let all = (0..12).flat_map(|a| (0..12).map(move |b| (a, b)));
    let rtts: Vec<(Time, u64)> = all
        .filter_map(|(a, b)| {
            let rtt = times.base_rtt(a, b, 1460, false)?;
            Some((rtt, times.pair(a, b)?.bottleneck.bytes_in(rtt).0))
        })
        .collect();
    let expected = (rtts.iter().map(|r| r.0).max().unwrap(), rtts.iter().map(|r| r.1).max().unwrap());
    assert_eq!(max_base_rtt(&t, &routes, 1460, false), expected);
}

#[test]
fn ten_thousand_hosts_take_no_time_to_speak_of() {
    let t = FatTree { k: 34, ..FatTree::default() }.build().unwrap();
    assert_eq!(t.hosts().len(), 9826);
    let start = std::time::Instant::now();
    let routes = Routes::compute(&t, &|_| true, NextHopOrder::ByPort);
    assert_eq!(max_base_rtt(&t, &routes, 1000, false).0, Time::from_ns(12_480));
    // Takes half a second alone; the bound only detects work that grows with pairs of hosts.
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}
