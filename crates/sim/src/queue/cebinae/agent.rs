//! Cebinae's control agent: once per period it decides from what left the port whether the link is saturated, which flows
//! are its top, and what both groups may send.
//!
//! Saturated: the bytes that left exceed the share 1 - port_slack of the line. Top: flows with more than the share
//! 1 - flow_slack of the largest flow's bytes. Top as a whole may send 1 - tax of what it sent, at most 1 - tax of the line;
//! bottom may send the rest. Not saturated: nobody is top, and bottom has the line.
//!
//! Source: Cebinae (SIGCOMM 2022), the authors' ns-3.35 code; `smooth` and `hold` are its Tofino prototype's.
//! Shares are whole parts of 10^9, times nanoseconds, products exact and rounded down, or computed in floating point as the
//! authors' code does: their stored control traces come out to the last bit.

use super::cache::Slot;
use super::filter::{ByGroup, Group, seconds};
use super::read::{CebinaeConfig, Products};

/// What shares are parts of.
pub const WHOLE: u64 = 1_000_000_000;

#[derive(Debug, Clone)]
pub struct Agent {
    /// Of the line, in bit/s.
    rate: u64,
    /// Length of a round in nanoseconds, and rounds in a period.
    round: u64,
    period: u32,
    tax: u64,
    port_slack: u64,
    flow_slack: u64,
    /// The shares that are left, in floating point: 1 - 0.8 is a little less than 0.2.
    double: bool,
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

/// What a slack leaves, as the authors' simulator computes it.
fn left(slack: u64) -> f64 {
    1.0 - slack as f64 / WHOLE as f64
}

impl Agent {
    /// For a line of so many bit/s and rounds of so many nanoseconds.
    pub fn new(config: &CebinaeConfig, rate: u64, round: u64) -> Agent {
        Agent {
            rate,
            round,
            period: config.period,
            tax: config.tax,
            port_slack: config.port_slack,
            flow_slack: config.flow_slack,
            double: config.products == Products::Double,
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

    /// The share `1 - slack` of something, rounded down.
    fn less(&self, of: u128, slack: u64) -> u64 {
        match self.double {
            false => (of * u128::from(WHOLE - slack) / u128::from(WHOLE)) as u64,
            true => (of as f64 * left(slack)) as u64,
        }
    }

    /// Strictly more than the share `1 - slack` of the largest count.
    fn exceeds(&self, bytes: u64, max_bytes: u64, slack: u64) -> bool {
        match self.double {
            false => {
                u128::from(bytes) * u128::from(WHOLE) > u128::from(max_bytes) * u128::from(WHOLE - slack)
            }
            true => bytes as f64 > max_bytes as f64 * left(slack),
        }
    }

    /// Bits that a port may send in a window without being saturated, rounded down.
    pub fn threshold_bits(&self) -> u64 {
        let line = u128::from(self.rate) * u128::from(self.period) * u128::from(self.round);
        match self.double {
            false => (line * u128::from(WHOLE - self.port_slack) / u128::from(WHOLE) / 1_000_000_000) as u64,
            true => {
                let window = f64::from(self.period) * seconds(self.round);
                (self.rate as f64 * window * left(self.port_slack)) as u64
            }
        }
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
        let is_top = |slot: &&Slot| self.exceeds(slot.bytes, max_bytes, self.flow_slack);
        let mut top: Vec<u64> = counts.iter().filter(is_top).map(|slot| slot.flow).collect();
        top.sort_unstable();
        top.dedup();
        let sent: u64 = counts.iter().filter(is_top).map(|slot| slot.bytes).sum();
        // Whole bytes of a round: the authors' logs have them.
        let in_round = self.less(u128::from(sent), self.tax) / u64::from(self.period);
        let rate = match self.double {
            false => (u128::from(in_round) * 8_000_000_000 / u128::from(self.round)) as u64,
            true => (in_round as f64 / seconds(self.round) * 8.0) as u64,
        };
        let mut rates = self.idle_rates();
        rates[Group::Top as usize] = rate.min(self.less(u128::from(self.rate), self.tax));
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
