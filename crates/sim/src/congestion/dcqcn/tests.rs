//! DCQCN in cases computed by hand, and lazy timers compared with eager ones.

use super::*;
use crate::congestion::tests::situations::{LINE, ack, flow, published, run_timers};
use proptest::prelude::*;

struct Run {
    dcqcn: Dcqcn,
    control: Control,
}

impl Run {
    fn new(parameters: DcqcnParameters) -> Run {
        Run { dcqcn: parameters.start(&flow(), 0), control: Control::new(Rate(LINE)) }
    }
    /// Runs timers up to and including `now`, in order.
    fn until(&mut self, now: Time) -> u64 {
        run_timers(&mut self.dcqcn, &mut self.control, now);
        self.control.rate.0
    }
    /// A marked ACK; timers due at the same time run after it.
    fn mark(&mut self, now: Time) {
        self.until(now.saturating_sub(Time(1)));
        self.dcqcn.on_ack(&Ack { now, marked: true, ..ack(1_000, 2_000) }, &mut self.control);
    }
}

fn us(n: u64) -> Time {
    Time::from_us(n)
}
const NS: Time = Time::from_ns(1);

#[test]
fn the_first_mark_cuts_four_microseconds_and_one_nanosecond_later() {
    let mut run = Run::new(published());
    run.mark(us(10));
    assert_eq!(run.control.timers, [us(14) + NS, Time::MAX]);
    assert_eq!(run.until(us(14)), LINE);
    // Four ticks without a mark: alpha = (255/256)^4 = 0.98446629 as a double.
    let alpha = (255.0_f64 / 256.0).powi(4);
    assert_eq!(run.until(us(14) + NS), (1e11 * (1.0 - alpha / 2.0)) as u64);
    assert_eq!(run.dcqcn.alpha, alpha);
    assert_eq!(run.dcqcn.target, LINE);
    assert_eq!(run.control.timers, [Time::MAX, us(314) + NS]);
}

#[test]
fn a_mark_at_a_tick_counts_for_that_tick_and_alpha_decays_in_closed_form() {
    let mut run = Run::new(published());
    run.mark(us(0));
    run.mark(us(1)); // counts for the tick at 1 us: alpha stays 1
    run.until(us(4) + NS);
    let g = 1.0 / 256.0;
    let mut alpha = (1.0 - g) * 1.0 + g;
    for _ in 0..3 {
        alpha *= 1.0 - g;
    }
    assert_eq!(run.dcqcn.alpha, alpha);
    run.mark(us(4) + NS + NS);
    run.until(us(8) + NS);
    alpha = (1.0 - g) * alpha + g;
    assert_eq!(run.dcqcn.alpha, alpha * (1.0 - g).powi(3));
}

#[test]
fn recovery_goes_through_fast_additive_and_hyper_increase() {
    let mut run = Run::new(published());
    run.mark(us(0));
    let cut = run.until(us(4) + NS);
    let stages: Vec<u64> = (1..=4).map(|n| run.until(us(4 + 300 * n) + NS)).collect();
    // Fast recovery; then the target, which is the line rate already, cannot grow.
    let mut rate = cut;
    let halves: Vec<u64> = (0..4)
        .map(|_| {
            rate = rate / 2 + LINE / 2;
            rate
        })
        .collect();
    assert_eq!(stages, halves);
    // A cut after an increase sets the target to the rate, from which the target then grows.
    run.mark(us(1_206));
    let before = run.control.rate.0;
    let cut = run.until(us(1_210));
    assert_eq!((run.dcqcn.target, run.dcqcn.stage), (before, 0));
    let fast = cut / 2 + before / 2;
    assert_eq!(run.until(us(1_510)), fast);
    assert_eq!(run.until(us(1_810)), fast / 2 + (before + 20_000_000) / 2);
    let additive = run.control.rate.0;
    assert_eq!(run.until(us(2_110)), additive / 2 + (before + 220_000_000) / 2);
}

#[test]
fn a_second_cut_in_a_row_keeps_the_target_unless_configured_otherwise() {
    for (clamp_target_rate, keeps) in [(false, true), (true, false)] {
        let mut run = Run::new(DcqcnParameters { clamp_target_rate, ..published() });
        run.mark(us(0));
        let once = run.until(us(5));
        run.mark(us(5));
        assert!(run.until(us(9)) < once);
        assert_eq!(run.dcqcn.target, if keeps { LINE } else { once });
    }
}

