//! For what a rank of a list waits while none of its streams computes.
//!
//! The event after which it computes again shows it. A message of one rank: it waited for its sender until the message was sent.
//! The end of a collective operation: it waited for the ranks that joined later. Before it had joined itself: for what let it join.

use super::Effect;
use crate::units::Time;
use rustc_hash::FxHashMap;

/// A time for which the end of a collective operation kept a rank from computing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocked {
    /// Of those that the rank goes through.
    pub step: u32,
    pub rank: u32,
    pub instance: u32,
    pub from: Time,
    pub to: Time,
}

/// The event that is being handled, after which a rank acts.
#[derive(Debug, Clone, Copy, Default)]
pub enum Binding {
    #[default]
    Other,
    /// A message of one rank, which was sent at this time.
    Message { sent: Time },
    /// The end of its part of a collective operation.
    Collective(u32),
}

#[derive(Debug, Default)]
pub struct Idle {
    /// When the last stream stopped.
    since: Time,
    binding: Binding,
    /// The collective operations that the rank has joined since, with the time and the event.
    joined: FxHashMap<u32, (Time, Binding)>,
    /// When each message that is under way to the rank was sent.
    coming: FxHashMap<u32, Time>,
    /// How long it waited in this step for messages that had not been sent.
    pub unsent: Time,
}

impl Idle {
    pub fn begins(&mut self, now: Time) {
        self.since = now;
    }

    /// What the rank does from here on, it does after this event.
    pub fn after(&mut self, event: Binding) {
        self.binding = event;
    }

    /// A message to the rank was sent.
    pub fn announced(&mut self, number: u32, sent: Time) {
        self.coming.insert(number, sent);
    }

    /// It has arrived.
    pub fn after_message(&mut self, number: u32) {
        let sent = self.coming.remove(&number);
        self.binding = sent.map_or(Binding::Other, |sent| Binding::Message { sent });
    }

    /// The rank joins a collective operation.
    pub fn joins(&mut self, instance: u32, now: Time) {
        self.joined.insert(instance, (now, self.binding));
    }

    /// The rank begins to compute, or a step of it ends.
    pub fn ends(&mut self, (step, rank): (u32, u32), now: Time, out: &mut Vec<Effect>) {
        let (mut to, mut binding) = (now, self.binding);
        while to > self.since {
            match binding {
                Binding::Other => break,
                Binding::Message { sent } => {
                    let waited = to.min(sent).saturating_sub(self.since);
                    self.unsent = self.unsent.saturating_add(waited);
                    break;
                }
                Binding::Collective(instance) => {
                    let joined = self.joined.get(&instance).copied();
                    let (from, before) = joined.unwrap_or((self.since, Binding::Other));
                    if to > from {
                        out.push(Effect::Blocked(Blocked { step, rank, instance, from, to }));
                    }
                    (to, binding) = (from, before);
                }
            }
        }
        self.joined.clear();
    }
}
