//! What the paths of pairs of hosts hold: the bandwidth-delay products from which defaults of windows follow.
//!
//! A default has to fill the path of every pair, so it follows the largest product of all pairs: the base RTT
//! of a pair and the rate that the links between its hosts have together, if packets take all shortest paths,
//! or the lowest rate on one path. The fastest host and the longest path of a network need not belong to the
//! same pair. Where most pairs hold far less, a warning states what they hold.

mod hosts;

use super::TransportConfig;
use super::binding::NicPolicy;
use super::parameters::RunContext;
use crate::topology::{HostId, PathTimes, Ports, Routes, Topology};
use crate::units::{Bytes, Rate, Time};
use crate::workload::sent::{Sending, share_of_bytes};
use hosts::Kinds;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A default is far above what suits most pairs if it is more than this many times as large.
const FAR: u64 = 4;

/// A path is narrow if it has at most this share of the rate of the links of its hosts.
const NARROW: f64 = 0.99;

/// Sources and destinations of the pairs whose median is taken, at most: every pair of a small network.
const HOSTS: usize = 64;

/// The same where every path of a pair is walked.
const FEW_HOSTS: usize = 16;

/// Pairs of which every path is walked for the largest product, at most.
const MAX_WALKS: usize = 256;

/// Flows whose paths carry less than the links of their hosts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NarrowPaths {
    /// Of all bytes.
    pub share: f64,
    /// On the narrowest path, and of the links of its hosts.
    pub capacity: Rate,
    pub link: Rate,
}

/// The product of a pair by all links that a flow uses at its hosts. `of_link`: the base RTT, and the product
/// by one link.
pub fn product_of_hosts(policy: NicPolicy, topology: &Topology, of_link: (Time, u64)) -> u64 {
    let (base_rtt, product) = of_link;
    let (link, host) = (topology.host_rate(), policy.host_rates(topology).pop().unwrap_or_default());
    // Rounded once where no path is slower than the links of hosts.
    if product == link.bytes_in(base_rtt).0 {
        return host.bytes_in(base_rtt).0;
    }
    let whole = u128::from(product) * u128::from(host.0) / u128::from(link.0.max(1));
    u64::try_from(whole).unwrap_or(u64::MAX)
}

/// The largest product of a pair by one link of each host where packets of a flow take all shortest paths in
/// turn. `of_path`: the base RTT, and the largest product by the slowest link of one path, which it is where no
/// link is slower than those of hosts.
pub fn spread_product(topology: &Topology, routes: &Routes, payload: u32, of_path: (Time, u64)) -> u64 {
    let (base_rtt, product) = of_path;
    if product >= topology.host_rate().bytes_in(base_rtt).0 {
        return product;
    }
    let (times, ports) = (PathTimes::new(topology, routes), topology.ports());
    let hosts = Kinds::of(topology).of_each(HOSTS);
    // The product that a pair has if its paths carry what its hosts' links do.
    let limits = pairs_of(&hosts).zip(0u32..).filter_map(|(pair, number)| {
        let rate = rate_of_ends(topology, &times, pair)?;
        let base_rtt = times.base_rtt(pair.0, pair.1, payload.into(), false)?;
        // Pairs with equal limits are walked in an order that no numbering of hosts follows.
        Some((Reverse(rate.bytes_in(base_rtt).0), number.wrapping_mul(0x9e37_79b9), pair, (rate, base_rtt)))
    });
    let mut limits: Vec<_> = limits.collect();
    limits.sort_unstable();
    let mut largest = product;
    for (Reverse(limit), _, pair, (rate, base_rtt)) in limits.into_iter().take(MAX_WALKS) {
        if limit <= largest {
            break;
        }
        let rate = rate.min(capacity(topology, routes, &ports, pair, true));
        largest = largest.max(rate.bytes_in(base_rtt).0);
    }
    largest
}

/// Every pair of these hosts.
fn pairs_of(hosts: &[HostId]) -> impl Iterator<Item = (HostId, HostId)> {
    hosts.iter().flat_map(move |&src| hosts.iter().map(move |&dst| (src, dst)))
}

/// The rate of the slower one of the links of two hosts. None without a path.
fn rate_of_ends(topology: &Topology, times: &PathTimes, (src, dst): (HostId, HostId)) -> Option<Rate> {
    let rate = |link: Option<u32>| Some(topology.links[link? as usize].rate);
    Some(rate(times.links(src, dst).next())?.min(rate(times.links(src, dst).last())?))
}

/// The rate at which a flow fills the first link of its shortest paths, of which every switch gives each next
/// hop an equal part; or, unless it is spread, of one of these paths.
fn capacity(
    topology: &Topology,
    routes: &Routes,
    ports: &Ports,
    (src, dst): (HostId, HostId),
    spread: bool,
) -> Rate {
    let (mut reached, mut lowest) = (BTreeMap::from([(routes.host_node(src), 1.0)]), f64::INFINITY);
    while !reached.is_empty() {
        let mut next: BTreeMap<u32, f64> = BTreeMap::new();
        for (node, share) in reached {
            let hops = routes.next_hops(node, dst);
            let used = if spread { hops.len() } else { hops.len().min(1) };
            for &port in &hops[..used] {
                let (link, peer) = ports[node as usize][port as usize];
                let part = share / used as f64;
                lowest = lowest.min(topology.links[link as usize].rate.0 as f64 / part);
                *next.entry(peer).or_default() += part;
            }
        }
        reached = next;
    }
    Rate(lowest as u64)
}

