//! What the hosts send: flows with sizes, start times and dependencies, made by generators or replayed.
//!
//! A workload knows hosts by their number and rates, never switches. Every workload draws from random
//! streams of its own, so that changing the scheme leaves the flows as they are.

pub mod sizes;

use crate::topology::HostId;
use crate::units::Time;

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
    fn dependencies(&self) -> Vec<(u32, u32)> {
        Vec::new()
    }
    /// Flows whose completion ends a job, as (last flow's order, job's number); for job completion times.
    fn jobs(&self) -> Vec<(u32, u32)> {
        Vec::new()
    }
}

/// Everything that a run's hosts will send.
pub struct Traffic {
    pub sources: Vec<Box<dyn FlowSource>>,
    /// Names of the groups that [`FlowSpec::group`] refers to.
    pub groups: Vec<String>,
}
