//! The collector: recorded digests of many flows in, what the queries found out of them.
//!
//! A digest names its plan, its flow, its packet and how many hops it passed; the plan says which queries the packet served and
//! where their bits lie. Each query keeps what its aggregation needs, per flow under its key: candidates of a path, one sketch per hop, a
//! running summary of numbers per packet. Memory has a limit in bytes over all flows: when it is reached, the flow that was not seen for
//! longest is handed out and forgotten. Digests of another plan and digests that no hop can have written are refused and counted.
//!
//! A flow whose number of hops changes, or whose digests contradict its path, is told of (route change, loop, wrong graph: the digest
//! alone cannot say) and its record begins anew.
//!
//! The same input gives the same output, to the bit. No clock: time is that of the digests.
//!
//! Source: Ben Basat et al., "PINT", SIGCOMM 2020, §3.2, §4 (Recording and Inference Modules), §7 (route changes).
//! Differs from the source: the paper gives the space of one flow; eviction, idle time and the limit over all flows are ours.

mod events;
mod flows;
mod paths;
mod recording;
#[cfg(test)]
mod tests;
mod written;

use crate::encoder::{Encoder, Field, Refused};
use crate::plan::Plan;
use crate::query::FlowKey;
use crate::recorded::{Flow, Recorded};

pub use events::{
    Ending, Event, EventKind, Findings, FlowReport, FrequentValue, HopFrequent, HopQuantiles, PathFindings,
    Sink, Summary, Told,
};
pub use paths::{NoPaths, Paths, Step};
pub use recording::{CONFIDENCE, DEFAULT_K};
pub use written::PathWriter;

use flows::{FlowId, Flows};
use recording::{Keeping, Recording};

/// The least memory that a collector works in.
pub const MIN_BYTES: usize = 65_536;

/// Limits of a collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Memory of all flows; at least [`MIN_BYTES`].
    pub bytes: usize,
    /// A flow of which nothing is seen for longer is handed out; None: never.
    pub idle_ns: Option<u64>,
}

impl Default for Limits {
    /// 256 MiB, no idle time.
    fn default() -> Limits {
        Limits { bytes: 256 << 20, idle_ns: None }
    }
}

/// Why a digest was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("recorded under plan version {found:#010x}, this is plan version {expected:#010x}")]
    OtherPlan { found: u32, expected: u32 },
    #[error("{hops} hops, expected 1 to {most}")]
    Hops { hops: u32, most: u32 },
    #[error("the digest has more than the plan's {bits} bits")]
    Width { bits: u32 },
    #[error("no hop writes such bits for query {query}")]
    Impossible { query: usize },
}

/// What happened to all digests so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Taken or refused.
    pub digests: u64,
    /// Taken, but their packets serve no query.
    pub unserved: u64,
    pub other_plan: u64,
    pub hops_refused: u64,
    /// Too wide, or not what hops write.
    pub impossible: u64,
    /// Reports of loops.
    pub loops: u64,
    pub paths_decoded: u64,
    /// Known paths that changed, changed numbers of hops included.
    pub paths_changed: u64,
    /// Paths that contradicted themselves before they were known.
    pub inconsistent: u64,
    /// Records ended for want of memory.
    pub evicted: u64,
    /// Records ended because nothing was seen.
    pub idle: u64,
}

/// Queries under one key: they share the record of a flow.
#[derive(Debug)]
struct Group {
    key: FlowKey,
    queries: Vec<Keeping>,
    /// Whether one of them traces a path, so that all begin anew when it changes.
    traces: bool,
}

/// What a set's packets bring one group: places of its queries, and each one's fields of the set.
#[derive(Debug)]
struct Share {
    group: u8,
    fields: Vec<(usize, std::ops::Range<usize>)>,
}

/// All that is kept of a flow under one key.
#[derive(Debug)]
struct Record<P> {
    hops: u32,
    epoch: u32,
    first_ns: u64,
    last_ns: u64,
    digests: u64,
    recordings: Vec<Recording<P>>,
}

