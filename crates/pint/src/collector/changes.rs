//! What becomes of digests that do not fit a flow's record: strays, or another path.
//!
//! A digest does not fit if it passed another number of hops, or contradicts a path that is known. One such
//! digest is not a change: a packet was late around a change of route, took a backup for a moment, or was
//! damaged. It goes into a separate record, next to the flow's, the *newcomer*, which takes in only such
//! digests, so that two paths are never read as one. The newcomer becomes the flow's record when 3 digests
//! that do not fit the old one agree with each other, or 8 do not even agree ([`Patience`]): then the old
//! path is certainly not right. It goes, and its digests are counted as strays, with the next digest of the
//! old number of hops, or, where the numbers are the same (a digest of the new path may well fit the old
//! one), when 64 in a row fit. Digests that fit meanwhile may be of either path: they are held, and go into
//! the record if the path has not changed, else into none. Those of the new path before the first that does not
//! fit are in the old record, which states how many they may be ([`Newcomer::unnoticed`]).
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
use crate::recorded::Recorded;

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

/// One of this many changes has more digests before it was noticed than a record states.
const EXCEEDED: f64 = 20.0;

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
    /// Those digests, which may be of the new path all the same.
    held: Vec<Held>,
}

/// A digest that waits until it is clear whether the path has changed.
#[derive(Debug)]
pub(super) struct Held {
    pub row: Recorded,
    /// As in [`Digest`].
    pub place: (usize, usize),
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
    /// Takes a digest in, sets it aside, or holds it; by how many bytes the record grew, and digests that
    /// were held and are to be offered again.
    pub fn offer<D: Paths<Flow = P>>(&mut self, digest: &Digest<D>) -> (Outcome, isize, Vec<Held>) {
        let aside = |(outcome, grown)| (outcome, grown, Vec::new());
        if digest.group.traces && self.hops != digest.row.hops {
            return aside(self.set_aside(digest, digest.group.tracing()));
        }
        let weighed = self.newcomer.as_ref().is_some_and(|newcomer| newcomer.record.hops == self.hops);
        if weighed && !self.used.contains(digest.row.packet) {
            return match self.contradicted(digest) {
                Some(query) => aside(self.set_aside(digest, query)),
                None => self.hold(digest),
            };
        }
        let (effect, grown) = self.take(digest);
        let outcome = match effect {
            Effect::On => Outcome::On,
            Effect::Repeated => return (Outcome::On, grown, Vec::new()),
            Effect::Decoded { places } => Outcome::Decoded { places },
            Effect::Inconsistent { query } => return (Outcome::Inconsistent { query }, grown, Vec::new()),
            Effect::Misfit { query } => {
                let (outcome, by) = self.set_aside(digest, query);
                return (outcome, grown + by, Vec::new());
            }
        };
        // A newcomer with another number of hops.
        let (by, held) = self.dismiss_newcomer();
        (outcome, grown + by, held)
    }

    /// A digest fits although there is a newcomer of as many hops: it is held, or shows that the path has not
    /// changed.
    fn hold<D>(&mut self, digest: &Digest<D>) -> (Outcome, isize, Vec<Held>) {
        let Some(newcomer) = &mut self.newcomer else { return (Outcome::On, 0, Vec::new()) };
        self.last_ns = self.last_ns.max(digest.row.time_ns);
        if newcomer.fitted.contains(digest.row.packet) {
            self.repeated += 1;
            return (Outcome::On, 0, Vec::new());
        }
        let before = newcomer.all_bytes() as isize;
        newcomer.fitted.insert(digest.row.packet);
        newcomer.held.push(Held { row: *digest.row, place: digest.place });
        newcomer.fits += 1;
        if newcomer.fits < digest.patience.fits {
            return (Outcome::On, newcomer.all_bytes() as isize - before, Vec::new());
        }
        let grown = newcomer.all_bytes() as isize - before;
        let (by, held) = self.dismiss_newcomer();
        (Outcome::On, grown + by, held)
    }

    /// The digests that did not fit were strays: by how many bytes the record grew, and what was held.
    fn dismiss_newcomer(&mut self) -> (isize, Vec<Held>) {
        let Some(mut newcomer) = self.newcomer.take() else { return (0, Vec::new()) };
        self.strays += u64::from(newcomer.misfits);
        (-(newcomer.all_bytes() as isize), newcomer.release())
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
        Newcomer {
            record,
            bytes,
            agreeing: 0,
            misfits: 0,
            fits: 0,
            fitted: UsedPackets::default(),
            held: Vec::new(),
        }
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
        let held = self.held.capacity() * size_of::<Held>();
        size_of::<Newcomer<P>>() + self.bytes + self.fitted.bytes() + held
    }

    /// Digests that are not in the record of their flow, while it has this newcomer.
    pub fn set_aside(&self) -> u64 {
        u64::from(self.misfits) + self.held.len() as u64
    }

    /// The digests that were held.
    pub fn release(&mut self) -> Vec<Held> {
        std::mem::take(&mut self.held)
    }

    /// Digests of the new path that may have come before the first one that did not fit: no more in 19 of 20
    /// changes, whatever the share of those that fit.
    ///
    /// ```text
    /// P(B + 1 > c S) <= (1 + c)^(1 - m)      B: before the first of m misfits; S: digests after it, up to the last
    /// c = 20^(1 / (m - 1)) - 1
    /// ```
    pub fn unnoticed(&self) -> u64 {
        let gaps = self.misfits.saturating_sub(1);
        if gaps == 0 {
            return u64::MAX;
        }
        let after = self.held.len() as u64 + u64::from(gaps);
        let ratio = libm::pow(EXCEEDED, 1.0 / f64::from(gaps)) - 1.0;
        (ratio * after as f64).floor().max(1.0) as u64 - 1
    }

    /// Digests that are in neither record when this one takes the other's place.
    pub fn left_out(&self) -> u64 {
        u64::from(self.misfits - self.agreeing) + self.held.len() as u64
    }
}

#[cfg(test)]
mod tests;
