//! One table of a scenario as a source of parameters: it hands out values, collects complaints with their
//! places, knows which keys were declared, and keeps the values that hold for the resolved scenario.

use std::cell::Cell;
use std::collections::HashSet;
use std::rc::Rc;

use super::catalogue;
use super::document::{Data, Entry, Node, Origin, Table};
use super::problem::{LISTED_PROBLEMS, Problem};
use crate::parameters::{
    Declared, Kind, Names, Parameters, Source, Value, describe, meant, nearest_key, unknown,
};

/// Unknown keys of a scenario for which the known ones are listed and the nearest name is looked for: of more, few are shown.
const EXPLAINED: usize = 10 * LISTED_PROBLEMS;

static EMPTY: Table = Table { entries: Vec::new(), replaced_kinds: [None, None] };

/// A table being read.
pub struct Section<'d> {
    file: &'d str,
    /// Where it stands, such as `transport.controller`; empty for the whole file.
    path: String,
    table: &'d Table,
    origin: Origin,
    /// A scheme's table: none of its keys means the same under another kind.
    is_scheme: bool,
    /// `--set` chose another kind than the file has, for the keys that are written here and those that are inherited.
    kind_replaced: [bool; 2],
    /// `--set` chose another kind for what this scheme is part of.
    outer_replaced: bool,
    /// Its kind is unknown, so that its other keys cannot be checked.
    unreadable: bool,
    /// Keys read or declared, dotted.
    known: Vec<String>,
    /// Keys whose whole subtree was read by someone else.
    whole: Vec<String>,
    /// Unknown keys so far, of this section and those that it comes from and contains.
    unknown: Rc<Cell<usize>>,
    findings: Findings,
}

/// What reading a section gave.
#[derive(Debug, Default)]
pub struct Findings {
    pub problems: Vec<Problem>,
    pub warnings: Vec<String>,
    /// Declared keys with their dotted path relative to the section.
    pub declared: Vec<(String, Declared)>,
    /// The values that hold, nested as they are written.
    pub resolved: Vec<(String, Value)>,
}

