//! Why a flow took this long: its completion time, each picosecond given to one cause.
//!
//! The run is repeated with the flow [traced](crate::run::traced), and its *critical chain* is followed back
//! in time: from the packet whose arrival completed the flow, over its hops (waiting, transmission,
//! propagation) to the moment at which it left its host; from there to what let it leave no earlier (the
//! packets before it at the NIC, pacing, an acknowledgement or a token that had to come first, a timeout),
//! and so on to the start of the flow. Each step takes an interval that ends where the last one began, so the
//! intervals cover the completion time without gap or overlap: the sum is exact by construction, and
//! [`Account::adds_up`] checks it.
//!
//! What does not depend on the load (transmission, propagation) of the packet that completed the flow, of its
//! acknowledgement, and the time in which the sender's NIC transmits the flow's own packets are the causes
//! that a flow alone has too. The same of a round trip that the sender had to wait for is given to what made
//! it wait: its window, the receiver, a retransmission.

mod index;
mod links;
mod pauses;
mod routes;
pub mod steps;
mod walk;

pub use crate::run::traced::{Breadth, Findings, Traced};
pub use links::{LinkShare, limits};

use crate::build::Execution;
use crate::config::Config;
use crate::measure::{Outcome, Progress, Sink};
use crate::net::trace::LIMIT;
use crate::run::traced::Spans;
use crate::run::{RunError, Simulation};
use crate::units::Time;
use crate::workload::{FlowId, FlowSpec};
use std::collections::BTreeMap;

/// What an interval of a flow's completion time went to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// Bits of the flow's own packets, or of what answered the last one, were put on a link.
    Transmission,
    /// They travelled along a link.
    Propagation,
    /// After packets of the same flow.
    OwnQueue,
    /// After packets of other flows that had come before.
    OthersQueue,
    /// After packets of other flows that came later and left first: of a higher class, or preferred by the
    /// discipline.
    Priority,
    /// A pause (PFC) held the port.
    Pause,
    /// The link was down.
    Failure,
    /// The queue held the packet back though the link was free.
    Discipline,
    /// The sender's NIC sent packets of other flows.
    Nic,
    /// Pacing.
    Pacing,
    /// The sender's window was full: a round trip without its queues.
    Window,
    /// The connection was being opened.
    Opening,
    /// The receiver, or what hands out turns for it, had not let the sender send or not yet answered.
    Receiver,
    /// Packets were sent again, and the round trip that reported the loss.
    Retransmission,
    /// A timer had to expire before a packet was sent again, or before an end asked the other one.
    Timeout,
    /// That timer was one of loss detection, which comes before the retransmission timeout: of a tail loss probe, or
    /// of a reordering window.
    LossDetection,
    /// The transport held it, for a reason that it does not tell.
    Transport,
}

impl Cause {
    pub const ALL: [Cause; 17] = [
        Cause::Transmission,
        Cause::Propagation,
        Cause::OwnQueue,
        Cause::OthersQueue,
        Cause::Priority,
        Cause::Pause,
        Cause::Failure,
        Cause::Discipline,
        Cause::Nic,
        Cause::Pacing,
        Cause::Window,
        Cause::Opening,
        Cause::Receiver,
        Cause::Retransmission,
        Cause::Timeout,
        Cause::LossDetection,
        Cause::Transport,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Cause::Transmission => "transmission",
            Cause::Propagation => "propagation",
            Cause::OwnQueue => "own queue",
            Cause::OthersQueue => "queue of others",
            Cause::Priority => "higher priority",
            Cause::Pause => "pause",
            Cause::Failure => "failure",
            Cause::Discipline => "queue discipline",
            Cause::Nic => "NIC shared",
            Cause::Pacing => "pacing",
            Cause::Window => "window",
            Cause::Opening => "opening",
            Cause::Receiver => "receiver",
            Cause::Retransmission => "retransmission",
            Cause::Timeout => "timeout",
            Cause::LossDetection => "loss detection",
            Cause::Transport => "transport",
        }
    }

    /// Packets waited for a link. What is neither this nor motion was spent at an end of the flow.
    pub fn is_at_link(self) -> bool {
        match self {
            Cause::OwnQueue | Cause::OthersQueue | Cause::Priority | Cause::Pause => true,
            Cause::Failure | Cause::Discipline | Cause::Nic => true,
            Cause::Transmission | Cause::Propagation | Cause::Pacing | Cause::Window | Cause::Opening => {
                false
            }
            Cause::Receiver | Cause::Retransmission | Cause::Transport => false,
            Cause::Timeout | Cause::LossDetection => false,
        }
    }

    /// Time in which the flow waited for something that is not at a link.
    pub fn is_at_end(self) -> bool {
        !self.is_at_link() && !matches!(self, Cause::Transmission | Cause::Propagation)
    }
}

