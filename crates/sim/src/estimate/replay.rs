//! Which flows are in flight when: replays a scenario's flows in a few steps each, without packets.
//!
//! A flow takes its base RTT plus the time of its bytes on the wire at its share of the links (see
//! [`fabric`](super::fabric)), which is fixed when it starts. Under Poisson arrivals that gives about load /
//! (1 - load) flows per link, as processor sharing does; in an incast all flows are in flight to the end; a
//! chain of dependent flows takes the sum of its times.
//!
//! A flow is no faster than its window allows in each round trip, where a key sets the window, nor than the
//! applications at its ends write and read.
//!
//! A flow that opens a connection by a handshake and slow start takes their round trips in addition. Where
//! nothing slows a sender down, what it sends above the rate of the narrowest link waits in buffers.
//!
//! Where links lose packets at random, a flow is no faster than its transport's law of losses allows, which
//! begins at the window that the path allows, and sends each packet again until one and its acknowledgement
//! arrive, or everything after a lost packet if its transport goes back. Where receivers ask for packets at the
//! rate of their own links, what narrower links drop or trim is sent again; so is what is lost of the first
//! packets of flows that start together (see [`bursts`]).
//!
//! A flow that keeps to one path where next hops have unequal rates may take a slow one, and ends later then
//! (see [`odds`](super::odds)); so does a job.
//!
//! While links are slow or down, flows and what waits at links take the time that the links need in these states
//! (see [`course`](super::course)). What links lose that go down waits for timeouts (see
//! [`outages`](super::outages)).
//!
//! The links of hosts, and those between other switches, have carried all no earlier than their rates allow
//! (see [`inner`](super::inner)).
//!
//! A flow that keeps to one path may find others at its next hops, and ends later then (see
//! [`collisions`](super::collisions)).
//!
//! Differs from a run: no queueing delay or control loop, no other loss in full buffers, and no collisions of
//! flows of a load or of rounds.

mod ahead;
mod bringing;
mod bursts;
mod drawn;
mod jobs;
mod of_flow;
mod starting;

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use bursts::Bursts;
use drawn::Drawn;
use jobs::OfGraph;

use super::course::{self, Course};
use super::fabric::{Fabric, Requests};
use super::inner::{Given, Inner};
use super::is_due;
use super::odds::{Ends, Late, Odds, Paths};
use super::offered::{Left, Offered, Overload, Span};
use super::outages::{Outages, Senders};
use super::shares::{self, Limiting, Usable};
use crate::balance::Shares;
use crate::config::Until;
use crate::engine::soonest::Soonest;
use crate::net::loss::LinkLoss;
use crate::scenario::Scenario;
use crate::scenario::host::nics_of_hosts;
use crate::scenario::network::Network;
use crate::topology::{NodeId, Path, PathTimes, Routes};
use crate::transport::{
    Answers, Asks, NicPolicy, Pace, Permission, Resends, TransportConfig, largest_packet,
};
use crate::units::{Rate, Time};
use crate::workload::merge::{Arrival, Dependents, Merged};
use crate::workload::{FlowId, FlowSource, FlowSpec, Glance, Traffic, TrafficSize};

/// Default maximum number of flows that are replayed; the others are assumed to be similar.
pub const MAX_FLOWS: u64 = 2_000_000;

/// Totals and maxima of a run's flows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Replay {
    /// Flows that start before the run ends.
    pub flows: u64,
    /// Flows that still wait for others when the run ends, without those of job graphs.
    pub unstarted: u64,
    /// Data packets and acknowledgements, times the number of links that they cross.
    pub packet_hops: f64,
    /// Simulated time at which the last flow, or the run, ends.
    pub end: Time,
    /// When flows end, where that depends much on the next hops that they take.
    pub ends: Option<Ends>,
    /// When the last flow would end if none collided with others on a path, if that is earlier.
    pub without_collisions: Option<Time>,
    /// Maximum number of flows in flight.
    pub flows_in_flight: u64,
    /// Connections that stay open to the end and are used by several flows.
    pub connections: u64,
    /// Maximum number of flows that are known but wait for others.
    pub flows_waiting: u64,
    /// Of the flows in flight, those that wait their turn on a connection or have it.
    pub messages_in_flight: u64,
    /// Maximum number of packets in flight, including acknowledgements.
    pub packets_in_flight: u64,
    /// Number of packets in flight, averaged over the packets: the data that competes for the caches.
    pub packets_met: f64,
    /// Where the flows of workloads with a load bring more than is carried.
    pub overload: Option<Overload>,
    /// By workload with a load, when it brings flows.
    pub spans: Vec<Option<Span>>,
}

