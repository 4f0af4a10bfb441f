//! Tests of `work`.

use super::*;
use crate::topology::TopologyParameters;
use crate::topology::dumbbell::Dumbbell;
use crate::topology::hpcc_fat_tree::HpccFatTree;
use crate::topology::{LinkSpec, NextHopOrder};
use crate::workload::FlowSource;

#[derive(Clone)]
struct Listed(std::vec::IntoIter<FlowSpec>);

impl FlowSource for Listed {
    fn next(&mut self) -> Option<FlowSpec> {
        self.0.next()
    }
    fn clone_box(&self) -> Box<dyn FlowSource> {
        Box::new(self.clone())
    }
}

fn work(topology: &Topology, flows: Vec<FlowSpec>) -> Work {
    work_until(topology, flows, Time::MAX)
}

fn work_until(topology: &Topology, flows: Vec<FlowSpec>, end: Time) -> Work {
    let traffic = Traffic { sources: vec![Box::new(Listed(flows.into_iter()))], groups: vec!["all".into()] };
    let routes = Routes::compute(topology, &|_| true, NextHopOrder::ByPort);
    Work::of(topology, &routes, &traffic, end)
}

fn flow(src: u32, dst: u32, size: u64) -> FlowSpec {
    FlowSpec { src, dst, size, ..FlowSpec::default() }
}

#[test]
fn a_flow_is_work_for_every_node_that_it_crosses() {
    let (host_link, bottleneck_link) = (LinkSpec::HOST, LinkSpec::HOST);
    let topology =
        Dumbbell { left: 2, right: 2, host_link, bottleneck_link, ..Dumbbell::default() }.build().unwrap();
    let found = work(&topology, vec![flow(0, 2, 10_000)]);
    // Hosts 0 to 3, then the switches: 30 + 30 + 20 + 20 over six nodes, a fiftieth of their mean and one besides.
    assert_eq!(found.nodes, [31, 1, 31, 1, 21, 21]);
    assert_eq!(found.links.iter().sum::<u64>(), 5 + 3 * 10);
    // 10 packets over 3 links and their acknowledgements, in the 800 ns that 10 KB take at 100 Gb/s.
    assert!((found.hops_per_second - 60.0 / 800e-9).abs() < 1.0);
}

#[test]
fn paths_of_equal_length_share_the_work() {
    let topology = HpccFatTree::default().build().unwrap();
    let flows = (0..320 * 20).map(|n| flow(n % 320, (n * 7 + 64 + n / 320) % 320, 1000)).collect();
    let found = work(&topology, flows);
    let cores = &found.nodes[320 + 40..];
    let mean = cores.iter().sum::<u64>() / 16;
    assert!(cores.iter().all(|&core| core > mean * 8 / 10 && core < mean * 12 / 10), "{cores:?}");
}

#[test]
fn what_links_of_hosts_cannot_carry_before_the_end_is_no_work() {
    let (host_link, bottleneck_link) = (LinkSpec::HOST, LinkSpec::HOST);
    let topology =
        Dumbbell { left: 2, right: 2, host_link, bottleneck_link, ..Dumbbell::default() }.build().unwrap();
    let packets = |flows, end| work_until(&topology, flows, end).links.iter().sum::<u64>() - 5;
    let late = FlowSpec { start: Time::from_us(3), ..flow(1, 3, 10_000) };
    // 100 Gb/s carry 50 packets of 1 KB in 4 us over each of three links, and 12 KB in the last of them.
    assert_eq!(packets(vec![flow(0, 2, 1_000_000)], Time::from_us(4)), 3 * 50);
    assert_eq!(packets(vec![flow(0, 2, 20_000), late], Time::from_us(4)), 3 * (20 + 10));
    assert_eq!(packets(vec![flow(0, 2, 20_000), late], Time::from_us(3)), 3 * 20);
    // A second flow of the same host has what the first leaves.
    assert_eq!(packets(vec![flow(0, 2, 40_000), flow(0, 3, 1_000_000)], Time::from_us(4)), 3 * 50);
}

#[test]
fn the_last_hosts_of_a_permutation_count_in_a_large_network() {
    let (host_link, bottleneck_link) = (LinkSpec::HOST, LinkSpec::HOST);
    let (left, right) = (MAX_FLOWS as u64 / 2 + 50, MAX_FLOWS as u64 / 2 + 50);
    let topology =
        Dumbbell { left, right, host_link, bottleneck_link, ..Dumbbell::default() }.build().unwrap();
    let hosts = (left + right) as u32;
    let found = work(&topology, (0..hosts).map(|host| flow(host, (host + 1) % hosts, 10_000)).collect());
    let all = &found.nodes[..hosts as usize];
    assert!(all.iter().all(|&work| work == all[0]), "{:?}", &all[all.len() - 60..]);
}

#[test]
fn no_traffic_is_no_work_and_no_division_by_zero() {
    let topology = HpccFatTree::default().build().unwrap();
    let found = work(&topology, vec![]);
    assert!(found.hops_per_second == 0.0 && found.nodes.iter().all(|&node| node == 1));
}
