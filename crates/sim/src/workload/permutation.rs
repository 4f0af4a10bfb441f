//! Permutation: every host sends to one partner and receives from one, all at the same time.
//!
//! Partners are random (never the host itself), or shifted by a fixed number: host i sends to host (i +
//! shift) mod n, so that the flows of a fat tree do not share paths if uplinks are chosen by destination.

use super::WorkloadParameters;
use super::hosts::derangement;
use super::load::{Sizes, participants};
use super::rounds::Rounds;
use super::sizes::SizeDistribution;
use super::spec::{Window, WorkloadContext, WorkloadError};
use super::{Ends, FlowSource, FlowSpec, TrafficSize};
use crate::doc::SchemeDoc;
use crate::engine::random::RandomStream;
use crate::parameters::Parameters;
use crate::topology::HostId;
use crate::units::{Bytes, Time};

const PARTNERS: &[(&str, &str)] =
    &[("random", "a random permutation in which no host is its own partner"), ("shift", "`shift` places on")];

/// Keys of a permutation.
#[derive(Debug, Clone, PartialEq)]
pub struct PermutationSpec {
    pub sizes: Sizes,
    pub hosts: String,
    pub partners: &'static str,
    pub shift: u64,
    pub repeat: u64,
    pub every: Time,
}

impl WorkloadParameters for PermutationSpec {
    const DOC: SchemeDoc = SchemeDoc {
        name: "permutation",
        title: "every host sends to one partner, and receives from one",
        source: "An ordinary pattern of such studies; the rules are weftline's",
        validation: "Every host sends and receives once per round; shifts as the standard workload pairs \
                     hosts.",
        ..SchemeDoc::NONE
    };

    fn read(p: &mut Parameters) -> PermutationSpec {
        let spec = PermutationSpec {
            sizes: Sizes::read_fixed(p, Bytes(1_000_000)),
            hosts: p
                .text("hosts", Some("all"), "Participating hosts, such as \"0-15,20\".")
                .unwrap_or_default(),
            partners: p.choice("partners", "random", PARTNERS, "How the partner of each host is chosen."),
            shift: p.integer(
                "shift",
                0,
                (0, i64::MAX),
                "Distance for `shift`; 0: half of the hosts plus \
                                                         one.",
            ) as u64,
            repeat: p.integer(
                "repeat",
                1,
                (1, 1_000_000_000),
                "Number of flows of every host to its \
                                                                partner.",
            ) as u64,
            every: p.time("every", Time::ZERO, "Time between them."),
        };
        if spec.partners != "shift" {
            p.idle("shift", || "has no effect with random partners: set partners = \"shift\"".into());
        }
        spec
    }

    fn source(&self, cx: &WorkloadContext, window: Window) -> Result<Box<dyn FlowSource>, WorkloadError> {
        let hosts = participants(&self.hosts, "hosts", 2, cx)?;
        let n = hosts.len();
        let places = match self.partners {
            "shift" => {
                let shift = if self.shift == 0 { n as u64 / 2 + 1 } else { self.shift };
                if shift % n as u64 == 0 {
                    let message = format!("with a shift of {shift}, each of {n} hosts is its own partner");
                    return Err(WorkloadError::new("shift", message));
                }
                (0..n as u64).map(|i| ((i + shift % n as u64) % n as u64) as u32).collect()
            }
            _ => derangement(n, &mut cx.stream("permutation")),
        };
        let partners = places.iter().map(|&place| hosts[place as usize]).collect();
        let sizes = self.sizes.resolve(cx)?;
        let order = 0;
        let flow = FlowSpec { start: window.start, ..cx.flow() };
        let stream = cx.stream("sizes");
        let (left, every, end) = (self.repeat, self.every, window.end);
        Ok(Box::new(Permutation { hosts, partners, sizes, stream, flow, order, left, every, end }))
    }
}

#[derive(Clone)]
struct Permutation {
    hosts: Vec<HostId>,
    partners: Vec<HostId>,
    sizes: SizeDistribution,
    stream: RandomStream,
    /// The next flow, with its start.
    flow: FlowSpec,
    /// Index of the next sender.
    order: usize,
    /// Remaining rounds, including this one.
    left: u64,
    every: Time,
    end: Time,
}

impl FlowSource for Permutation {
    fn next(&mut self) -> Option<FlowSpec> {
        if self.order == self.hosts.len() {
            self.order = 0;
            self.left -= 1;
            self.flow.start = self.flow.start.saturating_add(self.every);
        }
        if self.left == 0 || self.flow.start >= self.end {
            self.left = 0;
            self.order = 0;
            return None;
        }
        let (src, dst) = (self.hosts[self.order], self.partners[self.order]);
        self.order += 1;
        Some(FlowSpec { src, dst, size: self.sizes.sample(&mut self.stream), ..self.flow })
    }

    /// All rounds of all hosts, this one included, without those that have sent in it.
    fn rest(&self) -> Option<TrafficSize> {
        let rounds = Rounds { start: self.flow.start, every: self.every, end: self.end, max: self.left };
        Some(rounds.flows(self.hosts.len(), self.order, &self.sizes))
    }

    fn mean_size(&self, _flow: &FlowSpec) -> Option<f64> {
        self.sizes.mean_of_drawn()
    }

    fn period(&self) -> Option<Time> {
        let second = self.flow.start.saturating_add(self.every);
        (self.left > 1 && self.every > Time::ZERO && second < self.end).then_some(self.every)
    }

    fn ends(&self) -> Ends {
        Ends { senders: self.hosts.clone(), receivers: self.hosts.clone(), drawn: [false; 2] }
    }

    fn clone_box(&self) -> Box<dyn FlowSource> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests;
