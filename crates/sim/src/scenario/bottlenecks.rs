//! Ports of switches at which the flows of a workload can form a queue, and the round trips of the flows that pass them. Links
//! that are together slower than a port never fill it: behind a narrow link no faster port has a queue.

use super::Scenario;
use crate::topology::{HostId, LinkId, NodeId, PathTimes};
use crate::transport::TransportConfig;
use crate::units::{Rate, Time};
use crate::workload::sent::{Sending, looked_at, share_of_bytes};
use crate::workload::{FlowSource, FlowSpec};
use std::collections::{BTreeMap, BTreeSet};

/// Flows that are looked at.
const FLOWS: usize = 1000;

/// A link, in one of its directions.
type Way = (LinkId, bool);

/// A port, as the flows that are looked at use it.
#[derive(Default)]
struct Passed {
    /// Links by which packets for it come.
    from: BTreeSet<Way>,
    /// The longest base RTT of flows of the transport.
    round_trip: Time,
}

/// Base RTTs of a transport's flows over ports at which they can wait.
pub struct RoundTrips {
    /// The longest at ports of each rate; none: which hosts exchange flows is not known before the run.
    known: Option<BTreeMap<Rate, Time>>,
    longest: Time,
}

impl RoundTrips {
    /// Of the transport of this number.
    pub fn of(scenario: &Scenario, transport: &TransportConfig, index: u16) -> RoundTrips {
        let longest = transport.base_rtt(&scenario.run());
        let framing = transport.framing(&scenario.telemetry);
        let flows = flows(scenario);
        let known =
            flows.map(|flows| by_rate(scenario, &flows, (index, framing.data_bytes(framing.payload))));
        RoundTrips { known, longest }
    }

    /// The longest over ports of this rate at which a queue can form, if there are any.
    pub fn at(&self, rate: Rate) -> Option<Time> {
        match &self.known {
            Some(known) => known.get(&rate).map(|&round_trip| round_trip.min(self.longest)),
            None => Some(self.longest),
        }
    }
}

/// The first flows of all sources; none where a job decides in the course of the run which there are.
fn flows(scenario: &Scenario) -> Option<Vec<FlowSpec>> {
    let sources = &scenario.traffic.sources;
    if sources.iter().any(|source| source.graph().is_some()) {
        return None;
    }
    let each = (FLOWS / sources.len().max(1)).max(1);
    let of = |source: &dyn FlowSource| {
        let mut copy = source.glance().map_or_else(|| source.clone_box(), |glance| glance.source);
        std::iter::from_fn(move || copy.next()).take(each).collect::<Vec<_>>()
    };
    let flows: Vec<FlowSpec> = sources.iter().take(FLOWS).flat_map(|source| of(source.as_ref())).collect();
    (!flows.is_empty()).then_some(flows)
}

fn by_rate(scenario: &Scenario, flows: &[FlowSpec], (index, packet): (u16, u64)) -> BTreeMap<Rate, Time> {
    let (topology, routes) = (&scenario.network.topology, &scenario.network.routes);
    let times = PathTimes::new(topology, routes);
    let round_trip = |flow: &FlowSpec| {
        let own = flow.transport == index;
        own.then(|| times.base_rtt(flow.src, flow.dst, packet, false)).flatten().unwrap_or_default()
    };
    let ends = flows.iter().map(|flow| ((flow.src, flow.dst), round_trip(flow)));
    let mut longest = BTreeMap::new();
    for (way, Passed { round_trip, .. }) in with_queues(scenario, ends) {
        if round_trip > Time::ZERO {
            let of_rate: &mut Time = longest.entry(topology.links[way.0 as usize].rate).or_default();
            *of_rate = round_trip.max(*of_rate);
        }
    }
    longest
}

/// The ports at which flows between these hosts, each with its base RTT, can form a queue.
fn with_queues(
    scenario: &Scenario,
    flows: impl Iterator<Item = ((HostId, HostId), Time)>,
) -> BTreeMap<Way, Passed> {
    let (topology, routes) = (&scenario.network.topology, &scenario.network.routes);
    let times = PathTimes::new(topology, routes);
    let mut ports: BTreeMap<Way, Passed> = BTreeMap::new();
    for ((src, dst), round_trip) in flows {
        let (mut node, mut before) = (routes.host_node(src), None);
        for id in times.links(src, dst) {
            let link = &topology.links[id as usize];
            let way = (id, node == link.a);
            node = if node == link.a { link.b } else { link.a };
            if let Some(from) = before.replace(way) {
                let port = ports.entry(way).or_default();
                port.from.insert(from);
                port.round_trip = port.round_trip.max(round_trip);
            }
        }
    }
    let rate = |&(link, _): &Way| u128::from(topology.links[link as usize].rate.0);
    ports.retain(|way, passed| passed.from.iter().map(rate).sum::<u128>() >= rate(way));
    ports
}

/// The ports of switches at which flows of any transport can form a queue: the node, the link, and the links by which packets
/// for it come.
pub fn queues(scenario: &Scenario) -> Vec<(NodeId, LinkId, Vec<LinkId>)> {
    let sent = looked_at(&scenario.traffic.sources, |_| true).flat_map(|(_, sent)| sent);
    let ports = with_queues(scenario, sent.map(|sending| (sending.ends, Time::ZERO)));
    let links = &scenario.network.topology.links;
    let from = |passed: Passed| passed.from.into_iter().map(|(link, _)| link).collect();
    let port = |((id, from_a), passed): (Way, Passed)| {
        let link = &links[id as usize];
        (if from_a { link.a } else { link.b }, id, from(passed))
    };
    ports.into_iter().map(port).collect()
}

/// The share of a transport's bytes that are of flows whose base RTT is shorter than some time, and the longest of these; none
/// without flows.
pub fn share_on_short_paths(
    scenario: &Scenario,
    (index, packet): (u16, u64),
    time: Time,
) -> Option<(f64, Time)> {
    let times = PathTimes::new(&scenario.network.topology, &scenario.network.routes);
    let mut longest = Time::ZERO;
    let is_short = |sending: &Sending| {
        let base_rtt = times.base_rtt(sending.ends.0, sending.ends.1, packet, false)?;
        let is_short = base_rtt < time;
        if is_short {
            longest = longest.max(base_rtt);
        }
        Some(is_short)
    };
    let share = share_of_bytes(&scenario.traffic.sources, |transport| transport == index, is_short)?;
    Some((share, longest))
}

/// The lowest rate that flows to one host share by their number, with that number: of a transport's first flows, each host
/// that sends counted once.
pub fn narrowest_share(scenario: &Scenario, index: u16) -> Option<(Rate, u64)> {
    let times = PathTimes::new(&scenario.network.topology, &scenario.network.routes);
    let mut senders: BTreeMap<u32, BTreeMap<u32, Rate>> = BTreeMap::new();
    for flow in flows(scenario)?.iter().filter(|flow| flow.transport == index) {
        let Some(path) = times.pair(flow.src, flow.dst) else { continue };
        senders.entry(flow.dst).or_default().insert(flow.src, path.bottleneck);
    }
    let share = |rates: &BTreeMap<u32, Rate>| Some((*rates.values().min()?, rates.len() as u64));
    senders.values().filter_map(share).min_by_key(|(rate, count)| rate.0 / count)
}