impl Replay {
    /// Replays the first flows of a scenario's traffic. Also returns the size of all of it: every flow is
    /// drawn once, and of those beyond `max_flows` only what sources cannot estimate.
    pub fn of(scenario: &Scenario, max_flows: u64) -> (Replay, TrafficSize) {
        let (course, lasting) = (Course::of(scenario), course::lasting(scenario));
        let network = lasting.as_ref().unwrap_or(&scenario.network);
        let mut player = Player::new(scenario, network, &course);
        let glances: Vec<Option<Glance>> =
            scenario.traffic.sources.iter().map(|source| source.glance()).collect();
        let pairs = scenario.traffic.sources.iter().zip(&glances);
        let own = pairs.map(|(source, glance)| match glance {
            Some(glance) => glance.source.clone_box(),
            None => source.clone_box(),
        });
        let sources = own.collect();
        let traffic = Traffic { sources, groups: scenario.traffic.groups.clone() };
        let mut drawn = Drawn::new(Merged::new(&traffic), max_flows);
        let mut played = player.play(scenario, &mut drawn);
        let graphs: Vec<Option<OfGraph>> =
            scenario.traffic.sources.iter().map(|source| player.of_graph(source.graph()?)).collect();
        let looked_at = player.look_ahead(&drawn, max_flows, scenario.until);
        let (last, alike) = (drawn.size.last_start, ahead::independent(&drawn));
        let (mut size, left) = drawn.count(max_flows);
        played.join(alike.iter().map(|&source| &left[usize::from(source)]), last);
        for (source, (of, looked_at)) in left.iter().zip(looked_at).enumerate() {
            player.offered.leave(source, Left { flows: of.flows.saturating_sub(looked_at), ..*of });
        }
        // What starts after the end of the run is counted, but not as part of it.
        let not_due = |of: &Left| {
            let share = 1.0 - of.due(scenario.until);
            ((of.flows as f64 * share) as u64, (of.bytes as f64 * share) as u64)
        };
        let mut later = left
            .iter()
            .map(not_due)
            .fold((0, 0u64), |sum: (u64, u64), of| (sum.0 + of.0, sum.1.saturating_add(of.1)));
        for (source, glance) in scenario.traffic.sources.iter().zip(&glances) {
            let Some(glance) = glance else { continue };
            let more = (glance.of.0 - glance.size.0, glance.of.1 - glance.size.1);
            (size.flows, size.drawn) = (size.flows + more.0, size.drawn + more.0);
            size.bytes = size.bytes.saturating_add(more.1);
            let start = source.graph().map_or(Time::ZERO, |graph| graph.flow.start);
            if is_due(scenario.until, start) {
                played.spread(glance.under_way as f64 / glance.size.0.max(1) as f64);
            } else {
                later = (later.0 + more.0, later.1.saturating_add(more.1));
            }
        }
        if player.bytes > 0 && !player.stopped_by_time {
            let end = match scenario.until {
                Until::At(stop) => stop.min(size.last_start),
                Until::FlowsDone { .. } => size.last_start,
            };
            played.flows = played.flows.max(size.flows.saturating_sub(later.0));
            let whole = player.hops_of_all(&graphs, &glances, size.bytes.saturating_sub(later.1));
            played.packet_hops = played.packet_hops.max(whole);
            played.end = played.end.max(end);
        }
        played.overload = player.offered.overload();
        played.spans = player.offered.spans();
        if let Some(overload) = &played.overload {
            played.end = played.end.max(overload.carried);
        }
        if let Some(given) = &player.given {
            let inners: Vec<&Inner> = match player.inner_in.as_slice() {
                [] => vec![&player.inner],
                in_states => in_states.iter().collect(),
            };
            let carried = given.end(&course, &inners).max(player.fabric.carried_by(&course));
            played.end = played.end.max(carried);
        }
        let rates = player.fabric.rate_of_hosts();
        // All bytes leave hosts; those of job graphs may stay within a domain.
        if rates > 0.0 && !player.graphs.contains(&true) {
            played.end = played.end.max(Time((size.bytes as f64 * 8e12 / rates) as u64));
        }
        let of_jobs = player.end_of_jobs(scenario, network, &graphs);
        played.end = played.end.max(of_jobs);
        (played.end, played.ends) = std::mem::take(&mut player.late).end(played.end);
        let (end, _) = std::mem::take(&mut player.colliding).end(played.end);
        played.without_collisions = (end > played.end).then_some(played.end);
        played.end = end;
        if let Until::At(stop) = scenario.until {
            (played.end, played.ends, played.without_collisions) = (stop, None, None);
        }
        (played, size)
    }

