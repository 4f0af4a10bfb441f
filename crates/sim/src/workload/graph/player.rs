//! Plays the ranks of a job graph that are in one region: it gets events and returns effects.
//!
//! It has no network: messages arrive and are acknowledged when the caller reports it. What it keeps is what is
//! under way, so its memory does not grow with the length of the graph.

use super::super::schedule::Schedule;
use super::idle::{Binding, Blocked, Idle};
use super::listed::{Op, SendEnds};
use super::matching::Matching;
use super::part::Parts;
use super::{JobGraph, Message, Place, Work};
use crate::topology::HostId;
use crate::units::Time;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;

/// Receives that no message has met, and messages that no receive has met: their source and tag.
pub(super) type Unmatched = (Vec<u32>, Vec<(u32, u32)>);

/// What is to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// A rank sends a message now.
    Send { number: u32, message: Message },
    /// [`Player::woken`] is to be called.
    Wake { rank: u32, op: u32, at: Time },
    /// A rank has ended its part of a step.
    Step(RankStep),
    /// A rank did not compute until its part of a collective operation ended.
    Blocked(Blocked),
}

/// A rank's part of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankStep {
    pub step: u32,
    pub rank: u32,
    /// When it joined, and when it sent its first message.
    pub start: Time,
    pub first_sent: Option<Time>,
    /// None: it had not ended when the run did.
    pub end: Option<Time>,
    /// The last message that it received, and when.
    pub last: Option<(Time, u32)>,
    /// Payload of the messages that it sent.
    pub bytes: u64,
    /// Time of the step in which none of its streams computed.
    pub exposed: Time,
    /// Of it, the time until the messages were sent after which it computed again.
    pub unsent: Time,
}

/// One stream of computations.
#[derive(Debug, Default)]
struct Stream {
    busy: bool,
    waiting: VecDeque<u32>,
}

#[derive(Debug, Default)]
struct Rank {
    parts: Parts,
    /// Of a list: how many operations each waits for, and how many have not ended.
    needs: Vec<u32>,
    left: u32,
    /// Of a list: the step, when the rank began it, and for how long any stream had computed until then.
    step: u32,
    began: Time,
    busy_before: Time,
    bytes: u64,
    first_sent: Option<Time>,
    last: Option<(Time, u32)>,
    matching: Matching,
    streams: FxHashMap<u16, Stream>,
    /// Streams that compute, since when, and the time for which any has until then.
    computing: u32,
    since: Time,
    busy: Time,
    /// Of a list: what it waits for while none does.
    idle: Idle,
    done: bool,
}

impl Rank {
    fn busy_until(&self, now: Time) -> Time {
        if self.computing > 0 { self.busy + now.saturating_sub(self.since) } else { self.busy }
    }

    fn begins_computing(&mut self, now: Time) {
        if self.computing == 0 {
            self.since = now;
        }
        self.computing += 1;
    }

    fn ends_computing(&mut self, now: Time) {
        self.computing -= 1;
        if self.computing == 0 {
            self.busy = self.busy.saturating_add(now.saturating_sub(self.since));
            self.idle.begins(now);
        }
    }

    /// A step of a list ends. What the rank is not computing for, it waited for until now.
    fn ends_step(&mut self, rank: u32, now: Time, out: &mut Vec<Effect>) {
        if self.computing == 0 {
            self.idle.ends((self.step, rank), now, out);
        }
        out.push(Effect::Step(self.whole(rank, Some(now), now)));
    }

    /// The next step of a list begins.
    fn begins_step(&mut self, now: Time) {
        self.step += 1;
        (self.began, self.busy_before) = (now, self.busy_until(now));
        (self.bytes, self.first_sent, self.last) = (0, None, None);
        self.idle.unsent = Time::ZERO;
        self.idle.begins(now);
    }

    /// The rank's part of the step that it is in, of a list.
    fn whole(&self, rank: u32, end: Option<Time>, now: Time) -> RankStep {
        let busy = self.busy_until(now).saturating_sub(self.busy_before);
        RankStep {
            step: self.step,
            rank,
            start: self.began,
            first_sent: self.first_sent,
            end,
            last: self.last,
            bytes: self.bytes,
            exposed: now.saturating_sub(self.began).saturating_sub(busy),
            unsent: self.idle.unsent,
        }
    }
}

