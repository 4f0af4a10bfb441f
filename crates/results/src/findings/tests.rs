use super::*;

fn losses(retransmitted: u64) -> LossCounters {
    LossCounters { data_sent: 1000, retransmitted, ..LossCounters::default() }
}

#[test]
fn the_cause_is_how_the_majority_of_packets_were_lost_or_came_twice() {
    let spurious = LossCounters { retransmitted_spurious: 30, data_refused: 200, ..losses(230) };
    assert!(
        cause(&spurious, 0, false).contains("30 unnecessarily")
            && cause(&spurious, 0, false).contains("acknowledgements came too late, and nothing was lost")
    );
    assert!(cause(&spurious, 0, false).contains("discarded 200"), "{}", cause(&spurious, 0, false));
    let asked = LossCounters { data_lost_at_random: 2, ..spurious };
    assert!(
        cause(&asked, 0, false).contains("went back to a lost packet more than once"),
        "{}",
        cause(&asked, 0, false)
    );
    assert!(!cause(&spurious, 0, false).contains("went back"));
    let late = LossCounters { timeouts: 4, ..spurious };
    assert!(cause(&late, 0, false).contains("4 timeouts, 0 data packets lost"), "{}", cause(&late, 0, false));
    let dropped = LossCounters { data_dropped: 31, data_lost_at_random: 2, ..spurious };
    assert!(
        cause(&dropped, 0, false).contains("dropped in full or marking buffers (31 of 33"),
        "{}",
        cause(&dropped, 0, false)
    );
    let dead = LossCounters { data_lost_on_dead_links: 40, ..dropped };
    assert!(
        cause(&dead, 0, false).contains("lost on links that went down (40 of 73"),
        "{}",
        cause(&dead, 0, false)
    );
    let stranded = LossCounters { data_stranded: 50, ..dead };
    assert!(cause(&stranded, 0, false).contains("had no route"), "{}", cause(&stranded, 0, false));
    let random = LossCounters { data_lost_at_random: 60, ..stranded };
    assert!(cause(&random, 0, false).contains("lost at random"), "{}", cause(&random, 0, false));
    let refused = LossCounters { data_refused: 20, ..losses(20) };
    assert!(
        cause(&refused, 25, false).contains("switches trimmed packets (20 arrived"),
        "{}",
        cause(&refused, 25, false)
    );
    assert!(cause(&losses(20), 0, false).contains("none was lost, and none arrived twice"));
    let reinjected = cause(&spurious, 0, true);
    assert!(
        reinjected.contains("MPTCP sent them over another subflow too, or packets overtook"),
        "{reinjected}"
    );
}

#[test]
fn a_deadlock_is_named_instead_of_the_pauses_that_it_causes() {
    use weftline_sim::measure::{Deadlock, PortTotals};
    let deadlock = Deadlock { since: Time::from_us(73), circle: vec![(0, 1), (1, 2)], ports: 4 };
    let totals = PortTotals { paused: Time::from_ms(1), ..PortTotals::default() };
    let outcome = Outcome {
        end: Time::from_ms(1),
        ports: vec![(0, 1, totals)],
        deadlock: Some(deadlock),
        ..Outcome::nothing(weftline_sim::measure::Ending::Done)
    };
    let found = of(&outcome, &Names::default(), Path::new(".")).unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].starts_with("PFC deadlock since 73.0 us: the ports node0.p1 -> node1.p2 have"),
        "{found:?}"
    );
}

