//! Collects what nodes report, and passes it on in batches. What the scenario does not ask for costs one test
//! of a flag at most.

use super::{DigestRecord, Entity, FlowRecord, LossCounters, Sample, Sink};
use crate::engine::random::mix64;
use crate::units::Time;
use crate::workload::FlowId;
use std::ops::Range;

/// Rows collected before they are passed on.
pub(crate) const BATCH: usize = 8192;

pub struct Recorder {
    flows: Vec<FlowRecord>,
    samples: Vec<Sample>,
    digests: Vec<DigestRecord>,
    pub flows_done: u64,
    /// Flows that have a record, ended or not.
    pub flows_recorded: u64,
    /// Sum of the hashes of all completed flows: independent of the order in which they complete.
    pub hash: u64,
    /// Payload bytes delivered since the start, in total and per group: in order, or as they arrive with
    /// transports of messages.
    pub delivered: u64,
    pub group_delivered: Vec<u64>,
    /// What happened to data packets, by group.
    pub losses: Vec<LossCounters>,
    /// Delivered payload bytes of the watched flows, sorted by flow.
    pub watched: Vec<(FlowId, u64)>,
    pub record_pauses: bool,
    /// Flows that are counted without a row in the table.
    pub unrecorded: Vec<Range<FlowId>>,
    /// Copies of what is recorded, where it may be repeated.
    pub log: Option<Log>,
}

/// Flows that have ended.
#[derive(Default)]
pub struct Log {
    pub ended: Vec<Ended>,
    /// Those of them that have a row.
    pub rows: Vec<FlowRecord>,
}

/// What the hash of a run has of a flow that has ended.
#[derive(Clone, Copy)]
pub struct Ended {
    flow: FlowId,
    src: u32,
    dst: u32,
    size: u64,
    start: Time,
    finish: Time,
    packets: u64,
}

impl Ended {
    fn of(record: &FlowRecord, finish: Time) -> Ended {
        let &FlowRecord { flow, src, dst, size, start, .. } = record;
        let packets = record.packets_sent ^ record.packets_retransmitted << 40;
        Ended { flow, src, dst, size, start, finish, packets }
    }

    fn hash(&self) -> u64 {
        hash(self.flow, self.size, times(self.start, self.finish), self.rest())
    }

    /// What the hash has of it apart from its number, its size and its times.
    fn rest(&self) -> u64 {
        (u64::from(self.src) << 32 | u64::from(self.dst)) ^ mix64(self.packets)
    }
}

fn times(start: Time, finish: Time) -> u64 {
    mix64(start.0 ^ mix64(finish.0))
}

#[inline]
fn hash(flow: FlowId, size: u64, times: u64, rest: u64) -> u64 {
    mix64(mix64(u64::from(flow) ^ size.rotate_left(32)) ^ mix64(times ^ rest))
}

/// Flows that have ended and are repeated with other numbers, later: what follows from equal sizes and times
/// is computed once for all that follow each other with them.
#[derive(Default)]
pub struct Repeated {
    alike: Vec<Alike>,
    /// Numbers of flows, and [`Ended::rest`].
    flows: Vec<(FlowId, u64)>,
}

/// Flows that follow each other with the same size and times.
struct Alike {
    count: usize,
    size: u64,
    start: Time,
    finish: Time,
}

impl Repeated {
    pub fn of(ended: &[Ended]) -> Repeated {
        let alike = ended.chunk_by(|a, b| (a.size, a.start, a.finish) == (b.size, b.start, b.finish));
        let alike = alike.map(|flows| {
            let Ended { size, start, finish, .. } = flows[0];
            Alike { count: flows.len(), size, start, finish }
        });
        Repeated {
            alike: alike.collect(),
            flows: ended.iter().map(|flow| (flow.flow, flow.rest())).collect(),
        }
    }

    /// When the last of them ended.
    pub fn last_end(&self) -> Option<Time> {
        self.alike.iter().map(|flows| flows.finish).max()
    }

    /// Sum of the hashes of these flows with numbers higher by `numbers`, later by `by`.
    pub fn hash_of_repeat(&self, numbers: FlowId, by: Time) -> u64 {
        let (mut flows, mut sum) = (&self.flows[..], 0u64);
        for alike in &self.alike {
            let (own, others) = flows.split_at(alike.count);
            flows = others;
            let times = times(alike.start + by, alike.finish + by);
            let all = own.iter().map(|&(flow, rest)| hash(flow + numbers, alike.size, times, rest));
            sum = all.fold(sum, u64::wrapping_add);
        }
        sum
    }
}

