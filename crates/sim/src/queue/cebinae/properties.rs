//! Cebinae on random input: verdicts at max-min fair rates, drained rounds, order of packets, nothing lost.

use super::super::managed::tests::{Port, config as managed};
use super::tests::{C, DT, after_saturation, config};
use super::*;
use crate::packet::Packet;
use crate::queue::QueueDiscipline;
use crate::queue::managed::ManagedConfig;
use crate::units::{Bytes, Time};
use proptest::prelude::*;

/// Rates of flows over links by water filling (every link of rate 1 000 000), and the link that holds each flow back.
fn water_fill(links: usize, paths: &[Vec<usize>]) -> (Vec<u64>, Vec<usize>) {
    let (mut rates, mut held) = (vec![0u64; paths.len()], vec![usize::MAX; paths.len()]);
    let mut left = vec![1_000_000u64; links];
    while held.contains(&usize::MAX) {
        let open = |link: usize, held: &[usize]| -> Vec<usize> {
            (0..paths.len()).filter(|&f| held[f] == usize::MAX && paths[f].contains(&link)).collect()
        };
        let share = |link: usize| left[link] / open(link, &held).len().max(1) as u64;
        let used = (0..links).filter(|&link| !open(link, &held).is_empty());
        let Some(tightest) = used.min_by_key(|&link| share(link)) else { break };
        let rate = share(tightest);
        for flow in open(tightest, &held) {
            (rates[flow], held[flow]) = (rate, tightest);
            paths[flow].iter().for_each(|&link| left[link] -= rate);
        }
    }
    (rates, held)
}

/// For every link, whether it finds itself saturated and which flows it finds to be its top, from local bytes alone.
fn verdicts(paths: &[Vec<usize>], rates: &[u64]) -> Vec<Decision> {
    // One second on links of 8 Mbps; slack for what does not divide.
    let strict = CebinaeConfig { port_slack: 20_000, flow_slack: 1_000, ..config(1_000_000_000) };
    (0..5)
        .map(|link| {
            let mut agent = Agent::new(&strict, 8_000_000, 1_000_000_000);
            let on = (0..paths.len()).filter(|&flow| paths[flow].contains(&link));
            let counts: Vec<Slot> = on.map(|flow| Slot { flow: flow as u64, bytes: rates[flow] }).collect();
            agent.decide(counts.iter().map(|slot| slot.bytes).sum(), counts.into_iter())
        })
        .collect()
}

proptest! {
    /// A flow has its bottleneck where the link is full and no flow is larger (Bertsekas and Gallager). At the max-min fair
    /// rates every flow finds one, by the links' own verdicts; one that has less than its share finds none.
    #[test]
    fn at_the_fixed_point_local_verdicts_agree_with_water_filling(
        paths in prop::collection::vec(prop::collection::btree_set(0usize..5, 1..4), 2..12),
        slow in 0usize..12,
    ) {
        let paths: Vec<Vec<usize>> = paths.into_iter().map(|path| path.into_iter().collect()).collect();
        let (mut rates, held) = water_fill(5, &paths);
        let found = verdicts(&paths, &rates);
        for (link, decision) in found.iter().enumerate() {
            let on: Vec<usize> = (0..paths.len()).filter(|&flow| paths[flow].contains(&link)).collect();
            let full = on.iter().map(|&flow| rates[flow]).sum::<u64>() > 999_980;
            prop_assert_eq!(decision.saturated, full, "link {}", link);
            let largest = on.iter().map(|&flow| rates[flow]).max();
            prop_assert!(decision.top.iter().all(|&flow| Some(rates[flow as usize]) == largest), "link {}", link);
        }
        for (flow, &link) in held.iter().enumerate() {
            prop_assert!(found[link].top.contains(&(flow as u64)), "flow {} at link {}", flow, link);
        }
        let slow = slow % paths.len();
        rates[slow] /= 2;
        let found = verdicts(&paths, &rates);
        prop_assert!(found.iter().all(|decision| !decision.top.contains(&(slow as u64))));
    }
}

/// Random arrivals of several flows at a link that works; how much comes, changes.
fn traffic() -> impl Strategy<Value = Vec<(u64, u32, u16)>> {
    prop::collection::vec((0u64..400_000, 0u32..4, 64u16..1500), 50..1500)
}

