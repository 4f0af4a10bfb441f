use super::*;
use crate::congestion::window::tests::situations::{acked, mss, published, window};

#[test]
fn alpha_follows_the_share_of_marked_bytes_once_per_window_and_sets_the_cut() {
    let p = DctcpParameters { initial_alpha: 0.0, ..published() };
    let mut dctcp = p.start(&super::super::tests::situations::flow());
    let mut w = window();
    // The first acknowledgement ends a window that contains only itself.
    dctcp.on_feedback(&Acked { next: 11 * mss(), ..acked(1) }, &mut w);
    for segment in 2..=11 {
        let marked = segment % 2 == 0;
        dctcp.on_feedback(&Acked { marked, next: 21 * mss(), ..acked(segment) }, &mut w);
    }
    assert_eq!(dctcp.alpha, 0.0);
    dctcp.on_feedback(&Acked { next: 22 * mss(), ..acked(12) }, &mut w);
    // Five of eleven.
    assert!((dctcp.alpha - 5.0 / 11.0 / 16.0).abs() < 1e-12);
    dctcp.alpha = 0.5;
    w.cwnd = 100 * mss();
    let mark = Congestion { by: Signal::Mark, ..super::super::tests::situations::loss(0) };
    assert_eq!(dctcp.on_congestion(&mark, &w), 75 * mss());
    assert_eq!(dctcp.on_congestion(&super::super::tests::situations::loss(80 * mss()), &w), 40 * mss());
}
