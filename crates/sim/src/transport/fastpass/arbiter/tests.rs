//! The arbiter alone, with the delays of an empty network given: 144 hosts in racks of 16, links of 10 and 40 Gb/s and
//! 200 ns, cut-through, the arbiter in rack 0. The expected times are those of the authors' simulator.

use super::*;

const CONTROL_IN_RACK_NS: u64 = 2 * (32 + 200);
const CONTROL_ACROSS_NS: u64 = 2 * (32 + 200) + 2 * (8 + 200);
const CONTROL_BYTES_NS: u64 = 32;
const EPOCH_NS: u64 = 10_200;

const BOUNDARY: StartRule = StartRule::Boundary { lead: Time::from_ns(EPOCH_NS) };

fn timing(start: StartRule) -> ArbiterConfig {
    ArbiterConfig {
        host: 144,
        epoch: Time::from_ns(EPOCH_NS),
        slot: Time::from_ns(1_275),
        start,
        compute_time: Time::ZERO,
        policy: Policy::ShortestRemaining,
        assign_paths: false,
    }
}

/// A request of a flow that has requested this number of timeslots since it began.
fn request(arbiter: &mut Arbiter, flow: u32, source: u32, destination: u32, in_all: u64) -> bool {
    let demand = Demand { flow, source, destination, remaining: 0, deadline: Time::MAX, tenant: 0 };
    arbiter.request(demand, in_all)
}

/// Timeslots that a source is given in the next epoch.
fn given(arbiter: &mut Arbiter) -> usize {
    let mut schedules = Vec::new();
    arbiter.run_epoch(&mut schedules);
    schedules.iter().flat_map(|schedule| schedule.flows).flatten().count()
}

fn arbiter(hosts: usize) -> Arbiter {
    Arbiter::new(hosts, Policy::ShortestRemaining, None)
}

fn to_arbiter_ns(host: u32) -> u64 {
    if host < 16 { CONTROL_IN_RACK_NS } else { CONTROL_ACROSS_NS }
}

/// A data packet and its acknowledgement (spec of the unit cases: one packet alone).
fn packet_and_ack_ns(source: u32, destination: u32) -> u64 {
    if source / 16 == destination / 16 { 2_096 } else { 2_928 }
}

/// Flows as (source, destination, packets, start in ns), in order of start: completion times in ns.
fn completion_ns(start: StartRule, flows: &[(u32, u32, u32, u64)]) -> Vec<u64> {
    let timing = timing(start);
    let (mut arbiter, mut schedules, mut last) = (arbiter(144), Vec::new(), vec![0; flows.len()]);
    let arrival = |flow: &(u32, u32, u32, u64)| flow.3 + to_arbiter_ns(flow.0);
    let (mut asked, mut now) = (0, 0);
    while asked < flows.len() || arbiter.has_work() {
        now = timing.next_epoch(Time::from_ns(now)).ns();
        while asked < flows.len() && arrival(&flows[asked]) <= now {
            let (source, destination, remaining, _) = flows[asked];
            request(&mut arbiter, asked as u32, source, destination, remaining.into());
            asked += 1;
        }
        arbiter.run_epoch(&mut schedules);
        for (place, schedule) in schedules.iter().enumerate() {
            // Schedules leave the arbiter's link one after another.
            let received = now + place as u64 * CONTROL_BYTES_NS + to_arbiter_ns(schedule.source);
            for (slot, flow) in (0..).zip(schedule.flows) {
                let Some(flow) = flow.map(|flow| flow as usize) else { continue };
                let leaves = timing.departure(slot, now / EPOCH_NS, Time::from_ns(received)).ns();
                let (source, destination, _, began) = flows[flow];
                last[flow] = leaves + packet_and_ack_ns(source, destination) - began;
            }
        }
    }
    last
}

