//! Tests of `prr`.

use super::*;

#[test]
fn the_window_falls_to_the_threshold_in_proportion_to_what_is_delivered() {
    // RFC 6937 §4, first example in spirit: 20 segments of 1000 B, the first is lost, ssthresh 10.
    let mut prr = Prr::new(20_000);
    let mut pipe = 16_000; // One lost, three arrived.
    let mut sent = Vec::new();
    for ack in 0..16 {
        let delivered = if ack == 0 { 3_000 } else { 1_000 };
        pipe -= if ack == 0 { 0 } else { 1_000 };
        let cwnd = prr.window(
            &Step { delivered, waiting: 0, pipe, ssthresh: 10_000, bound: Bound::SlowStart },
            1_000,
            false,
        );
        let count = (cwnd - pipe) / 1_000;
        prr.sent(count * 1_000);
        pipe += count * 1_000;
        sent.push(count);
    }
    // Three delivered are worth one and a half, then every second acknowledgement lets one out; one for one at the end.
    assert_eq!(sent, [1, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1]);
    assert_eq!(pipe, 10_000);
}

#[test]
fn below_the_threshold_slow_start_adds_a_segment_per_acknowledgement() {
    let window = |bound| {
        let mut prr = Prr::new(20_000);
        let step = Step { delivered: 1_000, waiting: 0, pipe: 4_000, ssthresh: 10_000, bound };
        prr.window(&step, 1_000, false);
        prr.sent(1_000);
        prr.window(&step, 1_000, false)
    };
    assert_eq!((window(Bound::SlowStart), window(Bound::Conservative)), (6_000, 5_000));
    // More was sent than delivered: whether one may still leave for each that arrives.
    let after_more = |bound| {
        let mut prr = Prr::new(20_000);
        prr.sent(5_000);
        let step = Step { delivered: 1_000, waiting: 0, pipe: 4_000, ssthresh: 10_000, bound };
        (prr.window(&step, 1_000, false) - 4_000) / 1_000
    };
    let bounds = [Bound::SlowStart, Bound::AtLeastDelivered, Bound::Conservative, Bound::Delivered];
    assert_eq!(bounds.map(after_more), [2, 1, 0, 1]);
}

#[test]
fn in_32_bits_a_large_window_sends_a_few_segments_and_then_waits_for_the_threshold() {
    // 543 segments of 1440 B in flight, threshold half: 1440 k * 390 960 passes 2^32 at k = 7.6, worth 3.8 segments.
    let mut prr = Prr::new(543 * 1440);
    let mut pipe = 543 * 1440;
    let mut sent = 0;
    for _ in 0..100 {
        let step = Step { delivered: 1440, waiting: 0, pipe, ssthresh: 543 * 720, bound: Bound::Delivered };
        let count = (prr.window(&step, 1440, true) - pipe) / 1440;
        prr.sent(count * 1440);
        sent += count;
        pipe -= 2 * 1440;
    }
    assert_eq!(sent, 3);
}

#[test]
fn what_waits_for_the_nic_is_let_out_once_and_not_forgotten() {
    // Two acknowledgements of a segment each let four segments leave below the threshold, whether the NIC takes two between
    // them, one, or none.
    let left_after = |taken: u64| {
        let mut prr = Prr::new(100_000);
        let step = |waiting, pipe| Step {
            delivered: 1_000,
            waiting,
            pipe,
            ssthresh: 50_000,
            bound: Bound::SlowStart,
        };
        prr.sent(1_000);
        let first = prr.window(&step(0, 1_000), 1_000, false) - 1_000;
        prr.sent(taken);
        let pipe = 1_000 + taken - 1_000;
        first.min(taken) + prr.window(&step(first - taken, pipe), 1_000, false) - pipe
    };
    assert_eq!([0, 1_000, 2_000].map(left_after), [4_000; 3]);
    // Nor is it let out twice in proportion, or by the conservative bound.
    let mut prr = Prr::new(20_000);
    let step =
        Step { delivered: 4_000, waiting: 0, pipe: 16_000, ssthresh: 10_000, bound: Bound::Conservative };
    assert_eq!(prr.window(&step, 1_000, false), 18_000);
    assert_eq!(prr.window(&Step { delivered: 0, waiting: 2_000, ..step }, 1_000, false), 18_000);
    let mut prr = Prr::new(20_000);
    let step = Step { delivered: 2_000, pipe: 4_000, ..step };
    assert_eq!(prr.window(&step, 1_000, false), 6_000);
    assert_eq!(prr.window(&Step { delivered: 0, waiting: 2_000, ..step }, 1_000, false), 6_000);
}
