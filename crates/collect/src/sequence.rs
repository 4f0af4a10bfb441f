//! Loss from sequence numbers, of reports of one node and hardware unit.
//!
//! A number ahead of the highest leaves the numbers between them lost until they come; one behind it is late,
//! or repeated if it was seen. A jump of more than 2^16 in either direction is a restart. Of the last 64
//! numbers it is known whether they were seen; an older one counts as late and takes no loss back.

use serde::{Deserialize, Serialize};

use crate::report::SEQUENCES;

const MAX_GAP: u32 = 1 << 16;
const WINDOW: u32 = 64;

/// What the numbers so far say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Sequence {
    /// None before the first number.
    highest: Option<u32>,
    /// Bit n: the number n below the highest was seen.
    seen: u64,
    /// Numbers from the first after the last restart to the highest.
    span: u32,
    pub received: u64,
    pub lost: u64,
    pub late: u64,
    pub repeated: u64,
    pub restarts: u64,
}

impl Sequence {
    /// Takes the next number; returns whether it is new.
    pub fn take(&mut self, number: u32) -> bool {
        self.received += 1;
        let Some(highest) = self.highest else {
            self.begin(number);
            return true;
        };
        let ahead = number.wrapping_sub(highest) % SEQUENCES;
        let back = highest.wrapping_sub(number) % SEQUENCES;
        if ahead.min(back) > MAX_GAP {
            self.restarts += 1;
            self.begin(number);
            return true;
        }
        if ahead != 0 && ahead <= back {
            self.lost += u64::from(ahead - 1);
            self.seen = self.seen.checked_shl(ahead).unwrap_or(0) | 1;
            self.span = self.span.saturating_add(ahead);
            self.highest = Some(number);
            return true;
        }
        if back < WINDOW && self.seen >> back & 1 == 1 {
            self.repeated += 1;
            return false;
        }
        self.late += 1;
        if back < WINDOW {
            self.seen |= 1 << back;
            // What came before the first number was never counted as lost.
            self.lost -= u64::from(back < self.span && self.lost > 0);
        }
        true
    }

    fn begin(&mut self, number: u32) {
        self.highest = Some(number);
        self.seen = 1;
        self.span = 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(numbers: &[u32]) -> Sequence {
        let mut sequence = Sequence::default();
        for &number in numbers {
            sequence.take(number);
        }
        sequence
    }

    #[test]
    fn two_lost_one_late_one_repeated_over_the_wrap() {
        let found = of(&[0x3f_fffd, 0x3f_fffe, 0x3f_ffff, 0, 1, 5, 4, 6, 6, 7]);
        assert_eq!(
            (found.received, found.lost, found.late, found.repeated, found.restarts),
            (10, 2, 1, 1, 0)
        );
    }

    #[test]
    fn a_jump_is_a_restart_and_not_a_loss() {
        let found = of(&[500_000, 500_001, 0, 1, 3]);
        assert_eq!((found.lost, found.late, found.restarts), (1, 0, 1));
    }

    #[test]
    fn what_came_before_the_first_number_was_never_lost() {
        let found = of(&[10, 9, 8, 9, 12]);
        assert_eq!((found.lost, found.late, found.repeated), (1, 2, 1));
    }

    proptest::proptest! {
        /// Whatever is lost, delayed by less than the window, or repeated: received and lost add up.
        #[test]
        fn numbers_add_up(start in 0..SEQUENCES, keep in proptest::collection::vec((0..4u8, 0..8u32), 1..200)) {
            let mut numbers: Vec<(u32, u32)> = Vec::new();
            for (place, &(fate, delay)) in (0..).zip(&keep) {
                // The first and the last are kept in place, so that both ends are known.
                let ends = place == 0 || place as usize == keep.len() - 1;
                if fate != 0 || ends {
                    numbers.push((place * 8 + if ends { 0 } else { delay * 8 }, place));
                    if fate == 1 {
                        numbers.push((place * 8 + delay * 8 + 1, place));
                    }
                }
            }
            numbers.sort();
            let first = numbers[0].1;
            proptest::prop_assert_eq!(first, 0);
            let mut sequence = Sequence::default();
            let mut unique = 0;
            for &(_, place) in &numbers {
                unique += u64::from(sequence.take((start + place) % SEQUENCES));
            }
            let span = u64::from(numbers.iter().map(|&(_, place)| place).max().unwrap_or(0)) + 1;
            proptest::prop_assert_eq!(unique + sequence.lost, span);
            proptest::prop_assert_eq!(unique + sequence.repeated, sequence.received);
        }
    }
}
