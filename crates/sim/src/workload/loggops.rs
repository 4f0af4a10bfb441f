//! LogGOPS: a job graph without a network, by the parameters of a machine.
//!
//! ```text
//! calc of time s         its processor is busy for s
//! send of s bytes at t   when processor and NIC are free; the processor is busy for o + (s - 1) O, the NIC, sending,
//!                        for g + (s - 1) G; what requires it is free at t, or, above S bytes, when it is matched
//! it arrives             at t + o + L, and is taken when processor and NIC (receiving) are free: they are busy for
//!                        o + (s - 1) max(O, G) and g + (s - 1) G, and the oldest receive that fits is matched, at
//!                        the beginning of that time
//! receive                is posted when its processor is free; what requires it is free when it is matched
//! ```
//!
//! What is due at one time comes in the order in which it was made. A rank ends when its processors and
//! receiving NICs are free for good.
//!
//! Source: Hoefler, Schneider and Lumsdaine, "LogGOPSim", HPDC 2010, and its code, which computes the same
//! times to the nanosecond (tests). Times are whole nanoseconds.

use super::graph::listed::{Listed, Op, RankList};
use super::graph::matching::Matching;
use crate::units::Time;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// The machine: nanoseconds, and nanoseconds a byte.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Machine {
    /// Latency.
    pub l: u64,
    /// Overhead of a processor for a message.
    pub o: u64,
    /// Gap between messages at a NIC.
    pub g: u64,
    /// Gap per byte.
    pub big_g: f64,
    /// Overhead per byte.
    pub big_o: f64,
    /// Larger messages wait for their receives.
    pub s: u64,
}

/// Machines by name. Source: ATLAHS' scripts for its traces (spcl/atlahs at 8837294).
const MACHINES: [(&str, Machine); 2] = [
    ("atlahs-ai", Machine { l: 3700, o: 200, g: 5, big_g: 0.04, big_o: 0.0, s: 0 }),
    ("atlahs-hpc", Machine { l: 3000, o: 8000, g: 0, big_g: 0.18, big_o: 0.0, s: 256_000 }),
];

impl Default for Machine {
    /// LogGOPSim's own.
    fn default() -> Machine {
        Machine { l: 2500, o: 1500, g: 1000, big_g: 6.0, big_o: 0.0, s: 65_535 }
    }
}

impl Machine {
    /// Reads settings such as `L=2500,o=1500,g=1000,G=6,O=0,S=65535`, laid on the defaults, or on a machine whose name comes
    /// first: `atlahs-ai,S=65535`.
    pub fn read(text: &str) -> Result<Machine, String> {
        let mut machine = Machine::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            if let Some((_, named)) = MACHINES.iter().find(|(name, _)| *name == part) {
                machine = *named;
                continue;
            }
            let (key, value) = part
                .split_once('=')
                .ok_or_else(|| format!("expected settings such as L=2500,o=1500, or a machine (atlahs-ai, atlahs-hpc), found \"{part}\""))?;
            let number = value.trim().parse::<f64>().ok().filter(|v| *v >= 0.0 && *v <= 1e15);
            let number = number.ok_or_else(|| format!("{key}: expected a number, found \"{value}\""))?;
            let whole = || match number.fract() == 0.0 {
                true => Ok(number as u64),
                false => {
                    Err(format!("{key}: expected a whole number (of ns, S of bytes), found \"{value}\""))
                }
            };
            match key.trim() {
                "L" => machine.l = whole()?,
                "o" => machine.o = whole()?,
                "g" => machine.g = whole()?,
                "G" => machine.big_g = number,
                "O" => machine.big_o = number,
                "S" => machine.s = whole()?,
                other => {
                    let meant = ["L", "o", "g", "G", "O", "S"]
                        .into_iter()
                        .find(|key| key.eq_ignore_ascii_case(other));
                    let meant = meant.map_or(String::new(), |key| format!(": did you mean {key}?"));
                    return Err(format!("unknown parameter {other}{meant} (known: L, o, g, G, O, S)"));
                }
            }
        }
        Ok(machine)
    }
}

