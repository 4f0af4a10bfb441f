//! What a packet carries of PINT in a run: its digest, as far as it is encoded, and what hops saw that is not encoded yet.
//!
//! A digest is a function of the packet's id and of what each hop saw, and of nothing else. So a switch only notes what it sees, and
//! the hops' parts are encoded together where the digest is read, or where there is no room for another note. The digest is the same
//! to the bit; the queries of a packet that nobody reads cost nothing.
//!
//! It lies in the places of a stack of INT records: in the first one the number of hops, set and digest, in the second one the packet's
//! id and since when it waits, then the notes, each hop's in one place or more.

use super::int::IntRecord;
use crate::units::Time;

/// Notes that a packet has room for: paths of that many switches, mostly.
pub const ROOM: usize = 6;
/// Places that a packet has.
pub const PLACES: usize = 2 + ROOM;
/// The set of a packet that serves no query.
pub const NO_SET: u32 = 0xffff;
/// Beside set and number of notes: a hop has found the packet in a loop.
const LOOPED: u32 = 1 << 31;

/// What a packet carries.
pub struct Carried<'a>(&'a mut [IntRecord]);

/// One value that a hop saw, and where.
#[derive(Clone, Copy)]
pub struct Note {
    pub node: u32,
    /// Local ports.
    pub ingress: u16,
    pub egress: u16,
    pub value: u64,
}

impl Note {
    #[inline(always)]
    pub fn of(place: &IntRecord) -> Note {
        let (ingress, egress) = (place.sent as u16, (place.sent >> 16) as u16);
        Note { node: place.time, ingress, egress, value: whole(place.queue, place.rate_kbps) }
    }
}

/// Notes of a packet whose first place is this.
#[inline(always)]
fn noted(head: &IntRecord) -> usize {
    ((head.sent & !LOOPED) >> 16) as usize
}

fn halves(number: u64) -> (u32, u32) {
    (number as u32, (number >> 32) as u32)
}

fn whole(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

impl<'a> Carried<'a> {
    /// `places`: [`PLACES`] of them, or those in use where nothing more is noted.
    #[inline(always)]
    pub fn of(places: &'a mut [IntRecord]) -> Carried<'a> {
        Carried(places)
    }

    /// Of a packet whose first place is this.
    #[inline(always)]
    pub(super) fn places_in_use(head: &IntRecord) -> usize {
        2 + noted(head)
    }

    /// A packet leaves its sender: no hops, no digest. `set`: [`NO_SET`] for none.
    #[inline]
    pub fn begin(&mut self, packet: u64, set: u32) {
        (self.0[1].queue, self.0[1].rate_kbps) = halves(packet);
        self.0[0] = IntRecord { sent: set & NO_SET, ..IntRecord::default() };
    }

    /// The id of the packet that the digest was put into.
    #[inline(always)]
    pub fn packet(&self) -> u64 {
        whole(self.0[1].queue, self.0[1].rate_kbps)
    }

    /// The set of queries that it serves; [`NO_SET`] for none.
    #[inline(always)]
    pub fn set(&self) -> u32 {
        self.0[0].sent & NO_SET
    }

    /// Switches so far.
    #[inline(always)]
    pub fn hops(&self) -> u32 {
        self.0[0].time
    }

    /// One more switch.
    #[inline(always)]
    pub fn count_hop(&mut self) {
        self.0[0].time += 1;
    }

    /// The digest as far as it is encoded.
    #[inline(always)]
    pub fn encoded(&self) -> u64 {
        whole(self.0[0].queue, self.0[0].rate_kbps)
    }

    /// Whether a hop, as far as it is encoded, has found the packet in a loop.
    #[inline]
    pub fn looped(&self) -> bool {
        self.0[0].sent & LOOPED != 0
    }

    /// What was noted since, hop after hop; [`Note::of`] reads one.
    #[inline(always)]
    pub fn notes(&self) -> &[IntRecord] {
        &self.0[2..2 + noted(&self.0[0])]
    }

    /// All that was noted has been encoded.
    #[inline]
    pub fn set_encoded(&mut self, digest: u64, looped: bool) {
        self.0[0].sent &= NO_SET | LOOPED;
        self.0[0].sent |= if looped { LOOPED } else { 0 };
        (self.0[0].queue, self.0[0].rate_kbps) = halves(digest);
    }

    /// Whether so many notes have room.
    #[inline(always)]
    pub fn has_room(&self, notes: usize) -> bool {
        noted(&self.0[0]) + notes <= ROOM
    }

    /// Adds a note; there is room for it.
    #[inline(always)]
    pub fn note(&mut self, note: Note) {
        let place = 2 + noted(&self.0[0]);
        self.0[0].sent += 1 << 16;
        let (queue, rate_kbps) = halves(note.value);
        let sent = u32::from(note.egress) << 16 | u32::from(note.ingress);
        self.0[place] = IntRecord { time: note.node, sent, queue, rate_kbps };
    }

    /// When the packet came to the switch that it waits in, or waited in last.
    #[inline(always)]
    pub fn came(&self) -> Time {
        Time(whole(self.0[1].time, self.0[1].sent))
    }

    #[inline]
    pub fn set_came(&mut self, at: Time) {
        (self.0[1].time, self.0[1].sent) = halves(at.0);
    }
}
