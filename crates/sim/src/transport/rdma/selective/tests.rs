use super::*;

#[test]
fn a_receiver_delivers_what_is_whole_and_keeps_the_rest() {
    let mut reassembly = Reassembly::default();
    assert_eq!(reassembly.place(10, 12), 0);
    assert_eq!(reassembly.place(10, 11), 0);
    assert_eq!(reassembly.place(10, 10), 3);
    assert!(reassembly.is_empty());
}

#[test]
fn an_overtaken_packet_is_lost_once_and_only_beyond_the_reordering_allowed() {
    let mut board = Scoreboard::new(3, 1000);
    let (next, sent) = (10_000, Time::from_us(1));
    assert_eq!(board.acknowledge(0, 1000, next, sent), 1000);
    assert_eq!(board.acknowledge(0, 2000, next, sent), 1000);
    assert!(!board.has_lost());
    board.acknowledge(0, 3000, next, sent);
    assert_eq!(board.take_lost(Time::from_us(2)), Some(0));
    board.acknowledge(0, 4000, next, Time::from_us(3));
    assert!(!board.has_lost(), "not lost a second time before the timeout");
    assert_eq!(board.not_in_flight(), 4000);
    board.acknowledge(5000, 0, next, sent);
    assert_eq!(board.not_in_flight(), 0);
    board.lose_all(5000, next);
    assert_eq!(std::iter::from_fn(|| board.take_lost(Time::from_us(4))).count(), 5);
}

#[test]
fn a_timeout_while_packets_arrive_loses_only_what_was_sent_again_before_them() {
    let at = Time::from_us;
    let mut board = Scoreboard::new(1, 1000);
    // Packets 0 and 2 are overtaken and sent again at 10 us and 30 us; 4, sent at 20 us, arrives; 5 to 9 are in flight.
    board.acknowledge(0, 1000, 10_000, at(1));
    board.acknowledge(0, 3000, 10_000, at(3));
    assert_eq!(
        (board.take_lost(at(10)), board.take_lost(at(30)), board.take_lost(at(30))),
        (Some(0), Some(2000), None)
    );
    board.acknowledge(0, 4000, 10_000, at(20));
    board.lose_overtaken(0, 10_000, at(15));
    assert_eq!((board.take_lost(at(40)), board.take_lost(at(40))), (Some(0), None));
    // Once more, and for the one that was in flight.
    board.acknowledge(0, 5000, 10_000, at(50));
    board.lose_overtaken(0, 10_000, at(45));
    assert_eq!(
        (board.take_lost(at(60)), board.take_lost(at(60)), board.take_lost(at(60))),
        (Some(0), Some(2000), None)
    );
    // Nothing that was sent since has arrived.
    board.lose_overtaken(0, 10_000, at(70));
    let all: Vec<u64> = std::iter::from_fn(|| board.take_lost(at(80))).collect();
    assert_eq!(all, [0, 2000, 6000, 7000, 8000, 9000]);
}
