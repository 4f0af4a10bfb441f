//! How many of a link's largest flows the flow cache misses, on a synthetic heavy-tailed trace.
//!
//! Flows start as a Poisson process, have sizes of a Pareto distribution and a rate of their own, of a lognormal one, at which their
//! packets follow each other evenly. A trial looks at one window of a trace that has been going on for long: which flows have more
//! than the share 1 - slack of the largest one's bytes, by exact counts and by the cache.
//!
//! Source of what is measured: Cebinae (SIGCOMM 2022), flow cache on a CAIDA trace, 10 Gb/s, slack 10 %, 100 trials a point. The trace
//! here is ours: 0.3 million packets and 60 000 new flows a second.

use super::cache::{FlowCache, Slot, own_hash};
use super::read::CacheKind;
use crate::engine::random::RandomStream;
use crate::units::Time;

/// Flows that start in a second.
const STARTS: f64 = 60_000.0;
/// Packets of a flow: Pareto of this index, cut.
const INDEX: f64 = 1.1;
const MAX_PACKETS: f64 = 100_000.0;
/// Packets a second of a flow: median, and the standard deviation of the logarithm.
const PACE: f64 = 200.0;
const SPREAD: f64 = 1.5;
const PACKET_BYTES: u64 = 900;
/// Traffic that has been going on before the window.
const BEFORE: f64 = 3.0;

/// What is tried: a cache, the window between two recomputations, and the slack of top flows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CacheTrial {
    pub kind: CacheKind,
    pub stages: u32,
    pub slots: u32,
    pub window: Time,
    /// A share, in (0, 1).
    pub slack: f64,
}

/// Means over trials.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CacheErrors {
    /// Share of the top flows that the cache does not find.
    pub false_negatives: f64,
    /// Share of all other flows that it takes for top ones.
    pub false_positives: f64,
    /// Flows and packets of a window.
    pub flows: f64,
    pub packets: f64,
}

impl CacheTrial {
    /// Tries so many windows; the same windows for whatever cache.
    pub fn run(&self, trials: u32, seed: u64) -> CacheErrors {
        let mut sum = CacheErrors::default();
        for trial in 0..trials {
            let packets =
                packets(self.window.as_seconds(), &mut RandomStream::new(seed, &format!("window{trial}")));
            let found = self.judge(&packets);
            sum.false_negatives += found.false_negatives;
            sum.false_positives += found.false_positives;
            sum.flows += found.flows;
            sum.packets += found.packets;
        }
        let mean = |sum: f64| sum / f64::from(trials.max(1));
        CacheErrors {
            false_negatives: mean(sum.false_negatives),
            false_positives: mean(sum.false_positives),
            flows: mean(sum.flows),
            packets: mean(sum.packets),
        }
    }

    /// One window, whose packets are named by their flows.
    fn judge(&self, packets: &[u64]) -> CacheErrors {
        let mut exact = FlowCache::new(CacheKind::Exact, 1, 1);
        let mut cache = FlowCache::new(self.kind, self.stages, self.slots);
        for &flow in packets {
            exact.add(flow, PACKET_BYTES, |stage| own_hash(flow, stage));
            cache.add(flow, PACKET_BYTES, |stage| own_hash(flow, stage));
        }
        let (truth, found) = (self.top(exact.counts()), self.top(cache.counts()));
        let flows = exact.counts().count();
        let hits = truth.iter().filter(|flow| found.binary_search(flow).is_ok()).count();
        let share = |part: usize, of: usize| if of == 0 { 0.0 } else { part as f64 / of as f64 };
        CacheErrors {
            false_negatives: share(truth.len() - hits, truth.len()),
            false_positives: share(found.len() - hits, flows - truth.len()),
            flows: flows as f64,
            packets: packets.len() as f64,
        }
    }

    /// Flows with more than `1 - slack` of the largest count, ascending.
    fn top(&self, counts: impl Iterator<Item = Slot> + Clone) -> Vec<u64> {
        let max_bytes = counts.clone().map(|slot| slot.bytes).max().unwrap_or(0) as f64;
        let is_top = |slot: &Slot| slot.bytes as f64 > max_bytes * (1.0 - self.slack);
        let mut top: Vec<u64> = counts.filter(is_top).map(|slot| slot.flow).collect();
        top.sort_unstable();
        top
    }
}

/// The flows of the packets of a window of so many seconds, in order of time.
fn packets(window: f64, random: &mut RandomStream) -> Vec<u64> {
    let mut packets = Vec::new();
    let (mut start, mut flow) = (-BEFORE, 0);
    loop {
        start += random.exponential(1.0 / STARTS);
        if start >= window {
            break;
        }
        flow += 1;
        let size = libm::pow(1.0 - random.uniform(), -1.0 / INDEX).min(MAX_PACKETS).floor();
        let gap = 1.0 / (PACE * libm::exp(SPREAD * normal(random)));
        // Those of its packets that are within the window.
        let mut number = (-start / gap).ceil().max(0.0);
        while number < size && start + number * gap < window {
            packets.push((start + number * gap, flow));
            number += 1.0;
        }
    }
    packets.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    packets.into_iter().map(|(_, flow)| flow).collect()
}

/// Standard normal (Box and Muller).
fn normal(random: &mut RandomStream) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(1.0 - random.uniform()));
    radius * libm::cos(std::f64::consts::TAU * random.uniform())
}

#[cfg(test)]
mod tests;
