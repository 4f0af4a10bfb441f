//! GraphML as the Topology Zoo writes it: `<key>` declares the attributes, `<data>` of nodes and edges
//! contains them, and `<default>` of a key holds where there is none. Upper and lower case are alike in
//! names.
//!
//! Source: Brandes et al., "GraphML Progress Report", Graph Drawing 2001. Nested graphs, hyperedges and ports
//! are not supported; unknown elements are skipped.

use quick_xml::XmlVersion;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;
use rustc_hash::FxHashMap;

use super::lines::{Lines, shown, text};
use super::zoo::{Edge, Graph, Place, ZooOptions};
use super::{Topology, TopologyError};

/// Reads a network from a GraphML graph. The strings are warnings.
pub fn read(
    bytes: &[u8],
    file: &str,
    options: &ZooOptions,
) -> Result<(Topology, Vec<String>), TopologyError> {
    let network = || {
        let text = text(bytes)?;
        let mut document = Document::new(text);
        document.read(text)?;
        let (topology, warnings) = document.graph.network(options)?;
        topology.validate()?;
        Ok((topology, warnings))
    };
    network().map_err(|error: TopologyError| error.in_file(file))
}

/// The element to which `<data>` belongs, or `<default>`.
#[derive(Clone, Copy, PartialEq)]
enum Within {
    Nothing,
    Key,
    Node,
    Edge,
}

/// What a `<key>` states for elements without data of its own.
struct Stated {
    line: usize,
    name: String,
    /// "node", "edge", or "all".
    of: String,
    value: String,
}

struct Document {
    lines: Lines,
    graph: Graph,
    /// Name of the attribute for each key's id.
    names: FxHashMap<String, String>,
    defaults: Vec<Stated>,
    within: Within,
    /// Attribute of the open `<data>` or `<default>` element, and its text so far.
    data: Option<(String, String)>,
    is_graphml: bool,
}

impl Document {
    fn new(text: &str) -> Document {
        Document {
            lines: Lines::of(text),
            graph: Graph::default(),
            names: FxHashMap::default(),
            defaults: Vec::new(),
            within: Within::Nothing,
            data: None,
            is_graphml: false,
        }
    }

    fn read(&mut self, text: &str) -> Result<(), TopologyError> {
        let mut reader = Reader::from_str(text);
        // Names of the open elements, and the lines of their tags.
        let mut open: Vec<(String, usize)> = Vec::new();
        loop {
            let line = self.lines.at(reader.buffer_position() as usize);
            let event = reader.read_event().map_err(|error| {
                let line = self.lines.at(reader.error_position() as usize);
                TopologyError::line(line, format!("not well-formed XML: {error}"))
            })?;
            match event {
                Event::Start(element) => {
                    open.push((element.local_name().into_inner().to_string(), line));
                    self.open(&element, line)?;
                }
                Event::Empty(element) => {
                    self.open(&element, line)?;
                    self.close(element.local_name().into_inner(), line)?;
                }
                Event::End(element) => {
                    open.pop();
                    self.close(element.local_name().into_inner(), line)?;
                }
                Event::Text(part) => self.add(&part.xml10_content()),
                Event::CData(part) => self.add(&part.xml10_content()),
                Event::GeneralRef(reference) => {
                    let named = quick_xml::escape::resolve_predefined_entity(&reference).map(str::to_string);
                    let number = reference.resolve_char_ref().ok().flatten().map(String::from);
                    self.add(&number.or(named).unwrap_or_default());
                }
                Event::Eof => break,
                _ => {}
            }
        }
        if !self.is_graphml {
            return Err(TopologyError::new("no <graphml> in the file: is it GraphML?"));
        }
        if let Some((name, line)) = open.last() {
            let message = format!("the file ends within the <{name}> of line {line}: is it truncated?");
            return Err(TopologyError::line(self.lines.at(text.trim_end().len()), message));
        }
        match self.graph.places.is_empty() {
            true => Err(TopologyError::new("the graph has no nodes")),
            false => Ok(()),
        }
    }

