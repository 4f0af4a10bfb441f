//! The links that flows share, as far as an estimate needs them: the links of hosts, and the links between
//! switches.

use rustc_hash::FxHashMap;

use super::course::Course;
use super::shares::Usable;
use crate::scenario::network::Network;
use crate::topology::{HostId, NodeId, Path};
use crate::transport::{Asks, NicPolicy};
use crate::units::{Rate, Time};

/// A flow without a window has this many round trips, at its share of its own link, in flight where queues
/// build up, until marks or delays have slowed it down.
const WINDOWLESS_ROUND_TRIPS: u64 = 4;
/// Maximum number of times that a packet is requested and sent.
const MOST_SENDINGS: f64 = 1000.0;
/// Where headers of trimmed packets and answers would fill a link, runs carried this share of its rate in
/// data.
const DATA_LEFT: f64 = 1.0 / 12.0;
/// Of answers and requests those that are packets of their own, the others being one packet, where runs filled
/// a link with them.
const ANSWERS_ALONE: f64 = 7.0 / 8.0;
/// If a flow takes this much longer than on its own link alone, another link limits it.
const LIMITED_ELSEWHERE: f64 = 1.01;

/// How the rate of shared links changes: in bit/s by state.
type Changes<'c> = (&'c Course<'c>, &'c [f64]);

/// Links that flows share.
#[derive(Clone, Copy, Default)]
struct Shared {
    bits_per_second: f64,
    flows: u32,
    /// Hosts that have flows there, if they are counted: senders and receivers.
    ends: [u32; 2],
    /// Bits that the flows there had left at the last arrival.
    backlog: f64,
    last_arrival: Time,
    /// Bits of the flows that ended, and at the end of the run those that the others would have sent by then.
    sent: f64,
    offered: f64,
}

impl Shared {
    fn join(&mut self, bits: f64, now: Time, changes: Option<Changes>) {
        let drained = self.carried((self.last_arrival, now), changes);
        self.backlog = (self.backlog - drained).max(0.0) + bits;
        self.last_arrival = now;
        self.flows += 1;
    }

    /// Returns the time in seconds of the flow that arrived last: its bits at a fair share with the present
    /// flows, but at most the time of all bits left.
    fn seconds(&self, bits: f64, changes: Option<Changes>) -> f64 {
        let bits = (bits * f64::from(self.flows)).min(self.backlog);
        match changes {
            None => bits / self.bits_per_second,
            Some((course, rates)) => {
                let end = course.when(self.last_arrival, bits, |state| rates[state]);
                end.saturating_sub(self.last_arrival).as_seconds()
            }
        }
    }

    fn carried(&self, (from, to): (Time, Time), changes: Option<Changes>) -> f64 {
        match changes {
            None => self.bits_per_second * to.saturating_sub(from).as_seconds(),
            Some((course, rates)) => course.carried((from, to), |state| rates[state]),
        }
    }
}

/// The shared links: index 0 limits nothing, then the links out of and into every host, then those from and
/// to every switch.
pub struct Fabric {
    shared: Vec<Shared>,
    /// Of links between switches and hosts: flows of the host there. None: they are not counted.
    of_hosts: Option<FxHashMap<(u32, HostId), u32>>,
    /// Of shared links whose rates change, in bit/s by state of the network.
    changing: FxHashMap<u32, Vec<f64>>,
    /// By host: the node of its switch; none for hosts with several.
    switch_of: Vec<Option<NodeId>>,
    /// By host: its links, and over how many of them the packets of one flow are spread.
    links_of_host: Vec<u32>,
    links_of_flow: Vec<u32>,
    /// By node: the rate of the slowest next hop that a switch chooses with the probability of faster ones;
    /// infinite without any.
    slowest_hop: Vec<f64>,
    /// Buffer of a switch in bytes.
    buffer: u64,
}

/// A flow in flight.
#[derive(Clone, Copy)]
pub struct Crossing {
    /// The shared links that it crosses: its own link, its destination's link, and in between those from one
    /// switch and to another.
    pub places: [u32; 4],
    /// The present rates there, in bit/s.
    rates: [f64; 4],
    /// Its time there.
    seconds: [f64; 4],
    /// Transmission time of its bytes.
    pub time: Time,
    /// Its share of its own link.
    own: Rate,
    /// Another link than its own limits it, so that queues build up.
    queues: bool,
    /// Some link of its path has a lower rate than its first one.
    narrows: bool,
}

