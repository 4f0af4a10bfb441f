//! How probable it is that a flow which keeps to one path takes a slow next hop, where switches choose among
//! next hops of unequal rates whatever these carry.
//!
//! ```text
//! chance that one of m flows takes a slow path = 1 - (1 - q)^m      q: share of the paths of a flow that are slow
//! ```
//!
//! Differs from a run: flows on one path do not slow each other down.

use std::cell::RefCell;
use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::scenario::network::Network;
use crate::topology::{HostId, LinkId, NodeId, Path, Ports};
use crate::units::{Rate, Time};
use crate::workload::graph::JobGraph;
use crate::workload::{FlowSource, FlowSpec, WITHOUT_END};

/// A chance that counts as certain.
pub const SURE: f64 = 0.95;
/// Flows or messages that are looked at for their paths.
const LOOKED_AT: u32 = 100_000;
/// How many times later a run has to end where flows meet slow next hops, to be worth a word.
const LATER: f64 = 1.25;

/// What the links between switches are like on the paths between two hosts.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Odds {
    /// Share of the paths that have a lower rate than the best one.
    pub uneven: f64,
    /// The same of those with a lower rate than the links of both hosts.
    pub slows: f64,
    /// The lowest rate in bit/s.
    pub slowest: f64,
    /// That of the best path.
    pub best: f64,
    /// The lower one of the highest rates of the links of both hosts.
    pub line: f64,
}

/// The paths between hosts, where links between switches have unequal rates.
pub struct Paths<'n> {
    network: &'n Network,
    ports: Ports,
    /// By first and last switch, or host of several links, and rate of the links of hosts.
    known: RefCell<FxHashMap<(NodeId, NodeId, u64), Odds>>,
}

