//! `[measure]`: what a run records in addition to its flows. What is not requested costs nothing.

use super::capture;
use super::network::Network;
use super::section::Section;
use crate::compat::Rules;
use crate::config::{IdealFct, MeasureConfig, PortSet, Sampled};
use crate::parameters::{Source, Value, describe};
use crate::units::Time;
use std::ops::RangeInclusive;

const GOODPUT: &str = "payload delivered to receivers, by group or by flow: transports that deliver messages count a byte when it first \
                       arrives, the others in order";
pub const GOODPUT_BY: &[(&str, &str)] =
    &[("group", "one series per group of flows"), ("flow", "one series per flow of `flows`")];

pub const IDEALS: &[(&str, &str)] = &[
    (
        "alone",
        "a lower bound: the time of the flow alone on the network as configured, with headers, telemetry and the last ACK",
    ),
    (
        "hpcc",
        "the HPCC authors': base RTT plus all bytes with 48 B headers at the bottleneck; a faster flow counts as 1",
    ),
    ("phost", "the pHost authors' OPT: whole packets, with the last ACK; a flow can be faster"),
    ("delivery", "as alone, but only until the last byte is at the receiver: without the last ACK"),
];

/// Shorter than any packet: smaller intervals are slips of the unit.
const SHORTEST_INTERVAL: Time = Time::from_ns(10);

/// Reads `[measure]`; `network` none: the topology is wrong, and ports cannot be looked up.
pub fn read(section: &mut Section, network: Option<&Network>, rules: &Rules) -> MeasureConfig {
    let every = Time::from_us(10);
    let mut measure = MeasureConfig {
        ideal: ideal(section, rules),
        queue_series: ports(section, "queues", every, network),
        queue_histogram: ports(section, "queue_histogram", Time::from_us(1), network),
        utilisation: ports(section, "utilisation", every, network),
        port_events: ports(section, "port_events", every, network),
        disciplines: ports(section, "disciplines", every, network),
        ..MeasureConfig::default()
    };
    goodput(section, &mut measure);
    measure.controllers = asked(section, "controllers", sampled_flows).flatten();
    flags(section, &mut measure);
    measure.capture = capture::read(section, network);
    measure
}

/// The keys of one measure, if the scenario asks for it.
fn asked<T>(section: &mut Section, key: &str, read: impl FnOnce(&mut Section) -> T) -> Option<T> {
    let is_asked = section.peek(key).is_some();
    let mut table = section.child(key);
    is_asked.then(|| {
        let found = read(&mut table);
        section.absorb(key, table);
        found
    })
}

/// What is switched on and has no more to say.
fn flags(section: &mut Section, measure: &mut MeasureConfig) {
    let help = "record every PFC pause and resume as a row";
    measure.pauses = section.parameters().flag("pauses", false, help);
    let help = "count the data packets that arrive after a packet of their flow that was sent later";
    measure.reordering = section.parameters().flag("reordering", false, help);
    let help = "count the paths that the packets of each flow take";
    measure.paths = section.parameters().flag("paths", false, help);
    let help = "record when a multipath flow ends: its subflows, the data that each carried, the data sent on two, and the \
                maximum that waited for a gap";
    measure.subflows = section.parameters().flag("subflows", false, help);
}

fn ideal(section: &mut Section, rules: &Rules) -> IdealFct {
    let default = if rules.authors_ideal { "hpcc" } else { "alone" };
    let help = "definition of the ideal completion time for slowdowns; hpcc with like = \"hpcc-ns3\"";
    match section.parameters().choice("ideal", default, IDEALS, help) {
        "hpcc" => IdealFct::Hpcc,
        "phost" => IdealFct::Phost,
        "delivery" => IdealFct::Delivery,
        _ => IdealFct::Alone,
    }
}

/// `key = { ports = "leaf0.*", every = "10us" }`.
fn ports(
    section: &mut Section,
    key: &str,
    every: Time,
    network: Option<&Network>,
) -> Option<Sampled<PortSet>> {
    asked(section, key, |table| read_ports(table, every, network)).flatten()
}

/// The keys of one measure of ports.
pub fn read_ports(table: &mut Section, every: Time, network: Option<&Network>) -> Option<Sampled<PortSet>> {
    let patterns = patterns(table, "ports", Some("*"), PORTS_HELP);
    let every = interval(table, every);
    let network = network?;
    let mut what = PortSet::new();
    for pattern in &patterns? {
        match network.topology.ports_matching(pattern) {
            Ok(ports) => what.extend(ports),
            Err(message) => table.complain("ports", message),
        }
    }
    what.sort_unstable();
    what.dedup();
    Some(Sampled { what, every })
}

