//! series.parquet: what `[measure]` requests over time, one value a row: time_ns, entity, metric, value.
//!
//! A value is one of four kinds. Of an *interval*, from the row before to its own time: a *mean* over it, such as a utilisation, or a
//! *count* of what happened in it. The intervals of an entity follow each other from time 0 and are equal, except that the last one is
//! shorter where the run ends inside of it. Of a *state*, from its own time until the next row: 0 before the first one, and the last
//! one lasts until the end of the run. All others are *samples*, which count alike.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, DictionaryArray, Float64Array, Int32Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use rustc_hash::FxHashMap;
use weftline_sim::measure::{Entity, Sample};

use serde_json::Value;

use crate::flow_table::text;
use crate::folder::SUMMARY_FILE;
use crate::names::Names;
use crate::{ResultsError, file_digests, parquet_read, shares};

pub const FILE: &str = "series.parquet";

/// Columns of the table.
pub fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("time_ns", DataType::Float64, false),
        Field::new("entity", text(), false),
        Field::new("metric", text(), false),
        Field::new("value", DataType::Float64, false),
    ]))
}

/// Number of strings after which a dictionary is emptied, so that it does not grow with the number of flows of a run.
const MOST_STRINGS: usize = 1 << 16;

/// Distinct strings in the order in which they were first needed, kept from batch to batch.
struct Dictionary<K> {
    place: FxHashMap<K, i32>,
    strings: Vec<String>,
    /// The strings as they were when a batch last needed more of them.
    array: Arc<StringArray>,
}

impl<K: std::hash::Hash + Eq> Dictionary<K> {
    fn new() -> Dictionary<K> {
        let array = Arc::new(StringArray::from_iter_values([""; 0]));
        Dictionary { place: FxHashMap::default(), strings: Vec::new(), array }
    }

    fn column(&mut self, rows: impl Iterator<Item = K>, name: impl Fn(&K) -> String) -> ArrayRef {
        if self.strings.len() > MOST_STRINGS {
            *self = Dictionary::new();
        }
        let Dictionary { place, strings, .. } = self;
        let of_row = |key: K| {
            Some(place.get(&key).copied().unwrap_or_else(|| {
                strings.push(name(&key));
                place.insert(key, strings.len() as i32 - 1);
                strings.len() as i32 - 1
            }))
        };
        let rows: Int32Array = rows.map(of_row).collect();
        if self.array.len() < self.strings.len() {
            self.array = Arc::new(StringArray::from_iter_values(&self.strings));
        }
        Arc::new(DictionaryArray::new(rows, self.array.clone()))
    }
}

/// Turns samples into rows.
pub(crate) struct SeriesRows {
    schema: SchemaRef,
    names: Arc<Names>,
    entities: Dictionary<Entity>,
    metrics: Dictionary<&'static str>,
}

impl SeriesRows {
    pub fn new(names: Arc<Names>) -> SeriesRows {
        SeriesRows { schema: schema(), names, entities: Dictionary::new(), metrics: Dictionary::new() }
    }

    pub fn batch(&mut self, samples: &[Sample]) -> RecordBatch {
        RecordBatch::try_new(
            self.schema.clone(),
            vec![
                Arc::new(Float64Array::from_iter_values(samples.iter().map(|s| s.time.as_ns()))),
                self.entities.column(samples.iter().map(|s| s.entity), |&entity| self.names.entity(entity)),
                self.metrics.column(samples.iter().map(|s| s.metric), |metric| metric.to_string()),
                Arc::new(Float64Array::from_iter_values(samples.iter().map(|s| s.value))),
            ],
        )
        .expect("columns are made in the order and of the types of the schema, each from all samples")
    }
}

/// The number of the flow that an entity's name stands for: `flow12`; none for ports and groups, which may not have such a name.
pub fn flow_of(entity: &str) -> Option<u32> {
    let number = entity.strip_prefix("flow")?;
    number.bytes().all(|byte| byte.is_ascii_digit()).then(|| number.parse().ok()).flatten()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Mean,
    Count,
    State,
    Sample,
}

