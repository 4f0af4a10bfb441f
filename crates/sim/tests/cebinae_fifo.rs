//! The Cebinae paper's table (SIGCOMM 2022) against its authors' runs, which were made with ns-3.35: per-flow goodput under
//! profile ns3-3.35, in FIFO, FQ and Cebinae.
//!
//! All that takes long: `cargo test --release --test runs cebinae_fifo:: -- --ignored --nocapture`, with `ROWS=1,2,14`,
//! `DISCIPLINES=fifo,fq,cebinae` and `SECONDS=100` for some of it.

use crate::common::*;
use serde_json::Value;
use std::fmt::Write;
use std::io::Read;
use std::path::Path;
use weftline_sim::Execution;
use weftline_sim::config::{Config, Sampled};
use weftline_sim::measure::Entity;
use weftline_sim::scenario::{Hooks, Scenario};
use weftline_sim::units::Time;

/// Flows of one controller and delay.
struct Group {
    controller: String,
    count: u32,
    leaf_delay: String,
    app_rate: String,
    start: f64,
}

struct Row {
    groups: Vec<Group>,
    text: String,
    /// Of the authors' run.
    goodput: Vec<f64>,
}

fn table() -> Option<Vec<Value>> {
    let text = std::fs::read_to_string(reference()?.join("cebinae/table_25rows.json")).ok()?;
    serde_json::from_str(&text).ok()
}

/// Other experiments of theirs, by name.
fn others() -> Option<Value> {
    let text = std::fs::read_to_string(reference()?.join("cebinae/other_experiments.json")).ok()?;
    serde_json::from_str(&text).ok()
}

/// The queue at the bottleneck. Cebinae may be followed by its thresholds, in hundredths.
fn queue(config: &Value, discipline: &str, hosts: u32) -> String {
    let text = |key: &str| config[key].as_str().unwrap_or_default().to_string();
    let nic = text("switch_netdev_size").trim_end_matches('p').parse::<u32>().unwrap_or(100);
    let buffer = text("switch_total_bufsize");
    let packets = buffer.trim_end_matches('p');
    let all =
        discipline.strip_prefix("cebinae-").map(|hundredths| hundredths.parse::<f64>().unwrap() / 100.0);
    // There is no slack of 0.
    let number = |key: &str| all.unwrap_or_else(|| config[key].as_f64().unwrap()).max(1e-9);
    match discipline {
        "fifo" => format!("{{ kind = \"fifo\", packets = {packets}, nic_packets = {nic} }}"),
        "fq" => format!(
            "{{ kind = \"fq-codel\", packets = 10240, nic_packets = {nic}, link_header = \"2B\", ns3_senders = {hosts}, retire = \"always\" }}"
        ),
        _ => format!(
            "{{ kind = \"cebinae\", packets = {packets}, nic_packets = {nic}, link_header = \"2B\", ns3_senders = {hosts}, products = \"double\", \
             cache_header = \"20B\", round = \"{}\", deadline = \"{}\", virtual_round = \"{}\", period = {}, tax = {}, \
             port_slack = {}, flow_slack = {}, buffer = \"{}\" }}",
            text("dt"),
            text("l"),
            text("vdt"),
            config["p"],
            number("tau"),
            number("delta_port"),
            number("delta_flow"),
            if config["pool"] == 1 { "pool" } else { "split" },
        ),
    }
}

