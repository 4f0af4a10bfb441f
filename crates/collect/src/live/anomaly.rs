//! Steps in the delays and queues of hops.
//!
//! At the end of each interval, a hop's level is the 99th percentile of the interval's values (the median if
//! there are fewer than 1 000, or if fewer than 3 of the last 30 intervals had 1 000). Its usual level is the
//! median of the same statistic in its last 30 intervals, the usual deviation their median absolute deviation
//! m, at least an eighth of the level. An event begins when the level was above usual + 4 m in two intervals
//! in a row, and ends when the statistic with which it began is below usual + 2 m; what lies between does not
//! count as usual. After 120 intervals the new level is the usual one.
//!
//! Source: Leys et al., "Detecting outliers: Do not use standard deviation around the mean, use absolute
//! deviation around the median", Journal of Experimental Social Psychology 49, 2013. The thresholds are ours.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::histogram::Histogram;
use crate::intake::{HopKey, HopState};

const HISTORY: usize = 30;
/// Intervals that have to be known before any is judged.
const MIN_HISTORY: usize = 3;
const MIN_SAMPLES: u64 = 20;
const SAMPLES_OF_P99: u64 = 1_000;
const BEGIN: f64 = 4.0;
const END: f64 = 2.0;
/// In a row above the usual level, with which an event begins.
pub(super) const INTERVALS: u32 = 2;
const MAX_OPEN: u32 = 120;
/// The minimum deviation, as a share of the level: buckets of histograms are 1/32 wide.
const MIN_DEVIATION: f64 = 1.0 / 8.0;

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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
    /// Of which both levels are.
    pub statistic: Statistic,
    pub usual: u64,
    pub level: u64,
}

/// By which number an interval is judged. An interval is compared with the same statistic of others only: a
/// hop whose traffic grows has a 99th percentile from some interval on, which is not a rise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Statistic {
    Median,
    P99,
}

impl Statistic {
    pub const fn name(self) -> &'static str {
        match self {
            Statistic::Median => "median",
            Statistic::P99 => "p99",
        }
    }
}

/// The statistics of an interval.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Levels {
    median: u64,
    /// None of too few values.
    p99: Option<u64>,
}

/// What an interval showed: whether an event began or ended there, and by which numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Step {
    began: bool,
    statistic: Statistic,
    usual: u64,
    level: u64,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Watched {
    history: VecDeque<Levels>,
    /// By which the open event began.
    judged_by: Option<Statistic>,
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
    /// Continues from the measurements that are known already, and from [`Watch::saved`] (null: nothing was
    /// saved). Error: it is something else.
    pub fn from(hops: BTreeMap<HopKey, HopState>, saved: &Value) -> Result<Watch, String> {
        let watched: Option<Vec<_>> = Deserialize::deserialize(saved)
            .map_err(|error| format!("what was watched of hops: {error}; remove it to start again"))?;
        Ok(Watch { before: hops, watched: watched.unwrap_or_default().into_iter().collect() })
    }

    /// What later intervals are compared with, and which events are open.
    pub fn saved(&self) -> Value {
        json!(self.watched.iter().collect::<Vec<_>>())
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
                queue_minima: state.queue_minima - before.queue_minima,
                latency_minima: state.latency_minima - before.latency_minima,
                drops: state.drops - before.drops,
            };
            for (quantity, values) in [(Quantity::Latency, &recent.latency), (Quantity::Queue, &recent.queue)]
            {
                let Some(levels) = Levels::of(values) else { continue };
                let watched = self.watched.entry((hop, quantity)).or_default();
                let step = watched.take(levels);
                found.extend(step.map(|Step { began, statistic, usual, level }| Anomaly {
                    hop,
                    quantity,
                    began,
                    statistic,
                    usual,
                    level,
                }));
            }
            interval.insert(hop, recent);
        }
        self.before.clone_from(hops);
        (interval, found)
    }
}

impl Levels {
    /// None of too few values.
    fn of(values: &Histogram) -> Option<Levels> {
        let median = values.quantile(0.5).filter(|_| values.count >= MIN_SAMPLES)?;
        let p99 = values.quantile(0.99).filter(|_| values.count >= SAMPLES_OF_P99);
        Some(Levels { median, p99 })
    }

    fn get(&self, statistic: Statistic) -> Option<u64> {
        match statistic {
            Statistic::Median => Some(self.median),
            Statistic::P99 => self.p99,
        }
    }
}

