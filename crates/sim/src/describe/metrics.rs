//! The metrics: every number of a run that tables, figures, claims and `weftline explain` know, with its unit, title and text.
//!
//! This is the only place that describes them, together with the declarations of schemes ([`crate::counters`]), which join the table in
//! [`all`]. How a number is read from a run's folder is `weftline.measures.metrics`' business (Python), by the same names.

mod table;

use crate::counters::{Counter, CounterGroup};
use crate::measure::LossCounters;
use serde_json::{Value, json};
use table::METRICS;

/// What the values of a metric are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A ratio, or another number without a unit.
    Number,
    Count,
    /// From 0 to 1; shown in per cent.
    Share,
    /// In nanoseconds.
    Time,
    Bytes,
    /// In bit/s.
    Rate,
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Unit::Number => "number",
            Unit::Count => "count",
            Unit::Share => "share",
            Unit::Time => "ns",
            Unit::Bytes => "bytes",
            Unit::Rate => "bit/s",
        }
    }
}

/// A quantity in results.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    pub name: &'static str,
    pub unit: Unit,
    /// A few words, as the heading of a column.
    pub title: &'static str,
    /// One or two sentences.
    pub text: &'static str,
    pub source: &'static str,
    /// Unit of axes; empty: that of the values.
    axis_unit: &'static str,
    /// Title of an axis with its unit; empty: the title and the unit of axes.
    axis: &'static str,
    higher_is_better: bool,
    /// A number of a whole run, which tables and claims can ask for; false: a quantity that numbers of runs are made of.
    of_run: bool,
}

const HPCC: &str =
    "Li et al., \"HPCC: High Precision Congestion Control\", SIGCOMM 2019, and its authors' simulator";
const OURS: &str = "weftline's definition";

const fn quantity(name: &'static str, unit: Unit, title: &'static str, text: &'static str) -> Metric {
    Metric {
        name,
        unit,
        title,
        text,
        source: OURS,
        axis_unit: "",
        axis: "",
        higher_is_better: false,
        of_run: false,
    }
}

const fn run(name: &'static str, unit: Unit, title: &'static str, text: &'static str) -> Metric {
    Metric { of_run: true, ..quantity(name, unit, title, text) }
}

impl Metric {
    const fn shown_in(self, axis_unit: &'static str) -> Metric {
        Metric { axis_unit, ..self }
    }

    const fn axis(self, axis: &'static str) -> Metric {
        Metric { axis, ..self }
    }

    const fn source(self, source: &'static str) -> Metric {
        Metric { source, ..self }
    }

    const fn higher_is_better(self) -> Metric {
        Metric { higher_is_better: true, ..self }
    }

    /// The title of an axis, with the unit; the plain title where its values have no unit.
    pub fn axis_title(&self) -> String {
        match (self.axis, self.axis_unit) {
            ("", "") => self.title.to_string(),
            ("", unit) => format!("{} ({unit})", self.title),
            (axis, _) => axis.to_string(),
        }
    }
}

/// The metrics of all schemes and of the losses, which are made from their counters, as data: with `from`, how they are.
fn declared(groups: &[&'static CounterGroup]) -> Vec<Value> {
    let losses = LossCounters::ALL.iter().map(|counter| {
        let metric = run(counter.key, Unit::Count, counter.title, counter.text);
        described(&metric, json!({ "losses": counter.key }))
    });
    let of_schemes = groups.iter().flat_map(|group| group.metrics.iter().map(move |m| of_scheme(m, group)));
    of_schemes.chain(losses).collect()
}

/// With the title and text of its counter if it does not have its own.
fn of_scheme(declared: &crate::counters::Metric, group: &CounterGroup) -> Value {
    let counter = group.counters.iter().find(|counter| counter.key == declared.part);
    let or = |own: &'static str, of: fn(&Counter) -> &'static str| match own {
        "" => counter.map_or("", of),
        own => own,
    };
    let (unit, axis_unit) = match counter.map_or("", |counter| counter.unit) {
        _ if !declared.over.is_empty() && !declared.axis.is_empty() => (Unit::Share, ""),
        _ if !declared.over.is_empty() => (Unit::Number, ""),
        "bytes" => (Unit::Bytes, "MB"),
        "ns" => (Unit::Time, "us"),
        _ => (Unit::Count, ""),
    };
    let metric = run(declared.name, unit, or(declared.title, |c| c.title), or(declared.text, |c| c.text));
    let fold = counter.map_or("sum", super::counters::fold);
    let from = json!({ "table": group.table, "part": declared.part, "over": declared.over, "fold": fold });
    described(&metric.shown_in(axis_unit).axis(declared.axis), from)
}

fn described(metric: &Metric, from: Value) -> Value {
    json!({
        "name": metric.name,
        "unit": metric.unit.name(),
        "title": metric.title,
        "text": metric.text,
        "source": metric.source,
        "axis": metric.axis_title(),
        "axis_unit": if metric.unit == Unit::Share { "%" } else { metric.axis_unit },
        "higher_is_better": metric.higher_is_better,
        "of_run": metric.of_run,
        "from": from,
    })
}

/// Every name that is explained.
pub fn names(groups: &[&'static CounterGroup]) -> Vec<String> {
    all(groups).iter().filter_map(|metric| metric["name"].as_str().map(str::to_string)).collect()
}

/// The whole table as data: `name`, `unit` of the values, `title`, `text`, `source`, title and unit of an axis, `higher_is_better`,
/// `of_run` (false: a quantity that is explained and that no table has by this name), and `from`: the counters that it is made of, null
/// where `weftline.measures.metrics` reads it.
pub fn all(groups: &[&'static CounterGroup]) -> Vec<Value> {
    METRICS.iter().map(|metric| described(metric, Value::Null)).chain(declared(groups)).collect()
}
