//! summary.json: what a run came to, on one page.
//!
//! ```text
//! name, seed, status (done | interrupted | stalled | memory-limit | failed), reason (of the last two), warnings,
//! fingerprint, versions, file_digests (the kind of those in digests.json; absent: there is none)
//! provenance { build, files { "workload.0.sizes": sha256 }, controllers { name: digest } }   what the run was made of; null: unknown
//! end_ns, flows, flows_done, flows_unfinished, flows_not_due, events, packet_hops, bytes_on_wire, telemetry_bytes
//! packets_recirculated, probes, flowlets, ...   the totals that schemes declare, and recirculated_share
//! last_loss_ns   when a packet was last lost on a link or had nowhere to go; null: never
//! receiving { packets, packets_reordered, reordered_share, packets_reordered_behind, packets_held, packets_expired,
//!             most_held_bytes, flows, paths_per_flow }       with resequencing or where it is measured; else null
//! drops, bytes_dropped, packets_lost, bytes_lost, packets_lost_at_random, packets_stranded, bytes_stranded, ecn_marks, pauses, paused_ns, paused_share
//! losses   { data_sent, data_received, data_dropped, ..., timeouts, by_group {name: {..}} }   the counters of data packets
//! cpu_seconds, wall_seconds, packet_hops_per_cpu_second, peak_memory_bytes, memory_limit_bytes,
//! memory_held_bytes (where the limit ended the run)
//! threads, share_alone, threads_ratio, regions, windows, lookahead_ns, balance, most_speedup, crossing_share   how the work was
//!             spread
//! slowdown { count, without, raised_to_1, below_1, p50, p95, p99, mean, max, by_size [..], by_group {name: {..}} }
//! queues   { samples, p50, p95, p99, p999, max }            over all measured ports
//! ports    { "leaf0.p3": {drops, bytes_dropped, packets_lost, bytes_lost, packets_stranded, bytes_stranded, ecn_marks, pauses, paused_ns} }
//! links    { "leaf -> spine": {ports, packets_sent, bytes_sent, drops, ...} }          totals by kind of link
//! drop_causes, cebinae, ... { "s0.p3": {..} }               the tables by port that queue disciplines declare; absent without
//! capture  { packets, bytes, stopped_ns }                   of capture.pcapng; stopped_ns: when it was full, else null
//! failures [ {at_ns, change} ]                              changes up to the end; those drawn, by name
//! memo     { steps_simulated, steps_repeated, why_not }     with run.memo; why a step was not taken for another, the last time
//! jobs     [ {job, start_ns, finish_ns, completion_ns} ]
//! ```
//!
//! `paused_share` is the time that ports were held by PAUSE over the time of all ports. `ports` has those that
//! dropped, lost or were paused.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value, json};
use weftline_sim::counters::{Counter, Counters};
use weftline_sim::describe;
use weftline_sim::measure::{Balance, Ending, LossCounters, Outcome, PortTotals, Receiving};
use weftline_sim::units::{Bytes, Time};

use crate::folder::About;
use crate::names::Names;
use crate::resources::{Resources, peak_memory_bytes};
use crate::slowdown::{self, Finished, Scheme};
use crate::{ResultsError, findings, queues};

/// Bins of `slowdown.by_size`.
const BINS: usize = 10;

