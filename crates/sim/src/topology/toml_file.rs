//! weftline's own topology file: `[[node]]` and `[[link]]` tables in TOML, written and read back without
//! loss.
//!
//! ```toml
//! [[node]]
//! name = "host0"
//! kind = "host"          # or "switch"
//! # label = 17           # number of the host, where it is not its place among the hosts
//! # tier = 1             # switches only; found from the links when no switch has one
//!
//! [[link]]
//! a = "host0"
//! b = "leaf0"
//! rate = "100Gbps"
//! delay = "1us"
//! ```

use rustc_hash::FxHashMap;
use std::fmt::Write;

use toml::de::{DeTable, DeValue};

use super::lines::{Lines, shown, text};
use super::{Link, Node, NodeId, NodeKind, Topology, TopologyError};
use crate::files::syntax_error;
use crate::parameters::{nearest, unknown};
use crate::units::UnitError;

/// Reads weftline's TOML, without warnings.
pub fn read(bytes: &[u8], file: &str) -> Result<(Topology, Vec<String>), TopologyError> {
    let topology = || {
        let topology = parse(text(bytes)?)?;
        topology.validate()?;
        Ok((topology, Vec::new()))
    };
    topology().map_err(|error: TopologyError| error.in_file(file))
}

/// Writes a topology so that [`read`] returns it.
pub fn write_toml(topology: &Topology) -> String {
    let quoted = |name: &str| toml::Value::String(name.to_string());
    let mut out = String::new();
    let mut host = 0;
    // Writing to a String cannot fail.
    for node in &topology.nodes {
        let _ = write!(out, "[[node]]\nname = {}\n", quoted(&node.name));
        match node.kind {
            NodeKind::Host => {
                let _ = writeln!(out, "kind = \"host\"");
                if let Some(label) = topology.host_labels.get(host) {
                    let _ = writeln!(out, "label = {label}");
                }
                host += 1;
            }
            NodeKind::Switch => {
                let _ = write!(out, "kind = \"switch\"\ntier = {}\n", node.tier);
            }
        }
        out.push('\n');
    }
    for link in &topology.links {
        let name = |node: NodeId| quoted(&topology.nodes[node as usize].name);
        let _ = write!(out, "[[link]]\na = {}\nb = {}\n", name(link.a), name(link.b));
        let _ = write!(out, "rate = \"{}\"\ndelay = \"{}\"\n\n", link.rate, link.delay);
    }
    out
}

fn parse(text: &str) -> Result<Topology, TopologyError> {
    let lines = Lines::of(text);
    let document = DeTable::parse(text).map_err(|error| {
        let (start, message) = syntax_error(text, &error);
        TopologyError::line(lines.at(start.unwrap_or(0)), message)
    })?;
    let mut reader =
        Reader { lines, topology: Topology::default(), by_name: FxHashMap::default(), labels: Vec::new() };
    let table = document.get_ref();
    for (key, _) in table.iter() {
        if !matches!(key.get_ref().as_ref(), "node" | "link") {
            let line = reader.lines.at(key.span().start);
            let message = unknown("key", key.get_ref(), ["node", "link"].into_iter());
            return Err(TopologyError::line(line, message));
        }
    }
    for section in reader.sections(table, "node")? {
        reader.node(&section)?;
    }
    for section in reader.sections(table, "link")? {
        reader.link(&section)?;
    }
    reader.finish()
}

/// A `[[node]]` or `[[link]]`.
struct Section<'d> {
    line: usize,
    what: &'static str,
    table: &'d DeTable<'d>,
}

struct Reader {
    lines: Lines,
    topology: Topology,
    by_name: FxHashMap<String, NodeId>,
    /// Label of each host that has one.
    labels: Vec<Option<u32>>,
}

