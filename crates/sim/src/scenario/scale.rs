//! `[scale]`: the same scenario in slower time, so that real machines can keep up. Rates and frequencies are
//! divided by `by`, times multiplied; sizes and counts stay. So a queue holds the same bytes, and a completion time is `by`
//! times as long.
//!
//! The scaled scenario is a scenario: the resolved one with its times and rates rewritten, read again. Its
//! `[transport]` is the one that was written, with its times scaled: defaults are constants of an operating
//! system (the minimum retransmission timeout, the delay of acknowledgements), which do not slow down with a
//! network.

use super::document::{Data, Node, Origin, Table};
use super::problem::Problem;
use super::section::Section;
use crate::parameters::{Source, Value, describe};
use crate::topology::LinkSpec;
use crate::units::{Frequency, Rate, Time};

/// More would make an hour of a microsecond.
const MAX: i64 = 1_000_000;
/// Keys whose texts are names, whatever they look like.
const NAMES: &[&str] = &["name", "group", "kind", "file", "between", "hosts", "to"];

/// Keys whose numbers, without a unit, are rates.
const RATES: &[&str] = &["teraflops"];

/// What `[scale]` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    /// The factor to apply; 1: none.
    pub by: u64,
    /// The factor that the values of the file already contain.
    pub applied: u64,
}

impl Scale {
    /// The factor by which time is slower in what was read.
    pub fn slower(&self) -> u32 {
        u32::try_from(self.applied).unwrap_or(u32::MAX)
    }
}

/// Reads `[scale]`.
pub fn read(section: &mut Section) -> Scale {
    let is_auto = section.peek("by") == Some(Value::Text("auto".to_string()));
    let help = "rates are divided by this and times multiplied; sizes stay, and so do those times of [transport] that the file \
                does not set. weftline lab also takes \"auto\": from the measured lateness of this machine";
    let by = if is_auto {
        let message = "\"auto\" is measured by `weftline lab`, which prints the number that it chose: expected that number here";
        section.get("by");
        section.complain("by", message.to_string());
        1
    } else {
        section.parameters().integer("by", 1, (1, MAX), help)
    };
    let help = "the factor that the rates and times of this file already contain; INT counts time in this number of ns";
    let applied = section.parameters().integer("applied", 1, (1, i64::MAX), help);
    if by > 1 || applied > 1 {
        let text = "scale: times of [transport] that the file does not set keep their defaults, as the kernel's TCP does; set \
                    those of other transports (timeouts; times and rates of controllers)";
        section.parameters().warn(text.to_string());
    }
    for (key, value) in [("by", by), ("applied", applied)] {
        if value == 1 {
            section.forget(key);
        }
    }
    Scale { by: by as u64, applied: applied as u64 }
}

/// The scenario whose resolved text is `resolved` and which was written as `written`, scaled. Errors: what
/// cannot be.
pub fn scaled(mut resolved: Table, written: &Table, scale: Scale, file: &str) -> Result<Table, Vec<Problem>> {
    let mut scaler = Scaler { by: scale.by, file, problems: Vec::new() };
    for key in ["transport", "compat"] {
        resolved.entries.retain(|entry| entry.key != key);
        resolved.entries.extend(written.get(key).cloned());
    }
    if let (Some(to), Some(from)) = (list_mut(&mut resolved, "workload"), written.get("workload")) {
        for (to, from) in to.iter_mut().zip(list(&from.node)) {
            let (Data::Table(to), Data::Table(from)) = (&mut to.data, &from.data) else { continue };
            to.entries.retain(|entry| entry.key != "transport");
            to.entries.extend(from.get("transport").cloned());
        }
    }
    if let Some(fabric_link) = fabric_link_without_rate(&mut resolved) {
        *fabric_link = Value::Text(LinkSpec::FABRIC.rate.to_string());
    }
    for entry in &mut resolved.entries {
        let key = entry.key.clone();
        if !matches!(key.as_str(), "name" | "seed" | "compat" | "scale") {
            scaler.node(&mut entry.node, &key, &key);
        }
    }
    if !scaler.problems.is_empty() {
        return Err(scaler.problems);
    }
    let applied = scale.applied.saturating_mul(scale.by).to_string();
    resolved.entries.retain(|entry| entry.key != "scale");
    super::document::set(&mut resolved, "scale.applied", &applied, file).map_err(|problem| vec![problem])?;
    Ok(resolved)
}

