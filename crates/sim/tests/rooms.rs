//! Who may know whom: the rooms of this crate, and the crates among each other, held against one table.
//!
//! An arrow that is missing here is not forbidden for ever. But it is a decision: add it with its reason, and look for a
//! way around it first, above all where the two rooms would then know each other.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Every room, and which others its code may name (its tests may name any). From the ground up: arrows
/// point to rooms that stand before.
const MAY_KNOW: &[(&str, &str)] = &[
    // Quantities, how a scheme declares its keys, the reading of files: known to all, knowing nothing.
    ("counters", ""),
    ("doc", "counters"),
    ("units", ""),
    ("parameters", "units"),
    ("files", "parameters"),
    ("compat", ""),
    // One line a scheme.
    ("registry", "doc parameters"),
    // What another crate adds, and the panics of its schemes.
    ("external", "doc parameters"),
    // The clock of events and the random streams do not know what they are used for.
    ("engine", "units"),
    ("packet", "engine units"),
    // Forms of packets that transports write, and switches or captures read.
    ("wire", "packet"),
    ("telemetry", "counters packet units"),
    // A controller knows its acknowledgement and its own state: no packets, no queues, no clock, no randomness.
    ("congestion", "doc external parameters telemetry units"),
    // A network is data; a workload knows hosts by number and rate, never what is between them.
    ("topology", "doc files parameters units"),
    ("workload", "doc engine files parameters topology units"),
    // Which way a packet takes: they see packets, and of the network what a switch tells them; before a run, whether they suit it.
    ("balance", "counters doc engine external packet parameters topology units wire"),
    // Which packet leaves a port next: they see packets, not the network.
    ("queue", "counters doc engine external packet parameters units"),
    // What a run reports, and what it is set to report.
    ("measure", "counters engine topology units workload"),
    // The network at work, and the rules of its parts. A host owns its transport, and a transport sends through its host's port: the
    // one arrow that points up.
    ("net", "balance counters engine measure packet queue telemetry topology transport units wire workload"),
    // A transport states which switches it needs and which controllers it takes.
    (
        "transport",
        "balance congestion counters doc engine measure net packet parameters queue telemetry topology units wire workload",
    ),
    // What a run is made of, once everything is resolved: it knows every room that has parameters.
    ("config", "measure net queue telemetry topology transport units workload"),
    ("ideal", "config net topology transport units workload"),
    // Packets as frames: it writes what the headers of every transport and balancer say.
    ("capture", "balance config measure net packet telemetry topology transport units wire"),
    // A network to its end, and before that a `Config` to a network.
    (
        "run",
        "capture config counters engine external ideal measure net queue topology transport units workload",
    ),
    (
        "build",
        "balance capture config congestion engine external ideal measure net queue run telemetry topology transport \
         units workload",
    ),
    // What a person writes becomes what the simulator is built from; it never runs it. It asks the rooms for the names and
    // keys that they offer, and for what follows from them (headroom, bytes of telemetry, sizes in memory).
    (
        "scenario",
        "balance config congestion files measure net packet parameters queue telemetry topology transport units \
         workload",
    ),
    // What can be named in a scenario, and what a scenario will cost.
    (
        "describe",
        "balance congestion counters external measure parameters queue scenario telemetry topology transport workload",
    ),
    // What another crate adds goes to the rooms that it is for.
    ("schemes", "balance congestion external queue"),
    ("estimate", "config measure net packet parameters scenario telemetry topology transport units workload"),
];

/// Which rules hold where another simulator is repeated: flags, for whoever acts on one.
const KNOWN_TO_ALL: &str = "compat";

/// Libraries that only these places may name: what they parse is nobody else's business.
const ONLY_IN: &[(&str, &[&str])] = &[
    ("toml", &["scenario", "topology/toml_file.rs"]),
    ("serde_json", &["describe", "estimate", "scenario"]),
    ("quick_xml", &["topology/gml.rs", "topology/graphml.rs"]),
];

