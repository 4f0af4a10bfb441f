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

mod waiting;

use super::graph::listed::{Listed, Op, RankList};
use super::graph::matching::Matching;
use crate::units::Time;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use waiting::{Group, Line, WaitsFor};

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
        let mut given: Vec<&str> = Vec::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            if let Some((_, named)) = MACHINES.iter().find(|(name, _)| *name == part) {
                if !given.is_empty() {
                    return Err(format!(
                        "{part} replaces what is given before it: name one machine, and first"
                    ));
                }
                machine = *named;
                given.push(part);
                continue;
            }
            let (key, value) = part
                .split_once('=')
                .ok_or_else(|| format!("expected settings such as L=2500,o=1500, or a machine (atlahs-ai, atlahs-hpc), found \"{part}\""))?;
            let key = key.trim();
            if given.contains(&key) {
                return Err(format!("{key} is given twice"));
            }
            given.push(key);
            let number = value.trim().parse::<f64>().ok().filter(|v| *v >= 0.0 && *v <= 1e15);
            let number = number.ok_or_else(|| format!("{key}: expected a number, found \"{value}\""))?;
            let whole = || match number.fract() == 0.0 {
                true => Ok(number as u64),
                false => {
                    Err(format!("{key}: expected a whole number (of ns, S of bytes), found \"{value}\""))
                }
            };
            match key {
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
    /// A group of those that wait: its number.
    Group(u32),
}

/// The places of the first members of lines, the lowest first, each with the number of its line.
type Firsts = BinaryHeap<Reverse<(i64, usize)>>;

