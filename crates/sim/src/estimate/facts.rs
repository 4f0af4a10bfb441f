//! What `weftline check` prints.

use super::offered::Span;
use super::replay::MAX_FLOWS;
use super::shares::{Limiting, Usable};
use super::tiers;
use super::{Estimate, Replay, Work, course, graphs, recurring};
use crate::config::{SwitchConfig, Until};
use crate::net::buffer::{BufferedPort, headroom};
use crate::net::ecn::EcnThreshold;
use crate::parameters::Value as Figure;
use crate::scenario::Scenario;
use crate::scenario::host::nics_of_hosts;
use crate::topology::{NodeId, Topology};
use crate::transport::{TransportConfig, largest_packet};
use crate::units::{Rate, Time};
use crate::workload::merge::MAX_FLOWS as MAX_RUN;
use crate::workload::{AskedLoad, Traffic, TrafficSize};
use serde_json::{Value, json};

/// What the end of a run whose packets are lost does not count, by what loses them.
const LOST: &str = "timeouts of senders whose packets are lost at random or by a failure";
const DROPPED: &str = "timeouts of senders whose packets full queues drop";
const DROPPED_OR_LOST: &str =
    "timeouts of senders whose packets full queues drop, or are lost at random or by a failure";

/// A workload that lasts for this share of the time lasts for all of it.
const ALL_THE_TIME: f64 = 0.995;

/// Returns everything that is known before a run on this number of threads, as `weftline check` prints it.
pub fn facts(scenario: &Scenario, threads: usize) -> Value {
    let (estimate, size) = Estimate::of(scenario, threads, MAX_FLOWS);
    let mut foreseen = estimate.warnings(scenario, &size, scenario.memory);
    foreseen.extend(recurring::warning_if_stalled(scenario, &estimate));
    let not_due = not_due(scenario, &size, &estimate);
    foreseen.extend((not_due > 0).then(|| {
        format!(
            "run.until: {not_due} of {} flows start after the end of the run: no result will cover them",
            size.flows
        )
    }));
    let too_many = too_many(&size);
    let warnings: Vec<&String> = scenario.warnings.iter().chain(&too_many).chain(&foreseen).collect();
    let asked = asked_load(scenario, &size, &estimate.replay);
    let until_ns = match scenario.until {
        Until::At(time) => Some(time.as_ns()),
        Until::FlowsDone { .. } => None,
    };
    let has_jobs = scenario.traffic.sources.iter().any(|source| source.graph().is_some());
    let mut facts = json!({
        "name": scenario.name,
        "seed": scenario.seed,
        "compat": scenario.rules.like,
        "topology": topology_facts(scenario),
        "hosts": host_facts(scenario),
        "transports": scenario.transports.iter().map(|t| transport_facts(scenario, t)).collect::<Vec<_>>(),
        "ecn": ecn_facts(&scenario.switch),
        "pfc": pfc_facts(scenario),
        "traffic": {
            "flows": size.flows,
            "counted_all": size.complete && size.drawn == size.flows,
            "flows_drawn": size.drawn,
            "flows_are_lower_bound": !size.complete,
            "bytes": (!size.is_endless).then_some(size.bytes),
            "last_start_ns": size.last_start.as_ns(),
            "flows_not_due": not_due,
            "offered_load": offered_load(scenario, &size, asked.is_some()),
            "offered_load_asked": asked.as_ref().map(|(asked, ..)| asked),
            "offered_load_error": asked.as_ref().map(|(_, error, _)| error),
            "offered_load_terms": asked.as_ref().map(|(.., terms)| terms),
            "groups": scenario.traffic.groups,
        },
        "run": {
            "until_ns": until_ns,
            "threads": threads,
            "memory_limit_bytes": scenario.memory.map(|limit| limit.0),
        },
        "estimate": estimate_facts(&estimate),
        "warnings": warnings,
    });
    if matches!(scenario.until, Until::FlowsDone { .. }) {
        let failures = &scenario.failures;
        let fails = failures.events.iter().any(|event| event.change.is_down());
        let unknown = scenario.transports.iter().any(|transport| transport.facts().resends.is_none());
        let losses = failures.loss.is_some() || fails && unknown;
        let not_counted = match (has_jobs, scenario.can_drop(), losses) {
            (true, ..) => Some(graphs::NOT_COUNTED),
            (_, true, true) => Some(DROPPED_OR_LOST),
            (_, true, false) => Some(DROPPED),
            (_, false, true) => Some(LOST),
            _ => None,
        };
        if let Some(text) = not_counted {
            facts["estimate"]["end_does_not_count"] = json!(text);
        }
    }
    if scenario.host.packet_time > Time::ZERO {
        facts["host"] = processor_facts(scenario);
    }
    facts
}

