//! No path is ever wrong: digests of other paths, of chance, and of 100 000 plans.

use super::*;

/// A path that changes, or is impossible, is reported and not guessed.
#[test]
fn a_changed_path_is_reported() {
    let query = query(evaluation(10), Blocks::Hashed, (8, 2), 9, numbered(753));
    let mut noticed = 0;
    for trial in 1..=200 {
        let (path, mut other) = (random_path(10, 753, trial), random_path(10, 753, trial));
        other[4] = (0..753).find(|id| !path.contains(id)).unwrap();
        let mut state = query.decoder.start(0, &Flow::default(), 10);
        let contradiction = (1..400u64).find(|&n| {
            let packet = mix(trial << 32 ^ n);
            let digest = query.digest(packet, if n < 200 { &path } else { &other });
            query.decoder.take(0, &mut state, packet, digest, query.encoder.fields(packet))
                == Step::Contradiction
        });
        let found = query.decoder.findings(0, &state).path();
        assert!(found.is_none_or(|found| found == path), "a path that nobody took");
        noticed += u32::from(contradiction.is_some_and(|n| n >= 200));
    }
    assert_eq!(noticed, 200);
}

/// What the collector's patience builds on.
#[test]
fn a_known_path_stays_as_it_is_whatever_comes() {
    for (blocks, knowledge) in
        [(Blocks::Hashed, numbered(100)), (Blocks::Fragments { count: 2 }, Knowledge::default())]
    {
        let query = query(code(0.5, &[0.2]), blocks, (8, 2), 4, knowledge);
        let path = random_path(6, 100, 1);
        let mut state = query.decoder.start(0, &Flow::default(), 6);
        let mut contradictions = 0;
        for packet in 0..2_000u64 {
            // From the thousandth on every other digest is of chance.
            let arbitrary = packet >= 1_000 && packet % 2 == 0;
            let digest = if arbitrary { mix(packet) & 0xffff } else { query.digest(packet, &path) };
            let step = query.decoder.take(0, &mut state, packet, digest, query.encoder.fields(packet));
            assert!(arbitrary || step != Step::Contradiction, "packet {packet}");
            contradictions += u32::from(step == Step::Contradiction);
            if packet >= 1_000 {
                assert_eq!(query.decoder.findings(0, &state).path().as_ref(), Some(&path));
            }
        }
        // 16 bits are right by chance only where no hop wrote.
        assert!(contradictions > 490, "{contradictions}");
    }
}

/// Digests of chance: no panic, bounded memory, and soon a contradiction.
#[test]
fn arbitrary_digests_are_refused() {
    for knowledge in [
        numbered(60),
        Knowledge { neighbours: true, shortest: true, graph: fat_tree(), ..Knowledge::default() },
        Knowledge::default(),
    ] {
        let blocks = if knowledge.graph.is_empty() { Blocks::Fragments { count: 3 } } else { Blocks::Hashed };
        let query = query(code(0.3, &[0.1, 0.4]), blocks, (6, 2), 2, knowledge);
        for trial in 0..200u64 {
            let hops = 1 + (mix(trial) % 255) as u32;
            let mut state = query.decoder.start(0, &Flow::default(), hops);
            let refused = (0..3_000u64).any(|n| {
                let packet = mix(trial << 32 ^ n);
                let fields = query.encoder.fields(packet);
                query.decoder.take(0, &mut state, packet, mix(packet), fields) == Step::Contradiction
            });
            assert!(query.decoder.bytes(&state) < 400_000);
            assert!(refused || hops > 100, "{hops} hops");
        }
    }
}

