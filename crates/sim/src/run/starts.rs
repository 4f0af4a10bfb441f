//! Flows that start at the hosts of a region: those announced, and those that wait for others to end.

use super::region::Region;
use super::turns::Turns;
use crate::measure::FlowRecord;
use crate::measure::recorder::Recorder;
use crate::net::agenda::Action;
use crate::topology::HostId;
use crate::units::Time;
use crate::workload::FlowId;
use crate::workload::graph::Message;
use crate::workload::merge::{Arrival, Dependents, Jobs};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// What waits for what, the same for all regions.
pub struct Precedence {
    pub dependents: Dependents,
    pub jobs: Jobs,
    /// Of each host, its place among the hosts of its region.
    pub host_index: Vec<u32>,
}

pub struct Starts {
    precedence: Arc<Precedence>,
    /// What is to start; places are used again.
    arrivals: Vec<Due>,
    /// Whether each host is in this region.
    here: Arc<Vec<bool>>,
    free: Vec<u32>,
    /// Place in their source of the flows that others wait for, or that end a job, and at how many hosts of
    /// this region they have yet to end.
    tracked: FxHashMap<FlowId, (u16, u32, u8)>,
    /// By (source, order): flows that wait, or whose predecessors ended before they were announced.
    waiting: FxHashMap<(u16, u32), Waiting>,
    /// Whose turn it is on connections.
    turns: Turns,
    pub job_notes: Vec<JobNote>,
}

/// Something that starts at a host.
#[derive(Debug, Clone, Copy)]
pub enum Due {
    Flow(Arrival),
    /// A message of a job graph.
    Message {
        graph: u16,
        number: u32,
        message: Message,
    },
    /// A message of a job graph has come that is not simulated packet by packet.
    Inside {
        graph: u16,
        number: u32,
    },
    /// The sender of such a message, at another host, knows that it has come.
    InsideKnown {
        graph: u16,
        number: u32,
    },
    /// A rank of a job graph has computed.
    Woken {
        graph: u16,
        rank: u32,
        op: u32,
    },
}

/// A flow that waits for others.
#[derive(Default)]
struct Waiting {
    arrival: Option<Arrival>,
    /// Hosts at which a predecessor ended; those at its own source count.
    ends: Vec<u32>,
}

/// A flow of a job started, or was delivered.
pub struct JobNote {
    pub source: u16,
    pub order: u32,
    pub at: Time,
    pub what: JobEvent,
}

/// What happened to a flow of a job.
pub enum JobEvent {
    Started { group: u16, bytes: u64 },
    Delivered { flow: FlowId, host: u32 },
}

impl Starts {
    pub fn new(precedence: Arc<Precedence>, here: Arc<Vec<bool>>) -> Starts {
        Starts {
            precedence,
            here,
            arrivals: Vec::new(),
            free: Vec::new(),
            tracked: FxHashMap::default(),
            waiting: FxHashMap::default(),
            turns: Turns::default(),
            job_notes: Vec::new(),
        }
    }

    /// The place of a host of this region among its hosts.
    pub fn host_index(&self, host: HostId) -> u32 {
        self.precedence.host_index[host as usize]
    }

    pub fn host_is_here(&self, host: HostId) -> bool {
        self.here[host as usize]
    }

    /// Whether some flow is bound to start: its time is known, but has not come.
    pub fn are_due(&self) -> bool {
        self.arrivals.len() > self.free.len()
    }

    /// A flow was announced that ends at a host of this region (at two, if both its hosts are here).
    pub fn track(&mut self, arrival: &Arrival) {
        let (source, order) = (arrival.source, arrival.order);
        if !self.precedence.dependents.of(source, order).is_empty()
            || self.precedence.jobs.of(source, order).is_some()
        {
            self.tracked.entry(arrival.id).or_insert((source, order, 0)).2 += 1;
        }
    }

    fn keep(&mut self, due: Due) -> u32 {
        match self.free.pop() {
            Some(place) => {
                self.arrivals[place as usize] = due;
                place
            }
            None => {
                self.arrivals.push(due);
                (self.arrivals.len() - 1) as u32
            }
        }
    }

    /// Flows whose predecessors never ended were never sent.
    pub fn record_unstarted(&mut self, recorder: &mut Recorder) {
        let waiting = self.waiting.values().filter_map(|w| w.arrival);
        let mut unstarted: Vec<Arrival> = waiting.chain(self.turns.held()).collect();
        unstarted.sort_unstable_by_key(|arrival| arrival.id);
        for arrival in unstarted {
            let spec = arrival.spec;
            recorder.flow(FlowRecord::of(arrival.id, &spec, spec.src, spec.start));
        }
    }
}

impl Region {
    /// A flow of a host here: it starts at its time, or waits for others.
    pub fn announce(&mut self, arrival: Arrival) {
        let at = arrival.spec.start;
        if let Some(connection) = arrival.spec.connection {
            self.starts.turns.announce(connection, arrival.id);
        }
        if arrival.spec.waits_for > 0 {
            let place = (arrival.source, arrival.order);
            self.starts.waiting.entry(place).or_default().arrival = Some(arrival);
            self.start_if_free(place, at);
        } else {
            self.schedule_start(arrival, at);
        }
    }

