use super::*;
use crate::parameters::Value;
use crate::workload::tests::{complaints, drain, source, source_error, text};
use std::collections::BTreeSet;

#[test]
fn sixteen_to_one_at_once_in_the_order_of_the_hosts() {
    let keys = [("hosts", text("0-15")), ("receiver", text("16"))];
    let flows = drain(&*source("incast", 17, &keys));
    assert_eq!(flows.len(), 16);
    for (i, flow) in flows.iter().enumerate() {
        assert_eq!((flow.src, flow.dst, flow.size, flow.start), (i as u32, 16, 500_000, Time::ZERO));
    }
}

#[test]
fn senders_start_one_after_another_when_staggered() {
    let keys = [("receiver", text("0")), ("stagger", text("1us")), ("start", text("5us"))];
    let starts: Vec<_> = drain(&*source("incast", 4, &keys)).iter().map(|f| f.start.ns()).collect();
    assert_eq!(starts, [5000, 6000, 7000]);
}

#[test]
fn poisson_events_take_two_percent_of_the_capacity() {
    let keys = [("arrivals", text("poisson")), ("senders", Value::Integer(60)), ("duration", text("10s"))];
    let flows = drain(&*source("incast", 320, &keys));
    let bytes: u64 = flows.iter().map(|f| f.size).sum();
    let load = bytes as f64 * 8.0 / (320.0 * 100e9 * 10.0);
    assert!((load / 0.02 - 1.0).abs() < 0.01, "{load}");
    for event in flows.chunks(60).take(50) {
        let senders: BTreeSet<_> = event.iter().map(|f| f.src).collect();
        assert_eq!(senders.len(), 60);
        assert!(event.iter().all(|f| f.dst == event[0].dst && f.start == event[0].start));
    }
    let receivers: BTreeSet<_> = flows.iter().map(|f| f.dst).collect();
    assert_eq!(receivers.len(), 320);
}

#[test]
fn staggered_events_that_overlap_stay_sorted() {
    let keys = [
        ("arrivals", text("periodic")),
        ("every", text("2us")),
        ("stagger", text("1us")),
        ("count", Value::Integer(3)),
    ];
    let starts: Vec<_> = drain(&*source("incast", 4, &keys)).iter().map(|f| f.start.ns()).collect();
    assert_eq!(starts, [0, 1000, 2000, 2000, 3000, 4000, 4000, 5000, 6000]);
}

#[test]
fn a_request_is_shared_by_its_senders_and_ends_as_a_job() {
    let keys = [
        ("request", text("1MB")),
        ("senders", Value::Integer(4)),
        ("arrivals", text("periodic")),
        ("stagger", text("40us")),
        ("count", Value::Integer(2)),
    ];
    let incast = source("incast", 8, &keys);
    let flows = drain(&*incast);
    assert!(flows.len() == 8 && flows.iter().all(|flow| flow.size == 250_000));
    // Events overlap: the last sender of the first begins 120 us after it, the first of the second 100 us
    // after it.
    let jobs: Vec<u32> = incast.jobs().iter().map(|job| job.1).collect();
    assert_eq!(jobs, [0, 0, 0, 1, 0, 1, 1, 1]);
    let error = source_error("incast", 8, &[("request", text("3B"))]);
    assert_eq!(error.to_string(), "3B is less than a byte per sender for 7 senders");
    assert_eq!(complaints("incast", &[("request", text("0B"))]), ["request: must be greater than 0"]);
}

#[test]
fn a_request_that_does_not_divide_evenly_arrives_to_the_byte() {
    let keys = [("request", text("100KB")), ("receiver", text("3")), ("count", Value::Integer(2))];
    let periodic = [keys.as_slice(), &[("arrivals", text("periodic"))]].concat();
    let incast = source("incast", 4, &periodic);
    let sizes: Vec<u64> = drain(&*incast).iter().map(|flow| flow.size).collect();
    assert_eq!(sizes, [33_334, 33_333, 33_333].repeat(2));
    assert_eq!(incast.rest().map(|rest| rest.bytes), Some(200_000));
    // The load of events at random counts all of it.
    let random = [("request", text("100KB")), ("arrivals", text("poisson")), ("duration", text("1s"))];
    let asked = source("incast", 4, &random).asked().expect("a load");
    assert!((asked.rate / (0.02 * 4.0 * 100e9) - 1.0).abs() < 1e-9, "{}", asked.rate);
}

#[test]
fn more_senders_than_hosts_are_refused() {
    let error = source_error("incast", 8, &[("senders", Value::Integer(8))]);
    assert_eq!(error.to_string(), "8 senders, but only 7 hosts in addition to the receiver");
    assert_eq!(source_error("incast", 1, &[]).key, "senders");
    assert_eq!(source_error("incast", 8, &[("arrivals", text("poisson"))]).key, "duration");
    assert_eq!(source_error("incast", 8, &[("receiver", text("9"))]).key, "receiver");
    let zero = [("arrivals", text("periodic")), ("every", text("0us"))];
    assert_eq!(complaints("incast", &zero), ["every: must be greater than 0"]);
}
