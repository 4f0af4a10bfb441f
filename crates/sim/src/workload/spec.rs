//! The keys of all workloads, and how a specification becomes a source of flows.

use super::deadlines::DeadlineSpec;
use super::placement::Placed;
use super::trace::TraceRow;
use super::{FlowSource, FlowSpec, Pattern};
use crate::engine::random::RandomStream;
use crate::parameters::Parameters;
use crate::topology::HostId;
use crate::units::{Rate, Time};
use std::cell::RefCell;
use std::path::Path;

/// Latest start of a flow (46 days), so that times cannot overflow.
pub const LAST_START: Time = Time(4_000_000_000_000_000_000);

/// Maximum number of flows of one workload whose dependencies are kept in memory.
pub const MAX_DEPENDENT_FLOWS: u64 = 50_000_000;

/// A workload as the scenario specifies it.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkloadSpec {
    /// Name of the group of its flows.
    pub group: String,
    /// Added to all its start times.
    pub start: Time,
    /// Flows start in `[start, start + duration)`; none: only the pattern itself ends.
    pub duration: Option<Time>,
    pub deadlines: DeadlineSpec,
    pub pattern: Pattern,
}

/// Reads a Parquet file of flows: its rows, and what deserves a second look. The error names the file and
/// what is wrong with it.
pub type ReadParquet<'a> = &'a dyn Fn(&Path) -> Result<(Vec<TraceRow>, Vec<String>), String>;

/// What a workload needs from its run.
#[derive(Clone, Copy)]
pub struct WorkloadContext<'a> {
    pub seed: u64,
    /// Its index among the workloads of the scenario; part of the names of its random streams.
    pub index: usize,
    /// Number of hosts.
    pub hosts: u32,
    /// Rate of each host's link (the total of all its links).
    pub host_rate: &'a [Rate],
    /// The factor by which `[scale]` made time slower, and rates lower.
    pub slower: u32,
    /// Rack (edge switch) of each host, in any numbering; empty: unknown.
    pub racks: &'a [u32],
    /// Consecutive hosts that are the GPUs of one node, if the topology knows nodes.
    pub gpus_per_node: Option<u32>,
    /// The hosts that jobs have so far.
    pub placed: &'a RefCell<Placed>,
    /// The host with this id in files and scenarios.
    pub label_to_host: &'a dyn Fn(u32) -> Option<HostId>,
    /// The host with this name; the error says which name is nearest.
    pub host_named: &'a dyn Fn(&str) -> Result<HostId, String>,
    /// Directory for relative paths.
    pub base_dir: &'a Path,
    /// Index of the group [`WorkloadSpec::group`].
    pub group: u16,
    /// Index of a group that a trace names; a new group is added.
    pub group_named: &'a dyn Fn(&str) -> u16,
    pub transport: u16,
    /// Header bytes of a full packet and bytes of an acknowledgement, for loads that count them.
    pub header: u64,
    pub ack: u64,
    /// Payload bytes of a full packet.
    pub mtu: u64,
    /// Gaps are truncated to whole nanoseconds, as in the HPCC authors' simulator.
    pub whole_ns: bool,
    pub read_parquet: Option<ReadParquet<'a>>,
    /// Receives warnings, which do not stop the run.
    pub warn: &'a dyn Fn(String),
}

impl WorkloadContext<'_> {
    /// The random stream of this workload for one purpose.
    pub fn stream(&self, purpose: &str) -> RandomStream {
        RandomStream::new(self.seed, &format!("workload.{}.{purpose}", self.index))
    }

    /// What each of `per_host` ranks has of the links of its host, on the slowest of these hosts: the rate
    /// before `[scale]`, for laws that have times of their own.
    pub fn rank_rate(&self, hosts: &[HostId], per_host: u32) -> Rate {
        let rates = hosts.iter().filter_map(|&host| self.host_rate.get(host as usize));
        let slowest = rates.min().copied().unwrap_or(Rate::from_gbps(400));
        Rate(slowest.0.saturating_mul(self.slower.into()) / u64::from(per_host.max(1)))
    }

    /// The host with this id; the error lists the ids.
    pub fn host(&self, label: u32) -> Result<HostId, String> {
        if let Some(host) = (self.label_to_host)(label).filter(|&host| host < self.hosts) {
            return Ok(host);
        }
        let known = |id: u32| (self.label_to_host)(id).is_some();
        let last = self.hosts.saturating_sub(1);
        Err(if known(0) && known(last) && !known(self.hosts) {
            format!("unknown host {label}: the topology has hosts 0 to {last}")
        } else {
            format!("unknown host {label}: the topology has {} hosts, with ids from its file", self.hosts)
        })
    }

    /// A flow of this workload, with all other fields zero.
    pub fn flow(&self) -> FlowSpec {
        FlowSpec { group: self.group, transport: self.transport, ..FlowSpec::default() }
    }
}

/// The time in which a workload's flows may start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    pub start: Time,
    /// Exclusive.
    pub end: Time,
    /// Whether the user gave a duration.
    pub bounded: bool,
}

/// Why a workload is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct WorkloadError {
    /// The key that causes the error.
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
        let group = p.text("group", Some(name), "Name of the group of these flows in results.");
        let start = p.time(
            "start",
            Time::ZERO,
            "Start time of the workload, added to the start times of \
                                                 all its flows.",
        );
        let duration = p.time_or_auto(
            "duration",
            "Flows start within this time after `start`; auto: until the pattern itself ends.",
        );
        if duration == Some(Time::ZERO) {
            p.complain("duration", "must be greater than 0".into());
        }
        let pattern = Pattern::read(name, p)?;
        let facts = pattern.facts();
        if duration.is_some() && facts.ends_itself {
            p.complain(
                "duration",
                format!("a {name} workload ends after its requests or repeats and has no duration"),
            );
        }
        let deadlines = DeadlineSpec::read(p);
        if deadlines.mean.is_some() && facts.lists_flows {
            p.complain(
                "deadline_mean",
                format!(
                    "set the deadline of each flow: a {name} workload lists its \
                                                 flows"
                ),
            );
        }
        if deadlines.mean.is_some() && facts.flows_wait {
            p.complain(
                "deadline_mean",
                format!(
                    "flows of a {name} workload wait for others and cannot have \
                                                 deadlines"
                ),
            );
        }
        if deadlines.mean.is_some() && facts.is_endless {
            p.complain(
                "deadline_mean",
                format!("flows of a {name} workload without a size send until the run ends and meet no deadline: set size"),
            );
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
