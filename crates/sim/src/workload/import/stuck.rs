//! Whether ranks wait for each other for ever, whatever the network does.
//!
//! The operations are played without times: computations and sends end at once, a receive when its message
//! has been sent, and a collective operation when all of its ranks have joined. If it has a root, some of its
//! ranks do not wait for all others: such an operation ends at once, so that nothing is reported that may end
//! in a run.

use super::super::graph::listed::{Listed, Op};
use super::super::graph::matching::Matching;
use super::super::graph::waits::{self, Wait};
use rustc_hash::FxHashMap;

/// Operations that are played at most: longer files are not looked at.
const MAX_OPS: usize = 4_000_000;
/// Ranks of which the text states what they wait for.
const LISTED: usize = 3;

/// The ranks that wait for each other, and for what the first of them wait. None: there are no such ranks, or
/// some receive takes messages of any source or tag, so that it depends on the network which one it takes.
pub fn problem(graph: &Listed) -> Option<String> {
    let any = |op: &Op| matches!(op, Op::Receive { from, tag, .. } if from.is_none() || tag.is_none());
    let all: usize = graph.ranks.iter().map(|list| list.ops.len()).sum();
    if all > MAX_OPS || graph.ranks.iter().flat_map(|list| &list.ops).any(any) {
        return None;
    }
    let mut play = Play::new(graph);
    play.run();
    let waits = play.waits();
    let cycle = waits::cycle(&waits)?;
    let count = cycle.len() - 1;
    let texts = cycle[1..].iter().filter_map(|rank| waits.iter().find(|wait| wait.rank == *rank));
    let mut texts: Vec<String> = texts.take(LISTED).map(|wait| wait.text.clone()).collect();
    if count > LISTED {
        texts.push(format!("and {} more", count - LISTED));
    }
    let texts = texts.join("; ");
    Some(match count {
        1 => format!("a rank waits for itself, so that the job never ends: {texts}"),
        _ => format!("{count} ranks wait for each other in a circle, so that the job never ends: {texts}"),
    })
}

/// What is done next.
#[derive(Clone, Copy)]
enum Task {
    Start { rank: u32, op: u32 },
    End { rank: u32, op: u32 },
}

struct Play<'g> {
    graph: &'g Listed,
    needs: Vec<Vec<u32>>,
    /// Operations of each rank that have not ended.
    left: Vec<u32>,
    matching: Vec<Matching>,
    /// The ranks that have joined a collective operation which has not ended, each with its own operation.
    joined: FxHashMap<u32, Vec<(u32, u32)>>,
    tasks: Vec<Task>,
}

impl<'g> Play<'g> {
    fn new(graph: &'g Listed) -> Play<'g> {
        let mut tasks = Vec::new();
        for (rank, list) in (0..).zip(&graph.ranks) {
            let free = (0..).zip(&list.needs).filter(|one| *one.1 == 0);
            tasks.extend(free.map(|(op, _)| Task::Start { rank, op }));
        }
        // The last one is taken first.
        tasks.reverse();
        Play {
            graph,
            needs: graph.ranks.iter().map(|list| list.needs.clone()).collect(),
            left: graph.ranks.iter().map(|list| list.ops.len() as u32).collect(),
            matching: graph.ranks.iter().map(|_| Matching::default()).collect(),
            joined: FxHashMap::default(),
            tasks,
        }
    }

    fn run(&mut self) {
        while let Some(task) = self.tasks.pop() {
            match task {
                Task::Start { rank, op } => self.start(rank, op),
                Task::End { rank, op } => {
                    self.left[rank as usize] -= 1;
                    self.free(rank, self.graph.ranks[rank as usize].after_end.of(op));
                }
            }
        }
    }

    fn free(&mut self, rank: u32, waiting: &[u32]) {
        for &op in waiting {
            let left = &mut self.needs[rank as usize][op as usize];
            *left -= 1;
            if *left == 0 {
                self.tasks.push(Task::Start { rank, op });
            }
        }
    }

    fn start(&mut self, rank: u32, op: u32) {
        let list = &self.graph.ranks[rank as usize];
        let ends = match list.ops[op as usize] {
            Op::Compute { .. } | Op::Wait { .. } | Op::StepEnd => true,
            Op::Send { to, tag, .. } => {
                if let Some(receive) = self.matching[to as usize].arrive(rank, tag, op) {
                    self.tasks.push(Task::End { rank: to, op: receive });
                }
                true
            }
            Op::Receive { from, tag, .. } => self.matching[rank as usize].post((from, tag), op).is_some(),
            Op::Collective { instance } if self.graph.instance(instance).kind.has_root() => true,
            Op::Collective { instance } => {
                let joined = self.joined.entry(instance).or_default();
                joined.push((rank, op));
                if joined.len() == self.graph.members(instance).len() {
                    let all = self.joined.remove(&instance).unwrap_or_default();
                    self.tasks.extend(all.into_iter().map(|(rank, op)| Task::End { rank, op }));
                }
                false
            }
        };
        if ends {
            self.tasks.push(Task::End { rank, op });
        }
        self.free(rank, list.after_start.of(op));
    }

    /// What each rank that has not ended waits for: its oldest receive, or the first rank that has not joined
    /// an operation.
    fn waits(&self) -> Vec<Wait> {
        let mut in_operations: FxHashMap<u32, u32> = FxHashMap::default();
        for (&instance, joined) in &self.joined {
            for &(rank, _) in joined {
                let first = in_operations.entry(rank).or_insert(instance);
                *first = instance.min(*first);
            }
        }
        let ranks = (0u32..).zip(&self.left).filter(|one| *one.1 > 0).map(|one| one.0);
        ranks.filter_map(|rank| self.receive(rank).or_else(|| self.operation(rank, &in_operations))).collect()
    }

    fn receive(&self, rank: u32) -> Option<Wait> {
        let ((from, tag), op) = self.matching[rank as usize].waiting().into_iter().next()?;
        let (from, tag) = (from?, tag?);
        let place = self.graph.place_of(rank, op).map_or(String::new(), |place| format!(" ({place})"));
        let text = format!("rank {rank} waits to receive from rank {from}, tag {tag}{place}");
        Some(Wait { rank, of: Some(from), text })
    }

    fn operation(&self, rank: u32, in_operations: &FxHashMap<u32, u32>) -> Option<Wait> {
        let &instance = in_operations.get(&rank)?;
        let joined = self.joined.get(&instance)?;
        let members = self.graph.members(instance);
        let other = *members.iter().find(|member| joined.iter().all(|one| one.0 != **member))?;
        let &(_, op) = joined.iter().find(|one| one.0 == rank)?;
        let kind = self.graph.instance(instance).kind.name();
        let place = self.graph.place_of(rank, op).map_or(String::new(), |place| format!(" ({place})"));
        let text = format!("rank {rank} waits for rank {other} to join its {kind}{place}");
        Some(Wait { rank, of: Some(other), text })
    }
}

#[cfg(test)]
mod tests;
