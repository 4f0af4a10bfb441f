//! How a number of the flows is distributed: the points of its cumulative curve, one for each distinct value.
//!
//! Where there are too many, some are left out, never the first and the last. Half of those that stay stand
//! at equal steps of the share, half at equal steps of the logarithm of what is left above, so that a tail to
//! one flow in a million keeps its shape with a few hundred points.

use std::path::Path;

use serde_json::{Value, json};

use crate::completion::{self, Wanted};
use crate::{ResultsError, flow_table};

/// The available numbers: (name, help).
pub const COLUMNS: &[(&str, &str)] = &[
    ("slowdown", "completion time over the ideal one"),
    ("fct_ns", "completion time in nanoseconds"),
    ("goodput_bps", "payload over completion time in bit/s"),
];

/// At most `max_points` points (value, share of flows at or below it; 0: all, 1: the last) of a column in
/// [`COLUMNS`] over the finished flows that are wanted, one for each distinct value; both ascend, the last
/// share is 1. Empty where no flow finished.
///
/// Errors: the folder has no table of flows, or the column is none of those.
pub fn read(
    dir: &Path,
    column: &str,
    wanted: &Wanted,
    max_points: usize,
) -> Result<Vec<(f64, f64)>, ResultsError> {
    if !COLUMNS.iter().any(|(name, _)| *name == column) {
        let known = COLUMNS.iter().map(|(name, _)| *name);
        return Err(ResultsError::input(weftline_sim::parameters::unknown(
            &format!("column of {}", flow_table::FILE),
            column,
            known,
        )));
    }
    let found = completion::read(dir, wanted)?;
    let mut values = match column {
        "fct_ns" => found.fct_ns,
        "goodput_bps" => found.goodput_bps,
        _ => found.slowdown,
    };
    values.sort_unstable_by(f64::total_cmp);
    Ok(points(&values, max_points))
}

/// The same as JSON: `[[value, share], ...]`.
pub fn to_json(points: &[(f64, f64)]) -> Value {
    points.iter().map(|(value, share)| json!([value, share])).collect()
}

/// The points of the cumulative curve of sorted values, at most `max_points` unless that is 0.
fn points(sorted: &[f64], max_points: usize) -> Vec<(f64, f64)> {
    let count = sorted.len();
    let steps: Vec<(f64, usize)> = sorted
        .chunk_by(|a, b| a == b)
        .scan(0, |seen, equal| {
            *seen += equal.len();
            Some((equal[0], *seen))
        })
        .collect();
    let kept = if max_points == 0 || steps.len() <= max_points { steps } else { thinned(&steps, max_points) };
    kept.into_iter().map(|(value, seen)| (value, seen as f64 / count as f64)).collect()
}

/// The steps (value, number of values at or below it) that are kept of too many.
fn thinned(steps: &[(f64, usize)], max_points: usize) -> Vec<(f64, usize)> {
    let count = steps.last().map_or(0, |(_, seen)| *seen);
    let half = max_points / 2;
    let even = (0..=half).map(|i| (i * count).checked_div(half).map_or(count, |rank| rank.max(1)));
    // What is left above falls from all to one flow.
    let tail = (1..half).map(|i| count - (count as f64).powf(1.0 - i as f64 / half as f64) as usize);
    let ranks = even.chain(tail).map(|rank| rank.clamp(1, count));
    let mut places: Vec<usize> = ranks.map(|rank| steps.partition_point(|(_, seen)| *seen < rank)).collect();
    places.sort_unstable();
    places.dedup();
    places.into_iter().map(|place| steps[place]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_are_all_there_with_the_share_at_or_below_each() {
        assert_eq!(points(&[1.0, 2.0, 2.0, 5.0], 10), [(1.0, 0.25), (2.0, 0.75), (5.0, 1.0)]);
        assert_eq!(points(&[], 10), []);
        assert_eq!(points(&[1.0, 2.0, 3.0], 0).len(), 3);
    }

    #[test]
    fn there_are_no_more_points_than_were_requested() {
        let sorted: Vec<f64> = (1..=1000).map(f64::from).collect();
        for max in 1..20 {
            let found = points(&sorted, max);
            assert!(found.len() <= max && found.last() == Some(&(1000.0, 1.0)), "{max}: {found:?}");
        }
    }

    #[test]
    fn equal_values_are_one_point_however_few_points_are_kept() {
        let mut sorted = vec![1.0; 900];
        sorted.extend((2..=101).map(f64::from));
        for max in 2..50 {
            let found = points(&sorted, max);
            assert!(found.len() <= max, "{max}: {found:?}");
            assert_eq!((found[0], found[found.len() - 1]), ((1.0, 0.9), (101.0, 1.0)), "{max}");
            let below = |value: f64| sorted.iter().filter(|v| **v <= value).count() as f64 / 1000.0;
            assert!(found.iter().all(|(value, share)| *share == below(*value)), "{max}: {found:?}");
        }
        // Equal values alone need no thinning.
        assert_eq!(points(&sorted[..900], 1), [(1.0, 1.0)]);
    }

    #[test]
    fn of_a_million_values_the_curve_keeps_its_middle_and_its_last_one() {
        let sorted: Vec<f64> = (1..=1_000_000).map(f64::from).collect();
        let found = points(&sorted, 200);
        assert!(found.len() <= 200, "{}", found.len());
        assert_eq!(found.last(), Some(&(1e6, 1.0)));
        assert!(found.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1));
        assert!(found.iter().all(|(value, share)| (value / 1e6 - share).abs() < 1e-12));
        // The tail: some point lies in each power of ten of what is left above.
        for left in [1e-1, 1e-2, 1e-3, 1e-4, 1e-5] {
            assert!(found.iter().any(|(_, share)| (left / 10.0..=left).contains(&(1.0 - share))), "{left}");
        }
    }

    #[test]
    fn a_column_that_is_none_gets_the_nearest() {
        let error = read(Path::new("."), "slowdwn", &Wanted::default(), 10).unwrap_err().to_string();
        assert!(error.contains("slowdown"), "{error}");
    }
}