/// What becomes of the packets of a flow that its receiver requests.
pub struct Requested {
    /// How many times each is sent until it arrives.
    pub sendings: f64,
    /// The time that the flow takes at least.
    pub seconds: f64,
}

/// Requests of receivers, and what answers them.
#[derive(Clone, Copy)]
pub struct Requests {
    pub asks: Asks,
    pub round_trip: Time,
    /// Bytes of a full packet.
    pub packet: u64,
    /// Bytes that may wait at a port.
    pub waiting: u64,
    /// Bytes of what is left of a packet that does not fit, over those of the packet; none: it is dropped.
    pub trimmed: Option<f64>,
    /// Bytes of all answers to a packet, over those of the packet.
    pub answers: f64,
}

/// Index of the entry that limits nothing, and its rate.
const UNLIMITED: u32 = 0;
const UNBOUND: f64 = 1e30;

impl Fabric {
    /// Creates the shared links of a network whose switches have buffers of this size, with the rates that
    /// they can use.
    pub fn of(network: &Network, buffer: u64, nics: NicPolicy, usable: &Usable) -> Fabric {
        let (topology, routes) = (&network.topology, &network.routes);
        let hosts = routes.hosts();
        let mut shared = vec![Shared::default(); 1 + 2 * hosts + 2 * topology.nodes.len()];
        shared[UNLIMITED as usize].bits_per_second = UNBOUND;
        let (switch_of, links_of_host, links_of_flow) = (vec![None; hosts], vec![0; hosts], vec![1; hosts]);
        let slowest_hop = vec![f64::INFINITY; topology.nodes.len()];
        let changing = FxHashMap::default();
        let of_hosts = None;
        let mut fabric = Fabric {
            shared,
            of_hosts,
            changing,
            switch_of,
            links_of_host,
            links_of_flow,
            slowest_hop,
            buffer,
        };
        for (link, id) in topology.links.iter().zip(0..) {
            for (near, far, end) in [(link.a, link.b, 0), (link.b, link.a, 1)] {
                let places = match (routes.host_at(near), routes.host_at(far)) {
                    (Some(host), far_host) => {
                        fabric.links_of_host[host as usize] += 1;
                        let only = fabric.links_of_host[host as usize] == 1 && far_host.is_none();
                        fabric.switch_of[host as usize] = only.then_some(far);
                        [out_of(host), into(host)]
                    }
                    (None, None) => [fabric.on_from(near), fabric.back_to(near)],
                    (None, Some(_)) => continue,
                };
                let rate = usable.at(id, end);
                for place in places {
                    fabric.shared[place as usize].bits_per_second += rate;
                }
            }
        }
        if nics == NicPolicy::All {
            fabric.links_of_flow.clone_from(&fabric.links_of_host);
        }
        fabric
    }

    /// Takes the rates that links have where nothing changes.
    pub fn begin_with(&mut self, first: &Fabric) {
        for (now, first) in self.shared.iter_mut().zip(&first.shared) {
            now.bits_per_second = first.bits_per_second;
        }
    }

    /// Takes what links can carry where flows that keep to their next hops begin at any of them, as often at
    /// each.
    pub fn begin_at_any(&mut self, network: &Network, usable: &Usable) {
        for (link, id) in network.topology.links.iter().zip(0..) {
            for (near, end) in [(link.a, 0), (link.b, 1)] {
                let (slowest, rate) = (&mut self.slowest_hop[near as usize], usable.at(id, end));
                if rate < link.rate.0 as f64 {
                    *slowest = slowest.min(rate);
                }
            }
        }
    }

    /// Takes the rates of shared links in the later states of a network.
    pub fn change(&mut self, later: &[Fabric]) {
        for (place, now) in (0..).zip(&self.shared) {
            let rates = std::iter::once(&*self).chain(later).map(|fabric| fabric.rate(place));
            if rates.clone().any(|rate| rate != now.bits_per_second) {
                self.changing.insert(place, rates.collect());
            }
        }
    }

