//! A graph is played to its end in whatever order messages arrive, or it says who waits for whom.

use super::listed::{Group, Instance, Op, RankList, SendEnds};
use super::waits;
use super::*;
use crate::units::{Rate, Time};
use crate::workload::schedule::ring::RingParameters;
use crate::workload::schedule::{AlgorithmParameters, Asked, Kind};
use std::collections::BinaryHeap;
use std::sync::Arc;

fn graph(ranks: Vec<RankList>, groups: Vec<Group>, instances: Vec<Instance>) -> Arc<JobGraph> {
    let hosts = (0..ranks.len() as u32).collect();
    let listed = Listed::new(ranks, groups, instances, SendEnds::Posted, "goal").expect("few messages");
    let listed = listed.with_places("line");
    let flow = FlowSpec::default();
    let seats = Seats::ALONE;
    Arc::new(JobGraph { hosts, seats, flow, recorded: true, fresh: false, work: Work::Listed(listed) })
}

fn list(ops: Vec<Op>, ends: &[(u32, u32)], starts: &[(u32, u32)]) -> RankList {
    let places = (0..ops.len() as u64).map(|op| op + 10).collect();
    RankList::new(ops, places, ends, starts)
}

/// Plays a graph whose messages take a microsecond; the ends of the steps, and who waits at the end.
fn play(graph: &Arc<JobGraph>) -> (Vec<RankStep>, Vec<String>) {
    let mut player = Player::new(graph.clone(), |_| true);
    let (mut out, mut steps, mut heap) = (Vec::new(), Vec::new(), BinaryHeap::new());
    player.begin(Time::ZERO, &mut out);
    let mut now = Time::ZERO;
    loop {
        for effect in out.drain(..) {
            match effect {
                Effect::Send { number, .. } => {
                    heap.push(std::cmp::Reverse((now + Time::from_us(1), 0, number, 0)));
                    heap.push(std::cmp::Reverse((now + Time::from_us(2), 1, number, 0)));
                }
                Effect::Wake { rank, op, at } => heap.push(std::cmp::Reverse((at, 2, rank, op))),
                Effect::Step(step) => steps.push(step),
                Effect::Blocked(_) => {}
            }
        }
        let Some(std::cmp::Reverse((at, what, first, second))) = heap.pop() else { break };
        now = at;
        match what {
            0 => player.arrived(first, now, &mut out),
            1 => player.acknowledged(first, now, &mut out),
            _ => player.woken(first, second, now, &mut out),
        }
    }
    (steps, waits::text(&player.waits(), true, waits::LISTED))
}

const fn us(count: u64) -> Time {
    Time::from_us(count)
}

fn send(to: u32, tag: u32) -> Op {
    Op::Send { to, bytes: 8, tag }
}

fn receive(from: u32, tag: u32) -> Op {
    Op::Receive { from: Some(from), bytes: 8, tag: Some(tag) }
}

#[test]
fn operations_wait_for_ends_and_starts_and_streams_compute_side_by_side() {
    let compute = |count, stream| Op::Compute { time: us(count), stream };
    let ranks = vec![
        // The send leaves when the second computation has started, not ended.
        list(vec![compute(5, 0), compute(7, 0), compute(3, 1), send(1, 7)], &[], &[(1, 3)]),
        list(vec![receive(0, 7), compute(10, 0)], &[(0, 1)], &[]),
    ];
    let (steps, waiting) = play(&graph(ranks, vec![], vec![]));
    assert!(waiting.is_empty());
    let ends: Vec<_> = steps.iter().map(|step| (step.rank, step.end, step.exposed)).collect();
    // One stream does two of them one after the other.
    assert_eq!(ends, [(0, Some(us(12)), us(0)), (1, Some(us(16)), us(6))]);
}

#[test]
fn messages_that_come_before_their_receives_wait_for_them() {
    let ranks = vec![
        list(vec![send(1, 1), send(1, 2)], &[], &[]),
        list(
            vec![Op::Compute { time: us(9), stream: 0 }, receive(0, 2), receive(0, 1)],
            &[(0, 1), (1, 2)],
            &[],
        ),
    ];
    let (steps, waiting) = play(&graph(ranks, vec![], vec![]));
    assert!(waiting.is_empty());
    assert_eq!(steps.iter().map(|step| step.end).max(), Some(Some(us(9))));
}

#[test]
fn ranks_that_wait_for_each_other_are_named_with_their_tags() {
    let ranks = vec![
        list(vec![receive(2, 5), send(1, 3)], &[(0, 1)], &[]),
        list(vec![receive(0, 3), send(2, 4)], &[(0, 1)], &[]),
        list(vec![receive(1, 4), send(0, 5)], &[(0, 1)], &[]),
    ];
    let (steps, waiting) = play(&graph(ranks, vec![], vec![]));
    assert!(steps.is_empty());
    assert_eq!(waiting[0], "ranks 0 -> 2 -> 1 -> 0 wait for each other");
    assert_eq!(waiting[1], "rank 0 waits to receive from rank 2, tag 5 (line 10)");
    assert_eq!(waiting.len(), 4);
}

#[test]
fn a_message_with_another_tag_is_named_with_the_receive() {
    let ranks = vec![list(vec![send(1, 3)], &[], &[]), list(vec![receive(0, 4)], &[], &[])];
    let (_, waiting) = play(&graph(ranks, vec![], vec![]));
    let text = "rank 1 waits to receive from rank 0, tag 4 (line 10); a message of rank 0 with tag 3 waits for \
                a receive";
    assert_eq!(waiting, [text]);
}

#[test]
fn collective_operations_among_some_ranks_end_for_each_of_them() {
    let asked = Asked::plain(Kind::AllReduce, 2, 100, Rate(0));
    let law = RingParameters.phases(&asked).expect("a ring").remove(0).only();
    let instance = Instance { law, kind: Kind::AllReduce, bytes: 100, group: 0 };
    let joins = || Op::Collective { instance: 0 };
    let ranks = vec![
        list(vec![joins()], &[], &[]),
        list(vec![], &[], &[]),
        list(vec![Op::Compute { time: us(4), stream: 0 }, joins()], &[(0, 1)], &[]),
    ];
    let (steps, waiting) = play(&graph(ranks, vec![Group::new(vec![0, 2])], vec![instance]));
    assert!(waiting.is_empty());
    let own: Vec<_> = steps.iter().filter(|s| s.step == 1).map(|s| (s.rank, s.start, s.end)).collect();
    // When rank 2 joins it has the first part of rank 0 already, and sends both of its messages; rank 0
    // answers.
    assert_eq!(own, [(0, us(0), Some(us(5))), (2, us(4), Some(us(6)))]);
    assert_eq!(steps.iter().filter(|step| step.step == 0).count(), 3);
}

#[test]
fn an_operation_that_waits_for_itself_is_found() {
    let ops = vec![send(1, 0); 4];
    let cycle = list(ops.clone(), &[(0, 1), (1, 2), (2, 3), (3, 1)], &[]).cycle();
    assert_eq!(cycle.map(|ops| ops.len()), Some(3));
    assert_eq!(list(ops, &[(0, 1), (1, 2)], &[(0, 3)]).cycle(), None);
}
