use super::*;
use crate::congestion::window::tests::situations::{acked, loss, mss, published, window};
use crate::parameters::Nothing;
use crate::units::Time;

fn bic(w_max: u64) -> Bic {
    Bic { p: published::<BicParameters>(), w_max, counted: 0, grown: 0.0 }
}

#[test]
fn the_search_is_fast_far_from_the_last_loss_and_slow_near_it() {
    let at = |w_max, window| bic(w_max).count(window);
    // A quarter of the distance of 100 is 25, more than 16: 16 segments per round trip.
    assert_eq!(at(200, 100), 100 / 16);
    // A quarter of 40 is 10.
    assert_eq!(at(200, 160), 16);
    // The last four segments take five round trips.
    assert_eq!((at(200, 196), at(200, 199), at(200, 203)), (245, 248, 253));
    // Beyond: three per segment of distance, then 16 per round trip.
    assert_eq!((at(200, 210), at(200, 300)), (63, 18));
    assert_eq!((at(200, 10), at(0, 100)), (10, 6));
}

#[test]
fn a_loss_leaves_four_fifths_and_a_second_one_below_it_gives_way() {
    let mut bic = bic(0);
    let window =
        |segments| CongestionWindow { cwnd: segments * mss(), ..super::super::tests::situations::window() };
    let loss = super::super::tests::situations::loss(0);
    assert_eq!(bic.on_congestion(&loss, &window(100)), 80 * mss());
    assert_eq!(bic.w_max, 100);
    assert_eq!(bic.on_congestion(&loss, &window(90)), 72 * mss());
    // Between 72 and 90.
    assert_eq!(bic.w_max, 81);
    assert_eq!(bic.on_congestion(&loss, &window(10)), 5 * mss());
}

#[test]
fn in_ns_3_35_the_threshold_is_in_bytes_nothing_is_forgotten_and_every_acknowledgement_adds_a_segment() {
    let p = BicParameters::read(&mut Parameters::new(&mut Nothing::default()), Profile::Ns3_35);
    let mut bic = Bic { p, w_max: 0, counted: 0, grown: 0.0 };
    let window = |segments| CongestionWindow { cwnd: segments * mss(), ..window() };
    let loss = |in_flight| Congestion { in_flight: in_flight * mss(), ..loss(0) };
    // 101 * 0.8 segments.
    assert_eq!(bic.on_congestion(&loss(90), &window(101)), 80_800);
    // Below 14 segments half of the bytes in flight, but at least two segments.
    assert_eq!((bic.on_congestion(&loss(9), &window(13)), bic.w_max), (4_500, 10));
    assert_eq!(bic.on_congestion(&loss(1), &window(13)), 2 * mss());
    let w_max = bic.w_max;
    let timeout = Change {
        now: Time::ZERO,
        from: State::Open,
        to: State::Loss,
        next: 0,
        cursor: 0,
        in_flight: 0,
        delivered: 0,
        rtt: None,
    };
    bic.on_state(&timeout, &mut window(1));
    assert_eq!(bic.w_max, w_max);
    // Slow start: one segment, whatever is acknowledged; at the threshold the others count.
    let mut slow = CongestionWindow { ssthresh: 12 * mss(), ..window(10) };
    for (segments, cwnd, counted) in [(3, 11, 0), (3, 12, 2)] {
        bic.on_ack(&Acked { segments, ..acked(1) }, &mut slow);
        assert_eq!((slow.cwnd / mss(), bic.counted), (cwnd, counted));
    }
}
