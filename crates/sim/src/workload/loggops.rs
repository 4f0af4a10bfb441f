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
use std::collections::BinaryHeap;

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
    Op { rank: u32, op: u32 },
    Message { from: u32, op: u32 },
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
    needs: Vec<Vec<u32>>,
    done: Vec<Vec<bool>>,
    busy: Vec<Busy>,
    matching: Vec<Matching>,
}

/// Plays a graph without collective operations.
pub fn run(graph: &Listed, machine: Machine) -> Ends {
    let ranks = graph.ranks.len();
    let mut run = Run {
        graph,
        machine,
        due: BinaryHeap::new(),
        made: 0,
        needs: graph.ranks.iter().map(|list| list.needs.clone()).collect(),
        done: graph.ranks.iter().map(|list| vec![false; list.ops.len()]).collect(),
        busy: (0..ranks).map(|_| Busy::default()).collect(),
        matching: (0..ranks).map(|_| Matching::default()).collect(),
    };
    for (rank, list) in graph.ranks.iter().enumerate() {
        for op in (0..list.ops.len()).filter(|&op| list.needs[op] == 0) {
            run.make(0, Due::Op { rank: rank as u32, op: op as u32 });
        }
    }
    while let Some(Reverse((now, _, due))) = run.due.pop() {
        match due {
            Due::Op { rank, op } => run.op(rank, op, now),
            Due::Message { from, op } => run.message(from, op, now),
        }
    }
    run.ends()
}

/// A graph without messages that takes the same times as this one under LogGOPS: every rank computes as long, and ends
/// at the same time. Errors: collective operations, and ranks that wait for ever.
pub fn lasting(graph: &Listed, machine: Machine) -> Result<Listed, String> {
    if graph.steps() > graph.wholes() {
        return Err("LogGOPS runs sends and receives, not collectives".into());
    }
    let ends = run(graph, machine);
    if let Some(&(rank, op)) = ends.stuck.first() {
        let place = graph.place_of(rank, op).unwrap_or_else(|| format!("operation {op}"));
        return Err(format!(
            "{} operations never end under LogGOPS, the first of them {place} of rank {rank}",
            ends.stuck.len()
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

impl Run<'_> {
    fn make(&mut self, at: u64, due: Due) {
        self.made += 1;
        self.due.push(Reverse((at, self.made, due)));
    }

    fn resources(&self, rank: u32, op: u32) -> (u8, u8) {
        self.graph.ranks[rank as usize].resources.get(op as usize).copied().unwrap_or((0, 0))
    }

    fn op(&mut self, rank: u32, op: u32, now: u64) {
        let graph = self.graph;
        let list = &graph.ranks[rank as usize];
        let (cpu, nic) = self.resources(rank, op);
        let Machine { l, o, g, big_g, big_o, s } = self.machine;
        let busy = &mut self.busy[rank as usize];
        let processor = busy.processors.entry(cpu).or_default();
        match list.ops[op as usize] {
            Op::Compute { time, .. } => {
                if *processor > now {
                    let at = *processor;
                    return self.make(at, Due::Op { rank, op });
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
                let nic = busy.sending.entry(nic).or_default();
                let free = (*processor).max(*nic);
                if free > now {
                    return self.make(free, Due::Op { rank, op });
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
                    let at = *processor;
                    return self.make(at, Due::Op { rank, op });
                }
                self.free(rank, list.after_start.of(op), now);
                if let Some(message) = self.matching[rank as usize].post((from, tag), op) {
                    self.matched(rank, op, message, now);
                }
            }
            Op::Collective { .. } | Op::Wait { .. } | Op::StepEnd => {}
        }
    }

    /// A message is at its receiver.
    fn message(&mut self, from: u32, op: u32, now: u64) {
        let Op::Send { to, bytes, tag } = self.graph.ranks[from as usize].ops[op as usize] else { return };
        let (cpu, nic) = self.resources(from, op);
        let Machine { o, g, big_g, big_o, .. } = self.machine;
        let busy = &mut self.busy[to as usize];
        let processor = busy.processors.entry(cpu).or_default();
        let nic = busy.receiving.entry(nic).or_default();
        let free = (*processor).max(*nic);
        if free > now {
            return self.make(free, Due::Message { from, op });
        }
        let rest = (bytes - 1) as f64;
        *processor = later(now, o, rest * big_o.max(big_g));
        *nic = later(now, g, rest * big_g);
        let number = self.graph.number(from, op);
        if let Some(receive) = self.matching[to as usize].arrive(from, tag, number) {
            self.matched(to, receive, number, now);
        }
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
