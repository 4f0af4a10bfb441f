//! The query language as TOML (described in docs/pint/queries.md).

use super::document::{Complaints, Section, parse, shown};
use super::presets::Preset;
use super::problem::{FileError, unknown};
use super::tasks::{LARGEST_ADDEND, counting, sums_end};
use crate::code::{MAX_HOPS, MAX_LAYERS};
use crate::query::*;

/// Reads queries. `file` is the name for messages. Errors: everything that is wrong, with lines.
pub fn queries(text: &str, file: &str) -> Result<Queries, FileError> {
    let mut complaints = Complaints::new(file, text);
    let document = parse(text, &mut complaints);
    let queries = document.map(|document| {
        let mut section = Section::whole(&document);
        let queries = shared(&mut section, &mut complaints);
        section.finish(&mut complaints, |_| None);
        queries
    });
    finished(queries, complaints)
}

/// The result, unless something was complained of.
pub(super) fn finished<T>(result: Option<T>, complaints: Complaints<'_>) -> Result<T, FileError> {
    match result {
        Some(result) => complaints.end().map(|()| result),
        None => Err(complaints.end().err().unwrap_or(FileError { problems: Vec::new() })),
    }
}

/// The keys of a file of queries, which a plan has too.
pub(super) fn shared(section: &mut Section<'_, '_>, complaints: &mut Complaints<'_>) -> Queries {
    let bits = section.integer(complaints, "bits", 1, u64::from(MAX_BITS)).map(|bits| bits as u32);
    if bits.is_none() && section.get("bits").is_none() {
        section.missing(complaints, "bits", "the bits of the digest, such as bits = 16");
    }
    let seed = section.integer(complaints, "seed", 0, i64::MAX as u64).unwrap_or(1);
    let hops = hops(section, complaints);
    let tables = section.sections(complaints, "query");
    if tables.is_empty() {
        section.missing(complaints, "query", "at least one [[query]]");
    }
    if let Some(extra) = tables.get(MAX_QUERIES) {
        extra.complain(complaints, None, "", format!("more than {MAX_QUERIES} queries in one digest"));
    }
    let mut queries: Vec<Query> = Vec::new();
    for table in tables {
        let start = table.start;
        if let Some(query) = query(table, complaints, bits, hops) {
            if queries.iter().any(|other| other.name == query.name) {
                complaints.add(start, &format!("query.{}", query.name), "two queries have this name");
            }
            queries.push(query);
        }
    }
    Queries { bits: bits.unwrap_or(MAX_BITS), seed, hops, queries }
}

fn hops(section: &mut Section<'_, '_>, complaints: &mut Complaints<'_>) -> Hops {
    let default = Hops::default();
    let Some((value, at)) = section.get("hops") else { return default };
    let Some(mut table) = section.section(value, at, "hops") else {
        let message =
            format!("expected a table such as {{ expected = 5, maximal = 16 }}, found {}", shown(value));
        section.complain(complaints, Some(at), "hops", message);
        return default;
    };
    let max = u64::from(MAX_HOPS);
    let expected = table.integer(complaints, "expected", 1, max).map_or(default.expected, |hops| hops as u32);
    let maximal = table.integer(complaints, "maximal", 1, max).map(|hops| hops as u32);
    if let Some(maximal) = maximal.filter(|&maximal| maximal < expected) {
        table.complain(
            complaints,
            Some(at),
            "maximal",
            format!("{maximal} is less than expected = {expected}"),
        );
    }
    table.finish(complaints, |_| None);
    Hops { expected, maximal: maximal.unwrap_or(default.maximal).max(expected) }
}

/// Keys that only some aggregations have.
const OWN_KEYS: [(&str, &str); 12] = [
    ("code", "path"),
    ("select", "path"),
    ("blocks", "path"),
    ("value-bits", "path with blocks = \"fragments\""),
    ("ids", "path"),
    ("copies", "path, quantiles and frequent"),
    ("threshold", "count-above"),
    ("tolerance", "loops"),
    ("quantiles", "quantiles"),
    ("share", "frequent"),
    ("approximation", "max, min, sum, product, quantiles and frequent"),
    ("largest", "max, min, sum, product, quantiles and frequent"),
];

