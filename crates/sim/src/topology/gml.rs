//! GML as the Topology Zoo writes it: keys with a number, a string or a list in brackets.
//!
//! Source: Himsolt, "GML: A portable Graph File Format", 1996. Comments begin with `#`; unknown keys are
//! skipped.

use super::lines::{Lines, shown, text};
use super::zoo::{Edge, Graph, Place, ZooOptions};
use super::{Topology, TopologyError};

/// Maximum nesting of lists, so that a malicious file cannot exhaust the stack.
const MAX_DEPTH: usize = 32;

/// Reads a network from a GML graph. The strings are warnings.
pub fn read(
    bytes: &[u8],
    file: &str,
    options: &ZooOptions,
) -> Result<(Topology, Vec<String>), TopologyError> {
    let network = || {
        let graph = graph(text(bytes)?)?;
        let (topology, warnings) = graph.network(options)?;
        topology.validate()?;
        Ok((topology, warnings))
    };
    network().map_err(|error: TopologyError| error.in_file(file))
}

fn graph(text: &str) -> Result<Graph, TopologyError> {
    let mut tokens = Tokens { text, place: 0, lines: Lines::of(text) };
    let top = tokens.entries(0)?;
    let graph = top.iter().find(|entry| entry.key.eq_ignore_ascii_case("graph"));
    let Some(Entry { value: Value::List(entries), .. }) = graph else {
        return Err(TopologyError::new("no `graph [ ... ]` in the file: is it GML?"));
    };
    let mut graph = Graph::default();
    for entry in entries {
        match (entry.key.to_ascii_lowercase().as_str(), &entry.value) {
            ("node", Value::List(node)) => graph.places.push(place(entry.line, node)?),
            ("edge", Value::List(link)) => {
                graph.edges.push(edge(entry.line, link)?);
                link.iter().for_each(|one| graph.note(one.key, one.line));
            }
            ("node" | "edge", _) => {
                return Err(TopologyError::line(entry.line, format!("expected `{} [ ... ]`", entry.key)));
            }
            _ => {}
        }
    }
    if graph.places.is_empty() {
        return Err(TopologyError::new("the graph has no nodes"));
    }
    Ok(graph)
}

fn place(line: usize, entries: &[Entry]) -> Result<Place, TopologyError> {
    entries.iter().try_for_each(|one| Graph::check_kind(one.key, &one.value.text(), one.line))?;
    Ok(Place {
        line,
        id: required(line, entries, "node", "id")?,
        label: find(entries, "label").map(|e| e.value.text()).unwrap_or_default(),
        latitude: number(entries, "Latitude")?,
        longitude: number(entries, "Longitude")?,
    })
}

fn edge(line: usize, entries: &[Entry]) -> Result<Edge, TopologyError> {
    let source = required(line, entries, "edge", "source")?;
    let target = required(line, entries, "edge", "target")?;
    let text = |key| find(entries, key).map(|entry| entry.value.text()).unwrap_or_default();
    Ok(Edge {
        line,
        source,
        target,
        speed: number(entries, "LinkSpeedRaw")?,
        number: text("LinkSpeed"),
        unit: text("LinkSpeedUnits"),
    })
}

fn find<'e, 't>(entries: &'e [Entry<'t>], key: &str) -> Option<&'e Entry<'t>> {
    entries.iter().find(|entry| entry.key.eq_ignore_ascii_case(key))
}

fn required(line: usize, entries: &[Entry], what: &str, key: &str) -> Result<String, TopologyError> {
    let entry = find(entries, key).map(|e| e.value.text()).filter(|text| !text.is_empty());
    entry.ok_or_else(|| TopologyError::line(line, format!("{what} without `{key}`")))
}

fn number(entries: &[Entry], key: &str) -> Result<Option<f64>, TopologyError> {
    let Some(entry) = find(entries, key) else { return Ok(None) };
    match entry.value.text().trim().parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(Some(number)),
        _ => {
            let found = shown(&entry.value.text());
            Err(TopologyError::line(entry.line, format!("{key}: expected a number, found {found}")))
        }
    }
}

struct Entry<'t> {
    line: usize,
    key: &'t str,
    value: Value<'t>,
}

enum Value<'t> {
    /// A number or a string without its quotes.
    Text(&'t str),
    List(Vec<Entry<'t>>),
}

impl Value<'_> {
    fn text(&self) -> String {
        match self {
            Value::Text(text) => unescape(text),
            Value::List(_) => String::new(),
        }
    }
}

/// Decodes the five named entities and numeric ones, such as `&#233;`; GML has no other representation of
/// non-ASCII letters.
fn unescape(text: &str) -> String {
    quick_xml::escape::unescape(text).map_or_else(|_| text.to_string(), |text| text.into_owned())
}

struct Tokens<'t> {
    text: &'t str,
    place: usize,
    lines: Lines,
}

impl<'t> Tokens<'t> {
    fn error(&self, message: impl Into<String>) -> TopologyError {
        TopologyError::line(self.lines.at(self.place), message)
    }

    /// Entries up to the closing bracket, or to the end of the file at the top level.
    fn entries(&mut self, depth: usize) -> Result<Vec<Entry<'t>>, TopologyError> {
        if depth > MAX_DEPTH {
            return Err(self.error(format!("lists are nested deeper than {MAX_DEPTH}")));
        }
        let mut entries = Vec::new();
        loop {
            self.skip_space();
            match self.text[self.place..].chars().next() {
                None if depth == 0 => return Ok(entries),
                None => return Err(self.error("the file ends within a list: is it truncated?")),
                Some(']') if depth > 0 => {
                    self.place += 1;
                    return Ok(entries);
                }
                Some(_) => entries.push(self.entry(depth)?),
            }
        }
    }

    fn entry(&mut self, depth: usize) -> Result<Entry<'t>, TopologyError> {
        let line = self.lines.at(self.place);
        let key = self.take_while(|c| c.is_ascii_alphanumeric() || c == '_');
        if key.is_empty() || key.starts_with(|c: char| c.is_ascii_digit()) {
            let found = shown(&self.text[self.place..].chars().take(12).collect::<String>());
            return Err(self.error(format!("expected a key, found {found}")));
        }
        self.skip_space();
        let value = match self.text[self.place..].chars().next() {
            Some('[') => {
                self.place += 1;
                Value::List(self.entries(depth + 1)?)
            }
            Some('"') => self.string()?,
            Some(c) if c.is_ascii_digit() || matches!(c, '+' | '-' | '.') => {
                Value::Text(self.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.')))
            }
            _ => return Err(self.error(format!("expected a number, \"text\" or [ after `{key}`"))),
        };
        Ok(Entry { line, key, value })
    }

    fn string(&mut self) -> Result<Value<'t>, TopologyError> {
        let rest = &self.text[self.place + 1..];
        match rest.find('"') {
            Some(end) => {
                self.place += end + 2;
                Ok(Value::Text(&rest[..end]))
            }
            None => Err(self.error("a string without its closing quote")),
        }
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> &'t str {
        let rest = &self.text[self.place..];
        let taken = &rest[..rest.find(|c| !wanted(c)).unwrap_or(rest.len())];
        self.place += taken.len();
        taken
    }

    fn skip_space(&mut self) {
        loop {
            self.take_while(char::is_whitespace);
            if !self.text[self.place..].starts_with('#') {
                return;
            }
            self.take_while(|c| c != '\n');
        }
    }
}

#[cfg(test)]
mod tests;
