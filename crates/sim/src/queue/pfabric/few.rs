//! Data that wait at a port where few do, in the order in which they came. Looking at all of them, one behind the other in
//! memory, is faster than to keep them in any other order.

use super::Entry;
use crate::packet::{NONE, PacketId};

/// So many at most.
pub const MOST: usize = 32;

#[derive(Debug, Clone)]
pub struct Few {
    count: usize,
    entries: [Entry; MOST],
}

impl Default for Few {
    fn default() -> Few {
        Few { count: 0, entries: [Entry { key: 0, packet: NONE, flow: 0 }; MOST] }
    }
}

impl Few {
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn entries(&self) -> &[Entry] {
        &self.entries[..self.count]
    }

    /// Takes in a packet that came behind all others; whether there was room for it.
    #[inline]
    pub fn insert(&mut self, entry: Entry) -> bool {
        let place = self.entries.get_mut(self.count);
        place.map(|place| *place = entry).inspect(|()| self.count += 1).is_some()
    }

    /// Hands out all, in order.
    pub fn drain(&mut self) -> impl Iterator<Item = Entry> + '_ {
        let count = std::mem::take(&mut self.count);
        self.entries[..count].iter().copied()
    }

    /// Takes out the earliest packet of the flow that has the most urgent one.
    #[inline]
    pub fn take_urgent(&mut self) -> Option<PacketId> {
        let urgent = self.entries().iter().min_by_key(|entry| entry.key)?.flow;
        let head = self.entries().iter().position(|entry| entry.flow == urgent)?;
        Some(self.take(head))
    }

    /// The same, of the flows whose earliest packet may leave.
    #[cold]
    pub fn take_urgent_where(&mut self, may: impl Fn(PacketId) -> bool) -> Option<PacketId> {
        let is_head =
            |&(at, entry): &(usize, &Entry)| self.entries[..at].iter().all(|other| other.flow != entry.flow);
        let least = |flow: u32| self.entries().iter().filter(|e| e.flow == flow).map(|e| e.key).min();
        let heads = self.entries().iter().enumerate().filter(is_head);
        let (at, _) = heads.filter(|(_, head)| may(head.packet)).min_by_key(|(_, head)| least(head.flow))?;
        Some(self.take(at))
    }

    /// Takes out the least urgent packet.
    #[inline]
    pub fn take_last(&mut self) -> Option<PacketId> {
        let (at, _) = self.entries().iter().enumerate().max_by_key(|(_, entry)| entry.key)?;
        Some(self.take(at))
    }

    #[inline]
    fn take(&mut self, at: usize) -> PacketId {
        let packet = self.entries[at].packet;
        self.count -= 1;
        for place in at..self.count.min(MOST - 1) {
            self.entries[place] = self.entries[place + 1];
        }
        packet
    }
}
