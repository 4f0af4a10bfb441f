//! Fastpass on the pHost paper's network, with the arbiter on a host of its own in rack 0: the exact unit cases and the flows
//! of the authors' simulator, under both start rules.

mod common;

use common::phost_paper::{authors, packets, with_flows};
use common::*;
use weftline_sim::config::Config;
use weftline_sim::units::Time;
use weftline_sim::workload::FlowSpec;

const RECEIPT: (&str, &str) = ("transport.start", "receipt");
const BOUNDARY: (&str, &str) = ("transport.start", "boundary");
const ARBITER: (&str, &str) = ("topology.extra_hosts", "1");

/// The paper's network with the arbiter's host and some settings changed, and these flows on it.
fn paper(sets: &[(&str, &str)], flows: Vec<FlowSpec>) -> Config {
    let sets: Vec<(&str, &str)> = std::iter::once(&ARBITER).chain(sets).copied().collect();
    with_flows("fastpass", &sets, flows)
}

/// Completion times in nanoseconds, in the order of the flows.
fn fct_ns(sets: &[(&str, &str)], flows: Vec<FlowSpec>) -> Vec<u64> {
    let (kept, outcome) = run(paper(sets, flows));
    assert_eq!(sum_of(&outcome, |port| port.packets_dropped), 0);
    assert!(kept.flows.iter().all(|flow| flow.packets_retransmitted == 0));
    completion_times(&kept).iter().map(|fct| (fct.0 + 500) / 1000).collect()
}

/// The start rule of the authors' run `fastpass` (as released) or `fastpassE` (as published).
fn rule_of(protocol: &str) -> (&'static str, &'static str) {
    if protocol == "fastpassE" { BOUNDARY } else { RECEIPT }
}

/// Runs the flows of one of the authors' cases: every time must be theirs to a nanosecond.
fn same_as_the_authors(case: &str, protocol: &str) {
    let Some((flows, times, _)) = authors(case, protocol) else { return };
    let found = fct_ns(&[rule_of(protocol)], flows);
    let near = |(found, time): (&u64, &f64)| (*found as f64 - time).abs() <= 1.0;
    assert!(found.iter().zip(&times).all(near), "{case} {protocol}: {found:?}\n{times:?}");
}

#[test]
fn single_flows_take_the_authors_times_under_both_start_rules() {
    same_as_the_authors("unit_single", "fastpass");
    same_as_the_authors("unit_single", "fastpassE");
}

#[test]
fn two_senders_share_a_receiver_and_two_receivers_a_sender_shortest_first() {
    same_as_the_authors("unit_two_senders", "fastpass");
    same_as_the_authors("unit_one_sender_two_dst", "fastpass");
    // Said here too, for those who have no reference data.
    let two = |a: FlowSpec| vec![packets(0, 40, 100, Time::ZERO), FlowSpec { start: Time::from_us(1), ..a }];
    assert_eq!(fct_ns(&[RECEIPT], two(packets(20, 40, 20, Time::ZERO))), [165_317, 37_265]);
    assert_eq!(fct_ns(&[RECEIPT], two(packets(0, 60, 20, Time::ZERO))), [165_317, 36_817]);
}

#[test]
fn short_flows_beside_a_long_one_take_the_authors_times_under_both_start_rules() {
    same_as_the_authors("unit_short_vs_long", "fastpass");
    same_as_the_authors("unit_short_vs_long", "fastpassE");
}
