//! DCQCN draws random numbers when it marks, so one run of the authors' simulator is one draw: it must lie within the
//! distribution of ours, between the 0.5th and the 99.5th percentile over 200 seeds.
//!
//! Long; run by `make validate` (or `cargo test --release --test runs distributions:: -- --ignored`).

use crate::common::{case, published, rows, run};
use weftline_sim::balance::BalancerConfig;
use weftline_sim::balance::ecmp::EcmpParameters;
use weftline_sim::units::Bytes;

const SEEDS: u64 = 200;

/// The switch buffer of a reference case.
fn buffer(name: &str) -> Bytes {
    if name.ends_with("_buf1") { Bytes(1 << 20) } else { Bytes(32 << 20) }
}

/// What is compared: mean FCT in ns, and mean, p50, p95, p99 of the slowdowns.
fn statistics(mut slowdowns: Vec<f64>, fcts: &[f64]) -> [f64; 5] {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    slowdowns.sort_by(f64::total_cmp);
    let element = |p: f64| slowdowns[((slowdowns.len() as f64 * p) as usize).min(slowdowns.len() - 1)];
    [mean(fcts), mean(&slowdowns), element(0.5), element(0.95), element(0.99)]
}

fn authors(name: &str, scheme: &str) -> Option<[f64; 5]> {
    let (_, _, folder) = case(name)?;
    let table = rows(&folder.join(format!("fct_{scheme}.csv.gz")));
    let slowdowns = table.iter().map(|row| (row[1] as f64 / row[2] as f64).max(1.0)).collect();
    let fcts: Vec<f64> = table.iter().map(|row| row[1] as f64).collect();
    Some(statistics(slowdowns, &fcts))
}

fn ours(name: &str, scheme: &str, seed: u64) -> [f64; 5] {
    let (topology, flows, _) = case(name).expect("present, since the authors' was");
    of_run(&run(published(scheme, topology, flows, buffer(name), seed)).0.flows)
}

fn of_run(flows: &[weftline_sim::measure::FlowRecord]) -> [f64; 5] {
    let fct = |flow: &weftline_sim::measure::FlowRecord| {
        (flow.finish.expect("every flow ends") - flow.start).as_ns()
    };
    let slowdowns = flows.iter().map(|flow| (fct(flow) / flow.ideal.as_ns()).max(1.0)).collect();
    let fcts: Vec<f64> = flows.iter().map(fct).collect();
    statistics(slowdowns, &fcts)
}

const NAMES: [&str; 5] = ["mean FCT", "mean slowdown", "p50 slowdown", "p95 slowdown", "p99 slowdown"];

/// Compares the statistics whose names are given; prints every figure.
fn within(name: &str, scheme: &str, compared: &[&str]) {
    let Some(expected) = authors(name, scheme) else { return };
    let runs: Vec<[f64; 5]> = (1..=SEEDS).map(|seed| ours(name, scheme, seed)).collect();
    let mut outside = Vec::new();
    for (at, what) in NAMES.iter().enumerate() {
        let mut values: Vec<f64> = runs.iter().map(|run| run[at]).collect();
        values.sort_by(f64::total_cmp);
        let percentile = |p: f64| values[((SEEDS as f64 - 1.0) * p).round() as usize];
        let (low, high) = (percentile(0.005), percentile(0.995));
        let below = values.iter().filter(|&&v| v < expected[at]).count() as f64 / SEEDS as f64;
        println!(
            "{name} {scheme} {what}: the authors' {:.4}, ours {low:.4} to {high:.4}, median {:.4} (at {:.1} %)",
            expected[at],
            percentile(0.5),
            100.0 * below
        );
        if compared.contains(what) && !(low..=high).contains(&expected[at]) {
            outside.push(*what);
        }
    }
    assert!(outside.is_empty(), "{name} {scheme}: outside of 200 seeds: {outside:?}");
}

const FCT: &[&str] = &["mean FCT"];
const SLOWDOWNS: &[&str] = &["mean slowdown", "p50 slowdown", "p95 slowdown", "p99 slowdown"];

#[test]
#[ignore = "200 seeds: part of make validate"]
fn dcqcn_incast_lies_within_200_seeds() {
    within("star_incast16", "dcqcn", FCT);
    within("star_incast16", "dcqcnw", FCT);
    within("pfc_star_incast16_buf1", "dcqcn", FCT);
}

#[test]
#[ignore = "200 seeds: part of make validate"]
fn hpcc_pint_lies_within_200_seeds() {
    within("pod_wb_0.5", "hpint", SLOWDOWNS);
    within("pod_wb_0.5", "hpint16", SLOWDOWNS);
}

#[test]
#[ignore = "200 seeds: part of make validate"]
fn dcqcn_on_the_dumbbell_lies_within_200_seeds() {
    within("dumb_fair4", "dcqcn", FCT);
}

/// What the compat mode makes of the pod, next to the picosecond clock, our order of ties and salted ECMP: the slowdowns
/// of 20 salts. Nothing is compared; docs/compat.md has the table.
#[test]
#[ignore = "a measurement: part of make validate"]
fn the_difference_that_the_compat_mode_makes_is_measured_over_20_salts() {
    use weftline_sim::compat::Rules;
    for scheme in ["hpcc", "dctcp", "timelyw", "timely", "dcqcnw", "dcqcn"] {
        let Some(authors) = authors("pod_wb_0.5", scheme) else { return };
        let runs: Vec<[f64; 5]> = (0..20)
            .map(|salt| {
                let (topology, flows, _) = case("pod_wb_0.5").expect("present");
                let mut config = published(scheme, topology, flows, Bytes(32 << 20), 1);
                config.rules = Rules::none();
                config.switch.pfc.headroom_extra = true;
                config.switch.balancer = BalancerConfig::Ecmp(EcmpParameters { salt });
                of_run(&run(config).0.flows)
            })
            .collect();
        for (at, what) in NAMES.iter().enumerate() {
            let values: Vec<f64> = runs.iter().map(|run| run[at]).collect();
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let min = values.iter().copied().fold(f64::MAX, f64::min);
            let max = values.iter().copied().fold(0.0, f64::max);
            let share = 100.0 * (mean / authors[at] - 1.0);
            println!(
                "{scheme} {what}: authors {:.3}, 20 salts {mean:.3} ({min:.3} to {max:.3}), {share:+.1} %",
                authors[at]
            );
        }
    }
}

#[test]
#[ignore = "200 seeds: part of make validate"]
fn dcqcn_web_search_on_the_pod_lies_within_200_seeds() {
    within("pod_wb_0.5", "dcqcn", SLOWDOWNS);
}

#[test]
#[ignore = "200 seeds: part of make validate"]
fn windowed_dcqcn_web_search_on_the_pod_lies_within_200_seeds() {
    within("pod_wb_0.5", "dcqcnw", SLOWDOWNS);
}
