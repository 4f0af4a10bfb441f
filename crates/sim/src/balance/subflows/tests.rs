use super::*;
use std::collections::BTreeSet;

/// Core paths that four subflows of a connection take on a Clos with two ways up at each of two tiers.
fn paths(rule: RankRule, connection: u64) -> usize {
    let rank = |subflow, tier| rule.rank(SubflowMark { connection, subflow }, tier, 2, 2);
    (0..4).map(|subflow| (rank(subflow, 0), rank(subflow, 1))).collect::<BTreeSet<_>>().len()
}

#[test]
fn four_subflows_take_four_paths_by_digits_and_two_by_turns() {
    for hashed_start in [false, true] {
        for connection in 0..20 {
            let of = |form| paths(RankRule { form, hashed_start }, connection);
            assert_eq!((of(RankForm::Digits), of(RankForm::RoundRobin)), (4, 2));
        }
    }
}

#[test]
fn four_hashed_subflows_on_four_paths_take_2_73_of_them_on_average() {
    // 4 (1 - (3/4)^4): what ECMP leaves of a connection's paths.
    let mut total = 0;
    for connection in 0..20_000u64 {
        let path = |subflow: u64| mix64(mix64(connection) ^ subflow) >> 62;
        total += (0..4).map(path).collect::<BTreeSet<_>>().len();
    }
    let mean = total as f64 / 20_000.0;
    assert!((mean - 2.734).abs() < 0.02, "{mean}");
}

#[test]
fn fewer_hops_alive_than_ranks_are_shared_in_turn() {
    let rule = RankRule { form: RankForm::RoundRobin, hashed_start: false };
    let ranks =
        |live| (0..5).map(move |subflow| rule.rank(SubflowMark { connection: 9, subflow }, 0, 4, live));
    assert_eq!(ranks(4).collect::<Vec<_>>(), [0, 1, 2, 3, 0]);
    assert_eq!(ranks(3).collect::<Vec<_>>(), [0, 1, 2, 0, 0]);
    assert_eq!(ranks(1).collect::<Vec<_>>(), [0; 5], "one alive: as in HULA");
    // The seventeenth subflow is the first again.
    let of = |subflow| rule.rank(SubflowMark { connection: 9, subflow }, 0, 4, 4);
    assert_eq!(of(16), of(0));
}

#[test]
fn a_hashed_start_spreads_first_subflows_over_the_ranks() {
    let rule = RankRule { form: RankForm::Digits, hashed_start: true };
    let mut count = [0; 4];
    (0..8000).for_each(|connection| {
        count[rule.rank(SubflowMark { connection, subflow: 0 }, 0, 4, 4) as usize] += 1
    });
    assert!(count.iter().all(|&c: &i32| c.abs_diff(2000) < 160), "{count:?}");
}

#[test]
fn strictly_disjoint_subflows_pass_over_ports_in_use() {
    assert_eq!(disjoint(1, &[false, true, true, false]), 3);
    assert_eq!(disjoint(3, &[false, true, false, true]), 0);
    assert_eq!(disjoint(2, &[true, true, true]), 2, "all in use: the rank stays");
}
