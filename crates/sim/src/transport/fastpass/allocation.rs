//! Timeslot allocation: which sender may send to which receiver in each timeslot of an epoch.
//!
//! In every timeslot the arbiter scans the demands in the order of its policy and takes each one whose source
//! and destination are both still free in that timeslot: a greedy, hence maximal, matching. A demand that is
//! taken has one packet less in the next timeslot. Where tenants share, each in turn has one of its demands
//! taken, its shortest that fits, until no demand of any tenant fits. Under round robin every timeslot begins
//! with another tenant, the next one: the tenant that begins finds both ends of any of its demands free, so
//! no tenant is passed over for ever.
//!
//! Source: Perry et al., "Fastpass: A Centralized Zero-Queue Datacenter Network", SIGCOMM 2014; order by
//! fewest remaining as in the Fastpass of the pHost authors' simulator. Differs from the source: equal
//! demands are taken in order of flow number, so that a run repeats exactly.

use super::paths::Paths;
use crate::transport::policy::Policy;
use crate::units::Time;
use crate::workload::FlowId;

/// Timeslots of one epoch (Fastpass of the pHost authors' simulator).
pub const SLOTS_PER_EPOCH: u32 = 8;

/// Packets that one flow still asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Number of the flow; breaks ties, lowest first.
    pub flow: FlowId,
    /// Host that sends.
    pub source: u32,
    /// Host that receives.
    pub destination: u32,
    /// Packets not yet granted; one less with every timeslot given.
    pub remaining: u32,
    /// The end of time for a flow that has none.
    pub deadline: Time,
    /// Group of the flow.
    pub tenant: u16,
}

impl Demand {
    /// Tenant by tenant where tenants share; earliest deadline first where deadlines count; fewest remaining
    /// first; then by flow number.
    fn rank(&self, policy: Policy) -> (u16, Time, u32, FlowId) {
        let tenant = if policy.has_tenants() { self.tenant } else { 0 };
        let deadline = if policy == Policy::EarliestDeadline { self.deadline } else { Time::ZERO };
        (tenant, deadline, self.remaining, self.flow)
    }
}

/// What one source may send in an epoch: the content of one schedule packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Host that the schedule packet goes to.
    pub source: u32,
    /// The flow that may send one packet in each timeslot; none where the source is silent.
    pub flows: [Option<FlowId>; SLOTS_PER_EPOCH as usize],
    /// The path of each packet, where the arbiter assigns them.
    pub paths: [Option<u32>; SLOTS_PER_EPOCH as usize],
}

impl Schedule {
    fn silent(source: u32) -> Schedule {
        Schedule { source, flows: [None; SLOTS_PER_EPOCH as usize], paths: [None; SLOTS_PER_EPOCH as usize] }
    }
}

/// A tenant's part of the sorted demands, while a timeslot is filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Lane {
    /// The least is served first.
    turn: (u64, u16),
    tenant: u16,
    /// Demands before this one have been looked at.
    next: usize,
    end: usize,
}

/// Fills epochs for a fixed number of hosts; its working space is kept from one epoch to the next.
#[derive(Debug)]
pub struct Allocator {
    policy: Policy,
    /// Number of the timeslot, over all epochs, in which each host last got one to send; 0 for never.
    sends: Vec<u64>,
    /// The same for receiving.
    receives: Vec<u64>,
    /// Timeslots filled so far.
    filled: u64,
    /// Place of each source's schedule in this epoch's list, with the epoch's first timeslot to tell stale
    /// entries.
    places: Vec<(u64, usize)>,
    taken: Vec<Demand>,
    left: Vec<Demand>,
    /// Of each demand, whether it is taken.
    chosen: Vec<bool>,
    lanes: Vec<Lane>,
    /// By tenant, when it was last served; counts servings.
    served: Vec<(u16, u64)>,
    servings: u64,
    /// The tenant whose turn was the first of the last timeslot.
    began: u16,
    /// If it assigns them.
    paths: Option<Paths>,
    /// Of each of `taken`.
    assigned: Vec<Option<u32>>,
}

impl Allocator {
    pub fn new(hosts: usize, policy: Policy, paths: Option<Paths>) -> Allocator {
        Allocator {
            policy,
            sends: vec![0; hosts],
            receives: vec![0; hosts],
            filled: 0,
            places: vec![(0, 0); hosts],
            taken: Vec::new(),
            left: Vec::new(),
            chosen: Vec::new(),
            lanes: Vec::new(),
            served: Vec::new(),
            servings: 0,
            began: u16::MAX,
            paths,
            assigned: Vec::new(),
        }
    }

