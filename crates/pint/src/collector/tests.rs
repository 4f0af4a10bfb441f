use super::*;
use crate::encoder::{Blocks, Field, Task};
use crate::plan;
use crate::query::FlowKey;
use crate::recorded::Address;
use crate::value::Number;
use proptest::prelude::*;

/// Paths in fragments of one piece (the whole id), Baseline only: the survivor's id is the field.
pub(super) struct Raw;

impl Paths for Raw {
    type Flow = Vec<Option<u64>>;

    fn start(&self, _: usize, _: &Flow, hops: u32) -> Vec<Option<u64>> {
        vec![None; hops as usize]
    }

    fn take(
        &self,
        _: usize,
        state: &mut Vec<Option<u64>>,
        packet: u64,
        digest: u64,
        fields: &[Field],
    ) -> Step {
        let done = state.iter().all(Option::is_some);
        for field in fields {
            let hop = crate::code::survivor(field.key.word(packet), state.len() as u32) as usize - 1;
            if *state[hop].get_or_insert(field.read(digest)) != field.read(digest) {
                return Step::Contradiction;
            }
        }
        if !done && state.iter().all(Option::is_some) { Step::Decoded } else { Step::On }
    }

    fn fits(
        &self,
        query: usize,
        state: &mut Vec<Option<u64>>,
        packet: u64,
        digest: u64,
        fields: &[Field],
    ) -> bool {
        self.take(query, state, packet, digest, fields) != Step::Contradiction
    }

    fn bytes(&self, state: &Vec<Option<u64>>) -> usize {
        16 * state.capacity()
    }

    fn findings(&self, _: usize, state: &Vec<Option<u64>>) -> PathFindings {
        let candidates = state.iter().map(|hop| hop.map(|_| 1)).collect();
        PathFindings { hops: state.clone(), candidates, ..PathFindings::default() }
    }
}

/// Path and latency on 15/16 of the packets, path and load on the rest; loads of all flows of a source
/// together.
const QUERIES: &str = r#"
bits = 18
seed = 5
hops = { expected = 4, maximal = 12 }

[[query]]
name = "path"
value = "switch-id"
aggregation = "path"
code = "baseline"
blocks = "fragments"
value-bits = 10
bits = 10

[[query]]
name = "latency"
value = "hop-latency"
aggregation = "quantiles"
quantiles = [0.5, 0.99]
approximation = { epsilon = 0.025 }
bits = 8
frequency = "15/16"

[[query]]
name = "load"
value = "utilisation"
aggregation = "max"
approximation = { epsilon = 0.025 }
bits = 8
frequency = "1/16"
flow = "source"
"#;

pub(super) fn plan() -> Plan {
    Plan::new(plan::read(QUERIES, "queries.toml").unwrap()).unwrap()
}

pub(super) fn flow(id: u64) -> Flow {
    Flow { id: Some(id), source: Address::Number(id % 2), destination: Address::Number(9), ..Flow::default() }
}

/// The digest of a packet that passes `path`, its latency at hop i (from 1) being i times `latency`, the
/// loads 40, 80, ...
pub(super) fn digest(plan: &Plan, packet: u64, path: &[u64], latency: u64) -> u64 {
    let encoder = plan.encoder().unwrap();
    (1..).zip(path).fold(0, |digest, (hop, &id)| {
        encoder.encode(digest, packet, hop, &[id, latency * u64::from(hop), 40 * u64::from(hop)])
    })
}

pub(super) fn row(plan: &Plan, flow: Flow, packet: u64, path: &[u64]) -> Recorded {
    let digest = digest(plan, packet, path, 1_000 + packet % 100);
    let (hops, plan_version) = (path.len() as u32, plan.version());
    Recorded { time_ns: packet * 10, flow, packet, digest, hops, plan_version, ..Recorded::default() }
}

pub(super) fn collector(limits: Limits) -> (Plan, Collector<Raw>) {
    let plan = plan();
    let collector = Collector::new(&plan, limits, Raw).unwrap();
    (plan, collector)
}

pub(super) const PATH: [u64; 4] = [11, 700, 3, 1_000];

#[test]
fn the_plan_of_the_test_is_what_the_test_thinks() {
    let plan = plan();
    assert_eq!(plan.sets().len(), 2);
    let expected = Blocks::Fragments { count: 1 };
    assert!(
        matches!(plan.tasks()[0], Task::Path { blocks, .. } if blocks == expected),
        "{:?}",
        plan.tasks()[0]
    );
}