    fn schedule_start(&mut self, arrival: Arrival, at: Time) {
        self.schedule_due(arrival.spec.src, arrival.id, Due::Flow(arrival), at);
    }

    /// Something will start at a host; `flow` orders what starts there at the same time.
    pub(super) fn schedule_due(&mut self, host: HostId, flow: FlowId, due: Due, at: Time) {
        let host = self.starts.host_index(host);
        let place = self.starts.keep(due);
        self.net.schedule(host, at, Action::StartFlow { flow, arrival: place, stage: 0 });
    }

    /// The start of an announced flow has come, or a zero-delay step before it.
    pub(crate) fn start_flow(&mut self, place: u32, stage: u8) {
        let due = self.starts.arrivals[place as usize];
        if stage < self.settings.rules.start_steps {
            let of_flow = match due {
                Due::Flow(arrival) => Some((arrival.spec.src, arrival.id)),
                Due::Message { graph, number, message } => {
                    Some(self.sender_of(usize::from(graph), number, &message))
                }
                Due::Inside { .. } | Due::InsideKnown { .. } | Due::Woken { .. } => None,
            };
            if let Some((src, flow)) = of_flow {
                let action = Action::StartFlow { flow, arrival: place, stage: stage + 1 };
                let host = self.starts.host_index(src);
                return self.net.schedule(host, self.net.now, action);
            }
        }
        self.starts.free.push(place);
        let arrival = match due {
            Due::Flow(arrival) => arrival,
            Due::Message { graph, number, message } => {
                return self.start_message(usize::from(graph), number, message);
            }
            Due::Inside { graph, number } => return self.arrived_inside(usize::from(graph), number),
            Due::InsideKnown { graph, number } => return self.known_inside(usize::from(graph), number),
            Due::Woken { graph, rank, op } => return self.wake_rank(usize::from(graph), rank, op),
        };
        match arrival.spec.connection {
            None => self.give_to_host(arrival),
            Some(connection) => {
                self.starts.turns.is_due(arrival);
                while let Some(arrival) = self.starts.turns.next(connection) {
                    self.give_to_host(arrival);
                }
            }
        }
    }

    /// A flow starts. A transport that keeps no connections gets it as one on its own.
    fn give_to_host(&mut self, mut arrival: Arrival) {
        if !self.settings.keeps_connections[usize::from(arrival.spec.transport)] {
            arrival.spec.connection = None;
        }
        if self.starts.precedence.jobs.of(arrival.source, arrival.order).is_some() {
            let what = JobEvent::Started { group: arrival.spec.group, bytes: arrival.spec.size };
            self.note(arrival.source, arrival.order, what);
        }
        let index = self.starts.precedence.host_index[arrival.spec.src as usize];
        let (host, mut cx) = self.host(index);
        host.start_flow(arrival.id, &arrival.spec, &mut cx);
    }

    fn note(&mut self, source: u16, order: u32, what: JobEvent) {
        self.starts.job_notes.push(JobNote { source, order, at: self.net.now, what });
    }

    /// Flows ended: those that waited for them may start, and jobs may be done.
    #[cold]
    pub(crate) fn release_dependents(&mut self) {
        let mut all = std::mem::take(&mut self.ended);
        for ended in all.drain(..) {
            if !self.graphs.is_empty() && self.message_ended(&ended) {
                continue;
            }
            let precedence = self.starts.precedence.clone();
            let Some((source, order, left)) = self.starts.tracked.get_mut(&ended.flow) else { continue };
            let (source, order) = (*source, *order);
            *left -= 1;
            if *left == 0 {
                self.starts.tracked.remove(&ended.flow);
            }
            for &order in precedence.dependents.of(source, order) {
                self.starts.waiting.entry((source, order)).or_default().ends.push(ended.host);
                self.start_if_free((source, order), self.net.now);
            }
            if ended.at_receiver && precedence.jobs.of(source, order).is_some() {
                self.note(source, order, JobEvent::Delivered { flow: ended.flow, host: ended.host });
            }
        }
        debug_assert!(self.ended.is_empty(), "no flow ends while others start");
        self.ended = all;
        self.observe();
    }

    /// Starts a flow once all that it waits for have ended as far as its own host can know.
    fn start_if_free(&mut self, place: (u16, u32), now: Time) {
        let Some(waiting) = self.starts.waiting.get(&place) else { return };
        let Some(arrival) = waiting.arrival else { return };
        let known = waiting.ends.iter().filter(|&&host| host == arrival.spec.src).count();
        if known >= usize::from(arrival.spec.waits_for) {
            self.starts.waiting.remove(&place);
            let at = now.max(arrival.spec.start) + arrival.spec.compute;
            self.schedule_start(arrival, at);
        }
    }
}
