//! The memory in which all partitions of a run keep packets and what these carry, so that both cross between
//! partitions by index.

use crate::packet::PacketSlab;
use crate::telemetry::TelemetryConfig;
use crate::telemetry::int::{IntLayout, IntRecord, IntWriter, places_of};
use crate::telemetry::packet_digest::PLACES;

/// What the room after packets is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carried {
    Records,
    Digests,
}

/// The owner of no packet, from which those of the partitions are made.
pub struct Memory {
    packets: PacketSlab,
    carried: Carried,
    max_hops: usize,
    layout: IntLayout,
}

impl Memory {
    /// For a network with this number of ports. There is room for what waits and travels where it is busy, so
    /// that the memory seldom moves.
    pub fn new(telemetry: &TelemetryConfig, layout: IntLayout, ports: usize) -> Memory {
        const AT_A_PORT: usize = 64;
        const AT_MOST: usize = 1 << 22;
        let (carried, max_hops, places) = match telemetry {
            TelemetryConfig::None => (Carried::Records, 1, 0),
            TelemetryConfig::Int { max_hops, .. } => {
                (Carried::Records, *max_hops as usize, places_of(*max_hops as usize))
            }
            TelemetryConfig::Pint(_) => (Carried::Digests, 1, PLACES),
        };
        let mut packets = PacketSlab::with_room(places * size_of::<IntRecord>());
        packets.reserve((AT_A_PORT * ports).min(AT_MOST));
        packets.end_turn();
        Memory { packets, carried, max_hops, layout }
    }

    /// What one more partition owns, which is not at work; what the room in it is for, and how that is written.
    pub fn share(&self) -> (PacketSlab, Carried, IntWriter) {
        (self.packets.another(), self.carried, IntWriter::new(self.max_hops, self.layout))
    }
}
