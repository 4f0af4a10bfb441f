//! Laws of every schedule: each rank gets what it must, nothing waits for itself, bytes by formula.

use super::*;
use crate::units::Rate;
use proptest::prelude::*;
use std::collections::VecDeque;

const RATE: Rate = Rate::from_gbps(400);

fn phases(algorithm: &str, asked: &Asked) -> Result<Phases, WorkloadError> {
    let keys = match algorithm {
        "hierarchical" => vec![("domain", crate::parameters::Value::Integer(4))],
        _ => vec![],
    };
    let mut given = crate::workload::tests::Given { values: keys, ..Default::default() };
    Algorithm::read(algorithm, &mut Parameters::new(&mut given)).expect("a known algorithm").phases(asked)
}

fn asked(kind: Kind, ranks: u32, bytes: u64) -> Asked {
    Asked::plain(kind, ranks, bytes, RATE)
}

/// Delivers all messages of a law among n ranks, in an order drawn from `seed`; the numbers of those sent.
fn delivered(law: &Law, n: u32, seed: u64) -> Vec<u32> {
    let mut left: Vec<u32> = (0..law.messages()).map(|message| law.needs(message)).collect();
    let (mut out, mut ready, mut sent) = (Vec::new(), VecDeque::new(), Vec::new());
    (0..n).for_each(|rank| law.opens(rank, &mut out));
    ready.extend(out.drain(..));
    let (mut sends, mut receives) = (vec![0; n as usize], vec![0; n as usize]);
    let mut random = crate::engine::random::RandomStream::new(seed, "schedules");
    while !ready.is_empty() {
        let at = random.below(ready.len() as u64) as usize;
        let message = ready.swap_remove_back(at).unwrap_or_default();
        let transfer = law.transfer(message);
        assert!(transfer.bytes > 0 && transfer.from != transfer.to);
        sent.push(message);
        sends[transfer.from as usize] += 1;
        receives[transfer.to as usize] += 1;
        law.after_arrival(message, &mut out);
        out.iter().for_each(|&next| assert_eq!(law.transfer(next).from, transfer.to));
        let arrived = out.len();
        out.extend(law.after_sending(message));
        let posted = out.len();
        law.after_acknowledgement(message, &mut out);
        assert!(out.len() == posted || law.ends_acknowledged());
        out[arrived..].iter().for_each(|&next| assert_eq!(law.transfer(next).from, transfer.from));
        for next in out.drain(..) {
            assert!(next > message, "messages are numbered behind those that they wait for");
            left[next as usize] -= 1;
            if left[next as usize] == 0 {
                ready.push_back(next);
            }
        }
    }
    for rank in 0..n {
        let counts = (law.sends(rank), law.receives(rank));
        assert_eq!(counts, (sends[rank as usize], receives[rank as usize]), "rank {rank} of {n}");
        if let Some((to, messages, bytes)) = law.sent(rank) {
            let own = sent.iter().map(|&message| law.transfer(message)).filter(|own| own.from == rank);
            assert!(own.clone().all(|own| own.to == to), "rank {rank} of {n}");
            let all = (own.clone().count() as u64, own.map(|own| own.bytes).sum());
            assert_eq!((messages, bytes), all, "rank {rank} of {n}");
        }
    }
    sent
}

proptest! {
    #[test]
    fn every_message_of_every_schedule_is_sent_once(
        n in 2u32..40,
        bytes in 2000u64..100_000,
        channels in 1u32..4,
        chunk in proptest::option::of(64u64..4000),
        root in 0u32..40,
        seed: u64,
    ) {
        for kind in Kind::ALL {
            for algorithm in algorithms(kind) {
                let n = if algorithm == "hierarchical" { n.next_multiple_of(4).max(8) } else { n };
                let root = root % n;
                let Ok(all) = phases(algorithm, &Asked { kind, ranks: n, bytes, channels, chunk, root, rate: RATE, among: None }) else {
                    continue;
                };
                for phase in all {
                    for (law, _) in phase.laws(n) {
                        let members = n / phase.groups.count(n);
                        let mut sent = delivered(law, members, seed);
                        sent.sort_unstable();
                        prop_assert_eq!(sent, (0..phase.largest().messages()).collect::<Vec<_>>());
                        let largest = (0..law.messages()).map(|m| law.transfer(m).bytes).max();
                        // Halves and quarters are larger than the parts that a chunk limits.
                        if let (Some(chunk), false) = (chunk, algorithm.starts_with("halving")) {
                            prop_assert!(largest <= Some(chunk.max(8) + 1) || bytes / u64::from(channels * n) <= chunk);
                        }
                    }
                }
            }
        }
    }
}