#[test]
fn path_latency_and_load_come_out_as_they_went_in() {
    let (plan, mut collector) = collector(Limits::default());
    let mut collected = Collected::default();
    for packet in 0..4_000 {
        collector.take(&row(&plan, flow(1), packet, &PATH), &mut collected).unwrap();
    }
    let [Event { kind: EventKind::PathDecoded { path, digests }, query: Some(0), .. }] =
        &collected.events[..]
    else {
        panic!("{:?}", collected.events)
    };
    assert_eq!(*path, PATH);
    let report = collector.report(&flow(1), 0).unwrap();
    let [(0, Findings::Path(found)), (1, Findings::Quantiles(hops))] = &report.results[..] else {
        panic!("{:?}", report.results)
    };
    assert_eq!(
        (found.path(), found.decoded_after, found.digests),
        (Some(PATH.to_vec()), Some(*digests), 4_000)
    );
    assert_eq!(hops.iter().map(|hop| hop.samples).sum::<u64>(), report_digests(&plan, 4_000));
    for (hop, found) in (1..).zip(hops) {
        // Latencies of hop i are even between 1 000 i and 1 099 i.
        let [median, tail] = &found.values[..] else { panic!() };
        let scale = f64::from(hop);
        assert!((median.value.get() / (1_050.0 * scale) - 1.0).abs() < 0.05, "{hop}: {median:?}");
        assert!(
            median.low.unwrap().get() <= 1_050.0 * scale && 1_050.0 * scale <= median.high.unwrap().get()
        );
        assert!(tail.value >= median.value && tail.low.unwrap().get() <= 1_099.0 * scale);
    }
    // Loads are kept under the source: another flow key.
    let load = collector.report(&flow(3), 2).unwrap();
    let [(2, Findings::Packets(summary))] = load.results[..] else { panic!("{:?}", load.results) };
    assert_eq!(load.key, FlowKey::Source);
    assert!(
        (summary.mean / 160.0 - 1.0).abs() < 0.026 && summary.packets == 4_000 - report_digests(&plan, 4_000)
    );
    // Rounded at random to one of two codes.
    assert!(summary.largest.get() / summary.smallest.get() < 1.051);
}

/// Packets of the first `packets` that carry a latency.
fn report_digests(plan: &Plan, packets: u64) -> u64 {
    let encoder = plan.encoder().unwrap();
    (0..packets).filter(|&packet| encoder.fields(packet).iter().any(|field| field.query == 1)).count() as u64
}

#[test]
fn what_no_hop_can_have_written_is_refused_and_counted() {
    let (plan, mut collector) = collector(Limits::default());
    let good = row(&plan, flow(1), 1, &PATH);
    let version = plan.version();
    let mut take = |row: Recorded| collector.take(&row, &mut Collected::default());
    let other = Refusal::OtherPlan { found: version ^ 1, expected: version };
    assert_eq!(take(Recorded { plan_version: version ^ 1, ..good }), Err(other));
    assert_eq!(take(Recorded { hops: 0, ..good }), Err(Refusal::Hops { hops: 0, max: 12 }));
    assert_eq!(take(Recorded { hops: 13, ..good }), Err(Refusal::Hops { hops: 13, max: 12 }));
    assert_eq!(take(Recorded { digest: good.digest | 1 << 18, ..good }), Err(Refusal::Width { bits: 18 }));
    assert_eq!(take(good), Ok(()));
    let counts = collector.counts();
    assert_eq!((counts.digests, counts.other_plan, counts.hops_refused, counts.impossible), (5, 1, 2, 1));
}

#[test]
fn flows_are_counted_once_however_many_records_they_have_and_so_are_those_left_out() {
    let (plan, mut collector) = collector(Limits::default());
    let (mut found, mut tally) = (Collected::default(), Tally::new(&plan));
    let mut take = |row: Recorded| {
        if let Err(refusal) = collector.take(&row, &mut found) {
            tally.refused(&row, &refusal);
        }
    };
    for packet in 0..4_000 {
        // The packets of flow 2 take two paths.
        let paths = [PATH, [PATH[0], 700, 701, PATH[3]]];
        take(row(&plan, flow(2), packet, &paths[(packet / 3 % 2) as usize]));
        let good = row(&plan, flow(4), packet, &PATH);
        take(good);
        // Of flow 4 some packets have too many hops, of flow 5, which has a source of its own, all.
        take(Recorded { hops: 13 + packet as u32 % 3, ..good });
        take(Recorded { hops: 13, flow: flow(5), ..good });
        take(Recorded { hops: 0, flow: flow(7), ..good });
    }
    collector.finish(&mut found);
    found.reports.iter().for_each(|report| tally.ended(report));
    // Two flows, and their source under a key of its own; flow 5 and its source.
    assert_eq!((tally.flows(), tally.left_out(), tally.is_minimum()), (3, 2, false));
    assert_eq!((tally.too_long, tally.longest), (8_000, 15));
    assert!(tally.changed > 50 && tally.records == tally.changed + 3, "{tally:?}");
    assert!(tally.known >= 1 && tally.known + tally.unknown == tally.records - 1, "{tally:?}");
    assert!(tally.confirmed <= tally.known);
}