    /// Multiplies what is in flight.
    fn spread(&mut self, times: f64) {
        if times > 1.0 {
            let more = |count: &mut u64| *count = (*count as f64 * times) as u64;
            more(&mut self.flows_in_flight);
            more(&mut self.messages_in_flight);
            more(&mut self.packets_in_flight);
            self.packets_met *= times;
        }
    }
}

/// What was replayed of a source.
#[derive(Debug, Clone, Copy, Default)]
struct OfSource {
    bytes: u64,
    /// Packet-hops, without control packets.
    hops: f64,
    /// Data packets, times the links that they cross.
    crossings: f64,
    /// Packet-hops of control packets, and flows that had some.
    control: f64,
    controlled: u64,
}

/// A flow in flight, in one cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Flying {
    source: u16,
    order: u32,
    start: Time,
    places: [u32; 4],
    packets: u64,
    /// Packet-hops of all of it, and of its first window until it queues.
    hops: f32,
    first: f32,
    /// On the wire.
    bits: f64,
    ends: Time,
    on_connection: bool,
}

impl Flying {
    /// Returns the share of its time that has passed.
    fn share_done(&self, now: Time) -> f64 {
        let start = self.start.0.min(self.ends.0);
        let whole = (self.ends.0 - start).max(1) as f64;
        (now.0.saturating_sub(start) as f64 / whole).min(1.0)
    }
}

/// A flow that waits for others.
#[derive(Default)]
struct Waiting {
    arrival: Option<Arrival>,
    ended: u16,
}

/// The packet sizes of a transport.
pub(super) struct Wire {
    pub mtu: u64,
    overhead: u64,
    window: Option<u64>,
    keeps_connections: bool,
    goes_back: bool,
    control: [u32; 2],
    first_window: Option<u32>,
    in_flight: Option<u64>,
    applications: [Option<Pace>; 2],
    /// Bytes of an acknowledgement.
    answer: u64,
    /// Its controller answers congestion.
    slows_down: bool,
    answers: Answers,
    permission: Option<Permission>,
    asks: Option<Asks>,
    resends: Option<Resends>,
    /// The receiver takes packets in any order, and none that arrives shows that another one is lost.
    any_order: bool,
}

impl Wire {
    /// Size of a full packet.
    pub fn packet(&self) -> u64 {
        self.mtu + self.overhead
    }

    /// The packets that a flow may have in flight.
    fn window_packets(&self) -> Option<u64> {
        Some(self.in_flight?.div_ceil(self.mtu).max(1))
    }

    /// Bytes of all packets of a flow.
    fn bytes(&self, size: u64) -> u64 {
        size.saturating_add(size.div_ceil(self.mtu).saturating_mul(self.overhead))
    }
}

