//! The JSON Schema (draft 2020-12) of a scenario, made from the declared keys. Editors use it to check and
//! complete.

use serde_json::{Value, json};

use crate::congestion::pair_window;
use crate::parameters::{Declared, Kind};
use crate::scenario::catalogue::{SectionKeys, TCP_CONTROLLER, sections};
use crate::scenario::presets;
use crate::transport::{Controllers, DECLARED, DEFAULT};

/// The schema of a scenario file.
pub fn schema() -> Value {
    let mut root = object(&keys_of(""));
    let transport = transport();
    let mut topology = by_kind("topology", true);
    add_everywhere(&mut topology, "override", list_of(object(&keys_of("topology.override"))));
    add_everywhere(&mut topology, "preset", preset("topology"));
    // A preset says the kind.
    let named = json!({ "type": "object", "title": "preset", "properties": { "preset": preset("topology") }, "required": ["preset"] });
    topology["anyOf"].as_array_mut().into_iter().for_each(|all| all.push(named.clone()));
    let mut workload = by_kind("workload", true);
    add_everywhere(&mut workload, "transport", json!({ "$ref": "#/$defs/workload_transport" }));
    let mut failures = object(&keys_of("failures"));
    add(&mut failures, "event", list_of(object(&keys_of("failures.event"))));
    for (key, value) in [
        ("topology", topology),
        ("switch", switch()),
        ("host", object(&keys_of("host"))),
        ("transport", json!({ "$ref": "#/$defs/transport" })),
        ("telemetry", object(&keys_of("telemetry"))),
        ("workload", list_of(workload)),
        ("run", object(&keys_of("run"))),
        ("scale", object(&keys_of("scale"))),
        ("compat", object(&keys_of("compat"))),
        ("failures", failures),
        ("measure", object(&keys_of("measure"))),
    ] {
        add(&mut root, key, value);
    }
    root["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    root["title"] = json!("weftline scenario");
    root["required"] = json!(["topology", "workload"]);
    root["$defs"] = json!({ "workload_transport": of_workload(&transport), "transport": transport });
    root
}

fn of(path: &str) -> impl Iterator<Item = &'static SectionKeys> + use<'_> {
    sections().iter().filter(move |section| section.path == path)
}

fn keys_of(path: &str) -> Vec<&'static (String, Declared)> {
    of(path).flat_map(|section| &section.keys).collect()
}

/// One alternative per kind of the section. `required`: the kind must be given.
fn by_kind(path: &str, required: bool) -> Value {
    let alternatives = of(path).map(|section| {
        let keys: Vec<_> = section.keys.iter().collect();
        let mut schema = object(&keys);
        let kind = section.kind.unwrap_or_default();
        schema["title"] = json!(kind);
        schema["properties"]["kind"] = json!({ "const": kind });
        if required {
            schema["required"] = json!(["kind"]);
        }
        schema
    });
    json!({ "anyOf": alternatives.collect::<Vec<_>>() })
}

fn transport() -> Value {
    let mut schema = by_kind("transport", false);
    for kind in schema["anyOf"].as_array_mut().into_iter().flatten() {
        let declared = DECLARED.iter().find(|declared| kind["title"] == declared.name);
        if kind["title"] != DEFAULT {
            kind["required"] = json!(["kind"]);
        }
        match declared.map_or(Controllers::None, |declared| declared.controllers) {
            Controllers::None => {}
            Controllers::Pairs => add(kind, "controller", of_queue_pairs()),
            Controllers::Windows { .. } => add(kind, "controller", by_kind(TCP_CONTROLLER, false)),
        }
    }
    schema
}

/// The controllers of queue pairs: their own, and the supported TCP controllers, with their names there.
fn of_queue_pairs() -> Value {
    let mut schema = by_kind("transport.controller", false);
    let laws = by_kind(TCP_CONTROLLER, false);
    let of_tcp = laws["anyOf"].as_array().into_iter().flatten().filter_map(|alternative| {
        let named = pair_window::laws().iter().find(|named| alternative["title"] == named.law)?;
        let mut alternative = alternative.clone();
        alternative["title"] = json!(named.name);
        alternative["properties"]["kind"] = json!({ "const": named.name });
        Some(alternative)
    });
    schema["anyOf"].as_array_mut().into_iter().for_each(|all| all.extend(of_tcp.clone()));
    schema
}

/// A workload's own transport. Its kind may be omitted if it is that of `[transport]`.
fn of_workload(transport: &Value) -> Value {
    let mut schema = transport.clone();
    for kind in schema["anyOf"].as_array_mut().into_iter().flatten() {
        if let Some(keys) = kind.as_object_mut() {
            keys.remove("required");
        }
    }
    schema
}

