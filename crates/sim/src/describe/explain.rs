//! `weftline explain NAME`: a scheme, a key or a metric, as data.

use serde_json::{Value, json};

use super::metrics;
use super::served_by;
use crate::balance;
use crate::compat::{self, Rules};
use crate::congestion::{self, SchemeDoc};
use crate::external;
use crate::parameters::{Declared, Kind, describe, unknown};
use crate::scenario::catalogue::{SectionKeys, TCP_CONTROLLER, sections, type_in_words};
use crate::scenario::presets::presets;
use crate::scenario::{switch, telemetry};
use crate::workload::{self, SizeDistribution};
use crate::{topology, transport};

const PUBLISHED: &str =
    "Li et al., \"HPCC: High Precision Congestion Control\", SIGCOMM 2019, and its authors' simulator";

/// Schemes whose sources a key lists, if they share it.
const MOST_SOURCES: usize = 3;

/// The section with the keys of queue disciplines.
const QUEUE: &str = "switch.queue";

/// What the modes of `[compat]` are.
const COMPATIBILITY: &str = "compatibility";

/// Returns what `name` stands for: `{name, title, text, source, equations, parameters: [{key, type, default,
/// help}], validation}`. A parameter with a fixed set of values has them in `choices: [{name, help}]`. A
/// controller has `transports`: those that it serves, each with the controller's name there. A mode of
/// `[compat]` has `rules: [{rule, there, here}]`: those that differ from the default mode.
///
/// `name`: a scheme (`hpcc`, `leaf-spine`; `tcp.dctcp` and `queue.pfabric` if other schemes have the same
/// name), a key (`switch.ecn.kmin`, or its end, such as `kmin`), a section (`switch`) or a metric
/// (`slowdown`). Errors: the name is unknown; the message offers the nearest one.
pub fn explain(name: &str) -> Result<Value, String> {
    let wanted = name.trim();
    let found =
        scheme(wanted).or_else(|| preset(wanted)).or_else(|| sizes(wanted)).or_else(|| metric(wanted));
    let found = found.or_else(|| section(wanted)).or_else(|| key(wanted));
    let found = found.or_else(|| preset_key(wanted)).or_else(|| table(wanted));
    found.ok_or_else(|| {
        let known = known_names();
        let near = crate::parameters::nearest(wanted, known.iter().map(String::as_str));
        match near {
            Some(near) => format!("unknown name \"{wanted}\": did you mean \"{near}\"?"),
            None => unknown("name", wanted, schemes().map(|scheme| scheme.name)),
        }
    })
}

/// A scheme that is selected by `kind` or another choice.
struct Scheme {
    name: &'static str,
    title: &'static str,
    /// The common noun for it.
    what: &'static str,
    /// The section of its keys, if it has any.
    section: &'static str,
}

fn schemes() -> impl Iterator<Item = Scheme> + Clone {
    let of = |what, section, kinds: &'static [(&'static str, &'static str)]| {
        kinds.iter().map(move |&(name, title)| Scheme { name, title, what, section })
    };
    of("congestion controller", "transport.controller", congestion::kinds())
        .chain(of("congestion controller of TCP", TCP_CONTROLLER, congestion::window::KINDS))
        .chain(of("transport", "transport", transport::KINDS))
        .chain(of("topology", "topology", topology::KINDS))
        .chain(of("workload", "workload", workload::KINDS))
        .chain(of("queue discipline", QUEUE, switch::queues()))
        .chain(of("load balancer", "switch.balancer", switch::balancers()))
        .chain(of("forwarding", "", switch::FORWARDING))
        .chain(
            transport::DECLARED
                .iter()
                .flat_map(|t| t.choices)
                .flat_map(move |&(what, names)| of(what, "", names)),
        )
        .chain(of("telemetry", "telemetry", &telemetry::TELEMETRIES[1..3]))
        .chain(of("ideal completion time", "", crate::scenario::measure::IDEALS))
        .chain(of(COMPATIBILITY, "", &compat::MODES[1..]))
}

