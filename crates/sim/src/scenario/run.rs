//! `[run]` and `[compat]`: when a run ends, on how many threads, within how much memory, and by whose rules.

use super::section::Section;
use crate::compat::{self, Rules};
use crate::config::Until;
use crate::parameters::{Declared, Kind, Source, Value, describe};
use crate::units::{Bytes, Time};

/// Maximum number of threads.
pub const MAX_THREADS: usize = 1024;

/// `[compat] like`.
pub fn read_compat(section: &mut Section) -> Rules {
    let help = "simulator whose rules of time, order and hashing are repeated; none: weftline's own rules";
    Rules::of(section.parameters().choice("like", "none", compat::MODES, help))
}

/// When and on what a scenario runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunConfig {
    pub until: Until,
    /// 0: choose automatically.
    pub threads: usize,
    /// The run ends when the process holds more.
    pub memory: Option<Bytes>,
    pub memo: bool,
}

/// `auto_stall`: the stall time where none is given.
pub fn read(section: &mut Section, auto_stall: Time) -> RunConfig {
    let end = until(section);
    let help = "with until = \"flows-done\", a run ends at a multiple of this time, so that its counters do not depend on which \
                thread noticed first";
    let grid = section.parameters().time("grid", Time::from_us(10), help);
    let help = "a run with unfinished flows ends when nothing was delivered for this time, counted from the last of \
                [failures] if that is later; auto: the largest of 100 ms, twenty round trips of the longest idle path, twice \
                the time between two messages of app_rate, and ten retransmission timeouts at their longest backoff (tcp, \
                mptcp: ten of the timeouts that a connection begins with)";
    let stall = section.parameters().time_or_auto("stall", help).unwrap_or(auto_stall);
    for (key, value) in [("grid", grid), ("stall", stall)] {
        if value == Time::ZERO {
            section.complain(key, "expected a time above zero".to_string());
        }
    }
    let help = "worker threads; 0: choose automatically from the machine's cores and the network; results do not depend on it";
    let threads = section.parameters().integer("threads", 1, (0, MAX_THREADS as i64), help) as usize;
    let until = match end {
        Some(time) => Until::At(time),
        None => Until::FlowsDone { grid, stall },
    };
    let help = "repeated steps of a collective that begin in a state of the network seen before are not simulated \
                again: the same results, bit by bit; refused where that is not certain";
    let memo = section.parameters().flag("memo", false, help);
    if !memo {
        section.forget("memo");
    }
    RunConfig { until, threads, memory: memory(section), memo }
}

/// Most memory that the process may hold; none: what the machine has.
fn memory(section: &mut Section) -> Option<Bytes> {
    let limit = match section.get("memory") {
        None => None,
        Some(Value::Text(text)) => memory_limit(&text).unwrap_or_else(|message| {
            section.complain("memory", message);
            None
        }),
        Some(other) => {
            section.complain("memory", format!("{MEMORY_EXPECTED}, found {}", describe(&other)));
            None
        }
    };
    let help =
        "a run whose process holds more memory than this ends with its results so far; none: the machine's";
    let default = Some(NO_LIMIT.to_string());
    let shown = limit.map_or(NO_LIMIT.to_string(), |limit| limit.to_string());
    section.declare(Declared::new("memory", Kind::Bytes, default, help), Some(Value::Text(shown)));
    limit
}

const NO_LIMIT: &str = "none";
const MEMORY_EXPECTED: &str = "expected \"none\" or a size above zero such as \"8GB\"";

/// A limit of memory as a person writes it: "8GB", or "none". Errors: what was expected instead.
pub fn memory_limit(text: &str) -> Result<Option<Bytes>, String> {
    if text == NO_LIMIT {
        return Ok(None);
    }
    match text.parse() {
        Ok(Bytes(0)) => Err(format!("{MEMORY_EXPECTED}, found \"{text}\"")),
        Ok(limit) => Ok(Some(limit)),
        Err(error) => Err(format!("{MEMORY_EXPECTED}: {error}")),
    }
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
    let declared = Declared::new("until", Kind::Text, Some(DONE.to_string()), help);
    let shown = time.map_or(DONE.to_string(), |t| t.to_string());
    section.declare(declared, Some(Value::Text(shown)));
    time
}

#[cfg(test)]
mod tests;
