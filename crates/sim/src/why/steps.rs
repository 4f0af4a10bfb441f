//! The chain of messages and computations that decided when a step of a job ended, followed back from its
//! end.
//!
//! Each leg began because of an event of its rank: a message had arrived, one of its own was acknowledged, or
//! a computation had ended ([`Causes`]). That event ends the leg before. So the legs cover the time of the
//! step without gap or overlap.

use super::Traced;
use crate::measure::{Causes, RankEvent, StepRecord};
use crate::units::Time;
use crate::workload::graph::listed::Op;
use crate::workload::graph::{JobGraph, Message, Place, Work};
use crate::workload::{FlowId, FlowSpec, Traffic};
use std::cmp::Reverse;

/// A part of the chain: from its beginning, or that of the step if it is later, to the moment at which the
/// next one, or the end of the step, no longer waited for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leg {
    pub from: Time,
    pub to: Time,
    /// The rank that computed, or sent the message, and its host.
    pub rank: u32,
    pub host: u32,
    pub what: What,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    Message {
        message: Message,
        /// The host of its receiver.
        dst: u32,
        /// The flow that it was; none: it stayed in a scale-up domain.
        flow: Option<FlowId>,
    },
    Computation,
    /// Time that a model of the machine gives a rank that does not compute.
    Machine,
}

impl Leg {
    /// The flow that it is, to be traced; none: it is something else.
    pub fn traced(&self) -> Option<Traced> {
        let What::Message { dst, flow: Some(flow), .. } = self.what else { return None };
        Some(Traced { flow, src: self.host, dst, start: self.from, finish: self.to })
    }

    /// The flow of the message, as its transport got it.
    pub fn asked(&self, graph: &JobGraph) -> Option<FlowSpec> {
        let What::Message { message, flow: Some(_), .. } = &self.what else { return None };
        Some(graph.flow(message))
    }
}

/// An operation that a leg belongs to: its name in jobs.parquet, the number of its step there, and where the
/// file has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Operation {
    pub name: Option<&'static str>,
    pub step: Option<u32>,
    pub place: Option<String>,
}

/// The chain of a step that ended, in the order of time, each leg with its operation; empty: it has no job
/// graph.
pub fn chain(step: &StepRecord, causes: &Causes, traffic: &Traffic) -> Vec<(Leg, Operation)> {
    let source = step.source;
    let Some(graph) = traffic.sources[usize::from(source)].graph() else { return Vec::new() };
    let (Some(finish), Some(&first)) = (step.finish, causes.first_flows.get(usize::from(source))) else {
        return Vec::new();
    };
    let (mut at, mut event, mut rank) = if graph.is_whole(step.step) {
        let ended = causes.ended.iter().filter(|((of, number, _), _)| (*of, *number) == (source, step.step));
        let last = ended.max_by_key(|((.., rank), (at, _))| (*at, Reverse(*rank)));
        let Some((&(.., rank), &(at, event))) = last else { return Vec::new() };
        (at, event, rank)
    } else {
        let Some((flow, _)) = step.last else { return Vec::new() };
        (finish, RankEvent::Arrived(flow), 0)
    };
    let mut legs = Vec::new();
    while at > step.start {
        let (caused, of, what, operation) = match event {
            RankEvent::Begun => break,
            RankEvent::Woken(op) => {
                let (what, operation) = timed(&graph, rank, op);
                (causes.began.get(&(source, rank, op)), rank, what, operation)
            }
            RankEvent::Arrived(flow) | RankEvent::Acknowledged(flow) => {
                let message = graph.message(flow - first);
                let dst = graph.hosts[message.to as usize];
                let what = What::Message { message, dst, flow: (!message.inside).then_some(flow) };
                (causes.sent.get(&flow), message.from, what, sent_by(&graph, flow - first))
            }
        };
        let Some(&(from, before)) = caused else { break };
        if from < at {
            let from = from.max(step.start);
            legs.push((Leg { from, to: at, rank: of, host: graph.hosts[of as usize], what }, operation));
        }
        (at, event, rank) = (from, before, of);
    }
    legs.reverse();
    legs
}

/// An operation of a rank that takes time.
fn timed(graph: &JobGraph, rank: u32, op: u32) -> (What, Operation) {
    let Work::Listed(work) = &graph.work else { return (What::Computation, Operation::default()) };
    let list = &work.ranks[rank as usize];
    let what = match list.ops[op as usize] {
        Op::Wait { .. } => What::Machine,
        _ => What::Computation,
    };
    (what, Operation { place: work.place_of(rank, op), ..Operation::default() })
}

/// The operation that sends a message.
fn sent_by(graph: &JobGraph, number: u32) -> Operation {
    let step = match (graph.place(number), &graph.work) {
        (Place::Send { rank, op }, Work::Listed(work)) => {
            return Operation { place: work.place_of(rank, op), ..Operation::default() };
        }
        (Place::Collective { instance, .. }, _) => graph.step_of(instance),
        (Place::Send { .. }, Work::Repeated(_)) => return Operation::default(),
    };
    Operation { name: Some(graph.shape(step).operation), step: Some(step), place: None }
}