struct Player<'s> {
    /// None: flows meet no slow next hops by chance.
    paths: Option<Paths<'s>>,
    late: Late,
    /// Flows that find others at their next hops.
    colliding: Late,
    /// The rate in bit/s of all links between switches at first; none: they differ.
    rate_between: Option<f64>,
    routes: &'s Routes,
    /// By source: it has neither a load nor rounds, and is no job.
    single_flows: Vec<bool>,
    /// By transport: the packets of a flow take the next hop that the first of them took.
    one_path: Vec<bool>,
    times: PathTimes<'s>,
    transports: &'s [TransportConfig],
    sources: &'s [Box<dyn FlowSource>],
    /// Shares of data packets and of acknowledgements that a link loses at random.
    loss: [f64; 2],
    wires: Vec<Wire>,
    course: &'s Course<'s>,
    outages: Outages<'s>,
    /// By state of the network: the paths where next hops have unequal rates. Empty where it stays in one.
    paths_in: Vec<Option<Paths<'s>>>,
    /// The same: the rate in bit/s of all links between switches; none: they differ.
    rates_in: Vec<Option<f64>>,
    fabric: Fabric,
    inner: Inner<'s>,
    /// The same by state of the network. Empty where it stays in one.
    inner_in: Vec<Inner<'s>>,
    /// None: the run ends at a time.
    given: Option<Given>,
    offered: Offered<'s>,
    /// Bytes that may wait at a port.
    port_room: u64,
    /// Ports that are full trim packets.
    trims: bool,
    dependents: Dependents,
    waiting: FxHashMap<(u16, u32), Waiting>,
    /// By source: it is a job graph, which a run plays without a list of what waits.
    graphs: Vec<bool>,
    ready: BTreeMap<(Time, FlowId), Arrival>,
    bursts: Bursts,
    flying: Vec<Flying>,
    free: Vec<u32>,
    /// When the flows in flight end, with their places.
    ends: Soonest,
    now: Time,
    packets: u64,
    messages: u64,
    /// Integrals over time of the packets in flight and of their square.
    packet_time: f64,
    packet_time_squared: f64,
    /// Payload of the flows that started.
    bytes: u64,
    of_sources: Vec<OfSource>,
    stopped_by_time: bool,
    played: Replay,
}