/// A time in nanoseconds after two others; the last one there is, beyond it.
fn later(now: u64, whole: u64, more: f64) -> u64 {
    now.saturating_add(whole).saturating_add(more as u64)
}

/// When each rank ended and how long it computed, in nanoseconds, and the operations that never ended: (rank, operation).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ends {
    pub ranks: Vec<u64>,
    /// Times at which several processors compute count once.
    pub computed: Vec<u64>,
    pub stuck: Vec<(u32, u32)>,
}

/// What is due at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Op {
        rank: u32,
        op: u32,
    },
    Message {
        from: u32,
        op: u32,
    },
    /// A queue of those that wait for the same: its number.
    Queue(u32),
}

/// What something waits for that is due: the processor of a rank, and none of its NICs, that for sending, or that
/// for receiving.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct WaitsFor {
    rank: u32,
    processor: u8,
    nic: Option<(bool, u8)>,
}

/// Things that are due at one time in this order, nothing else between them, and wait for the same. Of a queue of
/// n only the first is tried at each time, instead of all n.
struct Queue {
    waits_for: WaitsFor,
    due: VecDeque<Due>,
}

/// Resources of a rank: until when each is busy.
#[derive(Default)]
struct Busy {
    processors: FxHashMap<u8, u64>,
    sending: FxHashMap<u8, u64>,
    receiving: FxHashMap<u8, u64>,
    /// Time in which a processor has computed, and until when one does.
    computed: u64,
    computes: u64,
}

struct Run<'g> {
    graph: &'g Listed,
    machine: Machine,
    due: BinaryHeap<Reverse<(u64, u64, Due)>>,
    made: u64,
    queues: Vec<Queue>,
    /// Queues that are empty.
    unused: Vec<u32>,
    /// The queue that was made last, if nothing else was made since, and when it is due.
    open: Option<(u32, u64)>,
    /// Each waits for itself: no queues.
    #[cfg(test)]
    one_by_one: bool,
    needs: Vec<Vec<u32>>,
    done: Vec<Vec<bool>>,
    busy: Vec<Busy>,
    matching: Vec<Matching>,
}

/// Plays a graph without collective operations.
pub fn run(graph: &Listed, machine: Machine) -> Ends {
    Run::new(graph, machine).play()
}

/// A graph without messages that takes the same times as this one under LogGOPS: every rank computes as long, and ends
/// at the same time. Errors: collective operations, and ranks that wait for ever.
pub fn lasting(graph: &Listed, machine: Machine) -> Result<Listed, String> {
    if graph.steps() > graph.wholes() {
        return Err("LogGOPS runs sends and receives, not collectives".into());
    }
    let ends = run(graph, machine);
    if let Some(&(rank, op)) = ends.stuck.first() {
        return Err(format!(
            "{} operations never end under LogGOPS, the first of them of {}",
            ends.stuck.len(),
            graph.waiting(rank, op)
        ));
    }
    let limit = super::spec::LAST_START.0 / 1000;
    if let Some((rank, end)) = ends.ranks.iter().enumerate().find(|(_, end)| **end >= limit) {
        return Err(format!(
            "rank {rank} ends after {} seconds under LogGOPS: the limit is 46 days",
            end / 1_000_000_000
        ));
    }
    let rank = |(&end, &computed): (&u64, &u64)| {
        let compute = Op::Compute { time: Time::from_ns(computed), stream: 0 };
        RankList::new(vec![compute, Op::Wait { time: Time::from_ns(end) }], vec![0; 2], &[], &[])
    };
    let ranks = ends.ranks.iter().zip(&ends.computed).map(rank).collect();
    Listed::new(ranks, Vec::new(), Vec::new(), graph.send_ends, graph.name)
}