#[test]
fn a_count_of_more_hops_than_the_path_has_is_impossible() {
    let text = "bits = 8\n[[query]]\nname = \"hot\"\nvalue = \"queue-bytes\"\naggregation = \"count-above\"\nthreshold = 1000\nbits = 8\n";
    let plan = Plan::new(plan::read(text, "queries.toml").unwrap()).unwrap();
    let mut collector = Collector::new(&plan, Limits::default(), NoPaths).unwrap();
    let row = Recorded { digest: 4, hops: 4, plan_version: plan.version(), ..Recorded::default() };
    assert_eq!(collector.take(&row, &mut Collected::default()), Ok(()));
    let row = Recorded { digest: 5, ..row };
    assert_eq!(collector.take(&row, &mut Collected::default()), Err(Refusal::Impossible { query: 0 }));
}

#[test]
fn a_changed_path_ends_the_record_and_begins_another() {
    let (plan, mut collector) = collector(Limits::default());
    let mut collected = Collected::default();
    let detour = [11, 701, 3, 1_000];
    for packet in 0..600 {
        let path: &[u64] = match packet {
            0..200 => &PATH,
            200..400 => &detour,
            _ => &PATH[..3],
        };
        collector.take(&row(&plan, flow(1), packet, path), &mut collected).unwrap();
    }
    let kinds: Vec<&EventKind> = collected.events.iter().map(|event| &event.kind).collect();
    assert!(
        matches!(
            kinds[..],
            [
                EventKind::PathDecoded { .. },
                EventKind::PathChanged,
                EventKind::PathDecoded { .. },
                EventKind::HopsChanged { from: 4, to: 3 },
                EventKind::PathDecoded { .. }
            ]
        ),
        "{kinds:?}"
    );
    let endings: Vec<_> = collected.reports.iter().map(|report| (report.ending, report.epoch)).collect();
    assert_eq!(endings, [(Some(Ending::Changed), 0), (Some(Ending::Changed), 1)]);
    let Findings::Path(second) = &collected.reports[1].results[0].1 else { panic!() };
    assert_eq!(second.path(), Some(detour.to_vec()));
    assert_eq!(collector.counts().paths_changed, 2);
    // Every digest is in one record only.
    collector.finish(&mut collected);
    assert_eq!(in_records(&collected), 600);
}

#[test]
fn a_packet_is_one_sample_however_often_its_digest_comes() {
    let found = |times: usize| {
        let (plan, mut collector) = collector(Limits::default());
        let mut collected = Collected::default();
        // In windows of 100 packets that are sent again, as after a loss.
        for packet in
            (0..1_000).step_by(100).flat_map(|first| std::iter::repeat_n(first..first + 100, times).flatten())
        {
            collector.take(&row(&plan, flow(1), packet, &PATH), &mut collected).unwrap();
        }
        let counts = collector.counts();
        collector.finish(&mut collected);
        (counts, collected)
    };
    let ((once, alone), (thrice, repeated)) = (found(1), found(3));
    // A load counts for the source, all packets for the five-tuple.
    let loads = 1_000 - report_digests(&plan(), 1_000);
    assert_eq!((once.repeated, thrice.repeated, thrice.digests), (0, 2 * (1_000 + loads), 3_000));
    assert_eq!(in_records(&repeated), 3_000);
    assert_eq!(repeated.events, alone.events);
    let results = |collected: &Collected| {
        collected.reports.iter().map(|report| (report.digests, report.results.clone())).collect::<Vec<_>>()
    };
    assert_eq!(results(&repeated), results(&alone));
}

/// Of the five-tuples, which all packets of the plan serve.
pub(super) fn in_records(collected: &Collected) -> u64 {
    let of_flows = collected.reports.iter().filter(|report| report.key == FlowKey::FiveTuple);
    of_flows.map(|report| report.digests + report.strays + report.repeated).sum()
}

