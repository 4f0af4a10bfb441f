//! What is kept of one flow under one key, and how a digest goes in.

use super::changes::{Newcomer, Patience};
use super::events::{Ending, FlowReport};
use super::paths::{Paths, Step};
use super::recording::{Keeping, Recording};
use super::used_packets::UsedPackets;
use crate::encoder::Field;
use crate::query::FlowKey;
use crate::recorded::{Flow, Recorded};

/// Queries under one key: they share the record of a flow.
#[derive(Debug)]
pub(super) struct Group {
    pub key: FlowKey,
    pub queries: Vec<Keeping>,
    /// Whether one of them traces a path, so that all are reset when it changes.
    pub traces: bool,
    /// Whether one of them does not.
    pub samples: bool,
    /// Whether one of them keeps something of each hop.
    pub by_hop: bool,
}

impl Group {
    /// Whether packets of a flow with different numbers of hops have records of their own. Where a path is
    /// traced, its change shows that.
    pub fn has_records_by_hops(&self) -> bool {
        self.by_hop && !self.traces
    }

    /// The query, of the plan, that tells of a path; the first where no query traces one.
    pub fn tracing(&self) -> usize {
        self.queries.iter().find(|keeping| keeping.traces()).map_or(0, |keeping| keeping.query)
    }
}

/// What a set's packets bring one group: places of its queries, and each one's fields of the set.
#[derive(Debug)]
pub(super) struct Share {
    pub group: u8,
    pub fields: Vec<(usize, std::ops::Range<usize>)>,
}

/// Which fields of a set belong to which group's queries.
pub(super) fn shares(fields: &[Field], places: &[(usize, usize)]) -> Vec<Share> {
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

/// One digest that is added to a record.
pub(super) struct Digest<'a, D> {
    pub row: &'a Recorded,
    /// The flow under the group's key.
    pub flow: Flow,
    pub group: &'a Group,
    pub share: &'a Share,
    /// Of the packet's query set.
    pub fields: &'a [Field],
    /// The query set, and the place of `share` in it.
    pub place: (usize, usize),
    pub paths: &'a D,
    pub patience: Patience,
}

/// What a digest did to a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    On,
    /// The record has used this packet, and takes nothing from it.
    Repeated,
    /// The paths at these places of the group have become known, as bits.
    Decoded {
        places: u16,
    },
    /// It contradicts the known path of this query; the record is as before.
    Misfit {
        query: usize,
    },
    /// It contradicts what is known of this query's path; the record is not to be used on.
    Inconsistent {
        query: usize,
    },
}

/// All that is kept of a flow under one key.
#[derive(Debug)]
pub(super) struct Record<P> {
    pub hops: u32,
    pub epoch: u32,
    pub first_ns: u64,
    pub last_ns: u64,
    pub digests: u64,
    /// Digests that did not fit and were left out.
    pub strays: u64,
    /// Digests of packets that were used before, and left out.
    pub repeated: u64,
    /// Digests in it that may be of the route that followed.
    pub may_be_of_next: u64,
    pub recordings: Vec<Recording<P>>,
    pub used: UsedPackets,
    /// What the flow may have changed to; it becomes the record, or goes.
    pub newcomer: Option<Box<Newcomer<P>>>,
}

impl<P> Record<P> {
    /// A record before its first digest, and its bytes beyond its own size.
    pub fn start<D: Paths<Flow = P>>(digest: &Digest<D>, epoch: u32) -> (Record<P>, usize) {
        let row = Recorded { flow: digest.flow, ..*digest.row };
        let queries = digest.group.queries.iter();
        let recordings: Vec<_> = queries.map(|keeping| Recording::new(keeping, digest.paths, &row)).collect();
        let bytes = recordings.capacity() * size_of::<Recording<P>>()
            + recordings.iter().map(|recording| recording.bytes(digest.paths)).sum::<usize>();
        let record = Record {
            hops: row.hops,
            epoch,
            first_ns: row.time_ns,
            last_ns: row.time_ns,
            digests: 0,
            strays: 0,
            repeated: 0,
            may_be_of_next: 0,
            recordings,
            used: UsedPackets::default(),
            newcomer: None,
        };
        (record, bytes)
    }

