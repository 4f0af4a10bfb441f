//! How a scheme declares its parameters: name, unit, default, range and meaning, once, in its own file.
//!
//! A scheme reads its parameters through [`Parameters`]. Called by the scenario reader, the same function
//! reads values from a file; called with [`Nothing`], it lists the keys, from which the JSON Schema,
//! `weftline explain` and the documentation are made. Errors are collected and reported all together, so that
//! the reading function remains a plain list. The file is above 500 lines because every kind of value has its
//! reader here.

mod idle;

pub use pint::nearest::{meant, nearest, nearest_key, unknown};

use crate::units::{Bytes, Frequency, Rate, Time};

/// A value as it is written in a scenario.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Text(String),
    Integer(i64),
    Number(f64),
    Flag(bool),
    List(Vec<Value>),
    Table(Vec<(String, Value)>),
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_string())
    }
}
impl From<f64> for Value {
    fn from(number: f64) -> Value {
        Value::Number(number)
    }
}
impl From<u32> for Value {
    fn from(number: u32) -> Value {
        Value::Integer(i64::from(number))
    }
}
impl From<u64> for Value {
    fn from(number: u64) -> Value {
        Value::Integer(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

/// The type of a key's value, from which the JSON Schema and error messages are made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    Time,
    Bytes,
    Rate,
    /// In 1/s; a number without a unit is accepted, too.
    Frequency,
    Number {
        min: f64,
        max: f64,
    },
    Integer {
        min: i64,
        max: i64,
    },
    Flag,
    Text,
    List,
    /// One of these names, each with its meaning.
    Choice(&'static [(&'static str, &'static str)]),
}

/// A declared key.
#[derive(Debug, Clone, PartialEq)]
pub struct Declared {
    pub key: &'static str,
    pub kind: Kind,
    /// The default as written in a scenario; `auto` if it is derived, none if the key is required.
    pub default: Option<String>,
    /// Whether `auto` may be given although it is not the default.
    pub or_auto: bool,
    pub help: &'static str,
}

impl Declared {
    pub fn new(key: &'static str, kind: Kind, default: Option<String>, help: &'static str) -> Declared {
        Declared { key, kind, default, or_auto: false, help }
    }

    /// Whether the value may be `auto`.
    pub fn takes_auto(&self) -> bool {
        self.or_auto || self.default.as_deref() == Some("auto")
    }
}

/// Where values come from: a section of a scenario, or [`Nothing`].
pub trait Source {
    /// Returns the value of `key` if the user gave one, and marks the key as known.
    fn get(&mut self, key: &str) -> Option<Value>;
    /// Reports an error in the value of `key`.
    fn complain(&mut self, key: &str, message: String);
    /// Called for each key after it was read, with the resulting value as written in a scenario.
    fn declare(&mut self, declared: Declared, resolved: Option<Value>);
    /// The value of `key` if the user gave one, without declaring it.
    fn peek(&self, _key: &str) -> Option<Value> {
        None
    }
    /// Whether the user gave `key` in this table, not in one that it is laid on.
    fn is_own(&self, key: &str) -> bool {
        self.peek(key).is_some()
    }
    /// Reports `key`, which has no effect: an error if the user gave it for this run, a warning if something
    /// else was set over the file that has it.
    fn report_idle(&mut self, key: &str, message: String) {
        if self.is_own(key) {
            self.complain(key, message);
        }
    }
    /// Whether the value of a key that was read is its default.
    fn is_default(&self, _key: &str) -> bool {
        false
    }
    /// Removes a value that has no effect from the resolved scenario.
    fn forget(&mut self, _key: &str) {}
    /// Adds a warning.
    fn warn(&mut self, _message: String) {}
    /// Returns which of `names` the key `kind` has; none if it is missing or unknown, which is reported.
    fn kind(
        &mut self,
        _what: &str,
        default: Option<&'static str>,
        names: Names,
        help: &'static str,
    ) -> Option<&'static str> {
        self.declare(Declared::new("kind", Kind::Choice(names), default.map(Into::into), help), None);
        default
    }
    /// Sets the kind of the table to a name that is not in a list.
    fn settle_kind(&mut self, _chosen: &str, _default: Option<&str>) {}
    /// Leaves out what the file gives for a scheme, with warnings, if `--set` chose another kind for what the scheme is part of, and none
    /// for the scheme itself. Returns whether it did.
    fn put_aside(&mut self) -> bool {
        false
    }
    /// Calls `read` with the table of a scheme under `key`.
    fn scheme(&mut self, _key: &str, read: &mut dyn FnMut(&mut dyn Source)) {
        read(&mut Nothing::default());
    }
}

/// Names that a value may have, each with its meaning.
pub type Names = &'static [(&'static str, &'static str)];

/// Reads declared parameters from a [`Source`].
pub struct Parameters<'a> {
    source: &'a mut dyn Source,
}

impl<'a> Parameters<'a> {
    pub fn new(source: &'a mut dyn Source) -> Parameters<'a> {
        Parameters { source }
    }

    pub fn time(&mut self, key: &'static str, default: Time, help: &'static str) -> Time {
        self.quantity(key, Kind::Time, Some(default), help).unwrap_or(default)
    }
    pub fn bytes(&mut self, key: &'static str, default: Bytes, help: &'static str) -> Bytes {
        self.quantity(key, Kind::Bytes, Some(default), help).unwrap_or(default)
    }
    pub fn rate(&mut self, key: &'static str, default: Rate, help: &'static str) -> Rate {
        self.quantity(key, Kind::Rate, Some(default), help).unwrap_or(default)
    }
    /// Reads a time; none for `auto`, which is derived from the network as `help` says.
    pub fn time_or_auto(&mut self, key: &'static str, help: &'static str) -> Option<Time> {
        self.quantity::<Time>(key, Kind::Time, None, help)
    }
    /// Reads a time, or `auto` for the derived one. Unlike with [`Parameters::time_or_auto`], the resolved
    /// scenario shows the resulting time.
    pub fn time_or_derived(&mut self, key: &'static str, derived: Time, help: &'static str) -> Time {
        let value = self.given_quantity(key, Kind::Time, None, true).unwrap_or(derived);
        self.declare(key, Kind::Time, Some("auto".into()), help, Value::Text(value.to_string()));
        value
    }
    pub fn bytes_or_auto(&mut self, key: &'static str, help: &'static str) -> Option<Bytes> {
        self.quantity::<Bytes>(key, Kind::Bytes, None, help)
    }
    pub fn rate_or_auto(&mut self, key: &'static str, help: &'static str) -> Option<Rate> {
        self.quantity::<Rate>(key, Kind::Rate, None, help)
    }
    /// Reads a rate; none only if `auto` is given, which is derived from the network as `help` says.
    pub fn rate_unless_auto(&mut self, key: &'static str, default: Rate, help: &'static str) -> Option<Rate> {
        self.unless_auto(key, Kind::Rate, default, help)
    }
    /// Reads a time; none only if `auto` is given, which is derived from the network as `help` says.
    pub fn time_unless_auto(&mut self, key: &'static str, default: Time, help: &'static str) -> Option<Time> {
        self.unless_auto(key, Kind::Time, default, help)
    }

    /// Reads a whole number of bytes from `min` to `max`.
    pub fn size(
        &mut self,
        key: &'static str,
        (default, min, max): (u32, u32, u32),
        help: &'static str,
    ) -> u32 {
        let bytes = self.bytes(key, Bytes(u64::from(default)), help);
        if (u64::from(min)..=u64::from(max)).contains(&bytes.0) {
            return bytes.0 as u32;
        }
        self.complain(key, format!("{bytes} is out of range: expected {min}B to {max}B"));
        default
    }

    /// Reads a frequency, or a gain over time, in 1/s: with its unit, or as a number.
    pub fn frequency(&mut self, key: &'static str, default: Frequency, help: &'static str) -> f64 {
        let number = match self.source.peek(key) {
            Some(Value::Number(x)) => Some(x),
            Some(Value::Integer(i)) => Some(i as f64),
            _ => None,
        };
        let Some(number) = number else {
            return self.quantity(key, Kind::Frequency, Some(default), help).unwrap_or(default).0;
        };
        self.source.get(key);
        let value = Frequency::checked(number, &number.to_string()).unwrap_or_else(|error| {
            self.source.complain(key, error.to_string());
            default
        });
        let (default, resolved) = (default.to_string(), Value::Text(value.to_string()));
        self.declare(key, Kind::Frequency, Some(default), help, resolved);
        value.0
    }

    /// Reads a number from `min` to `max`.
    pub fn number(
        &mut self,
        key: &'static str,
        default: f64,
        (min, max): (f64, f64),
        help: &'static str,
    ) -> f64 {
        let kind = Kind::Number { min, max };
        let value = match self.source.get(key) {
            None => default,
            Some(given) => match given {
                Value::Number(x) if x >= min && x <= max => x,
                Value::Integer(i) if i as f64 >= min && i as f64 <= max => i as f64,
                other => {
                    let found = describe(&other);
                    let message = format!("expected a number from {min} to {max}, found {found}");
                    self.source.complain(key, message);
                    default
                }
            },
        };
        self.declare(key, kind, Some(default.to_string()), help, Value::Number(value));
        value
    }
    /// Reads an integer from `min` to `max`; none for `auto`, the default, which is derived as `help` says.
    pub fn integer_or_auto(
        &mut self,
        key: &'static str,
        (min, max): (i64, i64),
        help: &'static str,
    ) -> Option<i64> {
        let value = match self.source.get(key) {
            Some(Value::Integer(i)) if i >= min && i <= max => Some(i),
            Some(other) if other != Value::Text("auto".into()) => {
                let found = describe(&other);
                let message =
                    format!("expected a whole number from {min} to {max}, or \"auto\", found {found}");
                self.source.complain(key, message);
                None
            }
            _ => None,
        };
        let resolved = value.map_or(Value::Text("auto".into()), Value::Integer);
        self.declare(key, Kind::Integer { min, max }, Some("auto".into()), help, resolved);
        value
    }

    pub fn integer(
        &mut self,
        key: &'static str,
        default: i64,
        (min, max): (i64, i64),
        help: &'static str,
    ) -> i64 {
        let value = match self.source.get(key) {
            None => default,
            Some(Value::Integer(i)) if i >= min && i <= max => i,
            Some(other) => {
                let found = describe(&other);
                let message = format!("expected a whole number from {min} to {max}, found {found}");
                self.source.complain(key, message);
                default
            }
        };
        let kind = Kind::Integer { min, max };
        self.declare(key, kind, Some(default.to_string()), help, Value::Integer(value));
        value
    }

    pub fn flag(&mut self, key: &'static str, default: bool, help: &'static str) -> bool {
        let value = match self.source.get(key) {
            None => default,
            Some(Value::Flag(b)) => b,
            Some(other) => {
                let message = format!("expected true or false, found {}", describe(&other));
                self.source.complain(key, message);
                default
            }
        };
        self.declare(key, Kind::Flag, Some(default.to_string()), help, Value::Flag(value));
        value
    }

    /// Reads one of `names` and returns it. `default` must be one of them.
    pub fn choice(
        &mut self,
        key: &'static str,
        default: &'static str,
        names: &'static [(&'static str, &'static str)],
        help: &'static str,
    ) -> &'static str {
        let value = match self.source.get(key) {
            None => default,
            Some(Value::Text(text)) => match names.iter().find(|(name, _)| *name == text) {
                Some((name, _)) => name,
                None => {
                    let message = unknown("value", &text, names.iter().map(|n| n.0));
                    self.source.complain(key, message);
                    default
                }
            },
            Some(other) => {
                let list = names.iter().map(|n| n.0).collect::<Vec<_>>().join(", ");
                let message = format!("expected one of {list}, found {}", describe(&other));
                self.source.complain(key, message);
                default
            }
        };
        let resolved = Value::Text(value.to_string());
        self.declare(key, Kind::Choice(names), Some(default.to_string()), help, resolved);
        value
    }