impl<'d> Section<'d> {
    pub fn root(table: &'d Table, file: &'d str) -> Section<'d> {
        Section::new(file, String::new(), table, Origin::Nowhere)
    }

    /// A section with nothing in it, for the list of keys.
    pub fn empty(path: &str) -> Section<'static> {
        Section::new("", path.to_string(), &EMPTY, Origin::Nowhere)
    }

    /// A table made from others (an override laid on its base), to be read as `path`.
    pub fn over(file: &'d str, path: &str, table: &'d Table, origin: Origin) -> Section<'d> {
        Section::new(file, path.to_string(), table, origin)
    }

    fn new(file: &'d str, path: String, table: &'d Table, origin: Origin) -> Section<'d> {
        Section {
            file,
            path,
            table,
            origin,
            is_scheme: false,
            kind_replaced: [false; 2],
            outer_replaced: false,
            unreadable: false,
            known: Vec::new(),
            whole: Vec::new(),
            unknown: Rc::default(),
            findings: Findings::default(),
        }
    }

    /// A section of this one.
    fn inner(&self, path: String, table: &'d Table, origin: Origin) -> Section<'d> {
        Section { unknown: self.unknown.clone(), ..Section::new(self.file, path, table, origin) }
    }

    pub fn parameters(&mut self) -> Parameters<'_> {
        Parameters::new(self)
    }

    pub fn path(&self) -> &str {
        &self.path
    }

    pub fn file(&self) -> &'d str {
        self.file
    }

    pub fn table(&self) -> &'d Table {
        self.table
    }

    /// Where this section is written.
    pub fn origin(&self) -> Origin {
        self.origin.clone()
    }

    /// The value of `key` as written, without declaring it.
    pub fn peek(&self, key: &str) -> Option<Value> {
        self.find(key).map(|entry| entry.node.value())
    }

    /// Lets messages about unknown keys offer `key`, which is read only where it is given.
    pub fn offer(&mut self, key: &str) {
        self.known.push(key.to_string());
    }

    /// A value that holds, by its dotted key, once it was read.
    pub fn resolved(&self, key: &str) -> Option<&Value> {
        let mut table = &self.findings.resolved;
        let mut segments = key.split('.').peekable();
        while let Some(segment) = segments.next() {
            let (_, value) = table.iter().find(|(name, _)| name == segment)?;
            match value {
                value if segments.peek().is_none() => return Some(value),
                Value::Table(inner) => table = inner,
                _ => return None,
            }
        }
        None
    }

    /// Replaces or adds a value that holds.
    pub fn resolve(&mut self, key: &str, value: Value) {
        insert(&mut self.findings.resolved, key, value);
    }

    /// Takes a value, by its dotted key, out of the resolved scenario: it has no effect there.
    pub fn forget(&mut self, key: &str) {
        remove(&mut self.findings.resolved, key);
    }

    /// Nothing is wrong so far.
    pub fn is_clean(&self) -> bool {
        self.findings.problems.is_empty() && !self.unreadable
    }

    pub fn warn(&mut self, message: String) {
        self.findings.warnings.push(message);
    }

    /// Something is wrong with this section as a whole.
    pub fn complain_here(&mut self, message: String) {
        let problem = Problem::new(self.file, self.origin.clone(), &self.path, message);
        self.findings.problems.push(problem);
    }

    /// Which of `names` this section is. `what` names them in messages. None: missing or unknown (reported).
    pub fn kind(
        &mut self,
        what: &str,
        default: Option<&'static str>,
        names: &'static [(&'static str, &'static str)],
        help: &'static str,
    ) -> Option<&'static str> {
        let list = || names.iter().map(|(name, _)| *name);
        let chosen = match self.get("kind") {
            None => default,
            Some(Value::Text(text)) => {
                let known = list().find(|name| *name == text);
                if known.is_none() {
                    let message = match catalogue::sections_with(&text).as_slice() {
                        [] => unknown(what, &text, list()),
                        others => {
                            let known = list().collect::<Vec<_>>().join(", ");
                            let others = others.join(" or ");
                            format!("unknown {what} \"{text}\": it is a kind of {others} (known: {known})")
                        }
                    };
                    self.complain("kind", message);
                }
                known
            }
            Some(other) => {
                let names = list().collect::<Vec<_>>().join(", ");
                let message = format!("expected a {what} (one of {names}), found {}", describe(&other));
                self.complain("kind", message);
                None
            }
        };
        if let Some(chosen) = chosen {
            self.settle_kind(chosen, default);
        } else {
            if self.find("kind").is_none() && !self.unreadable {
                let names = list().collect::<Vec<_>>().join(", ");
                self.complain("kind", format!("missing: expected a {what} (one of {names})"));
            }
            self.unreadable = true;
        }
        let declared = Declared::new("kind", Kind::Choice(names), default.map(Into::into), help);
        self.declare(declared, chosen.map(|name| Value::Text(name.to_string())));
        chosen
    }

    /// The table under `key`; an empty one if it is missing.
    pub fn child(&mut self, key: &str) -> Section<'d> {
        let path = self.path_of(key);
        self.whole.push(key.to_string());
        let Some(entry) = self.find(key) else {
            return self.inner(path, &EMPTY, self.origin.clone());
        };
        match &entry.node.data {
            Data::Table(table) => self.inner(path, table, entry.origin.clone()),
            _ => {
                let value = entry.node.value();
                let found = describe(&value);
                let meant = match &value {
                    Value::Text(text) if !catalogue::sections_with(text).is_empty() => {
                        format!(": the kind is {path}.kind")
                    }
                    _ => String::new(),
                };
                self.complain(key, format!("expected a table, found {found}{meant}"));
                let mut child = self.inner(path, &EMPTY, entry.origin.clone());
                child.unreadable = true;
                child
            }
        }
    }

    /// The table of a scheme under `key`. Where `--set` chooses another kind than the file, the file's other
    /// keys belong to the old kind and are left out, with a warning.
    pub fn scheme(&mut self, key: &str) -> Section<'d> {
        let mut child = self.child(key);
        child.is_scheme = true;
        child.outer_replaced = self.kind_replaced != [false; 2];
        child
    }

    /// Notes which kind this is, before its other keys are read.
    pub fn settle_kind(&mut self, chosen: &str, default: Option<&str>) {
        let is_another = |old: &Option<Value>| match old {
            Some(Value::Text(old)) => old != chosen,
            Some(_) => true,
            None => default != Some(chosen),
        };
        let replaced = self.table.replaced_kinds.each_ref().map(|old| old.as_ref().is_some_and(is_another));
        if replaced != [false; 2] {
            self.kind_replaced = replaced;
            if self.is_scheme {
                self.leave_out_file();
            }
        }
    }

    fn leave_out_file(&mut self) {
        let replaced = self.kind_replaced;
        for entry in self.table.entries.iter().filter(|entry| entry.is_of_old_kind(replaced)) {
            self.warn_left_out(&entry.key);
        }
    }

    fn warn_left_out(&mut self, key: &str) {
        let path = self.path_of(key);
        self.warn(format!("{path} of the file is ignored: --set chose another kind than the file"));
    }

    /// What `--set` gave inside of a table of the file that is left out goes with it.
    fn warn_set_left_out(&mut self, key: &str, node: &Node) {
        if let Origin::Set(text) = &node.origin {
            let path = self.path_of(key);
            return self
                .warn(format!("--set {text} is ignored: the kind that --set chose does not take {path}"));
        }
        match &node.data {
            Data::Table(table) => table.entries.iter().for_each(|one| self.warn_set_left_out(key, &one.node)),
            Data::List(nodes) => nodes.iter().for_each(|one| self.warn_set_left_out(key, one)),
            Data::Scalar(_) => {}
        }
    }

    /// The tables of the list under `key`: `[[key]]`. A single table counts as a list of one.
    pub fn children(&mut self, key: &str) -> Vec<Section<'d>> {
        let path = self.path_of(key);
        self.whole.push(key.to_string());
        let Some(entry) = self.find(key) else { return Vec::new() };
        let nodes = match &entry.node.data {
            Data::List(nodes) => nodes.as_slice(),
            _ => std::slice::from_ref(&entry.node),
        };
        let mut children = Vec::with_capacity(nodes.len());
        for (i, node) in nodes.iter().enumerate() {
            let path = format!("{path}.{i}");
            match &node.data {
                Data::Table(table) => {
                    children.push(self.inner(path, table, node.origin.clone()));
                }
                _ => {
                    let message = format!("expected a table, found {}", describe(&node.value()));
                    let problem = Problem::new(self.file, node.origin.clone(), &path, message);
                    self.findings.problems.push(problem);
                }
            }
        }
        children
    }

    /// Takes over what a child found. `key`: the child's dotted key, with its index if it is in a list.
    pub fn absorb(&mut self, key: &str, child: Section) {
        let findings = child.finish();
        self.findings.problems.extend(findings.problems);
        self.findings.warnings.extend(findings.warnings);
        let declared = findings.declared.into_iter();
        self.findings.declared.extend(declared.map(|(path, d)| (format!("{key}.{path}"), d)));
        if !findings.resolved.is_empty() {
            insert(&mut self.findings.resolved, key, Value::Table(findings.resolved));
        }
    }

    /// The same for the children of a list.
    pub fn absorb_list(&mut self, key: &str, children: Vec<Section>) {
        let mut tables = Vec::with_capacity(children.len());
        // Most children declare the same keys.
        let mut known: HashSet<String> = HashSet::new();
        for child in children {
            let findings = child.finish();
            self.findings.problems.extend(findings.problems);
            self.findings.warnings.extend(findings.warnings);
            for (path, declared) in findings.declared {
                if !known.contains(&path) {
                    self.findings.declared.push((format!("{key}.{path}"), declared));
                    known.insert(path);
                }
            }
            tables.push(Value::Table(findings.resolved));
        }
        if !tables.is_empty() {
            insert(&mut self.findings.resolved, key, Value::List(tables));
        }
    }

    /// Ends the reading: reports unknown keys.
    pub fn finish(mut self) -> Findings {
        if !self.unreadable {
            self.check_unknown(self.table, "");
        }
        self.findings
    }

    fn check_unknown(&mut self, table: &'d Table, prefix: &str) {
        for entry in &table.entries {
            let key = format!("{prefix}{}", entry.key);
            let left_out = entry.is_of_old_kind(self.kind_replaced);
            if self.whole.contains(&key) || self.known.contains(&key) || (left_out && self.is_scheme) {
                continue;
            }
            let deeper = format!("{key}.");
            if self.known.iter().chain(&self.whole).any(|known| known.starts_with(&deeper)) {
                match &entry.node.data {
                    Data::Table(inner) => self.check_unknown(inner, &deeper),
                    _ => self.complain_not_table(&key, entry),
                }
                continue;
            }
            if left_out {
                self.warn_left_out(&key);
                self.warn_set_left_out(&key, &entry.node);
                continue;
            }
            self.complain_unknown(&key, prefix, entry);
        }
    }

    fn complain_not_table(&mut self, key: &str, entry: &Entry) {
        let deeper = format!("{key}.");
        let inner: Vec<&str> = self.known.iter().filter_map(|known| known.strip_prefix(&deeper)).collect();
        let found = describe(&entry.node.value());
        let message = format!("expected a table with {}, found {found}", inner.join(", "));
        self.complain(key, message);
    }

    fn complain_unknown(&mut self, key: &str, prefix: &str, entry: &Entry) {
        let path = self.path_of(key);
        let origin = if entry.is_from_file() { entry.origin.clone() } else { entry.node.origin.clone() };
        let before = self.unknown.replace(self.unknown.get() + 1);
        if before >= EXPLAINED {
            let message = "unknown key".to_string();
            self.findings.problems.push(Problem::new(self.file, origin, &path, message));
            return;
        }
        // Known names at the same level, without what lies below them.
        let mut level: Vec<&str> = Vec::new();
        for known in self.known.iter().chain(&self.whole) {
            let Some(name) = known.strip_prefix(prefix).and_then(|rest| rest.split('.').next()) else {
                continue;
            };
            if !level.contains(&name) {
                level.push(name);
            }
        }
        let others = super::catalogue::kinds_with(&path);
        let list = level.join(", ");
        let by_meaning = || {
            let own = |(key, declared): &'_ (String, Declared)| {
                let name = key.strip_prefix(prefix).filter(|name| !name.contains('.'))?;
                Some((name.to_string(), declared.help))
            };
            let described: Vec<(String, &str)> = self.findings.declared.iter().filter_map(own).collect();
            let found = meant(&entry.key, described.iter().map(|(name, help)| (name.as_str(), *help)));
            (1..=2).contains(&found.len()).then(|| found.join("\" or \""))
        };
        let near = nearest_key(&entry.key, level.iter().copied(), by_meaning);
        let message = match near {
            _ if !others.is_empty() => {
                format!("unknown key: it belongs to kind {} (known: {list})", others.join(", "))
            }
            Some(near) => format!("unknown key: did you mean \"{near}\"? (known: {list})"),
            None => format!("unknown key (known: {list})"),
        };
        self.findings.problems.push(Problem::new(self.file, origin, &path, message));
    }

    pub fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_string() } else { format!("{}.{key}", self.path) }
    }

    /// The entry at a dotted key.
    fn find(&self, key: &str) -> Option<&'d Entry> {
        let mut table = self.table;
        let mut segments = key.split('.').peekable();
        while let Some(segment) = segments.next() {
            let entry = table.get(segment)?;
            if segments.peek().is_none() {
                let left_out = self.is_scheme && entry.is_of_old_kind(self.kind_replaced);
                return (!left_out).then_some(entry);
            }
            match &entry.node.data {
                Data::Table(inner) => table = inner,
                _ => return None,
            }
        }
        None
    }

    /// Where `key` is written, or as much of its path as is.
    pub fn origin_of(&self, key: &str) -> Origin {
        let mut origin = self.origin.clone();
        let mut table = self.table;
        for segment in key.split('.') {
            let Some(entry) = table.get(segment) else { break };
            origin = value_origin(entry);
            match &entry.node.data {
                Data::Table(inner) => table = inner,
                _ => break,
            }
        }
        origin
    }
}