impl<'n> Paths<'n> {
    /// None: all links between switches have one rate.
    pub fn of(network: &'n Network) -> Option<Paths<'n>> {
        let is_host = |node: NodeId| network.routes.host_at(node).is_some();
        let between = network.topology.links.iter().filter(|link| !is_host(link.a) && !is_host(link.b));
        let mut rates = between.map(|link| link.rate);
        let uneven = rates.next().is_some_and(|first| rates.any(|rate| rate != first));
        uneven.then(|| Paths::over(network))
    }

    /// Of any network.
    pub fn over(network: &'n Network) -> Paths<'n> {
        Paths { network, ports: network.topology.ports(), known: RefCell::default() }
    }

    /// The share of the next hops of a switch to a host whose links have a lower rate than this.
    pub fn slow_hops(&self, switch: NodeId, to: HostId, rate: f64) -> f64 {
        let hops = self.network.routes.next_hops(switch, to);
        let link = |port: &&u32| self.ports[switch as usize][**port as usize].0;
        let is_slow = |port: &&u32| (self.network.topology.links[link(port) as usize].rate.0 as f64) < rate;
        hops.iter().filter(is_slow).count() as f64 / hops.len().max(1) as f64
    }

    /// The share of the paths between two hosts that cross links of some kind.
    pub fn share(&self, ends: (HostId, HostId), is_one: impl Fn(LinkId) -> bool) -> f64 {
        let others = self.along(
            ends,
            1.0,
            |share: f64, (link, _), part| if is_one(link) { 0.0 } else { share * part },
            |one, other| one + other,
        );
        (1.0 - others.unwrap_or(1.0)).clamp(0.0, 1.0)
    }

    pub fn between(&self, src: HostId, dst: HostId) -> Odds {
        let [from, to] = [src, dst].map(|host| self.network.routes.host_node(host));
        let end = |node: NodeId| match self.ports[node as usize] {
            [(_, switch)] => switch,
            _ => node,
        };
        let rate = |link: LinkId| self.network.topology.links[link as usize].rate.0;
        let fastest =
            |node: NodeId| self.ports[node as usize].iter().map(|&(link, _)| rate(link)).max().unwrap_or(0);
        let line = fastest(from).min(fastest(to));
        let key = (end(from), end(to), line);
        if let Some(&known) = self.known.borrow().get(&key) {
            return known;
        }
        let odds = self.look((src, dst), line as f64);
        self.known.borrow_mut().insert(key, odds);
        odds
    }

    /// The best one of the paths between two hosts of one link each.
    pub fn best(&self, (src, dst): (HostId, HostId), path: Path) -> Path {
        let several = |host: HostId| self.ports[self.network.routes.host_node(host) as usize].len() > 1;
        if several(src) || several(dst) {
            return path;
        }
        let odds = self.between(src, dst);
        Path { bottleneck: Rate(odds.line.min(odds.best) as u64), ..path }
    }

    fn look(&self, ends: (HostId, HostId), line: f64) -> Odds {
        let rate = |(link, of_host): (LinkId, bool)| match of_host {
            true => f64::INFINITY,
            false => self.network.topology.links[link as usize].rate.0 as f64,
        };
        let rates = self.along(
            ends,
            (f64::INFINITY, f64::INFINITY),
            |(best, worst): (f64, f64), link, _| (best.min(rate(link)), worst.min(rate(link))),
            |one, other| (one.0.max(other.0), one.1.min(other.1)),
        );
        let Some((best, slowest)) = rates else { return Odds::default() };
        // Shares of the paths whose links all have such a rate.
        let wanted = [best, best.min(line)];
        let shares = self.along(
            ends,
            [1.0, 1.0],
            |shares: [f64; 2], link, part| {
                [0, 1].map(|at| if rate(link) < wanted[at] { 0.0 } else { shares[at] * part })
            },
            |one, other| [one[0] + other[0], one[1] + other[1]],
        );
        let [uneven, slows] =
            shares.unwrap_or([1.0; 2]).map(|share| if share > 1.0 - 1e-9 { 0.0 } else { 1.0 - share });
        Odds { uneven, slows, slowest, best, line }
    }

    /// Goes along all paths between two hosts. `cross`: a value at a link (and whether it is of a host) that
    /// gets a part of what leaves its node; `join`: where paths meet. Returns the value at the end.
    fn along<T: Copy>(
        &self,
        (src, dst): (HostId, HostId),
        first: T,
        cross: impl Fn(T, (LinkId, bool), f64) -> T,
        join: impl Fn(T, T) -> T,
    ) -> Option<T> {
        let routes = &self.network.routes;
        let is_host = |node: NodeId| routes.host_at(node).is_some();
        let end = routes.host_node(dst);
        let (mut reached, mut arrived) = (BTreeMap::from([(routes.host_node(src), first)]), None);
        for _ in 0..self.network.topology.nodes.len() {
            let mut next: BTreeMap<NodeId, T> = BTreeMap::new();
            for (node, value) in std::mem::take(&mut reached) {
                let hops = routes.next_hops(node, dst);
                for &port in hops {
                    let (link, peer) = self.ports[node as usize][port as usize];
                    let of_host = is_host(node) || is_host(peer);
                    let value = cross(value, (link, of_host), 1.0 / hops.len() as f64);
                    if peer == end {
                        arrived = Some(arrived.map_or(value, |before| join(before, value)));
                    } else {
                        next.entry(peer).and_modify(|before| *before = join(*before, value)).or_insert(value);
                    }
                }
            }
            if next.is_empty() {
                break;
            }
            reached = next;
        }
        arrived
    }

    /// The chances that some message of a job at a time takes a path with a lower rate than the best one, and
    /// one that slows it down: the connections of a job keep their paths.
    pub fn of_job(&self, graph: &JobGraph) -> (f64, f64) {
        let (mut known, mut even) = (FxHashSet::default(), (1.0, 1.0));
        for number in 0..graph.messages().min(LOOKED_AT) {
            let of = graph.message(number);
            let [src, dst] = [of.from, of.to].map(|rank| graph.hosts[rank as usize]);
            if of.inside || src == dst || !known.insert((of.from, of.to, of.channel)) {
                continue;
            }
            let odds = self.between(src, dst);
            even = (even.0 * (1.0 - odds.uneven), even.1 * (1.0 - odds.slows));
            if even.1 < 1e-3 {
                break;
            }
        }
        (1.0 - even.0, 1.0 - even.1)
    }

    /// The chance that some flow of a source takes a path with a lower rate than the best one; and whether so
    /// many are a demand over time, of which earlier ones may have ended before later ones start.
    pub fn of_flows(&self, source: &dyn FlowSource) -> (f64, bool) {
        let (mut source, mut even) = (source.clone_box(), 1.0);
        let mut start: Option<Time> = None;
        let flows = std::iter::from_fn(|| source.next()).take(LOOKED_AT as usize);
        for FlowSpec { src, dst, size, start: at, .. } in flows {
            if size >= WITHOUT_END.0 {
                continue;
            }
            let odds = self.between(src, dst);
            even *= 1.0 - odds.uneven;
            let first = *start.get_or_insert(at);
            let passed = at.saturating_sub(first).as_seconds();
            if 1.0 - even >= SURE && passed * odds.line > 8.0 * size as f64 {
                return (1.0 - even, true);
            }
        }
        (1.0 - even, false)
    }
}

/// When a run ends by what its flows meet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ends {
    pub early: Time,
    pub late: Time,
    /// The chance of an end after the early one.
    pub chance: f64,
}

/// Flows and jobs that end later where they take slow next hops.
#[derive(Debug, Default)]
pub struct Late {
    /// When they end then, each with its chance.
    ends: Vec<(Time, f64)>,
    /// The same of flows that others wait for: how much later.
    delays: Vec<(Time, f64)>,
    /// No run ends before this; and the number of entries at which those that end before are taken out.
    latest: Time,
    limit: usize,
}

impl Late {
    /// Of a flow that ends at a time, or with a chance later.
    pub fn add(&mut self, (end, late): (Time, Time), chance: f64, is_awaited: bool) {
        self.latest = self.latest.max(end);
        if late <= end || chance <= 0.0 {
            return;
        }
        if is_awaited && self.delays.len() < LOOKED_AT as usize {
            self.delays.push((late.saturating_sub(end), chance));
        }
        self.ends.push((late, chance));
        if self.ends.len() > self.limit {
            let latest = self.latest;
            self.ends.retain(|&(late, _)| late > latest);
            self.limit = (2 * self.ends.len()).max(LOOKED_AT as usize);
        }
    }