    /// Reads a choice that follows from other settings, as `help` says, unless it is given; only then the
    /// resolved scenario has it.
    pub fn choice_or_auto(
        &mut self,
        key: &'static str,
        names: &'static [(&'static str, &'static str)],
        help: &'static str,
    ) -> Option<&'static str> {
        let (found, message) = match self.source.get(key) {
            None => (None, None),
            Some(Value::Text(text)) => match names.iter().find(|(name, _)| *name == text) {
                Some((name, _)) => (Some(*name), None),
                None if text == "auto" => (None, None),
                None => (None, Some(unknown("value", &text, names.iter().map(|n| n.0)))),
            },
            Some(other) => {
                let list = names.iter().map(|n| n.0).collect::<Vec<_>>().join(", ");
                (None, Some(format!("expected one of {list}, found {}", describe(&other))))
            }
        };
        if let Some(message) = message {
            self.source.complain(key, message);
        }
        let declared = Declared::new(key, Kind::Choice(names), Some("auto".into()), help);
        self.source.declare(declared, found.map(|name| Value::Text(name.into())));
        found
    }

    /// Reads text. An integer is accepted as text, because host ids and names that look like numbers are
    /// written without quotes. Returns none if the key is missing and has no `default`.
    pub fn text(&mut self, key: &'static str, default: Option<&str>, help: &'static str) -> Option<String> {
        let default = default.map(str::to_string);
        let value = match self.source.get(key) {
            None => default.clone(),
            Some(Value::Text(text)) => Some(text),
            Some(Value::Integer(i)) => Some(i.to_string()),
            Some(other) => {
                self.source.complain(key, format!("expected text, found {}", describe(&other)));
                default.clone()
            }
        };
        let resolved = value.clone().map(Value::Text);
        self.source.declare(Declared::new(key, Kind::Text, default, help), resolved);
        value
    }

