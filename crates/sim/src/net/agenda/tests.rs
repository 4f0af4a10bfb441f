use super::*;
use crate::engine::random::RandomStream;

#[test]
fn an_event_says_what_happens() {
    let actions = [
        Action::Arrival { port: (1 << 28) - 1, packet: 7 },
        Action::Forward { port: 3, packet: u32::MAX },
        Action::Departure { port: 9 },
        Action::Wake { port: 5, serial: (1 << 24) - 1, transport: 15 },
        Action::Timer { host: (1 << 24) - 1, token: u32::MAX, transport: 14 },
        Action::SwitchTimer { switch: 2, token: 8 },
        Action::StartFlow { flow: u32::MAX, arrival: (1 << 28) - 1, stage: 0 },
        Action::StartFlow { flow: 4, arrival: 5, stage: 2 },
    ];
    let events = actions.map(|action| Event::new(Time(1), action));
    assert_eq!(events.map(Event::action), actions);
    assert!(events[..7].is_sorted(), "by rank");
}

/// Nodes that send to each other and to themselves: by windows, every node sees what it sees by the calendar.
#[test]
fn windows_and_calendar_are_the_same_for_every_node() {
    const NODES: u32 = 70;
    const DELAY: u64 = 1000;
    let respond = |event: Event, node: u32, mut add: Box<dyn FnMut(u32, Event) + '_>| {
        let seed = event.time().0 ^ u64::from(event.order() as u32) << 20;
        let mut random = RandomStream::new(seed, "respond");
        for _ in 0..random.below(3) {
            let token = random.below(1 << 20) as u32;
            let own = random.below(3) == 0;
            let to = if own { node } else { random.below(u64::from(NODES)) as u32 };
            let min = if to == node { 0 } else { DELAY };
            let magnitude = random.below(14);
            let at = Time(event.time().0 + min + random.below(1 << magnitude));
            add(to, Event::new(at, Action::Timer { host: to, token, transport: 0 }));
        }
    };
    let run = |kind: AgendaKind| {
        let mut agenda = Agenda::new(kind, (NODES as usize / 2, NODES as usize), 100);
        let mut seen: Vec<Vec<Event>> = vec![Vec::new(); NODES as usize];
        for node in 0..NODES {
            let start =
                Event::new(Time(u64::from(node) * 37), Action::Timer { host: node, token: 1, transport: 0 });
            agenda.push(node, start);
        }
        let mut limit = Time::ZERO;
        while limit < Time(300_000) {
            limit += Time(3333);
            let mut handle = |event: Event, agenda: &mut Agenda| {
                let Action::Timer { host, .. } = event.action() else { unreachable!() };
                seen[host as usize].push(event);
                respond(event, host, Box::new(|to, event| agenda.push(to, event)));
            };
            match kind {
                AgendaKind::Windows(_) => loop {
                    let Agenda::Windows(windows) = &mut agenda else { unreachable!() };
                    if !windows.open(limit) {
                        break;
                    }
                    let mut from = 0;
                    loop {
                        let Agenda::Windows(windows) = &mut agenda else { unreachable!() };
                        let Some(node) = windows.next_node(from) else { break };
                        from = node + 1;
                        windows.begin(node);
                        let in_order = windows.in_order();
                        let mut due = in_order.due();
                        while let Agenda::Windows(windows) = &mut agenda
                            && let Some((event, _)) = windows.next_of_node(&mut due)
                        {
                            handle(event, &mut agenda);
                        }
                        let Agenda::Windows(windows) = &mut agenda else { unreachable!() };
                        windows.give_back(in_order);
                    }
                },
                _ => {
                    while let Some(event) = agenda.next(limit) {
                        handle(event, &mut agenda);
                    }
                }
            }
        }
        seen
    };
    let calendar = run(AgendaKind::Calendar);
    assert!(calendar.iter().map(Vec::len).sum::<usize>() > 1000);
    // The delay is the longest that windows may be; ends of shorter ones lie elsewhere.
    for length in [DELAY, DELAY - 1, DELAY / 3, 7] {
        assert_eq!(calendar, run(AgendaKind::Windows(Time(length))), "{length}");
        assert_eq!(calendar, run(AgendaKind::ShortWindows(Time(length))), "{length}");
    }
}

#[test]
fn by_insertion_nics_that_wake_between_two_nanoseconds_do_so_at_the_second_after_all_other_events() {
    let order = |whole_ns: bool| {
        let mut agenda =
            Agenda::new(AgendaKind::Insertion { longest: Time(1000), whole_ns, by_wire: false }, (2, 2), 10);
        let wake = |port| Event::new(Time(1001), Action::Wake { port, serial: 0, transport: 0 });
        agenda.push(0, wake(5));
        agenda.push(0, wake(3));
        agenda.push(0, Event::of_arrival(Time(2000), 9, 1));
        let next = |agenda: &mut Agenda| agenda.next(Time::MAX).map(|event| (event.time().0, event.port()));
        [0; 3].map(|_| next(&mut agenda).unwrap())
    };
    assert_eq!(order(true), [(2000, 9), (2000, 3), (2000, 5)]);
    assert_eq!(order(false), [(1001, 5), (1001, 3), (2000, 9)]);
}

#[test]
fn an_end_that_only_has_a_number_is_over_for_what_was_inserted_later_and_comes_before_it() {
    let (free, all) = (Time::from_ns(10), Time::MAX);
    let begun = || {
        let mut agenda = Insertion::new(Time(1024), false, 4, None);
        agenda.push(Event::of_arrival(free, 1, 7));
        assert!(agenda.reserve(0));
        agenda.push(Event::of_arrival(free, 2, 8));
        agenda
    };
    // Before that it becomes an event, in its place.
    let mut agenda = begun();
    assert_eq!(agenda.next(all), Some(Event::of_arrival(free, 1, 7)));
    assert!(agenda.redeem(0, free, free));
    let rest: Vec<Event> = std::iter::from_fn(|| agenda.next(all)).collect();
    assert_eq!(rest, [Event::of_departure(free, 0), Event::of_arrival(free, 2, 8)]);
    // After that time the transmission is over, and it does not become an event.
    let mut agenda = begun();
    (0..2).for_each(|_| assert!(agenda.next(all).is_some()));
    assert!(!agenda.redeem(0, free, free) && agenda.next(all).is_none());
    // Earlier it is yet to come, later it is over; it is an event once at most.
    assert!(!begun().redeem(0, free, free + Time::from_ns(1)));
    let mut agenda = begun();
    assert_eq!([(); 2].map(|_| agenda.redeem(0, free, Time::from_ns(9))), [true, false]);
    // Links that hand packets on at the ends of transmissions need the event.
    assert!(!Insertion::new(Time(1024), false, 4, Some(Wires::new(4))).reserve(0));
}
