//! Poisson arrivals: at every host, flows with exponential gaps and a given load.
//!
//! Mean gap of a host = bytes per flow * 8 / (load * rate of its link). Gaps, sizes and destinations of every
//! host have random streams of their own, so that two runs that differ in one of them keep the others.
//!
//! Source: traffic generator of the HPCC authors' simulator (payload load, uniform destinations, first gap
//! before the first flow).
//! Differs from the source: gaps are truncated to picoseconds (to nanoseconds in compat mode); the last flow
//! of each host within the duration is not lost.

use super::WorkloadParameters;
use super::hosts::derangement;
use super::load::{Load, LoadTerms, Sizes, mean_gap, participants};
use super::sizes::SizeDistribution;
use super::spec::{Window, WorkloadContext, WorkloadError};
use super::{AskedLoad, Ends, FlowSource, FlowSpec, TrafficSize};
use crate::doc::SchemeDoc;
use crate::engine::random::RandomStream;
use crate::engine::soonest::Soonest;
use crate::parameters::Parameters;
use crate::topology::HostId;
use crate::units::Time;

const DESTINATIONS: &[(&str, &str)] = &[
    ("uniform", "any other host, drawn for each flow"),
    ("permutation", "one random partner for each host, kept for the whole run"),
    ("inter-rack", "any host in another rack"),
];

/// Keys of a Poisson workload.
#[derive(Debug, Clone, PartialEq)]
pub struct PoissonSpec {
    pub sizes: Sizes,
    pub load: Load,
    pub hosts: String,
    pub to: String,
    pub destinations: &'static str,
    pub count: u64,
}

impl WorkloadParameters for PoissonSpec {
    const DOC: SchemeDoc = SchemeDoc {
        name: "poisson",
        title: "flows with exponential gaps at every host, with a given load",
        source: "Traffic generator of the HPCC authors' simulator",
        validation: "The measured load is the configured one, and every pair gets its share; completion \
                     times of the HPCC authors' flows, replayed, equal theirs (tests/reference.rs).",
        ..SchemeDoc::NONE
    };

    fn read(p: &mut Parameters) -> PoissonSpec {
        PoissonSpec {
            sizes: Sizes::read_table(p, "websearch"),
            load: Load::read(
                p,
                0.5,
                "Load of the flows, as a share of the hosts' link rate (or of \
                                      `capacity`).",
            ),
            hosts: p.text("hosts", Some("all"), "Sending hosts, such as \"0-15,20\".").unwrap_or_default(),
            to: p
                .text("to", Some("hosts"), "Receiving hosts, or \"hosts\": the sending ones.")
                .unwrap_or_default(),
            destinations: p.choice("destinations", "uniform", DESTINATIONS, "The receiver of a flow."),
            count: p.integer(
                "count",
                0,
                (0, i64::MAX),
                "Maximum number of flows of this workload; 0: no \
                                                         limit.",
            ) as u64,
        }
    }

    fn source(&self, cx: &WorkloadContext, window: Window) -> Result<Box<dyn FlowSource>, WorkloadError> {
        if !window.bounded && self.count == 0 {
            return Err(WorkloadError::new("duration", "give a duration such as \"2ms\", or a count"));
        }
        let own = self.to == "hosts";
        let from = participants(&self.hosts, "hosts", if own { 2 } else { 1 }, cx)?;
        let to = if own { from.clone() } else { participants(&self.to, "to", 1, cx)? };
        let receivers = self.receivers(&from, to, own, cx)?;
        let sizes = self.sizes.resolve(cx)?;
        let bytes = self.load.bytes_per_flow(&sizes, cx);
        let sender = |&host: &HostId| {
            let stream = |purpose: &str| cx.stream(&format!("host{host}.{purpose}"));
            Sender {
                host,
                mean_gap: mean_gap(bytes, self.load.host_rate(host, from.len(), cx)),
                gaps: stream("gaps"),
                sizes: stream("sizes"),
                destinations: stream("destinations"),
            }
        };
        let mut poisson = Poisson {
            senders: from.iter().map(sender).collect(),
            next: Soonest::default(),
            receivers,
            sizes,
            terms: self.load.terms(from.len(), "hosts"),
            flow: cx.flow(),
            left: if self.count == 0 { u64::MAX } else { self.count },
            end: window.end,
            whole_ns: cx.whole_ns,
        };
        for sender in 0..poisson.senders.len() as u32 {
            poisson.schedule(sender, window.start);
        }
        Ok(Box::new(poisson))
    }
}

impl PoissonSpec {
    fn receivers(
        &self,
        from: &[HostId],
        to: Vec<HostId>,
        own: bool,
        cx: &WorkloadContext,
    ) -> Result<Receivers, WorkloadError> {
        match self.destinations {
            "permutation" if own => {
                let places = derangement(from.len(), &mut cx.stream("permutation"));
                Ok(Receivers::Partner(places.iter().map(|&place| from[place as usize]).collect()))
            }
            "permutation" => Err(WorkloadError::new(
                "to",
                "a permutation uses the sending hosts as \
                                                           receivers",
            )),
            "inter-rack" if cx.racks.len() != cx.hosts as usize => Err(WorkloadError::new(
                "destinations",
                "the topology has no information on which hosts \
                                                        share a rack",
            )),
            "inter-rack" => {
                let rack = |host: HostId| cx.racks[host as usize];
                let lonely = from.iter().find(|&&a| to.iter().all(|&b| rack(a) == rack(b)));
                if let Some(host) = lonely {
                    let message = format!("host {host} has no receiver in another rack");
                    return Err(WorkloadError::new("destinations", message));
                }
                Ok(Receivers::OtherRack { hosts: to, racks: cx.racks.to_vec() })
            }
            _ => {
                let lonely = from.iter().find(|&&a| to.iter().all(|&b| a == b));
                if let Some(host) = lonely {
                    return Err(WorkloadError::new(
                        "to",
                        format!("host {host} has no receiver except itself"),
                    ));
                }
                let mut place = vec![None; cx.hosts as usize];
                for (i, &host) in to.iter().enumerate() {
                    place[host as usize] = Some(i as u32);
                }
                Ok(Receivers::Uniform { hosts: to, place })
            }
        }
    }
}

