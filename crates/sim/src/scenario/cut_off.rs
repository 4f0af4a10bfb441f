//! Hosts that failures cut off for good.

use super::Scenario;
use crate::config::{Change, Until};
use crate::topology::{LinkId, NodeId};
use rustc_hash::{FxHashMap, FxHashSet};

/// Hosts that a text names.
const SHOWN: usize = 3;

/// Hosts that no path leads to when all events have happened, since nothing brings back what was down: which, and
/// what follows; none: every host reaches the others of its part of the network, or the run ends before.
pub fn warning(scenario: &Scenario) -> Option<String> {
    let topology = &scenario.network.topology;
    let events = &scenario.failures.events;
    let last = events.iter().filter(|event| event.change.is_down()).map(|event| event.at).max()?;
    if matches!(scenario.until, Until::At(stop) if stop <= last) {
        return None;
    }
    let (mut links, mut switches) = (FxHashSet::default(), FxHashSet::default());
    for event in events {
        match event.change {
            Change::LinkDown(link) => _ = links.insert(link),
            Change::LinkUp(link) => _ = links.remove(&link),
            Change::SwitchDown(node) => _ = switches.insert(node),
            Change::SwitchUp(node) => _ = switches.remove(&node),
            Change::LinkRate(..) => {}
        }
    }
    let works = |link: LinkId| {
        let ends = &topology.links[link as usize];
        !links.contains(&link) && ![ends.a, ends.b].iter().any(|node| switches.contains(node))
    };
    let ports = topology.ports();
    let (before, after) = (topology.islands(&ports, |_| true), topology.islands(&ports, works));
    let hosts = topology.hosts();
    let left =
        |host: NodeId| ports[host as usize].iter().filter(|&&(link, _)| works(link)).map(|&(_, next)| next);
    // Of switches that reached each other, hosts are cut off that are not at the part with most of them.
    let mut count: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    for (was, is) in
        hosts.iter().flat_map(|&host| left(host)).filter_map(|next| islands_of(&before, &after, next))
    {
        *count.entry((was, is)).or_default() += 1;
    }
    let mut largest: FxHashMap<u32, (u32, u32)> = FxHashMap::default();
    for ((was, is), hosts) in count {
        let best = largest.entry(was).or_default();
        *best = (*best).max((hosts, is));
    }
    let is_kept =
        |next: NodeId| islands_of(&before, &after, next).is_none_or(|(was, is)| largest[&was].1 == is);
    let cut: Vec<NodeId> = hosts.into_iter().filter(|&host| !left(host).any(is_kept)).collect();
    let mut names: Vec<&str> =
        cut.iter().take(SHOWN).map(|&host| &*topology.nodes[host as usize].name).collect();
    let more = (cut.len() > SHOWN).then(|| format!("{} more", cut.len() - SHOWN));
    names.extend(more.as_deref());
    (!cut.is_empty()).then(|| {
        format!(
            "failures: from {last} on no path leads from the other hosts to {}, since nothing brings back what is down: flows \
             between them do not finish, and jobs that have ranks on both stall. Set lasts in the event, or an event with \
             change = \"up\", or end the run by run.until",
            names.join(", ")
        )
    })
}

/// The islands of a switch before and after; none: a host.
fn islands_of(before: &[Option<u32>], after: &[Option<u32>], node: NodeId) -> Option<(u32, u32)> {
    before[node as usize].zip(after[node as usize])
}
