//! The token clock of a destination: one token at a time, at the pace at which its link takes packets.
//!
//! While there is work the clock ticks every packet time. At a tick the first flow that may have a token gets
//! one; ticks that are reserved for packets on their way without tokens of this clock pass. Where no flow may
//! have one, the clock sleeps until the first of them may, or a request comes.
//!
//! Source: Gao et al., "pHost", CoNEXT 2015; the states are those of its authors' simulator.

use super::destination::{DestinationFlow, Pace, Place};
use super::ranking::Ranking;
use crate::transport::phost::parameters::PhostConfig;
use crate::transport::policy::Policy;
use crate::units::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

#[derive(Debug)]
pub struct TokenClock {
    /// Flows that may get a token, as far as is known.
    pub ranking: Ranking,
    /// Flows that may not before some time: (when, flow). Entries whose flow has moved on are stale.
    blocked: BinaryHeap<Reverse<(Time, u32)>>,
    /// Ticks that are left to packets which need no token of this clock, and how long each is.
    reserved: u32,
    interval: Time,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Stopped,
    /// The next tick comes then.
    Ticking(Time),
    /// Nobody may have a token before.
    Sleeping(Time),
}

impl TokenClock {
    pub fn new(policy: Policy) -> TokenClock {
        TokenClock {
            ranking: Ranking::new(policy),
            blocked: BinaryHeap::new(),
            reserved: 0,
            interval: Time::ZERO,
            state: State::Stopped,
        }
    }

    /// Leaves the next ticks to packets that are on their way; what was reserved before is forgotten.
    pub fn reserve(&mut self, ticks: u32, interval: Time) {
        self.reserved = ticks;
        self.interval = interval;
    }

    /// There is new work: whether the clock is to tick at once.
    pub fn wakes(&self) -> bool {
        !matches!(self.state, State::Ticking(_))
    }

    /// A timer has come: whether it is the one in force.
    pub fn is_due(&self, now: Time) -> bool {
        matches!(self.state, State::Ticking(at) | State::Sleeping(at) if at == now)
    }

    /// The next tick comes then.
    pub fn tick_at(&mut self, at: Time) -> Time {
        self.state = State::Ticking(at);
        at
    }

    /// If this tick is reserved it passes: when the next one comes.
    pub fn pass(&mut self, now: Time) -> Option<Time> {
        self.reserved = self.reserved.checked_sub(1)?;
        Some(self.tick_at(now.saturating_add(self.interval)))
    }

    /// The flow that gets a token now. Flows that may not have one go where they belong.
    pub fn choose<'c>(
        &mut self,
        flows: &mut [DestinationFlow],
        now: Time,
        settings: impl Fn(u8) -> (&'c PhostConfig, &'c Pace),
    ) -> Option<u32> {
        while let Some(&Reverse((until, slot))) = self.blocked.peek() {
            if until > now {
                break;
            }
            self.blocked.pop();
            self.unblock(flows, slot, until);
        }
        while let Some(slot) = self.ranking.first(|_| true) {
            let flow = &mut flows[slot as usize];
            let (config, pace) = settings(flow.profile);
            match flow.admit(config, now, &flow.pace(config, pace)) {
                Ok(()) => return Some(slot),
                Err(place) => self.block(flow, slot, place),
            }
        }
        None
    }

    /// A ranked flow may not have a token for now.
    pub fn block(&mut self, flow: &mut DestinationFlow, slot: u32, place: Place) {
        let Place::Blocked { until, .. } = place else { return };
        self.ranking.remove(flow.group, flow.rank);
        flow.place = place;
        self.blocked.push(Reverse((until, slot)));
    }

    /// The time of a blocked flow has come, unless it has moved on.
    fn unblock(&mut self, flows: &mut [DestinationFlow], slot: u32, at: Time) {
        let flow = &mut flows[slot as usize];
        if matches!(flow.place, Place::Blocked { until, .. } if until == at) {
            self.rank(flow, slot);
        }
    }

    /// A flow may get tokens.
    pub fn rank(&mut self, flow: &mut DestinationFlow, slot: u32) {
        flow.place = Place::Ranked;
        self.ranking.insert(flow.group, flow.rank, slot);
    }

    /// Nobody may have a token: when the clock is to be looked at again, if ever.
    pub fn sleep(&mut self, flows: &[DestinationFlow]) -> Option<Time> {
        while let Some(&Reverse((until, slot))) = self.blocked.peek() {
            if matches!(flows[slot as usize].place, Place::Blocked { until: at, .. } if at == until) {
                self.state = State::Sleeping(until);
                return Some(until);
            }
            self.blocked.pop();
        }
        self.state = State::Stopped;
        None
    }
}