/// Which crates of this repository a crate may depend on, and which rooms of this one it may name.
const CRATES: &[(&str, &str, &str)] = &[
    // What switches write for telemetry is a library of its own, which knows no simulator.
    ("pint", "", ""),
    ("sim", "weftline-pint", ""),
    ("results", "weftline-pint weftline-sim", "config counters describe measure parameters units workload"),
    (
        "python",
        "weftline-pint weftline-results weftline-sim",
        // Topologies: what a collector of digests knows of the network; queues: what a flow cache misses, without one.
        "config congestion describe estimate measure parameters queue scenario schemes telemetry topology units",
    ),
];

#[test]
fn no_room_knows_what_it_may_not() {
    let mut wrong = Vec::new();
    for file in sources(&crate_folder("sim").join("src")) {
        let (place, code) = (&file.place, &file.code);
        if place == "lib.rs" {
            continue;
        }
        let room = place.split(['/', '.']).next().unwrap_or_default();
        let Some((_, may)) = MAY_KNOW.iter().find(|(name, _)| *name == room) else {
            wrong.push(format!("{place}: the room \"{room}\" is not in the table"));
            continue;
        };
        let known = rooms_named(code, depth(place)).into_iter();
        for other in known
            .filter(|other| other != room && other != KNOWN_TO_ALL && !words(may).contains(&other.as_str()))
        {
            wrong.push(format!("{place}: {room} may not know {other}"));
        }
        for (library, places) in ONLY_IN {
            let allowed = places.iter().any(|p| place == p || place.starts_with(&format!("{p}/")));
            if !allowed && names_after(code, "").contains(*library) {
                wrong.push(format!("{place}: only {} may name {library}", places.join(", ")));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn the_table_is_sound() {
    let rooms: BTreeSet<&str> = MAY_KNOW.iter().map(|(room, _)| *room).collect();
    assert_eq!(rooms.len(), MAY_KNOW.len(), "a room is there twice");
    let present: BTreeSet<String> = fs::read_dir(crate_folder("sim").join("src"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap().replace(".rs", ""))
        .filter(|name| name != "lib")
        .collect();
    assert!(rooms.iter().copied().eq(present.iter().map(String::as_str)), "{rooms:?} / {present:?}");
    let rank = |name: &str| MAY_KNOW.iter().position(|(room, _)| *room == name);
    let upward = |(room, others): &(&'static str, &'static str)| {
        let (own, room) = (rank(room), *room);
        let above = words(others).into_iter().filter(move |other| rank(other).is_none_or(|r| Some(r) >= own));
        above.map(move |other| (room, other)).collect::<Vec<_>>()
    };
    let upward: Vec<_> = MAY_KNOW.iter().flat_map(upward).collect();
    assert_eq!(upward, [("net", "transport")], "arrows that do not point down");
}

#[test]
fn crates_point_one_way() {
    let mut wrong = Vec::new();
    for (name, may_depend, may_name) in CRATES {
        let folder = crate_folder(name);
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let depends = manifest.lines().filter_map(|line| line.split(['.', ' ', '=']).next());
        for other in
            depends.filter(|other| other.starts_with("weftline-") && !words(may_depend).contains(other))
        {
            wrong.push(format!("{name}/Cargo.toml: may not depend on {other}"));
        }
        if may_name.is_empty() {
            continue;
        }
        for file in sources(&folder.join("src")) {
            for room in names_after(&file.code, "weftline_sim::") {
                // What stands at the root of the crate is meant for all.
                let is_type = room.starts_with(char::is_uppercase);
                if !is_type && !words(may_name).contains(&room.as_str()) {
                    wrong.push(format!("{name}/src/{}: may not know weftline_sim::{room}", file.place));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn names_are_found_in_every_form_of_use() {
    let code = "use crate::{net::{port, host}, queue};\nuse crate::units::Time;\nlet x = crate::engine::mix();\n\
                use super::super::packet::Packet; use super::own; mycrate::no; // crate::comment";
    let code = without_comments(code);
    let names: Vec<String> = rooms_named(&code, 2).into_iter().collect();
    assert_eq!(names, ["engine", "net", "packet", "queue", "units"]);
    assert_eq!(rooms_named("use super::sibling; use super::super::a;", 3).len(), 0);
    assert!(names_after("let t = toml::from_str(x);", "").contains("toml"));
    assert!(!names_after("let t = my_toml::from_str(x); a::toml::b", "").contains("toml"));
}

struct Source {
    /// Path below `src`, with `/`.
    place: String,
    /// Without comments and tests.
    code: String,
}

fn crate_folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

/// How many modules deep a file is: 1 for `units.rs` and `net/mod.rs`.
fn depth(place: &str) -> usize {
    let parts = place.split('/').count();
    if place.ends_with("/mod.rs") { parts - 1 } else { parts }
}

/// All sources below `root` but those that are compiled for tests only.
fn sources(root: &Path) -> Vec<Source> {
    let mut files = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    let mut for_tests: Vec<PathBuf> = Vec::new();
    let mut found = Vec::new();
    for path in files {
        let text = fs::read_to_string(&path).unwrap();
        let home = if path.ends_with("mod.rs") || path.ends_with("lib.rs") {
            path.parent().unwrap().to_path_buf()
        } else {
            path.with_extension("")
        };
        for_tests.extend(test_modules(&text).map(|name| home.join(name)));
        let place = path.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/");
        found.push((path, Source { place, code: without_comments(without_tests(&text)) }));
    }
    found.retain(|(path, _)| !for_tests.iter().any(|tests| path.with_extension("").starts_with(tests)));
    assert!(found.len() > 3, "no sources below {}", root.display());
    found.into_iter().map(|(_, source)| source).collect()
}

/// Names of the modules in files of their own that are declared for tests.
fn test_modules(text: &str) -> impl Iterator<Item = &str> {
    let lines = text.lines().zip(text.lines().skip(1));
    lines.filter(|(first, _)| first.trim() == "#[cfg(test)]").filter_map(|(_, second)| {
        let declared = second.trim().strip_suffix(';')?;
        Some(declared.rsplit_once("mod ")?.1)
    })
}

/// A file up to its tests, which come last.
fn without_tests(text: &str) -> &str {
    text.find("#[cfg(test)]\nmod tests {").map_or(text, |at| &text[..at])
}

fn without_comments(text: &str) -> String {
    text.lines().map(|line| line.split("//").next().unwrap_or("")).collect::<Vec<_>>().join("\n")
}

/// Top-level modules of the crate that are named, as `crate::x`, `crate::{x, y::z}`, or by as many `super` as lead there.
fn rooms_named(code: &str, depth: usize) -> BTreeSet<String> {
    let mut rooms = names_after(code, "crate::");
    let up = "super::".repeat(depth);
    for (at, _) in code.match_indices(&up) {
        let longer = code[..at].ends_with("super::") || code[at + up.len()..].starts_with("super::");
        if !longer {
            rooms.extend(first_names(&code[at + up.len()..]));
        }
    }
    rooms
}

/// First names of the paths that begin with `prefix`; with an empty one, of all paths.
fn names_after(code: &str, prefix: &str) -> BTreeSet<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut names = BTreeSet::new();
    if prefix.is_empty() {
        for (at, _) in code.match_indices("::") {
            let word: String = code[..at].chars().rev().take_while(|&c| is_word(c)).collect();
            let before = &code[..at - word.len()];
            if !before.ends_with("::") {
                names.insert(word.chars().rev().collect());
            }
        }
        return names;
    }
    for (at, _) in code.match_indices(prefix) {
        if !code[..at].ends_with(is_word) {
            names.extend(first_names(&code[at + prefix.len()..]));
        }
    }
    names
}

/// `x` of `x::y`, or `x` and `y` of `{x::z, y}`. Names of types and functions are not modules.
fn first_names(rest: &str) -> Vec<String> {
    let name = |text: &str| -> String {
        text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let Some(group) = rest.strip_prefix('{') else { return vec![name(rest)] };
    let (mut level, mut begin, mut names) = (0, 0, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => level += 1,
            '}' if level == 0 => {
                names.push(name(&group[begin..at]));
                break;
            }
            '}' => level -= 1,
            ',' if level == 0 => {
                names.push(name(&group[begin..at]));
                begin = at + 1;
            }
            _ => {}
        }
    }
    names.retain(|name| !name.is_empty());
    names
}