    /// Takes what hosts send and receive at most, in bit/s.
    pub fn limit_hosts(&mut self, rate: f64) {
        for place in 1..=2 * self.switch_of.len() as u32 {
            let now = &mut self.shared[place as usize].bits_per_second;
            let later = self.changing.get_mut(&place).into_iter().flatten();
            later.chain([now]).for_each(|own| *own = own.min(rate));
        }
    }

    /// The rate in bit/s at which a flow can cross the links of a path: where its packets leave by all links
    /// of a host, as many paths as both hosts have links.
    pub fn line_rate(&self, src: HostId, dst: HostId, path: &Path) -> u64 {
        let links = |host: HostId| self.links_of_flow[host as usize].max(1);
        path.bottleneck.0.max(1).saturating_mul(u64::from(links(src).min(links(dst))))
    }

    /// What becomes of a flow's packets if all receivers that have flows on its links between switches ask at
    /// the rate of their own links, as far as the senders there can answer, for what narrower links lose.
    ///
    /// ```text
    /// m = O / D                        O: the requested rate; D: of data that a link carries
    /// D + (O - D) h + O' a = C         C: of the link; h: of a trimmed packet's header; a: of answers to O',
    ///                                  which is requested over the link's other direction
    /// ```
    ///
    /// but O is no more than
    ///
    /// ```text
    /// C + (n W - B) / (t + p)          n: flows; W: unanswered bits of each; B: bits that wait or are on the
    ///                                  way; t: round trip; p: the queue's time, or the longer pause of a
    ///                                  flow that has W unanswered
    /// ```
    ///
    /// and than what the other direction of the link can answer.
    ///
    /// Headers and answers go first. What is dropped takes no room on the link.
    pub fn requested(&self, crossing: &Crossing, requests: &Requests) -> Requested {
        let mut found = Requested { sendings: 1.0, seconds: 0.0 };
        let [_, _, up, down] = crossing.places;
        if up == UNLIMITED || down == UNLIMITED {
            return found;
        }
        let [source, destination, ..] = crossing.rates;
        let pause = requests.asks.pause * requests.packet as f64 * 8.0 / destination.max(1.0);
        let (round_trip, waiting) = (requests.round_trip.as_seconds(), requests.waiting as f64 * 8.0);
        let asked = |place: u32, back: u32| {
            let shared = &self.shared[place as usize];
            let [senders, receivers] = shared.ends.map(f64::from);
            let link = shared.bits_per_second.max(1.0);
            let unanswered = f64::from(shared.flows) * requests.asks.unanswered as f64 * 8.0;
            // Headers do not wait for what fills the queue.
            let queue = if requests.trimmed.is_some() { 0.0 } else { waiting / link };
            let around = round_trip + pause.max(queue);
            let more = (unanswered - waiting - link * round_trip).max(0.0) / around.max(1e-12);
            let answered = self.rate(back) / (ANSWERS_ALONE * requests.answers).max(1e-12);
            (requests.asks.share * receivers * destination)
                .min(senders * source)
                .min(link + more)
                .min(answered.max(link))
        };
        for (end, place, back) in [(2, up, up + 1), (3, down, down - 1)] {
            let (link, asked, answered) = (crossing.rates[end], asked(place, back), asked(back, place));
            let flows = f64::from(self.shared[place as usize].flows);
            let room = requests.waiting as f64 + link * requests.round_trip.as_seconds() / 8.0;
            if asked <= link || flows * requests.asks.unanswered as f64 <= room {
                continue;
            }
            let data = match requests.trimmed.map(|header| header.min(0.99)) {
                Some(header) => (link - asked * header - answered * requests.answers) / (1.0 - header),
                None => link,
            };
            let data = data.max(link * DATA_LEFT);
            found.sendings = found.sendings.max((asked / data).clamp(1.0, MOST_SENDINGS));
            found.seconds = found.seconds.max(crossing.seconds[end] * link / data);
        }
        found
    }

    /// The rate in bit/s at which messages that keep to one path each are slowed down where some of them take
    /// the slowest next hop between the switches of two hosts.
    pub fn slowest_path(&self, src: HostId, dst: HostId) -> f64 {
        let of = |host: HostId| self.switch_of[host as usize].map(|switch| self.slowest_hop[switch as usize]);
        [src, dst].into_iter().filter_map(of).fold(f64::INFINITY, f64::min)
    }

