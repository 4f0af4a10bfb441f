//! What a plan will give: packets until a path is known, ranks and values of quantiles, errors per packet.
//!
//! *Paths* are decoded in a model of the collector: every packet belongs to a layer, its writers are drawn
//! with the code's probabilities, an equation with one unknown hop removes each wrong value of that hop with
//! probability 1 - 2^-b, known hops are peeled off the equations that wait. With hashes that mix well this is
//! the collector without the hashing; it knows the list of ids, but not the topology. Seeded, so the same
//! plan gives the same numbers.
//!
//! *Quantiles*: n packets of a flow give each of k hops z = n f (1 - (1 - 1/k)^c) samples (f the share that
//! serves the query, c its copies: a hop that wrote several copies of a packet counts once). The rank of the
//! phi-quantile of z independent samples has a standard deviation of about sqrt(phi (1 - phi) / z); beyond k
//! samples the sketch adds its own error, the approximation its epsilon of the value. Ranks become values
//! only under a law of the values: here lognormal with a given sigma. Samples of one flow are correlated in
//! time; then z counts for less, and by how much is not known beforehand.
//!
//! Source: Ben Basat et al., "PINT", SIGCOMM 2020, §4.1, Theorem 1 and appendix A.1 (samples a hop, rank
//! error), §4.2 (decoding); the normal approximation of an order statistic is textbook (David and Nagaraja,
//! "Order Statistics", §10.2), and so is the beta law of its rank.

use crate::code::{Code, Selection};
use crate::hash::{GOLDEN, mix};
use crate::sketch::kll;

/// Sigma of the lognormal law by which ranks are turned into values.
pub const LOGNORMAL_SIGMA: f64 = 1.2;
/// Packets after which one trial gives up.
const MAX_PACKETS: u64 = 4_000_000;
/// Digests after which one trial gives up.
const MAX_DIGESTS: u64 = 100_000;

/// How a path is coded, for [`path_packets`].
#[derive(Debug, Clone, Copy)]
pub struct PathModel {
    pub code: Code,
    /// Bits of one copy, and copies.
    pub bits: u32,
    pub copies: u32,
    /// Values that a hop may have, for hashes; at least 1.
    pub ids: u32,
    /// Pieces of a value, for fragments; 1 for hashes.
    pub fragments: u32,
    /// A piece or value is written as it is: one equation settles it.
    pub raw: bool,
    /// Share of the flow's packets that serve the query, above 0.
    pub frequency: f64,
}

/// Packets of a flow until all hops of its path are known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Packets {
    pub mean: f64,
    pub median: u64,
    /// 99th percentile; of few trials, about the largest.
    pub p99: u64,
    /// Trials that were given up, counted at their last packet: then the numbers are too small.
    pub unfinished: u32,
}

/// Decodes `trials` (at least 1) random flows of `hops` hops.
pub fn path_packets(model: &PathModel, hops: u32, trials: u32, seed: u64) -> Packets {
    let mut draws = Draws(mix(seed ^ GOLDEN.wrapping_mul(u64::from(hops) + 1)));
    let mut unfinished = 0;
    let mut counts: Vec<u64> = (0..trials.max(1))
        .map(|_| {
            let (packets, done) = Flow::new(model, hops.max(1)).decode(&mut draws);
            unfinished += u32::from(!done);
            packets
        })
        .collect();
    counts.sort_unstable();
    let last = counts.len() - 1;
    let at = |share: f64| counts[((counts.len() as f64 * share) as usize).min(last)];
    let mean = counts.iter().map(|&count| count as f64).sum::<f64>() / counts.len() as f64;
    Packets { mean, median: at(0.5), p99: at(0.99), unfinished }
}

/// Random numbers of the model: splitmix64.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(GOLDEN);
        mix(self.0)
    }

    /// Below `bound`.
    fn below(&mut self, bound: u32) -> u32 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u32
    }

    /// Within [0, 1).
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / 9_007_199_254_740_992.0
    }
}

/// One flow while it is decoded; piece p of hop h is unknown `p * hops + h`.
struct Flow<'m> {
    model: &'m PathModel,
    hops: u32,
    /// Wrong values that are left, per unknown; 0 is known.
    wrong: Vec<u32>,
    unknown: usize,
    /// Equations that wait: their unknowns.
    waiting: Vec<Vec<u32>>,
}