#[test]
fn a_run_that_is_given_up_says_for_how_long_nothing_was_delivered_and_which_links_are_too_slow() {
    use weftline_sim::units::Rate;
    let names = Names { nodes: vec!["host0".into(), "s0".into()], ..Names::default() };
    let stall = Time::from_ms(100);
    let plain = Silence { stall, waited: stall, ..Silence::default() };
    assert_eq!(silent(&plain, &names), "no payload was delivered for 100ms (run.stall = 100ms)");
    let repaired = Silence { waited: Time::from_ms(5000), after_change: true, ..plain.clone() };
    assert_eq!(
        silent(&repaired, &names),
        "no payload was delivered for 5s after the last change of a link or switch (the time without a delivery before it, \
         which is longer than run.stall = 100ms)"
    );
    let packet = Rate(1).transmission_time(1500);
    let slow = SlowPort { node: 0, local: 0, peer: 1, rate: Rate(1), packet };
    assert_eq!(
        silent(&Silence { slow: vec![slow; 5], ..plain }, &names),
        "no payload was delivered for 100ms (run.stall = 100ms); host0.p0 (to s0) has a rate of 1bps, at which a packet takes \
         12000s; host0.p0 (to s0) has a rate of 1bps, at which a packet takes 12000s; host0.p0 (to s0) has a rate of 1bps, at \
         which a packet takes 12000s; 2 more links are as slow"
    );
}

#[test]
fn one_in_a_hundred_is_silent_and_more_is_not_in_the_run_or_in_one_group() {
    let names = Names { groups: vec!["web".into(), "bulk".into()], ..Names::default() };
    let with = |groups: Vec<LossCounters>| {
        let outcome = Outcome { losses: groups, ..Outcome::nothing(weftline_sim::measure::Ending::Done) };
        sent_again(&outcome, &names, 0)
    };
    assert_eq!(with(vec![losses(10), losses(10)]), None);
    assert!(
        with(vec![losses(11), losses(11)])
            .unwrap()
            .starts_with("1.1 % of the data packets were retransmitted (22 of 2000)")
    );
    let one = with(vec![losses(0), LossCounters { data_sent: 100, ..losses(2) }]).unwrap();
    assert!(
        one.starts_with("2.0 % of the data packets of group \"bulk\" were retransmitted (2 of 100)"),
        "{one}"
    );
    assert_eq!(with(Vec::new()), None);
}

#[test]
fn losses_that_nothing_had_repeated_by_the_end_are_named() {
    let names = Names { groups: vec!["web".into(), "bulk".into()], ..Names::default() };
    let with = |groups: Vec<LossCounters>| {
        let outcome = Outcome { losses: groups, ..Outcome::nothing(weftline_sim::measure::Ending::Done) };
        not_sent_again(&outcome, &names)
    };
    let lost = |data_dropped, data_lost_at_random, retransmitted| LossCounters {
        data_dropped,
        data_lost_at_random,
        ..losses(retransmitted)
    };
    assert_eq!(with(vec![lost(300, 0, 300)]), None, "all were repeated");
    assert_eq!(with(vec![lost(300, 0, 290)]), None, "one in a hundred");
    let found = with(vec![lost(300, 200, 10)]).unwrap();
    assert!(
        found.starts_with("49.0 % of the data packets were lost and had not been retransmitted when the run ended (490 of 1000)")
            && found.ends_with("dropped in full or marking buffers (300 of 500 that were lost)"),
        "{found}"
    );
    // A retransmission that brought nothing repairs no loss.
    let spurious = LossCounters { retransmitted_spurious: 20, ..lost(20, 0, 20) };
    let found = with(vec![LossCounters { data_sent: 9000, ..losses(0) }, spurious]).unwrap();
    assert!(found.starts_with("2.0 % of the data packets of group \"bulk\" were lost"), "{found}");
}

#[test]
fn timeouts_are_named_if_a_majority_of_the_slowest_flows_had_one() {
    let flows = |late: u32| {
        let timer = |i| if i >= 300 - late { Timer::Timeout } else { Timer::None };
        Times { flows: (0..300).map(|i| (f64::from(i) * 1e3, timer(i))).collect(), probe: None }
    };
    assert_eq!(tail(&flows(1), 0), None, "one of three");
    let found = tail(&flows(2), 0).unwrap();
    assert!(found.contains("of all flows of the run (3, which took 297.0 us or longer) 2 waited"), "{found}");
    assert_eq!(tail(&Times { flows: Vec::new(), probe: None }, 0), None);
}

