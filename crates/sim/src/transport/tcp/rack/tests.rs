//! Tests of `rack`.

use super::*;
use crate::transport::tcp::config::Reactions;

const BOUNDS: Bounds =
    Bounds { recovering: false, threshold: 3, min_rtt: Time(20_000), smoothed: Some(Time(30_000)) };

/// Ten segments of 1000 B, sent one a nanosecond from 1 ns on, on a path of 20 ns.
struct Flight {
    rack: Rack,
    board: Scoreboard,
}

impl Flight {
    fn new() -> Flight {
        let (mut rack, mut board) = (Rack::new(), Scoreboard::new(1000, u32::MAX, Reactions::default()));
        for number in 0..10 {
            board.send_new(1000, Time(1000 * (number + 1)));
            rack.sent(number, Time(1000 * (number + 1)));
        }
        Flight { rack, board }
    }

    /// Blocks of segments arrive; what is lost then.
    fn acknowledge(&mut self, expected: u64, block: (u64, u64), bounds: &Bounds, now: u64) -> u64 {
        let blocks = [(1000 * block.0, 1000 * block.1)];
        let rack = &mut self.rack;
        rack.look();
        self.board.update(1000 * expected, &blocks[..usize::from(block.0 < block.1)], &mut |_, segment| {
            rack.arrived(segment, None, bounds.min_rtt, Time(now));
        });
        self.rack.detect(&mut self.board, bounds, Time(now));
        self.board.lost() / 1000
    }
}

#[test]
fn a_segment_is_lost_a_quarter_round_trip_after_one_sent_later_arrived() {
    let mut flight = Flight::new();
    // Segment 1 (sent at 2 ns) arrives at 22 ns; segment 0, sent at 1 ns, has until 1 + 20 + 5 ns.
    assert_eq!(flight.acknowledge(0, (1, 2), &BOUNDS, 22_000), 0);
    assert_eq!(flight.rack.due, Some(Time(26_000)));
    assert!(!flight.rack.detect(&mut flight.board, &BOUNDS, Time(25_999)));
    assert!(flight.rack.detect(&mut flight.board, &BOUNDS, Time(26_000)));
    assert_eq!((flight.board.lost(), flight.rack.due), (1000, None));
}

#[test]
fn three_segments_beyond_a_hole_lose_it_at_once_unless_reordering_was_seen() {
    let mut flight = Flight::new();
    assert_eq!(flight.acknowledge(0, (1, 3), &BOUNDS, 23_000), 0);
    assert_eq!(flight.acknowledge(0, (1, 4), &BOUNDS, 24_000), 1);

    let mut flight = Flight::new();
    // Segment 1 arrives before segment 0.
    flight.acknowledge(0, (1, 2), &BOUNDS, 22_000);
    flight.acknowledge(2, (0, 0), &BOUNDS, 23_000);
    assert_eq!(flight.acknowledge(2, (3, 7), &BOUNDS, 27_000), 0);
    // Segment 2, sent at 3 ns: 20 ns of the segment sent last, and 5 ns.
    assert_eq!(flight.rack.due, Some(Time(28_000)));
}

#[test]
fn what_one_acknowledgement_delivers_is_in_order() {
    let mut flight = Flight::new();
    // A delayed acknowledgement moves on over segment 1 and reports segment 3: 2 is lost, and 1 was in order.
    flight.acknowledge(1, (0, 0), &BOUNDS, 21_000);
    assert_eq!(flight.acknowledge(2, (3, 4), &BOUNDS, 24_000), 0);
    assert_eq!(flight.acknowledge(2, (3, 5), &BOUNDS, 25_000), 0);
    assert_eq!(flight.acknowledge(2, (3, 6), &BOUNDS, 26_000), 1, "at once with three beyond it");
    // Acknowledgements of segments 7 and 9 are lost, so that both are new in one, the higher one first.
    let blocks = [(9_000, 10_000), (7_000, 8_000)];
    let Flight { rack, board } = &mut flight;
    rack.look();
    board.update(2_000, &blocks, &mut |_, segment| rack.arrived(segment, None, Time(20_000), Time(30_000)));
    assert!(!rack.reordering_seen);
    flight.acknowledge(7, (0, 0), &BOUNDS, 31_000);
    assert!(flight.rack.reordering_seen, "segment 6, below 9 of an earlier acknowledgement");
}

#[test]
fn the_time_that_a_segment_has_is_that_of_the_one_sent_last_among_those_that_arrive() {
    let mut flight = Flight::new();
    // Segment 0, sent at 1 ns, was acknowledged late, with segment 5, sent at 6 ns.
    flight.acknowledge(1, (5, 6), &BOUNDS, 26_000);
    assert_eq!(flight.rack.rtt, Time(20_000));
    // Segment 1, sent at 2 ns: 20 ns, and 5 ns.
    assert_eq!(flight.rack.due, Some(Time(27_000)));
}

#[test]
fn a_segment_sent_again_and_lost_again_is_found_by_its_own_time() {
    let mut flight = Flight::new();
    assert_eq!(flight.acknowledge(0, (1, 4), &BOUNDS, 24_000), 1);
    flight.board.send_again(0, Time(25_000));
    flight.rack.sent(0, Time(25_000));
    flight.board.send_new(1000, Time(26_000));
    flight.rack.sent(10, Time(26_000));
    let recovering = Bounds { recovering: true, ..BOUNDS };
    // What was sent before it says nothing of it; what was sent after it does.
    assert_eq!(flight.acknowledge(0, (4, 10), &recovering, 30_000), 1);
    assert!(!flight.board.has_lost());
    assert_eq!(flight.acknowledge(0, (10, 11), &recovering, 46_000), 1);
    assert!(flight.board.has_lost());
    assert_eq!(flight.board.pipe(), 0);
}

#[test]
fn an_original_that_answers_for_what_was_sent_again_does_not_count() {
    let mut flight = Flight::new();
    flight.acknowledge(0, (1, 4), &BOUNDS, 24_000);
    flight.board.send_again(0, Time(25_000));
    let before = flight.rack.latest;
    // One ns after it was sent again: less than a path takes.
    flight.acknowledge(4, (0, 0), &BOUNDS, 26_000);
    assert_eq!(flight.rack.latest, before);
}

#[test]
fn duplicates_widen_the_window_once_a_round_up_to_the_smoothed_time_and_it_narrows_after_sixteen_recoveries()
{
    let (mut rack, board) = (Rack::new(), Scoreboard::new(1000, u32::MAX, Reactions::default()));
    rack.reordering_seen = true;
    let window = |rack: &Rack| rack.reordering_window(&board, &BOUNDS).0;
    assert_eq!(window(&rack), 5_000);
    rack.adapt(true, 0, 9_000);
    rack.adapt(true, 8_000, 20_000);
    assert_eq!(window(&rack), 10_000, "once a round");
    for round in 1..10 {
        rack.adapt(true, 10_000 * round, 10_000 * round + 1);
    }
    assert_eq!(window(&rack), 30_000, "the smoothed time");
    (0..15).for_each(|_| rack.recovered());
    assert_eq!(window(&rack), 30_000);
    rack.recovered();
    assert_eq!(window(&rack), 5_000);
}