/// Warns of more flows than are counted, or than a run has numbers for.
fn too_many(size: &TrafficSize) -> Option<String> {
    let counted = Traffic::MAX_COUNTED;
    if !size.complete {
        return Some(format!(
            "a workload has more than {counted} flows, of which no more are counted: flows, packet-hops, end, time and memory here are \
             lower bounds"
        ));
    }
    (size.flows > u64::from(MAX_RUN)).then(|| {
        format!(
            "{} flows: a run numbers {MAX_RUN} of them and then ends with an error; shorten a workload's duration, or lower \
             its count or load",
            size.flows
        )
    })
}

/// What the time that hosts take for a packet allows.
fn processor_facts(scenario: &Scenario) -> Value {
    let time = scenario.host.packet_time;
    let packets = 1.0 / time.as_seconds();
    let rate = |transport: &TransportConfig| {
        let payload = transport.framing(&scenario.telemetry).payload as f64 * 8.0;
        json!({ "transport": transport.name(), "most_payload_bps": (payload * packets).round() })
    };
    json!({
        "packet_time_ns": time.as_ns(),
        "packets_per_second": packets,
        "full_packets": scenario.transports.iter().map(rate).collect::<Vec<_>>(),
        "counted_in_ideal_times": false,
    })
}

fn topology_facts(scenario: &Scenario) -> Value {
    let (network, standing) = (&scenario.network, course::standing(scenario));
    let topology = &network.topology;
    let mut links: Vec<(Rate, Time, u64)> = Vec::new();
    for link in &topology.links {
        match links.iter_mut().find(|(rate, delay, _)| (*rate, *delay) == (link.rate, link.delay)) {
            Some((_, _, count)) => *count += 1,
            None => links.push((link.rate, link.delay, 1)),
        }
    }
    links.sort_unstable();
    let at_first = standing.as_ref().unwrap_or(network);
    let usable = Usable::of(at_first, Limiting::of(scenario, at_first).brought);
    let link = |&(rate, delay, count): &(Rate, Time, u64)| json!({ "rate_bps": rate.0, "delay_ns": delay.as_ns(), "count": count });
    json!({
        "nodes": topology.nodes.len(),
        "hosts": topology.hosts().len(),
        "extra_hosts": topology.extra_hosts,
        "switches": topology.switches().len(),
        "links": topology.links.len(),
        "kinds_of_link": links.iter().map(link).collect::<Vec<_>>(),
        "diameter_hops": network.diameter(),
        "oversubscription": tiers::oversubscription(at_first, &usable),
    })
}

fn host_facts(scenario: &Scenario) -> Value {
    let nics = nics_of_hosts(&scenario.network);
    let graphs: Vec<_> = scenario.traffic.sources.iter().filter_map(|source| source.graph()).collect();
    json!({
        "nics": nics,
        "nic_policy": (nics > 1).then(|| scenario.host.nic_policy.name()),
        "ranks_per_host": graphs.iter().map(|graph| graph.seats.per_host).max(),
        "gpus_per_node": scenario.network.topology.gpus_per_node,
        "ranks_per_domain": graphs.iter().filter_map(|graph| graph.domain()).max(),
    })
}

fn transport_facts(scenario: &Scenario, transport: &TransportConfig) -> Value {
    let figures = transport.figures(&scenario.run());
    figures
        .iter()
        .map(|(key, value)| (key.to_string(), value.as_ref().map_or(Value::Null, json_of)))
        .collect()
}

fn json_of(figure: &Figure) -> Value {
    match figure {
        Figure::Text(text) => json!(text),
        Figure::Integer(integer) => json!(integer),
        Figure::Number(number) => json!(number),
        Figure::Flag(flag) => json!(flag),
        Figure::List(list) => list.iter().map(json_of).collect(),
        Figure::Table(entries) => entries.iter().map(|(key, value)| (key.clone(), json_of(value))).collect(),
    }
}

fn ecn_facts(switch: &SwitchConfig) -> Vec<Value> {
    let threshold = |t: &EcnThreshold| json!({ "rate_bps": t.rate.0, "kmin_bytes": t.kmin.0, "kmax_bytes": t.kmax.0, "pmax": t.pmax });
    switch.ecn.iter().map(threshold).collect()
}

fn pfc_facts(scenario: &Scenario) -> Value {
    let mut kinds: Vec<(Rate, Time)> =
        scenario.network.topology.links.iter().map(|link| (link.rate, link.delay)).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let packet = largest_packet(&scenario.transports, &scenario.telemetry);
    let headroom = |&(rate, delay): &(Rate, Time)| {
        let bytes = headroom(&BufferedPort { rate, delay }, &scenario.switch.pfc, packet);
        json!({ "rate_bps": rate.0, "delay_ns": delay.as_ns(), "headroom_bytes": bytes })
    };
    json!({
        "enabled": scenario.switch.pfc.enabled,
        "buffer_bytes": scenario.switch.buffer.0,
        "headroom": kinds.iter().map(headroom).collect::<Vec<_>>(),
    })
}

