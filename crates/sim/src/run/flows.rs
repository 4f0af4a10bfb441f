//! Flows that enter the network: announced to the regions of their hosts shortly before they start.

use super::Simulation;
use super::starts::JobEvent;
use crate::measure::{RankRecord, StepRecord};
use crate::topology::HostId;
use crate::units::Time;
use crate::workload::graph::{Blocked, JobGraph, RankStep};
use crate::workload::merge::{Arrival, Jobs, Merged, Upcoming};
use crate::workload::{FlowId, JobShape, Traffic, TrafficSize};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Flows announced at one go, beyond those of the very next moment: what waits for its start is kept in
/// memory.
const AT_ONE_GO: u32 = 4096;

pub struct Flows {
    merged: Merged,
    /// The flow that follows those announced.
    upcoming: Option<Upcoming>,
    announced: u64,
    /// Those of them that do not belong to job graphs.
    plain: u64,
    /// The job graph of each source.
    pub(super) graphs: Vec<Option<Arc<JobGraph>>>,
    /// Steps of the ranks of job graphs, as they ended.
    rank_steps: Vec<RankRecord>,
    /// By source: for which time the end of an operation kept a rank from computing.
    blocked: Vec<(u16, Blocked)>,
    /// The flow that the first message of each source's job graph is.
    pub first_flows: Vec<FlowId>,
    /// What all of them come to.
    size: TrafficSize,
    /// Of each source: the minimum time from start to deadline, in ideal completion times.
    min_deadlines: Vec<f64>,
    jobs: Jobs,
    spans: Vec<Span>,
    /// Of each source: what its jobs are.
    shapes: Vec<JobShape>,
    /// Why a flow that was announced cannot be sent.
    pub stranded: Option<String>,
    /// Copies of what ranks did, where it may be repeated.
    pub step_log: Option<Vec<RankStep>>,
}

/// What is known of a job so far.
#[derive(Debug, Clone, Copy, Default)]
struct Span {
    start: Option<Time>,
    group: u16,
    /// Payload of the flows that started.
    bytes: u64,
    /// The flow that was delivered last, and its receiver.
    last: Option<(Time, FlowId, HostId)>,
    ended: bool,
    /// Of a job graph: when the first rank joined and the last one ended, and how many have.
    joined: Option<Time>,
    end: Option<Time>,
    ranks_done: u32,
}

impl Flows {
    pub fn new(traffic: &Traffic) -> Flows {
        let jobs = Jobs::new(traffic);
        let mut merged = Merged::of_run(traffic);
        Flows {
            upcoming: merged.next_of_run(),
            merged,
            announced: 0,
            plain: 0,
            graphs: traffic.sources.iter().map(|source| source.graph()).collect(),
            rank_steps: Vec::new(),
            blocked: Vec::new(),
            first_flows: vec![0; traffic.sources.len()],
            size: traffic.size_up(),
            min_deadlines: traffic.sources.iter().map(|source| source.min_deadline()).collect(),
            spans: vec![Span::default(); jobs.len()],
            jobs,
            shapes: traffic.sources.iter().map(|source| source.job_shape()).collect(),
            stranded: None,
            step_log: None,
        }
    }

    /// Flows of the whole run.
    pub fn expected(&self) -> u64 {
        self.size.flows.max(self.announced)
    }

    /// Number, bytes and times of the flows of the whole run.
    pub fn size(&self) -> &TrafficSize {
        &self.size
    }

    /// Flows that the run ended before, `counted` being those that had started or waited for others. About,
    /// where what is still to come is not drawn beforehand.
    pub fn not_counted(&self, counted: u64) -> u64 {
        let all = if self.upcoming.is_some() { self.expected() } else { self.announced };
        all.saturating_sub(counted)
    }

    /// Whether all flows have been announced and all of these are done.
    pub fn all_done(&self, done: u64) -> bool {
        self.upcoming.is_none() && done == self.announced
    }

    pub fn in_progress(&self, done: u64) -> u64 {
        self.announced - done
    }

