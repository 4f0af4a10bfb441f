//! What schemes count: a counter is declared once, where it is counted, and lists its key, unit, title, text and fold.
//!
//! A scheme names the groups of counters that it fills in its [`SchemeDoc`](crate::doc::SchemeDoc) or in the list of its room, and fills
//! a [`CounterSet`] when it is asked: at the end of the run, and by measures over time. The keys of summary.json, series, metrics,
//! `weftline explain` and the reference pages follow from the declaration.

use std::ops::Deref;

/// A number that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counter {
    /// Its key in results.
    pub key: &'static str,
    /// Values in "ns" are counted in picoseconds.
    pub unit: &'static str,
    /// A few words, as the heading of a row.
    pub title: &'static str,
    /// One sentence.
    pub text: &'static str,
    pub fold: Fold,
}

impl Counter {
    /// One that is added up.
    pub const fn sum(
        key: &'static str,
        unit: &'static str,
        title: &'static str,
        text: &'static str,
    ) -> Counter {
        Counter { key, unit, title, text, fold: Fold::Sum }
    }
}

/// How the values of several ports, switches, hosts or regions become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fold {
    /// The sum; 0 if no scheme counts.
    Sum,
    /// The maximum; none if no scheme counts.
    Max,
    /// The maximum; none if one of the values is none, or no scheme counts.
    MaxOfAll,
}

/// A number that tables, figures and series show: a counter, or its ratio to the sum of other counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Over a whole run.
    pub name: &'static str,
    /// A few words; empty: those of the counter.
    pub title: &'static str,
    /// The title of the axis, if it is a share: it names the whole.
    pub axis: &'static str,
    /// One sentence; empty: that of the counter.
    pub text: &'static str,
    /// The key of the counter.
    pub part: &'static str,
    /// Keys of what it is divided by the sum of; empty: of nothing.
    pub over: &'static [&'static str],
    /// Its name over time, where ports are measured, and one sentence on it; empty: it is not shown over time.
    pub series: (&'static str, &'static str),
}

impl Metric {
    /// All texts empty: for `..Metric::NONE`.
    pub const NONE: Metric =
        Metric { name: "", title: "", axis: "", text: "", part: "", over: &[], series: ("", "") };
}

/// Counters that are filled together, and what is shown of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CounterGroup {
    /// The table of summary.json that has them by port; empty: they are totals of the run. Several groups may share a table: every port
    /// in it has the counters of all of them.
    pub table: &'static str,
    /// What the table is.
    pub text: &'static str,
    pub counters: &'static [Counter],
    /// What is so at the moment: shown over time only, by key.
    pub gauges: &'static [Counter],
    pub metrics: &'static [Metric],
}

impl CounterGroup {
    /// Nothing: for `..CounterGroup::NONE`.
    pub const NONE: CounterGroup =
        CounterGroup { table: "", text: "", counters: &[], gauges: &[], metrics: &[] };
}

/// A group with the values of its counters, and then of its gauges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counters {
    group: &'static CounterGroup,
    values: Vec<Option<u64>>,
}

impl Deref for Counters {
    type Target = CounterGroup;

    fn deref(&self) -> &CounterGroup {
        self.group
    }
}

impl Counters {
    /// Every counter with its value.
    pub fn each(&self) -> impl Iterator<Item = (&'static Counter, Option<u64>)> {
        self.group.counters.iter().zip(self.values.iter().copied())
    }

    fn get(&self, key: &str) -> Option<u64> {
        self.each().find(|(counter, _)| counter.key == key)?.1
    }

    /// What series show of an interval: metrics of what was counted since `before`, and the gauges. Ratios to nothing are left out.
    pub fn series(&self, before: &CounterSet) -> impl Iterator<Item = (&'static str, f64)> {
        let before = before.iter().find(|counters| std::ptr::eq(counters.group, self.group));
        let new = move |key: &&str| {
            self.get(key).unwrap_or(0) - before.and_then(|counters| counters.get(key)).unwrap_or(0)
        };
        let metrics = self.group.metrics.iter().filter(|metric| !metric.series.0.is_empty());
        let interval = metrics.filter_map(move |metric| {
            let (part, whole) = (new(&metric.part), metric.over.iter().map(new).sum::<u64>());
            let value = match metric.over {
                [] => Some(part as f64),
                _ => (whole > 0).then(|| part as f64 / whole as f64),
            };
            Some((metric.series.0, value?))
        });
        let gauges = self.group.gauges.iter().zip(&self.values[self.group.counters.len()..]);
        interval.chain(gauges.filter_map(|(gauge, value)| Some((gauge.key, (*value)? as f64))))
    }
}