#[test]
fn an_increase_that_is_due_with_a_cut_comes_first() {
    // 300 us are 75 decrease intervals: both timers are due together.
    for order in [[0, 1], [1, 0]] {
        let mut run = Run::new(published());
        run.mark(us(0));
        let cut = run.until(us(4) + NS);
        run.mark(us(303));
        let due = us(304) + NS;
        assert_eq!(run.control.timers, [due, due]);
        for timer in order {
            if run.control.timers[timer] <= due {
                run.control.timers[timer] = Time::MAX;
                run.dcqcn.on_timer(timer, due, &mut run.control);
            }
        }
        assert_eq!(run.dcqcn.target, cut / 2 + LINE / 2);
        assert_eq!(run.control.timers, [Time::MAX, us(604) + NS]);
    }
}

#[test]
fn an_idle_flow_has_no_timers_once_it_is_back_at_its_rate() {
    let mut run = Run::new(published());
    run.mark(us(0));
    // Halves are rounded down, so that the average stops 1 bit/s below the line rate.
    assert_eq!(run.until(Time::from_ms(100)), LINE - 1);
    assert_eq!(run.control.timers, [Time::MAX; 2]);
}

#[test]
fn what_is_measured_is_alpha_at_that_moment() {
    let mut run = Run::new(published());
    let shown = |run: &Run, now| {
        let mut out = Vec::new();
        run.dcqcn.internals(now, &mut out);
        out[0].1
    };
    assert_eq!(shown(&run, us(500)), 1.0, "before the first mark");
    run.mark(us(0));
    run.mark(us(10));
    run.until(us(16) + NS);
    // The mark at 10 us counts for the tick at 10 us; without another one alpha decays at every tick.
    let g = 1.0 / 256.0;
    let at_10_us = (1.0_f64 - g).powi(10) + g;
    for ticks in [6, 7, 300] {
        let now = us(10 + ticks) + NS;
        let law = at_10_us * (1.0_f64 - g).powi(ticks as i32);
        assert!((shown(&run, now) - law).abs() < 1e-12, "{ticks}: {} and {law}", shown(&run, now));
    }
    let before = run.dcqcn.alpha;
    shown(&run, us(5_000));
    assert_eq!(run.dcqcn.alpha, before, "measuring changes nothing");
}

#[test]
fn a_long_silence_ends_with_an_alpha_at_rest() {
    let mut run = Run::new(published());
    run.mark(us(0));
    run.mark(Time::from_ms(3_600_000));
    assert!(run.dcqcn.alpha < 1e-300);
    assert_eq!(run.dcqcn.alpha_tick, Time::from_ms(3_600_000) - us(1));
}

proptest! {
    #[test]
    fn lazy_timers_give_the_rates_of_eager_ones(
        gaps in prop::collection::vec(prop_oneof![0..3_000_u64, 0..2_000_000_u64, 0..900_000_u64], 1..60),
        on_grid in prop::collection::vec(any::<bool>(), 60),
        clamp_target_rate in any::<bool>(),
        fast_recovery in 0..4_u32,
    ) {
        let parameters = DcqcnParameters { clamp_target_rate, fast_recovery, ..published() };
        let mut eager = Run::new(DcqcnParameters { eager: true, ..parameters.clone() });
        let mut lazy = Run::new(parameters);
        let (mut now, mut last) = (Time::ZERO, Time::ZERO);
        for (gap, on_grid) in gaps.iter().zip(on_grid) {
            now += Time::from_ns(*gap);
            // Includes marks at the time of a timer or a tick.
            let at = if on_grid { Time(now.0 / 1_000_000 * 1_000_000 + 1_000 * (gap % 2)) } else { now };
            let at = at.max(last);
            last = at;
            eager.mark(at);
            lazy.mark(at);
            prop_assert_eq!(eager.control.rate, lazy.control.rate);
        }
        for step in 1..400 {
            let at = last + us(step * 50);
            prop_assert_eq!(eager.until(at), lazy.until(at));
        }
        prop_assert_eq!(eager.dcqcn.target, lazy.dcqcn.target);
    }
}

#[test]
fn automatic_intervals_are_the_published_ones_and_as_many_packets_long_on_slower_links() {
    let auto = DcqcnParameters {
        alpha_interval: None,
        decrease_interval: None,
        increase_interval: None,
        ..published()
    };
    for rate in [Rate::from_gbps(400), Rate::from_gbps(100), Rate::from_gbps(25)] {
        assert_eq!(auto.intervals(rate), (us(1), us(4), us(300)));
        assert_eq!(published::<DcqcnParameters>().intervals(rate), auto.intervals(rate));
    }
    assert_eq!(auto.intervals(Rate::from_mbps(100)), (us(250), us(1000), us(75_000)));
    assert_eq!(published::<DcqcnParameters>().intervals(Rate::from_mbps(100)), (us(1), us(4), us(300)));
    let fastest = Rate::from_gbps(1_000_000);
    assert!(auto.intervals(Rate(1)).2 > us(300) && auto.intervals(fastest).2 == us(300));
}
