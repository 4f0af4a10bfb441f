//! The records of a collector on paths that need no digest, and of digests that contradict each other.

use super::*;
use crate::collector::{Collected, Collector, EventKind, Findings, FlowReport, Limits, PathFindings};
use crate::recorded::Recorded;

fn plan(bits: u32, hops: usize) -> Plan {
    let text = format!(
        "bits = {bits}\nhops = {{ expected = {hops}, maximal = {hops} }}\n[[query]]\nname = \"path\"\nvalue = \"switch-id\"\n\
         aggregation = \"path\"\nbits = {bits}\nids = 80\n"
    );
    Plan::open(&text, "queries.toml").expect("a plan")
}

fn found(report: &FlowReport) -> &PathFindings {
    let [(0, Findings::Path(path))] = &report.results[..] else { panic!("{:?}", report.results) };
    path
}

/// A line of three switches, which leaves one path between its ends.
#[test]
fn a_path_that_the_network_leaves_is_known_after_no_digest_and_confirmed_by_those_that_come() {
    let plan = plan(8, 3);
    let (encoder, version) = (plan.encoder().unwrap(), plan.version());
    let graph = Graph::new(vec![0, 1, 2], &[(0, 1), (1, 2)]).unwrap().0;
    let ends = Some(BTreeMap::from([(8, 0), (9, 2)]));
    let knowledge = Knowledge { graph, neighbours: true, ends, ..Knowledge::default() };
    let decoder = PathDecoder::new(&plan, knowledge).unwrap();
    let mut collector = Collector::new(&plan, Limits::default(), decoder).unwrap();
    let flow = Flow { source: Address::Number(8), destination: Address::Number(9), ..Flow::default() };
    let mut collected = Collected::default();
    for packet in 0..200u64 {
        let digest =
            (1..).zip([0, 1, 2]).fold(0, |digest, (hop, id)| encoder.encode(digest, packet, hop, &[id]));
        // One is damaged: the path that is known stays.
        let digest = if packet == 100 { !digest & 0xff } else { digest };
        let row = Recorded { flow, packet, digest, hops: 3, plan_version: version, ..Recorded::default() };
        collector.take(&row, &mut collected).unwrap();
    }
    let report = collector.report(&flow, 0).unwrap();
    let path = found(&report);
    assert_eq!((path.path(), path.decoded_after), (Some(vec![0, 1, 2]), Some(0)));
    assert!(path.confirmed_after.is_some_and(|digests| digests < 50), "{path:?}");
    assert_eq!((report.strays, collector.counts().inconsistent, collected.reports.len()), (1, 0, 0));
    let decoded = EventKind::PathDecoded { path: vec![0, 1, 2], digests: 0 };
    assert_eq!(collected.events.iter().map(|event| &event.kind).collect::<Vec<_>>(), [&decoded]);
}

/// Routes change before they are known; two bits a digest, so that many come to one id for each hop and a
/// contradiction by the same digest.
#[test]
fn a_record_whose_digests_contradict_each_other_has_no_known_path() {
    let plan = plan(2, 5);
    let (encoder, version) = (plan.encoder().unwrap(), plan.version());
    let graph = Graph::complete((0..80).collect()).unwrap();
    let knowledge = Knowledge { graph, neighbours: true, ..Knowledge::default() };
    let decoder = PathDecoder::new(&plan, knowledge).unwrap();
    let mut collector = Collector::new(&plan, Limits::default(), decoder).unwrap();
    let mut collected = Collected::default();
    for trial in 1..=600 {
        let mut path = random_path(5, 80, trial);
        let flow = Flow { id: Some(trial), ..Flow::default() };
        for n in 0..120u64 {
            if n == 3 + trial % 48 {
                path[1..3].copy_from_slice(&random_path(5, 80, 1_000 + trial)[1..3]);
            }
            let packet = mix(trial << 32 ^ n);
            let digest =
                (1..).zip(&path).fold(0, |digest, (hop, &id)| encoder.encode(digest, packet, hop, &[id]));
            let row =
                Recorded { flow, packet, digest, hops: 5, plan_version: version, ..Recorded::default() };
            collector.take(&row, &mut collected).unwrap();
        }
    }
    let contradicted: Vec<_> = collected.reports.iter().map(found).filter(|path| path.contradicted).collect();
    assert!(contradicted.iter().any(|path| path.hops.iter().all(Option::is_some)));
    assert!(contradicted.iter().all(|path| path.path().is_none() && path.decoded_after.is_none()));
    let known =
        collected.reports.iter().map(found).all(|path| path.path().is_some() == path.decoded_after.is_some());
    assert!(known);
    assert_eq!(contradicted.len() as u64, collector.counts().inconsistent);
}
