use super::*;

#[test]
fn an_unfinished_flow_has_missed_a_deadline_only_if_the_run_reached_it() {
    let due = |deadline, finish: Option<u64>, until| {
        let spec = FlowSpec { deadline, ..FlowSpec::default() };
        let record = FlowRecord::of(0, &spec, 0, Time::ZERO);
        FlowRecord { finish: finish.map(Time), until: Time(until), ..record }.met_deadline()
    };
    let deadline = Some(Time(20));
    assert_eq!(due(None, Some(10), 10), None);
    assert_eq!(due(deadline, Some(20), 20), Some(true));
    assert_eq!(due(deadline, Some(21), 21), Some(false));
    assert_eq!(due(deadline, None, 20), Some(false));
    assert_eq!(due(deadline, None, 19), None);
}
