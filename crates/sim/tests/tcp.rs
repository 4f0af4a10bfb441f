//! TCP end to end: times computed by hand, losses, laws of its controllers, and what a scenario may say of it.

mod common;

use common::*;
use std::path::Path;
use weftline_sim::config::{Config, LinkLoss, Sampled, Until};
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

#[test]
fn a_delayed_acknowledgement_comes_after_its_delay_and_the_last_segment_has_none() {
    let fct = |sets: &[(&str, &str)], bytes| tenths(dumbbell(sets, vec![flow(0, 4, bytes, Time::ZERO)]))[0];
    let way = 84 + 84 + 840 + 100_000;
    let all_at_once = |segments: u64| 2 * 100_048 + 4 + way + (segments - 1) * 840 + 100_048;
    let two = [("transport.ack_every", "2"), ("transport.initial_window", "1")];
    assert_eq!(fct(&two, 1_000), all_at_once(1), "the last segment is acknowledged at once");
    // The first segment alone waits for 40 ms; the second and last does not.
    assert_eq!(fct(&two, 2_000), all_at_once(1) + 400_000 + way + 100_048);
    // Ten segments are five acknowledgements.
    assert_eq!(fct(&[("transport.ack_every", "2")], 10_000), all_at_once(10));
}

#[test]
fn without_an_answer_a_syn_is_repeated_ever_later_and_then_the_connection_dies() {
    let mut config = dumbbell(&[("transport.retries", "6")], vec![flow(0, 4, 10_000, Time::ZERO)]);
    config.failures.loss = Some(LinkLoss { share: 1.0, kinds: LinkLoss::ALL });
    config.until = Until::At(Time::from_ms(200_000));
    let (kept, outcome) = run(config);
    assert_eq!((kept.flows[0].finish, kept.flows[0].packets_sent), (None, 0));
    // One SYN and six more: at 1, 3, 7, 15, 31 and 63 s.
    assert_eq!(sum_of(&outcome, |port| port.packets_lost), 7);
}

#[test]
fn a_lost_tail_waits_for_the_timeout() {
    // Of the first window all are lost but what the handshake needs: the queue of the bottleneck holds one packet.
    let sets = [("switch.queue", "{ kind = \"fifo\", packets = 1 }"), ("transport.initial_window", "3")];
    let (kept, _) = run(dumbbell(&sets, vec![flow(0, 4, 3_000, Time::ZERO)]));
    // The third of three finds one on the link and one that waits. The first two are acknowledged, the last 84 us later than
    // alone; SRTT after them is within the 200 ms that the timeout adds to it.
    let fct = kept.flows[0].finish.unwrap();
    assert_eq!(kept.flows[0].packets_retransmitted, 1);
    let (way, ack) = (10_100_800_000u64, 10_004_800_000u64);
    let first_acks = 2 * ack + 400_000 + way + 84_000_000 + ack;
    assert!(fct.0 > first_acks + 220_000_000_000 && fct.0 < first_acks + 242_000_000_000, "{fct}");
}

/// Bytes per second of a flow between 10 s and the end, by a link with this share of data lost at random.
fn goodput_under_loss(controller: &str, share: f64, seconds: u64, sets: &[(&str, &str)]) -> f64 {
    let kind = format!("{{ kind = \"{controller}\" }}");
    let mut all = vec![("transport.controller", kind.as_str())];
    all.extend_from_slice(sets);
    let mut config = dumbbell(&all, vec![flow(0, 4, 1 << 40, Time::ZERO)]);
    config.failures.loss = Some(LinkLoss { share, kinds: LinkLoss::DATA });
    config.until = Until::At(Time::from_ms(1000 * seconds));
    config.measure.flow_goodput = Some(Sampled { what: vec![0], every: Time::from_ms(1000) });
    let (kept, _) = run_in(1, config);
    let rates: Vec<f64> =
        kept.samples.iter().filter(|s| s.time > Time::from_ms(10_000)).map(|s| s.value / 8.0).collect();
    rates.iter().sum::<f64>() / rates.len() as f64
}

#[test]
fn newreno_keeps_mathis_law_under_random_loss() {
    for share in [0.0005f64, 0.001, 0.002] {
        // Three links lose; RTT 20.1 ms, never a queue. C = sqrt(3/2) with an acknowledgement for every segment.
        let loss = 1.0 - (1.0 - share).powi(3);
        let predicted = 1000.0 / 0.0201056 * (1.5 / loss).sqrt();
        let found = goodput_under_loss("newreno", share, 600, &[("topology.bottleneck_link.rate", "1Gbps")]);
        println!("loss {loss:.5}: {found:.0} B/s, Mathis {predicted:.0}, ratio {:.3}", found / predicted);
        assert!((found / predicted - 1.0).abs() < 0.1, "{share}: {found} and {predicted}");
    }
}