/// `topology.fabric_link.rate` where it is "auto" and stands for the default rate of fabric links, which does
/// not follow from other rates. Under every other "auto" a rate follows from rates that are scaled, or there
/// is none.
fn fabric_link_without_rate(resolved: &mut Table) -> Option<&mut Value> {
    let topology = table_mut(resolved, "topology")?;
    let ratio = topology.get("oversubscription").map(|entry| &entry.node.data);
    let is_derived = match ratio {
        Some(Data::Scalar(Value::Number(ratio))) => *ratio != 0.0,
        Some(Data::Scalar(Value::Integer(ratio))) => *ratio != 0,
        _ => false,
    };
    let fabric_link = table_mut(topology, "fabric_link")?;
    let rate = fabric_link.entries.iter_mut().find(|entry| entry.key == "rate")?;
    match &mut rate.node.data {
        Data::Scalar(value) if !is_derived && *value == Value::Text("auto".to_string()) => Some(value),
        _ => None,
    }
}

fn table_mut<'t>(table: &'t mut Table, key: &str) -> Option<&'t mut Table> {
    match &mut table.entries.iter_mut().find(|entry| entry.key == key)?.node.data {
        Data::Table(table) => Some(table),
        _ => None,
    }
}

fn list(node: &Node) -> &[Node] {
    match &node.data {
        Data::List(nodes) => nodes,
        _ => std::slice::from_ref(node),
    }
}

fn list_mut<'t>(table: &'t mut Table, key: &str) -> Option<&'t mut Vec<Node>> {
    match &mut table.entries.iter_mut().find(|entry| entry.key == key)?.node.data {
        Data::List(nodes) => Some(nodes),
        _ => None,
    }
}

struct Scaler<'a> {
    by: u64,
    file: &'a str,
    problems: Vec<Problem>,
}

impl Scaler<'_> {
    fn node(&mut self, node: &mut Node, key: &str, path: &str) {
        match &mut node.data {
            Data::Table(table) => {
                for entry in &mut table.entries {
                    let path = format!("{path}.{}", entry.key);
                    self.node(&mut entry.node, &entry.key, &path);
                }
            }
            Data::List(nodes) => {
                for (i, inner) in nodes.iter_mut().enumerate() {
                    self.node(inner, key, &format!("{path}.{i}"));
                }
            }
            Data::Scalar(value @ Value::Text(_)) => {
                let is_file = key == "file" && matches!(value, Value::Text(text) if !text.is_empty());
                if is_file {
                    let message = format!(
                        "[scale] by = {} cannot scale the rates and times in {}: scale the file itself, and leave [scale] out",
                        self.by,
                        describe(value)
                    );
                    self.complain(path, message);
                } else if !NAMES.contains(&key) {
                    self.text(value, path);
                }
            }
            Data::Scalar(value) if RATES.contains(&key) => match value {
                Value::Integer(rate) => *value = Value::Number(*rate as f64 / self.by as f64),
                Value::Number(rate) => *rate /= self.by as f64,
                _ => {}
            },
            Data::Scalar(_) => {}
        }
    }

    fn text(&mut self, value: &mut Value, path: &str) {
        let Value::Text(text) = value else { return };
        if let Ok(rate) = text.parse::<Rate>() {
            match rate.0 / self.by {
                0 if rate.0 > 0 => {
                    self.complain(
                        path,
                        format!("{rate} / {} is less than 1 bps: [scale] by is too large", self.by),
                    );
                }
                scaled => *text = Rate(scaled).to_string(),
            }
        } else if let Ok(time) = text.parse::<Time>() {
            match time.0.checked_mul(self.by) {
                Some(scaled) => *text = Time(scaled).to_string(),
                None => {
                    self.complain(path, format!("{time} x {} is too long: [scale] by is too large", self.by))
                }
            }
        } else if let Ok(frequency) = text.parse::<Frequency>() {
            *text = Frequency(frequency.0 / self.by as f64).to_string();
        }
    }

    fn complain(&mut self, path: &str, message: String) {
        self.problems.push(Problem::new(self.file, Origin::Nowhere, path, message));
    }
}
