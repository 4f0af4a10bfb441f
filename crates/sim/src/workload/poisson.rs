//! Poisson arrivals: at every host, flows with exponential gaps, to a stated load.
//!
//! Mean gap of a host = bytes per flow * 8 / (load * rate of its link). Gaps, sizes and destinations of every host
//! come from streams of their own, so that two runs that differ in one of them keep the others.
//!
//! Source: traffic generator of the HPCC authors' simulator (payload load, uniform destinations, first gap before
//! the first flow).
//! Differs from the source: gaps are cut to picoseconds (to nanoseconds in compat mode); the last flow of each host
//! within the duration is not lost.

use super::WorkloadParameters;
use super::hosts::derangement;
use super::load::{Load, Sizes, mean_gap, participants};
use super::sizes::SizeDistribution;
use super::spec::{Window, WorkloadContext, WorkloadError};
use super::{AskedLoad, FlowSource, FlowSpec, TrafficSize};
use crate::doc::SchemeDoc;
use crate::engine::random::RandomStream;
use crate::parameters::Parameters;
use crate::topology::HostId;
use crate::units::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const DESTINATIONS: &[(&str, &str)] = &[
    ("uniform", "any other host, each flow anew"),
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
        title: "flows with exponential gaps at every host, to a stated load",
        source: "Traffic generator of the HPCC authors' simulator",
        validation: "The measured load is the one asked for, every pair gets its share; completion times of the \
             HPCC authors' flows, replayed, are equal to theirs (tests/reference.rs).",
        ..SchemeDoc::NONE
    };

    fn read(p: &mut Parameters) -> PoissonSpec {
        PoissonSpec {
            sizes: Sizes::read_table(p, "websearch"),
            load: Load::read(p, 0.5, "Share of the hosts' link rate (or of `capacity`) that the flows take."),
            hosts: p.text("hosts", Some("all"), "Sending hosts, such as \"0-15,20\".").unwrap_or_default(),
            to: p
                .text("to", Some("hosts"), "Receiving hosts, or \"hosts\": the sending ones.")
                .unwrap_or_default(),
            destinations: p.choice("destinations", "uniform", DESTINATIONS, "Who receives a flow."),
            count: p.integer("count", 0, (0, i64::MAX), "Most flows of this workload; 0: no limit.") as u64,
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
            next: BinaryHeap::with_capacity(from.len()),
            receivers,
            sizes,
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
            "permutation" => Err(WorkloadError::new("to", "a permutation is among the sending hosts")),
            "inter-rack" if cx.racks.len() != cx.hosts as usize => {
                Err(WorkloadError::new("destinations", "this topology does not say which hosts share a rack"))
            }
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
                    return Err(WorkloadError::new("to", format!("host {host} has no receiver but itself")));
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

#[derive(Debug, Clone)]
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
    /// All but the sender itself; `place` is where each host stands in `hosts`.
    Uniform {
        hosts: Vec<HostId>,
        place: Vec<Option<u32>>,
    },
    /// One receiver for each sender.
    Partner(Vec<HostId>),
    OtherRack {
        hosts: Vec<HostId>,
        racks: Vec<u32>,
    },
}

/// The flows of all hosts, merged by (start, place of the sender).
#[derive(Clone)]
struct Poisson {
    senders: Vec<Sender>,
    next: BinaryHeap<Reverse<(Time, u32)>>,
    receivers: Receivers,
    sizes: SizeDistribution,
    flow: FlowSpec,
    left: u64,
    end: Time,
    whole_ns: bool,
}

impl Poisson {
    /// Puts the sender's next flow one gap after `now`, if that is before the end.
    fn schedule(&mut self, sender: u32, now: Time) {
        let state = &mut self.senders[sender as usize];
        // The cast cuts to a whole picosecond and stops at the largest number.
        let gap = state.gaps.exponential(state.mean_gap) as u64;
        let gap = if self.whole_ns { gap / 1000 * 1000 } else { gap };
        let start = now.saturating_add(Time(gap));
        if start < self.end {
            self.next.push(Reverse((start, sender)));
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
        let Reverse((start, sender)) = self.next.pop()?;
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
        let rate = arrivals * self.sizes.mean() * 8.0;
        Some(AskedLoad { rate, variance: arrivals * self.sizes.mean_square() * 64.0 })
    }

    /// Of each sender the flow that is due, and one a mean gap from then to the end.
    fn rest(&self) -> Option<TrafficSize> {
        let (mut flows, mut per_ps) = (0.0, 0.0);
        for Reverse((start, sender)) in &self.next {
            let often = 1.0 / self.senders[*sender as usize].mean_gap;
            flows += 1.0 + self.end.saturating_sub(*start).0 as f64 * often;
            per_ps += often;
        }
        let limited = flows > self.left as f64;
        let flows = flows.min(self.left as f64);
        let begin = self.next.peek().map_or(Time::ZERO, |Reverse((start, _))| *start);
        let last_start = if limited { begin.saturating_add(Time((flows / per_ps) as u64)) } else { self.end };
        let bytes = (flows * self.sizes.mean()) as u64;
        Some(TrafficSize { flows: flows as u64, bytes, last_start, complete: true })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parameters::Value;
    use crate::workload::testing::{self, drain, source, source_error, spec, text, with_hosts};

    #[test]
    fn the_measured_load_is_the_one_asked_for() {
        for (counts, per_packet) in [("payload", 0), ("wire", 48), ("wire-and-acks", 108)] {
            let keys = [
                ("sizes", text("fb-hadoop")),
                ("load", Value::Number(0.3)),
                ("load_counts", text(counts)),
                ("duration", text("500ms")),
            ];
            let flows = drain(&*source("poisson", 32, &keys));
            let bytes: u64 = flows.iter().map(|f| f.size + f.size.div_ceil(1000) * per_packet).sum();
            let load = bytes as f64 * 8.0 / (32.0 * 100e9 * 0.5);
            assert!((load / 0.3 - 1.0).abs() < 0.01, "{counts}: {load}");
        }
    }

    #[test]
    fn what_is_to_come_is_told_about_as_it_is_drawn() {
        let until = [("duration", text("40ms"))];
        let counted = [("count", Value::Integer(30_000))];
        let both = [("duration", text("40ms")), ("count", Value::Integer(5_000))];
        for limits in [&until[..], &counted, &both] {
            let keys = [&[("size", text("100KB")), ("load", Value::Number(0.3))], limits].concat();
            let mut source = source("poisson", 32, &keys);
            for _ in 0..1000 {
                source.next();
            }
            let told = source.rest().unwrap();
            let drawn = drain(&*source);
            let bytes: u64 = drawn.iter().map(|flow| flow.size).sum();
            let last = drawn.last().unwrap().start.as_ns();
            for (told, drawn) in [
                (told.flows as f64, drawn.len() as f64),
                (told.bytes as f64, bytes as f64),
                (told.last_start.as_ns(), last),
            ] {
                assert!((told / drawn - 1.0).abs() < 0.05, "{limits:?}: {told} for {drawn}");
            }
        }
        let mut few = source("poisson", 8, &[("count", Value::Integer(3)), ("duration", text("1s"))]);
        assert_eq!(few.rest().unwrap().flows, 3);
        while few.next().is_some() {}
        assert_eq!(few.rest().unwrap().flows, 0);
    }

    #[test]
    fn a_stated_capacity_holds_for_all_senders_together() {
        let keys = [
            ("size", text("20KB")),
            ("load", Value::Number(0.5)),
            ("capacity", text("200Gbps")),
            ("duration", text("100ms")),
        ];
        let bytes: u64 = drain(&*source("poisson", 8, &keys)).iter().map(|f| f.size).sum();
        let load = bytes as f64 * 8.0 / (200e9 * 0.1);
        assert!((load / 0.5 - 1.0).abs() < 0.01, "{load}");
    }

    #[test]
    fn every_pair_of_hosts_gets_its_share() {
        let keys = [("size", text("10KB")), ("duration", text("60ms"))];
        let flows = drain(&*source("poisson", 8, &keys));
        let mut count = vec![0f64; 64];
        flows.iter().for_each(|f| count[(f.src * 8 + f.dst) as usize] += 1.0);
        let mean = flows.len() as f64 / 56.0;
        let chi: f64 = (0..64).filter(|i| i / 8 != i % 8).map(|i| (count[i] - mean).powi(2) / mean).sum();
        // 55 degrees of freedom: the 99.9th percentile is 93.2.
        assert!(chi < 93.2, "{chi}");
        assert!((0..8).all(|i| count[i * 9] == 0.0));
    }

    #[test]
    fn what_one_workload_sends_does_not_depend_on_load_or_sizes_of_another_draw() {
        let flows = |load: f64, sizes: &str| {
            let keys =
                [("sizes", text(sizes)), ("load", Value::Number(load)), ("count", Value::Integer(400))];
            drain(&*source("poisson", 1 + 15, &keys))
        };
        let of = |flows: &[FlowSpec], host| -> Vec<(u64, HostId)> {
            flows.iter().filter(|f| f.src == host).map(|f| (f.size, f.dst)).take(10).collect()
        };
        // Another load moves the starts, not sizes and destinations.
        assert_eq!(of(&flows(0.3, "websearch"), 3), of(&flows(0.7, "websearch"), 3));
        let destinations = |sizes| of(&flows(0.3, sizes), 3).iter().map(|f| f.1).collect::<Vec<_>>();
        assert_eq!(destinations("websearch"), destinations("imc10"));
    }

    #[test]
    fn workloads_of_another_place_or_seed_send_other_flows() {
        let spec = spec("poisson", &[("count", Value::Integer(20))]);
        let flows = |seed, index| {
            with_hosts(8, |cx| drain(&*spec.source(&WorkloadContext { seed, index, ..*cx }).unwrap()))
        };
        assert_eq!(flows(1, 0), flows(1, 0));
        assert_ne!(flows(1, 0), flows(2, 0));
        assert_ne!(flows(1, 0), flows(1, 1));
    }

    #[test]
    fn whole_nanoseconds_in_compat_mode() {
        let spec = spec("poisson", &[("count", Value::Integer(200))]);
        let flows =
            with_hosts(8, |cx| drain(&*spec.source(&WorkloadContext { whole_ns: true, ..*cx }).unwrap()));
        assert!(flows.iter().all(|flow| flow.start.0 % 1000 == 0));
    }

    #[test]
    fn starts_lie_within_start_and_duration() {
        let keys = [("start", text("1ms")), ("duration", text("100us")), ("sizes", text("google-rpc"))];
        let flows = drain(&*source("poisson", 4, &keys));
        assert!(!flows.is_empty());
        let window = Time::from_us(1000)..Time::from_us(1100);
        assert!(flows.iter().all(|flow| window.contains(&flow.start)));
    }

    #[test]
    fn destinations_can_be_a_permutation_another_rack_or_chosen_hosts() {
        let flows = |keys: &[(&'static str, Value)]| {
            let count = ("count", Value::Integer(500));
            drain(&*source("poisson", 16, &[keys, &[count]].concat()))
        };
        let mut partner = [None; 16];
        for flow in flows(&[("destinations", text("permutation"))]) {
            assert_eq!(*partner[flow.src as usize].get_or_insert(flow.dst), flow.dst);
        }
        assert!(flows(&[("destinations", text("inter-rack"))]).iter().all(|f| f.src / 4 != f.dst / 4));
        let chosen = flows(&[("hosts", text("0-3")), ("to", text("2-9"))]);
        assert!(chosen.iter().all(|f| f.src < 4 && (2..10).contains(&f.dst)));
    }

    #[test]
    fn what_cannot_be_sent_is_an_error_that_names_its_key() {
        assert_eq!(source_error("poisson", 8, &[]).key, "duration");
        let duration = ("duration", text("1ms"));
        let error = |key, value: &str| source_error("poisson", 8, &[(key, text(value)), duration.clone()]);
        assert_eq!(error("hosts", "3").to_string(), "needs at least 2 hosts, found 1");
        assert_eq!(error("hosts", "3-9").to_string(), "unknown host 8: the topology has hosts 0 to 7");
        assert!(error("sizes", "websaerch").to_string().contains("did you mean \"websearch\""));
        assert!(error("sizes", "no/such.cdf").to_string().contains("no/such.cdf"));
        let lonely = [("hosts", text("1")), ("to", text("1")), duration.clone()];
        assert_eq!(source_error("poisson", 8, &lonely).to_string(), "host 1 has no receiver but itself");
        let rack = [("hosts", text("0-3")), ("destinations", text("inter-rack")), duration.clone()];
        assert_eq!(source_error("poisson", 8, &rack).key, "destinations");
        let both = [("size", text("1KB")), ("sizes", text("imc10")), duration];
        assert_eq!(testing::complaints("poisson", &both), ["size: give either size or sizes"]);
    }
}
