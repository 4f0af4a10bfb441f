//! What workloads with a load bring to the links while they last, and where that is more than the links
//! carry.
//!
//! Links are looked at together where every path between the hosts on their two sides crosses one of them:
//! those of a host, those between a switch with hosts and other switches, and those between a pod (see
//! [`tiers`](super::tiers)) and the tier above. Where switches divide packets equally among next hops, or
//! choose by the destination alone, single links are looked at, too: the flows between two switches are
//! spread over all shortest paths. That is left out where it takes too long.
//!
//! A flow of a host with several links, or by a balancer that goes by the destination, follows one path: by a
//! link of its host as `nic_policy` divides them, and from there by a random next hop, or by that of the
//! destination.
//!
//! What receivers answer crosses the same links the other way: acknowledgements of short messages are nearly as
//! long as these. Of rounds that draw their hosts it does not count at the hosts' own links.
//!
//! Flows whose sizes are drawn count with the mean of their kind, so that an overload by the configured load does
//! not depend on the largest few that were drawn; when the links have carried all does. Rounds that draw their hosts
//! bring each host the mean.
//!
//! Where chance may explain what single links get, all of one kind (see [`alike`]) are looked at together, too: more
//! than all carry is an overload of some.
//!
//! Each workload has a time of its own, from its first arrival to its last, over which what it brings is
//! spread evenly; flows that were not looked at are like those that were. Rounds last for their period each, and
//! do not vary. What counts is the largest share at any of these times, with all workloads that last then.
//!
//! Links carry what they can in each state of the network (see [`course`](super::course)) for the time that it
//! lasts. The time of a workload from the last change on is looked at, too, as that state stays until its
//! arrivals end.

mod alike;
mod brought;

use super::course::Course;
use super::shares::Usable;
use super::spread::spread;
use super::tiers::{NO_POD, Pods};
use crate::balance::Shares;
use crate::engine::random::mix64;
use crate::scenario::Scenario;
use crate::scenario::network::Network;
use crate::topology::{HostId, LinkId, NodeId, Ports, ways_below};
use crate::transport::NicPolicy;
use crate::units::Time;
use crate::workload::Ends;
use alike::Kinds;
pub use brought::{Amount, Bits, Left, Span};
use brought::{Arrived, Brought};

/// Links times switches with hosts times workloads, beyond which single links between switches are not looked
/// at.
const STEPS: usize = 10_000_000;
/// The same for each switch with hosts: what is known of the links has to fit into memory.
const LINKS: usize = 200_000;
/// The number of workloads that have a list of all places instead of a table of those that they bring
/// something to.
const WITH_LISTS: usize = 4;
/// The times of at most this many workloads are looked at, of those with the highest loads.
const TIMES: usize = 16;
/// How much busier than all links together a single one has to be, to be named in their place; and how much
/// more than it carries rounds have to bring.
const BUSIER: f64 = 1.01;
/// Share of what links carry without failures, below which failures are named.
const REDUCED: f64 = 0.999;

/// Links to which flows bring more than they carry while flows arrive, so that queues and completion times
/// grow until the arrivals end, however long that is.
#[derive(Debug, Clone, PartialEq)]
pub struct Overload {
    pub links: String,
    /// What is brought, headers included, over what the links carry in that time.
    pub share: f64,
    /// When the links have carried the sizes that were drawn.
    pub carried: Time,
}

/// An overload, by place.
struct Found {
    place: u32,
    share: f64,
    carried: Time,
    /// The links would carry more without failures.
    reduced: bool,
}

/// Numbers of places: out of and into every host, then from and to every switch, then up from and down to
/// every pod, then each link in its two directions.
struct Places {
    /// By state of the network, by place.
    rates: Vec<Vec<f64>>,
    /// By host: the node of its switch; none for hosts with several links, or none to a switch.
    switch_of: Vec<Option<NodeId>>,
    /// By host.
    links_of: Vec<u32>,
    /// Of tiers above the first, with the place of the first one.
    pods: Vec<(Pods, u32)>,
    links: u32,
}

