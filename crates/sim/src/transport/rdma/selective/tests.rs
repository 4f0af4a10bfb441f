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
    let next = 10_000;
    assert_eq!(board.acknowledge(0, 1000, next), 1000);
    assert_eq!(board.acknowledge(0, 2000, next), 1000);
    assert!(!board.has_lost());
    board.acknowledge(0, 3000, next);
    assert_eq!(board.take_lost(), Some(0));
    board.acknowledge(0, 4000, next);
    assert!(!board.has_lost(), "not lost a second time before the timeout");
    assert_eq!(board.not_in_flight(), 4000);
    board.acknowledge(5000, 0, next);
    assert_eq!(board.not_in_flight(), 0);
    board.lose_all(5000, next);
    assert_eq!(std::iter::from_fn(|| board.take_lost()).count(), 5);
}
