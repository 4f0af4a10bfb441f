//! Quantiles of values that packets brought from a network, asked again under other widths, sketches and numbers of samples.
//!
//! A plan with wide fields records the values of hops nearly exactly. Each hop of a flow is then a *stream*: all values that any field brought
//! are the truth, those of the first field are what sampling one hop a packet would have left. An estimate is made of samples that follow each
//! other in the flow, or of as many drawn independently from the truth, and held against the truth's quantile.
//!
//! Source: Ben Basat et al., "PINT", SIGCOMM 2020, §6.2, Fig 9. Consecutive packets of a flow meet similar queues, so they are worth fewer
//! samples than they are; independent ones are what the theory counts in.
//! Differs from the source: truth is the whole flow, of which several fields bring most values; the paper does not define its truth.

use crate::accuracy::Draws;
use crate::encoder::{Encoder, Refused, Task, samples};
use crate::plan::Plan;
use crate::recorded::{Flow, Recorded};
use crate::sketch::kll::{Kll, Real, k_for_room};
use crate::value::{Approximation, Rounding};
use std::collections::BTreeMap;

/// The values of one hop of one flow.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Stream {
    /// All that are known, ascending.
    truth: Vec<f32>,
    /// Those that one field brought, in order.
    sampled: Vec<f32>,
}

impl Stream {
    /// Of values in their order, all of them samples.
    pub fn of(values: &[f64]) -> Stream {
        let sampled: Vec<f32> = values.iter().map(|&value| value as f32).collect();
        Stream { truth: ascending(sampled.clone()), sampled }
    }

    /// The value that a share of the stream does not exceed; None of an empty one.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        at(&self.truth, share)
    }

    /// How many samples one field brought.
    pub fn samples(&self) -> usize {
        self.sampled.len()
    }
}

/// Sorts recorded digests into streams.
#[derive(Debug)]
pub struct Streams {
    encoder: Encoder,
    query: usize,
    values: Approximation,
    hops: BTreeMap<(Flow, u32), Stream>,
}

impl Streams {
    /// Of a query of the plan that samples values of hops; None of another. Error: the plan is not one that switches can run.
    pub fn new(plan: &Plan, query: usize) -> Result<Option<Streams>, Refused> {
        let Some(&Task::Sample(values)) = plan.tasks().get(query) else { return Ok(None) };
        Ok(Some(Streams { encoder: plan.encoder()?, query, values, hops: BTreeMap::new() }))
    }

    /// Takes in a digest; rows of a flow come in the order of its packets.
    pub fn take(&mut self, row: &Recorded) {
        let fields =
            self.encoder.fields(row.packet).iter().filter(|field| usize::from(field.query) == self.query);
        for (field, hop) in samples(fields, row.packet, row.hops) {
            let stream = self.hops.entry((row.flow, hop)).or_default();
            let value = self.values.decode(field.read(row.digest)) as f32;
            stream.truth.push(value);
            if field.copy == 0 {
                stream.sampled.push(value);
            }
        }
    }

    /// The streams with at least this number of samples, by flow and hop.
    pub fn finish(self, min: usize) -> Vec<Stream> {
        let long = self.hops.into_values().filter(|stream| stream.samples() >= min);
        long.map(|stream| Stream { truth: ascending(stream.truth), ..stream }).collect()
    }
}

/// How a quantile is estimated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Samples of the hop.
    pub samples: usize,
    /// How samples are written; None: exactly.
    pub values: Option<Approximation>,
    /// Samples that a KLL sketch has room for; None: all are kept.
    pub room: Option<usize>,
    /// Drawn from the whole stream, each by itself, instead of one after the other.
    pub independent: bool,
}

impl Estimate {
    /// The approximation of the paper's latency experiment: `bits` at this epsilon, to the nearest code; None if there is none such.
    pub fn approximation(bits: u32, epsilon: f64) -> Option<Approximation> {
        Approximation::from_epsilon(epsilon, bits, Rounding::Nearest)
    }

    fn of(&self, stream: &Stream, share: f64, draws: &mut Draws) -> Option<f64> {
        let pool = if self.independent { &stream.truth } else { &stream.sampled };
        let begins = draws.below((pool.len() + 1).saturating_sub(self.samples) as u64) as usize;
        let mut written = Vec::with_capacity(self.samples);
        for n in 0..self.samples {
            let place = if self.independent { draws.below(pool.len() as u64) as usize } else { begins + n };
            let value = *pool.get(place)?;
            written.push(match &self.values {
                Some(values) => values.decode(values.encode(value.round() as u64, 1 << 31)) as f32,
                None => value,
            });
        }
        let Some(room) = self.room else { return at(&ascending(written), share) };
        let mut sketch = Kll::new(k_for_room(room)?, draws.word());
        written.into_iter().for_each(|value| sketch.update(Real::from(f64::from(value))));
        sketch.quantile(share).map(f64::from)
    }
}

/// How far estimates are off: |estimate / truth - 1|.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Errors {
    pub mean: f64,
    /// Of the errors: half of the estimates are off by less.
    pub median: f64,
}

/// Of `trials` estimates, each of a stream drawn from those whose quantile is at least `min`; None if there is none such.
pub fn errors(
    streams: &[Stream],
    share: f64,
    estimate: &Estimate,
    min: f64,
    trials: u32,
    seed: u64,
) -> Option<Errors> {
    let truths: Vec<(&Stream, f64)> = streams
        .iter()
        .filter(|stream| estimate.independent || stream.samples() >= estimate.samples)
        .filter_map(|stream| Some((stream, stream.quantile(share)?)))
        .filter(|&(_, truth)| truth >= min && truth > 0.0)
        .collect();
    let mut draws = Draws::new(seed);
    let mut found = Vec::with_capacity(trials as usize);
    for _ in 0..if truths.is_empty() { 0 } else { trials } {
        let (stream, truth) = truths[draws.below(truths.len() as u64) as usize];
        found.extend(estimate.of(stream, share, &mut draws).map(|estimated| (estimated / truth - 1.0).abs()));
    }
    found.sort_unstable_by(f64::total_cmp);
    let median = *found.get(found.len() / 2)?;
    Some(Errors { mean: found.iter().sum::<f64>() / found.len() as f64, median })
}

/// The smallest value that a share of these, ascending, does not exceed.
fn at(values: &[f32], share: f64) -> Option<f64> {
    let place = libm::ceil(share * values.len() as f64) as usize;
    values.get(place.saturating_sub(1).min(values.len().checked_sub(1)?)).map(|&value| f64::from(value))
}

fn ascending(mut values: Vec<f32>) -> Vec<f32> {
    values.sort_unstable_by(f32::total_cmp);
    values
}

#[cfg(test)]
mod tests;
