//! Deadlines of generated flows: exponential, and never sooner than a multiple of the flow's ideal completion time.
//!
//! Source: Alizadeh et al., "pFabric", SIGCOMM 2013, §5.4.3, and Gao et al., "pHost", CoNEXT 2015: max(1.25 ideal, Exp(1 ms))
//! after the start.

use super::{FlowSource, FlowSpec, TrafficSize};
use crate::engine::random::RandomStream;
use crate::parameters::Parameters;
use crate::units::Time;

/// Keys of the deadlines of a workload.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DeadlineSpec {
    /// Mean time from a flow's start to its deadline; none: no deadlines.
    pub mean: Option<Time>,
    /// In ideal completion times of the flow.
    pub least: f64,
}

impl DeadlineSpec {
    pub fn read(p: &mut Parameters) -> DeadlineSpec {
        let mean = p.time_or_auto(
            "deadline_mean",
            "Mean of the exponential time from start to deadline; auto: none.",
        );
        let help = "Least time from start to deadline, in ideal completion times of the flow.";
        let least = p.number("deadline_least", 1.25, (0.0, 1e6), help);
        if mean == Some(Time::ZERO) {
            p.complain("deadline_mean", "must be more than zero".into());
        }
        DeadlineSpec { mean, least }
    }

    /// `source`, with deadlines drawn from `stream` if there are any.
    pub fn apply(self, source: Box<dyn FlowSource>, stream: RandomStream) -> Box<dyn FlowSource> {
        match self.mean {
            None => source,
            Some(mean) => Box::new(WithDeadlines { source, stream, mean, least: self.least }),
        }
    }
}

struct WithDeadlines {
    source: Box<dyn FlowSource>,
    stream: RandomStream,
    mean: Time,
    least: f64,
}

impl FlowSource for WithDeadlines {
    fn next(&mut self) -> Option<FlowSpec> {
        let flow = self.source.next()?;
        // The cast cuts to a whole picosecond and stops at the largest number.
        let patience = Time(self.stream.exponential(self.mean.0 as f64) as u64);
        Some(FlowSpec { deadline: Some(flow.start.saturating_add(patience)), ..flow })
    }

    fn clone_box(&self) -> Box<dyn FlowSource> {
        let WithDeadlines { stream, mean, least, .. } = self;
        let (source, stream) = (self.source.clone_box(), stream.clone());
        Box::new(WithDeadlines { source, stream, mean: *mean, least: *least })
    }

    fn dependencies(&self) -> Vec<(u32, u32)> {
        self.source.dependencies()
    }

    fn jobs(&self) -> Vec<(u32, u32)> {
        self.source.jobs()
    }

    fn rest(&self) -> Option<TrafficSize> {
        self.source.rest()
    }

    fn least_deadline(&self) -> f64 {
        self.least
    }
}

#[cfg(test)]
mod tests {
    use crate::parameters::Value;
    use crate::workload::testing::{complaints, drain, source, text};

    #[test]
    fn deadlines_are_exponential_and_leave_the_flows_as_they_are() {
        let plain = [("count", Value::Integer(20_000)), ("size", text("10KB"))];
        let with = [plain.to_vec(), vec![("deadline_mean", text("1ms"))]].concat();
        let (plain, with) = (drain(&*source("poisson", 8, &plain)), drain(&*source("poisson", 8, &with)));
        let patience = |i: usize| with[i].deadline.map_or(0.0, |d| (d - with[i].start).as_ns());
        for (i, flow) in plain.iter().enumerate() {
            assert_eq!((flow.src, flow.dst, flow.size, flow.start), {
                let same = with[i];
                (same.src, same.dst, same.size, same.start)
            });
            assert_eq!(flow.deadline, None);
        }
        let n = with.len();
        let mean = (0..n).map(patience).sum::<f64>() / n as f64;
        // The standard error of the mean of 20 000 draws is 0.7 %.
        assert!((mean / 1e6 - 1.0).abs() < 0.03, "{mean}");
        // Of an exponential distribution 63.2 % lie below its mean.
        let below = (0..n).filter(|&i| patience(i) < 1e6).count() as f64 / n as f64;
        assert!((below - 0.632).abs() < 0.015, "{below}");
        assert_eq!(
            source("poisson", 8, &[("count", Value::Integer(1)), ("deadline_mean", text("1ms"))])
                .least_deadline(),
            1.25
        );
    }

    #[test]
    fn deadlines_that_make_no_sense_are_complained_about() {
        assert_eq!(
            complaints("poisson", &[("deadline_mean", text("0s"))]),
            ["deadline_mean: must be more than zero"]
        );
        let given = complaints("flows", &[("deadline_mean", text("1ms"))]);
        assert!(given.iter().any(|said| said.contains("give each flow its own")), "{given:?}");
    }
}