/// A table is where its header is; a value is where it is written.
fn value_origin(entry: &Entry) -> Origin {
    match &entry.node {
        Node { data: Data::Table(_), .. } => entry.origin.clone(),
        node => node.origin.clone(),
    }
}

impl Source for Section<'_> {
    fn peek(&self, key: &str) -> Option<Value> {
        Section::peek(self, key)
    }
    fn is_own(&self, key: &str) -> bool {
        self.find(key).is_some_and(|entry| !entry.inherited)
    }
    fn report_idle(&mut self, key: &str, message: String) {
        let Some(entry) = self.find(key).filter(|entry| !entry.inherited) else { return };
        // Sweeps change a kind, or turn something off, that keys of their file belong to.
        let is_set = |entry: &Entry| matches!(entry.node.origin, Origin::Set(_));
        if entry.is_from_file() && self.table.entries.iter().any(is_set) {
            let path = self.path_of(key);
            self.warn(format!("{path} of the file is ignored, as --set changed its table: {message}"));
        } else {
            self.complain(key, message);
        }
    }
    fn is_default(&self, key: &str) -> bool {
        let declared = self.findings.declared.iter().find(|(path, _)| path == key);
        let default = declared.and_then(|(_, declared)| declared.default.as_deref());
        let text = self.resolved(key).map(|value| match value {
            Value::Text(text) => text.clone(),
            other => describe(other),
        });
        text.is_some() && text.as_deref() == default
    }
    fn forget(&mut self, key: &str) {
        Section::forget(self, key);
    }
    fn warn(&mut self, message: String) {
        Section::warn(self, message);
    }
    fn kind(
        &mut self,
        what: &str,
        default: Option<&'static str>,
        names: Names,
        help: &'static str,
    ) -> Option<&'static str> {
        Section::kind(self, what, default, names, help)
    }
    fn settle_kind(&mut self, chosen: &str, default: Option<&str>) {
        Section::settle_kind(self, chosen, default);
        self.resolve("kind", Value::Text(chosen.to_string()));
    }
    fn put_aside(&mut self) -> bool {
        let chosen = self.find("kind").is_some_and(|entry| !entry.is_from_file());
        let aside = self.outer_replaced && !chosen && self.kind_replaced == [false; 2];
        if aside {
            self.kind_replaced = [true; 2];
            self.leave_out_file();
        }
        aside
    }
    fn scheme(&mut self, key: &str, read: &mut dyn FnMut(&mut dyn Source)) {
        let mut table = Section::scheme(self, key);
        read(&mut table);
        self.absorb(key, table);
    }

    fn get(&mut self, key: &str) -> Option<Value> {
        if !self.known.iter().any(|known| known == key) {
            self.known.push(key.to_string());
        }
        self.find(key).map(|entry| entry.node.value())
    }

    fn complain(&mut self, key: &str, message: String) {
        let path = self.path_of(key);
        self.findings.problems.push(Problem::new(self.file, self.origin_of(key), &path, message));
    }

    fn declare(&mut self, declared: Declared, resolved: Option<Value>) {
        let key = declared.key;
        if !self.known.iter().any(|known| known == key) {
            self.known.push(key.to_string());
        }
        if let Some(value) = resolved {
            insert(&mut self.findings.resolved, key, value);
        }
        if !self.findings.declared.iter().any(|(path, _)| path == key) {
            self.findings.declared.push((key.to_string(), declared));
        }
    }
}

