//! TOML with lines: sections whose keys are read one at a time, every complaint kept with its place.

use std::borrow::Cow;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::problem::{FileError, Problem, unknown};

/// Where complaints gather.
pub(super) struct Complaints<'t> {
    file: &'t str,
    text: &'t str,
    problems: Vec<Problem>,
}

impl<'t> Complaints<'t> {
    pub fn new(file: &'t str, text: &'t str) -> Complaints<'t> {
        Complaints { file, text, problems: Vec::new() }
    }

    /// Complains of the place at byte `offset`.
    pub fn add(&mut self, offset: Option<usize>, key: &str, message: impl Into<String>) {
        let line = offset.map(|offset| {
            let end = offset.min(self.text.len());
            self.text.as_bytes()[..end].iter().filter(|&&byte| byte == b'\n').count() + 1
        });
        let (file, key) = (self.file.to_string(), key.to_string());
        self.problems.push(Problem { file, line, key, message: message.into() });
    }

    pub fn count(&self) -> usize {
        self.problems.len()
    }

    /// Ok if nothing was complained of.
    pub fn end(self) -> Result<(), FileError> {
        if self.problems.is_empty() { Ok(()) } else { Err(FileError::new(self.problems)) }
    }
}

/// Parses `text`; every syntax error becomes a complaint.
pub(super) fn parse<'t>(text: &'t str, complaints: &mut Complaints<'_>) -> Option<Spanned<DeTable<'t>>> {
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let named =
            error.span().and_then(|span| text.get(span)).filter(|_| error.message() == "duplicate key");
        let message = named.map_or_else(
            || error.message().to_string(),
            |key| {
                format!(
                    "duplicate key {key}: tables that repeat are each under two brackets, such as [[query]]"
                )
            },
        );
        complaints.add(error.span().map(|span| span.start), "", message);
    }
    errors.is_empty().then_some(document)
}

/// One table of the file, whose keys are taken one at a time.
pub(super) struct Section<'a, 't> {
    table: &'a DeTable<'t>,
    /// Byte at which it starts; none for the whole file.
    pub start: Option<usize>,
    /// What it is called in messages, with a dot at the end; empty for the whole file.
    pub path: String,
    asked: Vec<&'static str>,
}

type Item<'a, 't> = (&'a DeValue<'t>, usize);

impl<'a, 't> Section<'a, 't> {
    pub fn whole(document: &'a Spanned<DeTable<'t>>) -> Section<'a, 't> {
        Section { table: document.get_ref(), start: None, path: String::new(), asked: Vec::new() }
    }

    pub fn get(&mut self, key: &'static str) -> Option<Item<'a, 't>> {
        if !self.asked.contains(&key) {
            self.asked.push(key);
        }
        self.table
            .iter()
            .find(|(name, _)| {
                let name: &Cow<str> = name.get_ref();
                name == key
            })
            .map(|(_, value)| (value.get_ref(), value.span().start))
    }

    pub fn complain(
        &self,
        complaints: &mut Complaints<'_>,
        at: Option<usize>,
        key: &str,
        message: impl Into<String>,
    ) {
        let key = format!("{}{key}", self.path);
        // Without a key, of the whole table.
        complaints.add(at.or(self.start), key.trim_end_matches('.'), message);
    }

    /// A missing key.
    pub fn missing(&self, complaints: &mut Complaints<'_>, key: &str, expected: &str) {
        self.complain(complaints, None, key, format!("missing: expected {expected}"));
    }

    pub fn text(
        &mut self,
        complaints: &mut Complaints<'_>,
        key: &'static str,
        expected: &str,
    ) -> Option<(String, usize)> {
        let (value, at) = self.get(key)?;
        match value {
            DeValue::String(text) => Some((text.to_string(), at)),
            other => {
                self.complain(
                    complaints,
                    Some(at),
                    key,
                    format!("expected {expected}, found {}", shown(other)),
                );
                None
            }
        }
    }

    /// A name of a list.
    pub fn name<T>(
        &mut self,
        complaints: &mut Complaints<'_>,
        key: &'static str,
        what: &str,
        known: &[&str],
        named: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let (text, at) = self.text(complaints, key, &format!("the name of a {what}"))?;
        let found = named(&text);
        if found.is_none() {
            self.complain(complaints, Some(at), key, unknown(what, &text, known));
        }
        found
    }

