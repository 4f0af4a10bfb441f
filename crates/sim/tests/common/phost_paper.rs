//! The network of the pHost paper, 144 hosts in nine racks under four cores at 10 and 40 Gb/s, and its authors' runs on it.
#![allow(dead_code)]

use super::{flow, reference, traffic};
use std::io::Read;
use std::path::Path;
use weftline_sim::config::Config;
use weftline_sim::scenario::{Hooks, Scenario};
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
    let sets: Vec<(String, String)> = sets.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    let text = text(transport);
    let scenario = Scenario::load(&text, "paper.toml", Path::new("."), &sets, None, Hooks::default());
    scenario.unwrap_or_else(|error| panic!("{error}"))
}

/// The same, with these flows.
pub fn with_flows(transport: &str, sets: &[(&str, &str)], flows: Vec<FlowSpec>) -> Config {
    Config { traffic: traffic(flows), ..load(transport, sets).config().expect("a configuration") }
}

/// A flow of so many full packets.
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

/// Mean completion time of flows, and of requests of 32 flows: from the first start to the last end.
pub fn fct_and_rct(starts: &[f64], times: &[f64]) -> (f64, f64) {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let requests = starts.chunks(32).zip(times.chunks(32)).map(|(starts, times)| {
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
