use super::*;
use crate::congestion::window::tests::situations::{acked, loss};
use crate::units::Time;

fn subflow(window: u64, between_losses: u64) -> Subflow {
    Subflow { window, rtt: Time::from_ms(100), between_losses }
}

#[test]
fn window_moves_from_the_largest_to_the_best() {
    let subflows = [subflow(10_000, 900), subflow(30_000, 100), subflow(20_000, 200)];
    let alphas: Vec<f64> = (0..3).map(|own| alpha(&subflows, own)).collect();
    assert_eq!(alphas, [1.0 / 3.0, -1.0 / 3.0, 0.0]);
    // The best is the largest: nothing moves.
    let subflows = [subflow(10_000, 100), subflow(30_000, 900)];
    assert_eq!([alpha(&subflows, 0), alpha(&subflows, 1)], [0.0, 0.0]);
    // Two have the largest windows, two others are best.
    let subflows = [subflow(30_000, 1), subflow(30_000, 1), subflow(9_000, 5), subflow(8_000, 5)];
    let alphas: Vec<f64> = (0..4).map(|own| alpha(&subflows, own)).collect();
    assert_eq!(alphas, [-0.125, -0.125, 0.125, 0.125]);
}

#[test]
fn bytes_between_losses_are_those_of_the_longer_of_two_stretches() {
    let mut law = OliaParameters { growth: Growth { by_bytes: true, limit: 2 } }
        .start(&crate::congestion::window::tests::situations::flow());
    let mut w = crate::congestion::window::tests::situations::window();
    (0..5).for_each(|segment| law.on_feedback(&acked(segment), &mut w));
    assert_eq!(law.between_losses(), 5_000);
    law.on_congestion(&loss(10_000), &w);
    law.on_feedback(&acked(6), &mut w);
    assert_eq!(law.between_losses(), 5_000);
    law.on_congestion(&loss(10_000), &w);
    assert_eq!(law.between_losses(), 1_000);
}

#[test]
fn an_increment_is_as_computed_by_hand() {
    // Two subflows of 10 kB at 100 ms: (1e4 / 0.01) / (2e5)^2 = 1 / 40 kB, so 25 B for a segment of 1 kB;
    // alpha is 0.
    let mut law = OliaParameters { growth: Growth { by_bytes: true, limit: 2 } }
        .start(&crate::congestion::window::tests::situations::flow());
    let mut w = CongestionWindow { cwnd: 10_000, ssthresh: 1_000, pacing: None, paced: false, mss: 1_000 };
    law.couple(&[subflow(10_000, 7), subflow(10_000, 7)], 0);
    law.on_ack(&acked(1), &mut w);
    assert!((10_024..=10_025).contains(&w.cwnd), "{}", w.cwnd);
}
