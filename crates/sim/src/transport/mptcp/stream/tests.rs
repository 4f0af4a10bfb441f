//! Tests of `stream`.

use super::*;

fn stream(size: u64, window: u64) -> Stream {
    let mut stream = Stream::new(size, 1000, 1 << 20);
    stream.acknowledge(0, window);
    stream
}

fn piece(given: Option<Given>) -> Option<(u64, u16)> {
    given.map(|given| (given.piece, given.length))
}

#[test]
fn pieces_are_handed_out_in_order_and_the_last_is_short() {
    let mut stream = stream(2_500, 10_000);
    let given: Vec<_> = (0..4).map(|subflow| piece(stream.next_for(subflow % 2, true))).collect();
    assert_eq!(given, [Some((0, 1000)), Some((1, 1000)), Some((2, 500)), None]);
    stream.acknowledge(2_000, 10_000);
    assert!(!stream.is_done());
    stream.acknowledge(2_500, 10_000);
    assert!(stream.is_done());
}

#[test]
fn pieces_of_an_appended_flow_begin_after_the_short_one_before() {
    let mut stream = stream(2_500, 10_000);
    (0..2).for_each(|_| assert!(stream.next_for(0, true).is_some()));
    stream.append(1_200);
    let bounds = |given: Option<Given>| given.map(|g| (g.piece, g.start, g.length, g.last));
    assert_eq!(bounds(stream.next_for(0, true)), Some((2, 2_000, 500, true)));
    assert_eq!(bounds(stream.next_for(0, true)), Some((3, 2_500, 1000, false)));
    stream.acknowledge(2_500, 10_000);
    assert!(!stream.is_done());
    assert_eq!(bounds(stream.next_for(0, true)), Some((4, 3_500, 200, true)));
    assert_eq!(stream.next_for(0, true), None);
    stream.acknowledge(3_700, 10_000);
    assert!(stream.is_done());
    stream.append(1);
    assert_eq!(bounds(stream.next_for(1, true)), Some((5, 3_700, 1, true)));
}

#[test]
fn a_piece_that_is_sent_again_goes_to_a_subflow_that_does_not_carry_it() {
    let mut stream = stream(10_000, 100_000);
    (0..3).for_each(|_| assert!(stream.next_for(0, true).is_some()));
    (0..3).for_each(|number| stream.send_again(number));
    stream.send_again(1);
    assert_eq!(stream.waiting(), 3, "once each");
    assert_eq!(piece(stream.next_for(0, true)), Some((3, 1000)), "the subflow itself goes on");
    assert_eq!(piece(stream.next_for(1, true)), Some((0, 1000)));
    stream.acknowledge(2_000, 100_000);
    assert_eq!(piece(stream.next_for(1, true)), Some((2, 1000)), "1 has come meanwhile");
    assert_eq!(piece(stream.next_for(1, true)), Some((4, 1000)));
}

#[test]
fn new_data_pass_by_what_waits_to_be_sent_again_and_a_buffer_holds_them() {
    let mut stream = stream(10_000, 100_000);
    stream.next_for(0, false);
    stream.send_again(0);
    assert_eq!(piece(stream.new_for(1, false)), Some((1, 1000)));
    assert_eq!(piece(stream.next_for(1, false)), Some((0, 1000)));
    stream.set_buffer(3_000);
    assert_eq!(piece(stream.next_for(1, false)), Some((2, 1000)));
    assert_eq!(stream.next_for(1, false), None, "three are out");
    stream.acknowledge(1_000, 100_000);
    assert_eq!(piece(stream.next_for(1, false)), Some((3, 1000)));
}

#[test]
fn the_shared_window_holds_new_data_and_is_unblocked_by_another_subflow() {
    let mut stream = stream(10_000, 2_000);
    (0..2).for_each(|_| assert!(stream.next_for(0, true).is_some()));
    assert_eq!(stream.next_for(1, false), None);
    assert_eq!(stream.next_for(0, true), None, "it carries it itself");
    let first = Given { piece: 0, start: 0, length: 1000, last: false, unblocks: 1 };
    assert_eq!(stream.next_for(1, true), Some(first));
    assert_eq!(stream.next_for(1, true), None, "once");
    stream.acknowledge(1_000, 2_000);
    assert_eq!(piece(stream.next_for(1, true)), Some((2, 1000)));
}

#[test]
fn the_send_buffer_holds_new_data_back_and_is_unblocked_by_another_subflow() {
    let mut stream = Stream::new(10_000, 1000, 2_000);
    stream.acknowledge(0, 100_000);
    let given: Vec<_> = (0..3).map(|_| piece(stream.next_for(0, true))).collect();
    assert_eq!(given, [Some((0, 1000)), Some((1, 1000)), None]);
    assert_eq!(stream.next_for(1, false), None);
    let first = stream.next_for(1, true).expect("what holds the buffer up");
    assert_eq!((first.piece, first.unblocks), (0, 1));
}

#[test]
fn what_only_a_lost_subflow_carried_waits_for_others() {
    let mut stream = stream(10_000, 100_000);
    stream.next_for(0, true);
    stream.next_for(1, true);
    stream.send_again(0);
    stream.next_for(1, true);
    stream.next_for(0, true);
    assert!(!stream.leaves(0) && stream.leaves(0));
    stream.lose(0);
    // 0 is on subflow 1 too.
    assert_eq!(stream.waiting(), 1);
    assert_eq!(piece(stream.next_for(1, true)), Some((2, 1000)));
}

#[test]
fn a_subflow_that_carries_everything_gets_what_others_have_and_then_new_data() {
    let mut stream = stream(3_000, 100_000);
    (0..2).for_each(|from| assert!(stream.copy_for(0, from).is_some()));
    assert_eq!(piece(stream.copy_for(1, 0)), Some((0, 1000)));
    stream.acknowledge(2_000, 100_000);
    assert_eq!(piece(stream.copy_for(1, 1)), Some((2, 1000)), "1 has come");
    assert_eq!(piece(stream.copy_for(0, 2)), Some((2, 1000)));
    assert_eq!(piece(stream.copy_for(0, 3)), None);
}
