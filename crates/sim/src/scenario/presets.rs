//! Presets: a public design of a network, or the buffers and thresholds of a switch, by name, with its source and with what in
//! it is unverified. `preset` in `[topology]` or `[switch]` lays the scenario's own keys on those of the preset.
//!
//! A new one is a file in `presets/` and a line in [`FILES`].

use std::sync::OnceLock;

use super::document::{self, Data, Node, Origin, Table};
use super::problem::Problem;
use super::section::Section;
use crate::parameters::{Value, describe, unknown};

macro_rules! files {
    ($($name:literal)+) => { &[$(($name, include_str!(concat!("presets/", $name, ".toml"))),)+] };
}

const FILES: &[(&str, &str)] = files! {
    "superpod-1024" "hpn-pod" "simai-rail-256" "meta-pod-3072" "uec-8192-200g" "uec-8192-400g" "uec-8192-800g"
    "uec-port-200g" "uec-port-400g" "uec-port-800g" "simai-dcqcn-100g" "simai-dcqcn-200g" "simai-dcqcn-400g"
    "tomahawk-4" "tomahawk-5" "spectrum-4"
};
/// The sections that presets are for, and what they are called there.
const SECTIONS: [(&str, &str); 2] = [("topology", "preset of a network"), ("switch", "preset of a switch")];

/// One of them.
pub struct Preset {
    pub name: &'static str,
    pub section: &'static str,
    pub title: String,
    pub source: String,
    /// What is not verified; empty: nothing.
    pub unverified: String,
    keys: Table,
}

impl Preset {
    fn read(name: &'static str, text: &str) -> Option<Preset> {
        let table = document::parse(text, name).ok()?;
        let word = |key: &str| match table.get(key)?.node.value() {
            Value::Text(text) => Some(text),
            _ => None,
        };
        let (section, keys) =
            SECTIONS.iter().find_map(|(section, _)| match &table.get(section)?.node.data {
                Data::Table(keys) => Some((*section, keys.clone())),
                _ => None,
            })?;
        let (title, source, unverified) = (word("title")?, word("source")?, word("unverified")?);
        Some(Preset { name, section, title, source, unverified, keys })
    }

    /// Its keys with their values as TOML, dotted.
    pub fn values(&self) -> Vec<(String, Value)> {
        fn add(found: &mut Vec<(String, Value)>, prefix: &str, table: &Table) {
            for entry in &table.entries {
                let key = format!("{prefix}{}", entry.key);
                match &entry.node.data {
                    Data::Table(inner) => add(found, &format!("{key}."), inner),
                    _ => found.push((key, entry.node.value())),
                }
            }
        }
        let mut found = Vec::new();
        add(&mut found, "", &self.keys);
        found
    }
}

pub fn presets() -> &'static [Preset] {
    static PRESETS: OnceLock<Vec<Preset>> = OnceLock::new();
    PRESETS.get_or_init(|| FILES.iter().filter_map(|(name, text)| Preset::read(name, text)).collect())
}

/// The names of the presets of a section.
pub fn names(section: &str) -> Vec<&'static str> {
    presets().iter().filter(|preset| preset.section == section).map(|preset| preset.name).collect()
}

/// Notes in a section that it may have, or has, a preset.
pub fn offer(section: &mut Section) {
    section.offer("preset");
    if let Some(name) = section.peek("preset") {
        section.resolve("preset", name);
    }
}

/// The scenario with its sections laid on the presets that they name; none: they name none.
pub fn laid(root: &Table, file: &str, problems: &mut Vec<Problem>) -> Option<Table> {
    let mut under = Table::default();
    let mut replaced = root.clone();
    for (section, what) in SECTIONS {
        let Some(Data::Table(own)) = root.get(section).map(|entry| &entry.node.data) else { continue };
        let Some(asked) = own.get("preset").map(|entry| &entry.node) else { continue };
        let mut complain = |key: &str, origin: &Origin, message: String| {
            problems.push(Problem::new(file, origin.clone(), &format!("{section}.{key}"), message));
        };
        let Value::Text(name) = asked.value() else {
            let found = describe(&asked.value());
            complain(
                "preset",
                &asked.origin,
                format!("expected a {what}, such as \"{}\", found {found}", names(section)[0]),
            );
            continue;
        };
        let Some(preset) = presets().iter().find(|p| p.section == section && p.name == name) else {
            complain("preset", &asked.origin, unknown(what, &name, names(section).into_iter()));
            continue;
        };
        if let (Some(given), Some(of_preset)) = (own.get("kind"), preset.keys.get("kind"))
            && given.node.value() != of_preset.node.value()
        {
            let message =
                format!("{name} is of kind {}: leave kind or preset out", describe(&of_preset.node.value()));
            complain("kind", &given.node.origin, message);
        }
        let mut keys = preset.keys.clone();
        place(&mut keys, &asked.origin);
        let mut keys = keys.overlaid(own);
        // The keys of a preset are of the kind that the file has, too.
        let old = &own.replaced_kinds[0];
        keys.replaced_kinds = [old.clone(), old.clone()];
        let node = Node { data: Data::Table(keys), origin: asked.origin.clone() };
        let origin = asked.origin.clone();
        under.entries.push(document::Entry { key: section.to_string(), origin, node, inherited: false });
    }
    for entry in &mut replaced.entries {
        if let Some(laid) = under.get(&entry.key) {
            entry.node.data = laid.node.data.clone();
        }
    }
    (!under.entries.is_empty()).then_some(replaced)
}

