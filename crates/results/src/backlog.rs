//! Whether a network keeps up with what it is offered: how much is under way as flows keep starting.
//!
//! Stability as the pHost authors measure it (Gao et al., "pHost", CoNEXT 2015): what is outstanding when the last flow starts, less
//! what is outstanding when half of the flows have started, over what started in between. Near 0: the network keeps up; near 1: nothing
//! of it came through.

use std::path::Path;

use serde_json::{Value, json};

use crate::{ResultsError, flow_table, parquet_read, series};

/// Bytes under way at two moments of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Backlog {
    /// When half of the flows had started, and when the last one did.
    pub half_ns: f64,
    pub last_ns: f64,
    /// Started but not delivered at these moments.
    pub half_bytes: f64,
    pub last_bytes: f64,
    /// Started between them.
    pub started_bytes: f64,
}

impl Backlog {
    pub fn to_json(self) -> Value {
        json!({
            "half_ns": self.half_ns, "last_ns": self.last_ns, "half_bytes": self.half_bytes,
            "last_bytes": self.last_bytes, "started_bytes": self.started_bytes,
        })
    }
}

/// The backlog of the run in `dir`; none if the goodput of groups was not measured or fewer than two flows started.
pub fn read(dir: &Path) -> Result<Option<Backlog>, ResultsError> {
    let delivered: Vec<(f64, f64)> = series::read(dir, "goodput_bps", 0.0, 0)?
        .into_iter()
        .filter(|(entity, _)| series::flow_of(entity).is_none())
        .flat_map(|(_, points)| bytes(&points))
        .collect();
    if delivered.is_empty() {
        return Ok(None);
    }
    let path = dir.join(flow_table::FILE);
    let foreign = || ResultsError::input(format!("{}: not a table of flows", path.display()));
    let mut started: Vec<(f64, f64)> = Vec::new();
    parquet_read::each(&path, &["start_ns", "size_bytes"], &mut |batch| {
        let batch = [batch];
        let starts = parquet_read::numbers(&batch, 0).ok_or_else(foreign)?;
        let sizes = parquet_read::numbers(&batch, 1).ok_or_else(foreign)?;
        started.extend(starts.into_iter().zip(sizes));
        Ok(())
    })?;
    Ok(of(started, &delivered))
}

/// Bytes delivered in each interval, by the interval's end, from a rate in bit/s at the ends of equal intervals.
fn bytes(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut last = 0.0;
    let mut delivered = Vec::with_capacity(points.len());
    for &(end, rate) in points {
        delivered.push((end, rate * (end - last) / 8e9));
        last = end;
    }
    delivered
}

fn of(mut started: Vec<(f64, f64)>, delivered: &[(f64, f64)]) -> Option<Backlog> {
    started.sort_by(|a, b| a.0.total_cmp(&b.0));
    let n = started.len();
    if n < 2 {
        return None;
    }
    let (half_ns, last_ns) = (started[(n - 1) / 2].0, started[n - 1].0);
    let by = |list: &[(f64, f64)], time: f64| {
        list.iter().filter(|(at, _)| *at <= time).map(|(_, bytes)| bytes).sum::<f64>()
    };
    let (half, all) = (by(&started, half_ns), by(&started, last_ns));
    Some(Backlog {
        half_ns,
        last_ns,
        half_bytes: half - by(delivered, half_ns),
        last_bytes: all - by(delivered, last_ns),
        started_bytes: all - half,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_started_and_has_not_arrived_is_outstanding() {
        // Four flows of 1000 B, 1 us apart, and 8 Gb/s delivered in the first 2 us: 1000 B in each.
        let started = vec![(0.0, 1000.0), (3000.0, 1000.0), (1000.0, 1000.0), (2000.0, 1000.0)];
        let delivered = bytes(&[(1000.0, 8e9), (2000.0, 8e9), (3000.0, 0.0)]);
        let found = of(started, &delivered).expect("flows enough");
        assert_eq!((found.half_ns, found.last_ns), (1000.0, 3000.0));
        assert_eq!((found.half_bytes, found.last_bytes, found.started_bytes), (1000.0, 2000.0, 2000.0));
    }

    #[test]
    fn one_flow_has_no_backlog() {
        assert_eq!(of(vec![(0.0, 1.0)], &[(1.0, 1.0)]), None);
    }
}
