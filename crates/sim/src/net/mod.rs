//! Links, ports, switches and hosts: the network that packets cross.

pub mod buffer;
pub mod ecn;
pub mod host;
pub mod partition;
pub mod port;
pub mod switch;

/// Index of a port among all ports of the network: the ports of a node lie together, in the node's own order.
pub type PortId = u32;

/// Bytes of a PFC pause or resume frame.
pub const PFC_FRAME_BYTES: u16 = 43;
