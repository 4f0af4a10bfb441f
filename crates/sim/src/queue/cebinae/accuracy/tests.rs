use super::*;

fn trial(stages: u32, slots: u32) -> CacheTrial {
    CacheTrial { kind: CacheKind::FirstCome, stages, slots, window: Time::from_ms(10), slack: 0.1 }
}

#[test]
fn a_largest_flow_that_finds_its_slot_taken_is_missed_and_another_is_taken_for_it() {
    // One slot: flow 1 has it, flow 2 is the largest.
    let found = trial(1, 1).judge(&[1, 2, 2, 2, 3]);
    let expected = CacheErrors { false_negatives: 1.0, false_positives: 0.5, flows: 3.0, packets: 5.0 };
    assert_eq!(found, expected);
    // Two stages of it: flow 2 has the second.
    assert_eq!(trial(2, 1).judge(&[1, 2, 2, 2, 3]).false_negatives, 0.0);
}

#[test]
fn flows_within_the_slack_of_the_largest_are_top() {
    let mut packets = vec![1; 20];
    packets.extend([2; 19]);
    packets.extend([3; 18]);
    let cache = FlowCache::new(CacheKind::Exact, 1, 1);
    let mut exact = cache.clone();
    packets.iter().for_each(|&flow| exact.add(flow, PACKET_BYTES, |stage| own_hash(flow, stage)));
    // Strictly more than nine tenths: 18 of 20 are not.
    assert_eq!(trial(1, 1).top(exact.counts()), [1, 2]);
}

#[test]
fn exact_counts_make_no_error_and_small_caches_make_more() {
    let exact = CacheTrial { kind: CacheKind::Exact, ..trial(1, 1) }.run(5, 1);
    assert_eq!((exact.false_negatives, exact.false_positives), (0.0, 0.0));
    let missed = |stages, slots| trial(stages, slots).run(5, 1).false_negatives;
    assert!(missed(1, 16) > missed(4, 4096), "{} {}", missed(1, 16), missed(4, 4096));
    assert_eq!(missed(4, 4096), 0.0);
}

#[test]
fn the_trace_is_the_same_for_the_same_seed() {
    let draw = |seed| packets(0.001, &mut RandomStream::new(seed, "window0"));
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
    // 0.3 million packets a second, within a factor of two.
    let count = packets(0.01, &mut RandomStream::new(1, "window0")).len();
    assert!((1_500..6_000).contains(&count), "{count}");
}
