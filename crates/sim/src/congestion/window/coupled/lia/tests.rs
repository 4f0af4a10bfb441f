use super::*;
use crate::units::Time;

fn subflow(window: u64, rtt_ms: u64) -> Subflow {
    Subflow { window, rtt: Time::from_ms(rtt_ms), between_losses: 0 }
}

#[test]
fn alpha_of_like_subflows_is_one_over_their_number() {
    for n in 1..9 {
        let found = alpha(&vec![subflow(50_000, 30); n]);
        assert!((found - 1.0 / n as f64).abs() < 1e-12, "{n}: {found}");
    }
}

#[test]
fn alpha_of_unlike_subflows_is_as_computed_by_hand() {
    // Windows 10 and 20, round trips 0.1 and 0.2 s: 30 * max(1000, 500) / (100 + 100)^2.
    let found = alpha(&[subflow(10, 100), subflow(20, 200)]);
    assert!((found - 30.0 * 1000.0 / 40_000.0).abs() < 1e-9, "{found}");
}

#[test]
fn no_subflow_grows_faster_than_a_tcp_alone_would() {
    // The path with the small window has the large rate; alpha / total would exceed Reno for the other
    // one.
    let mut law = Lia {
        growth: Growth { by_bytes: true, limit: 2 },
        alpha: 9.0,
        total: 20_000.0,
        credit: Credit::default(),
    };
    let mut w = CongestionWindow { cwnd: 10_000, ssthresh: 1_000, pacing: None, paced: false, mss: 1_000 };
    law.on_ack(&crate::congestion::window::tests::situations::acked(1), &mut w);
    assert_eq!(w.cwnd, 10_100);
}