fn scheme(name: &str) -> Option<Value> {
    // Names that schemes of several rooms have: `tcp.dctcp`, `queue.pfabric`.
    let named = |scheme: &Scheme| match name.split_once('.') {
        Some(("tcp", bare)) => scheme.section == TCP_CONTROLLER && scheme.name == bare,
        Some(("queue", bare)) => scheme.section == QUEUE && scheme.name == bare,
        _ => scheme.name == name,
    };
    let scheme = schemes().find(named)?;
    let keys = sections().iter().find(|s| {
        s.path == scheme.section && !s.path.is_empty() && (s.kind.is_none() || s.kind == Some(scheme.name))
    });
    let doc = docs(scheme.section)
        .iter()
        .find(|doc| doc.name == scheme.name)
        .or_else(|| external::doc(scheme.name));
    let described = doc.filter(|doc| !doc.text.is_empty());
    let title =
        described.map_or_else(|| format!("{}: {}", scheme.what, scheme.title), |doc| doc.title.to_string());
    let text = described.map_or(scheme.title, |doc| doc.text);
    let source = doc.map(|doc| doc.source).unwrap_or_else(|| source_of(scheme.section));
    let mut found = entry(name, &title, text, source, doc, keys.map(parameters).unwrap_or_default());
    let of_tcp = scheme.section == TCP_CONTROLLER;
    if of_tcp || scheme.section == "transport.controller" {
        found["transports"] = served_by(scheme.name, of_tcp);
    }
    if scheme.what == COMPATIBILITY {
        let rules = Rules::of(name).differences();
        found["rules"] = rules.map(|d| json!({ "rule": d.rule, "there": d.there, "here": d.here })).collect();
    }
    if let Some(package) = external::package_of(scheme.name) {
        found["package"] = json!(package);
    }
    Some(found)
}

/// What the schemes with keys in a section are.
fn docs(section: &str) -> &'static [SchemeDoc] {
    match section {
        TCP_CONTROLLER => congestion::window::DOCS,
        "transport" => transport::DOCS,
        "topology" => topology::DOCS,
        "workload" => workload::DOCS,
        QUEUE => crate::queue::DOCS,
        "switch.balancer" => balance::DOCS,
        "telemetry" => crate::telemetry::DOCS,
        _ => congestion::DOCS,
    }
}

fn preset(name: &str) -> Option<Value> {
    let preset = presets().iter().find(|preset| preset.name == name)?;
    let text = format!(
        "[{}] preset = \"{name}\" gives these keys; keys that you set yourself go before them.",
        preset.section
    );
    let shown = |(key, value): (String, crate::parameters::Value)| json!({ "key": key, "type": "set by the preset", "default": describe(&value).trim_matches('"'), "help": "" });
    let keys = preset.values().into_iter().map(shown).collect();
    let mut found = entry(name, &format!("preset: {}", preset.title), &text, &preset.source, None, keys);
    found["validation"] = match preset.unverified.as_str() {
        "" => json!("Numbers as in the source."),
        unverified => json!(format!("Numbers as in the source. Unverified: {unverified}.")),
    };
    Some(found)
}

/// The key `preset`, of one section or of both.
fn preset_key(name: &str) -> Option<Value> {
    let section = if name == "preset" { "" } else { name.strip_suffix(".preset")? };
    let of = presets().iter().filter(|preset| section.is_empty() || preset.section == section);
    let choices: Vec<Value> = of.map(|preset| json!({ "name": preset.name, "help": preset.title })).collect();
    let help = "keys of a public design or of a switch, under those that you set yourself";
    let key = json!({ "key": name, "type": "text", "default": null, "help": help, "choices": choices });
    (!choices.is_empty()).then(|| entry(name, &format!("key {name}"), help, "", None, vec![key]))
}