/// What a rank is to do next.
#[derive(Debug, Clone, Copy)]
enum Task {
    Join { rank: u32, instance: u32, op: u32 },
    Start { rank: u32, op: u32 },
    End { rank: u32, op: u32 },
}

pub struct Player {
    graph: Arc<JobGraph>,
    state: State,
}

/// The ranks of a region.
struct State {
    /// By rank; none: it is elsewhere.
    ranks: Vec<Option<Box<Rank>>>,
    unfinished: u32,
    tasks: VecDeque<Task>,
    scratch: Vec<u32>,
}

impl Player {
    /// `here`: whether a host is in this region.
    pub fn new(graph: Arc<JobGraph>, here: impl Fn(HostId) -> bool) -> Player {
        let ranks: Vec<_> = graph.hosts.iter().map(|&host| here(host).then(Box::default)).collect();
        let unfinished = ranks.iter().flatten().count() as u32;
        let state = State { ranks, unfinished, tasks: VecDeque::new(), scratch: Vec::new() };
        Player { graph, state }
    }

    pub fn graph(&self) -> &Arc<JobGraph> {
        &self.graph
    }

    /// Ranks here that have not ended.
    pub fn unfinished(&self) -> u32 {
        self.state.unfinished
    }

    /// The job starts.
    pub fn begin(&mut self, now: Time, out: &mut Vec<Effect>) {
        self.state.begin(&self.graph, now, out);
    }

    /// A message has arrived, whole, at its receiver, which is here.
    pub fn arrived(&mut self, number: u32, now: Time, out: &mut Vec<Effect>) {
        self.state.arrived(&self.graph, number, now, out);
    }

    /// The sender of a message, which is here, knows that all of it has arrived.
    pub fn acknowledged(&mut self, number: u32, now: Time, out: &mut Vec<Effect>) {
        self.state.acknowledged(&self.graph, number, now, out);
    }

    /// What [`Effect::Wake`] requested.
    pub fn woken(&mut self, rank: u32, op: u32, now: Time, out: &mut Vec<Effect>) {
        self.state.woken(&self.graph, rank, op, now, out);
    }

    /// A message to a rank here was sent by a rank elsewhere.
    pub fn announced(&mut self, number: u32, to: u32, sent: Time) {
        if let Some(rank) = self.state.ranks[to as usize].as_deref_mut() {
            rank.idle.announced(number, sent);
        }
    }

    /// Whether a rank elsewhere has to know when this message to it is sent.
    pub fn is_awaited_elsewhere(&self, number: u32, to: u32) -> bool {
        let Work::Listed(work) = &self.graph.work else { return false };
        self.state.ranks[to as usize].is_none() && work.is_send(number)
    }

    /// What its ranks have not done yet is done elsewhere.
    pub fn leave(&mut self) {
        self.state.unfinished = 0;
        self.state.ranks.iter_mut().flatten().for_each(|rank| rank.done = true);
    }

    /// The steps that had not ended when the run did.
    pub fn finish(&self, now: Time) -> Vec<RankStep> {
        self.state.finish(&self.graph, now)
    }

    /// Whether a rank here has ended; none: it is elsewhere.
    pub fn is_done(&self, rank: u32) -> Option<bool> {
        self.state.ranks[rank as usize].as_deref().map(|state| state.done)
    }

    /// The receives of a rank that no message has met, oldest first, and the messages that no receive has
    /// met.
    pub(super) fn unmatched(&self, rank: u32) -> Option<Unmatched> {
        let matching = &self.state.ranks[rank as usize].as_deref()?.matching;
        Some((matching.waiting().into_iter().map(|(_, op)| op).collect(), matching.unexpected()))
    }

    /// The collective operations in which a rank waits for messages, in order.
    pub(super) fn joined(&self, rank: u32) -> Vec<u32> {
        let Some(state) = self.state.ranks[rank as usize].as_deref() else { return Vec::new() };
        let mut joined: Vec<u32> =
            state.parts.iter().filter(|(_, part)| part.joined).map(|(&instance, _)| instance).collect();
        joined.sort_unstable();
        joined
    }
}

