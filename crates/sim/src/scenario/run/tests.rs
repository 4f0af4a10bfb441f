//! Tests of `run`.

use super::super::document::parse;
use super::*;

fn read_text(text: &str) -> (RunConfig, Vec<String>) {
    let table = parse(text, "s.toml").unwrap();
    let mut root = Section::root(&table, "s.toml");
    let config = read(&mut root, Time::from_ms(100));
    (config, root.finish().problems.iter().map(|p| p.to_string()).collect())
}

#[test]
fn a_run_ends_with_its_flows_or_at_a_time() {
    let done = Until::FlowsDone { grid: Time::from_us(10), stall: Time::from_ms(100) };
    assert_eq!(read_text("").0.until, done);
    assert_eq!(read_text("until = \"2ms\"").0.until, Until::At(Time::from_ms(2)));
}

#[test]
fn a_run_has_a_memory_limit_where_one_is_given() {
    assert_eq!(read_text("").0.memory, None);
    assert_eq!(read_text("memory = \"none\"").0.memory, None);
    assert_eq!(read_text("memory = \"8GB\"").0.memory, Some(Bytes(8_000_000_000)));
}

#[test]
fn wrong_memory_limits_are_reported() {
    let message = |text: &str| read_text(text).1.concat();
    let expected = "s.toml:1: memory: expected \"none\" or a size above zero such as \"8GB\"";
    for (text, found) in [
        ("memory = \"0B\"", ", found \"0B\""),
        ("memory = 8", ", found 8"),
        ("memory = \"8\"", ": \"8\" has no unit: expected a size such as \"32MB\" (units: B, "),
        ("memory = \"8 apples\"", ": unknown unit \"apples\" in \"8 apples\": expected a size"),
        ("memory = \"-8GB\"", ": \"-8GB\" is negative: a size must not be negative"),
    ] {
        assert!(message(text).starts_with(&format!("{expected}{found}")), "{}", message(text));
    }
}

#[test]
fn wrong_ends_are_reported() {
    assert_eq!(
        read_text("until = \"flow-done\"\ngrid = \"0us\"\nthreads = -1").1,
        [
            "s.toml:1: until: expected \"flows-done\" or a time such as \"2ms\": expected a time with its unit \
             such as \"10us\", found \"flow-done\"",
            "s.toml:2: grid: expected a time above zero",
            "s.toml:3: threads: expected a whole number from 0 to 1024, found -1",
        ]
    );
}
