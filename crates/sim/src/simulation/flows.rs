//! Flows on their way into the network: announced in order of time, and those that wait for others.

use super::Simulation;
use crate::config::Compat;
use crate::measure::FlowRecord;
use crate::measure::recorder::Recorder;
use crate::net::partition::{Action, Rank};
use crate::units::Time;
use crate::workload::merge::{Arrival, Dependents, Jobs, Merged};
use crate::workload::{FlowId, Traffic};
use rustc_hash::FxHashMap;

/// In the authors' simulator a flow sends two zero-delay events after its start time.
const COMPAT_STAGES: u8 = 2;
/// In place of an arrival: the flows of this time are to be announced.
const ANNOUNCE: u32 = u32::MAX;

pub struct Flows {
    merged: Merged,
    /// The flow that follows those announced.
    upcoming: Option<Arrival>,
    announced: u64,
    expected: u64,
    /// Announced flows that have not started; places are used again.
    arrivals: Vec<Arrival>,
    free: Vec<u32>,
    dependents: Dependents,
    /// Place in their source of the flows that others wait for, or that end a job.
    tracked: FxHashMap<FlowId, (u16, u32)>,
    /// By (source, order): flows that wait, or whose predecessors ended before they were announced.
    waiting: FxHashMap<(u16, u32), Waiting>,
    jobs: Jobs,
    job_starts: Vec<Option<Time>>,
}

/// A flow that waits for others.
#[derive(Default)]
struct Waiting {
    arrival: Option<Arrival>,
    /// Hosts at which a predecessor ended; those at its own source count.
    ends: Vec<u32>,
}

impl Flows {
    pub fn new(traffic: &Traffic) -> Flows {
        let jobs = Jobs::new(traffic);
        let mut merged = Merged::new(traffic);
        Flows {
            upcoming: merged.next(),
            merged,
            announced: 0,
            expected: traffic.size_up().flows,
            arrivals: Vec::new(),
            free: Vec::new(),
            dependents: Dependents::new(traffic),
            tracked: FxHashMap::default(),
            waiting: FxHashMap::default(),
            job_starts: vec![None; jobs.len()],
            jobs,
        }
    }

    /// Flows of the whole run.
    pub fn expected(&self) -> u64 {
        self.expected.max(self.announced)
    }

    /// Whether all flows have been announced and as many as were announced are done.
    pub fn all_done(&self, done: u64) -> bool {
        self.upcoming.is_none() && done == self.announced
    }

    pub fn in_progress(&self, done: u64) -> u64 {
        self.announced - done
    }

    /// Whether some flow is bound to start: its time is known, but has not come.
    pub fn start_is_due(&self) -> bool {
        self.arrivals.len() > self.free.len()
    }

    /// Whether the run has more flows than can be numbered, and the last number was given.
    pub fn too_many(&self) -> bool {
        self.merged.too_many()
    }

    /// When the next flow will be announced.
    pub fn next_start(&self) -> Option<Time> {
        self.upcoming.map(|arrival| arrival.spec.start)
    }

    fn keep(&mut self, arrival: Arrival) -> u32 {
        match self.free.pop() {
            Some(place) => {
                self.arrivals[place as usize] = arrival;
                place
            }
            None => {
                self.arrivals.push(arrival);
                (self.arrivals.len() - 1) as u32
            }
        }
    }

    /// Flows whose predecessors never ended were never sent.
    pub fn record_unstarted(&mut self, recorder: &mut Recorder) {
        let mut unstarted: Vec<Arrival> = self.waiting.values().filter_map(|w| w.arrival).collect();
        unstarted.sort_unstable_by_key(|arrival| arrival.id);
        for arrival in unstarted {
            let spec = arrival.spec;
            recorder.flow(FlowRecord {
                flow: arrival.id,
                src: spec.src,
                dst: spec.dst,
                size: spec.size,
                start: spec.start,
                finish: None,
                ideal: Time::ZERO,
                packets_sent: 0,
                packets_retransmitted: 0,
                group: spec.group,
                transport: spec.transport,
                deadline: spec.deadline,
            });
        }
    }
}

