//! A plan as a file: the queries with every default written out, the sets with their shares, the version.

use std::fmt::Write;

use super::document::{Complaints, Section, parse, shown};
use super::problem::FileError;
use super::read::{finished, shared};
use super::{Plan, PlanError, QuerySet};
use crate::query::*;

impl Plan {
    /// The plan as TOML; [`Plan::read`] takes it back. The codes are written by their numbers, so that a plan means the same when
    /// presets change.
    pub fn to_toml(&self) -> String {
        let Queries { bits, seed, hops, queries } = self.queries();
        let mut text = format!(
            "version = \"{:08x}\"\nbits = {bits}\nseed = {seed}\nhops = {{ expected = {}, maximal = {} }}\n",
            self.version(),
            hops.expected,
            hops.maximal
        );
        for query in queries {
            text += &query_toml(query, *hops);
        }
        for set in self.sets() {
            let names: Vec<String> =
                set.queries.iter().map(|&query| format!("\"{}\"", queries[query].name)).collect();
            text += &format!("\n[[set]]\nshare = {}\nqueries = [{}]\n", set.share, names.join(", "));
        }
        text
    }

    /// Whether a file is one that [`Plan::to_toml`] wrote, rather than queries: it has sets or a version.
    pub fn is_plan(text: &str) -> bool {
        toml::from_str::<toml::Table>(text)
            .is_ok_and(|table| table.contains_key("set") || table.contains_key("version"))
    }

    /// Reads what [`Plan::to_toml`] wrote. `file` is the name for messages. Errors: everything that is wrong, with lines; also a
    /// version that is not that of the plan (the file was changed by hand).
    pub fn read(text: &str, file: &str) -> Result<Plan, FileError> {
        let mut complaints = Complaints::new(file, text);
        let document = parse(text, &mut complaints);
        let plan = document.and_then(|document| {
            let mut section = Section::whole(&document);
            let queries = shared(&mut section, &mut complaints);
            let version = version(&mut section, &mut complaints);
            let sets = sets(&mut section, &mut complaints, &queries);
            section.finish(&mut complaints, |_| None);
            if complaints.count() > 0 {
                return None;
            }
            checked(Plan::with_sets(queries, sets), version, &mut complaints)
        });
        finished(plan, complaints)
    }
}

fn checked(
    plan: Result<Plan, PlanError>,
    version: Option<(u32, usize)>,
    complaints: &mut Complaints<'_>,
) -> Option<Plan> {
    match (plan, version) {
        (Ok(plan), Some((stated, at))) if plan.version() != stated => {
            let message = format!(
                "the file states {stated:08x}, but its plan is {:08x}: it was changed after planning; plan again",
                plan.version()
            );
            complaints.add(Some(at), "version", message);
            None
        }
        (Ok(plan), _) => Some(plan),
        (Err(PlanError::Query { name, reason }), _) => {
            complaints.add(None, &name, reason);
            None
        }
        (Err(error), _) => {
            complaints.add(None, "", error.to_string());
            None
        }
    }
}