impl State {
    fn begin(&mut self, graph: &JobGraph, now: Time, out: &mut Vec<Effect>) {
        for rank in 0..self.ranks.len() as u32 {
            let Some(state) = self.ranks[rank as usize].as_deref_mut() else { continue };
            state.began = now;
            state.idle.begins(now);
            match &graph.work {
                Work::Repeated(_) => self.tasks.push_back(Task::Join { rank, instance: 0, op: 0 }),
                Work::Listed(work) => {
                    let list = &work.ranks[rank as usize];
                    state.needs.clone_from(&list.needs);
                    state.left = list.ops.len() as u32;
                    let free = (0..state.left).filter(|&op| list.needs[op as usize] == 0);
                    self.tasks.extend(free.map(|op| Task::Start { rank, op }));
                    if state.left == 0 {
                        self.end_rank(rank, now, out);
                    }
                }
            }
            self.work(graph, now, out);
        }
    }

    fn arrived(&mut self, graph: &JobGraph, number: u32, now: Time, out: &mut Vec<Effect>) {
        match graph.place(number) {
            Place::Collective { instance, group, message } => {
                let to = graph.law(instance, group).transfer(message).to;
                let rank = graph.rank(instance, group, to);
                self.arrived_in(graph, (rank, instance, group), (message, number), now, out);
            }
            Place::Send { rank: from, op } => {
                let Work::Listed(work) = &graph.work else { return };
                let Op::Send { to, tag, .. } = work.ranks[from as usize].ops[op as usize] else { return };
                let Some(rank) = self.ranks[to as usize].as_deref_mut() else { return };
                rank.last = Some((now, number));
                rank.idle.after_message(number);
                if let Some(receive) = rank.matching.arrive(from, tag, number) {
                    self.tasks.push_back(Task::End { rank: to, op: receive });
                }
            }
        }
        self.work(graph, now, out);
    }

    fn acknowledged(&mut self, graph: &JobGraph, number: u32, now: Time, out: &mut Vec<Effect>) {
        match graph.place(number) {
            Place::Collective { instance, group, message } => {
                let law = graph.law(instance, group);
                let from = law.transfer(message).from;
                let rank = graph.rank(instance, group, from);
                let Some(state) = self.ranks[rank as usize].as_deref_mut() else { return };
                state.idle.after(Binding::Collective(instance));
                // Those of a part that has ended matter no more.
                let Some(part) = state.parts.get_mut(instance) else { return };
                part.acknowledgements = part.acknowledgements.saturating_sub(1);
                self.scratch.clear();
                law.after_acknowledgement(message, &mut self.scratch);
                part.free(&self.scratch, graph, (rank, instance), now, out);
                if part.is_over() {
                    self.end_part(graph, rank, instance, now, out);
                }
            }
            Place::Send { rank, op } => {
                let Work::Listed(work) = &graph.work else { return };
                if work.send_ends == SendEnds::Acknowledged {
                    if let Some(state) = self.ranks[rank as usize].as_deref_mut() {
                        state.idle.after(Binding::Other);
                    }
                    self.tasks.push_back(Task::End { rank, op });
                }
            }
        }
        self.work(graph, now, out);
    }

    fn woken(&mut self, graph: &JobGraph, rank: u32, op: u32, now: Time, out: &mut Vec<Effect>) {
        let Some(state) = self.ranks[rank as usize].as_deref_mut() else { return };
        state.idle.after(Binding::Other);
        match &graph.work {
            Work::Repeated(_) => {
                state.ends_computing(now);
                self.tasks.push_back(Task::Join { rank, instance: op, op });
            }
            Work::Listed(work) => {
                if let Op::Compute { stream, .. } = work.ranks[rank as usize].ops[op as usize] {
                    state.ends_computing(now);
                    let stream = state.streams.entry(stream).or_default();
                    stream.busy = false;
                    if let Some(next) = stream.waiting.pop_front() {
                        self.tasks.push_back(Task::Start { rank, op: next });
                    }
                }
                self.tasks.push_back(Task::End { rank, op });
            }
        }
        self.work(graph, now, out);
    }

