//! A lower bound of the time that a collective operation takes alone on the network, whose messages wait for
//! each other.
//!
//! A message starts when those that it waits for have been delivered to its rank (or acknowledged, if its
//! own rank sent them), and not before its rank has ended its part of the phase before. It takes at least the
//! time that it takes alone. What a rank has to receive before a message of its own starts passes through the
//! links of its host, and takes at least
//!
//! ```text
//! start of the first + latency of one packet up to the host's link + bytes on the wire / rate of the host's links
//! ```
//!
//! The same holds for everything that a host receives or sends during the operation. The bound omits that
//! acknowledgements share links with data.
//!
//! Messages within a scale-up domain do not cross the network: a rank sends one after the other at
//! `scale_up_rate`, in the order in which they start, and each arrives `scale_up_delay` after its end. Those
//! of one rank, or of one rank to another, therefore take at least
//!
//! ```text
//! start of the first + bytes / scale_up_rate + scale_up_delay
//! ```
//!
//! and those that a rank sends when it joins a phase leave in their order, after all of the phases before.

use super::{Ideals, lone};
use crate::topology::HostId;
use crate::units::Time;
use crate::workload::FlowSpec;
use crate::workload::graph::source::LISTED;
use crate::workload::graph::{JobGraph, Message, Repeated, ScaleUp};
use crate::workload::schedule::Schedule;
use rustc_hash::FxHashMap;

/// A message alone.
#[derive(Debug, Clone, Copy)]
struct Alone {
    delivered: Time,
    acknowledged: Time,
    /// Transmission of all its packets at the rate of its sender, and at that of its receiver.
    sending: Time,
    receiving: Time,
    /// Latency of its smallest packet without its transmission on the first link, and without that on the last one.
    after: Time,
    before: Time,
}

/// What passes through the links of a host, or from a rank to others of its domain.
#[derive(Debug, Clone, Copy)]
struct Through {
    start: Time,
    latency: Time,
    busy: Time,
}

impl Default for Through {
    fn default() -> Through {
        Through { start: Time::MAX, latency: Time::MAX, busy: Time::ZERO }
    }
}

impl Through {
    fn add(&mut self, start: Time, latency: Time, busy: Time) {
        self.start = self.start.min(start);
        self.latency = self.latency.min(latency);
        self.busy = self.busy.saturating_add(busy);
    }

    fn end(&self) -> Time {
        match self.start {
            Time::MAX => Time::ZERO,
            start => start.saturating_add(self.latency).saturating_add(self.busy),
        }
    }
}

/// What passes through the links of all hosts, by host, and from ranks to others of their domains, by rank.
#[derive(Debug, Default)]
struct Passing {
    sent: FxHashMap<HostId, Through>,
    received: FxHashMap<HostId, Through>,
    inside: FxHashMap<u32, Through>,
}

impl Passing {
    /// The last delivery.
    fn end(&self) -> Time {
        let all = self.sent.values().chain(self.received.values()).chain(self.inside.values());
        all.map(Through::end).fold(Time::ZERO, Time::max)
    }

    fn merge(&mut self, other: Passing) {
        let sides = [
            (&mut self.sent, other.sent),
            (&mut self.received, other.received),
            (&mut self.inside, other.inside),
        ];
        for (own, others) in sides {
            for (key, Through { start, latency, busy }) in others {
                own.entry(key).or_default().add(start, latency, busy);
            }
        }
    }
}

/// What a message, or the end of a rank's part of a phase, waits for.
#[derive(Debug, Clone, Copy, Default)]
struct Awaited {
    ready: Time,
    received: Through,
}

impl Awaited {
    fn until(&mut self, time: Time) {
        self.ready = self.ready.max(time);
    }

    fn end(&self) -> Time {
        self.ready.max(self.received.end())
    }
}

/// The bounds of an operation, phase by phase.
struct Operation<'g> {
    graph: &'g JobGraph,
    scale_up: Option<ScaleUp>,
    known: FxHashMap<(HostId, HostId, u64), Alone>,
    /// By rank: when it joins the phase.
    joins: Vec<Time>,
    /// In all phases so far.
    passing: Passing,
    /// The last delivery.
    end: Time,
}

impl Ideals {
    /// Returns the bound for the first operation of a job; none if the job is a list, if the operation has
    /// more than [`LISTED`] messages, or if the network as configured has no path for one of them.
    pub fn operation(&mut self, graph: &JobGraph) -> Option<Time> {
        let work = graph.repeated().filter(|work| work.each() <= LISTED)?;
        let mut operation = Operation {
            graph,
            scale_up: graph.scale_up(),
            known: FxHashMap::default(),
            joins: vec![Time::ZERO; graph.ranks() as usize],
            passing: Passing::default(),
            end: Time::ZERO,
        };
        for instance in 0..work.instances() / work.repeat {
            operation.phase(self, work, instance)?;
        }
        Some(operation.end.max(operation.passing.end()))
    }