fn kind_of(metric: &str) -> Kind {
    match metric {
        "goodput_bps" | "utilisation" => Kind::Mean,
        "ecn_marks" | "drops" | "pauses" => Kind::Count,
        "paused" => Kind::State,
        _ => {
            let groups = weftline_sim::describe::counters();
            let mut declared = groups.iter().flat_map(|group| group.metrics);
            match declared.any(|one| one.series.0 == metric && one.over.is_empty()) {
                true => Kind::Count,
                false => Kind::Sample,
            }
        }
    }
}

/// More points than these are not made of a state.
const MOST_SPANS: f64 = 1e7;

/// (time in ns, value) of every entity, by name.
pub type Series = BTreeMap<String, Vec<(f64, f64)>>;

/// The series of one metric in the run folder `dir`.
///
/// The time of a value is the end of its interval. With `every_ns` above zero, values are averaged over
/// spans of that length, from a multiple of it (excluded) to the next (included), and stand at the span's end, of the last one at that
/// of the run. Values that are not closer together than such spans stay as they are.
/// With `max_points` above zero an entity has at most that many points: neighbours are averaged until it has, and
/// stand at the last one's time; a state is averaged over that many equal spans of the run. All means are over time; those of counts
/// are per whole interval. A run that recorded no series returns an empty list.
///
/// Errors: the folder is damaged; `every_ns` is negative or not finite; a state would have more than [`MOST_SPANS`] spans.
pub fn read(dir: &Path, metric: &str, every_ns: f64, max_points: usize) -> Result<Series, ResultsError> {
    if !every_ns.is_finite() || every_ns < 0.0 {
        return Err(ResultsError::input(format!(
            "every_ns: expected a finite number of at least 0, found {every_ns}"
        )));
    }
    let path = dir.join(FILE);
    let mut all = Series::new();
    if !path.exists() {
        file_digests::check_file(&path)?;
        return Ok(all);
    }
    let foreign = || ResultsError::input(format!("{}: not a table of series", path.display()));
    let batches = parquet_read::batches(&path, &["time_ns", "entity", "metric", "value"])?;
    let times = parquet_read::numbers(&batches, 0).ok_or_else(foreign)?;
    let (entities, entity) = parquet_read::strings(&batches, 1).ok_or_else(foreign)?;
    let (metrics, kind) = parquet_read::strings(&batches, 2).ok_or_else(foreign)?;
    let values = parquet_read::numbers(&batches, 3).ok_or_else(foreign)?;
    let Some(wanted) = metrics.iter().position(|m| m == metric) else { return Ok(all) };
    let mut points: Vec<Vec<(f64, f64)>> = vec![Vec::new(); entities.len()];
    for row in (0..times.len()).filter(|&row| kind[row] == wanted as u32) {
        points[entity[row] as usize].push((times[row], values[row]));
    }
    let kind = kind_of(metric);
    let end_ns = if kind == Kind::State || every_ns > 0.0 { end_of_run(dir)? } else { None };
    for (name, points) in entities.into_iter().zip(points) {
        let Some(&(last, _)) = points.last() else { continue };
        let end = end_ns.unwrap_or(last).max(last);
        let points = match kind {
            Kind::State => states(points, every_ns, max_points, end)?,
            Kind::Mean => thinned(intervals(points, every_ns), max_points, kind),
            Kind::Count | Kind::Sample => thinned(averaged(points, every_ns, end, kind), max_points, kind),
        };
        all.insert(name, points);
    }
    Ok(all)
}

/// When the run ended by summary.json, in ns.
fn end_of_run(dir: &Path) -> Result<Option<f64>, ResultsError> {
    let path = dir.join(SUMMARY_FILE);
    file_digests::check_file(&path)?;
    let summary: Option<Value> = fs::read(path).ok().and_then(|text| serde_json::from_slice(&text).ok());
    Ok(summary.and_then(|summary| summary["end_ns"].as_f64()))
}

/// The number of the span of length `every_ns` that holds `time`, from 1. The tolerance is for multiples that are not integers.
fn span(time: f64, every_ns: f64) -> f64 {
    (time / every_ns - 1e-9).ceil()
}

