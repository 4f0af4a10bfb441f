//! Where completion times went: the causes of every flow add up to its completion time, to the picosecond, in every case of
//! the fingerprints; and cases whose answer is known.

use crate::common::Kept;
use std::path::{Path, PathBuf};
use weftline_sim::config::Config;
use weftline_sim::scenario::{Hooks, Scenario};
use weftline_sim::units::Time;
use weftline_sim::why::{self, Account, Cause, Traced};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fingerprints")
}

/// Every case of the fingerprints: its name, its scenario, what is set in it.
fn cases() -> Vec<(String, String, Vec<(String, String)>)> {
    let text = std::fs::read_to_string(folder().join("cases.toml")).expect("cases.toml");
    let table: toml::Table = text.parse().expect("TOML");
    let case = |(name, case): (&String, &toml::Value)| {
        let set = case.get("set").and_then(|set| set.as_table());
        let sets = set.into_iter().flatten().map(|(key, value)| (key.clone(), value.to_string())).collect();
        (name.clone(), case["base"].as_str().expect("base").to_string(), sets)
    };
    table["case"].as_table().expect("tables").iter().map(case).collect()
}

/// Runs a configuration, and again with some of its flows traced, which must be the same run; their accounts.
fn accounts(config: Config, choose: impl Fn(usize) -> bool) -> Vec<Account> {
    accounts_with(config, choose).0
}

fn accounts_with(mut config: Config, choose: impl Fn(usize) -> bool) -> (Vec<Account>, why::Told) {
    config.measure.capture = None;
    let (mut kept, outcome) = crate::common::run_in(1, config.clone());
    kept.flows.sort_by_key(|flow| flow.flow);
    let flows: Vec<Traced> = kept
        .flows
        .iter()
        .enumerate()
        .filter(|(number, _)| choose(*number))
        .filter_map(|(_, one)| {
            let finish = one.finish?;
            Some(Traced { flow: one.flow, src: one.src, dst: one.dst, start: one.start, finish })
        })
        .collect();
    let mut again = Kept::default();
    let (repeated, told) = why::trace(config, &flows, &mut again, &mut |_| true).expect("a valid run");
    again.flows.sort_by_key(|flow| flow.flow);
    assert_eq!(outcome.fingerprint, repeated.fingerprint, "another run");
    assert_eq!(kept.flows, again.flows, "other flows");
    (why::accounts(&flows, &told), told)
}

fn of(account: &Account, cause: Cause) -> Time {
    account.by_cause().get(&cause).copied().unwrap_or_default()
}

#[test]
fn causes_add_up_to_the_completion_time_in_every_case() {
    let mut shares: Vec<(String, String)> = Vec::new();
    for (name, base, sets) in cases() {
        let text = std::fs::read_to_string(folder().join(format!("{base}.toml"))).expect("a scenario");
        let scenario = Scenario::load(&text, &name, &folder(), &sets, None, Hooks::default())
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let accounts = accounts(scenario.config().expect("a valid scenario"), |number| number % 7 == 0);
        let mut sums = std::collections::BTreeMap::<Cause, u64>::new();
        for account in &accounts {
            assert!(account.adds_up(), "{name}: {account:?}");
            let spent = account.flow.finish - account.flow.start;
            assert_eq!(account.by_cause().values().map(|time| time.0).sum::<u64>(), spent.0, "{name}");
            for (cause, time) in account.by_cause() {
                *sums.entry(cause).or_default() += time.0;
            }
        }
        let all: u64 = sums.values().sum::<u64>().max(1);
        let text: Vec<String> = sums
            .iter()
            .map(|(cause, time)| format!("{} {:.0}%", cause.name(), *time as f64 * 100.0 / all as f64))
            .collect();
        shares.push((name, format!("{} flows: {}", accounts.len(), text.join(", "))));
    }
    for (name, shares) in shares {
        println!("{name}: {shares}");
    }
}
