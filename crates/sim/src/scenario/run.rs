//! `[run]` and `[compat]`: when a run ends, on how many threads, and by whose rules.

use super::section::Section;
use crate::config::{Compat, Until};
use crate::parameters::{Declared, Kind, Source, Value, describe};
use crate::units::Time;

pub const COMPAT: &[(&str, &str)] = &[
    ("none", "picoseconds, order by entity, salted ECMP"),
    ("hpcc-ns3", "time, order, hashing and settings of the HPCC authors' simulator, to the nanosecond"),
];

/// The most threads that can be asked for.
pub const MOST_THREADS: usize = 1024;

/// `[compat] like`.
pub fn read_compat(section: &mut Section) -> Compat {
    let help = "whose rules of time, order and hashing hold; leave out for the real thing";
    match section.parameters().choice("like", "none", COMPAT, help) {
        "hpcc-ns3" => Compat::HpccNs3,
        _ => Compat::None,
    }
}

/// When and on what a scenario runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunConfig {
    pub until: Until,
    /// 0: as many as pay.
    pub threads: usize,
}

/// `auto_stall`: the stall time where none is given.
pub fn read(section: &mut Section, auto_stall: Time) -> RunConfig {
    let end = until(section);
    let help = "with until = \"flows-done\", a run ends at a multiple of this time, so that its counters do not \
                depend on who noticed first";
    let grid = section.parameters().time("grid", Time::from_us(10), help);
    let help = "a run with unfinished flows is given up when nothing was delivered for this long; auto: 100 ms or \
                ten retransmission timeouts, whichever is more";
    let stall = section.parameters().time_or_auto("stall", help).unwrap_or(auto_stall);
    for (key, value) in [("grid", grid), ("stall", stall)] {
        if value == Time::ZERO {
            section.complain(key, "expected a time above zero".to_string());
        }
    }
    let help = "threads that share the run; 0: as many as the machine has cores and the network keeps busy; results do not \
                depend on it";
    let threads = section.parameters().integer("threads", 1, (0, MOST_THREADS as i64), help) as usize;
    let until = match end {
        Some(time) => Until::At(time),
        None => Until::FlowsDone { grid, stall },
    };
    RunConfig { until, threads }
}

/// The time at which the run ends; none: when every flow is done.
fn until(section: &mut Section) -> Option<Time> {
    const DONE: &str = "flows-done";
    let expected = "expected \"flows-done\" or a time such as \"2ms\"";
    let time = match section.get("until") {
        None => None,
        Some(Value::Text(text)) if text == DONE => None,
        Some(Value::Text(text)) => match text.parse::<Time>() {
            Ok(Time::ZERO) => {
                section.complain("until", "expected a time above zero".to_string());
                None
            }
            Ok(time) => Some(time),
            Err(error) => {
                section.complain("until", format!("{expected}: {error}"));
                None
            }
        },
        Some(other) => {
            section.complain("until", format!("{expected}, found {}", describe(&other)));
            None
        }
    };
    let help = "\"flows-done\", or the simulated time at which the run ends";
    let declared = Declared { key: "until", kind: Kind::Text, default: Some(DONE.to_string()), help };
    let shown = time.map_or(DONE.to_string(), |t| t.to_string());
    section.declare(declared, Some(Value::Text(shown)));
    time
}

#[cfg(test)]
mod tests {
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
    fn wrong_ends_are_said() {
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
}