impl Recorder {
    pub fn new(groups: usize, mut watched: Vec<FlowId>, record_pauses: bool) -> Recorder {
        watched.sort_unstable();
        watched.dedup();
        Recorder {
            flows: Vec::with_capacity(BATCH),
            samples: Vec::new(),
            digests: Vec::new(),
            flows_done: 0,
            flows_recorded: 0,
            hash: 0,
            delivered: 0,
            group_delivered: vec![0; groups.max(1)],
            losses: vec![LossCounters::default(); groups.max(1)],
            watched: watched.into_iter().map(|flow| (flow, 0)).collect(),
            record_pauses,
            unrecorded: Vec::new(),
            log: None,
        }
    }

    /// Records a flow when it ends, or when the run ends before it.
    pub fn flow(&mut self, record: FlowRecord) {
        if let Some(finish) = record.finish {
            self.flows_done += 1;
            let ended = Ended::of(&record, finish);
            self.hash = self.hash.wrapping_add(ended.hash());
            if let Some(log) = &mut self.log {
                log.ended.push(ended);
            }
        }
        let losses = &mut self.losses[usize::from(record.group)];
        losses.data_sent = losses.data_sent.wrapping_add(record.packets_sent);
        losses.retransmitted += record.packets_retransmitted;
        self.flows_recorded += 1;
        if self.unrecorded.iter().all(|flows| !flows.contains(&record.flow)) {
            self.flows.push(record);
            if let Some(log) = &mut self.log {
                log.rows.push(record);
            }
        }
    }

    /// Adds the row of a flow that is counted already.
    pub fn repeat(&mut self, record: FlowRecord) {
        self.flows.push(record);
    }

    /// Visits every number that is counted up.
    pub fn each_number(&mut self, visit: &mut impl FnMut(&mut u64)) {
        for number in [&mut self.flows_done, &mut self.flows_recorded, &mut self.delivered] {
            visit(number);
        }
        self.group_delivered.iter_mut().for_each(&mut *visit);
        self.losses.iter_mut().flat_map(LossCounters::each_mut).for_each(visit);
    }

    /// Counts payload that arrived in order at its receiver.
    #[inline]
    pub fn deliver(&mut self, flow: FlowId, group: u16, bytes: u64) {
        self.count_bytes(group, bytes);
        if !self.watched.is_empty() {
            self.watch(flow, bytes);
        }
    }

    /// Counts delivered payload for the group only.
    #[inline]
    pub fn count_bytes(&mut self, group: u16, bytes: u64) {
        self.delivered += bytes;
        self.group_delivered[usize::from(group)] += bytes;
    }

    /// Counts delivered payload for the flow only.
    pub fn watch(&mut self, flow: FlowId, bytes: u64) {
        if let Ok(at) = self.watched.binary_search_by_key(&flow, |w| w.0) {
            self.watched[at].1 += bytes;
        }
    }

    /// Counts an event of a data packet of this group.
    #[cold]
    pub fn count(&mut self, group: u16, counter: fn(&mut LossCounters) -> &mut u64) {
        *counter(&mut self.losses[usize::from(group)]) += 1;
    }

    pub fn sample(&mut self, time: Time, entity: Entity, metric: &'static str, value: f64) {
        self.samples.push(Sample { time, entity, metric, value });
    }

    pub fn pause(&mut self, time: Time, node: u32, port: u32, stopped: bool) {
        if self.record_pauses {
            self.sample(time, Entity::Port(node, port), "paused", f64::from(u8::from(stopped)));
        }
    }

    pub fn digest(&mut self, record: DigestRecord) {
        self.digests.push(record);
    }

    /// Returns true if a batch is ready to be passed on.
    pub fn is_full(&self) -> bool {
        self.flows.len().max(self.samples.len()).max(self.digests.len()) >= BATCH
    }

    /// Moves everything collected to `to`.
    pub fn take(&mut self, to: &mut Collected) {
        to.flows.append(&mut self.flows);
        to.samples.append(&mut self.samples);
        to.digests.append(&mut self.digests);
    }
}

/// What was collected and is to be passed on.
#[derive(Default)]
pub struct Collected {
    pub flows: Vec<FlowRecord>,
    pub samples: Vec<Sample>,
    pub digests: Vec<DigestRecord>,
}

impl Collected {
    /// Passes everything on: flows by end and number, samples and digests by time, whichever partitions they
    /// come from. After an error nothing is passed on twice.
    pub fn flush(&mut self, sink: &mut dyn Sink) -> std::io::Result<()> {
        self.flows.sort_unstable_by_key(|record| (record.finish.unwrap_or(Time::MAX), record.flow));
        self.samples.sort_by_key(|sample| (sample.time, sample.entity));
        self.digests.sort_by_cached_key(|record| (record.time, record.flow, record.packet));
        let result = sink.flows(&self.flows).and(sink.samples(&self.samples));
        let result = result.and(if self.digests.is_empty() { Ok(()) } else { sink.digests(&self.digests) });
        self.flows.clear();
        self.samples.clear();
        self.digests.clear();
        result
    }
}