impl Flow<'_> {
    fn new(model: &PathModel, hops: u32) -> Flow<'_> {
        let places = (hops * model.fragments.max(1)) as usize;
        let wrong = if model.raw { 1 } else { model.ids.saturating_sub(1) };
        let unknown = if wrong == 0 { 0 } else { places };
        Flow { model, hops, wrong: vec![wrong; places], unknown, waiting: Vec::new() }
    }

    /// Packets until nothing is unknown, and whether it came to that.
    fn decode(mut self, draws: &mut Draws) -> (u64, bool) {
        let mut packets = 0;
        for _ in 0..MAX_DIGESTS {
            if self.unknown == 0 {
                return (packets, true);
            }
            packets += gap(self.model.frequency, draws);
            if packets > MAX_PACKETS {
                return (MAX_PACKETS, false);
            }
            for _ in 0..self.model.copies {
                let equation = self.equation(draws);
                self.learn(equation, draws);
            }
        }
        (packets, self.unknown == 0)
    }

    /// Who wrote into a digest: the unknowns among them.
    fn equation(&self, draws: &mut Draws) -> Vec<u32> {
        let piece = draws.below(self.model.fragments.max(1)) * self.hops;
        let unknown = |hop: &u32| self.wrong[(piece + hop) as usize] > 0;
        let place = draws.unit();
        let tau = self.model.code.tau();
        let layers = self.model.code.layers();
        if place < tau || layers.is_empty() {
            let survivor = draws.below(self.hops);
            return Some(survivor).filter(unknown).map(|hop| piece + hop).into_iter().collect();
        }
        let layer = ((place - tau) / (1.0 - tau) * layers.len() as f64) as usize;
        let p = layers.get(layer).copied().map_or(0.0, Selection::probability);
        let acting: Vec<u32> = (0..self.hops).filter(|_| draws.unit() < p).collect();
        acting.into_iter().filter(unknown).map(|hop| piece + hop).collect()
    }

    /// Takes an equation in, and all that it releases.
    fn learn(&mut self, equation: Vec<u32>, draws: &mut Draws) {
        let mut clean = Vec::new();
        match equation.as_slice() {
            [] => {}
            [one] => clean.push(*one),
            _ => self.waiting.push(equation),
        }
        while let Some(place) = clean.pop() {
            let wrong = self.wrong[place as usize];
            if wrong == 0 {
                continue;
            }
            let left = if self.model.raw { 0 } else { survivors(wrong, self.model.bits, draws) };
            self.wrong[place as usize] = left;
            if left > 0 {
                continue;
            }
            self.unknown -= 1;
            for equation in &mut self.waiting {
                let before = equation.len();
                equation.retain(|&other| other != place);
                if equation.len() == 1 && before > 1 {
                    clean.push(equation[0]);
                }
            }
            self.waiting.retain(|equation| equation.len() > 1);
        }
    }
}

/// Packets until the next one that serves the query: geometric.
fn gap(frequency: f64, draws: &mut Draws) -> u64 {
    if frequency >= 1.0 {
        return 1;
    }
    let skipped = libm::log(1.0 - draws.unit()) / libm::log1p(-frequency);
    1 + skipped.min(MAX_PACKETS as f64) as u64
}

/// How many of `wrong` values agree with one equation of `bits` bits.
fn survivors(wrong: u32, bits: u32, draws: &mut Draws) -> u32 {
    let share = libm::exp2(-f64::from(bits));
    if wrong > 2_000 {
        let mean = f64::from(wrong) * share;
        // A large number is as good as its mean; a small one has Poisson's law.
        return if mean > 30.0 { (mean + draws.unit()) as u32 } else { poisson(mean, draws) };
    }
    (0..wrong).map(|_| u32::from(draws.unit() < share)).sum()
}

/// A number of Poisson's law: how many uniform numbers are multiplied until they are below e^-mean.
fn poisson(mean: f64, draws: &mut Draws) -> u32 {
    let (end, mut product, mut count) = (libm::exp(-mean), draws.unit(), 0);
    while product > end {
        product *= draws.unit();
        count += 1;
    }
    count
}

/// What is known about a quantile of one hop after some packets of a flow.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuantileError {
    /// Samples of the hop, on average.
    pub samples: f64,
    /// Standard deviation of the rank from sampling, as a share of all ranks.
    pub rank_deviation: f64,
    /// Rank error that the sketch adds at most (with 99 %); 0 while it keeps all samples.
    pub sketch_rank_error: f64,
    /// Mean relative error of the value if values are lognormal with [`LOGNORMAL_SIGMA`], sampling and
    /// approximation together.
    pub relative_error: f64,
}

