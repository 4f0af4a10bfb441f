//! Tests of `ranking`.

use super::*;
use crate::engine::random::RandomStream;

fn rank(policy: Policy, deadline_ns: u64, remaining: u32, arrival: u32) -> Rank {
    Rank::new(policy, Time::from_ns(deadline_ns), remaining, arrival)
}

/// The order in which these flows, (tenant, deadline, remaining), are served one packet each.
fn served(policy: Policy, flows: &[(u16, u64, u32)]) -> Vec<u32> {
    let mut ranking = Ranking::new(policy);
    for (number, &(tenant, deadline, remaining)) in flows.iter().enumerate() {
        ranking.insert(tenant, rank(policy, deadline, remaining, number as u32), number as u32);
    }
    let next = || {
        let flow = ranking.first(|_| true)?;
        let (tenant, deadline, remaining) = flows[flow as usize];
        ranking.served(tenant);
        ranking.remove(tenant, rank(policy, deadline, remaining, flow));
        Some(flow)
    };
    std::iter::from_fn(next).collect()
}

#[test]
fn the_shortest_goes_first_and_the_earlier_of_equals() {
    assert_eq!(served(Policy::ShortestRemaining, &[(0, 1, 9), (1, 9, 2), (0, 5, 2)]), [1, 2, 0]);
}

#[test]
fn the_earliest_deadline_goes_first_and_the_shorter_of_equals() {
    assert_eq!(served(Policy::EarliestDeadline, &[(0, 7, 1), (1, 5, 9), (0, 5, 8)]), [2, 1, 0]);
}

#[test]
fn tenants_take_turns_and_each_serves_its_shortest() {
    let flows = [(3, 0, 5), (3, 0, 4), (3, 0, 3), (7, 0, 9), (9, 0, 1), (7, 0, 8)];
    assert_eq!(served(Policy::TenantRoundRobin, &flows), [2, 5, 4, 1, 3, 0]);
    assert_eq!(served(Policy::TenantLeastRecent, &flows), [2, 5, 4, 1, 3, 0]);
}

#[test]
fn a_tenant_that_was_idle_goes_before_all_others_only_where_the_tenant_served_longest_ago_is_next() {
    let order = |policy| {
        let mut ranking = Ranking::new(policy);
        for tenant in [1, 2] {
            ranking.insert(tenant, rank(policy, 0, 1, u32::from(tenant)), 0);
        }
        for tenant in [1, 2, 1] {
            ranking.served(tenant);
        }
        ranking.insert(0, rank(policy, 0, 1, 9), 9);
        ranking.first(|_| true)
    };
    assert_eq!(order(Policy::TenantLeastRecent), Some(9));
    assert_eq!(order(Policy::TenantRoundRobin), Some(0));
}

#[test]
fn flows_whose_rank_changes_stay_in_order() {
    let mut random = RandomStream::new(1, "ranking");
    let policy = Policy::ShortestRemaining;
    let mut ranking = Ranking::new(policy);
    let mut remaining: Vec<u32> = (0..20).map(|_| random.below(50) as u32).collect();
    for (flow, &left) in remaining.iter().enumerate() {
        ranking.insert(0, rank(policy, 0, left, flow as u32), flow as u32);
    }
    for _ in 0..2000 {
        let flow = random.below(20) as usize;
        let old = rank(policy, 0, remaining[flow], flow as u32);
        remaining[flow] = random.below(50) as u32;
        ranking.rerank(0, old, old.with_remaining(remaining[flow]));
        let shortest = (0..20).min_by_key(|&flow| (remaining[flow], flow)).map(|flow| flow as u32);
        assert_eq!(ranking.first(|_| true), shortest);
        assert!(ranking.all.flows.is_sorted_by(|a, b| a.0 > b.0));
    }
}
