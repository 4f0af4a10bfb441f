//! Flows listed in the scenario, one table each: src, dst, size, and start, after, compute, deadline.

use super::WorkloadParameters;
use super::spec::{Window, WorkloadContext, WorkloadError};
use super::trace::HostOf;
use super::{FlowSource, Trace, TraceRow};
use crate::doc::SchemeDoc;
use crate::parameters::{Parameters, Value, describe, unknown};
use crate::units::{Bytes, Time};

const HELP: &str = "List of tables with src, dst, size, and optionally start, after (indices in this list, \
                    from 0), compute, deadline (as start: from the start of the workload), group.";
const KEYS: &[&str] = &["src", "dst", "size", "start", "after", "compute", "deadline", "group"];

/// The flows, in the order of their start.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowsSpec {
    /// Each with its index in the list.
    flows: Vec<(usize, TraceRow)>,
}

impl WorkloadParameters for FlowsSpec {
    const DOC: SchemeDoc = SchemeDoc {
        name: "flows",
        title: "flows listed in the scenario",
        source: "weftline's definition",
        validation: "Flows in any order that wait for each other (workload/flows.rs); the laws are tested with \
             such flows.",
        ..SchemeDoc::NONE
    };
    const LISTS_FLOWS: bool = true;

    fn read(p: &mut Parameters) -> FlowsSpec {
        let list = p.list("flows", HELP);
        let mut flows = Vec::new();
        match list.as_deref() {
            None | Some([]) => {
                let example = "flows = [{ src = 0, dst = 1, size = \"1MB\" }]";
                p.complain("flows", format!("expected at least one flow, such as {example}"));
            }
            Some(list) => {
                for (place, value) in list.iter().enumerate() {
                    match read_flow(value, &flows) {
                        Ok(flow) => flows.push(flow),
                        Err(message) => {
                            p.complain("flows", format!("flow {place}: {message}"));
                            return FlowsSpec { flows: Vec::new() };
                        }
                    }
                }
            }
        }
        FlowsSpec { flows: by_start(flows) }
    }

    fn source(&self, cx: &WorkloadContext, window: Window) -> Result<Box<dyn FlowSource>, WorkloadError> {
        let rows = self.flows.iter().map(|(_, row)| row.clone());
        let hosts = HostOf { by_id: &|label| cx.host(label).ok(), by_name: cx.host_named };
        let trace = Trace::from_rows(rows, "flows", hosts).map_err(|error| {
            let place = error.row.and_then(|row| self.flows.get(row)).map(|(place, _)| *place);
            let message = error.message.replace("size_bytes", "size").replace("row", "flow");
            WorkloadError::new(
                "flows",
                match place {
                    Some(place) => format!("flow {place}: {message}"),
                    None => message,
                },
            )
        })?;
        Ok(trace.source(cx, window))
    }
}

/// Sorts by start, and updates the indices in `after`. A flow that waits for another one starts no earlier
/// than that, so it remains after it.
fn by_start(flows: Vec<TraceRow>) -> Vec<(usize, TraceRow)> {
    let mut flows: Vec<(usize, TraceRow)> = flows.into_iter().enumerate().collect();
    flows.sort_by_key(|(_, flow)| flow.start_ps);
    let mut new_place = vec![0; flows.len()];
    for (new, (old, _)) in flows.iter().enumerate() {
        new_place[*old] = new as i64;
    }
    for earlier in flows.iter_mut().flat_map(|(_, flow)| &mut flow.after) {
        *earlier = new_place[*earlier as usize];
    }
    flows
}

/// Reads a flow; `before`: the flows listed before it.
fn read_flow(value: &Value, before: &[TraceRow]) -> Result<TraceRow, String> {
    let Value::Table(entries) = value else {
        return Err(format!("expected a table with src, dst and size, found {}", describe(value)));
    };
    let mut row = TraceRow { src: -1, dst: -1, ..TraceRow::default() };
    for (key, value) in entries {
        match key.as_str() {
            "src" => row.src = host(key, value)?,
            "dst" => row.dst = host(key, value)?,
            "size" => row.size_bytes = size(value)?,
            "start" => row.start_ps = time(key, value)?,
            "compute" => row.compute_ps = time(key, value)?,
            "deadline" => row.deadline_ps = Some(time(key, value)?),
            "after" => row.after = after(value, before.len())?,
            "group" => row.group = Some(group(value)?),
            _ => return Err(unknown("key", key, KEYS.iter().copied())),
        }
    }
    let given = |key: &str| entries.iter().any(|(name, _)| name == key);
    if let Some(missing) = ["src", "dst", "size"].into_iter().find(|key| !given(key)) {
        return Err(format!("{missing} is missing"));
    }
    let earliest = row.after.iter().map(|&place| before[place as usize].start_ps).max();
    row.start_ps = row.start_ps.max(earliest.unwrap_or(0));
    Ok(row)
}

fn host(key: &str, value: &Value) -> Result<i64, String> {
    let id = match value {
        Value::Integer(id) => Some(*id),
        Value::Text(text) => text.strip_prefix("host").unwrap_or(text).parse().ok(),
        _ => None,
    };
    id.ok_or_else(|| format!("{key}: expected a host's id, found {}", describe(value)))
}

fn size(value: &Value) -> Result<i64, String> {
    let Value::Text(text) = value else {
        return Err(format!("size: expected a size such as \"1MB\", found {}", describe(value)));
    };
    // A size is below 2^62.
    text.parse::<Bytes>().map(|size| size.0 as i64).map_err(|e| format!("size: {e}"))
}

fn time(key: &str, value: &Value) -> Result<i64, String> {
    let Value::Text(text) = value else {
        return Err(format!("{key}: expected a time such as \"10us\", found {}", describe(value)));
    };
    // A time is below 2^62.
    text.parse::<Time>().map(|time| time.0 as i64).map_err(|e| format!("{key}: {e}"))
}

fn group(value: &Value) -> Result<String, String> {
    match value {
        Value::Text(name) => Ok(name.clone()),
        other => Err(format!("group: expected a name, found {}", describe(other))),
    }
}

/// Indices in the list, all less than `place`.
fn after(value: &Value, place: usize) -> Result<Vec<i64>, String> {
    let list = match value {
        Value::List(list) => &list[..],
        single => std::slice::from_ref(single),
    };
    let earlier = |value: &Value| match value {
        Value::Integer(earlier) if (0..place as i64).contains(earlier) => Ok(*earlier),
        other => {
            Err(format!("after: expected the index of an earlier flow, from 0, found {}", describe(other)))
        }
    };
    list.iter().map(earlier).collect()
}

#[cfg(test)]
mod tests;