/// Means over the spans that end at multiples of `every_ns`, or at the end of the run, at these; empty spans left out. As they are
/// where no two points lie in a span; of a time of 0, too.
fn averaged(points: Vec<(f64, f64)>, every_ns: f64, end: f64, kind: Kind) -> Vec<(f64, f64)> {
    let part = Part::of_last(&points, kind);
    // Counts are of equal intervals, of which the end of the run may cut the last one short.
    let whole = if part.part < 1.0 { &points[..points.len() - 1] } else { &points[..] };
    let gaps = whole.windows(2).map(|pair| pair[1].0 - pair[0].0).chain(whole.first().map(|first| first.0));
    if every_ns <= gaps.fold(f64::INFINITY, f64::min) * (1.0 + 1e-9) {
        return points;
    }
    points
        .chunk_by(|a, b| span(a.0, every_ns) == span(b.0, every_ns))
        .map(|chunk| ((span(chunk[0].0, every_ns) * every_ns).min(end), part.mean(chunk)))
        .collect()
}

/// How much of an interval the last point of a series is of.
struct Part {
    /// The time of that point.
    end: f64,
    /// Its interval over the others: 1 of samples.
    part: f64,
    kind: Kind,
}

impl Part {
    fn of_last(points: &[(f64, f64)], kind: Kind) -> Part {
        let part = if kind == Kind::Sample { 1.0 } else { last_part(points) };
        Part { end: points.last().map_or(0.0, |last| last.0), part, kind }
    }

    /// The mean of some of the points over time. Of counts it is per whole interval; a shorter one alone stays as it is.
    fn mean(&self, chunk: &[(f64, f64)]) -> f64 {
        match chunk {
            [whole @ .., last] if last.0 == self.end && self.part < 1.0 && !whole.is_empty() => {
                let sum: f64 = whole.iter().map(|point| point.1).sum();
                let weight = if self.kind == Kind::Count { 1.0 } else { self.part };
                (sum + weight * last.1) / (whole.len() as f64 + self.part)
            }
            _ => chunk.iter().map(|point| point.1).sum::<f64>() / chunk.len() as f64,
        }
    }
}

/// The last interval over the others, which are equal: 1, or less where the run ended inside of it.
fn last_part(points: &[(f64, f64)]) -> f64 {
    let [.., before, last] = points else { return 1.0 };
    let part = (last.0 - before.0) / points[0].0;
    if part < 1.0 - 1e-6 { part } else { 1.0 }
}

/// The same of means over intervals; `every_ns` 0: as they are.
fn intervals(points: Vec<(f64, f64)>, every_ns: f64) -> Vec<(f64, f64)> {
    let Some(&(interval, _)) = points.first() else { return points };
    let in_span = every_ns / interval;
    if in_span <= 1.0 + 1e-9 {
        return points;
    }
    let end = points[points.len() - 1].0;
    if (in_span - in_span.round()).abs() < 1e-6 && last_part(&points) == 1.0 {
        return averaged(points, every_ns, end, Kind::Mean);
    }
    let mut spans = Vec::new();
    let (mut rest, mut since) = (points.as_slice(), 0.0);
    for number in 1..=span(end, every_ns) as u64 {
        let (begin, to) = ((number - 1) as f64 * every_ns, (number as f64 * every_ns).min(end));
        let bytes = shares::within_after(since, rest, begin, to);
        spans.push((to, 8e9 * bytes / (to - begin)));
        let passed = rest.partition_point(|point| point.0 <= to);
        since = passed.checked_sub(1).map_or(since, |last| rest[last].0);
        rest = &rest[passed..];
    }
    spans
}

