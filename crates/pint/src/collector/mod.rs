//! The collector: recorded digests of many flows in, what the queries found out of them.
//!
//! A digest names its plan, its flow, its packet and how many hops it passed; the plan says which queries the
//! packet served and where their bits lie. Each query keeps what its aggregation needs, per flow under its
//! key: candidates of a path, one sketch per hop, a running summary of numbers per packet. Memory has a limit
//! in bytes over all flows: when it is reached, the flow that was not seen for longest is handed out and
//! forgotten. Digests of another plan and digests that no hop can have written are refused and counted.
//!
//! A flow whose number of hops changes, or whose digests contradict its path, is reported (route change,
//! loop, wrong graph: the digest alone is ambiguous) and its record is reset; single digests that do not fit
//! are set aside (`changes`).
//!
//! The same input gives the same output, to the bit. No clock: time is that of the digests.
//!
//! Source: Ben Basat et al., "PINT", SIGCOMM 2020, §3.2, §4 (Recording and Inference Modules), §7 (route
//! changes). Differs from the source: the paper gives the space of one flow; eviction, idle time and the
//! limit over all flows are ours.

mod changes;
mod decoded_after;
mod events;
mod flows;
mod keyed;
mod paths;
mod recording;
mod records;
mod tally;
#[cfg(test)]
mod tests;
mod used_packets;
mod written;

use crate::encoder::{Encoder, Refused};
use crate::plan::Plan;
use crate::recorded::{Flow, Recorded};

pub use changes::Patience;
pub use decoded_after::DecodedAfter;
pub use events::{
    Collected, Ending, Event, EventKind, Findings, FlowReport, FrequentValue, HopFrequent, HopQuantiles,
    PathFindings, Sink, Summary,
};
pub use paths::{NoPaths, Paths, Step};
pub use recording::{CONFIDENCE, DEFAULT_K};
pub(crate) use recording::{COUNTER_BYTES, counters, enough_counters, sketch_k};
pub use tally::Tally;
pub use used_packets::REMEMBERED;
pub use written::PathWriter;

use changes::{Held, Outcome};
use flows::{FlowId, Flows};
use recording::Keeping;
use records::{Digest, Effect, Group, Record, Share, shares};

/// The minimum memory of a collector.
pub const MIN_BYTES: usize = 65_536;

/// Limits of a collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Memory of all flows; at least [`MIN_BYTES`].
    pub bytes: usize,
    /// A flow of which nothing is seen for longer is handed out; None: never.
    pub idle_ns: Option<u64>,
    /// When digests that do not fit a flow's record are a change of its path.
    pub patience: Patience,
}

impl Default for Limits {
    /// 256 MiB, no idle time.
    fn default() -> Limits {
        Limits { bytes: 256 << 20, idle_ns: None, patience: Patience::default() }
    }
}

/// Why a digest was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("recorded under plan version {found:#010x}, this is plan version {expected:#010x}")]
    OtherPlan { found: u32, expected: u32 },
    #[error("{hops} hops, expected 1 to {max}")]
    Hops { hops: u32, max: u32 },
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
    /// Did not fit the record of their flow and were left out of it.
    pub strays: u64,
    /// Of packets that the record of their flow had used, and left out of it.
    pub repeated: u64,
    /// Records ended because memory was full.
    pub evicted: u64,
    /// Records ended because nothing was seen.
    pub idle: u64,
    /// Digests that were older than the newest one by more than the idle time.
    pub late: u64,
}