    /// Flows under way, `started` being the messages of job graphs that have started.
    pub fn under_way(&self, started: u64, done: u64) -> u64 {
        self.plain + started - done
    }

    /// Whether the run has more flows than can be numbered, and the last number was given.
    pub fn too_many(&self) -> bool {
        self.merged.too_many()
    }

    /// When the next flow that has not been announced starts.
    pub fn next_start(&self) -> Option<Time> {
        self.upcoming.map(|upcoming| upcoming.start())
    }
}

impl Simulation {
    /// Announces the flows that start before `limit`, not many more than a few thousand beyond those that
    /// start at `now`; the time up to which all are announced.
    pub(crate) fn announce_flows(&mut self, now: Time, limit: Time) -> Time {
        let mut announced = 0;
        while let Some(upcoming) = self.flows.upcoming.filter(|upcoming| upcoming.start() < limit) {
            announced += 1;
            if announced > AT_ONE_GO && upcoming.start() > now {
                return upcoming.start();
            }
            self.flows.upcoming = self.flows.merged.next_of_run();
            let mut arrival = match upcoming {
                Upcoming::Flow(arrival) => arrival,
                Upcoming::Graph { source, first, .. } => {
                    self.announce_graph(source, first);
                    continue;
                }
            };
            self.flows.announced += 1;
            self.flows.plain += 1;
            self.look_for_way(std::iter::once((arrival.spec.src, arrival.spec.dst)));
            self.put_off_deadline(&mut arrival);
            self.settle_connection(&mut arrival);
            self.probes.flow_announced(arrival.id, arrival.spec.src);
            let [src, dst] = [arrival.spec.src, arrival.spec.dst].map(|host| self.places.of_host(host).0);
            if self.settings.dependencies {
                self.regions[src].starts.track(&arrival);
                self.regions[dst].starts.track(&arrival);
            }
            self.regions[src].announce(arrival);
        }
        limit
    }

    /// A job starts.
    fn announce_graph(&mut self, source: u16, first: FlowId) {
        let Some(graph) = self.flows.graphs[usize::from(source)].clone() else { return };
        self.flows.announced += graph.flows();
        let messages = (0..graph.messages()).map(|number| graph.message(number));
        let outside = messages.filter(|message| !message.inside);
        let host = |rank: u32| graph.hosts[rank as usize];
        self.look_for_way(outside.map(|message| (host(message.from), host(message.to))));
        let watched: Vec<FlowId> = self.probes.watched().collect();
        for flow in watched {
            if let Some(number) = flow.checked_sub(first).filter(|&number| number < graph.messages()) {
                let from = graph.message(number).from;
                self.probes.flow_announced(flow, graph.hosts[from as usize]);
            }
        }
        self.flows.first_flows[usize::from(source)] = first;
        self.begin_graph(source, first, &graph);
        self.begin_memo(&graph);
    }

    /// Notes the first of these pairs of hosts that are in different parts of the network.
    fn look_for_way(&mut self, mut pairs: impl Iterator<Item = (HostId, HostId)>) {
        let topology = self.changes.topology();
        if !topology.parts.is_empty() && self.flows.stranded.is_none() {
            self.flows.stranded = pairs.find_map(|(src, dst)| topology.stranded(src, dst));
        }
    }

    /// A flow over a connection that stays open is announced to its receiver. Under `pair_per_message` every
    /// flow is on its own.
    fn settle_connection(&mut self, arrival: &mut Arrival) {
        let Some(connection) = arrival.spec.connection else { return };
        if self.settings.rules.pair_per_message {
            arrival.spec.connection = None;
        } else if self.settings.keeps_connections[usize::from(arrival.spec.transport)] {
            let receiver = self.places.of_host(arrival.spec.dst).0;
            self.regions[receiver].net.awaited.announce(connection, arrival.id);
        }
    }

