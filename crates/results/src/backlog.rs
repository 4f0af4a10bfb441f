//! Whether a network keeps up with what it is offered: how much is under way as flows keep starting.
//!
//! Stability as the pHost authors measure it (Gao et al., "pHost", CoNEXT 2015): what is outstanding when the last flow starts, less
//! what is outstanding when half of the flows have started, over what started in between. Near 0: the network keeps up; near 1: nothing
//! of it came through.
//!
//! Flows without an end are left out, with the goodput of their groups: all of their bytes start at once and never arrive, so that what
//! they deliver would hide what other flows leave under way. So is the goodput of groups without a row in the table of flows, which are
//! jobs whose messages are not listed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};
use weftline_sim::workload::WITHOUT_END;

use crate::{ResultsError, flow_table, parquet_read, series, shares};

/// Bytes under way at two moments of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Backlog {
    /// When half of the flows with an end had started, and when the last one did.
    pub half_ns: f64,
    pub last_ns: f64,
    /// Started but not delivered at these moments; none where it is not known what was delivered by then: an interval of goodput
    /// holds such a moment and is longer than the time between the two, or a flow without an end is of the group of others.
    pub half_bytes: Option<f64>,
    pub last_bytes: Option<f64>,
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

/// The flows of a run with an end, and which groups have such flows and others.
#[derive(Default)]
struct Started {
    /// Start and bytes of flows with an end.
    flows: Vec<(f64, f64)>,
    groups: BTreeSet<String>,
    endless_groups: BTreeSet<String>,
}

impl Started {
    fn add(&mut self, at: f64, bytes: f64, group: &str) {
        let has_end = bytes < WITHOUT_END.0 as f64;
        if has_end {
            self.flows.push((at, bytes));
        }
        let groups = if has_end { &mut self.groups } else { &mut self.endless_groups };
        if !groups.contains(group) {
            groups.insert(group.to_string());
        }
    }

    /// `goodput`: of each group in bit/s at the ends of intervals.
    fn backlog(self, goodput: BTreeMap<String, Vec<(f64, f64)>>) -> Option<Backlog> {
        let is_counted = |group: &String| self.groups.contains(group) && !self.endless_groups.contains(group);
        let of_counted = |(group, points): (String, _)| is_counted(&group).then_some(points);
        let goodput: Vec<_> = goodput.into_iter().filter_map(of_counted).collect();
        let found = of(self.flows, &goodput)?;
        let is_known = self.groups.is_disjoint(&self.endless_groups);
        Some(if is_known { found } else { Backlog { half_bytes: None, last_bytes: None, ..found } })
    }
}

/// The backlog of the run in `dir`; none if the goodput of groups was not measured or fewer than two flows with an end started.
pub fn read(dir: &Path) -> Result<Option<Backlog>, ResultsError> {
    let mut goodput = series::read(dir, "goodput_bps", 0.0, 0)?;
    goodput.retain(|entity, _| series::flow_of(entity).is_none());
    if goodput.is_empty() {
        return Ok(None);
    }
    let path = dir.join(flow_table::FILE);
    let foreign = || ResultsError::input(format!("{}: not a table of flows", path.display()));
    let mut started = Started::default();
    parquet_read::each(&path, &["start_ns", "size_bytes", "group"], &mut |batch| {
        let batch = [batch];
        let starts = parquet_read::numbers(&batch, 0).ok_or_else(foreign)?;
        let sizes = parquet_read::numbers(&batch, 1).ok_or_else(foreign)?;
        let (names, groups) = parquet_read::strings(&batch, 2).ok_or_else(foreign)?;
        for (row, group) in groups.into_iter().enumerate() {
            started.add(starts[row], sizes[row], &names[group as usize]);
        }
        Ok(())
    })?;
    Ok(started.backlog(goodput))
}

/// Bytes delivered by a time, from rates in bit/s at the ends of intervals that follow each other from time 0. An interval counts by
/// the part of it before that time; after the last one its rate continues.
fn delivered(points: &[(f64, f64)], time: f64) -> f64 {
    let after = points.last().map_or(0.0, |&(end, rate)| rate * (time - end).max(0.0) / 8e9);
    shares::within(points, 0.0, time) + after
}