impl Places {
    fn of(network: &Network) -> Places {
        let (topology, routes) = (&network.topology, &network.routes);
        let hosts = routes.hosts();
        let mut links = (2 * (hosts + topology.nodes.len())) as u32;
        let mut pods = Vec::new();
        for of_tier in Pods::of_tiers(topology, 2) {
            let first = links;
            links += 2 * of_tier.count;
            pods.push((of_tier, first));
        }
        let (rates, links_of) = (Vec::new(), vec![0; hosts]);
        let mut places = Places { rates, switch_of: vec![None; hosts], links_of, pods, links };
        for link in &topology.links {
            for (near, far) in [(link.a, link.b), (link.b, link.a)] {
                let Some(host) = routes.host_at(near) else { continue };
                places.links_of[host as usize] += 1;
                let only = places.links_of[host as usize] == 1 && routes.host_at(far).is_none();
                places.switch_of[host as usize] = only.then_some(far);
            }
        }
        places
    }

    /// The number of places.
    fn count(&self) -> usize {
        self.rates[0].len()
    }

    /// Takes the rates of links in a state of the network: all of them, or what they can use.
    fn rate(&mut self, network: &Network, usable: Option<&Usable>) {
        let (topology, routes) = (&network.topology, &network.routes);
        let mut sums = vec![0.0; self.links as usize];
        let of_pods: Vec<Option<Vec<f64>>> =
            self.pods.iter().map(|(pods, _)| usable.map(|usable| usable.of_pods(pods))).collect();
        for (link, id) in topology.links.iter().zip(0..) {
            let rate = link.rate.0 as f64;
            for (near, far, end) in [(link.a, link.b, 0), (link.b, link.a, 1)] {
                let place = match (routes.host_at(near), routes.host_at(far)) {
                    (Some(host), _) => 2 * host,
                    (None, None) => self.of_switch(near),
                    (None, Some(_)) => continue,
                };
                let rate = usable.map_or(rate, |usable| usable.at(id, end));
                sums[place as usize..place as usize + 2].iter_mut().for_each(|sum| *sum += rate);
            }
            for ((pods, first), rates) in self.pods.iter().zip(&of_pods) {
                let Some((pod, _)) = pods.below(topology, link) else { continue };
                let place = (first + 2 * pod) as usize;
                let rate = rates.as_ref().map_or(rate, |rates| rates[id as usize]);
                sums[place..place + 2].iter_mut().for_each(|sum| *sum += rate);
            }
        }
        self.rates.push(sums);
    }

    fn of_switch(&self, switch: NodeId) -> u32 {
        2 * (self.switch_of.len() as u32 + switch)
    }
}

/// What is brought to the links of a network.
pub struct Offered<'s> {
    network: &'s Network,
    course: &'s Course<'s>,
    places: Places,
    /// By workload; none without a load or rounds.
    workloads: Vec<Option<Brought>>,
    /// Single links between switches are looked at.
    single_links: bool,
    shares: Option<Shares>,
    walker: Option<Walker>,
}

/// Follows flows one at a time.
struct Walker {
    nics: NicPolicy,
    ports: Ports,
    /// By node.
    ways_below: Vec<u32>,
    chosen: u64,
}

