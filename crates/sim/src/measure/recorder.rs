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
    /// Payload bytes delivered in order since the start, in total and per group.
    pub delivered: u64,
    pub group_delivered: Vec<u64>,
    /// What happened to data packets, by group.
    pub losses: Vec<LossCounters>,
    /// Timeouts at receivers that no acknowledgement has reported to the senders of these flows when the run ends.
    pub unreported_timeouts: Vec<(FlowId, u32)>,
    /// Delivered payload bytes of the watched flows, sorted by flow.
    pub watched: Vec<(FlowId, u64)>,
    pub record_pauses: bool,
    /// Flows that are counted without a row in the table.
    pub unrecorded: Vec<Range<FlowId>>,
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
            unreported_timeouts: Vec::new(),
            watched: watched.into_iter().map(|flow| (flow, 0)).collect(),
            record_pauses,
            unrecorded: Vec::new(),
        }
    }

    /// Records a flow when it ends, or when the run ends before it.
    pub fn flow(&mut self, record: FlowRecord) {
        if let Some(finish) = record.finish {
            self.flows_done += 1;
            let identity = mix64(u64::from(record.flow) ^ record.size.rotate_left(32));
            let ends = u64::from(record.src) << 32 | u64::from(record.dst);
            let times = mix64(record.start.0 ^ mix64(finish.0)) ^ ends;
            let packets = record.packets_sent ^ record.packets_retransmitted << 40;
            self.hash = self.hash.wrapping_add(mix64(identity ^ mix64(times ^ mix64(packets))));
        }
        let losses = &mut self.losses[usize::from(record.group)];
        losses.data_sent = losses.data_sent.wrapping_add(record.packets_sent);
        losses.retransmitted += record.packets_retransmitted;
        self.flows_recorded += 1;
        if self.unrecorded.iter().all(|flows| !flows.contains(&record.flow)) {
            self.flows.push(record);
        }
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
