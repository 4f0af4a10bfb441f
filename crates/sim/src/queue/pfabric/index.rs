//! Data that wait at a port where many do: the packet with the least and the one with the most left are the two ends of
//! an ordered index; the packets of a flow form a chain in the order in which they came. So nothing looks at more than
//! O(log n) packets.

use super::Entry;
use crate::packet::{NONE, PacketId};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

#[derive(Debug, Clone, Default)]
pub struct Index {
    /// By key: place in `places`.
    order: BTreeMap<u64, u32>,
    places: Vec<Place>,
    free: Vec<u32>,
    chains: FxHashMap<u32, Chain>,
}

/// A data packet that waits.
#[derive(Debug, Clone, Copy)]
struct Place {
    entry: Entry,
    /// Its neighbours among the packets of its flow.
    earlier: u32,
    later: u32,
}

/// First and last packet of a flow.
#[derive(Debug, Clone, Copy)]
struct Chain {
    first: u32,
    last: u32,
}

impl Index {
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Takes in a packet that came behind all others.
    pub fn insert(&mut self, entry: Entry) {
        let place = self.free.pop().unwrap_or(self.places.len() as u32);
        let chain = self.chains.entry(entry.flow).or_insert(Chain { first: place, last: NONE });
        let earlier = std::mem::replace(&mut chain.last, place);
        let new = Place { entry, earlier, later: NONE };
        match self.places.get_mut(place as usize) {
            Some(free) => *free = new,
            None => self.places.push(new),
        }
        if earlier != NONE {
            self.places[earlier as usize].later = place;
        }
        self.order.insert(entry.key, place);
    }

    /// Takes out the earliest packet of the flow that has the most urgent one.
    pub fn take_urgent(&mut self) -> Option<PacketId> {
        let (_, &urgent) = self.order.first_key_value()?;
        let head = self.head(urgent)?;
        Some(self.take(head))
    }

    /// The same, of the flows whose earliest packet may leave.
    pub fn take_urgent_where(&mut self, may: impl Fn(PacketId) -> bool) -> Option<PacketId> {
        let heads = self.order.values().filter_map(|&place| self.head(place));
        let head = heads.into_iter().find(|&head| may(self.places[head as usize].entry.packet))?;
        Some(self.take(head))
    }

    /// Takes out the least urgent packet.
    pub fn take_last(&mut self) -> Option<PacketId> {
        let (_, &place) = self.order.last_key_value()?;
        Some(self.take(place))
    }

    /// The earliest packet of the flow that has this one.
    fn head(&self, place: u32) -> Option<u32> {
        let flow = self.places[place as usize].entry.flow;
        self.chains.get(&flow).map(|chain| chain.first)
    }

    fn take(&mut self, place: u32) -> PacketId {
        let Place { entry, earlier, later } = self.places[place as usize];
        self.order.remove(&entry.key);
        self.free.push(place);
        if earlier == NONE && later == NONE {
            self.chains.remove(&entry.flow);
            return entry.packet;
        }
        if earlier != NONE {
            self.places[earlier as usize].later = later;
        } else if let Some(chain) = self.chains.get_mut(&entry.flow) {
            chain.first = later;
        }
        if later != NONE {
            self.places[later as usize].earlier = earlier;
        } else if let Some(chain) = self.chains.get_mut(&entry.flow) {
            chain.last = earlier;
        }
        entry.packet
    }
}
