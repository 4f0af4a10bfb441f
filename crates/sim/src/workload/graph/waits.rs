//! Why a job graph stalls: the operations that wait, by rank and tag, and the ranks that wait for each
//! other.

use super::listed::Op;
use super::player::Player;
use super::{JobGraph, Work};
use crate::workload::schedule::Schedule;

/// Operations that are listed, of all jobs.
pub const LISTED: usize = 20;

/// An operation that waits, and the rank for which it waits, if for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    pub rank: u32,
    pub of: Option<u32>,
    pub text: String,
}

impl Player {
    /// The operations of the ranks here that wait for a message.
    pub fn waits(&self) -> Vec<Wait> {
        let graph = self.graph().clone();
        let mut waits = Vec::new();
        for rank in (0..graph.ranks()).filter(|&rank| self.is_done(rank) == Some(false)) {
            for instance in self.joined(rank) {
                waits.push(self.in_collective(&graph, rank, instance));
            }
            let (Work::Listed(work), Some((receives, unexpected))) = (&graph.work, self.unmatched(rank))
            else {
                continue;
            };
            for op in receives {
                let list = &work.ranks[rank as usize];
                let Op::Receive { from, tag, .. } = list.ops[op as usize] else { continue };
                let source = from.map_or("any rank".to_string(), |from| format!("rank {from}"));
                let tag = tag.map_or("any tag".to_string(), |tag| format!("tag {tag}"));
                let at = work.place_of(rank, op).map_or(String::new(), |place| format!(" ({place})"));
                let other = unexpected.first().map_or(String::new(), |(from, tag)| {
                    format!("; a message of rank {from} with tag {tag} waits for a receive")
                });
                let text = format!("rank {rank} waits to receive from {source}, {tag}{at}{other}");
                waits.push(Wait { rank, of: from, text });
            }
        }
        waits
    }

    fn in_collective(&self, graph: &JobGraph, rank: u32, instance: u32) -> Wait {
        let step = graph.step_of(instance);
        let member = graph.member(instance, rank);
        let operation = graph.shape(step).operation;
        let expected = member.law.receives(member.member);
        let text = format!(
            "rank {rank} waits in step {step}, {operation}, in which it receives {expected} messages"
        );
        Wait { rank, of: None, text }
    }
}

/// The text about a graph that has not ended: the first `listed` of the operations that wait; and if nothing is under way, a
/// cycle of ranks, if there is one. Ranks whose messages are under way, or that compute, wait for each other too.
pub fn text(waits: &[Wait], stands_still: bool, listed: usize) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(cycle) = stands_still.then(|| cycle(waits)).flatten() {
        let ranks: Vec<String> = cycle.iter().map(|rank| rank.to_string()).collect();
        lines.push(format!("ranks {} wait for each other", ranks.join(" -> ")));
    }
    lines.extend(waits.iter().take(listed).map(|wait| wait.text.clone()));
    if waits.len() > listed {
        lines.push(format!("and {} more", waits.len() - listed));
    }
    lines
}

/// Ranks each of which waits for the next, the first of them once more at the end.
pub fn cycle(waits: &[Wait]) -> Option<Vec<u32>> {
    let of = |rank: u32| waits.iter().find(|wait| wait.rank == rank).and_then(|wait| wait.of);
    let mut begins: Vec<u32> = waits.iter().map(|wait| wait.rank).collect();
    begins.sort_unstable();
    begins.dedup();
    for begin in begins.into_iter().take(1000) {
        let mut seen = vec![begin];
        let mut at = begin;
        while let Some(next) = of(at) {
            if let Some(from) = seen.iter().position(|&rank| rank == next) {
                seen.drain(..from);
                seen.push(next);
                return Some(seen);
            }
            seen.push(next);
            at = next;
        }
    }
    None
}
