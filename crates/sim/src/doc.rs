//! What each scheme declares about itself: its name in scenarios, and the texts that `weftline list`,
//! `weftline explain` and the documentation print.

use crate::counters::CounterGroup;

/// The texts of a scheme. Every scheme of every room has one, in its own file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchemeDoc {
    /// As in a scenario: `kind = "hpcc"`.
    pub name: &'static str,
    /// One line.
    pub title: &'static str,
    /// What it does, in two or three sentences; empty if the title is enough.
    pub text: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// Its law as plain text, one equation per line; empty if there is none.
    pub equations: &'static str,
    /// How the implementation was validated, and what was not.
    pub validation: &'static str,
    /// What it counts.
    pub counters: &'static [&'static CounterGroup],
    /// What it shows of a flow over time, beyond rate and window.
    pub series: &'static [Series],
}

/// A quantity of a flow over time, in series (`measure.controllers`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Series {
    /// As it is pushed, with its unit: `target_bps`.
    pub name: &'static str,
    /// Empty: none.
    pub unit: &'static str,
    /// One sentence.
    pub text: &'static str,
}

impl Series {
    pub const fn new(name: &'static str, unit: &'static str, text: &'static str) -> Series {
        Series { name, unit, text }
    }
}

impl SchemeDoc {
    /// All texts are empty: for `..SchemeDoc::NONE` in schemes that need only some of them.
    pub const NONE: SchemeDoc = SchemeDoc {
        name: "",
        title: "",
        text: "",
        source: "",
        equations: "",
        validation: "",
        counters: &[],
        series: &[],
    };
}
