//! What packets carry in addition to their fields: records of INT, digests of PINT, or numbers of their transport.
//!
//! In runs with telemetry there is room for all of these in the place of every packet. In others only some acknowledgements and
//! signals of TCP carry anything, so they have a table of their own.

use super::memory::Carried;
use super::outbox::Outbox;
use super::partition::Partition;
use crate::packet::PacketId;
use crate::telemetry::int::{IntRecord, IntView, IntWriter, numbers_in, places_of_numbers};
use crate::telemetry::packet_digest::{PLACES, PacketDigest};

/// What packets carry in a run without telemetry, by their index.
#[derive(Default)]
pub struct Numbers(Vec<[IntRecord; 2]>);

impl Numbers {
    fn get(&self, id: PacketId) -> [IntRecord; 2] {
        self.0.get(id as usize).copied().unwrap_or_default()
    }

    fn set(&mut self, id: PacketId, places: [IntRecord; 2]) {
        if id as usize >= self.0.len() {
            self.0.resize(id as usize + 1, Default::default());
        }
        self.0[id as usize] = places;
    }
}

impl Partition {
    /// A data packet takes telemetry along from now on.
    #[inline]
    pub fn begin_telemetry(&mut self, id: PacketId) {
        let (packet, carried) = self.packets.with_room_of(id);
        packet.carries = true;
        IntWriter::begin(carried);
    }

    /// The digest of a packet that carries one.
    #[inline]
    pub fn packet_digest(&mut self, id: PacketId) -> PacketDigest<'_> {
        PacketDigest::of(&mut self.packets.with_room_of(id).1[..PLACES])
    }

    /// The records of a packet that carries them.
    #[inline]
    pub fn int_view(&self, id: PacketId) -> Option<IntView<'_>> {
        self.int.view(self.packets.room(id))
    }

    /// A packet that is sent carries six numbers.
    pub fn carry_numbers(&mut self, id: PacketId, numbers: [u32; 6]) {
        self.carry(id, &places_of_numbers(numbers));
    }

    /// The numbers that a packet carries.
    pub fn numbers(&self, id: PacketId) -> [u32; 6] {
        match self.packets.room(id) {
            [first, second, ..] => numbers_in([*first, *second]),
            _ => numbers_in(self.apart.get(id)),
        }
    }

    /// Appends what a packet carries to a list, its head first.
    pub fn copy_carried(&self, id: PacketId, to: &mut Vec<IntRecord>) {
        if !self.packets[id].carries {
            return;
        }
        match (self.packets.room::<IntRecord>(id), self.carried) {
            ([], _) => to.extend(self.apart.get(id)),
            (room, Carried::Digests) => to.extend_from_slice(&room[..PacketDigest::places_in_use(&room[0])]),
            (room, Carried::Records) => to.extend_from_slice(&room[..self.int.places_in_use(room)]),
        }
    }

    /// A packet carries what was copied so, as far as there is room for it.
    pub fn carry(&mut self, id: PacketId, places: &[IntRecord]) {
        let (packet, room) = self.packets.with_room_of(id);
        packet.carries = !places.is_empty();
        if room.is_empty() {
            if packet.carries {
                let place = |at: usize| places.get(at).copied().unwrap_or_default();
                self.apart.set(id, [place(0), place(1)]);
            }
            return;
        }
        let kept = places.len().min(room.len());
        room[..kept].copy_from_slice(&places[..kept]);
    }

    /// What an outbox takes along for a packet, where it is not in its place.
    pub(super) fn carried_apart(&self, id: PacketId) -> Option<[IntRecord; 2]> {
        (self.packets[id].carries && !self.packets.have_room()).then(|| self.apart.get(id))
    }

    /// The same from an inbox.
    pub(super) fn take_in_apart(&mut self, inbox: &Outbox) {
        for &(at, places) in &inbox.apart {
            self.apart.set(inbox.arrivals[at].packet(), places);
        }
    }
}