/// A part of a flow's completion time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    pub from: Time,
    pub to: Time,
    pub cause: Cause,
    /// Of the link that it was spent on or before, the number among [`Findings::links`].
    pub link: Option<u32>,
    /// The flow whose packet was transmitted meanwhile.
    pub other: Option<FlowId>,
}

/// Where the completion time of a flow went.
#[derive(Debug, Clone)]
pub struct Account {
    pub flow: Traced,
    /// From the flow's start to its end.
    pub intervals: Vec<Interval>,
    /// Links that its last packet crossed, in order.
    pub path: Vec<u32>,
    /// Where packets were lost, and how many, if it took time to send packets again; otherwise those of `answers_lost`.
    pub lost: BTreeMap<Place, usize>,
    /// Of these, what the destination sent without data: acknowledgements, tokens and the like.
    pub answers_lost: BTreeMap<Place, usize>,
    /// How long each timeout took, by what it is in words that follow this time; their sum is that of [`Cause::Timeout`].
    pub waited_until: BTreeMap<&'static str, Time>,
    /// How long pauses of a link took, by it and the link whose queue they go back to, if that is known; their sum is
    /// that of [`Cause::Pause`].
    pub paused_for: BTreeMap<(u32, Option<u32>), Time>,
    /// Of [`Cause::Nic`]: the time in which the NIC sent packets of other flows that it had sent before.
    pub nic_again: Time,
    /// How long each link that its data crossed was busy, with packets of any flow, while it lasted.
    pub used: BTreeMap<u32, Time>,
    /// Where its data were cut to their headers, and how many.
    pub trimmed: BTreeMap<Place, usize>,
}

/// Where a packet was lost: on a link or in its queue, in a node from which several links lead on, or in a switch that had no
/// route to the packet's destination, a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    Link(u32),
    Node(u32),
    WithoutRoute { node: u32, dst: u32, since: Time },
}

impl Account {
    /// The intervals follow each other from the start of the flow to its end, and none is empty.
    pub fn adds_up(&self) -> bool {
        let mut at = self.flow.start;
        let follows = self.intervals.iter().all(|part| {
            let follows = part.from == at && part.to > at;
            at = part.to;
            follows
        });
        follows && at == self.flow.finish
    }

    /// Time by cause.
    pub fn by_cause(&self) -> BTreeMap<Cause, Time> {
        let mut sums = BTreeMap::new();
        for part in &self.intervals {
            *sums.entry(part.cause).or_default() += part.to - part.from;
        }
        sums
    }

    /// Time by link and cause.
    pub fn by_link(&self) -> BTreeMap<(u32, Cause), Time> {
        let mut sums = BTreeMap::new();
        for part in &self.intervals {
            if let Some(link) = part.link {
                *sums.entry((link, part.cause)).or_default() += part.to - part.from;
            }
        }
        sums
    }

    /// The link at which it waited longest for other flows, with that time.
    pub fn worst_queue(&self) -> Option<(u32, Time)> {
        let mut sums: BTreeMap<u32, Time> = BTreeMap::new();
        for part in self.intervals.iter().filter(|part| part.other.is_some()) {
            if let Some(link) = part.link {
                *sums.entry(link).or_default() += part.to - part.from;
            }
        }
        sums.into_iter().max_by_key(|&(link, time)| (time, std::cmp::Reverse(link)))
    }