impl Reader {
    fn sections<'d>(
        &self,
        table: &'d DeTable<'d>,
        what: &'static str,
    ) -> Result<Vec<Section<'d>>, TopologyError> {
        let Some(value) = table.get(what) else {
            return Err(TopologyError::new(format!("no [[{what}]] in the file")));
        };
        let wrong = |at: usize| TopologyError::line(self.lines.at(at), format!("expected [[{what}]] tables"));
        let DeValue::Array(array) = value.get_ref() else { return Err(wrong(value.span().start)) };
        array
            .iter()
            .map(|item| match item.get_ref() {
                DeValue::Table(table) => Ok(Section { line: self.lines.at(item.span().start), what, table }),
                _ => Err(wrong(item.span().start)),
            })
            .collect()
    }

    fn node(&mut self, section: &Section) -> Result<(), TopologyError> {
        self.only(section, &["name", "kind", "label", "tier"])?;
        let (line, name) = self.text(section, "name")?;
        let (kind_line, kind) = self.text(section, "kind")?;
        let kind = match kind.as_str() {
            "host" => NodeKind::Host,
            "switch" => NodeKind::Switch,
            other => {
                let message = unknown("kind of node", other, ["host", "switch"].into_iter());
                return Err(TopologyError::line(kind_line, message));
            }
        };
        super::validity::check_name(&name).map_err(|message| TopologyError::line(line, message))?;
        let id = self.topology.nodes.len() as NodeId;
        if self.by_name.insert(name.clone(), id).is_some() {
            return Err(TopologyError::line(line, format!("two nodes are named \"{name}\"")));
        }
        let tier = self.integer(section, "tier", kind == NodeKind::Switch, "switches", 255)?;
        let label = self.integer(section, "label", kind == NodeKind::Host, "hosts", u32::MAX)?;
        if kind == NodeKind::Host {
            self.labels.push(label);
        }
        self.topology.nodes.push(Node { name, kind, tier: tier.unwrap_or(0) as u8 });
        Ok(())
    }

    fn link(&mut self, section: &Section) -> Result<(), TopologyError> {
        self.only(section, &["a", "b", "rate", "delay"])?;
        let end = |key| {
            let (line, name) = self.text(section, key)?;
            self.by_name.get(&name).copied().ok_or_else(|| {
                let near = nearest(&name, self.topology.nodes.iter().map(|node| node.name.as_str()));
                let hint = near.map_or(String::new(), |near| format!(": did you mean \"{near}\"?"));
                TopologyError::line(line, format!("{key}: unknown node {}{hint}", shown(&name)))
            })
        };
        let (a, b) = (end("a")?, end("b")?);
        let (rate_line, rate) = self.text(section, "rate")?;
        let (delay_line, delay) = self.text(section, "delay")?;
        let rate =
            rate.parse().map_err(|e: UnitError| TopologyError::line(rate_line, format!("rate: {e}")))?;
        let delay =
            delay.parse().map_err(|e: UnitError| TopologyError::line(delay_line, format!("delay: {e}")))?;
        let link = Link { a, b, rate, delay };
        self.topology.check_link(&link).map_err(|message| TopologyError::line(section.line, message))?;
        self.topology.links.push(link);
        Ok(())
    }

    fn only(&self, section: &Section, known: &[&str]) -> Result<(), TopologyError> {
        for (key, _) in section.table.iter() {
            if !known.contains(&key.get_ref().as_ref()) {
                let message = unknown("key", key.get_ref(), known.iter().copied());
                return Err(TopologyError::line(self.lines.at(key.span().start), message));
            }
        }
        Ok(())
    }

    fn text(&self, section: &Section, key: &str) -> Result<(usize, String), TopologyError> {
        let Some(value) = section.table.get(key) else {
            return Err(TopologyError::line(section.line, format!("[[{}]] without {key}", section.what)));
        };
        let line = self.lines.at(value.span().start);
        match value.get_ref() {
            DeValue::String(text) => Ok((line, text.to_string())),
            _ => Err(TopologyError::line(line, format!("{key}: expected text in quotes"))),
        }
    }

    fn integer(
        &self,
        section: &Section,
        key: &str,
        allowed: bool,
        whose: &str,
        max: u32,
    ) -> Result<Option<u32>, TopologyError> {
        let Some(value) = section.table.get(key) else { return Ok(None) };
        let line = self.lines.at(value.span().start);
        if !allowed {
            return Err(TopologyError::line(line, format!("{key}: only {whose} have one")));
        }
        let number = match value.get_ref() {
            DeValue::Integer(i) => u32::from_str_radix(i.as_str(), i.radix()).ok().filter(|&n| n <= max),
            _ => None,
        };
        match number {
            Some(number) => Ok(Some(number)),
            None => Err(TopologyError::line(line, format!("{key}: expected a whole number from 0 to {max}"))),
        }
    }

    /// Either all hosts have labels or none; tiers are computed if no switch has one.
    fn finish(mut self) -> Result<Topology, TopologyError> {
        if self.labels.iter().any(Option::is_some) {
            let place = |(i, label): (usize, &Option<u32>)| label.unwrap_or(i as u32);
            self.topology.host_labels = self.labels.iter().enumerate().map(place).collect();
        }
        if self.topology.nodes.iter().all(|node| node.tier == 0) {
            self.topology.find_tiers();
        }
        Ok(self.topology)
    }
}

#[cfg(test)]
mod tests;
