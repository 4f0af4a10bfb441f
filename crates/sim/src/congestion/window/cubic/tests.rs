use super::*;
use crate::congestion::window::tests::situations::{acked, loss, mss, published, window};
use crate::engine::random::RandomStream;

/// A law after a loss with 100 segments, with acknowledgements one millisecond apart.
struct Sender {
    law: Cubic,
    window: CongestionWindow,
    now: Time,
    acknowledged: u64,
}

impl Sender {
    fn new() -> Sender {
        let p = CubicParameters { reno_friendly: false, ..published() };
        let mut law = p.start(&super::super::tests::situations::flow());
        let mut window = CongestionWindow { cwnd: 100 * mss(), ..window() };
        window.ssthresh = law.on_congestion(&loss(0), &window);
        window.cwnd = window.ssthresh;
        Sender { law, window, now: Time::ZERO, acknowledged: 0 }
    }

    fn acks(&mut self, count: u64, window_limited: bool) {
        for _ in 0..count {
            self.now += Time::from_ms(1);
            self.acknowledged += 1;
            let ack = Acked { now: self.now, window_limited, ..acked(self.acknowledged) };
            self.law.on_feedback(&ack, &mut self.window);
            self.law.on_ack(&ack, &mut self.window);
        }
    }
}

#[test]
fn acknowledgements_that_do_not_find_the_window_full_stop_the_clock_of_the_epoch() {
    let mut steady = Sender::new();
    steady.acks(6_000, true);
    let mut random = RandomStream::new(1, "pauses");
    for _ in 0..50 {
        let mut paused = Sender::new();
        let mut left = 6_000;
        while left > 0 {
            let used = (1 + random.below(500)).min(left);
            paused.acks(used, true);
            left -= used;
            if random.below(2) == 0 {
                paused.acks(random.below(2_000), false);
            } else {
                // A pause without acknowledgements; then a packet is sent.
                paused.now += Time::from_ms(random.below(100_000));
                paused.law.on_resume(paused.now);
            }
        }
        assert_eq!(paused.window, steady.window);
    }
    assert!(steady.window.cwnd > 100 * mss(), "{:?}", steady.window);
}

#[test]
fn the_window_is_on_its_cubic_six_seconds_after_the_loss() {
    let mut sender = Sender::new();
    for second in 1..=6 {
        sender.acks(1_000, true);
        // 0.4 (t - K)^3 + 100, K = cbrt(30 / 0.4) = 4.217 s.
        let expected = 0.4 * (f64::from(second) - 75f64.cbrt()).powi(3) + 100.0;
        let found = sender.window.cwnd as f64 / mss() as f64;
        assert!((found - expected).abs() <= 1.0, "{second} s: {found} and {expected}");
    }
}

#[test]
fn what_was_acknowledged_at_the_plateau_does_not_make_the_window_jump_later() {
    // At the plateau thousands are acknowledged without growth; beyond it the window remains below its cubic.
    let mut sender = Sender::new();
    sender.acks(4_000, true);
    for _ in 0..3_000 {
        sender.acks(1, true);
        let target = 0.4 * (sender.now.as_seconds() + 0.02 - 75f64.cbrt()).powi(3) + 100.0;
        let found = sender.window.cwnd as f64 / mss() as f64;
        assert!(found <= target + 0.9, "{}: {found} and {target}", sender.now);
    }
}

/// How many segments the last round of slow start of a lone flow has, whose acknowledgements come `apart` and the round trip of 400 us
/// apart. Rounds follow each other within the gap that ends a train, and are trains of their own.
fn last_round_of_slow_start(paced: bool, apart: impl Fn(u64) -> Time) -> u64 {
    let mut law = published::<CubicParameters>().start(&super::super::tests::situations::flow());
    let mut window = CongestionWindow { cwnd: 10 * mss(), paced, ..window() };
    let (mut acknowledged, rtt) = (0, Time::from_us(400));
    for round in 1..=10 {
        let segments = window.segments();
        for segment in 0..segments {
            acknowledged += 1;
            let now = Time(rtt.0 * round + apart(segments).0 * segment);
            // Before something is sent for it.
            let next = acked(acknowledged - 1 + segments).acknowledged;
            let ack = Acked { now, rtt: Some(rtt), next, window_limited: true, ..acked(acknowledged) };
            law.on_feedback(&ack, &mut window);
            law.on_ack(&ack, &mut window);
        }
        if window.cwnd >= window.ssthresh {
            return segments;
        }
        assert_eq!(window.segments(), 2 * segments);
    }
    u64::MAX
}