/// A pattern of ports, or a list of them.
pub fn patterns(
    table: &mut Section,
    key: &'static str,
    default: Option<&str>,
    help: &'static str,
) -> Option<Vec<String>> {
    match table.peek(key) {
        Some(Value::List(_)) => {
            let list = table.parameters().list(key, help).unwrap_or_default();
            texts(table, key, &list)
        }
        _ => Some(vec![table.parameters().text(key, default, help)?]),
    }
}

const PORTS_HELP: &str = "which ports, as a pattern or a list of them: \"leaf0.*\" (all of leaf0), \"leaf0.p3\", \
                          \"leaf0->host*\", \"spine?.*\"";

fn texts(table: &mut Section, key: &str, list: &[Value]) -> Option<Vec<String>> {
    let mut texts = Vec::with_capacity(list.len());
    for value in list {
        match value {
            Value::Text(text) => texts.push(text.clone()),
            other => {
                let found = describe(other);
                table.complain(key, format!("expected patterns such as \"leaf0.*\", found {found}"));
                return None;
            }
        }
    }
    Some(texts)
}

fn interval(table: &mut Section, default: Time) -> Time {
    let every = table.parameters().time("every", default, "time between two samples");
    if every < SHORTEST_INTERVAL {
        table.complain("every", format!("{every} is too short: expected at least {SHORTEST_INTERVAL}"));
    }
    every
}

fn goodput(section: &mut Section, measure: &mut MeasureConfig) {
    asked(section, "goodput", |table| {
        if table.parameters().choice("by", "group", GOODPUT_BY, GOODPUT) == "flow" {
            measure.flow_goodput = sampled_flows(table);
        } else {
            measure.group_goodput = Some(interval(table, Time::from_us(10)));
        }
    });
}

fn sampled_flows(table: &mut Section) -> Option<Sampled<Vec<u32>>> {
    let what = flows(table);
    // Read even if the flows are wrong: a key that is never read is reported as unknown.
    let every = interval(table, Time::from_us(10));
    what.map(|what| Sampled { what, every })
}

/// `flows = [0, 5]`: numbers of flows, in the order of their start.
fn flows(table: &mut Section) -> Option<Vec<u32>> {
    let list = table
        .parameters()
        .list("flows", "numbers of flows, counted from 0 in order of their start, or ranges such as \"0-9\"");
    let Some(list) = list else {
        if table.peek("flows").is_none() {
            table.complain("flows", "missing: expected numbers of flows such as [0, 1]".into());
        }
        return None;
    };
    let mut flows = Vec::with_capacity(list.len());
    for value in &list {
        match value {
            Value::Integer(number) if u32::try_from(*number).is_ok() => flows.push(*number as u32),
            other => match range(other) {
                Some(range) => flows.extend(range),
                None => {
                    let found = describe(other);
                    let message = format!(
                        "expected numbers of flows such as [0, 1] or [\"0-{}\"], found {found}",
                        MAX_WATCHED - 1
                    );
                    table.complain("flows", message);
                    return None;
                }
            },
        }
    }
    flows.sort_unstable();
    flows.dedup();
    Some(flows)
}

/// Maximum number of flows in one range.
const MAX_WATCHED: u32 = 1_000_000;

/// `"0-9"`: ten flows.
fn range(value: &Value) -> Option<RangeInclusive<u32>> {
    let Value::Text(text) = value else { return None };
    let (first, last) = text.split_once('-')?;
    let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    (first <= last && last - first < MAX_WATCHED).then_some(first..=last)
}

/// Declares every key of `[measure]`, for the list of keys.
pub fn declare(section: &mut Section) {
    ideal(section, &Rules::none());
    for key in ["queues", "queue_histogram", "utilisation", "port_events", "disciplines"] {
        let every = if key == "queue_histogram" { Time::from_us(1) } else { Time::from_us(10) };
        let mut table = section.child(key);
        read_ports(&mut table, every, None);
        section.absorb(key, table);
    }
    let mut table = section.child("goodput");
    table.parameters().choice("by", "group", GOODPUT_BY, GOODPUT);
    sampled_flows(&mut table);
    section.absorb("goodput", table);
    let mut table = section.child("controllers");
    sampled_flows(&mut table);
    section.absorb("controllers", table);
    flags(section, &mut MeasureConfig::default());
    capture::declare(section);
}
