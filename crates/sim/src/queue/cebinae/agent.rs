//! Cebinae's control agent: once per period it decides from what left the port whether the link is saturated, which flows
//! are its top, and what both groups may send.
//!
//! Saturated: the bytes that left exceed the share 1 - port_slack of the line. Top: flows with more than the share
//! 1 - flow_slack of the largest flow's bytes. Top as a whole may send 1 - tax of what it sent, at most 1 - tax of the line;
//! bottom may send the rest. Not saturated: nobody is top, and bottom has the line.
//!
//! Source: Cebinae (SIGCOMM 2022), the authors' ns-3.35 code; `smooth` and `hold` are its Tofino prototype's.
//! Shares are whole parts of 10^9, times nanoseconds, products exact and rounded down: the authors' stored control traces
//! come out to the last bit.

use super::cache::Slot;
use super::filter::{ByGroup, Group};
use super::read::CebinaeConfig;

/// What shares are parts of.
pub const WHOLE: u64 = 1_000_000_000;

#[derive(Debug, Clone)]
pub struct Agent {
    /// Of the line, in bit/s.
    rate: u64,
    /// Length of a period in nanoseconds.
    window: u64,
    tax: u64,
    port_slack: u64,
    flow_slack: u64,
    /// Counts are means of this window's and the last one's.
    smooth: bool,
    before: Vec<Slot>,
    /// The port counts as saturated for so many windows after it was.
    hold: u32,
    held: u32,
}

/// What the agent has decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    pub saturated: bool,
    /// Ascending.
    pub top: Vec<u64>,
    /// By [`Group`], in bit/s.
    pub rates: ByGroup,
}

/// The share `1 - slack` of something, rounded down.
fn less(of: u128, slack: u64) -> u64 {
    (of * u128::from(WHOLE - slack) / u128::from(WHOLE)) as u64
}

impl Agent {
    /// For a line of so many bit/s and rounds of so many nanoseconds.
    pub fn new(config: &CebinaeConfig, rate: u64, round: u64) -> Agent {
        Agent {
            rate,
            window: u64::from(config.period) * round,
            tax: config.tax,
            port_slack: config.port_slack,
            flow_slack: config.flow_slack,
            smooth: config.smooth,
            before: Vec::new(),
            hold: config.hold,
            held: 0,
        }
    }

    pub fn set_rate(&mut self, rate: u64) {
        self.rate = rate;
    }

    /// What holds while the link is not saturated.
    pub fn idle_rates(&self) -> ByGroup {
        [0, self.rate]
    }

    /// Windows without bytes change nothing any more.
    pub fn rests(&self) -> bool {
        self.held == 0 && self.before.is_empty()
    }

    /// Bits that a port may send in a window without being saturated, rounded down.
    pub fn threshold_bits(&self) -> u64 {
        let line = u128::from(self.rate) * u128::from(self.window);
        (line * u128::from(WHOLE - self.port_slack) / u128::from(WHOLE) / 1_000_000_000) as u64
    }

    /// A window is over in which so many bytes left the port, of these flows.
    pub fn decide(&mut self, port_bytes: u64, counts: impl Iterator<Item = Slot>) -> Decision {
        if 8 * port_bytes > self.threshold_bits() {
            self.held = self.hold + 1;
        }
        let saturated = self.held > 0;
        self.held = self.held.saturating_sub(1);
        let counts = self.smoothed(counts);
        let max_bytes = counts.iter().map(|slot| slot.bytes).max().unwrap_or(0);
        if !saturated || max_bytes == 0 {
            return Decision { saturated, top: Vec::new(), rates: self.idle_rates() };
        }
        // Strictly more than the share, which need not be whole.
        let min_bytes = u128::from(max_bytes) * u128::from(WHOLE - self.flow_slack);
        let is_top = |slot: &&Slot| u128::from(slot.bytes) * u128::from(WHOLE) > min_bytes;
        let mut top: Vec<u64> = counts.iter().filter(is_top).map(|slot| slot.flow).collect();
        top.sort_unstable();
        top.dedup();
        let sent: u64 = counts.iter().filter(is_top).map(|slot| slot.bytes).sum();
        let taxed = less(u128::from(sent), self.tax);
        let rate = (u128::from(taxed) * 8_000_000_000 / u128::from(self.window)) as u64;
        let mut rates = self.idle_rates();
        rates[Group::Top as usize] = rate.min(less(u128::from(self.rate), self.tax));
        rates[Group::Bottom as usize] = self.rate - rates[Group::Top as usize];
        Decision { saturated, top, rates }
    }

    /// Counts as they are judged: this window's, or their means with the last one's.
    fn smoothed(&mut self, counts: impl Iterator<Item = Slot>) -> Vec<Slot> {
        let mut now: Vec<Slot> = counts.collect();
        if !self.smooth {
            return now;
        }
        now.sort_unstable_by_key(|slot| slot.flow);
        let before = std::mem::replace(&mut self.before, now.clone());
        let mut sums = before;
        sums.extend(now);
        sums.sort_unstable_by_key(|slot| slot.flow);
        sums.dedup_by(|later, first| {
            let same = later.flow == first.flow;
            first.bytes += if same { later.bytes } else { 0 };
            same
        });
        sums.iter_mut().for_each(|slot| slot.bytes /= 2);
        sums
    }
}
