//! Forms of packets that several rooms read: the transports that send them, switches that look into them,
//! captures.

pub mod addresses;
pub mod mptcp;
pub mod tcp;
