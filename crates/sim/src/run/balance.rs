//! Keeps count of windows, and of what each region did in them.

use super::Simulation;
use super::region::Region;
use crate::measure::{Balance, RegionWork};
use crate::net::partition::Partition;

/// Counts windows during a run.
#[derive(Default)]
pub(crate) struct Windows {
    pub count: u64,
    pub critical_path: u64,
    /// Events that each region had handled when the last window ended.
    before: Vec<u64>,
}

impl Windows {
    /// A window is over.
    pub fn passed(&mut self, regions: &[Box<Region>]) {
        self.count += 1;
        self.before.resize(regions.len(), 0);
        let mut max = 0;
        for (before, region) in self.before.iter_mut().zip(regions) {
            let now = region.net.events_handled();
            max = max.max(now - std::mem::replace(before, now));
        }
        self.critical_path += max;
    }
}

impl Simulation {
    /// How the work was spread, up to now.
    pub(crate) fn balance(&self) -> Balance {
        let work = |net: &Partition| {
            let leaving = net.ports.iter().filter(|port| net.leaves(port));
            RegionWork {
                events: net.events_handled(),
                packet_hops: net.sent().0,
                crossings: leaving.map(|port| port.packets_sent).sum(),
            }
        };
        Balance {
            threads: self.plan.threads,
            lookahead: self.plan.lookahead,
            windows: self.windows.count,
            regions: self.regions.iter().map(|region| work(&region.net)).collect(),
            critical_path: self.windows.critical_path,
            share_alone: 0.0,
            threads_ratio: None,
        }
    }
}
