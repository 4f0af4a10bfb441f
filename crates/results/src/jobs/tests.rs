use super::*;
use crate::scratch::Scratch;
use weftline_sim::workload::JobShape;

fn step(source: u16, step: u32, start: u64, finish: Option<u64>) -> StepRecord {
    let bus = Some((6, 4));
    let shape =
        JobShape { operation: "ring-all-reduce", ranks: 4, bytes: Some(1000), bus, ..JobShape::default() };
    StepRecord {
        source,
        step,
        number: step,
        group: source,
        shape,
        whole: false,
        part: false,
        bytes: 1000,
        start: Time::from_us(start),
        begin: Time::from_us(start),
        finish: finish.map(Time::from_us),
        ideal: Some(Time::from_us(2)),
        last: finish.map(|_| (7, 3)),
        last_recorded: true,
        exposed: Some(Time::from_us(3)),
        straggler: finish.map(|_| Time::from_us(1)),
    }
}

#[test]
fn bandwidths_are_those_of_nccl_tests_and_steps_are_counted_from_finish_to_finish() {
    let dir = Scratch::new();
    let names = Names { groups: vec!["a".into(), "b".into()], ..Names::default() };
    let steps =
        [step(0, 0, 0, Some(4)), step(0, 1, 5, Some(10)), step(1, 0, 0, Some(9)), step(1, 1, 9, None)];
    write(dir.path(), &names, &steps).unwrap();
    let rows = read(dir.path()).unwrap();
    assert_eq!(rows.as_array().unwrap().len(), 4);
    // 8 kbit in 4 us are 2 Gb/s; around a ring of four every link carries 6/4 of the data.
    assert_eq!((&rows[0]["algbw_bps"], &rows[0]["busbw_bps"]), (&json!(2e9), &json!(3e9)));
    assert_eq!((&rows[0]["job"], &rows[0]["operation"]), (&json!("a"), &json!("ring-all-reduce")));
    assert_eq!((&rows[1]["time_ns"], &rows[1]["finish_to_finish_ns"]), (&json!(5e3), &json!(6e3)));
    // Another job does not continue the first.
    assert_eq!((&rows[2]["job"], &rows[2]["finish_to_finish_ns"]), (&json!("b"), &Value::Null));
    assert_eq!((&rows[2]["last_flow"], &rows[2]["last_host"]), (&json!(7), &json!(3)));
    assert_eq!((&rows[0]["exposed_ns"], &rows[0]["straggler_ns"]), (&json!(3e3), &json!(1e3)));
    for key in ["finish_ns", "time_ns", "finish_to_finish_ns", "algbw_bps", "busbw_bps", "last_flow"] {
        assert_eq!(rows[3][key], Value::Null, "{key} of a step that has not ended");
    }
}

#[test]
fn the_bandwidth_of_a_step_that_overlaps_the_one_before_is_over_the_time_from_its_own_start() {
    let dir = Scratch::new();
    let names = Names { groups: vec!["a".into()], ..Names::default() };
    let second = StepRecord { begin: Time::from_us(9), ..step(0, 1, 2, Some(10)) };
    write(dir.path(), &names, &[step(0, 0, 0, Some(9)), second]).unwrap();
    let rows = read(dir.path()).unwrap();
    // It adds 1 us to its job, and took 8 us: 8 kbit in these are 1 Gb/s.
    assert_eq!((&rows[1]["time_ns"], &rows[1]["algbw_bps"]), (&json!(1e3), &json!(1e9)));
    assert_eq!(rows[1]["busbw_bps"], json!(1.5e9));
}

#[test]
fn events_that_finish_in_another_order_count_from_the_finish_before_them_so_that_their_mean_is_that_of_all() {
    let part = StepRecord { part: true, ..step(0, 9, 0, Some(5)) };
    let steps =
        [step(0, 0, 0, Some(10)), step(0, 1, 1, Some(4)), step(0, 2, 2, None), part, step(0, 3, 3, Some(13))];
    let gaps = finish_to_finish(&steps);
    assert_eq!(gaps, [Some(Time::from_us(6)), None, None, None, Some(Time::from_us(3))]);
    // (last finish - first finish) / 2
    let sum = gaps.iter().flatten().fold(Time::ZERO, |sum, gap| sum + *gap);
    assert_eq!(sum, Time::from_us(13 - 4));
}
