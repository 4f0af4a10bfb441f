//! Names of what the laws of a connection's subflows show over time: `subflow3_alpha` is the `alpha` of
//! subflow 3.

use super::stream::MAX_SUBFLOWS;
use crate::congestion::window;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// Names by that of the law's series, for each subflow.
static NAMES: OnceLock<BTreeMap<&'static str, Vec<&'static str>>> = OnceLock::new();

/// The name under which a connection shows what a law calls `series`; none if no law declares it.
pub fn of_subflow(number: usize, series: &str) -> Option<&'static str> {
    NAMES.get_or_init(all).get(series)?.get(number).copied()
}

/// Names of samples must be valid until the program ends: each is made once and kept.
fn all() -> BTreeMap<&'static str, Vec<&'static str>> {
    let series = window::DOCS.iter().flat_map(|doc| doc.series).map(|series| series.name);
    let name =
        |number: usize, series: &str| &*Box::leak(format!("subflow{number}_{series}").into_boxed_str());
    series.map(|series| (series, (0..MAX_SUBFLOWS).map(|number| name(number, series)).collect())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_series_of_a_law_has_a_name_for_each_subflow() {
        assert_eq!(of_subflow(0, "alpha"), Some("subflow0_alpha"));
        assert_eq!(of_subflow(31, "between_losses_bytes"), Some("subflow31_between_losses_bytes"));
        assert_eq!(of_subflow(MAX_SUBFLOWS, "alpha"), None);
        assert_eq!(of_subflow(0, "no such series"), None);
    }
}
