//! Which packets of a flow have arrived.

use std::collections::VecDeque;

const BITS: u32 = u64::BITS;

/// A set of packet numbers below the flow's length, from the first word on that is not full.
#[derive(Debug, Clone)]
pub struct Arrived {
    packets: u32,
    missing: u32,
    /// Words before this one are full; this one: what arrives mostly in order touches no other.
    first_word: u32,
    first: u64,
    /// The words behind it.
    later: VecDeque<u64>,
}

impl Arrived {
    /// Of a flow of so many packets: none.
    pub fn new(packets: u32) -> Arrived {
        Arrived { packets, missing: packets, first_word: 0, first: 0, later: VecDeque::new() }
    }

    /// Packets that have not arrived.
    pub fn missing(&self) -> u32 {
        self.missing
    }

    /// Takes in a packet; whether it is new.
    #[inline]
    pub fn take(&mut self, number: u32) -> bool {
        let (word, bit) = (number / BITS, 1u64 << (number % BITS));
        if number >= self.packets || word < self.first_word {
            return false;
        }
        let place = if word == self.first_word { &mut self.first } else { self.word(word) };
        if *place & bit != 0 {
            return false;
        }
        *place |= bit;
        self.missing -= 1;
        while self.first == u64::MAX {
            self.first = self.later.pop_front().unwrap_or(0);
            self.first_word += 1;
        }
        true
    }

    /// A word behind the first.
    fn word(&mut self, word: u32) -> &mut u64 {
        let at = (word - self.first_word - 1) as usize;
        if at >= self.later.len() {
            self.later.resize(at + 1, 0);
        }
        &mut self.later[at]
    }

    /// Whether a packet has arrived.
    pub fn has(&self, number: u32) -> bool {
        let (word, bit) = (number / BITS, 1u64 << (number % BITS));
        match word.checked_sub(self.first_word) {
            None => true,
            Some(0) => self.first & bit != 0,
            Some(at) => self.later.get(at as usize - 1).is_some_and(|word| word & bit != 0),
        }
    }

    /// The first packet from `number` on that is missing; the first of all behind the last one. None: all are here.
    #[inline]
    pub fn missing_from(&self, number: u32) -> Option<u32> {
        self.search(number).or_else(|| self.search(0))
    }

    /// The first packet from `number` on that is missing, not beyond the last one.
    #[inline]
    pub fn search(&self, from: u32) -> Option<u32> {
        let from = from.max(self.first_word.saturating_mul(BITS));
        let (mut word, mut mask) = (from / BITS, u64::MAX << (from % BITS));
        if word == self.first_word {
            let holes = !self.first & mask;
            if holes != 0 {
                return self.below_the_length(word, holes);
            }
            (word, mask) = (word + 1, u64::MAX);
        }
        self.search_later(word, mask)
    }

    /// From a word behind the first on, of which only the bits in `mask` are asked for.
    fn search_later(&self, from: u32, mut mask: u64) -> Option<u32> {
        let mut word = from;
        while let Some(arrived) = self.later.get((word - self.first_word - 1) as usize) {
            let holes = !arrived & mask;
            if holes != 0 {
                return self.below_the_length(word, holes);
            }
            (word, mask) = (word + 1, u64::MAX);
        }
        self.below_the_length(word, mask)
    }

    fn below_the_length(&self, word: u32, holes: u64) -> Option<u32> {
        let number = word.saturating_mul(BITS).saturating_add(holes.trailing_zeros());
        (number < self.packets).then_some(number)
    }
}

#[cfg(test)]
mod tests;
