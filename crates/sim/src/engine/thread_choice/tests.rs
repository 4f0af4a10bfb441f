use super::*;

/// Simulates a machine on which all threads are `ratio(t)` times as fast as one, for `seconds`; a round takes
/// one thread 50 us. Returns the mean speed and the choice.
fn run(seconds: f64, ratio: impl Fn(f64) -> f64) -> (f64, ThreadChoice) {
    let mut choice = ThreadChoice::default();
    let (mut now, mut work) = (0.0, 0u64);
    while now < seconds {
        let mode = choice.next(Duration::from_secs_f64(now), work);
        let speed = if mode == Threads::All { ratio(now) } else { 1.0 };
        now += 50e-6 / speed;
        work += 50;
    }
    (work as f64 / 1e6 / now, choice)
}

#[test]
fn threads_that_pay_go_on_and_cost_little_to_watch() {
    let (speed, choice) = run(10.0, |_| 1.6);
    assert!(speed > 1.6 * 0.985, "{speed}");
    assert!(choice.share_alone() < 0.03, "{choice:?}");
}

#[test]
fn threads_that_are_much_slower_cost_little() {
    for ratio in [0.04, 0.2, 0.9, 1.05] {
        let (speed, choice) = run(10.0, |_| ratio);
        assert!(speed > 0.97, "{ratio}: {speed}");
        assert!(choice.share_alone() > 0.9, "{ratio}: {choice:?}");
        assert!((choice.ratio().unwrap() / ratio - 1.0).abs() < 0.05, "{ratio}: {choice:?}");
    }
}

#[test]
fn cores_that_are_taken_in_the_middle_of_a_run_are_noticed_and_their_return_too() {
    let busy = |now: f64| if (5.0..10.0).contains(&now) { 0.05 } else { 1.7 };
    let (speed, choice) = run(30.0, busy);
    // 25 s at 1.7 and 5 s at 1 would give 1.58; the return is noticed within the maximum time between trials.
    assert!(speed > 1.3, "{speed}");
    assert_eq!(choice.chosen, Threads::All);
}

#[test]
fn on_the_edge_a_decision_stays() {
    let mut choice = ThreadChoice::default();
    let (mut now, mut work, mut changes, mut chosen) = (0.0, 0u64, 0, Threads::All);
    let mut turn = 0u32;
    while now < 60.0 {
        let mode = choice.next(Duration::from_secs_f64(now), work);
        // A speedup between the two thresholds, with noise.
        turn = turn.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let noise = 1.0 + 0.02 * (f64::from(turn >> 16) / 32_768.0 - 1.0);
        now += 50e-6 * noise / if mode == Threads::All { 1.13 } else { 1.0 };
        work += 50;
        changes += u32::from(std::mem::replace(&mut chosen, choice.chosen) != choice.chosen);
    }
    assert!(changes <= 1, "{changes} changes");
}

#[test]
fn rounds_longer_than_a_spell_are_measured_as_they_are() {
    let mut choice = ThreadChoice::default();
    let (mut now, mut work) = (0.0, 0u64);
    for _ in 0..200 {
        let mode = choice.next(Duration::from_secs_f64(now), work);
        now += if mode == Threads::All { 0.3 } else { 0.1 };
        work += 1000;
    }
    assert_eq!(choice.chosen, Threads::One);
}

#[test]
fn long_rounds_make_trials_rare() {
    let mut choice = ThreadChoice::default();
    let (mut now, mut work) = (0.0, 0u64);
    while now < 30.0 {
        let mode = choice.next(Duration::from_secs_f64(now), work);
        now += if mode == Threads::All { 0.050 } else { 0.085 };
        work += 1000;
    }
    assert!(choice.share_alone() < 0.03, "{choice:?}");
}

#[test]
fn a_run_of_few_long_rounds_is_over_before_a_trial() {
    let mut choice = ThreadChoice::default();
    let (mut now, mut work) = (0.0, 0u64);
    for _ in 0..90 {
        assert_eq!(choice.next(Duration::from_secs_f64(now), work), Threads::All);
        now += 0.050;
        work += 1000;
    }
    assert_eq!((choice.share_alone(), choice.ratio()), (0.0, None));
}