impl Watched {
    /// Whether an event began or ended with this interval.
    fn take(&mut self, levels: Levels) -> Option<Step> {
        let statistic = self.judged_by.unwrap_or_else(|| self.statistic(&levels));
        let history: Vec<u64> = self.history.iter().filter_map(|levels| levels.get(statistic)).collect();
        let usual = median(history.iter().copied());
        let deviation = median(history.iter().map(|&value| value.abs_diff(usual)));
        let deviation = (deviation as f64).max(usual as f64 * MIN_DEVIATION).max(1.0);
        let level = levels.get(statistic);
        let excess = level.map(|level| (level as f64 - usual as f64) / deviation);
        let step = |began| Step { began, statistic, usual, level: level.unwrap_or(levels.median) };
        if self.open > 0 {
            self.open += 1;
            // An interval without the statistic does not end the event.
            if excess.is_some_and(|excess| excess < END) {
                (self.open, self.above, self.judged_by) = (0, 0, None);
                self.remember(levels);
                return Some(step(false));
            }
            if self.open > MAX_OPEN {
                *self = Watched::default();
                self.remember(levels);
                return Some(step(false));
            }
            return None;
        }
        if history.len() >= MIN_HISTORY && excess.is_some_and(|excess| excess > BEGIN) {
            self.above += 1;
            if self.above >= INTERVALS {
                (self.open, self.judged_by) = (1, Some(statistic));
                return Some(step(true));
            }
            return None;
        }
        self.above = 0;
        self.remember(levels);
        None
    }

    /// By what an interval is judged while no event is open.
    fn statistic(&self, levels: &Levels) -> Statistic {
        let known = self.history.iter().filter(|levels| levels.p99.is_some()).count();
        if levels.p99.is_some() && known >= MIN_HISTORY { Statistic::P99 } else { Statistic::Median }
    }

    fn remember(&mut self, levels: Levels) {
        if self.history.len() >= HISTORY {
            self.history.pop_front();
        }
        self.history.push_back(levels);
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
            .filter_map(|(n, median)| watched.take(Levels { median, p99: None }).map(|step| (n, step.began)))
            .collect();
        assert_eq!(found, [(7, true), (9, false)]);
    }

    #[test]
    fn an_event_that_is_open_returns_after_a_restart() {
        let mut hops: BTreeMap<HopKey, HopState> = BTreeMap::new();
        let mut watch = Watch::default();
        let mut found = Vec::new();
        for (interval, latency) in [10, 10, 11, 10, 90, 90, 90, 10].into_iter().enumerate() {
            let latencies = &mut hops.entry(HopKey::Node(3)).or_default().latency;
            for _ in 0..100 {
                latencies.add(latency);
            }
            found.extend(
                watch.take(&hops).1.into_iter().map(|anomaly| (interval, anomaly.began, anomaly.usual)),
            );
            // Killed after each interval.
            let saved = serde_json::from_str(&watch.saved().to_string()).unwrap();
            watch = Watch::from(hops.clone(), &saved).unwrap();
        }
        assert_eq!(found, [(5, true, 10), (7, false, 10)]);
        // Checkpoints of earlier versions have nothing of it.
        assert!(Watch::from(hops.clone(), &Value::Null).unwrap().watched.is_empty());
        assert!(Watch::from(hops, &json!([1])).unwrap_err().contains("watched"));
    }

    /// The events of a hop that has this number of values in each interval, by interval, with a delay on top.
    fn events(intervals: &[(u64, u64)]) -> Vec<(usize, bool, Statistic)> {
        let (mut watch, mut random) = (Watch::default(), 0x9e37_79b9_7f4a_7c15);
        let mut hops: BTreeMap<HopKey, HopState> = BTreeMap::new();
        let mut found = Vec::new();
        for (interval, &(samples, step)) in intervals.iter().enumerate() {
            let state = hops.entry(HopKey::Node(3)).or_default();
            for _ in 0..samples {
                state.latency.add(delay(&mut random) + step);
            }
            let anomalies = watch.take(&hops).1;
            found.extend(anomalies.iter().map(|anomaly| (interval, anomaly.began, anomaly.statistic)));
        }
        found
    }

    #[test]
    fn traffic_that_grows_or_shrinks_is_no_rise() {
        let of = |samples, intervals| vec![(samples, 0); intervals];
        assert_eq!(events(&[of(800, 8), of(1_400, 5), of(800, 8), of(1_400, 40), of(30, 40)].concat()), []);
        // An occasional busy interval has no others to be compared with.
        let busy: Vec<_> = (0..100).map(|n| (if n % 13 == 12 { 1_400 } else { 800 }, 0)).collect();
        assert_eq!(events(&busy), []);
    }

    #[test]
    fn a_step_is_seen_although_the_traffic_shrinks_at_the_same_time() {
        // 60 us lie below the 99th percentile that was usual before, and above the median.
        let found = events(&[vec![(1_400, 0); 10], vec![(800, 60_000); 3], vec![(1_400, 0); 3]].concat());
        assert_eq!(found, [(11, true, Statistic::Median), (13, false, Statistic::Median)]);
        let found = events(&[vec![(1_400, 0); 10], vec![(1_400, 90_000); 3], vec![(800, 0); 3]].concat());
        assert_eq!(found[0], (11, true, Statistic::P99));
    }
}
