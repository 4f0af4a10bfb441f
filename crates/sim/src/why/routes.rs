//! Switches without a route: since when.

use crate::config::{Change, Failures};
use crate::units::Time;
use std::collections::{BTreeMap, BTreeSet};

/// The nodes of hosts in order, by node the links of its ports and where they lead, and the number of links.
pub struct Graph<'a> {
    pub hosts: &'a [u32],
    pub ports: &'a [&'a [(u32, u32)]],
    pub links: usize,
}

/// For switches and hosts: since when each switch had no route to the host, each time that it lost it. Routes follow changes
/// after the detection delay, and hosts do not forward.
pub fn lost_routes(
    graph: &Graph,
    failures: &Failures,
    pairs: &BTreeSet<(u32, u32)>,
) -> BTreeMap<(u32, u32), Vec<Time>> {
    let Graph { hosts, ports, links } = *graph;
    let mut lost: BTreeMap<(u32, u32), Vec<Time>> = BTreeMap::new();
    if pairs.is_empty() {
        return lost;
    }
    let (mut links_down, mut nodes_down) = (vec![false; links], vec![false; ports.len()]);
    let mut had: BTreeMap<(u32, u32), bool> = BTreeMap::new();
    let mut look = |at: Time, links_down: &[bool], nodes_down: &[bool]| {
        for dst in pairs.iter().map(|&(_, dst)| dst).collect::<BTreeSet<_>>() {
            let end = hosts[dst as usize];
            let mut reaches = vec![false; ports.len()];
            reaches[end as usize] = true;
            let mut next = vec![end];
            while let Some(node) = next.pop() {
                for &(link, peer) in ports[node as usize] {
                    let carries = !links_down[link as usize] && !nodes_down[node as usize];
                    let is_new = carries && !nodes_down[peer as usize] && !reaches[peer as usize];
                    if is_new && hosts.binary_search(&peer).is_err() {
                        reaches[peer as usize] = true;
                        next.push(peer);
                    }
                }
            }
            for &(node, dst) in pairs.iter().filter(|pair| pair.1 == dst) {
                let has = reaches[node as usize];
                if had.insert((node, dst), has).unwrap_or(true) && !has {
                    lost.entry((node, dst)).or_default().push(at);
                }
            }
        }
    };
    look(Time::ZERO, &links_down, &nodes_down);
    for failure in &failures.events {
        match failure.change {
            Change::LinkDown(link) => links_down[link as usize] = true,
            Change::LinkUp(link) => links_down[link as usize] = false,
            Change::SwitchDown(node) => nodes_down[node as usize] = true,
            Change::SwitchUp(node) => nodes_down[node as usize] = false,
            Change::LinkRate(..) => continue,
        }
        look(failure.at + failures.detection, &links_down, &nodes_down);
    }
    lost
}