/// What is wrong with a key of a preset is shown where the preset is named.
fn place(table: &mut Table, origin: &Origin) {
    for entry in &mut table.entries {
        (entry.origin, entry.node.origin) = (origin.clone(), origin.clone());
        if let Data::Table(inner) = &mut entry.node.data {
            place(inner, origin);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Hooks, Scenario};
    use super::*;
    use std::path::Path;

    fn load(text: &str) -> Result<Scenario, String> {
        let scenario = Scenario::load(text, "s.toml", Path::new("."), &[], None, Hooks::default());
        scenario.map_err(|error| error.to_string())
    }

    const FLOWS: &str = "[[workload]]\nkind = \"permutation\"\nsize = \"1KB\"\nhosts = \"0-3\"\n";

    /// Hosts and switches of networks as published.
    const COUNTS: [(&str, usize, usize); 3] =
        [("superpod-1024", 1024, 32 + 16), ("hpn-pod", 15_360, 240 + 120), ("meta-pod-3072", 3072, 192 + 18)];

    #[test]
    fn every_preset_builds_says_where_it_is_from_and_has_the_published_counts() {
        let mut counted = 0;
        assert_eq!(presets().len(), FILES.len(), "a file that cannot be read");
        for Preset { name, section, title, source, .. } in presets() {
            assert!(!title.is_empty() && !source.is_empty() && !title.contains('\n'), "{name}");
            let rest = match *section {
                "switch" => "[topology]\nkind = \"star\"\nhosts = 4\n",
                _ => "[switch]\npfc = { enabled = false }\n",
            };
            let text = format!("{rest}[{section}]\npreset = \"{name}\"\n{FLOWS}");
            let scenario = load(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
            if let Some(&(_, hosts, switches)) = COUNTS.iter().find(|(counted, ..)| counted == name) {
                let topology = &scenario.network.topology;
                assert_eq!((topology.hosts().len(), topology.switches().len()), (hosts, switches), "{name}");
                counted += 1;
            }
            // What it resolves to is the same scenario.
            let again = load(scenario.resolved()).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(scenario.resolved(), again.resolved());
        }
        assert_eq!(counted, COUNTS.len());
    }

    #[test]
    fn own_keys_are_laid_on_a_preset() {
        let text = format!(
            "[topology]\npreset = \"superpod-1024\"\nnodes = 64\nfabric_link = {{ delay = \"1us\" }}\n[switch]\n\
             preset = \"uec-port-400g\"\nqueue = {{ packets = 50 }}\n{FLOWS}"
        );
        let scenario = load(&text).expect("a scenario");
        assert_eq!(scenario.network.topology.hosts().len(), 512);
        let resolved = scenario.resolved();
        for found in [
            "rate = \"800Gbps\", delay = \"1us\"",
            "packets = 50",
            "kmin = \"103.75KB\"",
            "preset = \"uec-port-400g\"",
        ] {
            assert!(resolved.contains(found), "{found} in {resolved}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let message = |text: &str| load(&format!("{text}{FLOWS}")).err().expect("wrong");
        let unknown = message("[topology]\npreset = \"superpod-1025\"\n");
        assert!(
            unknown.contains("s.toml:2: topology.preset: ")
                && unknown.contains("did you mean \"superpod-1024\"?"),
            "{unknown}"
        );
        let kind = message("[topology]\nkind = \"star\"\npreset = \"superpod-1024\"\n");
        assert!(kind.contains("s.toml:2: topology.kind: superpod-1024 is of kind \"rail\""), "{kind}");
        let key = message("[topology]\npreset = \"superpod-1024\"\nleaves = 3\n");
        assert!(key.contains("s.toml:3: topology.leaves: unknown key"), "{key}");
        let number = message("[topology]\npreset = 3\n");
        assert!(number.contains("s.toml:2: topology.preset: "), "{number}");
    }
}