#[test]
fn timers_of_loss_detection_determine_the_tail_where_its_flows_are_late_by_one_without_a_timeout() {
    let probe = Some(200e6);
    let of = |fct, ideal, again, timeouts| Timer::of(fct, ideal, again, timeouts, probe);
    assert_eq!(of(200.1e6, 6e3, 1.0, 0.0), Timer::Probe);
    assert_eq!(of(200.1e6, 6e3, 1.0, 1.0), Timer::Timeout);
    assert_eq!(of(200.1e6, 6e3, 0.0, 0.0), Timer::None, "nothing was sent again");
    assert_eq!(of(199.9e6, 6e3, 1.0, 0.0), Timer::None, "not so late");
    assert_eq!(of(900e6, 300e6, 1.0, 0.0), Timer::None, "it takes long alone");
    assert_eq!(Timer::of(200.1e6, 6e3, 1.0, 0.0, None), Timer::None, "no transport sends probes");
    let times = |last: Timer| {
        let timer = |i| if i == 15 { last } else { Timer::None };
        Times { flows: (0..16).map(|i| (if i == 15 { 200.1e6 } else { 5e4 }, timer(i))).collect(), probe }
    };
    let found = tail(&times(Timer::Probe), 1).unwrap();
    assert!(
        found.starts_with(
            "timers of loss detection probably determine the tail: of the slowest 1 % of all flows of the run (1, which took 200.100 ms or \
             longer) 1 sent packets again without a retransmission timeout and took at least 200.000 ms longer than alone"
        ),
        "{found}"
    );
    assert_eq!(tail(&times(Timer::Probe), 0), None, "more flows than probes");
    assert!(tail(&times(Timer::Timeout), 1).unwrap().starts_with("retransmission timeouts"));
}

#[test]
fn changes_after_the_end_of_the_run_are_counted_and_the_first_of_them_is_named() {
    let mut outcome = Outcome::nothing(weftline_sim::measure::Ending::Done);
    let changes = [(1, "spine0 down"), (5, "spine0 up"), (100, "leaf0 - spine1 at 10Gbps")];
    let failures = changes.map(|(ms, what)| (Time::from_ms(ms), what.to_string())).to_vec();
    let names = Names { failures, ..Names::default() };
    outcome.end = Time::from_ms(100);
    assert_eq!(after_the_end(&outcome, &names), None, "the last one is at the end");
    outcome.end = Time::from_ms(4);
    assert_eq!(
        after_the_end(&outcome, &names).unwrap(),
        "failures: 2 of 3 changes of links and switches lie after the end of the run at 4.000 ms and did not happen (the first one \
         is spine0 up at 5.000 ms)"
    );
    outcome.end = Time::from_ms(50);
    assert!(
        after_the_end(&outcome, &names).unwrap().ends_with("happen (leaf0 - spine1 at 10Gbps at 100.000 ms)")
    );
}

#[test]
fn marks_that_never_came_are_missed_where_there_was_congestion() {
    let mut outcome = Outcome::nothing(weftline_sim::measure::Ending::Done);
    let all = losses(0);
    let dctcp = ["dctcp".to_string()];
    assert_eq!(never_marked(&outcome, &all, &dctcp), None, "nothing happened");
    let port = weftline_sim::measure::PortTotals { packets_dropped: 5, ..Default::default() };
    outcome.ports.push((0, 0, port));
    assert!(never_marked(&outcome, &all, &dctcp).unwrap().contains("dropped 5 packets"));
    assert_eq!(never_marked(&outcome, &all, &[]), None);
    outcome.ports[0].2.pauses = 7;
    let both = never_marked(&outcome, &all, &dctcp).unwrap();
    assert!(both.contains("dropped 5 packets and ports were paused 7 times: dctcp reacted only to losses"));
    outcome.ports[0].2.packets_dropped = 0;
    let paused = never_marked(&outcome, &all, &dctcp).unwrap();
    assert!(paused.contains("although ports were paused 7 times: dctcp had nothing to react to"), "{paused}");
    assert!(!paused.contains("loss") && !paused.contains("dropped"), "{paused}");
    outcome.ports[0].2.ecn_marks = 1;
    assert_eq!(never_marked(&outcome, &all, &dctcp), None);
}