/// What a port, or a whole run, has counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CounterSet(Vec<Counters>);

impl CounterSet {
    /// Folds in the values of a group: its counters in order, then its gauges.
    pub fn add<V: Into<Option<u64>>>(
        &mut self,
        group: &'static CounterGroup,
        values: impl IntoIterator<Item = V>,
    ) {
        let values = values.into_iter().map(Into::into);
        match self.0.iter_mut().find(|known| std::ptr::eq(known.group, group)) {
            Some(known) => {
                for ((known, new), counter) in known.values.iter_mut().zip(values).zip(group.counters) {
                    *known = match counter.fold {
                        Fold::Sum => Some(known.unwrap_or(0) + new.unwrap_or(0)),
                        Fold::Max => (*known).max(new),
                        Fold::MaxOfAll => known.zip(new).map(|(known, new)| known.max(new)),
                    };
                }
            }
            None => self.0.push(Counters { group, values: values.collect() }),
        }
    }

    /// Folds in another set.
    pub fn add_all(&mut self, other: &CounterSet) {
        other.0.iter().for_each(|counters| self.add(counters.group, counters.values.iter().copied()));
    }

    /// The value of a key; none if no scheme counts it, or its value is unknown.
    pub fn get(&self, key: &str) -> Option<u64> {
        self.0.iter().find_map(|counters| counters.get(key))
    }

    /// Adds the groups of `declared` of which nothing was counted: totals of the run, and those that share a table with a group that is
    /// here. Groups of a table then stand together, in order of their first keys.
    pub fn complete(&mut self, declared: &[&'static CounterGroup]) {
        let tables: Vec<&str> = self.iter().map(|counters| counters.table).collect();
        for group in declared.iter().filter(|group| group.table.is_empty() || tables.contains(&group.table)) {
            let nothing = |counter: &Counter| (counter.fold == Fold::Sum).then_some(0);
            if !self.iter().any(|known| std::ptr::eq(known.group, *group)) {
                self.add(group, group.counters.iter().map(nothing));
            }
        }
        let place = |group: &CounterGroup| tables.iter().position(|table| *table == group.table);
        self.0.sort_by_key(|c| (place(c.group), c.group.counters.first().map(|counter| counter.key)));
    }
}

impl Deref for CounterSet {
    type Target = [Counters];

    fn deref(&self) -> &[Counters] {
        &self.0
    }
}

/// A struct of counters that are added up, each declared once: its field, which is its key, its unit, its title and a sentence.
macro_rules! counters {
    ($(#[$doc:meta])* $name:ident { $($field:ident: $unit:literal, $title:literal, $text:literal;)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct $name {
            $(#[doc = $text] pub $field: u64,)*
        }

        impl $name {
            /// Its counters, in the order in which they are shown.
            pub const ALL: &[$crate::counters::Counter] = &[
                $($crate::counters::Counter::sum(stringify!($field), $unit, $title, $text),)*
            ];

            /// Every counter with its value.
            pub fn each(&self) -> impl Iterator<Item = (&'static $crate::counters::Counter, u64)> {
                Self::ALL.iter().zip([$(self.$field,)*])
            }

            /// The values, to be changed.
            #[allow(dead_code)]
            pub(crate) fn each_mut(&mut self) -> impl Iterator<Item = &mut u64> {
                [$(&mut self.$field,)*].into_iter()
            }
        }

        impl std::ops::AddAssign for $name {
            fn add_assign(&mut self, other: $name) {
                $(self.$field = self.$field.wrapping_add(other.$field);)*
            }
        }
    };
}

pub(crate) use counters;

#[cfg(test)]
mod tests;
