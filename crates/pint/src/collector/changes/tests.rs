use super::super::tests::{PATH, collector, flow, in_records, row};
use super::super::{Collected, Ending, EventKind, Limits};
use super::*;
use crate::hash::mix;
use crate::recorded::Recorded;
use proptest::prelude::*;

const DETOUR: [u64; 4] = [11, 701, 3, 1_000];
const LONGER: [u64; 5] = [11, 700, 9, 3, 1_000];

/// What is reported when packets 0, 1, ... of one flow take these paths.
fn collected<'a>(paths: impl IntoIterator<Item = &'a [u64]>) -> Collected {
    collected_with(Patience::default(), paths)
}

fn collected_with<'a>(patience: Patience, paths: impl IntoIterator<Item = &'a [u64]>) -> Collected {
    let (plan, mut collector) = collector(Limits { patience, ..Limits::default() });
    let (mut collected, mut taken) = (Collected::default(), 0);
    for (packet, path) in (0..).zip(paths) {
        collector.take(&row(&plan, flow(1), packet, path), &mut collected).unwrap();
        taken += 1;
    }
    collector.finish(&mut collected);
    assert_eq!(in_records(&collected), taken, "each digest is in one record, a stray or a repeat");
    collected
}

#[test]
fn patience_is_a_setting() {
    // Four packets in a row over a longer way.
    let four = || but(&[(200, &LONGER), (201, &LONGER), (202, &LONGER), (203, &LONGER)]);
    let ended = |collected: &Collected| records(collected).len();
    assert_eq!(ended(&collected(four())), 3, "there and back");
    let patient = Patience { agreeing: 5, ..Patience::default() };
    assert_eq!(records(&collected_with(patient, four())), [(Some(Ending::Finished), 296, 4)]);
    let hasty = Patience { agreeing: 0, misfits: 0, fits: 0 };
    assert_eq!(ended(&collected_with(hasty, but(&[(200, &LONGER)]))), 3);
}

fn kinds(collected: &Collected) -> Vec<&EventKind> {
    collected.events.iter().map(|event| &event.kind).collect()
}

/// Those of the five-tuple: how they ended, digests and strays.
fn records(collected: &Collected) -> Vec<(Option<Ending>, u64, u64)> {
    let paths = collected.reports.iter().filter(|report| report.results[0].0 == 0);
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
    let collected = collected(but(&[(100, SHORTER)]));
    assert!(matches!(kinds(&collected)[..], [EventKind::PathDecoded { .. }]), "{:?}", collected.events);
    assert_eq!(records(&collected), [(Some(Ending::Finished), 299, 1)]);
}

#[test]
fn packets_that_take_a_shorter_path_now_and_then_are_strays() {
    // Every third: never three in a row.
    let collected = collected((0..300).map(|packet| if packet % 3 == 2 { &PATH[..3] } else { &PATH[..] }));
    assert!(matches!(kinds(&collected)[..], [EventKind::PathDecoded { .. }]), "{:?}", collected.events);
    assert_eq!(records(&collected), [(Some(Ending::Finished), 200, 100)]);
}

#[test]
fn a_late_packet_around_a_change_of_route_is_set_aside() {
    let (old, new) = (&PATH[..], &PATH[..3]);
    let mut paths = vec![old; 200];
    paths.extend([new, old]);
    paths.extend([new; 100]);
    let collected = collected(paths);
    let kinds = kinds(&collected);
    assert!(
        matches!(kinds[1..], [EventKind::HopsChanged { from: 4, to: 3 }, EventKind::PathDecoded { .. }]),
        "{kinds:?}"
    );
    // The third of those in a row tells of the change; the two before are in the new record.
    assert_eq!(collected.events[1].time_ns, 204 * 10);
    assert_eq!(records(&collected), [(Some(Ending::Changed), 201, 1), (Some(Ending::Finished), 100, 0)]);
}

#[test]
fn a_digest_that_contradicts_a_known_path_is_a_stray() {
    let strays = |packets: &'static [(usize, &'static [u64])]| {
        let collected = collected(but(packets));
        assert!(matches!(kinds(&collected)[..], [EventKind::PathDecoded { .. }]), "{:?}", collected.events);
        records(&collected)[0].2
    };
    // On a quarter of the packets the second hop writes.
    assert!(strays(&[(100, &DETOUR), (101, &DETOUR), (102, &DETOUR), (103, &DETOUR)]) >= 1);
    assert_eq!(strays(&[]), 0);
}

#[test]
fn another_path_of_the_same_length_is_reported_and_found() {
    let paths = (0..400).map(|packet| if packet < 200 { &PATH[..] } else { &DETOUR[..] });
    let collected = collected(paths);
    let kinds = kinds(&collected);
    let [_, EventKind::PathChanged, EventKind::PathDecoded { path, .. }] = &kinds[..] else {
        panic!("{kinds:?}")
    };
    assert_eq!(*path, DETOUR);
    // A quarter of the packets shows it: 12 on average.
    assert!(collected.events[1].time_ns < 240 * 10, "{:?}", collected.events[1]);
}

