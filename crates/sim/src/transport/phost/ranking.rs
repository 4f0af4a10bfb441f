//! In which order flows are served: the policy that both ends of pHost choose by.
//!
//! Flows that can be served are kept sorted, tenant by tenant; without tenants all are of one. The flow to
//! serve is the first of the tenant whose turn it is.
//!
//! Source: Gao et al., "pHost: Distributed Near-Optimal Datacenter Transport Over Commodity Network Fabric",
//! CoNEXT 2015 (shortest remaining first, earliest deadline first, fairness among tenants).

use crate::transport::policy::Policy;
use crate::units::Time;

/// What a flow is sorted by; the least is served first. One number, compared at once: the deadline (zero
/// where deadlines do not count, the end of time for a flow that has none), then the packets that are left as
/// far as this end knows, then a count of flows as they come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank(u128);

impl Rank {
    pub fn new(policy: Policy, deadline: Time, remaining: u32, arrival: u32) -> Rank {
        let deadline = if policy == Policy::EarliestDeadline { deadline } else { Time::ZERO };
        Rank(u128::from(deadline.0) << 64 | u128::from(remaining) << 32 | u128::from(arrival))
    }

    pub fn with_deadline(self, policy: Policy, deadline: Time) -> Rank {
        Rank(Rank::new(policy, deadline, 0, 0).0 | u128::from(self.0 as u64))
    }

    pub fn with_remaining(self, remaining: u32) -> Rank {
        const REMAINING: u128 = 0xffff_ffff << 32;
        Rank(self.0 & !REMAINING | u128::from(remaining) << 32)
    }
}

/// The flows of one tenant that can be served, the first one last.
#[derive(Debug, Default)]
struct Lane {
    tenant: u16,
    /// Counts servings; 0: never served.
    served: u64,
    flows: Vec<(Rank, u32)>,
}

impl Lane {
    /// The place of a rank, or that where it would be. Whose rank is asked for is mostly among the next to be
    /// served.
    #[inline]
    fn place(&self, rank: Rank) -> Result<usize, usize> {
        const NEAR: usize = 8;
        let (mut at, far) = (self.flows.len(), self.flows.len().saturating_sub(NEAR));
        while at > far && self.flows[at - 1].0 < rank {
            at -= 1;
        }
        if at == far {
            return self.flows[..far].binary_search_by(|(known, _)| rank.cmp(known));
        }
        if self.flows[at - 1].0 == rank { Ok(at - 1) } else { Err(at) }
    }

    #[inline(always)]
    fn first(&self, fits: impl Fn(u32) -> bool) -> Option<u32> {
        self.flows.iter().rev().map(|(_, flow)| *flow).find(|flow| fits(*flow))
    }
}

/// Flows that can be served, by the numbers that their owner gave them.
#[derive(Debug)]
pub struct Ranking {
    policy: Policy,
    /// All flows, where tenants do not count.
    all: Lane,
    /// By tenant, where they do; a tenant that came once stays.
    lanes: Vec<Lane>,
    servings: u64,
    last_tenant: u16,
}

impl Ranking {
    pub fn new(policy: Policy) -> Ranking {
        Ranking { policy, all: Lane::default(), lanes: Vec::new(), servings: 0, last_tenant: u16::MAX }
    }

    pub fn policy(&self) -> Policy {
        self.policy
    }

    #[inline]
    fn lane(&mut self, tenant: u16) -> &mut Lane {
        if self.policy.has_tenants() { self.lane_of(tenant) } else { &mut self.all }
    }

    #[inline(never)]
    fn lane_of(&mut self, tenant: u16) -> &mut Lane {
        let at = match self.lanes.binary_search_by_key(&tenant, |lane| lane.tenant) {
            Ok(at) => at,
            Err(at) => {
                self.lanes.insert(at, Lane { tenant, ..Lane::default() });
                at
            }
        };
        &mut self.lanes[at]
    }

    pub fn insert(&mut self, tenant: u16, rank: Rank, flow: u32) {
        let lane = self.lane(tenant);
        let at = lane.place(rank).unwrap_or_else(|at| at);
        lane.flows.insert(at, (rank, flow));
    }

    pub fn remove(&mut self, tenant: u16, rank: Rank) {
        let lane = self.lane(tenant);
        let found = lane.place(rank);
        debug_assert!(found.is_ok(), "a flow that is not ranked is removed");
        if let Ok(at) = found {
            lane.flows.remove(at);
        }
    }

    /// A flow that is in the ranking gets another rank.
    pub fn rerank(&mut self, tenant: u16, old: Rank, new: Rank) {
        let lane = self.lane(tenant);
        if let [(known, _)] = &mut lane.flows[..] {
            if *known == old {
                *known = new;
            }
            return;
        }
        let Ok(from) = lane.place(old) else { return };
        let flow = lane.flows[from].1;
        // Most ranks change by one packet, which moves the flow by a place or none.
        let to = lane.place(new).unwrap_or_else(|at| at);
        if to > from {
            lane.flows[from..to].rotate_left(1);
            lane.flows[to - 1] = (new, flow);
        } else {
            lane.flows[to..=from].rotate_right(1);
            lane.flows[to] = (new, flow);
        }
    }

    /// The flow to serve now, of those that fit.
    #[inline(always)]
    pub fn first(&self, fits: impl Fn(u32) -> bool) -> Option<u32> {
        if self.policy.has_tenants() { self.first_by_tenant(fits) } else { self.all.first(fits) }
    }

    #[inline(never)]
    fn first_by_tenant(&self, fits: impl Fn(u32) -> bool) -> Option<u32> {
        let found = self.lanes.iter().filter_map(|lane| Some((self.turn(lane), lane.first(&fits)?)));
        found.min().map(|(_, flow)| flow)
    }

    /// When it is a tenant's turn: the least is first.
    fn turn(&self, lane: &Lane) -> (u64, u16) {
        match self.policy {
            Policy::TenantLeastRecent => (lane.served, lane.tenant),
            _ => (0, lane.tenant.wrapping_sub(self.last_tenant).wrapping_sub(1)),
        }
    }

    /// A flow of this tenant was served.
    pub fn served(&mut self, tenant: u16) {
        if self.policy.has_tenants() {
            self.servings += 1;
            let servings = self.servings;
            self.lane(tenant).served = servings;
            self.last_tenant = tenant;
        }
    }
}

#[cfg(test)]
mod tests;
