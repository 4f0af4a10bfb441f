use super::*;

fn losses(retransmitted: u64) -> LossCounters {
    LossCounters { data_sent: 1000, retransmitted, ..LossCounters::default() }
}

#[test]
fn the_cause_is_how_the_majority_of_packets_were_lost_or_came_twice() {
    let spurious = LossCounters { retransmitted_spurious: 30, data_refused: 200, ..losses(230) };
    assert!(cause(&spurious).contains("30 unnecessarily") && cause(&spurious).contains("nothing was lost"));
    assert!(cause(&spurious).contains("discarded 200"), "{}", cause(&spurious));
    let late = LossCounters { timeouts: 4, ..spurious };
    assert!(cause(&late).contains("4 timeouts, 0 data packets lost"), "{}", cause(&late));
    let dropped = LossCounters { data_dropped: 31, data_lost_at_random: 2, ..spurious };
    assert!(cause(&dropped).contains("dropped in full or marking buffers (31 of 33"), "{}", cause(&dropped));
    let dead = LossCounters { data_lost_on_dead_links: 40, ..dropped };
    assert!(cause(&dead).contains("lost on links that went down (40 of 73"), "{}", cause(&dead));
    let stranded = LossCounters { data_stranded: 50, ..dead };
    assert!(cause(&stranded).contains("had no route"), "{}", cause(&stranded));
    let random = LossCounters { data_lost_at_random: 60, ..stranded };
    assert!(cause(&random).contains("lost at random"), "{}", cause(&random));
    assert!(cause(&losses(20)).contains("none was lost, and none arrived twice"));
}

#[test]
fn one_in_a_hundred_is_silent_and_more_is_not_in_the_run_or_in_one_group() {
    let names = Names { groups: vec!["web".into(), "bulk".into()], ..Names::default() };
    let with = |groups: Vec<LossCounters>| {
        let outcome = Outcome { losses: groups, ..Outcome::nothing(weftline_sim::measure::Ending::Done) };
        sent_again(&outcome, &names)
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
fn timeouts_determine_the_tail_if_a_majority_of_the_slowest_flows_had_one() {
    let flows = |late: u32| (0..300).map(|i| (f64::from(i) * 1e3, u32::from(i >= 300 - late))).collect();
    assert_eq!(tail(&Times(flows(1))), None, "one of three");
    let found = tail(&Times(flows(2))).unwrap();
    assert!(found.contains("(3, which took 297.0 us or longer) 2 waited"), "{found}");
    assert_eq!(tail(&Times(Vec::new())), None);
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
    outcome.ports[0].2.ecn_marks = 1;
    assert_eq!(never_marked(&outcome, &all, &dctcp), None);
}
