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
    let given: Vec<_> = (0..4).map(|subflow| piece(stream.next_for(subflow % 2))).collect();
    assert_eq!(given, [Some((0, 1000)), Some((1, 1000)), Some((2, 500)), None]);
    stream.acknowledge(2_000, 10_000);
    assert!(!stream.is_done());
    stream.acknowledge(2_500, 10_000);
    assert!(stream.is_done());
}

#[test]
fn pieces_of_an_appended_flow_begin_after_the_short_one_before() {
    let mut stream = stream(2_500, 10_000);
    (0..2).for_each(|_| assert!(stream.next_for(0).is_some()));
    stream.append(1_200);
    let bounds = |given: Option<Given>| given.map(|g| (g.piece, g.start, g.length, g.last));
    assert_eq!(bounds(stream.next_for(0)), Some((2, 2_000, 500, true)));
    assert_eq!(bounds(stream.next_for(0)), Some((3, 2_500, 1000, false)));
    stream.acknowledge(2_500, 10_000);
    assert!(!stream.is_done());
    assert_eq!(bounds(stream.next_for(0)), Some((4, 3_500, 200, true)));
    assert_eq!(stream.next_for(0), None);
    stream.acknowledge(3_700, 10_000);
    assert!(stream.is_done());
    stream.append(1);
    assert_eq!(bounds(stream.next_for(1)), Some((5, 3_700, 1, true)));
}

#[test]
fn a_piece_that_is_sent_again_goes_to_a_subflow_that_does_not_carry_it() {
    let mut stream = stream(10_000, 100_000);
    (0..3).for_each(|_| assert!(stream.next_for(0).is_some()));
    (0..3).for_each(|number| stream.send_again(number));
    stream.send_again(1);
    assert_eq!(stream.waiting(), 3, "once each");
    assert_eq!(piece(stream.next_for(0)), Some((3, 1000)), "the subflow itself goes on");
    assert_eq!(piece(stream.next_for(1)), Some((0, 1000)));
    stream.acknowledge(2_000, 100_000);
    assert_eq!(piece(stream.next_for(1)), Some((2, 1000)), "1 has come meanwhile");
    assert_eq!(piece(stream.next_for(1)), Some((4, 1000)));
}

#[test]
fn new_data_pass_by_what_waits_to_be_sent_again_and_a_buffer_holds_them() {
    let mut stream = stream(10_000, 100_000);
    stream.next_for(0);
    stream.send_again(0);
    assert_eq!(piece(stream.new_for(1)), Some((1, 1000)));
    assert_eq!(piece(stream.next_for(1)), Some((0, 1000)));
    stream.set_buffer(3_000);
    assert_eq!(piece(stream.next_for(1)), Some((2, 1000)));
    assert_eq!(stream.next_for(1), None, "three are out");
    stream.acknowledge(1_000, 100_000);
    assert_eq!(piece(stream.next_for(1)), Some((3, 1000)));
}

#[test]
fn the_shared_window_holds_new_data_and_is_unblocked_by_another_subflow() {
    let mut stream = stream(10_000, 2_000);
    (0..2).for_each(|_| assert!(stream.next_for(0).is_some()));
    assert_eq!(stream.next_for(1), None);
    assert_eq!(stream.next_for(0), None);
    assert_eq!(stream.blocking(0), None, "it carries it itself");
    stream.leaves(0, Time(7));
    let blocking = Blocking { on: 1, left: Some(Time(7)) };
    assert_eq!(stream.blocking(1), Some(blocking));
    let first = Given { piece: 0, start: 0, length: 1000, last: false, unblocks: 1 };
    assert_eq!(stream.unblock(1, blocking), first);
    assert_eq!(stream.blocking(1), None, "once");
    assert_eq!(stream.blocking(2), Some(Blocking { on: 3, left: None }), "the copy has not left");
    stream.acknowledge(1_000, 2_000);
    assert_eq!(piece(stream.next_for(1)), Some((2, 1000)));
}

#[test]
fn the_send_buffer_holds_new_data_back_and_is_unblocked_by_another_subflow() {
    let mut stream = Stream::new(10_000, 1000, 2_000);
    stream.acknowledge(0, 100_000);
    assert_eq!(piece(stream.next_for(0)), Some((0, 1000)));
    assert_eq!(stream.blocking(1), None, "there is room");
    assert_eq!(piece(stream.next_for(0)), Some((1, 1000)));
    assert_eq!(stream.next_for(1), None);
    assert_eq!(stream.blocking(1), Some(Blocking { on: 1, left: None }));
    let mut stream = Stream::new(2_000, 1000, 2_000);
    stream.acknowledge(0, 100_000);
    (0..2).for_each(|_| assert!(stream.next_for(0).is_some()));
    assert_eq!(stream.blocking(1), None, "nothing is held back");
}

#[test]
fn a_piece_is_held_up_by_a_subflow_that_is_late_or_takes_more_than_twice_as_long() {
    let ms = Time::from_ms;
    let own = RttEstimator::of(Some(ms(10)), ms(1));
    let held = |theirs: Time, out: Option<Time>| {
        let theirs = RttEstimator::of(Some(theirs), ms(2));
        let blocking = Blocking { on: 1, left: out.map(|out| ms(1000) - out) };
        blocking.is_held_up(&theirs, &own, ms(1000))
    };
    // 10 ms and four times 2.
    assert!(!held(ms(10), Some(ms(18))) && held(ms(10), Some(ms(18) + Time(1))));
    assert!(!held(ms(10), None), "it waits for the NIC");
    for out in [None, Some(Time::ZERO)] {
        assert!(!held(ms(20), out) && held(ms(20) + Time(1), out));
    }
    let unknown = RttEstimator::of(None, Time::ZERO);
    assert!(!is_slower(&unknown, &own) && !is_slower(&own, &unknown) && unknown.late().is_none());
}

#[test]
fn what_only_a_lost_subflow_carried_waits_for_others() {
    let mut stream = stream(10_000, 100_000);
    stream.next_for(0);
    stream.next_for(1);
    stream.send_again(0);
    stream.next_for(1);
    stream.next_for(0);
    assert!(!stream.leaves(0, Time(1)) && stream.leaves(0, Time(2)));
    stream.lose(0);
    // 0 is on subflow 1 too.
    assert_eq!(stream.waiting(), 1);
    assert_eq!(piece(stream.next_for(1)), Some((2, 1000)));
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
