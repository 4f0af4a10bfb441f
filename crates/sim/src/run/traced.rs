//! A run with some of its flows traced: the same run, bit by bit, and with it everything that passed the
//! links while these flows lasted and why their senders sent nothing.
//!
//! The network is one region, so that a packet keeps its number from link to link. Every port has a tap. The
//! region always has an entry among the flows that ended, so that [`Region::release_dependents`] is called
//! after every event of a host, and looks at the senders: neither costs anything in other runs.

use super::region::Region;
use super::{RunError, Simulation};
use crate::measure::{Outcome, Progress, Sink};
use crate::net::NodeIndex;
use crate::net::trace::{Trace, Window};
use crate::transport::{Ended, Hold, Timeouts, Transport};
use crate::units::Time;
use crate::workload::FlowId;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// A flow that is to be traced, as an earlier run recorded it.
#[derive(Debug, Clone, Copy)]
pub struct Traced {
    pub flow: FlowId,
    pub src: u32,
    pub dst: u32,
    pub start: Time,
    pub finish: Time,
}

/// From when on a sender was held by what; none: the transport cannot tell.
pub type Holds = Vec<(Time, Option<Hold>)>;

/// When timeouts of a flow expired at its sender, and what the transport reported of them last; none: it reports nothing.
pub type Expired = Option<(Timeouts, Vec<Time>)>;

/// What is seen of a traced flow.
struct Watched {
    flow: Traced,
    /// Its sender among the hosts of the region.
    host: u32,
    holds: Holds,
    timeouts: Expired,
}

/// Looks at the senders of traced flows.
pub struct Observer {
    flows: Vec<Watched>,
    /// Those that have not started, the last one first, and those that have and are not done.
    ahead: Vec<usize>,
    under_way: Vec<usize>,
}

impl Observer {
    fn new(flows: Vec<Watched>) -> Observer {
        let mut ahead: Vec<usize> = (0..flows.len()).collect();
        ahead.sort_by_key(|&flow| Reverse(flows[flow].flow.start));
        Observer { flows, ahead, under_way: Vec::new() }
    }
}

/// What a traced run tells of its flows.
pub struct Findings {
    pub trace: Trace,
    /// By flow.
    pub holds: Vec<Holds>,
    /// By flow.
    pub timeouts: Vec<Expired>,
    /// By link: node that it leaves, node that it reaches, the link back, propagation delay.
    pub links: Vec<(u32, u32, u32, Time)>,
    /// Node of each host.
    pub host_node: Vec<u32>,
    /// When links were down: their two ends by node, from, to.
    pub down: Vec<([u32; 2], Time, Time)>,
    /// Switches that had no route to a host, by these two: since when, each time.
    pub without_route: BTreeMap<(u32, u32), Vec<Time>>,
}

const LOOK: Ended = Ended { flow: FlowId::MAX, host: u32::MAX, at_receiver: false };

impl Region {
    /// Looks at the senders of traced flows, and sees to it that this is called again.
    pub(super) fn observe(&mut self) {
        let Some(observer) = &mut self.observer else { return };
        let now = self.net.now;
        while let Some(next) = observer.ahead.pop_if(|flow| observer.flows[*flow].flow.start <= now) {
            observer.under_way.push(next);
        }
        observer.under_way.retain(|&flow| now <= observer.flows[flow].flow.finish);
        for &flow in &observer.under_way {
            let Watched { flow, host, holds, timeouts } = &mut observer.flows[flow];
            let transports = &self.hosts[*host as usize].transports;
            let hold = transports.iter().find_map(|transport| transport.hold(flow.flow));
            if holds.last().is_none_or(|&(_, last)| last != hold) {
                holds.push((now, hold));
            }
            let Some(count) = transports.iter().find_map(|transport| transport.timeouts(flow.flow)) else {
                continue;
            };
            // The first count may include those of earlier flows of its connection.
            let (before, times) = timeouts.get_or_insert((count, Vec::new()));
            if std::mem::replace(before, count).expired != count.expired {
                times.push(now);
            }
        }
        self.ended.push(LOOK);
    }
}

/// Which packets a trace keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Breadth {
    /// All that pass a link while one of the flows lasts.
    All,
    /// While each flow lasts, those of the links on the shortest paths between its hosts, both ways. The
    /// flows follow each other.
    Paths,
}

/// Times that lie apart from each other, in order: from, to.
#[derive(Default)]
pub struct Spans {
    all: Vec<(Time, Time)>,
    pub total: Time,
}

