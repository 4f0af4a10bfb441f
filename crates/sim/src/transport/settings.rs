//! What all hosts of a run share and nobody changes.

use super::{TransportConfig, TransportParameters};
use crate::compat::Rules;
use crate::telemetry::int::IntLayout;
use crate::telemetry::pint::PintConfig;
use std::sync::Arc;

pub struct Settings {
    pub rules: Rules,
    /// By the index that flows carry, with all that follows from the network.
    pub transports: Vec<TransportConfig>,
    /// By the same index: which of a host's transports takes the flow.
    pub transport_of: Vec<u8>,
    /// By the same index: flows may follow each other over a connection.
    pub keeps_connections: Vec<bool>,
    pub int_layout: IntLayout,
    pub int_hops: usize,
    pub path_ids: bool,
    pub pint: Option<Arc<PintConfig>>,
    /// For random numbers that are nobody's own.
    pub seed: u64,
    /// Packets may be sent twice: receivers must remember which flows have ended.
    pub duplicates: bool,
    /// Flows wait for flows: hosts report those that end.
    pub dependencies: bool,
    /// Multipath flows tell what their subflows carried.
    pub subflows: bool,
}

impl Settings {
    /// Those of a flow or packet, for the transport that it runs over.
    ///
    /// Panics: another transport asks. Hosts hand each packet to the transport that it names.
    #[inline(always)]
    pub fn of<P: TransportParameters>(&self, index: impl Into<usize>) -> &P {
        let own = P::of(&self.transports[index.into()]);
        own.expect("a packet or flow came to another transport than its own")
    }
}
