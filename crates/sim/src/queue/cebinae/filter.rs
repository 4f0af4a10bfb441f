//! Cebinae's leaky-bucket filter: into which of two rounds a packet goes, or none.
//!
//! Two groups of flows (top: those that this link limits; bottom: all others) each have a rate for the round that is being
//! sent (head) and one for the next (tail). A group's bytes in excess of its head budget wait for the next round; those in
//! excess of both budgets are dropped. The counter never lags behind the line `rate x time`, so idle time earns no credit;
//! dropped packets stay counted. Rotation makes the tail the head and takes one round's budget off the counters.
//!
//! Times are whole nanoseconds, as a switch counts them; products are exact and rounded down, or computed in floating point
//! from seconds as the authors' code does, which is a byte less where a whole number just fails to come out.
//!
//! Source: Cebinae (SIGCOMM 2022), the authors' ns-3.35 code: enqueue and rotation; their Tofino prototype.

use super::read::{CebinaeConfig, Enforced, Products};

/// Flows that the link limits, or all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    Top = 0,
    Bottom = 1,
}

/// What the filter says of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passage {
    Head,
    Tail,
    Drop,
}

/// Something for each group, in bit/s or bytes.
pub type ByGroup = [u64; 2];

#[derive(Debug, Clone)]
pub struct Filter {
    /// Length of a round, and the granularity of time within it.
    round: u64,
    tick: u64,
    /// The hardware prototype's: a packet is judged with itself counted.
    counts_itself: bool,
    enforced: Enforced,
    products: Products,
    /// Start of the round that the head belongs to; moved on by rotation.
    base: u64,
    /// The time that the floor line is drawn to.
    round_time: u64,
    /// Which of the two queues is the head.
    pub head: usize,
    /// Bytes that each group has sent in excess of what rotation has taken off.
    pub bytes: ByGroup,
    /// By queue: the groups' rates, and what they come to in a round.
    rates: [ByGroup; 2],
    budgets: [ByGroup; 2],
    /// Taken off at the next rotation: the head's rates as they were at the last reconfiguration.
    last: ByGroup,
}

/// Bytes that pass at `rate` bit/s in so many nanoseconds.
pub fn bytes_in(rate: u64, ns: u64) -> u64 {
    const PER_BYTE: u64 = 8_000_000_000;
    match rate.checked_mul(ns) {
        Some(product) => product / PER_BYTE,
        None => (u128::from(rate) * u128::from(ns) / u128::from(PER_BYTE)) as u64,
    }
}

/// Seconds as the authors' simulator gives them.
pub fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

impl Filter {
    pub fn new(config: &CebinaeConfig, round: u64, rate: u64) -> Filter {
        let rates = [0, rate];
        let mut filter = Filter {
            round,
            tick: config.virtual_round.ns().max(1),
            counts_itself: config.counts_itself,
            enforced: config.enforced,
            products: config.products,
            base: 0,
            round_time: 0,
            head: 0,
            bytes: [0, 0],
            rates: [rates; 2],
            budgets: [[0, 0]; 2],
            last: rates,
        };
        filter.budgets = filter.rates.map(|of| of.map(|rate| filter.in_round(rate)));
        filter
    }

    /// Judges a packet of `size` bytes, and counts it.
    pub fn pass(&mut self, group: Group, size: u64, now: u64) -> Passage {
        if now.saturating_sub(self.round_time) >= self.tick {
            self.round_time = now;
        }
        let (g, head, tail) = (group as usize, self.head, 1 - self.head);
        if self.enforced == Enforced::DropsFromNextRound && group == Group::Top && self.rates[head][g] == 0 {
            return Passage::Head;
        }
        let floor = self.floor(group);
        let before = self.bytes[g];
        self.bytes[g] = before.max(floor) + size;
        let judged = if self.counts_itself { self.bytes[g] } else { before };
        let past_head = judged.saturating_sub(self.budgets[head][g]);
        let past_tail = past_head.saturating_sub(self.budgets[tail][g]);
        match (past_head, past_tail) {
            (0, _) => Passage::Head,
            (_, 0) if group == Group::Bottom || self.enforced == Enforced::Delay => Passage::Tail,
            _ => Passage::Drop,
        }
    }

    /// What a group would have sent by now had it sent all the time.
    fn floor(&self, group: Group) -> u64 {
        let g = group as usize;
        let since = self.round_time.saturating_sub(self.base);
        let (head, tail) = (self.rates[self.head][g], self.rates[1 - self.head][g]);
        if since / self.tick < self.round / self.tick {
            return self.product(head, since);
        }
        let beyond = since.saturating_sub(self.round);
        match self.products {
            Products::Exact => {
                let bits = u128::from(head) * u128::from(self.round) + u128::from(tail) * u128::from(beyond);
                (bits / 8_000_000_000) as u64
            }
            Products::Tables => bytes_in(head, self.round) + self.product(tail, beyond),
            Products::Double => {
                let first = head as f64 * seconds(self.round) / 8.0;
                (first + tail as f64 * (self.seconds_since() - seconds(self.round)) / 8.0) as u64
            }
        }
    }

    /// Seconds of this round so far, as the difference of two times in floating point.
    fn seconds_since(&self) -> f64 {
        seconds(self.round_time) - seconds(self.base)
    }

    /// What passes at a rate in so much of this round.
    fn product(&self, rate: u64, ns: u64) -> u64 {
        let power = |of: u64| of.checked_ilog2().map_or(0, |log| 1 << log);
        match self.products {
            Products::Exact => bytes_in(rate, ns),
            Products::Tables => bytes_in(power(rate), power(ns)),
            Products::Double => (rate as f64 * self.seconds_since() / 8.0) as u64,
        }
    }

    /// What passes at a rate in a round, which has a table of its own in hardware.
    fn in_round(&self, rate: u64) -> u64 {
        match self.products {
            Products::Double => (rate as f64 * seconds(self.round) / 8.0) as u64,
            Products::Exact | Products::Tables => bytes_in(rate, self.round),
        }
    }

    /// A new round begins: the old head becomes the tail, with fresh rates.
    pub fn rotate(&mut self, fresh: ByGroup) {
        self.rates[self.head] = fresh;
        self.budgets[self.head] = fresh.map(|rate| self.in_round(rate));
        for g in 0..2 {
            self.bytes[g] = self.bytes[g].saturating_sub(self.in_round(self.last[g]));
        }
        self.base += self.round;
        self.head = 1 - self.head;
    }

    /// What the head may send now is taken off at the next rotation.
    pub fn note_rates(&mut self) {
        self.last = self.rates[self.head];
    }

    /// The groups' rates for a queue, in bit/s.
    #[cfg(test)]
    pub fn rates(&self, queue: usize) -> ByGroup {
        self.rates[queue]
    }

    /// Nothing would change but the time if rounds went by in which only `rates` are asked for.
    pub fn rests_at(&self, rates: ByGroup) -> bool {
        self.bytes == [0, 0] && self.last == rates && self.rates == [rates; 2]
    }

    /// So many rounds, an even number, go by while it rests.
    pub fn skip(&mut self, rounds: u64) {
        debug_assert!(rounds % 2 == 0);
        self.base += rounds * self.round;
    }
}