    /// The end of a run that ends at a time if no flow takes a slow next hop: after it in half of all cases;
    /// and the range, if it is wide.
    pub fn end(mut self, end: Time) -> (Time, Option<Ends>) {
        let delays = self.delays.iter().map(|&(delay, chance)| (end.saturating_add(delay), chance));
        self.ends.extend(delays);
        self.ends.sort_unstable_by_key(|&(late, _)| std::cmp::Reverse(late));
        // The time after which the run ends with a chance.
        let after = |chance: f64| {
            let mut earlier = 1.0;
            let mut later = self.ends.iter().take_while(|(late, _)| *late > end);
            let found = later.find(|(_, of)| {
                earlier *= 1.0 - of;
                1.0 - earlier >= chance
            });
            found.map_or(end, |&(late, _)| late)
        };
        let [early, middle, late] = [SURE, 0.5, 1.0 - SURE].map(after);
        let later = self.ends.iter().take_while(|(late, _)| late.0 as f64 > LATER * early.0 as f64);
        let chance = 1.0 - later.map(|(_, of)| 1.0 - of).product::<f64>();
        let wide = late.0 as f64 > LATER * early.0 as f64;
        (middle, wide.then_some(Ends { early, late, chance }))
    }
}

#[cfg(test)]
mod tests;
