//! What workloads with a load bring to the links while they last, and where that is more than the links
//! carry.
//!
//! Links are looked at together where every path between the hosts on their two sides crosses one of them:
//! those of a host, those between a switch with hosts and other switches, and those between a pod (see
//! [`tiers`](super::tiers)) and the tier above. Where switches choose among next hops by what is in a packet,
//! each next hop has an equal share of the flows, and single links are looked at, too: the flows between two
//! switches are spread over all shortest paths. That is left out where it takes too long. Hosts with several
//! links count for these alone.
//!
//! Each workload has a time of its own, from its first arrival to its last, over which what it brings is
//! spread evenly. What counts is the largest share at any of these times, with all workloads that last then.

use rustc_hash::FxHashMap;

use super::tiers::{NO_POD, Pods};
use crate::scenario::Scenario;
use crate::scenario::network::Network;
use crate::topology::{HostId, NodeId, Ports};
use crate::units::Time;

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
/// By how many standard deviations of independent arrivals more than a link carries has to arrive, so that it
/// is not chance.
const NO_CHANCE: f64 = 4.0;
/// How much busier than all links together a single one has to be, to be named in their place.
const BUSIER: f64 = 1.01;
/// Mean gaps between arrivals within which an end of a workload's time is the same as that of the whole time.
const SAME: f64 = 10.0;

/// Links to which flows bring more than they carry while flows arrive, so that queues and completion times
/// grow until the arrivals end, however long that is.
#[derive(Debug, Clone, PartialEq)]
pub struct Overload {
    pub links: String,
    /// What is brought, headers included, over what the links carry in that time.
    pub share: f64,
    /// The time in which it arrives.
    from: Time,
    to: Time,
}

impl Overload {
    /// When the links have carried what was brought; `last`: of all arrivals, if not all were looked at.
    pub fn carried(&self, last: Option<Time>) -> Time {
        let seconds = last.map_or(self.to, |last| last.max(self.to)).saturating_sub(self.from).as_seconds();
        self.from.saturating_add(Time((seconds * self.share * 1e12) as u64))
    }
}

/// When a workload brings flows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    pub first: Time,
    pub last: Time,
    /// Number of times at which something arrived.
    pub times: u64,
}

impl Span {
    /// The share of the time until `end` that it lasts; `seen`: how far arrivals were looked at.
    pub fn share(&self, end: Time, seen: Time) -> f64 {
        if self.times < 2 || end == Time::ZERO {
            return 1.0;
        }
        let gap = self.last.saturating_sub(self.first).as_seconds() / (self.times - 1) as f64;
        let same = |one: Time, other: Time| other.saturating_sub(one).as_seconds() <= SAME * gap;
        let from = if same(Time::ZERO, self.first) { Time::ZERO } else { self.first };
        let to = if self.last <= seen && same(self.last, seen) { end } else { self.last };
        (to.saturating_sub(from).as_seconds() / end.as_seconds()).clamp(0.0, 1.0)
    }

    /// The share of it that lies between two times.
    fn part(&self, (from, to): (Time, Time)) -> f64 {
        let (first, last) = (self.first.max(from), self.last.min(to));
        if first > last {
            return 0.0;
        }
        let whole = self.last.saturating_sub(self.first).as_seconds();
        if whole > 0.0 { last.saturating_sub(first).as_seconds() / whole } else { 1.0 }
    }
}

/// Bits, and the sum of the squares of the bits of each time.
#[derive(Debug, Clone, Copy, Default)]
struct Amount {
    bits: f64,
    squares: f64,
}

