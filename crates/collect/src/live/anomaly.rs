//! Steps in the delays and queues of hops.
//!
//! At the end of each interval, a hop's level is the 99th percentile of the interval's values (the median if
//! there are fewer than 1 000). Its usual level is the median of its last 30 intervals, the usual deviation
//! their median absolute deviation m, at least an eighth of the level. An event begins when the level was
//! above usual + 4 m in two intervals in a row, and ends when it is below usual + 2 m; what lies between
//! does not count as usual. After 120 intervals the new level is the usual one.
//!
//! Source: Leys et al., "Detecting outliers: Do not use standard deviation around the mean, use absolute
//! deviation around the median", Journal of Experimental Social Psychology 49, 2013. The thresholds are ours.

use std::collections::{BTreeMap, VecDeque};

use crate::histogram::Histogram;
use crate::intake::{HopKey, HopState};

const HISTORY: usize = 30;
/// Intervals that have to be known before any is judged.
const MIN_HISTORY: usize = 3;
const MIN_SAMPLES: u64 = 20;
const SAMPLES_OF_P99: u64 = 1_000;
const BEGIN: f64 = 4.0;
const END: f64 = 2.0;
const INTERVALS: u32 = 2;
const MAX_OPEN: u32 = 120;
/// The minimum deviation, as a share of the level: buckets of histograms are 1/32 wide.
const MIN_DEVIATION: f64 = 1.0 / 8.0;

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quantity {
    Latency,
    Queue,
}

/// The level of a hop left or returned to its usual one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Anomaly {
    pub hop: HopKey,
    pub quantity: Quantity,
    pub began: bool,
    pub usual: u64,
    pub level: u64,
}

#[derive(Debug, Default)]
struct Watched {
    history: VecDeque<u64>,
    above: u32,
    /// Intervals since the event began; 0: none.
    open: u32,
}

/// Watches hops, interval by interval.
#[derive(Debug, Default)]
pub struct Watch {
    before: BTreeMap<HopKey, HopState>,
    watched: BTreeMap<(HopKey, Quantity), Watched>,
}

impl Watch {
    /// Begins when these measurements are known already.
    pub fn from(hops: BTreeMap<HopKey, HopState>) -> Watch {
        Watch { before: hops, watched: BTreeMap::new() }
    }

    /// Takes the measurements of hops so far; returns those of the interval alone, and what began or ended.
    pub fn take(&mut self, hops: &BTreeMap<HopKey, HopState>) -> (BTreeMap<HopKey, HopState>, Vec<Anomaly>) {
        let (mut interval, mut found) = (BTreeMap::new(), Vec::new());
        let none = HopState::default();
        for (&hop, state) in hops {
            let before = self.before.get(&hop).unwrap_or(&none);
            let recent = HopState {
                latency: state.latency.since(&before.latency),
                queue: state.queue.since(&before.queue),
                drops: state.drops - before.drops,
            };
            for (quantity, values) in [(Quantity::Latency, &recent.latency), (Quantity::Queue, &recent.queue)]
            {
                let Some(level) = level(values) else { continue };
                let watched = self.watched.entry((hop, quantity)).or_default();
                let change = watched.take(level);
                found.extend(change.map(|(began, usual)| Anomaly { hop, quantity, began, usual, level }));
            }
            interval.insert(hop, recent);
        }
        self.before.clone_from(hops);
        (interval, found)
    }
}

/// The level of an interval; None of too few values.
fn level(values: &Histogram) -> Option<u64> {
    let rank = if values.count >= SAMPLES_OF_P99 { 0.99 } else { 0.5 };
    values.quantile(rank).filter(|_| values.count >= MIN_SAMPLES)
}

impl Watched {
    /// Whether an event began or ended with this level, and the usual level.
    fn take(&mut self, level: u64) -> Option<(bool, u64)> {
        let usual = median(self.history.iter().copied());
        let deviation = median(self.history.iter().map(|&value| value.abs_diff(usual)));
        let deviation = (deviation as f64).max(usual as f64 * MIN_DEVIATION).max(1.0);
        let excess = (level as f64 - usual as f64) / deviation;
        let known = self.history.len() >= MIN_HISTORY;
        if self.open > 0 {
            self.open += 1;
            if excess < END {
                self.open = 0;
                self.above = 0;
                self.remember(level);
                return Some((false, usual));
            }
            if self.open > MAX_OPEN {
                *self = Watched::default();
                self.remember(level);
                return Some((false, usual));
            }
            return None;
        }
        if known && excess > BEGIN {
            self.above += 1;
            if self.above >= INTERVALS {
                self.open = 1;
                return Some((true, usual));
            }
            return None;
        }
        self.above = 0;
        self.remember(level);
        None
    }

    fn remember(&mut self, level: u64) {
        if self.history.len() >= HISTORY {
            self.history.pop_front();
        }
        self.history.push_back(level);
    }
}

fn median(values: impl Iterator<Item = u64>) -> u64 {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An exponential delay of mean 20 us over 10 us, drawn by a generator of fixed seed.
    fn delay(state: &mut u64) -> u64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        let uniform = ((*state >> 11) as f64 + 1.0) / (1u64 << 53) as f64;
        10_000 + (-uniform.ln() * 20_000.0) as u64
    }

    #[test]
    fn a_step_of_a_millisecond_at_one_of_five_hops_is_named_in_two_intervals_and_nothing_else_is() {
        for samples in [30, 500, 5_000] {
            let (mut watch, mut random) = (Watch::default(), 0x9e37_79b9_7f4a_7c15);
            let mut hops: BTreeMap<HopKey, HopState> = BTreeMap::new();
            let mut found = Vec::new();
            // 10 minutes of intervals of 5 s, then the step.
            for interval in 0..160 {
                for node in 1..=5 {
                    let state = hops.entry(HopKey::Node(node)).or_default();
                    for _ in 0..samples {
                        let step = if node == 3 && interval >= 120 { 1_000_000 } else { 0 };
                        state.latency.add(delay(&mut random) + step);
                        state.queue.add(0);
                    }
                }
                found.extend(watch.take(&hops).1.into_iter().map(|anomaly| (interval, anomaly)));
            }
            let [(121, anomaly)] = found[..] else { panic!("{samples}: {found:?}") };
            assert!(anomaly.began && anomaly.hop == HopKey::Node(3));
            assert!(anomaly.level >= 1_000_000 && anomaly.usual < 150_000);
        }
    }

    #[test]
    fn an_event_ends_when_the_level_returns() {
        let mut watched = Watched::default();
        let levels = [10, 11, 10, 10, 90, 10, 90, 90, 90, 10, 10];
        let found: Vec<_> = (0..)
            .zip(levels)
            .filter_map(|(n, level)| watched.take(level).map(|(began, _)| (n, began)))
            .collect();
        assert_eq!(found, [(7, true), (9, false)]);
    }
}