/// A state as its changes, or as means over spans if `every_ns` or `max_points` asks for them.
fn states(
    changes: Vec<(f64, f64)>,
    every_ns: f64,
    max_points: usize,
    end: f64,
) -> Result<Vec<(f64, f64)>, ResultsError> {
    let over = |every: f64, count: f64| {
        let mut spans = Vec::new();
        let (mut next, mut value) = (0, 0.0);
        for number in 1..=count as u64 {
            let (mut from, to) = ((number - 1) as f64 * every, (number as f64 * every).min(end));
            let (begin, mut sum) = (from, 0.0);
            while let Some(&(at, state)) = changes.get(next).filter(|change| change.0 <= to) {
                sum += value * (at - from);
                (from, value) = (at, state);
                next += 1;
            }
            sum += value * (to - from);
            spans.push((to, sum / (to - begin)));
        }
        spans
    };
    let spans = span(end, every_ns);
    let points = match every_ns > 0.0 {
        true if spans > MOST_SPANS => {
            return Err(ResultsError::input(format!(
                "spans of {every_ns} ns are {spans:.0} in this run: expected at most {MOST_SPANS:.0}"
            )));
        }
        true => over(every_ns, spans),
        false => changes.clone(),
    };
    if max_points == 0 || points.len() <= max_points {
        return Ok(points);
    }
    Ok(over(end / max_points as f64, max_points as f64))
}

