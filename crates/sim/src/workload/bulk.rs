//! Bulk: each sender sends to its receiver without a pause, from its start until the run ends or all bytes
//! have arrived.
//!
//! The long-lived flows of fairness experiments: the first of `hosts` sends to the first of `to`, and so on.

use super::WorkloadParameters;
use super::load::participants;
use super::spec::{Window, WorkloadContext, WorkloadError};
use super::{FlowSource, FlowSpec, WITHOUT_END};
use crate::doc::SchemeDoc;
use crate::parameters::Parameters;
use crate::topology::HostId;
use crate::units::{Bytes, Time};
use std::ops::Range;

/// Keys of bulk flows.
#[derive(Debug, Clone, PartialEq)]
pub struct BulkSpec {
    pub hosts: String,
    pub to: String,
    /// None: flows send until the run ends.
    pub size: Option<Bytes>,
    pub flows_per_pair: u64,
    pub stagger: Time,
    pub jitter: Time,
}

impl WorkloadParameters for BulkSpec {
    const DOC: SchemeDoc = SchemeDoc {
        name: "bulk",
        title: "flows between pairs of hosts that send until the run ends",
        source: "An ordinary pattern of such studies; the rules are weftline's",
        validation: "Pairs in order, jitter within its bound; shares of long flows at a bottleneck \
             (tests/tcp.rs).",
        ..SchemeDoc::NONE
    };

    fn read(p: &mut Parameters) -> BulkSpec {
        let from =
            p.text("hosts", Some("auto"), "Senders, such as \"0-7\"; auto: the first half of all hosts.");
        let help = "Receivers, the same number as senders: the first sender sends to the first receiver, and so \
             on; auto: the second half.";
        let to = p.text("to", Some("auto"), help);
        let size = p.bytes_or_auto("size", "Size of each flow; auto: it sends until the run ends.");
        if size == Some(Bytes(0)) {
            p.complain("size", "a flow needs at least one byte".into());
        }
        BulkSpec {
            hosts: from.unwrap_or_default(),
            to: to.unwrap_or_default(),
            size: size.map(|size| size.min(WITHOUT_END)),
            flows_per_pair: p.integer("flows_per_pair", 1, (1, 100_000), "Number of flows per pair.") as u64,
            stagger: p.time("stagger", Time::ZERO, "Time from one pair's start to the next one's."),
            jitter: p.time(
                "jitter",
                Time::ZERO,
                "Maximum of a random time that delays the start of every \
                                                  flow.",
            ),
        }
    }

    fn is_endless(&self) -> bool {
        self.size.is_none()
    }

    fn source(&self, cx: &WorkloadContext, window: Window) -> Result<Box<dyn FlowSource>, WorkloadError> {
        let half = cx.hosts / 2;
        let from = chosen(&self.hosts, "hosts", 0..half, cx)?;
        let to = chosen(&self.to, "to", half..2 * half, cx)?;
        if from.len() != to.len() {
            let message =
                format!("{} receivers for {} senders: expected equal numbers", to.len(), from.len());
            return Err(WorkloadError::new("to", message));
        }
        if let Some(&host) = from.iter().zip(&to).find_map(|(a, b)| (a == b).then_some(a)) {
            return Err(WorkloadError::new("to", format!("host {host} would send to itself")));
        }
        let mut stream = cx.stream("jitter");
        let mut start = window.start;
        let mut flows = Vec::with_capacity(from.len() * self.flows_per_pair as usize);
        for (&src, &dst) in from.iter().zip(&to) {
            for _ in 0..self.flows_per_pair {
                let late =
                    if self.jitter > Time::ZERO { Time(stream.below(self.jitter.0)) } else { Time::ZERO };
                let size = self.size.unwrap_or(WITHOUT_END).0;
                flows.push(FlowSpec { src, dst, size, start: start.saturating_add(late), ..cx.flow() });
            }
            start = start.saturating_add(self.stagger);
        }
        flows.retain(|flow| flow.start < window.end);
        flows.sort_by_key(|flow| flow.start);
        Ok(Box::new(Bulk { flows: flows.into_iter() }))
    }
}

/// The hosts that a key names; by default those of `half`.
fn chosen(
    hosts: &str,
    key: &'static str,
    half: Range<u32>,
    cx: &WorkloadContext,
) -> Result<Vec<HostId>, WorkloadError> {
    if hosts == "auto" { Ok(half.collect()) } else { participants(hosts, key, 1, cx) }
}

#[derive(Clone)]
struct Bulk {
    flows: std::vec::IntoIter<FlowSpec>,
}

impl FlowSource for Bulk {
    fn next(&mut self) -> Option<FlowSpec> {
        self.flows.next()
    }

    fn clone_box(&self) -> Box<dyn FlowSource> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests;
