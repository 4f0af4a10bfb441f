//! Tests of `allocation`.

use super::*;
use proptest::prelude::*;
use std::collections::HashSet;

fn demand(flow: u32, source: u32, destination: u32, remaining: u32) -> Demand {
    Demand { flow, source, destination, remaining, deadline: Time::MAX, tenant: 0 }
}

/// A source and, for each timeslot, the flow's number or a dot.
type Row = (u32, String);

/// One epoch's schedules, and (flow, packets remaining) of the demands that are left.
fn epoch(hosts: usize, demands: &[Demand]) -> (Vec<Row>, Vec<(u32, u32)>) {
    epoch_by(Policy::ShortestRemaining, hosts, demands)
}

fn epoch_by(policy: Policy, hosts: usize, demands: &[Demand]) -> (Vec<Row>, Vec<(u32, u32)>) {
    let (mut allocator, mut schedules) = (Allocator::new(hosts, policy, None), Vec::new());
    demands.iter().for_each(|&demand| allocator.add(demand));
    allocator.fill_epoch(&mut schedules);
    let letter = |flow: &Option<FlowId>| flow.map_or(".".to_string(), |flow| flow.to_string());
    let rows = schedules.iter().map(|s| (s.source, s.flows.iter().map(letter).collect())).collect();
    (rows, allocator.waiting().map(|demand| (demand.flow, demand.remaining)).collect())
}

fn row(source: u32, slots: &str) -> Row {
    (source, slots.to_string())
}

#[test]
fn a_lone_flow_gets_the_first_slots_that_it_needs_and_is_served() {
    assert_eq!(epoch(2, &[demand(0, 0, 1, 3)]), (vec![row(0, "000.....")], vec![]));
}

#[test]
fn a_long_flow_gets_all_eight_slots_and_keeps_the_rest() {
    assert_eq!(epoch(2, &[demand(0, 0, 1, 100)]), (vec![row(0, "00000000")], vec![(0, 92)]));
}

#[test]
fn of_two_senders_to_one_receiver_the_shorter_flow_goes_first() {
    let demands = [demand(0, 0, 2, 100), demand(1, 1, 2, 3)];
    assert_eq!(epoch(3, &demands), (vec![row(0, "...00000"), row(1, "111.....")], vec![(0, 95)]));
}

#[test]
fn one_schedule_names_every_flow_of_its_source() {
    let demands = [demand(0, 0, 1, 100), demand(1, 0, 2, 2)];
    assert_eq!(epoch(3, &demands), (vec![row(0, "11000000")], vec![(0, 94)]));
}

#[test]
fn disjoint_pairs_share_every_slot() {
    let demands = [demand(0, 0, 1, 9), demand(1, 2, 3, 9)];
    assert_eq!(epoch(4, &demands).0, [row(0, "00000000"), row(2, "11111111")]);
}

#[test]
fn of_equal_demands_the_one_that_began_is_finished_first() {
    let demands = [demand(1, 1, 2, 4), demand(0, 0, 2, 4)];
    assert_eq!(epoch(3, &demands).0, [row(0, "0000...."), row(1, "....1111")]);
}

#[test]
fn a_demand_on_a_missing_host_is_never_granted() {
    assert_eq!(epoch(2, &[demand(0, 0, 7, 1)]), (vec![], vec![(0, 1)]));
}

#[test]
fn the_earliest_deadline_goes_first_and_the_shorter_of_equals() {
    let due = |us: u64, demand: Demand| Demand { deadline: Time::from_us(us), ..demand };
    let demands = [demand(0, 0, 3, 1), due(9, demand(1, 1, 3, 5)), due(9, demand(2, 2, 3, 2))];
    let rows = epoch_by(Policy::EarliestDeadline, 4, &demands).0;
    assert_eq!(rows, [row(0, ".......0"), row(1, "..11111."), row(2, "22......")]);
}

#[test]
fn tenants_take_turns_at_a_receiver_whatever_the_lengths_of_their_flows() {
    let of = |tenant: u16, demand: Demand| Demand { tenant, ..demand };
    let demands = [of(1, demand(0, 0, 3, 2)), of(1, demand(1, 1, 3, 90)), of(2, demand(2, 2, 3, 50))];
    for policy in [Policy::TenantRoundRobin, Policy::TenantLeastRecent] {
        let rows = epoch_by(policy, 4, &demands).0;
        assert_eq!(rows, [row(0, "0.0....."), row(1, "....1.1."), row(2, ".2.2.2.2")], "{policy:?}");
    }
}

#[test]
fn tenants_with_receivers_of_their_own_do_not_hold_each_other_up() {
    let of = |tenant: u16, demand: Demand| Demand { tenant, ..demand };
    let demands = [of(1, demand(0, 0, 2, 9)), of(2, demand(1, 1, 3, 9))];
    let rows = epoch_by(Policy::TenantRoundRobin, 4, &demands).0;
    assert_eq!(rows, [row(0, "00000000"), row(1, "11111111")]);
}

