//! TCP end to end: times computed by hand, losses, laws of its controllers, and what a scenario may say of it.

mod common;

use common::*;
use std::path::Path;
use weftline_sim::config::{Config, TcpConfig, TransportConfig, Until};
use weftline_sim::scenario::{Hooks, Scenario};
use weftline_sim::units::Time;
use weftline_sim::workload::FlowSpec;

/// A dumbbell with hosts at 1 Gb/s and 1 ms, 100 Mb/s and 8 ms between them: data of 1050 B, all else 50 B.
const DUMBBELL: &str = r#"
[topology]
kind = "dumbbell"
left = 4
right = 4
host_link = { rate = "1Gbps", delay = "1ms" }
bottleneck_link = { rate = "100Mbps", delay = "8ms" }

[transport]
kind = "tcp"
mss = "1000B"
header = "50B"
ack_header = "50B"
syn_header = "50B"
ack_every = 1
controller = { kind = "newreno" }

[[workload]]
kind = "permutation"
size = "1KB"
"#;

fn load(sets: &[(&str, &str)]) -> Result<Scenario, String> {
    let sets: Vec<(String, String)> = sets.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    Scenario::load(DUMBBELL, "tcp.toml", Path::new("."), &sets, None, Hooks::default())
        .map_err(|error| error.to_string())
}

fn dumbbell(sets: &[(&str, &str)], flows: Vec<FlowSpec>) -> Config {
    let scenario = load(sets).unwrap_or_else(|error| panic!("{error}"));
    let mut config = Config { traffic: traffic(flows), ..scenario.config().expect("a configuration") };
    if let Until::FlowsDone { stall, .. } = &mut config.until {
        *stall = Time::from_ms(300_000);
    }
    config
}

fn tcp_of(config: &mut Config) -> &mut TcpConfig {
    match &mut config.transports[0] {
        TransportConfig::Tcp(tcp) => tcp,
        other => panic!("the transport is {}", other.name()),
    }
}

/// Completion times in tenths of a microsecond.
fn tenths(config: Config) -> Vec<u64> {
    let (kept, _) = run(config);
    completion_times(&kept).iter().map(|fct| fct.ns() / 100).collect()
}

#[test]
fn a_handshake_and_one_window_take_the_time_that_links_take() {
    // SYN and SYN-ACK 10.0048 ms each (0.4 + 4 + 0.4 us and 10 ms). The third packet is 0.4 us ahead of the data; ten of
    // them, 84 us each at the bottleneck, and 10.0048 ms for the last acknowledgement.
    let way = 84 + 84 + 840 + 100_000;
    let one_window = 2 * 100_048 + 4 + way + 9 * 840 + 100_048;
    assert_eq!(tenths(dumbbell(&[], vec![flow(0, 4, 10_000, Time::ZERO)])), [one_window]);
}

#[test]
fn slow_start_doubles_the_window_every_round_trip() {
    let way = 84 + 84 + 840 + 100_000;
    // Each of the ten acknowledgements, 84 us apart, lets two segments out: twenty, back to back at the bottleneck.
    let first_ack = 2 * 100_048 + 4 + way + 100_048;
    let second_window = first_ack + way + 19 * 840 + 100_048;
    assert_eq!(tenths(dumbbell(&[], vec![flow(0, 4, 30_000, Time::ZERO)])), [second_window]);
}

#[test]
fn two_flows_fill_a_bottleneck() {
    let flows = vec![flow(0, 4, 20_000_000, Time::ZERO), flow(1, 5, 20_000_000, Time::from_ms(1))];
    let limit = [("switch.queue", "{ kind = \"priority\", limit = \"262500B\", drop = \"tail\" }")];
    let (kept, outcome) = run(dumbbell(&limit, flows));
    let last = completion_times(&kept).into_iter().max().unwrap();
    // 40 MB in packets of 1050 B at 100 Mb/s: 3.36 s.
    assert!(last > Time::from_ms(3360) && last < Time::from_ms(3900), "{last}");
    assert!(sum_of(&outcome, |port| port.packets_dropped) > 0);
    let again: u64 = kept.flows.iter().map(|flow| flow.packets_retransmitted).sum();
    assert_eq!(again, sum_of(&outcome, |port| port.packets_dropped), "what was lost is sent again, once");
}
