//! series.parquet: what `[measure]` requests over time, one value a row: time_ns, entity, metric, value.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use arrow_array::{DictionaryArray, Float64Array, Int32Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
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

/// Distinct strings in the order in which they were first needed.
#[derive(Default)]
struct Dictionary<K> {
    place: HashMap<K, i32>,
    values: Vec<String>,
}

impl<K: std::hash::Hash + Eq> Dictionary<K> {
    fn index(&mut self, key: K, name: impl FnOnce() -> String) -> i32 {
        *self.place.entry(key).or_insert_with(|| {
            self.values.push(name());
            self.values.len() as i32 - 1
        })
    }
    fn values(&self) -> Arc<StringArray> {
        Arc::new(StringArray::from_iter_values(&self.values))
    }
}

/// Turns samples into rows.
pub(crate) struct SeriesRows {
    schema: SchemaRef,
    names: Arc<Names>,
}

impl SeriesRows {
    pub fn new(names: Arc<Names>) -> SeriesRows {
        SeriesRows { schema: schema(), names }
    }

    pub fn batch(&self, samples: &[Sample]) -> RecordBatch {
        let mut entities = Dictionary::default();
        let mut metrics = Dictionary::default();
        let entity: Int32Array = samples
            .iter()
            .map(|s| Some(entities.index(key(s.entity), || self.names.entity(s.entity))))
            .collect();
        let metric: Int32Array =
            samples.iter().map(|s| Some(metrics.index(s.metric, || s.metric.to_string()))).collect();
        RecordBatch::try_new(
            self.schema.clone(),
            vec![
                Arc::new(Float64Array::from_iter_values(samples.iter().map(|s| s.time.as_ns()))),
                Arc::new(DictionaryArray::new(entity, entities.values())),
                Arc::new(DictionaryArray::new(metric, metrics.values())),
                Arc::new(Float64Array::from_iter_values(samples.iter().map(|s| s.value))),
            ],
        )
        .expect("columns are made in the order and of the types of the schema, each from all samples")
    }
}

fn key(entity: Entity) -> (u8, u32, u32) {
    match entity {
        Entity::Port(node, port) => (0, node, port),
        Entity::Flow(flow) => (1, flow, 0),
        Entity::Group(group) => (2, u32::from(group), 0),
        Entity::Run => (3, 0, 0),
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
/// With `every_ns` above zero, values are averaged over spans of that length and stand at the span's start. With
/// `max_points` above zero an entity has at most that many points: neighbours are averaged until it has. A run
/// that recorded no series returns an empty list.
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

/// Means over spans of `every_ns`, empty spans left out.
fn averaged(points: &[(f64, f64)], every_ns: f64) -> Vec<(f64, f64)> {
    let span = |time: f64| (time / every_ns).floor();
    points
        .chunk_by(|a, b| span(a.0) == span(b.0))
        .map(|chunk| {
            (span(chunk[0].0) * every_ns, chunk.iter().map(|p| p.1).sum::<f64>() / chunk.len() as f64)
        })
        .collect()
}

/// At most `max_points` points, each the mean of as many neighbours, at the time of the first.
fn thinned(points: Vec<(f64, f64)>, max_points: usize) -> Vec<(f64, f64)> {
    if max_points == 0 || points.len() <= max_points {
        return points;
    }
    points
        .chunks(points.len().div_ceil(max_points))
        .map(|chunk| (chunk[0].0, chunk.iter().map(|p| p.1).sum::<f64>() / chunk.len() as f64))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_are_known_by_their_number() {
        assert_eq!(["flow12", "flow", "flows", "web"].map(flow_of), [Some(12), None, None, None]);
    }

    #[test]
    fn points_are_averaged_over_spans_and_then_thinned() {
        let points: Vec<(f64, f64)> = (0..10).map(|i| (f64::from(i) * 100.0, f64::from(i))).collect();
        assert_eq!(averaged(&points, 500.0), [(0.0, 2.0), (500.0, 7.0)]);
        assert_eq!(thinned(points.clone(), 4), [(0.0, 1.0), (300.0, 4.0), (600.0, 7.0), (900.0, 9.0)]);
        assert_eq!(thinned(points.clone(), 0), points);
    }
}
