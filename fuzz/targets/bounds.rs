//! Scenarios of the targets `scenario` and `run`, and which of them are too large for a fuzzer.

use weftline_sim::workload::Traffic;

/// Larger networks cost the fuzzer seconds and memory and teach nothing; beyond the limit of nodes they are refused.
const TEDIOUS: std::ops::RangeInclusive<i64> = 9..=1_000_000;
/// The product counts up to 50 million flows before it runs.
const MAX_FLOWS: u32 = 20_000;

/// The (path, value) pairs of `--set` and the text of the file: lines before a line `%%`, and the rest. None: too large.
pub fn read(input: &str) -> Option<(Vec<(String, String)>, &str)> {
    let (sets, text) = input.split_once("\n%%\n").unwrap_or(("", input));
    let sets: Vec<(String, String)> = sets
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(path, value)| (path.to_string(), value.to_string()))
        .collect();
    let wholesale = |(path, value): &(String, String)| {
        path.trim().starts_with("topology") && has_tedious(&format!("value = {value}"), "value")
    };
    let small = !has_tedious(text, "topology") && !sets.iter().any(wholesale);
    small.then_some((sets, text))
}

/// Whether the flows are few.
pub fn is_small(traffic: &Traffic) -> bool {
    let mut left = MAX_FLOWS;
    for source in &traffic.sources {
        let mut source = source.clone_box();
        while source.next().is_some() {
            if left == 0 {
                return false;
            }
            left -= 1;
        }
    }
    true
}

/// Whether a tedious number stands anywhere below `key`.
fn has_tedious(text: &str, key: &str) -> bool {
    let Ok(table) = text.parse::<toml::Table>() else { return false };
    table.get(key).is_some_and(tedious)
}

fn tedious(value: &toml::Value) -> bool {
    match value {
        toml::Value::Integer(number) => TEDIOUS.contains(number),
        toml::Value::Array(items) => items.iter().any(tedious),
        toml::Value::Table(table) => table.values().any(tedious),
        _ => false,
    }
}
