//! What becomes of digests that do not fit a flow's record: strays, or another path.
//!
//! A digest does not fit if it passed another number of hops, or contradicts a path that is known. One such
//! digest is not a change: a packet was late around a change of route, took a backup for a moment, or was
//! damaged. It goes into a separate record, next to the flow's, the *newcomer*, which takes in only such
//! digests, so that two paths are never read as one. The newcomer becomes the flow's record when 3 digests
//! that do not fit the old one agree with each other, or 8 do not even agree ([`Patience`]): then the old
//! path is certainly not right. It goes, and its digests are counted as strays, with the next digest of the
//! old number of hops, or, where the numbers are the same (a digest of the new path may well fit the old
//! one), when 64 in a row fit.
//!
//! A path that contradicts itself before it is known is discarded: digests of two paths may be mixed in it.
//! Its record is reset at once.
//!
//! Source: the paper says only that such a digest signals a change (Ben Basat et al., "PINT", SIGCOMM 2020,
//! §7). Patience is ours.

use super::EventKind;
use super::paths::Paths;
use super::records::{Digest, Effect, Record};
use super::used_packets::UsedPackets;

/// How many digests make up the collector's mind about a flow; 0 counts as 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// Digests that do not fit a record, but each other, and make a change.
    pub agreeing: u32,
    /// Digests that do not fit a record, nor all each other, and make a change.
    pub misfits: u32,
    /// Digests that fit, in a row, after which those that did not are strays.
    pub fits: u32,
}

impl Default for Patience {
    /// 3, so that two packets that were late around a change are none; 8, so that damaged digests between
    /// those of the new path do not hold it up; 64, because a digest of the new path fits the old one with a
    /// probability of 0.9 at worst (one of 59 hops differs), 64 of them with 0.001.
    fn default() -> Patience {
        Patience { agreeing: 3, misfits: 8, fits: 64 }
    }
}

/// A record of the digests that do not fit the flow's main record.
#[derive(Debug)]
pub(super) struct Newcomer<P> {
    pub record: Record<P>,
    /// Bytes that the record holds beyond its own size.
    pub bytes: usize,
    /// Digests in it; those that it contradicted went, with what was in it before.
    agreeing: u32,
    /// Digests that did not fit the old record.
    pub misfits: u32,
    /// Digests that fit the old record since the last that did not.
    fits: u32,
    /// The packets of digests that fit the old record.
    fitted: UsedPackets,
}

/// What a digest did to a flow.
#[derive(Debug)]
pub(super) enum Outcome {
    On,
    /// The paths at these places of the group have become known, as bits.
    Decoded {
        places: u16,
    },
    /// The newcomer is to take the record's place.
    Changed {
        query: usize,
        kind: EventKind,
    },
    /// The record must be reset.
    Inconsistent {
        query: usize,
    },
}

impl<P> Record<P> {
    /// Takes a digest in, or sets it aside; by how many bytes the record grew.
    pub fn offer<D: Paths<Flow = P>>(&mut self, digest: &Digest<D>) -> (Outcome, isize) {
        if digest.group.traces && self.hops != digest.row.hops {
            return self.set_aside(digest, digest.group.tracing());
        }
        let (effect, grown) = self.take(digest);
        let outcome = match effect {
            Effect::On => Outcome::On,
            Effect::Repeated => return (Outcome::On, grown),
            Effect::Decoded { places } => Outcome::Decoded { places },
            Effect::Inconsistent { query } => return (Outcome::Inconsistent { query }, grown),
            Effect::Misfit { query } => {
                let (outcome, by) = self.set_aside(digest, query);
                return (outcome, grown + by);
            }
        };
        if self.newcomer.is_none() {
            return (outcome, grown);
        }
        (outcome, grown + self.doubt_newcomer(digest))
    }

