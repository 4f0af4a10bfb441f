//! What becomes of digests that do not fit a flow's record: strays, or another path.
//!
//! A digest does not fit if it passed another number of hops, or contradicts a path that is known. One such digest is no news: a
//! packet was late around a change of route, took a backup for a moment, or was damaged. It goes into a record of its own beside the
//! flow's, the *newcomer*, which takes in only such digests, so that two paths are never read as one. The newcomer becomes the flow's
//! record when 3 digests that do not fit the old one agree with each other, or 8 do not even agree ([`Patience`]): then the
//! old path is certainly not right. It goes, and its digests are counted as strays, with the next digest of the old number of hops,
//! or, where the numbers are the same (a digest of the new path may well fit the old one), when 64 in a row fit.
//!
//! A path that contradicts itself before it is known cannot wait: digests of two paths may be mixed in it. It begins anew at once.
//!
//! Source: the paper says only that such a digest signals a change (Ben Basat et al., "PINT", SIGCOMM 2020, §7). Patience is ours.

use super::EventKind;
use super::paths::Paths;
use super::records::{Digest, Effect, Record};

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
    /// 3, so that two packets that were late around a change are none; 8, so that damaged digests between those of the new path do not
    /// hold it up; 64, because a digest of the new path fits the old one with a probability of 0.9 at worst (one of 59 hops differs), 64
    /// of them with 0.001.
    fn default() -> Patience {
        Patience { agreeing: 3, misfits: 8, fits: 64 }
    }
}

