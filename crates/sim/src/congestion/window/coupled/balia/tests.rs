use super::*;
use crate::congestion::window::tests::situations::{acked, flow, loss};
use crate::units::Time;

fn law() -> Balia {
    BaliaParameters { growth: Growth { by_bytes: true, limit: 2 } }.start(&flow())
}

fn window(cwnd: u64) -> CongestionWindow {
    CongestionWindow { cwnd, ssthresh: 1_000, pacing: None, paced: false, mss: 1_000 }
}

#[test]
fn growth_and_cut_of_the_slower_of_two_are_as_computed_by_hand() {
    // x = 1e5 and 2e5 B/s, a = 2: 1e5 / (0.1 * 9e10) = 1 / 90 kB, times 1.5 times 1.2: 20 B for a segment
    // of 1 kB.
    let subflow = |window| Subflow { window, rtt: Time::from_ms(100), between_losses: 0 };
    let (mut law, mut w) = (law(), window(10_000));
    law.couple(&[subflow(10_000), subflow(20_000)], 0);
    law.on_ack(&acked(1), &mut w);
    assert!((10_019..=10_020).contains(&w.cwnd), "{}", w.cwnd);
    // The cut is at most three quarters.
    assert_eq!(law.on_congestion(&loss(40_000), &window(40_000)), 10_000);
    law.couple(&[subflow(10_000), subflow(20_000)], 1);
    assert_eq!(law.on_congestion(&loss(40_000), &window(40_000)), 20_000, "the fastest is cut by half");
}
