//! The arbiter: what it knows of the flows that wait, and the epochs in which it gives them timeslots.
//!
//! Epochs run back to back from time 0. A flow asks for packets with a request; at every epoch's beginning the arbiter
//! fills eight timeslots and sends each source with one a schedule. A source sends the packet of timeslot k at
//! `base + k * slot`; the start rule tells what the base is.
//!
//! Source: the Fastpass of the pHost authors' simulator (epoch of 8.5 packet times, eight timeslots in it).

use super::allocation::{Allocator, Demand, Schedule};
use super::paths::Paths;
use crate::transport::fastpass::parameters::{ArbiterConfig, StartRule};
use crate::transport::policy::Policy;
use crate::units::Time;
use crate::workload::FlowId;
use rustc_hash::FxHashMap;

impl ArbiterConfig {
    /// The first epoch that begins after `now`.
    pub(super) fn next_epoch(&self, now: Time) -> Time {
        debug_assert!(self.epoch.0 > 0);
        Time((now.0 / self.epoch.0 + 1) * self.epoch.0)
    }

    /// When the packet of timeslot `slot` leaves, of a schedule of epoch number `epoch` that is received at `received`;
    /// not before it is received.
    pub(super) fn departure(&self, slot: u64, epoch: u64, received: Time) -> Time {
        let base = match self.start {
            StartRule::Boundary { lead } => Time(epoch * self.epoch.0 + self.compute_time.0 + lead.0),
            StartRule::Receipt => received,
        };
        base.saturating_add(Time(slot * self.slot.0)).max(received)
    }
}

/// The flows that wait for timeslots.
#[derive(Debug)]
pub struct Arbiter {
    demands: Vec<Demand>,
    /// What was heard since the last epoch, in order: what a flow asks for now; none: nothing.
    news: Vec<(FlowId, Option<Demand>)>,
    /// For each flow of the news, the place of what was heard last.
    last: FxHashMap<FlowId, usize>,
    allocator: Allocator,
}

impl Arbiter {
    /// `paths`, if it is to assign them.
    pub fn new(hosts: usize, policy: Policy, paths: Option<Paths>) -> Arbiter {
        Arbiter {
            demands: Vec::new(),
            news: Vec::new(),
            last: FxHashMap::default(),
            allocator: Allocator::new(hosts, policy, paths),
        }
    }

    /// A request has come: the flow asks for this, in place of what it asked for before.
    pub fn request(&mut self, demand: Demand) {
        self.news.push((demand.flow, Some(demand)));
    }

    /// The flow is complete and asks for nothing more.
    pub fn forget(&mut self, flow: FlowId) {
        self.news.push((flow, None));
    }

    /// Whether some flow may wait for timeslots.
    pub fn has_work(&self) -> bool {
        !self.demands.is_empty() || self.news.iter().any(|(_, demand)| demand.is_some())
    }

    /// An epoch begins: leaves in `schedules` one for each source with a timeslot, by host number.
    pub fn run_epoch(&mut self, schedules: &mut Vec<Schedule>) {
        self.take_news();
        self.allocator.fill_epoch(&mut self.demands, schedules);
    }

    fn take_news(&mut self) {
        if self.news.is_empty() {
            return;
        }
        self.last.clear();
        self.last.extend(self.news.iter().zip(0..).map(|((flow, _), place)| (*flow, place)));
        let last = &self.last;
        self.demands.retain(|demand| !last.contains_key(&demand.flow));
        let current = self.news.drain(..).zip(0..).filter(|((flow, _), place)| last[flow] == *place);
        self.demands.extend(current.filter_map(|((_, demand), _)| demand));
    }
}

#[cfg(test)]
mod tests;