    /// The flows that it waited for at a link, longest first.
    pub fn shared(&self, link: u32) -> Vec<(FlowId, Time)> {
        let mut sums: BTreeMap<FlowId, Time> = BTreeMap::new();
        for part in self.intervals.iter().filter(|part| part.link == Some(link)) {
            if let Some(flow) = part.other {
                *sums.entry(flow).or_default() += part.to - part.from;
            }
        }
        let mut shared: Vec<_> = sums.into_iter().collect();
        shared.sort_by_key(|&(flow, time)| (std::cmp::Reverse(time), flow));
        shared
    }
}

/// The time in which as many packets cross links, by the mean of the run, as a trace keeps.
fn kept_time(run: &Outcome) -> Time {
    Time((run.end.0 as f64 * LIMIT as f64 / run.packet_hops.max(1) as f64) as u64)
}

/// What can be kept of a run while the flows of a step's chain last, by its mean: all, or, as the flows follow each other, the
/// links on their paths. Where routes change, paths are not known before.
pub fn breadth(flows: &[Traced], config: &Config, run: &Outcome) -> Result<Breadth, RunError> {
    match Spans::of(flows).total > kept_time(run) {
        false => Ok(Breadth::All),
        true if config.failures.events.is_empty() => Ok(Breadth::Paths),
        true => Err(too_much()),
    }
}

/// Those of the flows, the first ones first, of which all can probably be kept, but at least one: whether it can is known when
/// it is tried. Slow flows are in busy times, hence half of the time.
pub fn fitting(flows: &[Traced], run: &Outcome) -> Vec<Traced> {
    let (mut spans, max) = (Spans::default(), Time(kept_time(run).0 / 2));
    let kept: Vec<Traced> =
        flows.iter().filter(|flow| spans.add_within(flow.start, flow.finish, max)).copied().collect();
    if kept.is_empty() { flows.iter().take(1).copied().collect() } else { kept }
}

fn too_much() -> RunError {
    let message = "more packets crossed links while these flows lasted than a trace keeps (32 million): \
                   trace fewer or shorter flows";
    RunError::Impossible(message.into())
}

/// Repeats a run with some of its flows traced. The bits are those of the run, but that captures are left
/// out.
pub fn trace(
    mut config: Config,
    flows: &[Traced],
    breadth: Breadth,
    sink: &mut dyn Sink,
    watch: &mut dyn FnMut(&Progress) -> bool,
) -> Result<(Outcome, Findings), RunError> {
    config.measure.capture = None;
    let down = links::down_times(&config);
    let (hosts, ports, failures) =
        (config.topology.hosts(), config.topology.ports(), config.failures.clone());
    let links = config.topology.links.len();
    let execution = Execution { threads: 1, regions: Some(1), ..Execution::default() };
    let run = Simulation::new(config, execution)?;
    let (outcome, mut findings) = run.run_traced(flows, breadth, sink, watch)?;
    findings.down = down;
    let pairs = findings.trace.without_route.iter().map(|&(_, node, dst)| (node, dst)).collect();
    let ports: Vec<_> = ports.iter().collect();
    let graph = routes::Graph { hosts: &hosts, ports: &ports, links };
    findings.without_route = routes::lost_routes(&graph, &failures, &pairs);
    if findings.trace.overflows {
        return Err(too_much());
    }
    Ok((outcome, findings))
}

/// The completion times of flows alone on the network as configured, for those that have no record.
pub fn alone(config: Config, flows: &[FlowSpec]) -> Result<Vec<Time>, RunError> {
    let mut run = Simulation::new(config, Execution::default())?;
    Ok(flows.iter().map(|flow| run.ideals.of(flow, Time::ZERO, Time::ZERO)).collect())
}

/// Where the completion times of the traced flows went.
pub fn accounts(flows: &[Traced], findings: &Findings) -> Vec<Account> {
    let index = index::Index::new(findings);
    let mut origins = pauses::Origins::new(findings, &index);
    let account = |(number, flow)| walk::account(flow, number, findings, &index, &mut origins);
    flows.iter().enumerate().map(account).collect()
}

#[cfg(test)]
mod tests;
