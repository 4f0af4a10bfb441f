//! Timeslot allocation: which sender may send to which receiver in each timeslot of an epoch.
//!
//! In every timeslot the arbiter scans the demands in the order of its policy and takes each one whose source
//! and destination are both still free in that timeslot: a greedy, hence maximal, matching. A demand that is
//! taken has one packet less in the next timeslot. Where tenants share, each in turn has one of its demands
//! taken, its shortest that fits, until no demand of any tenant fits. Under round robin every timeslot begins
//! with another tenant, the next one: the tenant that begins finds both ends of any of its demands free, so
//! no tenant is passed over for ever.
//!
//! In an epoch of eight timeslots only the first eight demands of a tenant between the same two hosts can be
//! taken: those that the next eight epochs cannot reach stay out of the scans until then. A scan ends when as
//! many are taken as there are sources, or destinations.
//!
//! Source: Perry et al., "Fastpass: A Centralized Zero-Queue Datacenter Network", SIGCOMM 2014; order by
//! fewest remaining as in the Fastpass of the pHost authors' simulator. Differs from the source: equal
//! demands are taken in order of flow number, so that a run repeats exactly.

use super::paths::Paths;
use crate::transport::policy::Policy;
use crate::units::Time;
use crate::workload::FlowId;
use rustc_hash::{FxHashMap, FxHashSet};