#[test]
fn routes_of_unequal_length_have_records_of_their_own_where_no_path_is_traced() {
    let text = "bits = 8\nhops = { expected = 3, maximal = 12 }\n[[query]]\nname = \"latency\"\nvalue = \"hop-latency\"\naggregation = \
                \"quantiles\"\nquantiles = [0.5]\napproximation = { epsilon = 0.025 }\nbits = 8\n";
    let plan = Plan::open(text, "queries.toml").unwrap();
    let (encoder, plan_version) = (plan.encoder().unwrap(), plan.version());
    let mut collector = Collector::new(&plan, Limits::default(), NoPaths).unwrap();
    let mut collected = Collected::default();
    for packet in 0..2_000u64 {
        // First 3 hops of 1 us, then 5 of 100 us; between them in turns.
        let longer = packet >= 1_200 || packet >= 800 && packet % 2 == 1;
        let (hops, latency) = if longer { (5, 100_000) } else { (3, 1_000) };
        let digest = (1..=hops).fold(0, |digest, hop| encoder.encode(digest, packet, hop, &[latency]));
        let row = Recorded { packet, digest, hops, plan_version, ..Recorded::default() };
        collector.take(&row, &mut collected).unwrap();
    }
    collector.finish(&mut collected);
    assert_eq!(collected.reports.iter().map(|report| report.hops).collect::<Vec<_>>(), [Some(3), Some(5)]);
    for (report, latency) in collected.reports.iter().zip([1_000.0, 100_000.0]) {
        let [(0, Findings::Quantiles(hops))] = &report.results[..] else { panic!("{:?}", report.results) };
        assert_eq!((hops.len() as u32, report.digests), (report.hops.unwrap(), 1_000));
        assert!(hops.iter().all(|hop| (hop.values[0].value.get() / latency - 1.0).abs() < 0.026), "{hops:?}");
    }
}

#[test]
fn loops_are_reported() {
    let (plan, mut collector) = collector(Limits::default());
    let mut collected = Collected::default();
    let sink = Address::Number(4);
    let row = Recorded {
        looped: true,
        sink,
        packet: 8,
        plan_version: plan.version(),
        flow: flow(1),
        ..Recorded::default()
    };
    collector.take(&row, &mut collected).unwrap();
    assert_eq!(collected.events[0].kind, EventKind::Loop { packet: 8, sink });
    assert_eq!((collector.counts().loops, collector.flows()), (1, 0));
}

#[test]
fn idle_flows_and_those_that_memory_lacks_room_for_are_handed_out() {
    let (plan, mut collector) =
        collector(Limits { bytes: MIN_BYTES, idle_ns: Some(5_000), ..Limits::default() });
    let mut collected = Collected::default();
    collector.take(&row(&plan, flow(1), 1, &PATH), &mut collected).unwrap();
    collector.take(&row(&plan, flow(2), 400, &PATH), &mut collected).unwrap();
    assert_eq!((collector.flows(), collected.reports.len()), (2, 0));
    collector.take(&row(&plan, flow(2), 502, &PATH), &mut collected).unwrap();
    assert_eq!(collected.reports[0].ending, Some(Ending::Idle));
    for packet in 503..2_000 {
        collector
            .take(&Recorded { time_ns: 5_020, ..row(&plan, flow(packet), packet, &PATH) }, &mut collected)
            .unwrap();
        assert!(collector.bytes() <= MIN_BYTES);
    }
    let counts = collector.counts();
    assert!(counts.evicted > 1_000 && counts.idle == 1, "{counts:?}");
    let kept = collector.flows();
    collector.finish(&mut collected);
    assert_eq!(
        collected.reports.iter().filter(|report| report.ending == Some(Ending::Finished)).count(),
        kept
    );
    // Each packet carries a bit of the path; those with a load count for their source too.
    let of_flows = collected.reports.iter().filter(|report| report.key == FlowKey::FiveTuple);
    assert_eq!(of_flows.map(|report| report.digests).sum::<u64>(), 1_500);
}

#[test]
fn flows_of_sinks_whose_clocks_differ_are_not_idle() {
    let (plan, mut collector) = collector(Limits { idle_ns: Some(5_000), ..Limits::default() });
    let mut collected = Collected::default();
    for packet in 0..400 {
        for (id, ahead) in [(2, 0), (4, 50_000)] {
            let row = row(&plan, flow(id), packet, &PATH);
            collector.take(&Recorded { time_ns: row.time_ns + ahead, ..row }, &mut collected).unwrap();
        }
    }
    // The first digest of the clock ahead ends what was there; after that each flow is seen every 10 ns.
    let counts = collector.counts();
    assert!(counts.idle <= 2 && collector.flows() == 3, "{counts:?}");
    assert_eq!(counts.late, 399);
}

#[test]
fn a_space_bounds_the_sketches() {
    let spaced = QUERIES.replace("aggregation = \"quantiles\"", "aggregation = \"quantiles\"\nspace = 400");
    let plan = Plan::new(plan::read(&spaced, "queries.toml").unwrap()).unwrap();
    let mut collector = Collector::new(&plan, Limits::default(), Raw).unwrap();
    for packet in 0..20_000 {
        collector.take(&row(&plan, flow(1), packet, &PATH), &mut Collected::default()).unwrap();
    }
    // 100 bytes a hop: k for 100 codes of one byte.
    let k = crate::sketch::kll::k_for_room(100).unwrap();
    let report = collector.report(&flow(1), 1).unwrap();
    let Findings::Quantiles(hops) = &report.results[1].1 else { panic!() };
    assert!(hops.iter().all(|hop| !hop.exact && hop.rank_error == crate::sketch::kll::rank_error(k)));
    assert!((hops[0].values[0].value.get() / 1_050.0 - 1.0).abs() < 0.1, "{:?}", hops[0]);
}