/// On a fast path acknowledgements come 120 ns apart: the train of a round lasts half of the round trip from 1 667 segments on.
#[test]
fn slow_start_on_a_fast_path_ends_when_the_train_of_a_round_is_half_of_the_round_trip() {
    assert_eq!(last_round_of_slow_start(false, |_| Time::from_ns(120)), 2560);
}

/// Pacing at twice the window a round trip makes every train half of a round trip: it has to be a whole one, as in Linux.
#[test]
fn slow_start_of_a_paced_flow_ends_when_the_train_of_a_round_is_a_round_trip() {
    let half = |segments: u64| Time(Time::from_us(210).0 / segments);
    assert_eq!(last_round_of_slow_start(true, half), u64::MAX);
    assert_eq!(last_round_of_slow_start(false, half), 40);
    assert_eq!(last_round_of_slow_start(true, |_| Time::from_ns(120)), 5120);
}

/// Whether slow start ends within 40 acknowledgements 3 ms apart, of which the RTTs in ms are those given by their number; with
/// `first_alone` a round ends with the first.
fn slow_start_ends(hystart: HystartParameters, first_alone: bool, rtt: impl Fn(u64) -> u64) -> bool {
    let p = CubicParameters { hystart, ..published() };
    let mut law = p.start(&super::super::tests::situations::flow());
    let mut window = CongestionWindow { cwnd: 40 * mss(), ..window() };
    for number in 0..40 {
        let next = acked(if first_alone && number == 0 { 1 } else { 100 }).acknowledged;
        let (now, rtt) = (Time::from_ms(100 + 3 * number), Some(Time::from_ms(rtt(number))));
        law.on_feedback(&Acked { now, rtt, next, ..acked(1 + number) }, &mut window);
    }
    window.ssthresh == window.cwnd
}

/// The queue of a flow that ends drains within a round: the RTT falls from 80 to 50 ms, and nothing of this flow waits. Linux since 5.8
/// takes the minimum of the round for what it is then; with the first eight samples alone, as in ns-3.35, slow start ends.
#[test]
fn slow_start_does_not_end_because_the_round_trip_time_falls() {
    let whole = published::<CubicParameters>().hystart;
    let first = HystartParameters { whole_round: false, ..whole };
    let falls = |number| if number < 20 { 80 } else { 50 };
    let ends = [whole, first].map(|hystart| slow_start_ends(hystart, false, falls));
    assert_eq!(ends, [false, true]);
    // It ends in both where a whole round has RTTs above the minimum by more than an eighth.
    let rises = |number| if number == 0 { 50 } else { 60 };
    let ends = [whole, first].map(|hystart| slow_start_ends(hystart, true, rises));
    assert_eq!(ends, [true, true]);
}

/// RFC 9438 §4.3: Reno's window grows by alpha segments a round trip until it has the window of the last loss, then by one.
#[test]
fn renos_window_grows_by_a_segment_once_it_has_the_window_of_the_last_loss() {
    let mut sender = Sender::new();
    sender.law.p.reno_friendly = true;
    let alpha = 3.0 * 0.3 / 1.7;
    sender.acks(1, true);
    for _ in 0..10_000 {
        let (before, cwnd) = (sender.law.w_est, sender.window.cwnd as f64);
        sender.acks(1, true);
        let step = (sender.law.w_est - before) * cwnd / mss() as f64;
        let expected = if before >= 100.0 { 1.0 } else { alpha };
        assert!((step - expected).abs() < 1e-6, "{before} {step}");
    }
    assert!(sender.law.w_est > 100.0);
}
