//! Selective repeat (IRN): bit maps of what arrived beyond the first gap, at both ends.
//!
//! Packets are numbered by their first byte divided by the MTU. The sender counts a packet as lost when one sent
//! `reordering` numbers later has arrived and it has not, once; what is lost again waits for the timeout, which runs
//! from the last advance of the cumulative acknowledgement.
//!
//! Source: Mittal et al., "Revisiting Network Support for RDMA", SIGCOMM 2018, §3.1 (loss recovery).

use crate::units::Time;
use std::collections::VecDeque;

/// Which packets from `first` on have a bit set; bit 0 of word 0 is `first`.
#[derive(Debug, Default)]
struct BitWindow {
    first: u64,
    words: VecDeque<u64>,
}

impl BitWindow {
    fn get(&self, number: u64) -> bool {
        let Some(at) = number.checked_sub(self.first) else { return true };
        self.words.get((at / 64) as usize).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    /// Sets a bit; whether it was clear.
    fn set(&mut self, number: u64) -> bool {
        let Some(at) = number.checked_sub(self.first) else { return false };
        let word = (at / 64) as usize;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        let clear = self.words[word] >> (at % 64) & 1 == 0;
        self.words[word] |= 1 << (at % 64);
        clear
    }

    fn clear(&mut self, number: u64) {
        if let Some(at) = number.checked_sub(self.first) {
            if let Some(word) = self.words.get_mut((at / 64) as usize) {
                *word &= !(1 << (at % 64));
            }
        }
    }

    /// Forgets everything below `number`, whole words at a time.
    fn advance(&mut self, number: u64) {
        while number >= self.first + 64 && !self.words.is_empty() {
            self.words.pop_front();
            self.first += 64;
        }
        if self.words.is_empty() {
            self.first = number - number % 64;
        }
    }
}

/// What a receiver holds beyond the first gap.
#[derive(Debug, Default)]
pub struct Reassembly {
    arrived: BitWindow,
    held: u32,
}

impl Reassembly {
    /// Takes in packet `number` where `first` is the next one expected; how many packets are now whole from `first` on.
    pub fn place(&mut self, first: u64, number: u64) -> u64 {
        self.arrived.advance(first);
        if self.arrived.set(number) {
            self.held += 1;
        }
        let mut whole = 0;
        while self.arrived.get(first + whole) {
            self.arrived.clear(first + whole);
            self.held -= 1;
            whole += 1;
        }
        whole
    }

    /// A packet beyond the first gap has come.
    pub fn has(&self, number: u64) -> bool {
        self.arrived.get(number)
    }

    pub fn is_empty(&self) -> bool {
        self.held == 0
    }
}

/// What a sender knows of the packets that it has in flight.
#[derive(Debug)]
pub struct Scoreboard {
    mtu: u64,
    reordering: u64,
    arrived: BitWindow,
    /// Sent again, when, and not known to have arrived; not counted as lost a second time before the timeout.
    repeated: VecDeque<(u64, Time)>,
    /// When the newest packet was sent that arrived beyond a gap.
    newest: Time,
    lost: VecDeque<u64>,
    /// Packets that have arrived beyond the cumulative acknowledgement.
    beyond: u64,
    /// Losses have been looked for below this packet.
    searched: u64,
}

impl Scoreboard {
    pub fn new(reordering: u32, mtu: u32) -> Scoreboard {
        Scoreboard {
            mtu: u64::from(mtu),
            reordering: u64::from(reordering.max(1)),
            arrived: BitWindow::default(),
            repeated: VecDeque::new(),
            newest: Time::ZERO,
            lost: VecDeque::new(),
            beyond: 0,
            searched: 0,
        }
    }

    /// Bytes (whole packets) between the acknowledgement and the next byte that are not in flight: arrived or lost.
    pub fn not_in_flight(&self) -> u64 {
        (self.beyond + self.lost.len() as u64) * self.mtu
    }

    /// The packet has arrived beyond a gap, or lies below what is remembered.
    pub fn has_arrived(&self, number: u64) -> bool {
        self.arrived.get(number)
    }

    /// Losses have been looked for below this packet.
    pub fn searched(&self) -> u64 {
        self.searched
    }

    /// Packets that were found to be lost since they had been looked for below `searched`.
    pub fn found_lost(&self, searched: u64) -> impl Iterator<Item = u64> {
        self.lost.iter().copied().filter(move |&number| number >= searched)
    }

    pub fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// First byte of a lost packet to send again.
    pub fn take_lost(&mut self, now: Time) -> Option<u64> {
        let number = self.lost.pop_front()?;
        self.repeated.push_back((number, now));
        Some(number * self.mtu)
    }

    /// Everything below `acknowledged` has arrived, and the packet at byte `arrived` that was sent at `sent`; bytes newly
    /// known to have arrived out of order.
    pub fn acknowledge(&mut self, acknowledged: u64, arrived: u64, next: u64, sent: Time) -> u64 {
        let first = acknowledged.div_ceil(self.mtu);
        let number = arrived / self.mtu;
        let mut newly = 0;
        if number >= first && arrived < next && self.arrived.set(number) {
            self.beyond += 1;
            newly = self.mtu;
            self.newest = self.newest.max(sent);
            self.search(first, number);
        }
        self.settle(first);
        newly
    }

    /// Packets that have been overtaken by `reordering` others are lost.
    fn search(&mut self, first: u64, number: u64) {
        let until = (number + 1).saturating_sub(self.reordering);
        for candidate in self.searched.max(first)..until {
            if !self.arrived.get(candidate) {
                self.lost.push_back(candidate);
            }
        }
        self.searched = self.searched.max(until);
    }

    /// Forgets what lies below the cumulative acknowledgement.
    fn settle(&mut self, first: u64) {
        let from = self.arrived.first;
        for number in from..first {
            if self.arrived.words.is_empty() {
                break;
            }
            if self.arrived.get(number) && number >= self.arrived.first {
                self.arrived.clear(number);
                self.beyond = self.beyond.saturating_sub(1);
            }
        }
        self.arrived.advance(first);
        while self.repeated.front().is_some_and(|&(number, _)| number < first || self.arrived.get(number)) {
            self.repeated.pop_front();
        }
        self.lost.retain(|&number| number >= first && !self.arrived.get(number));
    }

    /// The timeout expired: every packet in flight is lost.
    pub fn lose_all(&mut self, acknowledged: u64, next: u64) {
        let (first, end) = (acknowledged.div_ceil(self.mtu), next.div_ceil(self.mtu));
        self.repeated.clear();
        self.lost = (first..end).filter(|&number| !self.arrived.get(number)).collect();
        self.searched = self.searched.max(end);
    }

    /// The timeout expired. While packets that were sent from `since` on arrive, those sent again before them are lost
    /// and the others are still in flight; otherwise every packet in flight is lost.
    pub fn lose_overtaken(&mut self, acknowledged: u64, next: u64, since: Time) {
        if self.newest < since {
            return self.lose_all(acknowledged, next);
        }
        let first = acknowledged.div_ceil(self.mtu);
        let (arrived, newest) = (&self.arrived, self.newest);
        self.repeated.retain(|&(number, _)| number >= first && !arrived.get(number));
        self.lost.extend(self.repeated.iter().filter(|(_, sent)| *sent < newest).map(|(number, _)| number));
        self.lost.make_contiguous().sort_unstable();
        self.repeated.retain(|(_, sent)| *sent >= newest);
    }
}

#[cfg(test)]
mod tests;