    fn open(&mut self, element: &BytesStart, line: usize) -> Result<(), TopologyError> {
        match element.local_name().into_inner() {
            "graphml" => self.is_graphml = true,
            "key" => {
                let id = required(element, "id", line)?;
                let name = attribute(element, "attr.name", line)?.unwrap_or_else(|| id.clone());
                let of = attribute(element, "for", line)?.unwrap_or_else(|| "all".to_string());
                self.defaults.push(Stated { line, name: name.clone(), of, value: String::new() });
                self.names.insert(id, name);
                self.within = Within::Key;
            }
            "default" if self.within == Within::Key => self.data = Some((String::new(), String::new())),
            "node" => {
                self.graph.places.push(Place {
                    line,
                    id: required(element, "id", line)?,
                    ..Place::default()
                });
                self.within = Within::Node;
                self.set_defaults("node")?;
            }
            "edge" => {
                let source = required(element, "source", line)?;
                let target = required(element, "target", line)?;
                self.graph.edges.push(Edge { line, source, target, ..Edge::default() });
                self.within = Within::Edge;
                self.set_defaults("edge")?;
            }
            "data" if matches!(self.within, Within::Node | Within::Edge) => {
                let key = required(element, "key", line)?;
                let name = self.names.get(&key).cloned().unwrap_or(key);
                self.data = Some((name, String::new()));
            }
            _ => {}
        }
        Ok(())
    }

    fn close(&mut self, element: &str, line: usize) -> Result<(), TopologyError> {
        match element {
            "default" if self.within == Within::Key => {
                let value = self.data.take().map(|(_, value)| value);
                if let Some((last, value)) = self.defaults.last_mut().zip(value) {
                    last.value = value.trim().to_string();
                }
                Ok(())
            }
            "key" => {
                self.defaults.pop_if(|last| last.value.is_empty());
                self.within = Within::Nothing;
                Ok(())
            }
            "data" => match self.data.take() {
                Some((name, value)) => self.set(&name, value.trim(), line),
                None => Ok(()),
            },
            "node" | "edge" => {
                self.within = Within::Nothing;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Gives the last element what keys state for those of its kind.
    fn set_defaults(&mut self, kind: &str) -> Result<(), TopologyError> {
        let defaults = std::mem::take(&mut self.defaults);
        let mut own = defaults.iter().filter(|default| default.of == kind || default.of == "all");
        own.try_for_each(|Stated { line, name, value, .. }| self.set(name, value, *line))?;
        self.defaults = defaults;
        Ok(())
    }

    fn add(&mut self, part: &str) {
        if let Some((_, value)) = &mut self.data {
            value.push_str(part);
        }
    }

    fn set(&mut self, name: &str, value: &str, line: usize) -> Result<(), TopologyError> {
        let number = || match value.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Some(number)),
            _ => Err(TopologyError::line(line, format!("{name}: expected a number, found {}", shown(value)))),
        };
        if self.within == Within::Edge {
            self.graph.note(name, line);
        } else {
            Graph::check_kind(name, value, line)?;
        }
        let place = self.graph.places.last_mut().filter(|_| self.within == Within::Node);
        let edge = self.graph.edges.last_mut().filter(|_| self.within == Within::Edge);
        match (name.to_ascii_lowercase().as_str(), place, edge) {
            ("label", Some(place), _) => place.label = value.to_string(),
            ("latitude", Some(place), _) => place.latitude = number()?,
            ("longitude", Some(place), _) => place.longitude = number()?,
            ("linkspeedraw", _, Some(edge)) => edge.speed = number()?,
            ("linkspeed", _, Some(edge)) => edge.number = value.to_string(),
            ("linkspeedunits", _, Some(edge)) => edge.unit = value.to_string(),
            _ => {}
        }
        Ok(())
    }
}

fn attribute(element: &BytesStart, name: &str, line: usize) -> Result<Option<String>, TopologyError> {
    let wrong =
        |error: &dyn std::fmt::Display| TopologyError::line(line, format!("wrong attribute: {error}"));
    match element.try_get_attribute(name).map_err(|error| wrong(&error))? {
        None => Ok(None),
        Some(attribute) => {
            let value = attribute.normalized_value(XmlVersion::Explicit1_0).map_err(|error| wrong(&error))?;
            Ok(Some(value.into_owned()))
        }
    }
}

fn required(element: &BytesStart, name: &str, line: usize) -> Result<String, TopologyError> {
    attribute(element, name, line)?.filter(|value| !value.is_empty()).ok_or_else(|| {
        let what = element.local_name();
        TopologyError::line(line, format!("<{}> without {name}", what.into_inner()))
    })
}

#[cfg(test)]
mod tests;