    /// Fills one epoch: takes the granted packets off `demands`, and leaves in `schedules` one schedule for
    /// each source with a timeslot, by host number.
    ///
    /// `demands` come back sorted, without those that are served. A demand that names a missing host is never
    /// granted.
    pub fn fill_epoch(&mut self, demands: &mut Vec<Demand>, schedules: &mut Vec<Schedule>) {
        schedules.clear();
        demands.retain(|demand| demand.remaining > 0);
        // Mostly in order: what the last epoch left, and a few that came since.
        let policy = self.policy;
        demands.sort_by_key(|demand| demand.rank(policy));
        let first = self.filled + 1;
        for slot in 0..SLOTS_PER_EPOCH as usize {
            self.fill_slot(demands);
            self.assign_paths();
            for (demand, path) in self.taken.iter().zip(&self.assigned) {
                let place = &mut self.places[demand.source as usize];
                if place.0 != first {
                    *place = (first, schedules.len());
                    schedules.push(Schedule::silent(demand.source));
                }
                let schedule = &mut schedules[place.1];
                (schedule.flows[slot], schedule.paths[slot]) = (Some(demand.flow), *path);
            }
            self.merge(demands);
        }
        schedules.sort_unstable_by_key(|schedule| schedule.source);
    }

    /// Divides sorted demands into those that get the next timeslot, less the packet granted, and the others.
    fn fill_slot(&mut self, demands: &[Demand]) {
        self.filled += 1;
        self.chosen.clear();
        self.chosen.resize(demands.len(), false);
        if self.policy.has_tenants() {
            self.choose_in_turn(demands);
        } else {
            for (place, demand) in demands.iter().enumerate() {
                self.chosen[place] = self.grant(demand);
            }
        }
        self.taken.clear();
        self.left.clear();
        for (demand, chosen) in demands.iter().zip(&self.chosen) {
            if *chosen {
                self.taken.push(Demand { remaining: demand.remaining - 1, ..*demand });
            } else {
                self.left.push(*demand);
            }
        }
    }

    /// Gives a demand the timeslot, if both its ends are free in it.
    fn grant(&mut self, demand: &Demand) -> bool {
        let (source, destination) = (demand.source as usize, demand.destination as usize);
        let free = self.sends.get(source).is_some_and(|&last| last != self.filled)
            && self.receives.get(destination).is_some_and(|&last| last != self.filled);
        if free {
            self.sends[source] = self.filled;
            self.receives[destination] = self.filled;
        }
        free
    }

    /// Tenant by tenant, one demand each, until none fits.
    fn choose_in_turn(&mut self, demands: &[Demand]) {
        let mut lanes = std::mem::take(&mut self.lanes);
        lanes.clear();
        let mut begin = 0;
        for of_tenant in demands.chunk_by(|a, b| a.tenant == b.tenant) {
            let (tenant, end) = (of_tenant[0].tenant, begin + of_tenant.len());
            lanes.push(Lane { turn: self.turn(tenant), tenant, next: begin, end });
            begin = end;
        }
        lanes.sort_unstable();
        self.began = lanes.first().map_or(self.began, |lane| lane.tenant);
        while !lanes.is_empty() {
            lanes.retain_mut(|lane| {
                let mut looked_at = lane.next..lane.end;
                let found = looked_at.find(|&place| self.grant(&demands[place]));
                lane.next = looked_at.start;
                if let Some(place) = found {
                    self.chosen[place] = true;
                    self.count_serving(lane.tenant);
                }
                lane.next < lane.end
            });
        }
        self.lanes = lanes;
    }

    /// When it is a tenant's turn: the least is first.
    fn turn(&self, tenant: u16) -> (u64, u16) {
        if self.policy == Policy::TenantLeastRecent {
            let place = self.served.binary_search_by_key(&tenant, |(known, _)| *known);
            return (place.map_or(0, |place| self.served[place].1), tenant);
        }
        (0, tenant.wrapping_sub(self.began).wrapping_sub(1))
    }

    fn count_serving(&mut self, tenant: u16) {
        self.servings += 1;
        match self.served.binary_search_by_key(&tenant, |(known, _)| *known) {
            Ok(place) => self.served[place].1 = self.servings,
            Err(place) => self.served.insert(place, (tenant, self.servings)),
        }
    }

    /// Gives each packet of the timeslot its path, if that is the arbiter's to do.
    fn assign_paths(&mut self) {
        match &mut self.paths {
            Some(paths) => {
                let ends = self.taken.iter().map(|demand| (demand.source, demand.destination));
                paths.assign(ends, &mut self.assigned);
            }
            None => {
                self.assigned.clear();
                self.assigned.resize(self.taken.len(), None);
            }
        }
    }

    /// Merges both parts, each of which is sorted still, and leaves out what is served.
    fn merge(&mut self, demands: &mut Vec<Demand>) {
        demands.clear();
        let policy = self.policy;
        let mut left = self.left.iter().copied().peekable();
        for taken in self.taken.iter().filter(|demand| demand.remaining > 0) {
            while let Some(demand) = left.next_if(|demand| demand.rank(policy) < taken.rank(policy)) {
                demands.push(demand);
            }
            demands.push(*taken);
        }
        demands.extend(left);
    }
}

#[cfg(test)]
mod tests;
