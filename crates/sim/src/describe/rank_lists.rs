//! What a file of a job or of htsim holds, and the times of a job without a network.

use std::path::Path;

use serde_json::json;

use super::htsim_files::htsim_file;
use crate::workload::graph::Listed;
use crate::workload::graph::listed::Op;
use crate::workload::import::{self, Choices};
use crate::workload::loggops::{self, Machine};

/// Operations that are listed of those that were never done.
const LISTED: usize = 20;

/// Bytes of the messages that ranks send to themselves, which never cross the network.
fn bytes_to_own_ranks(graph: &Listed) -> u64 {
    let sends = (0u32..).zip(&graph.ranks).flat_map(|(rank, list)| list.ops.iter().map(move |op| (rank, op)));
    let own = sends.filter_map(|(rank, op)| match *op {
        Op::Send { to, bytes, .. } if to == rank => Some(bytes),
        _ => None,
    });
    own.fold(0, u64::saturating_add)
}

/// What a file of GOAL, Chakra or htsim holds, as JSON; of a job with `machine` (settings of LogGOPS) also when
/// each rank ends, in ns. `waiting` is what never ends.
pub fn rank_lists(path: &Path, groups: Option<&Path>, machine: Option<&str>) -> Result<String, String> {
    if let Some(found) = htsim_file(path) {
        if machine.is_some() {
            return Err(format!("{}: LogGOPS runs jobs of GOAL or Chakra", path.display()));
        }
        return found.map(|found| found.to_string());
    }
    let machine = machine.map(Machine::read).transpose()?;
    let choices = Choices::default();
    let imported = import::file(path, None, groups, &choices)?;
    let graph = &imported.graph;
    let count = |is: fn(&Op) -> bool| {
        graph.ranks.iter().map(|list| list.ops.iter().filter(|op| is(op)).count()).sum::<usize>()
    };
    let mut found = json!({
        "format": graph.name,
        "ranks": graph.ranks.len(),
        "computations": count(|op| matches!(op, Op::Compute { .. })),
        "sends": count(|op| matches!(op, Op::Send { .. })),
        "receives": count(|op| matches!(op, Op::Receive { .. })),
        "collectives": graph.steps() - graph.wholes(),
        "messages": graph.messages(),
        "bytes": graph.bytes_sent().saturating_add(bytes_to_own_ranks(graph)),
        "assumed": imported.assumed,
    });
    if let Some(machine) = machine {
        if graph.steps() > graph.wholes() {
            return Err(format!("{}: LogGOPS runs sends and receives, not collectives", path.display()));
        }
        let ends = loggops::run(graph, machine);
        let mut waiting: Vec<String> =
            ends.stuck.iter().take(LISTED).map(|&(rank, op)| graph.waiting(rank, op)).collect();
        if ends.stuck.len() > LISTED {
            waiting.push(format!("and {} more operations", ends.stuck.len() - LISTED));
        }
        // A rank with operations that never end has no end.
        let mut rank_ends: Vec<Option<u64>> = ends.ranks.into_iter().map(Some).collect();
        ends.stuck.iter().for_each(|&(rank, _)| rank_ends[rank as usize] = None);
        found["rank_ends_ns"] = json!(rank_ends);
        found["waiting"] = json!(waiting);
    } else if let Some(text) = import::stuck::problem(graph) {
        found["waiting"] = json!([text]);
    }
    Ok(found.to_string())
}
