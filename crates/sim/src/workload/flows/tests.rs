use super::*;
use crate::workload::tests::{complaints, drain, play, source, source_error, text};

fn table(entries: &[(&str, Value)]) -> Value {
    Value::Table(entries.iter().map(|(key, value)| (key.to_string(), value.clone())).collect())
}

fn flow(src: i64, dst: i64, more: &[(&str, Value)]) -> Value {
    let fixed = [("src", Value::Integer(src)), ("dst", Value::Integer(dst)), ("size", text("1MB"))];
    table(&[&fixed, more].concat())
}

fn list(flows: Vec<Value>) -> [(&'static str, Value); 1] {
    [("flows", Value::List(flows))]
}

#[test]
fn flows_may_be_listed_in_any_order_and_wait_for_each_other() {
    let keys = list(vec![
        flow(0, 1, &[("start", text("10us"))]),
        flow(1, 2, &[("after", Value::Integer(0)), ("compute", text("5us"))]),
        flow(3, 0, &[("start", text("1us")), ("deadline", text("1ms"))]),
    ]);
    let source = source("flows", 4, &keys);
    let flows = drain(&*source);
    assert_eq!(flows.iter().map(|f| f.src).collect::<Vec<_>>(), [3, 0, 1]);
    assert_eq!(flows[0].deadline, Some(Time::from_us(1000)));
    assert_eq!(source.dependencies(), [(1, 2)]);
    let starts: Vec<_> = play(&*source, Time::from_us(2)).iter().map(|t| t.0.ns()).collect();
    assert_eq!(starts, [1000, 10_000, 17_000]);
}

#[test]
fn a_wrong_flow_is_named_by_its_place() {
    let complaint = |value| complaints("flows", &list(vec![flow(0, 1, &[]), value])).remove(0);
    assert_eq!(complaint(table(&[("src", Value::Integer(1))])), "flows: flow 1: dst is missing");
    assert!(complaint(flow(0, 1, &[("sise", text("1MB"))])).contains("did you mean \"size\""));
    assert!(complaint(flow(0, 1, &[("start", text("10"))])).contains("flow 1: start: \"10\" has no unit"));
    assert!(complaint(flow(0, 1, &[("after", Value::Integer(1))])).contains("after: expected the index"));
    assert!(complaint(text("0->1")).contains("expected a table"));
    assert!(complaints("flows", &[])[0].contains("expected at least one flow"));
    let error = |value| source_error("flows", 4, &list(vec![flow(0, 1, &[]), value])).to_string();
    assert_eq!(error(flow(9, 1, &[])), "flow 1: src: unknown host 9 (the nearest below it is 3)");
    assert_eq!(error(flow(2, 2, &[])), "flow 1: src and dst are both host 2: a flow needs two hosts");
    assert!(error(flow(2, 3, &[("after", Value::Integer(0))])).contains("has no information about its end"));
}
