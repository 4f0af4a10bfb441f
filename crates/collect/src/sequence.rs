//! Loss from sequence numbers, of reports of one node and hardware unit.
//!
//! A number ahead of the highest leaves the numbers between them lost until they come; one behind it is late,
//! or repeated if it was seen. Of the last 64 numbers it is known whether they were seen; an older one counts
//! as late and takes no loss back.
//!
//! A jump of more than 2^16 in either direction is a restart. So are increasing numbers below the highest,
//! of which 8 were seen before or are too old to know, with none above the highest between them: an
//! exporter that began again before it had sent 2^16. Up to 7 of its reports are taken for repeated ones
//! before that is known.
//!
//! A late report was sent before the first report with a higher number arrived. The last 16 gaps are
//! remembered with that time.

use serde::{Deserialize, Serialize};

use crate::report::SEQUENCES;

const MAX_GAP: u32 = 1 << 16;
const WINDOW: u32 = 64;
/// Numbers that were seen or are too old, and rise, after which the exporter has begun again.
const SUSPECTS: u32 = 8;
/// Gaps that are remembered.
const GAPS: usize = 16;

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
    /// Late ones that were counted as lost before. Checkpoints of earlier versions lack it.
    #[serde(default)]
    recovered: u64,
    /// The last gaps, the next to give way at `next_gap`. Not in checkpoints: what is late after a restart
    /// has the time of its arrival.
    #[serde(skip)]
    gaps: [Gap; GAPS],
    #[serde(skip)]
    next_gap: usize,
    /// None unless the last number was below the highest. Checkpoints of earlier versions lack it.
    #[serde(default)]
    again: Option<Again>,
}

/// Numbers that were not there when a higher one came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Gap {
    first: u32,
    len: u32,
    /// When the higher one came.
    time_ns: u64,
}

/// Increasing numbers below the highest, which an exporter may have sent that began again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Again {
    /// Of the numbers, those that were seen or are too old.
    suspects: u32,
    last: u32,
    /// As in [`Sequence`], of these numbers alone.
    seen: u64,
    span: u32,
    numbers: u32,
    /// What was counted before the first of them.
    lost: u64,
    late: u64,
    #[serde(default)]
    recovered: u64,
}

impl Sequence {
    /// Takes the next number, which came at this time. Returns the latest time when it can have been sent, as
    /// far as is known: that of its arrival, or the nanosecond before the first higher number came; None if
    /// it is repeated.
    pub fn take(&mut self, number: u32, time_ns: u64) -> Option<u64> {
        self.received += 1;
        let Some(highest) = self.highest else {
            self.begin(number);
            return Some(time_ns);
        };
        let ahead = number.wrapping_sub(highest) % SEQUENCES;
        let back = highest.wrapping_sub(number) % SEQUENCES;
        if ahead.min(back) > MAX_GAP {
            self.restarts += 1;
            self.begin(number);
            return Some(time_ns);
        }
        if ahead != 0 && ahead <= back {
            self.lost += u64::from(ahead - 1);
            if ahead > 1 {
                self.gaps[self.next_gap] = Gap { first: (highest + 1) % SEQUENCES, len: ahead - 1, time_ns };
                self.next_gap = (self.next_gap + 1) % GAPS;
            }
            self.seen = self.seen.checked_shl(ahead).unwrap_or(0) | 1;
            self.span = self.span.saturating_add(ahead);
            self.highest = Some(number);
            self.again = None;
            return Some(time_ns);
        }
        let repeated = back < WINDOW && self.seen >> back & 1 == 1;
        if self.begins_again(number, repeated || back >= WINDOW) {
            return Some(time_ns);
        }
        if repeated {
            self.repeated += 1;
            return None;
        }
        self.late += 1;
        if back < WINDOW {
            self.seen |= 1 << back;
            // What came before the first number was never counted as lost.
            let recovered = u64::from(back < self.span && self.lost > 0);
            self.lost -= recovered;
            self.recovered += recovered;
        }
        let gap = self.gaps.iter().find(|gap| number.wrapping_sub(gap.first) % SEQUENCES < gap.len);
        Some(gap.map_or(time_ns, |gap| gap.time_ns.saturating_sub(1).min(time_ns)))
    }

    /// Numbers that were not there when a higher one came, whether they came later or not. Never falls.
    pub fn missing(&self) -> u64 {
        self.lost + self.recovered
    }

    /// Of [`Sequence::missing`], those that came later: without the last ones below the highest, which an
    /// exporter may have sent that began again. Never falls.
    pub fn recovered(&self) -> u64 {
        self.again.map_or(self.recovered, |again| again.recovered)
    }