impl<'g> Run<'g> {
    fn new(graph: &'g Listed, machine: Machine) -> Run<'g> {
        let ranks = graph.ranks.len();
        Run {
            graph,
            machine,
            due: BinaryHeap::new(),
            made: 0,
            queues: Vec::new(),
            unused: Vec::new(),
            open: None,
            #[cfg(test)]
            one_by_one: false,
            needs: graph.ranks.iter().map(|list| list.needs.clone()).collect(),
            done: graph.ranks.iter().map(|list| vec![false; list.ops.len()]).collect(),
            busy: (0..ranks).map(|_| Busy::default()).collect(),
            matching: (0..ranks).map(|_| Matching::default()).collect(),
        }
    }

    fn play(&mut self) -> Ends {
        for (rank, list) in self.graph.ranks.iter().enumerate() {
            for op in (0..list.ops.len()).filter(|&op| list.needs[op] == 0) {
                self.make(0, Due::Op { rank: rank as u32, op: op as u32 });
            }
        }
        while let Some(Reverse((now, _, due))) = self.due.pop() {
            match due {
                Due::Queue(queue) => self.queue(queue, now),
                due => {
                    if let Err((at, waits_for)) = self.happens(due, now) {
                        self.wait(at, waits_for, due);
                    }
                }
            }
        }
        self.ends()
    }

    fn make(&mut self, at: u64, due: Due) {
        self.open = None;
        self.made += 1;
        self.due.push(Reverse((at, self.made, due)));
    }

    /// Waits until a time, after all that waits until then.
    fn wait(&mut self, at: u64, waits_for: WaitsFor, due: Due) {
        #[cfg(test)]
        if self.one_by_one {
            return self.make(at, due);
        }
        if let Some((open, until)) = self.open
            && until == at
            && self.queues[open as usize].waits_for == waits_for
        {
            return self.queues[open as usize].due.push_back(due);
        }
        let number = self.unused.pop().unwrap_or_else(|| {
            self.queues.push(Queue { waits_for, due: VecDeque::new() });
            self.queues.len() as u32 - 1
        });
        let queue = &mut self.queues[number as usize];
        queue.waits_for = waits_for;
        queue.due.push_back(due);
        self.make(at, Due::Queue(number));
        self.open = Some((number, at));
    }

    /// The time of a queue has come.
    fn queue(&mut self, number: u32, now: u64) {
        while let Some(&due) = self.queues[number as usize].due.front() {
            if let Err((at, _)) = self.happens(due, now) {
                // The others wait for the same, and so as long.
                self.make(at, Due::Queue(number));
                self.open = Some((number, at));
                return;
            }
            self.queues[number as usize].due.pop_front();
        }
        self.unused.push(number);
    }

    /// Something happens, or waits for what is busy until a time.
    fn happens(&mut self, due: Due, now: u64) -> Result<(), (u64, WaitsFor)> {
        match due {
            Due::Op { rank, op } => self.op(rank, op, now),
            Due::Message { from, op } => self.message(from, op, now),
            Due::Queue(_) => Ok(()),
        }
    }

    fn resources(&self, rank: u32, op: u32) -> (u8, u8) {
        self.graph.ranks[rank as usize].resources.get(op as usize).copied().unwrap_or((0, 0))
    }

    fn op(&mut self, rank: u32, op: u32, now: u64) -> Result<(), (u64, WaitsFor)> {
        let graph = self.graph;
        let list = &graph.ranks[rank as usize];
        let (cpu, nic) = self.resources(rank, op);
        let Machine { l, o, g, big_g, big_o, s } = self.machine;
        let busy = &mut self.busy[rank as usize];
        let processor = busy.processors.entry(cpu).or_default();
        let waits_for = WaitsFor { rank, processor: cpu, nic: None };
        match list.ops[op as usize] {
            Op::Compute { time, .. } => {
                if *processor > now {
                    return Err((*processor, waits_for));
                }
                *processor = now.saturating_add(time.0 / 1000);
                let end = *processor;
                // Starts come in the order of time.
                busy.computed += end.saturating_sub(busy.computes.max(now));
                busy.computes = busy.computes.max(end);
                self.free(rank, list.after_start.of(op), now);
                self.ended(rank, op, end);
            }
            Op::Send { bytes, .. } => {
                let waits_for = WaitsFor { nic: Some((true, nic)), ..waits_for };
                let nic = busy.sending.entry(nic).or_default();
                let free = (*processor).max(*nic);
                if free > now {
                    return Err((free, waits_for));
                }
                let rest = (bytes - 1) as f64;
                *processor = later(now, o, rest * big_o);
                *nic = later(now, g, rest * big_g);
                self.make(later(now, o, l as f64), Due::Message { from: rank, op });
                self.free(rank, list.after_start.of(op), now);
                if bytes <= s {
                    self.ended(rank, op, now);
                }
            }
            Op::Receive { from, tag, .. } => {
                if *processor > now {
                    return Err((*processor, waits_for));
                }
                self.free(rank, list.after_start.of(op), now);
                if let Some(message) = self.matching[rank as usize].post((from, tag), op) {
                    self.matched(rank, op, message, now);
                }
            }
            Op::Collective { .. } | Op::Wait { .. } | Op::StepEnd => {}
        }
        Ok(())
    }

    /// A message is at its receiver.
    fn message(&mut self, from: u32, op: u32, now: u64) -> Result<(), (u64, WaitsFor)> {
        let Op::Send { to, bytes, tag } = self.graph.ranks[from as usize].ops[op as usize] else {
            return Ok(());
        };
        let (cpu, nic) = self.resources(from, op);
        let Machine { o, g, big_g, big_o, .. } = self.machine;
        let busy = &mut self.busy[to as usize];
        let processor = busy.processors.entry(cpu).or_default();
        let waits_for = WaitsFor { rank: to, processor: cpu, nic: Some((false, nic)) };
        let nic = busy.receiving.entry(nic).or_default();
        let free = (*processor).max(*nic);
        if free > now {
            return Err((free, waits_for));
        }
        let rest = (bytes - 1) as f64;
        *processor = later(now, o, rest * big_o.max(big_g));
        *nic = later(now, g, rest * big_g);
        let number = self.graph.number(from, op);
        if let Some(receive) = self.matching[to as usize].arrive(from, tag, number) {
            self.matched(to, receive, number, now);
        }
        Ok(())
    }

    /// A message and a receive have met.
    fn matched(&mut self, rank: u32, receive: u32, message: u32, now: u64) {
        self.ended(rank, receive, now);
        if let super::graph::Place::Send { rank: from, op } = self.graph.place(message)
            && let Op::Send { bytes, .. } = self.graph.ranks[from as usize].ops[op as usize]
            && bytes > self.machine.s
        {
            self.ended(from, op, now);
        }
    }

    fn ended(&mut self, rank: u32, op: u32, now: u64) {
        self.done[rank as usize][op as usize] = true;
        let graph = self.graph;
        self.free(rank, graph.ranks[rank as usize].after_end.of(op), now);
    }

    fn free(&mut self, rank: u32, waiting: &[u32], now: u64) {
        for &op in waiting {
            let needs = &mut self.needs[rank as usize][op as usize];
            *needs -= 1;
            if *needs == 0 {
                let (cpu, _) = self.resources(rank, op);
                let free = self.busy[rank as usize].processors.get(&cpu).copied().unwrap_or(0);
                self.make(now.max(free), Due::Op { rank, op });
            }
        }
    }

    fn ends(&self) -> Ends {
        let last = |busy: &Busy| {
            let all = busy.processors.values().chain(busy.receiving.values());
            all.copied().max().unwrap_or(0)
        };
        let mut stuck = Vec::new();
        for (rank, done) in self.done.iter().enumerate() {
            let left = done.iter().enumerate().filter(|(_, done)| !**done);
            stuck.extend(left.map(|(op, _)| (rank as u32, op as u32)));
        }
        let computed = self.busy.iter().map(|busy| busy.computed).collect();
        Ends { ranks: self.busy.iter().map(last).collect(), computed, stuck }
    }
}

#[cfg(test)]
mod tests {
    use super::super::graph::listed::SendEnds;
    use super::super::import::{Choices, goal};
    use super::*;
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
        fn queues_change_no_time(
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
}
