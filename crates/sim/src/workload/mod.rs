//! What the hosts send: flows with sizes, start times and dependencies, made by generators or replayed.
//!
//! A workload knows hosts by their number and rates, never switches. Every workload draws from random
//! streams of its own, so that changing the scheme leaves the flows as they are.

pub mod all_to_all;
pub mod bulk;
pub mod closed_loop;
pub mod collective;
pub mod deadlines;
pub mod flows;
pub mod hosts;
pub mod incast;
pub mod load;
pub mod merge;
pub mod permutation;
pub mod poisson;
pub mod request_response;
pub mod sizes;
pub mod spec;
#[cfg(test)]
mod tests;
pub mod trace;

pub use merge::{Arrival, Dependents, Jobs, Merged, TrafficSize};
pub use sizes::SizeDistribution;
pub use spec::{WorkloadContext, WorkloadError, WorkloadSpec};
pub use trace::{Trace, TraceError, TraceRow};

use crate::doc::SchemeDoc;
use crate::parameters::Parameters;
use crate::topology::HostId;
use crate::units::Time;

/// A kind of workload by its parameters: a file of this room, and a line in the registry below. What all workloads
/// have (group, start, duration, deadlines) is read by [`WorkloadSpec`].
pub trait WorkloadParameters: Sized {
    const DOC: SchemeDoc;
    /// It ends after requests or repeats of its own: a duration would mean nothing.
    const ENDS_ITSELF: bool = false;
    /// Its flows wait for others: they have no deadlines.
    const FLOWS_WAIT: bool = false;
    /// Its flows are listed one by one: each says its own deadline.
    const LISTS_FLOWS: bool = false;
    fn read(p: &mut Parameters) -> Self;
    /// The source of its flows. Errors: the key to blame, and what would make a workload.
    fn source(
        &self,
        cx: &WorkloadContext,
        window: spec::Window,
    ) -> Result<Box<dyn FlowSource>, WorkloadError>;
    /// The constants of the kind.
    fn facts(&self) -> WorkloadFacts {
        WorkloadFacts {
            ends_itself: Self::ENDS_ITSELF,
            flows_wait: Self::FLOWS_WAIT,
            lists_flows: Self::LISTS_FLOWS,
        }
    }
}

/// The constants of [`WorkloadParameters`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkloadFacts {
    pub ends_itself: bool,
    pub flows_wait: bool,
    pub lists_flows: bool,
}

registry! {
    /// What a workload does, with all its parameters.
    Pattern: WorkloadParameters {
        Poisson = poisson::PoissonSpec;
        Permutation = permutation::PermutationSpec;
        AllToAll = all_to_all::AllToAllSpec;
        Incast = incast::IncastSpec;
        Bulk = bulk::BulkSpec;
        ClosedLoop = closed_loop::ClosedLoopSpec;
        RequestResponse = request_response::RequestResponseSpec;
        Collective = collective::CollectiveSpec;
        Flows = flows::FlowsSpec;
        Trace = trace::TraceSpec;
    }
}

impl Pattern {
    pub fn facts(&self) -> WorkloadFacts {
        each_kind!(self, spec => spec.facts())
    }

    pub fn source(
        &self,
        cx: &WorkloadContext,
        window: spec::Window,
    ) -> Result<Box<dyn FlowSource>, WorkloadError> {
        each_kind!(self, spec => spec.source(cx, window))
    }
}

/// Number of a flow within a run: its place in the order of (start, workload, order within the workload).
pub type FlowId = u32;

/// One flow to be sent. Ids are given when the flows of all workloads are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FlowSpec {
    pub src: HostId,
    pub dst: HostId,
    /// Payload bytes; more than zero.
    pub size: u64,
    /// When it starts; for a flow with dependencies, the earliest moment at which it may.
    pub start: Time,
    /// Absolute deadline, if it has one.
    pub deadline: Option<Time>,
    /// Index into [`Traffic::groups`].
    pub group: u16,
    /// Index of the transport settings it runs over (0 is the scenario's `[transport]`).
    pub transport: u16,
    /// How many flows must end before this one starts.
    pub waits_for: u16,
    /// Computation between the end of what it waits for and its start.
    pub compute: Time,
    /// The flow that opens the connection that this one is sent over, which may be itself; none: it has one of its own. A source
    /// gives the order within it, the merge makes that a number. Whoever else is sent over a connection comes after the flow
    /// that opens it and has its ends, group and transport. Flows of a connection start in their order, whenever they are due.
    pub connection: Option<FlowId>,
}

/// A generator of flows in order of their start times; `waits_for` of every flow it yields is filled in.
///
/// Generators are lazy, so memory does not grow with the number of flows, and cloneable, so that a run
/// can be sized (flows counted, bytes added up) before it starts.
pub trait FlowSource: Send {
    /// The next flow, its start not earlier than the previous one's.
    fn next(&mut self) -> Option<FlowSpec>;
    fn clone_box(&self) -> Box<dyn FlowSource>;
    /// Pairs (earlier, later) of this source's own flows, by their order within it: `later` counts
    /// `earlier` in its `waits_for`. Sorted. Empty for most sources.
    ///
    /// The source of `later` is the source of `earlier` (which learns of the end by the last acknowledgement) or
    /// its destination (which learns of it by the last byte): no host acts on what it cannot know.
    fn dependencies(&self) -> Vec<(u32, u32)> {
        Vec::new()
    }
    /// Flows whose completion ends a job, as (the flow's order, job's number); for job completion times. A job
    /// has ended when all the flows listed for it have. Either all flows of a source are listed, or those of a job are
    /// neighbours in the order. Sorted.
    fn jobs(&self) -> Vec<(u32, u32)> {
        Vec::new()
    }
    /// What is still to come, where it can be told without drawing it; flows and bytes are those expected.
    fn rest(&self) -> Option<TrafficSize> {
        None
    }
    /// What it was asked to offer, where that is a rate.
    fn asked(&self) -> Option<AskedLoad> {
        None
    }
    /// Memory that it holds beside what is the same for all sources.
    fn memory_bytes(&self) -> u64 {
        0
    }
    /// No deadline of its flows is sooner than this many ideal completion times after the start.
    fn min_deadline(&self) -> f64 {
        0.0
    }
}

/// A load that flows which arrive at random are drawn to.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct AskedLoad {
    /// Mean payload that is offered, in bit/s.
    pub rate: f64,
    /// Variance of the payload offered in a second, in bit^2: arrivals a second times the mean square of a flow's bits.
    pub variance: f64,
}

/// Everything that a run's hosts will send.
pub struct Traffic {
    pub sources: Vec<Box<dyn FlowSource>>,
    /// Names of the groups that [`FlowSpec::group`] refers to.
    pub groups: Vec<String>,
}

impl Clone for Traffic {
    fn clone(&self) -> Traffic {
        Traffic { sources: self.sources.iter().map(|s| s.clone_box()).collect(), groups: self.groups.clone() }
    }
}