impl Spans {
    /// When one of the flows lasts.
    pub fn of(flows: &[Traced]) -> Spans {
        let mut spans = Spans::default();
        flows.iter().for_each(|flow| {
            spans.add_within(flow.start, flow.finish, Time::MAX);
        });
        spans
    }

    /// Adds a time unless there would be more than `max` in total; whether it did.
    pub fn add_within(&mut self, from: Time, to: Time, max: Time) -> bool {
        let met =
            self.all.partition_point(|span| span.1 < from)..self.all.partition_point(|span| span.0 <= to);
        let joined = &self.all[met.clone()];
        let from = joined.first().map_or(from, |first| first.0.min(from));
        let to = joined.last().map_or(to, |last| last.1.max(to));
        let before: u64 = joined.iter().map(|span| span.1.0 - span.0.0).sum();
        let total = Time(self.total.0 - before + (to - from).0);
        if total > max {
            return false;
        }
        self.all.splice(met, [(from, to)]);
        self.total = total;
        true
    }
}

/// The links on shortest paths from the source of a flow to its destination and back, a bit each.
fn links_of_paths(run: &Simulation, flow: &Traced) -> Vec<u64> {
    let mut bits = vec![0u64; run.map.sides.len().div_ceil(64)];
    for (src, dst) in [(flow.src, flow.dst), (flow.dst, flow.src)] {
        let mut nodes = vec![run.places.host_node[src as usize]];
        while let Some(node) = nodes.pop() {
            for &port in run.map.routes.next_hops(node, dst) {
                let link = (run.map.first_port[node as usize] + port) as usize;
                if bits[link / 64] >> (link % 64) & 1 == 0 {
                    bits[link / 64] |= 1 << (link % 64);
                    nodes.push(run.map.sides[link].peer_node);
                }
            }
        }
    }
    bits
}

impl Simulation {
    /// Runs to the end, with some flows traced, from what is on a link when they start.
    /// The network is one region, and captures nothing.
    pub(crate) fn run_traced(
        mut self,
        flows: &[Traced],
        breadth: Breadth,
        sink: &mut dyn Sink,
        watch: &mut dyn FnMut(&Progress) -> bool,
    ) -> Result<(Outcome, Findings), RunError> {
        let run = &mut self;
        let links = run.map.sides.iter().map(|side| (side.node, side.peer_node, side.peer, side.line.delay));
        let links: Vec<_> = links.collect();
        if links.len() >= 1 << 15 {
            let message = format!("{} links to trace: expected fewer than {}", links.len() / 2, 1 << 14);
            return Err(RunError::Impossible(message));
        }
        let windows = match breadth {
            Breadth::All => {
                let spans = Spans::of(flows).all.into_iter();
                spans.map(|(from, to)| Window { from, to, links: None }).collect()
            }
            Breadth::Paths => {
                let window = |flow: &Traced| {
                    let links = Some(links_of_paths(run, flow));
                    Window { from: flow.start, to: flow.finish, links }
                };
                flows.iter().map(window).collect()
            }
        };
        let watched = |flow: &Traced| Watched {
            flow: *flow,
            host: run.places.of_host(flow.src).1,
            holds: Vec::new(),
            timeouts: None,
        };
        let watched = flows.iter().map(watched).collect();
        let host_node = run.places.host_node.clone();
        let numberings = run.settings.transports.iter().map(|own| own.numbering()).collect();
        let region = &mut run.regions[0];
        (0..links.len() as u32).for_each(|port| region.net.tap(port, 0));
        region.net.taps.trace(Trace::of(windows, numberings));
        region.observer = Some(Box::new(Observer::new(watched)));
        region.ended.push(LOOK);
        debug_assert!(links.iter().enumerate().all(|(port, link)| {
            matches!(region.net.owner(port as u32), NodeIndex::Host(_) | NodeIndex::Switch(_))
                && region.net.ports[port].node == link.0
        }));
        let mut work = |regions: &mut super::Regions| {
            regions.iter_mut().for_each(|region| region.work_round());
        };
        let mut ending = run.lead(&mut work, sink, watch)?;
        run.finish();
        run.flush_rest(sink, &mut ending, watch)?;
        let region = &mut self.regions[0];
        let trace = region.net.taps.trace.take().map(|trace| *trace).unwrap_or_default();
        let watched = region.observer.take().map_or(Vec::new(), |observer| observer.flows);
        let (holds, timeouts) = watched.into_iter().map(|flow| (flow.holds, flow.timeouts)).unzip();
        Ok((
            self.outcome(ending),
            Findings {
                trace,
                holds,
                timeouts,
                links,
                host_node,
                down: Vec::new(),
                without_route: BTreeMap::new(),
            },
        ))
    }
}
