//! Job graphs: GOAL (text or binary), or Chakra traces of two ranks, cut in the middle. What was read is played by LogGOPS to its end.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weftline_sim::workload::import::{Choices, chakra, goal};
use weftline_sim::workload::loggops::{self, Machine};

const MACHINE: &str = "L=2500,o=1500,g=1000,G=6,S=65535";

fuzz_target!(|bytes: &[u8]| {
    let Some((&format, rest)) = bytes.split_first() else { return };
    // Letters of either case have both values of each bit.
    let choices = Choices { control: format & 1 == 1, stream_order: format & 2 == 2, ..Choices::default() };
    let read = if format.is_ascii_lowercase() {
        goal("fuzz.goal", rest, &choices)
    } else {
        let (first, second) = rest.split_at(rest.len() / 2);
        let files = [("fuzz.0.et".to_string(), first.to_vec()), ("fuzz.1.et".to_string(), second.to_vec())];
        chakra::read(&files, &Default::default(), &choices)
    };
    let Ok(imported) = read else { return };
    let graph = imported.graph;
    assert!(graph.ranks.iter().all(|rank| rank.ops.len() == rank.needs.len()));
    // Numbers lead back to what they were given to.
    for number in (0..graph.messages()).take(1000) {
        graph.place(number);
    }
    if let Ok(machine) = Machine::read(MACHINE) {
        loggops::run(&graph, machine);
    }
});
