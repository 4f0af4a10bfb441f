//! Slowdown of flows by their size: medians and tails in bins of equally many flows, or in decades of size.
//!
//! Percentile p of n values is element floor(n p) of the sorted ones, counted from 0; a bin is known by its largest
//! size. Source: analysis script of the HPCC artifact (spec in docs/compat.md).
//! Differs from the source: it drops the last, largest flow; here the last bin keeps the rest. Neighbouring bins
//! with the same largest size are one bin: flows of one size have no order among them.

use std::path::Path;

use arrow_array::RecordBatch;
use serde_json::{Value, json};

use crate::{ResultsError, flow_table, parquet_read};

/// How flows are put into bins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// This many bins with equally many flows.
    EqualCount(usize),
    /// (1, 10], (10, 100], ... bytes.
    Decades,
}

/// A finished flow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    pub flow: u32,
    pub size: u64,
    pub slowdown: f64,
}

/// Percentiles of some values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantiles {
    pub count: usize,
    pub p50: f64,
    pub p95: f64,
    pub p99: f64,
    pub mean: f64,
    pub max: f64,
}

/// Percentiles of the flows of a range of sizes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bin {
    /// Largest size in the bin; for decades the upper end of the decade.
    pub size: u64,
    pub slowdown: Quantiles,
}

/// Percentiles of `values`, which it sorts; none of no values.
pub fn quantiles(values: &mut [f64]) -> Option<Quantiles> {
    values.sort_unstable_by(f64::total_cmp);
    let count = values.len();
    let element = |p: f64| values.get(((count as f64 * p) as usize).min(count.saturating_sub(1))).copied();
    Some(Quantiles {
        count,
        p50: element(0.5)?,
        p95: element(0.95)?,
        p99: element(0.99)?,
        mean: values.iter().sum::<f64>() / count as f64,
        max: *values.last()?,
    })
}

/// Percentiles by size. Flows of the same size are put in the order of their ids.
pub fn by_size(points: &[Point], scheme: Scheme) -> Vec<Bin> {
    let mut sorted: Vec<&Point> = points.iter().collect();
    sorted.sort_unstable_by_key(|p| (p.size, p.flow));
    let bin = |flows: &[&Point], size: u64| {
        let mut values: Vec<f64> = flows.iter().map(|p| p.slowdown).collect();
        quantiles(&mut values).map(|slowdown| Bin { size, slowdown })
    };
    match scheme {
        Scheme::EqualCount(bins) => {
            let ends = ends_of_equal_bins(&sorted, bins.max(1));
            let starts = std::iter::once(0).chain(ends.iter().copied());
            starts.zip(&ends).filter_map(|(from, &to)| bin(&sorted[from..to], sorted[to - 1].size)).collect()
        }
        Scheme::Decades => {
            let parts = sorted.chunk_by(|a, b| decade(a.size) == decade(b.size));
            parts.filter_map(|flows| bin(flows, decade(flows[0].size))).collect()
        }
    }
}

/// Where each bin ends (exclusive). Bounds are floor(i n / bins).
fn ends_of_equal_bins(sorted: &[&Point], bins: usize) -> Vec<usize> {
    let n = sorted.len();
    let mut ends: Vec<usize> = Vec::new();
    for end in (1..=bins).map(|i| (i as u128 * n as u128 / bins as u128) as usize).filter(|&end| end > 0) {
        match ends.last() {
            Some(&last) if last == end => {}
            Some(&last) if sorted[last - 1].size == sorted[end - 1].size => {
                ends.pop();
                ends.push(end);
            }
            _ => ends.push(end),
        }
    }
    ends
}

/// The smallest power of ten that is not below `size`.
fn decade(size: u64) -> u64 {
    let mut end: u64 = 1;
    while end < size {
        end = end.saturating_mul(10);
    }
    end
}

/// The finished flows of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Finished {
    pub points: Vec<Point>,
    pub groups: Vec<String>,
    /// Each point's group, as its place in `groups`.
    pub group: Vec<u32>,
    /// Finished flows that have no slowdown, having no ideal time.
    pub without: u64,
    /// Slowdowns that were raised to 1, and those below 1.
    pub raised: u64,
    pub below_one: u64,
}

/// The finished flows in the run folder `dir`.
pub fn read(dir: &Path) -> Result<Finished, ResultsError> {
    let path = dir.join(flow_table::FILE);
    let foreign = || ResultsError::input(format!("{}: not a table of flows", path.display()));
    let mut finished = Finished::default();
    let wanted = ["flow_id", "size_bytes", "slowdown", "group", "fct_ns", "ideal_fct_ns"];
    parquet_read::each(&path, &wanted, &mut |batch| finished.add(batch).ok_or_else(foreign))?;
    Ok(finished)
}

impl Finished {
    /// Adds the finished flows of a batch of (flow_id, size_bytes, slowdown, group, fct_ns, ideal_fct_ns); none where these have other
    /// types.
    fn add(&mut self, batch: RecordBatch) -> Option<()> {
        let batch = [batch];
        let ids = parquet_read::numbers(&batch, 0)?;
        let sizes = parquet_read::numbers(&batch, 1)?;
        let slowdowns = parquet_read::numbers(&batch, 2)?;
        let (names, group) = parquet_read::strings(&batch, 3)?;
        let times = parquet_read::numbers(&batch, 4)?;
        let ideals = parquet_read::numbers(&batch, 5)?;
        let places: Vec<u32> = names.into_iter().map(|name| self.group_number(name)).collect();
        for row in (0..ids.len()).filter(|&row| !times[row].is_nan()) {
            if slowdowns[row].is_nan() {
                self.without += 1;
                continue;
            }
            self.raised += u64::from(slowdowns[row] == 1.0 && times[row] < ideals[row]);
            self.below_one += u64::from(slowdowns[row] < 1.0);
            self.points.push(Point {
                flow: ids[row] as u32,
                size: sizes[row] as u64,
                slowdown: slowdowns[row],
            });
            self.group.push(places[group[row] as usize]);
        }
        Some(())
    }

    /// Place of a group's name in `groups`, where it is put if it is new.
    fn group_number(&mut self, name: String) -> u32 {
        let place = self.groups.iter().position(|known| *known == name);
        place.unwrap_or_else(|| {
            self.groups.push(name);
            self.groups.len() - 1
        }) as u32
    }
}

impl Quantiles {
    pub fn to_json(self) -> Value {
        json!({ "count": self.count, "p50": self.p50, "p95": self.p95, "p99": self.p99, "mean": self.mean, "max": self.max })
    }
}

/// `{"bins": [{"size_bytes", "count", "p50", ...}], "overall": {...}}`; without flows no bins and a count of 0.
pub fn to_json(points: &[Point], scheme: Scheme) -> Value {
    let bins: Vec<Value> = by_size(points, scheme)
        .into_iter()
        .map(|bin| {
            let mut value = bin.slowdown.to_json();
            value["size_bytes"] = json!(bin.size);
            value
        })
        .collect();
    json!({ "bins": bins, "overall": overall(points.iter().map(|p| p.slowdown).collect()) })
}

/// Percentiles of all of them as JSON; nulls and a count of 0 where there are none.
pub fn overall(mut slowdowns: Vec<f64>) -> Value {
    match quantiles(&mut slowdowns) {
        Some(all) => all.to_json(),
        None => json!({ "count": 0, "p50": null, "p95": null, "p99": null, "mean": null, "max": null }),
    }
}

#[cfg(test)]
mod tests;