#[test]
fn digests_that_fit_while_others_do_not_are_in_no_record_if_the_path_has_changed() {
    let plan = super::super::tests::plan();
    let shows = |&packet: &u64| {
        row(&plan, flow(1), packet, &PATH).digest != row(&plan, flow(1), packet, &DETOUR).digest
    };
    // The route changes where the digests that show it are not close together.
    let shown = (200..300)
        .map(|from| (from..400).filter(shows).take(3).collect::<Vec<u64>>())
        .find(|shown| shown[2] - shown[0] > 7)
        .unwrap();
    let (first, third) = (shown[0], shown[2]);
    let path = |packet: u64| if packet < first { &PATH[..] } else { &DETOUR[..] };
    let collected = collected((0..400).map(path));
    let held = third - first - 2;
    assert_eq!(
        records(&collected),
        [(Some(Ending::Changed), first, held), (Some(Ending::Finished), 400 - first - held, 0)]
    );
    // Of three misfits: 20^(1/2) - 1 times the digests after the first one, less one.
    let may_be =
        |collected: &Collected| collected.reports.iter().map(|r| r.may_be_of_next).collect::<Vec<_>>();
    let of_flow = may_be(&collected);
    assert_eq!(of_flow[0], ((20f64.sqrt() - 1.0) * (third - first) as f64) as u64 - 1);
    assert!(of_flow[1..].iter().all(|&digests| digests == 0), "{of_flow:?}");
    // They are the record's if it has not changed, also if the flow ends before that is clear.
    for more in [10, 300] {
        let paths = (0..=first + more).map(|packet| if packet == first { &DETOUR[..] } else { &PATH[..] });
        assert_eq!(records(&super::tests::collected(paths)), [(Some(Ending::Finished), first + more, 1)]);
    }
}

#[test]
fn digests_of_chance_end_a_known_path() {
    let (plan, mut collector) = collector(Limits::default());
    let mut collected = Collected::default();
    for packet in 0..300 {
        let row = row(&plan, flow(1), packet, &PATH);
        let digest = if packet < 200 { row.digest } else { row.digest ^ mix(packet) & 0xff };
        let _ = collector.take(&Recorded { digest, ..row }, &mut collected);
    }
    assert!(matches!(kinds(&collected)[1], EventKind::PathChanged), "{:?}", collected.events);
    assert!(
        collected.events[1].time_ns <= (200 + u64::from(Patience::default().misfits)) * 10,
        "{:?}",
        collected.events[1]
    );
}

#[test]
fn a_digest_that_does_not_fit_is_one_however_often_it_comes() {
    for others in [[&LONGER[..]; 2], [&LONGER, &PATH[..3]]] {
        let (plan, mut collector) = collector(Limits::default());
        let mut collected = Collected::default();
        for packet in 0..300 {
            collector.take(&row(&plan, flow(1), packet, &PATH), &mut collected).unwrap();
        }
        // Two packets that were late, each 20 times, between the same packets of the path.
        for packet in (0..20).flat_map(|_| [300, 301, 299]) {
            let path = if packet == 299 { &PATH } else { others[packet as usize - 300] };
            collector.take(&row(&plan, flow(1), packet, path), &mut collected).unwrap();
        }
        assert!(matches!(kinds(&collected)[..], [EventKind::PathDecoded { .. }]), "{:?}", collected.events);
        collector.take(&row(&plan, flow(1), 302, &PATH), &mut collected).unwrap();
        collector.finish(&mut collected);
        assert_eq!(records(&collected), [(Some(Ending::Finished), 301, 2)]);
    }
}

#[test]
fn packets_sent_again_on_another_path_show_the_change() {
    let (plan, mut collector) = collector(Limits::default());
    let mut collected = Collected::default();
    for packet in (0..200).map(|packet| (packet, &PATH)).chain((100..200).map(|packet| (packet, &DETOUR))) {
        let (packet, path) = packet;
        collector.take(&row(&plan, flow(1), packet, path), &mut collected).unwrap();
    }
    let kinds = kinds(&collected);
    assert!(matches!(kinds[1..], [EventKind::PathChanged, EventKind::PathDecoded { .. }]), "{kinds:?}");
}

proptest! {
    #[test]
    fn each_digest_is_in_one_record_or_a_stray(picks in prop::collection::vec((0usize..4, 1usize..40), 0..40)) {
        let paths: [&[u64]; 4] = [&PATH, &DETOUR, &PATH[..3], &[11, 700]];
        collected(picks.iter().flat_map(|&(path, times)| std::iter::repeat_n(paths[path], times)));
    }
}
