//! `[failures]`: links and switches that go down, come back or change their rate at given times.

use super::network::{HIGHEST_RATE, Network};
use super::section::Section;
use crate::config::{Change, Failure, Failures, LinkLoss};
use crate::parameters::{Source, Value, describe};
use crate::topology::{LinkId, NodeKind};
use crate::units::{Rate, Time};

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
pub fn read(section: &mut Section, network: Option<&Network>) -> Failures {
    let help = "time until routes avoid a link or switch that went down, or use one that came back (no published value; loss of \
                signal and an update of the tables)";
    let detection = section.parameters().time("detection", Time::from_us(100), help);
    let mut tables = section.children("event");
    let mut events: Vec<Failure> = Vec::new();
    for table in &mut tables {
        events.extend(event(table, network));
    }
    section.absorb_list("event", tables);
    events.sort_by_key(|event| event.at);
    Failures { detection, events, loss: loss(section) }
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
    failures.events.iter().filter_map(|event| match event.change {
        Change::LinkRate(_, rate) => Some(rate),
        _ => None,
    })
}

/// One `[[failures.event]]`: a failure for each of the links that it names.
pub fn event(table: &mut Section, network: Option<&Network>) -> Vec<Failure> {
    let at = table.parameters().time_or_auto("at", "time of the change; required");
    let change = table.parameters().choice("change", "down", CHANGES, "what happens");
    let help =
        "names of the two ends of a link, such as [\"leaf0\", \"spine1\"]; parallel links fail together";
    let link = table.parameters().list("link", help);
    let switch = table.parameters().text("switch", None, "name of a switch, such as \"spine1\"");
    let rate = table.parameters().rate_or_auto("rate", "with change = \"rate\": the new rate");
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
    let changes = match (link, switch) {
        (Some(ends), None) => link_change(table, &ends, change, rate.filter(|_| change == "rate"), network),
        (None, Some(name)) => switch_change(table, &name, change, network).into_iter().collect(),
        _ => {
            table.complain_here(
                "expected either link = [\"leaf0\", \"spine1\"] or switch = \"spine1\"".into(),
            );
            Vec::new()
        }
    };
    changes.into_iter().map(|change| Failure { at, change }).collect()
}

fn link_change(
    table: &mut Section,
    ends: &[Value],
    change: &str,
    rate: Option<Rate>,
    network: Option<&Network>,
) -> Vec<Change> {
    let [Value::Text(a), Value::Text(b)] = ends else {
        let found: Vec<String> = ends.iter().map(describe).collect();
        let message =
            format!("expected two names, such as [\"leaf0\", \"spine1\"], found [{}]", found.join(", "));
        table.complain("link", message);
        return Vec::new();
    };
    let Some(network) = network else { return Vec::new() };
    let topology = &network.topology;
    let mut nodes = Vec::with_capacity(2);
    for name in [a, b] {
        match topology.find_node(name) {
            Some(node) => nodes.push(node),
            None => table.complain("link", topology.unknown_node(name)),
        }
    }
    let [a_node, b_node] = nodes[..] else { return Vec::new() };
    let joins = |(_, link): &(usize, &crate::topology::Link)| {
        (link.a, link.b) == (a_node, b_node) || (link.a, link.b) == (b_node, a_node)
    };
    let links: Vec<LinkId> =
        topology.links.iter().enumerate().filter(joins).map(|(i, _)| i as LinkId).collect();
    if links.is_empty() {
        table.complain("link", format!("there is no link between {a} and {b}"));
    }
    let change_of = |link: LinkId| match (change, rate) {
        ("rate", Some(rate)) => Change::LinkRate(link, rate),
        ("up", _) => Change::LinkUp(link),
        _ => Change::LinkDown(link),
    };
    links.into_iter().map(change_of).collect()
}

fn switch_change(table: &mut Section, name: &str, change: &str, network: Option<&Network>) -> Option<Change> {
    if change == "rate" {
        table.complain("change", "a switch has no rate: expected \"down\" or \"up\"".into());
        return None;
    }
    let topology = &network?.topology;
    let Some(node) = topology.find_node(name) else {
        table.complain("switch", topology.unknown_node(name));
        return None;
    };
    if topology.nodes[node as usize].kind != NodeKind::Switch {
        table.complain("switch", format!("{name} is a host: expected the name of a switch"));
        return None;
    }
    Some(if change == "up" { Change::SwitchUp(node) } else { Change::SwitchDown(node) })
}