/// A group of several lines whose time has come.
#[derive(Default)]
struct Pass {
    lines: Vec<Line>,
    /// The place of what happens now.
    place: i64,
    /// Lines that have not been tried since their first member is first, or since what they wait for changed.
    untried: Firsts,
    /// Lines that wait on, by the time until which they do. One whose place is not that of its line is void.
    waiting: BTreeMap<u64, Firsts>,
    /// The same by rank.
    of_rank: FxHashMap<u32, Vec<(usize, u64)>>,
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
    groups: Vec<Group>,
    /// Groups that are empty.
    unused: Vec<u32>,
    /// By time: the group that was made last for it, if nothing else was made for it since.
    last: FxHashMap<u64, u32>,
    pass: Pass,
    /// Each waits for itself: no groups.
    #[cfg(test)]
    one_by_one: bool,
    /// How often something was tried.
    #[cfg(test)]
    tries: u64,
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
            groups: Vec::new(),
            unused: Vec::new(),
            last: FxHashMap::default(),
            pass: Pass::default(),
            #[cfg(test)]
            one_by_one: false,
            #[cfg(test)]
            tries: 0,
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
                Due::Group(group) => self.group(group, now),
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
        self.end_group(at);
        if !self.last.is_empty() {
            self.last.remove(&at);
        }
        self.made += 1;
        self.due.push(Reverse((at, self.made, due)));
    }

    /// Waits until a time, after all that waits until then.
    fn wait(&mut self, at: u64, waits_for: WaitsFor, due: Due) {
        #[cfg(test)]
        if self.one_by_one {
            return self.make(at, due);
        }
        let group = self.last_group(at);
        group.push(waits_for, due);
    }

    /// Lines wait until a time, after all that waits until then.
    fn wait_on(&mut self, at: u64, lines: Vec<Line>) {
        let group = self.last_group(at);
        group.append(lines);
    }

    /// The group that is the last for a time; made if something else is.
    fn last_group(&mut self, at: u64) -> &mut Group {
        let number = self.last.get(&at).copied().unwrap_or_else(|| {
            let number = self.unused.pop().unwrap_or_else(|| {
                self.groups.push(Group::default());
                self.groups.len() as u32 - 1
            });
            self.make(at, Due::Group(number));
            self.last.insert(at, number);
            number
        });
        &mut self.groups[number as usize]
    }

    /// The time of a group has come.
    fn group(&mut self, number: u32, now: u64) {
        if self.last.get(&now) == Some(&number) {
            self.last.remove(&now);
        }
        let lines = self.groups[number as usize].take();
        self.unused.push(number);
        if lines.len() == 1 { self.line(lines, now) } else { self.lines(lines, now) }
    }

    /// The time of a group of one line has come.
    fn line(&mut self, mut lines: Vec<Line>, now: u64) {
        while let Some(&(_, due)) = lines[0].due.front() {
            if let Err((at, _)) = self.happens(due, now) {
                return self.wait_on(at, lines);
            }
            lines[0].due.pop_front();
        }
    }

    /// The time of a group of several lines has come: the first of each is tried, in order of their places.
    fn lines(&mut self, lines: Vec<Line>, now: u64) {
        let firsts = lines.iter().enumerate().filter_map(|(number, line)| Some((line.first()?, number)));
        self.pass.untried = firsts.map(Reverse).collect();
        self.pass.lines = lines;
        while let Some(Reverse((place, number))) = self.pass.untried.pop() {
            self.pass.place = place;
            let Line { waits_for, due } = &self.pass.lines[number];
            let (rank, Some(&(_, due))) = (waits_for.rank, due.front()) else { continue };
            match self.happens(due, now) {
                Err((at, _)) => {
                    self.pass.waiting.entry(at).or_default().push(Reverse((place, number)));
                    self.pass.of_rank.entry(rank).or_default().push((number, at));
                }
                Ok(()) => {
                    let line = &mut self.pass.lines[number];
                    line.due.pop_front();
                    self.pass.untried.extend(line.first().map(|first| Reverse((first, number))));
                    self.try_again(rank, place);
                }
            }
        }
        self.pass.of_rank.clear();
        for (at, firsts) in std::mem::take(&mut self.pass.waiting) {
            let pass = &mut self.pass;
            let valid =
                firsts.into_iter().filter(|Reverse((first, line))| pass.lines[*line].first() == Some(*first));
            let numbers: Vec<usize> = valid.map(|Reverse((_, line))| line).collect();
            let lines = numbers.into_iter().map(|line| pass.lines[line].take()).collect();
            self.wait_on(at, lines);
        }
        self.pass.lines.clear();
    }

    /// Something has happened at a rank: what waits there, and comes after it, may have to wait until another
    /// time.
    fn try_again(&mut self, rank: u32, place: i64) {
        let Some(waiting) = self.pass.of_rank.get_mut(&rank) else { return };
        let mut waiting = std::mem::take(waiting);
        waiting.retain(|&(number, at)| {
            let waits_for = self.pass.lines[number].waits_for;
            if self.busy_until(&waits_for) == at {
                return true;
            }
            let rest = self.pass.lines[number].split_from(place);
            if let Some(first) = rest.first() {
                self.pass.untried.push(Reverse((first, self.pass.lines.len())));
                self.pass.lines.push(rest);
            }
            false
        });
        self.pass.of_rank.insert(rank, waiting);
    }

    /// Something is to be made for a time: those that wait until then and were tried before come before it.
    fn end_group(&mut self, at: u64) {
        let pass = &mut self.pass;
        let Some(firsts) = pass.waiting.get_mut(&at) else { return };
        let mut before = Vec::new();
        while let Some(&Reverse((first, number))) = firsts.peek()
            && first < pass.place
        {
            firsts.pop();
            let line = &mut pass.lines[number];
            if line.first() == Some(first) {
                before.push(line.split_before(pass.place));
                firsts.extend(line.first().map(|first| Reverse((first, number))));
            }
        }
        if !before.is_empty() {
            self.wait_on(at, before);
        }
    }

    /// Until when something is busy that others wait for.
    fn busy_until(&self, waits_for: &WaitsFor) -> u64 {
        let busy = &self.busy[waits_for.rank as usize];
        let processor = busy.processors.get(&waits_for.processor);
        let nic = match &waits_for.nic {
            Some((true, nic)) => busy.sending.get(nic),
            Some((false, nic)) => busy.receiving.get(nic),
            None => None,
        };
        processor.max(nic).copied().unwrap_or(0)
    }

    /// Something happens, or waits for what is busy until a time.
    fn happens(&mut self, due: Due, now: u64) -> Result<(), (u64, WaitsFor)> {
        #[cfg(test)]
        {
            self.tries += 1;
        }
        match due {
            Due::Op { rank, op } => self.op(rank, op, now),
            Due::Message { from, op } => self.message(from, op, now),
            Due::Group(_) => Ok(()),
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
mod tests;
