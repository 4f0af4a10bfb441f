use super::super::Action;
use super::*;
use crate::engine::random::RandomStream;

#[test]
fn any_number_of_events_is_sorted_and_parted_from_what_comes_later() {
    let mut random = RandomStream::new(1, "sorter");
    let (mut sorter, mut own) = (Sorter::default(), Own::default());
    for round in 0..2000 {
        let count = random.below(400) as usize;
        let magnitude = random.below(40);
        let length = 1 << magnitude;
        let mut inbox: Vec<Event> = (0..count)
            .map(|_| {
                let port = random.below(3) as u32;
                Event::new(Time(round + random.below(length + length / 4)), Action::Departure { port })
            })
            .collect();
        let until = Time(round + length);
        let mut expected: Vec<Event> = inbox.iter().copied().filter(|event| event.time() < until).collect();
        let later: Vec<Event> = inbox.iter().copied().filter(|event| event.time() >= until).collect();
        own.clear();
        let rest: Vec<Event> = sorter.take_in(&mut inbox, Time(round), until).to_vec();
        for _ in 0..random.below(20) {
            let event = Event::new(Time(round + random.below(length)), Action::Departure { port: 1 });
            own.insert(event);
            expected.push(event);
        }
        expected.sort_unstable();
        let mut due = sorter.sorted.due();
        let popped: Vec<Event> = std::iter::from_fn(|| due.next(&mut own)).map(|(event, _)| event).collect();
        assert_eq!((popped, rest), (expected, later));
    }
}