/// The summary of a run that ended; percentiles are read from the tables in `dir`.
pub(crate) fn of(
    about: &About,
    names: &Names,
    outcome: &Outcome,
    cost: &Resources,
    dir: &Path,
) -> Result<Value, ResultsError> {
    let status = match outcome.ending {
        Ending::Done => "done",
        Ending::Stalled => "stalled",
        Ending::Interrupted => "interrupted",
        Ending::MemoryLimit { .. } | Ending::MachineFull { .. } | Ending::AddressSpaceFull { .. } => {
            "memory-limit"
        }
    };
    let mut summary = head(about, status, cost);
    let used_up = match outcome.ending {
        Ending::MemoryLimit { held, limit } => Some((held, format!("its limit is {}", megabytes(limit)))),
        Ending::MachineFull { held, left } => {
            Some((held, format!("and the machine had {} left", megabytes(left))))
        }
        Ending::AddressSpaceFull { held, left } => {
            let left = megabytes(left);
            Some((
                held,
                format!(
                    "and the limit of its address space (ulimit -v) left {left}, too little to double a table"
                ),
            ))
        }
        _ => None,
    };
    if let Some((held, rest)) = used_up {
        let reason = format!("the process held {} of memory, {rest}", megabytes(held));
        summary.insert("reason".into(), json!(reason));
        summary.insert("memory_held_bytes".into(), json!(held.0));
    }
    if let Some(silence) = &outcome.silence {
        summary.insert("reason".into(), json!(findings::silent(silence, names)));
    }
    let all = outcome.ports.iter().fold(PortTotals::default(), |all, (_, _, port)| sum(all, port));
    let port_time = outcome.end.as_ns() * outcome.ports.len() as f64;
    let totals = json!({
        "fingerprint": format!("{:016x}", outcome.fingerprint),
        "end_ns": outcome.end.as_ns(),
        "flows": outcome.flows,
        "flows_done": outcome.flows_done,
        "flows_unfinished": outcome.flows.saturating_sub(outcome.flows_done),
        "flows_not_due": outcome.flows_not_due,
        "events": outcome.events,
        "packet_hops": outcome.packet_hops,
        "packet_hops_per_cpu_second":
            (cost.cpu_seconds > 0.0).then(|| (outcome.packet_hops as f64 / cost.cpu_seconds).round()),
        "bytes_on_wire": outcome.bytes_on_wire,
        "telemetry_bytes": outcome.telemetry_bytes,
        "recirculated_share": match outcome.bytes_switched {
            0 => 0.0,
            switched => outcome.counters.get("bytes_recirculated").unwrap_or(0) as f64 / switched as f64,
        },
        "losses": losses(names, outcome),
        "last_loss_ns": outcome.last_loss.map(|time| time.as_ns()),
        "receiving": outcome.receiving.as_ref().map(receiving),
        "paused_share": if port_time > 0.0 { all.paused.as_ns() / port_time } else { 0.0 },
        "slowdown": slowdowns(dir)?,
        "queues": queues::percentiles(&queues::merged(outcome.queues.iter().map(|(_, _, h)| h))),
        "ports": ports(names, outcome),
        "links": links(names, outcome),
        "jobs": outcome.jobs().into_iter().map(|(job, start, finish)| json!({
            "job": job, "start_ns": start.as_ns(), "finish_ns": finish.as_ns(),
            "completion_ns": finish.saturating_sub(start).as_ns(),
        })).collect::<Vec<_>>(),
    });
    if !outcome.waiting.is_empty() {
        summary.insert("waiting".into(), json!(outcome.waiting));
    }
    if let Some(memo) = &outcome.memo {
        let found = json!({ "steps_simulated": memo.simulated, "steps_repeated": memo.repeated, "why_not": memo.why_not });
        summary.insert("memo".into(), found);
    }
    if !names.failures.is_empty() {
        let change = |(at, what): &(Time, String)| json!({ "at_ns": at.as_ns(), "change": what });
        let happened = names.failures.iter().filter(|(at, _)| *at <= outcome.end);
        summary.insert("failures".into(), happened.map(change).collect());
    }
    // Percentiles sort all flows.
    if let Some(peak) = cost.peak_memory_bytes {
        summary
            .insert("peak_memory_bytes".into(), json!(peak_memory_bytes().map_or(peak, |now| now.max(peak))));
    }
    summary.extend(of_schemes(names, outcome));
    let noted = noted_of_slowdowns(&totals["slowdown"]);
    if let Some(Value::Array(warnings)) = summary.get_mut("warnings") {
        warnings.extend(noted.into_iter().map(Value::String));
    }
    for part in [totals, counters(&all)] {
        if let Value::Object(part) = part {
            summary.extend(part);
        }
    }
    Ok(Value::Object(summary))
}

/// What came to the hosts, and in which order.
fn receiving(of: &Receiving) -> Value {
    let share = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
    json!({
        "packets": of.packets,
        "packets_reordered": of.reordered,
        "reordered_share": share(of.reordered, of.packets),
        "packets_reordered_behind": of.reordered_delivered,
        "packets_held": of.held,
        "packets_expired": of.expired,
        "most_held_bytes": of.max_held,
        "flows": of.flows,
        "paths_per_flow": (of.flows > 0).then(|| share(of.paths, of.flows)),
    })
}

