//! A scenario's text as a tree that remembers where everything was written, so that every message can name
//! its line; and `--set path=value`, which changes the tree before it is read.

use std::collections::HashMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::Problem;
use crate::files::syntax_error;
use crate::parameters::{Value, describe};

/// Where something was written.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Origin {
    /// A line of the file, counted from 1.
    Line(usize),
    /// `--set` with this text (`path=value`).
    Set(String),
    /// Nowhere: it is missing.
    Nowhere,
}

#[derive(Debug, Clone)]
pub struct Node {
    pub data: Data,
    pub origin: Origin,
}

#[derive(Debug, Clone)]
pub enum Data {
    Scalar(Value),
    List(Vec<Node>),
    Table(Table),
}

/// Keys in the order in which they were written.
#[derive(Debug, Clone, Default)]
pub struct Table {
    pub entries: Vec<Entry>,
    /// `--set` gave a `kind`, and the file had this one, or none: the file's keys may belong to that. First
    /// of those that are written here, then of those that are inherited.
    pub replaced_kinds: [Option<Option<Value>>; 2],
}

#[derive(Debug, Clone)]
pub struct Entry {
    pub key: String,
    pub origin: Origin,
    pub node: Node,
    /// Another table was laid on its own and does not name the key.
    pub inherited: bool,
}

impl Entry {
    /// Whether the value was written in the file, not by `--set`.
    pub fn is_from_file(&self) -> bool {
        matches!(self.node.origin, Origin::Line(_))
    }

    /// Whether it is a key of the file for a kind that `--set` replaced; `replaced`: as
    /// [`Table::replaced_kinds`] has them.
    pub fn is_of_old_kind(&self, replaced: [bool; 2]) -> bool {
        self.is_from_file() && replaced[usize::from(self.inherited)]
    }
}

impl Table {
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    fn get_mut(&mut self, key: &str) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.key == key)
    }

    fn put(&mut self, key: &str, node: Node) {
        match self.get_mut(key) {
            Some(entry) => (entry.node, entry.inherited) = (node, false),
            None => {
                let origin = node.origin.clone();
                self.entries.push(Entry { key: key.to_string(), origin, node, inherited: false });
            }
        }
    }

    fn inherit(&mut self) {
        for entry in &mut self.entries {
            entry.inherited = true;
            if let Data::Table(table) = &mut entry.node.data {
                table.inherit();
            }
        }
    }

    /// This table with the keys of `over` laid on it. A sub-table is merged key by key, unless `over` names
    /// another `kind` there: then its keys replace those of the old kind.
    pub fn overlaid(&self, over: &Table) -> Table {
        let mut result = self.clone();
        result.inherit();
        let keys = self.entries.iter().map(|entry| entry.key.as_str());
        let places: HashMap<&str, usize> = keys.zip(0..).collect();
        for entry in &over.entries {
            let Some(&place) = places.get(entry.key.as_str()) else {
                result.entries.push(Entry {
                    origin: entry.node.origin.clone(),
                    inherited: false,
                    ..entry.clone()
                });
                continue;
            };
            let under = &mut result.entries[place];
            let merged = match (&under.node.data, &entry.node.data) {
                (Data::Table(old), Data::Table(new)) if !changes_kind(old, new) => {
                    Node { data: Data::Table(old.overlaid(new)), origin: entry.node.origin.clone() }
                }
                _ => entry.node.clone(),
            };
            (under.node, under.inherited) = (merged, false);
        }
        // What is laid on it without a kind has keys of the kind that the file has below.
        let of_own = if over.get("kind").is_some() { over } else { self };
        result.replaced_kinds = [of_own, self].map(|table| table.replaced_kinds[0].clone());
        result
    }
}

fn changes_kind(old: &Table, new: &Table) -> bool {
    let kind = |table: &Table| table.get("kind").map(|entry| entry.node.value());
    kind(new).is_some() && kind(new) != kind(old)
}

impl Node {
    /// The value without its places.
    pub fn value(&self) -> Value {
        match &self.data {
            Data::Scalar(value) => value.clone(),
            Data::List(nodes) => Value::List(nodes.iter().map(Node::value).collect()),
            Data::Table(table) => Value::Table(
                table.entries.iter().map(|entry| (entry.key.clone(), entry.node.value())).collect(),
            ),
        }
    }
}

