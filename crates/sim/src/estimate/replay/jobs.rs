//! When jobs end, as far as that follows from their operations and from what all of their messages bring to
//! the links.

use std::sync::Arc;

use super::{Player, of_flow};
use crate::estimate::failing;
use crate::estimate::graphs::{Hashed, Links};
use crate::estimate::loads::Loads;
use crate::estimate::shares;
use crate::scenario::Scenario;
use crate::scenario::host::nics_of_hosts;
use crate::scenario::network::Network;
use crate::topology::{HostId, NodeId};
use crate::transport::NicPolicy;
use crate::units::Time;
use crate::workload::graph::JobGraph;

/// Messages of a job that are looked at for its connections.
const CONNECTIONS: usize = 1000;

/// A job, and what its messages bring to the links.
pub(super) struct OfGraph {
    pub graph: Arc<JobGraph>,
    pub loads: Loads,
}

impl Player<'_> {
    /// What the messages of a job bring to the links; none without messages.
    pub(super) fn of_graph(&self, graph: Arc<JobGraph>) -> Option<OfGraph> {
        let wire = self.wires.get(usize::from(graph.flow.transport))?;
        let loads = Loads::of(&graph, (&self.fabric, &self.inner), &self.times, wire);
        Some(OfGraph { graph, loads })
    }

    /// From when to when a job waits for timeouts after failures.
    fn stalls_of_job(&self, graph: &JobGraph, one_path: bool) -> Vec<(Time, Time)> {
        let senders = self.senders(graph.flow.transport, !one_path);
        let Some(senders) = senders.filter(|_| !self.outages.is_empty()) else { return Vec::new() };
        let (numbers, _) = graph.wave(CONNECTIONS);
        let ends = |number: u32| {
            let of = graph.message(number);
            [of.from, of.to].map(|rank| graph.hosts[rank as usize])
        };
        let mut pairs: Vec<(HostId, HostId)> =
            numbers.into_iter().map(ends).map(|of| (of[0], of[1])).collect();
        pairs.retain(|(src, dst)| src != dst);
        pairs.sort_unstable();
        pairs.dedup();
        let packet = self.wires[usize::from(graph.flow.transport)].packet();
        let paths = pairs.first().and_then(|&(src, dst)| self.times.pair(src, dst));
        let round_trip = paths.map_or(Time::ZERO, |path| of_flow::round_trip(&path, packet));
        let mut stalls = self.outages.of_job(&pairs, (senders, round_trip));
        stalls.retain(|(at, _)| *at >= graph.flow.start);
        stalls
    }

    /// When the last of these jobs ends. What depends on the next hops that messages take is in `late`.
    pub(super) fn end_of_jobs(
        &mut self,
        scenario: &Scenario,
        network: &Network,
        graphs: &[Option<OfGraph>],
    ) -> Time {
        let mut last = Time::ZERO;
        let (topology, routes) = (&network.topology, &network.routes);
        let nodes: Vec<NodeId> = (0..routes.hosts() as HostId).map(|host| routes.host_node(host)).collect();
        let several_nics = nics_of_hosts(network) > 1;
        // The number of a job's first message, where jobs start in the order of the scenario.
        let mut first = 0u32;
        for OfGraph { graph, loads } in graphs.iter().flatten() {
            let wire = &self.wires[usize::from(graph.flow.transport)];
            let transport = &scenario.transports[usize::from(graph.flow.transport)];
            let keeps = shares::keeps_to_path(&scenario.switch.balancer);
            let one_path = keeps && !transport.facts().spreads_flows;
            let (times, fabric, nics) = (&self.times, &self.fabric, scenario.host.nic_policy);
            let hashed = match nics {
                NicPolicy::Hash if several_nics => Hashed::of(graph, routes, first),
                _ => Hashed::default(),
            };
            first = first.wrapping_add(graph.messages());
            let stalls = self.stalls_of_job(graph, one_path);
            let paths = self.paths.as_ref();
            let ends = |meets_slow: bool| {
                failing::end(
                    topology,
                    (&scenario.failures.events, &stalls),
                    (&nodes, &graph.hosts),
                    graph.flow.start,
                    |slowed| {
                        let hashed = &hashed;
                        Links {
                            times,
                            wire,
                            fabric,
                            nics,
                            one_path,
                            meets_slow,
                            loads,
                            slowed,
                            hashed,
                            paths,
                        }
                        .duration(graph)
                    },
                )
            };
            let meets = paths.filter(|_| one_path).map_or(0.0, |paths| paths.of_job(graph).1);
            let end = ends(false);
            last = last.max(end);
            if meets > 0.0 {
                self.late.add((end, ends(true)), meets, false);
            }
        }
        // Jobs share links.
        if let Some(start) = graphs.iter().flatten().map(|of| of.graph.flow.start).min() {
            let busy = Loads::busiest(graphs.iter().flatten().map(|of| &of.loads), &self.fabric, &self.inner);
            last = last.max(start.saturating_add(Time((busy * 1e12) as u64)));
        }
        last
    }
}