    /// Takes a digest in; what it did, and by how many bytes the record grew.
    pub fn take<D: Paths<Flow = P>>(&mut self, digest: &Digest<D>) -> (Effect, isize) {
        if self.used.contains(digest.row.packet) {
            return (self.take_again(digest), self.use_packet(digest));
        }
        let (mut decoded, mut grown) = (0, 0);
        // Known paths first: a digest that one of them refuses leaves no trace in the others.
        for known in [true, false] {
            for (place, range) in &digest.share.fields {
                let recording = &mut self.recordings[*place];
                if recording.is_decoded() != known {
                    continue;
                }
                let keeping = &digest.group.queries[*place];
                let (step, by) =
                    recording.take(keeping, digest.paths, digest.row, &digest.fields[range.clone()]);
                grown += by;
                match step {
                    Step::On | Step::Confirmed => {}
                    Step::Decoded | Step::Settled => decoded |= 1 << place,
                    Step::Contradiction if known => {
                        return (Effect::Misfit { query: keeping.query }, grown);
                    }
                    Step::Contradiction => {
                        return (Effect::Inconsistent { query: keeping.query }, grown);
                    }
                }
            }
        }
        self.digests += 1;
        self.last_ns = self.last_ns.max(digest.row.time_ns);
        let effect = if decoded == 0 { Effect::On } else { Effect::Decoded { places: decoded } };
        (effect, grown + self.use_packet(digest))
    }

    /// A digest of a packet that was used before: it can contradict a known path, as after a retransmission
    /// on another one.
    fn take_again<D: Paths<Flow = P>>(&mut self, digest: &Digest<D>) -> Effect {
        if let Some(query) = self.contradicted(digest) {
            return Effect::Misfit { query };
        }
        self.repeated += 1;
        self.last_ns = self.last_ns.max(digest.row.time_ns);
        Effect::Repeated
    }

    /// The query whose known path a digest contradicts. Nothing is taken from the digest.
    pub fn contradicted<D: Paths<Flow = P>>(&mut self, digest: &Digest<D>) -> Option<usize> {
        digest.share.fields.iter().find_map(|(place, range)| {
            let keeping = &digest.group.queries[*place];
            let fields = &digest.fields[range.clone()];
            let fits = self.recordings[*place].fits(keeping, digest.paths, digest.row, fields);
            (!fits).then_some(keeping.query)
        })
    }

    /// Remembers the packet, while it matters: paths that are all confirmed do not change by repeats. By how
    /// many bytes the record grew.
    pub fn use_packet<D>(&mut self, digest: &Digest<D>) -> isize {
        let before = self.used.bytes() as isize;
        if digest.group.samples || !self.recordings.iter().all(Recording::is_confirmed) {
            self.used.insert(digest.row.packet);
        } else {
            self.used = UsedPackets::default();
        }
        self.used.bytes() as isize - before
    }

    /// The places of the group whose paths are known, as bits.
    pub fn known(&self) -> u16 {
        let places = (0..).zip(&self.recordings);
        places.fold(0, |known, (place, recording)| known | u16::from(recording.is_decoded()) << place)
    }

    /// What is known now.
    pub fn report<D: Paths<Flow = P>>(
        &self,
        flow: Flow,
        group: &Group,
        paths: &D,
        ending: Option<Ending>,
    ) -> FlowReport {
        let pairs = group.queries.iter().zip(&self.recordings);
        FlowReport {
            flow,
            key: group.key,
            ending,
            hops: (group.traces || group.by_hop).then_some(self.hops),
            epoch: self.epoch,
            first_ns: self.first_ns,
            last_ns: self.last_ns,
            digests: self.digests,
            strays: self.strays + self.newcomer.as_ref().map_or(0, |newcomer| newcomer.set_aside()),
            repeated: self.repeated,
            may_be_of_next: self.may_be_of_next,
            results: pairs
                .map(|(keeping, recording)| (keeping.query, recording.findings(keeping, paths)))
                .collect(),
        }
    }
}
