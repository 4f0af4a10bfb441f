//! The arbiter: what it knows of the flows that wait, and the epochs in which it gives them timeslots.
//!
//! Epochs run back to back from time 0. A flow asks for packets with a request; at every epoch's beginning the arbiter
//! fills eight timeslots and sends each source with one a schedule. A source sends the packet of timeslot k at
//! `base + k * slot`; the start rule tells what the base is.
//!
//! Source: the Fastpass of the pHost authors' simulator (epoch of 8.5 packet times, eight timeslots in it).

use super::allocation::{Allocator, Demand, Schedule};
use crate::units::Time;
use crate::workload::FlowId;

/// When the first timeslot of a schedule begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartRule {
    /// One epoch after the arbiter computed the schedule, as published.
    EpochBoundary,
    /// When the source receives the schedule, as in the simulator that was released.
    OnReceipt,
}

/// Lengths of an epoch and of a timeslot, and the start rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Longer than 0.
    pub epoch: Time,
    pub slot: Time,
    pub start: StartRule,
}

impl Timing {
    /// The first epoch that begins after `now`.
    pub fn next_epoch(&self, now: Time) -> Time {
        debug_assert!(self.epoch.0 > 0);
        Time((now.0 / self.epoch.0 + 1) * self.epoch.0)
    }

    /// When the packet of timeslot `slot` leaves, of a schedule computed at `computed` and received at `received`; not
    /// before it is received.
    pub fn departure(&self, slot: u32, computed: Time, received: Time) -> Time {
        let base = match self.start {
            StartRule::EpochBoundary => computed.0 + self.epoch.0,
            StartRule::OnReceipt => received.0,
        };
        Time((base + u64::from(slot) * self.slot.0).max(received.0))
    }
}

/// The flows that wait for timeslots.
#[derive(Debug)]
pub struct Arbiter {
    demands: Vec<Demand>,
    allocator: Allocator,
}

impl Arbiter {
    pub fn new(hosts: usize) -> Arbiter {
        Arbiter { demands: Vec::new(), allocator: Allocator::new(hosts) }
    }

    /// A request has come: the flow asks for `remaining` packets, in place of what it asked for before.
    pub fn request(&mut self, demand: Demand) {
        match self.demands.iter_mut().find(|known| known.flow == demand.flow) {
            Some(known) => *known = demand,
            None => self.demands.push(demand),
        }
    }

    /// The flow is complete and asks for nothing more.
    pub fn forget(&mut self, flow: FlowId) {
        self.demands.retain(|demand| demand.flow != flow);
    }

    /// Whether some flow waits for timeslots.
    pub fn has_work(&self) -> bool {
        !self.demands.is_empty()
    }

    /// An epoch begins: leaves in `schedules` one for each source with a timeslot, by host number.
    pub fn run_epoch(&mut self, schedules: &mut Vec<Schedule>) {
        self.allocator.fill_epoch(&mut self.demands, schedules);
    }
}

#[cfg(test)]
mod tests;