impl RunContext<'_> {
    /// Whether packets of a flow take all shortest paths in turn. `labelled`: each has a label of its own.
    pub fn spreads_flows(&self, labelled: bool) -> bool {
        self.switch.balancer.spreads_flows(labelled)
    }

    /// The largest bandwidth-delay product of all pairs of hosts, in bytes, for packets of this payload.
    /// `spread`: those of a flow take all shortest paths in turn; otherwise one.
    pub fn largest_product(&self, payload: u32, spread: bool) -> u64 {
        let (base_rtt, mut product) = self.base_rtt(payload);
        if spread {
            product = spread_product(self.topology, self.routes, payload, (base_rtt, product));
        }
        product_of_hosts(self.nic_policy, self.topology, (base_rtt, product))
    }

    /// The median base RTT of the pairs of hosts, and their median product in bytes.
    pub fn median_pair(&self, payload: u32, spread: bool) -> (Time, u64) {
        let (topology, routes) = (self.topology, self.routes);
        let (times, ports) = (PathTimes::new(topology, routes), topology.ports());
        let slowest = topology.links.iter().map(|link| link.rate).min().unwrap_or_default();
        let is_walked = spread && slowest < topology.host_rate();
        let hosts = Kinds::of(topology).in_proportion(if is_walked { FEW_HOSTS } else { HOSTS });
        let (mut trips, mut products) = (Vec::new(), Vec::new());
        for pair in pairs_of(&hosts) {
            let Some(path) = times.pair(pair.0, pair.1) else { continue };
            let base_rtt = times.base_rtt(pair.0, pair.1, payload.into(), false).unwrap_or_default();
            let together = || capacity(topology, routes, &ports, pair, true);
            let rate = match rate_of_ends(topology, &times, pair) {
                Some(ends) if is_walked && slowest < ends => ends.min(together()),
                Some(ends) if is_walked => ends,
                _ => path.bottleneck,
            };
            trips.push(base_rtt);
            products.push(rate.bytes_in(base_rtt).0);
        }
        let of_link = (Time::ZERO, median(&mut products));
        (median(&mut trips), product_of_hosts(self.nic_policy, topology, of_link))
    }

    /// Flows of more than some bytes, of the transports that `is_own` accepts, whose packets find less
    /// capacity on the way than the slower one of the links of both hosts has. None if every such flow can use
    /// its links. `spread`: packets of a flow take all shortest paths in turn; otherwise one.
    pub fn narrow_paths(
        &self,
        is_own: impl Fn(&TransportConfig) -> bool,
        spread: bool,
        above: u64,
    ) -> Option<NarrowPaths> {
        let (times, ports) = (PathTimes::new(self.topology, self.routes), self.topology.ports());
        let mut known: BTreeMap<(HostId, HostId), Option<(Rate, Rate)>> = BTreeMap::new();
        let mut narrowest: Option<(Rate, Rate)> = None;
        let part = |(capacity, ends): (Rate, Rate)| capacity.0 as f64 / ends.0 as f64;
        let is_narrow = |sending: &Sending| {
            let rates = known.entry(sending.ends).or_insert_with(|| {
                let ends = rate_of_ends(self.topology, &times, sending.ends)?;
                Some((capacity(self.topology, self.routes, &ports, sending.ends, spread), ends))
            });
            let rates = (*rates)?;
            let is_narrow = sending.bytes > above && part(rates) <= NARROW;
            if is_narrow && narrowest.is_none_or(|narrowest| part(rates) < part(narrowest)) {
                narrowest = Some(rates);
            }
            Some(is_narrow)
        };
        let own = |index: u16| self.transports.get(usize::from(index)).is_some_and(&is_own);
        let share = share_of_bytes(self.sources(), own, is_narrow)?;
        let (capacity, link) = narrowest?;
        Some(NarrowPaths { share, capacity, link })
    }

    /// Warns of a window or free bytes of a flow that follow the largest product where the median pair holds
    /// far less. `labelled`: every packet has a label of its own. `published`: bytes below which the default
    /// never is. `advice` names the keys to set for the product of the median pair.
    pub fn window_for_few(
        &self,
        (key, labelled): (&str, bool),
        (payload, value, published): (u32, u64, u64),
        advice: impl FnOnce(u64) -> String,
    ) -> Option<String> {
        let spread = self.spreads_flows(labelled);
        let largest = self.largest_product(payload, spread);
        if value < largest {
            return None;
        }
        let median = far_above(largest, published, || self.median_pair(payload, spread).1)?;
        Some(format!(
            "transport.{key}: the default follows the pair of hosts with the largest product of rate and base RTT, {}, and that of \
             the median pair is {}: most flows have far more in flight than their paths hold; unless flows take the paths of that \
             pair, {}",
            Bytes(largest),
            Bytes(median),
            advice(median.max(published))
        ))
    }
}

/// The median, if the default for the largest is far above the one for the median.
pub fn far_above(largest: u64, published: u64, median: impl FnOnce() -> u64) -> Option<u64> {
    // Most networks need no median.
    if largest <= published.saturating_mul(FAR) {
        return None;
    }
    let median = median();
    (largest > median.max(published).saturating_mul(FAR)).then_some(median)
}

/// Zero if there is none.
fn median<T: Ord + Copy + Default>(values: &mut [T]) -> T {
    let middle = values.len() / 2;
    values.sort_unstable();
    values.get(middle).copied().unwrap_or_default()
}