/// The error of quantile `phi` (within (0, 1)) from `samples` samples in a sketch of this `k`; `epsilon`:
/// relative error of the approximation.
pub fn quantile_error(phi: f64, samples: f64, k: u32, epsilon: f64) -> QuantileError {
    let z = samples.max(1.0);
    let rank_deviation = libm::sqrt(phi * (1.0 - phi) / z);
    // Up to k samples nothing is thrown away.
    let sketch_rank_error = if z > f64::from(k) { kll::rank_error(k).min(1.0) } else { 0.0 };
    let sketch_deviation = sketch_rank_error / kll::RANK_DEVIATIONS * kll::tail_share(k, phi);
    let from_ranks = lognormal_error(phi, z, sketch_deviation);
    // Rounding to the nearest code errs evenly within +-epsilon: variance epsilon^2 / 3. The mean of |N| is
    // sqrt(2 / pi).
    let rounding = 2.0 / std::f64::consts::PI * epsilon * epsilon / 3.0;
    let relative_error = libm::sqrt(from_ranks * from_ranks + rounding);
    QuantileError { samples, rank_deviation, sketch_rank_error, relative_error }
}

/// Points of the integral below, and how many standard deviations it spans to each side.
const POINTS: u32 = 400;
const SPAN: f64 = 8.0;

/// Mean relative error of the value that is found for the quantile `phi` of `z` samples, if values are
/// lognormal and a sketch adds `sketch_deviation` to its rank.
///
/// The n-th of z samples has a rank of the law Beta(n, z + 1 - n). With the sketch it is taken as the beta
/// law of the same mean and of both variances, so that no rank is beyond the ends. The mean is an integral
/// over the value in standard deviations of the lognormal law's logarithm.
fn lognormal_error(phi: f64, z: f64, sketch_deviation: f64) -> f64 {
    let place = libm::ceil(phi * z).clamp(1.0, libm::floor(z));
    let mean = place / (z + 1.0);
    let spread = mean * (1.0 - mean);
    let variance = (spread / (z + 2.0) + sketch_deviation * sketch_deviation).min(spread / 2.0);
    let weight = spread / variance - 1.0;
    let (below, above) = (mean * weight, (1.0 - mean) * weight);
    let (truth, centre) = (kll::normal_quantile(phi), kll::normal_quantile(mean));
    let density = libm::exp(-centre * centre / 2.0) / libm::sqrt(2.0 * std::f64::consts::PI);
    let width = SPAN * libm::sqrt(variance) / density;
    let upper = |x: f64| 0.5 * libm::erfc(x / std::f64::consts::SQRT_2);
    let log_likelihood =
        |x: f64| (below - 1.0) * libm::log(upper(-x)) + (above - 1.0) * libm::log(upper(x)) - x * x / 2.0;
    let peak = log_likelihood(centre);
    let (mut sum, mut total) = (0.0, 0.0);
    for point in 0..POINTS {
        let x = centre + width * ((2.0 * f64::from(point) + 1.0) / f64::from(POINTS) - 1.0);
        let weight = libm::exp(log_likelihood(x) - peak);
        if weight.is_finite() {
            total += weight;
            sum += weight * libm::expm1(LOGNORMAL_SIGMA * (x - truth)).abs();
        }
    }
    sum / total
}

/// Packets of which each brings a hop a sample with probability `share`, after which the hop's ranks are
/// within `epsilon` except with probability `delta`, whatever the law. Of n samples the probability is at
/// most 2 e^(-2 n epsilon^2) (Hoeffding; the form used in Theorem 1); the number of samples is that of a
/// binomial law.
pub fn packets_for_rank(epsilon: f64, delta: f64, share: f64) -> f64 {
    let by_packet = libm::log1p(share * libm::expm1(-2.0 * epsilon * epsilon));
    libm::log(2.0 / delta) / -by_packet
}

/// The same with the error of a sketch of this `k`, which gets half of `delta` (at most 0.01); None if it
/// alone may be `epsilon`.
pub fn packets_for_rank_in_sketch(epsilon: f64, delta: f64, share: f64, k: u32) -> Option<f64> {
    // The bound is at least 3.5 standard deviations of a rank: exceeded less often than in one of 200
    // sketches.
    let left = epsilon - kll::rank_error(k);
    (left > 0.0).then(|| packets_for_rank(left, delta / 2.0, share))
}

#[cfg(test)]
mod tests;