#[test]
fn few_marks_where_much_is_dropped_are_missed() {
    let names = Names { marked: vec!["dcqcn".into()], hosts: [9].into(), ..Names::default() };
    let port = |node, packets_dropped, ecn_marks| {
        let totals = weftline_sim::measure::PortTotals { packets_dropped, ecn_marks, ..Default::default() };
        (node, 0, totals)
    };
    let found = |names: &Names, ports: &[_]| {
        let mut outcome = Outcome::nothing(weftline_sim::measure::Ending::Done);
        outcome.ports = ports.to_vec();
        seldom_marked(&outcome, names, &losses(0))
    };
    // Not the marks of ports that dropped nothing, nor the drops of hosts.
    let few = found(&names, &[port(0, 11, 1), port(1, 0, 500), port(9, 200, 0)]).unwrap();
    assert!(
        few.starts_with("ports whose buffers dropped 11 packets marked 1: dcqcn reacted mostly"),
        "{few}"
    );
    assert_eq!(found(&names, &[port(0, 10, 0)]), None, "a hundredth of the data packets");
    assert_eq!(found(&names, &[port(0, 20, 2)]), None);
    assert_eq!(found(&Names { marked: Vec::new(), ..names }, &[port(0, 100, 0)]), None);
}

#[test]
fn short_flowlets_are_named_from_a_move_for_two_data_packets_on() {
    assert_eq!(short_flowlets(499, &losses(0)), None);
    let found = short_flowlets(500, &losses(0)).unwrap();
    assert!(found.starts_with("flowlets moved to another port 500 times"), "{found}");
    assert_eq!(short_flowlets(500, &LossCounters::default()), None, "nothing was sent");
}

#[test]
fn ports_that_pauses_held_for_long_are_counted_and_the_worst_is_named() {
    let names = Names { nodes: vec!["host0".into(), "leaf0".into()], ..Names::default() };
    let mut outcome = Outcome::nothing(weftline_sim::measure::Ending::Done);
    assert_eq!(paused(&outcome, &names), None, "no time has passed");
    outcome.end = Time::from_us(100);
    for (port, us) in [(0, 5), (1, 6), (2, 40), (3, 40)] {
        let totals = weftline_sim::measure::PortTotals { paused: Time::from_us(us), ..Default::default() };
        outcome.ports.push((1, port, totals));
    }
    let found = paused(&outcome, &names).expect("a finding");
    assert!(
        found.starts_with(
            "PFC paused leaf0.p2 (any of its classes) for 40 % of the run, and 2 other ports for more"
        ),
        "{found}"
    );
    outcome.ports.truncate(1);
    assert_eq!(paused(&outcome, &names), None, "a twentieth is no more than that");
}

#[test]
fn drops_are_named_where_pfc_should_have_prevented_them() {
    let mut names = Names { nodes: vec!["host0".into(), "leaf0".into()], lossless: true, ..Names::default() };
    let mut outcome = Outcome::nothing(weftline_sim::measure::Ending::Done);
    let dropped =
        |packets_dropped| weftline_sim::measure::PortTotals { packets_dropped, ..Default::default() };
    outcome.ports = vec![(0, 0, dropped(0)), (1, 0, dropped(0))];
    assert_eq!(dropped_despite_pauses(&outcome, &names), None);
    outcome.ports.extend([(1, 1, dropped(2)), (1, 2, dropped(5))]);
    let found = dropped_despite_pauses(&outcome, &names).expect("a finding");
    assert!(
        found.starts_with(
            "PFC was on, but switches dropped 7 packets (5 of them for leaf0.p2): the network was not"
        ),
        "{found}"
    );
    assert!(found.contains("headroom_factor"), "{found}");
    // A NIC of a host that drops is not a switch.
    names.hosts.insert(0);
    outcome.ports[0] = (0, 0, dropped(9));
    assert_eq!(dropped_despite_pauses(&outcome, &names).as_ref(), Some(&found));
    names.limits.insert((1, 2), weftline_sim::units::Bytes(36_000));
    let found = dropped_despite_pauses(&outcome, &names).expect("a finding");
    assert!(found.contains("exceeds 36KB (switch.queue.limit)") && !found.contains("headroom"), "{found}");
    names.lossless = false;
    assert_eq!(dropped_despite_pauses(&outcome, &names), None, "without PFC buffers drop");
}
