//! A connection's stream at its receiver: puts together what comes by all subflows.
//!
//! Every segment says which bytes of the connection it has. What is in order is read at once; what lies beyond a hole waits
//! in the receive buffer, which all subflows share.
//!
//! Source: RFC 8684 §3.3.1, §3.3.4.
//! Differs from the source: bytes count as soon as they have come, also those that are out of order on their subflow.

use std::collections::{BTreeMap, VecDeque};

#[derive(Debug, Default)]
pub struct Assembly {
    expected: u64,
    /// Blocks beyond the first hole: first byte, and the one behind the last.
    beyond: BTreeMap<u64, u64>,
    /// Bytes that lie there, and the most that ever did.
    waiting: u64,
    max_waiting: u64,
    /// Where flows end that have not arrived, as far as is known, in order.
    ends: VecDeque<u64>,
}

impl Assembly {
    /// Every byte below has come.
    pub fn expected(&self) -> u64 {
        self.expected
    }

    pub fn is_complete(&self) -> bool {
        self.ends.front().is_some_and(|&end| end <= self.expected)
    }

    /// Whether a flow has arrived since this was asked last: the connection goes on to the next one.
    pub fn take_end(&mut self) -> bool {
        let arrived = self.is_complete();
        if arrived {
            self.ends.pop_front();
        }
        arrived
    }

    /// The most bytes that waited since this was asked last.
    pub fn take_max_waiting(&mut self) -> u64 {
        std::mem::replace(&mut self.max_waiting, self.waiting)
    }

    /// All of these bytes have come.
    pub fn has(&self, first: u64, bytes: u64) -> bool {
        let end = first + bytes;
        let block = || self.beyond.range(..=first).next_back();
        end <= self.expected || block().is_some_and(|(_, &to)| end <= to)
    }

    /// Bytes from `first` on have come, a flow's last among them if `last`; how many are in order now that were not.
    pub fn take(&mut self, first: u64, bytes: u64, last: bool) -> u64 {
        let (before, end) = (self.expected, first + bytes);
        if last && end > self.expected && !self.ends.contains(&end) {
            let place = self.ends.partition_point(|&other| other < end);
            self.ends.insert(place, end);
        }
        if first > self.expected {
            self.keep(first, end);
            self.max_waiting = self.max_waiting.max(self.waiting);
            return 0;
        }
        self.expected = self.expected.max(end);
        while let Some(block) = self.beyond.first_entry().filter(|block| *block.key() <= self.expected) {
            let (from, to) = block.remove_entry();
            self.waiting -= to - from;
            self.expected = self.expected.max(to);
        }
        self.expected - before
    }

    /// Keeps bytes beyond a hole, joined with blocks that they touch.
    fn keep(&mut self, mut first: u64, mut end: u64) {
        while let Some((&from, &to)) = self.beyond.range(..=end).next_back().filter(|&(_, &to)| to >= first) {
            (first, end) = (first.min(from), end.max(to));
            self.beyond.remove(&from);
            self.waiting -= to - from;
        }
        self.beyond.insert(first, end);
        self.waiting += end - first;
    }
}

#[cfg(test)]
mod tests;