/// `groups`: their goodput in bit/s at the ends of intervals.
fn of(mut started: Vec<(f64, f64)>, groups: &[Vec<(f64, f64)>]) -> Option<Backlog> {
    started.sort_by(|a, b| a.0.total_cmp(&b.0));
    let n = started.len();
    if n < 2 {
        return None;
    }
    let (half_ns, last_ns) = (started[(n - 1) / 2].0, started[n - 1].0);
    let started_by = |time: f64| started.iter().filter(|(at, _)| *at <= time).map(|(_, bytes)| bytes).sum();
    let delivered_by = |time: f64| groups.iter().map(|points| delivered(points, time)).sum::<f64>();
    let (half, all): (f64, f64) = (started_by(half_ns), started_by(last_ns));
    let coarsest = |time: f64| groups.iter().map(|points| interval_at(points, time)).fold(0.0, f64::max);
    let is_known = coarsest(half_ns).max(coarsest(last_ns)) <= last_ns - half_ns;
    Some(Backlog {
        half_ns,
        last_ns,
        half_bytes: is_known.then(|| half - delivered_by(half_ns)),
        last_bytes: is_known.then(|| all - delivered_by(last_ns)),
        started_bytes: all - half,
    })
}

/// The length of the interval inside of which a time lies; 0 at the ends of intervals.
fn interval_at(points: &[(f64, f64)], time: f64) -> f64 {
    let after = points.partition_point(|point| point.0 < time);
    let begin = after.checked_sub(1).map_or(0.0, |before| points[before].0);
    match points.get(after) {
        Some(&(end, _)) if begin < time && time < end => end - begin,
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_started_and_has_not_arrived_is_outstanding() {
        // Four flows of 1000 B, 1 us apart, and 8 Gb/s delivered in the first 2 us: 1000 B in each.
        let groups = [vec![(1000.0, 8e9), (2000.0, 8e9), (3000.0, 0.0)]];
        let found = of(flows(), &groups).expect("flows enough");
        assert_eq!((found.half_ns, found.last_ns), (1000.0, 3000.0));
        assert_eq!((found.half_bytes, found.last_bytes), (Some(1000.0), Some(2000.0)));
        assert_eq!(found.started_bytes, 2000.0);
    }

    fn flows() -> Vec<(f64, f64)> {
        vec![(0.0, 1000.0), (3000.0, 1000.0), (1000.0, 1000.0), (2000.0, 1000.0)]
    }

    #[test]
    fn the_interval_of_goodput_does_not_decide_what_is_outstanding() {
        // 4 Gb/s all the time: 500 B by 1 us, 1500 B by 3 us.
        let every = |every: f64| {
            let ends = (1..=16).map(|n| f64::from(n) * every).take_while(|&end| end < 3000.0);
            let points = ends.chain([3000.0]).map(|end| (end, 4e9)).collect();
            let found = of(flows(), &[points]).expect("flows enough");
            (found.half_bytes, found.last_bytes)
        };
        for interval in [250.0, 1000.0, 1250.0, 2000.0] {
            assert_eq!(every(interval), (Some(1500.0), Some(2500.0)), "every {interval} ns");
        }
        // Between 1 and 3 us nothing is known of when it was delivered.
        assert_eq!(every(5000.0), (None, None));
    }

    #[test]
    fn a_flow_without_an_end_changes_nothing_but_where_its_group_has_others() {
        let rates = |rate: f64| (1..=3).map(|n| (1e3 * f64::from(n), rate)).collect::<Vec<_>>();
        let goodput = || BTreeMap::from([("web".to_string(), rates(4e9)), ("bulk".to_string(), rates(9e9))]);
        let next_to = |endless: &[&str]| {
            let mut started = Started::default();
            flows().into_iter().for_each(|(at, bytes)| started.add(at, bytes, "web"));
            endless.iter().for_each(|group| started.add(0.0, WITHOUT_END.0 as f64, group));
            started.backlog(goodput()).expect("flows enough")
        };
        let alone = of(flows(), &[rates(4e9)]).expect("flows enough");
        assert_eq!(next_to(&["bulk"]), alone);
        assert_eq!(next_to(&["bulk", "bulk"]), alone);
        let mixed = next_to(&["web", "bulk"]);
        assert_eq!((mixed.half_bytes, mixed.last_bytes), (None, None));
        assert_eq!((mixed.half_ns, mixed.started_bytes), (alone.half_ns, alone.started_bytes));
    }

    #[test]
    fn what_groups_without_rows_deliver_is_not_of_the_flows_that_count() {
        let rates = |rate: f64| (1..=3).map(|n| (1e3 * f64::from(n), rate)).collect::<Vec<_>>();
        let next_to = |others: &[&str]| {
            let mut started = Started::default();
            flows().into_iter().for_each(|(at, bytes)| started.add(at, bytes, "web"));
            let goodput = others.iter().map(|group| (group.to_string(), rates(9e9)));
            started.backlog(goodput.chain([("web".to_string(), rates(4e9))]).collect())
        };
        assert_eq!(next_to(&["job"]), next_to(&[]));
        assert_eq!(next_to(&[]), of(flows(), &[rates(4e9)]));
    }

    #[test]
    fn one_flow_has_no_backlog() {
        assert_eq!(of(vec![(0.0, 1.0)], &[vec![(1.0, 1.0)]]), None);
    }
}
