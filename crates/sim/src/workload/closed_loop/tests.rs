use super::*;
use crate::parameters::Value;
use crate::workload::tests::{drain, play, source, source_error, text};

#[test]
fn one_slot_asks_waits_thinks_and_asks_again() {
    let keys = [
        ("clients", text("0")),
        ("servers", text("1")),
        ("requests", Value::Integer(2)),
        ("think_time", text("5us")),
        ("service_time", text("2us")),
        ("size", text("4KB")),
    ];
    let source = source("closed-loop", 2, &keys);
    let flows = drain(&*source);
    let shape: Vec<_> = flows.iter().map(|f| (f.src, f.dst, f.size)).collect();
    assert_eq!(shape, [(0, 1, 100), (1, 0, 4000), (0, 1, 100), (1, 0, 4000)]);
    // Every transfer takes 1 us: 0-1, service to 3, 3-4, think to 9, 9-10, service to 12, 12-13.
    let starts: Vec<_> = play(&*source, Time::from_us(1)).iter().map(|t| t.0.ns()).collect();
    assert_eq!(starts, [0, 3000, 9000, 12000]);
}

#[test]
fn a_client_keeps_as_many_requests_outstanding_as_it_has_slots() {
    let keys = [
        ("clients", text("0-2")),
        ("concurrency", Value::Integer(4)),
        ("requests", Value::Integer(5)),
        ("thinking", text("exponential")),
        ("think_time", text("1us")),
    ];
    let source = source("closed-loop", 8, &keys);
    assert_eq!(drain(&*source).len(), 3 * 4 * 5 * 2);
    assert_eq!(source.dependencies().len(), 120 - 12);
    let times = play(&*source, Time::from_us(1));
    let at_once = times.iter().filter(|t| t.0 == Time::ZERO).count();
    assert_eq!(at_once, 12);
}

#[test]
fn a_client_that_is_the_only_server_is_refused() {
    let keys = [("clients", text("0-3")), ("servers", text("2"))];
    assert_eq!(source_error("closed-loop", 4, &keys).to_string(), "host 2 has no server except itself");
    let many = [("requests", Value::Integer(1_000_000_000))];
    assert!(source_error("closed-loop", 4, &many).to_string().contains("the limit of 50000000"));
}
