//! Links between switches, of which a flow crosses more than those next to the switches of its hosts: those
//! up from each pod (see [`tiers`](super::tiers)) together, and single ones.
//!
//! ```text
//! time until they have carried all = bits that cross them / rate
//! ```
//!
//! Where next hops get equal shares, what goes between two switches is spread evenly over all shortest paths.
//! Else it counts on single links as far as there is one next hop. Single links are left out where looking at
//! them takes too long.

use rustc_hash::FxHashMap;

use super::course::Course;
use super::offered::Amount;
use super::shares::Usable;
use super::spread::spread;
use super::tiers::{NO_POD, Pods};
use crate::scenario::network::Network;
use crate::topology::{HostId, NodeId, Ports};
use crate::units::Time;

/// Links times switches with hosts, beyond which single links are not looked at.
const STEPS: usize = 5_000_000;

/// Bits from one switch with hosts to another.
pub type Between = FxHashMap<(NodeId, NodeId), f64>;

pub struct Inner<'n> {
    network: &'n Network,
    ports: Ports,
    /// By host: the node of its switch; none for hosts with several links. Where single links are not looked
    /// at, one switch stands for all of its pod.
    switch_of: Vec<Option<NodeId>>,
    single_links: bool,
    /// By switch, one of its hosts.
    host_at: FxHashMap<NodeId, HostId>,
    /// Of tiers above the first, with the rate of the links up from each pod.
    pods: Vec<(Pods, Vec<f64>)>,
    evenly: bool,
}

impl<'n> Inner<'n> {
    /// `evenly`: next hops get equal shares.
    pub fn of(network: &'n Network, usable: &Usable, evenly: bool) -> Inner<'n> {
        let (topology, routes) = (&network.topology, &network.routes);
        let ports = topology.ports();
        let mut switch_of: Vec<Option<NodeId>> = (0..routes.hosts() as HostId)
            .map(|host| match ports[routes.host_node(host) as usize] {
                [(_, peer)] if routes.host_at(peer).is_none() => Some(peer),
                _ => None,
            })
            .collect();
        let host_at = switch_of.iter().zip(0..).filter_map(|(switch, host)| Some(((*switch)?, host)));
        let host_at: FxHashMap<NodeId, HostId> = host_at.collect();
        let single_links = topology.links.len().saturating_mul(host_at.len()) <= STEPS;
        let with_rates = |pods: Pods| {
            let mut rates = vec![0.0; pods.count as usize];
            for (link, rate) in topology.links.iter().zip(usable.of_pods(&pods)) {
                if let Some((pod, _)) = pods.below(topology, link) {
                    rates[pod as usize] += rate;
                }
            }
            (pods, rates)
        };
        let pods: Vec<(Pods, Vec<f64>)> = Pods::of_tiers(topology, 2).into_iter().map(with_rates).collect();
        if !single_links {
            let mut first = FxHashMap::default();
            for switch in &mut switch_of {
                let pod = pods.first().zip(*switch).map(|((pods, _), switch)| (pods.at(switch), switch));
                let pod = pod.filter(|(pod, _)| *pod != NO_POD);
                *switch = pod.map(|(pod, switch)| *first.entry(pod).or_insert(switch));
            }
        }
        Inner { network, ports, switch_of, single_links, host_at, pods, evenly }
    }

    /// The switches of two hosts, or those of their pods; none where these are one, or the hosts have several
    /// links.
    pub fn ends(&self, src: HostId, dst: HostId) -> Option<(NodeId, NodeId)> {
        let ends = self.switch_of[src as usize].zip(self.switch_of[dst as usize]);
        ends.filter(|(from, to)| from != to)
    }

    /// The seconds for which some of the links are busy with this.
    pub fn seconds(&self, between: &Between) -> f64 {
        self.seconds_of_pods(between).max(self.seconds_of_links(between))
    }

    fn seconds_of_pods(&self, between: &Between) -> f64 {
        let of_tier = |(pods, rates): &(Pods, Vec<f64>)| {
            let mut ways = vec![[0.0; 2]; rates.len()];
            for (&(from, to), bits) in between {
                let [from, to] = [from, to].map(|node| pods.at(node));
                if from != to {
                    let ends = [(from, 0), (to, 1)].into_iter().filter(|(pod, _)| *pod != NO_POD);
                    ends.for_each(|(pod, way)| ways[pod as usize][way] += bits);
                }
            }
            let busiest = ways.iter().zip(rates).filter(|(_, rate)| **rate > 0.0);
            busiest.map(|([up, down], rate)| up.max(*down) / rate).fold(0.0, f64::max)
        };
        self.pods.iter().map(of_tier).fold(0.0, f64::max)
    }

    fn seconds_of_links(&self, between: &Between) -> f64 {
        if !self.single_links {
            return 0.0;
        }
        let links = &self.network.topology.links;
        let mut pairs: Vec<(NodeId, NodeId, f64)> =
            between.iter().map(|(&(from, to), &bits)| (to, from, bits)).collect();
        pairs.sort_unstable_by_key(|&(to, from, _)| (to, from));
        let mut onto = vec![Amount::default(); 2 * links.len()];
        for pairs in pairs.chunk_by(|one, next| one.0 == next.0) {
            let to = pairs[0].0;
            let from = pairs.iter().map(|&(_, from, bits)| (from, Amount { bits, ..Amount::default() }));
            spread(self.network, &self.ports, (to, self.host_at[&to]), from, &mut onto, self.evenly);
        }
        let of_link = |(at, amount): (usize, &Amount)| {
            let rate = links[at / 2].rate.0 as f64;
            if rate > 0.0 { amount.bits / rate } else { 0.0 }
        };
        onto.iter().enumerate().map(of_link).fold(0.0, f64::max)
    }
}

/// What flows bring to these links that are not messages of jobs.
#[derive(Default)]
pub struct Given {
    /// By source, from its first flow on.
    sources: FxHashMap<u16, (Time, Between)>,
}

impl Given {
    /// A flow starts. `bits`: there, and of what its receiver answers.
    pub fn add(&mut self, source: u16, now: Time, (from, to): (NodeId, NodeId), bits: [f64; 2]) {
        let (_, between) = self.sources.entry(source).or_insert_with(|| (now, Between::default()));
        *between.entry((from, to)).or_default() += bits[0];
        *between.entry((to, from)).or_default() += bits[1];
    }

    /// When the links have carried what each source brought, and all together. `inners`: in each state of the
    /// network.
    pub fn end(&self, course: &Course, inners: &[&Inner]) -> Time {
        let end = |first: Time, between: &Between| {
            let seconds: Vec<f64> = inners.iter().map(|inner| inner.seconds(between)).collect();
            match seconds.as_slice() {
                [seconds] => first.saturating_add(Time((seconds * 1e12).min(4e18) as u64)),
                // A state without any path takes the time of the first state: links that are down carry nothing.
                _ => {
                    course.done(first, |state| if seconds[state] > 0.0 { seconds[state] } else { seconds[0] })
                }
            }
        };
        let each = self.sources.values().map(|(first, between)| end(*first, between)).max();
        let first = self.sources.values().map(|(first, _)| *first).min();
        let mut all = Between::default();
        for (&pair, bits) in self.sources.values().flat_map(|(_, between)| between) {
            *all.entry(pair).or_default() += bits;
        }
        each.max(first.map(|first| end(first, &all))).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