/// In two cache lines: of a hundred thousand senders none is in the cache when its turn comes.
#[derive(Debug, Clone)]
#[repr(align(128))]
struct Sender {
    host: HostId,
    /// In picoseconds.
    mean_gap: f64,
    gaps: RandomStream,
    sizes: RandomStream,
    destinations: RandomStream,
}

#[derive(Debug, Clone)]
enum Receivers {
    /// All hosts except the sender; `place`: the index of each host in `hosts`.
    Uniform {
        hosts: Vec<HostId>,
        place: Vec<Option<u32>>,
    },
    /// One receiver per sender.
    Partner(Vec<HostId>),
    OtherRack {
        hosts: Vec<HostId>,
        racks: Vec<u32>,
    },
}

/// The flows of all hosts, merged by (start, index of the sender).
#[derive(Clone)]
struct Poisson {
    senders: Vec<Sender>,
    next: Soonest,
    receivers: Receivers,
    sizes: SizeDistribution,
    terms: LoadTerms,
    flow: FlowSpec,
    left: u64,
    end: Time,
    whole_ns: bool,
}

impl Poisson {
    /// Schedules the sender's next flow one gap after `now`, if that is before the end.
    fn schedule(&mut self, sender: u32, now: Time) {
        let state = &mut self.senders[sender as usize];
        // The cast truncates to a whole picosecond and saturates.
        let gap = state.gaps.exponential(state.mean_gap) as u64;
        let gap = if self.whole_ns { gap / 1000 * 1000 } else { gap };
        let start = now.saturating_add(Time(gap));
        if start < self.end {
            self.next.push(start, sender);
        }
    }

    fn receiver(&mut self, sender: u32) -> HostId {
        let state = &mut self.senders[sender as usize];
        match &self.receivers {
            Receivers::Partner(partner) => partner[sender as usize],
            Receivers::Uniform { hosts, place } => match place[state.host as usize] {
                None => hosts[state.destinations.below(hosts.len() as u64) as usize],
                Some(own) => {
                    let i = state.destinations.below(hosts.len() as u64 - 1) as usize;
                    hosts[i + usize::from(i >= own as usize)]
                }
            },
            Receivers::OtherRack { hosts, racks } => loop {
                let host = hosts[state.destinations.below(hosts.len() as u64) as usize];
                if racks[host as usize] != racks[state.host as usize] {
                    return host;
                }
            },
        }
    }
}

impl FlowSource for Poisson {
    fn next(&mut self) -> Option<FlowSpec> {
        self.left = self.left.checked_sub(1)?;
        let (start, sender) = self.next.pop()?;
        let dst = self.receiver(sender);
        let state = &mut self.senders[sender as usize];
        let size = self.sizes.sample(&mut state.sizes);
        let src = state.host;
        self.schedule(sender, start);
        Some(FlowSpec { src, dst, size, start, ..self.flow })
    }

    fn clone_box(&self) -> Box<dyn FlowSource> {
        Box::new(self.clone())
    }

    fn asked(&self) -> Option<AskedLoad> {
        let arrivals: f64 = self.senders.iter().map(|sender| 1e12 / sender.mean_gap).sum();
        Some(AskedLoad::of(arrivals, 0.0, 1.0, &self.sizes, self.terms))
    }

    fn mean_size(&self, _flow: &FlowSpec) -> Option<f64> {
        self.sizes.mean_of_drawn()
    }

    fn ends(&self) -> Ends {
        let senders: Vec<HostId> = self.senders.iter().map(|sender| sender.host).collect();
        let receivers = match &self.receivers {
            Receivers::Partner(_) => senders.clone(),
            Receivers::Uniform { hosts, .. } | Receivers::OtherRack { hosts, .. } => hosts.clone(),
        };
        Ends { senders, receivers, drawn: [false; 2] }
    }

    /// For each sender: the flow that is due, and one per mean gap from then to the end.
    fn rest(&self) -> Option<TrafficSize> {
        let (mut flows, mut per_ps, mut begin) = (0.0, 0.0, Time::MAX);
        for (start, sender) in self.next.iter() {
            let often = 1.0 / self.senders[sender as usize].mean_gap;
            flows += 1.0 + self.end.saturating_sub(start).0 as f64 * often;
            per_ps += often;
            begin = begin.min(start);
        }
        if self.next.is_empty() || self.left == 0 {
            return Some(TrafficSize { complete: true, ..TrafficSize::default() });
        }
        let limited = flows > self.left as f64;
        let flows = flows.min(self.left as f64);
        let last_start = if limited { begin.saturating_add(Time((flows / per_ps) as u64)) } else { self.end };
        let bytes = (flows * self.sizes.mean()) as u64;
        Some(TrafficSize { flows: flows as u64, bytes, last_start, complete: true, ..TrafficSize::default() })
    }
}

#[cfg(test)]
mod tests;