impl Amount {
    fn add(&mut self, other: Amount, part: f64) {
        self.bits += part * other.bits;
        self.squares += part * other.squares;
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Arrived {
    amount: Amount,
    /// The last time, and the bits that arrived then.
    at: Time,
    latest: f64,
}

impl Arrived {
    /// Returns what the bits add.
    fn add(&mut self, bits: f64, now: Time) -> Amount {
        let before = if now == self.at { self.latest } else { 0.0 };
        (self.at, self.latest) = (now, before + bits);
        let more = Amount { bits, squares: self.latest * self.latest - before * before };
        self.amount.add(more, 1.0);
        more
    }
}

/// What a workload brings.
#[derive(Default)]
struct Brought {
    first: Time,
    times: u64,
    all: Arrived,
    /// By place of several links together.
    list: Vec<Arrived>,
    table: FxHashMap<u32, Arrived>,
    /// Between two switches with hosts.
    pairs: FxHashMap<(NodeId, NodeId), Amount>,
}

impl Brought {
    fn span(&self) -> Span {
        Span { first: self.first, last: self.all.at, times: self.times }
    }

    fn add(&mut self, place: u32, bits: f64, now: Time) {
        match self.list.get_mut(place as usize) {
            Some(arrived) => arrived.add(bits, now),
            None => self.table.entry(place).or_default().add(bits, now),
        };
    }
}

/// Numbers of places: out of and into every host, then from and to every switch, then up from and down to
/// every pod, then each link in its two directions.
struct Places {
    rates: Vec<f64>,
    /// By host: the node of its switch; none for hosts with several links.
    switch_of: Vec<Option<NodeId>>,
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
        let mut places =
            Places { rates: vec![0.0; links as usize], switch_of: vec![None; hosts], pods, links };
        let mut links_of = vec![0u32; hosts];
        for link in &topology.links {
            let rate = link.rate.0 as f64;
            for (near, far) in [(link.a, link.b), (link.b, link.a)] {
                let place = match (routes.host_at(near), routes.host_at(far)) {
                    (Some(host), far_host) => {
                        links_of[host as usize] += 1;
                        let only = links_of[host as usize] == 1 && far_host.is_none();
                        places.switch_of[host as usize] = only.then_some(far);
                        2 * host
                    }
                    (None, None) => places.of_switch(near),
                    (None, Some(_)) => continue,
                };
                (place..place + 2).for_each(|place| places.rates[place as usize] += rate);
            }
            for (pods, first) in &places.pods {
                let Some((pod, _)) = pods.below(topology, link) else { continue };
                let place = first + 2 * pod;
                (place..place + 2).for_each(|place| places.rates[place as usize] += rate);
            }
        }
        places
    }

    fn of_switch(&self, switch: NodeId) -> u32 {
        2 * (self.switch_of.len() as u32 + switch)
    }
}

/// What is brought to the links of a network.
pub struct Offered<'s> {
    network: &'s Network,
    places: Places,
    /// By workload; none without a load.
    workloads: Vec<Option<Brought>>,
    /// Single links are looked at.
    single_links: bool,
    /// The last arrival of any workload.
    seen: Time,
}

