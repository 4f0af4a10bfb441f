//! Tests of `source`.

use super::*;

#[test]
fn without_a_rate_the_buffer_is_what_limits() {
    let mut source = Source::new(10_000, 4_000, None, 0, Time::ZERO);
    assert_eq!(source.written(0, Time::ZERO), 4_000);
    assert_eq!(source.written(3_000, Time::ZERO), 7_000);
    assert_eq!(source.written(9_000, Time::ZERO), 10_000);
    assert_eq!(source.when_more_than(7_000, 3_000), None);
}

#[test]
fn what_is_written_by_hand_is_there_at_once_and_nothing_is_to_be_waited_for() {
    let mut source = Source::by_hand();
    assert_eq!((source.written(0, Time::from_ms(9)), source.size()), (0, u64::MAX));
    assert_eq!((source.write(3_000), source.write(500)), (0, 3_000));
    assert_eq!(source.written(1_000, Time::from_ms(9)), 3_500);
    assert_eq!(source.when_more_than(3_500, 1_000), None);
    source.close();
    assert_eq!(source.size(), 3_500);
}

#[test]
fn segments_end_where_pieces_do() {
    let mut source = Source::in_pieces();
    assert_eq!((source.write(3_000), source.write(500)), (0, 3_000));
    assert_eq!([0, 2_999, 3_000].map(|next| source.left(next)), [3_000, 1, 500]);
    assert_eq!(source.left(3_500), u64::MAX);
}

#[test]
fn appended_messages_are_pieces_and_wait_for_room_in_the_buffer() {
    let mut source = Source::of_messages(2_000);
    assert_eq!((source.written(0, Time::ZERO), source.left(0)), (0, u64::MAX));
    source.append(1_500);
    source.append(3_000);
    assert_eq!((source.written(0, Time::ZERO), source.left(0), source.size()), (2_000, 1_500, 4_500));
    assert_eq!(
        (source.left(1_500), source.written(3_000, Time::ZERO), source.unsent(4_000)),
        (3_000, 4_500, 500)
    );
    assert_eq!((source.left(4_500), source.when_more_than(4_500, 4_500)), (u64::MAX, None));
}

#[test]
fn messages_come_at_their_rate_and_those_that_find_the_buffer_full_are_left_out() {
    // 1000 B at 8 Mb/s: one every millisecond, the first at 5 ms.
    let start = Time::from_ms(5);
    let mut source = Source::new(u64::MAX, 3_500, Some(Rate::from_mbps(8)), 1000, start);
    assert_eq!(source.written(0, start), 1_000);
    assert_eq!(source.when_more_than(1_000, 0), Some(Time::from_ms(6)));
    assert_eq!(source.when_more_than(1_999, 0), Some(Time::from_ms(6)));
    assert_eq!(source.when_more_than(2_000, 0), Some(Time::from_ms(7)));
    assert_eq!(source.written(0, Time::from_us(6_999)), 2_000);
    // Of the messages at 7, 8, 9 and 10 ms one finds room.
    assert_eq!(source.written(0, Time::from_ms(10)), 3_000);
    assert_eq!(source.when_more_than(3_000, 0), None);
    // An acknowledgement makes room for the message at 11 ms, not for those before it.
    assert_eq!(source.written(1_000, Time::from_us(10_500)), 3_000);
    assert_eq!(source.when_more_than(3_000, 1_000), Some(Time::from_ms(11)));
    assert_eq!(source.written(1_000, Time::from_ms(11)), 4_000);
}