/// Takes recorded digests in.
#[derive(Debug)]
pub struct Collector<D: Paths> {
    encoder: Encoder,
    version: u32,
    bits: u32,
    most_hops: u32,
    limits: Limits,
    paths: D,
    groups: Vec<Group>,
    /// For each set of the plan.
    shares: Vec<Vec<Share>>,
    flows: Flows<Record<D::Flow>>,
    now_ns: u64,
    counts: Counts,
}

impl<D: Paths> Collector<D> {
    /// Collects under this plan. Error: the plan is not one that switches can run.
    pub fn new(plan: &Plan, limits: Limits, paths: D) -> Result<Collector<D>, Refused> {
        let encoder = plan.encoder()?;
        let queries = plan.queries();
        let mut groups: Vec<Group> = Vec::new();
        // Where each query is: its group and its place there.
        let mut places = Vec::new();
        for (index, (query, task)) in queries.queries.iter().zip(encoder.tasks()).enumerate() {
            let keeping = Keeping::new(index, query, task, queries.seed);
            let group = groups.iter().position(|group| group.key == query.flow).unwrap_or_else(|| {
                groups.push(Group { key: query.flow, queries: Vec::new(), traces: false });
                groups.len() - 1
            });
            places.push((group, groups[group].queries.len()));
            groups[group].traces |= keeping.traces();
            groups[group].queries.push(keeping);
        }
        let mut shares: Vec<Vec<Share>> =
            (0..plan.sets().len()).map(|set| shares(encoder.fields_of(set), &places)).collect();
        // Paths first: a digest that contradicts one belongs to the next record altogether.
        for share in shares.iter_mut().flatten() {
            share.fields.sort_by_key(|&(place, _)| !groups[usize::from(share.group)].queries[place].traces());
        }
        Ok(Collector {
            version: plan.version(),
            bits: queries.bits,
            most_hops: queries.hops.maximal,
            limits: Limits { bytes: limits.bytes.max(MIN_BYTES), ..limits },
            encoder,
            paths,
            groups,
            shares,
            flows: Flows::new(),
            now_ns: 0,
            counts: Counts::default(),
        })
    }

    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Flows that are kept now, counted under each key.
    pub fn flows(&self) -> usize {
        self.flows.len()
    }

    /// Bytes that all flows take now.
    pub fn bytes(&self) -> usize {
        self.flows.bytes()
    }

    /// Takes one digest in. What follows from it goes to `sink`.
    pub fn take(&mut self, row: &Recorded, sink: &mut impl Sink) -> Result<(), Refusal> {
        self.counts.digests += 1;
        if let Err(refusal) = self.check(row) {
            match refusal {
                Refusal::OtherPlan { .. } => self.counts.other_plan += 1,
                Refusal::Hops { .. } => self.counts.hops_refused += 1,
                Refusal::Width { .. } | Refusal::Impossible { .. } => self.counts.impossible += 1,
            }
            return Err(refusal);
        }
        self.now_ns = self.now_ns.max(row.time_ns);
        if row.looped {
            self.counts.loops += 1;
            let kind = EventKind::Loop { packet: row.packet, sink: row.sink };
            sink.event(Event { time_ns: row.time_ns, flow: row.flow, query: None, kind });
            return Ok(());
        }
        match self.encoder.set(row.packet) {
            Some(set) if !self.shares[set].is_empty() => {
                for share in 0..self.shares[set].len() {
                    self.record(set, share, row, sink);
                }
            }
            _ => self.counts.unserved += 1,
        }
        self.expire(sink);
        Ok(())
    }

    fn check(&self, row: &Recorded) -> Result<(), Refusal> {
        if row.plan_version != self.version {
            return Err(Refusal::OtherPlan { found: row.plan_version, expected: self.version });
        }
        if row.looped {
            return Ok(());
        }
        if row.hops == 0 || row.hops > self.most_hops {
            return Err(Refusal::Hops { hops: row.hops, most: self.most_hops });
        }
        if self.bits < 64 && row.digest >> self.bits != 0 {
            return Err(Refusal::Width { bits: self.bits });
        }
        let Some(set) = self.encoder.set(row.packet) else { return Ok(()) };
        let fields = self.encoder.fields_of(set);
        for share in &self.shares[set] {
            let queries = &self.groups[usize::from(share.group)].queries;
            for (place, range) in &share.fields {
                let keeping = &queries[*place];
                if !fields[range.clone()].iter().all(|field| keeping.possible(field, row)) {
                    return Err(Refusal::Impossible { query: keeping.query });
                }
            }
        }
        Ok(())
    }