/// Timeslots of one epoch (Fastpass of the pHost authors' simulator).
pub const SLOTS_PER_EPOCH: u32 = 8;
/// Epochs after which all demands are looked at again.
const EPOCHS: u32 = 8;

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
    /// The demands that can be served before all are divided again, new ones among them.
    within: Vec<Demand>,
    /// All others, in order of the policy.
    beyond: Vec<Demand>,
    /// Epochs until all are divided again.
    left: u32,
    /// Of a tenant, a source and a destination, the demands so far.
    counted: FxHashMap<(u16, u32, u32), u32>,
    /// The first timeslot of the epoch in which a host was counted as a source, and as a destination.
    counted_as: Vec<[u64; 2]>,
    /// A timeslot has no more packets than this.
    max_packets: usize,
    /// Places of the demands that the timeslot is given to.
    chosen: Vec<usize>,
    lanes: Vec<Lane>,
    /// By tenant, when it was last served; counts servings.
    served: Vec<(u16, u64)>,
    servings: u64,
    /// The tenant whose turn was the first of the last timeslot.
    began: u16,
    /// If it assigns them.
    paths: Option<Paths>,
    /// Of each of `chosen`.
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
            within: Vec::new(),
            beyond: Vec::new(),
            left: 0,
            counted: FxHashMap::default(),
            counted_as: vec![[0; 2]; hosts],
            max_packets: 0,
            chosen: Vec::new(),
            lanes: Vec::new(),
            served: Vec::new(),
            servings: 0,
            began: u16::MAX,
            paths,
            assigned: Vec::new(),
        }
    }

    /// A flow without a demand has one now.
    pub fn add(&mut self, demand: Demand) {
        self.within.push(demand);
    }

    /// A flow wants more timeslots, whether all that it wanted have been granted or not.
    pub fn add_more(&mut self, demand: Demand) {
        match self.within.iter_mut().chain(&mut self.beyond).find(|known| known.flow == demand.flow) {
            Some(known) => known.remaining = known.remaining.saturating_add(demand.remaining),
            None => self.within.push(demand),
        }
        self.left = 0;
    }

    /// Some flows want no timeslots any more.
    pub fn forget(&mut self, complete: &FxHashSet<FlowId>) {
        let before = self.within.len();
        self.within.retain(|demand| !complete.contains(&demand.flow));
        if self.within.len() < before {
            self.left = 0;
        }
        self.beyond.retain(|demand| !complete.contains(&demand.flow));
    }

    /// Demands that have not been granted in full, in any order.
    pub fn waiting(&self) -> impl Iterator<Item = &Demand> {
        self.within.iter().chain(&self.beyond)
    }

    /// Fills one epoch: takes the granted packets off the demands, and leaves in `schedules` one schedule for
    /// each source with a timeslot, by host number. A demand that names a missing host is never granted.
    pub fn fill_epoch(&mut self, schedules: &mut Vec<Schedule>) {
        schedules.clear();
        let first = self.filled + 1;
        self.prepare(first);
        for slot in 0..SLOTS_PER_EPOCH as usize {
            self.fill_slot();
            self.assign_paths();
            for (&place, path) in self.chosen.iter().zip(&self.assigned) {
                let demand = &self.within[place];
                let place = &mut self.places[demand.source as usize];
                if place.0 != first {
                    *place = (first, schedules.len());
                    schedules.push(Schedule::silent(demand.source));
                }
                let schedule = &mut schedules[place.1];
                (schedule.flows[slot], schedule.paths[slot]) = (Some(demand.flow), *path);
            }
            self.count_down();
        }
        schedules.sort_unstable_by_key(|schedule| schedule.source);
        self.within.retain(|demand| demand.remaining > 0);
    }

    /// Puts the demands that the epoch can serve in order, and counts the hosts at their ends.
    fn prepare(&mut self, first: u64) {
        let policy = self.policy;
        let divides = self.left == 0;
        if divides {
            self.left = EPOCHS;
            self.within.append(&mut self.beyond);
        }
        self.left -= 1;
        // Mostly in order: what the last epoch left, and a few that came since.
        self.within.sort_by_key(|demand| demand.rank(policy));
        if divides {
            self.counted.clear();
            let (counted, beyond) = (&mut self.counted, &mut self.beyond);
            self.within.retain(|demand| {
                let tenant = if policy.has_tenants() { demand.tenant } else { 0 };
                let before = counted.entry((tenant, demand.source, demand.destination)).or_insert(0);
                *before += 1;
                let reached = *before <= EPOCHS * SLOTS_PER_EPOCH;
                beyond.extend((!reached).then_some(*demand));
                reached
            });
        }
        let mut ends = [0; 2];
        for demand in &self.within {
            for (role, host) in [demand.source, demand.destination].into_iter().enumerate() {
                let Some(counted) = self.counted_as.get_mut(host as usize) else { continue };
                ends[role] += usize::from(counted[role] != first);
                counted[role] = first;
            }
        }
        self.max_packets = ends[0].min(ends[1]);
    }

    /// Chooses the demands that get the next timeslot.
    fn fill_slot(&mut self) {
        self.filled += 1;
        self.chosen.clear();
        let within = std::mem::take(&mut self.within);
        if self.policy.has_tenants() {
            self.choose_in_turn(&within);
            self.chosen.sort_unstable();
        } else {
            for (place, demand) in within.iter().enumerate() {
                if self.chosen.len() == self.max_packets {
                    break;
                }
                if self.grant(demand) {
                    self.chosen.push(place);
                }
            }
        }
        self.within = within;
    }

    /// Takes the packets of the timeslot off their demands, which keep the order of the policy: one that is
    /// served stays, among the first, until the epoch ends.
    fn count_down(&mut self) {
        for &place in &self.chosen {
            self.within[place].remaining -= 1;
            let rank = self.within[place].rank(self.policy);
            let earlier = self.within[..place].partition_point(|demand| demand.rank(self.policy) < rank);
            self.within[earlier..=place].rotate_right(1);
        }
    }

    /// Gives a demand the timeslot, if both its ends are free in it.
    fn grant(&mut self, demand: &Demand) -> bool {
        let (source, destination) = (demand.source as usize, demand.destination as usize);
        let free = demand.remaining > 0
            && self.sends.get(source).is_some_and(|&last| last != self.filled)
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
            let next = begin + of_tenant.partition_point(|demand| demand.remaining == 0);
            if next < end {
                lanes.push(Lane { turn: self.turn(tenant), tenant, next, end });
            }
            begin = end;
        }
        lanes.sort_unstable();
        self.began = lanes.first().map_or(self.began, |lane| lane.tenant);
        while !lanes.is_empty() && self.chosen.len() < self.max_packets {
            lanes.retain_mut(|lane| {
                if self.chosen.len() == self.max_packets {
                    return false;
                }
                let mut looked_at = lane.next..lane.end;
                let found = looked_at.find(|&place| self.grant(&demands[place]));
                lane.next = looked_at.start;
                if let Some(place) = found {
                    self.chosen.push(place);
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
                let chosen = self.chosen.iter().map(|&place| &self.within[place]);
                let ends = chosen.map(|demand| (demand.source, demand.destination));
                paths.assign(ends, &mut self.assigned);
            }
            None => {
                self.assigned.clear();
                self.assigned.resize(self.chosen.len(), None);
            }
        }
    }
}

#[cfg(test)]
mod tests;
