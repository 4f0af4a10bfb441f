//! Multipath TCP end to end: times computed by hand, subflows and their paths, losses, coupling, failures.

mod common;

use common::*;
use std::path::Path;
use weftline_sim::config::{Config, LinkLoss, Until};
use weftline_sim::scenario::{Hooks, Scenario};
use weftline_sim::units::Time;
use weftline_sim::workload::FlowSpec;

/// Two leaves and four spines; hosts at 1 Gb/s and 1 ms, 100 Mb/s and 1 ms by each spine. Data have 1050 B, all else 50 B and
/// what an option of the set-up adds.
const FOUR_PATHS: &str = r#"
[topology]
kind = "leaf-spine"
leaves = 2
spines = 4
hosts_per_leaf = 4
host_link = { rate = "1Gbps", delay = "1ms" }
fabric_link = { rate = "100Mbps", delay = "1ms" }

[transport]
kind = "mptcp"
mss = "1000B"
header = "50B"
ack_header = "50B"
syn_header = "50B"
controller = { kind = "newreno" }

[[workload]]
kind = "permutation"
size = "1KB"
"#;

fn load(text: &str, sets: &[(&str, &str)]) -> Result<Scenario, String> {
    let sets: Vec<(String, String)> = sets.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    Scenario::load(text, "mptcp.toml", Path::new("."), &sets, None, Hooks::default())
        .map_err(|error| error.to_string())
}

fn four_paths(sets: &[(&str, &str)], flows: Vec<FlowSpec>) -> Config {
    let scenario = load(FOUR_PATHS, sets).unwrap_or_else(|error| panic!("{error}"));
    let mut config = Config { traffic: traffic(flows), ..scenario.config().expect("a configuration") };
    config.until = Until::FlowsDone { grid: Time::from_ms(1), stall: Time::from_ms(100_000) };
    config
}

#[test]
fn a_handshake_and_one_window_take_the_time_that_links_take() {
    // One subflow: SYN and SYN-ACK with 4 and 12 B of option, ten segments, one data acknowledgement; ways of 4 ms.
    let sets = [("transport.subflows", "1"), ("transport.ack_every", "1")];
    let (kept, _) = run(four_paths(&sets, vec![flow(0, 4, 10_000, Time::ZERO)]));
    // At 1 Gb/s a byte takes 8 ns, at 100 Mb/s 80: 2 (8 + 80) ns a byte of what is sent alone.
    let alone = |bytes: u64| 4_000_000 + bytes * 176;
    let syns = alone(54) + alone(62);
    // The third packet, 50 B and 20 of option in place of the data acknowledgement's 12, leaves before the data.
    let (third, data) = (58 * 8, alone(1050) + 9 * 1050 * 80);
    assert_eq!(completion_times(&kept)[0].ns(), syns + third + data + alone(50));
}

#[test]
fn four_subflows_carry_a_flow_to_its_end() {
    for scheduler in ["min-rtt", "round-robin", "redundant"] {
        let kind = format!("\"{scheduler}\"");
        let sets = [("transport.scheduler", kind.as_str())];
        let (kept, outcome) = run(four_paths(&sets, vec![flow(0, 4, 20_000_000, Time::ZERO)]));
        println!("{scheduler}: {:?} {:?}", kept.flows[0], outcome.ending);
        assert!(kept.flows[0].finish.is_some());
    }
}

#[test]
fn whatever_packets_are_lost_no_connection_is_stuck() {
    for kinds in [
        LinkLoss::ALL,
        LinkLoss::DATA,
        LinkLoss::ACKNOWLEDGEMENTS,
        LinkLoss::control(1),
        LinkLoss::control(2),
        LinkLoss::control(3),
        LinkLoss::control(4),
    ] {
        for size in [500, 30_000, 1_000_000] {
            let flows = (0..4).map(|src| flow(src, 4 + src, size, Time::ZERO)).collect();
            let sets = [
                ("transport.rto_syn", "\"20ms\""),
                ("transport.rto_min", "\"20ms\""),
                ("transport.rto_max", "\"1s\""),
                ("transport.syn_retries", "30"),
                ("transport.retries", "1000"),
            ];
            let mut config = four_paths(&sets, flows);
            config.failures.loss = Some(LinkLoss { share: 0.05, kinds });
            let (kept, _) = run(config);
            assert!(kept.flows.iter().all(|flow| flow.finish.is_some()), "{kinds:x}: {:?}", kept.flows);
            for flow in &kept.flows {
                assert_eq!(flow.packets_sent, flow.size.div_ceil(1000) + flow.packets_retransmitted);
            }
        }
    }
}
