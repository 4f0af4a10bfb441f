use super::*;
use crate::parameters::Value;
use crate::workload::tests::{complaints, drain, source, source_error, text};

#[test]
fn senders_and_receivers_are_paired_in_order_and_never_run_out() {
    let keys = [("hosts", text("0-2")), ("to", text("5,4,6")), ("stagger", text("1ms"))];
    let flows = drain(&*source("bulk", 8, &keys));
    let spans: Vec<_> = flows.iter().map(|f| (f.src, f.dst, f.start.ns())).collect();
    assert_eq!(spans, [(0, 5, 0), (1, 4, 1_000_000), (2, 6, 2_000_000)]);
    // 11 days at 10 Gb/s.
    assert!(flows.iter().all(|flow| flow.size == 1 << 50));
}

#[test]
fn left_to_itself_the_first_half_sends_to_the_second() {
    let pairs: Vec<_> = drain(&*source("bulk", 6, &[])).iter().map(|flow| (flow.src, flow.dst)).collect();
    assert_eq!(pairs, [(0, 3), (1, 4), (2, 5)]);
}

#[test]
fn jitter_makes_flows_later_by_less_than_it() {
    let keys = [
        ("hosts", text("0-3")),
        ("to", text("4-7")),
        ("flows_per_pair", Value::Integer(50)),
        ("start", text("1s")),
        ("jitter", text("10ms")),
    ];
    let flows = drain(&*source("bulk", 8, &keys));
    let late = flows.iter().map(|flow| (flow.start - Time::from_ms(1000)).as_ns() / 1e6);
    assert!(flows.len() == 200 && late.clone().all(|late| (0.0..10.0).contains(&late)));
    let mean = late.sum::<f64>() / 200.0;
    assert!((4.0..6.0).contains(&mean), "{mean}");
}

#[test]
fn pairs_that_cannot_be_made_are_refused() {
    let error = source_error("bulk", 8, &[("hosts", text("0-2")), ("to", text("4-5"))]);
    assert_eq!(error.to_string(), "2 receivers for 3 senders: expected equal numbers");
    let error = source_error("bulk", 8, &[("hosts", text("0-2")), ("to", text("2,1,0"))]);
    assert_eq!(error.key, "to");
    assert_eq!(complaints("bulk", &[("size", text("0B"))]), ["size: a flow needs at least one byte"]);
}