    /// Late ones, counted in the same way. Never falls.
    pub fn settled_late(&self) -> u64 {
        self.again.map_or(self.late, |again| again.late)
    }

    /// Records a number below the highest; returns whether it is the one that shows a restart.
    fn begins_again(&mut self, number: u32, suspect: bool) -> bool {
        let rise = |again: &Again| number.wrapping_sub(again.last) % SEQUENCES;
        let again = match self.again.filter(|again| (1..=WINDOW).contains(&rise(again))) {
            Some(again) => Again {
                suspects: again.suspects + u32::from(suspect),
                last: number,
                seen: again.seen.checked_shl(rise(&again)).unwrap_or(0) | 1,
                span: again.span.saturating_add(rise(&again)),
                numbers: again.numbers + 1,
                ..again
            },
            None => {
                let Sequence { lost, late, recovered, .. } = *self;
                Again {
                    suspects: suspect.into(),
                    last: number,
                    seen: 1,
                    span: 1,
                    numbers: 1,
                    lost,
                    late,
                    recovered,
                }
            }
        };
        self.again = Some(again);
        if again.suspects < SUSPECTS {
            return false;
        }
        self.restarts += 1;
        (self.late, self.recovered) = (again.late, again.recovered);
        self.lost = again.lost + u64::from(again.span - again.numbers);
        self.begin(number);
        (self.seen, self.span) = (again.seen, again.span);
        true
    }

    fn begin(&mut self, number: u32) {
        self.highest = Some(number);
        self.seen = 1;
        self.span = 1;
        self.gaps = [Gap::default(); GAPS];
        self.again = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(numbers: &[u32]) -> Sequence {
        let mut sequence = Sequence::default();
        for &number in numbers {
            sequence.take(number, 0);
        }
        sequence
    }

    #[test]
    fn a_late_report_was_sent_before_the_first_with_a_higher_number_came() {
        let mut sequence = Sequence::default();
        let mut time_ns = 0;
        let mut take = |number| {
            time_ns += 100;
            sequence.take(number, time_ns)
        };
        let numbers = [0x3f_fffe, 1, 5, 6, 3, 0x3f_ffff, 3, 0x3f_fffd, 7];
        let found = numbers.map(&mut take);
        // 5 came at 300, 1 at 200; what came before the first number has no gap.
        let expected = [100, 200, 300, 400, 299, 199, 0, 800, 900];
        assert_eq!(found, expected.map(|time| (time > 0).then_some(time)));
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

    #[test]
    fn an_exporter_that_begins_again_early_is_a_restart() {
        // 100 reports each; of the second ones number 3 is lost.
        let numbers: Vec<u32> = (0..100).chain((0..100).filter(|&n| n != 3)).collect();
        let found = of(&numbers);
        assert_eq!(
            (found.received, found.restarts, found.late, found.repeated, found.lost),
            (199, 1, 0, 0, 1)
        );
        // The first ones are within the window: they are taken for repeated ones until it is known.
        let numbers: Vec<u32> = (0..20).chain(0..40).collect();
        let found = of(&numbers);
        assert_eq!((found.restarts, found.late, found.repeated, found.lost), (1, 0, 7, 0));
        // The first sequence had gaps, which the second one fills.
        let numbers: Vec<u32> = (0..90).step_by(2).chain(0..100).collect();
        let found = of(&numbers);
        assert_eq!((found.restarts, found.late, found.lost), (1, 0, 44));
    }

    #[test]
    fn late_and_repeated_numbers_between_new_ones_are_no_restart() {
        // Each number comes twice, the second time 70 numbers later.
        let numbers: Vec<u32> =
            (0..300).flat_map(|n| [Some(n), (n >= 70).then(|| n - 70)]).flatten().collect();
        assert_eq!(of(&numbers).restarts, 0);
        // 30 that were delayed together fill their gap.
        let numbers: Vec<u32> = (0..100).chain(130..160).chain(100..130).chain(160..170).collect();
        let found = of(&numbers);
        assert_eq!((found.restarts, found.lost, found.late, found.repeated), (0, 0, 30, 0));
        // Seven that were sent twice.
        let numbers: Vec<u32> = (0..100).chain(90..97).chain(100..110).collect();
        let found = of(&numbers);
        assert_eq!((found.restarts, found.lost, found.repeated), (0, 0, 7));
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
                unique += u64::from(sequence.take((start + place) % SEQUENCES, 0).is_some());
            }
            let span = u64::from(numbers.iter().map(|&(_, place)| place).max().unwrap_or(0)) + 1;
            proptest::prop_assert_eq!(unique + sequence.lost, span);
            proptest::prop_assert_eq!(unique + sequence.repeated, sequence.received);
        }
    }
}