/// At most `max_points` points, each the mean of as many neighbours, at the time of the last.
fn thinned(points: Vec<(f64, f64)>, max_points: usize, kind: Kind) -> Vec<(f64, f64)> {
    if max_points == 0 || points.len() <= max_points {
        return points;
    }
    let part = Part::of_last(&points, kind);
    points
        .chunks(points.len().div_ceil(max_points))
        .map(|chunk| (chunk[chunk.len() - 1].0, part.mean(chunk)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_are_known_by_their_number() {
        let names = ["flow12", "flow", "flows", "flow+3", "web"];
        assert_eq!(names.map(flow_of), [Some(12), None, None, None, None]);
    }

    /// Values 1 to 10 at the ends of ten intervals.
    fn points(interval: f64) -> Vec<(f64, f64)> {
        (1..=10).map(|i| (f64::from(i) * interval, f64::from(i))).collect()
    }

    #[test]
    fn a_mean_stands_at_the_end_of_the_intervals_that_it_is_over() {
        let averaged = |points, every| averaged(points, every, 1050.0, Kind::Sample);
        assert_eq!(averaged(points(100.0), 500.0), [(500.0, 3.0), (1000.0, 8.0)]);
        // The last span ends with the run.
        assert_eq!(
            averaged(points(100.0), 300.0),
            [(300.0, 2.0), (600.0, 5.0), (900.0, 8.0), (1050.0, 10.0)]
        );
        assert_eq!(averaged(points(100.0), 1e9), [(1050.0, 5.5)]);
        // Three times 12.3 is more than 36.9 in floating point.
        assert_eq!(
            averaged(points(12.3), 36.9).iter().map(|p| p.1).collect::<Vec<_>>(),
            [2.0, 5.0, 8.0, 10.0]
        );
        assert_eq!(averaged(vec![(0.0, 7.0)], 100.0), [(0.0, 7.0)]);
        for shorter in [100.0, 30.0, 1e-300] {
            assert_eq!(averaged(points(100.0), shorter), points(100.0));
        }
    }

    #[test]
    fn a_time_that_is_no_length_is_refused() {
        for every in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(read(Path::new("."), "drops", every, 0).is_err(), "{every}");
        }
    }

    #[test]
    fn means_of_counts_are_per_whole_interval() {
        // 1 to 10 in 100 ns each, and 3 in the last 50 ns.
        let mut points = points(100.0);
        points.push((1050.0, 3.0));
        let spans = |every| averaged(points.clone(), every, 1050.0, Kind::Count);
        assert_eq!(thinned(points.clone(), 1, Kind::Count), [(1050.0, 58.0 / 10.5)]);
        assert_eq!(spans(1e9), [(1050.0, 58.0 / 10.5)]);
        assert_eq!(spans(500.0), [(500.0, 3.0), (1000.0, 8.0), (1050.0, 3.0)]);
        assert_eq!(spans(600.0), [(600.0, 3.5), (1050.0, 37.0 / 4.5)]);
        for counted in ["drops", "ecn_marks", "pauses", "drops_buffer", "trimmed", "cache_misses"] {
            assert!(kind_of(counted) == Kind::Count, "{counted}");
            // Spans of less than an interval: the counts stay as they are, also where the last one is shorter.
            let counts = vec![(50.0, 1.0), (100.0, 2.0), (150.0, 3.0), (190.0, 4.0)];
            assert_eq!(averaged(counts.clone(), 45.0, 190.0, Kind::Count), counts);
        }
        assert!(kind_of("saturated_share") == Kind::Sample && kind_of("rate_top_bps") == Kind::Sample);
    }

    #[test]
    fn points_are_thinned_to_means_of_neighbours() {
        let points = points(100.0);
        assert_eq!(
            thinned(points.clone(), 4, Kind::Mean),
            [(300.0, 2.0), (600.0, 5.0), (900.0, 8.0), (1000.0, 10.0)]
        );
        assert_eq!(thinned(points.clone(), 0, Kind::Mean), points);
    }

    #[test]
    fn means_are_over_time_where_the_last_interval_is_shorter() {
        // 1 to 10 for 100 ns each, and 30 for the last 50 ns.
        let mut points = points(100.0);
        points.push((1050.0, 30.0));
        assert_eq!(thinned(points.clone(), 1, Kind::Mean), [(1050.0, (55.0 + 15.0) / 10.5)]);
        assert_eq!(thinned(points.clone(), 1, Kind::Sample), [(1050.0, 85.0 / 11.0)]);
        assert_eq!(intervals(points.clone(), 500.0), [(500.0, 3.0), (1000.0, 8.0), (1050.0, 30.0)]);
        assert_eq!(intervals(points.clone(), 700.0)[1], (1050.0, (27.0 + 15.0) / 3.5));
        assert_eq!(intervals(points.clone(), 0.0), points);
        assert_eq!(thinned(vec![(100.0, 1.0), (150.0, 4.0)], 1, Kind::Mean), [(150.0, 2.0)]);
    }

    #[test]
    fn an_interval_counts_in_each_span_by_its_part_in_it() {
        // 1 for 40 ns, 2 for 40 ns, 3 for 40 ns.
        let points = vec![(40.0, 1.0), (80.0, 2.0), (120.0, 3.0)];
        let close = |found: Vec<(f64, f64)>, expected: &[(f64, f64)]| {
            assert_eq!(found.len(), expected.len());
            let near = |(a, b): (&(f64, f64), &(f64, f64))| a.0 == b.0 && (a.1 - b.1).abs() < 1e-12;
            assert!(found.iter().zip(expected).all(near), "{found:?}");
        };
        close(intervals(points.clone(), 100.0), &[(100.0, (40.0 + 80.0 + 60.0) / 100.0), (120.0, 3.0)]);
        close(intervals(points.clone(), 60.0), &[(60.0, 80.0 / 60.0), (120.0, 160.0 / 60.0)]);
        // Nothing is known of shorter spans than the intervals.
        assert_eq!(intervals(points.clone(), 30.0), points);
        assert_eq!(intervals(points.clone(), 40.0), points);
    }

    #[test]
    fn a_state_lasts_until_the_next_change_and_until_the_end_of_the_run() {
        // Paused from 10 to 40 ns, and from 90 ns on; the run ends at 150 ns.
        let changes = vec![(10.0, 1.0), (40.0, 0.0), (90.0, 1.0)];
        let read = |every, points| states(changes.clone(), every, points, 150.0).unwrap();
        assert_eq!(read(0.0, 0), changes);
        assert_eq!(read(50.0, 0), [(50.0, 0.6), (100.0, 0.2), (150.0, 1.0)]);
        assert_eq!(read(100.0, 0), [(100.0, 0.4), (150.0, 1.0)]);
        assert_eq!(read(0.0, 1), [(150.0, 0.6)]);
        assert_eq!(read(10.0, 2), [(75.0, 0.4), (150.0, 0.8)]);
        assert!(states(changes.clone(), 1e-6, 0, 150.0).is_err());
    }
}
