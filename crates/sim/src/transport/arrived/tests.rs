use super::*;
use crate::engine::random::RandomStream;
use std::collections::BTreeSet;

#[test]
fn the_search_wraps_around_after_the_last_packet() {
    let mut arrived = Arrived::new(4);
    assert!(arrived.take(1) && arrived.take(3) && !arrived.take(3) && !arrived.take(4));
    let found = [0, 1, 2, 3, 4].map(|from| arrived.missing_from(from));
    assert_eq!(found, [Some(0), Some(2), Some(2), Some(0), Some(0)]);
    assert!(arrived.take(0) && arrived.take(2));
    assert_eq!((arrived.missing(), arrived.missing_from(2)), (0, None));
}

#[test]
fn any_order_of_arrival_is_as_a_plain_set_has_it() {
    let mut random = RandomStream::new(2, "arrived");
    for packets in [1u32, 63, 64, 65, 128, 500] {
        let mut arrived = Arrived::new(packets);
        let mut missing: BTreeSet<u32> = (0..packets).collect();
        while !missing.is_empty() {
            // Mostly in order, now and then anywhere.
            let number = match random.below(4) {
                0 => random.below(u64::from(packets)) as u32,
                _ => *missing.first().unwrap(),
            };
            assert_eq!(arrived.take(number), missing.remove(&number));
            let from = random.below(u64::from(packets) + 2) as u32;
            let expected = missing.range(from..).next().or(missing.first()).copied();
            assert_eq!(arrived.missing_from(from), expected, "from {from} of {packets}");
            assert_eq!(arrived.missing() as usize, missing.len());
        }
    }
}