/// Takes recorded digests in.
#[derive(Debug)]
pub struct Collector<D: Paths> {
    encoder: Encoder,
    version: u32,
    bits: u32,
    max_hops: u32,
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
                let (key, queries) = (query.flow, Vec::new());
                groups.push(Group { key, queries, traces: false, samples: false, by_hop: false });
                groups.len() - 1
            });
            places.push((group, groups[group].queries.len()));
            groups[group].traces |= keeping.traces();
            groups[group].samples |= !keeping.traces();
            groups[group].by_hop |= keeping.is_by_hop();
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
            max_hops: queries.hops.maximal,
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
        let set = self.check(row).inspect_err(|refusal| match refusal {
            Refusal::OtherPlan { .. } => self.counts.other_plan += 1,
            Refusal::Hops { .. } => self.counts.hops_refused += 1,
            Refusal::Width { .. } | Refusal::Impossible { .. } => self.counts.impossible += 1,
        })?;
        self.now_ns = self.now_ns.max(row.time_ns);
        let age_ns = self.now_ns - row.time_ns;
        self.counts.late += u64::from(self.limits.idle_ns.is_some_and(|idle| age_ns > idle));
        if row.looped {
            self.counts.loops += 1;
            let kind = EventKind::Loop { packet: row.packet, sink: row.sink };
            sink.event(Event { time_ns: row.time_ns, flow: row.flow, query: None, kind });
            return Ok(());
        }
        match set {
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

    /// The query set of the packet, if it has one.
    fn check(&self, row: &Recorded) -> Result<Option<usize>, Refusal> {
        if row.plan_version != self.version {
            return Err(Refusal::OtherPlan { found: row.plan_version, expected: self.version });
        }
        if row.looped {
            return Ok(None);
        }
        if row.hops == 0 || row.hops > self.max_hops {
            return Err(Refusal::Hops { hops: row.hops, max: self.max_hops });
        }
        if self.bits < 64 && row.digest >> self.bits != 0 {
            return Err(Refusal::Width { bits: self.bits });
        }
        let Some(set) = self.encoder.set(row.packet) else { return Ok(None) };
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
        Ok(Some(set))
    }

    /// One group's part of a digest.
    fn record(&mut self, set: usize, share: usize, row: &Recorded, sink: &mut impl Sink) {
        let place = (set, share);
        let share = &self.shares[set][share];
        let group = &self.groups[usize::from(share.group)];
        // A plan's paths have at most 255 hops.
        let hops = if group.has_records_by_hops() { row.hops as u8 } else { 0 };
        let id = FlowId { group: share.group, hops, flow: row.flow.under(group.key) };
        let fields = self.encoder.fields_of(set);
        let digest = Digest {
            row,
            flow: id.flow,
            group,
            share,
            fields,
            place,
            paths: &self.paths,
            patience: self.limits.patience,
        };
        let (place, record) = self.flows.touch(id, self.now_ns, || Record::start(&digest, 0));
        let (strays, repeated) = (record.strays, record.repeated);
        let (outcome, grown, held) = record.offer(&digest);
        self.counts.strays += record.strays - strays;
        self.counts.repeated += record.repeated - repeated;
        if grown != 0 {
            self.flows.grow(place, grown);
        }
        let (old, (query, kind), decoded) = match outcome {
            Outcome::On | Outcome::Decoded { .. } => {
                let places = if let Outcome::Decoded { places } = outcome { places } else { 0 };
                self.tell_decoded(place, id, places, row.time_ns, sink);
                for Held { row, place: (set, share) } in held {
                    self.record(set, share, &row, sink);
                }
                return;
            }
            Outcome::Changed { query, kind } => {
                let (old, decoded) = self.change_over(place);
                self.counts.paths_changed += 1;
                (old, (query, kind), decoded)
            }
            Outcome::Inconsistent { query } => {
                let (old, decoded) = begin_again(&mut self.flows, place, &digest);
                self.counts.inconsistent += 1;
                (old, (query, EventKind::Inconsistent), decoded)
            }
        };
        sink.event(Event { time_ns: row.time_ns, flow: id.flow, query: Some(query), kind });
        if let Some(old) = old {
            self.counts.strays += old.newcomer.as_ref().map_or(0, |newcomer| newcomer.set_aside());
            self.hand_out(id, &old, Ending::Changed, sink);
        }
        self.tell_decoded(place, id, decoded, row.time_ns, sink);
    }

    /// A flow's newcomer becomes its record; returns the old one, and the places of paths that are known.
    fn change_over(&mut self, place: u32) -> (Option<Record<D::Flow>>, u16) {
        let Some(record) = self.flows.get_mut(place) else { return (None, 0) };
        let Some(newcomer) = record.newcomer.take() else { return (None, 0) };
        let left_out = newcomer.left_out();
        record.strays += left_out;
        if newcomer.record.hops == record.hops {
            record.may_be_of_next = newcomer.unnoticed().min(record.digests);
        }
        self.counts.strays += left_out;
        let known = newcomer.record.known();
        (Some(self.flows.replace(place, (newcomer.record, newcomer.bytes))), known)
    }

    /// Tells of paths that have become known.
    fn tell_decoded(&mut self, place: u32, id: FlowId, places: u16, time_ns: u64, sink: &mut impl Sink) {
        let Some(record) = self.flows.get(place).filter(|_| places != 0) else { return };
        let group = &self.groups[usize::from(id.group)];
        let pairs = (0..).zip(group.queries.iter().zip(&record.recordings));
        for (_, (keeping, recording)) in pairs.filter(|(place, _)| places >> place & 1 == 1) {
            let Findings::Path(found) = recording.findings(keeping, &self.paths) else { continue };
            let path = found.path().unwrap_or_default();
            // A path that was settled by what is known of the network needed no digest.
            let digests = if found.decoded_after == Some(0) { 0 } else { found.digests };
            let kind = EventKind::PathDecoded { path, digests };
            self.counts.paths_decoded += 1;
            sink.event(Event { time_ns, flow: id.flow, query: Some(keeping.query), kind });
        }
    }

    /// Ends records that are idle, and more of them if memory is full.
    fn expire(&mut self, sink: &mut impl Sink) {
        // By the clock when a flow was seen, not by the times of its digests: the clocks of sinks may differ.
        while let Some(seen_ns) = self.flows.oldest_ns() {
            let idle = self.limits.idle_ns.is_some_and(|idle| self.now_ns - seen_ns > idle);
            let full = self.flows.bytes() > self.limits.bytes;
            let ending = match (idle, full) {
                (true, _) => Ending::Idle,
                (_, true) => Ending::Evicted,
                _ => return,
            };
            let Some((id, mut record)) = self.flows.pop_oldest() else { return };
            self.take_held(&id, &mut record);
            match ending {
                Ending::Idle => self.counts.idle += 1,
                _ => self.counts.evicted += 1,
            }
            self.hand_out(id, &record, ending, sink);
        }
    }

    /// No change was shown before the record ends: digests that fit are its own.
    fn take_held(&self, id: &FlowId, record: &mut Record<D::Flow>) {
        let held = record.newcomer.as_mut().map(|newcomer| newcomer.release()).unwrap_or_default();
        let (mut held, group) = (held.into_iter(), &self.groups[usize::from(id.group)]);
        for Held { row, place } in held.by_ref() {
            let digest = Digest {
                row: &row,
                flow: id.flow,
                group,
                share: &self.shares[place.0][place.1],
                fields: self.encoder.fields_of(place.0),
                place,
                paths: &self.paths,
                patience: self.limits.patience,
            };
            if matches!(record.take(&digest).0, Effect::Misfit { .. } | Effect::Inconsistent { .. }) {
                // Of a path that was not known when they were held.
                record.strays += 1;
                break;
            }
        }
        record.strays += held.count() as u64;
    }

    fn hand_out(&self, id: FlowId, record: &Record<D::Flow>, ending: Ending, sink: &mut impl Sink) {
        if sink.wants_reports() {
            sink.ended(self.report_of(&id, record, Some(ending)));
        }
    }

    fn report_of(&self, id: &FlowId, record: &Record<D::Flow>, ending: Option<Ending>) -> FlowReport {
        record.report(id.flow, &self.groups[usize::from(id.group)], &self.paths, ending)
    }

    /// What is known of a flow now, under the key of a query; None if nothing is kept of it. Of a flow with
    /// records by number of hops, the one seen last.
    pub fn report(&self, flow: &Flow, query: usize) -> Option<FlowReport> {
        let group = self
            .groups
            .iter()
            .position(|group| group.queries.iter().any(|keeping| keeping.query == query))?;
        let lengths = if self.groups[group].has_records_by_hops() { 1..=self.max_hops as u8 } else { 0..=0 };
        let flow = flow.under(self.groups[group].key);
        let ids = lengths.map(|hops| FlowId { group: group as u8, hops, flow });
        let records = ids.filter_map(|id| Some((id, self.flows.get(self.flows.find(&id)?)?)));
        let (id, record) = records.max_by_key(|(_, record)| record.last_ns)?;
        Some(self.report_of(&id, record, None))
    }

    /// What is known of all flows now, those first that were not seen for longest.
    pub fn reports(&self) -> impl Iterator<Item = FlowReport> {
        self.flows.iter().map(|(id, record)| self.report_of(id, record, None))
    }

    /// Hands all flows out, those first that were not seen for longest.
    pub fn finish(&mut self, sink: &mut impl Sink) {
        while let Some((id, mut record)) = self.flows.pop_oldest() {
            self.take_held(&id, &mut record);
            self.hand_out(id, &record, Ending::Finished, sink);
        }
    }
}

/// Starts a flow's record again from this digest; returns the one before, and the places of paths that are
/// known.
fn begin_again<D: Paths>(
    flows: &mut Flows<Record<D::Flow>>,
    place: u32,
    digest: &Digest<D>,
) -> (Option<Record<D::Flow>>, u16) {
    let Some(epoch) = flows.get(place).map(|record| record.epoch.saturating_add(1)) else { return (None, 0) };
    let (mut record, bytes) = Record::start(digest, epoch);
    let (effect, grown) = record.take(digest);
    let known = record.known();
    if !matches!(effect, Effect::On | Effect::Decoded { .. }) {
        // The first digest of a record can only contradict the ids or the graph: it is left out.
        let (record, bytes) = Record::start(digest, epoch);
        return (Some(flows.replace(place, (Record { strays: 1, ..record }, bytes))), 0);
    }
    (Some(flows.replace(place, (record, bytes.saturating_add_signed(grown)))), known)
}