/// Puts `value` at a dotted key, creating missing tables.
fn insert(table: &mut Vec<(String, Value)>, key: &str, value: Value) {
    let (name, rest) = match key.split_once('.') {
        Some((name, rest)) => (name, Some(rest)),
        None => (key, None),
    };
    let position = table.iter().position(|(known, _)| known == name);
    let Some(rest) = rest else {
        match position {
            Some(i) => table[i].1 = value,
            None => table.push((name.to_string(), value)),
        }
        return;
    };
    let i = position.unwrap_or_else(|| {
        table.push((name.to_string(), Value::Table(Vec::new())));
        table.len() - 1
    });
    if let Value::Table(inner) = &mut table[i].1 {
        insert(inner, rest, value);
    }
}

/// Removes a value by its dotted key, and the tables that are empty without it.
fn remove(table: &mut Vec<(String, Value)>, key: &str) {
    let (name, rest) = key.split_once('.').map_or((key, None), |(name, rest)| (name, Some(rest)));
    table.retain_mut(|(known, value)| match (known == name, rest, value) {
        (true, Some(rest), Value::Table(inner)) => {
            remove(inner, rest);
            !inner.is_empty()
        }
        (same, rest, _) => !same || rest.is_some(),
    });
}

#[cfg(test)]
mod tests;
