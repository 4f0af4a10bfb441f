use super::*;
use crate::parameters::Value;
use crate::workload::tests::{drain, source, source_error, text};

#[test]
fn a_shift_of_half_and_one_pairs_hosts_as_the_standard_workload_does() {
    let keys = [("partners", text("shift")), ("size", text("10MB"))];
    let flows = drain(&*source("permutation", 128, &keys));
    assert_eq!(flows.len(), 128);
    assert!(flows.iter().all(|f| f.dst == (f.src + 65) % 128 && f.size == 10_000_000));
}

#[test]
fn everyone_sends_and_receives_once_in_each_round() {
    let keys = [("repeat", Value::Integer(3)), ("every", text("10us")), ("hosts", text("1-9"))];
    let flows = drain(&*source("permutation", 12, &keys));
    assert_eq!(flows.len(), 27);
    let mut receivers: Vec<_> = flows[..9].iter().map(|f| f.dst).collect();
    receivers.sort();
    assert_eq!(receivers, (1..=9).collect::<Vec<_>>());
    assert_eq!(flows[26].start, Time::from_us(20));
    assert_eq!(flows[26].dst, flows[8].dst);
}

#[test]
fn a_shift_onto_oneself_is_refused() {
    let keys = [("partners", text("shift")), ("shift", Value::Integer(8))];
    assert_eq!(source_error("permutation", 8, &keys).key, "shift");
}