    /// Moves a deadline that comes too soon after the start.
    fn put_off_deadline(&mut self, arrival: &mut Arrival) {
        let min = self.flows.min_deadlines[usize::from(arrival.source)];
        if let Some(deadline) = arrival.spec.deadline.filter(|_| min > 0.0) {
            // It may fail meanwhile: what counts is the network as configured.
            let ideal = self.ideals.of(&arrival.spec, Time::ZERO, Time::ZERO);
            let soonest = arrival.spec.start.saturating_add(Time((ideal.0 as f64 * min) as u64));
            arrival.spec.deadline = Some(deadline.max(soonest));
        }
    }

    /// Draws up which jobs have ended, from what the regions noted.
    pub(crate) fn settle_jobs(&mut self) {
        for region in &mut self.regions {
            for (source, step) in region.graphs.steps.drain(..) {
                if let Some(log) = &mut self.flows.step_log {
                    log.push(step);
                }
                self.flows.settle_step(source, step);
            }
            self.flows.blocked.append(&mut region.graphs.blocked);
            for note in region.starts.job_notes.drain(..) {
                let Some(job) = self.flows.jobs.of(note.source, note.order) else { continue };
                let span = &mut self.flows.spans[job as usize];
                match note.what {
                    JobEvent::Started { group, bytes } => {
                        span.start = Some(span.start.map_or(note.at, |start| start.min(note.at)));
                        span.group = group;
                        span.bytes += bytes;
                    }
                    JobEvent::Delivered { flow, host } => {
                        span.last = span.last.max(Some((note.at, flow, host)));
                        span.ended |= self.flows.jobs.flow_ended(note.source, note.order).is_some();
                    }
                }
            }
        }
    }

    /// The steps of all jobs that started, with their ideal times.
    pub(crate) fn steps(&mut self) -> Vec<StepRecord> {
        self.flows.rank_steps.sort_unstable_by_key(|step| (step.number, step.rank));
        let (flows, ideals) = (&self.flows, &mut self.ideals);
        let ideal_of = |graph: &Option<Arc<JobGraph>>| ideals.operation(graph.as_ref()?);
        let ideal_times: Vec<Option<Time>> = flows.graphs.iter().map(ideal_of).collect();
        let step = |(number, span): (usize, &Span)| {
            let number = number as u32;
            let (source, step) = flows.jobs.place(number);
            let graph = flows.graphs[usize::from(source)].as_ref();
            let shape = graph.map_or(flows.shapes[usize::from(source)], |graph| graph.shape(step));
            let last = span.last.filter(|_| span.ended);
            // What is not an operation ends with its ranks.
            let whole = graph.is_some_and(|graph| graph.is_whole(step));
            let ends_with_ranks = whole && span.ended;
            // The time of all that ranks do begins when they do, not with the first message.
            let first = if whole { None } else { span.start };
            let part = graph.is_some_and(|graph| graph.is_part(step));
            // Ranks that are ahead begin the next step while others are still in this one: a step's time is that
            // from the end of one to the end of the next, so that the times of all add up.
            let before = (graph.is_some() && !part && step > 0).then(|| flows.spans[number as usize - 1]);
            let before = before.filter(|before| before.ended).and_then(|before| match whole {
                true => before.end,
                false => before.last.map(|(at, ..)| at),
            });
            let start = before.filter(|_| whole).or(first).or(span.joined)?;
            let spread = flows.spread(number);
            let last_rank = if ends_with_ranks { flows.last_rank(number) } else { None };
            Some(StepRecord {
                source,
                step,
                number,
                group: span.group,
                shape,
                whole,
                part,
                bytes: shape.bytes.unwrap_or(span.bytes),
                start,
                begin: before.map_or(start, |before| before.max(start)),
                finish: if ends_with_ranks { span.end } else { last.map(|(at, ..)| at) },
                ideal: ideal_times[usize::from(source)],
                last: last.map(|(_, flow, host)| (flow, last_rank.map_or(host, |rank| rank.host))),
                last_recorded: last.is_some_and(|(_, flow, _)| flows.is_recorded(source, flow)),
                exposed: spread.map(|(exposed, _)| exposed),
                straggler: spread.filter(|_| span.ended).map(|(_, late)| late),
            })
        };
        flows.spans.iter().enumerate().filter_map(step).collect()
    }
}

