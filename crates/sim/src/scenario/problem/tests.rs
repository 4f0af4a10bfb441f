//! Tests of `problem`: many of them.

use super::super::{Hooks, Scenario};
use super::*;
use std::path::Path;
use std::time::{Duration, Instant};

const STAR: &str = "[topology]\nkind = \"star\"\nhosts = 4\n";
const FLOWS: &str = "[[workload]]\nkind = \"permutation\"\nsize = \"1KB\"\n";

/// What is wrong with this scenario, and how long it took to find out.
fn errors(text: &str) -> (ScenarioError, Duration) {
    let began = Instant::now();
    let loaded = Scenario::load(text, "s.toml", Path::new("."), &[], None, Hooks::default());
    (loaded.err().expect("wrong"), began.elapsed())
}

fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).map(line).collect()
}

#[test]
fn the_first_of_many_problems_are_listed_and_the_others_counted_in_linear_time() {
    let keys = lines(20_000, |i| format!("kk{i} = 1\n"));
    let events = lines(20_000, |i| {
        format!("[[failures.event]]\nat = \"{i}ns\"\nlink = [\"host0\", \"s0\"]\nrat{i} = 1\n")
    });
    let nodes =
        lines(20_000, |i| format!("[[failures.event]]\nat = \"{i}ns\"\nlink = [\"hots{i}\", \"s0\"]\n"));
    let preset = format!("[switch]\npreset = \"uec-port-400g\"\n{keys}");
    for (text, first) in [
        (format!("{STAR}{FLOWS}{keys}"), "s.toml:7: workload.0.kk0: unknown key (known: kind, group, start"),
        (
            format!("{STAR}{FLOWS}{events}"),
            "s.toml:10: failures.event.0.rat0: unknown key: did you mean \"rate\"?",
        ),
        (
            format!("{STAR}{FLOWS}{nodes}"),
            "s.toml:9: failures.event.0.link: unknown node \"hots0\": did you mean \"host0\"?",
        ),
        (format!("{STAR}{FLOWS}{preset}"), "s.toml:9: switch.kk0: unknown key (known: "),
    ] {
        let (error, time) = errors(&text);
        assert_eq!((error.problems.len(), error.more), (LISTED_PROBLEMS, 19_900), "{first}");
        let text = error.to_string();
        assert!(text.starts_with(first), "{first}: {}", text.lines().next().unwrap_or_default());
        assert!(text.ends_with("\ns.toml: 19900 more problems are not listed"), "{first}");
        assert!(time < Duration::from_secs(if cfg!(debug_assertions) { 10 } else { 1 }), "{first}: {time:?}");
    }
}

#[test]
fn a_problem_that_is_found_twice_is_listed_once() {
    let problem = |line, text: &str| Problem::new("s.toml", Origin::Line(line), "a", text.to_string());
    let error = ScenarioError::new(vec![problem(3, "c"), problem(2, "b"), problem(3, "c"), problem(3, "d")]);
    assert_eq!((error.problems, error.more), (vec![problem(2, "b"), problem(3, "c"), problem(3, "d")], 0));
}
