//! The most of the last rounds as ns-3.35 keeps it, which tells the best three samples apart by their rates, not by their rounds
//! (a filter of Linux' kind, [`MaxFilter`](super::model::MaxFilter), does the latter).
//!
//! What follows from that: a best sample that was found once more, in a later round, leaves the second best where it is, and a
//! quarter of the window after the *second* best, not after the best, the newest sample takes the second and third place.
//!
//! Source: ns-3.35, WindowedFilter (behaviour, as read; no code).

/// (round, rate), the best first.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ns3Filter {
    best: [(u64, u64); 3],
    /// What it began with: a sample takes its place, also a lower one.
    nominal: u64,
    /// Rounds over which the most is taken.
    rounds: u64,
}

impl Ns3Filter {
    pub fn new(rounds: u64, nominal: u64) -> Ns3Filter {
        Ns3Filter { best: [(0, nominal); 3], nominal, rounds }
    }

    pub fn get(&self) -> u64 {
        self.best[0].1
    }

    /// Takes in a sample above 0.
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
