//! Default settings of switches: those published with the transport.

use crate::balance;
use crate::net::ecn::EcnDefaults;
use crate::queue;
use crate::units::Bytes;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SwitchDefaults {
    pub ecn: EcnDefaults,
    /// Switches mark at all.
    pub marks: bool,
    /// PFC is on.
    pub lossless: bool,
    pub queue: &'static str,
    /// Limit of a port, if the discipline has limits of its own.
    pub limit: Option<Bytes>,
    /// Full ports trim packets.
    pub trims: bool,
    pub balancer: &'static str,
}

impl SwitchDefaults {
    /// Of the published HPCC runs, except the thresholds.
    pub const LOSSLESS: SwitchDefaults = SwitchDefaults {
        ecn: EcnDefaults::Ramp,
        marks: true,
        lossless: true,
        queue: queue::DEFAULT_KIND,
        limit: None,
        trims: false,
        balancer: balance::DEFAULT,
    };
    /// Full buffers drop, and nothing is marked.
    pub const LOSSY: SwitchDefaults =
        SwitchDefaults { marks: false, lossless: false, ..SwitchDefaults::LOSSLESS };
}