/// A row's network as a scenario: see the authors' dumbbell_long.
fn row(entry: &Value, discipline: &str) -> Row {
    let config = &entry["config"];
    let text = |key: &str| config[key].as_str().unwrap_or_default().to_string();
    let groups: Vec<Group> = (0..config["num_cca"].as_u64().unwrap())
        .map(|group| Group {
            controller: text(&format!("transport_prot{group}")).replace("Tcp", "").to_lowercase(),
            count: config[format!("num_cca{group}")].as_u64().unwrap() as u32,
            leaf_delay: text(&format!("leaf_delay{group}")),
            app_rate: text(&format!("app_bw{group}")),
            start: config[format!("app_seconds_start{group}")].as_f64().unwrap_or(1.0),
        })
        .collect();
    let hosts: u32 = groups.iter().map(|group| group.count).sum();
    let mut scenario = format!(
        r#"
[run]
until = "100s"
[compat]
like = "ns3-3.35"
[topology]
kind = "dumbbell"
left = {hosts}
right = {hosts}
host_link = {{ rate = "{}", delay = "1ms" }}
bottleneck_link = {{ rate = "{}", delay = "{}" }}
[switch]
buffer = "1GiB"
[[switch.port]]
match = "s0->s1"
queue = {}
[transport]
kind = "tcp"
profile = "ns3-3.35"
ack_every = {}
"#,
        text("leaf_bw0"),
        text("bottleneck_bw"),
        text("bottleneck_delay"),
        queue(config, discipline, hosts),
        config["delackcount"],
    );
    let mut first = 0;
    let mut workloads = String::new();
    for group in &groups {
        for host in first..first + group.count {
            for (host, switch) in [(host, 0), (host + hosts, 1)] {
                let delay = &group.leaf_delay;
                write!(
                    scenario,
                    "[[topology.override]]\nbetween = [\"host{host}\", \"s{switch}\"]\ndelay = \"{delay}\"\n"
                )
                .unwrap();
            }
        }
        let flows: Vec<String> = (first..first + group.count)
            .map(|host| {
                format!(
                    "{{ src = {host}, dst = {}, size = \"100GB\", start = \"{}s\" }}",
                    host + hosts,
                    group.start
                )
            })
            .collect();
        write!(
            workloads,
            "[[workload]]\nkind = \"flows\"\nflows = [{}]\n[workload.transport]\napp_rate = \"{}\"\ncontroller = {{ kind = \"{}\" }}\n",
            flows.join(", "),
            group.app_rate,
            group.controller
        )
        .unwrap();
        first += group.count;
    }
    let goodput = entry["results"][discipline]["per_flow_goodput_bps"].as_array().unwrap();
    Row {
        groups,
        text: scenario + &workloads,
        goodput: goodput.iter().map(|value| value.as_f64().unwrap()).collect(),
    }
}

fn config_of(row: &Row, seconds: u64) -> Config {
    let sets = [("run.until".to_string(), format!("{seconds}s"))];
    let scenario = Scenario::load(&row.text, "row.toml", Path::new("."), &sets, None, Hooks::default())
        .unwrap_or_else(|error| panic!("{error}"));
    let mut config = scenario.config().expect("a configuration");
    let flows = (0..row.goodput.len() as u32).collect();
    config.measure.flow_goodput = Some(Sampled { what: flows, every: Time::from_ms(1000) });
    config
}

/// Goodput of every flow in each second, bits per second; the second that ends at n seconds has number n.
fn goodput(row: &Row, seconds: u64) -> Vec<Vec<f64>> {
    let execution = Execution { threads: 1, regions: Some(1), windows: None };
    let (kept, _) = run_as(execution, config_of(row, seconds));
    let mut series = vec![vec![0.0; row.goodput.len()]; seconds as usize + 1];
    for sample in kept.samples.iter().filter(|sample| sample.metric == "goodput_bps") {
        let Entity::Flow(flow) = sample.entity else { continue };
        series[(sample.time.as_seconds().round()) as usize][flow as usize] = sample.value;
    }
    series
}

fn jain(rates: &[f64]) -> f64 {
    let sum: f64 = rates.iter().sum();
    sum * sum / (rates.len() as f64 * rates.iter().map(|x| x * x).sum::<f64>())
}

/// Means over the groups, in Mb/s.
fn means(row: &Row, rates: &[f64]) -> Vec<f64> {
    let mut first = 0;
    let mean = |group: &Group| {
        let own = &rates[first..first + group.count as usize];
        first += group.count as usize;
        own.iter().sum::<f64>() / own.len() as f64 / 1e6
    };
    row.groups.iter().map(mean).collect()
}

/// Mean goodput of every flow over a run, as the authors reckon it: the last second is not in it, but is divided by.
fn whole_run(series: &[Vec<f64>]) -> Vec<f64> {
    let seconds = series.len() - 1;
    let flows = series[0].len();
    let sum = |flow| series[2..seconds].iter().map(|second: &Vec<f64>| second[flow]).sum::<f64>();
    (0..flows).map(|flow| sum(flow) / (seconds - 1) as f64).collect()
}

/// A stored series of the authors: bits per second of every flow by seconds, in which the first number is the second that ends at 1 s.
fn stored(key: &str, discipline: &str) -> Option<Vec<Vec<f64>>> {
    let file = format!("cebinae/series/{key}/{discipline}_goodput_bps_1s.txt.gz");
    let bytes = std::fs::read(reference()?.join(file)).ok()?;
    let mut text = String::new();
    flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text).expect("gzip");
    let flows = |line: &str| {
        let mut all: Vec<f64> = line.split_whitespace().map(|word| word.parse().unwrap()).collect();
        // The last column is the sum.
        all.pop();
        all
    };
    Some(text.lines().map(flows).collect())
}

