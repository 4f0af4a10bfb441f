//! `[failures]`: links and switches that go down, come back or change their rate at given times.

use super::network::{HIGHEST_RATE, Network};
use super::section::Section;
use crate::config::{Change, Failure, Failures, LinkLoss};
use crate::engine::random::RandomStream;
use crate::parameters::{Source, Value, describe};
use crate::topology::pattern::PortPatterns;
use crate::topology::{Link, LinkId, NodeId, NodeKind, pattern};
use crate::units::{Rate, Time};
use crate::workload::hosts::draw_to_front;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

pub const CHANGES: &[(&str, &str)] = &[
    ("down", "packets on the link and in its queues are lost"),
    ("up", "it works again"),
    ("rate", "the link runs at another rate"),
];

pub const LOSSES: &[(&str, &str)] = &[
    ("all", "packets of every kind"),
    ("data", "only packets with payload"),
    ("control", "only packets without payload: acknowledgements, requests, tokens, probes"),
    ("probes", "only the probes of load balancers"),
];

/// Reads `[failures]`; `network` none: the topology is wrong, and names cannot be looked up.
pub fn read(section: &mut Section, network: Option<&Network>, seed: u64) -> Failures {
    let help = "time until routes avoid a link or switch that went down, or use one that came back (no published value; loss of \
                signal and an update of the tables)";
    let detection = section.parameters().time("detection", Time::from_us(100), help);
    let mut tables = section.children("event");
    let mut names = network.filter(|_| !tables.is_empty()).map(Names::of);
    let mut events: Vec<Span> = Vec::new();
    for (number, table) in tables.iter_mut().enumerate() {
        // An event draws what it draws, whatever the others are.
        let mut stream = RandomStream::new(seed, &format!("failures.{number}"));
        events.extend(event(table, names.as_mut(), &mut stream));
    }
    section.absorb_list("event", tables);
    if let Some(at) = idle_repair(&events) {
        section.warn(format!(
            "failures.event: change = \"up\" at {at} ends nothing: the link or switch was not down before, or an outage that begins \
             at that time continues"
        ));
    }
    let events = network.map_or_else(Vec::new, |network| changes(&events, network));
    Failures { detection, events, loss: loss(section) }
}

/// What events name, of a network: looked up once for all of them.
pub struct Names<'n> {
    nodes: PortPatterns<'n>,
    /// The links between two nodes, which fail together.
    links: FxHashMap<[NodeId; 2], Vec<LinkId>>,
}

impl<'n> Names<'n> {
    fn of(network: &'n Network) -> Names<'n> {
        let mut links: FxHashMap<[NodeId; 2], Vec<LinkId>> = FxHashMap::default();
        for (link, number) in network.topology.links.iter().zip(0..) {
            links.entry(nodes_at(link)).or_default().push(number);
        }
        Names { nodes: PortPatterns::of(&network.topology), links }
    }

    /// No node has this name.
    fn no_node(&mut self, name: &str) -> String {
        let unknown = self.nodes.unknown_node(name);
        match name.contains('*') {
            true => {
                format!(
                    "{unknown} (* stands for any text only with random = N, which draws N of what matches)"
                )
            }
            false => unknown,
        }
    }
}

/// The nodes at a link, in the order of their numbers.
fn nodes_at(link: &Link) -> [NodeId; 2] {
    [link.a.min(link.b), link.a.max(link.b)]
}

/// A change of a link or switch, and when it ends; none: nothing ends it but an event with `change = "up"`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    at: Time,
    end: Option<Time>,
    change: Change,
}

/// What has its own events: a link or switch that works or not, or a link's rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    Rate(LinkId),
    Link(LinkId),
    Switch(NodeId),
}

impl Subject {
    fn of(change: Change) -> Subject {
        match change {
            Change::LinkRate(link, _) => Subject::Rate(link),
            Change::LinkDown(link) | Change::LinkUp(link) => Subject::Link(link),
            Change::SwitchDown(node) | Change::SwitchUp(node) => Subject::Switch(node),
        }
    }
}

