//! Deadlines of generated flows: exponential, but at least a multiple of the flow's ideal completion time.
//!
//! Source: Alizadeh et al., "pFabric", SIGCOMM 2013, §5.4.3, and Gao et al., "pHost", CoNEXT 2015: max(1.25
//! ideal, Exp(1 ms)) after the start.

use super::{AskedLoad, Ends, FlowSource, FlowSpec, Glance, JobShape, TrafficSize};
use crate::engine::random::RandomStream;
use crate::parameters::Parameters;
use crate::units::Time;

/// Minimum time to a deadline, in ideal completion times.
const LEAST: f64 = 1.25;

/// Keys of the deadlines of a workload.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DeadlineSpec {
    /// Mean time from a flow's start to its deadline; none: no deadlines.
    pub mean: Option<Time>,
    /// In ideal completion times of the flow.
    pub min: f64,
}

impl DeadlineSpec {
    pub fn read(p: &mut Parameters) -> DeadlineSpec {
        let mean = p.time_or_auto(
            "deadline_mean",
            "Mean of the exponential time from start to deadline; auto: no deadlines.",
        );
        let help = "Minimum time from start to deadline, in ideal completion times of the flow.";
        let min = p.number("deadline_least", LEAST, (0.0, 1e6), help);
        if mean.is_none() && min != LEAST {
            p.without_effect("deadline_least", || "has no effect without deadline_mean".into());
        }
        if mean == Some(Time::ZERO) {
            p.complain("deadline_mean", "must be greater than 0".into());
        }
        DeadlineSpec { mean, min }
    }

    /// Returns `source`, with deadlines drawn from `stream` if they are configured.
    pub fn apply(self, source: Box<dyn FlowSource>, stream: RandomStream) -> Box<dyn FlowSource> {
        match self.mean {
            None => source,
            Some(mean) => Box::new(WithDeadlines { source, stream, mean, min: self.min }),
        }
    }
}

struct WithDeadlines {
    source: Box<dyn FlowSource>,
    stream: RandomStream,
    mean: Time,
    min: f64,
}

impl FlowSource for WithDeadlines {
    fn next(&mut self) -> Option<FlowSpec> {
        let flow = self.source.next()?;
        // The cast truncates to a whole picosecond and saturates.
        let patience = Time(self.stream.exponential(self.mean.0 as f64) as u64);
        Some(FlowSpec { deadline: Some(flow.start.saturating_add(patience)), ..flow })
    }

    fn clone_box(&self) -> Box<dyn FlowSource> {
        let WithDeadlines { stream, mean, min, .. } = self;
        let (source, stream) = (self.source.clone_box(), stream.clone());
        Box::new(WithDeadlines { source, stream, mean: *mean, min: *min })
    }

    fn dependencies(&self) -> Vec<(u32, u32)> {
        self.source.dependencies()
    }

    fn jobs(&self) -> Vec<(u32, u32)> {
        self.source.jobs()
    }

    fn job_shape(&self) -> JobShape {
        self.source.job_shape()
    }

    fn rest(&self) -> Option<TrafficSize> {
        self.source.rest()
    }

    /// The one of its source: an estimate does not use deadlines.
    fn glance(&self) -> Option<Glance> {
        self.source.glance()
    }

    fn asked(&self) -> Option<AskedLoad> {
        self.source.asked()
    }

    fn mean_size(&self, flow: &FlowSpec) -> Option<f64> {
        self.source.mean_size(flow)
    }

    fn period(&self) -> Option<Time> {
        self.source.period()
    }

    fn ends(&self) -> Ends {
        self.source.ends()
    }

    fn memory_bytes(&self) -> u64 {
        self.source.memory_bytes()
    }

    fn min_deadline(&self) -> f64 {
        self.min
    }
}

#[cfg(test)]
mod tests;