fn query(
    mut section: Section<'_, '_>,
    complaints: &mut Complaints<'_>,
    budget: Option<u32>,
    hops: Hops,
) -> Option<Query> {
    let before = complaints.count();
    let name = name(&mut section, complaints);
    let names = Value::ALL.map(Value::name);
    let value = section.name(complaints, "value", "value", &names, Value::named);
    if value.is_none() && section.get("value").is_none() {
        section.missing(complaints, "value", &format!("one of {}", names.join(", ")));
    }
    let bits = bits(&mut section, complaints, budget);
    let frequency = section
        .number(
            complaints,
            "frequency",
            "a share of packets above 0 and at most 1, such as 0.25 or \"1/4\"",
            |f| f > 0.0 && f <= 1.0,
        )
        .unwrap_or(1.0);
    let flows = FlowKey::ALL.map(FlowKey::name);
    let flow =
        section.name(complaints, "flow", "flow key", &flows, FlowKey::named).unwrap_or(FlowKey::FiveTuple);
    let space = section.integer(complaints, "space", 16, 1 << 40);
    let aggregation = Parts { section: &mut section, complaints, value, bits, hops }.aggregation();
    let start = section.start;
    section.finish(complaints, |key| {
        OWN_KEYS
            .iter()
            .find(|(own, _)| *own == key)
            .map(|(_, owner)| format!("belongs to aggregation {owner}"))
    });
    if complaints.count() > before {
        return None;
    }
    let (aggregation, copies) = aggregation?;
    let query =
        Query { name: name?, value: value?, aggregation, bits: bits?, copies, frequency, flow, space };
    if let Err(reason) = super::task(&query, hops) {
        complaints.add(start, &format!("query.{}", query.name), reason);
        return None;
    }
    Some(query)
}

/// The name, which also becomes the section's name in messages.
fn name(section: &mut Section<'_, '_>, complaints: &mut Complaints<'_>) -> Option<String> {
    let expected = "a name of letters, digits, - and _";
    let Some((text, at)) = section.text(complaints, "name", expected) else {
        if section.get("name").is_none() {
            section.missing(complaints, "name", expected);
        }
        return None;
    };
    let good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if text.is_empty() || text.len() > 64 || !text.chars().all(good) {
        section.complain(
            complaints,
            Some(at),
            "name",
            format!("expected {expected} (at most 64), found \"{text}\""),
        );
        return None;
    }
    section.path = format!("query.{text}.");
    Some(text)
}

fn bits(section: &mut Section<'_, '_>, complaints: &mut Complaints<'_>, budget: Option<u32>) -> Option<u32> {
    let Some((_, at)) = section.get("bits") else {
        section.missing(complaints, "bits", "the bits that the query takes of the digest, such as bits = 8");
        return None;
    };
    let bits = section.integer(complaints, "bits", 1, u64::from(MAX_BITS))? as u32;
    if let Some(budget) = budget.filter(|&budget| bits > budget) {
        let message =
            format!("{bits} bits do not fit the digest of {budget}: lower them, or raise bits of the file");
        section.complain(complaints, Some(at), "bits", message);
    }
    Some(bits)
}

/// What is needed to read an aggregation.
struct Parts<'s, 'a, 't, 'c, 'f> {
    section: &'s mut Section<'a, 't>,
    complaints: &'c mut Complaints<'f>,
    value: Option<Value>,
    bits: Option<u32>,
    hops: Hops,
}