/// Thresholds may be one table, or a list of tables with a rate each.
fn switch() -> Value {
    let mut schema = object(&keys_of("switch"));
    let common = schema["properties"]["ecn"].clone();
    let mut listed = common.clone();
    if let Some(properties) = listed["properties"].as_object_mut() {
        properties.remove("enabled");
        properties.insert("rate".to_string(), quantity("bps|Kbps|kbps|Mbps|Gbps|Tbps", "100Gbps", None));
    }
    listed["required"] = json!(["rate"]);
    schema["properties"]["ecn"] = json!({ "anyOf": [common, list_of(listed)] });
    let mut port = object(&keys_of("switch.port"));
    port["required"] = json!(["match"]);
    add(&mut schema, "port", list_of(port));
    add(&mut schema, "preset", preset("switch"));
    schema
}

/// The name of a preset for a section.
fn preset(section: &str) -> Value {
    let help =
        "Keys of a public design or switch, under those that are written here; `weftline list presets`.";
    json!({ "enum": presets::names(section), "description": help })
}

/// An object with these keys, dotted ones nested, and no others.
fn object(keys: &[&(String, Declared)]) -> Value {
    let mut schema = json!({ "type": "object", "properties": {}, "additionalProperties": false });
    for (key, declared) in keys {
        let mut place = &mut schema;
        let mut segments = key.split('.').peekable();
        while let Some(segment) = segments.next() {
            let Some(properties) = place["properties"].as_object_mut() else { break };
            if segments.peek().is_none() {
                properties.insert(segment.to_string(), value(key, declared));
                break;
            }
            place = properties.entry(segment.to_string()).or_insert_with(
                || json!({ "type": "object", "properties": {}, "additionalProperties": false }),
            );
        }
    }
    schema
}

fn add(schema: &mut Value, key: &str, value: Value) {
    if let Some(properties) = schema["properties"].as_object_mut() {
        properties.insert(key.to_string(), value);
    }
}

/// Adds a key to every alternative.
fn add_everywhere(schema: &mut Value, key: &str, value: Value) {
    for alternative in schema["anyOf"].as_array_mut().into_iter().flatten() {
        add(alternative, key, value.clone());
    }
}

fn list_of(item: Value) -> Value {
    json!({ "type": "array", "items": item })
}

/// `word`: the keyword that is accepted instead of a quantity.
fn quantity(units: &str, example: &str, word: Option<&str>) -> Value {
    let word = word.map_or(String::new(), |word| format!("{word}|"));
    let pattern = format!("^\\s*({word}[0-9][0-9._]*\\s*({units}))\\s*$");
    json!({ "type": "string", "pattern": pattern, "examples": [example] })
}

fn value(key: &str, declared: &Declared) -> Value {
    let auto = declared.takes_auto();
    let word = if auto { Some("auto") } else { declared.default.as_deref().filter(|word| *word == "none") };
    let mut schema = match declared.kind {
        Kind::Time => quantity("ps|ns|us|µs|μs|ms|s", "10us", word),
        Kind::Bytes => quantity("B|KB|kB|MB|GB|TB|KiB|MiB|GiB", "32MB", word),
        Kind::Rate => quantity("bps|Kbps|kbps|Mbps|Gbps|Tbps", "100Gbps", word),
        Kind::Frequency => json!({
            "anyOf": [{ "type": "number", "minimum": 0, "maximum": 1e9 }, quantity("Hz|kHz|MHz", "0.15Hz", word)],
        }),
        Kind::Number { min, max } => json!({ "type": "number", "minimum": min, "maximum": max }),
        Kind::Integer { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Kind::Flag if auto => json!({ "enum": [true, false, "auto"] }),
        Kind::Flag => json!({ "type": "boolean" }),
        // Patterns of ports may be a list. Text that looks like a number may be written as a number.
        Kind::Text if key.ends_with("ports") || key == "pcap" => json!({
            "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }],
        }),
        Kind::Text => json!({ "type": ["string", "integer"] }),
        Kind::List => json!({ "type": "array" }),
        Kind::Choice(names) => {
            json!({ "enum": names.iter().map(|(name, _)| *name).collect::<Vec<_>>() })
        }
    };
    schema["description"] = json!(declared.help);
    if let Some(default) = &declared.default {
        schema["default"] = match declared.kind {
            Kind::Number { .. } | Kind::Integer { .. } | Kind::Flag if !auto => {
                serde_json::from_str(default).unwrap_or_else(|_| json!(default))
            }
            _ => json!(default),
        };
    }
    schema
}

#[cfg(test)]
mod tests;
