//! What the ranks of a job send, equal operations once: for those who count its messages without playing it.

use super::super::schedule::{Law, Schedule};
use super::{JobGraph, Work};
use rustc_hash::FxHashMap;

/// At least this many messages of an operation are looked at.
const MIN_LOOKED_AT: u64 = 64;

/// What ranks do side by side, at about one time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// A phase of an operation that is repeated, in all groups of ranks.
    Phase(u32),
    /// Operations of a list among groups of as many ranks, as far `apart` as the first two of each.
    Groups { kind: &'static str, ranks: u32, apart: u32 },
    /// Messages of their own.
    Sends,
}

/// Messages of equal size between two ranks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sent {
    pub from: u32,
    pub to: u32,
    pub bytes: u64,
    pub messages: f64,
}

/// Equal operations of a group.
struct Operation<'g> {
    class: Class,
    law: &'g Law,
    instance: u32,
    group: u32,
    members: u32,
    times: u32,
}

impl JobGraph {
    /// The class of a collective operation.
    pub fn class(&self, instance: u32) -> Class {
        match &self.work {
            Work::Repeated(work) => Class::Phase(instance % (work.instances() / work.repeat)),
            Work::Listed(work) => {
                let ranks = work.ranks_of(work.step_of(instance), self.ranks());
                let [first, second] = [0, 1].map(|member| work.rank(instance, member.min(ranks - 1)));
                let kind = work.instance(instance).kind.name();
                Class::Groups { kind, ranks, apart: first.abs_diff(second) }
            }
        }
    }

    /// Calls `each` with the messages that cross the network, those of a class together. Of more messages than `limit` some
    /// stand for the others, apart from those of laws that say them together.
    pub fn each_sent(&self, limit: u64, mut each: impl FnMut(Class, Sent)) {
        let mut operations = self.operations();
        let all = |of: &mut dyn Iterator<Item = &Operation>| of.map(|of| u64::from(of.law.messages())).sum();
        let messages: u64 = all(&mut operations.iter());
        let together = messages > limit;
        let apart: u64 = all(&mut operations.iter().filter(|of| of.law.sent(0).is_none()));
        operations.sort_by_key(|of| (of.class, of.instance, of.group));
        for of in &operations {
            match together && of.law.sent(0).is_some() {
                true => self.edges(of, &mut each),
                false => {
                    let count = u64::from(of.law.messages());
                    let share = u128::from(count) * u128::from(limit) / u128::from(apart.max(1));
                    let looked_at =
                        if together { (share as u64).max(MIN_LOOKED_AT).min(count) } else { count };
                    self.transfers(of, looked_at, &mut each);
                }
            }
        }
        self.own_sends(limit, &mut each);
    }

    /// All messages of a rank to the next one.
    fn edges(&self, of: &Operation, each: &mut impl FnMut(Class, Sent)) {
        for member in 0..of.members {
            let Some((to, messages, bytes)) = of.law.sent(member) else { continue };
            let [from, to] = [member, to].map(|member| self.rank(of.instance, of.group, member));
            if self.stays_inside(of.instance, from, to) || messages == 0 {
                continue;
            }
            let (messages, times) = (messages, f64::from(of.times));
            let (size, longer) = (bytes / messages, bytes % messages);
            for (bytes, messages) in [(size, messages - longer), (size + 1, longer)] {
                each(of.class, Sent { from, to, bytes, messages: messages as f64 * times });
            }
        }
    }

    /// Each message, or some that are spread over steps and ranks.
    fn transfers(&self, of: &Operation, looked_at: u64, each: &mut impl FnMut(Class, Sent)) {
        let all = u64::from(of.law.messages());
        let messages = f64::from(of.times) * all as f64 / looked_at.max(1) as f64;
        for at in 0..looked_at {
            let number =
                if all > looked_at { (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) % all } else { at };
            let transfer = of.law.transfer(number as u32);
            let message = self.message_in(of.instance, of.group, transfer);
            if !message.inside {
                let (from, to, bytes) = (message.from, message.to, message.bytes);
                each(of.class, Sent { from, to, bytes, messages });
            }
        }
    }

    /// The messages of a list that belong to no operation.
    fn own_sends(&self, limit: u64, each: &mut impl FnMut(Class, Sent)) {
        let Work::Listed(work) = &self.work else { return };
        let all = work.own_sends() as usize;
        let step = all.div_ceil(limit.max(1) as usize).max(1);
        let messages = all as f64 / all.div_ceil(step).max(1) as f64;
        for (from, to, bytes) in work.sends().step_by(step) {
            if !work.is_inside(from, to) {
                each(Class::Sends, Sent { from, to, bytes, messages });
            }
        }
    }

    fn stays_inside(&self, instance: u32, from: u32, to: u32) -> bool {
        match &self.work {
            Work::Repeated(work) => work.is_inside(instance, from, to),
            Work::Listed(work) => work.is_inside(from, to),
        }
    }

    fn operations(&self) -> Vec<Operation<'_>> {
        let mut operations = Vec::new();
        match &self.work {
            Work::Repeated(work) => {
                for instance in 0..work.instances() / work.repeat {
                    let groups = work.phase(instance).groups.count(self.ranks()).max(1);
                    operations.extend((0..groups).map(|group| Operation {
                        class: Class::Phase(instance),
                        law: self.law(instance, group),
                        instance,
                        group,
                        members: self.ranks() / groups,
                        times: work.repeat,
                    }));
                }
            }
            Work::Listed(work) => {
                // A root tells operations of one size apart that have one.
                let mut known = FxHashMap::default();
                for instance in 0..work.steps() - work.wholes() {
                    let (of, law) = (work.instance(instance), work.law(instance));
                    let class = self.class(instance);
                    let first = (law.messages() > 0).then(|| law.transfer(0).from);
                    let place = *known
                        .entry((of.group, class, of.bytes, law.messages(), first))
                        .or_insert(operations.len());
                    if place == operations.len() {
                        let members = work.ranks_of(work.step_of(instance), self.ranks());
                        operations.push(Operation { class, law, instance, group: 0, members, times: 0 });
                    }
                    operations[place].times += 1;
                }
            }
        }
        operations
    }
}
