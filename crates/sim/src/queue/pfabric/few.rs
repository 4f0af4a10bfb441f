//! Data that wait at a port where few do: packets in a list for each flow, as they came, and flows in no order. A port has few
//! flows even where it has many packets; looking at all of them is faster than to keep them in order.

use super::Entry;
use crate::packet::{NONE, PacketId};

/// So many packets at most.
pub const MAX_PACKETS: usize = 32;

#[derive(Debug, Clone)]
#[repr(C)]
pub struct Few {
    /// A bit for every place that holds a packet.
    taken: u32,
    count: usize,
    flows: [Flow; MAX_PACKETS],
    /// Of each packet, the place of the next one of its flow, if there is one.
    next: [u8; MAX_PACKETS],
    entries: [Entry; MAX_PACKETS],
}

/// Packets of a flow, the earliest one first.
#[derive(Debug, Clone, Copy)]
struct Flow {
    /// Of its most urgent packet.
    min_key: u64,
    flow: u32,
    first: u8,
    last: u8,
}

const _: () = assert!(MAX_PACKETS == u32::BITS as usize);

impl Default for Few {
    fn default() -> Few {
        Few {
            taken: 0,
            count: 0,
            entries: [Entry { key: 0, packet: NONE, flow: 0 }; MAX_PACKETS],
            next: [0; MAX_PACKETS],
            flows: [Flow { min_key: 0, flow: 0, first: 0, last: 0 }; MAX_PACKETS],
        }
    }
}

impl Few {
    pub fn is_empty(&self) -> bool {
        self.taken == 0
    }

    fn flows(&self) -> &[Flow] {
        &self.flows[..self.count]
    }

    /// The places of all packets.
    fn places(&self) -> impl Iterator<Item = usize> + use<> {
        let mut left = self.taken;
        std::iter::from_fn(move || {
            let place = left.trailing_zeros() as usize;
            left &= left.wrapping_sub(1);
            (place < MAX_PACKETS).then_some(place)
        })
    }

    /// The places of a flow's packets, from the earliest one on.
    fn places_of(&self, flow: &Flow) -> impl Iterator<Item = usize> + '_ {
        let (mut next, last) = (Some(flow.first), flow.last);
        std::iter::from_fn(move || {
            let place = next?;
            next = (place != last).then(|| self.next[usize::from(place)]);
            Some(usize::from(place))
        })
    }

    /// Takes in a packet that came behind all others; whether there was room for it.
    #[inline]
    pub fn insert(&mut self, entry: Entry) -> bool {
        let place = (!self.taken).trailing_zeros() as usize;
        if place == MAX_PACKETS {
            return false;
        }
        self.taken |= 1 << place;
        self.entries[place] = entry;
        match self.flows[..self.count].iter_mut().find(|known| known.flow == entry.flow) {
            Some(known) => {
                self.next[usize::from(known.last)] = place as u8;
                known.last = place as u8;
                known.min_key = known.min_key.min(entry.key);
            }
            None => {
                let (first, last) = (place as u8, place as u8);
                self.flows[self.count] = Flow { min_key: entry.key, flow: entry.flow, first, last };
                self.count += 1;
            }
        }
        true
    }

    /// Hands out all, in the order in which they came.
    pub fn drain(&mut self) -> impl Iterator<Item = Entry> + use<> {
        let mut all: Vec<Entry> = self.places().map(|place| self.entries[place]).collect();
        all.sort_unstable_by_key(|entry| entry.key as u32);
        (self.taken, self.count) = (0, 0);
        all.into_iter()
    }

    /// Takes out the earliest packet of the flow that has the most urgent one, and names the one after it; none:
    /// [`NONE`].
    #[inline]
    pub fn take_urgent(&mut self) -> Option<(PacketId, PacketId)> {
        // Without branches on what is compared, which nobody can guess.
        let (mut min_key, mut urgent) = (u64::MAX, 0);
        for (at, flow) in self.flows().iter().enumerate() {
            let less = flow.min_key <= min_key;
            min_key = if less { flow.min_key } else { min_key };
            urgent = if less { at } else { urgent };
        }
        (self.count > 0).then(|| self.take_first(urgent))
    }

    /// The same, of the flows whose earliest packet may leave.
    #[cold]
    pub fn take_urgent_where(&mut self, may: impl Fn(PacketId) -> bool) -> Option<PacketId> {
        let flows = self.flows().iter().enumerate();
        let free = flows.filter(|(_, flow)| may(self.entries[usize::from(flow.first)].packet));
        let (at, _) = free.min_by_key(|(_, flow)| flow.min_key)?;
        Some(self.take_first(at).0)
    }

    /// Takes out the earliest packet of a flow, and names the one after it.
    #[inline]
    fn take_first(&mut self, at: usize) -> (PacketId, PacketId) {
        let flow = &mut self.flows[at];
        let place = usize::from(flow.first);
        let Entry { key, packet, .. } = self.entries[place];
        self.taken &= !(1 << place);
        if flow.first == flow.last {
            self.count -= 1;
            self.flows[at] = self.flows[self.count];
            return (packet, NONE);
        }
        flow.first = self.next[place];
        let next = self.entries[usize::from(flow.first)];
        if key == flow.min_key {
            // All others have as much left or more, and the next is the earliest of them.
            flow.min_key = next.key;
            if next.key >> 32 != key >> 32 {
                self.find_min_key(at);
            }
        }
        (packet, next.packet)
    }

    /// Looks for the most urgent packet of a flow.
    #[inline(never)]
    fn find_min_key(&mut self, at: usize) {
        let keys = self.places_of(&self.flows[at]).map(|place| self.entries[place].key);
        self.flows[at].min_key = keys.min().unwrap_or(u64::MAX);
    }

    /// Takes out the least urgent packet.
    #[cold]
    pub fn take_last(&mut self) -> Option<PacketId> {
        let place = self.places().max_by_key(|&place| self.entries[place].key)?;
        let Entry { flow, packet, .. } = self.entries[place];
        let at = self.flows().iter().position(|known| known.flow == flow)?;
        let before = self.places_of(&self.flows[at]).take_while(|&other| other != place).last();
        let Some(before) = before else { return Some(self.take_first(at).0) };
        self.taken &= !(1 << place);
        if usize::from(self.flows[at].last) == place {
            self.flows[at].last = before as u8;
        } else {
            self.next[before] = self.next[place];
        }
        self.find_min_key(at);
        Some(packet)
    }
}
