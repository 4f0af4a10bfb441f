//! The keys that all workloads have, and how a description becomes a source of flows.

use super::deadlines::DeadlineSpec;
use super::trace::TraceRow;
use super::{FlowSource, FlowSpec, Pattern};
use crate::engine::random::RandomStream;
use crate::parameters::Parameters;
use crate::topology::HostId;
use crate::units::{Rate, Time};
use std::path::Path;

/// No flow starts later than this (46 days), so that times cannot overflow.
pub const LAST_START: Time = Time(4_000_000_000_000_000_000);

/// The most flows of which one workload may keep the dependencies in memory.
pub const MAX_DEPENDENT_FLOWS: u64 = 50_000_000;

/// A workload as the scenario describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkloadSpec {
    /// Name of the group that its flows belong to.
    pub group: String,
    /// Added to all of its start times.
    pub start: Time,
    /// Flows start in `[start, start + duration)`; none: no end but the pattern's own.
    pub duration: Option<Time>,
    pub deadlines: DeadlineSpec,
    pub pattern: Pattern,
}

/// Reads a Parquet file of flows; the error names the file and says what is wrong with it.
pub type ReadParquet<'a> = &'a dyn Fn(&Path) -> Result<Vec<TraceRow>, String>;

/// What a workload must know of the run that it becomes part of.
#[derive(Clone, Copy)]
pub struct WorkloadContext<'a> {
    pub seed: u64,
    /// Its place among the workloads of the scenario; part of the names of its random streams.
    pub index: usize,
    /// Number of hosts.
    pub hosts: u32,
    /// Rate of each host's link (all its links together).
    pub host_rate: &'a [Rate],
    /// Rack (edge switch) of each host, any numbering; empty: unknown.
    pub racks: &'a [u32],
    /// The host that the user means by this id.
    pub label_to_host: &'a dyn Fn(u32) -> Option<HostId>,
    /// Where relative paths start.
    pub base_dir: &'a Path,
    /// Index of the group [`WorkloadSpec::group`].
    pub group: u16,
    /// Index of a group that a trace names itself, made when it is new.
    pub group_named: &'a dyn Fn(&str) -> u16,
    pub transport: u16,
    /// Header bytes of a full packet and bytes of an acknowledgement: for loads that count them.
    pub header: u64,
    pub ack: u64,
    /// Payload bytes of a full packet.
    pub mtu: u64,
    /// Gaps are cut to whole nanoseconds, as the HPCC authors do it.
    pub whole_ns: bool,
    pub read_parquet: Option<ReadParquet<'a>>,
    /// Told of what deserves a second look but does not stop the run.
    pub warn: &'a dyn Fn(String),
}

impl WorkloadContext<'_> {
    /// The random stream of this workload for one purpose.
    pub fn stream(&self, purpose: &str) -> RandomStream {
        RandomStream::new(self.seed, &format!("workload.{}.{purpose}", self.index))
    }

    /// The host of this id, or who is there.
    pub fn host(&self, label: u32) -> Result<HostId, String> {
        if let Some(host) = (self.label_to_host)(label).filter(|&host| host < self.hosts) {
            return Ok(host);
        }
        let known = |id: u32| (self.label_to_host)(id).is_some();
        let last = self.hosts.saturating_sub(1);
        Err(if known(0) && known(last) && !known(self.hosts) {
            format!("unknown host {label}: the topology has hosts 0 to {last}")
        } else {
            format!("unknown host {label}: the topology has {} hosts, with ids of its own", self.hosts)
        })
    }

    /// A flow of this workload, all else zero.
    pub fn flow(&self) -> FlowSpec {
        FlowSpec { group: self.group, transport: self.transport, ..FlowSpec::default() }
    }
}

/// When a workload's flows may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    pub start: Time,
    /// Exclusive.
    pub end: Time,
    /// Whether the user gave a duration.
    pub bounded: bool,
}

/// Why a workload cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct WorkloadError {
    /// The key to blame.
    pub key: &'static str,
    pub message: String,
}

impl WorkloadError {
    pub fn new(key: &'static str, message: impl Into<String>) -> WorkloadError {
        WorkloadError { key, message: message.into() }
    }
}

impl WorkloadSpec {
    /// Reads the keys of this kind of workload; none if there is no such kind.
    pub fn read(kind: &str, p: &mut Parameters) -> Option<WorkloadSpec> {
        let name = super::DOCS.iter().find(|doc| doc.name == kind)?.name;
        let group = p.text("group", Some(name), "Name under which results gather these flows.");
        let start = p.time("start", Time::ZERO, "When the workload begins; added to all its start times.");
        let duration = p.time_or_auto(
            "duration",
            "Flows start within this time of `start`; auto: until the pattern itself ends.",
        );
        if duration == Some(Time::ZERO) {
            p.complain("duration", "must be more than zero".into());
        }
        let pattern = Pattern::read(name, p)?;
        let facts = pattern.facts();
        if duration.is_some() && facts.ends_itself {
            p.complain(
                "duration",
                format!("a {name} workload ends after its requests or repeats, not at a time"),
            );
        }
        let deadlines = DeadlineSpec::read(p);
        if deadlines.mean.is_some() && facts.lists_flows {
            p.complain("deadline_mean", format!("give each flow its own: a {name} workload lists its flows"));
        }
        if deadlines.mean.is_some() && facts.flows_wait {
            p.complain("deadline_mean", format!("flows of a {name} workload wait for others: no deadlines"));
        }
        let group = group.unwrap_or_else(|| name.to_string());
        Some(WorkloadSpec { group, start, duration, deadlines, pattern })
    }

    /// The source of its flows.
    pub fn source(&self, cx: &WorkloadContext) -> Result<Box<dyn FlowSource>, WorkloadError> {
        debug_assert_eq!(cx.host_rate.len(), cx.hosts as usize);
        if self.start >= LAST_START {
            return Err(WorkloadError::new("start", format!("is later than {LAST_START}")));
        }
        let end = self.duration.map_or(LAST_START, |span| self.start.saturating_add(span).min(LAST_START));
        let window = Window { start: self.start, end, bounded: self.duration.is_some() };
        let source = self.pattern.source(cx, window)?;
        Ok(self.deadlines.apply(source, cx.stream("deadlines")))
    }
}

#[cfg(test)]
mod tests;