proptest! {
    /// Nothing is lost or made; a flow's packets overtake each other only where its group changes; what a full buffer holds
    /// is gone within two rounds after the last arrival.
    #[test]
    fn packets_are_conserved_and_drained_in_time(arrivals in traffic(), dt in 22u32..26, header in 0u16..3) {
        let discipline = config(1 << dt);
        let limit = Limit { bytes: Bytes(C / 8 * (1 << dt) / 1_000_000_000), ..Limit::NONE };
        let settings = ManagedConfig { limit, link_header: header, ..managed(discipline, 0) };
        let mut port = Port::new(settings, Rate(C));
        let (mut now, mut free, mut offered, mut left, mut lost) = (0, 0, 0usize, 0usize, 0usize);
        let serve = |port: &mut Port<Cebinae>, until: u64, free: &mut u64, left: &mut usize| {
            while *free <= until {
                let Some(packet) = port.serve(Time::from_ns(*free)).0 else { break };
                *free += u64::from(packet.size) * 80;
                *left += 1;
            }
            *free = (*free).max(until);
        };
        for (name, &(gap, flow, size)) in arrivals.iter().enumerate() {
            now += gap;
            serve(&mut port, now, &mut free, &mut left);
            offered += 1;
            let packet = Packet { flow, seq: name as u64, size, class: 1, ..Packet::default() };
            lost += port.offer_packet(Time::from_ns(now), packet).len();
        }
        // A buffer that drains in a round is empty when the next one that its packets may wait for is over.
        serve(&mut port, now + (2 << dt), &mut free, &mut left);
        prop_assert!(port.queue.is_empty());
        prop_assert_eq!(offered, left + lost);
    }

    /// When a queue stops being the head it is empty, but for what came in the last moment: a packet of each group may go
    /// beyond its budget, and the one that is being sent.
    #[test]
    fn every_queue_is_drained_before_its_deadline(arrivals in traffic(), dt in 22u32..26) {
        let round = 1u64 << dt;
        let limit = Limit { bytes: Bytes(C / 8 * round / 1_000_000_000), ..Limit::NONE };
        let settings = ManagedConfig { limit, ..managed(config(round), 0) };
        let mut port = Port::new(settings, Rate(C));
        let (mut now, mut free, mut looked) = (0, 0, 0);
        for (name, &(gap, flow, size)) in arrivals.iter().enumerate() {
            now += gap;
            // The link works all the time; rotations on the way are looked at.
            loop {
                let control = port.discipline();
                if control.due <= free.min(now) {
                    let (due, head) = (control.due, control.filter.head);
                    if control.next == Step::Rotate {
                        let held = control.queues[head].bytes;
                        prop_assert!(held <= 3 * 1500, "{held} B are left of the round that ends at {due}");
                        looked += 1;
                    }
                    control.keep_time(due, 0);
                    continue;
                }
                if free > now {
                    break;
                }
                // While nothing waits the link is free until control or the next packet comes.
                free = match port.serve(Time::from_ns(free)).0 {
                    Some(packet) => free + u64::from(packet.size) * 80,
                    None => port.discipline().due.min(now + 1),
                };
            }
            let packet = Packet { flow, seq: name as u64, size, class: 1, ..Packet::default() };
            port.offer_packet(Time::from_ns(now), packet);
        }
        prop_assert!(now < 2 * round + 200_000 || looked > 0);
    }

    /// A flow that stays in its group leaves in the order in which it came, whatever rounds pass: here nobody is ever top, as
    /// the port is never found full. Only what came in the last moment before the next round is served first, and had not left by
    /// then, may be overtaken by what its flow sent into that round.
    #[test]
    fn no_flow_is_reordered_at_the_port_while_its_group_stays(arrivals in traffic(), dt in 22u32..26) {
        let settings = ManagedConfig {
            limit: Limit::of_packets(100_000),
            ..managed(CebinaeConfig { period: 1_000_000, ..config(1 << dt) }, 0)
        };
        let mut port = Port::new(settings, Rate(C));
        let (mut now, mut free, mut last) = (0, 0, [None; 4]);
        let came: Vec<u64> = arrivals.iter().scan(0, |at, arrival| { *at += arrival.0; Some(*at) }).collect();
        let mut in_order = |packet: Packet| {
            let before = last[packet.flow as usize].max(Some(packet.seq));
            let newest = std::mem::replace(&mut last[packet.flow as usize], before);
            // Rounds change hands a nanosecond after every multiple of their length; the moment is three packets long.
            let left = (1 << dt) - came[packet.seq as usize].saturating_sub(1) % (1 << dt);
            newest < Some(packet.seq) || left <= 3 * 1500 * 80
        };
        for (name, &(gap, flow, size)) in arrivals.iter().enumerate() {
            now += gap;
            while free <= now {
                let Some(packet) = port.serve(Time::from_ns(free)).0 else { break };
                free += u64::from(packet.size) * 80;
                prop_assert!(in_order(packet));
            }
            free = free.max(now);
            let packet = Packet { flow, seq: name as u64, size, class: 1, ..Packet::default() };
            port.offer_packet(Time::from_ns(now), packet);
        }
        while let Some(packet) = port.serve(Time::from_ns(free)).0 {
            free += u64::from(packet.size) * 80;
            prop_assert!(in_order(packet));
        }
    }

    /// Within the filter a group's packets go head, then tail, then nowhere until the next rotation, and rotation makes the
    /// tail the head: so a flow that stays in its group is never overtaken by itself.
    #[test]
    fn no_flow_is_reordered_across_a_rotation(steps in prop::collection::vec((0u64..900_000, 0usize..40), 20..300)) {
        let mut filter = after_saturation();
        let mut agent_rates = [0u64, C];
        let (mut now, mut rotations) = (DT + 100_001, 1u64);
        // The round in which the last packet that passed is sent.
        let mut round = [0u64; 2];
        for (gap, which) in steps {
            now += gap;
            while now >= (rotations + 1) * DT + 100_001 {
                filter.note_rates();
                filter.rotate(agent_rates);
                rotations += 1;
            }
            agent_rates = [(which as u64 % 8) * 10_000_000, C - (which as u64 % 8) * 10_000_000];
            let group = if which % 3 == 0 { Group::Bottom } else { Group::Top };
            let sent = match filter.pass(group, 1492, now) {
                Passage::Head => rotations,
                Passage::Tail => rotations + 1,
                Passage::Drop => continue,
            };
            prop_assert!(sent >= round[group as usize], "{group:?} {sent} after {round:?}");
            round[group as usize] = sent;
        }
    }
}
