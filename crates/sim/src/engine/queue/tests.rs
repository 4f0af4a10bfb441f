use super::*;
use crate::engine::random::RandomStream;

impl Timed for (Time, u64) {
    fn time(&self) -> Time {
        self.0
    }
}

/// Run window by window, as a partition does: the events are the same, and no window is announced twice
/// without need.
#[test]
fn windows_let_out_what_comes_before_their_end_and_no_more() {
    let mut random = RandomStream::new(4, "windows");
    let mut queue: EventQueue<(Time, u64)> = EventQueue::new(Time(1024));
    let mut oracle = BinaryHeap::new();
    let (mut key, mut empty_windows) = (0u64, 0);
    let mut copy = Vec::new();
    while key < 2000 {
        let magnitude = random.below(40);
        let time = random.below(1 << magnitude);
        queue.push((Time(time), key));
        oracle.push(Reverse((time, key)));
        key += 1;
    }
    while let Some(from) = queue.none_before() {
        let limit = from + Time(1 + random.below(1_000_000));
        let before = copy.len();
        while let Some(event) = queue.pop_before(limit) {
            assert!(event.0 >= from && event.0 < limit);
            copy.push(event.1);
            if key < 6000 && random.below(2) == 0 {
                let magnitude = random.below(36);
                let time = limit.0 + random.below(1 << magnitude);
                queue.push((Time(time), key));
                oracle.push(Reverse((time, key)));
                key += 1;
            }
        }
        empty_windows = if copy.len() == before { empty_windows + 1 } else { 0 };
        assert!(empty_windows < 4, "windows that hold nothing follow each other");
    }
    let expected: Vec<u64> = std::iter::from_fn(|| oracle.pop()).map(|Reverse(event)| event.1).collect();
    assert_eq!(copy, expected);
}

/// Compared with a binary heap, for delays from zero to far beyond every wheel.
#[test]
fn events_come_out_by_time_and_key_whatever_their_distance() {
    for (seed, width) in [(1, 64), (2, 1024), (3, 1 << 20)] {
        let mut random = RandomStream::new(seed, "queue");
        let mut queue: EventQueue<(Time, u64)> = EventQueue::new(Time(width));
        let mut oracle = BinaryHeap::new();
        let mut now = 0;
        for key in 0..60_000u64 {
            if key % 3 == 2 {
                let event = queue.pop().unwrap();
                let Reverse(expected) = oracle.pop().unwrap();
                assert_eq!((event.0.0, event.1), expected);
                now = event.0.0;
                continue;
            }
            let magnitude = random.below(42);
            let time = now + random.below(1 << magnitude);
            queue.push((Time(time), key));
            oracle.push(Reverse((time, key)));
        }
        while let Some(Reverse(expected)) = oracle.pop() {
            let event = queue.pop().unwrap();
            assert_eq!((event.0.0, event.1), expected);
        }
        assert!(queue.pop().is_none() && queue.is_empty());
    }
}

/// The width of slots follows the events: bursts at one moment and within a nanosecond, then long quiet.
#[test]
fn events_come_out_in_order_while_the_width_of_slots_changes() {
    let mut random = RandomStream::new(9, "phases");
    let mut queue: EventQueue<(Time, u64)> = EventQueue::new(Time(1024));
    let mut oracle = BinaryHeap::new();
    let (mut now, mut key, mut shifts) = (0, 0u64, Vec::new());
    for phase in 0..40 {
        let spread = [1, 1 << 10, 1 << 24, 1 << 34][phase % 4];
        for _ in 0..3000 {
            let time = now + random.below(spread);
            queue.push((Time(time), key));
            oracle.push(Reverse((time, key)));
            key += 1;
            if random.below(3) > 0 {
                let event = queue.pop().unwrap();
                assert_eq!(Some(Reverse((event.0.0, event.1))), oracle.pop());
                now = event.0.0;
            }
        }
        shifts.push(queue.shift);
    }
    while let Some(Reverse(expected)) = oracle.pop() {
        let event = queue.pop().unwrap();
        assert_eq!((event.0.0, event.1), expected);
    }
    assert!(queue.is_empty());
    shifts.sort_unstable();
    assert!(shifts.last() > shifts.first(), "{shifts:?}");
}