/// Samples of a metric of flow 0.
fn watched(config: Config, every: Time, metric: &str) -> Vec<(f64, f64)> {
    let mut config = config;
    config.measure.controllers = Some(Sampled { what: vec![0], every });
    let (kept, _) = run_in(1, config);
    let of = |s: &&weftline_sim::measure::Sample| s.metric == metric;
    kept.samples.iter().filter(of).map(|s| (s.time.as_seconds(), s.value)).collect()
}

fn long_flow(controller: &str, seconds: u64, sets: &[(&str, &str)]) -> Config {
    let kind = format!("{{ kind = \"{controller}\" }}");
    let mut all = vec![("transport.controller", kind.as_str())];
    all.extend_from_slice(sets);
    let mut config = dumbbell(&all, vec![flow(0, 4, 1 << 40, Time::ZERO)]);
    config.until = Until::At(Time::from_ms(1000 * seconds));
    config
}

#[test]
fn vegas_keeps_two_to_four_packets_in_the_queue() {
    let queued = watched(long_flow("vegas", 20, &[]), Time::from_ms(100), "queued_segments");
    let late: Vec<f64> = queued.iter().filter(|s| s.0 > 10.0).map(|s| s.1).collect();
    println!("{late:?}");
    assert!(late.iter().all(|queued| (2.0..=4.0).contains(queued)), "{late:?}");
}

#[test]
fn cubic_follows_its_cubic_after_a_loss() {
    // A queue of one bandwidth-delay product; after the first loss the window is C (t - K)^3 + Wmax.
    let limit = [("switch.queue", "{ kind = \"fifo\", packets = 240 }")];
    let config = long_flow("cubic", 60, &limit);
    let (wmax, k, cwnd) = (
        watched(config.clone(), Time::from_ms(50), "w_max_segments"),
        watched(config.clone(), Time::from_ms(50), "k_seconds"),
        watched(config, Time::from_ms(50), "cwnd_bytes"),
    );
    for at in (0..cwnd.len()).step_by(10) {
        println!("{:.2} cwnd {:.1} wmax {:.1} k {:.2}", cwnd[at].0, cwnd[at].1 / 1000.0, wmax[at].1, k[at].1);
    }
}

#[test]
fn bbr_cycles_its_gain_and_looks_at_the_round_trip_time_every_ten_seconds() {
    let config = long_flow("bbr", 25, &[]);
    let cwnd = watched(config.clone(), Time::from_ms(5), "cwnd_bytes");
    let gain = watched(config.clone(), Time::from_ms(5), "pacing_gain");
    let mode = watched(config.clone(), Time::from_ms(5), "mode");
    let bandwidth = watched(config.clone(), Time::from_ms(5), "btlbw_bps");
    let rtprop = watched(config, Time::from_ms(5), "rtprop_ns");
    for at in (0..cwnd.len()).step_by(if std::env::var("ALL").is_ok() { 1 } else { 25 }) {
        println!(
            "{:.3} {} cwnd {:.1} gain {:.2} bw {:.2} rt {:.2}",
            cwnd[at].0,
            mode[at].1,
            cwnd[at].1 / 1e3,
            gain[at].1,
            bandwidth[at].1 / 1e6,
            rtprop[at].1 / 1e6
        );
    }
}

#[test]
fn dctcp_keeps_the_queue_at_its_mark() {
    let sets = [("switch.ecn", "{ kmin = \"30KB\", kmax = \"30KB\", pmax = 1.0 }")];
    let config = long_flow("dctcp", 10, &sets);
    let alpha = watched(config.clone(), Time::from_ms(100), "alpha");
    let cwnd = watched(config, Time::from_ms(100), "cwnd_bytes");
    for at in (0..cwnd.len()).step_by(5) {
        println!("{:.2} cwnd {:.1} alpha {:.3}", cwnd[at].0, cwnd[at].1 / 1000.0, alpha[at].1);
    }
}

#[test]
fn what_a_scenario_may_not_say_is_refused_with_the_reason() {
    let error = |sets: &[(&str, &str)]| load(sets).err().unwrap_or_default();
    println!("{}", error(&[("transport.controller", "{ kind = \"hpcc\" }")]));
    println!("{}", error(&[("transport.controller", "{ kind = \"cubik\" }")]));
    println!("{}", error(&[("transport.kind", "rdma"), ("transport.controller", "{ kind = \"cubic\" }")]));
    println!("{}", error(&[("transport.send_buffer", "1KB"), ("transport.rto_min", "0us")]));
    println!("{}", error(&[("transport.app_rate", "0bps")]));
    println!("{}", error(&[("transport.profile", "ns3")]));
}