impl<'s> Player<'s> {
    /// `network`: with the rates that links have at the start and keep.
    fn new(scenario: &'s Scenario, network: &'s Network, course: &'s Course<'s>) -> Player<'s> {
        let (run, balancer) = (scenario.run(), &scenario.switch.balancer);
        let wire = |transport: &TransportConfig| {
            let framing = transport.framing(&scenario.telemetry);
            Wire {
                mtu: framing.payload.max(1),
                overhead: framing.header,
                window: transport.window(&run),
                keeps_connections: transport.facts().keeps_connections,
                goes_back: transport.facts().goes_back,
                control: transport.facts().control_packets,
                first_window: transport.facts().first_window,
                in_flight: transport.facts().in_flight,
                applications: transport.facts().applications,
                answer: framing.ack,
                slows_down: transport.facts().slows_down(),
                answers: transport.facts().answers,
                permission: transport.facts().permission,
                asks: transport.facts().asks,
                resends: transport.facts().resends,
                any_order: transport.facts().any_order,
            }
        };
        let limiting = Limiting::of(scenario, network);
        let Limiting { brought, ends } = limiting;
        let ends_in: Vec<Option<Shares>> = match course.states() {
            1 => vec![ends],
            states => (0..states).map(|at| limiting.in_state(scenario, course.network(at))).collect(),
        };
        let of_state = |(state, ends): (usize, &Option<Shares>)| Usable::of(course.network(state), *ends);
        let usable: Vec<Usable> = ends_in.iter().enumerate().map(of_state).collect();
        let (buffer, nics) = (scenario.switch.buffer.0, scenario.host.nic_policy);
        let of_state = |(state, usable)| Fabric::of(course.network(state), buffer, nics, usable);
        let mut fabric = of_state((0, &usable[0]));
        fabric.change(&(1..).zip(&usable[1..]).map(of_state).collect::<Vec<_>>());
        let lasting = Usable::of(network, ends);
        fabric.begin_with(&Fabric::of(network, buffer, nics, &lasting));
        let subflows = scenario.transports.iter().any(|transport| transport.facts().subflows.is_some());
        let evenly = |ends: Option<Shares>| matches!(ends, Some(Shares::Equal)) && !subflows;
        let inner = Inner::of(network, &lasting, evenly(ends));
        let to_the_end = matches!(scenario.until, Until::FlowsDone { .. });
        let at_first = shares::at_first(balancer);
        let (mut inner_in, mut paths_in, mut rates_in) = (Vec::new(), Vec::new(), Vec::new());
        if !course.is_constant() {
            for (state, usable) in usable.iter().enumerate() {
                let network = course.network(state);
                rates_in.push(rate_between(network));
                inner_in.push(Inner::of(network, usable, evenly(ends_in[state])));
                paths_in.push(Paths::of(network).filter(|_| matches!(at_first, Some(Shares::Equal))));
            }
        }
        fabric.begin_at_any(network, &Usable::of(network, at_first));
        let single_flows = |source: &dyn FlowSource| {
            source.asked().is_none() && source.period().is_none() && source.graph().is_none()
        };
        let one_nic = nics != NicPolicy::All || nics_of_hosts(network) <= 1;
        let one_path = |transport: &TransportConfig| {
            let facts = transport.facts();
            let spreads = facts.spreads_flows || balancer.spreads_flows(facts.labels_packets);
            matches!(balancer.facts().shares, Some(Shares::Equal)) && one_nic && !spreads
        };
        let host_rates = scenario.transports.iter().map(|transport| transport.facts().host_rate);
        if let Some(rate) =
            host_rates.collect::<Option<Vec<Rate>>>().and_then(|rates| rates.into_iter().max())
        {
            fabric.limit_hosts(rate.0 as f64);
        }
        if scenario.transports.iter().any(|transport| transport.facts().asks.is_some()) {
            fabric.count_hosts();
        }
        let queue = scenario.switch.queue.facts();
        let packet = largest_packet(&scenario.transports, &scenario.telemetry);
        Player {
            paths: Paths::of(network).filter(|_| matches!(at_first, Some(Shares::Equal))),
            late: Late::default(),
            colliding: Late::default(),
            rate_between: rate_between(network),
            routes: &network.routes,
            single_flows: scenario
                .traffic
                .sources
                .iter()
                .map(|source| single_flows(source.as_ref()))
                .collect(),
            one_path: scenario.transports.iter().map(one_path).collect(),
            times: PathTimes::new(&network.topology, &network.routes),
            transports: &scenario.transports,
            sources: &scenario.traffic.sources,
            loss: [LinkLoss::DATA, LinkLoss::ACKNOWLEDGEMENTS].map(|kind| {
                scenario.failures.loss.filter(|loss| loss.kinds & kind != 0).map_or(0.0, |loss| loss.share)
            }),
            wires: scenario.transports.iter().map(wire).collect(),
            course,
            outages: Outages::of(scenario, course),
            paths_in,
            rates_in,
            fabric,
            inner,
            inner_in,
            given: to_the_end.then(Given::default),
            offered: Offered::of(scenario, course, &usable, brought),
            port_room: queue.room(packet).unwrap_or(scenario.switch.buffer).0,
            trims: queue.trims.is_some(),
            dependents: Dependents::new(&scenario.traffic),
            waiting: FxHashMap::default(),
            graphs: scenario.traffic.sources.iter().map(|source| source.graph().is_some()).collect(),
            ready: BTreeMap::new(),
            bursts: Bursts::default(),
            flying: Vec::new(),
            free: Vec::new(),
            ends: Soonest::default(),
            now: Time::ZERO,
            packets: 0,
            messages: 0,
            packet_time: 0.0,
            packet_time_squared: 0.0,
            bytes: 0,
            of_sources: vec![OfSource::default(); scenario.traffic.sources.len()],
            stopped_by_time: false,
            played: Replay::default(),
        }
    }

    fn play(&mut self, scenario: &Scenario, announced: &mut Drawn) -> Replay {
        let stop = match scenario.until {
            Until::At(time) => time,
            Until::FlowsDone { .. } => Time::MAX,
        };
        loop {
            let arrives = announced.peek(&self.times).map(|arrival| arrival.spec.start);
            let starts = self.ready.first_key_value().map(|(key, _)| key.0);
            let ends = self.ends.peek().map(|(time, _)| time);
            let Some(next) = [arrives, starts, ends].into_iter().flatten().min() else { break };
            if next > stop {
                self.stop_at(stop);
                break;
            }
            self.move_to(next);
            if ends == Some(next) {
                self.end_next();
            } else if starts == Some(next) {
                if let Some((_, arrival)) = self.ready.pop_first() {
                    let path = self.times.pair(arrival.spec.src, arrival.spec.dst);
                    self.start(arrival, path);
                }
            } else if let Some((arrival, path)) = announced.upcoming.pop() {
                self.announce(arrival, path);
            }
        }
        self.played.end = self.now;
        let unlisted = |source: u16| self.graphs.get(usize::from(source)) == Some(&true);
        let sources =
            self.waiting.keys().map(|&(source, _)| source).chain(self.ready.values().map(|of| of.source));
        self.played.unstarted = sources.filter(|&source| !unlisted(source)).count() as u64;
        if self.packet_time > 0.0 {
            self.played.packets_met = self.packet_time_squared / self.packet_time;
        }
        std::mem::take(&mut self.played)
    }

    fn move_to(&mut self, time: Time) {
        if !self.bursts.takes(time) {
            self.end_burst();
        }
        let (span, packets) = (time.saturating_sub(self.now).0 as f64, self.packets as f64);
        self.packet_time += packets * span;
        self.packet_time_squared += packets * packets * span;
        self.now = time.max(self.now);
    }

    /// The run ends before its flows: those in flight have completed only a part of their packet-hops.
    fn stop_at(&mut self, time: Time) {
        self.move_to(time);
        self.stopped_by_time = true;
        let ends = std::mem::take(&mut self.ends);
        let flying: Vec<Flying> = ends.iter().map(|(_, place)| self.flying[place as usize]).collect();
        for flow in &flying {
            self.fabric.offer(flow.places, flow.bits * flow.share_done(time));
        }
        for flow in &flying {
            let done = flow.share_done(time) * self.fabric.carried(flow.places, time, self.course);
            let hops = f64::from(flow.hops);
            self.played.packet_hops -= hops - (hops * done).max(hops.min(flow.first.into()));
        }
    }

    /// What senders of a transport do about losses; none: that is not known.
    fn senders(&self, transport: u16, spread: bool) -> Option<Senders> {
        let wire = &self.wires[usize::from(transport)];
        wire.resends.map(|resends| Senders { resends, spread, wait: wire.any_order })
    }

    fn announce(&mut self, arrival: Arrival, path: Option<Path>) {
        self.bring(arrival.source, &arrival.spec, path);
        if arrival.spec.waits_for == 0 {
            return self.start(arrival, path);
        }
        let place = (arrival.source, arrival.order);
        self.waiting.entry(place).or_default().arrival = Some(arrival);
        if self.graphs.get(usize::from(place.0)) != Some(&true) {
            self.played.flows_waiting = self.played.flows_waiting.max(self.waiting.len() as u64);
        }
        self.release_if_free(place);
    }

    fn release_if_free(&mut self, place: (u16, u32)) {
        let Some(waiting) = self.waiting.get(&place) else { return };
        let Some(mut arrival) = waiting.arrival.filter(|a| waiting.ended >= a.spec.waits_for) else { return };
        self.waiting.remove(&place);
        arrival.spec.start = self.now.saturating_add(arrival.spec.compute).max(arrival.spec.start);
        self.ready.insert((arrival.spec.start, arrival.id), arrival);
    }

    fn end_next(&mut self) {
        let Some((_, place)) = self.ends.pop() else { return };
        let flow = self.flying[place as usize];
        self.free.push(place);
        self.fabric.leave(flow.places, flow.bits);
        self.packets -= flow.packets;
        self.messages -= u64::from(flow.on_connection);
        let (source, order) = (flow.source, flow.order);
        let later: Vec<u32> = self.dependents.of(source, order).to_vec();
        for order in later {
            let waiting = self.waiting.entry((source, order)).or_default();
            waiting.ended = waiting.ended.saturating_add(1);
            self.release_if_free((source, order));
        }
    }

    /// Packet-hops of this many bytes of all sources. Messages of a job of which a glance was replayed have
    /// as many for each link that a packet crosses as those of the glance. What nothing was replayed of is
    /// like the mean of the others.
    fn hops_of_all(&self, graphs: &[Option<OfGraph>], glances: &[Option<Glance>], bytes: u64) -> f64 {
        let (mut known, mut hops) = (0.0, 0.0);
        for (of, (graph, glance)) in self.of_sources.iter().zip(graphs.iter().zip(glances)) {
            if of.bytes == 0 {
                continue;
            }
            let (Some(OfGraph { graph, loads }), Some(glance)) = (graph, glance) else {
                known += of.bytes as f64;
                hops += of.hops + of.control;
                continue;
            };
            known += glance.of.1.max(of.bytes) as f64;
            hops += of.hops * (loads.crossings / of.crossings.max(1.0));
            if of.controlled > 0 {
                let keeps = self.wires[usize::from(graph.flow.transport)].keeps_connections && !graph.fresh;
                let all = if keeps { graph.connections() } else { graph.flows() };
                hops += of.control * (all as f64 / of.controlled as f64);
            }
        }
        hops * (bytes as f64 / known.max(1.0)).max(1.0)
    }

    /// Adds the packets that are sent in addition because flows started together.
    fn end_burst(&mut self) {
        for (place, hops) in self.bursts.end(&self.fabric, self.port_room) {
            let flow = &mut self.flying[place as usize];
            flow.hops += hops as f32;
            self.played.packet_hops += hops;
            if let Some(of) = self.of_sources.get_mut(usize::from(flow.source)) {
                of.hops += hops;
            }
        }
    }

    /// Returns the place of the flow among those in flight.
    fn add(&mut self, flow: Flying, arrival: &Arrival) -> u32 {
        self.bytes = self.bytes.saturating_add(arrival.spec.size);
        self.packets += flow.packets;
        self.played.flows += 1;
        self.messages += u64::from(flow.on_connection);
        let opens = arrival.spec.connection == Some(arrival.id);
        let keeps = self.wires[usize::from(arrival.spec.transport)].keeps_connections;
        self.played.connections += u64::from(opens && keeps);
        self.played.packet_hops += f64::from(flow.hops);
        let place = match self.free.pop() {
            Some(place) => {
                self.flying[place as usize] = flow;
                place
            }
            None => {
                self.flying.push(flow);
                self.flying.len() as u32 - 1
            }
        };
        self.ends.push(flow.ends, place);
        self.played.packets_in_flight = self.played.packets_in_flight.max(self.packets);
        self.played.flows_in_flight = self.played.flows_in_flight.max(self.ends.len() as u64);
        self.played.messages_in_flight = self.played.messages_in_flight.max(self.messages);
        place
    }
}

/// The rate in bit/s of the links between switches, if they have one.
fn rate_between(network: &Network) -> Option<f64> {
    let is_host = |node: NodeId| network.routes.host_at(node).is_some();
    let between = network.topology.links.iter().filter(|link| !is_host(link.a) && !is_host(link.b));
    let mut rates = between.map(|link| link.rate);
    let first = rates.next()?;
    rates.all(|rate| rate == first).then_some(first.0 as f64)
}

#[cfg(test)]
mod tests;
