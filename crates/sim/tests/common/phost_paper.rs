//! The network of the pHost paper, 144 hosts in nine racks under four cores at 10 and 40 Gb/s, and its authors' runs on it.
#![allow(dead_code)]

use super::{Kept, flow, reference, traffic};
use std::io::Read;
use std::path::Path;
use weftline_sim::config::{Config, LinkLoss, RdmaConfig, TransportConfig};
use weftline_sim::engine::random::RandomStream;
use weftline_sim::scenario::Scenario;
use weftline_sim::units::Time;
use weftline_sim::workload::FlowSpec;

/// The scenario for a transport; its workload gives way to listed flows.
pub fn text(transport: &str) -> String {
    format!(
        r#"
[topology]
kind = "leaf-spine"
leaves = 9
spines = 4
hosts_per_leaf = 16
host_link = {{ rate = "10Gbps", delay = "200ns" }}
fabric_link = {{ rate = "40Gbps", delay = "200ns" }}

[switch]
forwarding = "ideal-cut-through"
cut_through_header = "40B"

[transport]
kind = "{transport}"

[[workload]]
kind = "permutation"
size = "1KB"
"#
    )
}

/// The scenario with some settings changed.
pub fn load(transport: &str, sets: &[(&str, &str)]) -> Scenario {
    super::load(&text(transport), sets).unwrap_or_else(|error| panic!("{error}"))
}

/// What is wrong with it when these settings are changed.
pub fn problems(transport: &str, sets: &[(&str, &str)]) -> String {
    match super::load(&text(transport), sets) {
        Ok(scenario) => panic!("{sets:?} is taken: {}", scenario.resolved()),
        Err(problems) => problems,
    }
}

/// The resolved scenario has these lines, and resolves to itself and to the same transports.
pub fn resolves_to_the_same(transport: &str, sets: &[(&str, &str)], lines: &[&str]) {
    let first = load(transport, sets);
    let resolved = first.resolved();
    for line in lines {
        assert!(resolved.contains(line), "{line} is not in\n{resolved}");
    }
    let again = super::load(resolved, &[]).unwrap_or_else(|error| panic!("{error}\n{resolved}"));
    assert_eq!(again.resolved(), resolved);
    assert_eq!(again.config().unwrap().transports, first.config().unwrap().transports);
}

/// The same, with these flows.
pub fn with_flows(transport: &str, sets: &[(&str, &str)], flows: Vec<FlowSpec>) -> Config {
    Config { traffic: traffic(flows), ..load(transport, sets).config().expect("a configuration") }
}

/// A flow of this number of full packets.
pub fn packets(src: u32, dst: u32, count: u64, start: Time) -> FlowSpec {
    flow(src, dst, count * 1460, start)
}

/// Flows of a reference case, and the authors' completion and ideal times in nanoseconds.
pub fn authors(case: &str, protocol: &str) -> Option<(Vec<FlowSpec>, Vec<f64>, Vec<f64>)> {
    let folder = reference()?.join("phost").join(case);
    let flows = decimals(&folder.join("flows.csv.gz"));
    let read = |row: &Vec<f64>| {
        let start = Time((row[4] * 1000.0).round() as u64);
        flow(row[1] as u32, row[2] as u32, row[3] as u64, start)
    };
    let times = decimals(&folder.join(format!("fct_{protocol}.csv.gz")));
    let column = |at: usize| times.iter().map(|row| row[at]).collect();
    Some((flows.iter().map(read).collect(), column(1), column(2)))
}

/// Rows of a gzipped CSV of numbers, without its header.
fn decimals(path: &Path) -> Vec<Vec<f64>> {
    let file = std::fs::File::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("gzip");
    let number = |field: &str| field.parse().unwrap_or_else(|_| panic!("{}: {field}", path.display()));
    text.lines().skip(1).map(|line| line.split(',').map(number).collect()).collect()
}

/// Mean and 99th percentile.
pub fn summary(mut slowdowns: Vec<f64>) -> (f64, f64) {
    slowdowns.sort_by(f64::total_cmp);
    let mean = slowdowns.iter().sum::<f64>() / slowdowns.len() as f64;
    (mean, slowdowns[(0.99 * slowdowns.len() as f64) as usize])
}