/// The changes that follow from events, which may overlap, whatever their order in the file.
///
/// A link or switch is down while any event that took it down is in force; `change = "up"` ends those that
/// began before it. A link has the rate of the latest event in force, of several that began together the
/// lowest, and without one its own.
fn changes(events: &[Span], network: &Network) -> Vec<Failure> {
    let mut of: BTreeMap<Subject, Vec<Span>> = BTreeMap::new();
    for event in events {
        of.entry(Subject::of(event.change)).or_default().push(*event);
    }
    let mut found = Vec::new();
    for (subject, mut spans) in of {
        spans.sort_by_key(|span| span.at);
        match subject {
            Subject::Rate(link) => rate_changes(link, &spans, network, &mut found),
            Subject::Link(link) => {
                outages(&spans, [Change::LinkDown(link), Change::LinkUp(link)], &mut found)
            }
            Subject::Switch(node) => {
                outages(&spans, [Change::SwitchDown(node), Change::SwitchUp(node)], &mut found)
            }
        }
    }
    // At one time, what goes down does so before anything comes back: no packet passes in between.
    found.sort_by_key(|failure| {
        let comes_back = matches!(failure.change, Change::LinkUp(_) | Change::SwitchUp(_));
        (failure.at, comes_back, Subject::of(failure.change))
    });
    found
}

/// The time of an event that brings back what is not down before it.
fn idle_repair(events: &[Span]) -> Option<Time> {
    let mut outages: BTreeMap<Subject, Vec<Span>> = BTreeMap::new();
    for event in events.iter().filter(|event| event.change.is_down()) {
        outages.entry(Subject::of(event.change)).or_default().push(*event);
    }
    let ends = |up: &Span| {
        let known = outages.get(&Subject::of(up.change)).into_iter().flatten();
        known.into_iter().any(|down| down.at < up.at && down.end.is_none_or(|end| end > up.at))
    };
    let ups = events.iter().filter(|event| matches!(event.change, Change::LinkUp(_) | Change::SwitchUp(_)));
    ups.filter(|up| !ends(up)).map(|up| up.at).min()
}

/// The outages of a link or switch: each lasts until none of its events is in force.
fn outages(spans: &[Span], [down, up]: [Change; 2], found: &mut Vec<Failure>) {
    let ups: Vec<Time> = spans.iter().filter(|span| span.change == up).map(|span| span.at).collect();
    let mut outage: Option<(Time, Time)> = None;
    let mut close = |(from, to)| {
        found.push(Failure { at: from, change: down });
        found.extend((to < Time::MAX).then_some(Failure { at: to, change: up }));
    };
    for span in spans.iter().filter(|span| span.change == down) {
        let repaired = ups.get(ups.partition_point(|&up| up <= span.at)).copied();
        let end = [span.end, repaired].into_iter().flatten().min().unwrap_or(Time::MAX);
        outage = match outage {
            Some((from, to)) if span.at <= to => Some((from, to.max(end))),
            _ => {
                outage.into_iter().for_each(&mut close);
                Some((span.at, end))
            }
        };
    }
    outage.into_iter().for_each(close);
}

/// The rates that a link takes.
fn rate_changes(link: LinkId, spans: &[Span], network: &Network, found: &mut Vec<Failure>) {
    let own = network.topology.links[link as usize].rate;
    let mut turns: BTreeMap<Time, Vec<(usize, bool)>> = BTreeMap::new();
    for (number, span) in spans.iter().enumerate() {
        turns.entry(span.at).or_default().push((number, true));
        span.end.into_iter().for_each(|end| turns.entry(end).or_default().push((number, false)));
    }
    // The last of them is the one that began last, of several the one with the lowest rate.
    let mut in_force: BTreeSet<(Time, Reverse<Rate>, usize)> = BTreeSet::new();
    let mut rate = own;
    for (at, turn) in turns {
        for (number, begins) in turn {
            let span = &spans[number];
            let key = (span.at, Reverse(rate_of(span.change).unwrap_or(own)), number);
            _ = if begins { in_force.insert(key) } else { in_force.remove(&key) };
        }
        let now = in_force.last().map_or(own, |&(_, Reverse(rate), _)| rate);
        if now != rate {
            found.push(Failure { at, change: Change::LinkRate(link, now) });
            rate = now;
        }
    }
}

fn rate_of(change: Change) -> Option<Rate> {
    match change {
        Change::LinkRate(_, rate) => Some(rate),
        _ => None,
    }
}

