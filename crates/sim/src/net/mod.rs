//! Links, ports, switches and hosts: the network that packets cross.

pub mod agenda;
pub mod awaited;
pub mod buffer;
mod carried;
pub mod ecn;
pub mod failures;
pub mod headers;
pub mod host;
pub mod loss;
pub mod map;
pub mod memory;
pub mod outbox;
pub mod partition;
pub mod passing;
pub mod port;
pub mod switch;
pub mod tap;
pub mod trace;

/// Index of a port among those of its partition: the ports of a node lie together, in the node's own order.
pub type PortId = u32;

/// Bytes of a PFC pause or resume frame in the HPCC authors' simulator (`QbbNetDevice::SendPfc`): 9 of
/// `PauseHeader` (4 of time, 4 of queue length, 1 of class), 20 of IPv4, 14 of link header. A frame of IEEE
/// 802.1Qbb has 64 with padding and check sequence.
pub const PFC_FRAME_BYTES: u16 = 43;

/// Which kind of node, and its place among its kind in its partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeIndex {
    Host(u32),
    Switch(u32),
}
