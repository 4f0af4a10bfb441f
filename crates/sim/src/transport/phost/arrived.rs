//! Which packets of a flow have arrived.

use std::collections::VecDeque;

const BITS: u32 = u64::BITS;

/// A set of packet numbers below the flow's length, from the first word on that is not full.
#[derive(Debug, Clone)]
pub struct Arrived {
    packets: u32,
    missing: u32,
    /// Words before this one are full.
    first_word: u32,
    words: VecDeque<u64>,
}

impl Arrived {
    /// Of a flow of so many packets: none.
    pub fn new(packets: u32) -> Arrived {
        Arrived { packets, missing: packets, first_word: 0, words: VecDeque::new() }
    }

    /// Packets that have not arrived.
    pub fn missing(&self) -> u32 {
        self.missing
    }

    /// Takes in a packet; whether it is new.
    pub fn take(&mut self, number: u32) -> bool {
        let (word, bit) = (number / BITS, 1u64 << (number % BITS));
        if number >= self.packets || word < self.first_word {
            return false;
        }
        let at = (word - self.first_word) as usize;
        if at >= self.words.len() {
            self.words.resize(at + 1, 0);
        }
        if self.words[at] & bit != 0 {
            return false;
        }
        self.words[at] |= bit;
        self.missing -= 1;
        while self.words.front() == Some(&u64::MAX) {
            self.words.pop_front();
            self.first_word += 1;
        }
        true
    }

    /// Whether a packet has arrived.
    pub fn has(&self, number: u32) -> bool {
        let (word, bit) = (number / BITS, 1u64 << (number % BITS));
        match word.checked_sub(self.first_word) {
            None => true,
            Some(at) => self.words.get(at as usize).is_some_and(|word| word & bit != 0),
        }
    }

    /// The first packet from `number` on that is missing; the first of all behind the last one. None: all are here.
    pub fn missing_from(&self, number: u32) -> Option<u32> {
        self.search(number).or_else(|| self.search(0))
    }

    fn search(&self, from: u32) -> Option<u32> {
        let from = from.max(self.first_word.saturating_mul(BITS));
        let mut mask = u64::MAX << (from % BITS);
        let first = (from / BITS - self.first_word) as usize;
        for (at, word) in self.words.iter().enumerate().skip(first) {
            let holes = !word & mask;
            if holes != 0 {
                let number = (self.first_word + at as u32) * BITS + holes.trailing_zeros();
                return (number < self.packets).then_some(number);
            }
            mask = u64::MAX;
        }
        let beyond = (self.first_word + self.words.len() as u32).saturating_mul(BITS);
        Some(from.max(beyond)).filter(|&number| number < self.packets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::random::RandomStream;
    use std::collections::BTreeSet;

    #[test]
    fn the_search_goes_round_behind_the_last_packet() {
        let mut arrived = Arrived::new(4);
        assert!(arrived.take(1) && arrived.take(3) && !arrived.take(3) && !arrived.take(4));
        let found = [0, 1, 2, 3, 4].map(|from| arrived.missing_from(from));
        assert_eq!(found, [Some(0), Some(2), Some(2), Some(0), Some(0)]);
        assert!(arrived.take(0) && arrived.take(2));
        assert_eq!((arrived.missing(), arrived.missing_from(2)), (0, None));
    }

    #[test]
    fn any_order_of_arrival_is_as_a_plain_set_has_it() {
        let mut random = RandomStream::new(2, "arrived");
        for packets in [1u32, 63, 64, 65, 128, 500] {
            let mut arrived = Arrived::new(packets);
            let mut missing: BTreeSet<u32> = (0..packets).collect();
            while !missing.is_empty() {
                // Mostly in order, now and then anywhere.
                let number = match random.below(4) {
                    0 => random.below(u64::from(packets)) as u32,
                    _ => *missing.first().unwrap(),
                };
                assert_eq!(arrived.take(number), missing.remove(&number));
                let from = random.below(u64::from(packets) + 2) as u32;
                let expected = missing.range(from..).next().or(missing.first()).copied();
                assert_eq!(arrived.missing_from(from), expected, "from {from} of {packets}");
                assert_eq!(arrived.missing() as usize, missing.len());
            }
        }
    }
}