fn ten_to_the_fifth(trials: u64) {
    for trial in 1..=trials {
        let draw = |n: u64, below: u64| mix(trial ^ n << 44) % below;
        let (bits, copies) = [(1, 1), (2, 2), (4, 1), (4, 2), (8, 1), (8, 2)][draw(1, 6) as usize];
        let hops = 2 + draw(2, 24) as usize;
        let p = 0.05 + draw(3, 95) as f64 / 100.0;
        let tau = 0.3 + draw(4, 7) as f64 / 10.0;
        let selection = if draw(5, 2) == 0 { Selection::threshold(p) } else { Selection::words(p) };
        let code = Code::new(tau, &[selection]).unwrap();
        if draw(6, 4) == 0 {
            let shortest = draw(8, 2) == 0;
            let knowledge =
                Knowledge { graph: fat_tree(), neighbours: true, shortest, ..Knowledge::default() };
            query(code, Blocks::Hashed, (bits, copies), trial, knowledge).packets(
                &fat_tree_path(trial),
                Flow::default(),
                trial,
            );
        } else {
            let count = draw(7, 200) + hops as u64;
            query(code, Blocks::Hashed, (bits, copies), trial, numbered(count)).packets(
                &random_path(hops, count, trial),
                Flow::default(),
                trial,
            );
        }
    }
}

#[test]
fn no_path_is_ever_wrong() {
    ten_to_the_fifth(1_500);
}

#[test]
#[ignore = "minutes: part of make validate"]
fn no_path_is_ever_wrong_in_100_000() {
    ten_to_the_fifth(100_000);
}

/// What a flow whose route changes from one path to another after `before` packets shows: the path that is
/// known first after the change or before, and whether one was confirmed, in `packets` packets. A
/// contradiction before the path is known starts again.
fn over_a_change(
    query: &Query,
    paths: [&[u64]; 2],
    before: u64,
    packets: u64,
    trial: u64,
) -> [Option<Vec<u64>>; 2] {
    let start = || query.decoder.start(0, &Flow::default(), paths[0].len() as u32);
    let (mut state, mut found) = (start(), [None, None]);
    for n in 0..packets {
        let packet = mix(trial << 32 ^ n);
        let path = paths[usize::from(n >= before)];
        let digest = query.digest(packet, path);
        match query.decoder.take(0, &mut state, packet, digest, query.encoder.fields(packet)) {
            Step::On => {}
            Step::Decoded | Step::Settled => found[0] = query.decoder.findings(0, &state).path(),
            Step::Confirmed => found[1] = query.decoder.findings(0, &state).path(),
            Step::Contradiction if found[0].is_none() => state = start(),
            Step::Contradiction => {}
        }
    }
    found
}

#[test]
fn a_path_put_together_of_two_routes_is_known_and_never_confirmed() {
    let fragments = Blocks::Fragments { count: 2 };
    let cases = [
        (Blocks::Hashed, (8, 2), numbered(80)),
        (Blocks::Hashed, (1, 4), numbered(80)),
        (fragments, (8, 1), Knowledge::default()),
        (fragments, (8, 1), numbered(80)),
    ];
    for (blocks, width, knowledge) in cases {
        let query = query(code(0.6, &[0.4]), blocks, width, 7, knowledge);
        let (mut mixed, mut confirmed) = (0, 0);
        for trial in 0..1_500 {
            // Three of five hops differ, and the differences of their fragments cancel each other.
            let paths: [&[u64]; 2] = [&[1, 40, 8, 41, 2], &[1, 44, 12, 45, 2]];
            let [known, sure] = over_a_change(&query, paths, 3 + trial % 20, 120, trial);
            mixed += u32::from(known.is_some_and(|path| !paths.contains(&path.as_slice())));
            assert!(sure.as_ref().is_none_or(|path| paths.contains(&path.as_slice())), "{width:?}: {sure:?}");
            confirmed += u32::from(sure.is_some());
        }
        println!("{blocks:?} {width:?}: {mixed} of 1500 known paths never existed");
        assert!(mixed > 5, "{blocks:?} {width:?}: {mixed}");
        assert!(confirmed > 100, "{blocks:?} {width:?}: {confirmed}");
    }
}

