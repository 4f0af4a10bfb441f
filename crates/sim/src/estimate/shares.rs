//! How much of their links switches can use where they give all next hops equal shares: as soon as the
//! slowest of them is full, the others get no more.
//!
//! ```text
//! usable rate of a link = f C, the highest for any flows:   f: share of the flows that it gets, C = min (rate / f) of all links
//! ```
//!
//! Of a switch, the flows are those to one host, which get equal parts at its next hops: n links can carry n
//! times the rate of the slowest. Of a pod, they go from one of its switches with hosts to one host outside,
//! and `C` is over the links that leave the pod. What comes to a switch or a pod is taken to come by the
//! paths by which it would leave.
//!
//! That limits what is divided over the next hops: packets of one flow that take all of them, a load, rounds,
//! and jobs with many messages at a time, whose operations wait for the slowest. Flows without an end, and
//! those that start together, run each as fast as its own next hop allows, and subflows of a connection leave
//! slow next hops to others, as do packets that receivers request again: together they use all links.

use super::odds::{Paths, SURE};
use super::tiers::Pods;
use crate::balance::{BalancerConfig, Reorders, Shares};
use crate::scenario::Scenario;
use crate::scenario::network::Network;
use crate::topology::{HostId, Link, LinkId, NodeId, Ports};
use crate::units::Rate;
use crate::workload::FlowSource;
use rustc_hash::FxHashMap;

/// Look-ups of next hops after which the links that were not looked at have all of their rate.
const LOOKS: usize = 20_000_000;
/// Share of their rates that links can use, below which it is worth a word.
const MOST: f64 = 0.95;

/// Rates in bit/s that links can use.
pub struct Usable<'n> {
    network: &'n Network,
    /// Empty where `destinations` are.
    ports: Ports,
    /// A host for each set of switches that hosts have links to; empty where links can use all of their
    /// rates.
    destinations: Vec<HostId>,
    /// By link: among the links of its first end, and among those of its second.
    rates: Vec<[f64; 2]>,
}