    /// The sum of the rates of the links out of a host, in bit/s.
    pub fn host_rate(&self, host: HostId) -> f64 {
        self.rate(out_of(host))
    }

    /// The same of all hosts.
    pub fn rate_of_hosts(&self) -> f64 {
        (0..self.switch_of.len() as HostId).map(|host| self.host_rate(host)).sum()
    }

    /// The number of links of a host.
    pub fn nics(&self, host: HostId) -> f64 {
        f64::from(self.links_of_host[host as usize].max(1))
    }

    /// The rate of a shared link in bit/s.
    pub fn rate(&self, place: u32) -> f64 {
        self.shared[place as usize].bits_per_second
    }

    /// The switch of a host that has one link.
    pub fn switch(&self, host: HostId) -> Option<NodeId> {
        self.switch_of[host as usize]
    }

    /// How many flows there are on shared links next to the one with so many bits that started last, and the mean
    /// of the bits that they have left; none without any, or where nothing limits.
    pub fn others(&self, place: u32, bits: f64) -> Option<(u32, f64)> {
        let shared = &self.shared[place as usize];
        let others = shared.flows.checked_sub(1).filter(|&others| others > 0 && place != UNLIMITED)?;
        Some((others, (shared.backlog - bits).max(0.0) / f64::from(others)))
    }

    pub fn is_of_host(&self, place: u32) -> bool {
        (1..1 + 2 * self.switch_of.len()).contains(&(place as usize))
    }

    /// A flow with this many bytes on the wire starts on this path. `course`: of the network; none: it does
    /// not change.
    pub fn join(
        &mut self,
        (src, dst): (HostId, HostId),
        path: &Path,
        bytes: u64,
        now: Time,
        course: Option<&Course>,
    ) -> Crossing {
        let places = self.places(src, dst, path);
        let course = course.filter(|_| !self.changing.is_empty());
        let (bits, line_rate) = (bytes as f64 * 8.0, self.line_rate(src, dst, path));
        let alone = bits / line_rate as f64;
        let mut seconds = [0.0; 4];
        let mut rates = [0.0; 4];
        self.count(places, true);
        for ((place, seconds), rate) in places.into_iter().zip(&mut seconds).zip(&mut rates) {
            let changes = course.and_then(|course| Some((course, self.changing.get(&place)?.as_slice())));
            let shared = &mut self.shared[place as usize];
            shared.join(bits, now, changes);
            *seconds = shared.seconds(bits, changes).max(alone);
            *rate = changes.map_or(shared.bits_per_second, |(course, rates)| rates[course.state_at(now)]);
        }
        let longest = seconds.into_iter().fold(0.0, f64::max);
        let flows = self.shared[places[0] as usize].flows;
        Crossing {
            places,
            rates,
            seconds,
            time: Time((longest * 1e12).round() as u64),
            own: Rate(((rates[0] / f64::from(flows)) as u64).clamp(1, line_rate)),
            queues: longest > LIMITED_ELSEWHERE * seconds[0],
            narrows: path.bottleneck < path.first,
        }
    }

    /// A flow that crossed these links has ended after this many bits.
    pub fn leave(&mut self, places: [u32; 4], bits: f64) {
        self.count(places, false);
        for place in places {
            self.shared[place as usize].flows -= 1;
            self.shared[place as usize].sent += bits;
        }
    }

    /// Counts the hosts that have flows on links between switches from now on.
    pub fn count_hosts(&mut self) {
        self.of_hosts = Some(FxHashMap::default());
    }

    /// A flow begins or ends at its hosts.
    fn count(&mut self, [out, into, up, down]: [u32; 4], begins: bool) {
        let Some(of_hosts) = &mut self.of_hosts else { return };
        for place in [up, down].into_iter().filter(|&place| place != UNLIMITED) {
            for (end, host) in [(out - 1) / 2, (into - 2) / 2].into_iter().enumerate() {
                let ends = &mut self.shared[place as usize].ends[end];
                let flows = of_hosts.entry((place, host)).or_default();
                if begins {
                    *ends += u32::from(*flows == 0);
                    *flows += 1;
                } else {
                    *flows -= 1;
                    *ends -= u32::from(*flows == 0);
                }
            }
        }
    }

