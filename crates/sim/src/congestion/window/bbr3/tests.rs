//! The states of BBR version 3 by hand: acknowledgements of a path of 10 segments per round trip of 10 ms.

use super::*;
use crate::congestion::window::RateSample;
use crate::congestion::window::tests::situations::{MSS, flow, published, window};

/// A law, its window, and the path's time.
struct Trial {
    law: Bbr3,
    window: CongestionWindow,
    now: Time,
    delivered: u64,
}

const RTT: Time = Time::from_ms(10);

impl Trial {
    fn new() -> Trial {
        let mut trial = Trial {
            law: published::<Bbr3Parameters>().start(&flow()),
            window: window(),
            now: Time::from_ms(1),
            delivered: 0,
        };
        trial.law.on_start(trial.now, None, &mut trial.window);
        trial
    }

    fn ack(&self, segments: u64, in_flight: u64) -> Acked {
        Acked {
            now: self.now,
            rtt: Some(RTT),
            min_rtt: RTT,
            delivered: segments * MSS,
            delivered_ever: self.delivered,
            in_flight: in_flight * MSS,
            prior_in_flight: (in_flight + segments) * MSS,
            window_limited: true,
            rate: RateSample {
                delivered: segments * MSS,
                interval: RTT,
                prior_delivered: self.delivered - segments * MSS,
                app_limited: false,
                in_flight: in_flight * MSS,
                lost: 0,
                ..RateSample::default()
            },
            ..crate::congestion::window::tests::situations::acked(1)
        }
    }

    /// A round trip that delivers `segments` in one acknowledgement, with `in_flight` segments in flight.
    fn round(&mut self, segments: u64, in_flight: u64) {
        self.now += RTT;
        self.delivered += segments * MSS;
        let ack = self.ack(segments, in_flight);
        self.law.on_ack(&ack, &mut self.window);
    }

    /// The law after Startup and Drain on a path of ten segments.
    fn cruising() -> Trial {
        let mut trial = Trial::new();
        // With an empty queue Drain and DOWN end as soon as they begin.
        (0..4).for_each(|_| trial.round(10, 10));
        assert_eq!(trial.law.mode, Mode::Cruise);
        trial
    }

    fn lost(&mut self, bytes: u64, in_flight: u64, lost_since: u64) {
        let lost = LostSegment {
            now: self.now,
            first: self.delivered + 100 * MSS,
            bytes,
            in_flight,
            lost_since,
            app_limited: false,
            delivered_ever: self.delivered,
        };
        self.law.on_lost(&lost, &self.window);
    }
}

#[test]
fn startup_ends_after_three_rounds_that_grow_by_less_than_a_quarter() {
    let mut trial = Trial::new();
    for segments in [10, 20, 40, 49, 50, 60, 61] {
        trial.round(segments, segments);
        assert_eq!(trial.law.mode, Mode::Startup, "{segments}");
    }
    // 40, then 50 (a quarter more), then 60, 61 and 62.
    trial.round(62, 200);
    assert_eq!(trial.law.mode, Mode::Drain);
    assert!(trial.law.full.reached);
    assert_eq!((trial.law.pacing_gain(), trial.law.cwnd_gain()), (0.5, 2.0));
    // 62 segments in 10 ms: 49.6 Mb/s; half of it minus one percent.
    assert_eq!(trial.window.pacing, Some(Rate(24_552_000)));
    // A bandwidth-delay product in flight: drained, and without a bound DOWN ends, too.
    trial.round(62, 63);
    assert_eq!(trial.law.mode, Mode::Drain);
    trial.round(62, 62);
    assert_eq!(trial.law.mode, Mode::Cruise);
}

#[test]
fn drain_ends_after_three_rounds_though_it_has_not_drained() {
    let mut trial = Trial::new();
    (0..4).for_each(|_| trial.round(10, 100));
    assert_eq!(trial.law.mode, Mode::Drain);
    (0..3).for_each(|_| trial.round(10, 100));
    assert_eq!(trial.law.mode, Mode::Drain);
    trial.round(10, 100);
    assert_eq!(trial.law.mode, Mode::Down);
}

#[test]
fn six_lost_ranges_in_a_round_of_recovery_end_startup_and_set_the_bound() {
    let mut trial = Trial::new();
    trial.round(10, 20);
    trial.round(20, 40);
    trial.law.recovering = true;
    for range in 0..6 {
        trial.delivered += 2 * range;
        trial.lost(MSS, 40 * MSS, (range + 1) * MSS);
    }
    trial.now += RTT;
    trial.delivered += 20 * MSS;
    let mut ack = trial.ack(20, 100);
    ack.rate.lost = 6 * MSS;
    trial.law.on_ack(&ack, &mut trial.window);
    assert_eq!(trial.law.mode, Mode::Drain);
    // The maximum delivered in a round: twenty segments.
    assert_eq!(trial.law.bounds.long, Some(20 * MSS));
}

