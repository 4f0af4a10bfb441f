//! What a host does with packets between its transports and its links, resolved.

use crate::queue::QueueConfig;
use crate::transport::binding::NicPolicy;
use crate::units::{Bytes, Time};

#[derive(Debug, Clone, PartialEq, Default)]
pub struct HostConfig {
    /// What packets wait in before a NIC, which transports fill as their windows allow; none: transports make a
    /// packet when a NIC is free.
    pub queue: Option<QueueConfig>,
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
