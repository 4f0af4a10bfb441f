use super::*;

const BASE: Time = Time::from_us(10);

fn parameters(signal: Signal, rounds: u32) -> PlbParameters {
    let mut parameters = PlbParameters { signal, rounds, idle_rounds: 0, pause: Time::ZERO };
    parameters.settle(BASE);
    parameters
}

fn plb(signal: Signal, rounds: u32) -> Plb {
    parameters(signal, rounds).start(1)
}

/// An acknowledgement that ends a round of one packet, with another in flight.
fn ends_a_round(round: u64, rtt: Time, marked: bool) -> Feedback {
    let (acknowledged, next) = (1000 * round, 1000 * round + 1000);
    Feedback { now: Time::from_us(10 * round), rtt: Some(rtt), marked, weight: 1, acknowledged, next }
}

/// Rounds of one acknowledgement with this round-trip time and mark until the path changes.
fn rounds_until_a_change(plb: &mut Plb, rtt: Time, marked: bool) -> Option<u64> {
    (1..100).find(|&round| plb.on_ack(&ends_a_round(round, rtt, marked), 7).is_some())
}

#[test]
fn delays_of_twice_the_base_change_the_path_after_five_to_seven_rounds() {
    let mut seen = [0; 8];
    for seed in 0..60 {
        let mut plb = parameters(Signal::Delay(None), 5).start(seed);
        let after = rounds_until_a_change(&mut plb, Time::from_us(20), false).expect("a change");
        seen[after as usize] += 1;
    }
    assert!(seen[5] > 5 && seen[6] > 5 && seen[7] > 5 && seen.iter().sum::<i32>() == 60, "{seen:?}");
    let mut below = plb(Signal::Delay(None), 5);
    assert_eq!(rounds_until_a_change(&mut below, Time(Time::from_us(20).0 - 1), false), None);
}

#[test]
fn one_short_round_trip_begins_the_count_again() {
    let mut plb = plb(Signal::Delay(Some(BASE)), 5);
    for round in 1..100 {
        let rtt = if round % 5 == 0 { Time(BASE.0 - 1) } else { BASE };
        assert_eq!(plb.on_ack(&ends_a_round(round, rtt, false), 7), None);
    }
}

#[test]
fn marked_rounds_change_the_path_after_exactly_their_number() {
    for rounds in [1, 5, 12] {
        let after = rounds_until_a_change(&mut plb(Signal::Marks(0.5), rounds), BASE, true);
        assert_eq!(after, Some(u64::from(rounds)));
    }
    assert_eq!(rounds_until_a_change(&mut plb(Signal::Marks(0.5), 1), BASE, false), None);
}

#[test]
fn half_of_the_marks_make_a_congested_round() {
    for (marks, changes) in [(1, false), (2, true), (4, true)] {
        let mut plb = plb(Signal::Marks(0.5), 1);
        // The first packet is a round of its own; then windows of four packets.
        let changed = (0..40_u64).any(|packet| {
            let (acknowledged, next) = ((packet + 1) * 1000, (packet + 5) * 1000);
            let ack = Feedback {
                marked: packet % 4 >= 4 - marks,
                weight: 1,
                acknowledged,
                next,
                ..Feedback::default()
            };
            plb.on_ack(&ack, 7).is_some()
        });
        assert_eq!(changed, changes, "{marks} of four");
    }
}

/// An acknowledgement of two segments counts twice.
#[test]
fn a_round_is_judged_by_what_its_acknowledgements_weigh() {
    for (weight, changes) in [(2, false), (3, true)] {
        let mut plb = plb(Signal::Marks(0.5), 1);
        let first = Feedback { weight: 3, next: 5000, ..Feedback::default() };
        // It ends the empty round before the first byte.
        assert_eq!(plb.on_ack(&first, 7), None);
        let second = Feedback { weight: 3, acknowledged: 2000, ..first };
        assert_eq!(plb.on_ack(&second, 7), None);
        let third = Feedback { weight, marked: true, acknowledged: 5000, next: 9000, ..first };
        assert_eq!(plb.on_ack(&third, 7).is_some(), changes, "{weight} marked of {}", 3 + weight);
    }
}

#[test]
fn a_flow_with_nothing_in_flight_changes_after_fewer_rounds() {
    let parameters = PlbParameters { idle_rounds: 3, ..parameters(Signal::Marks(0.5), 12) };
    let (mut busy, mut idle) = (parameters.start(1), parameters.start(1));
    let mut rests = |round: u64| {
        let ack = ends_a_round(round, BASE, true);
        idle.on_ack(&Feedback { next: ack.acknowledged, ..ack }, 7).is_some()
    };
    assert_eq!((1..100).find(|&round| rests(round)), Some(3));
    assert_eq!(rounds_until_a_change(&mut busy, BASE, true), Some(12));
}

#[test]
fn a_timeout_changes_the_path_at_once_and_every_hash_is_new() {
    let mut plb = plb(Signal::Marks(0.5), 5);
    let (first, second) = (plb.on_timeout(BASE, 7), plb.on_timeout(BASE, 7));
    assert!(first != 7 && second != 7 && first != second);
}

#[test]
fn after_a_timeout_the_path_is_kept_for_one_to_two_pauses_but_for_another_timeout() {
    let parameters = PlbParameters { pause: Time::from_us(200), ..parameters(Signal::Marks(0.5), 1) };
    let mut seen = Vec::new();
    for seed in 0..50 {
        let mut plb = parameters.start(seed);
        plb.on_timeout(Time::ZERO, 7);
        // A round every 10 us.
        seen.push(rounds_until_a_change(&mut plb, BASE, true).expect("a change"));
        let hash = plb.on_timeout(Time::from_us(5000), 7);
        assert_ne!(plb.on_timeout(Time::from_us(5001), hash), hash);
    }
    assert!(seen.iter().all(|round| (20..=40).contains(round)), "{seen:?}");
    assert!(seen.iter().any(|&round| round < 27) && seen.iter().any(|&round| round > 33), "{seen:?}");
}
