//! Rounds of flows at even distances, counted without drawing them.

use super::TrafficSize;
use super::sizes::SizeDistribution;
use crate::units::Time;

/// The rounds that are left of a source: the first at `start`, each `every` after the one before, those from `end` on left
/// out.
#[derive(Debug, Clone, Copy)]
pub struct Rounds {
    pub start: Time,
    pub every: Time,
    pub end: Time,
    pub max: u64,
}

impl Rounds {
    fn count(self) -> u64 {
        let time = self.end.saturating_sub(self.start).0;
        let begin = if self.every.0 == 0 && time > 0 { u64::MAX } else { time.div_ceil(self.every.0.max(1)) };
        begin.min(self.max)
    }

    /// Flows and their expected bytes, `each` in a round, without the `sent` first ones of the first round.
    pub fn flows(self, each: usize, sent: usize, sizes: &SizeDistribution) -> TrafficSize {
        let rounds = self.count();
        let flows = rounds.saturating_mul(each as u64).saturating_sub(sent as u64);
        let since = self.every.0.saturating_mul(rounds.saturating_sub(1));
        TrafficSize {
            flows,
            bytes: (flows as f64 * sizes.mean()) as u64,
            last_start: if flows == 0 { Time::ZERO } else { self.start.saturating_add(Time(since)) },
            complete: true,
            ..TrafficSize::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::parameters::Value;
    use crate::workload::tests::{drain, source, text};

    #[test]
    fn what_is_left_is_known_without_drawing_it() {
        let limited = ("duration", text("9us"));
        let cases = [
            ("permutation", vec![("repeat", Value::Integer(3)), ("every", text("4us"))]),
            ("permutation", vec![("repeat", Value::Integer(9)), ("every", text("4us")), limited.clone()]),
            ("all-to-all", vec![("size", text("5KB"))]),
            ("all-to-all", vec![("stagger", text("3us")), ("start", text("1us")), limited.clone()]),
            ("incast", vec![("senders", Value::Integer(3))]),
            ("incast", vec![("arrivals", text("periodic")), ("every", text("2us")), limited]),
        ];
        for (kind, keys) in cases {
            let mut source = source(kind, 5, &keys);
            loop {
                let (left, rest) = (drain(&*source), source.rest().expect("a number"));
                assert_eq!(rest.flows, left.len() as u64, "{kind} {keys:?}");
                assert_eq!(rest.bytes, left.iter().map(|flow| flow.size).sum::<u64>(), "{kind} {keys:?}");
                assert!(left.last().is_none_or(|last| last.start == rest.last_start), "{kind} {keys:?}");
                if source.next().is_none() {
                    break;
                }
            }
        }
    }
}