/// What links lose at random.
fn loss(section: &mut Section) -> Option<LinkLoss> {
    let help = "share of the packets that every link loses at random, except pause frames";
    let share = section.parameters().number("loss", 0.0, (0.0, 0.5), help);
    let help = "which packets links lose at random";
    let kinds = match section.parameters().choice("loss_of", "all", LOSSES, help) {
        "data" => LinkLoss::DATA,
        "control" => !LinkLoss::DATA,
        "probes" => LinkLoss::PROBES,
        _ => LinkLoss::ALL,
    };
    (share > 0.0).then_some(LinkLoss { share, kinds })
}

/// Rates that links take during the run.
pub fn rates(failures: &Failures) -> impl Iterator<Item = Rate> + '_ {
    failures.events.iter().filter_map(|event| rate_of(event.change))
}

/// One `[[failures.event]]`: a change of each of the links or switches that it names or draws.
pub fn event(table: &mut Section, known: Option<&mut Names>, stream: &mut RandomStream) -> Vec<Span> {
    let at = table.parameters().time_or_auto("at", "time of the change; required");
    let change = table.parameters().choice("change", "down", CHANGES, "what happens");
    let help =
        "names of the two ends of a link, such as [\"leaf0\", \"spine1\"]; parallel links fail together";
    let link = table.parameters().list("link", help);
    let switch = table.parameters().text("switch", None, "name of a switch, such as \"spine1\"");
    let rate = table.parameters().rate_or_auto("rate", "with change = \"rate\": the new rate");
    let help = "draw this many from the seed: of the links or switches that the names stand for, in which * is any text, or \
                without names of the links between switches; 0: what is named";
    // Scenarios that do not draw stay as they were when nothing could be drawn: their runs are known by their
    // text.
    let may_have = |table: &Section, key: &str| known.is_none() || table.peek(key).is_some();
    let random = match may_have(table, "random") {
        true => table.parameters().integer("random", 0, (0, 1_000_000), help) as usize,
        false => 0,
    };
    let help = "after this time the event is over: what went down comes back, or the link has its former rate, unless another event \
                is in force; auto: it does not end, and what is down comes back by an event with change = \"up\"";
    let lasts = match may_have(table, "lasts") {
        true => table.parameters().time_or_auto("lasts", help),
        false => None,
    };
    if !table.is_clean() {
        return Vec::new();
    }
    let Some(at) = at else {
        table.complain("at", "missing: expected a time such as \"1ms\"".into());
        return Vec::new();
    };
    match (change, rate) {
        ("rate", None) => table.complain("rate", "missing: change = \"rate\" needs the new rate".into()),
        ("rate", Some(rate)) if rate == Rate(0) || rate > HIGHEST_RATE => {
            let message = format!("expected a rate above zero and at most {HIGHEST_RATE}, found {rate}");
            table.complain("rate", message);
        }
        ("rate", _) | (_, None) => {}
        (other, Some(_)) => {
            table.complain("rate", format!("has no effect with change = \"{other}\""));
        }
    }
    match lasts {
        Some(Time::ZERO) => table.complain("lasts", "must be greater than 0".into()),
        Some(_) if change == "up" => table.complain("lasts", "has no effect with change = \"up\"".into()),
        _ => {}
    }
    let draw = (random > 0).then_some((random, stream));
    let rate = rate.filter(|_| change == "rate");
    let changes = match (link, switch) {
        (Some(ends), None) => link_change(table, Some(&ends), change, rate, known, draw),
        (None, None) if random > 0 => link_change(table, None, change, rate, known, draw),
        (None, Some(name)) => switch_change(table, &name, change, known, draw),
        _ => {
            table.complain_here(
                "expected link = [\"leaf0\", \"spine1\"], switch = \"spine1\" or random = 1".into(),
            );
            Vec::new()
        }
    };
    let end = lasts.map(|time| at.saturating_add(time));
    changes.into_iter().map(|change| Span { at, end, change }).collect()
}

/// How many are drawn, and from which random numbers.
type Draw<'r> = Option<(usize, &'r mut RandomStream)>;

/// The first `count` of the candidates in random order.
fn drawn<T>(
    table: &mut Section,
    mut found: Vec<T>,
    what: &str,
    (count, stream): (usize, &mut RandomStream),
) -> Vec<T> {
    if count > found.len() {
        table.complain("random", format!("{count} of {} {what}", found.len()));
        return Vec::new();
    }
    draw_to_front(&mut found, count, stream);
    found.truncate(count);
    found
}

