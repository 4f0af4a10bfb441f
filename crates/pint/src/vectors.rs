//! Test vectors of everything that an encoder computes, as JSON, and the tables of the C twin: for those who write another one.
//!
//! Numbers are hexadecimal strings, since JSON's own are not exact beyond 2^53. [`functions`] has one case a line, arguments first
//! and the result last; [`paths`] has whole plans and the digest after every hop of some packets.

mod functions;
mod paths;
mod tables;

pub use functions::functions;
pub use paths::paths;
pub use tables::c_tables;

use crate::code::{Code, Selection};
use crate::value::Rounding;
use serde_json::Value;

const ROUNDINGS: [(Rounding, &str); 3] =
    [(Rounding::Nearest, "nearest"), (Rounding::Value, "value"), (Rounding::Logarithm, "logarithm")];

fn hex(number: u64) -> Value {
    Value::String(format!("{number:#x}"))
}

/// In units of 2^-32.
fn baseline(code: &Code) -> u64 {
    (code.tau() * 4_294_967_296.0) as u64
}

/// Kind (0 threshold, 1 words), bits and number of a selection.
fn raw(selection: Selection) -> (u64, u64, u64) {
    match selection {
        Selection::Threshold(threshold) => (0, 0, threshold),
        Selection::Words { numerator, bits } => (1, bits.into(), numerator.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// The file under the crate's folder holds this text; with WEFTLINE_ACCEPT=1 it is written.
    fn stored(file: &str, text: &str) {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        if std::env::var_os("WEFTLINE_ACCEPT").is_some() {
            std::fs::write(&file, text).unwrap();
        }
        let found = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(found == text, "{} differs; WEFTLINE_ACCEPT=1 writes it anew", file.display());
    }

    #[test]
    fn the_stored_vectors_and_tables_are_those_of_this_crate() {
        serde_json::from_str::<Value>(&functions()).unwrap();
        stored("vectors/functions.json", &functions());
        stored("c/weftline_pint_tables.h", &c_tables());
    }

    #[test]
    fn the_stored_paths_are_those_of_this_crate() {
        let text = paths();
        let plans = serde_json::from_str::<Value>(&text).unwrap();
        assert_eq!(plans["plans"].as_array().unwrap().len(), 2);
        assert!(text.contains("\"looped\":true"));
        stored("vectors/paths.json", &text);
    }
}
