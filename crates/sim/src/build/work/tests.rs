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
    let traffic = Traffic { sources: vec![Box::new(Listed(flows.into_iter()))], groups: vec!["all".into()] };
    let routes = Routes::compute(topology, &|_| true, NextHopOrder::ByPort);
    Work::of(topology, &routes, &traffic)
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
fn no_traffic_is_no_work_and_no_division_by_zero() {
    let topology = HpccFatTree::default().build().unwrap();
    let found = work(&topology, vec![]);
    assert!(found.hops_per_second == 0.0 && found.nodes.iter().all(|&node| node == 1));
}
