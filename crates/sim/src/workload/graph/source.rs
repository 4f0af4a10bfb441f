//! A job graph as a source of flows: its messages in the order of their numbers, for those who look at the
//! flows of a run without running it. A run plays the graph itself.

use super::super::schedule::Schedule;
use super::super::{FlowSource, FlowSpec, Glance, JobShape, TrafficSize};
use super::{JobGraph, Place, Repeated, Work};
use crate::units::Time;
use rustc_hash::FxHashMap;
use std::sync::{Arc, OnceLock};

/// Largest number of messages of an operation whose order is listed for its ideal time.
pub const LISTED: u32 = 2_000_000;

/// Largest number of messages whose dependencies are listed for those who ask; the run needs no list. Of a larger job an
/// estimate takes a glance, as messages that wait take 200 bytes each there.
const WAITING: u32 = 20_000;

/// Messages under way together that stand for all of them in an estimate.
const WAVE: usize = 200_000;

#[derive(Clone)]
pub struct GraphSource {
    graph: Arc<JobGraph>,
    next: u32,
    /// Flows drawn, and their bytes.
    drawn: (u64, u64),
    /// The first message of each connection.
    openers: FxHashMap<(u32, u32, u32), u32>,
    /// What waits for what, after the first request.
    waits: Arc<OnceLock<Waits>>,
}

/// Empty where there are more messages than are listed.
struct Waits {
    /// How many messages each waits for.
    counts: Vec<u16>,
    pairs: Vec<(u32, u32)>,
}

impl Waits {
    fn of(pairs: Vec<(u32, u32)>) -> Waits {
        let mut counts = vec![0u16; pairs.iter().map(|pair| pair.1 as usize + 1).max().unwrap_or(0)];
        for pair in &pairs {
            let count = &mut counts[pair.1 as usize];
            *count = count.saturating_add(1);
        }
        Waits { counts, pairs }
    }
}

impl GraphSource {
    pub fn new(graph: JobGraph) -> GraphSource {
        let (graph, waits) = (Arc::new(graph), Arc::default());
        GraphSource { graph, next: 0, drawn: (0, 0), openers: FxHashMap::default(), waits }
    }

    fn waits(&self) -> &Waits {
        self.waits.get_or_init(|| {
            let graph = &self.graph;
            let pairs = match &graph.work {
                Work::Repeated(work) if graph.messages() <= WAITING && !work.has_inside() => {
                    pairs(graph, work)
                }
                _ => Vec::new(),
            };
            Waits::of(pairs)
        })
    }
}

/// (message, message that waits for it), sorted: those of the laws, and the first ones of a rank in a phase
/// wait for all that it got in the phase before.
fn pairs(graph: &JobGraph, work: &Repeated) -> Vec<(u32, u32)> {
    let (mut pairs, mut later) = (Vec::new(), Vec::new());
    let mut got: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
    for instance in 0..work.instances() {
        let before = std::mem::take(&mut got);
        let groups = work.phase(instance).groups;
        for rank in 0..graph.ranks() {
            let (group, _) = groups.place(rank);
            let member = graph.member(instance, rank);
            later.clear();
            member.law.opens(member.member, &mut later);
            let ends = before.get(&rank).map_or(&[][..], |ends| ends);
            // More than these would not be looked at.
            if pairs.len() + later.len() * ends.len() > LISTED as usize {
                return Vec::new();
            }
            for &open in &later {
                pairs.extend(ends.iter().map(|&end| (end, member.first + open)));
            }
            // The messages of a group are walked once, by its first member.
            if member.member > 0 {
                continue;
            }
            for message in 0..member.law.messages() {
                let transfer = member.law.transfer(message);
                later.clear();
                member.law.after_arrival(message, &mut later);
                member.law.after_acknowledgement(message, &mut later);
                pairs.extend(later.iter().map(|&next| (member.first + message, member.first + next)));
                let [from, to] = [transfer.from, transfer.to].map(|m| groups.rank(group, m));
                got.entry(to).or_default().push(member.first + message);
                if member.law.awaits_acknowledgements(transfer.from) {
                    got.entry(from).or_default().push(member.first + message);
                }
            }
        }
    }
    pairs.sort_unstable();
    pairs
}

