//! The arbiter: what it knows of the flows that wait, and the epochs in which it gives them timeslots.
//!
//! Epochs run back to back from time 0. A request states how many timeslots its flow has requested since it
//! began, so that one that comes twice adds nothing. At every epoch's beginning the arbiter fills eight
//! timeslots and sends each source with one a schedule. A source sends the packet of timeslot k at
//! `base + k * slot`; the start rule tells what the base is.
//!
//! Source: the Fastpass of the pHost authors' simulator (epoch of 8.5 packet times, eight timeslots in it);
//! cumulative requests: Perry et al., SIGCOMM 2014, and its released system.

use super::allocation::{Allocator, Demand, Schedule};
use super::paths::Paths;
use crate::transport::fastpass::parameters::{ArbiterConfig, StartRule};
use crate::transport::policy::Policy;
use crate::units::Time;
use crate::workload::FlowId;
use rustc_hash::{FxHashMap, FxHashSet};

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
    /// Timeslots that each flow has requested since it began, until it is complete.
    requested: FxHashMap<FlowId, u64>,
    /// What was received since the last epoch, in order.
    news: Vec<News>,
    /// The flows of the news that are complete.
    complete: FxHashSet<FlowId>,
    allocator: Allocator,
}

impl Arbiter {
    /// `paths`, if it is to assign them.
    pub fn new(hosts: usize, policy: Policy, paths: Option<Paths>) -> Arbiter {
        Arbiter {
            requested: FxHashMap::default(),
            news: Vec::new(),
            complete: FxHashSet::default(),
            allocator: Allocator::new(hosts, policy, paths),
        }
    }

    /// A request has come: by it the flow has requested `in_all` timeslots since it began. Returns whether
    /// that is more than was known.
    pub fn request(&mut self, demand: Demand, in_all: u64) -> bool {
        let known = self.requested.get(&demand.flow).copied();
        let before = known.unwrap_or(0);
        if in_all <= before {
            return false;
        }
        self.requested.insert(demand.flow, in_all);
        let more = u32::try_from(in_all - before).unwrap_or(u32::MAX);
        let demand = Demand { remaining: more, ..demand };
        self.news.push(if known.is_some() { News::More(demand) } else { News::First(demand) });
        true
    }

    /// The flow is complete and requests nothing more.
    pub fn forget(&mut self, flow: FlowId) {
        self.requested.remove(&flow);
        self.news.push(News::Complete(flow));
    }

    /// Timeslots that a flow was given since it began.
    pub fn granted(&self, flow: FlowId) -> u64 {
        let news = self.news.iter().filter_map(News::demand);
        let waiting = self.allocator.waiting().chain(news).filter(|demand| demand.flow == flow);
        let remaining: u64 = waiting.map(|demand| u64::from(demand.remaining)).sum();
        self.requested.get(&flow).map_or(0, |requested| requested.saturating_sub(remaining))
    }

    /// Whether some flow may wait for timeslots.
    pub fn has_work(&self) -> bool {
        self.allocator.waiting().next().is_some() || self.news.iter().any(|news| news.demand().is_some())
    }

    /// An epoch begins: leaves in `schedules` one for each source with a timeslot, by host number.
    pub fn run_epoch(&mut self, schedules: &mut Vec<Schedule>) {
        self.take_news();
        self.allocator.fill_epoch(schedules);
    }

    fn take_news(&mut self) {
        for news in self.news.drain(..) {
            match news {
                News::First(demand) => self.allocator.add(demand),
                News::More(demand) => self.allocator.add_more(demand),
                News::Complete(flow) => {
                    self.complete.insert(flow);
                }
            }
        }
        if !self.complete.is_empty() {
            self.allocator.forget(&self.complete);
            self.complete.clear();
        }
    }
}

/// What the arbiter knows of a flow.
#[derive(Debug)]
enum News {
    /// Its first timeslots.
    First(Demand),
    /// Timeslots beyond those of earlier requests, of which some may still be due.
    More(Demand),
    Complete(FlowId),
}

impl News {
    fn demand(&self) -> Option<&Demand> {
        match self {
            News::First(demand) | News::More(demand) => Some(demand),
            News::Complete(_) => None,
        }
    }
}

#[cfg(test)]
mod tests;