/// What became of the data packets of all groups, and of each.
fn losses(names: &Names, outcome: &Outcome) -> Value {
    let counted = |losses: &LossCounters| -> Map<String, Value> {
        losses.each().map(|(counter, value)| (counter.key.to_string(), json!(value))).collect()
    };
    let groups = outcome.losses.iter().enumerate();
    let by_group = groups.map(|(group, losses)| (names.group(group as u16), Value::Object(counted(losses))));
    let mut all = counted(&findings::total(&outcome.losses));
    all.insert("by_group".to_string(), Value::Object(by_group.collect()));
    Value::Object(all)
}

/// What schemes counted: totals of the run, and tables by port.
fn of_schemes(names: &Names, outcome: &Outcome) -> Map<String, Value> {
    let values = |counters: &Counters| {
        let value = |(counter, value): (&Counter, Option<u64>)| match counter.unit {
            "ns" => (counter.key.to_string(), json!(value.map(|time| Time(time).as_ns()))),
            _ => (counter.key.to_string(), json!(value)),
        };
        counters.each().map(value).collect::<Vec<_>>()
    };
    let mut totals = outcome.counters.clone();
    totals.complete(&describe::counters());
    let mut found: Map<String, Value> = totals.iter().flat_map(values).collect();
    for (node, port, counted) in &outcome.disciplines {
        for counters in counted.iter() {
            let table = found.entry(counters.table).or_insert_with(|| json!({}));
            let port = &mut table[names.port(*node, *port)];
            let mut all = port.as_object().cloned().unwrap_or_default();
            all.extend(values(counters));
            *port = Value::Object(all);
        }
    }
    found
}

