//! All to all: every host sends one flow to every other host.
//!
//! The k-th flow of host i goes to host i + k, so that flows that start together have different receivers;
//! `stagger` sets the time between two flows of a host.

use super::WorkloadParameters;
use super::load::{Sizes, participants};
use super::rounds::Rounds;
use super::sizes::SizeDistribution;
use super::spec::{Window, WorkloadContext, WorkloadError};
use super::{FlowSource, FlowSpec, Glance, TrafficSize};
use crate::doc::SchemeDoc;
use crate::engine::random::RandomStream;
use crate::parameters::Parameters;
use crate::topology::HostId;
use crate::units::{Bytes, Time};

/// Keys of an all-to-all.
#[derive(Debug, Clone, PartialEq)]
pub struct AllToAllSpec {
    pub sizes: Sizes,
    pub hosts: String,
    pub stagger: Time,
}

impl WorkloadParameters for AllToAllSpec {
    const DOC: SchemeDoc = SchemeDoc {
        name: "all-to-all",
        title: "every host sends one flow to every other host",
        source: "An ordinary pattern of such studies; the rules are weftline's",
        validation: "Every pair occurs once; two hosts have two flows at the same time \
                     (tests/laws/jobs.rs).",
        ..SchemeDoc::NONE
    };

    fn read(p: &mut Parameters) -> AllToAllSpec {
        AllToAllSpec {
            sizes: Sizes::read_fixed(p, Bytes(100_000)),
            hosts: p
                .text("hosts", Some("all"), "Participating hosts, such as \"0-15,20\".")
                .unwrap_or_default(),
            stagger: p.time("stagger", Time::ZERO, "Time between the starts of two flows of a host."),
        }
    }

    fn source(&self, cx: &WorkloadContext, window: Window) -> Result<Box<dyn FlowSource>, WorkloadError> {
        let hosts = participants(&self.hosts, "hosts", 2, cx)?;
        let sizes = self.sizes.resolve(cx)?;
        let flow = FlowSpec { start: window.start, ..cx.flow() };
        let (stagger, end) = (self.stagger, window.end);
        let stream = cx.stream("sizes");
        Ok(Box::new(AllToAll { hosts, sizes, stream, flow, sender: 0, distance: 1, stride: 1, stagger, end }))
    }
}

/// Flows that stand for all in an estimate.
const GLANCE: usize = 1_000_000;

#[derive(Clone)]
struct AllToAll {
    hosts: Vec<HostId>,
    sizes: SizeDistribution,
    stream: RandomStream,
    /// The next flow, with its start.
    flow: FlowSpec,
    sender: usize,
    /// Distance from the sender's index to the receiver's.
    distance: usize,
    /// From one distance to the next.
    stride: usize,
    stagger: Time,
    end: Time,
}

impl FlowSource for AllToAll {
    fn next(&mut self) -> Option<FlowSpec> {
        let n = self.hosts.len();
        if self.distance >= n || self.flow.start >= self.end {
            return None;
        }
        let (src, dst) = (self.hosts[self.sender], self.hosts[(self.sender + self.distance) % n]);
        let flow = FlowSpec { src, dst, size: self.sizes.sample(&mut self.stream), ..self.flow };
        self.sender += 1;
        if self.sender == n {
            self.sender = 0;
            self.distance += self.stride;
            self.flow.start = self.flow.start.saturating_add(self.stagger);
        }
        Some(flow)
    }

    /// A round for each distance that is left, this one included, without those that have sent in it.
    fn rest(&self) -> Option<TrafficSize> {
        let max = self.hosts.len().saturating_sub(self.distance).div_ceil(self.stride) as u64;
        let rounds = Rounds { start: self.flow.start, every: self.stagger, end: self.end, max };
        Some(rounds.flows(self.hosts.len(), self.sender, &self.sizes))
    }

    /// Where all flows start together, those of distances spread evenly: near ones alone cross fewer links.
    fn glance(&self) -> Option<Glance> {
        let all = self.rest()?;
        let distances = (GLANCE / self.hosts.len()).max(1);
        let stride = (self.hosts.len() - 1).div_ceil(distances);
        if self.stagger > Time::ZERO || stride < 2 {
            return None;
        }
        let source = AllToAll { stride, distance: 1 + stride / 2, ..self.clone() };
        let size = source.rest()?;
        let (size, of) = ((size.flows, size.bytes), (all.flows, all.bytes));
        Some(Glance { source: Box::new(source), size, of, under_way: all.flows })
    }

    fn clone_box(&self) -> Box<dyn FlowSource> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::tests::{drain, source, text};
    use std::collections::BTreeSet;

    #[test]
    fn every_pair_once() {
        let flows = drain(&*source("all-to-all", 7, &[("size", text("5KB"))]));
        let pairs: BTreeSet<_> = flows.iter().map(|f| (f.src, f.dst)).collect();
        assert_eq!((flows.len(), pairs.len()), (42, 42));
        assert!(flows.iter().all(|f| f.start == Time::ZERO && f.size == 5000));
    }

    #[test]
    fn some_distances_stand_for_all_in_an_estimate() {
        let all = source("all-to-all", 3000, &[("size", text("5KB"))]);
        let glance = all.glance().expect("many flows");
        let flows = drain(&*glance.source);
        assert_eq!(glance.of, (3000 * 2999, 3000 * 2999 * 5000));
        assert_eq!(glance.size, (flows.len() as u64, flows.len() as u64 * 5000));
        // Three thousand flows of each of 300 distances, ten apart.
        let from_first: Vec<_> = flows.iter().filter(|f| f.src == 0).map(|f| f.dst).collect();
        assert_eq!((from_first.len(), from_first[0], from_first[299]), (300, 6, 2996));
        assert!(source("all-to-all", 30, &[]).glance().is_none());
    }

    #[test]
    fn staggered_flows_of_a_host_follow_each_other() {
        let flows = drain(&*source("all-to-all", 4, &[("stagger", text("1us"))]));
        let mine: Vec<_> = flows.iter().filter(|f| f.src == 2).map(|f| (f.dst, f.start.ns())).collect();
        assert_eq!(mine, [(3, 0), (0, 1000), (1, 2000)]);
    }
}