#[test]
fn the_cycle_goes_down_cruises_refills_for_a_round_and_goes_up_until_the_rate_grows_no_more() {
    let mut trial = Trial::cruising();
    assert_eq!(trial.window.pacing, Some(Rate(7_920_000)), "99 % of 8 Mb/s");
    // Reno would probe after as many rounds as there are segments in a bandwidth-delay product: ten, of which
    // up to two have passed.
    let cruised = (0..20).take_while(|_| {
        trial.round(10, 10);
        trial.law.mode == Mode::Cruise
    });
    assert!((7..=9).contains(&cruised.count()));
    assert_eq!((trial.law.mode, trial.law.pacing_gain()), (Mode::Refill, 1.0));
    trial.round(10, 10);
    assert_eq!((trial.law.mode, trial.law.pacing_gain(), trial.law.cwnd_gain()), (Mode::Up, 1.25, 2.25));
    // Growth: a new plateau needs three rounds.
    trial.round(13, 15);
    trial.round(13, 15);
    trial.round(13, 15);
    assert_eq!(trial.law.mode, Mode::Up);
    trial.round(13, 18);
    assert_eq!((trial.law.mode, trial.law.pacing_gain()), (Mode::Down, 0.9));
    assert_eq!(trial.law.path.max_bandwidth(), 10_400_000);
}

#[test]
fn bandwidth_is_forgotten_after_two_cycles() {
    let mut path = Path::new();
    let trial = Trial::new();
    let sample = |path: &mut Path, segments: u64| {
        let mut ack = trial.ack(0, 10);
        ack.rate.delivered = segments * MSS;
        ack.delivered = MSS;
        path.update_bandwidth(&ack);
    };
    sample(&mut path, 20);
    path.advance();
    sample(&mut path, 10);
    assert_eq!(path.max_bandwidth(), 16_000_000);
    path.advance();
    assert_eq!(path.max_bandwidth(), 8_000_000);
    // A cycle without a sample removes nothing.
    path.advance();
    path.advance();
    assert_eq!(path.max_bandwidth(), 8_000_000);
}

#[test]
fn more_than_two_percent_lost_while_probing_sets_the_long_term_bound_and_ends_the_probe() {
    let mut trial = Trial::cruising();
    while trial.law.mode != Mode::Up {
        trial.round(10, 10);
    }
    // Two in a hundred: not more than 2 %.
    trial.lost(MSS, 100 * MSS, 2 * MSS);
    assert_eq!((trial.law.mode, trial.law.bounds.long), (Mode::Up, None));
    // Three in a hundred: passed within the third, at 99 + (0.02 * 99 - 2) / 0.98 segments, which is 98.98.
    trial.lost(MSS, 100 * MSS, 3 * MSS);
    assert_eq!((trial.law.mode, trial.law.bounds.long), (Mode::Down, Some(99_000)));
    // Only once per probe.
    trial.lost(MSS, 50 * MSS, 10 * MSS);
    assert_eq!(trial.law.bounds.long, Some(99_000));
    assert_eq!(trial.law.with_headroom(&trial.window), 99_000 - 14_850);
}

#[test]
fn losses_while_cruising_pull_the_short_term_bounds_down_once_a_round_until_the_next_refill() {
    let mut trial = Trial::cruising();
    let cwnd = trial.window.cwnd;
    trial.lost(MSS, 10 * MSS, MSS);
    trial.lost(MSS, 10 * MSS, 2 * MSS);
    // The round that began with the loss ends with data sent after it.
    trial.round(8, 8);
    // At most by beta: 70 % of 8 Mb/s; the previous round delivered ten segments, and this one eight: the
    // maximum of both.
    assert_eq!(trial.law.bounds.bandwidth, Some(8_000_000));
    assert_eq!(trial.law.bounds.short, Some((cwnd as f64 * 0.7) as u64).max(Some(10 * MSS)));
    trial.lost(MSS, 10 * MSS, MSS);
    trial.round(4, 8);
    assert_eq!(trial.law.bounds.bandwidth, Some(6_400_000), "eight segments in 10 ms");
    trial.lost(MSS, 10 * MSS, MSS);
    trial.round(4, 8);
    assert_eq!(trial.law.bounds.bandwidth, Some(4_480_000), "beta");
    while trial.law.mode != Mode::Refill {
        trial.round(10, 8);
    }
    assert_eq!((trial.law.bounds.bandwidth, trial.law.bounds.short), (None, None));
}

