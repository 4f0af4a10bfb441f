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
    // The memory that there is.
    ("machine", "units"),
    ("files", "parameters"),
    ("compat", ""),
    // One line a scheme.
    ("registry", "doc parameters"),
    // What another crate adds, and the panics of its schemes.
    ("external", "counters doc parameters"),
    // The clock of events and the random streams do not know what they are used for.
    ("engine", "units"),
    ("packet", "engine units"),
    // Forms of packets that transports write, and switches or captures read.
    ("wire", "packet"),
    ("telemetry", "counters doc engine packet units"),
    // A controller knows its acknowledgement and its own state: no packets, no queues, no clock, no randomness.
    ("congestion", "compat doc external parameters telemetry units"),
    // A network is data; a workload knows hosts by number and rate, never what is between them.
    ("topology", "doc files machine parameters units"),
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
    // The limit of simulated time, and what makes it long.
    ("clock", "topology units workload"),
    // A network to its end, and before that a `Config` to a network.
    (
        "run",
        "capture clock config counters engine external ideal measure net queue topology transport units workload",
    ),
    (
        "build",
        "balance capture config congestion engine external ideal measure net queue run telemetry topology transport \
         units workload",
    ),
    // Where the completion time of a flow went, by running it again.
    ("why", "build config measure net packet run transport units workload"),
    // What a person writes becomes what the simulator is built from; it never runs it. It asks the rooms for the names and
    // keys that they offer, and for what follows from them (headroom, bytes of telemetry, sizes in memory).
    (
        "scenario",
        "balance config congestion engine external files measure net packet parameters queue telemetry topology transport \
         units workload",
    ),
    // What can be named in a scenario, and what a scenario will cost.
    (
        "describe",
        "balance congestion counters external measure parameters queue scenario telemetry topology transport workload",
    ),
    // What another crate adds goes to the rooms that it is for.
    ("schemes", "balance congestion external measure parameters queue telemetry topology transport workload"),
    // It plays a scenario through coarsely, with the engine's queue of what comes soon, and divides packets as balancers do.
    (
        "estimate",
        "balance clock config engine machine measure net packet parameters scenario telemetry topology transport units workload",
    ),
];

/// Which rules hold where another simulator is repeated: flags, for the code that acts on one.
const KNOWN_TO_ALL: &str = "compat";

/// Libraries that only these places may name: no other code depends on what they parse.
const ONLY_IN: &[(&str, &[&str])] = &[
    ("toml", &["files.rs", "scenario", "topology/toml_file.rs"]),
    ("serde_json", &["describe", "estimate", "scenario"]),
    ("quick_xml", &["topology/gml.rs", "topology/graphml.rs"]),
];