    /// Reads a list, with its elements as given; none if the key is missing.
    pub fn list(&mut self, key: &'static str, help: &'static str) -> Option<Vec<Value>> {
        let value = match self.source.get(key) {
            None => None,
            Some(Value::List(list)) => Some(list),
            Some(other) => {
                self.source.complain(key, format!("expected a list, found {}", describe(&other)));
                None
            }
        };
        let resolved = value.clone().map(Value::List);
        self.source.declare(Declared::new(key, Kind::List, None, help), resolved);
        value
    }

    /// A flag; `derived` if it is not given or "auto".
    pub fn flag_or_auto(&mut self, key: &'static str, derived: bool, help: &'static str) -> bool {
        let value = match self.source.get(key) {
            None => derived,
            Some(Value::Flag(flag)) => flag,
            Some(Value::Text(text)) if text == "auto" => derived,
            Some(other) => {
                let found = describe(&other);
                self.source.complain(key, format!("expected true, false or \"auto\", found {found}"));
                derived
            }
        };
        self.declare(key, Kind::Flag, Some("auto".to_string()), help, Value::Flag(value));
        value
    }

    /// A time, or one of these words, each with its value; `default` is one of the words.
    pub fn time_or_word(
        &mut self,
        key: &'static str,
        (min, max): (Time, Time),
        (default, words): (&'static str, &[(&str, Option<Time>)]),
        help: &'static str,
    ) -> Option<Time> {
        let named = |name: &str| words.iter().find(|word| word.0 == name).map(|word| word.1);
        let list = words.iter().map(|word| format!("\"{}\"", word.0)).collect::<Vec<_>>().join(" or ");
        let expected = format!("expected a time such as \"1ms\", {list}");
        let given = self.source.get(key).unwrap_or_else(|| Value::Text(default.to_string()));
        let read = match &given {
            Value::Text(text) => match (named(text), text.parse::<Time>()) {
                (Some(named), _) => Ok(named),
                (None, Ok(time)) if !(min..=max).contains(&time) => {
                    Err(format!("expected a time from {min} to {max}, found {time}"))
                }
                (None, Ok(time)) => Ok(Some(time)),
                (None, Err(error)) => Err(format!("{expected}: {error}")),
            },
            other => Err(format!("{expected}, found {}", describe(other))),
        };
        let time = read.unwrap_or_else(|message| {
            self.source.complain(key, message);
            None
        });
        let shown = time.map_or("none".to_string(), |time| time.to_string());
        self.declare(key, Kind::Text, Some(default.to_string()), help, Value::Text(shown));
        time
    }

    /// The value of `key` if the user gave one, without declaring it.
    pub fn peek(&self, key: &str) -> Option<Value> {
        self.source.peek(key)
    }

    /// Adds a warning.
    pub fn warn(&mut self, message: String) {
        self.source.warn(message);
    }

    /// Returns which of `names` the key `kind` has; none if it is missing or unknown, which is reported.
    pub fn kind(
        &mut self,
        what: &str,
        default: &'static str,
        names: Names,
        help: &'static str,
    ) -> Option<&'static str> {
        self.source.kind(what, Some(default), names, help)
    }