/// Reads TOML. Errors: every syntax error with its line and what was expected there.
pub fn parse(text: &str, file: &str) -> Result<Table, Vec<Problem>> {
    let lines = Lines::of(text);
    let (document, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        let problem = |error: toml::de::Error| {
            let (start, message) = syntax_error(text, &error);
            Problem::new(file, start.map_or(Origin::Nowhere, |start| lines.origin(start)), "", message)
        };
        return Err(errors.into_iter().map(problem).collect());
    }
    let mut reader = TreeReader { origin_at: &|offset| lines.origin(offset), unreadable: Vec::new() };
    let table = reader.table(document.get_ref());
    let unreadable = std::mem::take(&mut reader.unreadable);
    if unreadable.is_empty() {
        return Ok(table);
    }
    Err(unreadable.into_iter().map(|(origin, message)| Problem::new(file, origin, "", message)).collect())
}

/// A problem for every key and every text that would not be printed in one line: names, groups and labels
/// reach the terminal.
pub fn unprintable(table: &Table, path: &str, file: &str) -> Vec<Problem> {
    let within = |entry: &Entry| {
        let path = format!("{path}{}", entry.key);
        match is_unprintable(&entry.key) {
            true => vec![not_printed(&entry.key, entry.origin.clone(), "", file)],
            false => unprintable_in(&entry.node, &path, file),
        }
    };
    table.entries.iter().flat_map(within).collect()
}

fn unprintable_in(node: &Node, path: &str, file: &str) -> Vec<Problem> {
    match &node.data {
        Data::Scalar(Value::Text(text)) if is_unprintable(text) => {
            vec![not_printed(text, node.origin.clone(), path, file)]
        }
        Data::Scalar(_) => Vec::new(),
        Data::List(nodes) => {
            let each = nodes.iter().enumerate();
            each.flat_map(|(place, node)| unprintable_in(node, &format!("{path}.{place}"), file)).collect()
        }
        Data::Table(table) => unprintable(table, &format!("{path}."), file),
    }
}

fn is_unprintable(text: &str) -> bool {
    text.contains(|c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}'))
}

fn not_printed(text: &str, origin: Origin, path: &str, file: &str) -> Problem {
    let message = format!("expected text in one line without control characters, found {text:?}");
    Problem::new(file, origin, path, message)
}

/// Byte offsets at which lines start.
struct Lines(Vec<usize>);

impl Lines {
    fn of(text: &str) -> Lines {
        let after_breaks = text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i + 1);
        Lines(std::iter::once(0).chain(after_breaks).collect())
    }
    fn origin(&self, offset: usize) -> Origin {
        Origin::Line(self.0.partition_point(|&start| start <= offset))
    }
}

/// Turns the parser's tree into ours.
struct TreeReader<'a> {
    origin_at: &'a dyn Fn(usize) -> Origin,
    /// Numbers that do not fit 64 bits.
    unreadable: Vec<(Origin, String)>,
}

impl TreeReader<'_> {
    fn table(&mut self, table: &DeTable) -> Table {
        let mut spanned: Vec<_> = table.iter().collect();
        spanned.sort_by_key(|(key, _)| key.span().start);
        let entry = |(key, value): (&Spanned<_>, &Spanned<DeValue>)| {
            let name: &std::borrow::Cow<str> = key.get_ref();
            Entry {
                key: name.to_string(),
                origin: (self.origin_at)(key.span().start),
                node: self.node(value),
                inherited: false,
            }
        };
        Table { entries: spanned.into_iter().map(entry).collect(), replaced_kinds: [None, None] }
    }

    fn node(&mut self, value: &Spanned<DeValue>) -> Node {
        let origin = (self.origin_at)(value.span().start);
        let data = match value.get_ref() {
            DeValue::String(text) => Data::Scalar(Value::Text(text.to_string())),
            DeValue::Boolean(flag) => Data::Scalar(Value::Flag(*flag)),
            DeValue::Datetime(date) => Data::Scalar(Value::Text(date.to_string())),
            DeValue::Array(items) => Data::List(items.iter().map(|item| self.node(item)).collect()),
            DeValue::Table(table) => Data::Table(self.table(table)),
            DeValue::Integer(digits) => match i64::from_str_radix(digits.as_str(), digits.radix()) {
                Ok(integer) => Data::Scalar(Value::Integer(integer)),
                Err(_) => {
                    let message = format!("{digits} does not fit in 64 bits");
                    self.unreadable.push((origin.clone(), message));
                    Data::Scalar(Value::Integer(0))
                }
            },
            DeValue::Float(digits) => match digits.as_str().parse::<f64>() {
                Ok(number) => Data::Scalar(Value::Number(number)),
                Err(_) => {
                    let message = format!("{digits} cannot be represented");
                    self.unreadable.push((origin.clone(), message));
                    Data::Scalar(Value::Number(0.0))
                }
            },
        };
        Node { data, origin }
    }
}