impl FlowSource for GraphSource {
    fn next(&mut self) -> Option<FlowSpec> {
        let (number, message) = loop {
            // What is left, if anything, stays off the network.
            if self.drawn.0 == self.graph.flows() || self.next == self.graph.messages() {
                return None;
            }
            let number = self.next;
            self.next += 1;
            let message = self.graph.message(number);
            if !message.inside {
                break (number, message);
            }
        };
        self.drawn.0 += 1;
        self.drawn.1 += message.bytes;
        let connection = (message.from, message.to, message.channel);
        let opener = *self.openers.entry(connection).or_insert(self.drawn.0 as u32 - 1);
        let opens = |instance| match &self.graph.work {
            Work::Repeated(work) => work.step(instance).0 > 0 && work.step(instance).1,
            Work::Listed(_) => false,
        };
        let compute = match (&self.graph.work, self.graph.place(number)) {
            (Work::Repeated(work), Place::Collective { instance, message, .. })
                if opens(instance) && work.phase(instance).largest().needs(message) == 0 =>
            {
                work.compute
            }
            _ => Time::ZERO,
        };
        let waits_for = self.waits().counts.get(number as usize).copied().unwrap_or(0);
        let (connection, path_of) =
            if self.graph.fresh { (None, Some(opener)) } else { (Some(opener), None) };
        Some(FlowSpec { waits_for, compute, connection, path_of, ..self.graph.flow(&message) })
    }

    fn clone_box(&self) -> Box<dyn FlowSource> {
        Box::new(self.clone())
    }

    fn dependencies(&self) -> Vec<(u32, u32)> {
        self.waits().pairs.clone()
    }

    fn jobs(&self) -> Vec<(u32, u32)> {
        match &self.graph.work {
            Work::Repeated(work) if self.graph.messages() <= LISTED => {
                (0..self.graph.messages()).map(|message| (message, message / work.each())).collect()
            }
            _ => Vec::new(),
        }
    }

    fn job_shape(&self) -> JobShape {
        self.graph.shape(0)
    }

    fn rest(&self) -> Option<TrafficSize> {
        let flows = self.graph.flows() - self.drawn.0;
        let bytes = self.graph.bytes().saturating_sub(self.drawn.1);
        Some(TrafficSize {
            flows,
            bytes,
            last_start: self.graph.flow.start,
            complete: true,
            ..TrafficSize::default()
        })
    }

    fn memory_bytes(&self) -> u64 {
        let waits = self.waits.get().map_or(0, |waits| waits.counts.len() * 2 + waits.pairs.len() * 8);
        let lists = match &self.graph.work {
            Work::Listed(work) => work.memory_bytes(),
            Work::Repeated(_) => 0,
        };
        waits as u64 + lists
    }

    fn graph(&self) -> Option<Arc<JobGraph>> {
        Some(self.graph.clone())
    }

    fn glance(&self) -> Option<Glance> {
        if !self.waits().pairs.is_empty() {
            return None;
        }
        let (numbers, under_way) = self.graph.wave(WAVE);
        let bytes = |&number: &u32| self.graph.message(number).bytes;
        let size = (numbers.len() as u64, numbers.iter().map(bytes).sum());
        let wave = Wave { graph: self.graph.clone(), numbers, next: 0, openers: FxHashMap::default() };
        Some(Glance { source: Box::new(wave), size, under_way, of: (self.graph.flows(), self.graph.bytes()) })
    }
}

/// The messages that are under way together.
#[derive(Clone)]
struct Wave {
    graph: Arc<JobGraph>,
    numbers: Vec<u32>,
    next: u32,
    openers: FxHashMap<(u32, u32, u32), u32>,
}

impl FlowSource for Wave {
    fn next(&mut self) -> Option<FlowSpec> {
        let message = self.graph.message(*self.numbers.get(self.next as usize)?);
        let connection = (message.from, message.to, message.channel);
        let opener = *self.openers.entry(connection).or_insert(self.next);
        self.next += 1;
        Some(FlowSpec { connection: (!self.graph.fresh).then_some(opener), ..self.graph.flow(&message) })
    }

    fn clone_box(&self) -> Box<dyn FlowSource> {
        Box::new(self.clone())
    }
}