fn sizes(name: &str) -> Option<Value> {
    let (title, source) = SizeDistribution::about(name)?;
    Some(entry(name, &format!("distribution of flow sizes: {title}"), "", source, None, Vec::new()))
}

/// A metric by its name, or that of a column or series that has it; with the keys of the same name.
fn metric(name: &str) -> Option<Value> {
    let plain = name.trim_end_matches("_ns").trim_end_matches("_bps").trim_end_matches("_bytes");
    let plain = if name == "window_bytes" { "bdp" } else { plain };
    let all = metrics::all(&super::counters());
    let named = |wanted: &str| all.iter().find(|metric| metric["name"] == wanted);
    let metric = named(name).or_else(|| named(plain))?;
    let keys = key(name).map_or(json!([]), |keys| keys["parameters"].clone());
    let title = match metric["of_run"] == true {
        true => format!("metric: {}", metric["axis"].as_str()?),
        false => metric["title"].as_str()?.to_string(),
    };
    Some(json!({
        "name": metric["name"],
        "title": title,
        "unit": metric["unit"],
        "text": metric["text"],
        "source": metric["source"],
        "equations": "",
        "parameters": keys,
        "validation": "",
    }))
}

fn section(path: &str) -> Option<Value> {
    let found: Vec<&SectionKeys> =
        sections().iter().filter(|s| s.path == path && !s.path.is_empty()).collect();
    let first = found.first()?;
    let title = format!("section [{path}]");
    let kinds: Vec<&str> = found.iter().filter_map(|s| s.kind).collect();
    if kinds.is_empty() {
        return Some(entry(path, &title, "", source_of(path), None, parameters(first)));
    }
    let text = format!("Its keys depend on its kind: run explain with one of {}.", kinds.join(", "));
    Some(entry(path, &title, &text, source_of(path), None, Vec::new()))
}

/// A key by its full path or by the end of it. Several keys may have the same end, or defaults that depend on
/// the kind.
fn key(name: &str) -> Option<Value> {
    let same = |a: &Declared, b: &Declared| a.help == b.help && a.default == b.default;
    let full = |section: &SectionKeys, key: &str| {
        if section.path.is_empty() { key.to_string() } else { format!("{}.{key}", section.path) }
    };
    let end = format!(".{name}");
    let mut found: Vec<(String, &Declared, Option<&str>)> = Vec::new();
    for section in sections() {
        for (key, declared) in &section.keys {
            let path = full(section, key);
            if (path == name || path.ends_with(&end))
                && !found.iter().any(|(known, other, _)| *known == path && same(other, declared))
            {
                found.push((path, declared, section.kind));
            }
        }
    }
    let (path, declared, _) = found.first()?;
    let source = source_of_key(name);
    let title = match found.len() {
        1 => format!("key {path}"),
        n => format!("{n} keys"),
    };
    let list = found.iter().map(|(path, declared, kind)| {
        let path = kind.map_or(path.clone(), |kind| format!("{path} (kind = \"{kind}\")"));
        parameter(&path, declared)
    });
    Some(entry(name, &title, declared.help, &source, None, list.collect()))
}

/// The sources of the schemes that have a key, or that of its published default.
fn source_of_key(name: &str) -> String {
    let end = format!(".{name}");
    let is_it = |section: &SectionKeys, key: &str| {
        let full = format!("{}.{key}", section.path);
        full == name || full.ends_with(&end)
    };
    let mut sources: Vec<&str> = Vec::new();
    for section in sections().iter().filter(|section| section.keys.iter().any(|(key, _)| is_it(section, key)))
    {
        let of_kind = section.kind.and_then(|kind| docs(section.path).iter().find(|doc| doc.name == kind));
        let source = of_kind.map_or_else(|| published(section, |key| is_it(section, key)), |doc| doc.source);
        if !source.is_empty() && !sources.contains(&source) {
            sources.push(source);
        }
    }
    match sources.len() {
        1..=MOST_SOURCES => sources.join("; and "),
        // Each scheme's own name explains where its values are from.
        _ => String::new(),
    }
}

