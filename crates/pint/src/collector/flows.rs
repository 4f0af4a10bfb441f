//! The table of flows: found by key, kept in the order in which they were seen last, counted in bytes.

use std::collections::HashMap;

use super::keyed::Keyed;
use crate::recorded::Flow;

const NONE: u32 = u32::MAX;

/// A flow under one of the plan's keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct FlowId {
    /// Which of the collector's keys.
    pub group: u8,
    /// Hops of the packets, where each number has a record of its own, else 0.
    pub hops: u8,
    pub flow: Flow,
}

#[derive(Debug)]
struct Slot<T> {
    id: FlowId,
    /// The collector's clock when the flow was seen last.
    seen_ns: u64,
    /// Bytes that the record holds beyond its own size.
    bytes: usize,
    record: T,
}

/// The flows that were seen before and after one.
#[derive(Debug, Clone, Copy)]
struct Link {
    older: u32,
    newer: u32,
}

/// Records of type `T`, each with its share of the memory. Slots of removed flows stay in the table's bytes:
/// they are reused.
#[derive(Debug)]
pub(super) struct Flows<T> {
    // Its order is never used, so results do not depend on the random keys that keep hostile flows from
    // colliding.
    places: HashMap<FlowId, u32, Keyed>,
    slots: Vec<Option<Box<Slot<T>>>>,
    /// Of each slot. Apart from the slots: that a flow was seen changes those of two others.
    links: Vec<Link>,
    free: Vec<u32>,
    oldest: u32,
    newest: u32,
    bytes: usize,
}

impl<T> Flows<T> {
    /// Bytes of a record's place itself, allocator's rounding included.
    const PLACE: usize = size_of::<Slot<T>>() + 16;
    /// Bytes of table per slot: pointer, links, its mention in `free`, and the entry of `places`. That table
    /// is between 7/32 and 7/8 full: it doubles when half of its places are taken and the others are those of
    /// removed flows.
    const SLOT: usize =
        2 * (size_of::<usize>() + size_of::<Link>() + 4) + 32 * (size_of::<(FlowId, u32)>() + 1) / 7;

    pub fn new() -> Flows<T> {
        Flows {
            places: HashMap::default(),
            slots: Vec::new(),
            links: Vec::new(),
            free: Vec::new(),
            oldest: NONE,
            newest: NONE,
            bytes: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Bytes that the table and its records take.
    pub fn bytes(&self) -> usize {
        self.bytes + self.slots.len() * Self::SLOT
    }

    pub fn find(&self, id: &FlowId) -> Option<u32> {
        self.places.get(id).copied()
    }

    pub fn get(&self, place: u32) -> Option<&T> {
        self.slots.get(place as usize)?.as_ref().map(|slot| &slot.record)
    }

    pub fn get_mut(&mut self, place: u32) -> Option<&mut T> {
        self.slots.get_mut(place as usize)?.as_mut().map(|slot| &mut slot.record)
    }

    /// The record of a flow, made by `start` if there is none, and its place; the flow is now the one seen
    /// last.
    pub fn touch(&mut self, id: FlowId, now_ns: u64, start: impl FnOnce() -> (T, usize)) -> (u32, &mut T) {
        let place = match self.places.get(&id) {
            Some(&place) if place == self.newest => place,
            Some(&place) => {
                self.unlink(place);
                self.link_newest(place);
                place
            }
            None => {
                let place = self.insert(id, start());
                self.link_newest(place);
                place
            }
        };
        let slot = self.slot(place);
        slot.seen_ns = now_ns;
        (place, &mut slot.record)
    }

    fn insert(&mut self, id: FlowId, (record, bytes): (T, usize)) -> u32 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.links.push(Link { older: NONE, newer: NONE });
            self.slots.len() as u32 - 1
        });
        self.slots[place as usize] = Some(Box::new(Slot { id, seen_ns: 0, bytes, record }));
        self.places.insert(id, place);
        self.bytes += bytes + Self::PLACE;
        place
    }

    /// The record at a place in use grew by `by` bytes.
    pub fn grow(&mut self, place: u32, by: isize) {
        let slot = self.slot(place);
        slot.bytes = slot.bytes.saturating_add_signed(by);
        self.bytes = self.bytes.saturating_add_signed(by);
    }

    /// Puts another record in a place in use and returns the one before.
    pub fn replace(&mut self, place: u32, (record, bytes): (T, usize)) -> T {
        let slot = self.slot(place);
        let before = std::mem::replace(&mut slot.bytes, bytes);
        let old = std::mem::replace(&mut slot.record, record);
        self.bytes = self.bytes + bytes - before;
        old
    }

    /// The collector's clock when the flow was seen that was not seen for longest.
    pub fn oldest_ns(&self) -> Option<u64> {
        Some(self.slots.get(self.oldest as usize)?.as_ref()?.seen_ns)
    }

    /// Takes the flow out that was not seen for longest.
    pub fn pop_oldest(&mut self) -> Option<(FlowId, T)> {
        let place = self.oldest;
        self.get(place)?;
        self.unlink(place);
        let slot = self.slots[place as usize].take()?;
        self.free.push(place);
        self.places.remove(&slot.id);
        self.bytes -= slot.bytes + Self::PLACE;
        Some((slot.id, slot.record))
    }

    /// All flows, those first that were not seen for longest.
    pub fn iter(&self) -> impl Iterator<Item = (&FlowId, &T)> {
        let link = |place: u32| self.links.get(place as usize).map(|link| (place, link.newer));
        std::iter::successors(link(self.oldest), move |&(_, newer)| link(newer))
            .filter_map(|(place, _)| self.slots.get(place as usize)?.as_deref())
            .map(|slot| (&slot.id, &slot.record))
    }

    fn slot(&mut self, place: u32) -> &mut Slot<T> {
        // Places come from `places` and the links, which name slots in use only.
        self.slots[place as usize].as_mut().expect("a linked slot is in use")
    }

    fn unlink(&mut self, place: u32) {
        let Link { older, newer } = self.links[place as usize];
        match older {
            NONE => self.oldest = newer,
            _ => self.links[older as usize].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            _ => self.links[newer as usize].older = older,
        }
    }

    fn link_newest(&mut self, place: u32) {
        let before = std::mem::replace(&mut self.newest, place);
        self.links[place as usize] = Link { older: before, newer: NONE };
        match before {
            NONE => self.oldest = place,
            _ => self.links[before as usize].newer = place,
        }
    }
}

#[cfg(test)]
mod tests;