const SINGLE: [(u32, u32, u32, u64); 12] = [
    (0, 1, 1, 0),
    (0, 17, 1, 10_000_000),
    (0, 17, 2, 20_000_000),
    (0, 17, 8, 30_000_000),
    (0, 17, 9, 40_000_000),
    (0, 1, 8, 50_000_000),
    (0, 1, 9, 60_000_000),
    (0, 17, 12, 70_000_000),
    (0, 17, 13, 80_000_000),
    (0, 1, 100, 90_000_000),
    (0, 143, 100, 100_000_000),
    (5, 77, 1_000, 110_000_000),
];

#[test]
fn single_flows_that_start_on_receipt_take_the_times_of_the_released_simulator() {
    let expected =
        [12_760, 9_592, 6_867, 20_717, 17_992, 22_085, 19_360, 20_017, 27_492, 133_585, 130_417, 1_284_117];
    assert_eq!(completion_ns(StartRule::Receipt, &SINGLE), expected);
}

#[test]
fn single_flows_that_start_at_the_epoch_boundary_take_the_published_rules_times() {
    let expected =
        [22_496, 19_328, 16_603, 30_453, 27_728, 31_821, 29_096, 29_753, 37_228, 143_321, 140_153, 1_293_853];
    assert_eq!(completion_ns(BOUNDARY, &SINGLE), expected);
}

#[test]
fn two_senders_to_one_receiver_are_served_shortest_first() {
    let flows = [(0, 40, 100, 0), (20, 40, 20, 1_000)];
    assert_eq!(completion_ns(StartRule::Receipt, &flows), [165_317, 37_265]);
}

#[test]
fn one_sender_to_two_receivers_is_served_shortest_first() {
    let flows = [(0, 40, 100, 0), (0, 60, 20, 1_000)];
    assert_eq!(completion_ns(StartRule::Receipt, &flows), [165_317, 36_817]);
}

#[test]
fn a_flow_that_is_forgotten_gets_no_timeslot() {
    let (mut arbiter, mut schedules) = (arbiter(2), Vec::new());
    request(&mut arbiter, 0, 0, 1, 3);
    arbiter.forget(0);
    arbiter.run_epoch(&mut schedules);
    assert!(schedules.is_empty() && !arbiter.has_work());
}

#[test]
fn a_repeated_request_asks_for_nothing_more() {
    let mut arbiter = arbiter(2);
    assert!(request(&mut arbiter, 0, 0, 1, 10));
    assert!(!request(&mut arbiter, 0, 0, 1, 10) && arbiter.granted(0) == 0);
    assert_eq!((given(&mut arbiter), arbiter.granted(0)), (8, 8));
    assert!(!request(&mut arbiter, 0, 0, 1, 10));
    assert_eq!((given(&mut arbiter), arbiter.granted(0), arbiter.has_work()), (2, 10, false));
    // Also when all is given, and when an older request comes late.
    assert!(!request(&mut arbiter, 0, 0, 1, 10) && !request(&mut arbiter, 0, 0, 1, 3));
    assert_eq!((given(&mut arbiter), arbiter.has_work()), (0, false));
}

#[test]
fn a_request_for_more_adds_to_what_is_due() {
    let mut arbiter = arbiter(2);
    request(&mut arbiter, 0, 0, 1, 10);
    assert_eq!(given(&mut arbiter), 8);
    // Of the eight two are requested again.
    assert!(request(&mut arbiter, 0, 0, 1, 12));
    assert_eq!((arbiter.granted(0), given(&mut arbiter), arbiter.granted(0)), (8, 4, 12));
}

#[test]
fn a_schedule_that_comes_after_its_epoch_boundary_is_used_at_once() {
    let late = Time::from_ns(30_000);
    assert_eq!(timing(BOUNDARY).departure(0, 1, late), late);
}

#[test]
fn short_flows_pass_a_long_one_to_the_same_receiver() {
    let mut flows = vec![(0, 40, 500, 0)];
    flows.extend((1..6).map(|number| (16 + number as u32, 40, 3, 100_000 * number)));
    let released = [668_942, 8_390, 10_390, 12_390, 14_390, 16_390];
    let published = [678_678, 17_678, 19_678, 21_678, 23_678, 25_678];
    assert_eq!(completion_ns(StartRule::Receipt, &flows), released);
    assert_eq!(completion_ns(BOUNDARY, &flows), published);
}
