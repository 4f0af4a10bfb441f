//! IRN: selective repeat with a cap on the bytes in flight, and a short timeout while little is in flight.
//!
//! ```text
//! lost        a packet that has not arrived when a later one has (reordering = 1), once; then when the timeout expires
//! new data    while next byte - acknowledged < bdp_cap, whatever has arrived in between; lost packets always
//! timeout     rto_low with at most three packets outstanding, otherwise rto
//! ```
//!
//! Source: Mittal et al., "Revisiting Network Support for RDMA", SIGCOMM 2018, §3.1 (recovery and timeouts, N = 3), §3.2 (BDP-FC).
//! Differs from the source: acknowledgements of all packets name the packet that came, where IRN's NACK does; timeouts double
//! with each expiry in a row; `rto` follows from the network (published: 320 us), and `rto_low` from `rto` (100 us).

use super::parameters::RdmaConfig;
use crate::parameters::Parameters;
use crate::units::{Bytes, Rate, Time};

/// Packets outstanding up to which the short timeout holds (IRN §3.1: N).
const FEW: u64 = 3;
/// `rto_low = "auto"` is this part of `rto`, about as published (100 us of 320 us).
const LOW_PART: u64 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IrnConfig {
    pub reordering: u32,
    /// Bytes that may be outstanding; none: line rate times base RTT.
    pub bdp_cap: Option<Bytes>,
    /// Timeout while few packets are outstanding; none: a part of the other one.
    pub rto_low: Option<Time>,
}

/// Reads the keys that only IRN has: cap and short timeout. `on`: they have an effect.
pub fn read(p: &mut Parameters, rto: Option<Time>, on: bool) -> (Option<Bytes>, Option<Time>) {
    let help = "with irn: maximum of bytes sent beyond those acknowledged in order (BDP-FC); auto: line rate times base RTT";
    let bdp_cap = p.bytes_or_auto("bdp_cap", help);
    let help = "with irn: retransmission timeout while at most three packets are outstanding; auto: a third of `rto` (published: \
                100 us of 320 us)";
    let rto_low = p.time_or_auto("rto_low", help);
    if !on {
        for key in ["bdp_cap", "rto_low"] {
            p.without_effect(key, || "has no effect without IRN: set recovery = \"irn\"".into());
        }
        return (None, None);
    }
    if bdp_cap == Some(Bytes(0)) {
        p.complain("bdp_cap", "a cap of 0 would never send: expected a size above 0B".into());
    }
    if let Some(low) = rto_low {
        let longest = rto.unwrap_or(Time::ZERO);
        if low < Time::from_us(1) || low > longest {
            let limit = rto.map_or("no value where rto = \"none\"".into(), |rto| {
                format!("1us to {rto} (transport.rto)")
            });
            p.complain("rto_low", format!("expected {limit}, found {low}"));
        }
    }
    (bdp_cap, rto_low)
}

impl RdmaConfig {
    /// Bytes that a flow of this line rate may have outstanding.
    pub fn bdp_cap(&self, line_rate: Rate) -> u64 {
        match self.recovery.irn() {
            None => u64::MAX,
            Some(irn) => irn.bdp_cap.unwrap_or_else(|| line_rate.bytes_in(self.derived.base_rtt)).0.max(1),
        }
    }

    /// The retransmission timeout with this number of bytes outstanding.
    pub fn timeout(&self, outstanding: u64) -> Option<Time> {
        let rto = self.rto?;
        match self.recovery.irn() {
            Some(irn) if outstanding <= FEW * u64::from(self.mtu) => Some(irn.low(rto)),
            _ => Some(rto),
        }
    }
}

impl IrnConfig {
    /// The short timeout.
    pub fn low(&self, rto: Time) -> Time {
        self.rto_low.unwrap_or(Time(rto.0 / LOW_PART))
    }
}
