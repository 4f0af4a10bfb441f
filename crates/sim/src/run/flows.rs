//! Flows that enter the network: announced to the regions of their hosts shortly before they start.

use super::Simulation;
use super::starts::JobEvent;
use crate::measure::StepRecord;
use crate::topology::HostId;
use crate::units::Time;
use crate::workload::merge::{Arrival, Jobs, Merged};
use crate::workload::{FlowId, FlowSource, JobShape, Traffic};

/// Flows announced at one go, beyond those of the very next moment: what waits for its start is kept in memory.
const AT_ONE_GO: u32 = 4096;

pub struct Flows {
    merged: Merged,
    /// The flow that follows those announced.
    upcoming: Option<Arrival>,
    announced: u64,
    expected: u64,
    /// Of each source: the minimum time from start to deadline, in ideal completion times.
    min_deadlines: Vec<f64>,
    jobs: Jobs,
    spans: Vec<Span>,
    /// Of each source: what its jobs are, and a copy of it if their ideal time is defined.
    shapes: Vec<(JobShape, Option<Box<dyn FlowSource>>)>,
    /// When flows of jobs were delivered, if that is requested.
    pub deliveries: Option<Vec<(FlowId, Time)>>,
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
}

fn shape_of(source: &dyn FlowSource) -> (JobShape, Option<Box<dyn FlowSource>>) {
    let shape = source.job_shape();
    (shape, shape.alike.then(|| source.clone_box()))
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
            min_deadlines: traffic.sources.iter().map(|source| source.min_deadline()).collect(),
            spans: vec![Span::default(); jobs.len()],
            jobs,
            shapes: traffic.sources.iter().map(|source| shape_of(&**source)).collect(),
            deliveries: None,
        }
    }

    /// Flows of the whole run.
    pub fn expected(&self) -> u64 {
        self.expected.max(self.announced)
    }

    /// Flows that the run ended before, `recorded` being those that had started or waited for others. About, where what is still to
    /// come is not drawn beforehand.
    pub fn not_counted(&self, recorded: u64) -> u64 {
        let all = if self.upcoming.is_some() { self.expected() } else { self.announced };
        all.saturating_sub(recorded)
    }

    /// Whether all flows have been announced and all of these are done.
    pub fn all_done(&self, done: u64) -> bool {
        self.upcoming.is_none() && done == self.announced
    }

    pub fn in_progress(&self, done: u64) -> u64 {
        self.announced - done
    }

    /// Whether the run has more flows than can be numbered, and the last number was given.
    pub fn too_many(&self) -> bool {
        self.merged.too_many()
    }

    /// When the next flow that has not been announced starts.
    pub fn next_start(&self) -> Option<Time> {
        self.upcoming.map(|arrival| arrival.spec.start)
    }
}

impl Simulation {
    /// Announces the flows that start before `limit`, not many more than a few thousand beyond those that start at
    /// `now`; the time up to which all are announced.
    pub(crate) fn announce_flows(&mut self, now: Time, limit: Time) -> Time {
        let mut announced = 0;
        while let Some(mut arrival) = self.flows.upcoming.filter(|a| a.spec.start < limit) {
            announced += 1;
            if announced > AT_ONE_GO && arrival.spec.start > now {
                return arrival.spec.start;
            }
            self.flows.upcoming = self.flows.merged.next();
            self.flows.announced += 1;
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

    /// A flow over a connection that stays open is announced to its receiver. Under `pair_per_message` every flow is on its own.
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
                        if let Some(deliveries) = &mut self.flows.deliveries {
                            deliveries.push((flow, note.at));
                        }
                    }
                }
            }
        }
    }

    /// The steps of all jobs that started, with their ideal times.
    pub(crate) fn steps(&mut self) -> Vec<StepRecord> {
        let (flows, ideals) = (&mut self.flows, &mut self.ideals);
        let dependents = self.regions[0].starts.dependents();
        let mut ideal_times: Vec<Option<Time>> = Vec::with_capacity(flows.shapes.len());
        for (number, (shape, source)) in flows.shapes.iter().enumerate() {
            let number = number as u16;
            let count = flows.jobs.flows_of_first(number);
            debug_assert!(shape.alike || source.is_none());
            ideal_times.push(match source {
                Some(source) => ideals.job(&**source, count, |order| dependents.of(number, order)),
                None => None,
            });
        }
        let step = |(number, span): (usize, &Span)| {
            let number = number as u32;
            let (source, step) = flows.jobs.place(number);
            let shape = flows.shapes[usize::from(source)].0;
            let last = span.last.filter(|_| span.ended);
            Some(StepRecord {
                source,
                step,
                number,
                group: span.group,
                shape,
                bytes: shape.bytes.unwrap_or(span.bytes),
                start: span.start?,
                finish: last.map(|(at, ..)| at),
                ideal: ideal_times[usize::from(source)],
                last: last.map(|(_, flow, host)| (flow, host)),
            })
        };
        flows.spans.iter().enumerate().filter_map(step).collect()
    }
}
