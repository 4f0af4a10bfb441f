//! The packets that a record has used lately: a second digest of one of them tells nothing new.
//!
//! The id of a packet decides which hops write and which hop's value stays. So a digest that comes twice
//! agrees with itself, however wrong the path is that was made of it, and is the same sample of the same hop.
//! Packets are retransmitted under their old id, mirrored twice, or in two files that overlap.
//!
//! Ids are kept as 32 bits of a hash, in two sets of which the older one goes when the newer one is full: a
//! packet is recognised while at most [`REMEMBERED`] others were used since, and possibly up to twice as
//! long. Two packets of a record are taken for one with a probability of 2 [`REMEMBERED`] / 2^32 at most,
//! whatever their values.
//!
//! Source: ours; the paper assumes that packets have different ids.

use crate::hash::mix;

/// Other packets after which a repeat is recognised in any case: at 1 500 bytes those of 92 us at 100 Gbit/s,
/// which is more than a window of retransmissions in a data centre.
pub const REMEMBERED: usize = 768;
/// Places of a set when it is created; their number doubles when three quarters are used.
const MIN_PLACES: usize = 16;
const MAX_PLACES: usize = REMEMBERED / 3 * 4;

/// A set of hashes that are not 0, in which 0 is an empty place; a hash is at the first free place from its
/// own.
#[derive(Debug, Default)]
struct Hashes {
    places: Box<[u32]>,
    len: usize,
}

impl Hashes {
    /// Where the hash is, or the free place where it belongs; None if there is no place at all.
    #[inline]
    fn place(&self, hash: u32) -> Option<usize> {
        let mask = self.places.len().checked_sub(1)?;
        let mut place = hash as usize & mask;
        while self.places[place] != 0 && self.places[place] != hash {
            place = (place + 1) & mask;
        }
        Some(place)
    }

    #[inline]
    fn contains(&self, hash: u32) -> bool {
        self.place(hash).is_some_and(|place| self.places[place] == hash)
    }

    /// Adds a hash that is not in it. There must be a free place beyond the one that it takes.
    fn insert(&mut self, hash: u32) {
        if let Some(place) = self.place(hash) {
            self.places[place] = hash;
            self.len += 1;
        }
    }

    fn grow(&mut self) {
        let more = vec![0; (2 * self.places.len()).max(MIN_PLACES)].into_boxed_slice();
        let before = std::mem::replace(self, Hashes { places: more, len: 0 });
        before.places.iter().filter(|&&hash| hash != 0).for_each(|&hash| self.insert(hash));
    }

    fn clear(&mut self) {
        self.places.fill(0);
        self.len = 0;
    }
}

/// The packets that were used lately.
#[derive(Debug, Default)]
pub(super) struct UsedPackets {
    newer: Hashes,
    older: Hashes,
}

impl UsedPackets {
    /// Whether the packet was used lately.
    #[inline]
    pub fn contains(&self, packet: u64) -> bool {
        let hash = hash(packet);
        self.newer.contains(hash) || self.older.contains(hash)
    }

    /// The packet is used now, again or for the first time.
    pub fn insert(&mut self, packet: u64) {
        let hash = hash(packet);
        if self.newer.contains(hash) {
            return;
        }
        if self.newer.len == REMEMBERED {
            std::mem::swap(&mut self.newer, &mut self.older);
            self.newer.clear();
        }
        if 4 * self.newer.len >= 3 * self.newer.places.len() && self.newer.places.len() < MAX_PLACES {
            self.newer.grow();
        }
        self.newer.insert(hash);
    }

    /// Bytes beyond its own size; costs nothing to ask.
    pub fn bytes(&self) -> usize {
        (self.newer.places.len() + self.older.places.len()) * size_of::<u32>()
    }
}

/// Not 0.
#[inline]
fn hash(packet: u64) -> u32 {
    ((mix(packet) >> 32) as u32).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_known_until_so_many_others_were_used_and_memory_is_bounded() {
        let mut used = UsedPackets::default();
        assert_eq!((used.contains(0), used.bytes()), (false, 0));
        for packet in 0..10_000u64 {
            assert!(!used.contains(packet), "{packet}");
            used.insert(packet);
            let first = packet.saturating_sub(REMEMBERED as u64);
            assert!((first..=packet).all(|before| used.contains(before)), "{packet}");
            assert!(used.bytes() <= 8 * MAX_PLACES);
        }
        assert!((0..8_000).all(|packet| !used.contains(packet)));
        // One that is used again and again stays.
        for packet in 10_000..20_000 {
            used.insert(9_999);
            used.insert(packet);
        }
        assert!(used.contains(9_999));
    }
}