/// Bytes that each rank sends.
fn sent_by(law: &Law, n: u32) -> Vec<u64> {
    let mut bytes = vec![0; n as usize];
    (0..law.messages()).map(|m| law.transfer(m)).for_each(|t| bytes[t.from as usize] += t.bytes);
    bytes
}

#[test]
fn ranks_send_the_bytes_of_the_formulas() {
    let s = 3 * 5 * 7 * 16 * 1024;
    for n in [2u64, 4, 7, 8, 15, 16] {
        let bytes = |algorithm: &str, kind: Kind| {
            let all = phases(algorithm, &asked(kind, n as u32, s)).expect("a schedule");
            sent_by(all[0].largest(), n as u32)
        };
        let once = (n - 1) * s / n;
        assert_eq!(bytes("ring", Kind::AllReduce), vec![2 * once; n as usize]);
        assert_eq!(bytes("ring", Kind::ReduceScatter), vec![once; n as usize]);
        assert_eq!(bytes("ring", Kind::AllGather), vec![once; n as usize]);
        assert_eq!(bytes("linear", Kind::AllToAll), vec![once; n as usize]);
        assert_eq!(bytes("pairwise", Kind::AllToAll), vec![once; n as usize]);
        assert_eq!(bytes("tree", Kind::Broadcast).iter().sum::<u64>(), (n - 1) * s);
        assert_eq!(bytes("double-tree", Kind::AllReduce).iter().sum::<u64>(), 2 * (n - 1) * s);
        if n.is_power_of_two() {
            assert_eq!(bytes("halving-doubling", Kind::AllReduce), vec![2 * once; n as usize]);
        } else {
            let (core, whole) = (1 << n.ilog2(), bytes("halving-doubling", Kind::AllReduce));
            assert_eq!(whole[n as usize - 1], s);
            assert_eq!(whole[0], 2 * (core - 1) * s / core + s);
        }
    }
}

#[test]
fn a_hierarchical_all_reduce_sends_its_part_along_the_rails() {
    let s = 1 << 20;
    let all = phases("hierarchical", &asked(Kind::AllReduce, 32, s)).expect("a schedule");
    let bytes: Vec<u64> = all.iter().map(|p| sent_by(p.largest(), 32 / p.groups.count(32))[0]).collect();
    assert_eq!(bytes, [3 * s / 4, 2 * 7 * (s / 4) / 8, 3 * s / 4]);
    assert_eq!(all.iter().map(|p| p.inside).collect::<Vec<_>>(), [true, false, true]);
    let refused = phases("hierarchical", &asked(Kind::AllReduce, 30, s)).expect_err("30 is not divisible");
    assert_eq!(
        refused.message,
        "30 ranks are not two or more domains of 4: give ranks that `domain` divides"
    );
}

/// Bytes that each of n ranks sends and gets in a phase.
fn moved(phase: &Phase, n: u32) -> (Vec<u64>, Vec<u64>) {
    let (mut sent, mut got) = (vec![0; n as usize], vec![0; n as usize]);
    for group in 0..phase.groups.count(n) {
        let law = phase.law(group);
        for transfer in (0..law.messages()).map(|message| law.transfer(message)) {
            sent[phase.groups.rank(group, transfer.from) as usize] += transfer.bytes;
            got[phase.groups.rank(group, transfer.to) as usize] += transfer.bytes;
        }
    }
    (sent, got)
}

