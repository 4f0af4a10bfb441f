//! pHost on the paper's network: 144 hosts, nine racks, four cores, 10 and 40 Gb/s, against the exact unit cases and the
//! flows of its authors' simulator.

mod common;

use common::*;
use std::path::Path;
use weftline_sim::config::Config;
use weftline_sim::scenario::{Hooks, Scenario};
use weftline_sim::units::Time;
use weftline_sim::workload::FlowSpec;

const PAPER: &str = r#"
[topology]
kind = "leaf-spine"
leaves = 9
spines = 4
hosts_per_leaf = 16
host_link = { rate = "10Gbps", delay = "200ns" }
fabric_link = { rate = "40Gbps", delay = "200ns" }

[switch]
forwarding = "ideal-cut-through"
cut_through_header = "40B"

[transport]
kind = "phost"

[[workload]]
kind = "permutation"
size = "1KB"
"#;

/// The paper's network with some settings changed, and these flows on it.
fn paper(sets: &[(&str, &str)], flows: Vec<FlowSpec>) -> Config {
    let sets: Vec<(String, String)> = sets.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    let scenario = Scenario::load(PAPER, "paper.toml", Path::new("."), &sets, None, Hooks::default());
    let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
    Config { traffic: traffic(flows), ..scenario.config().expect("a configuration") }
}

fn packets(src: u32, dst: u32, count: u64, start: Time) -> FlowSpec {
    flow(src, dst, count * 1460, start)
}

/// Completion times in nanoseconds, in the order of the flows.
fn fct_ns(sets: &[(&str, &str)], flows: Vec<FlowSpec>) -> Vec<u64> {
    let (kept, outcome) = run(paper(sets, flows));
    assert_eq!(sum_of(&outcome, |port| port.packets_dropped), 0);
    completion_times(&kept).iter().map(|fct| (fct.0 + 500) / 1000).collect()
}

#[test]
fn single_flows_take_the_authors_times() {
    let cases = [
        (0, 1, 1, 2_128),
        (0, 17, 1, 2_960),
        (0, 17, 2, 4_160),
        (0, 17, 8, 11_360),
        (0, 17, 9, 14_288),
        (0, 17, 12, 17_888),
        (0, 17, 13, 19_088),
        (0, 1, 8, 10_528),
        (0, 1, 9, 12_624),
        (0, 1, 100, 121_824),
        (0, 143, 100, 123_488),
        (5, 77, 1000, 1_203_489),
    ];
    let start = |at: usize| Time::from_ms(10 * at as u64);
    let flows = cases.iter().enumerate().map(|(at, &(src, dst, n, _))| packets(src, dst, n, start(at)));
    let expected = cases.map(|case| case.3);
    let found = fct_ns(&[], flows.collect());
    assert!(found.iter().zip(&expected).all(|(a, b)| a.abs_diff(*b) <= 1), "{found:?}\n{expected:?}");
}

#[test]
fn two_senders_share_a_receiver_shortest_first() {
    let flows = vec![packets(0, 40, 100, Time::ZERO), packets(20, 40, 20, Time::from_us(1))];
    assert_eq!(fct_ns(&[], flows), [147_488, 27_688]);
}

#[test]
fn a_sender_that_lets_its_tokens_expire_is_downgraded_for_thirty_microseconds() {
    let flows = vec![packets(0, 40, 100, Time::ZERO), packets(0, 60, 20, Time::from_us(1))];
    assert_eq!(fct_ns(&[], flows), [200_288, 27_688]);
}
