//! The memory in which all partitions of a run keep packets and the telemetry that these carry, so that both
//! cross between partitions by index.

use crate::packet::PacketSlab;
use crate::telemetry::TelemetryConfig;
use crate::telemetry::int::{IntLayout, IntStacks};

/// Owners of no packet, from which those of the partitions are made.
pub struct Memory {
    packets: PacketSlab,
    stacks: IntStacks,
}

impl Memory {
    /// For a network with this number of ports. There is room for what waits and travels where it is busy, so
    /// that the memory seldom moves.
    pub fn new(telemetry: &TelemetryConfig, layout: IntLayout, ports: usize) -> Memory {
        const AT_A_PORT: usize = 16;
        const AT_MOST: usize = 1 << 22;
        let mut packets = PacketSlab::new();
        packets.reserve((AT_A_PORT * ports).min(AT_MOST));
        let stacks = match telemetry {
            TelemetryConfig::None => IntStacks::new(1, layout),
            TelemetryConfig::Int { max_hops, .. } => IntStacks::new(*max_hops as usize, layout),
            TelemetryConfig::Pint(_) => IntStacks::of_digests(layout),
        };
        packets.end_turn();
        Memory { packets, stacks }
    }

    /// What one more partition owns, which is not at work.
    pub fn share(&self) -> (PacketSlab, IntStacks) {
        (self.packets.another(), self.stacks.another())
    }
}