/// Which crates of this repository a crate may depend on, and which rooms of this one it may name.
const CRATES: &[(&str, &str, &str)] = &[
    // What switches write for telemetry is a library of its own, which does not depend on the simulator.
    ("pint", "", ""),
    // Collectors of telemetry do not depend on it either; they decode digests by that library.
    ("collect", "weftline-pint", ""),
    ("sim", "weftline-pint", ""),
    // Programs for switches, and what fills their maps: from the parameters of balancers, so that the law is in one place. The
    // collector is there in tests alone.
    ("dataplane", "weftline-pint weftline-collect weftline-sim", "balance packet tag"),
    ("results", "weftline-pint weftline-sim", "config counters describe measure parameters units workload"),
    // A region's ports and hosts between real interfaces: what is in the packet loop, what configures it, and records of flows; INT in
    // packets as the programs of switches write it; by which EtherType probes are known.
    (
        "ports",
        "weftline-dataplane weftline-sim",
        "config counters engine measure net packet queue scenario tag telemetry topology units",
    ),
    (
        "python",
        "weftline-collect weftline-dataplane weftline-pint weftline-ports weftline-results weftline-sim",
        // Topologies: what a collector of digests knows about the network; queues: what a flow cache misses, without one; balancers and
        // packets: the maps of a switch's programs, and probes.
        "balance config congestion describe estimate machine measure packet parameters queue scenario schemes telemetry topology \
         units why",
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
                // What is at the root of the crate is meant for all.
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

/// The rooms of schemes, by the folder whose `mod.rs` holds the registry.
const SCHEME_ROOMS: &[&str] =
    &["congestion", "congestion/window", "queue", "balance", "transport", "topology", "workload"];

/// Names of schemes that are also words of the field, protocols, or simulators of the authors: an identifier may
/// contain them. Paths and variants that name the scheme are found all the same.
const ORDINARY_WORDS: &[&str] = &[
    "all-to-all",
    "bulk",
    "collective",
    "destination",
    "dumbbell",
    "ecmp",
    "fat-tree",
    "fifo",
    "file",
    "flows",
    "hpcc",
    "incast",
    "label",
    "leaf-spine",
    "mptcp",
    "permutation",
    "phost",
    "pods",
    "poisson",
    "powertcp",
    "priority",
    "rdma",
    "red",
    "spray",
    "star",
    "tcp",
    "trace",
];

/// Of these, those that stand in texts for something else: a key, a format, a simulator, a pattern within a workload.
const ORDINARY_TEXTS: &[&str] = &[
    "all-to-all",
    "file",
    "flows",
    "hpcc",
    "label",
    "permutation",
    "phost",
    "pods",
    "poisson",
    "star",
    "tcp",
    "trace",
];

/// Schemes that are built on others, or run with others where they were published, and so name them: (file or folder,
/// what it names).
const BUILT_ON: &[(&str, &[&str])] = &[
    ("balance/clove", &["ecmp"]),
    ("balance/mp_hula", &["hula"]),
    ("topology/rail_only", &["rail"]),
    // Its topology files describe that network.
    ("topology/htsim", &["clos"]),
    // Tables of MP-HULA that follow the subflows of a connection, used by the state that it shares with HULA.
    ("balance/steering", &["hula", "mp-hula"]),
    ("congestion/hpcc_pint", &["hpcc"]),
    ("congestion/theta_powertcp", &["powertcp"]),
    ("congestion/window/bbr3", &["bbr"]),
    ("congestion/window/bic", &["newreno"]),
    ("congestion/window/coupled", &["balia", "lia", "newreno", "olia"]),
    ("congestion/window/cubic", &["newreno"]),
    ("congestion/window/dctcp", &["newreno"]),
    ("congestion/window/vegas", &["newreno"]),
    ("queue/fq_codel", &["codel", "drr"]),
    ("topology/fat_tree", &["hpcc-fat-tree"]),
    ("topology/hpcc_fat_tree", &["fat-tree"]),
    ("transport/controllers", &["cubic"]),
    ("transport/fastpass", &["priority", "spray"]),
    ("transport/homa", &["priority", "spray"]),
    ("transport/mptcp", &["lia", "tcp"]),
    ("transport/ndp", &["priority", "spray"]),
    ("transport/pfabric", &["priority", "spray"]),
    ("transport/phost", &["priority", "spray"]),
    ("transport/tcp", &["dctcp"]),
];

/// Places that may name schemes that are not theirs, with the reason.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("capture/", "frames are written in the format of each transport, whose codes and headers it must know"),
    ("transport/wire_format.rs", "the list of those formats"),
    ("config.rs", "a run is built by hand from RDMA's parameters in tests and by other crates"),
];

struct Scheme {
    room: &'static str,
    /// Its file without `.rs`, or its folder.
    home: String,
    /// Module of the scheme in its room.
    module: String,
    /// As in a scenario.
    kind: String,
    /// `Enum::Variant` of its parameters and of its state.
    variants: Vec<String>,
}

impl Scheme {
    fn is_at_home(&self, place: &str) -> bool {
        let home = &self.home;
        place == format!("{home}.rs")
            || place.starts_with(&format!("{home}/"))
            || place == format!("{}/mod.rs", self.room)
    }

    /// How this code names the scheme, if it does.
    fn named_in(&self, code: &str) -> Option<String> {
        let parent = self.room.rsplit('/').next().unwrap_or(self.room);
        if names_after(code, &format!("{parent}::")).contains(&self.module) {
            return Some(format!("{parent}::{}", self.module));
        }
        if let Some(variant) = self.variants.iter().find(|variant| {
            code.match_indices(variant.as_str()).any(|(at, _)| {
                !code[at + variant.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_')
            })
        }) {
            return Some(variant.clone());
        }
        let (texts, identifiers) = texts_and_identifiers(code);
        let kind = self.kind.as_str();
        if texts.contains(&kind) && !ORDINARY_TEXTS.contains(&kind) {
            return Some(format!("{kind:?}"));
        }
        if ORDINARY_WORDS.contains(&kind) {
            return None;
        }
        let plain = self.kind.replace('-', "");
        identifiers.into_iter().find(|identifier| has_word(identifier, &plain)).map(String::from)
    }
}

/// Whether some words of an identifier, in a row, make this name.
fn has_word(identifier: &str, name: &str) -> bool {
    let mut words: Vec<String> = vec![String::new()];
    // A constant's words are between underscores.
    let is_constant = !identifier.contains(char::is_lowercase);
    let identifier = if is_constant { identifier.to_lowercase() } else { identifier.to_string() };
    for c in identifier.chars() {
        if c == '_' || c.is_uppercase() && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if c != '_' {
            words.last_mut().expect("one word").extend(c.to_lowercase());
        }
    }
    (0..words.len()).any(|from| (from + 1..=words.len()).any(|to| words[from..to].concat() == name))
}

/// The texts in quotes, and the identifiers outside of them.
fn texts_and_identifiers(code: &str) -> (Vec<&str>, Vec<&str>) {
    let (mut texts, mut identifiers) = (Vec::new(), Vec::new());
    let mut rest = code;
    while let Some(open) = rest.find('"') {
        // A quote as a character, '"', opens nothing.
        let is_character = rest[..open].ends_with('\'') && rest[open + 1..].starts_with('\'');
        identifiers.push(&rest[..open]);
        rest = &rest[open + 1..];
        if is_character {
            continue;
        }
        let mut escaped = false;
        let close = rest.find(|c| {
            let closes = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            closes
        });
        let close = close.unwrap_or(rest.len());
        texts.push(&rest[..close]);
        rest = rest.get(close + 1..).unwrap_or("");
    }
    identifiers.push(rest);
    let words = |part| str::split(part, |c: char| !c.is_alphanumeric() && c != '_');
    (texts, identifiers.into_iter().flat_map(words).filter(|word| !word.is_empty()).collect())
}

/// The schemes of all registries, by their lines.
fn schemes() -> Vec<Scheme> {
    let mut found = Vec::new();
    let root = crate_folder("sim").join("src");
    for room in SCHEME_ROOMS {
        let text = fs::read_to_string(root.join(room).join("mod.rs")).unwrap();
        let code = without_comments(without_tests(&text));
        let (_, block) = code.split_once("\nregistry! {").expect("a registry");
        let block = &block[..block.find("\n}").expect("an end")];
        let enums: Vec<&str> = block
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .take_while(|word| !block.contains(&format!("{word} = ")))
            .filter(|word| word.starts_with(char::is_uppercase))
            .collect();
        let lines = block.lines().filter_map(|line| line.trim().strip_suffix(';'));
        for line in lines.filter(|line| !line.starts_with("also ")) {
            let (variant, path) = line.split_once(" = ").expect("Variant = file::Parameters");
            let (before, _) = path.split_once("::").expect("file::Parameters");
            let module =
                before.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().expect("a word").to_string();
            // Some share a folder with their kin.
            let folders = fs::read_dir(root.join(room)).unwrap().map(|entry| entry.unwrap().path());
            let homes = std::iter::once(root.join(room)).chain(folders.filter(|path| path.is_dir()));
            let home = homes
                .map(|folder| folder.join(&module))
                .find(|home| home.is_dir() || home.with_extension("rs").is_file());
            let home = home.unwrap_or_else(|| panic!("no file of {room}: {line}"));
            let mut own = if home.is_dir() { files_below(&home) } else { Vec::new() };
            own.extend(Some(home.with_extension("rs")).filter(|file| file.is_file()));
            let with_doc = own
                .iter()
                .map(|path| fs::read_to_string(path).unwrap())
                .find(|text| text.contains("SchemeDoc = SchemeDoc {"));
            let own = with_doc.unwrap_or_else(|| panic!("no DOC in {}", home.display()));
            let own = &own[own.find("SchemeDoc = SchemeDoc {").unwrap()..];
            let (_, name) = own.split_once("name: \"").expect("a DOC with a name");
            let kind = name.split('"').next().expect("a name").to_string();
            let home = home.strip_prefix(&root).unwrap().to_str().unwrap().replace('\\', "/");
            let variants = enums.iter().map(|of| format!("{of}::{variant}")).collect();
            found.push(Scheme { room, home, module, kind, variants });
        }
    }
    found
}

/// A scheme's name stands only in its own file or folder, in its room's registry, and in tests.
#[test]
fn a_scheme_is_named_only_where_it_lives() {
    let schemes = schemes();
    assert!(schemes.len() > 40, "{}", schemes.len());
    let mut wrong = Vec::new();
    for file in sources(&crate_folder("sim").join("src")) {
        let homes: Vec<&str> = schemes
            .iter()
            .filter(|scheme| scheme.is_at_home(&file.place))
            .map(|scheme| scheme.kind.as_str())
            .collect();
        for scheme in schemes.iter().filter(|scheme| !homes.contains(&scheme.kind.as_str())) {
            let Some(how) = scheme.named_in(&file.code) else { continue };
            let excepted = EXCEPTIONS.iter().any(|(place, _)| file.place.starts_with(place));
            let built_on = BUILT_ON.iter().any(|(upper, lower)| {
                let rest = file.place.strip_prefix(upper);
                rest.is_some_and(|rest| rest.starts_with(['.', '/'])) && lower.contains(&scheme.kind.as_str())
            });
            if !built_on && !excepted {
                wrong.push(format!("{}: names {} ({how})", file.place, scheme.kind));
            }
        }
    }
    assert!(EXCEPTIONS.len() <= 3, "named exceptions");
    assert!(wrong.is_empty(), "{}\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn names_of_schemes_are_found_as_words_texts_and_variants() {
    assert!(
        has_word("MpHulaConfig", "mphula")
            && has_word("is_letflow", "letflow")
            && has_word("LetFlow", "letflow")
    );
    assert!(!has_word("reduced", "red") && has_word("RED_BYTES".to_lowercase().as_str(), "red"));
    let (texts, identifiers) = texts_and_identifiers(r#"let a = "one \" two"; b('"'); c"#);
    assert_eq!(texts, [r#"one \" two"#]);
    assert_eq!(identifiers, ["let", "a", "b", "c"]);
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

/// All Rust files below a folder, sorted.
fn files_below(root: &Path) -> Vec<PathBuf> {
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
    files
}

/// All sources below `root` but those that are compiled for tests only.
fn sources(root: &Path) -> Vec<Source> {
    let files = files_below(root);
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