/// How the work was spread over threads and regions. With one region there is no lookahead.
pub(crate) fn of_balance(balance: &Balance) -> Map<String, Value> {
    let lookahead = (balance.lookahead != Time::MAX).then(|| balance.lookahead.as_ns());
    let of = json!({
        "threads": balance.threads,
        "share_alone": balance.share_alone,
        "threads_ratio": balance.threads_ratio,
        "regions": balance.regions.len(),
        "windows": balance.windows,
        "lookahead_ns": lookahead,
        "balance": balance.busiest_over_mean(),
        "most_speedup": balance.max_speedup(),
        "crossing_share": balance.crossing_share(),
    });
    match of {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// "8012.3 MB", rounded.
fn megabytes(bytes: Bytes) -> String {
    format!("{:.1} MB", bytes.0 as f64 / 1e6)
}

/// The summary of a run that failed.
pub(crate) fn of_failure(about: &About, reason: &str, cost: &Resources) -> Value {
    let mut summary = head(about, "failed", cost);
    summary.insert("reason".into(), json!(reason));
    Value::Object(summary)
}

fn head(about: &About, status: &str, cost: &Resources) -> Map<String, Value> {
    let head = json!({
        "name": about.name,
        "seed": about.seed,
        "status": status,
        "warnings": about.warnings,
        "versions": { "weftline": env!("CARGO_PKG_VERSION") },
        "provenance": about.provenance,
        "cpu_seconds": cost.cpu_seconds,
        "wall_seconds": cost.wall_seconds,
        "peak_memory_bytes": cost.peak_memory_bytes,
        "memory_limit_bytes": about.memory_limit,
    });
    match head {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// Counters that are added up over ports.
fn sum(a: PortTotals, b: &PortTotals) -> PortTotals {
    PortTotals {
        packets_dropped: a.packets_dropped + b.packets_dropped,
        bytes_dropped: a.bytes_dropped + b.bytes_dropped,
        packets_lost: a.packets_lost + b.packets_lost,
        bytes_lost: a.bytes_lost + b.bytes_lost,
        packets_lost_at_random: a.packets_lost_at_random + b.packets_lost_at_random,
        packets_stranded: a.packets_stranded + b.packets_stranded,
        bytes_stranded: a.bytes_stranded + b.bytes_stranded,
        ecn_marks: a.ecn_marks + b.ecn_marks,
        pauses: a.pauses + b.pauses,
        paused: a.paused.saturating_add(b.paused),
        ..a
    }
}

fn counters(port: &PortTotals) -> Value {
    json!({
        "drops": port.packets_dropped,
        "bytes_dropped": port.bytes_dropped,
        "packets_lost": port.packets_lost,
        "bytes_lost": port.bytes_lost,
        "packets_lost_at_random": port.packets_lost_at_random,
        "packets_stranded": port.packets_stranded,
        "bytes_stranded": port.bytes_stranded,
        "ecn_marks": port.ecn_marks,
        "pauses": port.pauses,
        "paused_ns": port.paused.as_ns(),
    })
}

fn ports(names: &Names, outcome: &Outcome) -> Value {
    let reported = |port: &PortTotals| {
        port.packets_dropped + port.packets_lost + port.packets_stranded + port.pauses > 0
    };
    let entries = outcome
        .ports
        .iter()
        .filter(|(_, _, port)| reported(port))
        .map(|(node, number, port)| (names.port(*node, *number), counters(port)));
    Value::Object(entries.collect())
}

/// Totals of the ports by where their links lead from and to: what a port dropped was for its link, what was lost on
/// the way to it for the opposite one.
fn links(names: &Names, outcome: &Outcome) -> Value {
    let mut kinds: BTreeMap<&str, (u64, u64, u64, PortTotals)> = BTreeMap::new();
    for (node, number, port) in &outcome.ports {
        let (ports, packets, bytes, all) = kinds.entry(names.link(*node, *number)).or_default();
        *ports += 1;
        *packets += port.packets_sent;
        *bytes += port.bytes_sent;
        // What was lost was in flight to the port.
        let PortTotals { packets_lost, bytes_lost, packets_lost_at_random, .. } = *port;
        let lost = PortTotals { packets_lost, bytes_lost, packets_lost_at_random, ..PortTotals::default() };
        let own = PortTotals { packets_lost: 0, bytes_lost: 0, packets_lost_at_random: 0, ..*port };
        *all = sum(*all, &own);
        let towards = opposite(names.link(*node, *number), &names.link_kinds);
        let (_, _, _, all) = kinds.entry(towards).or_default();
        *all = sum(*all, &lost);
    }
    let reported = kinds.into_iter().map(|(kind, (ports, packets, bytes, all))| {
        let mut reported = json!({ "ports": ports, "packets_sent": packets, "bytes_sent": bytes });
        if let (Value::Object(reported), Value::Object(more)) = (&mut reported, counters(&all)) {
            reported.extend(more);
        }
        (kind.to_string(), reported)
    });
    Value::Object(reported.collect())
}

/// `spine -> leaf` for `leaf -> spine`.
fn opposite<'a>(kind: &'a str, kinds: &'a [String]) -> &'a str {
    let is_opposite = |other: &&String| {
        other.split_once(" -> ").zip(kind.split_once(" -> ")).is_some_and(|(one, two)| one == (two.1, two.0))
    };
    kinds.iter().find(is_opposite).map_or(kind, |kind| kind)
}

/// Warnings about a run's slowdowns, for comparisons.
fn noted_of_slowdowns(slowdowns: &Value) -> Vec<String> {
    let count = |key: &str| slowdowns[key].as_u64().filter(|&count| count > 0);
    let are = |count: u64| if count == 1 { "1 flow is".to_string() } else { format!("{count} flows are") };
    let mut noted = Vec::new();
    if let Some(without) = count("without") {
        let have = if without == 1 { "1 flow has".to_string() } else { format!("{without} flows have") };
        noted.push(format!(
            "{have} no slowdown, because the network has no path for them: no statistic of slowdowns includes them"
        ));
    }
    if let Some(raised) = count("raised_to_1") {
        noted.push(format!(
            "{} faster than the ideal time of this definition (measure.ideal = \"hpcc\"), which is not a lower bound: their slowdown \
             is set to 1, as its authors do",
            are(raised)
        ));
    }
    if let Some(below) = count("below_1") {
        noted.push(format!(
            "{} faster than the ideal time of this definition (measure.ideal), which is not a lower bound: their slowdown is below 1",
            are(below)
        ));
    }
    noted
}

fn slowdowns(dir: &Path) -> Result<Value, ResultsError> {
    let Finished { points, groups, group, without, raised, below_one } = slowdown::read(dir)?;
    let mut by_group = Map::new();
    for (number, name) in groups.into_iter().enumerate() {
        let of_group = points.iter().zip(&group).filter(|(_, group)| **group as usize == number);
        by_group.insert(name, slowdown::overall(of_group.map(|(point, _)| point.slowdown).collect()));
    }
    let table = slowdown::to_json(&points, Scheme::EqualCount(BINS));
    let mut all = table["overall"].clone();
    all["by_size"] = table["bins"].clone();
    all["by_group"] = Value::Object(by_group);
    all["without"] = json!(without);
    all["raised_to_1"] = json!(raised);
    all["below_1"] = json!(below_one);
    Ok(all)
}
