//! The chain of flows that decided when a step of a job ended, followed back from its last delivery.
//!
//! Each flow of the chain started because the one before it was delivered to its host (or acknowledged, if its own
//! host sent both), after the host had computed and after the messages ahead of it on its connection. The flows
//! and these gaps cover the time of the step without gap or overlap.

use super::Traced;
use crate::measure::{FlowRecord, StepRecord};
use crate::units::Time;
use crate::workload::merge::Merged;
use crate::workload::{FlowId, FlowSpec, Traffic};
use rustc_hash::FxHashMap;

/// A flow of the chain.
#[derive(Debug, Clone, Copy)]
pub struct Leg {
    /// From the start of the flow, or of the step if that is later, to the moment at which the next one, or the end of the
    /// step, no longer waited for it.
    pub flow: Traced,
    /// Before its start: the time in which its host computed, and the time for which it was held although its host was ready.
    pub compute: Time,
    pub held: Time,
}

/// What is known of the flows of a run.
pub struct Known<'a> {
    pub traffic: &'a Traffic,
    pub records: FxHashMap<FlowId, FlowRecord>,
    /// When the flows of jobs were delivered.
    pub deliveries: FxHashMap<FlowId, Time>,
}

/// The flows of one workload, in their order.
struct Flows<'a> {
    known: &'a Known<'a>,
    flows: Vec<(FlowId, FlowSpec)>,
    /// By order: the flows for which it waits.
    awaited: FxHashMap<u32, Vec<u32>>,
    /// By order: the flow before it on its connection.
    ahead: FxHashMap<u32, u32>,
}

/// The chain of a step that ended, in the order of time.
pub fn chain(step: &StepRecord, known: &Known) -> Vec<Leg> {
    let flows = Flows::of(step.source, known);
    let Some((mut end, (last, _))) = step.finish.zip(step.last) else { return Vec::new() };
    let Some(mut order) = flows.flows.iter().position(|flow| flow.0 == last).map(|at| at as u32) else {
        return Vec::new();
    };
    let mut legs = Vec::new();
    loop {
        let (id, spec) = flows.flows[order as usize];
        let start = flows.start(order);
        let traced =
            Traced { flow: id, src: spec.src, dst: spec.dst, start: start.max(step.start), finish: end };
        let mut leg = Leg { flow: traced, compute: Time::ZERO, held: Time::ZERO };
        let release = if start > step.start { flows.release(order) } else { None };
        let Some((at, before, compute)) = release else {
            leg.held = traced.start.saturating_sub(step.start);
            legs.push(leg);
            break;
        };
        let gap = start.saturating_sub(at.max(step.start));
        leg.held = start.saturating_sub(at.saturating_add(compute)).min(gap);
        leg.compute = gap.saturating_sub(leg.held);
        legs.push(leg);
        if at <= step.start {
            break;
        }
        (order, end) = (before, at);
    }
    legs.reverse();
    legs
}

impl<'a> Flows<'a> {
    fn of(source: u16, known: &'a Known) -> Flows<'a> {
        let arrivals = Merged::new(known.traffic).filter(|arrival| arrival.source == source);
        let flows: Vec<(FlowId, FlowSpec)> = arrivals.map(|arrival| (arrival.id, arrival.spec)).collect();
        let mut awaited: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        for (earlier, later) in known.traffic.sources[usize::from(source)].dependencies() {
            awaited.entry(later).or_default().push(earlier);
        }
        let (mut ahead, mut last): (FxHashMap<u32, u32>, FxHashMap<FlowId, u32>) = Default::default();
        for (order, (_, spec)) in flows.iter().enumerate() {
            if let Some(before) = spec.connection.and_then(|connection| last.insert(connection, order as u32))
            {
                ahead.insert(order as u32, before);
            }
        }
        Flows { known, flows, awaited, ahead }
    }

    fn start(&self, order: u32) -> Time {
        self.known.records.get(&self.flows[order as usize].0).map_or(Time::ZERO, |record| record.start)
    }

    /// When a host knew that a flow had ended.
    fn ended(&self, order: u32, host: u32) -> Option<Time> {
        let (id, spec) = self.flows[order as usize];
        if spec.dst == host {
            self.known.deliveries.get(&id).copied()
        } else {
            self.known.records.get(&id)?.finish
        }
    }

    /// The flow whose end let another start, when that was known to its host, and how long the host then computed. A flow
    /// that had to wait for those ahead of it on its connection started when these could.
    fn release(&self, order: u32) -> Option<(Time, u32, Time)> {
        let start = self.start(order);
        let mut waiter = order;
        loop {
            let spec = self.flows[waiter as usize].1;
            let ends = self.awaited.get(&waiter)?.iter();
            let (at, before) = ends.filter_map(|&one| Some((self.ended(one, spec.src)?, one))).max()?;
            let released = Some((at, before, spec.compute));
            if at.max(spec.start).saturating_add(spec.compute) >= start {
                return released;
            }
            match self.ahead.get(&waiter) {
                Some(&ahead) if self.start(ahead) == start => waiter = ahead,
                _ => return released,
            }
        }
    }
}
