//! What stands between the transports of a host and its links, resolved.

use crate::transport::binding::NicPolicy;
use crate::units::{Bytes, Time};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HostConfig {
    /// Receivers put packets in order before their transports see them.
    pub resequencing: Option<ResequencingConfig>,
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