    /// A flow that crosses these links would have sent this many bits when the run ends.
    pub fn offer(&mut self, places: [u32; 4], bits: f64) {
        for place in places {
            self.shared[place as usize].offered += bits;
        }
    }

    /// Returns the share of what a flow offers that its links can have carried until `end`: no link carries
    /// more than its rate, while the share of a flow is fixed when it starts, so that the first of many that
    /// start together is taken to have the whole link.
    pub fn carried(&self, places: [u32; 4], end: Time, course: &Course) -> f64 {
        let of_place = |place: u32| {
            let shared = &self.shared[place as usize];
            let changes = self.changing.get(&place).map(|rates| (course, rates.as_slice()));
            let room = (shared.carried((Time::ZERO, end), changes) - shared.sent).max(0.0);
            if shared.offered > room { room / shared.offered } else { 1.0 }
        };
        places.into_iter().map(of_place).fold(1.0, f64::min)
    }

    /// When the links of hosts have carried all flows that have started: the share of a flow is fixed when it
    /// starts, so that the first of several is taken to have the whole link.
    pub fn carried_by(&self, course: &Course) -> Time {
        let of_hosts = self.shared[1..=2 * self.switch_of.len()].iter().zip(1u32..);
        let used = of_hosts.filter(|(of, _)| of.backlog > 0.0 && of.bits_per_second > 0.0);
        let end = |(shared, place): (&Shared, u32)| match self.changing.get(&place) {
            None => {
                let left = shared.backlog / shared.bits_per_second;
                shared.last_arrival.saturating_add(Time((left * 1e12).min(4e18) as u64))
            }
            Some(rates) => course.when(shared.last_arrival, shared.backlog, |state| rates[state]),
        };
        used.map(end).max().unwrap_or_default()
    }

    /// Returns the bytes that a flow can have in flight. If its own link limits it, this is its share of the
    /// link times the round trip; otherwise queues grow until its window, or the buffer, shared with the
    /// other flows to the same host, is full. Where nothing slows a sender down, the buffer alone limits it,
    /// shared with the flows on the link that has most of them.
    pub fn room(&self, crossing: &Crossing, round_trip: Time, window: Option<u64>, slows_down: bool) -> u64 {
        let product = crossing.own.bytes_in(round_trip).0;
        let round_trips = if slows_down { WINDOWLESS_ROUND_TRIPS } else { u64::MAX };
        let window = window.unwrap_or(product.saturating_mul(round_trips));
        if !crossing.queues && (slows_down || !crossing.narrows) {
            return product.min(window);
        }
        let places = if slows_down { &crossing.places[1..2] } else { &crossing.places[1..] };
        let limiting = places.iter().filter(|place| **place != UNLIMITED);
        let flows_there = limiting.map(|&place| self.shared[place as usize].flows).max().unwrap_or(1).max(1);
        product.saturating_add(self.buffer / u64::from(flows_there)).min(window)
    }

    /// The shared links that a message crosses: out of its host, into its destination, from one switch and to
    /// another.
    pub fn places(&self, src: HostId, dst: HostId, path: &Path) -> [u32; 4] {
        let switches = (self.switch_of[src as usize], self.switch_of[dst as usize]);
        let (up, down) = match switches {
            (Some(from), Some(to)) if path.hops > 2 => (self.on_from(from), self.back_to(to)),
            _ => (UNLIMITED, UNLIMITED),
        };
        [out_of(src), into(dst), up, down]
    }

    /// Index of the links from a switch to others.
    pub fn on_from(&self, switch: NodeId) -> u32 {
        1 + 2 * (self.switch_of.len() as u32 + switch)
    }

    /// Index of the links from other switches to this one.
    pub fn back_to(&self, switch: NodeId) -> u32 {
        self.on_from(switch) + 1
    }
}

fn out_of(host: HostId) -> u32 {
    1 + 2 * host
}

fn into(host: HostId) -> u32 {
    2 + 2 * host
}