    fn work(&mut self, graph: &JobGraph, now: Time, out: &mut Vec<Effect>) {
        while let Some(task) = self.tasks.pop_front() {
            match task {
                Task::Join { rank, instance, op } => self.join(graph, (rank, instance), op, now, out),
                Task::Start { rank, op } => self.start(graph, rank, op, now, out),
                Task::End { rank, op } => self.end(graph, rank, op, now, out),
            }
        }
    }

    /// A message of a collective operation has come for one of its ranks.
    fn arrived_in(
        &mut self,
        graph: &JobGraph,
        (rank, instance, group): (u32, u32, u32),
        (message, number): (u32, u32),
        now: Time,
        out: &mut Vec<Effect>,
    ) {
        let law = graph.law(instance, group);
        let Some(state) = self.ranks[rank as usize].as_deref_mut() else { return };
        state.idle.after(Binding::Collective(instance));
        let part = state.parts.of(graph, rank, instance);
        part.receives -= 1;
        part.last = Some((now, number));
        self.scratch.clear();
        law.after_arrival(message, &mut self.scratch);
        part.free(&self.scratch, graph, (rank, instance), now, out);
        if part.is_over() {
            self.end_part(graph, rank, instance, now, out);
        }
    }

    /// A rank takes part in a collective operation.
    fn join(
        &mut self,
        graph: &JobGraph,
        (rank, instance): (u32, u32),
        op: u32,
        now: Time,
        out: &mut Vec<Effect>,
    ) {
        let Some(state) = self.ranks[rank as usize].as_deref_mut() else { return };
        if state.computing == 0 && matches!(graph.work, Work::Listed(_)) {
            state.idle.joins(instance, now);
        }
        let (busy, member) = (state.busy_until(now), graph.member(instance, rank));
        let part = state.parts.of(graph, rank, instance);
        (part.joined, part.op, part.start, part.busy) = (true, op, now, busy);
        self.scratch.clear();
        member.law.opens(member.member, &mut self.scratch);
        self.scratch.append(&mut part.held);
        for &next in &self.scratch {
            part.send(next, &member, graph, instance, now, out);
        }
        if part.is_over() {
            self.end_part(graph, rank, instance, now, out);
        }
    }

    /// Ends a rank's part of a collective operation, of which nothing is left.
    fn end_part(&mut self, graph: &JobGraph, rank: u32, instance: u32, now: Time, out: &mut Vec<Effect>) {
        let Some(state) = self.ranks[rank as usize].as_deref_mut() else { return };
        let Some(part) = state.parts.remove(instance) else { return };
        match &graph.work {
            Work::Repeated(work) => {
                let (step, is_first, is_last) = work.step(instance);
                // A step of several phases begins with the first of them.
                if is_first {
                    (state.began, state.first_sent, state.bytes) = (part.start, None, 0);
                    state.last = None;
                }
                state.first_sent = state.first_sent.or(part.first_sent);
                state.last = part.last.max(state.last);
                state.bytes += part.bytes;
                if is_last {
                    out.push(Effect::Step(RankStep {
                        step,
                        rank,
                        start: state.began,
                        first_sent: state.first_sent,
                        end: Some(now),
                        last: state.last,
                        bytes: state.bytes,
                        exposed: now.saturating_sub(state.began),
                        unsent: Time::ZERO,
                    }));
                }
                let next = instance + 1;
                if next == work.instances() {
                    state.done = true;
                    self.unfinished -= 1;
                } else if is_last && work.compute > Time::ZERO {
                    state.begins_computing(now);
                    out.push(Effect::Wake { rank, op: next, at: now + work.compute });
                } else {
                    self.tasks.push_back(Task::Join { rank, instance: next, op: next });
                }
            }
            Work::Listed(_) => {
                let busy = state.busy_until(now).saturating_sub(part.busy);
                let step = part.step(graph.step_of(instance), rank, Some(now), now, busy);
                out.push(Effect::Step(step));
                state.last = part.last.max(state.last);
                state.bytes += part.bytes;
                self.tasks.push_back(Task::End { rank, op: part.op });
            }
        }
    }