#[test]
fn under_round_robin_a_tenant_that_meets_others_at_both_ends_begins_its_own_timeslots() {
    let of = |tenant: u16, demand: Demand| Demand { tenant, ..demand };
    let demands = [of(1, demand(0, 0, 4, 90)), of(2, demand(1, 0, 5, 90)), of(3, demand(2, 1, 5, 90))];
    let rows = epoch_by(Policy::TenantRoundRobin, 6, &demands).0;
    assert_eq!(rows, [row(0, "01001001"), row(1, "2.22.22.")]);
}

/// Timeslots filled as the module's text states it, with a look at every demand: source and flow of each
/// packet.
struct Scan {
    policy: Policy,
    hosts: u32,
    servings: Vec<u16>,
    began: u16,
}

impl Scan {
    fn slot(&mut self, demands: &mut Vec<Demand>) -> Vec<(u32, FlowId)> {
        demands.sort_by_key(|demand| demand.rank(self.policy));
        let (mut sources, mut destinations) = (HashSet::new(), HashSet::new());
        let exists = |host: u32| host < self.hosts;
        let mut taken = Vec::new();
        let mut take = |demand: &mut Demand| {
            let free = exists(demand.source)
                && exists(demand.destination)
                && !sources.contains(&demand.source)
                && !destinations.contains(&demand.destination);
            if free {
                sources.insert(demand.source);
                destinations.insert(demand.destination);
                demand.remaining -= 1;
                taken.push((demand.source, demand.flow));
            }
            free
        };
        if self.policy.has_tenants() {
            let mut tenants: Vec<u16> = demands.iter().map(|demand| demand.tenant).collect();
            tenants.dedup();
            match self.policy {
                Policy::TenantLeastRecent => {
                    tenants.sort_by_key(|tenant| self.servings.iter().rposition(|served| served == tenant));
                }
                _ => tenants.sort_by_key(|tenant| tenant.wrapping_sub(self.began).wrapping_sub(1)),
            }
            self.began = tenants.first().copied().unwrap_or(self.began);
            while !tenants.is_empty() {
                tenants.retain(|&tenant| {
                    let mut own = demands.iter_mut().filter(|demand| demand.tenant == tenant);
                    let fits = own.any(&mut take);
                    self.servings.extend(fits.then_some(tenant));
                    fits
                });
            }
        } else {
            demands.iter_mut().for_each(|demand| {
                take(demand);
            });
        }
        demands.retain(|demand| demand.remaining > 0);
        taken.sort_unstable();
        taken
    }
}

proptest! {
    #[test]
    fn timeslots_are_those_of_a_scan_of_all_demands(
        policy in prop::sample::select(vec![
            Policy::ShortestRemaining, Policy::EarliestDeadline, Policy::TenantRoundRobin, Policy::TenantLeastRecent,
        ]),
        drawn in prop::collection::vec((0u32..3, 0u32..5, 1u32..12, 0u64..3, 0u16..2, 0usize..30), 0..400),
    ) {
        let (mut scanned, mut schedules) = (Vec::new(), Vec::new());
        // The last host is missing.
        let mut allocator = Allocator::new(4, policy, None);
        let mut scan = Scan { policy, hosts: 4, servings: Vec::new(), began: u16::MAX };
        for epoch in 0..30 {
            for (&(source, destination, remaining, due, tenant, comes), flow) in drawn.iter().zip(0..) {
                let demand = Demand { flow, source, destination, remaining, deadline: Time(due), tenant };
                // Half of them are there from the start; some ask for more later, or are complete.
                let from = comes.saturating_sub(15);
                if epoch == from {
                    allocator.add(demand);
                    scanned.push(demand);
                } else if epoch == from + 5 && flow % 9 == 0 {
                    allocator.add_more(demand);
                    match scanned.iter_mut().find(|known| known.flow == flow) {
                        Some(known) => known.remaining += remaining,
                        None => scanned.push(demand),
                    }
                } else if epoch == from + 7 && flow % 11 == 0 {
                    allocator.forget(&std::iter::once(flow).collect());
                    scanned.retain(|known| known.flow != flow);
                }
            }
            allocator.fill_epoch(&mut schedules);
            for slot in 0..SLOTS_PER_EPOCH as usize {
                let given = schedules.iter().filter_map(|one| Some((one.source, one.flows[slot]?)));
                prop_assert_eq!(given.collect::<Vec<_>>(), scan.slot(&mut scanned));
            }
            let mut waiting: Vec<Demand> = allocator.waiting().copied().collect();
            waiting.sort_by_key(|demand| demand.rank(policy));
            scanned.sort_by_key(|demand| demand.rank(policy));
            prop_assert_eq!(&waiting, &scanned);
        }
    }
}