impl<'n> Usable<'n> {
    pub fn of(network: &'n Network, shares: Option<Shares>) -> Usable<'n> {
        let topology = &network.topology;
        let is_of_host =
            |link: &Link| [link.a, link.b].iter().any(|&end| network.routes.host_at(end).is_some());
        let uneven = [true, false].into_iter().any(|of_host| {
            let mut rates =
                topology.links.iter().filter(|link| is_of_host(link) == of_host).map(|link| link.rate);
            rates.next().is_some_and(|first| rates.any(|rate| rate != first))
        });
        let (mut ports, mut destinations) = (Ports::default(), Vec::new());
        if uneven && matches!(shares, Some(Shares::Equal)) {
            (ports, destinations) = (topology.ports(), network.destinations());
        }
        let rates = topology.links.iter().map(|link| [link.rate.0 as f64; 2]).collect();
        let mut usable = Usable { network, ports, destinations, rates };
        if usable.destinations.is_empty() {
            return usable;
        }
        let mut looks = 0;
        for node in topology.switches() {
            looks += usable.destinations.len();
            if looks > LOOKS {
                break;
            }
            usable.at_switch(node);
        }
        usable
    }

    /// The rate of a link among the links of its first end (0) or of its second (1).
    pub fn at(&self, link: LinkId, end: usize) -> f64 {
        self.rates[link as usize][end]
    }

    fn rate(&self, link: LinkId) -> f64 {
        self.network.topology.links[link as usize].rate.0 as f64
    }

    fn at_switch(&mut self, node: NodeId) {
        let ports = &self.ports[node as usize];
        let rate = |port: u32| self.rate(ports[port as usize].0);
        let mut highest = vec![0.0f64; ports.len()];
        let mut before: &[u32] = &[];
        for &host in &self.destinations {
            let hops = self.network.routes.next_hops(node, host);
            if std::ptr::eq(hops, before) {
                continue;
            }
            before = hops;
            let slowest = hops.iter().map(|&port| rate(port)).fold(f64::INFINITY, f64::min);
            for &port in hops {
                highest[port as usize] = highest[port as usize].max(slowest);
            }
        }
        for (&(link, _), highest) in ports.iter().zip(highest).filter(|(_, highest)| *highest > 0.0) {
            let end = usize::from(self.network.topology.links[link as usize].a != node);
            self.rates[link as usize][end] = highest;
        }
    }

    /// By link, its rate among those that leave the pods of a tier.
    pub fn of_pods(&self, pods: &Pods) -> Vec<f64> {
        let topology = &self.network.topology;
        let mut rates: Vec<f64> = (0..topology.links.len() as LinkId).map(|link| self.rate(link)).collect();
        if self.destinations.is_empty() {
            return rates;
        }
        // Of each switch that links leave a pod from: their number, and whether their rates are equal.
        let mut leave: FxHashMap<NodeId, (u32, f64)> = FxHashMap::default();
        let mut uneven = vec![false; pods.count as usize];
        for (link, rate) in topology.links.iter().zip(&rates) {
            let Some((pod, switch)) = pods.below(topology, link) else { continue };
            let (count, known) = leave.entry(switch).or_insert((0, *rate));
            (*count, uneven[pod as usize]) = (*count + 1, uneven[pod as usize] || *known != *rate);
        }
        let mut of_pod: Vec<Option<(u32, f64)>> = vec![None; pods.count as usize];
        for (&switch, &of_switch) in &leave {
            let pod = pods.at(switch) as usize;
            uneven[pod] |= *of_pod[pod].get_or_insert(of_switch) != of_switch;
        }
        let mut highest = vec![0.0f64; rates.len()];
        let switch_of = |&host: &HostId| self.switch_of(host);
        let racks: Vec<NodeId> = self.destinations.iter().filter_map(switch_of).collect();
        let mut looks = 0;
        for &from in racks.iter().filter(|&&from| uneven.get(pods.at(from) as usize) == Some(&true)) {
            for &host in &self.destinations {
                let shares = self.leaving(pods, from, host);
                looks += 1 + shares.len();
                let carried =
                    shares.iter().map(|&(link, share)| self.rate(link) / share).fold(f64::MAX, f64::min);
                for (link, share) in shares {
                    highest[link as usize] = highest[link as usize].max(share * carried);
                }
            }
            if looks > LOOKS {
                return rates;
            }
        }
        for (rate, highest) in rates.iter_mut().zip(highest).filter(|(_, highest)| *highest > 0.0) {
            *rate = highest;
        }
        rates
    }

    fn switch_of(&self, host: HostId) -> Option<NodeId> {
        let node = self.network.routes.host_node(host);
        self.ports[node as usize].first().map(|&(_, switch)| switch)
    }

    /// The links by which flows from a switch to a host leave the pod of the switch, each with its share of
    /// the flows; none for a host in the pod.
    fn leaving(&self, pods: &Pods, from: NodeId, host: HostId) -> Vec<(LinkId, f64)> {
        let pod = pods.at(from);
        let (mut found, mut shares) = (Vec::new(), FxHashMap::default());
        if self.switch_of(host).is_none_or(|switch| pods.at(switch) == pod) {
            return found;
        }
        shares.insert(from, 1.0);
        let (mut reached, mut next) = (vec![from], 0);
        // All hops to a switch come from switches that are farther from the host, and were reached before it.
        while let Some(&node) = reached.get(next) {
            next += 1;
            let hops = self.network.routes.next_hops(node, host);
            let share = shares[&node] / hops.len() as f64;
            for &port in hops {
                let (link, peer) = self.ports[node as usize][port as usize];
                if pods.at(peer) != pod {
                    found.push((link, share));
                    continue;
                }
                if !shares.contains_key(&peer) {
                    reached.push(peer);
                }
                *shares.entry(peer).or_insert(0.0) += share;
            }
        }
        found
    }
}

/// Whether packets of a flow that does not pause keep to the path that the first of them took.
pub fn keeps_to_path(balancer: &BalancerConfig) -> bool {
    match balancer.order() {
        Reorders::Never => true,
        Reorders::AfterPauses(_) => !balancer.facts().holds_packets,
        Reorders::Blocks | Reorders::Packets => false,
    }
}

/// How flows divide among next hops of which nothing is known yet. What keeps to its path stays there: the
/// slowest flows, for which the others of a job wait, do not pause.
pub fn at_first(balancer: &BalancerConfig) -> Option<Shares> {
    balancer.facts().shares.or_else(|| keeps_to_path(balancer).then_some(Shares::Equal))
}

/// Whether packets of all workloads take all next hops, and receivers request again what is lost there.
fn all_ask_again(scenario: &Scenario) -> bool {
    let asks = |source: &dyn FlowSource| {
        let graph = source.graph().map(|graph| graph.flow.transport);
        let transport = graph.or_else(|| source.clone_box().next().map(|flow| flow.transport));
        transport.is_none_or(|at| {
            let facts = scenario.transports[usize::from(at)].facts();
            facts.asks.is_some() && scenario.switch.balancer.spreads_flows(facts.labels_packets)
        })
    };
    scenario.traffic.sources.iter().all(|source| asks(source.as_ref()))
}

/// How packets divide among next hops, where that limits what links carry.
pub struct Limiting {
    /// What the workloads bring can use no more, however long it lasts.
    pub brought: Option<Shares>,
    /// The workloads end no earlier.
    pub ends: Option<Shares>,
}

impl Limiting {
    /// The same in the states of a network that changes: whether and how that limits what ends.
    pub fn in_state(&self, scenario: &Scenario, network: &Network) -> Option<Shares> {
        let is_host = |node: NodeId| network.routes.host_at(node).is_some();
        let links = network.topology.links.iter();
        let between = links.filter(|link| link.rate.0 > 0 && !is_host(link.a) && !is_host(link.b));
        let mut rates = between.map(|link| link.rate);
        let uneven = rates.next().is_some_and(|first| rates.any(|rate| rate != first));
        if uneven && all_ask_again(scenario) { None } else { self.ends }
    }

