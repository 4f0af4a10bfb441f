//! Hosts that failures cut off for good.

use super::Scenario;
use crate::config::{Change, Until};
use crate::topology::{HostId, LinkId, NodeId};
use crate::units::Time;
use crate::workload::sent::hosts_in_use;
use rustc_hash::{FxHashMap, FxHashSet};

/// Hosts that a text names.
const SHOWN: usize = 3;

/// Hosts in use that no path leads to any more from some time on, since nothing brings back what is down:
/// which, and what follows; none: every such host reaches the others of its part of the network, or the run
/// ends before.
pub fn warning(scenario: &Scenario) -> Option<String> {
    let outages = lasting(scenario);
    let mut cut = cut_off(scenario, &outages);
    if cut.is_empty() {
        return None;
    }
    let hosts = scenario.network.topology.hosts();
    if let Some(mut used) = hosts_in_use(&scenario.traffic.sources) {
        used.extend(scenario.transports.iter().filter_map(|own| Some(own.facts().needs_host?.1)));
        let node = |host: HostId| hosts.get(host as usize).copied();
        let used: FxHashSet<NodeId> = used.into_iter().filter_map(node).collect();
        cut.retain(|host| used.contains(host));
        if cut.is_empty() {
            return None;
        }
    }
    // What is down for good only grows, and so do the hosts that it cuts off.
    let mut times: Vec<Time> = outages.iter().map(|&(at, _)| at).collect();
    times.dedup();
    let mut known: FxHashMap<Time, Vec<NodeId>> = FxHashMap::default();
    let mut since = |host: NodeId| {
        let first = times.partition_point(|&time| {
            let begun = &outages[..outages.partition_point(|&(at, _)| at <= time)];
            !known.entry(time).or_insert_with(|| cut_off(scenario, begun)).contains(&host)
        });
        times[first.min(times.len() - 1)]
    };
    let shown = cut.iter().take(SHOWN).map(|&host| (host, since(host)));
    let shown: Vec<(NodeId, Time)> = shown.collect();
    let name = |host: NodeId| &*scenario.network.topology.nodes[host as usize].name;
    let (first, together) = (shown[0].1, shown.iter().all(|&(_, at)| at == shown[0].1));
    let more = (cut.len() > SHOWN).then(|| format!("{} more", cut.len() - SHOWN));
    let one = |&(host, at): &(NodeId, Time)| match together {
        true => name(host).to_string(),
        false => format!("{} (from {at} on)", name(host)),
    };
    let names: Vec<String> = shown.iter().map(one).chain(more).collect();
    let from = if together { format!("from {first} on ") } else { String::new() };
    let mut needed: Vec<String> = Vec::new();
    for transport in &scenario.transports {
        let Some((key, host)) = transport.facts().needs_host else { continue };
        if let Some(node) = hosts.get(host as usize).filter(|node| cut.contains(node)) {
            let text = format!(" All flows of {} need {} ({key}).", transport.name(), name(*node));
            if !needed.contains(&text) {
                needed.push(text);
            }
        }
    }
    Some(format!(
        "failures: {from}no path leads from the other hosts to {}, since nothing brings back what is down: flows between them do not \
         finish, and jobs that have ranks on both stall.{} Set lasts in the event, or an event with change = \"up\", or end the run \
         by run.until",
        names.join(", "),
        needed.concat()
    ))
}

/// What goes down before the run ends and does not come back, in order of time.
fn lasting(scenario: &Scenario) -> Vec<(Time, Change)> {
    let mut down: FxHashMap<Part, (Time, Change)> = FxHashMap::default();
    for event in &scenario.failures.events {
        match event.change {
            Change::LinkDown(link) => _ = down.insert(Part::Link(link), (event.at, event.change)),
            Change::LinkUp(link) => _ = down.remove(&Part::Link(link)),
            Change::SwitchDown(node) => _ = down.insert(Part::Switch(node), (event.at, event.change)),
            Change::SwitchUp(node) => _ = down.remove(&Part::Switch(node)),
            Change::LinkRate(..) => {}
        }
    }
    let in_time = |at: Time| !matches!(scenario.until, Until::At(stop) if stop <= at);
    let mut outages: Vec<(Time, Change)> = down.into_values().filter(|&(at, _)| in_time(at)).collect();
    outages.sort_by_key(|&(at, _)| at);
    outages
}

#[derive(PartialEq, Eq, Hash)]
enum Part {
    Link(LinkId),
    Switch(NodeId),
}

/// The hosts that these outages cut off.
fn cut_off(scenario: &Scenario, outages: &[(Time, Change)]) -> Vec<NodeId> {
    if outages.is_empty() {
        return Vec::new();
    }
    let topology = &scenario.network.topology;
    let (mut links, mut switches) = (FxHashSet::default(), FxHashSet::default());
    for (_, change) in outages {
        match *change {
            Change::LinkDown(link) => _ = links.insert(link),
            Change::SwitchDown(node) => _ = switches.insert(node),
            _ => {}
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
    hosts.into_iter().filter(|&host| !left(host).any(is_kept)).collect()
}

/// The islands of a switch before and after; none: a host.
fn islands_of(before: &[Option<u32>], after: &[Option<u32>], node: NodeId) -> Option<(u32, u32)> {
    before[node as usize].zip(after[node as usize])
}