/// Of 300 flows whose route changed before the path was known, and which then sent these packets, each some
/// times: how many know a path, and how many a confirmed one.
fn known_and_confirmed(packets: u64, times: usize) -> (usize, usize) {
    use crate::collector::{Collected, Collector, Findings, Limits};
    use crate::recorded::Recorded;
    let text = "bits = 1\nhops = { expected = 3, maximal = 10 }\n[[query]]\nname = \"path\"\nvalue = \"switch-id\"\naggregation = \
                \"path\"\nbits = 1\nids = 80\n";
    let plan = Plan::open(text, "q.toml").unwrap();
    let encoder = plan.encoder().unwrap();
    let decoder = PathDecoder::new(&plan, numbered(80)).unwrap();
    let mut collector = Collector::new(&plan, Limits::default(), decoder).unwrap();
    for trial in 0..300 {
        let (old, mut new) = (random_path(3, 79, trial), random_path(3, 79, trial));
        // One hop stays.
        (new[0], new[1]) = (79, (new[1] + 40) % 79);
        let sent = (0..34).chain((34..34 + packets).cycle().take(packets as usize * times));
        for n in sent {
            let packet = mix(trial << 32 ^ n);
            let hops = (1..).zip(if n < 34 { &old } else { &new });
            let digest = hops.fold(0, |digest, (hop, &id)| encoder.encode(digest, packet, hop, &[id]));
            let flow = Flow { id: Some(trial), ..Flow::default() };
            let plan_version = plan.version();
            let row = Recorded { flow, packet, digest, hops: 3, plan_version, ..Recorded::default() };
            collector.take(&row, &mut Collected::default()).unwrap();
        }
    }
    let (mut known, mut confirmed) = (0, 0);
    for report in collector.reports() {
        let [(0, Findings::Path(path))] = &report.results[..] else { panic!("{:?}", report.results) };
        known += usize::from(path.path().is_some());
        confirmed += usize::from(path.confirmed_after.is_some());
    }
    (known, confirmed)
}

#[test]
fn packets_that_come_again_confirm_nothing() {
    let (known, confirmed) = known_and_confirmed(9, 1);
    assert!(known > 100 && confirmed == 0, "{known} {confirmed}");
    assert_eq!(known_and_confirmed(9, 16), (known, confirmed));
    // Other packets do.
    assert!(known_and_confirmed(9 * 16, 1).1 > 200);
}

/// Packets until a path is known and until it is confirmed: means.
fn until_confirmed(
    blocks: Blocks,
    width: (u32, u32),
    hops: usize,
    knowledge: Knowledge,
    trials: u64,
) -> (f64, f64) {
    let query = query(evaluation(hops), blocks, width, 3, knowledge);
    let (mut known, mut confirmed) = (0, 0);
    for trial in 1..=trials {
        let path = random_path(hops, 753, trial);
        let mut state = query.decoder.start(0, &Flow::default(), hops as u32);
        for n in 1..100_000 {
            let packet = mix(trial << 32 ^ n);
            let digest = query.digest(packet, &path);
            match query.decoder.take(0, &mut state, packet, digest, query.encoder.fields(packet)) {
                Step::On => {}
                Step::Decoded => known += n,
                Step::Confirmed => {
                    confirmed += n;
                    break;
                }
                Step::Settled | Step::Contradiction => panic!("packet {n}"),
            }
        }
    }
    (known as f64 / trials as f64, confirmed as f64 / trials as f64)
}

#[test]
fn to_confirm_a_path_costs_what_the_documentation_states() {
    let (known, confirmed) = until_confirmed(Blocks::Hashed, (8, 2), 5, numbered(753), 600);
    assert!((9.3..10.5).contains(&known) && (18.0..20.5).contains(&confirmed), "{known} {confirmed}");
}

#[test]
#[ignore = "prints the table of the documentation"]
fn packets_until_paths_are_confirmed() {
    for hops in [5, 10, 25, 59] {
        for width in [(16, 1), (8, 2), (8, 1), (4, 1), (1, 1)] {
            let (known, confirmed) = until_confirmed(Blocks::Hashed, width, hops, numbered(753), 500);
            println!("{hops} hops, {width:?}: known {known:.1}, confirmed {confirmed:.1}");
        }
        let raw = Blocks::Fragments { count: 2 };
        let (known, confirmed) = until_confirmed(raw, (8, 1), hops, Knowledge::default(), 500);
        println!("{hops} hops, 2 fragments of 8 bits: known {known:.1}, confirmed {confirmed:.1}");
    }
}
