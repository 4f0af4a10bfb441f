use super::problem;
use crate::units::Rate;
use crate::workload::graph::listed::{Group, Instance, Listed, Op, RankList, SendEnds};
use crate::workload::import::{Choices, goal};
use crate::workload::loggops::{self, Machine};
use crate::workload::schedule::{
    AlgorithmParameters, Asked, Kind, linear::LinearParameters, ring::RingParameters,
};
use proptest::prelude::*;

fn graph(text: &str) -> Listed {
    goal("f.goal", text.as_bytes(), &Choices::default()).expect("a graph").graph
}

#[test]
fn ranks_that_receive_from_each_other_before_they_send_are_named_with_their_lines() {
    let dead = "num_ranks 2\nrank 0 {\nr: recv 10b from 1 tag 1\ns: send 10b to 1 tag 2\ns requires r\n}\n\
                rank 1 {\nr: recv 10b from 0 tag 2\ns: send 10b to 0 tag 1\ns requires r\n}\n";
    let text = problem(&graph(dead)).expect("a circle");
    let first = "2 ranks wait for each other in a circle, so that the job never ends: ";
    let waits =
        "rank 1 waits to receive from rank 0, tag 2 (line 8); rank 0 waits to receive from rank 1, tag 1";
    assert_eq!(text, format!("{first}{waits} (line 3)"));
    // One of them sends first.
    assert_eq!(problem(&graph(&dead.replacen("s requires r\n", "", 1))), None);
    // Which message a receive of any tag takes depends on the network.
    assert_eq!(problem(&graph(&dead.replace("from 1 tag 1", "from 1 tag -1"))), None);
    // What is missing is reported elsewhere: nobody waits in a circle.
    assert_eq!(problem(&graph("num_ranks 2\nrank 0 {\nrecv 8b from 1\n}\nrank 1 {\ncalc 1\n}\n")), None);
}

/// Two ranks call two operations of this kind among both of them, one rank in the other order.
fn crossed(kind: Kind) -> Listed {
    let asked = Asked::plain(kind, 2, 8, Rate::from_gbps(400));
    let law = || match kind.has_root() {
        true => LinearParameters.phases(&asked).expect("a law").remove(0).only(),
        false => RingParameters.phases(&asked).expect("a law").remove(0).only(),
    };
    let ops = [0, 1].map(|instance| Op::Collective { instance });
    let list = |ops: Vec<Op>| RankList::new(ops, vec![5, 6], &[(0, 1)], &[]);
    let lists = vec![list(ops.to_vec()), list(ops.iter().rev().copied().collect())];
    let instances = [0, 1].map(|group| Instance { law: law(), kind, bytes: 8, group });
    let groups = vec![Group::new(vec![0, 1]); 2];
    let listed = Listed::new(lists, groups, instances.to_vec(), SendEnds::Posted, "chakra");
    listed.expect("few messages").with_places("node")
}

#[test]
fn operations_that_ranks_call_in_another_order_never_end() {
    let text = problem(&crossed(Kind::AllReduce)).expect("a circle");
    let waits = "rank 1 waits for rank 0 to join its all-reduce (node 5); rank 0 waits for rank 1 to join";
    assert!(text.contains(&format!("never ends: {waits}")), "{text}");
    // A gather's senders do not wait for its root to join.
    assert_eq!(problem(&crossed(Kind::Gather)), None);
}

proptest! {
    /// Each message has a tag of its own, so that a machine of LogGOPS, whose sends do not wait, stops where ranks
    /// wait for each other.
    #[test]
    fn a_circle_is_there_where_a_machine_stops(
        messages in proptest::collection::vec((0usize..4, 0usize..4, any::<u16>(), any::<u16>(), any::<bool>()), 1..14),
    ) {
        let mut ranks: [Vec<(u16, String, bool)>; 4] = Default::default();
        for (tag, &(from, to, sent, received, waits)) in messages.iter().enumerate() {
            ranks[from].push((sent, format!("send 8b to {to} tag {tag}"), true));
            ranks[to].push((received, format!("recv 8b from {from} tag {tag}"), waits));
        }
        let mut text = "num_ranks 4\n".to_string();
        for (rank, ops) in ranks.iter_mut().enumerate() {
            ops.sort();
            text += &format!("rank {rank} {{\n");
            for (at, (_, op, waits)) in ops.iter().enumerate() {
                text += &format!("o{at}: {op}\n");
                if *waits && at > 0 {
                    text += &format!("o{at} requires o{}\n", at - 1);
                }
            }
            text += "}\n";
        }
        let graph = graph(&text);
        let eager = Machine { s: 1_000_000, ..Machine::default() };
        let stops = !loggops::run(&graph, eager).stuck.is_empty();
        prop_assert_eq!(problem(&graph).is_some(), stops, "{}", text);
    }
}
