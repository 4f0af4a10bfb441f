//! The flows of a scenario, drawn one after another.

use crate::estimate::offered::Left;
use crate::topology::{Path, PathTimes};
use crate::units::Time;
use crate::workload::TrafficSize;
use crate::workload::merge::{Arrival, Merged};

/// The flows in the order of their starts, counted, up to a maximum number. They are drawn some at a time, so
/// that their paths are found together.
pub struct Drawn {
    pub merged: Merged,
    pub left: u64,
    pub size: TrafficSize,
    /// With their paths, the next one last.
    pub upcoming: Vec<(Arrival, Option<Path>)>,
}

impl Drawn {
    /// Flows that are drawn together.
    pub const TOGETHER: u64 = 256;

    pub fn new(merged: Merged, max_flows: u64) -> Drawn {
        Drawn { merged, left: max_flows, size: TrafficSize::default(), upcoming: Vec::new() }
    }

    pub fn peek(&mut self, times: &PathTimes) -> Option<&Arrival> {
        if self.upcoming.is_empty() {
            let together = self.left.min(Self::TOGETHER);
            let mut flows: Vec<Arrival> = self.merged.by_ref().take(together as usize).collect();
            self.left -= together;
            flows.iter().for_each(|arrival| self.size.add(&arrival.spec));
            flows.reverse();
            let paths = times.pairs(flows.iter().map(|arrival| (arrival.spec.src, arrival.spec.dst)));
            self.upcoming.extend(flows.into_iter().zip(paths));
        }
        self.upcoming.last().map(|(arrival, _)| arrival)
    }

    /// Counts all flows, and those of each source that were not announced.
    pub fn count(self, max_flows: u64) -> (TrafficSize, Vec<Left>) {
        let firsts: Vec<(u16, Time)> =
            self.merged.left().into_iter().map(|(source, flow, _)| (source, flow.start)).collect();
        let (size, each) = self.merged.count_each(self.size, max_flows);
        let of = |own: &TrafficSize| Left {
            flows: own.flows,
            bytes: own.bytes,
            first: Time::MAX,
            last: own.last_start,
        };
        let mut left: Vec<Left> = each.iter().map(of).collect();
        for (arrival, _) in &self.upcoming {
            let (own, start) = (&mut left[usize::from(arrival.source)], arrival.spec.start);
            (own.flows, own.first, own.last) = (own.flows + 1, own.first.min(start), own.last.max(start));
            own.bytes = own.bytes.saturating_add(arrival.spec.size);
        }
        for (source, first) in firsts {
            let own = &mut left[usize::from(source)];
            own.first = own.first.min(first);
        }
        (size, left)
    }
}