    /// Sets the kind of the table to a name that is not in a list.
    pub fn settle_kind(&mut self, chosen: &str, default: &'static str) {
        self.source.get("kind");
        self.source.settle_kind(chosen, Some(default));
    }

    /// Leaves out what the file gives for another kind of what this scheme is part of: [`Source::put_aside`].
    pub fn put_aside(&mut self) -> bool {
        self.source.put_aside()
    }

    /// Reports an error in the given kind.
    pub fn refuse_kind(&mut self, message: String) {
        self.source.get("kind");
        self.source.complain("kind", message);
    }

    /// Reads the table of a scheme under `key`.
    pub fn scheme<T>(&mut self, key: &str, read: impl FnOnce(&mut Parameters) -> T) -> Option<T> {
        let (mut read, mut result) = (Some(read), None);
        self.source.scheme(key, &mut |source| {
            result = read.take().map(|read| read(&mut Parameters::new(source)));
        });
        result
    }

    /// Reports an error that is not one of type or range: a missing value, or one that contradicts another.
    pub fn complain(&mut self, key: &str, message: String) {
        self.source.complain(key, message);
    }

    fn unless_auto<T>(&mut self, key: &'static str, kind: Kind, default: T, help: &'static str) -> Option<T>
    where
        T: std::str::FromStr<Err = crate::units::UnitError> + ToString + Copy,
    {
        let value = self.given_quantity(key, kind, Some(default), true);
        let declared =
            Declared { or_auto: true, ..Declared::new(key, kind, Some(default.to_string()), help) };
        self.source.declare(declared, Some(Value::Text(or_auto(value))));
        value
    }

