//! The flows that hosts send, with sizes, start times and dependencies, generated or replayed.
//!
//! A workload depends on the hosts' numbers and rates, not on switches. Every workload draws from random
//! streams of its own, so that another scheme does not change the flows.

pub mod all_to_all;
pub mod bulk;
pub mod closed_loop;
pub mod collective;
pub mod deadlines;
pub mod flows;
pub mod graph;
pub mod hosts;
pub mod import;
pub mod incast;
pub mod job_file;
pub mod lanes;
pub mod load;
pub mod loggops;
pub mod merge;
pub mod permutation;
pub mod placement;
pub mod poisson;
pub mod request_response;
mod rounds;
pub mod schedule;
pub mod sent;
pub mod sizes;
pub mod spec;
#[cfg(test)]
mod tests;
pub mod trace;
pub mod training;

pub use merge::{Arrival, Dependents, Jobs, Merged, TrafficSize};
pub use sizes::SizeDistribution;
pub use spec::{WorkloadContext, WorkloadError, WorkloadSpec};
pub use trace::{MatrixFacts, Trace, TraceError, TraceRow, matrix_facts};

use crate::doc::SchemeDoc;
use crate::parameters::Parameters;
use crate::topology::HostId;
use crate::units::{Bytes, Time};
use graph::JobGraph;
use load::LoadTerms;
use std::sync::Arc;

/// Size of a flow without one: more than any run can transmit.
pub const WITHOUT_END: Bytes = Bytes(1 << 50);

/// A kind of workload with its parameters: a file of this room, and a line in the registry below. The keys of
/// all workloads (group, start, duration, deadlines) are read by [`WorkloadSpec`].
pub trait WorkloadParameters: Sized {
    const DOC: SchemeDoc;
    /// The workload ends after its own number of requests or repeats and accepts no duration.
    const ENDS_ITSELF: bool = false;
    /// Its flows wait for others and have no deadlines.
    const FLOWS_WAIT: bool = false;
    /// Its flows are listed individually, each with its own deadline.
    const LISTS_FLOWS: bool = false;
    fn read(p: &mut Parameters) -> Self;
    /// Returns the source of its flows. Errors name the key, and what is valid.
    fn source(
        &self,
        cx: &WorkloadContext,
        window: spec::Window,
    ) -> Result<Box<dyn FlowSource>, WorkloadError>;
    /// Its flows send until the run ends.
    fn is_endless(&self) -> bool {
        false
    }
    /// What a scenario must know about it.
    fn facts(&self) -> WorkloadFacts {
        WorkloadFacts {
            ends_itself: Self::ENDS_ITSELF,
            flows_wait: Self::FLOWS_WAIT,
            lists_flows: Self::LISTS_FLOWS,
            is_endless: self.is_endless(),
        }
    }
}

/// The constants of [`WorkloadParameters`], and what follows from its keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkloadFacts {
    pub ends_itself: bool,
    pub flows_wait: bool,
    pub lists_flows: bool,
    pub is_endless: bool,
}