    /// One group's part of a digest.
    fn record(&mut self, set: usize, share: usize, row: &Recorded, sink: &mut impl Sink) {
        let group = &self.groups[usize::from(self.shares[set][share].group)];
        let id = FlowId { group: self.shares[set][share].group, flow: row.flow.under(group.key) };
        let (place, record) = self.flows.touch(id, || start(group, &self.paths, row, id.flow, 0));
        if group.traces && record.hops != row.hops {
            let kind = EventKind::HopsChanged { from: record.hops, to: row.hops };
            let query =
                group.queries.iter().find(|keeping| keeping.traces()).map_or(0, |keeping| keeping.query);
            self.begin_anew(place, id, (query, kind), row, sink);
            self.apply(place, set, share, id, row, sink);
        } else if let Some(change) = self.apply(place, set, share, id, row, sink) {
            self.begin_anew(place, id, change, row, sink);
            // The first digest of a record can only contradict the ids or the graph; then the record starts once more, without it.
            if let Some(change) = self.apply(place, set, share, id, row, sink) {
                self.begin_anew(place, id, change, row, sink);
            }
        }
    }

    /// Takes a digest into the record at a place; tells of known paths, returns a contradiction.
    fn apply(
        &mut self,
        place: u32,
        set: usize,
        share: usize,
        id: FlowId,
        row: &Recorded,
        sink: &mut impl Sink,
    ) -> Option<(usize, EventKind)> {
        let share = &self.shares[set][share];
        let group = &self.groups[usize::from(id.group)];
        let fields = self.encoder.fields_of(set);
        let record = self.flows.get_mut(place)?;
        record.digests += 1;
        record.last_ns = record.last_ns.max(row.time_ns);
        let (mut contradiction, mut grown) = (None, 0);
        for (query, range) in &share.fields {
            let (keeping, recording) = (&group.queries[*query], &mut record.recordings[*query]);
            let (step, by) = recording.take(keeping, &self.paths, row, &fields[range.clone()]);
            grown += by;
            match step {
                Step::On => {}
                Step::Decoded => {
                    let Findings::Path(found) = recording.findings(keeping, &self.paths) else { continue };
                    let kind = EventKind::PathDecoded {
                        path: found.path().unwrap_or_default(),
                        digests: found.digests,
                    };
                    self.counts.paths_decoded += 1;
                    sink.event(Event {
                        time_ns: row.time_ns,
                        flow: id.flow,
                        query: Some(keeping.query),
                        kind,
                    });
                }
                Step::Contradiction => {
                    let known = recording.is_decoded();
                    let kind = if known { EventKind::PathChanged } else { EventKind::Inconsistent };
                    contradiction = Some((keeping.query, kind));
                    break;
                }
            }
        }
        self.flows.grow(place, grown);
        contradiction
    }

    /// Hands a record out and starts the next one of its flow.
    fn begin_anew(
        &mut self,
        place: u32,
        id: FlowId,
        change: (usize, EventKind),
        row: &Recorded,
        sink: &mut impl Sink,
    ) {
        let (query, kind) = change;
        match kind {
            EventKind::Inconsistent => self.counts.inconsistent += 1,
            _ => self.counts.paths_changed += 1,
        }
        sink.event(Event { time_ns: row.time_ns, flow: id.flow, query: Some(query), kind });
        let group = &self.groups[usize::from(id.group)];
        let epoch = self.flows.get(place).map_or(0, |record| record.epoch).saturating_add(1);
        let old = self.flows.replace(place, start(group, &self.paths, row, id.flow, epoch));
        self.hand_out(id, &old, Ending::Changed, sink);
    }

