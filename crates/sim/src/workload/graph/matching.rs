//! Which receive gets which message: the oldest receive that was posted for its source and tag (or for any),
//! or, for a receive, the oldest message that waits.

use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// A source and a tag; none: any.
pub type Key = (Option<u32>, Option<u32>);

/// Receives and messages of one rank that have not met.
#[derive(Debug, Default)]
pub struct Matching {
    /// Receives by what they ask for, each with its turn.
    posted: FxHashMap<Key, VecDeque<(u64, u32)>>,
    /// Messages by source and tag, each with its turn.
    unexpected: FxHashMap<(u32, u32), VecDeque<(u64, u32)>>,
    turn: u64,
    /// Receives posted so far for any source or any tag: without them there is one place to look.
    wild: bool,
}

impl Matching {
    /// A receive is posted: the message for it, if one waits.
    pub fn post(&mut self, (from, tag): Key, receive: u32) -> Option<u32> {
        let message = match (from, tag) {
            (Some(from), Some(tag)) => take(&mut self.unexpected, (from, tag)),
            _ => {
                self.wild = true;
                let fits =
                    |key: &(u32, u32)| from.is_none_or(|f| f == key.0) && tag.is_none_or(|t| t == key.1);
                let waiting = self.unexpected.iter().filter(|(key, _)| fits(key));
                let oldest = waiting.filter_map(|(key, line)| Some((line.front()?.0, *key))).min();
                oldest.and_then(|(_, key)| take(&mut self.unexpected, key))
            }
        };
        if message.is_none() {
            self.turn += 1;
            self.posted.entry((from, tag)).or_default().push_back((self.turn, receive));
        }
        message
    }

    /// A message has come: the receive for it, if one is posted.
    pub fn arrive(&mut self, from: u32, tag: u32, message: u32) -> Option<u32> {
        let exact = (Some(from), Some(tag));
        let receive = if self.wild {
            let keys = [exact, (Some(from), None), (None, Some(tag)), (None, None)];
            let front = |key: &Key| Some((self.posted.get(key)?.front()?.0, *key));
            let oldest = keys.iter().filter_map(front).min();
            oldest.and_then(|(_, key)| take(&mut self.posted, key))
        } else {
            take(&mut self.posted, exact)
        };
        if receive.is_none() {
            self.turn += 1;
            self.unexpected.entry((from, tag)).or_default().push_back((self.turn, message));
        }
        receive
    }

    /// The receives that wait, with what they ask for, oldest first.
    pub fn waiting(&self) -> Vec<(Key, u32)> {
        let lines = self.posted.iter().flat_map(|(key, line)| line.iter().map(move |one| (*one, *key)));
        let mut all: Vec<((u64, u32), Key)> = lines.collect();
        all.sort_unstable();
        all.into_iter().map(|((_, receive), key)| (key, receive)).collect()
    }

    /// The messages for which no receive was posted, oldest first: (source, tag).
    pub fn unexpected(&self) -> Vec<(u32, u32)> {
        let lines = self.unexpected.iter().flat_map(|(key, line)| line.iter().map(move |one| (one.0, *key)));
        let mut all: Vec<(u64, (u32, u32))> = lines.collect();
        all.sort_unstable();
        all.into_iter().map(|(_, key)| key).collect()
    }
}

/// Takes the first of a line; an empty line is no longer kept.
fn take<K: std::hash::Hash + Eq>(lines: &mut FxHashMap<K, VecDeque<(u64, u32)>>, key: K) -> Option<u32> {
    let line = lines.get_mut(&key)?;
    let first = line.pop_front();
    if line.is_empty() {
        lines.remove(&key);
    }
    first.map(|(_, what)| what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_meets_the_oldest_receive_that_accepts_it() {
        let mut ranks = Matching::default();
        assert_eq!(ranks.post((Some(1), Some(7)), 10), None);
        assert_eq!(ranks.post((None, Some(7)), 11), None);
        assert_eq!(ranks.post((Some(1), None), 12), None);
        assert_eq!(ranks.arrive(2, 7, 100), Some(11));
        assert_eq!(ranks.arrive(1, 7, 101), Some(10));
        assert_eq!(ranks.arrive(1, 8, 102), Some(12));
        assert_eq!(ranks.arrive(1, 8, 103), None);
        assert_eq!(ranks.arrive(3, 9, 104), None);
        assert_eq!(ranks.unexpected(), [(1, 8), (3, 9)]);
        assert_eq!(ranks.post((None, None), 13), Some(103));
        assert_eq!(ranks.post((Some(3), Some(9)), 14), Some(104));
        assert!(ranks.waiting().is_empty());
    }
}
