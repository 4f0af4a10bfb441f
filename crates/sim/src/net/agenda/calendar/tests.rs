use super::super::Action;
use super::*;
use crate::engine::random::RandomStream;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

#[test]
fn every_time_lies_in_the_slot_of_its_number() {
    let mut random = RandomStream::new(5, "slots");
    for length in [1, 128, 1000, 196_607, 200_000, 12 << 14, (15 << 20) + 7, u64::MAX] {
        let slots = Slots::of_length(Time(length));
        assert!((SHORTEST..=LONGEST).contains(&slots.length));
        assert!(slots.length <= length.max(SHORTEST) && slots.length > length.min(LONGEST) / 9 * 8);
        for _ in 0..2000 {
            let magnitude = random.below(63) + 1;
            let time = random.below(1 << magnitude);
            // Also the times around the begin of its slot, and the last of all.
            let begin = time - time % slots.length;
            for time in [time, begin, begin.saturating_sub(1), u64::MAX - time] {
                assert_eq!(slots.number_of(Time(time)), time / slots.length, "{length}");
            }
            assert_eq!(slots.start_of(time / slots.length), Time(begin));
        }
    }
}

/// Against a heap, in steps of any length, with delays from zero to far beyond the ring.
#[test]
fn events_come_out_in_order_whatever_their_distance() {
    for (seed, width, max) in [(1, 1 << 10, 36), (2, 1 << 15, 36), (3, 1 << 24, 36), (4, 1 << 10, 20)] {
        let mut random = RandomStream::new(seed, "calendar");
        let mut calendar = Calendar::by_time(Time(width));
        let mut oracle = BinaryHeap::new();
        let (mut now, mut added) = (Time::ZERO, 0);
        while added < 40_000 || !oracle.is_empty() {
            if added < 40_000 {
                for _ in 0..random.below(60) {
                    // Now and then far beyond the ring, while most go on within it.
                    let far = random.below(40) == 0;
                    let magnitude = random.below(if far { 36 } else { max });
                    let at = now + Time(random.below(1 << magnitude));
                    added += 1;
                    let event = Event::new(at, Action::Timer { host: 0, token: added, transport: 0 });
                    calendar.push(added, event);
                    oracle.push(Reverse(event));
                }
            }
            let Some(from) = calendar.none_before() else { continue };
            assert!(from <= oracle.peek().expect("an event").0.time());
            let magnitude = random.below(max - 6);
            let limit = from + Time(1 + random.below(1 << magnitude));
            loop {
                let expected = oracle.peek().filter(|event| event.0.time() < limit).copied();
                let found = calendar.pop_before(limit);
                assert_eq!(found.map(Reverse), expected);
                let Some(event) = found else { break };
                oracle.pop();
                now = event.time();
                if added < 40_000 && random.below(8) == 0 {
                    let magnitude = random.below(max);
                    let at = now + Time(random.below(1 << magnitude));
                    added += 1;
                    let event = Event::new(at, Action::Timer { host: 0, token: added, transport: 0 });
                    calendar.push(added, event);
                    oracle.push(Reverse(event));
                }
            }
            now = now.max(limit);
        }
    }
}