/// Payload bits over the capacity of the hosts' links until the last flow starts, or where there are rounds
/// alone, until the round after the last one would; none if all start at once. Flows that are `drawn` for a
/// load start one interval after the other from the begin on, so that the last one belongs to the time after
/// its start: with it few flows would have a load too high by one of their number.
fn offered_load(scenario: &Scenario, size: &TrafficSize, drawn: bool) -> Option<f64> {
    let capacity = host_capacity(&scenario.network.topology);
    let periods: Option<Vec<Time>> = scenario.traffic.sources.iter().map(|source| source.period()).collect();
    let period = periods.and_then(|periods| periods.into_iter().max()).unwrap_or(Time::ZERO);
    let seconds = size.last_start.saturating_add(period).as_seconds();
    let counted = if drawn { size.flows.saturating_sub(1) as f64 / size.flows.max(1) as f64 } else { 1.0 };
    (size.last_start > Time::ZERO && capacity > 0.0 && !size.is_endless)
        .then(|| counted * size.bytes as f64 * 8.0 / (capacity * seconds))
}

/// Total rate in bit/s of the links of the hosts that workloads use.
fn host_capacity(topology: &Topology) -> f64 {
    let mut used = vec![false; topology.nodes.len()];
    topology.hosts().iter().take(topology.ordinary_hosts()).for_each(|&host| used[host as usize] = true);
    let used = |node: NodeId| used[node as usize];
    let host_links = topology.links.iter().filter(|link| used(link.a) || used(link.b));
    host_links.map(|link| link.rate.0 as f64).sum()
}

/// The load set for the workloads, as a share of the capacity of the hosts' links, the standard deviation of
/// the load of flows drawn for that time, and each workload's load as the scenario has it; none if some
/// workload has no load set. A workload counts for the share of the time that it lasts.
fn asked_load(scenario: &Scenario, size: &TrafficSize, replay: &Replay) -> Option<(f64, f64, Vec<String>)> {
    let sources = &scenario.traffic.sources;
    let asked: Option<Vec<AskedLoad>> = sources.iter().map(|source| source.asked()).collect();
    let asked = asked.filter(|asked| !asked.is_empty())?;
    let capacity = host_capacity(&scenario.network.topology);
    let seconds = size.last_start.as_seconds();
    let share = |span: &Option<Span>| span.map_or(1.0, |span| span.share(size.last_start));
    let shares: Vec<f64> = replay.spans.iter().map(share).collect();
    let (rate, variance) = asked
        .iter()
        .zip(&shares)
        .fold((0.0, 0.0), |sum, (of, share)| (sum.0 + share * of.rate, sum.1 + share * of.variance));
    let term = |(of, share): (&AskedLoad, &f64)| {
        let during = format!(" in {:.2} % of the time", 100.0 * share);
        of.terms.text() + if *share < ALL_THE_TIME { &during } else { "" }
    };
    let terms = asked.iter().zip(&shares).map(term).collect();
    (capacity > 0.0 && seconds > 0.0)
        .then(|| (rate / capacity, (variance / seconds).sqrt() / capacity, terms))
}

/// Flows that would start after the end of the run, which does not count them.
fn not_due(scenario: &Scenario, size: &TrafficSize, estimate: &Estimate) -> u64 {
    match scenario.until {
        Until::At(stop) if stop < size.last_start => size.flows.saturating_sub(estimate.replay.flows),
        _ => 0,
    }
}

pub fn estimate_facts(estimate: &Estimate) -> Value {
    let Estimate { replay, seconds, seconds_on_threads, recurring, if_stalled, memory } = estimate;
    let stalled = |&(end, work): &(Time, Work)| {
        let seconds = seconds - recurring.seconds + work.seconds;
        json!({ "end_ns": end.as_ns(), "seconds": seconds, "series_rows": work.rows })
    };
    json!({
        "packet_hops": (replay.packet_hops + recurring.packet_hops).round(),
        "end_ns": replay.end.as_ns(),
        "end_without_collisions_ns": replay.without_collisions.map(|end| end.as_ns()),
        "end_is_beyond_clock": estimate.is_beyond_clock(),
        "flows_in_flight": replay.flows_in_flight,
        "connections": replay.connections,
        "packets_in_flight": replay.packets_in_flight,
        "seconds": seconds,
        "seconds_on_threads": seconds_on_threads,
        "series_rows": recurring.rows,
        "if_stalled": if_stalled.as_ref().map(stalled),
        "memory_bytes": memory.peak().0,
        "memory": {
            "program_bytes": memory.program,
            "network_bytes": memory.network,
            "routes_bytes": memory.routes,
            "traces_bytes": memory.traces,
            "tables_bytes": memory.tables,
            "packets_bytes": memory.packets,
            "flows_bytes": memory.flows,
            "summary_bytes": memory.summary,
        },
    })
}
