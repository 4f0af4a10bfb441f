//! What every flow delivered in a window of time, from the goodput of flows (`[measure] goodput` by flow).

use std::collections::HashMap;
use std::path::Path;

use crate::{ResultsError, flow_table, parquet_read, series};

/// One flow's part.
#[derive(Debug, Clone, PartialEq)]
pub struct Share {
    pub flow: u32,
    /// Numbers of its hosts.
    pub src: u32,
    pub dst: u32,
    pub group: String,
    pub start_ns: f64,
    /// Payload delivered within the window.
    pub bytes: f64,
    /// Until when its goodput was measured: the end of the run, or in folders of earlier builds the end of the last whole interval.
    pub until_ns: f64,
}

/// What the flows of the run in `dir` whose goodput was measured delivered from `from_ns` to `to_ns`, by number. Intervals count by
/// the part of them that lies in the window.
pub fn read(dir: &Path, from_ns: f64, to_ns: f64) -> Result<Vec<Share>, ResultsError> {
    let of_flow = |(entity, points): (String, Vec<(f64, f64)>)| {
        let until = points.last().map_or(0.0, |&(end, _)| end);
        Some((series::flow_of(&entity)?, (within(&points, from_ns, to_ns), until)))
    };
    let series = series::read(dir, "goodput_bps", 0.0, 0)?;
    let mut delivered: HashMap<u32, (f64, f64)> = series.into_iter().filter_map(of_flow).collect();
    let path = dir.join(flow_table::FILE);
    let foreign = || ResultsError::input(format!("{}: not a table of flows", path.display()));
    let mut shares = Vec::with_capacity(delivered.len());
    parquet_read::each(&path, &["flow_id", "group", "start_ns", "src", "dst"], &mut |batch| {
        let batch = [batch];
        let flows = parquet_read::numbers(&batch, 0).ok_or_else(foreign)?;
        let (names, groups) = parquet_read::strings(&batch, 1).ok_or_else(foreign)?;
        let starts = parquet_read::numbers(&batch, 2).ok_or_else(foreign)?;
        let sources = parquet_read::numbers(&batch, 3).ok_or_else(foreign)?;
        let targets = parquet_read::numbers(&batch, 4).ok_or_else(foreign)?;
        for (row, flow) in flows.iter().map(|&flow| flow as u32).enumerate() {
            if let Some((bytes, until_ns)) = delivered.remove(&flow) {
                let group = names[groups[row] as usize].clone();
                let (src, dst) = (sources[row] as u32, targets[row] as u32);
                shares.push(Share { flow, src, dst, group, start_ns: starts[row], bytes, until_ns });
            }
        }
        Ok(())
    })?;
    shares.sort_by_key(|share| share.flow);
    Ok(shares)
}

/// Bytes in a window, from rates in bit/s at the ends of intervals that follow each other from time 0.
pub(crate) fn within(points: &[(f64, f64)], from_ns: f64, to_ns: f64) -> f64 {
    within_after(0.0, points, from_ns, to_ns)
}

/// The same from rates at the ends of intervals that follow each other from time `begin`.
pub(crate) fn within_after(mut begin: f64, points: &[(f64, f64)], from_ns: f64, to_ns: f64) -> f64 {
    let mut bytes = 0.0;
    for &(end, rate) in points {
        if begin >= to_ns {
            break;
        }
        let overlap = end.min(to_ns) - f64::max(begin, from_ns);
        bytes += rate * overlap.max(0.0) / 8e9;
        begin = end;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_counts_by_the_part_that_lies_in_the_window() {
        // 8 Gb/s are a byte each nanosecond.
        let points = [(1000.0, 8e9), (2000.0, 16e9), (3000.0, 0.0)];
        assert_eq!(within(&points, 0.0, 3000.0), 3000.0);
        assert_eq!(within(&points, 500.0, 1500.0), 500.0 + 1000.0);
        assert_eq!(within(&points, 2000.0, 9000.0), 0.0);
    }
}