impl Simulation {
    /// Announces the flows whose start time has come, and makes sure that the next ones are.
    pub(super) fn announce_flows(&mut self) {
        let now = self.net.now;
        while let Some(arrival) = self.flows.upcoming.filter(|a| a.spec.start <= now) {
            self.flows.upcoming = self.flows.merged.next();
            self.flows.announced += 1;
            self.track(&arrival);
            if arrival.spec.waits_for > 0 {
                let place = (arrival.source, arrival.order);
                self.flows.waiting.entry(place).or_default().arrival = Some(arrival);
                self.start_if_free(place, now);
            } else {
                self.schedule_start(arrival, now);
            }
        }
        self.expect_announcement();
    }

    /// Comes back when the next flows start: after everything else of that time but the measures.
    pub(super) fn expect_announcement(&mut self) {
        if let Some(next) = self.flows.next_start() {
            self.net.schedule_announcement(next, Action::StartFlow { arrival: ANNOUNCE, stage: 0 });
        }
    }

    fn track(&mut self, arrival: &Arrival) {
        if !self.settings.dependencies {
            return;
        }
        let place = (arrival.source, arrival.order);
        if !self.flows.dependents.of(place.0, place.1).is_empty()
            || self.flows.jobs.of(place.0, place.1).is_some()
        {
            self.flows.tracked.insert(arrival.id, place);
        }
    }

    fn schedule_start(&mut self, arrival: Arrival, at: Time) {
        let node = self.hosts[arrival.spec.src as usize].node;
        let action = Action::StartFlow { arrival: self.flows.keep(arrival), stage: 0 };
        self.net.schedule(at, node, Rank::Flow, u64::from(arrival.id), action);
    }

    /// The start of an announced flow has come (after two zero-delay steps in the compat mode).
    pub(super) fn start_flow(&mut self, place: u32, stage: u8) {
        if place == ANNOUNCE {
            return self.announce_flows();
        }
        let arrival = self.flows.arrivals[place as usize];
        if self.settings.compat == Compat::HpccNs3 && stage < COMPAT_STAGES {
            let node = self.hosts[arrival.spec.src as usize].node;
            let action = Action::StartFlow { arrival: place, stage: stage + 1 };
            return self.net.schedule(self.net.now, node, Rank::Flow, u64::from(arrival.id), action);
        }
        self.flows.free.push(place);
        self.note_job_start(&arrival);
        self.probes.flow_starts(arrival.id, arrival.spec.src);
        let (host, mut around) = self.host(arrival.spec.src);
        host.start_flow(arrival.id, &arrival.spec, &mut around);
    }

    fn note_job_start(&mut self, arrival: &Arrival) {
        if let Some(job) = self.flows.jobs.of(arrival.source, arrival.order) {
            self.flows.job_starts[job as usize].get_or_insert(self.net.now);
        }
    }

    /// Flows ended: those that waited for them may start, and jobs may be done.
    #[cold]
    pub(super) fn release_dependents(&mut self) {
        for ended in std::mem::take(&mut self.ended) {
            let Some(&(source, order)) = self.flows.tracked.get(&ended.flow) else { continue };
            let later: Vec<u32> = self.flows.dependents.of(source, order).to_vec();
            for order in later {
                self.flows.waiting.entry((source, order)).or_default().ends.push(ended.host);
                self.start_if_free((source, order), self.net.now);
            }
            if ended.at_receiver {
                self.end_job(source, order);
            }
        }
    }

    fn end_job(&mut self, source: u16, order: u32) {
        if let Some(job) = self.flows.jobs.flow_ended(source, order) {
            let start = self.flows.job_starts[job as usize].unwrap_or(self.net.now);
            self.net.recorder.jobs.push((job, start, self.net.now));
        }
    }

    /// Starts a flow once all that it waits for have ended as far as its own host can know.
    fn start_if_free(&mut self, place: (u16, u32), now: Time) {
        let Some(waiting) = self.flows.waiting.get(&place) else { return };
        let Some(arrival) = waiting.arrival else { return };
        let known = waiting.ends.iter().filter(|&&host| host == arrival.spec.src).count();
        if known >= usize::from(arrival.spec.waits_for) {
            self.flows.waiting.remove(&place);
            let at = (now + arrival.spec.compute).max(arrival.spec.start);
            self.schedule_start(arrival, at);
        }
    }
}