#[test]
fn frequent_values_come_with_their_shares() {
    let text = "bits = 8\nhops = { expected = 2, maximal = 4 }\n[[query]]\nname = \"ports\"\nvalue = \"egress-port\"\naggregation = \"frequent\"\nshare = 0.3\napproximation = \"exact\"\nbits = 8\n";
    let plan = Plan::new(plan::read(text, "queries.toml").unwrap()).unwrap();
    let mut collector = Collector::new(&plan, Limits::default(), NoPaths).unwrap();
    let encoder = plan.encoder().unwrap();
    for packet in 0..4_000u64 {
        // Port 7 on half of the packets, 2 at the second hop always.
        let first = if packet % 2 == 0 { 7 } else { packet % 90 + 10 };
        let digest = encoder.encode(encoder.encode(0, packet, 1, &[first]), packet, 2, &[2]);
        let row = Recorded { packet, digest, hops: 2, plan_version: plan.version(), ..Recorded::default() };
        collector.take(&row, &mut Collected::default()).unwrap();
    }
    let report = collector.report(&Flow::default(), 0).unwrap();
    let Findings::Frequent(hops) = &report.results[0].1 else { panic!() };
    let [first, second] = &hops[..] else { panic!() };
    let [seven] = &first.values[..] else { panic!("{first:?}") };
    assert!(
        seven.value == 7.0 && seven.low < 0.5 && 0.5 < seven.high && seven.high - seven.low < 0.2,
        "{seven:?}"
    );
    assert_eq!(
        second.values[0],
        FrequentValue { value: Number::Exact(2), min: 1.0, max: 1.0, ..second.values[0] }
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn arbitrary_rows_neither_panic_nor_pass_the_limit_and_give_the_same_twice(
        rows in prop::collection::vec((0u64..40, any::<u64>(), any::<u64>(), 0u32..14, any::<u64>(), any::<bool>()), 0..600),
    ) {
        let run = || {
            let (plan, mut collector) = collector(Limits { bytes: MIN_BYTES, idle_ns: Some(1 << 62), ..Limits::default() });
            let mut collected = Collected::default();
            for &(id, packet, digest, hops, time_ns, looped) in &rows {
                let flow = Flow { destination_port: (digest % 3) as u16, ..flow(id) };
                let digest = digest & 0x3_ffff;
                let looped = looped && id == 0;
                let row = Recorded { time_ns, flow, packet, digest, hops, plan_version: plan.version(), looped, ..Recorded::default() };
                let _ = collector.take(&row, &mut collected);
                assert!(collector.bytes() <= MIN_BYTES);
            }
            let counts = collector.counts();
            collector.finish(&mut collected);
            (collected.events, format!("{:?}", collected.reports), counts)
        };
        prop_assert_eq!(run(), run());
    }
}

#[test]
fn a_plan_tried_is_as_accurate_as_it_should_be() {
    use crate::accuracy::{packet_trials, path_trials, quantile_trials, random_path};
    let plan = plan();
    let route = |draws: &mut crate::accuracy::Draws| (flow(1), random_path(draws, 5, 1_000));
    let paths = path_trials(&plan, &Raw, 0, 400, 1, route).unwrap();
    // Five coupons: 5 (1 + 1/2 + ... + 1/5) = 11.4 packets on average, with a standard deviation of 5.
    assert!((paths.mean - 11.42).abs() < 0.75 && paths.wrong + paths.unfinished == 0, "{paths:?}");
    let quantiles = quantile_trials(&plan, &Raw, 1, (20, 4_000, 4), 1).unwrap();
    let [median, tail] = &quantiles[..] else { panic!() };
    // 937 samples a hop: the rank is off by sqrt(1/4 / 937) sqrt(2 / pi) = 1.3 % on average, the value by 1.2
    // sqrt(2 pi) of that.
    assert!((median.samples - 937.5).abs() < 20.0, "{quantiles:?}");
    assert!(
        median.mean_rank_error < 0.02 && median.mean_error < 0.06 && tail.mean_rank_error < 0.006,
        "{quantiles:?}"
    );
    assert!(median.held > 0.88 && tail.held > 0.88, "{quantiles:?}");
    let packets = packet_trials(&plan, &Raw, 2, 20_000, 4, 1).unwrap().unwrap();
    assert!(
        packets.packets > 1_000 && packets.bias.abs() < 0.003 && packets.mean_error < 0.025,
        "{packets:?}"
    );
}

#[test]
fn loops_are_tried_with_packets_that_circle_and_with_others() {
    use crate::accuracy::loop_trials;
    let text = |bits: u32| {
        format!(
            "bits = {bits}\nhops = {{ expected = 5, maximal = 64 }}\n[[query]]\nname = \"loop\"\nvalue = \"switch-id\"\n\
             aggregation = \"loops\"\ntolerance = 0\nbits = {bits}\n"
        )
    };
    let tried =
        |bits| loop_trials(&Plan::open(&text(bits), "q.toml").unwrap(), 0, 4_000, 5, 1).unwrap().unwrap();
    let wide = tried(16);
    assert!(wide.detected > 0.99 && wide.false_reports < 0.002 && wide.mean_hop > 6.0, "{wide:?}");
    // Of four hops after the first, each matches 4 bits by chance with probability 1/16.
    let narrow = tried(4);
    assert!((narrow.false_reports - (1.0 - (15.0f64 / 16.0).powi(4))).abs() < 0.02, "{narrow:?}");
}

#[test]
fn copies_of_one_hop_are_one_sample_of_a_packet() {
    let text = |aggregation: &str, hops: u32| {
        format!(
            "bits = 64\nhops = {{ expected = {hops}, maximal = 8 }}\n[[query]]\nname = \"q\"\nvalue = \"hop-latency\"\naggregation = \
             \"{aggregation}\"\napproximation = {{ epsilon = 0.025 }}\nbits = 64\ncopies = 8\n"
        )
    };
    for (aggregation, hops) in [("quantiles", 1), ("frequent", 1), ("quantiles", 2), ("quantiles", 5)] {
        let plan = Plan::open(&text(aggregation, hops), "q.toml").unwrap();
        let mut collector = Collector::new(&plan, Limits::default(), NoPaths).unwrap();
        let encoder = plan.encoder().unwrap();
        for packet in 0..1_000 {
            let digest = (1..=hops).fold(0, |digest, hop| encoder.encode(digest, packet, hop, &[700]));
            let row = Recorded { packet, digest, hops, plan_version: plan.version(), ..Recorded::default() };
            collector.take(&row, &mut Collected::default()).unwrap();
        }
        let report = collector.report(&Flow::default(), 0).unwrap();
        let samples: Vec<u64> = match &report.results[0].1 {
            Findings::Quantiles(hops) => hops.iter().map(|hop| hop.samples).collect(),
            Findings::Frequent(hops) => hops.iter().map(|hop| hop.samples).collect(),
            _ => panic!(),
        };
        let expected = 1_000.0 * (1.0 - (1.0 - 1.0 / f64::from(hops)).powi(8));
        assert!(
            samples.iter().all(|&found| found <= 1_000 && (found as f64 - expected).abs() < 60.0),
            "{samples:?}"
        );
        if aggregation == "quantiles" {
            let predicted = plan.to_json();
            let predicted = &predicted["queries"][0]["prediction"]["errors"][2];
            assert_eq!(predicted["packets"], 1_000);
            assert!((predicted["samples_per_hop"].as_f64().unwrap() - expected).abs() < 1e-6, "{predicted}");
        }
    }
}

/// Bars that counted one value several times would hold it in 71 of 100 cases.
#[test]
fn bars_hold_with_copies_too() {
    let text = "bits = 64\nhops = { expected = 1, maximal = 8 }\n[[query]]\nname = \"q\"\nvalue = \"hop-latency\"\naggregation = \
                \"quantiles\"\napproximation = { epsilon = 0.01 }\nbits = 64\ncopies = 4\n";
    let plan = Plan::open(text, "q.toml").unwrap();
    let found = crate::accuracy::quantile_trials(&plan, &NoPaths, 0, (400, 100, 1), 3).unwrap();
    assert!(found[0].held > 0.94, "{found:?}");
}

#[test]
fn paths_are_written_as_lines_and_results_as_json() {
    let (plan, mut collector) = collector(Limits::default());
    let mut collected = Collected::default();
    for packet in 0..100 {
        collector.take(&row(&plan, flow(1), packet, &PATH), &mut collected).unwrap();
    }
    collector.take(&row(&plan, flow(2), 1_000, &PATH), &mut collected).unwrap();
    let event = collected.events[0].to_json(&plan);
    assert_eq!((&event["event"], &event["query"]), (&"path-decoded".into(), &"path".into()));
    assert_eq!(event["path"], serde_json::json!(PATH));
    collector.finish(&mut collected);
    // Queries have flows of their own; which is reported first follows from the hashes of its first packet.
    let reports: Vec<_> = collected.reports.iter().map(|report| report.to_json(&plan)).collect();
    let json = reports.iter().find(|json| json["flow"]["flow_id"] == 1).unwrap();
    assert_eq!(json["flow"], serde_json::json!({ "flow_id": 1, "src": 1, "dst": 9 }));
    assert_eq!(json["queries"]["path"]["complete"], true);
    assert_eq!(json["queries"]["latency"]["hops"][0]["quantiles"][0]["quantile"], 0.5);
    let mut writer = PathWriter::new(Vec::new()).unwrap();
    collected.reports.iter().for_each(|report| writer.write(&plan, report).unwrap());
    let text = String::from_utf8(writer.finish().unwrap()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[1].starts_with("1,1,9,0,0,0,0,finished,0,990,path,100,")
            && lines[1].ends_with(",4,4,11 700 3 1000"),
        "{text}"
    );
    assert!(lines.iter().any(|line| line.contains(",path,1,,,4,1,") && line.contains('?')), "{text}");
}

/// The collector's summary of packets that each passed hops with these values, under a plan of one query.
fn summary(value: &str, aggregation: &str, bits: u32, more: &str, packets: &[&[u64]]) -> Summary {
    let text = format!(
        "bits = {bits}\nhops = {{ expected = 3, maximal = 12 }}\n[[query]]\nname = \"q\"\nvalue = \"{value}\"\naggregation = \
         \"{aggregation}\"\nbits = {bits}\nflow = \"all\"\n{more}"
    );
    let plan = Plan::open(&text, "queries.toml").unwrap();
    let mut collector = Collector::new(&plan, Limits::default(), NoPaths).unwrap();
    let encoder = plan.encoder().unwrap();
    for (packet, values) in (0..).zip(packets) {
        let digest =
            (1..).zip(*values).fold(0, |digest, (hop, value)| encoder.encode(digest, packet, hop, &[*value]));
        let hops = values.len() as u32;
        let row = Recorded { packet, digest, hops, plan_version: plan.version(), ..Recorded::default() };
        collector.take(&row, &mut Collected::default()).unwrap();
    }
    let report = collector.report(&Flow::default(), 0).unwrap();
    let Findings::Packets(summary) = &report.results[0].1 else { panic!() };
    *summary
}

#[test]
fn packets_at_the_ceiling_are_counted_for_every_aggregation() {
    let at = |value, aggregation, bits, more, packets: &[&[u64]]| {
        summary(value, aggregation, bits, more, packets).at_ceiling
    };
    let reached: [&[u64]; 3] = [&[1, 2, 3], &[1, 1 << 40, 1], &[1 << 40; 3]];
    assert_eq!(at("queue-bytes", "max", 8, "approximation = { epsilon = 0.02 }\n", &reached), 2);
    assert_eq!(at("queue-bytes", "min", 8, "approximation = { delta = 20 }\n", &reached), 1);
    assert_eq!(at("egress-port", "max", 8, "", &[&[254, 3, 1], &[255, 3, 1], &[300, 3, 1]]), 2);
    assert_eq!(at("utilisation", "sum", 8, "approximation = { epsilon = 0.05 }\n", &reached), 2);
    assert_eq!(at("utilisation", "product", 8, "approximation = { epsilon = 0.05 }\n", &reached), 2);
    // Here one value is more than a sum takes, long before the last code.
    assert_eq!(at("port-bytes", "sum", 12, "approximation = { epsilon = 0.05 }\n", &reached), 2);
    // 2 bits count up to 3 hops; on paths of 3 that is all of them.
    let above: [&[u64]; 2] = [&[9, 9, 9], &[9, 9, 1]];
    assert_eq!(at("utilisation", "count-above", 2, "threshold = 5\n", &above), 0);
    let above: [&[u64]; 3] = [&[9, 9, 9, 9], &[9, 9, 1, 9], &[9, 1, 1, 1]];
    assert_eq!(at("utilisation", "count-above", 2, "threshold = 5\n", &above), 2);
}

#[test]
fn nothing_is_marked_where_a_logarithmic_grid_shows_it_as_one() {
    let packets: [&[u64]; 3] = [&[0, 0, 0], &[1, 0, 0], &[0, 700, 0]];
    let empty = summary(
        "queue-bytes",
        "max",
        8,
        "approximation = { epsilon = 0.1, rounding = \"nearest\" }\n",
        &packets,
    );
    assert_eq!((empty.at_floor, empty.at_ceiling, empty.smallest.get()), (2, 0, 1.0));
    let exact = summary("queue-bytes", "max", 10, "approximation = \"exact\"\n", &packets);
    assert_eq!((exact.at_floor, exact.smallest.get(), exact.largest.get()), (0, 0.0, 700.0));
    let sums = summary("queue-bytes", "sum", 8, "", &packets);
    assert_eq!((sums.at_floor, sums.smallest.get()), (0, 0.0));
}

/// OpenFlow's ids of datapaths, and times in nanoseconds since 1970, are beyond 2^53.
#[test]
fn exact_values_of_64_bits_are_not_rounded() {
    let ids = [0x1000_5254_00ab_cdee_u64, 0x1000_5254_00ab_cdef, u64::MAX - 1];
    let report = |value: &str, aggregation: &str, ids: &[u64]| {
        let text = format!(
            "bits = 64\nhops = {{ expected = 1, maximal = 4 }}\n[[query]]\nname = \"q\"\nvalue = \"{value}\"\naggregation = \
             \"{aggregation}\"\napproximation = \"exact\"\nbits = 64\n"
        );
        let plan = Plan::open(&text, "q.toml").unwrap();
        let mut collector = Collector::new(&plan, Limits::default(), NoPaths).unwrap();
        for (packet, &id) in (0..).zip(ids) {
            let digest = plan.encoder().unwrap().encode(0, packet, 1, &[id]);
            let row =
                Recorded { packet, digest, hops: 1, plan_version: plan.version(), ..Recorded::default() };
            collector.take(&row, &mut Collected::default()).unwrap();
        }
        collector.report(&Flow::default(), 0).unwrap().to_json(&plan)["queries"]["q"].clone()
    };
    let found = report("switch-id", "frequent", &ids)["hops"][0]["values"].clone();
    let mut shown: Vec<u64> = (0..3).map(|n| found[n]["value"].as_u64().unwrap()).collect();
    shown.sort_unstable();
    assert_eq!(shown, ids);
    assert!((0..3).all(|n| found[n].get("at_ceiling").is_none()), "{found}");
    for aggregation in ["max", "min"] {
        let found = report("switch-id", aggregation, &ids[..2]);
        let numbers = ["smallest", "largest", "last"].map(|key| found[key].as_u64().unwrap());
        assert_eq!(numbers, [ids[0], ids[1], ids[1]]);
    }
    let times: Vec<u64> = (0..1_000).map(|n| 1_795_923_066_966_400_545 + n).collect();
    let found = report("timestamp", "quantiles", &times)["hops"][0]["quantiles"][0].clone();
    let (low, high) = (found["low"].as_u64().unwrap(), found["high"].as_u64().unwrap());
    assert!(times[400] <= low && low < high && high <= times[600], "{found}");
}

#[test]
fn names_at_hops_come_back_as_they_were_written() {
    let text = "bits = 8\nhops = { expected = 2, maximal = 4 }\n[[query]]\nname = \"switches\"\nvalue = \"switch-id\"\naggregation = \"frequent\"\nbits = 8\n";
    let plan = Plan::open(text, "queries.toml").unwrap();
    let mut collector = Collector::new(&plan, Limits::default(), NoPaths).unwrap();
    let encoder = plan.encoder().unwrap();
    for packet in 0..2_000u64 {
        let digest = encoder.encode(encoder.encode(0, packet, 1, &[173]), packet, 2, &[260]);
        let row = Recorded { packet, digest, hops: 2, plan_version: plan.version(), ..Recorded::default() };
        collector.take(&row, &mut Collected::default()).unwrap();
    }
    let hops =
        collector.report(&Flow::default(), 0).unwrap().to_json(&plan)["queries"]["switches"]["hops"].clone();
    assert_eq!(hops[0]["values"][0]["value"], serde_json::json!(173));
    assert!(hops[0]["values"][0].get("at_ceiling").is_none(), "{hops}");
    // 8 bits end at 255, which stands for all beyond.
    assert_eq!(
        (&hops[1]["values"][0]["value"], &hops[1]["values"][0]["at_ceiling"]),
        (&255.into(), &true.into())
    );
}

#[test]
fn every_value_of_the_share_is_listed_on_paths_longer_than_expected() {
    let text = "bits = 16\nhops = { expected = 3, maximal = 12 }\n[[query]]\nname = \"who\"\nvalue = \"switch-id\"\naggregation = \
                \"frequent\"\nshare = 0.1\nspace = 792\napproximation = \"exact\"\nbits = 16\n";
    let plan = Plan::new(plan::read(text, "queries.toml").unwrap()).unwrap();
    let mut collector = Collector::new(&plan, Limits::default(), NoPaths).unwrap();
    for packet in 0..12_000 {
        // Ten values in turns at each hop.
        let row = Recorded {
            packet,
            digest: packet % 10,
            hops: 12,
            plan_version: plan.version(),
            ..Recorded::default()
        };
        collector.take(&row, &mut Collected::default()).unwrap();
    }
    let report = collector.report(&Flow::default(), 0).unwrap();
    let [(0, Findings::Frequent(hops))] = &report.results[..] else { panic!("{:?}", report.results) };
    // Samples at random: a value with a tenth of all has a little less or more of a hop's.
    assert!(hops.iter().all(|hop| hop.values.iter().all(|value| value.min == value.max)), "{hops:?}");
    assert_eq!(hops.iter().map(|hop| hop.samples).sum::<u64>(), 12_000);
}