    /// A whole number of a range.
    pub fn integer(
        &mut self,
        complaints: &mut Complaints<'_>,
        key: &'static str,
        min: u64,
        max: u64,
    ) -> Option<u64> {
        let (value, at) = self.get(key)?;
        let number = integer(value).filter(|number| (min..=max).contains(number));
        if number.is_none() {
            let message = format!("expected a whole number from {min} to {max}, found {}", shown(value));
            self.complain(complaints, Some(at), key, message);
        }
        number
    }

    /// A number for which `good` holds; also written as a fraction, "15/16".
    pub fn number(
        &mut self,
        complaints: &mut Complaints<'_>,
        key: &'static str,
        expected: &str,
        good: impl Fn(f64) -> bool,
    ) -> Option<f64> {
        let (value, at) = self.get(key)?;
        let number = number(value).filter(|&number| number.is_finite() && good(number));
        if number.is_none() {
            self.complain(complaints, Some(at), key, format!("expected {expected}, found {}", shown(value)));
        }
        number
    }

    pub fn numbers(
        &mut self,
        complaints: &mut Complaints<'_>,
        key: &'static str,
        expected: &str,
        good: impl Fn(f64) -> bool,
    ) -> Option<Vec<f64>> {
        let (value, at) = self.get(key)?;
        let list = match value {
            DeValue::Array(items) => {
                items.iter().map(|item| number(item.get_ref()).filter(|&n| good(n))).collect()
            }
            _ => None,
        };
        if list.is_none() {
            self.complain(complaints, Some(at), key, format!("expected {expected}, found {}", shown(value)));
        }
        list
    }

    /// A table below a key, if it is one.
    pub fn section(&self, value: &'a DeValue<'t>, at: usize, key: &str) -> Option<Section<'a, 't>> {
        let DeValue::Table(table) = value else { return None };
        Some(Section { table, start: Some(at), path: format!("{}{key}.", self.path), asked: Vec::new() })
    }

    /// The tables of `[[key]]`.
    pub fn sections(&mut self, complaints: &mut Complaints<'_>, key: &'static str) -> Vec<Section<'a, 't>> {
        let Some((value, at)) = self.get(key) else { return Vec::new() };
        let DeValue::Array(items) = value else {
            self.complain(
                complaints,
                Some(at),
                key,
                format!("expected tables, each under [[{key}]], found {}", shown(value)),
            );
            return Vec::new();
        };
        let mut sections = Vec::new();
        for (i, item) in items.iter().enumerate() {
            match self.section(item.get_ref(), item.span().start, &format!("{key}.{i}")) {
                Some(section) => sections.push(section),
                None => self.complain(
                    complaints,
                    Some(item.span().start),
                    key,
                    format!("expected a table, found {}", shown(item.get_ref())),
                ),
            }
        }
        sections
    }

    /// Complains of keys that were not read. `elsewhere` states where a known key belongs.
    pub fn finish(self, complaints: &mut Complaints<'_>, elsewhere: impl Fn(&str) -> Option<String>) {
        for (name, _) in self.table.iter() {
            let text: &Cow<str> = name.get_ref();
            if self.asked.contains(&text.as_ref()) {
                continue;
            }
            let message = elsewhere(text).unwrap_or_else(|| unknown("key", text, &self.asked));
            self.complain(complaints, Some(name.span().start), text, message);
        }
    }
}

fn integer(value: &DeValue) -> Option<u64> {
    match value {
        DeValue::Integer(digits) => u64::from_str_radix(digits.as_str(), digits.radix()).ok(),
        _ => None,
    }
}

fn number(value: &DeValue) -> Option<f64> {
    match value {
        DeValue::Integer(digits) => {
            i64::from_str_radix(digits.as_str(), digits.radix()).ok().map(|n| n as f64)
        }
        DeValue::Float(digits) => digits.as_str().parse().ok(),
        DeValue::String(text) => {
            let (above, below) = text.split_once('/').unwrap_or((text, "1"));
            let (above, below): (u32, u32) = (above.trim().parse().ok()?, below.trim().parse().ok()?);
            (below > 0).then(|| f64::from(above) / f64::from(below))
        }
        _ => None,
    }
}

/// A value as a message shows it.
pub(super) fn shown(value: &DeValue) -> String {
    match value {
        DeValue::String(text) => format!("\"{}\"", text.chars().take(60).collect::<String>()),
        DeValue::Integer(digits) => digits.as_str().to_string(),
        DeValue::Float(digits) => digits.as_str().to_string(),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Datetime(date) => date.to_string(),
        DeValue::Array(_) => "a list".to_string(),
        DeValue::Table(_) => "a table".to_string(),
    }
}
