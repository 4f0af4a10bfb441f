//! Tests of `assembly`.

use super::*;
use proptest::prelude::*;

#[test]
fn bytes_that_fill_a_hole_release_those_that_waited_after_it() {
    let mut stream = Assembly::default();
    assert_eq!(stream.take(2000, 1000, false), 0);
    assert_eq!(stream.take(4000, 500, true), 0);
    assert_eq!(stream.take(0, 1000, false), 1000);
    assert_eq!(stream.take(0, 1000, false), 0, "again");
    assert_eq!(stream.take(1000, 1000, false), 2000);
    assert!(!stream.is_complete());
    assert_eq!(stream.take(3000, 1000, false), 1500);
    assert!(stream.is_complete());
    assert_eq!((stream.expected(), stream.take_max_waiting()), (4500, 1500));
}

#[test]
fn flows_arrive_one_after_the_other_and_each_once() {
    let mut stream = Assembly::default();
    assert_eq!(stream.take(0, 1000, true), 1000);
    assert!(stream.take_end() && !stream.take_end());
    assert_eq!(stream.take(0, 1000, true), 0, "again");
    assert!(!stream.take_end());
    assert_eq!((stream.take(2000, 500, true), stream.take(2000, 500, true)), (0, 0));
    assert_eq!((stream.take(1000, 1000, true), stream.take_max_waiting()), (1500, 500));
    assert!(stream.take_end() && stream.take_end() && !stream.take_end());
    assert_eq!(stream.take_max_waiting(), 0);
}

proptest! {
    #[test]
    fn in_any_order_and_however_often_every_byte_counts_once(
        order in prop::collection::vec(0u64..40, 1..200)
    ) {
        let mut stream = Assembly::default();
        let mut come = [false; 40];
        let mut total = 0;
        for piece in order {
            total += stream.take(piece * 10, 10, piece == 39);
            come[piece as usize] = true;
            let in_order = come.iter().take_while(|&&come| come).count() as u64;
            let others = come.iter().filter(|&&come| come).count() as u64 - in_order;
            prop_assert_eq!((stream.expected(), stream.waiting), (in_order * 10, others * 10));
            prop_assert_eq!(total, stream.expected());
            prop_assert_eq!(stream.is_complete(), in_order == 40);
        }
    }
}