registry! {
    /// The pattern of a workload, with all its parameters.
    Pattern: WorkloadParameters {
        Poisson = poisson::PoissonSpec;
        Permutation = permutation::PermutationSpec;
        AllToAll = all_to_all::AllToAllSpec;
        Incast = incast::IncastSpec;
        Bulk = bulk::BulkSpec;
        ClosedLoop = closed_loop::ClosedLoopSpec;
        RequestResponse = request_response::RequestResponseSpec;
        Collective = collective::CollectiveSpec;
        JobFile = job_file::JobFileSpec;
        Training = training::TrainingSpec;
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

/// Number of a flow in a run: its position in the order of (start, workload, order within the workload).
pub type FlowId = u32;

/// A flow to be sent. Ids are assigned when the flows of all workloads are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FlowSpec {
    pub src: HostId,
    pub dst: HostId,
    /// Payload in bytes; greater than zero.
    pub size: u64,
    /// Start time; for a flow with dependencies, the earliest one.
    pub start: Time,
    /// Absolute deadline, if any.
    pub deadline: Option<Time>,
    /// Index into [`Traffic::groups`].
    pub group: u16,
    /// Index of its transport settings (0 is the scenario's `[transport]`).
    pub transport: u16,
    /// Number of flows that must end before this one starts.
    pub waits_for: u16,
    /// Computation time between the end of these flows and the start.
    pub compute: Time,
    /// The flow that opens the connection of this flow, possibly itself; none: the flow has a connection of
    /// its own. A source gives the order of that flow within it, and the merge converts it to an id. Further
    /// flows of a connection come after the flow that opens it, and have the same ends, group and transport.
    /// Flows of a connection start in their order, even if a later one is due first.
    pub connection: Option<FlowId>,
    /// It has a connection of its own, on the path of this flow.
    pub path_of: Option<FlowId>,
    /// Where among the NICs of its host it belongs, as [`lane_of`](lanes::lane_of) says; 0: nowhere.
    pub lane: u16,
}

/// A generator of flows in order of their start times, with `waits_for` set in every flow.
///
/// Generators are lazy, so that memory does not grow with the number of flows, and cloneable, so that the
/// flows and bytes of a run can be counted before it starts.
pub trait FlowSource: Send + Sync + Sync {
    /// Returns the next flow; its start is not earlier than that of the previous one.
    fn next(&mut self) -> Option<FlowSpec>;
    fn clone_box(&self) -> Box<dyn FlowSource>;
    /// Pairs (earlier, later) of this source's own flows, by their order within it: `later` counts `earlier`
    /// in its `waits_for`. Sorted. Empty for most sources.
    ///
    /// The source host of `later` is the source of `earlier` (which is informed of the end by the last
    /// acknowledgement) or its destination (which is informed by the last byte): no host acts on information
    /// that it cannot have.
    fn dependencies(&self) -> Vec<(u32, u32)> {
        Vec::new()
    }
    /// Flows whose completion ends a job, as (order of the flow, number of the job), for job completion
    /// times. A job has ended when all its listed flows have. Either all flows of a source are listed, or the
    /// flows of a job are contiguous. Sorted.
    fn jobs(&self) -> Vec<(u32, u32)> {
        Vec::new()
    }
    /// What each of its jobs is.
    fn job_shape(&self) -> JobShape {
        JobShape::default()
    }
    /// Returns the expected number and bytes of the remaining flows, if they can be computed without drawing
    /// them.
    fn rest(&self) -> Option<TrafficSize> {
        None
    }
    /// Returns the configured load, if there is one.
    fn asked(&self) -> Option<AskedLoad> {
        None
    }
    /// The mean size of its flows of the kind of this one, where their sizes are drawn.
    fn mean_size(&self, _flow: &FlowSpec) -> Option<f64> {
        None
    }
    /// The time between two rounds, where flows arrive in several rounds at even distances.
    fn period(&self) -> Option<Time> {
        None
    }
    /// Which hosts its flows are between.
    fn ends(&self) -> Ends {
        Ends::default()
    }
    /// Memory in bytes, apart from what is equal for all sources.
    fn memory_bytes(&self) -> u64 {
        0
    }
    /// The job graph that a run plays; none: the run announces the flows of the source.
    fn graph(&self) -> Option<Arc<JobGraph>> {
        None
    }
    /// What stands for all of its flows in an estimate, where the order in which they start is not listed; none: they do.
    fn glance(&self) -> Option<Glance> {
        None
    }
    /// Minimum time to the deadline of its flows, in ideal completion times.
    fn min_deadline(&self) -> f64 {
        0.0
    }
}

/// Flows that are under way together, in the place of all flows of a source.
pub struct Glance {
    pub source: Box<dyn FlowSource>,
    /// Number and bytes of its flows, and of all.
    pub size: (u64, u64),
    pub of: (u64, u64),
    /// Flows that are under way together, where these are more than the source has.
    pub under_way: u64,
}

/// What the jobs of a source are: all of them are the same operation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JobShape {
    /// As scenarios name it, such as `ring-all-reduce`.
    pub operation: &'static str,
    /// Number of hosts that take part.
    pub ranks: u32,
    /// Data of every host, to which algorithm bandwidth relates; none: the sum of the job's flows.
    pub bytes: Option<u64>,
    /// Bus bandwidth over algorithm bandwidth, as numerator and denominator; none: there is no such thing.
    pub bus: Option<(u64, u64)>,
    /// No message crosses the network: its ranks are in one scale-up domain.
    pub inside: bool,
}

/// The hosts that send flows and those that receive them, in each list with the same expectation for all that have equal links;
/// empty where that is not known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ends {
    pub senders: Vec<HostId>,
    pub receivers: Vec<HostId>,
    /// Senders, and receivers, are drawn for each round, every host with the same chance.
    pub drawn: [bool; 2],
}

/// The load to which randomly arriving flows are drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AskedLoad {
    /// Mean number of arrivals per second.
    pub arrivals: f64,
    /// Mean offered payload in bit/s.
    pub rate: f64,
    /// Variance of the payload offered per second, in bit^2: arrivals per second times the mean square of the
    /// bits of one.
    pub variance: f64,
    /// As the scenario has it.
    pub terms: LoadTerms,
}

impl AskedLoad {
    /// Of events at random, `per_second`: each brings `fixed` bytes and this number of independent draws of `sizes`.
    fn of(per_second: f64, fixed: f64, draws: f64, sizes: &SizeDistribution, terms: LoadTerms) -> AskedLoad {
        let (mean, square) = (sizes.mean(), sizes.mean_square());
        let bytes = fixed + draws * mean;
        let bytes_squared = draws * (square - mean * mean) + bytes * bytes;
        AskedLoad {
            arrivals: per_second,
            rate: per_second * bytes * 8.0,
            variance: per_second * bytes_squared * 64.0,
            terms,
        }
    }
}

/// Everything that the hosts of a run send.
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
