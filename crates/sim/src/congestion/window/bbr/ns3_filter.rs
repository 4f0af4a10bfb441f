//! The maximum of the last rounds as in ns-3.35, which distinguishes the best three samples by their rates
//! instead of their rounds (unlike a filter as in Linux, [`MaxFilter`](super::model::MaxFilter)).
//!
//! Consequences: if the maximum occurs again in a later round, the second best is unchanged; and a quarter of
//! the window after the *second* best, not after the best, the newest sample replaces the second and third.
//!
//! Source: ns-3.35, WindowedFilter (behaviour, as read; no code).

/// (round, rate), the best first.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ns3Filter {
    best: [(u64, u64); 3],
    /// The initial value: the first sample replaces it, even if it is lower.
    nominal: u64,
    /// Window of the maximum in rounds.
    rounds: u64,
}

impl Ns3Filter {
    pub fn new(rounds: u64, nominal: u64) -> Ns3Filter {
        Ns3Filter { best: [(0, nominal); 3], nominal, rounds }
    }

    pub fn get(&self) -> u64 {
        self.best[0].1
    }

    /// Adds a sample above 0.
    pub fn update(&mut self, round: u64, rate: u64) {
        let new = (round, rate);
        let older_than = |(since, _): (u64, u64), age: u64| round - since > age;
        let [first, second, third] = self.best;
        if first.1 == self.nominal || rate >= first.1 || older_than(third, self.rounds) {
            self.best = [new; 3];
            return;
        }
        if rate >= second.1 {
            self.best = [first, new, new];
        } else if rate >= third.1 {
            self.best[2] = new;
        }
        let [first, second, third] = self.best;
        if older_than(first, self.rounds) {
            self.best = [second, third, new];
            if older_than(second, self.rounds) {
                self.best = [third, new, new];
            }
        } else if second.1 == first.1 && older_than(second, self.rounds / 4) {
            self.best = [first, new, new];
        } else if third.1 == second.1 && older_than(third, self.rounds / 2) {
            self.best[2] = new;
        }
    }
}

#[cfg(test)]
mod tests;