#[test]
fn the_long_term_bound_grows_by_one_two_four_segments_a_round_while_it_is_what_limits() {
    let mut trial = Trial::cruising();
    while trial.law.mode != Mode::Refill {
        trial.round(10, 10);
    }
    trial.law.bounds.long = Some(12 * MSS);
    trial.window.cwnd = 12 * MSS;
    trial.round(10, 10);
    assert_eq!(trial.law.mode, Mode::Up);
    let mut bounds = Vec::new();
    for _ in 0..3 {
        let before = trial.law.bounds.long.unwrap();
        trial.window.cwnd = before;
        trial.round(12, 12);
        bounds.push(trial.law.bounds.long.unwrap() - before);
    }
    // Twelve segments acknowledged, one more for each twelve; then two, then four.
    assert_eq!(bounds, [1_000, 2_000, 4_000]);
}

#[test]
fn probe_rtt_holds_half_of_the_path_for_200_ms_and_goes_on_cruising() {
    let mut trial = Trial::cruising();
    let cwnd = trial.window.cwnd;
    // A longer round trip is no new minimum.
    trial.now = Time::from_ms(5_100);
    trial.round(10, 10);
    assert_eq!((trial.law.mode, trial.window.cwnd), (Mode::ProbeRtt, 5 * MSS));
    let entered = trial.now;
    trial.round(10, 5);
    while trial.law.mode == Mode::ProbeRtt {
        trial.round(5, 5);
    }
    let spent = trial.now - entered;
    assert!(spent > Time::from_ms(200) && spent <= Time::from_ms(230), "{spent}");
    assert_eq!(trial.law.mode, Mode::Cruise);
    assert!(trial.window.cwnd >= cwnd.min(20 * MSS));
    // The rates of ProbeRTT were ignored.
    assert_eq!(trial.law.path.max_bandwidth(), 8_000_000);
}

#[test]
fn recovery_gives_the_window_back_when_it_ends() {
    let mut trial = Trial::cruising();
    let before = trial.window.cwnd;
    let change = |from, to| Change {
        now: Time::ZERO,
        from,
        to,
        next: 0,
        cursor: 0,
        in_flight: 0,
        delivered: 0,
        rtt: None,
    };
    trial.law.on_state(&change(State::Open, State::Recovery), &mut trial.window);
    trial.window.cwnd = 4 * MSS;
    trial.law.on_state(&change(State::Recovery, State::Open), &mut trial.window);
    assert_eq!(trial.window.cwnd, before);
}

/// §4.2.1 of version 1 and §5.6.2 of version 3: ten segments over the round-trip time of the handshake, times the gain of Startup.
#[test]
fn the_first_rate_follows_from_the_handshake() {
    let window = || CongestionWindow { cwnd: 10 * MSS, ..window() };
    let rtt = Some(Time::from_ms(100));
    let (mut of_one, mut of_three) = (window(), window());
    let p = published::<crate::congestion::window::bbr::BbrParameters>();
    p.start(&flow()).on_start(Time::ZERO, rtt, &mut of_one);
    let nominal = (10 * MSS * 8) as f64 / 0.1;
    assert!((of_one.pacing.unwrap().0 as f64 / nominal - 2.89).abs() < 0.01, "{of_one:?}");
    published::<Bbr3Parameters>().start(&flow()).on_start(Time::ZERO, rtt, &mut of_three);
    assert!((of_three.pacing.unwrap().0 as f64 / nominal - 2.77).abs() < 0.01, "{of_three:?}");
}

#[test]
fn a_flow_that_restarts_from_idle_needs_no_probe_rtt_however_short_it_idled() {
    for idles in [false, true] {
        let mut trial = Trial::cruising();
        trial.now += Time::from_ms(6_000);
        if idles {
            trial.law.on_resume(trial.now);
        }
        trial.round(10, 10);
        assert_eq!(trial.law.mode == Mode::ProbeRtt, !idles);
    }
}

#[test]
fn samples_are_limited_until_more_has_arrived_than_was_in_flight_in_probe_rtt() {
    let mut trial = Trial::cruising();
    trial.now += Time::from_ms(6_000);
    trial.round(10, 4);
    while trial.law.mode == Mode::ProbeRtt {
        trial.round(4, 4);
    }
    // Four segments that were in flight, and four that were sent when these arrived.
    for limited in [true, true, false] {
        trial.round(4, 4);
        assert_eq!(trial.law.path.limited, limited);
    }
}