impl Walker {
    /// A random number below 1, from a stream that is always the same.
    fn draw(&mut self) -> f64 {
        self.chosen += 1;
        (mix64(self.chosen.wrapping_mul(0x9e37_79b9_7f4a_7c15)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// One of the ports of a host by which a flow leaves it; `rate`: of a link.
    fn nic(&mut self, host: NodeId, hops: &[u32], rate: impl Fn(LinkId) -> f64) -> u32 {
        if !matches!(self.nics, NicPolicy::All | NicPolicy::LeastBytes) {
            return hops[(self.draw() * hops.len() as f64) as usize];
        }
        let drawn = self.draw();
        let rate = |port: &u32| rate(self.ports[host as usize][*port as usize].0);
        let mut left = drawn * hops.iter().map(rate).sum::<f64>();
        let found = hops.iter().find(|port| {
            left -= rate(port);
            left < 0.0
        });
        *found.unwrap_or(&hops[0])
    }

    fn next_hop(&mut self, node: NodeId, dst: HostId, hops: &[u32], shares: Option<Shares>) -> u32 {
        let at = match shares {
            Some(Shares::ByDestination(way)) => way(dst, self.ways_below[node as usize], hops.len()),
            _ => (self.draw() * hops.len() as f64) as usize,
        };
        hops[at]
    }
}

impl<'s> Offered<'s> {
    /// `usable`: by state of the network; `shares`: how next hops divide what workloads bring.
    pub fn of(
        scenario: &'s Scenario,
        course: &'s Course<'s>,
        usable: &[Usable],
        shares: Option<Shares>,
    ) -> Offered<'s> {
        let network = &scenario.network;
        let mut places = Places::of(network);
        let sources = scenario.traffic.sources.iter();
        let recurring: Vec<Option<(Option<Time>, Ends)>> = sources
            .map(|source| {
                let period = source.period();
                (period.is_some() || source.asked().is_some()).then(|| (period, source.ends()))
            })
            .collect();
        let count = recurring.iter().flatten().count();
        let by_destination = matches!(shares, Some(Shares::ByDestination(_)));
        let several_links = places.links_of.iter().any(|&links| links > 1);
        let mut racks: Vec<NodeId> = places.switch_of.iter().flatten().copied().collect();
        racks.sort_unstable();
        racks.dedup();
        let links = network.topology.links.len().saturating_mul(count * course.states());
        let few = links <= LINKS && links.saturating_mul(racks.len()) <= STEPS;
        let single_links = few && shares.is_some();
        let walks = several_links || (single_links && by_destination);
        // Where single links are looked at, they show what cannot be used.
        for (state, usable) in usable.iter().enumerate() {
            let network = course.network(state);
            places.rate(network, Some(usable).filter(|_| !single_links));
            if single_links || several_links {
                let links = network.topology.links.iter().flat_map(|link| [link.rate.0 as f64; 2]);
                places.rates[state].extend(links);
            }
        }
        let lasting = if walks { places.count() } else { places.links as usize };
        let listed = if count <= WITH_LISTS { lasting } else { 0 };
        let brought = |(period, ends)| Brought {
            period,
            ends,
            list: vec![Arrived::default(); listed],
            ..Brought::default()
        };
        let walker = || Walker {
            nics: scenario.host.nic_policy,
            ports: network.topology.ports(),
            ways_below: if by_destination { ways_below(&network.topology) } else { Vec::new() },
            chosen: 0,
        };
        Offered {
            network,
            course,
            workloads: recurring.into_iter().map(|of| of.map(brought)).collect(),
            places,
            single_links,
            shares,
            walker: walks.then(walker),
        }
    }

    /// A flow of a workload arrives; `bits`: what it brings, and what its receiver answers, none if no path leads
    /// to that.
    pub fn bring(
        &mut self,
        workload: u16,
        (src, dst): (HostId, HostId),
        bits: Option<(Bits, Bits)>,
        now: Time,
    ) {
        let Some(Some(brought)) = self.workloads.get_mut(usize::from(workload)) else { return };
        brought.arrive(now);
        let Some((bits, answers)) = bits else { return };
        let more = [brought.all.add(bits, now), brought.answers.add(answers, now)];
        self.cross(workload, (src, dst), (bits, more[0]), now);
        self.cross(workload, (dst, src), (answers, more[1]), now);
    }

    /// Bits of a workload cross the links between two hosts; `more`: what they add to all of their kind.
    fn cross(
        &mut self,
        workload: u16,
        (src, dst): (HostId, HostId),
        (bits, more): (Bits, Amount),
        now: Time,
    ) {
        let Some(Some(brought)) = self.workloads.get_mut(usize::from(workload)) else { return };
        brought.add(2 * src, bits, now);
        brought.add(2 * dst + 1, bits, now);
        let switches = (self.places.switch_of[src as usize], self.places.switch_of[dst as usize]);
        let (by_destination, alone) =
            (matches!(self.shares, Some(Shares::ByDestination(_))), switches.0.zip(switches.1));
        let walks = alone.is_none_or(|(from, to)| by_destination && self.single_links && from != to);
        let ends = match &mut self.walker {
            Some(walker) if walks => {
                let network = self.course.network(self.course.state_at(now));
                let all = (network, &self.places, self.shares);
                follow(walker, all, (src, dst), |place, of_host| {
                    if of_host || self.single_links {
                        brought.add(place, bits, now);
                    }
                })
            }
            _ => alone,
        };
        let Some((from, to)) = ends.filter(|(from, to)| from != to) else { return };
        brought.add(self.places.of_switch(from), bits, now);
        brought.add(self.places.of_switch(to) + 1, bits, now);
        for (pods, first) in &self.places.pods {
            let (from, to) = (pods.at(from), pods.at(to));
            if from == to {
                continue;
            }
            if from != NO_POD {
                brought.add(first + 2 * from, bits, now);
            }
            if to != NO_POD {
                brought.add(first + 2 * to + 1, bits, now);
            }
        }
        if self.single_links && !walks {
            brought.pairs.entry((from, to)).or_default().add(more, 1.0);
        }
    }

    /// Of a workload, flows are left that were not looked at.
    pub fn leave(&mut self, workload: usize, left: Left) {
        if let Some(Some(brought)) = self.workloads.get_mut(workload) {
            if brought.flows == 0 && left.flows > 0 {
                brought.first = left.first;
            }
            brought.left = left;
        }
    }

    /// The number of flows of a workload that were looked at; none without a load.
    pub fn looked_at(&self, workload: usize) -> Option<u64> {
        Some(self.workloads.get(workload)?.as_ref()?.flows)
    }

    /// By workload, when it brings flows; none without a load, or where none come.
    pub fn spans(&self) -> Vec<Option<Span>> {
        let span = |brought: &Option<Brought>| {
            let brought = brought.as_ref().filter(|brought| brought.flows + brought.left.flows > 0)?;
            Some(brought.span())
        };
        self.workloads.iter().map(span).collect()
    }

    /// The links with the highest overload.
    pub fn overload(&self) -> Option<Overload> {
        let workloads: Vec<&Brought> = self.workloads.iter().flatten().filter(|of| of.flows > 0).collect();
        let course = self.course;
        let by_state = |brought: &&Brought| -> Vec<Vec<Amount>> {
            (0..course.states()).map(|state| self.on_links(brought, course.network(state))).collect()
        };
        let single: Vec<Vec<Vec<Amount>>> =
            workloads.iter().filter(|_| self.single_links).map(by_state).collect();
        let kinds = Kinds::of(self.network, &self.places, &workloads);
        let mut highest: [Option<Found>; 3] = [None, None, None];
        for time in times(&workloads, course) {
            let mut amounts = vec![Amount::default(); self.places.count()];
            let mut sums = vec![Amount::default(); kinds.all.len()];
            for (at, brought) in workloads.iter().enumerate() {
                let span = brought.span();
                let part = span.part(time);
                if part > 0.0 {
                    let lasts = (span.first.max(time.0), span.last.min(time.1));
                    let single = single.get(at).map(|by_state| mixed(by_state, &course.shares(lasts)));
                    self.add(brought, part, single.as_deref(), (&kinds, &mut amounts, &mut sums));
                }
            }
            let mut look = |class: usize, place: u32, amount: &Amount, rate: &dyn Fn(usize) -> f64| {
                let carried = course.carried(time, rate);
                // Nothing waits for links that are down: it is lost.
                let is_down = rate(course.state_at(time.1)) == 0.0;
                let share = if !is_down && amount.is_beyond(carried) { amount.bits / carried } else { 0.0 };
                if share > highest[class].as_ref().map_or(1.0, |found| found.share) {
                    let healthy = rate(0) * time.1.saturating_sub(time.0).as_seconds();
                    let reduced = carried < REDUCED * healthy;
                    let carried = course.when(time.0, amount.drawn, rate);
                    highest[class] = Some(Found { place, share, carried, reduced });
                }
            };
            for (amount, place) in amounts.iter().zip(0..) {
                let class = usize::from(place >= self.places.links);
                look(class, place, amount, &|state| self.places.rates[state][place as usize]);
            }
            for (sum, kind) in sums.iter().zip(&kinds.all).filter(|(_, kind)| kind.count > 1) {
                look(2, kind.first, sum, &|state| kind.rates[state]);
            }
        }
        let [together, link, alike] = highest;
        let share = |of: &Option<Found>| of.as_ref().map_or(0.0, |found| found.share);
        let link = link.filter(|link| link.share > BUSIER * share(&together));
        let alone = link.or(together);
        // All of a kind are named where none of them has more.
        let alike = alike.filter(|alike| alike.share * (1.0 + 1e-9) > share(&alone));
        let more = alike.as_ref().map(|of| kinds.all[kinds.at[of.place as usize] as usize].count - 1);
        let Found { place, share, carried, reduced } = alike.or(alone)?;
        let mut links = self.name(place);
        if let Some(more) = more {
            links.push_str(&format!(" (with {more} more like that, all together)"));
        }
        if reduced {
            links.push_str(" (slower or down by failures.event)");
        }
        Some(Overload { links, share, carried })
    }

    /// Adds a part of what a workload brings: to each place, and to all of a kind.
    fn add(
        &self,
        brought: &Brought,
        part: f64,
        single: Option<&[Amount]>,
        (kinds, amounts, sums): (&Kinds, &mut [Amount], &mut [Amount]),
    ) {
        let hosts = 2 * self.network.routes.hosts() as u32;
        let listed = brought.list.iter().zip(0..).map(|(arrived, place)| (place, arrived.amount));
        let in_table = brought.table.iter().map(|(&place, arrived)| (place, arrived.amount));
        let links = single.into_iter().flatten().zip(self.places.links..).map(|(of, place)| (place, *of));
        let as_drawn =
            listed.chain(in_table).filter(|&(place, _)| place >= hosts || !brought.draws(place % 2));
        let mut own = vec![Amount::default(); sums.len()];
        for (place, of) in as_drawn.chain(brought.expected()).chain(links) {
            let exact = brought.is_exact(place < hosts);
            let of = if exact { of.without_chance() } else { of };
            amounts[place as usize].add(of.of_all(brought.whole()), part);
            if let Some(sum) = own.get_mut(kinds.at[place as usize] as usize) {
                // What comes at one time may be for several of them.
                let all = &brought.all.amount;
                let squares = if exact { 0.0 } else { all.squares * of.bits / all.bits.max(1.0) };
                sum.add(Amount { squares, ..of }, 1.0);
            }
        }
        for (sum, own) in sums.iter_mut().zip(own) {
            sum.add(own.of_all(brought.whole()), part);
        }
    }

    /// What a workload brings to each link in its two directions, where all next hops get equal shares.
    fn on_links(&self, brought: &Brought, network: &Network) -> Vec<Amount> {
        let topology = &network.topology;
        let ports = topology.ports();
        let mut host_at = vec![None; topology.nodes.len()];
        for (switch, host) in self.places.switch_of.iter().zip(0..) {
            if let Some(switch) = *switch {
                host_at[switch as usize] = Some(host);
            }
        }
        let mut pairs: Vec<((NodeId, NodeId), Amount)> =
            brought.pairs.iter().map(|(pair, amount)| (*pair, *amount)).collect();
        pairs.sort_unstable_by_key(|&((from, to), _)| (to, from));
        let mut onto = vec![Amount::default(); 2 * topology.links.len()];
        for to_one in pairs.chunk_by(|one, next| one.0.1 == next.0.1) {
            let to = to_one[0].0.1;
            if let Some(host) = host_at[to as usize] {
                let from = to_one.iter().map(|&((from, _), amount)| (from, amount));
                spread(network, &ports, (to, host), from, &mut onto, true);
            }
        }
        onto
    }

    fn name(&self, place: u32) -> String {
        let (topology, routes) = (&self.network.topology, &self.network.routes);
        let name = |node: NodeId| &topology.nodes[node as usize].name;
        let (hosts, is_way_in) = (2 * routes.hosts() as u32, place % 2 == 1);
        if place < hosts {
            let way = if is_way_in { "to" } else { "from" };
            return format!("the link {way} {}", name(routes.host_node(place / 2)));
        }
        if let Some(at) = place.checked_sub(self.places.links) {
            let link = &topology.links[(at / 2) as usize];
            let (from, to) = if at % 2 == 0 { (link.a, link.b) } else { (link.b, link.a) };
            return format!("the link from {} to {}", name(from), name(to));
        }
        let pods = self.places.pods.iter().rev().find(|(_, first)| *first <= place);
        let Some((pods, first)) = pods else {
            let switch = name((place - hosts) / 2);
            return match is_way_in {
                false => format!("the links from {switch} to other switches"),
                true => format!("the links to {switch} from other switches"),
            };
        };
        let below = topology.links.iter().filter_map(|link| pods.below(topology, link));
        let mut switches: Vec<NodeId> =
            below.filter(|(pod, _)| *pod == (place - first) / 2).map(|(_, switch)| switch).collect();
        switches.sort_unstable();
        switches.dedup();
        let names = match switches.as_slice() {
            [one] => name(*one).clone(),
            [one, other] => format!("{} and {}", name(*one), name(*other)),
            [one, .., last] => format!("{} to {} ({} switches)", name(*one), name(*last), switches.len()),
            [] => String::new(),
        };
        match is_way_in {
            false => format!("the links from {names} to the tier above"),
            true => format!("the links to {names} from the tier above"),
        }
    }
}

/// What comes to links in all states of the network together, with these shares.
fn mixed(by_state: &[Vec<Amount>], shares: &[f64]) -> Vec<Amount> {
    let mut sums = vec![Amount::default(); by_state[0].len()];
    for (state, &share) in by_state.iter().zip(shares).filter(|(_, share)| **share > 0.0) {
        sums.iter_mut().zip(state).for_each(|(sum, of)| sum.add(*of, share));
    }
    sums
}

/// Follows a flow, and reports the place of each link between switches or of a host with several links.
/// Returns the first switch and the last; none where it crosses no switch.
fn follow(
    walker: &mut Walker,
    (network, places, shares): (&Network, &Places, Option<Shares>),
    (src, dst): (HostId, HostId),
    mut on: impl FnMut(u32, bool),
) -> Option<(NodeId, NodeId)> {
    let (topology, routes) = (&network.topology, &network.routes);
    let (mut node, mut ends) = (routes.host_node(src), None);
    let rate = |link: LinkId| topology.links[link as usize].rate.0 as f64;
    loop {
        let port = match routes.next_hops(node, dst) {
            [] => return ends,
            [one] => *one,
            many if ends.is_some() => walker.next_hop(node, dst, many, shares),
            many => walker.nic(node, many, rate),
        };
        let (link, peer) = walker.ports[node as usize][port as usize];
        let side = u32::from(topology.links[link as usize].a != node);
        let mut hosts = [node, peer].into_iter().filter_map(|node| routes.host_at(node)).peekable();
        let of_host = hosts.peek().is_some();
        if !of_host || hosts.any(|host| places.links_of[host as usize] > 1) {
            on(places.links + 2 * link + side, of_host);
        }
        if routes.host_at(peer).is_none() {
            ends = Some((ends.map_or(peer, |(first, _)| first), peer));
        }
        node = peer;
    }
}

/// The times that are looked at: those of workloads, those between any two ends of them that follow each other, and those
/// from the last change of the network before the end of a workload.
fn times(workloads: &[&Brought], course: &Course) -> Vec<(Time, Time)> {
    let mut largest: Vec<&&Brought> = workloads.iter().collect();
    let bits = |of: &Brought| of.whole() * of.all.amount.bits;
    largest.sort_by(|one, other| bits(other).total_cmp(&bits(one)));
    largest.truncate(TIMES);
    let own: Vec<(Time, Time)> = largest.iter().map(|of| (of.first, of.span().last)).collect();
    let mut ends: Vec<Time> = own.iter().flat_map(|&(first, last)| [first, last]).collect();
    ends.sort_unstable();
    let between = ends.windows(2).map(|pair| (pair[0], pair[1]));
    let changed = own.iter().filter_map(|&(first, last)| Some((course.last_turn(last)?.max(first), last)));
    let mut all: Vec<(Time, Time)> =
        own.iter().copied().chain(between).chain(changed).filter(|(from, to)| from < to).collect();
    all.sort_unstable();
    all.dedup();
    all
}

#[cfg(test)]
mod tests;
