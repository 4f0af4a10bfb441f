//! Tests of `counters`.

use super::*;

static GROUP: CounterGroup = CounterGroup {
    counters: &[
        Counter::sum("sum", "packets", "", ""),
        Counter { fold: Fold::Max, ..Counter::sum("max", "packets", "", "") },
        Counter { fold: Fold::MaxOfAll, ..Counter::sum("max_of_all", "ns", "", "") },
    ],
    gauges: &[Counter::sum("gauge", "bit/s", "", "")],
    metrics: &[
        Metric { part: "sum", series: ("new", ""), ..Metric::NONE },
        Metric { part: "max", over: &["sum"], series: ("ratio", ""), ..Metric::NONE },
    ],
    ..CounterGroup::NONE
};

#[test]
fn values_fold_and_what_nobody_counted_is_zero_or_none() {
    let of = |set: &CounterSet| ["sum", "max", "max_of_all"].map(|key| set.get(key));
    let mut set = CounterSet::default();
    set.complete(&[&GROUP]);
    assert_eq!(of(&set), [Some(0), None, None]);
    let mut set = CounterSet::default();
    set.add(&GROUP, [1, 5, 5, 0]);
    set.add(&GROUP, [2, 3, 7, 0]);
    assert_eq!(of(&set), [Some(3), Some(5), Some(7)]);
    set.add(&GROUP, [Some(1), Some(9), None]);
    set.add(&GROUP, [0, 0, 8, 0]);
    assert_eq!(of(&set), [Some(4), Some(9), None]);
}

#[test]
fn series_show_what_is_new_and_leave_out_ratios_to_nothing() {
    let (mut before, mut now) = (CounterSet::default(), CounterSet::default());
    before.add(&GROUP, [2, 1, 0, 50]);
    now.add(&GROUP, [6, 2, 0, 70]);
    let series = |set: &CounterSet, before| set[0].series(before).collect::<Vec<_>>();
    assert_eq!(series(&now, &before), [("new", 4.0), ("ratio", 0.25), ("gauge", 70.0)]);
    assert_eq!(series(&now, &now), [("new", 0.0), ("gauge", 70.0)]);
    assert_eq!(series(&before, &CounterSet::default())[0], ("new", 2.0));
}