    fn quantity<T>(
        &mut self,
        key: &'static str,
        kind: Kind,
        default: Option<T>,
        help: &'static str,
    ) -> Option<T>
    where
        T: std::str::FromStr<Err = crate::units::UnitError> + ToString + Copy,
    {
        let value = self.given_quantity(key, kind, default, default.is_none());
        self.declare(key, kind, Some(or_auto(default)), help, Value::Text(or_auto(value)));
        value
    }

    /// The value of a key, or its default, where none stands for `auto`.
    fn given_quantity<T>(
        &mut self,
        key: &'static str,
        kind: Kind,
        default: Option<T>,
        takes_auto: bool,
    ) -> Option<T>
    where
        T: std::str::FromStr<Err = crate::units::UnitError> + Copy,
    {
        let example = match kind {
            Kind::Time => "a time such as \"10us\"",
            Kind::Bytes => "a size such as \"32MB\"",
            Kind::Frequency => "a frequency such as \"0.15Hz\"",
            _ => "a rate such as \"100Gbps\"",
        };
        match self.source.get(key) {
            None => default,
            Some(Value::Text(text)) if text == "auto" && takes_auto => None,
            Some(Value::Text(text)) => match text.parse::<T>() {
                Ok(value) => Some(value),
                Err(error) => {
                    let auto = if takes_auto { "; \"auto\" is also valid" } else { "" };
                    self.source.complain(key, format!("{error}{auto}"));
                    default
                }
            },
            Some(other) => {
                let (found, auto) = (describe(&other), if takes_auto { ", or \"auto\"" } else { "" });
                let message = format!("expected {example} (with its unit){auto}, found {found}");
                self.source.complain(key, message);
                default
            }
        }
    }

    fn declare(
        &mut self,
        key: &'static str,
        kind: Kind,
        default: Option<String>,
        help: &'static str,
        resolved: Value,
    ) {
        self.source.declare(Declared::new(key, kind, default, help), Some(resolved));
    }
}

fn or_auto<T: ToString>(value: Option<T>) -> String {
    value.map_or("auto".to_string(), |value| value.to_string())
}

/// Describes a value in an error message.
pub fn describe(value: &Value) -> String {
    match value {
        Value::Text(text) => format!("\"{text}\""),
        Value::Integer(i) => i.to_string(),
        Value::Number(x) => format!("{x:?}"),
        Value::Flag(b) => b.to_string(),
        Value::List(_) => "a list".into(),
        Value::Table(_) => "a table".into(),
    }
}

/// A source without values: it yields defaults, and keeps the declarations.
#[derive(Default)]
pub struct Nothing {
    pub declared: Vec<Declared>,
}

impl Source for Nothing {
    fn get(&mut self, _key: &str) -> Option<Value> {
        None
    }
    /// No value was given, so the only possible error is a missing key.
    fn complain(&mut self, _key: &str, _message: String) {}
    fn declare(&mut self, declared: Declared, _resolved: Option<Value>) {
        self.declared.push(declared);
    }
}
