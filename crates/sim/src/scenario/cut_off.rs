//! Hosts that failures cut off for good.

use crate::config::{Change, Failures};
use crate::topology::{Link, LinkId, NodeId, NodeKind, Topology};
use rustc_hash::{FxHashMap, FxHashSet};

/// Hosts that a text names.
const SHOWN: usize = 3;

/// Hosts that no path leads to when all events have happened, since nothing brings back what was down: which, and
/// what follows; none: every host reaches the others of its part of the network.
pub fn warning(failures: &Failures, topology: &Topology) -> Option<String> {
    let (mut down, mut last) = (FxHashSet::default(), None);
    for event in &failures.events {
        let place = match event.change {
            Change::LinkDown(link) | Change::LinkUp(link) => (true, link),
            Change::SwitchDown(node) | Change::SwitchUp(node) => (false, node),
            Change::LinkRate(..) => continue,
        };
        if matches!(event.change, Change::LinkDown(_) | Change::SwitchDown(_)) {
            down.insert(place);
            last = Some(event.at);
        } else {
            down.remove(&place);
        }
    }
    let last = last.filter(|_| !down.is_empty())?;
    let works = |(id, link): (usize, &Link)| {
        let ends = [(false, link.a), (false, link.b), (true, id as LinkId)];
        !ends.iter().any(|place| down.contains(place))
    };
    let all: Vec<&Link> = topology.links.iter().collect();
    let left: Vec<&Link> =
        topology.links.iter().enumerate().filter(|&one| works(one)).map(|(_, link)| link).collect();
    let (before, after) = (Islands::of(topology, &all), Islands::of(topology, &left));
    // Of switches that reached each other, hosts are cut off that are not at the part with most of them.
    let mut largest: FxHashMap<NodeId, (u32, NodeId)> = FxHashMap::default();
    for &(_, switch) in &before.hosts {
        let part = after.island[switch as usize];
        let found = (after.count.get(&part).copied().unwrap_or(0), part);
        let best = largest.entry(before.island[switch as usize]).or_insert(found);
        *best = (*best).max(found);
    }
    let is_kept =
        |switch: NodeId| largest[&before.island[switch as usize]].1 == after.island[switch as usize];
    let mut kept: FxHashSet<NodeId> = after.joined.iter().copied().collect();
    kept.extend(after.hosts.iter().filter(|(_, switch)| is_kept(*switch)).map(|(host, _)| *host));
    let cut: Vec<NodeId> = topology.hosts().into_iter().filter(|host| !kept.contains(host)).collect();
    let mut names: Vec<&str> =
        cut.iter().take(SHOWN).map(|&host| &*topology.nodes[host as usize].name).collect();
    let more = (cut.len() > SHOWN).then(|| format!("{} more", cut.len() - SHOWN));
    names.extend(more.as_deref());
    (!cut.is_empty()).then(|| {
        format!(
            "failures: from {last} on no path leads to {}, since nothing brings back what is down: flows from and to such hosts do \
             not finish, and jobs whose ranks they have stall. Set lasts in the event, or an event with change = \"up\", or end \
             the run by run.until",
            names.join(", ")
        )
    })
}

/// Switches that reach each other without passing a host.
struct Islands {
    /// Of each switch that of its island that stands for it.
    island: Vec<NodeId>,
    /// Hosts with each of the switches that they are at.
    hosts: Vec<(NodeId, NodeId)>,
    /// How many links of hosts each island has.
    count: FxHashMap<NodeId, u32>,
    /// Hosts with a link to another host.
    joined: Vec<NodeId>,
}

fn root(island: &mut [NodeId], mut node: NodeId) -> NodeId {
    while island[node as usize] != node {
        island[node as usize] = island[island[node as usize] as usize];
        node = island[node as usize];
    }
    node
}

impl Islands {
    fn of(topology: &Topology, links: &[&Link]) -> Islands {
        let is_switch = |node: NodeId| topology.nodes[node as usize].kind == NodeKind::Switch;
        let mut island: Vec<NodeId> = (0..topology.nodes.len() as NodeId).collect();
        let (mut hosts, mut joined) = (Vec::new(), Vec::new());
        for link in links {
            match (is_switch(link.a), is_switch(link.b)) {
                (true, true) => {
                    let (a, b) = (root(&mut island, link.a), root(&mut island, link.b));
                    island[a.max(b) as usize] = a.min(b);
                }
                (false, true) => hosts.push((link.a, link.b)),
                (true, false) => hosts.push((link.b, link.a)),
                (false, false) => joined.extend([link.a, link.b]),
            }
        }
        for node in 0..island.len() as NodeId {
            island[node as usize] = root(&mut island, node);
        }
        let mut count = FxHashMap::default();
        for &(_, switch) in &hosts {
            *count.entry(island[switch as usize]).or_default() += 1;
        }
        Islands { island, hosts, count, joined }
    }
}