    /// A digest has fitted although there is a newcomer: by how many bytes the record grew.
    fn doubt_newcomer<D>(&mut self, digest: &Digest<D>) -> isize {
        let Some(newcomer) = &mut self.newcomer else { return 0 };
        let before = newcomer.all_bytes() as isize;
        // A record that remembers no packets any more takes repeats for digests that fit.
        newcomer.fits += u32::from(!newcomer.fitted.contains(digest.row.packet));
        if newcomer.fits < digest.patience.fits && newcomer.record.hops == self.hops {
            newcomer.fitted.insert(digest.row.packet);
            return newcomer.all_bytes() as isize - before;
        }
        self.strays += u64::from(newcomer.misfits);
        self.newcomer = None;
        -before
    }

    /// A digest that does not fit goes to the newcomer.
    fn set_aside<D: Paths<Flow = P>>(&mut self, digest: &Digest<D>, query: usize) -> (Outcome, isize) {
        let epoch = self.epoch.saturating_add(1);
        self.last_ns = self.last_ns.max(digest.row.time_ns);
        let before = self.newcomer.as_ref().map_or(0, |newcomer| newcomer.all_bytes());
        let newcomer = self.newcomer.get_or_insert_with(|| Box::new(Newcomer::start(digest, epoch)));
        self.repeated += u64::from(!newcomer.take(digest, epoch));
        let grown = newcomer.all_bytes() as isize - before as isize;
        if newcomer.agreeing < digest.patience.agreeing.max(1) && newcomer.misfits < digest.patience.misfits {
            return (Outcome::On, grown);
        }
        let kind = match (self.hops, newcomer.record.hops) {
            (from, to) if from != to => EventKind::HopsChanged { from, to },
            _ => EventKind::PathChanged,
        };
        (Outcome::Changed { query, kind }, grown)
    }
}

impl<P> Newcomer<P> {
    fn start<D: Paths<Flow = P>>(digest: &Digest<D>, epoch: u32) -> Newcomer<P> {
        let (record, bytes) = Record::start(digest, epoch);
        Newcomer { record, bytes, agreeing: 0, misfits: 0, fits: 0, fitted: UsedPackets::default() }
    }

    /// Whether it was the first digest of its packet; others are left out.
    fn take<D: Paths<Flow = P>>(&mut self, digest: &Digest<D>, epoch: u32) -> bool {
        if self.record.used.contains(digest.row.packet) {
            return false;
        }
        self.misfits += 1;
        self.fits = 0;
        if self.record.hops == digest.row.hops && self.agrees(digest) {
            return true;
        }
        self.empty(digest, epoch);
        // Alone it can only contradict the ids or the graph; then it is left out.
        if !self.agrees(digest) {
            self.empty(digest, epoch);
            self.bytes = self.bytes.saturating_add_signed(self.record.use_packet(digest));
        }
        true
    }

    /// Whether a digest agrees with those before; it is then among them.
    fn agrees<D: Paths<Flow = P>>(&mut self, digest: &Digest<D>) -> bool {
        let (effect, grown) = self.record.take(digest);
        self.bytes = self.bytes.saturating_add_signed(grown);
        let agrees = matches!(effect, Effect::On | Effect::Decoded { .. });
        self.agreeing += u32::from(agrees);
        agrees
    }

    /// Discards what was taken in, but not which packets it was of: a packet is one of the misfits once.
    fn empty<D: Paths<Flow = P>>(&mut self, digest: &Digest<D>, epoch: u32) {
        let used = std::mem::take(&mut self.record.used);
        let (record, bytes) = Record::start(digest, epoch);
        self.bytes = bytes + used.bytes();
        self.record = Record { used, ..record };
        self.agreeing = 0;
    }

    /// Bytes that it adds to its flow.
    fn all_bytes(&self) -> usize {
        size_of::<Newcomer<P>>() + self.bytes + self.fitted.bytes()
    }

    /// Digests that did not fit the old record and are not in this one.
    pub fn left_out(&self) -> u64 {
        u64::from(self.misfits - self.agreeing)
    }
}

#[cfg(test)]
mod tests;
