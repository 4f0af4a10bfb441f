//! What all switches of a run are like, resolved.

use crate::balance::BalancerConfig;
use crate::net::buffer::PfcConfig;
use crate::net::ecn::EcnThreshold;
use crate::net::port::Forwarding;
use crate::queue::QueueConfig;
use crate::topology::{NodeId, PortSet};
use crate::units::Bytes;

#[derive(Debug, Clone, PartialEq)]
pub struct SwitchConfig {
    pub buffer: Bytes,
    pub forwarding: Forwarding,
    pub ecn: Vec<EcnThreshold>,
    pub pfc: PfcConfig,
    /// With PFC off: a queue may hold this multiple of the free buffer (dynamic threshold).
    pub lossy_alpha: f64,
    pub balancer: BalancerConfig,
    pub queue: QueueConfig,
    /// Ports that have another one: (ports, queue), of which the last that names a port holds.
    pub port_queues: Vec<(PortSet, QueueConfig)>,
}

impl SwitchConfig {
    /// The queue of a switch's port.
    pub fn queue_at(&self, node: NodeId, local: u32) -> &QueueConfig {
        let named =
            self.port_queues.iter().rev().find(|(ports, _)| ports.binary_search(&(node, local)).is_ok());
        named.map_or(&self.queue, |(_, queue)| queue)
    }

    /// The queues of all its ports.
    pub fn queues(&self) -> impl Iterator<Item = &QueueConfig> {
        std::iter::once(&self.queue).chain(self.port_queues.iter().map(|(_, queue)| queue))
    }
}