/// A record of the digests that do not fit the one it stands beside.
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
    /// The record is to begin anew.
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
        (outcome, grown - self.doubt_newcomer(digest.patience.fits))
    }

    /// A digest has fitted although there is a newcomer: by how many bytes the record shrank.
    fn doubt_newcomer(&mut self, fits: u32) -> isize {
        let Some(newcomer) = &mut self.newcomer else { return 0 };
        newcomer.fits += 1;
        if newcomer.fits < fits && newcomer.record.hops == self.hops {
            return 0;
        }
        self.strays += u64::from(newcomer.misfits);
        let bytes = newcomer.bytes + size_of::<Newcomer<P>>();
        self.newcomer = None;
        bytes as isize
    }

    /// A digest that does not fit goes to the newcomer.
    fn set_aside<D: Paths<Flow = P>>(&mut self, digest: &Digest<D>, query: usize) -> (Outcome, isize) {
        let epoch = self.epoch.saturating_add(1);
        self.last_ns = self.last_ns.max(digest.row.time_ns);
        let mut before = size_of::<Newcomer<P>>();
        let newcomer = match &mut self.newcomer {
            Some(newcomer) => {
                before += newcomer.bytes;
                newcomer
            }
            none => {
                before = 0;
                none.insert(Box::new(Newcomer::start(digest, epoch)))
            }
        };
        newcomer.take(digest, epoch);
        let grown = (newcomer.bytes + size_of::<Newcomer<P>>()) as isize - before as isize;
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
        Newcomer { record, bytes, agreeing: 0, misfits: 0, fits: 0 }
    }

    fn take<D: Paths<Flow = P>>(&mut self, digest: &Digest<D>, epoch: u32) {
        self.misfits += 1;
        self.fits = 0;
        if self.record.hops == digest.row.hops && self.agrees(digest) {
            return;
        }
        self.empty(digest, epoch);
        // Alone it can only contradict the ids or the graph; then it is left out.
        if !self.agrees(digest) {
            self.empty(digest, epoch);
        }
    }

    /// Whether a digest agrees with those before; it is then among them.
    fn agrees<D: Paths<Flow = P>>(&mut self, digest: &Digest<D>) -> bool {
        let (effect, grown) = self.record.take(digest);
        self.bytes = self.bytes.saturating_add_signed(grown);
        let agrees = matches!(effect, Effect::On | Effect::Decoded { .. });
        self.agreeing += u32::from(agrees);
        agrees
    }

    fn empty<D: Paths<Flow = P>>(&mut self, digest: &Digest<D>, epoch: u32) {
        (self.record, self.bytes) = Record::start(digest, epoch);
        self.agreeing = 0;
    }

    /// Digests that did not fit the old record and are not in this one.
    pub fn left_out(&self) -> u64 {
        u64::from(self.misfits - self.agreeing)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{PATH, collector, digests_and_strays, flow, row};
    use super::super::{Ending, EventKind, Limits, Told};
    use super::*;
    use crate::hash::mix;
    use crate::recorded::Recorded;
    use proptest::prelude::*;

    const DETOUR: [u64; 4] = [11, 701, 3, 1_000];
    const LONGER: [u64; 5] = [11, 700, 9, 3, 1_000];

    /// What is told when packets 0, 1, ... of one flow take these paths.
    fn told<'a>(paths: impl IntoIterator<Item = &'a [u64]>) -> Told {
        told_with(Patience::default(), paths)
    }

    fn told_with<'a>(patience: Patience, paths: impl IntoIterator<Item = &'a [u64]>) -> Told {
        let (plan, mut collector) = collector(Limits { patience, ..Limits::default() });
        let (mut told, mut taken) = (Told::default(), 0);
        for (packet, path) in (0..).zip(paths) {
            collector.take(&row(&plan, flow(1), packet, path), &mut told).unwrap();
            taken += 1;
        }
        collector.finish(&mut told);
        assert_eq!(digests_and_strays(&told), taken, "each digest is in one record, or a stray");
        told
    }

    #[test]
    fn patience_is_a_setting() {
        // Four packets in a row over a longer way.
        let four = || but(&[(200, &LONGER), (201, &LONGER), (202, &LONGER), (203, &LONGER)]);
        let ended = |told: &Told| records(told).len();
        assert_eq!(ended(&told(four())), 3, "there and back");
        let patient = Patience { agreeing: 5, ..Patience::default() };
        assert_eq!(records(&told_with(patient, four())), [(Some(Ending::Finished), 296, 4)]);
        let hasty = Patience { agreeing: 0, misfits: 0, fits: 0 };
        assert_eq!(ended(&told_with(hasty, but(&[(200, &LONGER)]))), 3);
    }

    fn kinds(told: &Told) -> Vec<&EventKind> {
        told.events.iter().map(|event| &event.kind).collect()
    }

    /// Those of the five-tuple: how they ended, digests and strays.
    fn records(told: &Told) -> Vec<(Option<Ending>, u64, u64)> {
        let paths = told.reports.iter().filter(|report| report.results[0].0 == 0);
        paths.map(|report| (report.ending, report.digests, report.strays)).collect()
    }

    /// 300 packets, all but some on the path.
    fn but(others: &'static [(usize, &'static [u64])]) -> impl Iterator<Item = &'static [u64]> {
        let other = |packet| others.iter().find(|(at, _)| *at == packet).map(|&(_, path)| path);
        (0..300).map(move |packet| other(packet).unwrap_or(&PATH))
    }

    #[test]
    fn a_digest_with_another_number_of_hops_is_a_stray() {
        const SHORTER: &[u64] = &[PATH[0], PATH[1], PATH[2]];
        let told = told(but(&[(100, SHORTER)]));
        assert!(matches!(kinds(&told)[..], [EventKind::PathDecoded { .. }]), "{:?}", told.events);
        assert_eq!(records(&told), [(Some(Ending::Finished), 299, 1)]);
    }

    #[test]
    fn packets_that_take_a_shorter_path_now_and_then_are_strays() {
        // Every third: never three in a row.
        let told = told((0..300).map(|packet| if packet % 3 == 2 { &PATH[..3] } else { &PATH[..] }));
        assert!(matches!(kinds(&told)[..], [EventKind::PathDecoded { .. }]), "{:?}", told.events);
        assert_eq!(records(&told), [(Some(Ending::Finished), 200, 100)]);
    }

    #[test]
    fn a_late_packet_around_a_change_of_route_is_set_aside() {
        let (old, new) = (&PATH[..], &PATH[..3]);
        let mut paths = vec![old; 200];
        paths.extend([new, old]);
        paths.extend([new; 100]);
        let told = told(paths);
        let kinds = kinds(&told);
        assert!(
            matches!(kinds[1..], [EventKind::HopsChanged { from: 4, to: 3 }, EventKind::PathDecoded { .. }]),
            "{kinds:?}"
        );
        // The third of those in a row tells of the change; the two before are in the new record.
        assert_eq!(told.events[1].time_ns, 204 * 10);
        assert_eq!(records(&told), [(Some(Ending::Changed), 201, 1), (Some(Ending::Finished), 100, 0)]);
    }

    #[test]
    fn a_digest_that_contradicts_a_known_path_is_a_stray() {
        let strays = |packets: &'static [(usize, &'static [u64])]| {
            let told = told(but(packets));
            assert!(matches!(kinds(&told)[..], [EventKind::PathDecoded { .. }]), "{:?}", told.events);
            records(&told)[0].2
        };
        // On a quarter of the packets the second hop writes.
        assert!(strays(&[(100, &DETOUR), (101, &DETOUR), (102, &DETOUR), (103, &DETOUR)]) >= 1);
        assert_eq!(strays(&[]), 0);
    }

    #[test]
    fn another_path_of_the_same_length_is_told_and_found() {
        let paths = (0..400).map(|packet| if packet < 200 { &PATH[..] } else { &DETOUR[..] });
        let told = told(paths);
        let kinds = kinds(&told);
        let [_, EventKind::PathChanged, EventKind::PathDecoded { path, .. }] = &kinds[..] else {
            panic!("{kinds:?}")
        };
        assert_eq!(*path, DETOUR);
        // A quarter of the packets shows it: 12 on average.
        assert!(told.events[1].time_ns < 240 * 10, "{:?}", told.events[1]);
    }

    #[test]
    fn digests_of_chance_end_a_known_path() {
        let (plan, mut collector) = collector(Limits::default());
        let mut told = Told::default();
        for packet in 0..300 {
            let row = row(&plan, flow(1), packet, &PATH);
            let digest = if packet < 200 { row.digest } else { row.digest ^ mix(packet) & 0xff };
            let _ = collector.take(&Recorded { digest, ..row }, &mut told);
        }
        assert!(matches!(kinds(&told)[1], EventKind::PathChanged), "{:?}", told.events);
        assert!(
            told.events[1].time_ns <= (200 + u64::from(Patience::default().misfits)) * 10,
            "{:?}",
            told.events[1]
        );
    }

    proptest! {
        #[test]
        fn each_digest_is_in_one_record_or_a_stray(picks in prop::collection::vec((0usize..4, 1usize..40), 0..40)) {
            let paths: [&[u64]; 4] = [&PATH, &DETOUR, &PATH[..3], &[11, 700]];
            told(picks.iter().flat_map(|&(path, times)| std::iter::repeat_n(paths[path], times)));
        }
    }
}
