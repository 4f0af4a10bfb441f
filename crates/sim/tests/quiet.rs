//! Quiet time costs nothing: networks in which nothing happens for seconds or hours, measures at short intervals, and looks for the
//! end of a run at every picosecond. A run takes no window for time in which nothing happens, and an estimate counts what is
//! done at intervals. `quiet/cases.toml` lists what each case sets in `quiet/base.toml`.

use crate::common::{Kept, run_as};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use weftline_sim::measure::{Balance, Ending, Outcome, QueueHistogram};
use weftline_sim::scenario::{Hooks, Scenario};
use weftline_sim::units::{Rate, Time};
use weftline_sim::{Execution, Simulation};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/quiet")
}

fn load(name: &str, sets: &[(String, String)]) -> Scenario {
    let text = std::fs::read_to_string(folder().join("base.toml")).expect("base.toml");
    Scenario::load(&text, name, &folder(), sets, None, Hooks::default())
        .unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Every case by its name.
fn cases() -> BTreeMap<String, Scenario> {
    let text = std::fs::read_to_string(folder().join("cases.toml")).expect("cases.toml");
    let table: toml::Table = text.parse().expect("TOML");
    let sets = |case: &toml::Value| -> Vec<(String, String)> {
        let keys = case.as_table().expect("a table of keys").iter();
        keys.map(|(key, value)| (key.clone(), value.to_string())).collect()
    };
    table.iter().map(|(name, case)| (name.clone(), load(name, &sets(case)))).collect()
}

fn case(name: &str, sets: &[(&str, &str)]) -> Scenario {
    let sets: Vec<_> = sets.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    load(name, &sets)
}

fn run(scenario: &Scenario, execution: Execution) -> (Kept, Outcome, Balance) {
    let mut kept = Kept::default();
    let simulation =
        Simulation::new(scenario.config().expect("a configuration"), execution).expect("a network");
    let (outcome, balance) = simulation.run_balanced(&mut kept, &mut |_| true).expect("a run");
    (kept, outcome, balance)
}

/// What is done is counted, as seconds would depend on the machine: windows, rows and packet-hops.
#[test]
fn no_run_does_ten_times_what_its_estimate_counts() {
    let cases = cases();
    assert!(cases.len() >= 40, "{}", cases.len());
    for (name, scenario) in cases {
        let estimate = scenario.estimate();
        let (kept, outcome, balance) = run(&scenario, Execution::default());
        assert!(
            balance.windows <= 2 * outcome.events + 100,
            "{name}: {} windows for {} events",
            balance.windows,
            outcome.events
        );
        let beyond = outcome.end > estimate.replay.end;
        let stalled = estimate.if_stalled.filter(|_| beyond).map_or(estimate.recurring, |(_, work)| work);
        let rows = kept.samples.len() as f64;
        assert!(rows <= 10.0 * stalled.rows + 1000.0, "{name}: {rows} rows, {stalled:?}");
        let hops = estimate.replay.packet_hops + stalled.packet_hops;
        assert!(outcome.packet_hops as f64 <= 10.0 * hops + 10_000.0, "{name}: {outcome:?}, {hops}");
    }
}

#[test]
fn samples_of_quiet_time_are_all_there() {
    let every = Time::from_us(100);
    let cut = "[{ link = [\"host0\", \"leaf0\"], at = \"200us\" }]";
    let measured = [
        ("measure.queues", "{ ports = \"leaf0.*\", every = \"100us\" }"),
        ("measure.utilisation", "{ ports = \"leaf0->host*\", every = \"100us\" }"),
        ("measure.queue_histogram", "{ ports = \"leaf0.*\", every = \"100us\" }"),
        ("measure.goodput", "{ by = \"group\", every = \"100us\" }"),
        ("failures.event", cut),
        ("run.stall", "\"3s\""),
    ];
    let scenario = case("samples", &measured);
    let (kept, outcome, _) = run(&scenario, Execution::default());
    assert_eq!(outcome.ending, Ending::Stalled);
    let samples = outcome.end.0 / every.0;
    assert!(samples > 30_000, "{samples}");
    // The run ends inside of an interval: utilisation and goodput have a last, shorter one.
    assert!(outcome.end > Time(every.0 * samples));
    let (whole, last) = kept.samples.split_at(samples as usize * (6 + 4 + 1));
    assert_eq!(last.len(), 4 + 1);
    assert!(last.iter().all(|row| row.time == outcome.end && row.metric != "queue_bytes"), "{last:?}");
    for (place, rows) in whole.chunks(11).enumerate() {
        assert!(rows.iter().all(|row| row.time == Time(every.0 * (place as u64 + 1))), "{rows:?}");
    }
    assert!(outcome.queues.iter().all(|(.., histogram)| histogram.bins.iter().sum::<u64>() == samples));
    let goodput = kept.samples.iter().filter(|sample| sample.metric == "goodput_bps");
    let bytes = goodput.map(|sample| sample.value * every.as_seconds() / 8.0).sum::<f64>();
    assert!((1e6..2e6).contains(&bytes), "{bytes}");
    let config = scenario.config().expect("a configuration");
    for (regions, windows) in [(2, false), (3, true)] {
        let execution = Execution { threads: 1, regions: Some(regions), windows: Some(windows) };
        let (again, outcome_again) = run_as(execution, config.clone());
        assert_eq!(
            (again.samples, outcome_again),
            (kept.samples.clone(), outcome.clone()),
            "{regions} regions"
        );
    }
}

#[test]
fn a_histogram_has_a_bin_for_the_longest_queue_that_was_sampled_and_none_beyond() {
    let mut histogram = QueueHistogram::default();
    histogram.add(1500, 2);
    histogram.add(9_000, 0);
    assert_eq!(histogram.bins, [0, 2]);
    histogram.add(200, 0);
    histogram.add(2_345, 1);
    assert_eq!(histogram.bins, [0, 2, 1]);
    assert_eq!(histogram.max, 2_345);
}

#[test]
fn a_run_ends_at_the_first_point_of_its_grid_however_fine_that_is() {
    let end = |grid: &str| {
        let (_, outcome, balance) = run(&case("grid", &[("run.grid", grid)]), Execution::default());
        assert!(balance.windows <= 2 * outcome.events, "{grid}: {}", balance.windows);
        outcome.end
    };
    let last = end("\"1ps\"");
    for (text, grid) in [("7ps", 7), ("1ns", 1000), ("10us", 10_000_000), ("1s", 1_000_000_000_000)] {
        assert_eq!(end(&format!("\"{text}\"")), Time(last.0.next_multiple_of(grid)), "{text}");
    }
}

#[test]
fn a_stalled_run_is_given_up_the_stall_time_after_the_last_delivery() {
    let cut = ("failures.event", "[{ link = [\"host0\", \"leaf0\"], at = \"200us\" }]");
    for stall in ["30ms", "2s", "1000s"] {
        let stalled = format!("\"{stall}\"");
        let (_, outcome, balance) =
            run(&case("stall", &[cut, ("run.stall", &stalled)]), Execution::default());
        let since = outcome.end.saturating_sub(stall.parse().expect("a time"));
        assert_eq!(outcome.ending, Ending::Stalled);
        assert!(Time::from_us(200) < since && since < Time::from_ms(10), "{stall}: {since}");
        assert!(balance.windows <= 2 * outcome.events, "{stall}: {}", balance.windows);
        let silence = outcome.silence.expect("why it was given up");
        let stall: Time = stall.parse().expect("a time");
        assert_eq!((silence.stall, silence.waited, &silence.slow[..]), (stall, stall, &[][..]));
    }
}

#[test]
fn a_link_on_which_a_packet_takes_longer_than_the_run_waited_is_named() {
    let slowed = |rate: &str| {
        let change = format!(
            "[{{ link = [\"host0\", \"leaf0\"], at = \"200us\", change = \"rate\", rate = \"{rate}\" }}]"
        );
        run(&case("slowed", &[("failures.event", &change), ("run.stall", "\"30ms\"")]), Execution::default())
            .1
    };
    let outcome = slowed("1bps");
    let silence = outcome.silence.expect("why it was given up");
    assert_eq!((outcome.ending, silence.stall), (Ending::Stalled, Time::from_ms(30)));
    let slow = silence.slow.first().expect("a slow link");
    assert_eq!((slow.rate, slow.local), (Rate(1), 0));
    assert!(slow.packet >= Rate(1).transmission_time(1500), "{slow:?}");
    let outcome = slowed("1Gbps");
    assert_eq!((outcome.ending, outcome.silence), (Ending::Done, None));
}

#[test]
fn check_names_the_interval_that_dominates_a_run() {
    let warnings = |sets: &[(&str, &str)]| case("warned", sets).check()["warnings"].to_string();
    let often = ("measure.queues", "{ ports = \"*\", every = \"1us\" }");
    assert_eq!(warnings(&[often, ("run.stall", "\"1s\"")]), "[]");
    let found = warnings(&[often, ("run.stall", "\"1200s\"")]);
    assert!(found.contains("measure.queues.every = 1us: 2.9e10 rows of series.parquet in 1200s"), "{found}");
    assert!(found.contains("run.stall = 1200s"), "{found}");
    let found = warnings(&[often, ("run.until", "\"1200s\"")]);
    assert!(found.contains("2.9e10 rows") && !found.contains("run.stall"), "{found}");
    let found = warnings(&[("switch.balancer.kind", "\"hula\""), ("run.until", "\"100000s\"")]);
    assert!(found.contains("switch.balancer.probe_interval = 200us: 4.0e9 packet-hops of probes"), "{found}");
    let found =
        warnings(&[("run.grid", "\"1ps\""), ("workload.0.flows", "[{ src = 0, dst = 4, size = \"10GB\" }]")]);
    assert!(found.contains("run.grid = 1ps"), "{found}");
}

/// Its sender tries again a minute or so after the repair: timeouts double, to more than the stall time of 10 s.
#[test]
fn a_connection_that_waits_for_a_repair_is_not_given_up() {
    for (kind, stall) in [("tcp", "\"auto\""), ("tcp", "\"2s\""), ("rdma", "\"auto\"")] {
        let cut = "[{ link = [\"host0\", \"leaf0\"], at = \"200us\" }, \
                   { link = [\"host0\", \"leaf0\"], at = \"40s\", change = \"up\" }]";
        let kind = format!("\"{kind}\"");
        let sets = [("failures.event", cut), ("run.stall", stall), ("transport.kind", &kind)];
        let (_, outcome, _) = run(&case("repair", &sets), Execution::default());
        assert_eq!(outcome.ending, Ending::Done, "{kind}, stall {stall}");
        assert!(Time::from_ms(40_000) < outcome.end && outcome.end < Time::from_ms(120_000));
    }
}
