//! On how many threads a run works, and why.

use super::split::Split;
use super::work::Work;
use crate::config::{Config, Until};
use crate::congestion::ControllerConfig;
use crate::net::agenda::AgendaKind;
use crate::run::Plan;
use crate::topology::{NextHopOrder, Routes, Topology};
use crate::transport::TransportConfig;
use crate::units::Time;

/// How a run is to be executed. Nothing of it shows in the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Execution {
    /// Threads; 0: the number of cores of the machine, or fewer if the network cannot keep them busy.
    pub threads: usize,
    /// Regions that the network is cut into; none: one for each thread.
    pub regions: Option<usize>,
    /// Regions work node by node in windows of their shortest link delay, or event by event; none: by what pays.
    pub windows: Option<bool>,
}

impl Default for Execution {
    fn default() -> Execution {
        Execution { threads: 1, regions: None, windows: None }
    }
}

impl Plan {
    /// What `execution` comes to on the network of `config`.
    pub fn of(config: &Config, execution: Execution) -> Plan {
        plan(config, &Routes::compute(&config.topology, &|_| true, NextHopOrder::ByPort), execution).0
    }
}

/// Packet-hops of a region in a window, some 8 us of work, below which a thread spends more time on handing over than it
/// saves.
const MIN_HOPS: f64 = 100.0;
/// Of what the links can carry, for the estimate of what happens in a window.
const USUAL_LOAD: f64 = 0.3;

/// Decides on threads and regions.
pub(crate) fn plan(config: &Config, routes: &Routes, execution: Execution) -> (Plan, Split) {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let asked = if execution.threads == 0 { cores() } else { execution.threads };
    let parts = execution.regions.unwrap_or(asked).clamp(1, usize::from(u16::MAX));
    let one = |why: Option<&str>| {
        let why_fewer = why.filter(|_| execution.threads > 1).map(String::from);
        (Plan { threads: 1, regions: 1, lookahead: Time::MAX, why_fewer }, Split::whole(&config.topology))
    };
    if parts == 1 {
        return one(None);
    }
    if config.rules.insertion_order {
        let why = "breaks ties in one order for the whole network, so it runs on one thread";
        return one(Some(&format!("the mode like \"{}\" {why}", config.rules.like)));
    }
    let external = |transport: &TransportConfig| matches!(transport.facts().controller, Some(ControllerConfig::External(external)) if external.one_thread);
    if config.transports.iter().any(external) {
        return one(Some("controllers in Python take turns anyway, so the run uses one thread"));
    }
    let end = match config.until {
        Until::At(end) => end,
        Until::FlowsDone { .. } => Time::MAX,
    };
    let work = Work::of(&config.topology, routes, &config.traffic, end);
    let mut split = Split::new(&config.topology, &work, parts);
    let useful = split.gain(&work).round() as usize;
    if useful < split.parts && execution.regions.is_none() {
        // More parts would leave the heaviest as it is, or nearly.
        split = Split::new(&config.topology, &work, useful);
    }
    if split.parts == 1 {
        return one(Some(
            "hosts stay with their switch and links without delay are not cut, which leaves one region, so the run uses \
             one thread",
        ));
    }
    let threads = asked.min(split.parts);
    let hops = work.hops_per_second * split.lookahead.as_seconds() / split.parts as f64;
    if hops < MIN_HOPS && execution.regions.is_none() {
        let delay = split.lookahead;
        return one(Some(&format!(
            "regions of the network may run only {delay} (the shortest link between them) ahead of each other, about \
             {hops:.0} packets each: too few to gain from a second thread, so the run uses one"
        )));
    }
    let why_fewer = (threads < execution.threads).then(|| {
        format!(
            "the network can be divided into at most {} regions with about equal work, so the run uses {threads} threads",
            split.parts
        )
    });
    (Plan { threads, regions: split.parts, lookahead: split.lookahead, why_fewer }, split)
}

/// In which order a region works, if `shortest` is the shortest delay of a link in it: `windows` of that length or one event
/// after the other; none: whichever is faster.
pub(crate) fn agenda(topology: &Topology, shortest: Time, windows: Option<bool>) -> AgendaKind {
    /// Packet-hops of a node in a window from which on an inbox for it, and looking it up, save time.
    const MANY: f64 = 3.0;
    const SOME: f64 = 0.125;
    /// Slots of the calendar are not shorter.
    const SHORTEST: Time = Time::from_ns(1);
    let hops_of_a_node = hops_in(topology, shortest) / topology.nodes.len().max(1) as f64;
    if shortest == Time::ZERO || !windows.unwrap_or(hops_of_a_node >= SOME) {
        AgendaKind::Calendar
    } else if hops_of_a_node < MANY && shortest >= SHORTEST {
        AgendaKind::ShortWindows(shortest)
    } else {
        AgendaKind::Windows(shortest)
    }
}

/// Packet-hops of the whole network in a time at a usual load: as many acknowledgements as full packets.
fn hops_in(topology: &Topology, time: Time) -> f64 {
    const BITS: f64 = 8.0 * 1100.0;
    let rates: f64 = topology.links.iter().map(|link| 2.0 * link.rate.0 as f64).sum();
    2.0 * USUAL_LOAD * rates / BITS * time.as_seconds()
}

#[cfg(test)]
mod tests;