impl Parts<'_, '_, '_, '_, '_> {
    /// The aggregation and its copies.
    fn aggregation(&mut self) -> Option<(Aggregation, u32)> {
        let names = Aggregation::NAMES;
        let known = |name: &str| names.into_iter().find(|known| *known == name);
        let Some(name) = self.section.name(self.complaints, "aggregation", "aggregation", &names, known)
        else {
            if self.section.get("aggregation").is_none() {
                self.section.missing(self.complaints, "aggregation", &format!("one of {}", names.join(", ")));
            }
            // Which keys belong here is not known: none is complained of.
            for (key, _) in OWN_KEYS {
                let _ = self.section.get(key);
            }
            return None;
        };
        if name == "path" {
            return self.path();
        }
        if name == "count-above" {
            let threshold = self.section.integer(self.complaints, "threshold", 0, i64::MAX as u64);
            if self.section.get("threshold").is_none() {
                self.section.missing(self.complaints, "threshold", "the value above which hops are counted");
            }
            return Some((Aggregation::CountAbove { threshold: threshold? }, 1));
        }
        if name == "loops" {
            self.switch_ids();
            let tolerance = self.section.integer(self.complaints, "tolerance", 0, 255).unwrap_or(1) as u32;
            return Some((Aggregation::Loops { tolerance }, 1));
        }
        let copies = if matches!(name, "quantiles" | "frequent") { self.copies() } else { Some(1) };
        let quantiles = if name == "quantiles" { self.quantiles() } else { None };
        let share = if name == "frequent" {
            let good = |share| share > 0.0 && share < 1.0;
            self.section.number(self.complaints, "share", "a share between 0 and 1", good).unwrap_or(0.1)
        } else {
            0.0
        };
        let rounding = match name {
            "max" => Rounding::Log,
            "sum" | "product" => Rounding::Value,
            _ => Rounding::Nearest,
        };
        let approximation = self.approximation(name, copies, rounding)?;
        let aggregation = match name {
            "max" => Aggregation::Max(approximation),
            "min" => Aggregation::Min(approximation),
            "sum" => Aggregation::Sum(approximation),
            "product" => Aggregation::Product(approximation),
            "quantiles" => Aggregation::Quantiles { quantiles: quantiles?, approximation },
            _ => Aggregation::Frequent { share, approximation },
        };
        Some((aggregation, copies?))
    }

    fn complain(&mut self, at: Option<usize>, key: &str, message: impl Into<String>) {
        self.section.complain(self.complaints, at, key, message);
    }

    fn copies(&mut self) -> Option<u32> {
        let Some((_, at)) = self.section.get("copies") else { return Some(1) };
        let copies = self.section.integer(self.complaints, "copies", 1, u64::from(MAX_COPIES))? as u32;
        if let Some(bits) = self.bits.filter(|bits| bits % copies != 0) {
            self.complain(
                Some(at),
                "copies",
                format!("{bits} bits do not divide into {copies} equal copies"),
            );
            return None;
        }
        Some(copies)
    }

    fn quantiles(&mut self) -> Option<Vec<f64>> {
        let expected = "quantiles between 0 and 1, such as [0.5, 0.99]";
        if self.section.get("quantiles").is_none() {
            return Some(vec![0.5, 0.99]);
        }
        let list = self.section.numbers(self.complaints, "quantiles", expected, |q| q > 0.0 && q < 1.0)?;
        if list.is_empty() || list.len() > 16 {
            let at = self.section.get("quantiles").map(|(_, at)| at);
            self.complain(at, "quantiles", format!("expected 1 to 16 {expected}"));
            return None;
        }
        Some(list)
    }

    /// Complains of a value that changes from packet to packet.
    fn constant_value(&mut self, why: &str) {
        let Some(value) = self.value.filter(|value| !value.facts().constant) else { return };
        let constant: Vec<_> = Value::ALL.iter().filter(|v| v.facts().constant).map(|v| v.name()).collect();
        let message = format!(
            "{} changes from packet to packet, and {why}: expected one of {}, or aggregation = \"quantiles\"",
            value.name(),
            constant.join(", ")
        );
        let at = self.section.get("value").map(|(_, at)| at);
        self.complain(at, "value", message);
    }

    /// Complains of a value in which a loop does not show.
    fn switch_ids(&mut self) {
        let Some(value) = self.value.filter(|&value| value != Value::SwitchId) else { return };
        let why = match value.facts().constant {
            true => "ports of different switches have equal numbers, which are not loops",
            false => "only an id that is found twice is a loop",
        };
        let message = format!("loops of {}: {why}: expected value = \"switch-id\"", value.name());
        let at = self.section.get("value").map(|(_, at)| at);
        self.complain(at, "value", message);
    }

    fn path(&mut self) -> Option<(Aggregation, u32)> {
        self.constant_value("path recovers what is constant");
        let copies = self.copies();
        let code = self.code();
        let selects = SelectBy::NAMES;
        let select = |name: &str| match name {
            "threshold" => Some(SelectBy::Threshold),
            "words" => Some(SelectBy::Words),
            _ => None,
        };
        let selection = self.section.name(self.complaints, "select", "selection", &selects, select);
        let ids =
            self.section.integer(self.complaints, "ids", 1, u64::from(u32::MAX)).unwrap_or(1_000) as u32;
        let known = ["hashes", "fragments"];
        let fragments =
            self.section.name(self.complaints, "blocks", "kind of blocks", &known, |name| match name {
                "hashes" => Some(false),
                "fragments" => Some(true),
                _ => None,
            });
        let blocks = if fragments == Some(true) {
            let value_bits = self.section.integer(self.complaints, "value-bits", 1, 64).unwrap_or(32) as u32;
            Blocks::Fragments { value_bits }
        } else {
            Blocks::Hashes
        };
        let selection = selection.unwrap_or(SelectBy::Threshold);
        Some((Aggregation::Path(PathQuery { code: code?, selection, blocks, ids }), copies?))
    }

    /// `code = "tuned"` or `code = { tau = 0.5, layers = [0.1] }`.
    fn code(&mut self) -> Option<CodeChoice> {
        let Some((value, at)) = self.section.get("code") else {
            return Some(CodeChoice::Preset(Preset::Tuned));
        };
        let Some(mut table) = self.section.section(value, at, "code") else {
            let names = Preset::ALL.map(Preset::name);
            let toml::de::DeValue::String(text) = value else {
                let message = format!(
                    "expected a code's name or {{ tau = 0.5, layers = [0.1] }}, found {}",
                    shown(value)
                );
                self.complain(Some(at), "code", message);
                return None;
            };
            let preset = Preset::named(text);
            if preset.is_none() {
                self.complain(Some(at), "code", unknown("code", text, &names));
            }
            return preset.map(CodeChoice::Preset);
        };
        let within = |p: f64| (0.0..=1.0).contains(&p);
        let tau = table.number(self.complaints, "tau", "a share of packets from 0 to 1", within);
        let expected = format!("a list of at most {MAX_LAYERS} probabilities");
        let layers = table.numbers(self.complaints, "layers", &expected, |p| p > 0.0 && p <= 1.0);
        if table.get("tau").is_none() {
            table.missing(self.complaints, "tau", "the share of Baseline packets");
        }
        if layers.as_ref().is_some_and(|layers| layers.len() > MAX_LAYERS) {
            table.complain(self.complaints, None, "layers", format!("expected {expected}"));
        }
        let layers = if table.get("layers").is_none() { Some(Vec::new()) } else { layers };
        if tau.is_some_and(|tau| tau < 1.0) && layers.as_ref().is_some_and(|layers| layers.is_empty()) {
            table.complain(self.complaints, None, "layers", "tau below 1 needs at least one layer");
        }
        table.finish(self.complaints, |_| None);
        Some(CodeChoice::Explicit { tau: tau?, layers: layers? })
    }

    /// `approximation = { epsilon | base | delta, rounding }` or `"exact"`, and `largest`.
    fn approximation(&mut self, name: &str, copies: Option<u32>, default: Rounding) -> Option<Approximation> {
        let max = if name == "sum" { LARGEST_ADDEND } else { i64::MAX as u64 };
        let asked = self.section.integer(self.complaints, "largest", 1, max);
        let given = self.section.get("approximation");
        let (bits, value) = (self.bits? / copies?, self.value?);
        let end = self.end(name, asked.unwrap_or(value.facts().largest.min(max)) as f64);
        let (scale, rounding) = if given.is_some() { self.scale(name)? } else { (None, None) };
        let scale = scale.unwrap_or_else(|| self.finest(name, value, end, bits));
        // A requested largest value must fit; the default need not: then the end of the range is reported.
        if let Some(message) = asked.and_then(|asked| self.unreached(name, scale, bits, asked, end)) {
            let (key, at) = match given {
                Some((_, at)) => ("approximation", Some(at)),
                None => ("largest", self.section.get("largest").map(|(_, at)| at)),
            };
            self.complain(at, key, message);
            return None;
        }
        // Additive codes have no logarithm to round in: the mean of the value is what they can keep.
        let default = match (scale, default) {
            (Scale::Additive { .. }, Rounding::Log) => Rounding::Value,
            _ => default,
        };
        Some(Approximation { scale, rounding: rounding.unwrap_or(default) })
    }

    /// The largest result that is planned for, where hops see values up to `largest`.
    fn end(&self, name: &str, largest: f64) -> f64 {
        let hops = f64::from(self.hops.expected);
        match name {
            // One value may be larger than a sum takes; sums from there on are marked.
            "sum" if self.value.is_some_and(|value| value.facts().largest > LARGEST_ADDEND) => {
                (largest * hops).min(LARGEST_ADDEND as f64)
            }
            "sum" => largest * hops,
            "product" => libm::pow(largest, hops).min(f64::MAX),
            _ => largest,
        }
    }

    /// The finest scale whose codes reach `end`.
    fn finest(&self, name: &str, value: Value, end: f64, bits: u32) -> Scale {
        match name {
            "sum" => counting(end, self.hops, bits),
            "product" => Scale::multiplicative_reaching(end, bits),
            _ if value.is_name() => Scale::Exact,
            _ => Scale::reaching(end, bits),
        }
    }

    /// What to change if results up to `end`, of values up to `largest`, do not fit.
    fn unreached(&self, name: &str, scale: Scale, bits: u32, largest: u64, end: f64) -> Option<String> {
        let hops = self.hops.expected;
        let (what, needed, reached) = match (name, scale) {
            ("sum", Scale::Multiplicative { epsilon }) => {
                let reached = sums_end(epsilon, self.hops, bits)?;
                let enough = |bits: &u32| sums_end(epsilon, self.hops, *bits).is_some_and(|sum| sum >= end);
                (format!("sums of {hops} values up to {largest}"), (1..=16).find(enough), reached)
            }
            // Refused with a better reason.
            ("sum", _) | ("product", Scale::Exact | Scale::Additive { .. }) => return None,
            _ => {
                let what = match name {
                    "product" => format!("products of {hops} values up to {largest}"),
                    _ => format!("values up to {largest}"),
                };
                (what, Some(scale.bits_for(end)), scale.largest(bits))
            }
        };
        if needed.is_some_and(|needed| needed <= bits) {
            return None;
        }
        let raise = match needed {
            Some(needed) => format!(
                "need {needed} bits per copy at this precision, but the query has {bits}: raise bits accordingly"
            ),
            None => format!(
                "do not fit any bits at this precision, the query's {bits} end at {reached:.4}: lower largest"
            ),
        };
        let coarser = match self.finest(name, self.value?, end, bits) {
            Scale::Multiplicative { epsilon } if Scale::Multiplicative { epsilon } != scale => {
                format!(", or set epsilon = {:.4}", (epsilon * 1e4).ceil() / 1e4)
            }
            _ => String::new(),
        };
        Some(format!(
            "{what} {raise}{coarser}, or leave out largest (then results above {reached:.4} saturate)"
        ))
    }

    fn scale(&mut self, name: &str) -> Option<(Option<Scale>, Option<Rounding>)> {
        let expected = "\"exact\" or a table such as { epsilon = 0.025 }, { base = 1.05 } or { delta = 100 }";
        let (found, at) = self.section.get("approximation")?;
        if matches!(found, toml::de::DeValue::String(text) if text == "exact") {
            return Some((Some(Scale::Exact), None));
        }
        let Some(mut table) = self.section.section(found, at, "approximation") else {
            self.complain(Some(at), "approximation", format!("expected {expected}, found {}", shown(found)));
            return None;
        };
        let before = self.complaints.count();
        // The deviation of a sum may be larger: what its counter allows depends on the hops.
        let (error, coarsest) = match name {
            "sum" => ("a relative deviation from 0.000086 to 8", 8.0),
            _ => ("a relative error from 0.000086 to 3", COARSEST_EPSILON),
        };
        let epsilon = table.number(self.complaints, "epsilon", error, |epsilon| {
            (FINEST_EPSILON..=coarsest).contains(&epsilon)
        });
        let base = table.number(self.complaints, "base", "a base from 1.000173 to 16", |b| {
            (1.000_173..=16.0).contains(&b)
        });
        let delta =
            table.number(self.complaints, "delta", "an error from 1 to 1e15", |d| (1.0..=1e15).contains(&d));
        let known = Rounding::NAMES;
        let rounding = table.name(self.complaints, "rounding", "rounding", &known, |name| match name {
            "nearest" => Some(Rounding::Nearest),
            "value" => Some(Rounding::Value),
            "log" => Some(Rounding::Log),
            _ => None,
        });
        let given: Vec<Scale> = [
            epsilon.map(|epsilon| Scale::Multiplicative { epsilon }),
            base.map(|base| Scale::Multiplicative { epsilon: base.sqrt() - 1.0 }),
            delta.map(|delta| Scale::Additive { delta }),
        ]
        .into_iter()
        .flatten()
        .collect();
        if given.len() > 1 {
            table.complain(self.complaints, None, "", "expected only one of epsilon, base and delta");
        }
        table.finish(self.complaints, |_| None);
        if self.complaints.count() > before {
            return None;
        }
        Some((given.first().copied(), rounding))
    }
}
