use super::super::tests::situations::{acked, loss, published, window};
use super::super::{FlowPath, WindowContext, WindowController, WindowParameters};
use super::*;
use crate::engine::random::RandomStream;

const MSS: u64 = 1000;

fn subflows(windows: &[u64], rtts_ms: &[u64]) -> Vec<Subflow> {
    let of = |(&window, &rtt): (&u64, &u64)| Subflow {
        window: window * MSS,
        rtt: Time::from_ms(rtt),
        between_losses: 0,
    };
    windows.iter().zip(rtts_ms).map(of).collect()
}

/// Growth of the sum, in segments per round trip, of n equal subflows of `each` segments.
fn growth<P: WindowParameters>(n: usize, each: u64) -> f64 {
    let flow =
        WindowContext { initial: 10 * MSS, mss: MSS, packet: MSS, random: 0, path: FlowPath::default() };
    let mut laws: Vec<P::State> = (0..n).map(|_| published::<P>().start(&flow)).collect();
    let mut windows = vec![window(); n];
    windows.iter_mut().for_each(|w| (w.cwnd, w.ssthresh) = (each * MSS, MSS));
    let rounds = 50;
    let before: u64 = windows.iter().map(|w| w.cwnd).sum();
    for _ in 0..rounds {
        let seen: Vec<Subflow> = windows
            .iter()
            .map(|w| Subflow { window: w.cwnd, rtt: Time::from_ms(20), between_losses: 5 * MSS })
            .collect();
        for (own, (law, w)) in laws.iter_mut().zip(&mut windows).enumerate() {
            for segment in 0..w.cwnd / MSS {
                law.couple(&seen, own);
                law.on_ack(&acked(segment), w);
            }
        }
    }
    let after: u64 = windows.iter().map(|w| w.cwnd).sum();
    (after - before) as f64 / MSS as f64 / rounds as f64
}

#[test]
fn n_equal_subflows_under_lia_grow_by_one_nth_of_a_segment_in_total() {
    // alpha = 1 / n: each grows by 1 / n^2 of a segment per round trip.
    for n in [1usize, 2, 4, 8] {
        let found = growth::<lia::LiaParameters>(n, 100);
        assert!((found - 1.0 / n as f64).abs() < 0.03, "{n} subflows grow by {found}");
    }
}

#[test]
fn n_subflows_under_lia_have_about_the_window_of_one_reno_at_the_same_rate_of_loss() {
    // A loss halves one n-th of the sum, which grows by one n-th of a segment: the n cancels. Windows are not
    // always equal, and alpha depends on the largest: with more subflows the sum is slightly larger.
    let sums = [1usize, 2, 4].map(|n| mean_sum::<lia::LiaParameters>(n, 0.001));
    let reno = mean_sum::<super::super::newreno::NewRenoParameters>(1, 0.001);
    println!("{sums:?} and {reno} segments");
    for sum in sums {
        assert!((0.95..1.25).contains(&(sum / reno)), "{sums:?} and {reno}");
    }
}

/// Mean number of segments in the windows of n equal subflows if this share of segments is lost.
fn mean_sum<P: WindowParameters>(n: usize, share: f64) -> f64 {
    let flow =
        WindowContext { initial: 10 * MSS, mss: MSS, packet: MSS, random: 0, path: FlowPath::default() };
    let mut laws: Vec<P::State> = (0..n).map(|_| published::<P>().start(&flow)).collect();
    let mut windows = vec![window(); n];
    windows.iter_mut().for_each(|w| (w.cwnd, w.ssthresh) = (40 * MSS / n as u64, MSS));
    let (mut random, mut total, rounds) = (RandomStream::new(7, "losses"), 0, 60_000);
    for _ in 0..rounds {
        for own in 0..n {
            let segments = windows[own].cwnd / MSS;
            let lost = (0..segments).any(|_| random.uniform() < share);
            for segment in 0..segments {
                let seen: Vec<Subflow> = windows
                    .iter()
                    .map(|w| Subflow { window: w.cwnd, rtt: Time::from_ms(20), between_losses: 0 })
                    .collect();
                laws[own].couple(&seen, own);
                laws[own].on_ack(&acked(segment), &mut windows[own]);
            }
            if lost {
                let flight = loss(windows[own].cwnd);
                windows[own].ssthresh = laws[own].on_congestion(&flight, &windows[own]);
                windows[own].cwnd = windows[own].ssthresh;
            }
        }
        total += windows.iter().map(|w| w.cwnd).sum::<u64>();
    }
    total as f64 / MSS as f64 / f64::from(rounds)
}

#[test]
fn all_couplings_of_one_subflow_are_reno() {
    for found in [
        growth::<lia::LiaParameters>(1, 100),
        growth::<olia::OliaParameters>(1, 100),
        growth::<balia::BaliaParameters>(1, 100),
    ] {
        assert!((found - 0.99).abs() < 0.02, "{found} segments per round trip");
    }
}

#[test]
fn a_path_in_slow_start_is_not_coupled() {
    let flow =
        WindowContext { initial: 10 * MSS, mss: MSS, packet: MSS, random: 0, path: FlowPath::default() };
    let mut law = published::<lia::LiaParameters>().start(&flow);
    let mut w = window();
    law.couple(&subflows(&[10, 1000], &[20, 20]), 0);
    law.on_ack(&acked(1), &mut w);
    assert_eq!(w.cwnd, 11 * MSS);
}

#[test]
fn what_is_left_of_a_byte_counts_later_and_no_window_falls_below_a_segment() {
    let (mut credit, mut w) = (Credit::default(), window());
    (0..4).for_each(|_| credit.add(0.25, &mut w));
    assert_eq!(w.cwnd, 10 * MSS + 1);
    credit.add(-0.5, &mut w);
    assert_eq!(w.cwnd, 10 * MSS);
    credit.add(-1e9, &mut w);
    assert_eq!(w.cwnd, MSS);
}
