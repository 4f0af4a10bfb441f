//! Quantiles of values that packets brought from a network, asked again under other widths, sketches and numbers of samples.
//!
//! A plan with wide fields records the values of hops nearly exactly. Each hop of a flow is then a *stream*: all values that any field brought
//! are the truth, those of the first field are what sampling one hop a packet would have left. An estimate is made of samples that follow each
//! other in the flow, or of as many drawn independently from the truth, and held against the truth's quantile.
//!
//! Source: Ben Basat et al., "PINT", SIGCOMM 2020, §6.2, Fig 9. Consecutive packets of a flow meet similar queues, so they are worth fewer
//! samples than they are; independent ones are what the theory counts in.
//! Differs from the source: truth is the whole flow, of which several fields bring most values; the paper does not say what its truth is.

use crate::accuracy::Draws;
use crate::code::survivor;
use crate::encoder::{Encoder, Refused, Task};
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
        let mut seen = [0u32; crate::encoder::MAX_QUERIES];
        let fields =
            self.encoder.fields(row.packet).iter().filter(|field| usize::from(field.query) == self.query);
        for (copy, field) in fields.enumerate() {
            let hop = survivor(field.key.word(row.packet), row.hops);
            let known = seen[..copy.min(seen.len())].contains(&hop);
            if let Some(place) = seen.get_mut(copy) {
                *place = hop;
            }
            let stream = self.hops.entry((row.flow, hop)).or_default();
            let value = self.values.decode(field.read(row.digest)) as f32;
            // Two fields of a packet that one hop wrote say the same.
            if !known {
                stream.truth.push(value);
            }
            if copy == 0 {
                stream.sampled.push(value);
            }
        }
    }

    /// The streams with at least so many samples, by flow and hop.
    pub fn finish(self, least: usize) -> Vec<Stream> {
        let long = self.hops.into_values().filter(|stream| stream.samples() >= least);
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

/// Of `trials` estimates, each of a stream drawn from those whose quantile is at least `least`; None if there is none such.
pub fn errors(
    streams: &[Stream],
    share: f64,
    estimate: &Estimate,
    least: f64,
    trials: u32,
    seed: u64,
) -> Option<Errors> {
    let truths: Vec<(&Stream, f64)> = streams
        .iter()
        .filter(|stream| estimate.independent || stream.samples() >= estimate.samples)
        .filter_map(|stream| Some((stream, stream.quantile(share)?)))
        .filter(|&(_, truth)| truth >= least && truth > 0.0)
        .collect();
    let mut draws = Draws::new(seed);
    let mut found = Vec::with_capacity(trials as usize);
    for _ in 0..if truths.is_empty() { 0 } else { trials } {
        let (stream, truth) = truths[draws.below(truths.len() as u64) as usize];
        found.extend(estimate.of(stream, share, &mut draws).map(|told| (told / truth - 1.0).abs()));
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
mod tests {
    use super::*;

    fn mean(
        streams: &[Stream],
        share: f64,
        estimate: &Estimate,
        least: f64,
        trials: u32,
        seed: u64,
    ) -> Option<f64> {
        errors(streams, share, estimate, least, trials, seed).map(|errors| errors.mean)
    }

    fn exact(samples: usize, independent: bool) -> Estimate {
        Estimate { samples, values: None, room: None, independent }
    }

    #[test]
    fn all_samples_of_a_stream_tell_its_quantiles() {
        let stream = Stream::of(&[5.0, 1.0, 4.0, 2.0, 3.0]);
        assert_eq!(
            (stream.quantile(0.5), stream.quantile(0.8), stream.quantile(1.0)),
            (Some(3.0), Some(4.0), Some(5.0))
        );
        assert_eq!(mean(std::slice::from_ref(&stream), 0.5, &exact(5, false), 1.0, 10, 1), Some(0.0));
        assert_eq!(
            mean(std::slice::from_ref(&stream), 0.5, &exact(6, false), 1.0, 10, 1),
            None,
            "too few samples"
        );
        assert_eq!(mean(&[stream], 0.5, &exact(5, false), 4.0, 10, 1), None, "the truth is below");
        assert_eq!(Stream::default().quantile(0.5), None);
    }

    /// A stream that climbs from 1 000 to 3 000: a tenth of it in a row says little, as many samples from all over say more.
    #[test]
    fn samples_in_a_row_say_less_than_independent_ones() {
        let stream = Stream::of(&(0..2_000).map(|n| f64::from(1_000 + n)).collect::<Vec<f64>>());
        let error = |independent| {
            mean(std::slice::from_ref(&stream), 0.5, &exact(200, independent), 1.0, 4_000, 3).unwrap()
        };
        // In a row: the middle of the window is uniform over 1 100 to 2 900, so off by 450 of 2 000 on average.
        assert!((error(false) - 0.225).abs() < 0.01, "{}", error(false));
        assert!(error(true) < 0.04, "{}", error(true));
    }

    /// Delays at a 100 Gb/s port of packets of 1 000 B that come in batches, Poisson, at a load: wait and transmission, ns.
    fn port(batch: u64, load: f64, count: usize) -> Vec<f64> {
        let mut draws = Draws::new(batch);
        let (packet, mut backlog, mut delays) = (80.0, 0.0, Vec::with_capacity(count));
        while delays.len() < count {
            let gap =
                -libm::log((draws.word() >> 11) as f64 / (1u64 << 53) as f64 + 1e-17) * batch as f64 * packet
                    / load;
            backlog = f64::max(0.0, backlog - gap);
            for _ in 0..batch {
                backlog += packet;
                delays.push(backlog);
            }
        }
        delays
    }

    /// Eight hops with lognormal delays, their medians an eighth of a code of [`EPSILON`] apart: where a median lies between two codes counts.
    fn lognormal(count: usize) -> Vec<Stream> {
        let step = 1.0 / count as f64;
        let at = |n| crate::sketch::kll::normal_quantile((n as f64 + 0.5) * step);
        let median = |hop: i32| 1_000.0 * libm::pow(1.0 + EPSILON, f64::from(hop) / 4.0);
        let values = |hop| (0..count).map(|n| median(hop) * libm::exp(1.2 * at(n))).collect::<Vec<f64>>();
        (0..8).map(|hop| Stream::of(&values(hop))).collect()
    }

    const EPSILON: f64 = 0.022;

    /// Laws of hop delays like those of the independent check of Fig 9: exact samples of the lognormal one are off by 3.8 %, 8 bits add 0.1.
    #[test]
    fn eight_bits_and_a_thousand_independent_samples_find_the_median_to_within_4_percent() {
        let batches = |size, load| vec![Stream::of(&port(size, load, 100_000))];
        let laws = [
            ("batches of 8 at load 0.5", batches(8, 0.5)),
            ("batches of 32 at load 0.7", batches(32, 0.7)),
            ("lognormal", lognormal(20_000)),
        ];
        for (law, streams) in laws {
            let coded = Estimate { values: Estimate::approximation(8, EPSILON), ..exact(1_000, true) };
            let error = |estimate| mean(&streams, 0.5, &estimate, 1.0, 2_000, 7).unwrap();
            let (many, few) = (error(coded), error(Estimate { samples: 100, ..coded }));
            println!("{law}: {many:.4} of 1 000 samples, {few:.4} of 100");
            assert!(many <= 0.04, "{law}: {many}");
            // Sampling decides: ten times as many samples are worth about the square root of 10.
            assert!((2.0..4.5).contains(&(few / many)), "{law}: {few} against {many}");
        }
    }
}
