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
mod tests {
    use super::*;

    #[test]
    fn what_it_began_with_gives_way_to_any_sample() {
        let mut filter = Ns3Filter::new(10, 500);
        assert_eq!(filter.get(), 500);
        filter.update(1, 20);
        assert_eq!(filter.get(), 20);
    }

    #[test]
    fn the_best_lasts_for_its_window_and_the_next_is_of_a_later_quarter() {
        let mut filter = Ns3Filter::new(10, 0);
        filter.update(1, 100);
        // Rounds 2 and 3: lower, and the best is too young for a second.
        filter.update(2, 90);
        filter.update(3, 80);
        assert_eq!(filter.best, [(1, 100); 3]);
        // More than two rounds, 10 / 4, since the second best.
        filter.update(4, 50);
        assert_eq!(filter.best, [(1, 100), (4, 50), (4, 50)]);
        // More than five rounds since the third.
        filter.update(10, 40);
        assert_eq!(filter.best, [(1, 100), (4, 50), (10, 40)]);
        filter.update(11, 30);
        assert_eq!(filter.get(), 100);
        // Ten rounds are over: the second best, and what follows it.
        filter.update(12, 30);
        assert_eq!(filter.best, [(4, 50), (10, 40), (12, 30)]);
    }

    #[test]
    fn places_are_told_apart_by_their_rates() {
        // Second and third best of the same rate but of different rounds: more than five rounds after the third, the newest takes
        // its place. Told apart by rounds they would be two samples, and stay.
        let mut filter = Ns3Filter::new(10, 0);
        filter.best = [(1, 100), (2, 50), (4, 50)];
        filter.update(10, 40);
        assert_eq!(filter.best, [(1, 100), (2, 50), (10, 40)]);
        // The same of the best two.
        filter.best = [(1, 100), (3, 100), (4, 90)];
        filter.update(6, 10);
        assert_eq!(filter.best, [(1, 100), (6, 10), (6, 10)]);
    }

    #[test]
    fn when_nothing_was_sampled_for_a_window_all_is_forgotten() {
        let mut filter = Ns3Filter::new(10, 0);
        filter.update(1, 100);
        filter.update(12, 7);
        assert_eq!(filter.best, [(12, 7); 3]);
    }
}