/// Applies `--set path=text`. The text is a TOML value (`0.7`, `true`, `[1, 2]`) or, failing that, a bare
/// string (`dctcp`, `10us`). A number in the path is an index into a list; missing tables are created.
/// Errors: a path that leads through something that is not a table, or past the end of a list.
pub fn set(root: &mut Table, path: &str, text: &str, file: &str) -> Result<(), Problem> {
    let origin = Origin::Set(format!("{path}={text}"));
    let fail = |message: String| Problem::new(file, origin.clone(), path, message);
    let segments: Vec<&str> = path.split('.').collect();
    if segments.iter().any(|segment| segment.trim().is_empty()) {
        let message = "expected a path such as transport.controller.kind, then = and a value";
        return Err(fail(message.to_string()));
    }
    let node = set_value(text, &origin);
    set_in_table(root, &segments, node, 0).map_err(fail)
}

fn set_value(text: &str, origin: &Origin) -> Node {
    let bare = || Node { data: Data::Scalar(Value::Text(text.to_string())), origin: origin.clone() };
    let Ok(parsed) = DeValue::parse(text) else { return bare() };
    // A date is never meant, and 1e400 or 99999999999999999999 are left for the reader of the key to refuse.
    if matches!(parsed.get_ref(), DeValue::Datetime(_)) {
        return bare();
    }
    let mut reader = TreeReader { origin_at: &|_| origin.clone(), unreadable: Vec::new() };
    let node = reader.node(&parsed);
    if reader.unreadable.is_empty() { node } else { bare() }
}

/// Puts `node` at `segments[depth..]` below `table`.
fn set_in_table(table: &mut Table, segments: &[&str], node: Node, depth: usize) -> Result<(), String> {
    let key = segments[depth];
    if depth + 1 == segments.len() {
        if key == "kind" {
            let old = table.get("kind").map(|entry| entry.node.value());
            table.replaced_kinds[0].get_or_insert(old);
        }
        table.put(key, node);
        return Ok(());
    }
    if table.get(key).is_none() {
        let data = match segments[depth + 1].parse::<usize>() {
            Ok(_) => Data::List(Vec::new()),
            Err(_) => Data::Table(Table::default()),
        };
        table.put(key, Node { data, origin: node.origin.clone() });
    }
    match table.get_mut(key) {
        Some(entry) => set_in_node(&mut entry.node, segments, node, depth + 1),
        None => Ok(()),
    }
}

fn set_in_node(place: &mut Node, segments: &[&str], node: Node, depth: usize) -> Result<(), String> {
    let reached = segments[..depth].join(".");
    match &mut place.data {
        Data::Table(table) => set_in_table(table, segments, node, depth),
        Data::Scalar(value) => {
            Err(format!("{reached} is {}, which has nothing named \"{}\"", describe(value), segments[depth]))
        }
        Data::List(items) => {
            let length = items.len();
            let Ok(index) = segments[depth].parse::<usize>() else {
                let found = segments[depth];
                return Err(format!("{reached} is a list: expected an index from 0, found \"{found}\""));
            };
            if index > length {
                let entries = if length == 1 { "entry" } else { "entries" };
                return Err(format!("{reached} has {length} {entries}: index {index} is past its end"));
            }
            let last = depth + 1 == segments.len();
            if last {
                if index == length {
                    items.push(node)
                } else {
                    items[index] = node
                }
                return Ok(());
            }
            if index == length {
                items.push(Node { data: Data::Table(Table::default()), origin: node.origin.clone() });
            }
            set_in_node(&mut items[index], segments, node, depth + 1)
        }
    }
}

#[cfg(test)]
mod tests;
