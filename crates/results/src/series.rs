//! series.parquet: what `[measure]` requests over time, one value a row: time_ns, entity, metric, value.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, DictionaryArray, Float64Array, Int32Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use rustc_hash::FxHashMap;
use weftline_sim::measure::{Entity, Sample};

use crate::flow_table::text;
use crate::names::Names;
use crate::{ResultsError, file_digests, parquet_read};

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

/// The number of the flow that an entity's name stands for: `flow12`; none for ports and groups.
pub fn flow_of(entity: &str) -> Option<u32> {
    entity.strip_prefix("flow")?.parse().ok()
}

/// (time in ns, value) of every entity, by name.
pub type Series = BTreeMap<String, Vec<(f64, f64)>>;

/// The series of one metric in the run folder `dir`.
///
/// The time of a value is the end of its interval. With `every_ns` above zero, values are averaged over
/// spans of that length, from a multiple of it (excluded) to the next (included), and stand at the span's end.
/// With `max_points` above zero an entity has at most that many points: neighbours are averaged until it has, and
/// stand at the last one's time. A run that recorded no series returns an empty list.
pub fn read(dir: &Path, metric: &str, every_ns: f64, max_points: usize) -> Result<Series, ResultsError> {
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
    for (name, mut points) in entities.into_iter().zip(points) {
        if points.is_empty() {
            continue;
        }
        if every_ns > 0.0 {
            points = averaged(&points, every_ns);
        }
        all.insert(name, thinned(points, max_points));
    }
    Ok(all)
}

/// Means over the spans that end at multiples of `every_ns`, at these; empty spans left out.
fn averaged(points: &[(f64, f64)], every_ns: f64) -> Vec<(f64, f64)> {
    // The tolerance is for multiples that are not integers.
    let span = |time: f64| (time / every_ns - 1e-9).ceil() as i64;
    points
        .chunk_by(|a, b| span(a.0) == span(b.0))
        .map(|chunk| (span(chunk[0].0) as f64 * every_ns, mean(chunk)))
        .collect()
}

fn mean(points: &[(f64, f64)]) -> f64 {
    points.iter().map(|point| point.1).sum::<f64>() / points.len() as f64
}

/// At most `max_points` points, each the mean of as many neighbours, at the time of the last.
fn thinned(points: Vec<(f64, f64)>, max_points: usize) -> Vec<(f64, f64)> {
    if max_points == 0 || points.len() <= max_points {
        return points;
    }
    points
        .chunks(points.len().div_ceil(max_points))
        .map(|chunk| (chunk[chunk.len() - 1].0, mean(chunk)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_are_known_by_their_number() {
        assert_eq!(["flow12", "flow", "flows", "web"].map(flow_of), [Some(12), None, None, None]);
    }

    /// Values 1 to 10 at the ends of ten intervals.
    fn points(interval: f64) -> Vec<(f64, f64)> {
        (1..=10).map(|i| (f64::from(i) * interval, f64::from(i))).collect()
    }

    #[test]
    fn a_mean_stands_at_the_end_of_the_intervals_that_it_is_over() {
        assert_eq!(averaged(&points(100.0), 500.0), [(500.0, 3.0), (1000.0, 8.0)]);
        assert_eq!(
            averaged(&points(100.0), 300.0),
            [(300.0, 2.0), (600.0, 5.0), (900.0, 8.0), (1200.0, 10.0)]
        );
        // Three times 12.3 is more than 36.9 in floating point.
        assert_eq!(
            averaged(&points(12.3), 36.9).iter().map(|p| p.1).collect::<Vec<_>>(),
            [2.0, 5.0, 8.0, 10.0]
        );
        assert_eq!(averaged(&[(0.0, 7.0)], 100.0), [(0.0, 7.0)]);
    }

    #[test]
    fn points_are_thinned_to_means_of_neighbours() {
        let points = points(100.0);
        assert_eq!(thinned(points.clone(), 4), [(300.0, 2.0), (600.0, 5.0), (900.0, 8.0), (1000.0, 10.0)]);
        assert_eq!(thinned(points.clone(), 0), points);
    }
}