proptest! {
    /// Four a domain. What a rank has of its domain is what it brings to its rail, to the byte.
    #[test]
    fn hierarchical_operations_lose_no_byte(
        nodes in 2u32..6,
        bytes in 200u64..20_000,
        channels in 1u32..4,
        chunk in proptest::option::of(50u64..4000),
        halves: bool,
    ) {
        let (g, n) = (4, 4 * nodes);
        let halves = halves && nodes.is_power_of_two();
        let own = hierarchical::HierarchicalParameters { domain: Some(g), halves };
        let of = |kind| own.phases(&Asked { channels, chunk, ..asked(kind, n, bytes) });
        let s = bytes;
        let total = |phase: &Phase| moved(phase, n).0.iter().sum::<u64>();
        // A chunk of few bytes may leave a rail less than it needs.
        let Ok(all) = of(Kind::AllReduce) else { return Ok(()) };
        let (once, rails) = (u64::from(nodes) * u64::from(g - 1) * s, u64::from(nodes - 1) * s);
        prop_assert_eq!(all.iter().map(total).collect::<Vec<_>>(), [once, 2 * rails, once]);
        let reduces: Vec<u64> = of(Kind::ReduceScatter).expect("phases").iter().map(total).collect();
        prop_assert_eq!(reduces, [once, rails]);
        let gathers: Vec<u64> = of(Kind::AllGather).expect("phases").iter().map(total).collect();
        prop_assert_eq!(gathers, [rails, once]);
        // Rank i does not send part i when it reduces, and gets all but part i when it gathers: what it has
        // of its domain is the data of its rail.
        let rail = |i: u32| total_of(all[1].law(i)) / u64::from(2 * (nodes - 1));
        for rank in 0..n {
            prop_assert_eq!(s - moved(&all[0], n).0[rank as usize], rail(rank % g));
            prop_assert_eq!(s - moved(&all[2], n).1[rank as usize], rail(rank % g));
        }
        // All-to-all: a rank brings to its rail what it gets of the others of its domain, and its own.
        let all = of(Kind::AllToAll).expect("phases");
        prop_assert_eq!(all.iter().map(total).sum::<u64>(), once + u64::from(g) * rails);
        for rank in 0..n {
            let of_each = moved(&all[0], n).1[rank as usize] / u64::from(g - 1);
            let of_rail = total_of(all[1].law(rank % g)) / u64::from(nodes - 1);
            prop_assert_eq!(of_each * u64::from(g), of_rail);
        }
    }
}

fn total_of(law: &Law) -> u64 {
    (0..law.messages()).map(|message| law.transfer(message).bytes).sum()
}

#[test]
fn rails_of_unequal_parts_have_as_many_messages() {
    // 8003 bytes among four: 2001, 2001, 2001 and 2000, and chunks of 1000 bytes among two domains.
    let all = phases("hierarchical", &Asked { chunk: Some(1000), ..asked(Kind::AllReduce, 8, 8003) });
    let rails = &all.expect("phases")[1];
    let bytes: Vec<u64> = (0..4).map(|rail| total_of(rails.law(rail)) / 2).collect();
    assert_eq!(bytes, [2001, 2001, 2001, 2000]);
    assert!((0..4).all(|rail| rails.law(rail).messages() == 8));
}

#[test]
fn in_a_double_tree_the_edges_of_all_but_two_ranks_are_even() {
    let all = phases("double-tree", &asked(Kind::AllReduce, 16, 1 << 20)).expect("a schedule");
    let bytes = sent_by(all[0].largest(), 16);
    // A rank inside one tree sends S/2 up and twice S/2 down, and S/2 as a leaf of the other.
    let largest = bytes.iter().max().copied().unwrap_or(0);
    assert!(largest <= 2 * (1 << 20), "{bytes:?}");
}

#[test]
fn every_channel_of_a_double_tree_carries_both_trees() {
    for (n, channels) in [(7, 2), (8, 2), (8, 3), (16, 4)] {
        let whole = Asked { channels, chunk: Some(1000), ..asked(Kind::AllReduce, n, 960_000) };
        let all = phases("double-tree", &whole).expect("a schedule");
        let law = all[0].largest();
        let (mut sent, mut connections) = (vec![vec![0; channels as usize]; n as usize], [0; 64]);
        for transfer in (0..law.messages()).map(|message| law.transfer(message)) {
            sent[transfer.from as usize][(transfer.channel % channels) as usize] += transfer.bytes;
            connections[transfer.channel as usize] += 1;
        }
        // The trees share no connection.
        assert_eq!(connections.iter().filter(|&&messages| messages > 0).count(), 2 * channels as usize);
        for of_rank in &sent {
            let (min, max) = (of_rank.iter().min(), of_rank.iter().max());
            assert_eq!(min, max, "{n} ranks, {channels} channels: {sent:?}");
        }
    }
}