/// The stored series by the number of the row whose configuration they have.
const STORED: [(&str, usize); 7] = [
    ("bigtbl_r0", 1),
    ("bigtbl_r3", 4),
    ("bigtbl_r5", 6),
    ("bigtbl_r6", 7),
    ("case1", 8),
    ("bigtbl_r12", 12),
    ("bigtbl_r11", 14),
];

/// Seconds and flows in which the bytes of a run are not the authors': how many of how many, and the first second.
fn differing(series: &[Vec<f64>], theirs: &[Vec<f64>]) -> (usize, usize, Option<usize>) {
    let seconds = (series.len() - 1).min(theirs.len());
    let differ = |second: usize| {
        let pairs = series[second].iter().zip(&theirs[second - 1]);
        pairs.filter(|(a, b)| (*a - *b).abs() > 1.0).count()
    };
    let counts: Vec<usize> = (1..=seconds).map(differ).collect();
    let first = counts.iter().position(|&count| count > 0).map(|at| at + 1);
    (counts.iter().sum(), seconds * series[0].len(), first)
}

/// Stored series that come out to the byte, every flow in every second of 100 s. Of the others some packet differs somewhere
/// (docs/schemes/tcp.md).
const EQUAL: [(usize, &str); 18] = [
    (1, "fifo"),
    (1, "fq"),
    (1, "cebinae"),
    (4, "fifo"),
    (4, "fq"),
    (4, "cebinae"),
    (6, "fifo"),
    (6, "fq"),
    (6, "cebinae"),
    (7, "fifo"),
    (7, "fq"),
    (7, "cebinae"),
    (8, "fifo"),
    (8, "fq"),
    (8, "cebinae"),
    (12, "fq"),
    (12, "cebinae"),
    (14, "fifo"),
];

fn asked(key: &str, all: &str) -> Vec<String> {
    std::env::var(key).unwrap_or(all.into()).split(',').map(String::from).collect()
}

#[test]
fn rows_of_vegas_are_those_of_the_authors() {
    let Some(table) = table() else { return };
    // Without a loss (3), and together with a Cubic that fills the queue (7).
    for number in [3, 7] {
        let row = row(&table[number - 1], "fifo");
        let rates = whole_run(&goodput(&row, 100));
        let close = |found: f64, theirs: f64, share: f64| (found / theirs - 1.0).abs() < share;
        assert!(close(jain(&rates), jain(&row.goodput), 0.005), "row {number}: {}", jain(&rates));
        let (found, theirs) = (means(&row, &rates), means(&row, &row.goodput));
        assert!(
            found.iter().zip(&theirs).all(|(a, b)| close(*a, *b, 0.005)),
            "row {number}: {found:?} {theirs:?}"
        );
    }
}

#[test]
fn the_first_seconds_are_those_of_the_authors_to_the_byte() {
    let Some(table) = table() else { return };
    // Slow start, heavy loss and timeouts of 17 flows (4), two round-trip times (1), Vegas and hashed queues (8).
    for (key, number, discipline) in [
        ("bigtbl_r3", 4, "fifo"),
        ("bigtbl_r3", 4, "fq"),
        ("bigtbl_r3", 4, "cebinae"),
        ("bigtbl_r0", 1, "fifo"),
        ("bigtbl_r0", 1, "fq"),
        ("bigtbl_r0", 1, "cebinae"),
        ("case1", 8, "fq"),
    ] {
        let Some(theirs) = stored(key, discipline) else { return };
        let series = goodput(&row(&table[number - 1], discipline), 8);
        let (differ, all, first) = differing(&series, &theirs);
        assert_eq!((differ, first), (0, None), "row {number} {discipline}: of {all}");
    }
}

#[test]
#[ignore = "runs of 100 s: part of make validate"]
fn stored_series_second_by_second() {
    let Some(table) = table() else { return };
    let seconds: u64 = std::env::var("SECONDS").map_or(100, |text| text.parse().unwrap());
    let rows = asked("ROWS", "1,4,6,7,8,12,14");
    for (key, number) in STORED.iter().filter(|(_, number)| rows.contains(&number.to_string())) {
        for discipline in asked("DISCIPLINES", "fifo,fq,cebinae") {
            let Some(theirs) = stored(key, &discipline) else { continue };
            let series = goodput(&row(&table[number - 1], &discipline), seconds);
            let (differ, all, first) = differing(&series, &theirs);
            println!("row {number} {discipline}: {differ} of {all} differ, first in second {first:?}");
            assert!(
                differ == 0 || !EQUAL.contains(&(*number, discipline.as_str())),
                "row {number} {discipline}"
            );
            write_out(&series, *number, &discipline);
        }
    }
}