impl Flows {
    /// Whether a flow of a source has a record.
    fn is_recorded(&self, source: u16, flow: FlowId) -> bool {
        let graph = self.graphs[usize::from(source)].as_ref();
        graph.is_none_or(|graph| {
            let number = flow - self.first_flows[usize::from(source)];
            graph.recorded && !graph.message(number).inside
        })
    }

    /// A rank has ended its part of a step.
    pub(super) fn settle_step(&mut self, source: u16, step: RankStep) {
        let Some(graph) = self.graphs[usize::from(source)].clone() else { return };
        let number = self.jobs.number(source, step.step);
        let span = &mut self.spans[number as usize];
        span.group = graph.flow.group;
        span.bytes += step.bytes;
        if let Some(sent) = step.first_sent {
            span.start = Some(span.start.map_or(sent, |start| start.min(sent)));
        }
        span.joined = Some(span.joined.map_or(step.start, |start| start.min(step.start)));
        if let Some((at, message)) = step.last {
            let host = graph.hosts[step.rank as usize];
            span.last = span.last.max(Some((at, self.first_flows[usize::from(source)] + message, host)));
        }
        span.end = span.end.max(step.end);
        span.ranks_done += u32::from(step.end.is_some());
        span.ended = span.ranks_done == graph.ranks_of(step.step);
        self.rank_steps.push(RankRecord {
            number,
            rank: step.rank,
            host: graph.hosts[step.rank as usize],
            start: step.start,
            end: step.end,
            bytes: step.bytes,
            exposed: step.exposed,
            unsent: step.unsent,
            unjoined: Time::ZERO,
        });
    }

    /// What the ranks did, in the order of (step, rank).
    pub fn take_ranks(&mut self) -> Vec<RankRecord> {
        self.rank_steps.sort_unstable_by_key(|step| (step.number, step.rank));
        let mut ranks = std::mem::take(&mut self.rank_steps);
        let mut joined: FxHashMap<u32, Time> = FxHashMap::default();
        for step in &ranks {
            let last = joined.entry(step.number).or_default();
            *last = step.start.max(*last);
        }
        for (source, Blocked { step, rank, instance, from, to }) in std::mem::take(&mut self.blocked) {
            let graph = self.graphs[usize::from(source)].as_ref();
            let operation = graph.map(|graph| self.jobs.number(source, graph.step_of(instance)));
            let last = operation.and_then(|number| joined.get(&number).copied()).unwrap_or_default();
            let whole = self.jobs.number(source, step);
            if let Ok(at) = ranks.binary_search_by_key(&(whole, rank), |step| (step.number, step.rank)) {
                let unjoined = &mut ranks[at].unjoined;
                *unjoined = unjoined.saturating_add(last.min(to).saturating_sub(from));
            }
        }
        ranks
    }

    /// Of a step whose ranks are in order: the longest time in which a rank did nothing but communicate, and
    /// how much later than half of them the last one ended.
    fn spread(&self, number: u32) -> Option<(Time, Time)> {
        let ranks = self.ranks_of(number);
        let mut ends: Vec<Time> = ranks.iter().filter_map(|step| step.end).collect();
        ends.sort_unstable();
        let exposed = ranks.iter().map(|step| step.exposed).max()?;
        let (half, last) = (ends.get((ends.len().max(1) - 1) / 2), ends.last());
        Some((exposed, last.zip(half).map_or(Time::ZERO, |(last, half)| last.saturating_sub(*half))))
    }

    /// The rank that ended a step last; of several at one time the first.
    fn last_rank(&self, number: u32) -> Option<&RankRecord> {
        let ended = self.ranks_of(number).iter().filter(|step| step.end.is_some());
        ended.max_by_key(|step| (step.end, std::cmp::Reverse(step.rank)))
    }

    /// The ranks' parts of a step, once all are sorted.
    fn ranks_of(&self, number: u32) -> &[RankRecord] {
        let from = self.rank_steps.partition_point(|step| step.number < number);
        &self.rank_steps[from..self.rank_steps.partition_point(|step| step.number <= number)]
    }
}