    /// All that an operation of a list waits for has happened.
    fn start(&mut self, graph: &JobGraph, rank: u32, op: u32, now: Time, out: &mut Vec<Effect>) {
        let Work::Listed(work) = &graph.work else { return };
        let list = &work.ranks[rank as usize];
        let Some(state) = self.ranks[rank as usize].as_deref_mut() else { return };
        match list.ops[op as usize] {
            Op::Compute { time, stream } => {
                let stream = state.streams.entry(stream).or_default();
                if stream.busy {
                    stream.waiting.push_back(op);
                    return;
                }
                stream.busy = true;
                if state.computing == 0 {
                    state.idle.ends((state.step, rank), now, out);
                }
                state.begins_computing(now);
                out.push(Effect::Wake { rank, op, at: now.saturating_add(time) });
            }
            Op::Wait { time } => out.push(Effect::Wake { rank, op, at: now.saturating_add(time) }),
            Op::Send { to, bytes, tag } => {
                let number = work.number(rank, op);
                state.first_sent = state.first_sent.or(Some(now));
                state.bytes += bytes;
                if to == rank {
                    if let Some(receive) = state.matching.arrive(rank, tag, number) {
                        self.tasks.push_back(Task::End { rank, op: receive });
                    }
                    self.tasks.push_back(Task::End { rank, op });
                } else {
                    out.push(Effect::Send { number, message: work.message(rank, op) });
                    if let Some(receiver) = self.ranks[to as usize].as_deref_mut() {
                        receiver.idle.announced(number, now);
                    }
                    if work.send_ends == SendEnds::Posted {
                        self.tasks.push_back(Task::End { rank, op });
                    }
                }
            }
            Op::Receive { from, tag, .. } => {
                if state.matching.post((from, tag), op).is_some() {
                    self.tasks.push_back(Task::End { rank, op });
                }
            }
            Op::Collective { instance } => self.tasks.push_back(Task::Join { rank, instance, op }),
            Op::StepEnd => {
                state.ends_step(rank, now, out);
                state.begins_step(now);
                self.tasks.push_back(Task::End { rank, op });
            }
        }
        self.release(rank, list.after_start.of(op));
    }

    /// An operation of a list has ended.
    fn end(&mut self, graph: &JobGraph, rank: u32, op: u32, now: Time, out: &mut Vec<Effect>) {
        let Work::Listed(work) = &graph.work else { return };
        self.release(rank, work.ranks[rank as usize].after_end.of(op));
        let Some(state) = self.ranks[rank as usize].as_deref_mut() else { return };
        state.left -= 1;
        if state.left == 0 {
            self.end_rank(rank, now, out);
        }
    }

    fn release(&mut self, rank: u32, waiting: &[u32]) {
        let Some(state) = self.ranks[rank as usize].as_deref_mut() else { return };
        for &op in waiting {
            let left = &mut state.needs[op as usize];
            *left -= 1;
            if *left == 0 {
                self.tasks.push_back(Task::Start { rank, op });
            }
        }
    }

    /// A rank has nothing left to do.
    fn end_rank(&mut self, rank: u32, now: Time, out: &mut Vec<Effect>) {
        let Some(state) = self.ranks[rank as usize].as_deref_mut() else { return };
        state.done = true;
        self.unfinished -= 1;
        state.ends_step(rank, now, out);
    }

    fn finish(&self, graph: &JobGraph, now: Time) -> Vec<RankStep> {
        let mut left = Vec::new();
        for (rank, state) in self.ranks.iter().enumerate() {
            let Some(state) = state.as_deref().filter(|state| !state.done) else { continue };
            let rank = rank as u32;
            let mut parts: Vec<_> = state.parts.iter().filter(|(_, part)| part.joined).collect();
            parts.sort_unstable_by_key(|(instance, _)| **instance);
            for (&instance, part) in parts {
                let step = graph.step_of(instance);
                let busy = state.busy_until(now).saturating_sub(part.busy);
                left.push(part.step(step, rank, None, now, busy));
            }
            if matches!(graph.work, Work::Listed(_)) {
                left.push(state.whole(rank, None, now));
            }
        }
        left
    }
}
