//! What a host does with packets before its transports see them, resolved.

use crate::transport::binding::NicPolicy;
use crate::units::{Bytes, Time};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HostConfig {
    /// Receivers put packets in order before their transports see them.
    pub resequencing: Option<ResequencingConfig>,
    /// For each packet that comes, one after the other.
    pub packet_time: Time,
    /// By which of its NICs a flow leaves.
    pub nic_policy: NicPolicy,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResequencingConfig {
    /// A packet is held no longer than this for those before it.
    pub timeout: Time,
    /// Payload of one flow that is held, at most.
    pub buffer: Bytes,
}
