//! Queue disciplines that own the buffer of their port: what each is told.

use crate::units::Bytes;

/// A port whose packets wait in a buffer of its own, under a discipline that knows the time and may drop what waits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ManagedConfig {
    pub discipline: DisciplineConfig,
    pub limit: Limit,
    /// Packets that wait in the NIC behind the discipline, which has no say over them any more.
    pub nic_packets: u32,
    /// Bytes of every packet that are on the wire but that the discipline does not count.
    pub link_header: u16,
}

/// What a port may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    pub packets: u32,
    pub bytes: Bytes,
}

impl Limit {
    pub const NONE: Limit = Limit { packets: u32::MAX, bytes: Bytes(u64::MAX) };

    pub fn of_packets(packets: u32) -> Limit {
        Limit { packets, ..Limit::NONE }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum DisciplineConfig {
    /// First come, first served; a full port drops the new packet.
    Fifo,
}

impl DisciplineConfig {
    /// It decides itself which packets are marked: the thresholds of the switch do not hold at its ports.
    pub fn marks(&self) -> bool {
        match self {
            DisciplineConfig::Fifo => false,
        }
    }
}
