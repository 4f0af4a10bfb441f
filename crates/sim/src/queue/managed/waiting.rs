//! Packets that wait at a managed port, in lists: each with what disciplines ask about it, so that they need not touch
//! the packet itself.

use crate::engine::random::mix64;
use crate::packet::{NONE, Packet, PacketId};
use crate::units::Time;

/// A packet that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queued {
    pub packet: PacketId,
    /// Bytes that the discipline counts.
    pub size: u32,
    /// When it came.
    pub came: Time,
    /// Names its flow and direction; see [`flow_key`].
    pub key: u64,
    pub flow: u32,
    pub class: u8,
    /// It carries payload.
    pub data: bool,
    /// It may be marked instead of dropped.
    pub capable: bool,
}

/// What tells flows apart, from source, destination and flow: as good as a hash of a five-tuple.
pub fn flow_key(packet: &Packet) -> u64 {
    mix64(mix64(u64::from(packet.src) << 32 | u64::from(packet.dst)) ^ u64::from(packet.flow))
}

/// First come, first served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct List {
    head: u32,
    tail: u32,
    pub packets: u32,
    pub bytes: u64,
}

impl Default for List {
    fn default() -> List {
        List { head: NONE, tail: NONE, packets: 0, bytes: 0 }
    }
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    queued: Queued,
    next: u32,
}

/// The packets of all lists of a port.
#[derive(Debug, Clone)]
pub struct Waiting {
    entries: Vec<Entry>,
    free: u32,
    packets: u32,
    bytes: u64,
}

impl Default for Waiting {
    fn default() -> Waiting {
        Waiting { entries: Vec::new(), free: NONE, packets: 0, bytes: 0 }
    }
}

impl Waiting {
    pub fn packets(&self) -> u32 {
        self.packets
    }
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
    pub fn is_empty(&self) -> bool {
        self.packets == 0
    }

    pub fn push(&mut self, list: &mut List, queued: Queued) {
        let entry = Entry { queued, next: NONE };
        let place = self.free;
        let place = match self.entries.get_mut(place as usize) {
            Some(free) => {
                self.free = free.next;
                *free = entry;
                place
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
        };
        match list.tail {
            NONE => list.head = place,
            tail => self.entries[tail as usize].next = place,
        }
        list.tail = place;
        list.packets += 1;
        list.bytes += u64::from(queued.size);
        self.packets += 1;
        self.bytes += u64::from(queued.size);
    }

    /// The oldest of a list.
    pub fn first(&self, list: &List) -> Option<&Queued> {
        self.entries.get(list.head as usize).map(|entry| &entry.queued)
    }

    /// The youngest of a list.
    pub fn last(&self, list: &List) -> Option<&Queued> {
        self.entries.get(list.tail as usize).map(|entry| &entry.queued)
    }

    /// Puts a packet in the place of the youngest of a list, which it returns.
    pub fn replace_last(&mut self, list: &mut List, queued: Queued) -> Option<Queued> {
        let entry = self.entries.get_mut(list.tail as usize)?;
        let last = std::mem::replace(&mut entry.queued, queued);
        list.bytes = list.bytes + u64::from(queued.size) - u64::from(last.size);
        self.bytes = self.bytes + u64::from(queued.size) - u64::from(last.size);
        Some(last)
    }

    /// Takes the oldest of a list.
    pub fn pop(&mut self, list: &mut List) -> Option<Queued> {
        let place = list.head;
        let Entry { queued, next } = *self.entries.get(place as usize)?;
        list.head = next;
        if next == NONE {
            list.tail = NONE;
        }
        list.packets -= 1;
        list.bytes -= u64::from(queued.size);
        self.entries[place as usize] = Entry { queued: Queued { packet: NONE, ..queued }, next: self.free };
        self.free = place;
        self.packets -= 1;
        self.bytes -= u64::from(queued.size);
        Some(queued)
    }

    /// Everything that waits; the lists are to be forgotten.
    pub fn take_all(&mut self) -> Vec<Queued> {
        let waiting = std::mem::take(self).entries.into_iter().map(|entry| entry.queued);
        waiting.filter(|queued| queued.packet != NONE).collect()
    }
}