impl<'s> Offered<'s> {
    pub fn of(scenario: &'s Scenario) -> Offered<'s> {
        let network = &scenario.network;
        let places = Places::of(network);
        let asked: Vec<bool> =
            scenario.traffic.sources.iter().map(|source| source.asked().is_some()).collect();
        let count = asked.iter().filter(|asked| **asked).count();
        let listed = if count <= WITH_LISTS { places.links as usize } else { 0 };
        let brought = || Brought { list: vec![Arrived::default(); listed], ..Brought::default() };
        let mut racks: Vec<NodeId> = places.switch_of.iter().flatten().copied().collect();
        racks.sort_unstable();
        racks.dedup();
        let links = network.topology.links.len().saturating_mul(count);
        let few = links <= LINKS && links.saturating_mul(racks.len()) <= STEPS;
        let alike = scenario.switch.balancer.facts().repeats;
        let mut offered = Offered {
            network,
            places,
            workloads: asked.into_iter().map(|asked| asked.then(brought)).collect(),
            single_links: few && alike,
            seen: Time::ZERO,
        };
        if offered.single_links {
            let links = network.topology.links.iter().flat_map(|link| [link.rate.0 as f64; 2]);
            offered.places.rates.extend(links);
        }
        offered
    }

    /// A flow of a workload arrives that brings these bits.
    pub fn bring(&mut self, workload: u16, (src, dst): (HostId, HostId), bits: f64, now: Time) {
        self.seen = self.seen.max(now);
        let Some(Some(brought)) = self.workloads.get_mut(usize::from(workload)) else { return };
        if brought.times == 0 {
            brought.first = now;
        }
        brought.times += u64::from(brought.times == 0 || now != brought.all.at);
        let more = brought.all.add(bits, now);
        brought.add(2 * src, bits, now);
        brought.add(2 * dst + 1, bits, now);
        let switches = (self.places.switch_of[src as usize], self.places.switch_of[dst as usize]);
        let (Some(from), Some(to)) = switches else { return };
        if from == to {
            return;
        }
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
        if self.single_links {
            brought.pairs.entry((from, to)).or_default().add(more, 1.0);
        }
    }

    /// How far arrivals were looked at, and by workload when it brought flows; none without a load, or where
    /// none came.
    pub fn spans(&self) -> (Time, Vec<Option<Span>>) {
        let span = |brought: &Option<Brought>| {
            let brought = brought.as_ref().filter(|brought| brought.times > 0)?;
            Some(brought.span())
        };
        (self.seen, self.workloads.iter().map(span).collect())
    }

    /// The links with the highest overload.
    pub fn overload(&self) -> Option<Overload> {
        let workloads: Vec<&Brought> = self.workloads.iter().flatten().filter(|of| of.times > 0).collect();
        let single = if self.single_links { self.on_links(&workloads) } else { Vec::new() };
        let mut highest: [Option<(u32, Overload)>; 2] = [None, None];
        for time in times(&workloads) {
            let seconds = time.1.saturating_sub(time.0).as_seconds();
            let mut amounts = vec![Amount::default(); self.places.rates.len()];
            for (at, brought) in workloads.iter().enumerate() {
                let part = brought.span().part(time);
                if part == 0.0 {
                    continue;
                }
                let listed = brought.list.iter().zip(0..).map(|(arrived, place)| (place, arrived));
                let in_table = brought.table.iter().map(|(&place, arrived)| (place, arrived));
                listed.chain(in_table).for_each(|(place, of)| amounts[place as usize].add(of.amount, part));
                let links = single.get(at).into_iter().flatten();
                links.zip(self.places.links..).for_each(|(of, place)| amounts[place as usize].add(*of, part));
            }
            for ((amount, rate), place) in amounts.iter().zip(&self.places.rates).zip(0..) {
                let (carried, is_link) = (rate * seconds, usize::from(place >= self.places.links));
                let beyond = carried > 0.0 && amount.bits - carried > NO_CHANCE * amount.squares.sqrt();
                let share = if beyond { amount.bits / carried } else { 0.0 };
                if share > highest[is_link].as_ref().map_or(1.0, |(_, found)| found.share) {
                    let (from, to) = time;
                    highest[is_link] = Some((place, Overload { links: String::new(), share, from, to }));
                }
            }
        }
        let [together, link] = highest;
        let share = together.as_ref().map_or(0.0, |(_, together)| together.share);
        let (place, overload) = link.filter(|(_, link)| link.share > BUSIER * share).or(together)?;
        Some(Overload { links: self.name(place), ..overload })
    }

    /// What each workload brings to each link in its two directions, where all next hops get equal shares.
    fn on_links(&self, workloads: &[&Brought]) -> Vec<Vec<Amount>> {
        let topology = &self.network.topology;
        let ports = topology.ports();
        let mut host_at = vec![None; topology.nodes.len()];
        for (switch, host) in self.places.switch_of.iter().zip(0..) {
            if let Some(switch) = *switch {
                host_at[switch as usize] = Some(host);
            }
        }
        let of = |brought: &&Brought| {
            let mut pairs: Vec<((NodeId, NodeId), Amount)> =
                brought.pairs.iter().map(|(pair, amount)| (*pair, *amount)).collect();
            pairs.sort_unstable_by_key(|&((from, to), _)| (to, from));
            let mut onto = vec![Amount::default(); 2 * topology.links.len()];
            for to_one in pairs.chunk_by(|one, next| one.0.1 == next.0.1) {
                let to = to_one[0].0.1;
                if let Some(host) = host_at[to as usize] {
                    let from = to_one.iter().map(|&((from, _), amount)| (from, amount));
                    self.spread(&ports, (to, host), from, &mut onto);
                }
            }
            onto
        };
        workloads.iter().map(of).collect()
    }

    /// Spreads what goes to a switch, and to a host there, over all shortest paths.
    fn spread(
        &self,
        ports: &Ports,
        (to, host): (NodeId, HostId),
        from: impl Iterator<Item = (NodeId, Amount)>,
        onto: &mut [Amount],
    ) {
        let (topology, routes) = (&self.network.topology, &self.network.routes);
        let mut distance = vec![u32::MAX; ports.len()];
        distance[to as usize] = 0;
        let mut reached = vec![to];
        let mut next = 0;
        while let Some(&node) = reached.get(next) {
            next += 1;
            for &(_, peer) in &ports[node as usize] {
                if routes.host_at(peer).is_none() && distance[peer as usize] == u32::MAX {
                    distance[peer as usize] = distance[node as usize] + 1;
                    reached.push(peer);
                }
            }
        }
        let mut waiting = vec![Amount::default(); ports.len()];
        from.for_each(|(node, amount)| waiting[node as usize].add(amount, 1.0));
        // The farthest first: what they send on has come to the nearer ones before these send.
        for &node in reached.iter().rev().filter(|node| **node != to) {
            let amount = waiting[node as usize];
            if amount.bits == 0.0 {
                continue;
            }
            let hops = routes.next_hops(node, host);
            for &port in hops {
                let (link, peer) = ports[node as usize][port as usize];
                let part = 1.0 / hops.len() as f64;
                let side = usize::from(topology.links[link as usize].a != node);
                onto[2 * link as usize + side].add(amount, part);
                waiting[peer as usize].add(amount, part);
            }
        }
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

/// The times that are looked at: those of workloads, and those between any two ends of them that follow each
/// other.
fn times(workloads: &[&Brought]) -> Vec<(Time, Time)> {
    let mut largest: Vec<&&Brought> = workloads.iter().collect();
    largest.sort_by(|one, other| other.all.amount.bits.total_cmp(&one.all.amount.bits));
    largest.truncate(TIMES);
    let own: Vec<(Time, Time)> = largest.iter().map(|of| (of.first, of.all.at)).collect();
    let mut ends: Vec<Time> = own.iter().flat_map(|&(first, last)| [first, last]).collect();
    ends.sort_unstable();
    let between = ends.windows(2).map(|pair| (pair[0], pair[1]));
    let mut all: Vec<(Time, Time)> =
        own.iter().copied().chain(between).filter(|(from, to)| from < to).collect();
    all.sort_unstable();
    all.dedup();
    all
}
