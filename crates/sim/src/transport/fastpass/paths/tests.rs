//! Tests of `paths`.

use super::*;
use crate::engine::random::RandomStream;
use crate::topology::NextHopOrder;
use crate::topology::TopologyParameters;
use crate::topology::fat_tree::FatTree;
use crate::topology::leaf_spine::LeafSpine;
use crate::topology::star::Star;

fn racks(topology: &Topology) -> Result<Racks, String> {
    Racks::of(topology, &Routes::compute(topology, &|_| true, NextHopOrder::ByPort))
}

fn leaf_spine(leaves: u64, spines: u64, hosts_per_leaf: u64) -> Racks {
    let spec = LeafSpine { leaves, spines, hosts_per_leaf, extra_hosts: 1, ..LeafSpine::default() };
    racks(&spec.build().unwrap()).unwrap()
}

#[test]
fn racks_and_paths_are_those_of_a_leaf_spine_network() {
    let found = leaf_spine(3, 4, 2);
    assert_eq!(found, Racks { rack: vec![0, 0, 1, 1, 2, 2, 0], racks: 3, paths: 4 });
    let star = racks(&Star::default().build().unwrap()).unwrap();
    assert_eq!((star.racks, star.paths), (1, 0));
}

#[test]
fn a_network_whose_paths_have_two_choices_is_refused() {
    let error = racks(&FatTree::default().build().unwrap()).unwrap_err();
    assert!(error.contains("has no single link to"), "{error}");
}

#[test]
fn a_timeslot_in_which_every_host_sends_uses_every_link_once() {
    // As many spines as hosts on a leaf: a permutation fits without sharing, whatever it is.
    let mut random = RandomStream::new(1, "paths");
    let (leaves, hosts) = (6, 7);
    let mut paths = Paths::new(leaf_spine(leaves, hosts, hosts));
    let all = (leaves * hosts) as u32;
    for _ in 0..300 {
        let mut to: Vec<u32> = (0..all).collect();
        crate::workload::hosts::shuffle(&mut to, &mut random);
        let sending = 1 + random.below(u64::from(all)) as usize;
        let packets: Vec<(u32, u32)> = (0..all).zip(to).take(sending).collect();
        let mut assigned = Vec::new();
        paths.assign(packets.iter().copied(), &mut assigned);
        let (mut up, mut down) = (vec![0; 6 * 7], vec![0; 6 * 7]);
        for (&(src, dst), path) in packets.iter().zip(&assigned) {
            let (from, to) = (src / 7, dst / 7);
            assert_eq!(path.is_some(), from != to);
            if let Some(path) = path {
                up[(from * 7 + path) as usize] += 1;
                down[(to * 7 + path) as usize] += 1;
            }
        }
        assert!(up.iter().chain(&down).all(|&count| count <= 1), "{up:?} {down:?}");
    }
}

#[test]
fn with_fewer_paths_than_packets_links_share_them_evenly() {
    // Seven hosts of one rack send to another one over three paths: 3, 2 and 2.
    let mut paths = Paths::new(leaf_spine(2, 3, 7));
    let mut assigned = Vec::new();
    paths.assign((0..7).map(|host| (host, host + 7)), &mut assigned);
    let mut count = [0; 3];
    assigned.iter().flatten().for_each(|&path| count[path as usize] += 1);
    assert_eq!(count, [3, 2, 2]);
}
