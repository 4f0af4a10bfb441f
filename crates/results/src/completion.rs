//! Completion of the flows of a range of sizes: how long they took, and how fast their payload came through.
//!
//! NFCT is the sum of the completion times over the sum of the ideal ones: a ratio of means, in which the longest flows count
//! most (Gao et al., "pHost", CoNEXT 2015; normalized FCT).
//!
//! The goodput of a flow is its payload over its completion time, in bit/s. The mean is over flows, each counting once, as in
//! Ben Basat et al., "PINT", SIGCOMM 2020, Fig 7a ("goodput of long flows").

use std::path::Path;

use serde_json::{Value, json};

use crate::slowdown::{Quantiles, quantiles};
use crate::{ResultsError, flow_table, parquet_read};

/// Which flows count.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Wanted {
    /// Smallest size in bytes.
    pub min_size: u64,
    /// Largest size in bytes; none: no bound.
    pub max_size: Option<u64>,
    /// Only flows of this group.
    pub group: Option<String>,
}

/// The finished flows of a range of sizes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Completions {
    /// Nanoseconds from a flow's start to its last acknowledgement.
    pub fct_ns: Vec<f64>,
    /// Payload over that time, bit/s.
    pub goodput_bps: Vec<f64>,
    pub slowdown: Vec<f64>,
    /// Sum of the ideal completion times, ns.
    pub ideal_ns: f64,
}

/// The finished flows in the run folder `dir` that are wanted.
pub fn read(dir: &Path, wanted: &Wanted) -> Result<Completions, ResultsError> {
    let path = dir.join(flow_table::FILE);
    let foreign = || ResultsError::input(format!("{}: not a table of flows", path.display()));
    let mut found = Completions::default();
    let columns = ["size_bytes", "fct_ns", "slowdown", "group", "ideal_fct_ns"];
    parquet_read::each(&path, &columns, &mut |batch| {
        let batch = [batch];
        let (sizes, times, slowdowns) = (
            parquet_read::numbers(&batch, 0).ok_or_else(foreign)?,
            parquet_read::numbers(&batch, 1).ok_or_else(foreign)?,
            parquet_read::numbers(&batch, 2).ok_or_else(foreign)?,
        );
        let ideals = parquet_read::numbers(&batch, 4).ok_or_else(foreign)?;
        let (names, groups) = parquet_read::strings(&batch, 3).ok_or_else(foreign)?;
        for (row, &size) in sizes.iter().enumerate() {
            if wanted.takes(size, &names[groups[row] as usize]) {
                found.add(size, times[row], slowdowns[row], ideals[row]);
            }
        }
        Ok(())
    })?;
    Ok(found)
}

impl Wanted {
    fn takes(&self, size: f64, group: &str) -> bool {
        size >= self.min_size as f64
            && self.max_size.is_none_or(|max_size| size <= max_size as f64)
            && self.group.as_deref().is_none_or(|only| only == group)
    }
}

impl Completions {
    /// Adds a flow; one that did not finish has no time and is passed over.
    fn add(&mut self, size: f64, fct_ns: f64, slowdown: f64, ideal_ns: f64) {
        if fct_ns > 0.0 && !slowdown.is_nan() {
            self.fct_ns.push(fct_ns);
            self.goodput_bps.push(8e9 * size / fct_ns);
            self.slowdown.push(slowdown);
            self.ideal_ns += ideal_ns;
        }
    }

    /// `{"count", "fct_ns": {"p50", "p95", "p99", "mean", "max"}, "goodput_bps": {..}, "slowdown": {..}, "nfct"}`; null for no
    /// flows.
    pub fn to_json(mut self) -> Value {
        let nfct = self.fct_ns.iter().sum::<f64>() / self.ideal_ns;
        let reported = |values: &mut Vec<f64>| quantiles(values).map(Quantiles::to_json);
        json!({
            "count": self.fct_ns.len(),
            "fct_ns": reported(&mut self.fct_ns),
            "goodput_bps": reported(&mut self.goodput_bps),
            "slowdown": reported(&mut self.slowdown),
            "nfct": (self.ideal_ns > 0.0).then_some(nfct),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goodput_is_payload_over_completion_time_and_the_mean_is_over_flows() {
        let mut found = Completions::default();
        // 10 MB in 1 ms are 80 Gb/s, 10 MB in 4 ms are 20.
        found.add(1e7, 1e6, 1.0, 8e5);
        found.add(1e7, 4e6, 4.0, 8e5);
        found.add(1e7, f64::NAN, f64::NAN, 8e5);
        let reported = found.to_json();
        assert_eq!(reported["count"], 2);
        assert_eq!(reported["goodput_bps"]["mean"], 50e9);
        assert_eq!(reported["fct_ns"]["mean"], 2.5e6);
        assert_eq!(reported["slowdown"]["max"], 4.0);
        assert_eq!(reported["nfct"], 5e6 / 1.6e6);
    }

    #[test]
    fn no_flows_have_no_goodput() {
        let reported = Completions::default().to_json();
        assert_eq!(
            (&reported["count"], &reported["goodput_bps"], &reported["nfct"]),
            (&json!(0), &Value::Null, &Value::Null)
        );
    }

    #[test]
    fn both_ends_of_a_range_of_sizes_belong_to_it() {
        let wanted = Wanted { min_size: 10, max_size: Some(20), group: Some("long".into()) };
        let taken = [9.0, 10.0, 20.0, 21.0].map(|size| wanted.takes(size, "long"));
        assert_eq!(taken, [false, true, true, false]);
        assert!(!wanted.takes(15.0, "short"));
        assert!(Wanted::default().takes(1.0, "any"));
    }
}
