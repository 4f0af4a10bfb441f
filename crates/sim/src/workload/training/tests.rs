//! Bytes of every group are those of the formulas, and every rank has its share of the computation.

use super::super::graph::listed::{Listed, Op};
use super::super::tests::{Given, text, with_hosts};
use super::*;
use crate::parameters::Value;
use crate::units::{Rate, Time};
use crate::workload::graph::{Effect, Player};
use std::collections::BTreeSet;
use std::sync::Arc;

/// One layer has 12 h^2 = 12 288 parameters; 16 tokens a micro-batch, of 64 bytes each.
const SMALL: &[(&str, i64)] =
    &[("layers", 4), ("hidden", 32), ("sequence", 16), ("vocabulary", 0), ("micro_batches", 4)];

fn spec(keys: &[(&'static str, Value)]) -> (TrainingSpec, Vec<String>) {
    let own = |key: &str| keys.iter().any(|(name, _)| *name == key);
    let small = SMALL.iter().filter(|(key, _)| !own(key)).map(|&(key, value)| (key, Value::Integer(value)));
    let mut given = Given { values: small.chain(keys.iter().cloned()).collect(), ..Given::default() };
    let spec = TrainingSpec::read(&mut Parameters::new(&mut given));
    (spec, given.complaints)
}

fn listed(keys: &[(&'static str, Value)], data: u32) -> (TrainingSpec, Listed) {
    let (spec, complaints) = spec(keys);
    assert!(complaints.is_empty(), "{complaints:?}");
    let listed = with_hosts(64, |cx| {
        lower::lower(&spec, data, Rate::from_gbps(400), &mut cx.stream("training")).expect("a job")
    });
    (spec, listed)
}

/// Collective operations of a rank: (kind, bytes), in its order.
fn operations(listed: &Listed, rank: usize) -> Vec<(Kind, u64)> {
    let of = |op: &Op| match op {
        Op::Collective { instance } => {
            Some((listed.instance(*instance).kind, listed.instance(*instance).bytes))
        }
        _ => None,
    };
    listed.ranks[rank].ops.iter().filter_map(of).collect()
}

fn sent(listed: &Listed, rank: usize) -> u64 {
    let bytes = |op: &Op| if let Op::Send { bytes, .. } = op { *bytes } else { 0 };
    listed.ranks[rank].ops.iter().map(bytes).sum()
}

fn computed(listed: &Listed, rank: usize) -> u64 {
    let time = |op: &Op| if let Op::Compute { time, .. } = op { time.0 } else { 0 };
    listed.ranks[rank].ops.iter().map(time).sum()
}

fn integer(key: &'static str, value: i64) -> (&'static str, Value) {
    (key, Value::Integer(value))
}

#[test]
fn tensor_ranks_reduce_activations_twice_a_layer_forward_and_twice_backward() {
    let (spec, job) = listed(&[integer("tensor", 4)], 1);
    let all = operations(&job, 2);
    assert_eq!(spec.model.activations(), 16 * 32 * 2);
    // 4 layers, 4 micro-batches.
    assert_eq!(all, vec![(Kind::AllReduce, 1024); 4 * 4 * 4]);
    let (_, split) = listed(&[integer("tensor", 4), ("sequence_parallel", Value::Flag(true))], 1);
    let all = operations(&split, 0);
    assert_eq!(all.len(), 2 * 4 * 4 * 4);
    assert_eq!(all[..2], [(Kind::ReduceScatter, 1024), (Kind::AllGather, 1024)]);
    // 2 (n - 1) / n S a rank and operation.
    assert_eq!(job.bytes_sent(), 64 * 2 * 3 * 1024);
    assert_eq!(split.bytes_sent(), job.bytes_sent());
}

#[test]
fn stages_send_activations_forward_and_their_gradients_back() {
    let (_, job) = listed(&[integer("pipeline", 4)], 1);
    // Of 4 micro-batches.
    assert_eq!((0..4).map(|rank| sent(&job, rank)).collect::<Vec<_>>(), [4096, 8192, 8192, 4096]);
    let (_, job) = listed(&[integer("pipeline", 3)], 1);
    let times: Vec<u64> = (0..3).map(|rank| computed(&job, rank)).collect();
    assert_eq!((times[0], times[1]), (2 * times[2], times[2]));
}

#[test]
fn gradients_are_reduced_once_in_buckets() {
    for (bucket, expected) in [("100KB", vec![98_304]), ("40KB", vec![40_000, 40_000, 18_304])] {
        for overlap in [true, false] {
            let keys = [("bucket", text(bucket)), ("overlap", Value::Flag(overlap))];
            let (_, job) = listed(&keys, 8);
            let expected: Vec<_> = expected.iter().map(|&bytes| (Kind::AllReduce, bytes)).collect();
            assert_eq!(operations(&job, 5), expected);
        }
    }
    // The embedding is on the first stage, the output on the last one: 32 x 100 parameters each.
    let (_, job) = listed(&[integer("pipeline", 2), integer("vocabulary", 100)], 4);
    assert_eq!(operations(&job, 0), [(Kind::AllReduce, 2 * 24_576 + 6400)]);
    let (_, sharded) = listed(&[("sharding", text("zero1"))], 4);
    assert_eq!(operations(&sharded, 3), [(Kind::ReduceScatter, 98_304), (Kind::AllGather, 98_304)]);
}

#[test]
fn zero_3_gathers_parameters_of_every_layer_twice_a_micro_batch_and_sends_half_as_much_again_as_zero_1() {
    let sharded = |sharding, batches| {
        let keys =
            [("sharding", text(sharding)), integer("micro_batches", batches), ("bucket", text("15KB"))];
        listed(&keys, 4).1
    };
    for batches in [1, 4] {
        let (first, third) = (sharded("zero1", batches), sharded("zero3", batches));
        // Of n ranks (n - 1) / n of all bytes leave each: twice, or three times a micro-batch.
        assert_eq!(first.bytes_sent(), 4 * 2 * 3 * 98_304 / 4);
        assert_eq!(2 * third.bytes_sent(), 3 * batches as u64 * first.bytes_sent());
    }
    // Each of four layers of 24 576 bytes in two pieces, forward and backward; gradients in buckets.
    let all = operations(&sharded("zero3", 1), 2);
    let of = |kind: Kind| all.iter().filter(|one| one.0 == kind).map(|one| one.1).collect::<Vec<_>>();
    assert_eq!(of(Kind::AllGather), [15_000, 9576].repeat(8));
    assert_eq!(of(Kind::ReduceScatter), [15_000, 15_000, 15_000, 15_000, 15_000, 15_000, 8304]);
    // Of experts among those that have the same.
    let keys =
        [("sharding", text("zero3")), integer("experts", 8), integer("expert", 4), integer("layers", 1)];
    let (_, job) = listed(&[&keys[..], &[integer("micro_batches", 1)]].concat(), 2);
    let gathered: Vec<_> = operations(&job, 0).into_iter().filter(|one| one.0 == Kind::AllGather).collect();
    let (common, own) = ((Kind::AllGather, 4 * 1024 * 2), (Kind::AllGather, 8 * 1024 * 2 * 2));
    assert_eq!(gathered, [common, own, common, own]);
}

/// When a job ends whose messages take no time.
fn ideal(job: Listed) -> u64 {
    let hosts = (0..job.ranks.len() as u32).collect();
    let (seats, flow) = (Seats::ALONE, FlowSpec::default());
    let graph = JobGraph { hosts, seats, flow, recorded: true, fresh: false, work: Work::Listed(job) };
    let mut player = Player::new(Arc::new(graph), |_| true);
    let (mut out, mut due, mut now) = (Vec::new(), BTreeSet::new(), Time::ZERO);
    player.begin(now, &mut out);
    loop {
        for effect in std::mem::take(&mut out) {
            match effect {
                Effect::Send { number, .. } => player.arrived(number, now, &mut out),
                Effect::Wake { rank, op, at } => {
                    due.insert((at, rank, op));
                }
                Effect::Step(_) | Effect::Blocked(_) => {}
            }
        }
        if !out.is_empty() {
            continue;
        }
        let Some((at, rank, op)) = due.pop_first() else { break };
        now = at;
        player.woken(rank, op, now, &mut out);
    }
    assert_eq!(player.unfinished(), 0);
    now.0
}

#[test]
fn interleaved_stages_idle_for_the_formula_of_the_bubble() {
    // Forward and backward of a layer, at 10^9 operations a second.
    let layer = 3 * 1000 * (24 * 16 * 1024 + 4 * 256 * 32);
    for (stages, groups, batches) in
        [(2, 1, 4), (4, 1, 8), (2, 2, 4), (4, 2, 4), (4, 2, 8), (4, 4, 8), (8, 3, 16)]
    {
        let keys = [
            integer("layers", stages * groups),
            integer("pipeline", stages),
            integer("virtual_stages", groups),
            integer("micro_batches", batches),
            ("teraflops", Value::Number(1e-3)),
        ];
        let (_, job) = listed(&keys, 1);
        let alone = batches * groups * layer;
        assert!((0..stages).all(|rank| computed(&job, rank as usize) == alone as u64));
        // (p - 1) / (v m) of the time without a bubble.
        let took = ideal(job) as i64;
        assert_eq!(took - alone, alone * (stages - 1) / (groups * batches), "{stages} {groups} {batches}");
    }
    // Every stage does all of its groups with every micro-batch once forward and once backward.
    for stage in 0..4 {
        let all: Vec<lower::Turn> = lower::turns(4, stage, 3, 8).collect();
        let set: std::collections::HashSet<_> = all.iter().map(|t| (t.forward, t.chunk, t.batch)).collect();
        assert_eq!((all.len(), set.len()), (48, 48));
    }
}

#[test]
fn tokens_are_sent_to_experts_and_back_forward_and_backward() {
    let keys =
        [integer("experts", 8), integer("expert", 4), integer("layers", 1), integer("micro_batches", 1)];
    let (spec, job) = listed(&keys, 2);
    let all = operations(&job, 0);
    assert_eq!(all[..4], [(Kind::AllToAll, 2 * 1024); 4]);
    // 4 h^2 among all 8 replicas, 8 h^2 of two experts among 2.
    assert_eq!(all[4..], [(Kind::AllReduce, 4 * 1024 * 2), (Kind::AllReduce, 8 * 1024 * 2 * 2)]);
    assert_eq!(spec.model.gradients(), (4 * 1024 * 2, 8 * 1024 * 2 * 2));
}

#[test]
fn computation_is_that_of_the_formula_and_slow_ranks_take_longer() {
    let keys =
        [("teraflops", Value::Number(1e-3)), ("slow_ranks", text("1")), ("slow_factor", Value::Number(2.0))];
    let (_, job) = listed(&keys, 2);
    // Three times 24 b s h^2 + 4 b s^2 h of 4 layers and 4 micro-batches, at 10^9 a second.
    let operations = 3 * 16 * (24 * 16 * 1024 + 4 * 256 * 32);
    assert_eq!(computed(&job, 0), operations * 1000);
    assert_eq!(computed(&job, 1), 2 * operations * 1000);
}

#[test]
fn a_job_that_does_not_fit_says_what_it_needs() {
    let refused = |keys: &[(&'static str, Value)]| {
        let (spec, complaints) = spec(keys);
        assert!(complaints.is_empty(), "{complaints:?}");
        let window = Window { start: Time::ZERO, end: Time::MAX, bounded: false };
        with_hosts(16, |cx| spec.source(cx, window).err().expect("an error")).to_string()
    };
    let message = refused(&[integer("tensor", 8), integer("pipeline", 4)]);
    assert!(message.contains("tensor 8 x pipeline 4 x expert 1 x data 1 are 32 ranks"), "{message}");
    assert!(message.contains("hosts have room for 16"), "{message}");
    assert!(refused(&[("slow_ranks", text("16"))]).contains("unknown rank 16"));
    assert!(
        refused(&[integer("steps", 100_000), integer("micro_batches", 1000)]).contains("exceed the limit")
    );
    // 98 304 buckets for each of the ranks, each step.
    let small = [("bucket", text("1B")), integer("steps", 1000)];
    assert!(refused(&small).contains("take a larger bucket"), "{}", refused(&small));
    for (keys, expected) in [
        (vec![integer("pipeline", 5)], "5 stages for 4 layers"),
        (vec![integer("expert", 2)], "no experts"),
        (vec![integer("virtual_stages", 2)], "set pipeline too"),
        (vec![integer("virtual_stages", 3), integer("pipeline", 2)], "6 groups of 4 layers"),
        (
            vec![integer("virtual_stages", 2), integer("pipeline", 2), integer("micro_batches", 3)],
            "3 micro-batches do not fill 2 stages",
        ),
        (vec![("sharding", text("zero2"))], "zero2"),
        (vec![integer("experts", 3), integer("expert", 2)], "cannot share 3 experts"),
        (vec![("slow_ranks", text("3-1"))], "found \"3-1\""),
        (vec![("algorithm", text("pairwise"))], "unknown value \"pairwise\""),
        (vec![("algorithm", text("tree")), ("sharding", text("zero1"))], "does not reduce gradients"),
    ] {
        let (_, complaints) = spec(&keys);
        assert!(complaints.iter().any(|complaint| complaint.contains(expected)), "{complaints:?}");
    }
}

#[test]
fn an_algorithm_that_cannot_reduce_among_these_replicas_is_named() {
    let (spec, _) = spec(&[("algorithm", text("halving-doubling")), ("sharding", text("zero1"))]);
    let lowered = with_hosts(3, |cx| {
        lower::lower(&spec, 3, Rate::from_gbps(400), &mut cx.stream("training")).map(|_| ())
    });
    assert_eq!(lowered.expect_err("three replicas").key, "algorithm");
}