fn query_toml(query: &Query, hops: Hops) -> String {
    let mut text = format!(
        "\n[[query]]\nname = \"{}\"\nvalue = \"{}\"\naggregation = \"{}\"\nbits = {}\nfrequency = {:?}\nflow = \"{}\"\n",
        query.name,
        query.value.name(),
        query.aggregation.name(),
        query.bits,
        query.frequency,
        query.flow.name()
    );
    if query.copies > 1 {
        let _ = writeln!(text, "copies = {}", query.copies);
    }
    if let Some(space) = query.space {
        let _ = writeln!(text, "space = {space}");
    }
    match &query.aggregation {
        Aggregation::Path(path) => {
            let (tau, layers) = path.code.numbers(hops.expected);
            let _ = writeln!(text, "code = {{ tau = {tau:?}, layers = {layers:?} }}");
            let _ = writeln!(text, "select = \"{}\"\nids = {}", path.selection.name(), path.ids);
            if let Blocks::Fragments { value_bits } = path.blocks {
                let _ = writeln!(text, "blocks = \"fragments\"\nvalue-bits = {value_bits}");
            }
        }
        Aggregation::CountAbove { threshold } => {
            let _ = writeln!(text, "threshold = {threshold}");
        }
        Aggregation::Loops { tolerance } => {
            let _ = writeln!(text, "tolerance = {tolerance}");
        }
        Aggregation::Quantiles { quantiles, .. } => {
            let _ = writeln!(text, "quantiles = {quantiles:?}");
        }
        Aggregation::Frequent { share, .. } => {
            let _ = writeln!(text, "share = {share:?}");
        }
        _ => {}
    }
    if let Some(Approximation { scale, rounding }) = query.aggregation.approximation() {
        let rounding = rounding.name();
        let _ = match scale {
            Scale::Exact => writeln!(text, "approximation = \"exact\""),
            Scale::Multiplicative { epsilon } => {
                writeln!(text, "approximation = {{ epsilon = {epsilon:?}, rounding = \"{rounding}\" }}")
            }
            Scale::Additive { delta } => {
                writeln!(text, "approximation = {{ delta = {delta:?}, rounding = \"{rounding}\" }}")
            }
        };
    }
    text
}

fn version(section: &mut Section<'_, '_>, complaints: &mut Complaints<'_>) -> Option<(u32, usize)> {
    let expected = "eight hexadecimal digits, as a plan is written";
    if section.get("version").is_none() {
        section.missing(complaints, "version", &format!("{expected} (a file of queries is planned first)"));
        return None;
    }
    let (text, at) = section.text(complaints, "version", expected)?;
    match u32::from_str_radix(&text, 16) {
        Ok(version) => Some((version, at)),
        Err(_) => {
            section.complain(
                complaints,
                Some(at),
                "version",
                format!("expected {expected}, found \"{text}\""),
            );
            None
        }
    }
}

fn sets(section: &mut Section<'_, '_>, complaints: &mut Complaints<'_>, queries: &Queries) -> Vec<QuerySet> {
    let tables = section.sections(complaints, "set");
    if tables.is_empty() {
        section.missing(complaints, "set", "at least one [[set]] of a plan");
    }
    let mut sets = Vec::new();
    for mut table in tables {
        let share = table.integer(complaints, "share", 1, u64::from(SHARES));
        if table.get("share").is_none() {
            table.missing(complaints, "share", "the set's packets, of 65 536");
        }
        let members = members(&mut table, complaints, queries);
        table.finish(complaints, |_| None);
        if let (Some(share), Some(queries)) = (share, members) {
            sets.push(QuerySet { share: share as u32, queries });
        }
    }
    sets
}

fn members(
    table: &mut Section<'_, '_>,
    complaints: &mut Complaints<'_>,
    queries: &Queries,
) -> Option<Vec<usize>> {
    let Some((value, at)) = table.get("queries") else {
        table.missing(complaints, "queries", "the names of its queries");
        return None;
    };
    let toml::de::DeValue::Array(items) = value else {
        table.complain(
            complaints,
            Some(at),
            "queries",
            format!("expected a list of names, found {}", shown(value)),
        );
        return None;
    };
    let names: Vec<&str> = queries.queries.iter().map(|query| query.name.as_str()).collect();
    let mut members = Vec::new();
    for item in items {
        let toml::de::DeValue::String(name) = item.get_ref() else {
            table.complain(
                complaints,
                Some(at),
                "queries",
                format!("expected a name, found {}", shown(item.get_ref())),
            );
            return None;
        };
        match names.iter().position(|known| *known == name.as_ref()) {
            Some(place) => members.push(place),
            None => table.complain(
                complaints,
                Some(at),
                "queries",
                super::problem::unknown("query", name, &names),
            ),
        }
    }
    Some(members)
}