    pub fn of(scenario: &Scenario, network: &Network) -> Limiting {
        let (balancer, sources) = (&scenario.switch.balancer, &scenario.traffic.sources);
        let all = balancer.facts().shares;
        let as_divided = Limiting { brought: all, ends: all };
        let paths = Paths::of(network).filter(|_| matches!(all, Some(Shares::Equal)) && !sources.is_empty());
        let Some(paths) = paths else { return as_divided };
        let (mut even, mut over_time) = (1.0, false);
        for source in sources {
            let graph = source.graph();
            let first = || source.clone_box().next().map(|flow| flow.transport);
            let Some(transport) = graph.as_ref().map(|graph| graph.flow.transport).or_else(first) else {
                continue;
            };
            let facts = scenario.transports[usize::from(transport)].facts();
            // What a slow next hop loses is requested again, and takes another one.
            let asks_again = facts.asks.is_some() && balancer.spreads_flows(facts.labels_packets);
            if facts.subflows.is_some() || asks_again {
                continue;
            }
            let is_load = source.asked().is_some() || source.period().is_some();
            if is_load || balancer.spreads_flows(facts.labels_packets) {
                return as_divided;
            }
            let (uneven, divides) = match graph {
                Some(graph) => {
                    let (uneven, _) = paths.of_job(&graph);
                    (uneven, uneven >= SURE)
                }
                None => paths.of_flows(source.as_ref()),
            };
            (even, over_time) = (even * (1.0 - uneven), over_time || divides);
        }
        let when = |limits: bool| if limits { all } else { None };
        Limiting { brought: when(over_time), ends: when(over_time || 1.0 - even >= SURE) }
    }
}

/// Links of a switch, or of a pod, that the balancer of a scenario cannot fill. `network`: while nothing
/// changes.
pub fn warning(scenario: &Scenario, network: &Network) -> Option<String> {
    let balancer = &scenario.switch.balancer;
    let topology = &network.topology;
    let usable = Usable::of(network, Limiting::of(scenario, network).brought);
    if usable.destinations.is_empty() || scenario.rules.like != "none" {
        return None;
    }
    let is_host = |node: NodeId| network.routes.host_at(node).is_some();
    let name = |node: NodeId| topology.nodes[node as usize].name.as_str();
    let mut worst: Option<(f64, String)> = None;
    let mut consider = |links: &[(LinkId, f64)], from: &dyn Fn() -> String| {
        let sum: f64 = links.iter().map(|&(link, _)| usable.rate(link)).sum();
        let used: f64 = links.iter().map(|&(_, rate)| rate).sum();
        let share = if sum > 0.0 { used / sum } else { 1.0 };
        if share >= worst.as_ref().map_or(MOST, |(found, _)| *found) {
            return;
        }
        let mut rates: Vec<Rate> =
            links.iter().map(|&(link, _)| topology.links[link as usize].rate).collect();
        rates.sort_unstable();
        rates.dedup();
        let rates: Vec<String> = rates.iter().map(ToString::to_string).collect();
        let text = format!(
            "switch.balancer: {} have {}, and \"{}\" gives all next hops equal shares: {} of {} can be used by what divides over them, \
             as no next hop gets more than the slowest one carries. Set a balancer that heeds how busy links are, or give next hops equal rates",
            from(),
            rates.join(" and "),
            balancer.name(),
            Rate(used as u64),
            Rate(sum as u64)
        );
        worst = Some((share, text));
    };
    for node in topology.switches() {
        let up = usable.ports[node as usize].iter().filter(|(_, peer)| !is_host(*peer));
        let links: Vec<(LinkId, f64)> = up
            .map(|&(link, _)| (link, usable.at(link, usize::from(topology.links[link as usize].a != node))))
            .collect();
        consider(&links, &|| format!("links from {} to other switches", name(node)));
    }
    for pods in Pods::of_tiers(topology, 2) {
        let rates = usable.of_pods(&pods);
        let mut links: Vec<Vec<(LinkId, f64)>> = vec![Vec::new(); pods.count as usize];
        for ((link, id), &rate) in topology.links.iter().zip(0..).zip(&rates) {
            if let Some((pod, _)) = pods.below(topology, link) {
                links[pod as usize].push((id, rate));
            }
        }
        for (links, pod) in links.iter().zip(0..) {
            let first = pods.of.iter().position(|&of| of == pod).unwrap_or(0);
            consider(links, &|| format!("links up from the pod of {}", name(first as NodeId)));
        }
    }
    worst.map(|(_, text)| text)
}

#[cfg(test)]
mod tests;