/// The keys of a table within a section, such as `measure.queues` or `pfc`.
fn table(name: &str) -> Option<Value> {
    let (start, inside) = (format!("{name}."), format!(".{name}."));
    let mut found: Vec<(String, &Declared)> = Vec::new();
    for section in sections().iter().filter(|section| !section.path.is_empty()) {
        for (key, declared) in &section.keys {
            let path = format!("{}.{key}", section.path);
            let fits = path.starts_with(&start) || path.contains(&inside);
            if fits && !found.iter().any(|(known, _)| *known == path) {
                found.push((path, declared));
            }
        }
    }
    found.first()?;
    let listed = |section: &SectionKeys, key: &str| {
        let path = format!("{}.{key}", section.path);
        found.iter().any(|(known, _)| *known == path)
    };
    let of_section = |section| published(section, |key| listed(section, key));
    let source = sections().iter().map(of_section).find(|source| !source.is_empty()).unwrap_or_default();
    let list = found.iter().map(|(path, declared)| parameter(path, declared)).collect();
    Some(entry(name, &format!("the keys of {name}"), "", source, None, list))
}

/// The source of the published values among the keys of a section that no kind has for itself.
fn source_of(path: &str) -> &'static str {
    let found = sections().iter().filter(|section| section.path == path && section.kind.is_none());
    found.map(|section| published(section, |_| true)).next().unwrap_or_default()
}

/// The source of the published values of some keys of a section; empty if none of these has one, by its help.
///
/// Keys of disciplines and balancers, which the section of switches has too, are from where their schemes are.
fn published(section: &SectionKeys, chosen: impl Fn(&str) -> bool) -> &'static str {
    let of_schemes = |key: &str| ["queue.", "balancer."].iter().any(|start| key.starts_with(start));
    let has = |(key, declared): &(String, Declared)| {
        chosen(key) && !of_schemes(key) && declared.help.contains("published")
    };
    if section.path == "switch" && section.keys.iter().any(has) { PUBLISHED } else { "" }
}

fn entry(
    name: &str,
    title: &str,
    text: &str,
    source: &str,
    doc: Option<&SchemeDoc>,
    parameters: Vec<Value>,
) -> Value {
    json!({
        "name": name,
        "title": title,
        "text": text,
        "source": source,
        "equations": doc.map_or("", |doc| doc.equations),
        "parameters": parameters,
        "validation": doc.map_or("", |doc| doc.validation),
    })
}

fn parameters(section: &SectionKeys) -> Vec<Value> {
    section.keys.iter().filter(|(key, _)| key != "kind").map(|(key, d)| parameter(key, d)).collect()
}

fn parameter(key: &str, declared: &Declared) -> Value {
    let mut found = json!({
        "key": key,
        "type": type_in_words(declared),
        "default": declared.default,
        "help": declared.help,
    });
    if let Kind::Choice(names) = declared.kind {
        let choices = names.iter().map(|(name, help)| json!({ "name": name, "help": help }));
        found["choices"] = choices.collect();
    }
    found
}

/// Every name that [`explain`] accepts.
fn known_names() -> Vec<String> {
    let mut names: Vec<String> = schemes().map(|scheme| scheme.name.to_string()).collect();
    names.extend(presets().iter().map(|preset| preset.name.to_string()));
    names.extend(["preset", "topology.preset", "switch.preset"].map(str::to_string));
    names.extend(SizeDistribution::names().map(str::to_string));
    names.extend(metrics::names(&super::counters()));
    for section in sections() {
        names.push(section.path.to_string());
        for (key, _) in &section.keys {
            names.push(if section.path.is_empty() { key.clone() } else { format!("{}.{key}", section.path) });
            names.extend(key.rsplit('.').next().map(str::to_string));
            if let Some((table, _)) = key.split_once('.') {
                names.push(format!("{}.{table}", section.path));
            }
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

#[cfg(test)]
mod tests;