/// Rows in which every flow's goodput over 100 s is the authors', to the byte: FIFO, FQ, Cebinae. Their number of row 8 under Cebinae is
/// of an older configuration; the stored series is of this one.
const EQUAL_ROWS: [(&str, &[usize]); 3] = [
    ("fifo", &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25]),
    ("fq", &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25]),
    ("cebinae", &[1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25]),
];

/// Writes a run's series to a directory, if one is given.
fn write_out(series: &[Vec<f64>], number: usize, discipline: &str) {
    let Ok(directory) = std::env::var("SERIES_OUT") else { return };
    let line = |second: &Vec<f64>| second.iter().map(|r| format!("{r:.3}")).collect::<Vec<_>>().join(" ");
    let text: Vec<String> = series.iter().map(line).collect();
    std::fs::write(Path::new(&directory).join(format!("{number}_{discipline}.txt")), text.join("\n"))
        .unwrap();
}

const ALL_THRESHOLDS: &[&str] =
    &["fifo", "fq", "cebinae-001", "cebinae-010", "cebinae-020", "cebinae-040", "cebinae-080", "cebinae-100"];

/// Other dumbbells of theirs: other delays, buffers, thresholds, starts, delayed acknowledgements; and in which disciplines every flow's
/// goodput is theirs to the byte.
const OTHERS: [(&str, &[&str]); 7] = [
    ("case1", &["fifo", "fq", "cebinae"]),
    ("newflow", &["fifo", "fq", "cebinae"]),
    ("thresh", ALL_THRESHOLDS),
    ("fig7", &["fifo", "cebinae"]),
    ("fig8", ALL_THRESHOLDS),
    ("fig1", &["fifo", "cebinae"]),
    ("fig1_region", &["fifo", "cebinae"]),
];

#[test]
#[ignore = "a run of 100 s for each: part of make validate"]
fn other_experiments_flow_by_flow() {
    let Some(others) = others() else { return };
    let names: Vec<&str> = OTHERS.iter().map(|(name, _)| *name).collect();
    for name in asked("OTHERS", &names.join(",")) {
        let equal = OTHERS.iter().find(|(other, _)| *other == name).map_or(&[][..], |(_, equal)| equal);
        for discipline in others[&name]["results"].as_object().unwrap().keys() {
            let row = row(&others[&name], discipline);
            let series = goodput(&row, 100);
            let rates = whole_run(&series);
            let same = rates.iter().zip(&row.goodput).filter(|(a, b)| (*a - *b).abs() < 1.0).count();
            println!(
                "{name} {discipline}: JFI {:.3} ({:.3}), groups {:.2?} ({:.2?}), {same} of {} flows equal",
                jain(&rates),
                jain(&row.goodput),
                means(&row, &rates),
                means(&row, &row.goodput),
                rates.len(),
            );
            if let Some(theirs) = stored(&name, discipline) {
                let (differ, all, first) = differing(&series, &theirs);
                println!("  {differ} of {all} seconds of flows differ, first in second {first:?}");
            }
            assert!(!equal.contains(&discipline.as_str()) || same == rates.len(), "{name} {discipline}");
        }
    }
}

#[test]
#[ignore = "a run of 100 s for each row: part of make validate"]
fn rows_side_by_side() {
    let Some(table) = table() else { return };
    let seconds: u64 = std::env::var("SECONDS").map_or(100, |text| text.parse().unwrap());
    for number in asked("ROWS", "1,2,3,4,5,6,7,8").iter().map(|text| text.parse::<usize>().unwrap()) {
        for discipline in asked("DISCIPLINES", "fifo") {
            let row = row(&table[number - 1], &discipline);
            let began = std::time::Instant::now();
            let series = goodput(&row, seconds);
            let took = began.elapsed().as_secs_f64();
            let rates = whole_run(&series);
            let sum = |rates: &[f64]| rates.iter().sum::<f64>() / 1e6;
            let equal = rates.iter().zip(&row.goodput).filter(|(a, b)| (*a - *b).abs() < 1.0).count();
            println!(
                "row {number} {discipline}: JFI {:.3} ({:.3}), goodput {:.2} ({:.2}), groups {:.2?} ({:.2?}), \
                 {equal} of {} flows equal, {took:.1} s",
                jain(&rates),
                jain(&row.goodput),
                sum(&rates),
                sum(&row.goodput),
                means(&row, &rates),
                means(&row, &row.goodput),
                rates.len(),
            );
            let listed = EQUAL_ROWS.iter().any(|(name, rows)| *name == discipline && rows.contains(&number));
            assert!(seconds != 100 || !listed || equal == rates.len(), "row {number} {discipline}");
            write_out(&series, number, &discipline);
        }
    }
}
