//! A rank's part of a collective operation: what is left of it, and what waits for its messages.

use super::super::schedule::Schedule;
use super::{Effect, JobGraph, Member, RankStep};
use crate::units::Time;
use rustc_hash::FxHashMap;

/// A rank's part of a collective operation.
#[derive(Debug, Default)]
pub struct Part {
    pub joined: bool,
    /// By which the rank takes part.
    pub op: u32,
    pub start: Time,
    pub first_sent: Option<Time>,
    pub last: Option<(Time, u32)>,
    pub bytes: u64,
    /// Computation of the rank until it joined.
    pub busy: Time,
    pub receives: u32,
    sends: u32,
    pub acknowledgements: u32,
    /// Messages that wait for more than one event: how many are left.
    partial: FxHashMap<u32, u32>,
    /// What is to be sent once it has joined.
    pub held: Vec<u32>,
}

/// The operations in which a rank takes part, by instance. Mostly there is one, which is in the rank itself.
#[derive(Debug, Default)]
pub struct Parts {
    first: Option<(u32, Part)>,
    others: FxHashMap<u32, Part>,
}

impl Parts {
    pub fn get_mut(&mut self, instance: u32) -> Option<&mut Part> {
        match &mut self.first {
            Some((known, part)) if *known == instance => Some(part),
            _ if self.others.is_empty() => None,
            _ => self.others.get_mut(&instance),
        }
    }

    /// A rank's part, made if it has none yet: others may be further.
    pub fn of(&mut self, graph: &JobGraph, rank: u32, instance: u32) -> &mut Part {
        self.get_or_insert_with(instance, || {
            let member = graph.member(instance, rank);
            let (law, place) = (member.law, member.member);
            let (receives, sends) = (law.receives(place), law.sends(place));
            let acknowledgements = if law.awaits_acknowledgements(place) { sends } else { 0 };
            Part { receives, sends, acknowledgements, ..Part::default() }
        })
    }

    fn get_or_insert_with(&mut self, instance: u32, make: impl FnOnce() -> Part) -> &mut Part {
        let is_first = self.first.as_ref().map(|(known, _)| *known == instance);
        if is_first == Some(true) || is_first.is_none() && !self.others.contains_key(&instance) {
            return &mut self.first.get_or_insert_with(|| (instance, make())).1;
        }
        self.others.entry(instance).or_insert_with(make)
    }

    pub fn remove(&mut self, instance: u32) -> Option<Part> {
        if self.first.as_ref().is_some_and(|(known, _)| *known == instance) {
            return self.first.take().map(|(_, part)| part);
        }
        self.others.remove(&instance)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&u32, &Part)> {
        self.first.iter().map(|(instance, part)| (instance, part)).chain(&self.others)
    }
}

impl Part {
    /// The rank has joined, and there is nothing left to do.
    pub fn is_over(&self) -> bool {
        self.joined && self.receives + self.sends + self.acknowledgements == 0
    }

    /// One of the events has come for which these messages wait.
    pub fn free(
        &mut self,
        messages: &[u32],
        graph: &JobGraph,
        (rank, instance): (u32, u32),
        now: Time,
        out: &mut Vec<Effect>,
    ) {
        if messages.is_empty() {
            return;
        }
        let member = graph.member(instance, rank);
        for &next in messages {
            if self.counts_down(next, member.law.needs(next)) {
                self.send(next, &member, graph, instance, now, out);
            }
        }
    }

    /// Sends a message, or keeps it until the rank has joined.
    pub fn send(
        &mut self,
        message: u32,
        member: &Member,
        graph: &JobGraph,
        instance: u32,
        now: Time,
        out: &mut Vec<Effect>,
    ) {
        if !self.joined {
            self.held.push(message);
            return;
        }
        let mut message = message;
        loop {
            self.sends -= 1;
            self.first_sent = self.first_sent.or(Some(now));
            let whole = graph.message_in(instance, member.group, member.law.transfer(message));
            self.bytes += whole.bytes;
            out.push(Effect::Send { number: member.first + message, message: whole });
            let next = member.law.after_sending(message);
            match next.filter(|&next| self.counts_down(next, member.law.needs(next))) {
                Some(free) => message = free,
                None => return,
            }
        }
    }

    /// One of the events for which a message waits has come; whether it was the last.
    fn counts_down(&mut self, message: u32, needs: u32) -> bool {
        if needs < 2 {
            return true;
        }
        let left = self.partial.entry(message).or_insert(needs);
        *left -= 1;
        let free = *left == 0;
        if free {
            self.partial.remove(&message);
        }
        free
    }

    pub fn step(&self, step: u32, rank: u32, end: Option<Time>, now: Time, busy: Time) -> RankStep {
        RankStep {
            step,
            rank,
            start: self.start,
            first_sent: self.first_sent,
            end,
            last: self.last,
            bytes: self.bytes,
            exposed: now.saturating_sub(self.start).saturating_sub(busy),
            unsent: Time::ZERO,
        }
    }
}
