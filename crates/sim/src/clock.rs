//! The limit of the clock, and what makes the time of a scenario long.

use crate::topology::{Link, Topology};
use crate::units::{Bytes, Rate, Time, two_digits};
use crate::workload::TrafficSize;
use crate::workload::graph::{JobGraph, Work};
use std::cmp::Reverse;

/// The last moment that is simulated, 106 days: half of what the clock holds, so that no sum of a time and
/// one that a person may write (up to 53 days) can wrap.
pub const LATEST: Time = Time(1 << 63);
/// What takes less, all in all, is not the reason that a run reaches it.
const LONG: Time = Time(LATEST.0 / 100);
/// A link on which a packet takes longer slows down every window of a flow.
const LONG_DELAY: Time = Time::from_ms(1000);

/// "107 days, the limit of the clock".
pub fn limit() -> String {
    format!("{:.0} days, the limit of the clock", LATEST.as_seconds() / 86_400.0)
}

/// Returns what makes simulated time long, with what to change. `changed`: rates that links take by failures; `graphs`: the jobs,
/// with the numbers of their workloads.
pub fn reasons<'g>(
    topology: &Topology,
    changed: impl Iterator<Item = Rate>,
    size: &TrafficSize,
    graphs: impl Iterator<Item = (usize, &'g JobGraph)>,
) -> String {
    let mut found = Vec::new();
    let mut add = |time: Time, text: String| found.push((time, text));
    let name = |link: &Link| {
        let [a, b] = [link.a, link.b].map(|node| &topology.nodes[node as usize].name);
        format!("{a} - {b}")
    };
    let slowest = topology.links.iter().min_by_key(|link| link.rate);
    if let Some((link, rate)) = slowest.map(|link| (link, changed.fold(link.rate, Rate::min))) {
        let time = rate.transmission_time(size.bytes);
        if time >= LONG && !size.is_endless {
            let which = if rate == link.rate { name(link) } else { "by an event of failures".to_string() };
            let takes = about(time);
            add(
                time,
                format!(
                    "the slowest link ({which}) has a rate of {rate}, at which the {} of all flows take {takes} (raise the rate, \
                     or send less)",
                    Bytes(two_digits(size.bytes))
                ),
            );
        }
    }
    let longest = topology.links.iter().min_by_key(|link| Reverse(link.delay));
    if let Some(link) = longest.filter(|link| link.delay >= LONG_DELAY) {
        let text = format!("a link ({}) has a delay of {} (shorten it)", name(link), link.delay);
        add(link.delay, text);
    }
    if size.last_start >= LONG {
        let text = format!(
            "flows start until {} (shorten start, duration or every of the workload)",
            about(size.last_start)
        );
        add(size.last_start, text);
    }
    let waits = Time(size.longest_wait.0.saturating_mul(size.flows));
    if waits >= LONG {
        let wait = size.longest_wait;
        add(waits, format!("flows wait for compute or think times of up to {wait} (shorten these times)"));
    }
    for (workload, graph) in graphs {
        let computing = computing(graph);
        if computing >= LONG {
            let time = about(computing);
            add(
                computing,
                format!(
                    "a rank of workload.{workload} computes for {time} in all (shorten its compute times)"
                ),
            );
        }
    }
    found.sort_by_key(|(time, _)| Reverse(*time));
    if found.is_empty() {
        return "its flows take too long, or wait too long for each other".to_string();
    }
    found.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join("; ")
}

/// A time to two digits; what the clock does not hold is longer than its largest number.
fn about(time: Time) -> String {
    let word = if time == Time::MAX { "more than" } else { "about" };
    format!("{word} {}", Time(two_digits(time.0)))
}

/// The longest time for which a rank of a job computes.
fn computing(graph: &JobGraph) -> Time {
    match &graph.work {
        Work::Repeated(work) => Time(work.compute.0.saturating_mul(u64::from(work.repeat))),
        Work::Listed(work) => work.computing(),
    }
}
