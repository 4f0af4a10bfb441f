use super::*;
use crate::workload::graph::listed::SendEnds;
use crate::workload::import::{Choices, goal};
use proptest::prelude::*;

fn graph(text: &str) -> Listed {
    let choices =
        Choices { send_ends: SendEnds::Posted, control: false, stream_order: false, roofline: None };
    goal("test.goal", text.as_bytes(), &choices).expect("a graph").graph
}

/// Operations of a rank, and of them what requires one before it.
fn rank(number: usize, ops: &[(String, Option<(usize, bool)>)]) -> String {
    let mut text = format!("rank {number} {{\n");
    for (at, (op, _)) in ops.iter().enumerate() {
        text += &format!("l{at}: {op}\n");
    }
    for (at, (_, requires)) in ops.iter().enumerate() {
        if let Some((of, start)) = requires.filter(|_| at > 0) {
            let word = if start { "irequires" } else { "requires" };
            text += &format!("l{at} {word} l{}\n", of % at);
        }
    }
    text + "}\n"
}

proptest! {
    /// Times and bytes are few, so that much is due at once.
    #[test]
    fn groups_change_no_time(
        ops in proptest::collection::vec(
            (0usize..4, 0usize..3, 0u8..3, 1u64..4, proptest::option::of((any::<usize>(), any::<bool>())), 0u8..2),
            1..60,
        ),
        (l, o, g, big_g, big_o, s) in (0u64..3, 0u64..3, 0u64..3, 0u32..3, 0u32..2, 0u64..4),
    ) {
        let mut ranks = vec![Vec::new(); 4];
        for (from, step, tag, size, requires, cpu) in ops {
            let to = (from + 1 + step) % 4;
            if tag == 2 {
                ranks[from].push((format!("calc {size} cpu {cpu}"), requires));
                continue;
            }
            ranks[from].push((format!("send {size}b to {to} tag {tag} cpu {cpu}"), requires));
            ranks[to].push((format!("recv {size}b from {from} tag {tag} cpu {cpu}"), requires));
        }
        let lists: String = ranks.iter().enumerate().map(|(number, ops)| rank(number, ops)).collect();
        let graph = graph(&format!("num_ranks 4\n{lists}"));
        let machine = Machine { l, o, g, big_g: big_g.into(), big_o: big_o.into(), s };
        let mut single = Run::new(&graph, machine);
        single.one_by_one = true;
        prop_assert_eq!(run(&graph, machine), single.play());
    }
}

#[test]
fn what_waits_for_a_busy_processor_is_not_tried_again_each_time() {
    const MESSAGES: usize = 100_000;
    let sends = "send 9b to 1\n".repeat(MESSAGES);
    let receives = "recv 9b from 0\n".repeat(MESSAGES);
    let graph = graph(&format!("num_ranks 2\nrank 0 {{\n{sends}}}\nrank 1 {{\n{receives}}}\n"));
    let mut run = Run::new(&graph, Machine { l: 10, o: 3, g: 1, big_g: 0.0, big_o: 0.0, s: 100 });
    let ends = run.play();
    // Sends, receives and messages, and a queue each time that one of them is next.
    assert!(run.made < 6 * MESSAGES as u64, "{}", run.made);
    // The receiver posts its receives at 0, and takes a message each 3 ns from 13 ns on.
    assert_eq!(ends.ranks, [3 * MESSAGES as u64, 13 + 3 * MESSAGES as u64]);
}

/// Tries of a graph, and of the same where each waits for itself; both have the same ends.
fn tries(graph: &Listed, machine: Machine) -> (u64, u64) {
    let (mut grouped, mut single) = (Run::new(graph, machine), Run::new(graph, machine));
    single.one_by_one = true;
    assert_eq!(grouped.play(), single.play());
    (grouped.tries, single.tries)
}

/// A graph in which ranks send to those of a list, one message after the other, and receive from any.
fn sends(ranks: usize, to: impl Fn(usize) -> Vec<usize>) -> Listed {
    let mut received = vec![0; ranks];
    (0..ranks).flat_map(&to).for_each(|to| received[to] += 1);
    let mut text = format!("num_ranks {ranks}\n");
    for (rank, count) in received.iter().enumerate() {
        text += &format!("rank {rank} {{\n");
        to(rank).iter().for_each(|to| text += &format!("send 9b to {to}\n"));
        text += &"recv 9b from -1\n".repeat(*count);
        text += "}\n";
    }
    graph(&text)
}

#[test]
fn many_that_send_to_few_are_tried_a_few_times_each() {
    const RANKS: usize = 200;
    for machine in [Machine { l: 10, o: 3, g: 1, big_g: 0.0, big_o: 0.0, s: 100 }, Machine::default()] {
        // To one, to two by turns, and all to all; in these many ranks receive at the same times.
        let one = sends(RANKS, |rank| if rank > 0 { vec![0] } else { vec![] });
        let two = sends(RANKS, |rank| if rank > 1 { vec![rank % 2, (rank + 1) % 2] } else { vec![] });
        let all = |n: usize| sends(n, |rank| (1..n).map(|step| (rank + step) % n).collect());
        for graph in [one, two, all(RANKS / 4), all(RANKS / 2)] {
            let (grouped, single) = tries(&graph, machine);
            let messages = u64::from(graph.messages());
            assert!(grouped < 12 * messages, "{messages} messages: {grouped} of {single} tries");
        }
    }
}

#[test]
fn a_parameter_of_a_machine_is_given_once_and_after_its_name() {
    let error = |text: &str| Machine::read(text).expect_err("refused");
    assert_eq!(error("L=1,L=2"), "L is given twice");
    assert_eq!(error("L=1, L =1"), "L is given twice");
    assert!(error("L=1,atlahs-ai").starts_with("atlahs-ai replaces what is given before it"));
    assert!(error("atlahs-hpc,atlahs-ai").starts_with("atlahs-ai replaces what is given before it"));
    assert!(Machine::read("atlahs-ai,L=1,G=2").is_ok());
}