/// Mean completion time of flows, and of requests of `senders` flows each: from the first start to the last end.
pub fn fct_and_rct(senders: usize, starts: &[f64], times: &[f64]) -> (f64, f64) {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let requests = starts.chunks(senders).zip(times.chunks(senders)).map(|(starts, times)| {
        let end = starts.iter().zip(times).map(|(start, time)| start + time).fold(0.0, f64::max);
        end - starts.iter().copied().fold(f64::MAX, f64::min)
    });
    (mean(times), mean(&requests.collect::<Vec<f64>>()))
}

/// The completion times of a long flow that is due soon and a shorter one that is due later, of two tenants and to one destination,
/// under the four policies in the order of their names in the documentation. `configure`: a run of flows under a policy.
pub fn by_policy(configure: impl Fn(&str, Vec<FlowSpec>) -> Config) -> [Vec<Time>; 4] {
    let of = |flow: FlowSpec, deadline_us, group| FlowSpec {
        deadline: Some(Time::from_us(deadline_us)),
        group,
        ..flow
    };
    let start = Time::ZERO;
    let flows = vec![of(packets(0, 40, 100, start), 200, 0), of(packets(20, 40, 60, start), 900, 1)];
    ["shortest-remaining", "earliest-deadline", "tenant-round-robin", "tenant-least-recent"].map(|policy| {
        let mut config = configure(policy, flows.clone());
        config.traffic.groups = vec!["a".into(), "b".into()];
        super::completion_times(&super::run(config).0)
    })
}

/// Settings of a small network of two racks.
pub const TWO_RACKS: [(&str, &str); 3] =
    [("topology.leaves", "2"), ("topology.spines", "2"), ("topology.hosts_per_leaf", "3")];

/// Packets were sent again, and none besides the flows' own and those.
pub fn sends_again_only_what_it_must(kept: &Kept) {
    let again: u64 = kept.flows.iter().map(|flow| flow.packets_retransmitted).sum();
    assert!(again > 0);
    for flow in &kept.flows {
        assert_eq!(flow.packets_sent, flow.size.div_ceil(1460) + flow.packets_retransmitted, "{flow:?}");
    }
}

/// Every other of 300 flows goes over RDMA, on the same hosts; all end.
pub fn shares_hosts_with_rdma(mut config: Config) {
    let rto = Some(Time::from_ms(1));
    let other = RdmaConfig { rto, ..super::rdma(super::controller("none")) };
    config.transports.push(TransportConfig::Rdma(other));
    let flows = super::random_flows(144, 300, 3).into_iter().zip(0..);
    config.traffic = traffic(flows.map(|(flow, at)| FlowSpec { transport: at % 2, ..flow }).collect());
    let (kept, _) = super::run(config);
    assert!(kept.flows.iter().all(|flow| flow.finish.is_some()));
}

/// One of some values, as `--set` takes it.
pub fn of(random: &mut RandomStream, values: &[&str]) -> String {
    values[random.below(values.len() as u64) as usize].to_string()
}

/// Up to 25 flows end between the ordinary hosts, though links lose this percentage of these kinds of packets, in one to three
/// regions; false if one is left.
pub fn every_flow_ends(
    mut config: Config,
    seed: u64,
    random: &mut RandomStream,
    kinds: u32,
    percent: u32,
) -> bool {
    let hosts = config.topology.ordinary_hosts() as u32;
    let flows = super::random_flows(hosts, 1 + random.below(25) as usize, seed);
    let all = flows.len();
    config.seed = seed;
    config.traffic = traffic(flows);
    config.failures.loss = Some(LinkLoss { share: f64::from(percent) / 100.0, kinds });
    let (kept, _) = super::run_in(1 + (seed % 3) as usize, config);
    kept.flows.iter().filter(|flow| flow.finish.is_some()).count() == all
}

/// Cases of a property: PROPTEST_CASES, or 100.
pub fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|number| number.parse().ok()).unwrap_or(100)
}