    /// A message alone on the network; none if there is no path.
    fn message(&mut self, flow: &FlowSpec) -> Option<Alone> {
        let sending = self.transports[usize::from(flow.transport)];
        let (delivered, _) = self.configured(flow, &sending, &sending, false)?;
        let (acknowledged, _) = self.configured(flow, &sending, &sending, true)?;
        let rates = |host| self.links.host_rates(&self.routes[0], host);
        let ([from, first], [to, last]) = (rates(flow.src)?, rates(flow.dst)?);
        let framing = sending.framing;
        let runs = framing.runs(flow.size).into_iter().filter(|run| run.packets > 0);
        let wire = runs.clone().map(|run| run.packets * run.bytes).sum();
        let smallest = runs.map(|run| run.bytes).min().unwrap_or(0);
        let [there, back] = self.paths.pairs(&self.links, flow.src, flow.dst)?;
        let latency = lone(&there, &back, &self.links, smallest);
        Some(Alone {
            delivered,
            acknowledged,
            sending: from.transmission_time(wire),
            receiving: to.transmission_time(wire),
            after: latency.saturating_sub(first.transmission_time(smallest)),
            before: latency.saturating_sub(last.transmission_time(smallest)),
        })
    }
}

impl Operation<'_> {
    /// One phase; none if there is no path for one of its messages.
    fn phase(&mut self, ideals: &mut Ideals, work: &Repeated, instance: u32) -> Option<()> {
        let (graph, phase) = (self.graph, work.phase(instance));
        let groups = phase.groups.count(graph.ranks());
        let messages = phase.largest().messages();
        let mut awaited = vec![Awaited::default(); (messages * groups) as usize];
        self.open(instance, &mut awaited);
        let mut ends: Vec<Awaited> =
            self.joins.iter().map(|&ready| Awaited { ready, ..Awaited::default() }).collect();
        let mut passing = Passing::default();
        // By sender and receiver within a domain.
        let mut pairs: FxHashMap<(u32, u32), Through> = FxHashMap::default();
        let mut later = Vec::new();
        for group in 0..groups {
            let law = phase.law(group);
            let first = (group * messages) as usize;
            for number in 0..messages {
                let transfer = law.transfer(number);
                let message = graph.message_in(instance, group, transfer);
                let [from, to] = [message.from, message.to].map(|rank| rank as usize);
                let start = awaited[first + number as usize].end().max(self.joins[from]);
                let alone = self.alone(ideals, &message)?;
                let delivered = start.saturating_add(alone.delivered);
                let acknowledged = start.saturating_add(alone.acknowledged);
                self.end = self.end.max(delivered);
                later.clear();
                law.after_arrival(number, &mut later);
                for &next in &later {
                    awaited[first + next as usize].until(delivered);
                }
                ends[to].until(delivered);
                ends[from].until(start);
                if message.inside {
                    passing.inside.entry(message.from).or_default().add(start, alone.after, alone.sending);
                    let pair = pairs.entry((message.from, message.to)).or_default();
                    pair.add(start, alone.after, alone.sending);
                } else {
                    let [src, dst] = [from, to].map(|rank| graph.hosts[rank]);
                    passing.sent.entry(src).or_default().add(start, alone.after, alone.sending);
                    passing.received.entry(dst).or_default().add(start, alone.before, alone.receiving);
                    ends[to].received.add(start, alone.before, alone.receiving);
                    for &next in &later {
                        awaited[first + next as usize].received.add(start, alone.before, alone.receiving);
                    }
                }
                later.clear();
                law.after_acknowledgement(number, &mut later);
                for &next in &later {
                    awaited[first + next as usize].until(acknowledged);
                }
                if let Some(next) = law.after_sending(number) {
                    awaited[first + next as usize].until(start);
                }
                if law.awaits_acknowledgements(transfer.from) {
                    ends[from].until(acknowledged);
                }
            }
        }
        for (&(_, to), through) in &pairs {
            ends[to as usize].until(through.end());
        }
        self.joins = ends.iter().map(Awaited::end).collect();
        self.end = self.end.max(passing.end());
        self.passing.merge(passing);
        Some(())
    }

    /// The messages that ranks send when they join a phase: within domains in their order.
    fn open(&self, instance: u32, awaited: &mut [Awaited]) {
        let graph = self.graph;
        let delay = self.scale_up.map_or(Time::ZERO, |links| links.delay);
        let first = graph.member(instance, graph.rank(instance, 0, 0)).first;
        let mut opens = Vec::new();
        for (rank, &join) in (0u32..).zip(&self.joins) {
            let member = graph.member(instance, rank);
            opens.clear();
            member.law.opens(member.member, &mut opens);
            // What it sends there arrives by the delay later.
            let before = self.passing.inside.get(&rank).map_or(Time::ZERO, Through::end);
            let mut free = join.max(before.saturating_sub(delay));
            for &open in &opens {
                let message = graph.message_in(instance, member.group, member.law.transfer(open));
                if let Some(links) = self.scale_up.filter(|_| message.inside) {
                    awaited[(member.first - first + open) as usize].until(free);
                    free = free.saturating_add(links.rate.transmission_time(message.bytes));
                }
            }
        }
    }

    fn alone(&mut self, ideals: &mut Ideals, message: &Message) -> Option<Alone> {
        if message.inside {
            let links = self.scale_up?;
            let sending = links.rate.transmission_time(message.bytes);
            let delivered = sending.saturating_add(links.delay);
            let (after, before) = (links.delay, links.delay);
            return Some(Alone {
                delivered,
                acknowledged: delivered,
                sending,
                receiving: sending,
                after,
                before,
            });
        }
        let flow = self.graph.flow(message);
        let key = (flow.src, flow.dst, flow.size);
        if let Some(alone) = self.known.get(&key) {
            return Some(*alone);
        }
        let alone = ideals.message(&flow)?;
        self.known.insert(key, alone);
        Some(alone)
    }
}
