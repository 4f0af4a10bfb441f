//! The PINT digest of a packet: the part that is already encoded, and what hops observed since.
//!
//! A digest is a function of the packet's id and of what each hop observed. Switches therefore only note what they observe. The notes
//! of all hops are encoded together when the digest is read, or when there is no place for another note. The digest has the same bits
//! as if every hop had encoded its own part, and packets whose digest is not read cost no encoding.
//!
//! A digest uses the places of INT records after its packet, each as four 32-bit words ([`IntRecord::words`]):
//!
//! | place | words |
//! |---|---|
//! | 0, head | hops; set, number of notes and [`LOOPED`]; digest (two words) |
//! | 1, origin | arrival time at the switch (two words); packet id (two words) |
//! | 2 to 7, notes | node; ingress and egress port; value (two words) |

use super::int::IntRecord;
use crate::units::Time;

/// Maximum number of notes of a packet. Mostly a switch takes one note.
pub const MAX_NOTES: usize = 6;
/// Places of a packet.
pub const PLACES: usize = 2 + MAX_NOTES;
/// The set of a packet that serves no query.
pub const NO_SET: u32 = 0xffff;
/// Set in the head if a hop has found the packet in a loop.
const LOOPED: u32 = 1 << 31;

/// The digest of one packet, in its places.
pub struct PacketDigest<'a>(&'a mut [IntRecord]);

/// A value that a hop observed. Ports are local to the node.
#[derive(Clone, Copy)]
pub struct Note {
    pub node: u32,
    pub ingress: u16,
    pub egress: u16,
    pub value: u64,
}

impl Note {
    #[inline(always)]
    pub fn of(place: &IntRecord) -> Note {
        let [node, ports, low, high] = place.words();
        Note { node, ingress: ports as u16, egress: (ports >> 16) as u16, value: whole(low, high) }
    }
}

/// Number of notes of a packet with this head.
#[inline(always)]
fn note_count(head: &IntRecord) -> usize {
    ((head.words()[1] & !LOOPED) >> 16) as usize
}

fn halves(number: u64) -> (u32, u32) {
    (number as u32, (number >> 32) as u32)
}

fn whole(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

impl<'a> PacketDigest<'a> {
    /// `places`: [`PLACES`] places, or only those in use if no further note is taken.
    #[inline(always)]
    pub fn of(places: &'a mut [IntRecord]) -> PacketDigest<'a> {
        PacketDigest(places)
    }

    /// Number of places in use by a packet with this head.
    #[inline(always)]
    pub fn places_in_use(head: &IntRecord) -> usize {
        (2 + note_count(head)).min(PLACES)
    }

    #[inline(always)]
    fn head(&self) -> [u32; 4] {
        self.0[0].words()
    }

    #[inline(always)]
    fn origin(&self) -> [u32; 4] {
        self.0[1].words()
    }

    /// Starts an empty digest when the packet leaves its sender. `set`: [`NO_SET`] for none.
    #[inline]
    pub fn begin(&mut self, packet: u64, set: u32) {
        let [_, _, low, high] = self.0[1].words_mut();
        (*low, *high) = halves(packet);
        self.0[0] = IntRecord::from_words([0, set & NO_SET, 0, 0]);
    }

    /// Id of the packet for which the digest was started.
    #[inline(always)]
    pub fn packet(&self) -> u64 {
        let [_, _, low, high] = self.origin();
        whole(low, high)
    }

    /// Set of queries that the packet serves; [`NO_SET`] for none.
    #[inline(always)]
    pub fn set(&self) -> u32 {
        self.head()[1] & NO_SET
    }

    /// Number of switches passed.
    #[inline(always)]
    pub fn hops(&self) -> u32 {
        self.head()[0]
    }

    #[inline(always)]
    pub fn count_hop(&mut self) {
        *self.0[0].words_mut()[0] += 1;
    }

    /// The encoded part of the digest.
    #[inline(always)]
    pub fn encoded(&self) -> u64 {
        let [_, _, low, high] = self.head();
        whole(low, high)
    }

    /// Whether a hop of the encoded part has found the packet in a loop.
    #[inline]
    pub fn looped(&self) -> bool {
        self.head()[1] & LOOPED != 0
    }

    /// Notes that are not encoded yet, in order of hops; [`Note::of`] reads one.
    #[inline(always)]
    pub fn notes(&self) -> &[IntRecord] {
        &self.0[2..2 + note_count(&self.0[0])]
    }

    /// Stores the digest with all notes encoded, and removes the notes.
    #[inline]
    pub fn set_encoded(&mut self, digest: u64, looped: bool) {
        let [_, set, low, high] = self.0[0].words_mut();
        *set &= NO_SET | LOOPED;
        *set |= if looped { LOOPED } else { 0 };
        (*low, *high) = halves(digest);
    }

    /// Whether there are places for this number of further notes.
    #[inline(always)]
    pub fn has_room_for(&self, notes: usize) -> bool {
        note_count(&self.0[0]) + notes <= MAX_NOTES
    }

    /// Adds a note, for which there must be a place.
    #[inline(always)]
    pub fn note(&mut self, note: Note) {
        let place = 2 + note_count(&self.0[0]);
        *self.0[0].words_mut()[1] += 1 << 16;
        let (low, high) = halves(note.value);
        let ports = u32::from(note.egress) << 16 | u32::from(note.ingress);
        self.0[place] = IntRecord::from_words([note.node, ports, low, high]);
    }

    /// Arrival time at the last switch in which the packet was queued.
    #[inline(always)]
    pub fn arrival(&self) -> Time {
        let [low, high, _, _] = self.origin();
        Time(whole(low, high))
    }

    #[inline]
    pub fn set_arrival(&mut self, at: Time) {
        let [low, high, _, _] = self.0[1].words_mut();
        (*low, *high) = halves(at.0);
    }
}
