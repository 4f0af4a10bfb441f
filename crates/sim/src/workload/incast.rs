//! Incast: many hosts send to one at the same time: once, periodically, or as Poisson events with a given
//! load.
//!
//! Rate of Poisson events = load * (sum of the hosts' link rates) / (senders * bytes per flow * 8).
//!
//! Source: Li et al., "HPCC", SIGCOMM 2019, Fig 11: 60 random senders of 500 KB each to one receiver,
//! together 2 % of the capacity of the network.

use super::WorkloadParameters;
use super::hosts::{draw_to_front, select_one};
use super::load::{Load, LoadTerms, Sizes, mean_gap, participants};
use super::rounds::Rounds;
use super::sizes::SizeDistribution;
use super::spec::{Window, WorkloadContext, WorkloadError};
use super::{AskedLoad, Ends, FlowSource, FlowSpec, JobShape, Traffic, TrafficSize};
use crate::doc::SchemeDoc;
use crate::engine::random::RandomStream;
use crate::parameters::Parameters;
use crate::topology::HostId;
use crate::units::{Bytes, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const ARRIVALS: &[(&str, &str)] = &[
    ("once", "one event at `start`"),
    ("periodic", "an event every `every`"),
    ("poisson", "events at random times, with the given `load`"),
];

/// Keys of an incast.
#[derive(Debug, Clone, PartialEq)]
pub struct IncastSpec {
    pub sizes: Sizes,
    /// Total size of all flows of an event; none: each sender sends a flow of `sizes`.
    pub request: Option<Bytes>,
    pub hosts: String,
    pub senders: u64,
    pub receiver: String,
    pub stagger: Time,
    pub arrivals: &'static str,
    pub every: Time,
    pub load: Load,
    pub count: u64,
}

impl IncastSpec {
    /// Reports keys that another choice makes idle.
    fn refuse_idle(&self, p: &mut Parameters) {
        let arrivals = self.arrivals;
        let only_with = |wanted: &str| format!("has no effect with arrivals = \"{arrivals}\": set {wanted}");
        if self.request.is_some() {
            for key in ["size", "sizes"] {
                p.idle(key, || "has no effect with request: give one of them".into());
            }
        }
        if arrivals != "periodic" {
            p.idle("every", || only_with("arrivals = \"periodic\""));
        }
        if arrivals == "once" && self.count > 1 {
            p.idle("count", || only_with("arrivals = \"periodic\" or \"poisson\""));
        }
        if arrivals != "poisson" {
            for key in ["load", "load_counts", "capacity"] {
                p.idle(key, || only_with("arrivals = \"poisson\""));
            }
        }
    }
}

impl WorkloadParameters for IncastSpec {
    const DOC: SchemeDoc = SchemeDoc {
        name: "incast",
        title: "many hosts send to one at the same time: once, periodically, or at random times",
        source: "Li et al., \"HPCC\", SIGCOMM 2019, Fig 11",
        validation: "Poisson events take 2 % of the capacity; a request completes with its last byte \
             (tests/laws/jobs.rs).",
        ..SchemeDoc::NONE
    };

    fn read(p: &mut Parameters) -> IncastSpec {
        let hosts_help = "Hosts from which senders (and a random receiver) are drawn, such as \"0-15,20\".";
        let receiver_help = "Id of the receiver; random: one of `hosts`, drawn for each event.";
        let spec = IncastSpec {
            sizes: Sizes::read_fixed(p, Bytes(500_000)),
            request: p.bytes_or_auto(
                "request",
                "Total size of the flows of an event, divided among its senders, of which the first ones send a byte more where it \
                 does not divide evenly; auto: each sends `size`.",
            ),
            hosts: p.text("hosts", Some("all"), hosts_help).unwrap_or_default(),
            senders: p.integer(
                "senders",
                0,
                (0, 10_000_000),
                "Number of senders of an event; 0: all hosts except the receiver.",
            ) as u64,
            receiver: p.text("receiver", Some("random"), receiver_help).unwrap_or_default(),
            stagger: p.time("stagger", Time::ZERO, "Time from one sender's start to the next one's."),
            arrivals: p.choice("arrivals", "once", ARRIVALS, "When events happen."),
            every: p.time("every", Time::from_us(100), "Time between periodic events."),
            load: Load::read(p, 0.02, "Load of Poisson events, as a share of the capacity of all `hosts`."),
            count: p.integer("count", 0, (0, i64::MAX), "Maximum number of events; 0: no limit.") as u64,
        };
        if spec.request == Some(Bytes(0)) {
            p.complain("request", "must be greater than 0".into());
        }
        if spec.arrivals == "periodic" && spec.every == Time::ZERO {
            p.complain("every", "must be greater than 0".into());
        }
        spec.refuse_idle(p);
        spec
    }

    fn source(&self, cx: &WorkloadContext, window: Window) -> Result<Box<dyn FlowSource>, WorkloadError> {
        if self.arrivals != "once" && !window.bounded && self.count == 0 {
            return Err(WorkloadError::new("duration", "give a duration such as \"2ms\", or a count"));
        }
        let receiver = match self.receiver.as_str() {
            "random" => None,
            id => Some(select_one(id, cx).map_err(|message| WorkloadError::new("receiver", message))?),
        };
        let hosts = participants(&self.hosts, "hosts", 1, cx)?;
        let others = match receiver {
            Some(receiver) => hosts.iter().filter(|&&host| host != receiver).count(),
            None => hosts.len() - 1,
        };
        let senders = if self.senders == 0 { others } else { self.senders as usize };
        if senders == 0 || senders > others {
            let message =
                format!("{} senders, but only {others} hosts in addition to the receiver", senders.max(1));
            return Err(WorkloadError::new("senders", message));
        }
        let sizes = match self.request {
            Some(request) if request.0 >= senders as u64 => {
                SizeDistribution::constant(request.0 / senders as u64)
            }
            Some(request) => {
                let message = format!("{request} is less than a byte per sender for {senders} senders");
                return Err(WorkloadError::new("request", message));
            }
            None => self.sizes.resolve(cx)?,
        };
        let longer = self.request.map_or(0, |request| request.0 % senders as u64);
        let bytes = self.load.bytes_per_flow(&sizes, cx) * senders as f64 + longer as f64;
        let (event_gap, limit) = match self.arrivals {
            "once" => (Gap::Fixed(Time::ZERO), 1),
            "periodic" => (Gap::Fixed(self.every), self.count),
            _ => (Gap::Exponential(mean_gap(bytes, self.load.whole_rate(&hosts, cx))), self.count),
        };
        let mut incast = Incast {
            terms: self.load.terms(hosts.len(), "hosts"),
            order: hosts,
            draw_senders: senders < others,
            senders,
            receiver,
            sizes,
            longer,
            stagger: self.stagger,
            event_gap,
            whole_ns: cx.whole_ns,
            gaps: cx.stream("gaps"),
            choice: cx.stream("hosts"),
            size_stream: cx.stream("sizes"),
            flow: cx.flow(),
            next_event: window.start,
            left: if limit == 0 { u64::MAX } else { limit },
            end: window.end,
            pending: BinaryHeap::new(),
            made: 0,
            events: 0,
        };
        if let Gap::Exponential(_) = incast.event_gap {
            incast.next_event = incast.after(window.start);
        }
        Ok(Box::new(incast))
    }
}

#[derive(Debug, Clone, Copy)]
enum Gap {
    Fixed(Time),
    /// Mean in picoseconds.
    Exponential(f64),
}

#[derive(Clone)]
struct Incast {
    /// The hosts; the random ones of an event are moved to the front.
    order: Vec<HostId>,
    /// Whether an event has fewer senders than there are hosts; otherwise all send in the given order.
    draw_senders: bool,
    senders: usize,
    receiver: Option<HostId>,
    sizes: SizeDistribution,
    /// Senders of an event, the first ones, that send a byte more: the remainder of a request.
    longer: u64,
    terms: LoadTerms,
    stagger: Time,
    event_gap: Gap,
    whole_ns: bool,
    gaps: RandomStream,
    choice: RandomStream,
    size_stream: RandomStream,
    flow: FlowSpec,
    next_event: Time,
    /// Remaining events.
    left: u64,
    end: Time,
    /// Flows of events that have begun, by (start, order): events with stagger may overlap.
    pending: BinaryHeap<Reverse<(Time, u64, Planned)>>,
    made: u64,
    /// Number of events that have begun.
    events: u32,
}

/// (src, dst, size, event)
type Planned = (HostId, HostId, u64, u32);

impl Incast {
    fn after(&mut self, now: Time) -> Time {
        match self.event_gap {
            Gap::Fixed(gap) => now.saturating_add(gap),
            Gap::Exponential(mean) => {
                // The cast truncates to a whole picosecond and saturates.
                let gap = self.gaps.exponential(mean) as u64;
                now.saturating_add(Time(if self.whole_ns { gap / 1000 * 1000 } else { gap }))
            }
        }
    }

    /// Plans the flows of the next event.
    fn begin_event(&mut self) {
        let mut start = self.next_event;
        let receiver = match self.receiver {
            Some(receiver) => receiver,
            None => self.order[self.choice.below(self.order.len() as u64) as usize],
        };
        if self.draw_senders {
            // One more than needed, because the receiver may be among them.
            draw_to_front(&mut self.order, self.senders + 1, &mut self.choice);
        }
        let senders = self.order.iter().filter(|&&host| host != receiver).take(self.senders);
        for (&src, place) in senders.zip(0..) {
            let size = self.sizes.sample(&mut self.size_stream) + u64::from(place < self.longer);
            self.pending.push(Reverse((start, self.made, (src, receiver, size, self.events))));
            self.made += 1;
            start = start.saturating_add(self.stagger);
        }
        self.left -= 1;
        self.events += 1;
        self.next_event = self.after(self.next_event);
    }

    /// Returns the next flow, and its event.
    fn next_planned(&mut self) -> Option<(Time, Planned)> {
        loop {
            let event_due = self.left > 0 && self.next_event < self.end;
            match self.pending.peek() {
                Some(Reverse((start, ..))) if !event_due || *start <= self.next_event => {
                    let Reverse((start, _, planned)) = self.pending.pop()?;
                    return (start < self.end).then_some((start, planned));
                }
                _ if event_due => self.begin_event(),
                _ => return None,
            }
        }
    }
}

impl FlowSource for Incast {
    fn next(&mut self) -> Option<FlowSpec> {
        let (start, (src, dst, size, _)) = self.next_planned()?;
        Some(FlowSpec { src, dst, size, start, ..self.flow })
    }

    fn clone_box(&self) -> Box<dyn FlowSource> {
        Box::new(self.clone())
    }

    /// The flows of events that have begun, and of all others; with random gaps the expected number.
    fn rest(&self) -> Option<TrafficSize> {
        let (start, end, max) = (self.next_event, self.end, self.left);
        let every = match self.event_gap {
            Gap::Fixed(gap) => gap,
            Gap::Exponential(mean) => Time((mean as u64).max(1)),
        };
        let mut size = Rounds { start, every, end, max }.flows(self.senders, 0, &self.sizes);
        size.bytes =
            size.bytes.saturating_add((size.flows / self.senders as u64).saturating_mul(self.longer));
        for Reverse((start, _, (.., bytes, _))) in self.pending.iter().filter(|planned| planned.0.0 < end) {
            size.flows += 1;
            size.bytes = size.bytes.saturating_add(*bytes);
            size.last_start = size.last_start.max(*start);
        }
        Some(size)
    }

    /// With random gaps.
    fn asked(&self) -> Option<AskedLoad> {
        let Gap::Exponential(mean) = self.event_gap else { return None };
        Some(AskedLoad::of(1e12 / mean, self.longer as f64, self.senders as f64, &self.sizes, self.terms))
    }

    fn mean_size(&self, _flow: &FlowSpec) -> Option<f64> {
        self.sizes.mean_of_drawn()
    }

    fn period(&self) -> Option<Time> {
        match self.event_gap {
            Gap::Fixed(gap) if self.left > 1 && self.next_event.saturating_add(gap) < self.end => Some(gap),
            _ => None,
        }
    }

    fn ends(&self) -> Ends {
        let mut senders = self.order.clone();
        senders.retain(|&host| Some(host) != self.receiver);
        let receivers = self.receiver.map_or_else(|| self.order.clone(), |receiver| vec![receiver]);
        let draws = self.receiver.is_none();
        Ends { senders, receivers, drawn: [draws || self.draw_senders, draws] }
    }

    /// An event is a job: its completion time is that of the request.
    fn jobs(&self) -> Vec<(u32, u32)> {
        let mut copy = self.clone();
        let events = std::iter::from_fn(|| copy.next_planned().map(|(_, (.., event))| event));
        events.take(Traffic::MAX_COUNTED as usize).zip(0..).map(|(event, order)| (order, event)).collect()
    }

    fn job_shape(&self) -> JobShape {
        JobShape { operation: "incast", ranks: self.senders as u32 + 1, ..JobShape::default() }
    }
}

#[cfg(test)]
mod tests;