fn link_change(
    table: &mut Section,
    ends: Option<&[Value]>,
    change: &str,
    rate: Option<Rate>,
    known: Option<&mut Names>,
    draw: Draw,
) -> Vec<Change> {
    let names = match ends {
        None => None,
        Some([Value::Text(a), Value::Text(b)]) => Some([a, b]),
        Some(ends) => {
            let found: Vec<String> = ends.iter().map(describe).collect();
            let message =
                format!("expected two names, such as [\"leaf0\", \"spine1\"], found [{}]", found.join(", "));
            table.complain("link", message);
            return Vec::new();
        }
    };
    let Some(known) = known else { return Vec::new() };
    let topology = known.nodes.topology();
    let change_of = |link: LinkId| match (change, rate) {
        ("rate", Some(rate)) => Change::LinkRate(link, rate),
        ("up", _) => Change::LinkUp(link),
        _ => Change::LinkDown(link),
    };
    if let (None, Some([a, b])) = (&draw, names) {
        let nodes = [a, b].map(|name| {
            let found = known.nodes.find_node(name);
            if found.is_none() {
                table.complain("link", known.no_node(name));
            }
            found
        });
        let [Some(from), Some(to)] = nodes else { return Vec::new() };
        if !table.is_clean() {
            return Vec::new();
        }
        let Some(links) = known.links.get(&[from.min(to), from.max(to)]) else {
            table.complain("link", format!("there is no link between {a} and {b}"));
            return Vec::new();
        };
        return links.iter().copied().map(change_of).collect();
    }
    let node = |id: NodeId| &topology.nodes[id as usize];
    let is_switch = |id: NodeId| node(id).kind == NodeKind::Switch;
    let named = |name: &str, id: NodeId| pattern::fits(name, &node(id).name);
    let joins = |link: &Link| match names {
        Some([a, b]) => (named(a, link.a) && named(b, link.b)) || (named(a, link.b) && named(b, link.a)),
        None => is_switch(link.a) && is_switch(link.b),
    };
    // Links between the same two nodes fail together.
    let mut bundles: Vec<([NodeId; 2], Vec<LinkId>)> = Vec::new();
    let mut place: FxHashMap<[NodeId; 2], usize> = FxHashMap::default();
    for (number, link) in topology.links.iter().enumerate().filter(|(_, link)| joins(link)) {
        let ends = nodes_at(link);
        let at = *place.entry(ends).or_insert_with(|| {
            bundles.push((ends, Vec::new()));
            bundles.len() - 1
        });
        bundles[at].1.push(number as LinkId);
    }
    if let Some(draw) = draw {
        bundles = drawn(table, bundles, "links that the names stand for", draw);
    }
    bundles.into_iter().flat_map(|(_, links)| links).map(change_of).collect()
}

fn switch_change(
    table: &mut Section,
    name: &str,
    change: &str,
    known: Option<&mut Names>,
    draw: Draw,
) -> Vec<Change> {
    if change == "rate" {
        table.complain("change", "a switch has no rate: expected \"down\" or \"up\"".into());
        return Vec::new();
    }
    let Some(known) = known else { return Vec::new() };
    let topology = known.nodes.topology();
    let chosen: Vec<NodeId> = match draw {
        Some(draw) => {
            let nodes = topology.nodes.iter().enumerate();
            let matching = nodes
                .filter(|(_, node)| node.kind == NodeKind::Switch && pattern::fits(name, &node.name))
                .map(|(id, _)| id as NodeId);
            drawn(table, matching.collect(), "switches that the name stands for", draw)
        }
        None => {
            let Some(node) = known.nodes.find_node(name) else {
                table.complain("switch", known.no_node(name));
                return Vec::new();
            };
            if topology.nodes[node as usize].kind != NodeKind::Switch {
                table.complain("switch", format!("{name} is a host: expected the name of a switch"));
                return Vec::new();
            }
            vec![node]
        }
    };
    let change_of = |node| if change == "up" { Change::SwitchUp(node) } else { Change::SwitchDown(node) };
    chosen.into_iter().map(change_of).collect()
}

#[cfg(test)]
mod tests;