    /// Ends records that are idle, and as many as memory needs.
    fn expire(&mut self, sink: &mut impl Sink) {
        while let Some(oldest) = self.flows.oldest() {
            let idle =
                self.limits.idle_ns.is_some_and(|idle| self.now_ns - oldest.last_ns.min(self.now_ns) > idle);
            let full = self.flows.bytes() > self.limits.bytes;
            let ending = match (idle, full) {
                (true, _) => Ending::Idle,
                (_, true) => Ending::Evicted,
                _ => return,
            };
            let Some((id, record)) = self.flows.pop_oldest() else { return };
            match ending {
                Ending::Idle => self.counts.idle += 1,
                _ => self.counts.evicted += 1,
            }
            self.hand_out(id, &record, ending, sink);
        }
    }

    fn hand_out(&self, id: FlowId, record: &Record<D::Flow>, ending: Ending, sink: &mut impl Sink) {
        if sink.wants_reports() {
            sink.ended(self.told(&id, record, Some(ending)));
        }
    }

    fn told(&self, id: &FlowId, record: &Record<D::Flow>, ending: Option<Ending>) -> FlowReport {
        let group = &self.groups[usize::from(id.group)];
        let pairs = group.queries.iter().zip(&record.recordings);
        FlowReport {
            flow: id.flow,
            key: group.key,
            ending,
            epoch: record.epoch,
            first_ns: record.first_ns,
            last_ns: record.last_ns,
            digests: record.digests,
            results: pairs
                .map(|(keeping, recording)| (keeping.query, recording.findings(keeping, &self.paths)))
                .collect(),
        }
    }

    /// What is known of a flow now, under the key of a query; None if nothing is kept of it.
    pub fn report(&self, flow: &Flow, query: usize) -> Option<FlowReport> {
        let group = self
            .groups
            .iter()
            .position(|group| group.queries.iter().any(|keeping| keeping.query == query))?;
        let id = FlowId { group: group as u8, flow: flow.under(self.groups[group].key) };
        let record = self.flows.get(self.flows.find(&id)?)?;
        Some(self.told(&id, record, None))
    }

    /// What is known of all flows now, those first that were not seen for longest.
    pub fn reports(&self) -> impl Iterator<Item = FlowReport> {
        self.flows.iter().map(|(id, record)| self.told(id, record, None))
    }

    /// Hands all flows out, those first that were not seen for longest.
    pub fn finish(&mut self, sink: &mut impl Sink) {
        while let Some((id, record)) = self.flows.pop_oldest() {
            self.hand_out(id, &record, Ending::Finished, sink);
        }
    }
}

/// Which fields of a set belong to which group's queries.
fn shares(fields: &[Field], places: &[(usize, usize)]) -> Vec<Share> {
    let mut shares: Vec<Share> = Vec::new();
    let mut first = 0;
    // A query's copies stand side by side.
    for run in fields.chunk_by(|a, b| a.query == b.query) {
        let (group, place) = places[usize::from(run[0].query)];
        let range = first..first + run.len();
        first = range.end;
        match shares.iter_mut().find(|share| usize::from(share.group) == group) {
            Some(share) => share.fields.push((place, range)),
            None => shares.push(Share { group: group as u8, fields: vec![(place, range)] }),
        }
    }
    shares
}

/// A record before its first digest, and its bytes beyond its own size.
fn start<D: Paths>(
    group: &Group,
    paths: &D,
    row: &Recorded,
    flow: Flow,
    epoch: u32,
) -> (Record<D::Flow>, usize) {
    let row = Recorded { flow, ..*row };
    let recordings: Vec<_> =
        group.queries.iter().map(|keeping| Recording::new(keeping, paths, &row)).collect();
    let bytes = recordings.capacity() * size_of::<Recording<D::Flow>>()
        + recordings.iter().map(|recording| recording.bytes(paths)).sum::<usize>();
    let time_ns = row.time_ns;
    (Record { hops: row.hops, epoch, first_ns: time_ns, last_ns: time_ns, digests: 0, recordings }, bytes)
}
