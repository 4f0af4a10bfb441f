//! What a scheme says of itself: its name in scenarios, and what `weftline list`, `weftline explain` and the
//! documentation print.

use crate::counters::CounterGroup;

/// The texts of a scheme. Every scheme of every room has one, in its own file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchemeDoc {
    /// As in a scenario: `kind = "hpcc"`.
    pub name: &'static str,
    /// One line.
    pub title: &'static str,
    /// What it does, in two or three sentences; empty: the title says it.
    pub text: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// Its law as plain text, one equation a line; empty where there is none.
    pub equations: &'static str,
    /// How it was checked, and what was not.
    pub validation: &'static str,
    /// What it counts.
    pub counters: &'static [&'static CounterGroup],
}

impl SchemeDoc {
    /// All texts empty: for `..SchemeDoc::NONE` in those that need not all of them.
    pub const NONE: SchemeDoc =
        SchemeDoc { name: "", title: "", text: "", source: "", equations: "", validation: "", counters: &[] };
}
