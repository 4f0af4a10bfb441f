//! How the work of a run was distributed over the regions of its network.
//!
//! The balance is not part of the results: another number of regions gives the same
//! [`Outcome`](super::Outcome) and another balance.

use crate::units::Time;

/// What each region did, and how often the regions waited for each other.
#[derive(Debug, Clone, PartialEq)]
pub struct Balance {
    pub threads: usize,
    /// How far a region may advance ahead of the others; [`Time::MAX`] with one region.
    pub lookahead: Time,
    /// Number of time windows in which the regions advanced in step.
    pub windows: u64,
    pub regions: Vec<RegionWork>,
    /// Sum over the windows of the events of their busiest region: the length of the run, in events, with as
    /// many threads as regions.
    pub critical_path: u64,
    /// Share of the wall-clock time in which one thread worked on all regions because several were not
    /// faster.
    pub share_alone: f64,
    /// Last measured speedup of all threads over one; none: never measured.
    pub threads_ratio: Option<f64>,
}

/// What one region did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RegionWork {
    pub events: u64,
    pub packet_hops: u64,
    /// Packet-hops that lead into other regions.
    pub crossings: u64,
}

/// A possible speed-up below which unequal regions are the reason why several threads are not faster.
const UNEQUAL: f64 = 1.2;

impl Balance {
    /// Returns a warning if several threads were not faster than one for more than a fifth of the run.
    pub fn warning(&self) -> Option<String> {
        let ratio = self.threads_ratio.filter(|_| self.share_alone > 0.2)?;
        let (threads, share) = (self.threads, 100.0 * self.share_alone);
        let reason = match self.max_speedup() {
            possible if possible < UNEQUAL => {
                format!(
                    "the regions of the network have unequal work, which allows {possible:.2} at most: use --threads 1"
                )
            }
            _ => "use --threads 1, or free the cores for this run".into(),
        };
        Some(format!(
            "threads: {threads} threads were not faster for {share:.0} % of the time, so one worked alone then; at the last \
             trial they were {ratio:.2} times as fast as one; {reason}; the results are the same"
        ))
    }

    /// Packet-hops of the busiest region over the mean of all; 1 if all did the same, and if nothing was
    /// done.
    pub fn busiest_over_mean(&self) -> f64 {
        let all: u64 = self.regions.iter().map(|region| region.packet_hops).sum();
        let max = self.regions.iter().map(|region| region.packet_hops).max().unwrap_or(0);
        if all == 0 { 1.0 } else { (max * self.regions.len() as u64) as f64 / all as f64 }
    }

    /// Returns the speedup over one thread that the run could reach if waiting cost nothing: in every window,
    /// all regions wait for the busiest one.
    pub fn max_speedup(&self) -> f64 {
        let all: u64 = self.regions.iter().map(|region| region.events).sum();
        if self.critical_path == 0 { 1.0 } else { all as f64 / self.critical_path as f64 }
    }

    /// Share of the packet-hops that lead from one region into another.
    pub fn crossing_share(&self) -> f64 {
        let all: u64 = self.regions.iter().map(|region| region.packet_hops).sum();
        let crossings: u64 = self.regions.iter().map(|region| region.crossings).sum();
        if all == 0 { 0.0 } else { crossings as f64 / all as f64 }
    }
}

#[cfg(test)]
mod tests;
