//! Constants of a run that all hosts share.

use super::binding::NicPolicy;
use super::{TransportConfig, TransportParameters};
use crate::compat::Rules;
use crate::telemetry::int::IntLayout;
use crate::telemetry::pint::PintConfig;
use crate::units::Time;
use std::sync::Arc;

pub struct Settings {
    pub rules: Rules,
    /// By the index in flows and packets; [`TransportParameters::settle`] has derived what follows from the
    /// network.
    pub transports: Vec<TransportConfig>,
    /// By the same index: the number of the transport at its host.
    pub transport_of: Vec<u8>,
    /// By the same index: `Facts::keeps_connections`.
    pub keeps_connections: Vec<bool>,
    pub nic_policy: NicPolicy,
    /// Time that the processor of a host takes for each packet.
    pub packet_time: Time,
    /// Links of one host may have unlike rates while flows leave by all of them.
    pub unlike_nics: bool,
    pub int_layout: IntLayout,
    pub int_hops: usize,
    pub path_ids: bool,
    pub pint: Option<Arc<PintConfig>>,
    /// Seed of random numbers that do not belong to one entity.
    pub seed: u64,
    /// Flows wait for flows: hosts report those that end.
    pub dependencies: bool,
    /// Multipath flows tell what their subflows carried.
    pub subflows: bool,
}

impl Settings {
    /// The parameters of a flow or packet, by its index.
    ///
    /// Panics if they belong to another transport than `P`. Hosts hand each packet to the transport that it
    /// names.
    #[inline(always)]
    pub fn of<P: TransportParameters>(&self, index: impl Into<usize>) -> &P {
        let own = P::of(&self.transports[index.into()]);
        own.expect("a flow or packet was passed to a different transport")
    }
}
